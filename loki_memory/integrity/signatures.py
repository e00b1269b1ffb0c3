"""Find the contents of memory that a signed or reviewed commit brought in; cached per commit."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import GitFailed
from loki_memory.files import disk
from loki_memory.files.git_files import git_folders, remote_of
from loki_memory.files.scan import etag
from loki_memory.git_repository import Repository, configured, repository_if_any

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.home.folder import HomeFolder


_NAME = "vouched.json"


def vouched(home: HomeFolder) -> dict[str, str]:
    """Vouched contents as path -> etag; empty where there is no git."""
    repository = repository_if_any(home.layout, home.config)
    if repository is None:
        return {}
    trusted = _trusted_commit(home, repository)
    state, place = f"{_state(repository)} {trusted}", home.layout.local / _NAME
    known = _kept(place)
    if known.get("state") != state:
        known = {"state": state, "vouched": _looked_up(repository, trusted)}
        with suppress(OSError):  # the next call computes it again
            disk.write_bytes(place, json.dumps(known, indent=1, sort_keys=True).encode())
    found: dict[str, str] = known["vouched"]
    return found


def vouched_before(home: HomeFolder) -> dict[str, str]:
    """The contents that were vouched for at the last look, without a process of git."""
    found: dict[str, str] = _kept(home.layout.local / _NAME).get("vouched", {})
    return found


def _trusted_commit(home: HomeFolder, repository: Repository) -> str:
    """The last commit whose review counts: of the trusted branch, or without a remote our own."""
    from loki_memory.integrity.reviewed import is_judged

    if not is_judged(home):
        return repository.tip() or ""
    ref = trusted_branch(home, repository)
    return repository.resolve(ref) or "" if ref else ""


def _looked_up(repository: Repository, trusted: str) -> dict[str, str]:
    blobs = vouched_blobs(repository, trusted)
    etags = {blob: etag(data) for blob, data in repository.blobs(blobs.values())}
    return {path: etags[blob] for path, blob in sorted(blobs.items())}


def _state(repository: Repository) -> str:
    """The inputs of the cache: the last commit, and the allowed signers."""
    allowed = repository.settings.get("gpg.ssh.allowedsignersfile", "")
    signers = b""
    with suppress(OSError):
        signers = (repository.root / Path(allowed).expanduser()).read_bytes() if allowed else b""
    return f"{repository.tip()} {hashlib.sha256(signers).hexdigest()}"


def _kept(place: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(place.read_bytes())
        if isinstance(found, dict) and isinstance(found.get("vouched"), dict):
            return found
    return {}


# -- Vouched contents of memory: by a commit that is signed or reviewed ---------------------------


_REVIEWED = "Reviewed-by"
_BEGIN = "\x01"
_FORMAT = f"%x01%H%x00%(trailers:key={_REVIEWED},valueonly)"


class BroughtContents(NamedTuple):
    """A commit, whether it says that it was reviewed, and the contents that it brought to paths."""

    commit: str
    is_reviewed: bool
    contents: set[tuple[str, str]]


def vouched_blobs(repository: Repository, trusted: str) -> dict[str, str]:
    """The files of memory in the last commit that are vouched for: path -> blob id.

    A commit says itself that it was reviewed, so that counts only on the trusted branch itself:
    of what was merged, the merge must say it, for on their own branch authors write what they like.
    """
    tip = repository.tip()
    if tip is None:
        return {}
    pending = set(repository.tree(tip).items())
    found: dict[str, str] = {}
    reviewed = _own_commits(repository, trusted)
    for brought in memory_commits(repository, tip):
        contents = brought.contents & pending
        is_reviewed = brought.is_reviewed and brought.commit in reviewed
        if contents and (is_reviewed or is_signed(repository, brought.commit)):
            found |= dict(contents)
            pending -= contents
        if not pending:
            break
    return found


def _own_commits(repository: Repository, commit: str) -> set[str]:
    """The commits of a branch, without those that merges brought to it."""
    if not commit:
        return set()
    asked = ("rev-list", "--first-parent", "--end-of-options", commit)
    return set(os.fsdecode(repository.run(*asked)).split())


def memory_commits(
    repository: Repository, tip: str, without: str = ""
) -> Iterator[BroughtContents]:
    """Yield the commits that changed memory, newest first; a merge by what it brought in.

    Commits that another branch has too can be left out.

    Git prints `<id>`, the reviewers, and then `:100644 100644 OLD NEW M` and a path, repeatedly.
    The words are consumed in turn, because a path may look like anything.
    """
    asked = (
        "log",
        "-z",
        "--raw",
        "--diff-merges=first-parent",
        "--no-renames",
        "--no-abbrev",
        "--no-color",
        "--no-notes",
    )
    range_ = (tip, f"^{without}") if without else (tip,)
    where = ("--end-of-options", *range_, "--", repository.memory)
    words = iter(os.fsdecode(repository.run(*asked, f"--format={_FORMAT}", *where)).split("\0"))
    last: BroughtContents | None = None
    for word in words:
        if word.startswith(_BEGIN):
            if last:
                yield last
            last = BroughtContents(word.removeprefix(_BEGIN), bool(next(words, "").strip()), set())
        elif last and word.strip():
            path = next(words, "").removeprefix(f"{repository.memory}/")
            last.contents.add((path, word.split()[3]))
    if last:
        yield last


# -- Signed commits of memory, by an SSH key that needs no prompt ---------------------------------


_SECONDS = 5  # for an SSH agent to answer
_BY = re.compile(r"(author|committer) (.*) <(.*)> (\d+ [+-]\d{4})")
# By name: `gpg.ssh.program` may be set to a program that opens a window.
_SSH = {"gpg.format": "ssh", "gpg.ssh.program": "ssh-keygen"}


class SigningKey(NamedTuple):
    """A signing key of git's configuration; or the reason why none can be used."""

    name: str = ""
    missing: str = ""


