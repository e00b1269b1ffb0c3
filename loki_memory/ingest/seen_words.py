"""Words that an agent merely saw: which of its sentences repeat what a tool printed.

The publisher of a package, a web page or an issue chooses what a tool prints, and an agent repeats
it in its own voice. So the words of a tool's answer are kept as marks: hashes of four words in a
row, one for every second word, from which nobody can read the text. A sentence of the agent repeats
an answer if three marks that follow each other (eight or nine words in a row) stand there, or the
whole of a shorter sentence. Such sentences are taken out of what the agent said (`Turn.text`) and
kept apart (`Turn.repeated`), as words of others.

An answer that shows files of the repository is the project's own: that of a tool which reads or
changes files, or of a shell command that only prints such files. A search is no such tool: nobody
notes where it searched. Everything else is output of somebody else's program or the text of
somebody else's file. Words that the user, the agent or such a file had first are theirs, whoever
prints them afterwards.
"""

from __future__ import annotations

import posixpath
import re
from array import array
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from loki_memory.ingest.sentences import sentences
from loki_memory.ingest.steps import COMMANDS
from loki_memory.ingest.turns import CALL, COMPACT, PROMPT, RESULT, SAY, Turn
from loki_memory.models.error_signature import is_shell
from loki_memory.models.text import visible

_STEP = 2  # words from one mark of an answer to the next
_HEAD, _TAIL = 40_000, 10_000  # characters of an answer: clients cut what is longer
_MOST = 1_000_000  # marks of a session: about 7 MB of text in which nothing comes twice
_ARROW = "\u2192"  # behind the numbers with which clients show the lines of a file
_LAST_ASCII = 127
_LETTERS = bytes(byte if chr(byte).isalnum() and byte <= _LAST_ASCII else 32 for byte in range(256))
# Scripts that put no spaces between words: each character counts as one.
_WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")


class _Hashes(dict[bytes, int]):
    """Hashes of words, each computed once."""

    def __missing__(self, word: bytes) -> int:
        if len(self) > _MOST:
            self.clear()
        found = self[word] = crc32(word) & 0xFFFFFF
        return found


_HASHES = _Hashes()


def marks(text: str) -> str:
    """The marks of a tool's answer, as they are staged."""
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    return b64encode(array("I", set(_grams(text, _STEP))).tobytes()).decode()


