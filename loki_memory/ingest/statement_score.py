"""The score of a sentence: the chance that a careful engineer would have written it down.

Some sentences cannot be lessons whatever they say: questions, plans, hedges, progress. A linear
score over cheap features of the text tells how much the others are worth.
`benchmarks/lessons/statements.py --refit` fits the weights on one project and reports on another.
"""

from __future__ import annotations

import math
import re

SAY, WRITTEN, USER, COMPACT = "say", "written", "user", "compact"  # where a sentence stood

_FEWEST_WORDS, _FEWEST_OF_USER, _MOST_WORDS = 7, 4, 60


def _words(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{text})\b", re.IGNORECASE)


def _start(text: str) -> re.Pattern[str]:
    return re.compile(rf"\W*(?:{text})\b", re.IGNORECASE)


# -- sentences that are refused --------------------------------------------------------------------

_LEAD = (
    r"(?:(?:ok(?:ay)?|good|great|now|so|right|yes|no|perfect|alright|well|ah|hmm|and|but|then)\b"
    r"[\s,.!:;—-]*)*"
)
_PLAN = _start(_LEAD + r"(?:let me|let's|i'?ll|i'?m|i need|i see|i can|i've|we'?ll|let us|waiting)")
_ANNOUNCES = re.compile(
    r"\b(?:let me|I'll|would you like|want me to|going to|I)\b|\A\W*next\b|<thinking>|[⚠✅❌]",
)
HEDGE = _words(
    r"might|maybe|perhaps|probably|likely|seems?|looks? like|could be|i think|appears?|suspect"
    r"|may be|may need|presumably|possibly"
)
_VOLATILE = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,40}\b|\b\d\d:\d\d:\d\d\b")
_PERSONAL = re.compile(r"/(?:Users|home)/\w|[\w.+-]+@[\w-]+\.\w", re.IGNORECASE)
_CODE_LINE = re.compile(
    r"\b\w+ ?= ?[\['\"{(]|^\s*(?:import|from [\w.]+ import|def|class|return|assert|raise) |[;{]\s*$"
)
_REFUSALS = (_CODE_LINE.search, _ANNOUNCES.search, HEDGE.search, _PLAN.match)


def is_refused(sentence: str, source: str) -> bool:
    """Check whether a sentence cannot be a lesson whatever it says."""
    fewest = _FEWEST_OF_USER if source == USER else _FEWEST_WORDS
    if not fewest <= len(sentence.split()) <= _MOST_WORDS or sentence.endswith(":"):
        return True
    if _PERSONAL.search(sentence) or _VOLATILE.search(sentence):
        return True
    if source == USER:
        return False
    return sentence.endswith("?") or any(refuses(sentence) for refuses in _REFUSALS)


# -- features --------------------------------------------------------------------------------------

CODE_NAME = re.compile(
    r"`[^`]+`|\b\w+\.\w+\(|\b[A-Za-z]\w*\(\)|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*"
    r"|\b[A-Za-z]+_\w+|(?<!\S)--?[a-z][\w-]+|\b[\w-]+/[\w./-]+|\b\w+\.\w{1,4}\b"
)
_STATE_VERB = (
    r"(?:is|are|has|have|uses?|returns?|reads?|writes?|requires?|needs?|fails?|falls back|ignores?"
    r"|contains?|expects?|calls?|runs?|stores?|holds?|keeps?|creates?|deletes?|removes?|sets?|gets?"
    r"|handles?|supports?|means|depends|lives?|checks?|skips?|breaks?|causes?|works?|matches"
    r"|includes?|provides?|does|do|takes?|allows?|defaults?|points?|produces?|accepts?|rejects?"
    r"|can't|cannot|can|must|should|won't|doesn't|don't|isn't|aren't)"
)
PRESENT = re.compile(rf"[\w`)\"]\s+(?:(?:also|only|always|never|still|already) )?{_STATE_VERB}\b")
NEGATIVE = re.compile(
    r"\b(?:not|no longer|without|fail(?:s|ed|ing|ure)?|broken|missing|silently|stale|wrong|never"
    r"|race|panics?|leaks?|mismatch\w*|drops?|dropped|false positives?|corrupt\w*|cannot)\b"
    "|n['\u2019]t\\b",
    re.IGNORECASE,
)
DEFECT = _words(
    r"bug|broken|missing|fails?|failed|failing|silently|stale|wrong|incorrect(?:ly)?|race|panics?"
    r"|leaks?|mismatch\w*|dropped|drops?|corrupt\w*|crash(?:es)?|does(?:n't| not)|is(?:n't| not)"
    r"|are(?:n't| not)|not (?:handled|updated|called|set|cleared)"
    r"|never (?:calls?|sets?|updates?|clears?)|raises?|prevents|without (?:check|validat|updat)ing"
    r"|needs? (?:wrapping|fixing|updating|handling|checking)"
    r"|the (?:issue|problem|root cause) (?:is|was)"
)
STATED = re.compile(  # a fragment has no verb at all
    rf"\b{_STATE_VERB}\b|\b(?:was|were|had|did)\b|\b[a-z]{{2,}}ed\b|(?:`|\b\w*[A-Z_]\w*(?:\(\))?)\s+[a-z]{{3,}}s\b"
)
PAST = _words(
    r"was|were|had|did|fixed|added|removed|changed|updated|moved|renamed|replaced|created|failed"
    r"|broke|caused|made|used|found|introduced"
)
_LOCAL = re.compile(
    r"#\d+|\b[A-Z]{2,}-?\d+\b|\blines? \d+|:\d+\b"
    r"|\b(?:Task|Story|Stories|Phase|Epic|Issue|Step) #?\d"
    r"|\bPR\b|\breview\b|\bthread\b|\b\d+ tests?\b|\buser asked\b|\bcurrent work\b|\bhere's\b"
    r"|\bthe following\b|\[\w+\]\["
)
WEIGHTS = {
    "bias": -2.51,
    "words": 0.75,
    "names": 0.85,
    "written": 0.25,
    "compact": 0.14,
    "restated": 0.49,
    "present": 0.35,
    "past": 0.29,
    "name_first": 0.16,
    "negative": 0.34,
    "local": -0.23,
}


def features(sentence: str, source: str, restated: int = 0) -> dict[str, float]:
    """The features of a sentence that stood in `source` and was said `restated` times more."""
    is_present = PRESENT.search(sentence) is not None
    first = " ".join(sentence.split()[:3])
    return {
        "bias": 1.0,
        "words": math.log(1 + len(sentence.split())) - 2.5,
        "names": min(4, len(set(CODE_NAME.findall(sentence)))) / 2,
        "written": float(source == WRITTEN),
        "compact": float(source == COMPACT),
        "restated": min(4, restated) / 2,
        "present": float(is_present),
        "past": float(not is_present and PAST.search(sentence) is not None),
        "name_first": float(CODE_NAME.search(first) is not None),
        "negative": float(NEGATIVE.search(sentence) is not None),
        "local": float(_LOCAL.search(sentence) is not None),
    }


def score(sentence: str, source: str, restated: int = 0) -> float:
    """The chance, between 0 and 1, that a sentence is worth keeping."""
    found = features(sentence, source, restated)
    return 1 / (1 + math.exp(-sum(WEIGHTS[name] * value for name, value in found.items())))
