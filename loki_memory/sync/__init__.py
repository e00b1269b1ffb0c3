"""Bring the index up to date with the memory files: scan, diff, apply.

A file changed if its stamp differs and then its hash does; one that was modified within the
clock's grain is always hashed. Additions come before removals, so that a renamed file keeps its
row. A file that cannot be read is a Problem and everything else goes on. When two files claim one
id, the first path holds it, and the other record is indexed under an id derived from its key.

The content of the index is a function of the files alone: after any sequence of edits, syncing
gives the same as rebuilding.
"""

from __future__ import annotations

import marshal
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import EverythingVanished
from loki_memory.files.disk import read_bytes, read_derived
from loki_memory.files.layout import Layout, kind_of, view_kind
from loki_memory.files.scan import (
    UNSETTLED,
    Changes,
    ScannedFolder,
    ScanResult,
    Stamp,
    etag,
    scan,
    scan_folder,
    settled,
    stamp_of,
    tops,
)
from loki_memory.files.view_state import base_path, etag_in
from loki_memory.index.revision import PACKING, Stamps

if TYPE_CHECKING:
    from loki_memory.files.store import Store
    from loki_memory.index.index import Index

Known = dict[str, tuple[int, bytes]]  # folders: their own mtime, the packed stamps of their files

_SECOND_NS = 1_000_000_000
# Replacing the rows of a file takes twice as long as reading the file into a new index. If most of
# the files changed, a rebuild is faster.
_MANY, _SHARE = 2000, 2
_FEW = 32  # files that are hashed first, before the modules that parse files are loaded


Progress = Callable[[int, int], None]


class Freshness(NamedTuple):
    """Limits of the comparison before an answer (settings `sync.*`)."""

    scan_limit: int = (
        10_000  # up to this many files, the stamp of each is compared; 0: compare folders
    )
    full_scan_seconds: int = 300  # with more files, a full scan is due this often


class Look(NamedTuple):
    """Options of a sync: compare everything, or as much as `freshness` says."""

    full: bool = True
    wait: bool = True  # for another process that is updating the index
    freshness: Freshness = Freshness()
    progress: Progress | None = None


def sync(layout: Layout, index: Index, now_ns: int, look: Look = Look()) -> Changes:  # noqa: B008 - a value
    """Bring the index up to date with the files."""
    known = _known(layout, index)
    full = look.full or _is_full_scan_due(index, known, now_ns, look.freshness)
    seen = _compare(dict(scan(layout)), known) if full else _look_at_folders(layout, known)
    if not seen.folders:
        if full and not look.full:
            _note_full_scan(index, now_ns, look.freshness)
        return Changes([], [], [])
    _refuse_if_all_vanished(layout, seen, known)
    wait = look.wait or not known  # an empty index is no answer
    if full and wait and known and _is_most(seen, known):
        return _anew(layout, index, now_ns, look.progress)
    return _apply(layout, index, seen, now_ns, _Apply(wait, not known, full, look.progress))


def _is_most(seen: ScanResult, known: Known) -> bool:
    """Check if so many of the known files changed that reading all files is faster."""
    if len(seen.changed) + len(seen.removed) <= _MANY:
        return False
    stamps = {path: _unpacked(folder) for path, folder in known.items()}
    there = (path.rpartition("/") for path in seen.changed)
    replaced = sum(name in stamps.get(folder, ()) for folder, _, name in there)
    return (replaced + len(seen.removed)) * _SHARE > sum(map(len, stamps.values()))


def _anew(layout: Layout, index: Index, now_ns: int, progress: Progress | None) -> Changes:
    """Rebuild, and return what that changed."""
    before = index.file_hashes()
    views = rebuild(layout, index, now_ns, progress).modified
    after = index.file_hashes()
    added = sorted(after.keys() - before.keys())
    modified = (path for path in after.keys() & before.keys() if after[path] != before[path])
    return Changes(added, sorted([*modified, *views]), sorted(before.keys() - after.keys()))


def _note_full_scan(index: Index, now_ns: int, freshness: Freshness) -> None:
    """Note a full scan that found nothing, so that it is not due again at once."""
    if index.file_count() > freshness.scan_limit:
        with suppress(sqlite3.OperationalError), index.change(wait=False) as revision:
            revision.set_note("full_scan_ns", str(now_ns))


def rebuild(layout: Layout, index: Index, now_ns: int, progress: Progress | None = None) -> Changes:
    """Empty the index and read every file again."""
    seen = _compare(dict(scan(layout)), {})
    how = _Apply(wait=True, anew=True, looked_at_all=True, progress=progress)
    return _apply(layout, index, seen, now_ns, how)


