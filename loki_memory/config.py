"""Settings: of the workspace, of the user, of the environment; each with its meaning.

The workspace's `config.toml` comes with a clone and is data: a setting that names a path (a command
or an address would be another) is read from the user's file or the environment only. In a matter of
privacy or trust the workspace may be stricter than its user, but not laxer. Consolidation must give
the same result in every clone: its settings are read from the workspace's file only.
"""

from __future__ import annotations

import sys
from typing import Any, Literal, NamedTuple

FORMAT = 1
GIT_MODES = ("inline", "branch", "off")
_SWITCH = {"true": 1, "1": 1, "false": 0, "0": 0}
_LONGEST = 40  # characters of a value or a name in a message
_HIDDEN = "(hidden)"


class Setting(NamedTuple):
    """A key, its default, and its meaning; the default's type is the setting's: number or text."""

    name: str
    default: int | str
    meaning: str
    basis: str  # where the default comes from: a measurement, a document, or a decision
    is_switch: bool = False  # 0 or 1, written `false` or `true`
    names_path: bool = False
    shared: bool = False  # read from the workspace only, so that all its users have the same
    least: int = 0
    most: int | None = None
    choices: tuple[str, ...] = ()  # the values that a text may have, the strictest last
    is_personal: bool = False  # the user's alone: a workspace's file cannot set it
    is_secret: bool = False  # never shown
    # In a matter of privacy or trust: the lower or the higher of two values is stricter, or every
    # other value is laxer.
    stricter: Literal["", "lower", "higher", "same"] = ""
    # Less strict than the default, a value in the workspace's file counts once its user set it in
    # this clone: another author's file may not publish what happens here.
    asks: bool = False

    @property
    def variable(self) -> str:
        """The environment variable; empty if there is none."""
        return "" if self.shared else self.spelled

    @property
    def spelled(self) -> str:
        return "LOKI_" + self.name.replace(".", "_").upper()

    @property
    def form(self) -> str:
        if self.choices:
            return f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
        if isinstance(self.default, str):
            return "a text"
        if self.is_switch:
            return "true or false"
        upwards = "or more" if self.most is None else f"to {self.most}"
        return f"a whole number, {self.least} {upwards}"

    def parsed(self, raw: Any) -> int | str | None:
        """Parse the text of a file or a person; None if it is no value."""
        if self.choices:
            return raw if raw in self.choices else None
        if isinstance(self.default, str):
            return raw if isinstance(raw, str) else None
        if self.is_switch:
            return _SWITCH.get(str(raw).lower()) if is_plain(raw) else None
        return self._within(raw)

    def widens(self, value: int | str, other: int | str) -> bool:
        """Check if a value allows more than another one, in a matter of privacy or trust."""
        if self.stricter == "same":
            return value != other
        if self.stricter == "higher":
            return self._rank(value) < self._rank(other)
        return self.stricter == "lower" and self._rank(value) > self._rank(other)

    def _rank(self, value: int | str) -> int:
        return self.choices.index(value) if isinstance(value, str) else value

    def written(self, value: int | str) -> str:
        """A value as a person writes it."""
        if self.is_secret:
            return _HIDDEN if value else ""
        return str(bool(value)).lower() if self.is_switch else str(value)

    def _within(self, raw: Any) -> int | None:
        is_whole = isinstance(raw, int) and not isinstance(raw, bool)
        if not is_plain(raw) or not (is_whole or (isinstance(raw, str) and raw.isdecimal())):
            return None
        return int(raw) if self.least <= int(raw) <= (self.most or sys.maxsize) else None


def is_plain(raw: Any) -> bool:
    """Check for a text or a number that is short enough to convert and to show."""
    if isinstance(raw, str):
        return len(raw) <= _LONGEST
    return isinstance(raw, float) or (isinstance(raw, int) and abs(raw) <= sys.maxsize)


def shown(raw: Any) -> str:
    """A value for a message."""
    if isinstance(raw, str):
        return repr(cut(raw))
    return repr(raw) if is_plain(raw) else f"of type {type(raw).__name__}"


def cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def threshold(
    name: str, default: int, meaning: str, basis: str, *, least: int = 1, most: int | None = None
) -> Setting:
    return Setting(
        f"consolidation.{name}", default, meaning, basis, shared=True, least=least, most=most
    )


class Value(NamedTuple):
    """A setting's present value, and its source."""

    setting: Setting
    value: int | str
    source: str  # default, user, workspace or environment


class Config(NamedTuple):
    """The present values of all settings, unknown keys, and values that are ignored and why."""

    values: dict[str, Value]
    unknown: list[str]
    ignored: list[str]

    def get(self, name: str) -> int:
        return int(self.values[name].value)

    def text(self, name: str) -> str:
        return str(self.values[name].value)
