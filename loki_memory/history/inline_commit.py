"""Commit memory with the code: choose the files, word the message, report what is left out and why.

A commit is a service, never a condition: in whatever state git is, the memory files are written
and stay written. Files that could not be committed are reported; the next commit takes them.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import GitFailed, InvalidRecord
from loki_memory.files import disk
from loki_memory.files.codec import decode_with_document
from loki_memory.files.layout import ARCHIVE, kind_of
from loki_memory.files.lock import locked
from loki_memory.files.redaction import find_secrets, may_hold_secret, redact, redact_value
from loki_memory.files.store import failures_named
from loki_memory.git_repository import NO_GIT, NO_REPOSITORY, PATTERNS, Repository
from loki_memory.history.plumbing_commit import (
    FILE,
    NOTHING,
    PROGRAM,
    File,
    Files,
    HeadState,
    Message,
    Seal,
    TreeEntry,
    run_id,
    standing,
)
from loki_memory.history.plumbing_commit import commit as commit_files
from loki_memory.history.report import message
from loki_memory.history.review import shifts
from loki_memory.history.tree import Records, original, records_in
from loki_memory.integrity.signatures import signing_key
from loki_memory.integrity.write_log import PUBLISHED
from loki_memory.models import Episode

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_HALF_MERGED = re.compile(rb"^<{7} .*^={7}.*^>{7} ", re.MULTILINE | re.DOTALL)
_NO = {"false", "no", "off", "0"}  # spellings of git's configuration
OFF = "git.mode is off"
_TRIES = 5  # another process may commit at the same moment, but hardly five times in a row


class KeptOut(NamedTuple):
    """A file that is not committed in its present state, and why."""

    path: str
    reason: str


class Committed(NamedTuple):
    """The result of a commit, or the reason why there is none."""

    commit: str = ""  # its id; empty if none was made
    branch: str = ""
    subject: str = ""
    paths: tuple[str, ...] = ()
    kept_out: tuple[KeptOut, ...] = ()
    reason: str = ""  # why there is none; empty if there was nothing to commit
    notes: tuple[str, ...] = ()

    def is_kept_in_git(self) -> bool:
        """Check if this workspace keeps memory in git at all."""
        return self.reason not in {OFF, NO_REPOSITORY, NO_GIT}

    def remarks(self) -> list[str]:
        """Say how a commit went that was made by the way; nothing where there is no git."""
        made = [f"committed as {self.commit[:10]}"] if self.commit else []
        return made + (self.left_out() if self.is_kept_in_git() else [])

    def left_out(self) -> list[str]:
        """Say what is not committed, and why."""
        later = "; the next commit takes it along" if self.is_kept_in_git() else ""
        none = [f"memory is not committed: {self.reason}{later}"] if self.reason else []
        kept_out = [f"{path} is not committed: it {reason}" for path, reason in self.kept_out]
        return [*none, *kept_out, *self.notes]


class CommitOptions(NamedTuple):
    """Options of a commit."""

    agent: str = ""
    subject: str = ""  # instead of the generated one
    dry_run: bool = False


def mode(workspace: OpenWorkspace) -> str:
    """The mode in which git keeps memory here."""
    return workspace.config.text("git.mode")


def opened(workspace: OpenWorkspace) -> Repository:
    """Open the repository of a workspace; raises GitFailed."""
    return Repository.open(workspace.layout.root, workspace.layout.loki.name)


@contextmanager
def one_at_a_time(workspace: OpenWorkspace) -> Iterator[None]:
    """Hold the lock for commits of memory; raises StoreBusy or StoreFailed."""
    local, seconds = workspace.layout.local, workspace.config.get("store.lock_seconds")
    with failures_named(local):
        disk.make_folder(local)
        with locked(local / "commit.lock", seconds):
            yield


def commit_inline(
    workspace: OpenWorkspace, repository: Repository, options: CommitOptions
) -> Committed:
    """Commit onto the branch that is checked out, unless that would disturb work in progress."""
    busy = repository.busy()
    if busy:
        return Committed(reason=f"{busy} is under way" if busy.startswith("a ") else busy)
    anchor = "" if options.dry_run else workspace.store.publish_writes()
    for _ in range(_TRIES):
        at, files, kept = _differences(workspace, repository)
        if not files:
            return Committed(branch=at.branch, kept_out=kept, reason=_hidden(repository, at))
        text = composed(repository, at.changed, files, [at.head], options, anchor)
        result = Committed("", at.branch, text.subject, tuple(files), kept)
        if options.dry_run:
            return result
        seal, notes = sealed(workspace, repository)
        made = commit_files(repository, at, files, text, seal)
        if made:
            return result._replace(commit=made, notes=notes)
    return Committed(reason=f"{at.branch} moved whenever it was committed to")


def sealed(workspace: OpenWorkspace, repository: Repository) -> tuple[Seal, tuple[str, ...]]:
    """The time of a commit and its key; and a note if a key is wanted and missing."""
    if not workspace.config.get("git.sign"):
        return Seal(workspace.now()), ()
    key = signing_key(repository)
    notes = (f"the commit is not signed: {key.missing}",) if key.missing else ()
    return Seal(workspace.now(), key.name), notes


def _differences(
    workspace: OpenWorkspace, repository: Repository
) -> tuple[HeadState, dict[str, File | None], tuple[KeptOut, ...]]:
    """The files that differ from HEAD, read while no writer is in the middle of a change."""
    with workspace.store.change():
        at = standing(repository, repository.prefix)
        return at, *gathered(repository, at.changed)


def _hidden(repository: Repository, at: HeadState) -> str:
    """Say why nothing is found to commit, if files did change."""
    with suppress(GitFailed):
        if not (at.head and repository.tree(at.head)):
            repository.run("check-ignore", "-q", repository.memory, env=PATTERNS)
            return f"git ignores {repository.memory}"
    return ""


# -- which files ---------------------------------------------------------------------------------


def gathered(
    repository: Repository, changed: Mapping[str, TreeEntry]
) -> tuple[dict[str, File | None], tuple[KeptOut, ...]]:
    """Read the files that a commit takes; and list those that it must not take.

    `changed` are paths from the repository's root, with their entries in the last commit.
    """
    files: dict[str, File | None] = {}
    kept: list[KeptOut] = []
    for path, known in sorted(changed.items()):
        if known == NOTHING and _is_stray(repository, path):
            kept.append(KeptOut(path, "is no memory; commit it yourself if git shall have it"))
            continue
        try:
            file = _on_disk(repository, path, known)
            if file is not None:
                _refuse_unfit(_record_path(repository, path), file.data)
        except InvalidRecord as error:
            kept.append(KeptOut(path, redact(_why(error))))
            continue
        if _entry(repository, file) != known:
            files[path] = file
    return files, tuple(kept)


def _why(error: InvalidRecord) -> str:
    """Say what is wrong with a file, as a predicate: `is not valid JSON`."""
    return f"cannot be read ({error.field} {error.reason})" if error.field else error.reason


def _on_disk(repository: Repository, path: str, known: TreeEntry) -> File | None:
    """Read the file at a path; None if there is none. Links are not followed."""
    place = repository.root / path
    try:
        status = os.lstat(place)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidRecord(
                "is a git repository of its own" if path.endswith("/") else "is no ordinary file"
            )
        data = disk.read_bytes(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InvalidRecord(f"cannot be read ({error.strerror})") from error
    runs = PROGRAM if status.st_mode & stat.S_IXUSR else FILE
    if repository.settings.get("core.filemode", "").lower() in _NO:  # the disk has no such bit
        runs = PROGRAM if known.mode == PROGRAM else FILE
    return None if data is None else File(runs, data)


def _entry(repository: Repository, file: File | None) -> TreeEntry:
    return TreeEntry(file.mode, repository.blob_id(file.data)) if file else NOTHING


def _record_path(repository: Repository, path: str) -> str:
    """The record path of a path from the root; an archived record counts by its former path."""
    return path.removeprefix(f"{repository.memory}/").removeprefix(ARCHIVE)


def _is_stray(repository: Repository, path: str) -> bool:
    """Check for a file among memory that is no record, part of a skill, or published chain."""
    inside = _record_path(repository, path)
    if inside == path or path.endswith("/"):
        return False
    is_of_skill = inside.startswith("skills/") and inside.count("/") > 1
    return not (kind_of(inside) or is_of_skill or inside.startswith(PUBLISHED))


def _refuse_unfit(path: str, data: bytes) -> None:
    """Raise InvalidRecord for a file that git should not keep: unreadable, half merged, secret."""
    if kind_of(path):
        document = decode_with_document(path, data)[1]
        secret = may_hold_secret(data) and redact_value(document) is not document
    else:
        if _HALF_MERGED.search(data):
            raise InvalidRecord("holds conflict markers")
        secret = bool(find_secrets(data.decode(errors="replace")))
    if secret:
        raise InvalidRecord("holds a secret")


# -- what it says --------------------------------------------------------------------------------


def composed(
    repository: Repository,
    changed: Mapping[str, TreeEntry],
    files: Files,
    parents: Sequence[str],
    options: CommitOptions,
    anchor: str,
) -> Message:
    """Compose the message: the changes in terms of belief, the agents, and the run."""
    blobs = dict(repository.blobs(changed[path].blob for path in files if changed[path].blob))
    old = {path: blobs[changed[path].blob] for path in files if changed[path].blob}
    new = {path: file.data for path, file in files.items() if file}
    after = _records(repository, new)
    found = shifts(_records(repository, old), after)
    changes = [shift._replace(title=redact(shift.title)) for shift in found]  # titles are cut
    subject, body = message(changes, len({name for shift in changes for name in shift.caused_by}))
    trailers = {
        "Loki-Agent": options.agent or ", ".join(_agents(after)),
        "Loki-Run": run_id(repository, parents, files),
        "Loki-Head": anchor,
    }
    return Message(options.subject or subject, body, trailers)


def _records(repository: Repository, contents: Mapping[str, bytes]) -> Records:
    inside = f"{repository.memory}/"
    named = ((path.removeprefix(inside), data) for path, data in contents.items())
    return records_in((path, data) for path, data in named if kind_of(original(path)))


def _agents(records: Records) -> list[str]:
    """The agents of the episodes that are committed."""
    episodes = (record for record in records.live.values() if isinstance(record, Episode))
    return sorted({episode.agent for episode in episodes if episode.agent})
