"""Staged turns: what was read of each session, on this machine, until episodes are made of it.

A session has a log, to which turns are appended in the order in which they were read, each once,
and a note of what was made of it: how much of the log, and which episodes. The log stays for a
while, because a session may go on, and what came before tells what the rest means. Once it is
cleared, hashes of the turns' keys are left: a session that goes on all the same is told from there,
and what was told before is not told again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

from loki_memory.files import disk
from loki_memory.ingest.sensitive_files import withheld
from loki_memory.ingest.turns import END, PROMPT, Hunk, Turn, checked, is_sound
from loki_memory.models.ids import digest, file_stem

_HASH = 8  # bytes that stand for a turn's key
_EARLIER_FIELDS = 12  # of a turn that an earlier version staged
_PLAIN_FIELDS = Turn._fields.index("hunks")
_SMALL = 16_000_000  # bytes of a log that is held in memory
TELLER = 2  # the rules by which episodes are made: since 2, remedies of rules are examples
_STAMP = ".redacted-2"  # a file beside the logs: all of them are, by the rules of today


class Made(NamedTuple):
    """The episodes that were made of a session."""

    session: str
    size: int = 0  # bytes of the log
    episodes: dict[str, list[str]] = {}  # noqa: RUF012 - never changed: id -> path, etag
    teller: int = 1  # the rules by which they were made


class StagedSession(NamedTuple):
    """A session whose log holds more than episodes were made of."""

    name: str
    turns: int
    last: str  # moment of the last turn
    ended: bool
    asked: bool  # it holds a prompt; without one nobody knows what the rest was about


class Staging:
    """The logs of all sessions."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, set[int]] = {}
        self._lines: dict[str, dict[int, int]] = {}  # hashes of staged turns by those of their keys
        self._withheld: dict[str, set[str]] = {}  # calls on files of credentials, by session

    def add(self, turns: Iterable[Turn], *, anew: bool = False) -> set[str]:
        """Append turns that are new, safely; returns the sessions that they belong to.

        `anew` is for a transcript that is read once more from its beginning, by a reader that keeps
        more: its turns replace those that are staged, unless the log was cleared.
        """
        fresh: dict[str, list[bytes]] = {}
        for told in turns:
            known = self._keys(told.session)
            turn = withheld(told, self._withheld[told.session])
            key = _hashed(turn.key)
            if key not in known or (anew and self._is_replaced(turn)):
                known.add(key)
                fresh.setdefault(turn.session, []).append(_line(turn))
        for session, lines in sorted(fresh.items()):
            self._append(session, b"\n".join(lines) + b"\n")
        return set(fresh)

    def turns(self, session: str) -> Iterator[Turn]:
        """All turns of a session in the order in which they happened."""
        path = self._log(session)
        if self.size(session) <= _SMALL:
            turns = {turn.key: turn for turn in _read(path)}  # the last one counts
            yield from sorted(turns.values(), key=Turn.order)
            return
        with path.open("rb") as log:
            places = {_hashed(turn.key): (turn.order(), at) for at, turn in _entries(log)}
            for _, at in sorted(places.values()):
                log.seek(at)
                turn = _turn(log.readline())
                if turn is not None:
                    yield turn

    def redact_earlier(self) -> None:
        """Redact, once, what was staged before turns were redacted on their way in."""
        stamp = self._folder / _STAMP
        if stamp.exists():
            return
        for path in sorted(self._folder.glob("*.jsonl")):
            self._redact(path)
        disk.write_bytes(stamp, b"")

    def finished(self) -> list[Path]:
        """The logs of which everything was told."""
        paths = sorted(self._folder.glob("*.jsonl"))
        return [path for path in paths if not self._waiting(path.stem)]

    def clear(self, path: Path) -> None:
        """Remove a log, and keep only what tells its turns from new ones."""
        session = next((turn.session for turn in _read(path)), "")
        if session:
            hashes = sorted(self._keys(session))
            data = b"".join(entry.to_bytes(_HASH) for entry in hashes)
            disk.write_bytes(self._place(session, "keys"), data)
        disk.remove(path)
        disk.remove(path.with_suffix(".json"))

    def sessions(self, *, anew: bool = False) -> list[StagedSession]:
        """Return those of which more was read than episodes were made of.

        `anew` adds those whose episodes an earlier version made.
        """
        names = sorted(path.stem for path in self._folder.glob("*.jsonl"))
        return [found for name in names if (found := self._waiting(name, anew=anew))]

    def made(self, session: str) -> Made:
        data = disk.read_bytes(self._place(session, "json"))
        try:
            return Made(**orjson.loads(data)) if data else Made(session)
        except (ValueError, TypeError):
            return Made(session)

    def set_made(self, made: Made) -> None:
        path = self._place(made.session, "json")
        disk.write_bytes(path, orjson.dumps(made._asdict(), option=orjson.OPT_SORT_KEYS))

    def size(self, session: str) -> int:
        """Bytes of a session's log."""
        path = self._log(session)
        return path.stat().st_size if path.exists() else 0

    def _waiting(self, stem: str, *, anew: bool = False) -> StagedSession | None:
        path = self._folder / f"{stem}.jsonl"
        first = next(_read(path), None)
        made = self.made(first.session) if first else Made("")
        is_told = made.size >= path.stat().st_size and not (anew and made.teller < TELLER)
        if first is None or is_told:
            return None
        turns, last, ended, asked = 0, "", False, False
        for turn in _read(path):
            turns += 1
            if turn.at >= last:
                last, ended = turn.at, turn.kind == END
            asked = asked or turn.kind == PROMPT
        return StagedSession(first.session, turns, last, ended, asked)

    def _redact(self, path: Path) -> None:
        """Write a log anew if it holds secrets; what waits to be told goes on waiting."""
        before = path.read_bytes()
        calls = set[str]()
        turns = [withheld(checked(turn), calls) for turn in _read(path)]
        after = b"".join(_line(turn) + b"\n" for turn in turns)
        if not turns or after == before:
            return
        made = self.made(turns[0].session)
        is_told = made.size >= len(before)
        if not is_told:
            self.set_made(made._replace(size=0))
        disk.write_bytes(path, after)
        if is_told:
            self.set_made(made._replace(size=len(after)))

    def _log(self, session: str) -> Path:
        return self._place(session, "jsonl")

    def _place(self, session: str, ending: str) -> Path:
        return self._folder / f"{file_stem(session)}.{ending}"

    def _keys(self, session: str) -> set[int]:
        if session not in self._known:
            cleared = disk.read_bytes(self._place(session, "keys")) or b""
            starts = range(0, len(cleared), _HASH)
            hashes = {int.from_bytes(cleared[at : at + _HASH]) for at in starts}
            calls = self._withheld[session] = set[str]()
            staged = {_hashed(withheld(turn, calls).key) for turn in _read(self._log(session))}
            self._known[session] = hashes | staged
        return self._known[session]

    def _is_replaced(self, turn: Turn) -> bool:
        """Check whether another turn is staged under the key of this one."""
        if turn.session not in self._lines:
            staged = _read(self._log(turn.session))
            self._lines[turn.session] = {_hashed(each.key): hash(_line(each)) for each in staged}
        there = self._lines[turn.session].get(_hashed(turn.key))
        return there is not None and there != hash(_line(turn))

    def _append(self, session: str, data: bytes) -> None:
        """Behind the last whole line: a writer that was killed may have left half of one."""
        disk.make_folder(self._folder)
        path = self._log(session)
        is_new = not path.exists()
        if is_new:  # what was made of a log that was cleared says nothing of this one
            disk.remove(self._place(session, "json"))
        with open(disk.open_to_change(path, append=True), "ab") as log:
            log.truncate(_whole(path))
            log.write(data)
            log.flush()
            os.fsync(log.fileno())
        if is_new:
            disk.flush_folder(self._folder)


