"""The junk rate of real stores by class, and a sample of what was flagged, for a reader to judge.

    python benchmarks/junk.py --data FOLDER [--sample 30]

Stores are the memories of other systems in `peer_memories/` and `loki_real/`, and what this program
learns from the open transcripts of two projects. The sample of a class is drawn with a fixed seed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "recall"))

from data import add_option, folder

from loki_memory import Workspace
from loki_memory.browse.audit import Audit
from loki_memory.cli.maintain import audit_of
from loki_memory.errors import InvalidRecord

_SEED = 3
_SHOWN = 200  # characters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_option(parser)
    parser.add_argument("--sample", type=int, default=0, help="memories of each class to print")
    options = parser.parse_args()
    data = folder(options)
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    flagged: dict[str, list[str]] = defaultdict(list)
    for name, audit in chain(_imported(data), _learned(data)):
        counts = {entry.name: entry.memories for entry in audit.classes if entry.memories}
        print(f"{name}: {audit.memories} memories, junk {audit.rate:.1%}, {counts}", flush=True)
        for entry in audit.classes:
            flagged[entry.name] += [f"{f.text[:_SHOWN]} ({f.why})" for f in entry.findings]
    for name, lines in flagged.items() if options.sample else ():
        chosen = random.Random(_SEED).sample(sorted(lines), min(options.sample, len(lines)))
        print(f"\n## {name}: {len(chosen)} of {len(lines)}\n", *chosen, sep="\n")


def _imported(data: Path) -> Iterator[tuple[str, Audit]]:
    places = [*sorted((data / "peer_memories").iterdir())]
    places += [path / "final" for path in sorted((data / "loki_real").iterdir())]
    for path in places:
        try:
            audit = audit_of(path, "")
        except InvalidRecord as error:
            print(f"{path}: {error}", file=sys.stderr)
            continue
        if audit.memories:
            yield str(path.relative_to(data)), audit


def _learned(data: Path) -> Iterator[tuple[str, Audit]]:
    for project in sorted((data / "claude_transcripts" / "claude").iterdir()):
        with tempfile.TemporaryDirectory() as place, Workspace.init(Path(place)) as workspace:
            workspace.ingest(sorted(path for path in project.rglob("*") if path.is_file()))
            workspace.consolidate()
            yield project.name, workspace.care.audit()


if __name__ == "__main__":
    main()
