"""Runs of gates that a session made: tests, linters, type checks and builds, by their commands.

The last run of each command counts until the command passes. A run of more clears what a run of
less refused: `pytest` passes for `pytest tests/test_cart.py`. What is known is kept on this
machine, for each worktree apart, and told in the next brief.
"""

from __future__ import annotations

import json  # not orjson: a session begins with this
import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.files import disk
from loki_memory.files.lock import locked
from loki_memory.files.redaction import clip
from loki_memory.ingest.steps import CHECKS, Step, steps
from loki_memory.models.error_signature import CHAIN, complaint, head
from loki_memory.models.prompt_injection import without_instructions
from loki_memory.models.text import without_home

if TYPE_CHECKING:
    from pathlib import Path

    from loki_memory.homes import OpenWorkspace
    from loki_memory.ingest.turns import Turn

_FILE = "gates.json"
_KEPT = 40  # commands of which the last run is known
_COMMAND, _COMPLAINT = 80, 200  # characters
_LOCK_SECONDS = 5.0
_OUTPUT = re.compile(r"\s(?:\d?>|&>|<)\S*|\|.*", re.DOTALL)
_LAUNCHER = re.compile(
    r"^(?:\w+=\S*\s+|(?:npx|uvx|uv run|poetry run|pipenv run|pdm run|hatch run|bundle exec|time"
    r"|python3? -m|\S*/python3? -m)\s+)+"
)


class GateRun(NamedTuple):
    """A run of a gate: its command as it was typed, when it ended, and what it complained of."""

    command: str
    at: str
    passed: bool
    complaint: str = ""

    @property
    def words(self) -> frozenset[str]:
        """The words that say what was run, without options and launchers."""
        program, *rest = _LAUNCHER.sub("", self.command).split() or [""]
        return frozenset([os.path.basename(program), *(w for w in rest if not w.startswith("-"))])


def gate_runs(done: Iterable[Step]) -> Iterator[GateRun]:
    """The runs of gates among steps, in their order."""
    for step in done:
        if step.is_shell and step.ended and CHECKS.search(step.target):
            yield from _runs(step)


def _runs(step: Step) -> Iterator[GateRun]:
    """The runs of one command line. Of a chain that failed, the gate that the error is about."""
    parts = [part.strip() for part in CHAIN.split(step.target) if CHECKS.search(part)]
    if step.met_error:
        about = head(step.tool, step.target, step.answer)
        part = next((part for part in parts if head(step.tool, part) == about), parts[0])
        said = " ".join(without_instructions(complaint(step.answer)).split())
        yield GateRun(_typed(part), step.at, False, clip(without_home(said), _COMPLAINT))
    elif step.worked:
        for part in parts:
            if "|" not in part:  # the end of a pipe says nothing of its beginning
                yield GateRun(_typed(part), step.at, True)


def _typed(command: str) -> str:
    return clip(without_home(" ".join(_OUTPUT.sub("", command).split())), _COMMAND)


def failing(runs: Iterable[GateRun]) -> list[GateRun]:
    """The gates that failed in their last run, the newest first."""
    failed: dict[frozenset[str], GateRun] = {}
    for run in sorted(runs, key=lambda run: run.at):
        if run.passed:
            failed = {words: old for words, old in failed.items() if not run.words <= words}
        else:
            failed[run.words] = run
    return sorted(failed.values(), key=lambda run: run.at, reverse=True)


# -- what is known on this machine -----------------------------------------------------------------


def failing_gates(workspace: OpenWorkspace) -> list[GateRun]:
    """The gates that failed in their last run in this worktree, the newest first."""
    return failing(_read(_path(workspace)).get(_here(workspace), []))


def note_gates(workspace: OpenWorkspace, turns: Iterable[Turn]) -> None:
    """Take note of the gates that a session ran."""
    note_runs(workspace, gate_runs(steps(turns)))


def note_runs(workspace: OpenWorkspace, runs: Iterable[GateRun]) -> None:
    """Take note of runs of gates; the last run of each counts, in whatever order they come."""
    news, path = list(runs), _path(workspace)
    if not news:
        return
    disk.make_folder(path.parent)
    with locked(path.with_suffix(".lock"), _LOCK_SECONDS):
        known, here = _read(path), _here(workspace)
        last = latest([*known.get(here, []), *news])
        if last != known.get(here, []):
            there = {root: runs for root, runs in known.items() if os.path.isdir(root)}
            written = {root: list(map(list, runs)) for root, runs in {**there, here: last}.items()}
            disk.write_bytes(path, json.dumps(written).encode())


def latest(runs: Iterable[GateRun]) -> list[GateRun]:
    """The last run of each gate, the oldest first."""
    last = {run.words: run for run in sorted(runs, key=lambda run: run.at)}
    return sorted(last.values(), key=lambda run: run.at)[-_KEPT:]


def _read(path: Path) -> dict[str, list[GateRun]]:
    """The runs by worktree; nothing if the file cannot be understood."""
    try:
        found = json.loads(disk.read_bytes(path) or b"{}")
        return {root: [GateRun(*run) for run in runs] for root, runs in found.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _path(workspace: OpenWorkspace) -> Path:
    return workspace.layout.local / _FILE


def _here(workspace: OpenWorkspace) -> str:
    return str(workspace.layout.root)
