"""Prompts that state a goal, told from assent, orders without content, and commands of memory."""

from __future__ import annotations

import re

_ASSENT = re.compile(
    r"(?:(?:yes|yeah|yep|yup|y|ok|okay|k|sure|right|correct|agreed|perfect|great|nice|good|cool|"
    r"thanks|thank you|continue|go on|go ahead|go for it|proceed|carry on|keep going|do it|"
    r"do that|do so|please|please do|sounds good|looks good|lgtm|next|resume|retry|try again|"
    r"again|no|nope|\d+|[a-d]|both|all|let'?s do (?:it|that|this)|it|that|now)\b[\s.,!;:)-]*)+",
    re.IGNORECASE,
)
_POLITE = (
    r"(?:(?:please|now|yes|ok(?:ay)?|then|and|also|just|let'?s|can you|go ahead and|you can)\b"
    r"[\s,]*)*"
)
_WHAT = (
    r"(?:\s+(?:it|this|that|them|these|those|all|everything|(?:the |your |my )?changes?"
    r"|(?:a |the )?pr|to (?:main|master|origin|remote)|again|too|please|now|up))*"
)
_STEP = (
    r"(?:commit|push|merge|stage|rebase|pull"
    rf"|(?:create|open|make|update) (?:a |the )?(?:draft )?(?:pr|pull request)){_WHAT}"
)
_ORDER = re.compile(
    rf"{_POLITE}{_STEP}(?:[\s,&+]*(?:and|then|&)?\s*{_POLITE}{_STEP})*[\s.!]*", re.IGNORECASE
)
_OURS = re.compile(
    r"/(?:loki|recall|remember|memory|compact|context|handoff|clear|resume|model)\b", re.IGNORECASE
)
_RESUMES = re.compile(
    r"(?:continue|go on|resume|carry on|keep going|pick up)\b.{0,60}"
    r"\b(?:left off|compact\w*|where|before|stopped|session)\b.{0,40}",
    re.IGNORECASE,
)


def states_goal(text: str) -> bool:
    """Check whether a prompt says what to do, not only that it shall be done."""
    said = text.strip()
    forms = (_ASSENT, _ORDER, _RESUMES)
    return bool(said) and not _OURS.match(said) and not any(form.fullmatch(said) for form in forms)
