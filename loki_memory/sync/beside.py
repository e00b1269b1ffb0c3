"""Compare the files with the index in a second process, while this one loads what it needs.

A command that recalls loads numpy for 80 ms and looks at up to 10,000 files for 30; on two cores
these go on side by side. The second process is a copy of this one that only looks and says whether
anything changed; taking in a change is left to the first.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

from loki_memory.sync import Freshness, is_current

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout
    from loki_memory.index.index import Index

_CURRENT, _CHANGED = 0, 1


class Beside:
    """A look that goes on in a process of its own."""

    def __init__(self, process: int) -> None:
        self._process = process

    def found_nothing(self) -> bool:
        """Wait for the look; whether it was complete and found the index up to date."""
        try:
            _, status = os.waitpid(self._process, 0)
        except ChildProcessError:  # somebody else took note of its end
            return False
        return os.waitstatus_to_exitcode(status) == _CURRENT


def begin(layout: Layout, index: Index, freshness: Freshness) -> Beside | None:
    """Begin a look; None where a second process would not help, or is not safe to make."""
    if sys.platform != "linux" or (os.cpu_count() or 1) < 2:  # noqa: PLR2004
        return None
    if threading.active_count() > 1 or index.path is None or not index.path.exists():
        return None
    try:
        process = os.fork()
    except OSError:
        return None
    return Beside(process) if process else _look(layout, index, freshness)


def _look(layout: Layout, index: Index, freshness: Freshness) -> NoReturn:
    """Whatever goes wrong here, the first process looks again and says so."""
    answer = _CHANGED
    try:
        if is_current(layout, index, freshness):
            answer = _CURRENT
    finally:
        os._exit(answer)
