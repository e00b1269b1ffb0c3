"""What consolidation costs: from nothing, again, after 100 new episodes, and for a single one.

    python benchmarks/consolidation/cost.py --data FOLDER [--sizes 1000,10000,100000] [--out FILE]

Stores are made of real work: the SQL tasks of `intercode_sql` (steps, errors and fixes, as the
scorer of lesson transfer turns them into episodes) and, every tenth episode, a session of coding
with its tool errors and what fixed them (`tool_errors`, with goals from `claude_transcripts`).
This stream is repeated until a store is full. Told again word for word it would be a heap of
copies; with nothing in common it would be unlike any project. So every second time it is told of
another world: a word that belongs to one database or one session (tables, columns, files, what a
goal is about) gets another ending, and all else stays, the words that many share and the errors
themselves. A hundred episodes are a day, ten are a session: after a month what nothing rests on is
archived, as it would be.

Every measurement is a process of its own, as the program would be; its time begins with opening
the workspace, and the operating system says how much memory it took at most. On a busy machine the
seconds of CPU say more than those of the clock, which the bars are about.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
from report import Bar, add_options, at_most, finish, print_lines, say, workplace

SIZES = (1_000, 10_000, 100_000)
BARRED = 10_000  # the size that the bars are about
GROWTH = 1.15  # the exponent between two sizes: 1 is linear
NEW = 100
CODING = 10  # one in so many episodes is a session of coding
TOLD = 2  # times that the stream is told of one world
A_DAY, A_SESSION = 100, 10  # episodes
BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
_FEW = 2  # databases or sessions: a word of no more is theirs
_WORD = re.compile(r"[A-Za-z]{3,}")
_ENDINGS = "bdfgklmnprstvz"
HERE = Path(__file__).resolve()

Document = dict[str, Any]

# -- episodes --------------------------------------------------------------------------------------


class Told(NamedTuple):
    """An episode, and the database or the session that it is about."""

    about: str
    episode: Document


def queries(data: Path) -> list[Told]:
    """The SQL tasks."""
    scorer = _scorer(data / "score" / "lesson_transfer.py")
    tasks = _lines((data / "intercode_sql" / "gpt-3.5.jsonl").read_text(encoding="utf-8"))
    return [
        Told(task["db"], scorer.episode({**task, "errors": list(scorer.errors(task))}, 0))
        for task in tasks
    ]


def _scorer(path: Path) -> ModuleType:
    """The outside scorer of lesson transfer: it says what the episode of a task is."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sessions(data: Path) -> list[Told]:
    """The sessions of coding in which a tool failed."""
    failed: dict[str, list[Document]] = defaultdict(list)
    for event in _lines((data / "tool_errors" / "events.jsonl").read_text(encoding="utf-8")):
        failed[event["session"]].append(event)
    packed = (data / "claude_transcripts" / "sessions.jsonl.gz").read_bytes()
    return [
        Told(one["session"], _session(one, failed[one["session"]]))
        for one in _lines(gzip.decompress(packed).decode())
        if one["session"] in failed and one["prompts"].strip()
    ]


def _session(session: Document, failed: Sequence[Document]) -> Document:
    log: list[Document] = []
    for event in failed:
        tried = {"action": event["tool"], "target": event["input"][:400]}
        log.append({**tried, "result": "fail", "error": event["error"][:300]})
        if event["fixed_by"]:
            log.append({**tried, "target": event["fixed_by"][:400], "result": "ok"})
    goal = session["prompts"].strip().partition("\n")[0][:300]
    files = session["files_touched"][:20]
    return {
        "agent": "eng-001",
        "context": {"phase": "development", "goal": goal, "files_involved": files},
        "action_log": [{"t": at, **one} for at, one in enumerate(log)],
        "outcome": "success" if session["commits"] else "partial",
    }


def _lines(text: str) -> list[Document]:
    return [json.loads(line) for line in text.splitlines()]