def _hashed(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=_HASH).digest())


def _whole(path: Path) -> int:
    """Bytes up to the end of the last whole line."""
    size = path.stat().st_size
    with path.open("rb") as log:
        log.seek(max(0, size - 1))
        if size == 0 or log.read(1) == b"\n":
            return size
        return max((at + len(line) for at, line in _raw(log)), default=0)


def _raw(log: Any) -> Iterator[tuple[int, bytes]]:
    """Whole lines, each with the byte at which it begins."""
    log.seek(0)
    at = 0
    for line in log:
        if line.endswith(b"\n"):
            yield at, line
        at += len(line)


def _entries(log: Any) -> Iterator[tuple[int, Turn]]:
    for at, line in _raw(log):
        turn = _turn(line)
        if turn is not None:
            yield at, turn


def _read(path: Path) -> Iterator[Turn]:
    if path.exists():
        with path.open("rb") as log:
            yield from (turn for _, turn in _entries(log))


def _line(turn: Turn) -> bytes:
    """A turn as a line of the log: the values of its fields in their order."""
    hunks = [list(hunk) for hunk in turn.hunks]
    return orjson.dumps([*turn[:_PLAIN_FIELDS], hunks, *([turn.seen] if turn.seen else [])])


def _turn(line: bytes) -> Turn | None:
    """The turn of a line; None if no episode can be made of it."""
    try:
        fields = orjson.loads(line)
        if len(fields) < _EARLIER_FIELDS:
            return None
        turn = Turn(*fields)
        hunks = tuple(map(Hunk._make, turn.hunks))
        turn = turn._replace(files=tuple(turn.files), hunks=hunks)
    except (ValueError, TypeError):
        return None
    return turn if is_sound(turn) else None


