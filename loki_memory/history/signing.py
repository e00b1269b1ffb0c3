"""Signed commits of memory, by an SSH key that asks nobody for anything.

A key of which git would have to ask the passphrase is not used: a commit of memory must never wait
for a person. It is then made without a signature, and the reason is told.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from loki_memory.errors import GitFailed
from loki_memory.history.repository import Repository, configured

_SECONDS = 5  # an agent that does not answer is none
_BY = re.compile(r"(author|committer) (.*) <(.*)> (\d+ [+-]\d{4})")
# Ours by name: `gpg.ssh.program` may be set to one that opens a window.
_SSH = {"gpg.format": "ssh", "gpg.ssh.program": "ssh-keygen"}


class Key(NamedTuple):
    """A signing key as git's configuration names it; or why there is none to be used."""

    name: str = ""
    missing: str = ""


def signing_key(repository: Repository) -> Key:
    """The SSH key that git is set up to sign with, if it can be used without a prompt."""
    name = repository.settings.get("user.signingkey", "")
    if repository.settings.get("gpg.format") != "ssh" or not name:
        return Key(missing="git is not set up to sign with an SSH key")
    if _is_open(name) or _is_in_agent(name):
        return Key(name)
    return Key(missing="the SSH signing key would ask for its passphrase")


def _is_open(name: str) -> bool:
    """Whether the private key lies in a file without a passphrase."""
    path = Path(name.removesuffix(".pub")).expanduser()
    return path.is_file() and _said("ssh-keygen", "-y", "-P", "", "-f", str(path)) != ""


def _is_in_agent(name: str) -> bool:
    """Whether a running agent holds the private key of a public one."""
    path = Path(name).expanduser()
    public = (
        path.read_text("utf-8", "replace") if path.suffix == ".pub" and path.is_file() else name
    )
    words = public.removeprefix("key::").split()
    return len(words) > 1 and words[1] in _said("ssh-add", "-L").split()


def _said(*command: str) -> str:
    """What a program of OpenSSH prints, if all is well; it has no terminal to ask at."""
    env = {**os.environ, "SSH_ASKPASS_REQUIRE": "never"}
    try:
        done = subprocess.run(  # noqa: S603 - OpenSSH, as git itself calls it
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            env=env,
            start_new_session=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def signed(repository: Repository, commit: str, key: str) -> str:
    """The same commit again, signed."""
    raw = repository.run("cat-file", "commit", commit).decode()
    head, _, message = raw.partition("\n\n")
    env = configured({**_SSH, "user.signingkey": key})
    for role, name, email, date in _BY.findall(head):
        start = f"GIT_{role.upper()}"
        env |= {f"{start}_NAME": name, f"{start}_EMAIL": email, f"{start}_DATE": date}
    parents = [f"-p{parent}" for parent in re.findall(r"^parent (\w+)$", head, re.MULTILINE)]
    asked = ("commit-tree", "-S", f"{commit}^{{tree}}", *parents, "-F", "-")
    return repository.run(*asked, input=message.encode(), env=env).decode().strip()


def is_signed(repository: Repository, commit: str) -> bool:
    """Whether a commit is signed by an SSH key that git's allowed signers name."""
    raw = repository.run("cat-file", "commit", repository.commit_of(commit))
    if b"\ngpgsig" not in raw.partition(b"\n\n")[0]:
        return False
    try:
        repository.run("verify-commit", commit, env=configured(_SSH))
    except GitFailed:
        return False
    return b"-----BEGIN SSH SIGNATURE-----" in raw