def _grams(text: str, step: int = 1) -> list[int]:
    """Hashes of four words in a row, at every word or every second; of a shorter text, none."""
    hashes = list(map(_HASHES.__getitem__, _words(text)))
    pairs = [
        3 * first + second for first, second in zip(hashes[::step], hashes[1::step], strict=False)
    ]
    ends = pairs[_STEP // step :]
    return [first ^ (second << 6) for first, second in zip(pairs, ends, strict=False)]


def _words(text: str) -> list[bytes]:
    """The words of a text in small letters, without punctuation."""
    small = visible(text.replace(_ARROW, " ")).lower()
    if small.isascii():
        return small.encode().translate(_LETTERS).split()
    found: list[bytes] = []
    for line in small.splitlines():
        if line.isascii():
            found += line.encode().translate(_LETTERS).split()
        else:
            found += [word.encode(errors="replace") for word in _WORD.findall(line)]
    return found


def _unpacked(seen: str) -> set[int]:
    """The marks of an answer; none if they were not written by `marks`."""
    try:
        return set(array("I", b64decode(seen, validate=True)))
    except ValueError:
        return set()


class SeenWords:
    """The words that a session has seen so far, turn by turn in the order of time.

    `changes` keeps what was found out, by the keys of turns, for whoever reads them once more.
    """

    def __init__(self) -> None:
        self.changes: dict[str, Turn] = {}
        self._home = ""
        self._calls: dict[str, Turn] = {}
        self._fetched: set[str] = set()  # folders with what others wrote
        self._written: set[str] = set()  # files that this session wrote, perhaps from what it saw
        self._outside: set[int] = set()
        self._own: set[int] = set()
        self._files: set[int] = set()
        self._shown: list[str] = []  # marks that `_files` lacks: most are never needed

    def attributed(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """The turns, each with what it repeats of others apart from the rest."""
        for turn in turns:
            found = self._read(turn)
            if found is not turn:
                self.changes[turn.key] = found
            yield found

    def applied(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """The same turns, read again."""
        return (self.changes.get(turn.key, turn) for turn in turns)

    def _read(self, turn: Turn) -> Turn:
        self._home = self._home or turn.cwd
        if turn.kind == RESULT:
            self._saw(turn)
        elif turn.kind == PROMPT:
            self._own.update(_grams(turn.text))
        elif turn.kind in {SAY, COMPACT}:
            own, repeated = self._split(turn.text)
            return turn._replace(text=own, repeated=repeated) if repeated else turn
        elif turn.kind == CALL:
            return self._called(turn)
        return turn

    def _saw(self, turn: Turn) -> None:
        call = self._calls.pop(turn.call, None)
        if not turn.seen or call is None:
            return
        if is_own(call, self._home, self._fetched):
            if self._written.isdisjoint(call.files):
                self._shown.append(turn.seen)
        elif len(self._outside) < _MOST:
            self._outside |= _unpacked(turn.seen) - self._own

    def _called(self, turn: Turn) -> Turn:
        self._calls[turn.call] = turn
        self._fetched |= fetched_folders(turn)
        if turn.hunks or turn.written:
            self._written.update(turn.files)
        own, repeated = self._split(turn.written) if turn.written else ("", "")
        may_be = self._outside and is_shell(turn.tool)
        is_dictated = bool(may_be) and self._repeats(_grams(turn.text))
        if not (repeated or is_dictated):
            return turn
        return turn._replace(written=own, repeated=repeated, is_dictated=is_dictated)

    def _split(self, text: str) -> tuple[str, str]:
        """The sentences that are the agent's own, and those that it repeats."""
        found = _grams(text)
        repeated: list[str] = []
        if not self._outside.isdisjoint(found):
            repeated = [each for each in sentences(text) if self._repeats(_grams(each))]
        if not repeated:
            self._own.update(found)
            return text, ""
        own = [sentence for sentence in sentences(text) if sentence not in repeated]
        return "\n\n".join(own), "\n\n".join(repeated)

    def _repeats(self, found: Sequence[int]) -> bool:
        """Check whether a sentence with these marks is words of others, and of no own file."""
        hits = [mark in self._outside for mark in found]
        if not _tell(hits):
            return False
        self._files.update(*map(_unpacked, self._shown))
        self._shown.clear()
        own = [mark in self._files for mark in found]
        around = zip([False, *own], own, [*own[1:], False], strict=False)
        return _tell([hit and not any(near) for hit, near in zip(hits, around, strict=True)])


def _tell(hits: Sequence[bool]) -> bool:
    """Check whether so many marks of a sentence stand elsewhere that it is a repetition.

    Of an answer every second word has a mark, so every second hit counts.
    """
    if any(map(all, zip(hits, hits[_STEP:], hits[2 * _STEP :], strict=False))):
        return True
    return (bool(hits) and all(hits[::_STEP])) or (len(hits) > 1 and all(hits[1::_STEP]))


# -- answers that show the project's own files -----------------------------------------------------

_FILE_TOOLS = frozenset(
    {
        *("Read", "read_file", "NotebookRead", "view"),
        *("Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "edit", "write"),
    }
)
# Folders that hold what others wrote, wherever they lie.
_OTHERS = re.compile(
    r"(?:^|/)(?:node_modules|bower_components|vendor|third[_-]party|site-packages|dist-packages"
    r"|\.?venv|\.tox|\.nox|\.cargo|\.rustup|\.gradle|\.m2|\.npm|\.cache|\.bundle|\.pub-cache|gems"
    r"|go/pkg|Pods|Carthage|deps|external|downloads?|te?mp)(?:/|$)",
    re.IGNORECASE,
)
_CLONES = re.compile(r"\b(?:git|gh repo|hg|glab repo)\s(?:-\S+\s+)*clone\s+(.+)")
_SUBSTITUTES = re.compile(r"\$\(|`|<\(|\bxargs\b|-exec\b")
_PRINTS = frozenset(
    re.findall(
        r"\w+", "cat head tail sed awk grep egrep fgrep rg ag nl wc ls tree bat sort uniq cut jq"
    )
)
_SAYS_NOTHING = frozenset({"cd", "pwd", "true", "echo", "clear", "mkdir", "chmod", "touch"})
_OWN_GIT = re.compile(
    r"git\s+(?:--no-pager\s+)?(?:status|ls-files|grep|blame|add|diff)\b"
    r"(?:\s+(?:-\S+|HEAD\S*|[\"'].*?[\"']))*(?:\s+--(?:\s+\S+)*)?\s*$"
)


def fetched_folders(call: Turn) -> set[str]:
    """The folders into which a command puts a repository of others."""
    if not is_shell(call.tool) or "clone" not in call.text:
        return set()
    return {_whole(folder, call.cwd) for folder in map(_cloned_into, COMMANDS.split(call.text))} - {
        _whole("", call.cwd)
    }


def _cloned_into(part: str) -> str:
    """The folder of a clone: the last word, or what the address ends with."""
    found = _CLONES.search(part)
    words = [word.strip("\"'") for word in found[1].split() if word[0] != "-"] if found else []
    return posixpath.basename(words[-1].rstrip("/")).removesuffix(".git") if words else ""


def is_own(call: Turn, home: str, fetched: Collection[str] = ()) -> bool:
    """Check whether the answer of a call shows files of the project that begins at `home`.

    `fetched` are folders within it that hold what others wrote.
    """
    place = _Project(home, call.cwd or home, fetched)
    if is_shell(call.tool):
        return _prints_own(call.text, place)
    if call.tool not in _FILE_TOOLS:
        return False
    return bool(call.files) and all(map(place.has, call.files))


class _Project(NamedTuple):
    """A project, and where in it a command runs."""

    home: str
    cwd: str
    fetched: Collection[str]

    def has(self, path: str) -> bool:
        """Check whether a path lies in the project and not in a folder of others."""
        plain = path.replace("\\", "/")
        if plain.startswith("~") or "://" in plain or "$" in plain:
            return False
        root, whole = _whole("", self.home), _whole(plain, self.cwd)
        is_inside = whole == root or whole.startswith(f"{root.rstrip('/')}/")
        is_fetched = any(whole == place or whole.startswith(f"{place}/") for place in self.fetched)
        return is_inside and not is_fetched and not _OTHERS.search(whole.removeprefix(root))


def _whole(path: str, cwd: str) -> str:
    return posixpath.normpath(posixpath.join(cwd.replace("\\", "/") or "/", path))


def _prints_own(command: str, place: _Project) -> bool:
    """Check whether all that a command line prints are files of the project."""
    if _SUBSTITUTES.search(command):
        return False
    for part in filter(None, map(str.strip, COMMANDS.split(command))):
        words = [word.strip("\"'") for word in part.split()]
        if words[0] == "cd":
            place = place._replace(cwd=_whole(words[-1], place.cwd))
        if not _prints_file(part, words, place):
            return False
    return bool(command.strip())


def _prints_file(part: str, words: Sequence[str], place: _Project) -> bool:
    """Check whether one command prints nothing, or files of the project only."""
    if words[0] == "git":
        return place.has(place.cwd) and _OWN_GIT.match(part) is not None
    if words[0] not in _PRINTS and words[0] not in _SAYS_NOTHING:
        return False
    return all(place.has(word) for word in (".", *words[1:]) if not word.startswith("-"))
