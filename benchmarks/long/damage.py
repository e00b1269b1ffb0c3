"""Damage an index at random, many times: does every answer stay the same?

    python benchmarks/long/damage.py [--times 300] [--seed 1]

A bit is flipped, a block overwritten, or the file cut. After each, a new process of memory is asked
and must say, list and find the same. Exits with 1 if one answer differs.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from loki_memory import Workspace

_BLOCK = 512


def answers(root: Path) -> tuple[list[str], list[str]]:
    with Workspace.open(root) as workspace:
        told = [hit.id for hit in workspace.recall("which module needs tool 3")]
        return told, sorted(memory.id for memory in workspace.list())


def damage(path: Path, chance: random.Random) -> str:
    """Do one damage to a file, and return what it was."""
    size = path.stat().st_size
    kind = chance.choice(["bit", "bit", "bit", "block", "cut"])
    place = chance.randrange(size)
    with path.open("r+b") as file:
        file.seek(place)
        if kind == "bit":
            byte = file.read(1)[0] ^ 1 << chance.randrange(8)
            file.seek(place)
            file.write(bytes([byte]))
        elif kind == "block":
            file.write(chance.randbytes(min(_BLOCK, size - place)))
        else:
            file.truncate(place)
    return kind


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    kinds: Counter[str] = Counter()
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        os.environ.update(LOKI_HOME=f"{place}/home", CI="1")
        root = Path(place, "project")
        root.mkdir()
        with Workspace.init(root) as workspace:
            for number in range(60):
                workspace.remember(f"Module {number} needs tool {number % 7} and version {number}")
        expected = answers(root)
        for _ in range(options.times):
            kinds[damage(root / ".loki" / "cache" / "index.db", chance)] += 1
            wrong += answers(root) != expected
    print(f"{options.times} damages ({dict(sorted(kinds.items()))}): {wrong} wrong answers")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
