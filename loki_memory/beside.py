"""Work beside: a copy of this process does one thing and says what it came to, at once or in parts.

On two cores, what does not wait for each other goes on side by side. The copy changes nothing
that others see; whatever goes wrong in it, this process does the work itself.
"""

from __future__ import annotations

import marshal
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

_ROOM = 1 << 20  # bytes that are told before anybody listens: as many as Linux allows
_SIZE = 8  # bytes that say how long the next value is


class Beside:
    """Work that goes on in a process of its own."""

    def __init__(self, process: int, answer: int) -> None:
        self._process = process
        self._answer = open(answer, "rb")  # noqa: SIM115 - who does not wait lets go of it

    def next(self) -> Any:
        """Wait for what is told next; None if nothing more is to be had."""
        size = int.from_bytes(self._answer.read(_SIZE), "little")
        data = self._answer.read(size)
        return marshal.loads(data) if data and len(data) == size else None  # noqa: S302 - our own process

    def result(self) -> Any:
        """Wait for what the work came to; None if that is not to be had."""
        with self._answer:
            found = self.next()
        try:
            _, status = os.waitpid(self._process, 0)
        except ChildProcessError:  # somebody else took note of its end
            return None
        return None if status else found

    def end(self) -> None:
        """Have no more of it: the copy changes nothing, so it may stop anywhere."""
        import signal  # which nobody needs who only recalls

        self._answer.close()
        with suppress(ChildProcessError):  # somebody else took note of its end
            if not os.waitpid(self._process, os.WNOHANG)[0]:
                os.kill(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)


def cores() -> int:
    """How many cores this process may use: the machine can have more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def begin(work: Callable[[], Any]) -> Beside | None:
    """Begin work that comes to one plain value, which is its result."""
    return begin_telling(lambda: (work(),))


def begin_telling(work: Callable[[], Iterable[Any]]) -> Beside | None:
    """Begin work that tells one plain value after the other; None where a second process would not
    help, or is not safe to make.
    """
    is_alone = threading.active_count() == 1
    if sys.platform != "linux" or cores() < 2 or not is_alone:  # noqa: PLR2004
        return None
    import fcntl  # which not every system has

    answer, end = os.pipe()
    try:
        process = os.fork()
    except OSError:
        os.close(answer)
        os.close(end)
        return None
    if not process:
        _do(work, end)
    os.close(end)
    with suppress(OSError):  # so that a copy that tells much need not wait until it is heard
        fcntl.fcntl(answer, fcntl.F_SETPIPE_SZ, _ROOM)
    return Beside(process, answer)


@contextmanager
def meanwhile(work: Callable[[], object], *, is_long: bool) -> Iterator[None]:
    """Have work done that nobody waits for until the block ends; beside only if it is long."""
    other = begin(work) if is_long else None
    if other is None:
        work()
    yield
    if other is not None:
        other.result()


def _do(work: Callable[[], Iterable[Any]], end: int) -> NoReturn:
    code = 1
    try:
        with open(end, "wb") as pipe:
            for value in work():
                data = marshal.dumps(value)
                pipe.write(len(data).to_bytes(_SIZE, "little") + data)
                pipe.flush()
        code = 0
    finally:
        os._exit(code)
