"""No part of a secret reaches the disk, wherever a text that holds it is cut.

A secret is placed so that each limit of a way in falls into its middle. Then every byte that memory
wrote is searched for twelve characters in a row of it: staged turns, records, index, git objects.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_lines import SESSION, Transcript
from conftest import git
from test_files_redaction import JWT, KEY_FOOTER, PEM, some

from loki_memory import Workspace
from loki_memory.hooks.response import respond
from loki_memory.ingest.run import ingest
from loki_memory.interop.import_memory import import_memory

RUN = 12  # characters in a row that nobody guesses
SECRETS = {
    "github": "ghp_" + some(36),
    "anthropic": "sk-" + "ant-api03-" + some(93),
    "aws": "AWS_SECRET_ACCESS_KEY=" + some(40),
    "jwt": JWT,
    "password": 'password = "' + some(32) + '"',
    "url": "postgres://ana:" + some(24) + "@db.example.org/shop",
    "key": PEM.format("RSA ", ""),
    "end of a key": "\n".join([some(64)] * 3 + [KEY_FOOTER]),
}
# Characters after which a text is cut on its way from a transcript into an episode.
PROMPT, COMMAND, ANSWER, ERROR = (400, 4000), (40, 200, 2000), (300,), (240, 500, 1200)
ENDS = (200, 800)  # of an error, counted from its end


@pytest.fixture
def repo(project: Path) -> Iterator[Workspace]:
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "user.name", "ana")
    git(project, "config", "user.email", "ana@example.org")
    with Workspace.init(project) as workspace:
        yield workspace


def runs(secret: str) -> set[bytes]:
    """All runs of the random part of a secret."""
    body = max(secret.replace("\n", " ").replace("/", " ").split(), key=len).split("=")[-1]
    if secret.startswith("-----BEGIN") or secret.endswith(KEY_FOOTER):
        body = some(64)
    elif "@" in secret:
        body = some(24)
    return {body[at : at + RUN].encode() for at in range(len(body) - RUN + 1)}


def written(ws: Workspace) -> Iterator[tuple[str, bytes]]:
    """Everything on disk below the project, what git keeps compressed too."""
    for path in sorted(ws.layout.root.rglob("*")):
        if path.is_file():
            yield str(path), path.read_bytes()
    for database in ws.layout.cache.glob("*.db"):
        with sqlite3.connect(database) as connection:
            yield str(database), "\n".join(connection.iterdump()).encode()
    batch = ["git", "cat-file", "--batch-all-objects", "--batch"]
    root = ws.layout.root
    yield "git", subprocess.run(batch, cwd=root, check=True, capture_output=True).stdout


def found(ws: Workspace, secret: str) -> list[str]:
    """Where part of the secret stands."""
    return [
        f"{path}: {run.decode()}"
        for path, data in written(ws)
        for run in sorted(runs(secret))
        if run in data
    ]


def around(secret: str, limit: int) -> Iterator[str]:
    """Texts in which the limit falls into the secret: near its beginning, its middle, its end."""
    for part in (RUN + 4, len(secret) // 2, len(secret) - 8):
        yield (some(max(0, limit - part - 1), "lorem ipsum ") + f" {secret} and more " * 2)


def before_end(secret: str, limit: int) -> Iterator[str]:
    for text in around(secret, limit):
        yield (
            "Error: it failed\n"
            + some(3000, "dolor sit amet ")
            + text[::-1].replace(secret[::-1], secret)
        )


def texts(secret: str, limits: tuple[int, ...]) -> list[str]:
    return [text for limit in limits for text in around(secret, limit)]


def session(secret: str) -> Transcript:
    """A session that meets the secret everywhere."""
    told = Transcript()
    for text in texts(secret, PROMPT):
        told.say(f"Do this: {text}").call("Read", "ok", file_path="/home/ana/shop/a.py")
    for text in texts(secret, COMMAND):
        told.call("Bash", "Error: no such thing", failed=True, command=f"run {text}")
        told.call("Bash", "done", command=f"run {text} again")
    for text in texts(secret, ANSWER):
        told.call("Bash", text, command="git commit -m x")
    for text in texts(secret, ERROR):
        told.call("Bash", f"Error: {text}", failed=True, command="make it")
        told.call("Bash", f"{text}\nError: {text}", failed=True, command="make it")
    for text in (one for limit in ENDS for one in before_end(secret, limit)):
        told.call("Bash", text, failed=True, command="make that")
    return told


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_part_of_a_secret_in_a_transcript_is_kept(
    repo: Workspace, tmp_path: Path, secret: str
) -> None:
    done = ingest(repo, [session(secret).write(tmp_path / "a.jsonl")])
    assert done.episodes > 5
    repo.sync()
    assert repo.history.commit().commit
    assert found(repo, secret) == []
    staged = next((repo.layout.local / "ingest" / "sessions").glob("*.jsonl"))
    assert b"[REDACTED:" in staged.read_bytes()


def fire(ws: Workspace, name: str, **fields: Any) -> None:
    event = {"session_id": SESSION, "cwd": str(ws.layout.root), **fields}
    response = respond(name, json.dumps(event).encode(), {}, wait=name == "SessionEnd")
    assert response.err == ""


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_part_of_a_secret_that_a_hook_sees_is_kept(repo: Workspace, secret: str) -> None:
    for number, text in enumerate(around(secret, 400)):
        fire(repo, "UserPromptSubmit", prompt=text)
        fire(repo, "PreCompact", agent_type="eng-qa")
        use = {"tool_name": "Bash", "tool_input": {"command": text}, "tool_use_id": f"t{number}"}
        fire(repo, "PostToolUse", **use, tool_response=text)
        fire(repo, "PostToolUseFailure", **use, error=f"Error: {text}")
    fire(repo, "SessionEnd")
    assert ingest(repo).episodes
    repo.sync()
    assert repo.history.commit().commit
    assert found(repo, secret) == []


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_part_of_a_secret_in_a_goal_is_kept(repo: Workspace, secret: str) -> None:
    for limit in (120, 300, 2000):
        for text in around(secret, limit):
            repo.continuity(goal=text)
            assert found(repo, secret) == []


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_part_of_a_secret_in_a_reason_or_a_message_is_kept(repo: Workspace, secret: str) -> None:
    fact = repo.remember("The cart rounds down")
    repo.history.commit(subject=f"Remember {secret}")
    repo.forget(fact.id, why=f"It named {secret}")
    repo.history.commit(subject=f"Forget {secret}")
    assert found(repo, secret) == []


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_part_of_a_secret_in_a_report_is_kept(repo: Workspace, secret: str) -> None:
    texts = [text for limit in (300, 350, 700) for text in around(secret, limit)]
    texts += [text for limit in (350,) for text in before_end(secret, limit)]
    failures = [{"name": f"test {number}", "message": text} for number, text in enumerate(texts)]
    report = {"gate": "pytest", "outcome": "failed", "failures": failures}
    repo.sessions.record_verdict(json.dumps(report).encode())
    repo.sync()
    assert repo.history.commit().commit
    assert found(repo, secret) == []


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_part_of_a_secret_in_an_agents_report_is_kept(repo: Workspace, secret: str) -> None:
    for text in around(secret.replace("\n", " "), 300):
        given = {"session_id": "s", "teammate_name": "eng-1", "task_subject": text}
        respond("TaskCompleted", json.dumps(given).encode(), {}, folder=str(repo.layout.root))
    assert repo.team.take_over_checkpoints()
    repo.history.commit()
    assert found(repo, secret) == []


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_part_of_a_secret_in_a_note_is_kept(repo: Workspace, secret: str) -> None:
    """The note itself is the agent's and stays as it is."""
    path = repo.layout.loki / "CONTINUITY.md"
    for text in around(secret.replace("\n", " "), 2000):
        path.write_text(f"# Notes\n\n## Mistakes & Learnings\n- {text}\n", encoding="utf-8")
        repo.continuity(goal="x")
        path.write_text("", encoding="utf-8")
    assert repo.list()
    repo.history.commit()
    assert found(repo, secret) == []


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_part_of_a_secret_in_a_skill_is_kept(repo: Workspace, secret: str) -> None:
    """Its name and its description come from its title."""
    line = secret.replace("\n", " ")
    repo.skills.add(f"# Deploy with {line}\n\n## Steps\n1. Deploy\n")
    for text in around(line, 1024):
        repo.skills.add(f"---\nname: deploy\n---\n# {text}\n\n## Steps\n1. Deploy\n")
    repo.history.commit()
    assert found(repo, secret) == []
    lowered = {run.lower().decode() for run in runs(secret)}
    names = [path.name for path in repo.layout.loki.rglob("*")]
    assert not [name for name in names for run in lowered if run in name]


