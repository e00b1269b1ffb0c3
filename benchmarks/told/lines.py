"""The lines that sessions would be told, at their starts, prompts, commands, files and errors.

    python benchmarks/told/lines.py --data FOLDER [--only NAME] [--seed 18] [--out FILE]

The open transcripts of each project are replayed in the order of time; memory knows the sessions
before. With a fixed seed so many moments of each kind are drawn; at each, the lines are asked for
that the hooks would tell, after all that the same session was told before. The list is written to
`verdicts/lines.jsonl`. A line that was judged there before keeps its verdict (`relevant`: true or
false); a new one has null. Printed is, by kind of moment, how many are told a line, and the share
of the judged lines that are relevant: .8 of those before a prompt at least.

Texts are cut to 200 characters; addresses, folders of homes and names in them are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "recall"))

import data
from replay import _projects, _session
from report import number, print_lines
from session_work import Moment, moments

from loki_memory import Workspace
from loki_memory.injection.at_error import lesson
from loki_memory.injection.before_prompt import reminder
from loki_memory.injection.before_tool import command_lesson, file_lessons
from loki_memory.injection.brief import brief

_VERDICTS = Path(__file__).resolve().parent / "verdicts" / "lines.jsonl"
_DRAWN = {"start": 10, "prompt": 100, "command": 100, "read": 25, "edit": 25, "error": 50}
_LONGEST = 200
_PRIVATE = re.compile(
    r"[\w.+-]+@[\w.-]+\.\w+|\b[\w-]+@[\w-]+|(?:/Users|/home)/[\w.-]+|https?://\S+|@[\w-]+"
)

Row = dict[str, Any]  # a line of the list: project, session, moment, occasion, lines


def told(workspace: Workspace, moment: Moment, session: str) -> str:
    """The lines that a hook would tell at a moment."""
    match moment.kind:
        case "start":
            return brief(workspace, "", (), session, "hook:SessionStart")
        case "prompt":
            return reminder(workspace, moment.text, session, "hook:UserPromptSubmit")
        case "command":
            return command_lesson(workspace, moment.text, session, "hook:PreToolUse")
        case "error":
            given = (moment.text, "Bash", moment.target, session, "hook:PostToolUseFailure")
            return lesson(workspace, *given)
        case _:
            path = [moment.text]
            return file_lessons(workspace, path, moment.target, session, "hook:PreToolUse")


def rows(
    workspace: Workspace, name: str, path: Path, wanted: Sequence[int] | None = None
) -> Iterator[Row]:
    """Live through a session; yields a row for each moment that was drawn, or for all."""
    workspace.sync()
    for place, moment in enumerate(moments(path)):
        if wanted is not None and place > max(wanted):
            return
        text = told(workspace, moment, path.name)
        if wanted is None or place in wanted:
            lines = [{"line": public(line), "relevant": None} for line in text.splitlines()]
            about = moment.text if moment.kind != "error" else f"{moment.target} => {moment.text}"
            yield {
                "project": name,
                "session": path.name[:19],
                "moment": moment.kind,
                "occasion": public(" ".join(about.split()))[:_LONGEST],
                "lines": lines,
            }


def public(text: str) -> str:
    return _PRIVATE.sub("~", text)


def drawn(paths: Sequence[Path], seed: int) -> Mapping[Path, list[int]]:
    """The places of moments that are drawn, by session."""
    every: defaultdict[str, list[tuple[Path, int]]] = defaultdict(list)
    for path in paths:
        for place, moment in enumerate(moments(path)):
            every[moment.kind].append((path, place))
    chosen: defaultdict[Path, list[int]] = defaultdict(list)
    for kind, most in _DRAWN.items():
        for path, place in random.Random(seed).sample(every[kind], min(most, len(every[kind]))):
            chosen[path].append(place)
    return chosen


def replayed(name: str, paths: Sequence[Path], seed: int) -> Iterator[Row]:
    chosen = drawn(paths, seed)
    with tempfile.TemporaryDirectory() as root, Workspace.init(Path(root)) as workspace:
        for path in paths:
            if path in chosen:
                yield from rows(workspace, name, path, chosen[path])
            workspace.ingest([path])
            workspace.sessions.learn(_session(path))


def with_verdicts(found: Sequence[Row], known: Sequence[Row]) -> list[Row]:
    """The rows with the verdicts that a reader gave before."""
    said = {
        (row["occasion"], line["line"]): line["relevant"] for row in known for line in row["lines"]
    }
    for row in found:
        for line in row["lines"]:
            line["relevant"] = said.get((row["occasion"], line["line"]))
    return list(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data.add_option(parser)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--only", default="", help="only projects whose name has this in it")
    parser.add_argument("--out", type=Path, default=_VERDICTS, help="the list, with its verdicts")
    options = parser.parse_args()
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    found = [
        row
        for name, paths in _projects(data.folder(options))
        if options.only in name
        for row in replayed(name, paths, options.seed)
    ]
    known = options.out.read_text(encoding="utf-8").splitlines() if options.out.exists() else []
    judged = with_verdicts(found, list(map(json.loads, known)))
    options.out.write_text(
        "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in judged), encoding="utf-8"
    )
    report(judged)


def report(found: Sequence[Row]) -> None:
    """Print how often each kind of moment was told a line, and how many were worth it."""
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in found:
        count = counts[row["project"], row["moment"]]
        verdicts = [line["relevant"] for line in row["lines"]]
        count["moments"] += 1
        count["told"] += bool(verdicts)
        count["lines"] += len(verdicts)
        count["judged"] += sum(verdict is not None for verdict in verdicts)
        count["relevant"] += sum(map(bool, verdicts))
    lines = [
        (
            *key,
            str(count["moments"]),
            str(count["told"]),
            str(count["lines"]),
            str(count["judged"]),
            number(count["relevant"] / max(1, count["judged"])),
        )
        for key, count in counts.items()
    ]
    print_lines(("project", "moment", "moments", "told", "lines", "judged", "relevant"), lines)


if __name__ == "__main__":
    main()