def check(layout: Layout, index: Index, paths: Iterable[str], now_ns: int) -> Changes:
    """Compare the few files that are about to be shown, instead of all files."""
    seen = _look_at_files(layout, index, paths)
    if seen is None or seen.removed:  # only a scan of the folders finds where a file went
        return sync(layout, index, now_ns, Look(full=False, wait=False))
    return _apply(layout, index, seen, now_ns, _Apply()) if seen.folders else Changes([], [], [])


def take_in(
    layout: Layout,
    index: Index,
    paths: Iterable[str],
    now_ns: int,
    store: Store,
) -> Changes:
    """Index files that this process has just written or removed, without comparing others.

    Changes of other processes are left to the next sync, which finds them: of a folder only the
    stamps of these files change, and its own mtime does not. `store` knows which views are as they
    were rendered.
    """
    seen = _look_at_files(layout, index, (path for path in paths if kind_of(path)))
    if seen is None:
        return sync(layout, index, now_ns)
    how = _Apply(wait=True, store=store)
    return _apply(layout, index, seen, now_ns, how) if seen.folders else Changes([], [], [])


def _look_at_files(layout: Layout, index: Index, paths: Iterable[str]) -> ScanResult | None:
    """Compare some files with the index; None if the index was made elsewhere."""
    if index.note("home") != home_of(layout):
        return None
    known: dict[str, tuple[int, Stamps]] = {}
    folders: dict[str, ScannedFolder] = {}
    changed: dict[str, Stamp] = {}
    removed: list[str] = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in known:
            known[folder] = index.folder(folder)
        mtime_ns, stamps = known[folder]
        stamp = stamp_of(layout.file(path))
        if stamp == stamps.get(name):
            continue
        if folder not in folders:
            folders[folder] = ScannedFolder(mtime_ns, {**stamps}, [])
        if stamp is None:
            removed.append(path)
            folders[folder].files.pop(name, None)
        else:
            changed[path] = folders[folder].files[name] = stamp
    return ScanResult({**folders}, changed, removed)


def _is_full_scan_due(index: Index, known: Known, now_ns: int, freshness: Freshness) -> bool:
    limit = freshness.scan_limit
    if not known or (limit and index.file_count() <= limit):
        return True
    last = int(index.note("full_scan_ns") or 0)
    return not 0 <= now_ns - last < freshness.full_scan_seconds * _SECOND_NS


def _compare(found: dict[str, ScannedFolder], known: Known) -> ScanResult:
    """Diff the disk with the index, folder by folder.

    Stamps are compared packed, which is faster than unpacking them; the order in which a folder
    lists its files may differ, so unequal bytes are unpacked and compared again.
    """
    seen = ScanResult({}, {}, [])
    for path, folder in found.items():
        before = known.get(path)
        if before is not None and before[1] == marshal.dumps(folder.files, PACKING):
            continue
        stamps = _unpacked(before)
        if before is not None and stamps == folder.files:
            continue
        seen.folders[path] = folder
        for name, stamp in folder.files.items():
            if stamps.get(name) != stamp:
                seen.changed[f"{path}/{name}"] = stamp
        seen.removed.extend(f"{path}/{name}" for name in stamps if name not in folder.files)
    for path in known.keys() - found.keys():
        seen.folders[path] = None
        seen.removed.extend(f"{path}/{name}" for name in _unpacked(known[path]))
    seen.removed.sort()
    return seen


def _unpacked(folder: tuple[int, bytes] | None) -> Stamps:
    return marshal.loads(folder[1]) if folder else {}  # noqa: S302 - our own cache


def _look_at_folders(layout: Layout, known: Known) -> ScanResult:
    """Scan only folders whose own mtime changed, and what is new below them."""
    found: dict[str, ScannedFolder] = {}
    unchanged: set[str] = set()
    waiting = sorted({*known, *tops(layout)})
    while waiting:
        path = waiting.pop()
        before = known.get(path)
        where = layout.file(path)
        with suppress(OSError):
            if before and before[0] and os.lstat(where).st_mtime_ns == before[0]:
                unchanged.add(path)
                continue
        folder = scan_folder(where)
        if folder is not None:
            found[path] = folder
            below = (f"{path}/{name}" for name in folder.folders)
            waiting += [name for name in below if name not in known]
    unseen = known.keys() - found.keys() - unchanged
    gone = {path for path in unseen if not os.path.isdir(layout.file(path))}
    relevant = {path: seen for path, seen in known.items() if path in found or path in gone}
    return _compare(found, relevant)


