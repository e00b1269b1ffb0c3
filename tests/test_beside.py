"""Work beside: what a copy of this process came to, or nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from loki_memory.beside import Beside, begin

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="copies of a process"),
    pytest.mark.usefixtures("two_cores"),
]


def started(work: object) -> Beside:
    assert callable(work)
    found = begin(work)
    assert found is not None
    return found


def test_what_it_came_to_is_told_however_much_that_is() -> None:
    value = {"episodes": ["ep-1"] * 100_000, "share": 0.5, "none": None}
    assert started(lambda: value).result() == value


def test_it_goes_on_in_another_process() -> None:
    assert started(os.getpid).result() not in {None, os.getpid()}


def _killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("work", [lambda: 1 / 0, object, _killed])
def test_what_went_wrong_came_to_nothing(work: object, capfd: pytest.CaptureFixture[str]) -> None:
    assert started(work).result() is None
    assert capfd.readouterr() == ("", "")


def test_one_whose_end_somebody_else_noted_came_to_nothing() -> None:
    work = started(lambda: 1)
    os.waitpid(work._process, 0)
    assert work.result() is None


def test_on_one_core_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert begin(lambda: 1) is None


@pytest.fixture
def thread(two_cores: None) -> Iterator[Thread]:
    """Another thread of this process; a copy of the process would not have it."""
    done = Event()
    other = Thread(target=done.wait)
    other.start()
    yield other
    done.set()
    other.join()


@pytest.mark.usefixtures("thread")
def test_a_process_with_threads_is_not_copied() -> None:
    assert begin(lambda: 1) is None
