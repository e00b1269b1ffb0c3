"""Metrics of recent work, as Loki Mode keeps them in `.loki/metrics`: a view over the episodes.

`dashboard.json` sums seven days, `efficiency/<day>.json` says what each task took, and
`rewards/<day>.json` how it ended and which memories helped. They are written when somebody asks for
them. A file of these names that somebody else wrote, Loki Mode itself above all, stays as it is.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.files import disk
from loki_memory.files.store import failures_named
from loki_memory.models import Episode

if TYPE_CHECKING:
    from pathlib import Path

    from loki_memory.homes import OpenWorkspace

DAYS = 7  # of Loki Mode's dashboard
_MARK = {"generated_by": "loki-mem"}
_REWARDS = {"success": 1, "failure": -1}  # other outcomes are 0


class ToolUse(NamedTuple):
    """The calls of one tool, and how many of them failed."""

    tool: str
    calls: int
    failed: int


class Metrics(NamedTuple):
    """The work of some days in numbers."""

    since: str
    until: str
    tasks: int
    outcomes: dict[str, int]
    median_seconds: float | None  # of the tasks whose duration is known
    errors: int
    resolved: int  # errors with a resolution
    retries: int  # calls that repeat one that had failed
    tools: list[ToolUse]  # the most used first
    tokens_sent: int  # by memory, to agents and people
    written: list[str]  # files of `.loki/metrics`
    kept: list[str]  # files of the same name that somebody else wrote


def metrics(workspace: OpenWorkspace) -> Metrics:
    """Sum the last seven days, and write `.loki/metrics` for them."""
    until = date.fromisoformat(workspace.now()[:10])
    since = str(until - timedelta(DAYS - 1))
    found = workspace.homes.memories(kind="episode", since=since)
    episodes = sorted((e for e in found if isinstance(e, Episode)), key=lambda e: e.id)
    sent = workspace.home.journal.economics(since).offered
    summed = summary(episodes, since, str(until), sent)
    return _written(workspace.layout.loki / "metrics", summed, episodes)


def summary(episodes: Sequence[Episode], since: str, until: str, sent: int) -> Metrics:
    """Sum episodes; nothing is written."""
    errors = [error for episode in episodes for error in episode.errors_encountered]
    known = [e.duration_seconds for e in episodes if e.duration_seconds is not None]
    return Metrics(
        since=since,
        until=until,
        tasks=len(episodes),
        outcomes=dict(sorted(Counter(episode.outcome for episode in episodes).items())),
        median_seconds=median(known) if known else None,
        errors=len(errors),
        resolved=sum(bool(error.resolution) for error in errors),
        retries=sum(map(_retries, episodes)),
        tools=_tools(episodes),
        tokens_sent=sent,
        written=[],
        kept=[],
    )


def _tools(episodes: Iterable[Episode]) -> list[ToolUse]:
    calls: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for action in (action for episode in episodes for action in episode.action_log):
        calls[action.action] += 1
        failed[action.action] += bool(action.error)
    return [
        ToolUse(tool, number, failed[tool])
        for tool, number in sorted(calls.items(), key=lambda entry: (-entry[1], entry[0]))
        if tool
    ]


def _retries(episode: Episode) -> int:
    """The number of calls that repeat an earlier one which had failed."""
    failed: set[tuple[str, str | None]] = set()
    retries = 0
    for action in episode.action_log:
        call = action.action, action.target
        retries += call in failed
        failed = failed | {call} if action.error else failed - {call}
    return retries


def _efficiency(episode: Episode) -> dict[str, Any]:
    return {
        "task": episode.task_id or episode.id,
        "agent": episode.agent,
        "seconds": episode.duration_seconds,
        "tokens": episode.tokens_used,
        "actions": len(episode.action_log),
        "errors": len(episode.errors_encountered),
        "retries": _retries(episode),
    }


def _reward(episode: Episode) -> dict[str, Any]:
    judged = Counter(memory.helpful for memory in episode.recalled)
    return {
        "task": episode.task_id or episode.id,
        "outcome": _REWARDS.get(episode.outcome, 0),
        "memories": len(episode.recalled),
        "helpful": judged[True],
        "unhelpful": judged[False],
    }


def _written(folder: Path, found: Metrics, episodes: Sequence[Episode]) -> Metrics:
    """Write the files whose names nobody else uses."""
    by_day: defaultdict[str, list[Episode]] = defaultdict(list)
    for episode in episodes:
        by_day[episode.timestamp[:10]].append(episode)
    summed = {k: v for k, v in found._asdict().items() if k not in {"written", "kept", "tools"}}
    tools = [use._asdict() for use in found.tools]
    files: dict[str, Mapping[str, Any]] = {"dashboard.json": {**summed, "tools": tools}}
    for day, done in sorted(by_day.items()):
        files[f"efficiency/{day}.json"] = {"tasks": list(map(_efficiency, done))}
        files[f"rewards/{day}.json"] = {"tasks": list(map(_reward, done))}
    with failures_named(folder):
        if not folder.exists():
            disk.write_bytes(folder / ".gitignore", b"*\n")
        kept = [name for name in files if not _is_ours(folder / name)]
        for name, document in files.items():
            if name not in kept:
                text = json.dumps({**_MARK, **document}, indent=2, ensure_ascii=False)
                disk.write_bytes(folder / name, f"{text}\n".encode())
    return found._replace(written=[name for name in files if name not in kept], kept=kept)


def _is_ours(path: Path) -> bool:
    """Check if a file is free to be written: there is none, or it was written here."""
    data = disk.read_bytes(path)
    if data is None:
        return True
    try:
        document = json.loads(data)
    except ValueError:
        return False
    return isinstance(document, dict) and document.items() >= _MARK.items()