class Stream:
    """The same work again and again, in one world after the other."""

    def __init__(self, data: Path) -> None:
        coding = sessions(data)
        self._told: list[Told] = []
        for number, task in enumerate(queries(data)):
            self._told.append(task)
            if number % (CODING - 1) == CODING - 2:
                self._told.append(coding[number // (CODING - 1) % len(coding)])
        self._own = _own_words(self._told)

    def episodes(self, first: int, many: int) -> Iterator[Document]:
        for number in range(first, first + many):
            round_, place = divmod(number, len(self._told))
            told = self._elsewhere(self._told[place].episode, round_ // TOLD)
            yield {**told, **_when(number)}

    def _elsewhere(self, episode: Document, world: int) -> Document:
        """The episode as it would have been in another world; the first is the real one."""
        if not world:
            return episode
        ending = f"{_ENDINGS[world % len(_ENDINGS)]}{_ENDINGS[world // len(_ENDINGS)]}"

        def renamed(word: re.Match[str]) -> str:
            return word[0] + ending if word[0].lower() in self._own else word[0]

        told: Document = _everywhere(lambda text: _WORD.sub(renamed, text), episode)
        return {**told, "outcome": episode["outcome"]}


def _everywhere(change: Callable[[str], str], value: Any) -> Any:
    """A JSON value with all texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _everywhere(change, inner) for name, inner in value.items()}
    return [_everywhere(change, inner) for inner in value] if isinstance(value, list) else value


def _when(number: int) -> Document:
    moment = BEGIN + timedelta(days=number / A_DAY)
    return {
        "task_id": f"task-{number:06}",
        "session": f"session-{number // A_SESSION:05}",
        "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _own_words(told: Sequence[Told]) -> frozenset[str]:
    """The words that are met with few databases or sessions."""
    met: dict[str, set[str]] = defaultdict(set)
    for one in told:
        for word in _WORD.findall(json.dumps(one.episode, ensure_ascii=False)):
            met[word.lower()].add(one.about)
    return frozenset(word for word, places in met.items() if len(places) <= _FEW)


# -- what is measured, each in a process of its own ------------------------------------------------


def build(folder: Path, data: Path, size: int) -> Document:
    """Record so many episodes at once, which learns from none of them."""
    from loki_memory import Workspace

    folder.mkdir(parents=True)
    with Workspace.init(folder) as workspace:
        workspace.record(list(Stream(data).episodes(0, size)))
        workspace.sync()
    return {}


def consolidate(folder: Path, _: Path, __: int) -> Document:
    from loki_memory import Workspace

    start, begun = time.perf_counter(), time.process_time()
    with Workspace.open(folder) as workspace:
        report = workspace.consolidate()
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - begun,
        "written": report.written,
        "archived": report.archived,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def record(folder: Path, data: Path, first: int) -> Document:
    """New episodes, one by one, learned from as they come; the seconds that learning took."""
    from loki_memory import Episode, Workspace
    from loki_memory.consolidation import learn_now

    seconds: list[float] = []
    learn = learn_now.learn

    def timed(workspace: Workspace, new: Sequence[Episode]) -> None:
        start = time.perf_counter()
        learn(workspace, new)
        seconds.append(time.perf_counter() - start)

    learn_now.learn = timed
    with Workspace.open(folder) as workspace:
        for episode in Stream(data).episodes(first, NEW):
            workspace.record(episode)
    return {"seconds": seconds}


def apart(work: str, folder: Path, data: Path, number: int) -> Document:
    command = [sys.executable, str(HERE), "--apart", work, str(folder), str(data), str(number)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found: Document = json.loads(done.stdout)
    return found


WORKS = {work.__name__: work for work in (build, consolidate, record)}


class Cost(NamedTuple):
    """What a store of one size costs. Runs have seconds, MiB, and records written and archived."""

    size: int
    nothing: Document  # the run that found nothing but episodes
    again: Document  # the run after it, which finds nothing to do
    learned: list[float]  # seconds for the first phases of each new episode
    boundary: Document  # the run after these


def measured(folder: Path, data: Path, size: int) -> Cost:
    say(f"building a store of {size:,} …")
    apart("build", folder, data, size)
    say("consolidating …")
    nothing = apart("consolidate", folder, data, size)
    again = apart("consolidate", folder, data, size)
    say(f"{NEW} new episodes …")
    learned = apart("record", folder, data, size)["seconds"]
    boundary = apart("consolidate", folder, data, size)
    shutil.rmtree(folder)
    return Cost(size, nothing, again, learned, boundary)


# -- results ---------------------------------------------------------------------------------------

HEADS = ("episodes", "from nothing", "its CPU", "peak", "again")
HEADS += (f"+{NEW}", "its CPU", "written", "+1 median", "+1 p95")


def row(one: Cost) -> tuple[str, ...]:
    return (
        f"{one.size:,}",
        f"{one.nothing['seconds']:.2f} s",
        f"{one.nothing['cpu']:.2f} s",
        f"{one.nothing['peak']:,.0f} MiB",
        f"{one.again['seconds']:.2f} s",
        f"{one.boundary['seconds']:.2f} s",
        f"{one.boundary['cpu']:.2f} s",
        str(one.boundary["written"] + one.boundary["archived"]),
        f"{statistics.median(one.learned) * 1e3:.1f} ms",
        f"{_p95(one.learned) * 1e3:.1f} ms",
    )


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def bars(costs: Sequence[Cost]) -> Iterator[Bar]:
    for one in costs:
        if one.size == BARRED:
            yield at_most("10,000 from nothing, s", one.nothing["seconds"], 20)
            yield at_most("10,000 from nothing, peak MiB", one.nothing["peak"], 1000)
            yield at_most(f"{NEW} more in 10,000, s", one.boundary["seconds"], 5)
            yield at_most("one more in 10,000, ms", statistics.median(one.learned) * 1e3, 50)
    for small, large in pairwise(sorted(costs)):
        ratio = math.log(large.nothing["seconds"] / small.nothing["seconds"])
        exponent = ratio / math.log(large.size / small.size)
        yield at_most(f"growth from {small.size:,} to {large.size:,}, exponent", exponent, GROWTH)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what consolidation costs.")
    add_options(parser)
    folder = os.environ.get("LOKI_BENCH_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=not folder, help="the data")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="episodes per store")
    parser.add_argument("--folder", type=Path, help="where stores are built and removed again")
    options = parser.parse_args()
    sizes = [200] if options.quick else [int(size) for size in options.sizes.split(",")]
    start = time.perf_counter()
    with workplace(options.folder) as place:
        costs = [measured(place / str(size), Path(options.data), size) for size in sizes]
    print_lines(HEADS, map(row, costs))
    results = {"costs": [one._asdict() for one in costs]}
    finish(list(bars(costs)), results, options, start)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--apart"]:
        work, where, data_, number_ = sys.argv[2:]
        print(json.dumps(WORKS[work](Path(where), Path(data_), int(number_))))
    else:
        main()
