"""Are the lines that a prompt is told about what it asks for? A reader has judged them.

    python benchmarks/told/prompts.py --data FOLDER [--seed 18] [--prompts 100]

The open transcripts of each project are replayed in the order of time; memory knows the sessions
before. A hundred prompts are drawn with a fixed seed; for each, the lines are asked for that the
hook would tell, after the brief at the start and the earlier prompts of its session. The list of
prompts and lines is written to `verdicts/prompts.jsonl`. A line that was judged there before keeps
its verdict (`relevant`: true or false); a new one has null. Printed is the share of told lines that
are relevant, to be .8 at least.

Prompts are cut to 200 characters; addresses, folders of homes and names in them are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "recall"))

import data
from replay import _PROJECTS, _projects, _session
from report import number
from session_work import SessionWork, session_work

from loki_memory import Workspace
from loki_memory.injection.before_prompt import reminder
from loki_memory.injection.brief import brief

_VERDICTS = Path(__file__).resolve().parent / "verdicts" / "prompts.jsonl"
_LONGEST = 200
_WANTED = 0.8
_PRIVATE = re.compile(
    r"[\w.+-]+@[\w.-]+\.\w+|\b[\w-]+@[\w-]+|(?:/Users|/home)/[\w.-]+|https?://\S+|@[\w-]+"
)

Drawn = tuple[Path, int]
Row = dict[str, Any]  # a line of the list: project, session, prompt, lines


def drawn(projects: Mapping[str, Sequence[SessionWork]], seed: int, number: int) -> set[Drawn]:
    """The prompts that are drawn, each by its transcript and its place there."""
    every = [
        (work.path, place)
        for sessions in projects.values()
        for work in sessions
        for place, _ in enumerate(work.prompts)
    ]
    return set(random.Random(seed).sample(every, number))


def rows(name: str, sessions: Sequence[SessionWork], chosen: Container[Drawn]) -> Iterator[Row]:
    """Replay a project; yields a row for each prompt that was drawn."""
    with tempfile.TemporaryDirectory() as root, Workspace.init(Path(root)) as workspace:
        for work in sessions:
            wanted = [place for place, _ in enumerate(work.prompts) if (work.path, place) in chosen]
            if wanted:
                yield from _session_rows(workspace, name, work, wanted)
            workspace.ingest([work.path])
            workspace.sessions.learn(_session(work.path))


def _session_rows(
    workspace: Workspace, name: str, work: SessionWork, wanted: Sequence[int]
) -> Iterator[Row]:
    session = work.path.name
    workspace.sync()
    brief(workspace, "", (), session, "hook:SessionStart")
    for place, prompt in enumerate(work.prompts[: wanted[-1] + 1]):
        told = reminder(workspace, prompt, session, "hook:UserPromptSubmit")
        if place in wanted:
            lines = [{"line": _public(line), "relevant": None} for line in told.splitlines()]
            asked = _public(" ".join(prompt.split())[:_LONGEST])
            yield {"project": name, "session": session[:19], "prompt": asked, "lines": lines}


def _public(text: str) -> str:
    return _PRIVATE.sub("~", text)


def with_verdicts(found: Sequence[Row], known: Sequence[Row]) -> list[Row]:
    """The rows with the verdicts that a reader gave before."""
    said = {
        (row["prompt"], line["line"]): line["relevant"] for row in known for line in row["lines"]
    }
    for row in found:
        for line in row["lines"]:
            line["relevant"] = said.get((row["prompt"], line["line"]))
    return list(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data.add_option(parser)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--out", type=Path, default=_VERDICTS, help="the list, with its verdicts")
    options = parser.parse_args()
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    projects = {
        name: list(map(session_work, paths))
        for name, paths in _projects(data.folder(options))
        if name in _PROJECTS
    }
    chosen = drawn(projects, options.seed, options.prompts)
    found = [row for name, works in projects.items() for row in rows(name, works, chosen)]
    _write(options.out, with_verdicts(found, _read(options.out)))


def _read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write(path: Path, found: Sequence[Row]) -> None:
    path.parent.mkdir(exist_ok=True)
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in found)
    path.write_text(text, encoding="utf-8")
    lines = [line["relevant"] for row in found for line in row["lines"]]
    judged = [relevant for relevant in lines if relevant is not None]
    share = sum(judged) / max(1, len(judged))
    print(f"{len(found)} prompts, {sum(bool(row['lines']) for row in found)} of them told a line")
    print(f"{len(lines)} lines, {len(judged)} judged, {number(share)} relevant (wanted {_WANTED})")


if __name__ == "__main__":
    main()
