"""Live updates: tell every open page by server-sent events that memory changed.

An event says "something changed" and nothing more; the page then asks for what it shows. Nothing
runs between events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from threading import Thread

_OPENED = ": the connection is open\n\n"


class Broadcast:
    """The connections of open pages, each with a flag that is set when memory changes."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._closed = False

    def notify(self) -> None:
        """Wake every connection; any thread may call this."""
        for flag, loop in list(self._waiting.items()):
            loop.call_soon_threadsafe(flag.set)

    def close(self) -> None:
        """End every connection, so that the server can stop."""
        self._closed = True
        self.notify()

    def follow(self, wait: Callable[[], bool]) -> Thread:
        """Notify whenever `wait` returns True, in a thread that ends with the process."""
        thread = Thread(target=self._follow, args=(wait,), name="live", daemon=True)
        thread.start()
        return thread

    def _follow(self, wait: Callable[[], bool]) -> None:
        while not self._closed:
            if wait():
                self.notify()

    async def events(self) -> AsyncIterator[str]:
        """The events for one connection."""
        flag = asyncio.Event()
        self._waiting[flag] = asyncio.get_running_loop()
        try:
            yield _OPENED
            while not self._closed:
                await flag.wait()
                flag.clear()
                yield "event: changed\ndata: \n\n"
        finally:
            del self._waiting[flag]
