"""The sentence that explains an error best, of those that were said until it was mended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loki_memory.consolidation.similarity import content, is_form
from loki_memory.ingest.repair_change import OWN_NAME
from loki_memory.ingest.sentences import sentences
from loki_memory.ingest.statement_score import CODE_NAME, HEDGE
from loki_memory.ingest.statements import tidy
from loki_memory.ingest.steps import Step
from loki_memory.models.diagnostics import Diagnostic
from loki_memory.models.error_noise import is_self_explaining
from loki_memory.models.lesson_text import points
from loki_memory.models.text import stem

_LEAST = 1.15  # of the score, chosen on hand-judged remedies
_LEAST_WORDS, _MOST_WORDS = 5, 45
_NEW_WORDS = 3  # of content, that an explanation adds to an error that says what to do
_NEW_OF_RULE = 2  # the same for a linter's complaint
_DOES = re.compile(  # an imperative
    r"(?:add|change|convert|extract|handle|inline|merge|move|refactor|remove|rename|replace|return"
    r"|split|switch|use|wrap)\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\b(?:needs? to|must|should|instead|requires?|expects?|has to|have to|the fix is"
    r"|by (?:\w+ing)|use `|make sure|only works|not supported)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|doesn't|does not|isn't|is not|aren't|wrong|missing|unused|no longer|only"
    r"|the (?:issue|problem) (?:is|was)|stale|renamed|already|false positive|can't|cannot|due to"
    r"|since|never|not (?:set|found|available|installed|configured|compatible))\b",
    re.IGNORECASE,
)
_EMPTY = re.compile(
    r"\W*(?:(?:there (?:is|are)|two|three|four|a few|some|several|one|\d+)\b.{0,40}"
    r"\b(?:issues?|errors?|failures?|problems?)|i (?:can )?see|i need to see|conflicts? (?:is|are)"
    r"|let me (?:check|look|see|read|find|run|try|fix|verify)|now (?:let me|run|i)|good|great"
    r"|the (?:error|output|test)(?: message)? (?:confirms|shows|indicates|proves|reproduces)"
    r"|all (?:tests|good)|the linter (?:thinks|sees|says|complains|flags|reports|found))\b",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\bnot (?:related|the focus|our|because of)\b|\bunrelated\b|\bpre-existing\b", re.IGNORECASE
)
_ANNOUNCED = re.compile(
    r"^(?:(?:now|so|ok(?:ay)?|good|right|ah)\b[\s,.!—-]*)*"
    r"(?:(?:let me|i'?ll|i will|i need to|we need to)\s+)?(?:(?:also|just|now|first) )?",
    re.IGNORECASE,
)
_REFUSED = re.compile(  # questions, the first person, hashes, paths of one machine
    r"\?$|\bI\b|\bmy\b|\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b|/(?:Users|home)/"
    r"|^[Tt]ry (?:an?other|a different|something)\b|\bcurrently\b|\byou(?:r|'re)?\b|\blines? \d+"
    r"|\b(?:simpler|minimal|standalone|direct) (?:test|script|check)\b|^(?:[Ii]t|[Tt]hat|[Tt]hey)'"
    r"|\bthe (?:correct|right|proper) (?:\w+ ){0,2}\w+\W?$"
    r"|\bthis (?:worktree|repo(?:sitory)?|branch|machine|session|checkout)\b"
    r"|\b(?:is|are) (?:also |still |now )\w+ing\b"
)
_SILENCING = re.compile(
    r"\b(?:mark\w* (?:\w+ ){0,2}as (?:safe|ignored)|suppress|silenc(?:e|ing))\b"
    r"|\b(?:fix is|add(?:ing)?|us(?:e|ing)|with) (?:an? |the )?\W*"
    r"(?:nolint|noqa|eslint-disable|ts-ignore|type: ?ignore|pylint: ?disable)",
    re.IGNORECASE,
)
# A note about one place that has still to be done: "`errcheck` on `log.Init` - need to check it".
_NOTE = re.compile(r"^\W*[\w-]+\W? (?:\w+ )?(?:in|on|at|for) .{1,60}? [\u2013\u2014-] ")
_FIRST_NAME = re.compile(r"^\W*`([a-z][a-z0-9]+)`")
_CALLED = re.compile(r"`([\w.]+)\(\)`")
_RULE_CODE = re.compile(r"\b[A-Z]{1,4}\d{3,5}\b")
# Words that every error and every sentence about one may have.
_GENERIC = frozenset(
    stem(word)
    for word in re.findall(
        r"\w+",
        "all any case cases command code complain could error exception expect fail failed failure "
        "fatal file fix fixed flag flagged get issue lint linter line module name need object path "
        "problem python report require requires rule run running test tests type value want "
        "warning",
    )
)


class _Said(NamedTuple):
    """A sentence as it would be told."""

    number: int  # of its message since the error
    text: str
    message: str  # in which it stands


def explanation(steps: Sequence[Step], error: str, finding: Diagnostic | None) -> str:
    """The sentence that explains an error best; empty if none does.

    A rule is met again in other places, where only a sentence helps that says what to do and why.
    """
    words = frozenset(content(error)) - frozenset(content(steps[0].head if not finding else ""))
    said = _said(text for step in steps for text in step.said)
    ranked = [
        (_score(sentence, words, finding), -sentence.number, sentence.text)
        for sentence in said
        if _adds(sentence.text, error, finding) and (not finding or _advises(sentence.text, error))
    ]
    return max((rank for rank in ranked if rank[0] >= _LEAST), default=(0.0, 0, ""))[2]


def _advises(sentence: str, error: str) -> bool:
    """Check if a sentence says what has to be, or plans something and says why."""
    is_plan = _DOES.match(sentence) is not None
    return _explains(sentence, error) if is_plan else bool(_TELLS.search(sentence))


def _explains(sentence: str, error: str) -> bool:
    """Check if a sentence gives a reason, or names some code that the error does not name."""
    names = (_bare(name) for name in CODE_NAME.findall(sentence))
    return bool(_REASON.search(sentence)) or any(name not in error for name in names)


def _tells(sentence: str) -> bool:
    """Check if a sentence says what to do."""
    return bool(_TELLS.search(sentence) or _DOES.match(sentence))


def _said(messages: Iterator[str]) -> Iterator[_Said]:
    """Sentences as they would be told, with the number of their message."""
    for number, text in enumerate(messages):
        for sentence in sentences(text):
            told = tidy(_ANNOUNCED.sub("", sentence).rstrip(":"))
            fits = _LEAST_WORDS <= len(told.split()) <= _MOST_WORDS
            if fits and not _is_unusable(told):
                yield _Said(number, told, text)


def _is_unusable(sentence: str) -> bool:
    """Check for a sentence that says nothing to a reader who was not there."""
    is_local = _REFUSED.search(sentence) or _NOTE.match(sentence) or points(sentence)
    return bool(is_local) or _silences_blindly(sentence)


def _silences_blindly(sentence: str) -> bool:
    """Check for the advice to silence a rule that does not say why it may be silenced."""
    return bool(_SILENCING.search(sentence) and not _REASON.search(sentence))


def _score(sentence: _Said, error: frozenset[str], finding: Diagnostic | None) -> float:
    text, number = sentence.text, sentence.number
    own = frozenset(content(text))
    if _ELSEWHERE.search(sentence.message if finding else text):
        return 0.0
    if finding and (_is_of_one_place(text, finding) or not _is_of_rule(sentence, own, finding)):
        return 0.0
    if not finding and not (own & error) - _GENERIC:
        return 0.0  # it speaks of something else
    score = 0.25 * min(2, len(own & error)) + 0.35 * min(4, len(own - error)) / 4
    score += 0.7 * _tells(text)
    score += 0.5 * (_REASON.search(text) is not None)
    score += 0.25 * (CODE_NAME.search(text) is not None)
    score += 0.35 * (number == 0)
    score += 0.3 * (finding is not None and finding.rule in text)
    score -= 0.9 * (_EMPTY.match(text) is not None)
    score -= 0.4 * (HEDGE.search(text) is not None)
    return score - 0.15 * number


def _adds(sentence: str, error: str, finding: Diagnostic | None) -> bool:
    """Check that a sentence says more than its error.

    An error that says itself what to do leaves most to say. What a rule complains of is said again
    where it is explained, in other forms of its words.

    >>> _adds("Need to use `exec.CommandContext`.", "use exec.CommandContext (noctx)", None)
    False
    >>> unsorted = "imports are not sorted"
    >>> _adds("The linter requires the imports sorted.", unsorted, Diagnostic("isort", unsorted))
    False
    """
    least = _NEW_WORDS if is_self_explaining(error) else _NEW_OF_RULE if finding else 0
    if not least:
        return True
    said = frozenset(content(sentence)) - _GENERIC
    known = frozenset(content(f"{error} {finding.rule if finding else ''}"))
    return len(said - {*_share(said, known)}) >= least


def _is_of_rule(sentence: _Said, words: frozenset[str], finding: Diagnostic) -> bool:
    """Check if a sentence names the rule, or what it complains of.

    A plan ("refactor to a table") may leave that to the rest of its message.
    """
    complained = frozenset(content(finding.message))
    if finding.rule in sentence.text or _share(words, complained):
        return True
    rest = frozenset(content(sentence.message))
    is_plan = sentence.number == 0 and _DOES.match(sentence.text) is not None
    return is_plan and (finding.rule in sentence.message or len(_share(rest, complained)) > 1)


def _share(words: frozenset[str], others: frozenset[str]) -> list[str]:
    """Words of which the others have a form: "duplication" is a form of "duplicate"."""
    return [
        word for word in words if word in others or any(is_form(word, other) for other in others)
    ]


def _is_of_one_place(sentence: str, finding: Diagnostic) -> bool:
    """Check if a sentence is about one place in the code, or about another rule of the linter.

    The names of code in a message are those of its place, and so are all others but the rule's.

    >>> _is_of_one_place("Mark the G204 as safe", Diagnostic("gosec", "G304: Potential inclusion"))
    True
    >>> unchecked = Diagnostic("errcheck", "Error return value of `log.Init` is not checked")
    >>> _is_of_one_place("`log.Init` must be handled or ignored.", unchecked)
    True
    """
    names = {*OWN_NAME.findall(sentence), *_RULE_CODE.findall(sentence)}
    names |= {*_FIRST_NAME.findall(sentence), *_CALLED.findall(sentence)}
    names |= {name for name in map(_bare, CODE_NAME.findall(sentence)) if name in finding.message}
    return any(name not in f"{finding.rule} {finding.kind}" for name in names)


def _bare(name: str) -> str:
    return name.strip("`()")
