"""Output schemas (`--json`) of the commands that work in the background."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict


class StandingOutput(TypedDict):
    """Printed by `watch --once`: counters of the work, and of work that waits."""

    rounds: int
    learned: int
    ingested: int
    trouble: str


class StateOutput(TypedDict):
    """The state of a watcher."""

    process: int
    since: str
    hears: bool
    standing: StandingOutput


class DaemonOutput(TypedDict):
    """Printed by `daemon start`, `stop` and `status`; no state where none answers."""

    running: bool
    state: StateOutput | None


class LogOutput(TypedDict):
    """Printed by `daemon logs`."""

    lines: list[str]


class ToldOutput(TypedDict):
    """Printed by `watch`, one per line."""

    told: str


OUTPUTS: dict[str, Any] = {
    "watch": StandingOutput | ToldOutput,
    "daemon": DaemonOutput | LogOutput,
}
