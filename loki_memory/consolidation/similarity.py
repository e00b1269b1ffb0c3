"""Similarity: how alike two texts are, what keeps them apart, and what several have in common.

`jaccard` over `words` compares requests: function words carry their shape. Over `grams` it
compares statements: trigrams inside stemmed content words forgive endings and typing errors.
Neither depends on what else is remembered, so a decision that was written stays true. `Marks`
are the exceptions: two statements that differ in a value, a version, a negation, a direction, a
bound or a name of code say different things; so do two of which one has a proper name, or more than
a few words of content, that the other lacks (`adds`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from math import ceil, fsum
from typing import NamedTuple

from loki_memory.models.text import stem, symbols

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Versions and amounts: `3.11`, `v2`, `80%`, `6700`. A digit inside a name is the name's.
_NUMBER = re.compile(r"(?<![\w.])v?(\d+(?:[.,:]\d+)*)(?=\D|$)(?![A-Za-z_])")
_VALUE = re.compile(r"\"([^\"\n]{1,40})\"|(?<!\w)'([^'\n]{1,40})'(?!\w)")
_QUOTED = re.compile(r"`([^`\n]{1,80})`")
_FORM = re.compile(r"<[\w\[\]:.-]{1,40}>(?:[-/_.:@]<[\w\[\]:.-]{1,40}>)*")  # <commit>-<tree>
_NEGATIONS = frozenset(
    _WORD.findall(
        "not no never cannot without neither nor none avoid avoids avoided avoiding "
        "forbid forbids forbidden prohibit prohibited disable disables disabled refuse "
        "refused stop"
    )
)
# Of two opposites each says the contrary of the other, in otherwise the same words.
_SIDES = frozenset(
    _WORD.findall(
        "above after ascending average before below bottom descending disable down earliest enable "
        "false fewer fewest first greater greatest higher highest larger largest last latest least "
        "less lower lowest max maximum min minimum more most newest off older oldest over smaller "
        "smallest sum top total true under up younger youngest"
    )
)
# What a statement is bounded to, whichever words say so: how many there are is not which they are,
# one of two is not both. `every` alone says no more than `all`; after a preposition it divides.
_BOUNDS = {
    "each": re.compile(r"\b(?:at|by|for|from|in|of|on|to|with) (?:each|every)\b|\bper\b"),
    "or": re.compile(r"\b(?:either|or)\b"),
    "both": re.compile(r"\bboth\b"),
    "only": re.compile(r"\b(?:except|only|unless)\b"),
    "count": re.compile(r"\bhow many\b|\b(?:amount|number) of\b|\bcount\b"),
}
# Whoever asks or tells begins with one of these, and means the same by all; numbers are a bound.
_TELLING = frozenset(
    _WORD.findall(
        "amount count describe display find get give list many note number please provide remember "
        "report return show state tell"
    )
)
_PROPER = re.compile(r"(?<=[\w,;] )[A-Z]\w*")  # `Kyle`, `APG`, but not the first word
_MORE = 0.2  # of the words of content of two statements that may be in one of them only
_FORM_OF = 0.6  # of the letters of the longer word that begin both: `produce`, `production`
_CONTRACTED = re.compile(r"n['\u2019]?t$")
_CONTRACTIONS = frozenset(
    _WORD.findall(
        "dont doesnt didnt isnt arent wasnt werent cant couldnt shouldnt wont wouldnt "
        "hasnt havent mustnt neednt"
    )
)
# Words that say nothing about what a statement is about. Closed: additions change decisions.
FUNCTION_WORDS = (
    frozenset(
        _WORD.findall(
            "a about above after again all also although always am an and any are as at be "
            "because been before being below between both but by can could did do does doing "
            "done down during each either every few for from further had has have having he "
            "her here hers him his how i if in into is it its itself just me might more most "
            "much must my need needs of off on once only or other our out over own per rather "
            "s same shall she should since so some such than that the their them then there "
            "these they this those though through to too under until up upon us use used uses "
            "using very via was we were what when where whether which while who whom whose "
            "why will with within would yet you your"
        )
    )
    | _NEGATIONS
)


def jaccard(text: frozenset[str], other: frozenset[str]) -> float:
    """The share of what both have among what either has; two empty sets share nothing."""
    both = len(text & other)
    return both / (len(text) + len(other) - both) if both else 0.0


@lru_cache(maxsize=65536)
def words(text: str) -> frozenset[str]:
    """All words in lower case, with the parts of `snake_case` and `camelCase` names."""
    return frozenset(_words(text))


def _words(text: str) -> list[str]:
    found: list[str] = []
    for word in _WORD.findall(text):
        if word.islower():  # nearly all are
            found.append(word)
            continue
        parts = _CAMEL.split(word)
        found += [part.lower() for part in parts]
        if len(parts) > 1:
            found.append(word.lower())
    return found


@lru_cache(maxsize=65536)
def content(text: str) -> tuple[str, ...]:
    """The stems of the words that carry meaning, in the order of the text."""
    meant = (word for word in _words(text) if word not in FUNCTION_WORDS and len(word) > 1)
    return tuple(map(stem, meant))


@lru_cache(maxsize=65536)
def grams(text: str) -> frozenset[str]:
    """Trigrams inside the stems of content words; `^` and `$` stand for the ends of a word."""
    return frozenset(
        padded[at : at + 3]
        for padded in (f"^{word}$" for word in content(text))
        for at in range(len(padded) - 2)
    )


class NameMarks(NamedTuple):
    """Marks that must agree before two statements count as one."""

    values: frozenset[str]
    is_negated: bool
    sides: frozenset[str]
    names: frozenset[str]
    bounds: frozenset[str]

    def differ(self, other: NameMarks) -> str:
        """Why these are two statements; empty if nothing speaks against one."""
        if self.values != other.values:
            return "different values"
        if self.is_negated != other.is_negated:
            return "one of them is negated"
        if self.names != other.names:
            return "different names"
        if self.bounds != other.bounds:
            return "different bounds"
        return "different directions" if self.sides != other.sides else ""


@lru_cache(maxsize=65536)
def marks(text: str) -> NameMarks:
    """The values, the parity of negations, the directions, names of code and bounds of a text."""
    quoted = (entry or other for entry, other in _VALUE.findall(text))
    values = (*_NUMBER.findall(text), *quoted)
    sides = frozenset(word for word in words(text) if word in _SIDES)
    bounds = frozenset(name for name, said in _BOUNDS.items() if said.search(text.lower()))
    return NameMarks(frozenset(values), _negations(text) % 2 == 1, sides, names(text), bounds)


def sameness(text: str, other: str) -> float:
    """The share of words that two statements have in common; 0 if their marks differ."""
    return 0.0 if differ(text, other) else jaccard(grams(text), grams(other))


def differ(text: str, other: str) -> bool:
    """Check whether two statements say different things, however alike they read."""
    return bool(marks(text).differ(marks(other))) or adds(text, other)


def adds(text: str, other: str) -> bool:
    """Check whether either of two statements speaks of something that the other does not.

    A proper name always is something; of other words of content a few may be only another wording.
    """
    first, second = _said(text), _said(other)
    more = {*_missing(first, second), *_missing(second, first)}
    if more & (proper(text) | proper(other)):
        return True
    return len(more) > _MORE * len(first | second)


def covers(text: str, other: str) -> bool:
    """Check whether a text speaks of everything that another one speaks of."""
    return not _missing(_said(other), _said(text))


@lru_cache(maxsize=65536)
def _said(text: str) -> frozenset[str]:
    return frozenset(content(text)) - _told()


@lru_cache(maxsize=1)
def _told() -> frozenset[str]:
    return frozenset(map(stem, _TELLING))


def _missing(of: frozenset[str], among: frozenset[str]) -> list[str]:
    """The stems of one text of which the other has not even another form."""
    return [entry for entry in of - among if not any(is_form(entry, other) for other in among)]


def is_form(text: str, other: str) -> bool:
    begun = ceil(_FORM_OF * max(len(text), len(other)))
    return text[:begun] == other[:begun]


@lru_cache(maxsize=65536)
def proper(text: str) -> frozenset[str]:
    return frozenset(stem(name.lower()) for name in _PROPER.findall(text))


@lru_cache(maxsize=65536)
def names(text: str) -> frozenset[str]:
    """Names of code: symbols, what stands in backquotes, and forms such as `<commit>-<hash>`."""
    found = (*symbols(text), *_QUOTED.findall(text), *_FORM.findall(text))
    return frozenset(name.strip("() ").lower() for name in found)


def opposed(text: str, other: str) -> bool:
    """Check whether statements about one thing contradict each other.

    One says of a name of code what the other denies, or they give something a form of as many
    parts as the other does not have.
    """
    first, second = marks(text), marks(other)
    if first.is_negated != second.is_negated and first.names & second.names:
        return True
    forms, others = _forms(text), _forms(other)
    return bool(forms and others) and forms.isdisjoint(others)


def can_oppose(text: str) -> bool:
    """Check for a name of code or a form: a statement without either is opposed to none."""
    return bool(names(text) or _forms(text))


@lru_cache(maxsize=65536)
def _forms(text: str) -> frozenset[int]:
    """Of how many places each form in a text consists: `<commit>` of one, `<commit>-<tree>` two."""
    return frozenset(form.count("<") for form in _FORM.findall(text))


def _negations(text: str) -> int:
    spoken = [word.lower() for word in _WORD.findall(text)]
    return sum(
        word in _NEGATIONS or word in _CONTRACTIONS or _is_contracted(word) for word in spoken
    )


def _is_contracted(word: str) -> bool:
    return ("'" in word or "\u2019" in word) and bool(_CONTRACTED.search(word))


# -- The text that several texts have in common, with `<*>` where they differ. --

GAP = "<*>"
LEFT_OUT = "…"  # how a gap is written where people read it
_COMPARED = 40  # texts, the commonest, that are compared with each other
_FEWEST = 3  # words without which a template is a row of gaps, and says less than an example


def common(texts: Iterable[str]) -> str:
    """Return what texts have in common, to be read: `Implement … endpoint`.

    The most typical of them where the template says too little.
    """
    distinct = sorted(set(texts), key=lambda text: (len(text), text))
    mined = template(distinct)
    return mined.replace(GAP, LEFT_OUT) if _says_enough(mined) else medoid(distinct)


def _says_enough(mined: str) -> bool:
    """Three words, or two that carry meaning around a single gap: `Implement <*> endpoint`."""
    if literals(mined) >= _FEWEST:
        return True
    gaps = mined.split().count(GAP)
    return gaps == 1 and len(content(mined.replace(GAP, " "))) >= _FEWEST - 1


def template(texts: Iterable[str]) -> str:
    """The words that all texts share; shorter texts are folded first, in any order."""
    ordered = sorted(set(texts), key=lambda text: (len(text), text))
    shared = ordered[0].split() if ordered else []
    for text in ordered[1:]:
        shared = _folded(shared, text.split())
        if not any(word != GAP for word in shared):
            break  # it gets no shorter
    return " ".join(shared)


def literals(mined: str) -> int:
    """Count how many words of a template are not gaps."""
    return sum(word != GAP for word in mined.split())


def _folded(text: list[str], other: list[str]) -> list[str]:
    """The longest common words of two texts, in the spelling of the first; gaps never double."""
    match = SequenceMatcher(a=_plain(text), b=_plain(other), autojunk=False)
    out: list[str] = []
    for operation, start, end, _, _ in match.get_opcodes():
        out += text[start:end] if operation == "equal" else [GAP]
    return [word for at, word in enumerate(out) if word != GAP or out[at - 1 : at] != [GAP]]


def _plain(text: list[str]) -> list[str]:
    return [word.lower().rstrip(".,;:!") or word for word in text]


def medoid(texts: Sequence[str]) -> str:
    """The text that is most like all others; among equals the shorter, then the first by letter."""
    said = dict(Counter(sorted(texts)).most_common(_COMPARED))
    if len(said) < 2:  # noqa: PLR2004 - nothing to compare
        return next(iter(said), "")
    held = [(words(text), times) for text, times in said.items()]
    return min(said, key=lambda text: (-_mean_likeness(words(text), held), len(text), text))


def _mean_likeness(own: frozenset[str], held: Sequence[tuple[frozenset[str], int]]) -> float:
    """The likeness of a text's words to those of all texts, each as often as it was said."""
    whole = fsum(jaccard(own, other) * times for other, times in held)
    total = sum(times for _, times in held)
    return round(whole / total, 9)  # an exact sum, rounded: the same in every order
