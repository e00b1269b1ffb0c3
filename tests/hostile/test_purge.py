"""What is purged, tainted, forgotten or rejected is gone from every byte that memory wrote."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from claude_lines import Transcript
from conftest import git

from loki_memory import Workspace
from loki_memory.errors import InvalidRecord, NotFound
from loki_memory.ingest.local_archive import export_local
from loki_memory.ingest.run import ingest
from loki_memory.interop.export_memory import FORMATS, backup, export_memory

SAYING = "the heron sleeps at " + "quay forty-one"


@pytest.fixture
def repo(project: Path) -> Iterator[Workspace]:
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "user.name", "ana")
    git(project, "config", "user.email", "ana@example.org")
    with Workspace.init(project) as workspace:
        yield workspace


def traces(ws: Workspace, text: str) -> list[str]:
    """Where a text stands: in any file of the project or of the user, and in any object of git."""
    wanted = text.encode()
    return [f"{path}" for path, data in _contents(ws) if wanted in data]


def _contents(ws: Workspace) -> Iterator[tuple[Path, bytes]]:
    for top in (ws.layout.root, Path(os.environ["LOKI_HOME"])):
        for path in sorted(top.rglob("*")):
            if path.is_file():
                yield path, path.read_bytes()
            if "objects" in path.parts and path.is_file():
                yield path, _inflated(path)
    for database in ws.layout.cache.glob("*.db"):
        with sqlite3.connect(database) as connection:
            yield database, "\n".join(connection.iterdump()).encode()


def _inflated(path: Path) -> bytes:
    try:
        return zlib.decompress(path.read_bytes())
    except zlib.error:
        return b""


def spread(ws: Workspace) -> None:
    """Let a saying reach every place that memory writes to."""
    ws.remember(f"Remember that {SAYING}, says the harbour master")
    ws.remember(SAYING, scope="local")
    ws.remember(f"Also: {SAYING}", scope="user")
    ws.record({"goal": f"Find out whether {SAYING}", "outcome": "success"})
    ws.skills.add(f"# Look for herons\n\nAs {SAYING}.\n\n## Steps\n1. Look\n")
    ws.skills.publish("claude", names=["look-for-herons"])
    forgotten = ws.remember(f"Forgotten: {SAYING}")
    ws.forget(forgotten.id)
    rejected = ws.remember(f"Rejected: {SAYING}")
    ws.reject(rejected.id)
    ws.archive(ws.remember(f"Archived: {SAYING}").id)
    ws.recall(SAYING, session="s-1")
    (ws.layout.loki / "CONTINUITY.md").write_text(f"# Mine\n\n{SAYING}\n", encoding="utf-8")
    ws.continuity(goal=f"Check that {SAYING}")
    ws.sync()


def test_a_purged_text_is_gone_from_every_byte(ws: Workspace, tmp_path: Path) -> None:
    spread(ws)
    told = Transcript("s-2").say(f"Is it true that {SAYING}?").reply(f"Yes: {SAYING}.")
    ingest(ws, [told.call("Bash", "ok", command="ls").write(tmp_path / "a.jsonl")])
    export_local(ws, tmp_path / "local.jsonl")
    assert len(traces(ws, SAYING)) > 10
    done = ws.care.purge(SAYING)
    assert traces(ws, SAYING) == []
    assert done.left == []
    assert SAYING not in (tmp_path / "local.jsonl").read_text(encoding="utf-8")
    assert any("[PURGED]" in memory.title() for memory in ws.list())
    assert "[PURGED]" in (ws.layout.loki / "CONTINUITY.md").read_text(encoding="utf-8")
    assert ws.care.problems() == []


@pytest.mark.parametrize("format_", FORMATS)
def test_a_purged_text_is_gone_from_what_was_exported(
    ws: Workspace, tmp_path: Path, format_: str
) -> None:
    ws.remember(SAYING)
    there = tmp_path / "exported"
    export_memory(ws, there, format_)
    backup(ws, tmp_path / "backup.jsonl", [])
    ws.care.purge(SAYING)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert there in [*files, *(path.parent for path in files)]
    assert [path for path in files if SAYING.encode() in path.read_bytes()] == []


def test_a_purged_memory_takes_along_what_was_derived_from_it_alone(ws: Workspace) -> None:
    error = {"error_type": "E", "message": f"Failed: {SAYING}", "resolution": "wait for dawn"}
    episode = ws.record({"goal": SAYING, "outcome": "failure", "errors_encountered": [error]})
    ws.consolidate()
    assert traces(ws, SAYING)
    done = ws.care.purge(episode.id)
    assert episode.id in done.removed
    assert traces(ws, SAYING) == []
    with pytest.raises(NotFound):
        ws.restore(episode.id)


def test_memorys_own_branch_is_written_anew_without_the_text(repo: Workspace) -> None:
    repo.home.set_config("git.mode", "branch")
    repo.remember("An innocent fact about the tide")
    repo.history.commit()
    fact = repo.remember(f"Remember that {SAYING}")
    repo.history.commit(subject=f"Note that {SAYING}")
    repo.forget(fact.id)
    repo.history.commit()
    assert traces(repo, SAYING)
    done = repo.care.purge(SAYING)
    assert done.rewritten == 2
    assert traces(repo, SAYING) == []
    assert "innocent" in git(repo.layout.root, "grep", "innocent", "loki-memory")
    assert git(repo.layout.root, "fsck", "--strict", "--no-dangling") == ""


def test_where_memory_travels_with_the_code_commands_are_printed_and_nothing_is_rewritten(
    repo: Workspace,
) -> None:
    repo.remember(f"Remember that {SAYING}")
    repo.history.commit()
    head = git(repo.layout.root, "rev-parse", "HEAD")
    done = repo.care.purge(SAYING)
    assert done.commits == [head]
    assert git(repo.layout.root, "rev-parse", "HEAD") == head
    assert any("git filter-repo" in line for line in done.commands)
    assert not [line for line in done.commands if SAYING in line]
    assert done.unreached


def test_a_text_that_stands_everywhere_is_not_purged(ws: Workspace) -> None:
    with pytest.raises(InvalidRecord, match="too many places"):
        ws.care.purge("the")


def test_a_rejected_value_that_was_purged_stays_rejected(ws: Workspace) -> None:
    rejected = ws.remember(SAYING)
    ws.reject(rejected.id)
    ws.care.purge(SAYING)
    from loki_memory.errors import RejectedValue

    with pytest.raises(RejectedValue):
        ws.remember(SAYING)


# -- taint and quarantine --------------------------------------------------------------------------


def learned(ws: Workspace, *sessions: str) -> list[str]:
    """Ids of everything that was learned from episodes of these sessions."""
    error = {"error_type": "E1", "message": "Error: pip refuses", "resolution": "use a venv"}
    for number, session in enumerate(sessions):
        ws.record(
            {
                "goal": f"Install the tools ({number})",
                "outcome": "success",
                "session": session,
                "agent": "eng-1",
                "errors_encountered": [error],
                "timestamp": f"2026-01-0{number + 1}T10:00:00Z",
            }
        )
    ws.consolidate()
    return [memory.id for memory in ws.list()]


@pytest.mark.parametrize("source", ["episode", "session", "author", "file"])
def test_what_came_from_a_tainted_source_is_set_aside_and_can_be_released(
    ws: Workspace, source: str
) -> None:
    own = ws.remember("Somebody stated this by hand", by="bo")
    before = sorted(learned(ws, "s-1", "s-2"))
    episode = ws.list(kind="episode")[0]
    given = {
        "episode": episode.id,
        "session": str(getattr(episode, "session", "")),
        "author": "eng-1",
        "file": str(ws.browse.where(episode.id)),
    }[source]
    listed = ws.care.taint(given, dry_run=True)
    assert sorted(memory.id for memory in ws.list()) == before
    found = ws.care.taint(given, why="its output was forged")
    assert listed.memories == found.memories
    left = {memory.id for memory in ws.list()}
    assert episode.id not in left
    assert own.id in left
    assert not left & {memory.id for memory in found.memories}
    assert [case.case for case in ws.care.quarantine()] == [found.case]
    ws.care.release(found.case)
    assert sorted(memory.id for memory in ws.list()) == before
    assert ws.care.quarantine() == []


def test_what_a_commit_brought_is_set_aside(repo: Workspace) -> None:
    kept = repo.remember("An innocent fact about the tide")
    repo.history.commit()
    brought = repo.remember("A fact that somebody slipped in")
    repo.history.commit()
    found = repo.care.taint(git(repo.layout.root, "rev-parse", "--short=12", "HEAD"))
    assert [memory.id for memory in found.memories] == [brought.id]
    assert [memory.id for memory in repo.list(kind="fact")] == [kept.id]


def test_a_dropped_case_is_gone_for_good(ws: Workspace) -> None:
    fact = ws.remember(SAYING, by="mallory")
    found = ws.care.taint("mallory")
    assert traces(ws, SAYING)
    ws.care.drop(found.case)
    ws.rebuild()
    assert traces(ws, SAYING) == []
    with pytest.raises(NotFound):
        ws.restore(fact.id)


def test_a_source_of_nothing_is_said_to_be_one(ws: Workspace) -> None:
    with pytest.raises(NotFound, match="nobody"):
        ws.care.taint("nobody")


# -- forget and reject -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["forget", "reject"])
def test_what_is_forgotten_or_rejected_is_not_told_any_more(ws: Workspace, how: str) -> None:
    ws.home.note_trust(is_trusted=True)
    fact = ws.remember(f"Always remember that {SAYING}", importance="high")
    ws.skills.add(f"# Look for herons\n\nAs {SAYING}.\n\n## Steps\n1. Look\n")
    ws.skills.publish("claude", names=["look-for-herons"])
    path = ws.continuity(goal=f"Find out where the heron is, as {SAYING}")
    ws.continuity(goal="Find out where the heron sleeps")
    assert SAYING in path.read_text(encoding="utf-8")
    getattr(ws, how)(fact.id)
    if how == "forget":
        ws.forget("skill-look-for-herons")
    ws.flush()
    assert SAYING not in path.read_text(encoding="utf-8")
    views = [file.read_text(encoding="utf-8") for file in ws.layout.memory.glob("semantic/*.json")]
    assert not [view for view in views if SAYING in view]
    if how == "forget":
        assert not list((ws.layout.root / ".claude").rglob("SKILL.md"))


def test_the_commands_work_as_processes(project: Path) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "loki_memory", *arguments]
        done = subprocess.run(command, cwd=project, check=True, capture_output=True, text=True)
        return done.stdout

    run("init")
    run("remember", SAYING, "--by", "mallory")
    assert "1 memory" in run("taint", "mallory")
    assert "mallory" in run("quarantine", "list")
    assert SAYING not in run("purge", SAYING)
    assert "Not reached" in run("purge", SAYING)
