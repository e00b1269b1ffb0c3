"""Replay sessions call by call: what would memory have told before a command, and at its error?

    python benchmarks/told/replay.py --data FOLDER

The open transcripts of each project are replayed in the order of time. Before each command and at
each error the lines are asked for that the hooks would tell; after each session memory learns from
it, as the hook at its end does. An error counts if an earlier session met its class (a linter's
rule, or the command with the masked complaint) and went on to run the same command without it.
Errors of the client's own tools do not count.

    warned   told before the command, in this session, about this class: by the brief at its start,
             or before a command
    mended   told at the error, or before it, a lesson of this class
    idle     lines told before commands that did not meet the error, per 100 calls
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "recall"))

import data
from report import print_lines

from loki_memory import Workspace
from loki_memory.consolidation.failures import RULE, complaint, key
from loki_memory.injection.before_tool import command_lesson
from loki_memory.injection.brief import brief
from loki_memory.injection.prompt_hints import lesson
from loki_memory.models import AntiPattern
from loki_memory.models.diagnostics import findings
from loki_memory.models.error_noise import teaches
from loki_memory.models.error_signature import head

_PROJECTS = {"entireio/cli": "entireio+cli", "entire-bmad": "ShamsiievDmytro+entire-bmad"}
_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID = re.compile(r"\[(anti-[\w-]+)\]")

Class = tuple[str, str]  # head and template of an error


class Call(NamedTuple):
    """A command of a session, and the error that it met; empty if it met none."""

    command: str
    error: str


class Tally:
    """Counts over the sessions of a project."""

    def __init__(self) -> None:
        self.calls = self.errors = self.warned = self.mended = self.lines = self.needed = 0


def calls(path: Path) -> Iterator[Call]:
    """The commands of a transcript, in their order."""
    commands: dict[str, str] = {}
    for block in _blocks(path):
        if block.get("type") == "tool_use" and block.get("name") == "Bash":
            given = block.get("input")
            command = given.get("command") if isinstance(given, dict) else None
            commands[str(block.get("id"))] = command if isinstance(command, str) else ""
        elif block.get("type") == "tool_result" and block.get("tool_use_id") in commands:
            command = commands.pop(str(block["tool_use_id"]))
            yield Call(command, _text(block.get("content")) if block.get("is_error") else "")


def _blocks(path: Path) -> Iterator[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                message = json.loads(line).get("message")
            except (ValueError, AttributeError):
                continue
            content = message.get("content") if isinstance(message, dict) else None
            yield from (
                (b for b in content or () if isinstance(b, dict))
                if isinstance(content, list)
                else ()
            )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def classes(call: Call) -> set[Class]:
    """The classes of the errors that a call met, of those that may teach."""
    rules = {("", f"{RULE}{finding.kind}") for finding in findings(call.error)}
    line = complaint(call.error)
    if rules or not line or not teaches(line, "Bash", call.command):
        return rules
    found = key(line, "Bash", call.command)
    return {(found.head, found.template)} if found else set()


def replay(workspace: Workspace, path: Path, mended: set[Class], tally: Tally) -> None:
    """One session: ask before and after each command, then learn."""
    session = path.name
    told, overcome = set[Class](), set[Class]()
    told |= _classes_of(workspace, brief(workspace, "", (), session, "hook:SessionStart"))
    met: list[tuple[str, set[Class]]] = []
    for call in calls(path):
        tally.calls += 1
        before = _classes_of(workspace, command_lesson(workspace, call.command, session, "replay"))
        told |= before
        those = classes(call) if call.error else set()
        tally.lines += len(before)
        tally.needed += len(before & those)
        for one in those & mended:
            tally.errors += 1
            tally.warned += one in told
            at = lesson(workspace, call.error, "Bash", call.command, session, "replay")
            told |= _classes_of(workspace, at)
            tally.mended += one in told
        name = head("Bash", call.command)
        overcome |= {one for other, each in met if other == name for one in each - those}
        met = [(other, each & those if other == name else each) for other, each in met]
        met += [(name, those)] if those else []
    mended |= overcome
    workspace.ingest([path])
    named = _SESSION.search(session)
    workspace.sessions.learn(named[0] if named else session.partition(".")[0])


def _classes_of(workspace: Workspace, text: str) -> set[Class]:
    found = set()
    for name in _ID.findall(text):
        record = workspace.get(name)
        made = (record.model_extra or {}).get("key") if isinstance(record, AntiPattern) else None
        if isinstance(made, dict):
            found.add((str(made.get("head", "")), str(made.get("template", ""))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data.add_option(parser)
    folder = data.folder(parser.parse_args())
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    lines = []
    for name, place in _PROJECTS.items():
        tally, mended = Tally(), set[Class]()
        top = folder / "claude_transcripts" / "claude" / place
        with tempfile.TemporaryDirectory() as root, Workspace.init(Path(root)) as workspace:
            for path in sorted(filter(Path.is_file, top.rglob("*")), key=_began):
                replay(workspace, path, mended, tally)
        errors = max(1, tally.errors)
        idle = 100 * (tally.lines - tally.needed) / max(1, tally.calls)
        counts = (f"{tally.calls:,}", str(tally.errors))
        shares = (tally.warned / errors, tally.mended / errors)
        lines.append((name, *counts, *(f"{share:.3f}" for share in shares), f"{idle:.2f}"))
    print_lines(("project", "calls", "errors met before", "warned", "mended", "idle"), lines)


def _began(path: Path) -> str:
    """The moment of the first event of a transcript."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = re.search(r'"timestamp":\s*"([^"]+)"', line)
            if found:
                return found[1]
    return ""


if __name__ == "__main__":
    main()
