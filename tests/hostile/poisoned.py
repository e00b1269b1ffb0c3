"""Sessions whose tools print what an attacker wrote, and all that memory makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from claude_lines import Transcript

from loki_memory import Workspace
from loki_memory.ingest.run import ingest
from loki_memory.injection.at_error import lesson
from loki_memory.injection.before_prompt import reminder
from loki_memory.injection.before_tool import command_lesson, file_lessons
from loki_memory.injection.brief import brief
from loki_memory.injection.context import FORMATS
from loki_memory.models import Handoff

DAYS = ("2026-03-02", "2026-03-09", "2026-03-16")
HOME = "/home/ana/shop"


def sessions(name: str, play: Callable[[Transcript], Transcript]) -> list[Transcript]:
    """The same session on three days."""
    number = f"{sum(name.encode()) * 7919 % 10**8:08}"
    return [
        play(Transcript(f"{number}-0000-4000-8000-{day:012}", HOME)) for day in range(len(DAYS))
    ]


def take_in(ws: Workspace, folder: Path, plays: Iterable[list[Transcript]]) -> None:
    """Ingest sessions as the client wrote them, and consolidate."""
    paths: list[str | Path] = []
    for played in plays:
        for day, transcript in zip(DAYS, played, strict=True):
            path = folder / f"{transcript.session}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(transcript.text().replace(DAYS[0], day), encoding="utf-8")
            paths.append(path)
    ingest(ws, paths)
    ws.consolidate()


def told(
    ws: Workspace,
    goals: Iterable[str],
    errors: Iterable[tuple[str, str]] = (),
    handoffs: Iterable[Handoff] = (),
) -> str:
    """All that an agent is told of memory without asking for it, at every door."""
    found = [ws.browse.continuity_block(), brief(ws, "", handoffs, "", "brief")]
    for number, goal in enumerate(goals):
        found += [
            ws.browse.continuity_block(goal),
            brief(ws, goal, handoffs, f"b{number}", "hook:SessionStart"),
            reminder(ws, goal, f"p{number}", "hook:UserPromptSubmit"),
            *(ws.context(goal).text(form) for form in FORMATS if form != "json"),
        ]
    for number, (command, error) in enumerate(errors):
        found += [
            command_lesson(ws, command, f"c{number}", "hook:PreToolUse"),
            lesson(ws, error, "Bash", command, f"e{number}", "hook:PostToolUseFailure"),
        ]
    found.append(file_lessons(ws, ["src/cart.py"], "", "f", "hook:PreToolUse"))
    return "\n".join(found)


def shared(ws: Workspace) -> str:
    """All files of memory that git would track."""
    files = (path for path in sorted(ws.layout.memory.rglob("*")) if path.is_file())
    return "\n".join(path.read_text("utf-8", errors="replace") for path in files)
