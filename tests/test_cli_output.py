"""What commands print while they work: bars and seconds on a terminal, nothing in a pipe."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

import click
import pytest

from loki_memory import Workspace
from loki_memory.cli.main import cli
from loki_memory.cli.output import Clock, progress_bar, wrapped


@contextmanager
def on_terminal() -> Iterator[int]:
    """Make a terminal standard error; the end from which its screen is read."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", buffering=1, encoding="utf-8") as screen, redirect_stderr(screen):
        yield ours
    os.close(ours)


def _read_until(terminal: int, wanted: str) -> str:
    """Read what was drawn until it has a text; waits for it as long as the test may take."""
    drawn = ""
    while wanted not in drawn:
        drawn += os.read(terminal, 4096).decode()
    return drawn


def test_work_that_says_nothing_shows_its_seconds() -> None:
    with on_terminal() as terminal:
        clock = Clock("verifying", tick=0.001)

        drawn = _read_until(terminal, "verifying … 2 s")
        clock.stop()

        assert "verifying … 1 s" in drawn


def test_the_seconds_leave_no_trace() -> None:
    with on_terminal() as terminal:
        clock = Clock("verifying", tick=0.001)
        _read_until(terminal, "1 s")
        clock.stop()
        os.write(sys.stderr.fileno(), b"end")

        drawn = _read_until(terminal, "end")

        assert drawn.split("\r")[-2].strip() == ""


def test_work_that_counts_shows_a_bar() -> None:
    with on_terminal() as terminal:
        with progress_bar("reading") as progress:
            assert progress is not None
            progress(1, 2)
            progress(2, 2)

        assert "100%" in _read_until(terminal, "100%")


def test_another_part_of_the_work_begins_a_bar_of_its_own() -> None:
    with on_terminal() as terminal:
        with progress_bar("rebuilding") as progress:
            assert progress is not None
            progress(4, 4)
            _read_until(terminal, "100%")
            progress(2, 8)

        assert "25%" in _read_until(terminal, "25%")


def test_a_rebuild_shows_how_many_texts_are_embedded(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_EMBEDDING_MODEL", "minilm")
    ws.record([{"goal": f"task {number}", "scope": "local"} for number in range(70)])
    with on_terminal() as terminal:
        cli.main(["-C", str(ws.layout.root), "rebuild"], standalone_mode=False)

        assert "91%" in _read_until(terminal, "91%")  # 64 texts at once


def test_what_is_counted_after_the_end_draws_nothing() -> None:
    with on_terminal() as terminal:
        with progress_bar("reading") as progress:
            pass
        assert progress is not None
        progress(1, 2)
        os.write(sys.stderr.fileno(), b"end")

        assert _read_until(terminal, "end") == "end"


def test_a_pipe_gets_no_progress() -> None:
    with progress_bar("reading") as progress:
        assert progress is None


def test_a_line_is_broken_between_words_and_continued_further_in() -> None:
    line = f"  {click.style('fact-1', fg='cyan')}  Contract tests need the database"
    assert [click.unstyle(row) for row in wrapped(line, 24).split("\n")] == [
        "  fact-1  Contract tests",
        "      need the database",
    ]
    assert wrapped("/a/long/path/that/no/space/breaks", 10) == "/a/long/path/that/no/space/breaks"
