"""The text that several texts have in common, with `<*>` where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from math import fsum

from loki_memory.consolidation.similarity import content, jaccard, words

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
