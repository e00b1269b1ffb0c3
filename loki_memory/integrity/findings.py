"""Compare the records with the chains that describe them, and the chains with their anchors.

A record is good if it is as the newest write of some writer, or as it is committed here: who
commits an edit has adopted it. An edit by hand that is not committed is reported and stays in use:
people and agents may write files. Commits also anchor the chains, which then cannot be cut or
rewritten below that point.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Literal, NamedTuple

from loki_memory.errors import GitFailed, InvalidRecord, StoreFailed
from loki_memory.files import disk
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, Layout, stem_in
from loki_memory.files.scan import ODD, UNREADABLE, archived, etag, scan
from loki_memory.git_repository import Repository
from loki_memory.integrity import write_log
from loki_memory.integrity.citations import is_blob
from loki_memory.integrity.write_log import (
    PUBLISHED,
    LogLine,
    Testimony,
    content_hash,
    is_witnessed,
)
from loki_memory.models.ids import ID

What = Literal["changed", "unwitnessed", "missing", "damaged", "chain", "anchor"]


class IntegrityFinding(NamedTuple):
    """A file that is not as the tool wrote it."""

    what: What
    path: str  # of the record, or of a file of chains
    said: str
    id: str = ""  # of the record
    line: int = 0  # in the file of a chain
    writer: str = ""  # the writer and number of the line with the last good version
    seq: int = 0
    sha256: str = ""  # of the content in question; empty if there is none

    @property
    def is_by_hand(self) -> bool:
        """True for what people and agents do all day: they write and edit files."""
        return self.what in {"changed", "unwitnessed"}


class Examined(NamedTuple):
    """The result of comparing chains, files and git."""

    records: int
    testimony: Testimony
    findings: list[IntegrityFinding]
    doubts: dict[str, str]  # path of an unverified record -> its etag


def examine(layout: Layout, past: AnchoredPast | None) -> Examined:
    """Examine every chain and every record. `past` is git's knowledge, where there is git."""
    try:
        testimony = write_log.testimony(layout)
    except OSError as error:
        raise StoreFailed(error.filename or layout.local, str(error.strerror)) from error
    anchors = past.anchors if past else []
    findings = [
        *_broken(layout, testimony),
        *(_cut(anchor) for anchor in anchors if _is_lost(testimony, anchor)),
    ]
    doubts: dict[str, str] = {}
    there: set[str] = set()
    for path, data in _files(layout):
        there.add(path)
        wrong = _wrong(testimony, past, path, data)
        if wrong is not None:
            findings.append(wrong)
            # A file that an agent wrote by hand is reported, not doubted: that is how agents write.
            if wrong.what != "unwitnessed" and data is not None:
                doubts[path] = etag(data)
    findings += _missing(testimony, past, there)
    return Examined(len(there), testimony, findings, doubts)


# -- records -------------------------------------------------------------------------------------


def _files(layout: Layout) -> Iterator[tuple[str, bytes | None]]:
    """Yield every record, archived ones too, with its content; None where it cannot be read."""
    for folder, listed in scan(layout):
        for name, stamp in sorted(listed.files.items()):
            path = f"{folder}/{name}"
            if stamp in {ODD, UNREADABLE} and not path.startswith(PRIVATE):
                yield path, None
            elif is_witnessed(path):
                yield path, _content(layout, path)
    yield from ((path, _content(layout, path)) for path in archived(layout) if is_witnessed(path))


def _content(layout: Layout, path: str) -> bytes | None:
    try:
        return disk.read_bytes(layout.file(path))
    except OSError:
        return None


def _wrong(
    testimony: Testimony, past: AnchoredPast | None, path: str, data: bytes | None
) -> IntegrityFinding | None:
    """The finding for a record's content; None if it is good."""
    if data is None:
        return _finding("damaged", path, "cannot be read as a file", testimony.last_good(path))
    now = content_hash(data)
    last = testimony.last_good(path)
    try:
        name = decode(path.removeprefix(ARCHIVE), data).id
    except InvalidRecord as error:
        return _finding("damaged", path, error.reason, last, now)
    if _is_current(testimony, past, path, data, now):
        return None
    is_vouched = now in testimony.vouched.get(path, {})
    if last is None:
        said = "was not written through the store, or before there was a witness"
        return _finding("unwitnessed", path, said, None, now, name)
    return _finding("changed", path, _how(last, is_vouched), last, now, name)


def _how(last: LogLine, is_vouched: bool) -> str:
    if not last.sha256:
        return "is back, and the tool had removed it"
    return "is an older version again" if is_vouched else "was edited by hand"


def _is_current(
    testimony: Testimony, past: AnchoredPast | None, path: str, data: bytes, now: str
) -> bool:
    if any(line.sha256 == now for line in testimony.latest.get(path, {}).values()):
        return True
    return past is not None and is_blob(data, past.tracked.get(path, ""))


def _finding(
    kind: What, path: str, said: str, last: LogLine | None, sha256: str = "", name: str = ""
) -> IntegrityFinding:
    writer, seq = (last.writer, last.seq) if last else ("", 0)
    return IntegrityFinding(kind, path, said, name or _id_in(path), 0, writer, seq, sha256)


def _id_in(path: str) -> str:
    """The id in a file's name; empty if there is none."""
    stem = stem_in(path)
    return stem if ID.fullmatch(stem) else ""


