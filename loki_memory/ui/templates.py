"""The templates of pages: everything is escaped, and what a reader cannot see is made visible."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from loki_memory.models.hidden_characters import revealed
from loki_memory.models.text import shorten
from loki_memory.resources import resource
from loki_memory.ui.navigation import NAVIGATION

_MINUTE, _HOUR, _DAY, _MONTH, _YEAR = 60, 3600, 86_400, 2_592_000, 31_536_000
_UNITS = ((_YEAR, "y"), (_MONTH, "mo"), (_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"))


@cache
def environment() -> Environment:
    """The templates in `templates/ui/`."""
    made = Environment(
        autoescape=True,
        loader=FileSystemLoader(resource("templates") / "ui"),
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"ago": ago, "clip": shorten, "plural": plural}
    made.globals["navigation"] = NAVIGATION
    return made


def _visible(value: Any) -> Any:
    """Show hidden characters of stored text as code points; a number or markup stays."""
    return revealed(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def ago(at: str, now: str) -> str:
    """The time since a moment, in words.

    >>> ago("2026-01-20T09:00:00Z", "2026-01-20T11:30:00Z")
    '2 h ago'
    """
    try:
        seconds = (_moment(now) - _moment(at)).total_seconds()
    except ValueError:
        return at
    found = next(((seconds // size, unit) for size, unit in _UNITS if abs(seconds) >= size), None)
    if found is None or seconds < 0:
        return "just now" if seconds > -_DAY else at[:10]
    return f"{found[0]:.0f} {found[1]} ago"


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def plural(number: int, noun: str) -> str:
    """Count a noun.

    >>> plural(1, "session"), plural(2, "memory")
    ('1 session', '2 memories')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"
