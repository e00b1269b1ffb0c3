"""The summary of a topic: its most central statements, which repeat each other least."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from loki_memory.consolidation.similarity import jaccard, words
from loki_memory.models import Belief
from loki_memory.models.text import shorten

ANY = "<*>"  # the name in the key of an error that stands for all names
_QUOTED, _LENGTH = 5, 600  # of a topic: statements, characters
_LINE = 200  # characters of a statement
_CENTRAL = 60  # members that are compared with each other: the surest


def summary(members: Sequence[Belief]) -> str:
    """The most central statements, the surest first, as many as fit."""
    settled = [member for member in members if member.status != "disputed"] or members
    surest = sorted(settled, key=lambda member: (-(member.confidence or 0), member.id))
    chosen = _central([cut(member.title().replace(ANY, "…")) for member in surest[:_CENTRAL]])
    kept: list[str] = []
    for text in chosen:
        if len("; ".join([*kept, text])) <= _LENGTH - 40:
            kept.append(text)
    more = len(members) - len(kept)
    return "; ".join(kept) + (f"; and {more} more" if more else "")


def _central(texts: Sequence[str]) -> list[str]:
    """Return those that are most like all others and least like each other, in the order given."""
    said = [words(text) for text in texts]
    centre = [fsum(jaccard(entry, other) for other in said) / len(said) for entry in said]
    chosen: list[int] = []
    while len(chosen) < min(_QUOTED, len(texts)):
        rest = [at for at in range(len(texts)) if at not in chosen]
        chosen.append(max(rest, key=lambda at: (_marginal(at, chosen, said, centre), -at)))
    return list(dict.fromkeys(texts[at] for at in sorted(chosen)))


def _marginal(
    at: int, chosen: Sequence[int], said: Sequence[frozenset[str]], centre: Sequence[float]
) -> float:
    """Maximal marginal relevance: 0.7 for being central, 0.3 against repeating what is there."""
    nearest = max((jaccard(said[at], said[other]) for other in chosen), default=0.0)
    return round(0.7 * centre[at] - 0.3 * nearest, 9)


def cut(text: str) -> str:
    """A text on one line, cut at a word."""
    return shorten(" ".join(text.split()), _LINE, at_word=True)
