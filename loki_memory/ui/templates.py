"""The templates of pages: everything is escaped, and what a reader cannot see is made visible."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from loki_memory.models.text import plural, revealed, shorten
from loki_memory.resources import resource

_MINUTE, _HOUR, _DAY, _MONTH, _YEAR = 60, 3600, 86_400, 2_592_000, 31_536_000
_HEADINGS = re.compile(r"(?:^|\s)#{1,6} ([^#]+?)(?:\s#{1,6} |…$)")
_UNITS = ((_YEAR, "y"), (_MONTH, "mo"), (_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"))


class NavigationEntry(NamedTuple):
    """An entry of the navigation; `key` follows `g` on the keyboard."""

    name: str
    title: str
    key: str

    @property
    def path(self) -> str:
        return f"/{self.name}"


NAVIGATION = (
    NavigationEntry("now", "Now", "n"),
    NavigationEntry("beliefs", "Beliefs", "b"),
    NavigationEntry("review", "Review", "r"),
    NavigationEntry("timeline", "Timeline", "t"),
    NavigationEntry("graph", "Graph", "g"),
    NavigationEntry("files", "Files", "f"),
    NavigationEntry("handoffs", "Handoffs", "o"),
    NavigationEntry("health", "Health", "h"),
)


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
    made.filters |= {
        "ago": ago,
        "clip": shorten,
        "code": with_code,
        "exact": exact,
        "gist": gist,
        "plural": plural,
    }
    made.globals["navigation"] = NAVIGATION
    return made


def _visible(value: Any) -> Any:
    """Show hidden characters of stored text as code points; a number or markup stays."""
    return revealed(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def with_code(text: str) -> Markup:
    """Escape a text, and mark up as code what stands between backticks.

    >>> with_code("Run `a < b` first")
    Markup('Run <code>a &lt; b</code> first')
    """
    parts = revealed(text).split("`")
    if len(parts) % 2 == 0 and not text.endswith("…"):  # the last backtick has no other
        parts[-2:] = ["`".join(parts[-2:])]
    code = Markup("<code>{}</code>")
    pieces = (code.format(part) if at % 2 else escape(part) for at, part in enumerate(parts))
    return Markup("").join(pieces)


def gist(text: str, length: int = 140) -> str:
    """A prompt as a title: of a plan with several headings the first one, else its beginning.

    >>> gist("Implement the following plan: # Mend the lint ## Context It fails")
    'Mend the lint'
    """
    found = _HEADINGS.search(text)
    return shorten(found[1] if found else text, length)


def exact(at: str) -> str:
    """A moment for those who want it exactly.

    >>> exact("2026-01-20T09:00:00Z")
    '2026-01-20 09:00:00 UTC'
    """
    return at.replace("T", " ", 1).replace("Z", " UTC")


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