def _refuse_if_all_vanished(layout: Layout, seen: ScanResult, known: Known) -> None:
    """Refuse to empty the index: all files gone is more often a missing mount or a wrong folder
    than intended.
    """
    gone = sum(1 for path in seen.removed if kind_of(path))
    if not gone or any(kind_of(path) for path in seen.changed):
        return
    before = sum(
        1 for path, folder in known.items() for n in _unpacked(folder) if kind_of(f"{path}/{n}")
    )
    if gone == before and not _were_taken_out(layout, seen.removed):
        raise EverythingVanished(layout.memory, before)


def _were_taken_out(layout: Layout, paths: list[str]) -> bool:
    """Check if all were archived or forgotten by a process that died before updating the index."""
    kept = layout.resolve("local/.forgotten")
    told = (
        "".join(p.read_text(encoding="utf-8") for p in kept.glob("*.json")) if kept.is_dir() else ""
    )
    return all(
        f'"{path}"' in told or os.path.exists(layout.file(f"archive/{path}"))
        for path in paths
        if kind_of(path)
    )


def _known(layout: Layout, index: Index) -> Known:
    """The folders that the index knows; none if it was made elsewhere and came with a copy."""
    return index.folders() if index.note("home") == home_of(layout) else {}


def home_of(layout: Layout) -> str:
    try:
        status = os.stat(layout.loki)
    except OSError:
        return ""
    path = str(layout.loki).encode(errors="backslashreplace").decode()  # a name may be any bytes
    return f"{status.st_dev}:{status.st_ino}:{path}"


class _Apply(NamedTuple):
    """Options for applying changes to the index."""

    wait: bool = False
    anew: bool = False
    looked_at_all: bool = False
    progress: Progress | None = None
    store: Store | None = None


def _apply(layout: Layout, index: Index, seen: ScanResult, now_ns: int, how: _Apply) -> Changes:
    is_same = not how.anew and _is_same(layout, index, seen)
    is_ours = not how.anew or index.note("home") == home_of(layout)
    try:
        with index.change(wait=how.wait, anew=how.anew) as revision:
            changes, unread = Changes([], [], []), set[str]()
            if not is_ours:  # vectors that came with a copy are not trusted
                revision.drop_other_vectors()
            if not is_same:
                # Finding that nothing changed needs no pydantic; reading what did change does.
                from loki_memory.files.store import Store
                from loki_memory.sync.apply import Intake

                intake = Intake(how.store or Store(layout), revision, seen, how.progress)
                changes, unread = intake.run(), intake.unread
            revision.set_folders(_remembered(seen, unread, now_ns))
            if how.anew:
                revision.set_note("home", home_of(layout))
            if how.looked_at_all:
                revision.set_note("full_scan_ns", str(now_ns))
            if changes or how.anew or revision.is_touched:
                revision.set_note("changed_ns", str(now_ns))
    except sqlite3.OperationalError as error:
        if how.wait or "locked" not in str(error):
            raise
        return Changes([], [], [], stale=True)
    return changes


def _is_same(layout: Layout, index: Index, seen: ScanResult) -> bool:
    """Check if a few files have a new stamp and the content that is known.

    This is so for files that were written just before the last sync, within the clock's grain.
    """
    if seen.removed or None in seen.folders.values() or len(seen.changed) > _FEW:
        return False
    if any(stamp[0] < 0 for stamp in seen.changed.values()):
        return False
    known = index.file_hashes(list(seen.changed))
    try:
        known |= {
            path: etag_in(read_derived(layout.file(base_path(path))))
            for path in filter(view_kind, seen.changed)
        }
        read = ((path, read_bytes(layout.file(path))) for path in seen.changed)
        return all(data is not None and etag(data) == known.get(path) for path, data in read)
    except OSError:
        return False


def _remembered(
    seen: ScanResult, unread: set[str], now_ns: int
) -> dict[str, tuple[int, Stamps] | None]:
    """The folders for the index; files too young to be sure of are compared again next time."""
    remembered: dict[str, tuple[int, Stamps] | None] = {}
    for path, folder in seen.folders.items():
        if folder is None:
            remembered[path] = None
            continue
        stamps = {
            name: UNSETTLED if f"{path}/{name}" in unread else settled(stamp, now_ns)
            for name, stamp in folder.files.items()
        }
        own = settled((folder.mtime_ns, folder.mtime_ns, 0), now_ns)[0]
        remembered[path] = (own, stamps)
    return remembered


__all__ = [
    "Changes",
    "Freshness",
    "Look",
    "Progress",
    "check",
    "home_of",
    "rebuild",
    "sync",
    "take_in",
]