def signing_key(repository: Repository) -> SigningKey:
    """The SSH key that git is set up to sign with, if it can be used without a prompt."""
    name = repository.settings.get("user.signingkey", "")
    if repository.settings.get("gpg.format") != "ssh" or not name:
        return SigningKey(missing="git is not set up to sign with an SSH key")
    if _is_open(name) or _is_in_agent(name):
        return SigningKey(name)
    return SigningKey(missing="the SSH signing key would ask for its passphrase")


def _is_open(name: str) -> bool:
    """Check if the private key is in a file without a passphrase."""
    path = Path(name.removesuffix(".pub")).expanduser()
    return path.is_file() and _output("ssh-keygen", "-y", "-P", "", "-f", str(path)) != ""


def _is_in_agent(name: str) -> bool:
    """Check if a running SSH agent holds the private key of a public one."""
    path = Path(name).expanduser()
    public = (
        path.read_text("utf-8", "replace") if path.suffix == ".pub" and path.is_file() else name
    )
    words = public.removeprefix("key::").split()
    return len(words) > 1 and words[1] in _output("ssh-add", "-L").split()


def _output(*command: str) -> str:
    """The output of an OpenSSH program, if it succeeds; it has no terminal to ask at."""
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
    """Sign a commit: the same commit again, with a signature."""
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
    """Check if a commit is signed by an SSH key of git's allowed signers."""
    raw = repository.run("cat-file", "commit", repository.commit_of(commit))
    if b"\ngpgsig" not in raw.partition(b"\n\n")[0]:
        return False
    try:
        repository.run("verify-commit", commit, env=configured(_SSH))
    except GitFailed:
        return False
    return b"-----BEGIN SSH SIGNATURE-----" in raw


# The branch of the remote whose memory counts as reviewed.

_USUAL = ("main", "master")  # where the remote does not say which branch is its default


def trusted_branch(home: HomeFolder, repository: Repository) -> str:
    """The full name of the branch whose contents count as reviewed; empty if there is none."""
    folders = git_folders(home.layout.root)
    remote = remote_of(folders) if folders else None
    if remote is None:
        return ""
    branches = f"refs/remotes/{remote.name}"
    if repository.line != "HEAD":  # memory has a branch of its own
        return _existing(repository, [f"{branches}/{repository.line}"])
    chosen = home.config.text("trust.branch")
    if chosen:
        return _existing(repository, [f"{branches}/{chosen}", f"refs/remotes/{chosen}"])
    with suppress(GitFailed):
        return os.fsdecode(repository.run("symbolic-ref", "-q", f"{branches}/HEAD")).strip()
    return _existing(repository, [f"{branches}/{name}" for name in _USUAL])


def _existing(repository: Repository, names: Iterable[str]) -> str:
    return next((name for name in names if repository.resolve(name)), "")
