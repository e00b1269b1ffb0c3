"""Rejected values: in which spellings, and where in a record, they are still the same value.

Two texts are one value if the same letters and digits follow each other in them: case, width,
look-alike letters, accents that stand by themselves, invisible and blank characters, spaces,
punctuation, quotes, bullets and Markdown make no other value. `C++`, `C#` and comparisons with a
number keep their signs. A value comes back not only as a statement: a remedy, an approach, a step
of a skill, or a part of a text that joins several says it too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from loki_memory.models.ids import digest
from loki_memory.models.text import look_alike

_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters of Hangul that are blank
_SIGNS = re.compile(r"(?<![a-z])(?:[cfj](?=[+#])|g(?=\+\+))[+#]{1,2}|[<>=!]=?\s*(?=[\d.])|-(?=\d)")
_PARTS = re.compile(r"[;\n\r|\u2022\u2023\u25aa]|\s*(?:-+>|=+>|\u2192)\s*|(?<=[.!?])\s+|:\s+")
_SAYS = (
    *("statement", "pattern", "what_fails", "lesson", "correct_approach"),
    *("description", "name"),
)
_GIVES = ("prevention", "resolution", "why")  # parts without which a record still says something


@lru_cache(maxsize=4096)
def rejected_form(text: str) -> str:
    """The letters and digits of a value, by which it is known in any spelling.

    >>> rejected_form('- **"Use  TABS."**') == rejected_form("use tabs")
    True
    >>> rejected_form("Use C++") == rejected_form("Use C")
    False
    """
    plain = look_alike(text)
    kept = "".join(filter(_counts, plain))
    signs = "".join(sign.strip() for sign in _SIGNS.findall(plain))
    return f"{kept} {signs}".strip() or plain.strip()


def value_id(text: str) -> str:
    """The id of a value, the same for all its spellings."""
    return f"value-{digest('value', rejected_form(text))}"


def _counts(character: str) -> bool:
    return character.isalnum() and character not in _FILLERS


def parts(text: str) -> Iterator[str]:
    """A text, and the parts of which it is joined."""
    yield text
    found = [part for part in _PARTS.split(text) if part.strip()]
    if len(found) > 1:
        yield from found


def without_rejected(
    record: Mapping[str, Any], is_rejected: Callable[[str], bool]
) -> Mapping[str, Any] | None:
    """A record's document without remedies and reasons that were rejected; None if it says one."""

    def says(value: object) -> bool:
        return isinstance(value, str) and any(map(is_rejected, parts(value)))

    if any(says(record.get(name)) for name in _SAYS) or any(map(says, _steps(record))):
        return None
    gone = {name for name in _GIVES if says(record.get(name))}
    remedies = record.get("resolutions")
    kept = (
        [each for each in remedies if not says(_done(each))] if isinstance(remedies, list) else []
    )
    errors = record.get("errors_encountered")
    met = [each for each in errors if not says(_mended(each))] if isinstance(errors, list) else []
    conditions = record.get("conditions")
    held = [each for each in conditions if not says(each)] if isinstance(conditions, list) else []
    if (
        not gone
        and kept == (remedies or [])
        and held == (conditions or [])
        and met == (errors or [])
    ):
        return record
    found = {name: value for name, value in record.items() if name not in gone}
    lists = (
        ("resolutions", remedies, kept),
        ("conditions", conditions, held),
        ("errors_encountered", errors, met),
    )
    return {**found, **{name: new for name, old, new in lists if old}}


def _mended(error: object) -> object:
    return error.get("resolution") if isinstance(error, Mapping) else None


def _done(resolution: object) -> object:
    return resolution.get("do") if isinstance(resolution, Mapping) else None


def _steps(record: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a skill."""
    body = record.get("body")
    yield from body.splitlines() if isinstance(body, str) else ()