# -- Watermarks: how far each transcript has been read, on this machine ---------------------------


READER = 4  # 1: Codex up to 0.147; 2: prompts, calls, results; 3: no marks of what tools printed
_BLOCK = 4096  # bytes at either end of what was read that are remembered


class Watermark(NamedTuple):
    """The place in a file where reading goes on."""

    path: str
    end: int = 0  # bytes that were read, of the plain text
    line: int = 0  # lines that were read
    waiting: int = 0  # lines behind it that were not complete
    print: str = ""  # of what was read
    size: int = -1  # of the file, and when it was changed: while both stay there is nothing new
    changed: int = 0
    sessions: list[str] = []  # noqa: RUF012 - never changed: those that it holds
    refused: list[list[Any]] = []  # noqa: RUF012 - never changed: lines nobody was told of, and why
    reader: int = READER  # the version that read it

    def fits(self, size: int, changed: int) -> bool:
        return (self.size, self.changed) == (size, changed)


class Watermarks:
    """The marks of all transcripts, each in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, path: Path) -> Watermark:
        """The mark of a transcript; one at its beginning if there is none that can be read."""
        found = _decoded(disk.read_bytes(self._place(path))) or Watermark(os.path.abspath(path))
        if found.reader == READER:
            return found
        return Watermark(found.path, sessions=found.sessions, refused=found.refused)

    def set(self, mark: Watermark) -> None:
        path = mark.path.encode("utf-8", "backslashreplace").decode()  # a name may be any bytes
        named = mark._replace(path=path)
        disk.write_bytes(self._place(Path(mark.path)), orjson.dumps(named._asdict()))

    def all(self) -> list[Watermark]:
        places = sorted(self._folder.glob("*.json"))
        found = (_decoded(disk.read_bytes(place)) for place in places)
        return sorted(filter(None, found))

    def _place(self, path: Path) -> str:
        return f"{self._folder}/{digest('transcript', os.path.abspath(path))}.json"


def _decoded(data: bytes | None) -> Watermark | None:
    try:
        return Watermark(**{"reader": 1, **orjson.loads(data)}) if data else None
    except (ValueError, TypeError):
        return None


def fingerprint(stream: IO[bytes], end: int) -> str:
    """A hash of a stream's beginning and of what stands just before a byte; empty if shorter."""
    stream.seek(0)
    first = stream.read(min(_BLOCK, end))
    stream.seek(max(0, end - _BLOCK))
    last = stream.read(min(_BLOCK, end))
    if len(last) < min(_BLOCK, end):
        return ""
    return blake2b(first + last, digest_size=16).hexdigest()
