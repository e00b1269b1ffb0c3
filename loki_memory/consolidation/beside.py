"""Look at episodes in a second process, while this one reads beliefs.

A run that finds little new relates all episodes and reads all beliefs, each for about as long. On
two cores these go on side by side: the second process is made before memory is looked at, when
there is little to copy, and waits until the index is up to date (`go`). It changes nothing. It says
first what it looked at, and if this process sees anything else, nobody listens.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from loki_memory import beside
from loki_memory.consolidation.input import Survey, kept
from loki_memory.consolidation.run_cache import KEPT

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

LARGE = 800_000  # bytes that the last run kept, of about 2,000 episodes: less is done at once
_GO = b"."


class Ahead:
    """What is told of episodes."""

    def __init__(self, process: beside.Beside, signal: int) -> None:
        self._process: beside.Beside | None = process
        self._signal = signal
        self._heard: dict[str, Any] = {}

    def go(self) -> None:
        """The index is as it will be when this process reads it."""
        with suppress(BrokenPipeError):
            os.write(self._signal, _GO)

    def ask(self, name: str) -> Any:
        """Wait for what is told under a name; None if it is not."""
        while name not in self._heard:
            said = self._process.next() if self._process else None
            if said is None:
                return None
            self._heard.update([said])
        return self._heard.pop(name)

    def close(self) -> None:
        """Nobody asks any more."""
        os.close(self._signal)
        if self._process:
            self._process.end()
        self._process = None


@contextmanager
def looking_ahead(workspace: Workspace) -> Iterator[Ahead | None]:
    """A second process, where there is enough to do for it."""
    found = _begun(workspace)
    try:
        yield found
    finally:
        if found:
            found.close()


def _begun(workspace: Workspace) -> Ahead | None:
    try:
        if os.stat(workspace.layout.cache / KEPT).st_size < LARGE:
            return None
    except OSError:  # there is nothing to go on from: everything will be looked at
        return None
    wait, signal = os.pipe()
    try:
        process = beside.begin_telling(lambda: _told(workspace, wait, signal))
    finally:
        os.close(wait)
    if process is None:
        os.close(signal)
        return None
    return Ahead(process, signal)


def _told(workspace: Workspace, wait: int, signal: int) -> Iterator[Any]:
    """What the second process says, when it is told to go."""
    os.close(signal)
    import_module("loki_memory.consolidation.clustering")  # numpy, before anybody waits for it
    known = kept(workspace)
    if os.read(wait, len(_GO)):
        yield from Survey(workspace, known, of_beliefs=False).tell()
