"""One secret through each door, and then every byte that memory wrote is searched for it.

Secrets are put together at run time. A door is a way by which text comes in: a command, a hook, the
library, a file written by hand that is then touched, a transcript.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_lines import Transcript
from conftest import git
from test_cli import run
from test_files_redaction import LOGIN, PEM, TOKENS, some

from hostile.test_purge import traces
from loki_memory import Workspace
from loki_memory.hooks.response import respond
from loki_memory.ingest.run import ingest
from loki_memory.ingest.sensitive_files import is_sensitive, reads_sensitive
from loki_memory.ingest.staging import Staging

SECRETS = {
    **{kind: token for kind, token in TOKENS if kind != "openai_key" and len(token) > 20},
    "basic": f"Authorization: Basic {LOGIN}",
    "named": "DEPLOY_KEY=" + some(32),
    "private key": PEM.format("RSA ", "").replace("\n", " "),
}
PLAIN = "plain words about the deployment of the shop"


@pytest.fixture
def repo(project: Path) -> Iterator[Workspace]:
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "user.name", "ana")
    git(project, "config", "user.email", "ana@example.org")
    with Workspace.init(project) as workspace:
        yield workspace


def body(secret: str) -> str:
    """A part of a secret that stands nowhere else."""
    word = max(secret.replace("=", " ").split(), key=len)
    return word[-20:-2]


def all_secrets() -> str:
    return " ; ".join(SECRETS.values())


def fire(ws: Workspace, name: str, **fields: Any) -> None:
    event = {"session_id": "s-1", "cwd": str(ws.layout.root), **fields}
    respond(name, json.dumps(event).encode(), {}, wait=name == "SessionEnd")


def by_library(ws: Workspace, secret: str) -> None:
    ws.remember(f"Deploy with {secret}")
    ws.remember(f"Private: {secret}", scope="local")
    ws.remember(f"Everywhere: {secret}", scope="user")
    ws.record({"goal": f"Deploy with {secret}", "outcome": "failure", "agent": "eng"})
    ws.recall(secret, session="s-1")
    ws.forget(ws.remember(f"{PLAIN} one").id, why=secret)
    ws.reject(ws.remember(f"{PLAIN} two").id, why=secret)
    ws.correct(ws.remember(f"{PLAIN} three").id, statement=f"Now it is {secret}")
    ws.continuity(goal=f"Deploy with {secret}")
    ws.care.taint(ws.remember(f"{PLAIN} four").id, why=secret)


def by_hooks(ws: Workspace, secret: str) -> None:
    fire(ws, "UserPromptSubmit", prompt=f"Deploy with {secret}")
    use = {"tool_name": "Bash", "tool_input": {"command": f"curl {secret}"}, "tool_use_id": "t"}
    fire(ws, "PreToolUse", **use)
    fire(ws, "PostToolUse", **use, tool_response=secret)
    fire(ws, "PostToolUseFailure", **use, error=f"Error: {secret}")
    fire(ws, "PreCompact", trigger=secret)
    fire(ws, "SessionEnd", reason=secret)
    ingest(ws)


def by_transcript(ws: Workspace, secret: str) -> None:
    told = Transcript("s-2").say(f"Deploy with {secret}").reply(f"It is {secret}.")
    told.call("Bash", f"Error: {secret}", failed=True, command=f"deploy {secret}")
    told.call("Edit", "ok", file_path="/x/a.py", old_string=secret, new_string=f"x {secret}")
    ingest(ws, [told.write(ws.layout.root.parent / "a.jsonl")])


def by_hand(ws: Workspace, secret: str) -> None:
    """The file is the user's and stays; the index, the views and git get it without the secret."""
    path = ws.layout.memory / "semantic" / "facts" / "fact-hand.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"id": "fact-hand", "statement": f"By hand: {secret}"}))
    ws.pin("fact-hand")


DOORS: dict[str, Callable[[Workspace, str], None]] = {
    "library": by_library,
    "hooks": by_hooks,
    "transcript": by_transcript,
    "hand": by_hand,
}


@pytest.mark.parametrize("door", DOORS)
def test_no_secret_that_comes_through_a_door_is_kept(repo: Workspace, door: str) -> None:
    DOORS[door](repo, all_secrets())
    repo.consolidate()
    repo.sync()
    repo.history.commit(subject=f"Deploy with {all_secrets()}")
    assert [kind for kind, secret in SECRETS.items() if traces(repo, body(secret))] == []


def test_everything_in_the_local_zone_is_its_users_alone(repo: Workspace) -> None:
    by_library(repo, PLAIN)
    by_hooks(repo, PLAIN)
    repo.flush()
    for zone in (repo.layout.local, repo.layout.cache):
        for path in [zone, *zone.rglob("*")]:
            mode = stat.S_IMODE(os.lstat(path).st_mode)
            assert mode & 0o077 == 0, path


