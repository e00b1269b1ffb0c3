"""Printing: results to stdout, everything else to stderr, and no control sequence for a terminal
in stored text.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from loki_memory.models.text import shorten

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

SCREEN = 40  # lines that a command prints of one kind; --json has all
HELP = {"help_option_names": ["-h", "--help"]}  # for every command
_STATUS_COLOURS = {
    "active": "green",
    "candidate": "yellow",
    "disputed": "magenta",
    "superseded": "bright_black",
    "resolved": "bright_black",
    "rejected": "red",
    "retired": "bright_black",
    "open": "yellow",
    "accepted": "cyan",
}


def wants_colour() -> bool | None:
    """Say whether to print colours; None lets click decide by looking at the terminal."""
    return False if os.environ.get("NO_COLOR") else None


def safe(text: str) -> str:
    """Return stored text as it may be shown: no escape sequences, no invisible or reordering
    characters.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if _is_harmless(c) else "\N{REPLACEMENT CHARACTER}" for c in text)


def _is_harmless(character: str) -> bool:
    if character in "\n\t\N{ZERO WIDTH JOINER}\N{VARIATION SELECTOR-16}":
        return True
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def one_line(text: str, width: int = 0) -> str:
    """Put text on one line, cut to a width if one is given."""
    line = safe(" ".join(text.split()))
    return shorten(line, width) if width else line


def say(text: str = "") -> None:
    click.echo(text)


def note(text: str) -> None:
    """Print a remark to stderr."""
    click.echo(click.style(f"note: {one_line(text)}", dim=True), err=True)


def note_plan() -> None:
    note("this is a plan; nothing was written")


def named(memory_id: str, text: str = "", width: int = 100) -> str:
    """A memory's id with a line of its text."""
    return f"{click.style(one_line(memory_id), fg='cyan')}  {one_line(text, width)}"


def say_first(lines: Sequence[str], most: int = SCREEN) -> None:
    """Print lines up to about a screen of them, and how many more there are."""
    for line in lines[:most]:
        say(line)
    if len(lines) > most:
        say(f"… and {len(lines) - most:,} more; --json has all")


def indented(text: str, indent: str) -> str:
    """Indent text of several lines, so that it cannot pass for lines of ours."""
    return safe(text).replace("\n", f"\n{indent}")


def print_json(value: Any) -> None:
    text = escaped(_json(plain(value)))
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def _json(value: Any) -> str:
    import orjson

    try:
        option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        return orjson.dumps(value, option=option).decode()
    except orjson.JSONEncodeError:  # the name of a folder that is not UTF-8
        import json

        return json.dumps(value, indent=2) + "\n"


def escaped(text: str) -> str:
    """Escape JSON so that a terminal finds no control character in it."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(c if _is_harmless(c) else _unicode_escape(c) for c in text)


def _unicode_escape(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2))


def plain(value: Any) -> Any:
    """Convert named tuples to objects; leave everything else as it is."""
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


class ErrorDetail(NamedTuple):
    """An error and its exit code."""

    type: str
    message: str
    exit_code: int


class ErrorOutput(NamedTuple):
    """Printed on stderr by every command that fails."""

    error: ErrorDetail


def fail(kind: str, message: str, exit_code: int) -> None:
    """Print an error: one sentence on stderr, or an object if JSON was asked for.

    It may quote what was typed, and agents keep what they are told: secrets are redacted.
    """
    from loki_memory.workspace import quotable

    message = quotable(message)
    if "--json" in sys.argv:
        import orjson

        printed = ErrorOutput(ErrorDetail(kind, message, exit_code))
        click.echo(escaped(orjson.dumps(plain(printed)).decode()), err=True)
        return
    click.echo(f"{click.style('error:', fg='red')} {one_line(message)}", err=True)


def remarks(workspace: Workspace) -> None:
    """Print each notice of the workspace once."""
    for notice in dict.fromkeys(workspace.notices):
        note(notice)
    workspace.notices.clear()


def coloured_status(status: str) -> str:
    return click.style(f"({status})", fg=_STATUS_COLOURS.get(status))


def page(text: str) -> None:
    """Print through a pager if the terminal is too small for the text."""
    if sys.stdout.isatty() and text.count("\n") >= _terminal_lines():
        click.echo_via_pager(f"{text}\n", color=click.get_current_context().color)
    else:
        say(text)


def _terminal_lines() -> int:
    from shutil import get_terminal_size  # loads compression, which a pipe does not pay for

    return get_terminal_size().lines


def table(rows: Sequence[Sequence[str]], styles: Mapping[int, str] | None = None) -> None:
    """Print columns that line up; the last one may have any length."""
    if rows:
        page("\n".join(_aligned(rows, styles or {})))


def _aligned(rows: Sequence[Sequence[str]], styles: Mapping[int, str]) -> Iterator[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        for column, colour in styles.items():
            cells[column] = click.style(cells[column], fg=colour)
        yield "  ".join([*cells, row[-1]]).rstrip()


def bullets(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"  - {line}")


def size(count: int) -> str:
    """Format a number of bytes for people."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004 - SI units
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


# -- Progress bars for long work on a terminal ----------------------------------------------------


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show on a terminal that work goes on, nothing in a pipe.

    That is a bar once the work says how far it is, and another for each part of it that counts
    from the start; until then, after a second, the label and the seconds that have passed.
    """
    if not sys.stderr.isatty():
        yield None
        return
    bar: Any = None
    ended = False
    clock = Clock(label)

    def advance(done: int, total: int) -> None:
        nonlocal bar
        if ended:
            return
        if bar is not None and (done < bar.pos or total != bar.length):
            bar.__exit__(None, None, None)
            bar = None
        if bar is None:
            clock.stop()
            bar = click.progressbar(length=total, label=label, file=sys.stderr)
            bar.__enter__()
        bar.update(done - bar.pos)

    try:
        yield advance
    finally:
        ended = True
        clock.stop()
        if bar is not None:
            bar.__exit__(None, None, None)


class Clock:
    """A line on stderr that counts the seconds of work, drawn by a thread of its own."""

    def __init__(self, label: str, tick: float = 1.0) -> None:
        from threading import Event, Thread

        self._label, self._tick, self._over = label, tick, Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        shown = ""
        seconds = 0
        while not self._over.wait(self._tick):
            seconds += 1
            shown = f"{self._label} … {seconds} s"
            click.echo(f"\r{shown}", nl=False, err=True)
        if shown:
            click.echo(f"\r{' ' * len(shown)}\r", nl=False, err=True)

    def stop(self) -> None:
        """Take the line away; nothing is drawn after this returns."""
        self._over.set()
        self._thread.join()
