"""Work beside: what a copy of this process came to, or nothing."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from loki_memory.beside import Beside, begin, begin_telling

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


def telling(work: Callable[[], Iterator[object]]) -> Beside:
    found = begin_telling(work)
    assert found is not None
    return found


def test_it_tells_one_thing_after_the_other_and_then_nothing() -> None:
    work = telling(lambda: iter(["kin", {"ep-1": ("ep-2",)}, 0]))
    assert [work.next() for _ in range(4)] == ["kin", {"ep-1": ("ep-2",)}, 0, None]
    work.end()


def test_what_was_told_before_it_broke_off_is_heard() -> None:
    def work() -> Iterator[object]:
        yield 1
        raise ValueError

    broken = telling(work)
    assert (broken.next(), broken.next()) == (1, None)
    broken.end()


def test_it_goes_on_while_nobody_listens(tmp_path: Path) -> None:
    done = tmp_path / "done"

    def work() -> Iterator[object]:
        yield "much" * 100_000
        done.touch()
        yield "more"

    telling_much = telling(work)
    deadline = time.monotonic() + 300
    while not done.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert done.exists()
    telling_much.end()


def test_one_that_nobody_wants_any_more_is_ended() -> None:
    endless = telling(lambda: iter(int, 1))
    endless.next()
    endless.end()
    with pytest.raises(ChildProcessError):
        os.waitpid(endless._process, os.WNOHANG)


def test_on_one_core_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
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
