"""Is the brief about what the session then works on?

    python benchmarks/told/brief.py --data FOLDER [--only NAME] [--show N]

The open transcripts of each project are replayed in the order of time; memory knows the sessions
before. A line is relevant if it names a file or a piece of code that the session goes on to edit,
and that few sessions edit. The first five lessons of the brief are judged, without the routine and
the requests of people, which are for any work; where it has fewer, the missing ones are not
relevant. Asked are a brief for the first prompt, and one for the prompt and the first three files
that the session read or edited. Sessions count that edit something, and for which any of the
lessons that may be told would be relevant.

    BM25     the same lessons, by the words of the prompt (and the names of the files)
    random   the same lessons, in any order: the expected value
    best     the same lessons, those first that are relevant

`--show` prints the briefs of the last so many sessions.
"""

from __future__ import annotations

import argparse
import math
import os
import posixpath
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "recall"))

import data
from replay import _PROJECTS, _projects, _session
from report import number, print_lines
from session_work import SessionWork, names, rare_names, session_work

from loki_memory import Workspace
from loki_memory.index.gate import learned_on, standing, tellable_ids
from loki_memory.injection.brief import brief
from loki_memory.injection.gate import Gate
from loki_memory.injection.line import gist, record_of
from loki_memory.injection.nearest import SessionGoal, code_names
from loki_memory.recall.result import Recollection

_FIRST = 5
_FILES = 3
_KINDS = ("fact", "pattern", "anti-pattern", "skill")
_ID = re.compile(r"^- \[(?:skill: )?([\w-]+)\]", re.MULTILINE)
_WORD = re.compile(r"[a-z0-9]{2,}")
_STANDING = 1_000  # more than any project has
_SYSTEMS = ("brief", "BM25", "random", "best")


class Judged(NamedTuple):
    """The first five lessons of an order: how many are relevant."""

    precision: float
    hit: float


class Tally:
    """Sums over the sessions of a project, by what was known and by system."""

    def __init__(self) -> None:
        self.sums: dict[tuple[str, str], list[Judged]] = {}
        self.lines: dict[str, list[bool]] = {}  # told: whether each is relevant

    def add(self, known: str, system: str, judged: Judged) -> None:
        self.sums.setdefault((known, system), []).append(judged)

    def add_lines(self, known: str, relevant: Sequence[bool]) -> None:
        self.lines.setdefault(known, []).extend(relevant)

    def row(self, name: str, known: str) -> list[str]:
        cells = [name, known, str(len(self.sums.get((known, "brief"), [])))]
        for system in _SYSTEMS:
            found = self.sums.get((known, system), [])
            cells.append(number(_mean([one.precision for one in found])))
            cells.append(number(_mean([one.hit for one in found])))
        lines = self.lines.get(known, [])
        return [*cells, f"{number(_mean(lines))} of {len(lines)}"]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def candidates(workspace: Workspace, work: SessionGoal) -> dict[str, str]:
    """The lessons that may be told for some work, with what they say; without those for any."""
    gate = Gate(workspace)
    for_any = {lesson.id for lesson in standing(workspace.index, _STANDING)}
    learned = learned_on(workspace.index, work.files)
    found: dict[str, str] = {}
    for name in sorted(tellable_ids(workspace.index) - for_any):
        body = workspace.index.body(name)
        if body is None or body[0] not in _KINDS:
            continue
        record = record_of(workspace, name)
        title = str(record.get("statement") or record.get("name") or "")
        text = gist(body[0], title, record)
        is_there = name in learned or not code_names(text).isdisjoint(work.names())
        if list(gate.passed([Recollection(name, body[0], title)], {name} if is_there else ())):
            found[name] = text
    return found


def judged(order: Sequence[str], relevant: Mapping[str, bool]) -> Judged:
    right = sum(relevant.get(name, False) for name in order[:_FIRST])
    return Judged(right / _FIRST, float(right > 0))


