"""The usage journal: memories that were shown, opened, helpful or not, and outcomes of tasks.

Two files of JSON lines in this machine's own zone. `uses.jsonl` has signs of use (opened, helpful)
or of its opposite, and the outcomes of tasks; every recall reads it. `shown.jsonl` has what was
offered at what cost; statistics read it, and recording an episode looks up there what it was shown.
A line is appended in one write, under the journal's own lock, so that processes lose nothing to
each other. Foreign lines are skipped, and a journal that cannot be written never fails its caller:
the verbs return False.

Being shown is not a use: a memory that is often offered would be offered ever more often. Strength
is a decaying counter of uses: each use adds 2**((t - t0) / half-life), kept as a logarithm so that
no date overflows it; divided by the same power of `now` it is the number of uses, each halved for
every half-life since. The order of two records thus never depends on the time of the query. A long
journal is folded into one line per record and day, which gives exactly the same sums.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import StoreBusy
from loki_memory.files import disk
from loki_memory.files.lock import locked
from loki_memory.journal.tally import STRONGEST, DaySums, MemorySums, Tally, half_lives, seconds_of

if TYPE_CHECKING:  # only statistics ask for it
    from loki_memory.journal.tally import Economics, Total

_USES_BYTES = 128_000  # some 1,000 lines, which take a recall 4 ms to read for the first time
_SHOWN_BYTES = 4_000_000
_HEAD_BYTES = 96  # enough to distinguish two foldings
_WAIT_SECONDS = 1.0  # the lock is held for microseconds, while folding for milliseconds
_TAIL_BYTES = 64_000  # a hundred recalls with all that they showed, or 600 uses
_QUERY_LENGTH = 200
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # a session, no secret
_SHORT = 20  # letters of a word of prose
_NAME_LENGTH = 100

Fold = Callable[[bytes, str], list[Any]]


class Uses(NamedTuple):
    """The number of uses of a memory, the last one, and how often it was helpful or not."""

    times: int
    last: str
    helpful: int
    unhelpful: int


class Journal:
    """The journal of one workspace, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._uses = f"{folder}/uses.jsonl"
        self._shown = f"{folder}/shown.jsonl"
        self._lock = Lock()
        self._tally = Tally()
        self._read: _Read | None = None

    # -- what happened -------------------------------------------------------------------------

    def shown(
        self,
        ids_and_tokens: Iterable[tuple[str, int]],
        *,
        surface: str,
        query: str,
        session: str | None,
        now: str,
        available: int = 0,
    ) -> bool:
        """Note offered memories and their tokens; `available` is the store's size, 0 if unknown."""
        offered = list(ids_and_tokens)
        line = {
            "act": "shown",
            "at": now,
            "surface": name_of(surface),
            "session": name_of(session),
            "query": _clean(query, _QUERY_LENGTH),
            "ids": [[memory_id[:_NAME_LENGTH], tokens] for memory_id, tokens in offered],
            "offered": sum(tokens for _, tokens in offered),
            "available": available,
        }
        return self._append(self._shown, line, _SHOWN_BYTES, _folded_shown)

    def opened(self, memory_id: str, tokens: int, *, session: str | None, now: str) -> bool:
        """Note that all of a memory was read."""
        return self._use("opened", memory_id, session, now, tokens=tokens)

    def feedback(
        self, memory_id: str, helpful: bool, *, episode: str | None, session: str | None, now: str
    ) -> bool:
        """Note whether a memory helped."""
        act = "helpful" if helpful else "unhelpful"
        return self._use(act, memory_id, session, now, episode=name_of(episode))

    def outcome(self, session_or_episode: str, outcome: str, *, now: str) -> bool:
        """Note that a task ended."""
        ended, how = name_of(session_or_episode), name_of(outcome)
        line = {"act": "outcome", "at": now, "of": ended, "outcome": how}
        return self._append(self._uses, line, _USES_BYTES, _folded_uses)

    def _use(self, act: str, memory_id: str, session: str | None, now: str, **more: Any) -> bool:
        who = {"id": name_of(memory_id), "session": name_of(session)}
        line = {"act": act, "at": now, **who, **more}
        return self._append(self._uses, line, _USES_BYTES, _folded_uses)

    # -- sums ----------------------------------------------------------------------------------

    def strengths(self, now: str, ids: Iterable[str] | None = None) -> dict[str, float]:
        """The strength of every memory that was ever used, or of those among `ids`."""
        records = self._tallied().records
        wanted = list(records) if ids is None else [name for name in ids if name in records]
        age = half_lives(seconds_of(now))
        return {
            name: 2.0 ** min(records[name].log2w - age, STRONGEST)
            for name in wanted
            if records[name].times
        }

    def unhelpful(self) -> set[str]:
        """The memories of which somebody here said last that they did not help."""
        if not os.path.exists(self._uses):
            return set()
        records = self._tallied().records
        return {name for name, record in records.items() if record.verdict == "unhelpful"}

    def uses(self, memory_id: str) -> Uses:
        found = self._tallied().records.get(memory_id) or MemorySums()
        return Uses(found.times, found.last, found.helpful, found.unhelpful)

    def sums(self, now: str) -> list[dict[str, Any]]:
        """The uses of every memory as one line each, for another machine."""
        return [line for line in self._tallied().lines(now) if line["act"] == "used"]

    def take_sums(self, lines: Iterable[dict[str, Any]], *, now: str) -> int:
        """Take over the uses of memories that were never used here; returns their number."""
        known = {*self._tallied().records}
        foreign = Tally()
        foreign.take_all(line for line in lines if line.get("act") == "used")
        new = [line for line in foreign.lines(now) if line["id"] not in known]
        return sum(self._append(self._uses, line, _USES_BYTES, _folded_uses) for line in new)

    def recent(self) -> list[Any]:
        """The last lines of both files, shown.jsonl first.

        Raises OSError if they cannot be read.
        """
        return [*_lines(_tail(self._shown)), *_lines(_tail(self._uses))]

    def economics(self, since: str | None = None) -> Economics:
        """Sum what was sent and opened; `since` counts from that day on."""
        from loki_memory.journal.tally import economics

        first, opened = (since or "")[:10], DaySums()
        for name, day in list(self._tallied().days.items()):
            if name >= first:
                opened.add(day.opens, day.tokens, day.outcomes)
        lines = list(_lines(_content(self._shown)))
        return economics(lines, first, opened.opens, opened.tokens, opened.outcomes)

    def stamp(self) -> tuple[int, ...]:
        """A value that changes whenever something is noted."""
        paths = (path for path in (self._uses, self._shown) if os.path.exists(path))
        return tuple(number for path in paths for number in _stamp(path))

    def totals(self) -> list[Total]:
        """Sum what was offered, by day and surface."""
        from loki_memory.journal.tally import totals

        return totals(_lines(_content(self._shown)))

    def _tallied(self) -> Tally:
        """The sums of uses.jsonl; of a file that only grew, only the new lines are read."""
        with self._lock:
            try:
                found = os.stat(self._uses, follow_symlinks=False)
            except OSError:
                self._tally, self._read = Tally(), None
                return self._tally
            stamp = found.st_ino, found.st_size, found.st_mtime_ns
            if self._read is None or self._read.stamp != stamp:
                self._read_on(stamp)
            return self._tally

    def _read_on(self, stamp: tuple[int, int, int]) -> None:
        """Read new lines. The stamp is older, so that later lines are found at the next call."""
        data, known = _content(self._uses), self._read
        if known is None or not known.is_start_of(data, stamp[0]):
            self._tally, known = Tally(), None
        begin, end = known.end if known else 0, data.rfind(b"\n") + 1
        self._tally.take_all(_lines(data[begin:end]))
        self._read = _Read(data[:_HEAD_BYTES], end, stamp)

    # -- files ---------------------------------------------------------------------------------

    def _append(self, path: str, line: dict[str, Any], limit: int, fold: Fold) -> bool:
        data = _json(line).encode() + b"\n"
        try:
            disk.make_folder(self._folder)
            with locked(Path(self._folder, "lock"), _WAIT_SECONDS):
                size, head = _write_at_end(path, data)
                if size > limit and size > 2 * _folded_bytes(head):
                    with suppress(OSError):  # the line is there; another append tries again
                        _replace(path, fold, line["at"])
        except (OSError, StoreBusy):
            return False
        return True


