"""Compare the records with the chains that tell of them, and the chains with their anchors.

A record is good if a chain vouches for its content, as the newest that some writer knows or as
what is committed here: git brings back older versions when branches are switched, and nobody else
may. A write says what it replaced, so that a change from outside also shows when the tool has
written over it. Commits vouch for nothing by themselves (whoever can edit a file can commit it);
they anchor the chains, which then cannot be cut or written anew below that point.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from loki_memory.editing.removal import archived
from loki_memory.errors import InvalidRecord, StoreFailed
from loki_memory.files import disk
from loki_memory.files.codec import decode
from loki_memory.files.etag import etag
from loki_memory.files.layout import ARCHIVE, PRIVATE, Layout, stem_in
from loki_memory.files.scan import ODD, UNREADABLE, scan
from loki_memory.integrity import write_log
from loki_memory.integrity.citations import is_blob
from loki_memory.integrity.hash_chain import PUBLISHED, LogLine, Testimony, content_hash
from loki_memory.integrity.write_log import is_witnessed
from loki_memory.models.ids import ID

if TYPE_CHECKING:
    from loki_memory.integrity.anchors import Anchor, AnchoredPast

What = Literal["changed", "overwritten", "unwitnessed", "missing", "damaged", "chain", "anchor"]


class IntegrityFinding(NamedTuple):
    """Something that is not as the tool wrote it."""

    what: What
    path: str  # of the record, or of a file of chains
    said: str
    id: str = ""  # of the record
    line: int = 0  # in the file of a chain
    writer: str = ""  # whose line, and which, tells of the last good version
    seq: int = 0
    sha256: str = ""  # of the content in question; empty if there is none


class Examined(NamedTuple):
    """What chains, files and git say of each other."""

    records: int
    testimony: Testimony
    findings: list[IntegrityFinding]
    doubts: dict[str, str]  # path of a record that nobody vouches for -> its etag


def examine(layout: Layout, past: AnchoredPast | None) -> Examined:
    """Look at every chain and every record. `past` is what git knows, where there is git."""
    try:
        told = write_log.testimony(layout)
    except OSError as error:
        raise StoreFailed(error.filename or layout.local, str(error.strerror)) from error
    anchors = past.anchors if past else []
    findings = [*_broken(layout, told), *(_cut(one) for one in anchors if _is_lost(told, one))]
    doubts: dict[str, str] = {}
    there: set[str] = set()
    for path, data in _files(layout):
        there.add(path)
        wrong = _wrong(told, past, path, data)
        if wrong is not None:
            findings.append(wrong)
            # A file that an agent wrote by hand is told, not doubted: that is how agents write.
            if wrong.what != "unwitnessed" and data is not None:
                doubts[path] = etag(data)
    findings += [*_overwritten(told), *_missing(told, past, there)]
    return Examined(len(there), told, findings, doubts)


# -- records -------------------------------------------------------------------------------------


def _files(layout: Layout) -> Iterator[tuple[str, bytes | None]]:
    """Every record, archived ones too, with its content; None where there is none to be had."""
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
    told: Testimony, past: AnchoredPast | None, path: str, data: bytes | None
) -> IntegrityFinding | None:
    """What is wrong with a record's content."""
    if data is None:
        return _finding("damaged", path, "cannot be read as a file", told.last_good(path))
    now = content_hash(data)
    is_vouched = now in told.vouched.get(path, {})
    if is_vouched and _is_current(told, past, path, data, now):
        return None
    last = told.last_good(path)
    try:
        name = decode(path.removeprefix(ARCHIVE), data).id
    except InvalidRecord as error:
        return _finding("damaged", path, error.reason, last, now)
    if last is None:
        said = "was not written through the store, or before there was a witness"
        return _finding("unwitnessed", path, said, None, now, name)
    return _finding("changed", path, _how(last, is_vouched), last, now, name)


def _how(last: LogLine, is_vouched: bool) -> str:
    if not last.sha256:
        return "is back, and the tool had removed it"
    return "is an older version again" if is_vouched else "was changed outside the tool"


def _is_current(
    told: Testimony, past: AnchoredPast | None, path: str, data: bytes, now: str
) -> bool:
    if any(line.sha256 == now for line in told.latest[path].values()):
        return True
    return past is not None and is_blob(data, past.tracked.get(path, ""))


def _finding(
    what: What, path: str, said: str, last: LogLine | None, sha256: str = "", name: str = ""
) -> IntegrityFinding:
    writer, seq = (last.writer, last.seq) if last else ("", 0)
    return IntegrityFinding(what, path, said, name or _id_in(path), 0, writer, seq, sha256)


def _id_in(path: str) -> str:
    """The id that a file's name tells; empty if it tells none."""
    stem = stem_in(path)
    return stem if ID.fullmatch(stem) else ""


def _overwritten(told: Testimony) -> Iterator[IntegrityFinding]:
    """Writes over a content that nobody vouches for: the tool went on from a foreign change."""
    for path, bases in told.based.items():
        for was, line in bases.items():
            if was not in told.vouched.get(path, {}):
                said = f"had been changed outside the tool when {line.writer} wrote over it"
                yield _finding("overwritten", path, said, line, was)


def _missing(
    told: Testimony, past: AnchoredPast | None, there: Collection[str]
) -> Iterator[IntegrityFinding]:
    for path in told.latest:
        if path not in there and is_witnessed(path):
            said = _absence(told, past, path)
            if said:
                yield _finding("missing", path, said, told.last_good(path))


def _absence(told: Testimony, past: AnchoredPast | None, path: str) -> str:
    """Why a file that was written once ought to be there; empty if it need not be."""
    newest = told.latest[path].values()
    own = [line for line in newest if line.writer in told.own]
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


def _broken(layout: Layout, told: Testimony) -> Iterator[IntegrityFinding]:
    """Every break, with the records that the lines beside it speak of.

    A published file that is broken can be adopted as it is; a chain of this machine is given up.
    """
    for found in told.breaks:
        published = found.file.startswith(PUBLISHED)
        sha256 = content_hash(_content(layout, found.file)) if published else ""
        if sha256 and sha256 in told.vouched.get(found.file, {}):
            continue
        about = f" ({', '.join(found.paths)})" if found.paths else ""
        said = f"line {found.number} {found.reason}{about}"
        first = found.paths[0] if found.paths else ""
        named = _finding("chain", found.file, said, told.last_good(first), sha256, _id_in(first))
        yield named._replace(line=found.number)


def _is_lost(told: Testimony, anchor: Anchor) -> bool:
    """Whether a chain lacks what a commit anchored, and nobody has adopted the loss."""
    adopted = told.vouched.get(f"{PUBLISHED}{anchor.writer}", {})
    return anchor.hash not in told.hashes and anchor.hash not in adopted


def _cut(anchor: Anchor) -> IntegrityFinding:
    said = (
        f"commit {anchor.commit[:10]} anchors line {anchor.seq} of {anchor.writer}, which is not "
        "here: the chain was cut or written anew"
    )
    path = f"{PUBLISHED}{anchor.writer}"
    return IntegrityFinding("anchor", path, said, "", 0, anchor.writer, anchor.seq, anchor.hash)
