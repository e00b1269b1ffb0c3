"""Commits that are signed where a key can be used without asking anybody."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loki_memory import Workspace
from loki_memory.git_repository import Repository
from loki_memory.history.commit import commit
from loki_memory.integrity.signatures import is_signed, signing_key

UNSIGNED = "the commit is not signed: "


def run(*command: str | Path, at: Path) -> str:
    done = subprocess.run(
        command, cwd=at, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    return done.stdout


def new_key(folder: Path, name: str, passphrase: str = "") -> Path:
    path = folder / name
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", name, "-f", path, at=folder)
    return path


def allow(project: Path, *keys: Path) -> None:
    """Name whose signatures count."""
    lines = [f"ana@example.org {key.with_suffix('.pub').read_text()}" for key in keys]
    (project / ".git/allowed").write_text("".join(lines), encoding="utf-8")
    run("git", "config", "gpg.ssh.allowedSignersFile", project / ".git/allowed", at=project)


@pytest.fixture
def workspace(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace that wants signatures, in a repository that knows how."""
    monkeypatch.setenv("LOKI_GIT_SIGN", "true")
    run("git", "init", "-q", "-b", "main", at=project)
    for name, value in (
        ("user.name", "Ana"),
        ("user.email", "ana@example.org"),
        ("gpg.format", "ssh"),
        ("gpg.ssh.program", "false"),  # a program of the configuration is not run
    ):
        run("git", "config", name, value, at=project)
    with Workspace.init(project) as workspace:
        workspace.remember("Deploys happen on Fridays")
        yield workspace


def use(project: Path, key: Path | str) -> Repository:
    run("git", "config", "user.signingKey", str(key), at=project)
    found = Repository.find(project)
    assert found is not None
    return found


def test_a_key_without_a_passphrase_signs(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    key = new_key(tmp_path, "key")
    repository = use(project, key)
    allow(project, key)
    done = commit(workspace)
    assert done.notes == ()
    assert is_signed(repository, done.commit)
    assert run("git", "rev-parse", "HEAD", at=project).strip() == done.commit
    told = repository.commits(done.commit)[0]
    assert (told.author, told.subject) == ("Ana", "memory: 1 fact added")
    assert "Loki-Run" in told.trailers


def test_the_public_half_may_be_named_instead(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    key = new_key(tmp_path, "key")
    repository = use(project, key.with_suffix(".pub"))
    allow(project, key)
    assert is_signed(repository, commit(workspace).commit)


def test_a_signature_counts_only_if_its_signer_is_allowed(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    repository = use(project, new_key(tmp_path, "key"))
    made = commit(workspace).commit
    assert not is_signed(repository, made), "nobody is allowed"
    allow(project, new_key(tmp_path, "other"))
    assert not is_signed(repository, made), "somebody else is"
    allow(project, tmp_path / "key")
    assert is_signed(repository, made)


def test_a_key_that_would_ask_is_not_used_and_that_is_told(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    repository = use(project, new_key(tmp_path, "key", "secret passphrase"))
    allow(project, tmp_path / "key")
    done = commit(workspace)
    assert done.commit
    assert done.notes == (f"{UNSIGNED}the SSH signing key would ask for its passphrase",)
    assert not is_signed(repository, done.commit)


@contextmanager
def agent(folder: Path) -> Iterator[Path]:
    place = folder / "agent.sock"
    with subprocess.Popen(
        ["ssh-agent", "-D", "-a", place], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()  # it listens once it says where
        try:
            yield place
        finally:
            running.terminate()


def test_a_key_in_a_running_agent_signs(
    workspace: Workspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = new_key(tmp_path, "key")
    with agent(tmp_path) as place:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        run("ssh-add", "-q", key, at=tmp_path)
        key.unlink()
        allow(project, key)
        public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
        for name in (key.with_suffix(".pub"), f"key::{public}"):
            repository = use(project, name)
            assert signing_key(repository).name == str(name)
        assert is_signed(repository, commit(workspace).commit)
    assert signing_key(repository).missing == "the SSH signing key would ask for its passphrase"


@pytest.mark.parametrize(("name", "value"), [("gpg.format", "openpgp"), ("user.signingKey", "")])
def test_where_git_has_no_ssh_key_the_commit_is_made_without(
    workspace: Workspace, project: Path, tmp_path: Path, name: str, value: str
) -> None:
    use(project, new_key(tmp_path, "key"))
    run("git", "config", name, value, at=project)
    done = commit(workspace)
    assert done.commit
    assert done.notes == (f"{UNSIGNED}git is not set up to sign with an SSH key",)


def test_a_commit_is_not_signed_unless_that_is_wanted(
    workspace: Workspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_GIT_SIGN", "false")
    repository = use(project, new_key(tmp_path, "key"))
    allow(project, tmp_path / "key")
    workspace.home.__dict__.pop("config", None)
    done = commit(workspace)
    assert done.notes == ()
    assert not is_signed(repository, done.commit)