def _missing(
    testimony: Testimony, past: AnchoredPast | None, there: Collection[str]
) -> Iterator[IntegrityFinding]:
    for path in testimony.latest:
        if path not in there and is_witnessed(path):
            said = _absence(testimony, past, path)
            if said:
                yield _finding("missing", path, said, testimony.last_good(path))


def _absence(testimony: Testimony, past: AnchoredPast | None, path: str) -> str:
    """The reason why a missing file should be there; empty if it need not be."""
    newest = testimony.latest[path].values()
    own = [line for line in newest if line.writer in testimony.own]
    if past is not None and path in past.tracked:
        return "is committed here, and gone" if all(line.sha256 for line in own) else ""
    if not all(line.sha256 for line in newest):
        return ""
    if past is None:
        return "is gone, and was not removed by the tool"
    commit = past.removal(path)
    if commit:
        return f"was taken away by commit {commit[:10]}, and not by the tool"
    is_lost = own and not past.is_elsewhere(path)
    return "is gone, was not removed by the tool and never committed" if is_lost else ""


# -- chains --------------------------------------------------------------------------------------


def _broken(layout: Layout, testimony: Testimony) -> Iterator[IntegrityFinding]:
    """Find every break, with the records of the lines beside it.

    A published file that is broken can be adopted as it is; a chain of this machine is abandoned.
    """
    for found in testimony.breaks:
        published = found.file.startswith(PUBLISHED)
        sha256 = content_hash(_content(layout, found.file)) if published else ""
        if sha256 and sha256 in testimony.vouched.get(found.file, {}):
            continue
        about = f" ({', '.join(found.paths)})" if found.paths else ""
        said = f"line {found.number} {found.reason}{about}"
        first = found.paths[0] if found.paths else ""
        named = _finding(
            "chain", found.file, said, testimony.last_good(first), sha256, _id_in(first)
        )
        yield named._replace(line=found.number)


def _is_lost(testimony: Testimony, anchor: Anchor) -> bool:
    """Check if a chain lacks an anchored line, and the loss was not adopted."""
    adopted = testimony.vouched.get(f"{PUBLISHED}{anchor.writer}", {})
    return anchor.hash not in testimony.hashes and anchor.hash not in adopted


def _cut(anchor: Anchor) -> IntegrityFinding:
    said = (
        f"commit {anchor.commit[:10]} anchors line {anchor.seq} of {anchor.writer}, which is not "
        "here: the chain was cut or written anew"
    )
    path = f"{PUBLISHED}{anchor.writer}"
    return IntegrityFinding("anchor", path, said, "", 0, anchor.writer, anchor.seq, anchor.hash)


# Read from git the chain heads that commits anchor, and how memory files came to be gone.

TRAILER = "Loki-Head"
_HEAD = re.compile(r"(w-[0-9a-z]{10}):(\d+):([0-9a-f]{64})")
_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PLAIN_NAMES = ("-c", "core.quotePath=false")


class Anchor(NamedTuple):
    """A commit with the head of a writer's chain at that time."""

    commit: str
    writer: str
    seq: int
    hash: str


class AnchoredPast:
    """The git history of a memory folder, as far as `verify` needs it.

    "Committed" means HEAD or, where memory has a branch of its own, the commit of that branch that
    the files are in step with.
    """

    def __init__(self, repository: Repository) -> None:
        self._git = repository
        self._tips = [tip for tip in (repository.branch_base(), repository.head()) if tip]
        self._tip = self._tips[0] if self._tips else ""

    @cached_property
    def anchors(self) -> list[Anchor]:
        """The anchors of every commit that the files here come from."""
        found = {}
        for tip in self._tips:
            shown = f"--format=%H %(trailers:key={TRAILER},valueonly,separator=%x20)"
            answer = self._git.run("log", f"--grep=^{TRAILER}: ", shown, tip, "--")
            for line in answer.decode(errors="replace").splitlines():
                commit, _, value = line.partition(" ")
                for writer, seq, head in _HEAD.findall(value):
                    found[commit, writer] = Anchor(commit, writer, int(seq), head)
        return list(found.values())

    @cached_property
    def tracked(self) -> dict[str, str]:
        """Committed paths with their blob ids."""
        return self._git.tree(self._tip) if self._tip else {}

    def removal(self, path: str) -> str:
        """The commit in the history of these files that removed a path; or empty."""
        return self._removals.get(path, "")

    def is_elsewhere(self, path: str) -> bool:
        """Check if only another branch has, or had, a file."""
        return path in self._ever_added

    @cached_property
    def _removals(self) -> dict[str, str]:
        if not self._tip:
            return {}
        names = self._names("-m", "--diff-filter=D", "--format=\x01%H", self._tip)
        found: dict[str, str] = {}
        commit = ""
        for line in filter(None, names):
            if line[0] == "\x01":
                commit = line[1:]
            else:
                found.setdefault(line.removeprefix(f"{self._git.memory}/"), commit)
        return found

    @cached_property
    def _ever_added(self) -> set[str]:
        names = self._names("--all", "--diff-filter=A", "--format=") if self._tip else []
        return {line.removeprefix(f"{self._git.memory}/") for line in names}

    def _names(self, *options: str) -> list[str]:
        asked = ("log", "--no-renames", "--name-only", *options, "--", self._git.memory)
        return os.fsdecode(self._git.run(*_PLAIN_NAMES, *asked)).split("\n")

    def blob(self, name: str) -> bytes | None:
        """The content of a blob; None if this clone does not have it."""
        try:
            return self._git.run("cat-file", "blob", name) if _BLOB.fullmatch(name) else None
        except GitFailed:
            return None
