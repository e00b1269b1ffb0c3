"""What it costs to merge a thousand records that both sides changed.

    python benchmarks/history/merge.py [--records 1000] [--rounds 5] [--json FILE]

From the bytes of three versions to the bytes of the merged one, in one process, as `resolve` and
`pull` do it: read, merged field by field, weighed again, checked for secrets, written. A third each
are facts that two people corrected, anti-patterns that two clones consolidated, and episodes.

The other rows are what git starts for each file: our merge driver, which is mostly what Python and
pydantic take to start, and `git merge-file`, which leaves conflict markers in most of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from table import Row, Spread, in_turns, limited, machine, print_table, write_json

from loki_memory.files.codec import encode
from loki_memory.history.resolve import merge_files
from loki_memory.models import AntiPattern, Episode, Fact, Memory, parse

AT_MOST = 1.0  # seconds for a thousand records
STARTS = 20  # files that the driver is started for
PROGRAM = str(Path(sys.executable).with_name("loki-mem"))


class Versions(NamedTuple):
    """A file in three versions."""

    path: str
    base: bytes
    ours: bytes
    theirs: bytes


def fact(number: int) -> tuple[str, list[Memory]]:
    """A fact that two people corrected on different days."""
    given = {"id": f"fact-{number:06}", "statement": f"Service {number} listens on port 8080"}
    base = parse(Fact, {**given, "origin": "owner", "valid_from": "2026-01-01"})
    sides = [
        base.changed(
            statement=f"Service {number} listens on port {port}",
            tags=["network", tag],
            history=[{"on": day, "by": "owner", "was": {"statement": base.statement}}],
        )
        for port, tag, day in ((8443, "tls", "2026-01-05"), (9090, "metrics", "2026-01-06"))
    ]
    return f"semantic/facts/{base.id}.json", [base, *sides]


def mistake(number: int) -> tuple[str, list[Memory]]:
    """An anti-pattern that two clones met again and consolidated."""

    def seen(episodes: Sequence[int], day: int) -> AntiPattern:
        ids = [f"ep-2026-01-0{1 + n % 9}-{number:06}{n:04}" for n in episodes]
        given: dict[str, Any] = {
            "id": f"anti-{number:06}",
            "what_fails": f"Table <*> does not exist (table_{number})",
            "prevention": "List the tables first",
            "resolutions": [{"do": "List the tables first", "for": ids, "against": []}],
            "key": {"head": "sql", "template": "Table <*> does not exist", "param": str(number)},
            "evidence": {"for": ids, "against": []},
            "confidence": 0.8,
            "status": "active",
            "origin": "agent",
            "valid_from": "2026-01-01",
            "at": f"2026-01-0{day}T10:00:00Z",
        }
        return parse(AntiPattern, given)

    base = seen(range(5), 1)
    sides = [seen(range(12), 5), seen([*range(5), *range(20, 27)], 6)]
    return f"semantic/anti-patterns/{base.id}.json", [base, *sides]


def episode(number: int) -> tuple[str, list[Memory]]:
    """An episode that one side summarised while the other said what had helped."""
    log = [{"t": n, "action": "edit", "target": f"src/file{n}.py"} for n in range(20)]
    given = {"id": f"ep-2026-01-01-{number:06}", "timestamp": "2026-01-01T10:00:00Z"}
    base = parse(Episode, {**given, "goal": f"Mend part {number}", "action_log": log})
    summary = base.changed(action_log=log[:2], detail="summary")
    recalled = base.changed(recalled=[{"id": "sem-001", "helpful": True}], tags=["mended"])
    return f"episodic/2026-01-01/{base.id}.json", [base, summary, recalled]


def versions(count: int) -> list[Versions]:
    makers: list[Callable[[int], tuple[str, list[Memory]]]] = [fact, mistake, episode]
    made = (makers[number % len(makers)](number) for number in range(count))
    return [Versions(f".loki/memory/{path}", *map(encode, records)) for path, records in made]


def merge_all(files: Sequence[Versions]) -> None:
    for path, base, ours, theirs in files:
        if merge_files(base, ours, theirs, path) is None:
            raise SystemExit(f"{path} was not merged")


def as_text(files: Sequence[Versions], folder: Path) -> None:
    """What git does to a few of the same files, each in a process of its own."""
    for one in files:
        subprocess.run(
            ["git", "merge-file", "-p", *laid_out(one, folder)], capture_output=True, check=False
        )


def drive(files: Sequence[Versions], folder: Path) -> None:
    for one in files:
        ours, base, theirs = laid_out(one, folder)
        command = [PROGRAM, "merge-driver", base, ours, theirs, one.path]
        subprocess.run(command, cwd=folder, check=True)  # the driver works where git runs it


def laid_out(one: Versions, folder: Path) -> list[Path]:
    """The versions as files, in the order of `git merge-file`: ours, base, theirs."""
    places = [folder / name for name in ("ours", "base", "theirs")]
    for place, data in zip(places, (one.ours, one.base, one.theirs), strict=True):
        place.write_bytes(data)
    return places


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    files = versions(options.records)
    few = files[:STARTS]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        [all_of_them] = in_turns([lambda _: merge_all(files)], options.rounds)
        driven, texts = in_turns(
            [lambda _: drive(few, folder), lambda _: as_text(few, folder)], options.rounds
        )
        rows = [
            limited(Row("merge", len(files), "s", Spread.of(all_of_them)), AT_MOST),
            Row("merge driver, a process each", len(few), "s", Spread.of(driven)),
            Row("git merge-file, a process each", len(few), "s", Spread.of(texts)),
        ]
        print_table(rows)
        if options.json:
            write_json(options.json, rows, {"machine": machine(folder)})
    if any(row.ok is False for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
