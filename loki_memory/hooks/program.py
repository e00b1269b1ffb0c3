"""`loki-mem hook EVENT` as a process: JSON in, JSON or nothing out."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from loki_memory.daemon.standard_input import read_event
from loki_memory.hooks.response import Response, respond


def answer(name: str, *, folder: str | None = None, wait: bool = False) -> Response:
    """The response to the event on standard input."""
    try:
        data = read_event(sys.stdin.buffer) if sys.stdin is not None else b""
    except (OSError, ValueError):  # closed, or not open at all
        data = b""
    return respond(name, data, os.environ, folder=folder, wait=wait)


def run(name: str) -> int:
    """Answer the event and print the response; returns the exit code."""
    response = answer(name)
    show(response)
    return response.code


def show(response: Response) -> None:
    """Print a response; a closed stream is ignored."""
    for stream, text in ((sys.stdout, response.out), (sys.stderr, response.err)):
        if text:
            with suppress(OSError, ValueError, AttributeError):
                stream.buffer.write(text.encode("utf-8", "replace"))
                stream.flush()
