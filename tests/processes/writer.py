"""One of many writers of a workspace: `writer.py ROOT NAME COUNT SHARED`.

Says `ready`, waits for a line, then makes COUNT updates and says one JSON line for each that was
acknowledged: what was done and how to recognise it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from loki_memory import Workspace

_SYNC_EVERY = 20


def main(root: str, name: str, count: str, shared: str) -> None:
    workspace = Workspace.open(root)
    fact = workspace.remember(f"Writer {name} began").id

    def remember(n: int) -> str:
        return workspace.remember(f"Writer {name} saw thing {n}").id

    def correct(n: int) -> str:
        workspace.correct(shared, category=f"{name}-{n}")
        return f"{name}-{n}"

    def record(n: int) -> str:
        return workspace.record({"goal": f"Goal {n} of {name}", "outcome": "success"}).id

    def link(n: int) -> str:
        return workspace.link(fact, "related_to", workspace.remember(f"End {n} of {name}").id).id

    acts: tuple[Callable[[int], str], ...] = (remember, correct, record, link)
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(int(count)):
        act = acts[n % len(acts)]
        print(json.dumps([act.__name__, act(n)]), flush=True)
        if n % _SYNC_EVERY == 0:
            workspace.sync()


if __name__ == "__main__":
    main(*sys.argv[1:])
