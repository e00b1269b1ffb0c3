"""Replay sessions call by call: what would memory have told before a command, and at its error?

    python benchmarks/told/replay.py --data FOLDER [--misses] [--only NAME]

The open transcripts of each project are replayed in the order of time, and so are those of each
repository of SWE-ContextBench. Before each command and at each error the lines are asked for that
the hooks would tell; after each session memory learns from it, as the hook at its end does. An
error counts if an earlier session met its class (a linter's rule, or the command with the masked
complaint) and went on to run the same command, or script, without it. Errors of the client's own
tools do not count.

    warned   told before the command, in this session, about this class: by the brief at its start,
             or before a command
    mended   told at the error, or before it, a lesson of this class; the name of a rule is none
    idle     lines told before commands that did not meet the error, per 100 calls

`--misses` prints each error that was told nothing, and why: no lesson of its class, a lesson that
knows no remedy, or a lesson that was not told.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "recall"))

import data
from report import print_lines

from loki_memory import Workspace
from loki_memory.consolidation.failures import RULE, complaint, key
from loki_memory.ingest.repair_command import script_of
from loki_memory.injection.at_error import lesson
from loki_memory.injection.before_tool import advice, command_lesson
from loki_memory.injection.brief import brief
from loki_memory.models import AntiPattern
from loki_memory.models.diagnostics import findings
from loki_memory.models.error_noise import teaches
from loki_memory.models.error_signature import head

_PROJECTS = {"entireio/cli": "entireio+cli", "entire-bmad": "ShamsiievDmytro+entire-bmad"}
_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID = re.compile(r"\[(anti-[\w-]+)\]")
_CODE = re.compile(r"`([^`]+)`")
_CHAIN = re.compile(r"&&|;|\n")
_SHOWN = 110  # characters of an error and of its command

Class = tuple[str, str]  # head and template of an error


class Call(NamedTuple):
    """A command of a session, and the error that it met; empty if it met none."""

    command: str
    error: str


class Tally:
    """Counts over the sessions of a project."""

    def __init__(self) -> None:
        self.calls = self.errors = self.warned = self.mended = self.lines = self.needed = 0
        self.misses: list[str] = []

    def row(self, name: str) -> tuple[str, ...]:
        errors = max(1, self.errors)
        idle = 100 * (self.lines - self.needed) / max(1, self.calls)
        shares = (f"{count / errors:.3f}" for count in (self.warned, self.mended))
        return (name, f"{self.calls:,}", str(self.errors), *shares, f"{idle:.2f}")


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
    for event in _events(path):
        message = event.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        blocks = content if isinstance(content, list) else ()
        yield from (block for block in blocks if isinstance(block, dict))


def _events(path: Path) -> Iterator[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event


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
    begun = brief(workspace, "", (), session, "hook:SessionStart")
    told |= _classes_of(workspace, begun)
    named = _named_rules(begun)
    met: list[tuple[str, set[Class]]] = []
    for call in calls(path):
        tally.calls += 1
        before = command_lesson(workspace, call.command, session, "hook:PreToolUse")
        lines = before.count("\n")
        warned = _classes_of(workspace, before)
        told |= warned
        here = classes(call) if call.error else set()
        tally.lines += lines
        tally.needed += min(lines, len(warned & here))
        for class_ in sorted(here & mended):
            tally.errors += 1
            tally.warned += class_ in told | named
            at = lesson(workspace, call.error, "Bash", call.command, session, "hook:Failure")
            told |= _classes_of(workspace, at)
            tally.mended += class_ in told
            if class_ not in told:
                tally.misses.append(_miss(workspace, class_, call))
        name = _name(call.command)
        overcome |= {class_ for other, each in met if other == name for class_ in each - here}
        met = [(other, each & here if other == name else each) for other, each in met]
        met += [(name, here)] if here else []
    mended |= overcome
    workspace.ingest([path])
    workspace.sessions.learn(_session(path))


def _name(command: str) -> str:
    """What makes a command the same again: its head, and the scripts that interpreters run."""
    scripts = (script_of(part.strip()) for part in _CHAIN.split(command))
    return " ".join([head("Bash", command), *filter(None, scripts)])


def _session(path: Path) -> str:
    """The id of the session that a transcript tells, which its file may be named after."""
    named = _SESSION.search(path.name)
    if named:
        return named[0]
    return next((str(event["sessionId"]) for event in _events(path) if "sessionId" in event), "")


def _miss(workspace: Workspace, class_: Class, call: Call) -> str:
    known = [
        record
        for record in workspace.list(kind="anti-pattern")
        if isinstance(record, AntiPattern) and _class(record) == class_
    ]
    if not known:
        reason = "no lesson"
    elif not any(resolution.for_ for record in known for resolution in record.resolutions):
        reason = "no remedy"
    else:
        reason = f"not told: {known[0].prevention}"[:_SHOWN]
    command = " ".join(call.command.split())[:_SHOWN]
    return f"{reason} | {': '.join(class_)[:_SHOWN]} | {command}"


def _classes_of(workspace: Workspace, text: str) -> set[Class]:
    """The classes of the lessons in a text, and those of lessons that give the same advice."""
    told = [workspace.get(name) for name in dict.fromkeys(_ID.findall(text))]
    records = [record for record in told if isinstance(record, AntiPattern)]
    advised = {said for record in records if (said := advice(record.document()))}
    if advised:
        every = workspace.list(kind="anti-pattern")
        records += [
            other
            for other in every
            if isinstance(other, AntiPattern) and advice(other.document()) in advised
        ]
    return {class_ for record in records if (class_ := _class(record))}


def _named_rules(text: str) -> set[Class]:
    """The rules of linters that the line about them names, without what mends each."""
    line = next((line for line in text.splitlines() if "Linters here" in line), "")
    return {("", f"{RULE}{rule}") for rule in _CODE.findall(line)}


def _class(record: AntiPattern) -> Class | None:
    made = (record.model_extra or {}).get("key")
    if not isinstance(made, dict):
        return None
    return str(made.get("head", "")), str(made.get("template", ""))


def _projects(folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """The transcripts of each project, the first session first."""
    for name, place in _PROJECTS.items():
        top = folder / "claude_transcripts" / "claude" / place
        yield name, sorted(filter(Path.is_file, top.rglob("*")), key=_began)
    for name, paths in sorted(_repositories(folder / "swe_context").items()):
        yield name, paths


def _repositories(folder: Path) -> Mapping[str, list[Path]]:
    """The transcripts of SWE-ContextBench by repository."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    lines = (folder / "sessions.jsonl").read_text(encoding="utf-8").splitlines()
    for row in sorted(map(json.loads, lines), key=lambda row: (row["start"], row["file"])):
        found[row["repo"]].append(folder / "sessions" / row["file"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data.add_option(parser)
    parser.add_argument("--misses", action="store_true", help="print errors that got no line")
    parser.add_argument("--only", default="", help="only projects whose name has this in it")
    options = parser.parse_args()
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    tallies: list[tuple[str, Tally]] = []
    for name, paths in _projects(data.folder(options)):
        if options.only in name:
            tallies.append((name, _replayed(paths)))
    if options.misses:
        print("".join(f"{name} | {miss}\n" for name, tally in tallies for miss in tally.misses))
    rows = [tally.row(name) for name, tally in tallies]
    print_lines(("project", "calls", "errors met before", "warned", "mended", "idle"), rows)


def _replayed(paths: Sequence[Path]) -> Tally:
    tally, mended = Tally(), set[Class]()
    with tempfile.TemporaryDirectory() as root, Workspace.init(Path(root)) as workspace:
        for path in paths:
            replay(workspace, path, mended, tally)
    return tally


def _began(path: Path) -> str:
    """The moment of the first event of a transcript."""
    return next((event["timestamp"] for event in _events(path) if "timestamp" in event), "")


if __name__ == "__main__":
    main()
