"""Read what a client writes to the standard input of a hook, without waiting for it for ever.

Some clients never close the pipe. Then the input ends with the object that it holds, or when the
client has had time enough. Nothing is loaded here that a hook could do without.
"""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

MOST_BYTES = 4_000_000  # a tool may answer with a whole file; no hook needs more than this
_BLOCK = 1 << 20
_SECONDS = 1.5  # for all of it: a client has it ready when it starts a hook
_LOOK_MS = 20  # without a new byte, before a look at whether it is complete


def read_event(stream: IO[bytes]) -> bytes:
    """Read all input, so that the client is never blocked; empty if it is too long."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # it is held in memory
        data = stream.read()
    else:
        data = _read(descriptor, time.monotonic() + _SECONDS)
    return data if len(data) <= MOST_BYTES else b""


def _read(descriptor: int, deadline: float) -> bytes:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    data = b""
    while time.monotonic() < deadline:
        if poll.poll(_LOOK_MS):
            block = os.read(descriptor, _BLOCK)
            if not block:
                break
            data += block[: MOST_BYTES + 1 - len(data)]
        elif _is_complete(data):
            break
    return data


def _is_complete(data: bytes) -> bool:
    """Check if the bytes are a whole JSON object, however long the pipe stays open."""
    if not data.rstrip().endswith(b"}"):
        return False
    import json

    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
