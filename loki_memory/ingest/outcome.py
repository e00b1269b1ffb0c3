"""The outcome of an episode, judged from what was seen: nobody's word is taken for it alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from loki_memory.ingest.boundaries import Stretch
from loki_memory.ingest.steps import CHECKS, Step
from loki_memory.ingest.turns import CALL, SAY, STOP

_SUMMARY_WORDS = 200
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_COMMIT = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_COMMITTED = re.compile(r"\[[\w./+-]+(?: \([\w -]+\))? ([0-9a-f]{7,40})\]")
_GOOD = re.compile(
    r"\W*(?:(?:ok(?:ay)?|yes|yeah)\W+)?"
    r"(?:thanks?\b|thank you|perfect|great|awesome|excellent|lgtm|nice\b|well done|works\b"
    r"|looks? (?:good|great)|(?:that|this|it)(?:'s| is)? (?:works|worked|good|great|perfect)"
    r"|(?:please )?commit\b|(?:let'?s |please |can you )(?:now )?commit|ship it"
    r"|(?:create|open|make) (?:a |the )?(?:pr|pull request)\b)",
    re.IGNORECASE,
)
_FINISHED = re.compile(
    r"\b(?:all (?:\w+ )?(?:tests? )?pass\w*|done|fixed|implemented|completed?|successfully|created"
    r"|updated|added|removed|committed|pushed|resolved|works|is now|are now|ready|replaced"
    r"|renamed)\b",
    re.IGNORECASE,
)
_GAVE_UP = re.compile(
    r"\b(?:unable to|could ?n[o']t|cannot proceed|still (?:fail|broken)|not able to|blocked)",
    re.IGNORECASE,
)
_NOT = r"(?:still|(?:still )?(?:does ?n[o']t|did ?n[o']t|is ?n[o']t|not))"
_BAD = re.compile(
    r"\W*(?:(?:no|nope|hmm+|wrong|undo|revert)\b"
    rf"|(?:(?:it|that|this|the [\w ]{{1,30}}?) )?(?:is |are )?{_NOT} "
    r"(?:fail|work|broken|right|correct|pass|what|the same|see|get|help)"
    r"|(?:i'?m |i )?(?:still )?(?:get|getting|see|seeing) (?:an?|the|this) (?:same )?"
    r"(?:error|issue)"
    r"|that broke|you broke|(?:the |that )?(?:tests?|lint|build|ci)\b[\w ]{0,20}\bfail)",
    re.IGNORECASE,
)


def judged(steps: Sequence[Step], stretch: Stretch, *, stopped: bool) -> str:
    """success, failure, partial or unknown."""
    verdicts = [verdict for reply in stretch.replies() if (verdict := _said(reply))]
    if verdicts:
        return verdicts[-1]
    checks = [step for step in steps if step.is_shell and step.ended and _is_check(step)]
    passed = checks[-1].worked if checks else None
    if stopped:
        return "partial" if passed is not False else "failure"
    if passed is False:
        return "partial" if commit(steps) else "failure"
    if passed or commit(steps):
        return "success"
    return _closed(closing_message(stretch), steps)


def _closed(closing: str, steps: Sequence[Step]) -> str:
    """The outcome as the closing message tells it; a question that got its answer is a success."""
    if not closing or (steps and not steps[-1].worked):
        return "unknown"
    if _GAVE_UP.search(closing):
        return "partial"
    if closing.rstrip().endswith("?") and not _FINISHED.search(closing):
        return "unknown"
    return "success" if _FINISHED.search(closing) or not _changes(steps) else "unknown"


def _changes(steps: Sequence[Step]) -> bool:
    return any(step.hunks for step in steps)


def commit(steps: Sequence[Step]) -> str:
    """The last commit that the steps made; empty if they made none."""
    for step in reversed(steps):
        if step.worked and step.is_shell and _COMMIT.search(step.target):
            found = _COMMITTED.search(step.answer)
            if found:
                return found[1]
    return ""


def _said(following: str) -> str:
    if _BAD.match(following):
        return "failure"
    return "success" if _GOOD.match(following) else ""


def _is_check(step: Step) -> bool:
    return CHECKS.search(step.target) is not None


def closing_message(stretch: Stretch) -> str:
    """Return what the agent said last, if it did nothing afterwards; empty if it was cut off."""
    said = [turn for turn in stretch.turns if turn.kind in {SAY, CALL, STOP}]
    if not said or said[-1].kind != SAY:
        return ""
    words = _FENCE.sub(" ", said[-1].text).split(" ")
    text = " ".join(words[:_SUMMARY_WORDS]).strip()
    return text + ("…" if len(words) > _SUMMARY_WORDS else "")
