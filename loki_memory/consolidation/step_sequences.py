"""Sequences of actions: what a log looks like from afar, and what several logs have in common.

An action is abstracted to a move: its head (the program and subcommand of a command, else the
tool) and the place that it went to (a test, a config file, a source, with the extension). Repeated
moves count once. Subsequences that many logs share are grown one move at a time, as PrefixSpan
does it, with few other moves allowed in between.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from loki_memory.models import Action, Episode
from loki_memory.models.error_signature import head

SHORTEST, LONGEST = 2, 6  # moves of a subsequence: one move is no procedure, ten are a story
GAP = 3  # other moves that may stand between two of a subsequence
_READ = 40  # moves of an episode that are looked at: a procedure shows early or not at all
# Subsequences of one length that are grown further, the best supported first. Identical long logs
# have thousands of subsequences with equal support; which of them is grown matters little.
_BEAM = 24

_RUNS = re.compile(r"^(?:run|exec|bash|shell|sh|cmd|command|terminal|test|lint|build|sql|query)")
_SQL = re.compile(
    r"^\s*(select|insert|update|delete|desc(?:ribe)?|explain|show\s+\w+|(?:create|drop|alter)\s+\w+)\b",
    re.IGNORECASE,
)
_SCRIPT = re.compile(r"\brun\s+([a-z][\w:.-]*)")  # of `npm run lint`
_TEST = re.compile(r"(?:^|[/_.-])(?:tests?|specs?|__tests__)(?:[/_.-]|$)", re.IGNORECASE)
_CONFIG = re.compile(
    r"(?:\.(?:toml|ya?ml|ini|cfg|conf|env|lock)|(?:^|/)(?:[\w.-]*config[\w.-]*|package\.json|"
    r"package-lock\.json|Dockerfile|Makefile|\.\w+rc[\w.]*))$"
)
_DOCUMENT = re.compile(r"\.(?:md|rst|txt|adoc)$", re.IGNORECASE)
_EXTENSION = re.compile(r"\.\w{1,8}$")


class Move(NamedTuple):
    """An action from afar."""

    head: str
    place: str = ""


class SharedSequence(NamedTuple):
    """Moves that several sequences have in this order, and which sequences those are."""

    moves: tuple[Move, ...]
    users: tuple[int, ...]


def move(action: Action) -> Move:
    """The abstraction of one action.

    >>> move(Action(action="run_command", target="cd web && npm run lint -- --fix"))
    Move(head='npm run lint', place='')
    >>> move(Action(action="edit_file", target="src/routes/todos.test.ts"))
    Move(head='edit_file', place='test .ts')
    """
    return _move(action.action.strip(), (action.target or "").strip())


@lru_cache(maxsize=65536)
def _move(name: str, target: str) -> Move:
    if " " in name and not target:
        return Move(_command(name) or name)
    place = _place(target)
    if target and not place and _RUNS.match(name.lower()):
        return Move(_command(target) or name)
    return Move(name, place)


def is_command(action: Action) -> bool:
    """Check whether an action ran a program rather than opened a file."""
    return not move(action).place and move(action).head != action.action.strip()


def _command(text: str) -> str:
    """Program and subcommand: `git commit`, `npm run lint`, `select`, `show tables`."""
    query = _SQL.match(text)
    if query:
        return " ".join(query[1].lower().split()).replace("describe", "desc")
    found = head("bash", text)
    script = _SCRIPT.search(text) if found.endswith(" run") else None
    return f"{found} {script[1]}" if script else found


def _place(target: str) -> str:
    """Return what kind of file a target is, with its extension; empty if it is no path."""
    if not target or any(mark.isspace() for mark in target):
        return ""
    extension = _EXTENSION.search(target)
    if not extension and "/" not in target:
        return ""
    return f"{_file_class(target)} {extension[0].lower() if extension else ''}".strip()


def _file_class(path: str) -> str:
    if _TEST.search(path):
        return "test"
    if _CONFIG.search(path):
        return "config"
    return "document" if _DOCUMENT.search(path) else "source"


def runs(actions: Sequence[Action]) -> Iterator[tuple[Move, list[Action]]]:
    """Actions in the stretches in which they made the same move."""
    for action, stretch in groupby(actions, key=move):
        if action.head:
            yield action, list(stretch)


def moves(episode: Episode) -> tuple[Move, ...]:
    """Return what an episode's log looks like from afar: repeated moves once."""
    found = [run for run, _ in runs(episode.action_log)]
    return tuple(entry for entry, _ in groupby(found))[:_READ]


def contains(sequence: Sequence[Move], wanted: Sequence[Move]) -> bool:
    """Check whether a sequence has the wanted moves in order, never more than the gap apart."""
    ends = range(-1, len(sequence) - 1)  # the first move may stand anywhere
    reach = 1
    for entry in wanted:
        ends_now = {
            at
            for end in ends
            for at in range(end + 1, min(end + 1 + reach, len(sequence)))
            if sequence[at] == entry
        }
        if not ends_now:
            return False
        ends, reach = sorted(ends_now), GAP + 1  # type: ignore[assignment]
    return True


def shared(sequences: Sequence[Sequence[Move]], least: int) -> list[SharedSequence]:
    """The closed subsequences that at least so many sequences have: no longer one says the same.

    Ordered by their moves.
    """
    level = _singles(sequences, least)
    found: list[SharedSequence] = []
    for length in range(2, LONGEST + 1):
        level = _grown(level, sequences, least)
        if length >= SHORTEST:
            found += [
                SharedSequence(single, tuple(sorted(places))) for single, places in level.items()
            ]
    return sorted(_closed(found))


# A pattern -> each sequence that has it -> where in the sequence it may end.
_Level = dict[tuple[Move, ...], dict[int, list[int]]]


def _singles(sequences: Sequence[Sequence[Move]], least: int) -> _Level:
    found: dict[tuple[Move, ...], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, sequence in enumerate(sequences):
        for at, entry in enumerate(sequence):
            found[entry,][number].append(at)
    return {entry: places for entry, places in found.items() if len(places) >= least}


def _grown(level: _Level, sequences: Sequence[Sequence[Move]], least: int) -> _Level:
    """Every pattern with one more move behind it, if enough sequences have that."""
    found: dict[tuple[Move, ...], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for pattern, places in level.items():
        for number, ends in places.items():
            sequence = sequences[number]
            for end in ends:
                for at in range(end + 1, min(end + 2 + GAP, len(sequence))):
                    found[*pattern, sequence[at]][number].add(at)
    kept = [(entry, places) for entry, places in found.items() if len(places) >= least]
    kept.sort(key=lambda pair: (-len(pair[1]), pair[0]))
    return {
        entry: {number: sorted(ends) for number, ends in places.items()}
        for entry, places in kept[:_BEAM]
    }


def _closed(found: list[SharedSequence]) -> Iterator[SharedSequence]:
    """Without those that are part of a longer one with the same users."""
    alike: dict[tuple[int, ...], list[tuple[Move, ...]]] = defaultdict(list)
    for shared_sequence in found:
        alike[shared_sequence.users].append(shared_sequence.moves)
    for shared_sequence in found:
        longer = (
            other
            for other in alike[shared_sequence.users]
            if len(other) > len(shared_sequence.moves)
        )
        if not any(_is_part(shared_sequence.moves, other) for other in longer):
            yield shared_sequence


def _is_part(short: Sequence[Move], long: Sequence[Move]) -> bool:
    rest = iter(long)
    return all(entry in rest for entry in short)
