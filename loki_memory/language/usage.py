"""The use of the language model: its cost by day, for the budget of a day, and its state."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.files import disk
from loki_memory.language.wordings import OFF, read_wordings

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace


_DAYS = 31  # that are kept
_CENTS = 100 * 1_000_000  # a price is in cents for a million tokens


class Usage(NamedTuple):
    """Questions to a language model, and what they cost."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0  # US dollars, as far as it is known

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, other: Usage) -> Usage:
        """The sum of both."""
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
        )


def price(input_tokens: int, output_tokens: int, input_price: int, output_price: int) -> float:
    """The cost in dollars, from prices in cents for a million tokens.

    >>> price(1_000_000, 100_000, 100, 500)
    1.5
    """
    return (input_tokens * input_price + output_tokens * output_price) / _CENTS


def usage_path(local: Path) -> Path:
    return local / "language" / "usage.json"


def read_usage(local: Path) -> dict[str, Usage]:
    """Read the cost of each day; a file that cannot be read counts as nothing."""
    try:
        days = json.loads(disk.read_bytes(usage_path(local)) or b"{}")
        return {day: Usage(*values) for day, values in days.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def note_usage(local: Path, day: str, new: Usage) -> None:
    """Add to the cost of a day."""
    days = read_usage(local)
    days[day] = days.get(day, Usage()).plus(new)
    kept = {name: days[name] for name in sorted(days)[-_DAYS:]}
    disk.write_bytes(usage_path(local), json.dumps(kept, indent=1).encode(), private=True)


# The language model of a workspace in a line: which it is, what it has done, what it cost.

_COMMANDS = frozenset({"claude", "codex"})


class LanguageState(NamedTuple):
    """The line of a doctor about the language model."""

    said: str
    is_ready: bool


def language_state(workspace: OpenWorkspace) -> LanguageState | None:
    """Describe the language model; None if it is off."""
    name = workspace.config.text("language.backend")
    if name == OFF:
        return None
    if name in _COMMANDS and shutil.which(name) is None:
        return LanguageState(f"{name} is chosen, and there is no such command on PATH", False)
    if name == "openai" and not workspace.config.text("language.url"):
        return LanguageState("openai is chosen, and `language.url` names no server", False)
    local = workspace.layout.local
    wordings = read_wordings(local).values()
    worded = sum(bool(wording.text) for wording in wordings)
    today = read_usage(local).get(workspace.now()[:10], Usage())
    cost = f", ${today.cost:.4f}" if today.cost else ""
    spent = f"today {today.calls} calls, {today.tokens:,} tokens{cost}"
    return LanguageState(
        f"{name}: {worded} worded, {len(wordings) - worded} refused; {spent}", True
    )
