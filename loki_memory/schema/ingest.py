"""Output schemas (`--json`) of the commands that take in sessions."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from loki_memory.schema.history import DeedOutput
from loki_memory.schema.outputs import Stored


class RefusedOutput(TypedDict):
    """A line that could not be read; line 0 means the whole file."""

    path: str
    line: int
    reason: str


class FailedOutput(TypedDict):
    """A session that could not be recorded; it waits for the next `ingest`."""

    session: str
    reason: str


class IngestedOutput(TypedDict):
    """Printed by `ingest`: read + refused + waiting = lines."""

    files: int
    lines: int
    read: int
    refused: int
    waiting: int
    reasons: list[RefusedOutput]
    unknown: dict[str, int]
    rewritten: list[str]
    episodes: int
    changed: int
    errors: int
    staged: int
    failed: list[FailedOutput]
    off: str


class NotTakenOutput(TypedDict):
    """A statement or file of another system that was not imported."""

    where: str
    what: str
    why: str


class ImportedOutput(TypedDict):
    """Printed by `import`."""

    source: str
    planned: bool
    files: list[str]
    facts: list[Stored]
    known: int
    refused: list[NotTakenOutput]
    written_back: DeedOutput | None


class PlannedOutput(TypedDict):
    """Printed by `ingest --plan`."""

    files: list[str]


class WaitingOutput(TypedDict):
    """A session or a file with turns that wait."""

    what: str
    turns: int
    last: str
    why: str


class StagedOutput(TypedDict):
    """Printed by `staged`."""

    staged: list[WaitingOutput]


class PlayedOutput(TypedDict):
    """One action of an episode."""

    at: str
    action: str
    told: str


class FileOutput(TypedDict):
    """A file that an episode touched."""

    path: str
    state: Literal["missing", "changed", "unchanged", "unknown"]


class ReplayOutput(TypedDict):
    """Printed by `replay`."""

    id: str
    goal: str
    outcome: str
    begun: str
    actions: list[PlayedOutput]
    files: list[FileOutput]


OUTPUTS: dict[str, Any] = {
    "import": ImportedOutput,
    "ingest": IngestedOutput | PlannedOutput,
    "staged": StagedOutput,
    "replay": ReplayOutput,
}