def at_random(relevant: Mapping[str, bool]) -> Judged:
    """The expected values of five lessons that are drawn."""
    every, right = len(relevant), sum(relevant.values())
    drawn = min(_FIRST, every)
    missed = math.comb(every - right, drawn) / math.comb(every, drawn)
    return Judged(drawn * right / every / _FIRST, 1 - missed)


def bm25(question: str, texts: Mapping[str, str]) -> list[str]:
    """The texts that share a word with a question, best first."""
    words = {name: Counter(_WORD.findall(text.casefold())) for name, text in texts.items()}
    holders = Counter(word for counts in words.values() for word in counts)
    usual = _mean([counts.total() for counts in words.values()])
    scores: dict[str, float] = {}
    for name, counts in words.items():
        long = 0.25 + 0.75 * counts.total() / usual
        scores[name] = sum(
            math.log(1 + (len(texts) - holders[word] + 0.5) / (holders[word] + 0.5))
            * counts[word]
            * 2.2
            / (counts[word] + 1.2 * long)
            for word in set(_WORD.findall(question.casefold()))
            if counts[word]
        )
    return sorted((name for name in scores if scores[name]), key=lambda name: (-scores[name], name))


def replay(workspace: Workspace, work: SessionWork, rare: set[str], tally: Tally) -> list[str]:
    """Judge the briefs of a session, then learn from it; returns the briefs."""
    briefs: list[str] = []
    edited = work.edited & rare
    if work.prompts and edited:
        workspace.sync()
        for known, files in (("prompt", []), ("3 files", work.files[:_FILES])):
            briefs.append(
                _judge(workspace, SessionGoal(work.prompts[0], files), edited, known, tally)
            )
    workspace.ingest([work.path])
    workspace.sessions.learn(_session(work.path))
    return briefs


def _judge(
    workspace: Workspace, work: SessionGoal, edited: frozenset[str], known: str, tally: Tally
) -> str:
    lessons = candidates(workspace, work)
    relevant = {name: bool(names(text) & edited) for name, text in lessons.items()}
    text = brief(workspace, work.goal, (), "", "", files=work.files)
    if any(relevant.values()):
        told = [name for name in _ID.findall(text) if name in lessons]
        asked = " ".join([work.goal, *map(posixpath.basename, work.files)])
        best = sorted(relevant, key=lambda name: not relevant[name])
        tally.add(known, "brief", judged(told, relevant))
        tally.add(known, "BM25", judged(bm25(asked, lessons), relevant))
        tally.add(known, "random", at_random(relevant))
        tally.add(known, "best", judged(best, relevant))
        tally.add_lines(known, [relevant[name] for name in told[:_FIRST]])
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data.add_option(parser)
    parser.add_argument("--only", default="", help="only projects whose name has this in it")
    parser.add_argument("--show", type=int, default=0, help="print the briefs of so many sessions")
    options = parser.parse_args()
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    rows: list[list[str]] = []
    for name, paths in _projects(data.folder(options)):
        if name in _PROJECTS and options.only in name:
            tally = _replayed(list(map(session_work, paths)), options.show)
            rows += [tally.row(name, known) for known in ("prompt", "3 files")]
    heads = [f"{system} {value}" for system in _SYSTEMS for value in ("P@5", "hit@5")]
    print_lines(("project", "known", "sessions", *heads, "lines relevant"), rows)


def _replayed(sessions: Sequence[SessionWork], show: int) -> Tally:
    tally, rare = Tally(), rare_names(sessions)
    with tempfile.TemporaryDirectory() as root, Workspace.init(Path(root)) as workspace:
        for place, work in enumerate(sessions):
            briefs = replay(workspace, work, rare, tally)
            if briefs and place >= len(sessions) - show:
                print(f"== {work.prompts[0][:300]}\n" + "\n--\n".join(briefs), end="\n\n")
    return tally


if __name__ == "__main__":
    main()