@pytest.mark.parametrize("name", ["github", "key"])
def test_a_session_with_secrets_read_in_pieces_gives_the_same_bytes_as_at_once(
    ws: Workspace, tmp_path: Path, name: str
) -> None:
    told = session(SECRETS[name])
    for lines in (7, 30, 60, len(told.lines)):
        ingest(ws, [told.write(tmp_path / "a.jsonl", lines)])
    with Workspace.init(tmp_path / "other") as other:
        ingest(other, [told.write(tmp_path / "b.jsonl")])
        assert bytes_of(ws) == bytes_of(other) != {}


def bytes_of(ws: Workspace) -> dict[str, bytes]:
    folder = ws.layout.local / "memory" / "episodic"
    return {path.name: path.read_bytes() for path in folder.rglob("episode-*.json")}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_part_of_a_secret_that_another_system_noted_is_kept(
    repo: Workspace, tmp_path: Path, secret: str
) -> None:
    line = secret.replace("\n", " ")
    notes = "".join(f"- {text}\n" for text in around(line, 2000))
    path = tmp_path / "MEMORY.md"
    path.write_text(f"# Deploying\n{notes}\n## Use {line} here\n- It opens the gate\n")
    assert import_memory(repo, "claude-memory", path).records
    repo.sync()
    assert repo.history.commit().commit
    assert found(repo, secret) == []
    lowered = {run.lower() for run in runs(secret)}
    assert not [path for path, data in written(repo) for run in lowered if run in data]


def test_an_error_that_names_a_secret_is_known_again_and_journaled_without_it(
    repo: Workspace, tmp_path: Path
) -> None:
    secret = SECRETS["github"]
    error = f"Error: cannot log in with {secret} to the registry"
    for number in range(2):
        told = Transcript(f"s-{number}").say("Publish the package")
        told.call("Bash", error, failed=True, command="npm publish")
        told.call("Bash", "ok", command="npm publish --registry local")
        ingest(repo, [told.write(tmp_path / f"{number}.jsonl")])
    repo.consolidate()
    use = {"tool_name": "Bash", "tool_input": {"command": "npm publish"}, "tool_use_id": "t"}
    event = {"session_id": "s-3", "cwd": str(repo.layout.root), **use, "error": error}
    response = respond("PostToolUseFailure", json.dumps(event).encode(), {})
    assert "--registry local" in response.out
    assert found(repo, secret) == []
