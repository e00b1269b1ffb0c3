"""Note checkpoints of an agent: `noter.py ROOT AGENT TIMES`, each with a pattern of its own."""

from __future__ import annotations

import sys

from loki_memory import Workspace
from loki_memory.team.ledgers import note_checkpoint


def main(root: str, agent: str, times: str) -> None:
    workspace = Workspace.open(root)
    for number in range(int(times)):
        note_checkpoint(workspace, agent, {"context": {"patterns_learned": [f"sem-{number}"]}})


if __name__ == "__main__":
    main(*sys.argv[1:])
