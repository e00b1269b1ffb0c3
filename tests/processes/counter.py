"""Count up a ledger by compare and swap: `counter.py ROOT PATH TIMES`.

Says `ready`, waits for a line, and in the end says how often another process was faster.
"""

from __future__ import annotations

import sys

from loki_memory import Workspace
from loki_memory.errors import FileChanged
from loki_memory.files.codec import decode
from loki_memory.files.store import Store


def main(root: str, path: str, times: str) -> None:
    store = Workspace.open(root).store
    print("ready", flush=True)
    sys.stdin.readline()
    print(sum(_count_up(store, path) for _ in range(int(times))), flush=True)


def _count_up(store: Store, path: str) -> int:
    """Add one; returns how many others were faster."""
    tries = 0
    while True:
        seen = store.read(path)
        assert seen is not None
        ledger = decode(path, seen.data)
        done = ledger.document()["tasks_completed"]
        try:
            store.write(ledger.changed(tasks_completed=done + 1), path, if_match=seen.etag)
        except FileChanged:
            tries += 1
        else:
            return tries


if __name__ == "__main__":
    main(*sys.argv[1:])
