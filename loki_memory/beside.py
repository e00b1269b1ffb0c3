"""Work beside: a copy of this process does one thing and says what it came to.

On two cores, what does not wait for each other goes on side by side. The copy changes nothing
that others see; whatever goes wrong in it, this process does the work itself.
"""

from __future__ import annotations

import marshal
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class Beside:
    """Work that goes on in a process of its own."""

    def __init__(self, process: int, answer: int) -> None:
        self._process = process
        self._answer = open(answer, "rb")  # noqa: SIM115 - who does not wait lets go of it

    def result(self) -> Any:
        """Wait for what the work came to; None if that is not to be had."""
        with self._answer as pipe:
            data = pipe.read()
        try:
            _, status = os.waitpid(self._process, 0)
        except ChildProcessError:  # somebody else took note of its end
            return None
        return None if status else marshal.loads(data)  # noqa: S302 - our own process


def begin(work: Callable[[], Any]) -> Beside | None:
    """Begin work that comes to a plain value; None where a second process would not help, or is
    not safe to make.
    """
    is_alone = threading.active_count() == 1
    if sys.platform != "linux" or (os.cpu_count() or 1) < 2 or not is_alone:  # noqa: PLR2004
        return None
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


def _do(work: Callable[[], Any], end: int) -> NoReturn:
    code = 1
    try:
        with open(end, "wb") as pipe:
            pipe.write(marshal.dumps(work()))
        code = 0
    finally:
        os._exit(code)
