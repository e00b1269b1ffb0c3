"""Are all facts there that many processes write without pause?

    python benchmarks/long/writers.py [--writers 32] [--writes 1000]

Prints the rate, the slowest call of any process after its first, and how many calls gave up. Exits
with 1 if an acknowledged fact is missing or a call gave up.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from loki_memory import Workspace
from loki_memory.errors import LokiMemoryError


def write(root: str, name: str, writes: str) -> None:
    facts, slowest, refused = [], 0.0, 0
    with Workspace.open(root) as workspace:
        for number in range(int(writes)):
            began = time.monotonic()
            try:
                facts.append(workspace.remember(f"Fact {number} of writer {name}").title())
            except LokiMemoryError:
                refused += 1
            slowest = max(slowest, time.monotonic() - began) if number else 0.0
    print(json.dumps([facts, slowest, refused]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, default=32)
    parser.add_argument("--writes", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ.update(LOKI_HOME=f"{place}/home", CI="1")
        root = Path(place, "project")
        root.mkdir()
        Workspace.init(root).close()
        call = [sys.executable, __file__, "write", str(root)]
        began = time.monotonic()
        writers = [
            subprocess.Popen([*call, str(number), str(options.writes)], stdout=subprocess.PIPE)
            for number in range(options.writers)
        ]
        said = [json.loads(writer.communicate()[0]) for writer in writers]
        seconds = time.monotonic() - began
        with Workspace.open(root) as workspace:
            there = {memory.title() for memory in workspace.list(kind="fact")}
    acknowledged = {fact for facts, _, _ in said for fact in facts}
    refused = sum(count for _, _, count in said)
    print(
        f"{options.writers} x {options.writes}: {len(acknowledged)} acknowledged, "
        f"{len(acknowledged - there)} missing, {refused} gave up, "
        f"{len(acknowledged) / seconds:.0f}/s, slowest call {max(s for _, s, _ in said):.2f} s"
    )
    return int(bool(acknowledged - there or refused))


if __name__ == "__main__":
    sys.exit(write(*sys.argv[2:]) if sys.argv[1:2] == ["write"] else main())
