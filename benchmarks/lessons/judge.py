"""Lists for a reader who judges lessons and remedies by hand, and what their verdicts come to.

    python benchmarks/lessons/judge.py --data DIR lists OUT     write the lists without verdicts
    python benchmarks/lessons/judge.py verdicts                 count the verdicts that are kept

Two lists per project, with a fixed seed: up to 50 remedies that memory knows, each once, with an
error that it answers, as a hook would tell it; and the 30 lessons that memory would tell first
without a question: the routine, preferences and rules, then warnings with a remedy in words and
statements that read as lessons, by their worth, each lesson once. The repositories of
SWE-ContextBench share two lists. How many errors may teach, how many of them have a remedy, and how
long learned texts are, is printed. A reader gives each line a verdict: `yes` (a developer can act
on it, or is glad to know it), `trivial`, `no` (says nothing, or not understood), `wrong`
(misleading or dangerous). The lists with their verdicts are kept in `verdicts/`: NAME.tsv and
NAME.second.tsv by two readers who have not seen the code, each by themselves, with lines of an
earlier version among those that are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from loki_memory import Workspace
from loki_memory.consolidation.failures import BARE, EXAMPLE, Failure, mishaps
from loki_memory.index.gate import UNTRUSTED
from loki_memory.models import AntiPattern, Belief, Episode, Fact, Memory
from loki_memory.models.kinds import USERS_WORDS
from loki_memory.models.lesson_order import ranked
from loki_memory.models.lesson_text import objection
from loki_memory.models.text import stem

_PROJECTS = {"entireio-cli": "entireio+cli", "entire-bmad": "ShamsiievDmytro+entire-bmad"}
_REMEDIES, _LESSONS, _SEED = 50, 30, 7
_WORD = re.compile(r"\w{4,}")
_SAME = 0.6  # of the words of the shorter of two lessons that both have
_SHARED = 4  # words, at least
_SHOWN = 300  # characters of an error
_KEPT = Path(__file__).parent / "verdicts"


class Remedy(NamedTuple):
    """An error that may teach, and the remedy of its class; empty if none is known."""

    id: str
    error: str
    told: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("LOKI_BENCH_DATA"))
    parser.add_argument("what", choices=["lists", "verdicts"])
    parser.add_argument("out", nargs="?", type=Path)
    options = parser.parse_args()
    if options.what == "verdicts":
        _count()
        return
    if not (options.data and options.out):
        parser.error("give the data folder with --data or LOKI_BENCH_DATA, and where to write")
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    options.out.mkdir(parents=True, exist_ok=True)
    data = Path(options.data)
    for name, folder in _PROJECTS.items():
        top = data / "claude_transcripts" / "claude" / folder
        sessions = sorted(path for path in top.rglob("*") if path.is_file())
        _write_lists(options.out, name, [sessions])
    _write_lists(options.out, "swe-context", _repositories(data))


def _write_lists(out: Path, name: str, projects: list[list[Path]]) -> None:
    """Write the lessons and the remedies that memory has after the sessions of each project."""
    met: list[Remedy] = []
    lessons: list[Belief] = []
    lengths: list[int] = []
    for sessions in projects:
        with tempfile.TemporaryDirectory() as place, Workspace.init(Path(place)) as workspace:
            workspace.ingest(sessions)
            workspace.consolidate()
            met += _remedies(workspace)
            beliefs = [one for one in workspace.list() if isinstance(one, Belief)]
        lessons += filter(_is_told, beliefs)
        lengths += [len(belief.title()) for belief in beliefs]
    known = [remedy for remedy in met if remedy.told]
    print(f"{name}: {len(met)} errors may teach, {len(known)} of them have a remedy")
    print(f"{name}: {len(lengths)} learned texts, {mean(lengths):.0f} characters on average")
    _write(out / f"remedies-{name}.tsv", _sample(known))
    best = islice(_told_once(sorted(ranked(lessons), key=_class)), _LESSONS)
    _write(out / f"lessons-{name}.tsv", map(_line, best))


def _repositories(data: Path) -> list[list[Path]]:
    """The transcripts of SWE-ContextBench by repository."""
    found: dict[str, list[Path]] = {}
    lines = (data / "swe_context" / "sessions.jsonl").read_text(encoding="utf-8").splitlines()
    for row in sorted(map(json.loads, lines), key=lambda row: (row["start"], row["file"])):
        path = data / "swe_context" / "sessions" / row["file"]
        found.setdefault(row["repo"], []).append(path)
    return [found[name] for name in sorted(found)]


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"\t{line}\n" for line in lines))


def _remedies(workspace: Workspace) -> list[Remedy]:
    """Errors that may teach, with what memory would say."""
    return [
        Remedy(failure.id, " ".join(failure.line.split())[:_SHOWN], _told(workspace, failure))
        for episode in workspace.list(kind="episode")
        if isinstance(episode, Episode)
        for failure in mishaps(episode)
    ]


def _told(workspace: Workspace, failure: Failure) -> str:
    """The remedy of the class of an error; empty if none is known."""
    is_known = workspace.index.body(failure.id) is not None
    record = workspace.get(failure.id) if is_known else None
    told = record.prevention if isinstance(record, AntiPattern) else ""
    return " ".join((told or "").split())


def _sample(met: list[Remedy]) -> Iterator[str]:
    """Yield each remedy once, with the error that comes first in the alphabet."""
    first = {remedy.told: remedy for remedy in sorted(met, reverse=True)}
    chosen = random.Random(_SEED).sample(sorted(first.values()), min(_REMEDIES, len(first)))
    yield from (f"{remedy.error}\t{remedy.told}" for remedy in chosen)


def _is_told(belief: Belief) -> bool:
    if belief.status != "active" or belief.origin in UNTRUSTED:
        return False
    if isinstance(belief, AntiPattern):
        return bool(belief.prevention) and not BARE.match(belief.prevention or "")
    if not isinstance(belief, Fact):
        return False
    return not objection(belief.statement, is_stated=belief.type in USERS_WORDS)


def _class(belief: Memory) -> int:
    """The routine, what people asked for, and the rest."""
    if "routine" in ((belief.model_extra or {}).get("key") or {}):
        return 0
    return 1 if isinstance(belief, Fact) and belief.type in USERS_WORDS else 2


def _told_once(beliefs: Iterable[Memory]) -> Iterator[Memory]:
    """Beliefs without those that say what one before them says."""
    seen: list[frozenset[str]] = []
    for belief in beliefs:
        words = frozenset(stem(word) for word in _WORD.findall(_said(belief).lower()))
        if words and any(_says(words, other) for other in seen):
            continue
        seen.append(words)
        yield belief


def _said(belief: Memory) -> str:
    """The words of a lesson: of an error, what to do about it."""
    told = belief.prevention if isinstance(belief, AntiPattern) else None
    return (told or "").partition(EXAMPLE)[0] or belief.title()


def _says(words: frozenset[str], other: frozenset[str]) -> bool:
    return words == other or len(words & other) >= max(_SHARED, _SAME * min(len(words), len(other)))


def _line(belief: Memory) -> str:
    told = f" -> {belief.prevention}" if isinstance(belief, AntiPattern) else ""
    return " ".join(f"{belief.title()}{told}".split())


def _count() -> None:
    for path in sorted(_KEPT.glob("*.tsv")):
        verdicts = Counter(line.partition("\t")[0] for line in path.read_text().splitlines())
        total = sum(verdicts.values())
        shares = ", ".join(f"{name} {count}" for name, count in sorted(verdicts.items()))
        print(f"{path.stem}: {total} lines, {shares}; yes {verdicts['yes'] / total:.2f}")


if __name__ == "__main__":
    main()
