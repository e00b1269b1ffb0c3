"""A lesson that somebody puts into words: when it applies, what to do then, and why."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from loki_memory.errors import InvalidRecord
from loki_memory.models.kinds import Kind


class WordedLesson(NamedTuple):
    """A lesson as it is remembered: the statement, its kind, and the fields besides."""

    text: str
    kind: Kind
    details: dict[str, Any]


def lesson(when: str, do: str, why: str = "", error: str = "") -> WordedLesson:
    """Put a lesson into the form of a pattern, or of a warning if it is about an error.

    >>> lesson("you add an endpoint", "run `make types` first").text
    'When you add an endpoint: run `make types` first'
    """
    refuse_long(when=when, do=do, why=why)
    for name, value in (("when", when), ("do", do)):
        if not value.strip():
            advice = 'Say it as in: loki-mem lesson "you add an endpoint" --do "run make types".'
            raise InvalidRecord("is empty", field=name, advice=advice)
    when = re.sub(r"^when(?:ever)?\s+", "", when.strip().rstrip(".:,"), flags=re.IGNORECASE)
    do, why, error = do.strip(), why.strip(), " ".join(error.split())
    if error:
        details = {"why": why or f"when {when}", "prevention": do, "resolutions": [{"do": do}]}
        return WordedLesson(error, "anti-pattern", details)
    because = f", because {why.rstrip('.')}" if why else ""
    details = {"conditions": [when], "correct_approach": do}
    return WordedLesson(f"When {when}: {do.rstrip('.')}{because}", "pattern", details)


_LONGEST = 16 << 10  # bytes


def refuse_long(**texts: object) -> None:
    """Refuse a text that is no statement any more: it has a few sentences, and git keeps it.

    For agents and people who type one; a program that stores turns of talk may need more.
    """
    for name, text in texts.items():
        size = len(text.encode(errors="surrogatepass")) if isinstance(text, str) else 0
        if size > _LONGEST:
            raise InvalidRecord(
                f"has {size:,} bytes, and a statement has at most {_LONGEST:,}",
                field=name,
                advice="Say it in a few sentences, and name the file that has the rest.",
            )