class _Read(NamedTuple):
    """The part of a file that was read: first bytes, end of the last whole line, stamp."""

    head: bytes
    end: int
    stamp: tuple[int, int, int]

    def is_start_of(self, data: bytes, inode: int) -> bool:
        return inode == self.stamp[0] and data.startswith(self.head) and self.end <= len(data)


# -- lines and bytes -------------------------------------------------------------------------------


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path, follow_symlinks=False)
    return found.st_size, found.st_mtime_ns


def name_of(text: str | None) -> str:
    """The name of a session or a memory in the journal; empty for none."""
    return _clean(text, _NAME_LENGTH)


def _clean(text: str | None, length: int) -> str:
    """Text as it may be kept: redacted, then cut (half a secret is not recognised)."""
    if not text:
        return ""
    if _UUID.fullmatch(text) or all(word.isalpha() and len(word) < _SHORT for word in text.split()):
        return text[:length]  # too plain for a secret, and the patterns for those cost 3 ms
    from loki_memory.files.redaction import redact

    return redact(text.encode("utf-8", "replace").decode())[:length]


_ESCAPES = {**dict.fromkeys(range(32), " "), ord('"'): '\\"', ord("\\"): "\\\\"}


def _json(value: Any) -> str:
    """Encode a line. orjson and json take 2 to 4 ms to load, in every command that recalls."""
    if isinstance(value, str):
        return '"' + value.translate(_ESCAPES) + '"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{_json(name)}:{_json(item)}" for name, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_json, value)) + "]"
    return "null" if value is None else str(value).lower()  # a number, true or false


