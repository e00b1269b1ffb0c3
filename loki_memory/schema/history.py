"""Output schemas (`--json`) of the commands about history."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from loki_memory.integrity.findings import What


class ShiftOutput(TypedDict):
    """The change of one memory; `before` and `after` are its confidence."""

    what: str
    kind: str
    id: str
    title: str
    before: float | None
    after: float | None
    caused_by: list[str]
    details: list[str]


class CauseOutput(TypedDict):
    """An episode behind a shift."""

    id: str
    goal: str
    outcome: str
    agent: str


class UnreadableOutput(TypedDict):
    """A file that is no record."""

    path: str
    reason: str


class ReviewOutput(TypedDict):
    """Printed by `diff` and `review`."""

    before: str
    after: str
    shifts: list[ShiftOutput]
    evidence: list[CauseOutput]
    invalid: list[UnreadableOutput]
    counts: dict[str, int]


class FaultOutput(TypedDict):
    """A fault that should not be merged."""

    check: str
    path: str
    id: str
    said: str
    advice: str


class CheckOutput(TypedDict):
    """Printed by `check`."""

    ok: bool
    exit_code: int
    findings: list[FaultOutput]


class KeptOutOutput(TypedDict):
    """A file that is not committed in its present state."""

    path: str
    reason: str


class CommitOutput(TypedDict):
    """Printed by `commit`; `commit` is empty where none was made."""

    commit: str
    branch: str
    subject: str
    paths: list[str]
    kept_out: list[KeptOutOutput]
    reason: str
    notes: list[str]


class ExchangedOutput(TypedDict):
    """Printed by `pull` and `push`."""

    commit: str
    what: str
    merged: list[str]
    kept: list[str]


class HistoryStepOutput(TypedDict):
    """A commit that changed memory."""

    commit: str
    at: str
    author: str
    agent: str
    run: str
    subject: str
    shifts: list[ShiftOutput]


class LogOutput(TypedDict):
    """Printed by `log`, newest first."""

    commits: list[HistoryStepOutput]


class SourceOutput(TypedDict):
    """An episode that speaks for or against a belief."""

    id: str
    speaks: str
    goal: str
    outcome: str
    agent: str
    session: str
    commit: str
    at: str
    kept: str


class BlameOutput(TypedDict):
    """Printed by `blame`."""

    id: str
    kind: str
    title: str
    status: str
    confidence: float | None
    stated_by: str
    origin: str
    sources: list[SourceOutput]
    steps: list[HistoryStepOutput]
    reviewed: list[dict[str, Any]]


class BisectOutput(TypedDict):
    """Printed by `bisect`."""

    step: HistoryStepOutput
    before: list[str]
    after: list[str]
    tried: int


class RevertOutput(TypedDict):
    """Printed by `revert`."""

    commit: str
    written: list[str]
    removed: list[str]
    kept: list[str]
    committed: CommitOutput


class DoubtOutput(TypedDict):
    """A file that is not as the tool wrote it; `writer` and `seq` name the last good version."""

    what: What
    path: str
    said: str
    id: str
    line: int
    writer: str
    seq: int
    sha256: str


class StaleOutput(TypedDict):
    """A belief that cites code which has changed since."""

    id: str
    path: str
    cites: list[str]
    renewed: bool


class VerifyOutput(TypedDict):
    """Printed by `verify`."""

    well: bool
    records: int
    writers: int
    lines: int
    anchors: int
    findings: list[DoubtOutput]
    stale: list[StaleOutput]
    adopted: list[str]


class ResolvedOutput(TypedDict):
    """A memory file that had a conflict, and its outcome."""

    path: str
    how: str
    note: str
    staged: bool


class ResolveOutput(TypedDict):
    """Printed by `resolve`."""

    planned: bool
    resolved: list[ResolvedOutput]


class MergeDriverOutput(TypedDict):
    """Printed by `merge-driver`."""

    path: str
    merged: bool


class DeedOutput(TypedDict):
    """A change that was made or planned, or was there already."""

    what: str
    where: str
    did: bool
    diff: str


class DeedsOutput(TypedDict):
    """Printed by `skills --publish` and `--withdraw`."""

    deeds: list[DeedOutput]


class InstallOutput(DeedsOutput):
    """Printed by `install` and `uninstall`."""

    target: str
    planned: bool


OUTPUTS: dict[str, Any] = {
    "resolve": ResolveOutput,
    "merge-driver": MergeDriverOutput,
    **dict.fromkeys(("install", "uninstall"), InstallOutput),
    "verify": VerifyOutput,
    **dict.fromkeys(("diff", "review"), ReviewOutput),
    "check": CheckOutput,
    "commit": CommitOutput,
    **dict.fromkeys(("pull", "push"), ExchangedOutput),
    "log": LogOutput,
    "blame": BlameOutput,
    "bisect": BisectOutput,
    "revert": RevertOutput,
}
