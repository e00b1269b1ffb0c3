"""A process that remembers facts without pause, and says how many were acknowledged."""

from __future__ import annotations

import sys

from loki_memory import Workspace

root, name, number = sys.argv[1:]
with Workspace.open(root) as workspace:
    print("ready", flush=True)
    sys.stdin.readline()
    stored = [
        workspace.remember(f"Fact {count} of writer {name}").id for count in range(int(number))
    ]
print(f"{len(stored)} acknowledged", flush=True)