@pytest.mark.parametrize("name", [".loki", "memory-of-mine"])
def test_the_users_own_memory_is_read_by_nobody_else(
    repo: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever its folder is called, and though it was open to others before."""
    top = tmp_path / "user" / name
    (top / "memory/semantic/facts").mkdir(parents=True)
    before = top / "memory/semantic/facts/fact-by-hand.json"
    before.write_text('{"statement": "I work at night"}', encoding="utf-8")
    monkeypatch.setenv("LOKI_HOME", str(top))
    with Workspace.open(repo.layout.root) as workspace:
        workspace.remember("I prefer tabs", scope="user")
        workspace.reject(workspace.remember("I prefer four spaces", scope="user").id)
        workspace.recall("what do I prefer")
    open_to_others = [path for path in [top, *top.rglob("*")] if os.lstat(path).st_mode & 0o077]
    assert open_to_others == []


def test_working_memory_is_read_by_nobody_else(repo: Workspace) -> None:
    repo.remember("Deploys need the staging token", scope="local")
    for agent in (None, "eng-001"):
        path = repo.continuity("deploy with the staging token", agent=agent)
        assert "staging token" in path.read_text("utf-8")
        assert stat.S_IMODE(os.lstat(path).st_mode) == 0o600


def test_seed_proposes_no_line_with_a_secret(repo: Workspace) -> None:
    secret = SECRETS["github_pat"]
    rules = (
        f"Always export GITHUB_TOKEN={secret} before deploys",
        "Always export STAGE=test before deploys",
    )
    text = "# Rules\n\n" + "".join(f"- {rule}\n" for rule in rules)
    (repo.layout.root / "CLAUDE.md").write_text(text, encoding="utf-8")
    git(repo.layout.root, "add", "CLAUDE.md")
    said = run(repo.layout.root, "seed")
    assert "STAGE=test" in said.out
    assert body(secret) not in said.out + said.err


def test_an_error_does_not_repeat_a_secret(
    repo: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    from loki_memory.cli.output import fail

    secret = SECRETS["github_pat"]
    fail("NotFound", f"no memory {secret}", 5)
    assert body(secret) not in capsys.readouterr().err
    answer = respond(secret, b"{}", {}, folder=str(repo.layout.root))
    assert body(secret) not in answer.err


# -- files of credentials --------------------------------------------------------------------------


CREDENTIAL_FILES = [
    ".env",
    "/x/app/.env.production",
    "config/prod.env",
    "~/.ssh/id_rsa",
    "id_ed25519",
    "~/.netrc",
    "/home/ana/.aws/credentials",
    "~/.config/gcloud/application_default_credentials.json",
    "~/.kube/config",
    "certs/server.key",
    "a/b.pem",
    "infra/terraform.tfstate",
    "config/master.key",
    ".npmrc",
    "secrets.yaml",
    "~/.config/gh/hosts.yml",
    "~/.codex/auth.json",
    "~/.claude/.credentials.json",
    "~/.m2/settings.xml",
    "/run/secrets/db",
    "deploy/secrets/prod.json",
    "kubeconfig",
    "~/.config/rclone/rclone.conf",
    "~/.config/sops/age/keys.txt",
    "~/.databrickscfg",
    "~/.terraform.d/credentials.tfrc.json",
    "~/.composer/auth.json",
    "~/.password-store/db.gpg",
    "/proc/self/environ",
    "gcp-key.json",
    ".dev.vars",
    "~/.bash_history",
    "/etc/shadow",
]


def test_a_file_of_credentials_is_known_by_its_name() -> None:
    for path in CREDENTIAL_FILES:
        assert is_sensitive(path), path
        assert reads_sensitive(f"cat {path}"), path
        assert reads_sensitive(f"cd x && grep KEY {path} | head"), path
        assert reads_sensitive(f"echo KEY=abc >> {path}"), path


PRINTING = [
    "printenv",
    "env | grep KEY",
    "cd app && env",
    "gh auth token",
    "aws configure get aws_secret_access_key",
    "gcloud auth print-access-token",
    "kubectl -n shop get secret db -o yaml",
    "vault kv get secret/shop",
    "op read op://shop/db",
    "gh auth status --show-token",
    "gpg -d secrets.gpg",
    "age -d -i key secrets.age",
    "ansible-vault view group_vars/all.yml",
    "docker compose config",
    "terraform output -json",
    "pulumi config --show-secrets",
    "npm config get //registry.example.org/:_authToken",
    "rails credentials:show",
    "node -e 'console.log(process.env)'",
    "python -c 'print(dict(os.environ))'",
    "heroku config",
    "python -c \"print(open('.env').read())\"",
    "ssh web cat .env",
    "docker exec web cat /app/.env",
]


def test_a_command_that_prints_credentials_is_known() -> None:
    for command in PRINTING:
        assert reads_sensitive(command), command


HARMLESS = [
    "env STAGE=test pytest",
    "set -euo pipefail",
    "export STAGE=test",
    "kubectl get pods",
    "vault status",
    "docker compose config --quiet",
    "terraform output url",
    "gpg --verify a.sig",
    "npm config get cache",
    "node -e 'console.log(process.env.STAGE)'",
    "heroku config:set STAGE=test",
    "python -m pytest -c setup.cfg",
    "docker exec web ls /app/.env",
    "cat .env.example",
    "source .env && npm test",
    "ls -la .env",
    "git add .env.sample",
    "grep -rn process.env src",
    "cat src/environment.py",
    "cat ~/.ssh/known_hosts",
    "cat id_rsa.pub",
    "chmod 600 ~/.ssh/id_rsa",
    "cat docs/env.md",
]


def test_a_command_that_shows_no_credentials_is_captured() -> None:
    for command in HARMLESS:
        assert not reads_sensitive(command), command


def test_what_stands_in_a_file_of_credentials_is_not_captured(
    repo: Workspace, tmp_path: Path
) -> None:
    plain = "harbour-master-says-so"  # nothing that redaction would know
    told = Transcript("s-3").say("Look at the settings")
    told.call("Read", f"SETTING={plain}", file_path="/x/.env")
    told.call("Bash", f"SETTING={plain}", command="cat /x/.env")
    told.call("Bash", f"Error: {plain}", failed=True, command="cat ~/.netrc")
    told.call("Write", "ok", file_path="/x/.env.local", content=f"SETTING={plain}")
    told.call("Edit", "ok", file_path="/x/.env", old_string="a", new_string=plain)
    told.call("Bash", "ok", command=f"echo {plain} > ~/.ssh/id_rsa")
    whole = told.write(tmp_path / "a.jsonl")
    for lines in (4, len(told.lines)):  # an answer may come in a later run than its call
        ingest(repo, [told.write(tmp_path / "a.jsonl", lines)])
    assert ingest(repo, [whole]).episodes == 0
    repo.sync()
    assert traces(repo, plain) == []
    assert len(list(Staging(repo.layout.local / "ingest" / "sessions").turns("s-3"))) > 5


# -- personal data ---------------------------------------------------------------------------------

PERSONAL = {
    "The log is in /home/ana/shop/build.log": "The log is in ~/shop/build.log",
    "See /Users/ana.b/work/x.py:3": "See ~/work/x.py:3",
    r"It lies in C:\Users\ana\shop": r"It lies in ~\shop",
    "Open vscode://file/home/ana/shop/x.py": "Open vscode://file~/shop/x.py",
    "It is file:///home/ana/shop/x.py": "It is file://~/shop/x.py",
    "See /var/home/ana/shop": "See ~/shop",
    "See /export/home/ana/shop": "See ~/shop",
    "Mounted as /mnt/c/Users/ana/shop": "Mounted as ~/shop",
    "Mounted as /c/Users/ana/shop": "Mounted as ~/shop",
    "See /System/Volumes/Data/Users/ana/shop": "See ~/shop",
    r"It lies in \\wsl$\Ubuntu\home\ana\shop": r"It lies in ~\shop",
    "GET /open?path=%2Fhome%2Fana%2Fshop": "GET /open?path=~%2Fshop",
    "Write to mailto:ana.b@corp-mail.de": "Write to mailto:[REDACTED:email]",
    "GET /users?mail=ana%40corp-mail.de": "GET /users?mail=[REDACTED:email]",
    "[ana@laptop-7 shop]$ make failed": "[user@host shop]$ make failed",
    "ana@laptop-7 ~/shop % make failed": "user@host ~/shop % make failed",
    "Ask ana.b@corp-mail.de about it": "Ask [REDACTED:email] about it",
    "ana@laptop-7:~/shop$ make failed": "user@host:~/shop$ make failed",
}
IMPERSONAL = [
    "The route /home/settings needs a login",
    "GET https://shop.org/home/ana/profile",
    "GET https://shop.org/c/Users/ana/profile",
    "The route /api/Users/ana/orders answers with 404",
    "A width of 40%40 is no address, nor is [a@b c] in a table",
    "Clone git@github.com:org/repo.git",
    "Install left-pad@1.3.0 and @types/node@20.1.5",
    "Mail support@example.com in the tests",
    "The decorator @app.route registers it",
    "postgres://app@db.internal.net/shop",
]


def test_what_others_read_names_no_person(ws: Workspace) -> None:
    assert {text: ws.remember(text).title() for text in PERSONAL} == PERSONAL
    assert [ws.remember(text, scope="local").title() for text in PERSONAL] == [*PERSONAL]


def test_what_names_no_person_stays(ws: Workspace) -> None:
    assert [ws.remember(text).title() for text in IMPERSONAL] == IMPERSONAL
