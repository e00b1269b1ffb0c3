"""Transactions: changes of several files, all or nothing.

The new contents are staged in a folder beside the records and flushed; then a marker that lists
their targets is put there, which commits the transaction. What remains is renaming, which the next
holder of the store completes, after a crash too. Without a marker, staged files are discarded. A
full disk shows while staging, when there is still nothing to undo.

The marker names the inode of its folder, so that a clone cannot bring a transaction that is
carried out.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from loki_memory.errors import StoreFailed
from loki_memory.files import disk
from loki_memory.files.layout import Layout, is_private
from loki_memory.files.scan import etag

_MARKER = "intent.json"
REFUSED = ".txn-refused-"  # staged files that are no transaction of ours, until `gc`


class Write(NamedTuple):
    """A file's next content, None to remove it, and the etag of its present one (or "")."""

    path: str
    data: bytes | None
    before: str = ""


class StagedMove(NamedTuple):
    """The staged file that becomes the file at `path`; an empty name removes that file.

    `before` is the etag of the former content, by which a later edit is recognised.
    """

    staged: str
    path: str
    before: str


def staging(layout: Layout) -> Path:
    return layout.memory / ".txn"


def carry_out(layout: Layout, writes: Sequence[Write], decided: Callable[[], None]) -> None:
    """Make the change. The caller holds the store and has healed the last transaction.

    `decided` is called once the change can be delayed by a crash, but not prevented.
    """
    try:
        steps = _stage(layout, writes)
        _decide(layout, steps)
    except BaseException as error:
        if waiting(layout):  # the marker is there, and could not be removed
            raise StoreFailed(staging(layout), str(error), decided=True) from error
        _discard(layout)
        raise
    decided()
    _complete(layout, steps)


def heal(layout: Layout) -> None:
    """Complete a committed transaction, discard an uncommitted one. The caller holds the store."""
    if staging(layout).is_symlink():  # nothing of ours
        return
    marker = disk.read_bytes(staging(layout) / _MARKER)
    if marker is None:
        _discard(layout)
        return
    try:
        steps = _load(layout, marker)
    except (ValueError, TypeError, KeyError, StoreFailed):  # not ours: kept, never carried out
        _set_aside(layout)
        return
    _complete(layout, [step for step in steps if _is_still_wanted(layout, step)])


def _set_aside(layout: Layout) -> None:
    number = 1
    while os.path.lexists(aside := layout.memory / f"{REFUSED}{number}"):
        number += 1
    disk.move(staging(layout), aside)


def waiting(layout: Layout) -> bool:
    """Check if a transaction is committed and not yet completed."""
    folder = staging(layout)
    return (folder / _MARKER).exists() and not folder.is_symlink()


def _stage(layout: Layout, writes: Sequence[Write]) -> list[StagedMove]:
    folder = staging(layout)
    disk.make_folder(folder)
    steps, files = [], []
    for parent in sorted({os.path.dirname(layout.file(path)) for path, *_ in writes}):
        disk.make_folder(parent)
    for number, (path, data, before) in enumerate(writes):
        steps.append(StagedMove("" if data is None else str(number), path, before))
        if data is not None:
            files.append(f"{folder}/{number}")
            private = is_private(layout.file(path))
            disk.write_new(files[-1], data, durable=False, private=private)
    disk.flush_all(files, folder)
    return steps


def _decide(layout: Layout, steps: Sequence[StagedMove]) -> None:
    import orjson

    folder = staging(layout)
    marker = {"folder": os.lstat(folder).st_ino, "steps": [list(step) for step in steps]}
    disk.write_bytes(folder / _MARKER, orjson.dumps(marker))


def _load(layout: Layout, marker: bytes) -> list[StagedMove]:
    import orjson

    found = orjson.loads(marker)
    if found["folder"] != os.lstat(staging(layout)).st_ino:
        raise ValueError("staged in another folder")
    steps = [StagedMove(*map(str, step)) for step in found["steps"]]
    for step in steps:
        layout.file(step.path)  # refuses paths that lead out of the memory folder
        if step.staged and not step.staged.isdecimal():
            raise ValueError(step.staged)
    return steps


def _is_still_wanted(layout: Layout, step: StagedMove) -> bool:
    """Check if a step that a crash interrupted is still to be done.

    It is not if it was done, nor if the file was edited or removed since.
    """
    now = disk.read_bytes(layout.file(step.path))
    if (etag(now) if now is not None else "") != step.before:
        return False
    return not step.staged or os.path.lexists(staging(layout) / step.staged)


def _complete(layout: Layout, steps: Sequence[StagedMove]) -> None:
    folder = staging(layout)
    try:
        targets = [layout.file(step.path) for step in steps]
        for step, target in zip(steps, targets, strict=True):
            if step.staged:
                _move(f"{folder}/{step.staged}", target)
            else:
                disk.discard(target)
        _check_all_there(folder, steps, targets)
        for parent in sorted({os.path.dirname(target) for target in targets}):
            disk.flush_folder(parent)
        disk.remove(folder / _MARKER)
        _discard(layout)
    except OSError as error:
        raise StoreFailed(error.filename or folder, str(error.strerror), decided=True) from error


def _check_all_there(folder: Path, steps: Sequence[StagedMove], targets: Sequence[str]) -> None:
    for step, target in zip(steps, targets, strict=True):
        staged = f"{folder}/{step.staged}"
        if step.staged and (os.path.lexists(staged) or not os.path.lexists(target)):
            raise OSError(errno.EIO, "is not there after renaming", target)


def _move(staged: str, target: str) -> None:
    try:
        disk.move(staged, target)
    except OSError as error:
        if error.errno != errno.EXDEV:  # the local zone may be on another file system
            raise
        disk.write_bytes(target, disk.read_bytes(staged) or b"")
        disk.discard(staged)


def _discard(layout: Layout) -> None:
    folder = staging(layout)
    if folder.is_dir():
        disk.refuse_links(folder)
        for path in folder.iterdir():
            disk.discard(path)
        folder.rmdir()
