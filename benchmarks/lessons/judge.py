"""Lists for a reader who judges lessons and remedies by hand, and what their verdicts come to.

    python benchmarks/lessons/judge.py --data DIR lists OUT     write the lists without verdicts
    python benchmarks/lessons/judge.py verdicts                 count the verdicts that are kept

Two lists per project, with a fixed seed: up to 50 errors for which memory knows a remedy, each with
the remedy of its class, as a hook would tell it, and the 30 lessons that memory would tell first
without a question: the routine, preferences and rules, warnings with a remedy in words, then
statements that read as lessons by their worth. How many errors may teach, and how many of them have
a remedy, is printed. Of the repositories of
SWE-ContextBench there is one list of 50 errors. A reader who has not seen the code gives each line
a verdict: `yes` (a developer can act on it, or is glad to know it), `trivial`, `no` (says nothing,
or not understood), `wrong` (misleading or dangerous). The lists with their verdicts are kept in
`verdicts/`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from loki_memory import Workspace
from loki_memory.consolidation.failures import BARE, Failure, mishaps
from loki_memory.models import AntiPattern, Belief, Episode, Fact
from loki_memory.models.kinds import USERS_WORDS
from loki_memory.models.lesson_text import objection, worth

_PROJECTS = {"entireio-cli": "entireio+cli", "entire-bmad": "ShamsiievDmytro+entire-bmad"}
_ERRORS, _LESSONS, _SEED = 50, 30, 7
_SHOWN = 300  # characters of an error
_KEPT = Path(__file__).parent / "verdicts"


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
    for name, folder in _PROJECTS.items():
        with tempfile.TemporaryDirectory() as place, Workspace.init(Path(place)) as workspace:
            top = Path(options.data) / "claude_transcripts" / "claude" / folder
            workspace.ingest(sorted(path for path in top.rglob("*") if path.is_file()))
            workspace.consolidate()
            _write_remedies(options.out, name, _remedies(workspace))
            _write(options.out / f"lessons-{name}.tsv", _lessons(workspace))
    met = [row for paths in _repositories(Path(options.data)) for row in _learned(paths)]
    _write_remedies(options.out, "swe-context", met)


def _repositories(data: Path) -> list[list[Path]]:
    """The transcripts of SWE-ContextBench by repository."""
    found: dict[str, list[Path]] = {}
    lines = (data / "swe_context" / "sessions.jsonl").read_text(encoding="utf-8").splitlines()
    for row in sorted(map(json.loads, lines), key=lambda row: (row["start"], row["file"])):
        path = data / "swe_context" / "sessions" / row["file"]
        found.setdefault(row["repo"], []).append(path)
    return [found[name] for name in sorted(found)]


def _learned(paths: list[Path]) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as place, Workspace.init(Path(place)) as workspace:
        workspace.ingest(paths)
        workspace.consolidate()
        return _remedies(workspace)


def _write_remedies(out: Path, name: str, met: list[tuple[str, str]]) -> None:
    known = [(message, remedy) for message, remedy in met if remedy]
    print(f"{name}: {len(met)} errors may teach, {len(known)} of them have a remedy")
    _write(out / f"remedies-{name}.tsv", _sample(known))


def _write(path: Path, lines: Iterator[str]) -> None:
    path.write_text("".join(f"\t{line}\n" for line in lines))


def _remedies(workspace: Workspace) -> list[tuple[str, str]]:
    """Errors that may teach, with what memory would say."""
    return [
        (" ".join(failure.line.split())[:_SHOWN], _told(workspace, failure))
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


def _sample(met: list[tuple[str, str]]) -> Iterator[str]:
    chosen = random.Random(_SEED).sample(sorted(met), min(_ERRORS, len(met)))
    yield from (f"{message}\t{remedy}" for message, remedy in chosen)


def _lessons(workspace: Workspace) -> Iterator[str]:
    active = [
        belief
        for belief in workspace.list(status="active")
        if isinstance(belief, Belief) and _is_told(belief)
    ]
    best = sorted(active, key=lambda belief: (_class(belief), *_worth(belief), belief.id))
    yield from map(_line, best[:_LESSONS])


def _is_told(belief: Belief) -> bool:
    if isinstance(belief, AntiPattern):
        return bool(belief.prevention) and not BARE.match(belief.prevention or "")
    if not isinstance(belief, Fact):
        return False
    return not objection(belief.statement, is_stated=belief.type in USERS_WORDS)


def _class(belief: Belief) -> int:
    key = (belief.model_extra or {}).get("key") or {}
    if "routine" in key:
        return 0
    if isinstance(belief, Fact) and belief.type in USERS_WORDS:
        return 1
    return 2 if isinstance(belief, AntiPattern) and len(belief.episodes_for()) > 1 else 3


def _worth(belief: Belief) -> tuple[float, float]:
    sessions = len(belief.episodes_for())
    if isinstance(belief, Fact):
        return -worth(belief.statement, belief.type or "", belief.score or 0.3, sessions), 0.0
    return -float(sessions), -(belief.confidence or 0.0)


def _line(belief: Belief) -> str:
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