def _lines(data: bytes) -> Iterator[Any]:
    """The JSON objects of a file; torn or foreign lines are skipped."""
    if not data:
        return
    import json  # loaded in a third of the time that orjson takes, by every recall

    for line in data.split(b"\n"):
        if line.startswith(b"{"):
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue


def _content(path: str) -> bytes:
    try:
        return disk.read_bytes(path) or b""
    except OSError:
        return b""


def _tail(path: str) -> bytes:
    """The last whole lines of a file; nothing if there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        return b""
    try:
        begin = max(0, os.fstat(fd).st_size - _TAIL_BYTES)
        data = _bytes_at(fd, begin, _TAIL_BYTES)
    finally:
        os.close(fd)
    return data.partition(b"\n")[2] if begin else data


def _write_at_end(path: str, data: bytes) -> tuple[int, bytes]:
    """Append atomically, on a line of its own; returns the file's size and first bytes."""
    fd = disk.open_to_change(path, append=True)
    try:
        size = os.fstat(fd).st_size
        if size and _bytes_at(fd, size - 1, 1) != b"\n":  # a writer died
            data = b"\n" + data
        written = os.write(fd, data)
        if written < len(data):
            os.ftruncate(fd, size)
            raise OSError("the disk is full")
        return size + written, _bytes_at(fd, 0, _HEAD_BYTES)
    finally:
        os.close(fd)


def _bytes_at(fd: int, begin: int, length: int) -> bytes:
    os.lseek(fd, begin, os.SEEK_SET)
    return os.read(fd, length)


def _folded_bytes(head: bytes) -> int:
    """The length of the file when it was last folded; 0 if it never was."""
    for line in _lines(head.partition(b"\n")[0]):
        length = line.get("bytes")
        return length if isinstance(length, int) else 0
    return 0


def _replace(path: str, fold: Fold, now: str) -> None:
    """Fold a file, with a first line that says so and that no two foldings share."""
    import orjson

    body = b"".join(
        line if isinstance(line, bytes) else orjson.dumps(line) + b"\n"
        for line in fold(disk.read_bytes(path) or b"", now)
    )
    head = {"act": "folded", "at": now, "bytes": len(body)}
    disk.write_bytes(path, orjson.dumps(head) + b"\n" + body)


def _folded_uses(data: bytes, now: str) -> list[Any]:
    tally = Tally()
    tally.take_all(_lines(data))
    return list(tally.lines(now))


def _folded_shown(data: bytes, now: str) -> list[Any]:  # noqa: ARG001 - days do not depend on it
    """Fold the older half into totals of its days, and keep the newer half."""
    from loki_memory.journal.tally import totals

    middle = data.find(b"\n", len(data) // 2) + 1
    return [*(total.line() for total in totals(_lines(data[:middle]))), data[middle:]]
