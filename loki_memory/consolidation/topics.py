"""Topics: what facts that nobody filed under a category are about, and the summary of a topic.

A theme is a word that enough facts have and most have not; two, where they stand together. The
one that most of the facts left have is taken first, and they are filed under it; then the next.
What no theme took joins the one to whose facts it is nearest in words, if it is near at all. So a
theme has a name that its facts use, and the same facts always give the same themes.

The summary of a topic quotes its most central statements, which repeat each other least.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import fsum
from typing import NamedTuple

from loki_memory.consolidation.similarity import FUNCTION_WORDS, jaccard, words
from loki_memory.models import Belief
from loki_memory.models.text import shorten, stem

_WORD = re.compile(r"[A-Za-z][\w'-]*[A-Za-z]")
_MOST = 0.4  # of all facts: what more of them say tells none apart
_TOGETHER = 0.75  # of the facts with a word that have another beside it: both are the name
_NEAR = 0.15  # of the words that a fact shares with one of a theme: it joins that theme
# Words that go with any subject.
_GENERAL = frozenset(
    stem(word)
    for word in re.findall(
        r"\w+",
        "always never only must should run runs make makes call calls set sets get gets keep keeps "
        "work works need needs time file files code thing things change changes new old first last "
        "one two three day days week minute minutes hour hours name names line lines value values",
    )
)


class _Phrase(NamedTuple):
    """One or two stems that stand together, and how they are written."""

    stems: tuple[str, ...]
    written: str


def themes(texts: Mapping[str, str], least: int) -> dict[str, str]:
    """The theme of each fact that has one, by the ids of facts; a theme has at least so many."""
    said = {id_: _phrases(text) for id_, text in sorted(texts.items())}
    found: dict[str, str] = {}
    left = {id_: {each.stems for each in phrases} for id_, phrases in said.items()}
    while chosen := _best(left, least, max(_MOST * len(said), 2 * least)):
        having = [id_ for id_, stems in left.items() if chosen in stems]
        found |= dict.fromkeys(having, _name(chosen, [said[id_] for id_ in having]))
        left = {id_: stems for id_, stems in left.items() if id_ not in found}
    return found | _nearest(left, found, said)


def _best(left: Mapping[str, set[tuple[str, ...]]], least: int, most: float) -> tuple[str, ...]:
    """The word that most facts share, of those that enough share and most do not."""
    count = Counter(stems for each in left.values() for stems in each if len(stems) == 1)
    fit = {stems: number for stems, number in count.items() if least <= number <= most}
    return min(fit, key=lambda stems: (-fit[stems], stems), default=())


def _name(word: tuple[str, ...], said: Sequence[Sequence[_Phrase]]) -> str:
    """The word as most facts write it; with the one beside it, if that nearly always is."""
    pairs = Counter(
        phrase.stems
        for each in said
        for phrase in {entry.stems: entry for entry in each}.values()
        if len(phrase.stems) > 1 and word[0] in phrase.stems
    )
    usual = min(pairs, key=lambda pair: (-pairs[pair], pair), default=())
    stems = usual if pairs[usual] >= _TOGETHER * len(said) else word
    forms = Counter(phrase.written for each in said for phrase in each if phrase.stems == stems)
    return min(forms, key=lambda form: (-forms[form], form))


def _nearest(
    left: Iterable[str], found: Mapping[str, str], said: Mapping[str, Sequence[_Phrase]]
) -> dict[str, str]:
    """The themes of facts that have no such word, but share others with facts of one."""
    words = {
        id_: frozenset(phrase.stems[0] for phrase in each if len(phrase.stems) == 1)
        for id_, each in said.items()
    }
    joined: dict[str, str] = {}
    for id_ in left:
        near: defaultdict[str, float] = defaultdict(float)
        for other, theme in found.items():
            near[theme] = max(near[theme], jaccard(words[id_], words[other]))
        best = max(sorted(near), key=near.__getitem__, default="")
        if best and near[best] >= _NEAR:
            joined[id_] = best
    return joined


def _phrases(text: str) -> list[_Phrase]:
    """The words of content of a text, and pairs of them that stand together."""
    words = [word.lower() for word in _WORD.findall(text)]
    kept = [None if _is_general(word) else _Phrase((stem(word),), word) for word in words]
    pairs = [
        _Phrase(first.stems + second.stems, f"{first.written} {second.written}")
        for first, second in pairwise(kept)
        if first and second
    ]
    return [*filter(None, kept), *pairs]


def _is_general(word: str) -> bool:
    return word in FUNCTION_WORDS or stem(word) in _GENERAL


# -- Summaries -----------------------------------------------------------------------------------

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
