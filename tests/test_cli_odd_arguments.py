"""Every command takes or refuses every argument: no word that a shell can pass ends in a traceback.

The commands, their arguments and their options are read from the program itself, so a new one is
tried too. Some commands write, and later ones meet what they wrote.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from conftest import git

from loki_memory.cli.main import COMMANDS, cli, main

# Words as Python makes them of the bytes of a command line. A byte that is no UTF-8 becomes half
# of a surrogate pair.
ODD = {
    "empty": "",
    "one dash": "-",
    "bytes that are no UTF-8": "\udcff\udcfe",
    "an id with such a byte": "fact-\udcff",
    "a folder with such a byte": "sub/\udcc3(",
    "control characters": "a\x01\x1b[31m\x7f\r\n",
    "turned text": "\u202e\u2066x\u200b",
    "5,000 letters": "a" * 5000,
    "an id of 5,000 letters": "fact-" + "a" * 5000,
    "400 digits": "9" * 400,
    "5,000 digits": "1" * 5000,
    "year 1": "0001-01-01",
    "the end of the year 999": "0999-12-31T23:59:59Z",
    "before the first year": "0001-01-01T00:00:00+14:00",
    "after the last year": "9999-12-31T23:59:59-12:00",
    "a negative number": "-1",
    "no number": "nan",
    "beyond floats": "1e999",
    "a way up": "../../../etc/passwd",
    "a device": "/dev/null",
    "a folder": ".",
    "a pattern": "*?[",
    "a format": "%s{0}{}\\",
    "a revision": "HEAD^{/x",
    "a range": "..",
    "a colon": "a:b=:",
    "a branch before": "@{-1}",
    "brackets": "[" * 2000,
}
# These wait for somebody, start processes, or ask the network; `demo` makes a project of its own.
_NOT_RUN = {"watch", "mcp", "ui", "serve", "token", "demo", "pull", "push"}


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command, groups and their commands."""
    if words and words[-1] not in _NOT_RUN:
        yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in COMMANDS if command is cli else command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*words, name))


def _found(words: tuple[str, ...]) -> click.Command:
    command: click.Command = cli
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    return command


def lines(words: tuple[str, ...], odd: str) -> Iterator[list[str]]:
    """The calls of a command with an odd word: as each argument, as each option, as the folder."""
    parameters = _found(words).params
    arguments = [p for p in parameters if isinstance(p, click.Argument)]
    places = sum(max(1, argument.nargs) for argument in arguments)
    yield [*words, "--", *[odd] * places]
    yield ["-C", odd, *words, "--", *["x"] * places]
    for option in parameters:
        if isinstance(option, click.Option) and not option.is_flag:
            yield [*words, max(option.opts, key=len), odd, "--", *["x"] * places]


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, bytes]:
    """Run the program in this process, with streams as strict as those of a real one."""
    out, complaints = io.BytesIO(), io.BytesIO()
    monkeypatch.setattr(sys, "argv", ["loki-mem", *arguments])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, "utf-8", write_through=True))
    monkeypatch.setattr(
        sys, "stderr", io.TextIOWrapper(complaints, "utf-8", "backslashreplace", write_through=True)
    )
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0), complaints.getvalue()


@pytest.fixture
def there(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small workspace in a git repository, which is the working directory."""
    git(project, "init", "-q", "-b", "main")
    monkeypatch.chdir(project)
    for call in (["init"], ["remember", "The build needs node 22"], ["record", "--goal", "Build"]):
        assert run(call, monkeypatch)[0] == 0
    git(project, "add", "-A")
    git(project, "commit", "-qm", "memory")
    return project


def test_the_commands_are_found() -> None:
    found = set(commands(cli))
    assert {("remember",), ("handoff",), ("handoff", "create"), ("merge-driver",)} <= found


@pytest.mark.parametrize("odd", ODD)
def test_no_word_ends_a_command_in_a_traceback(
    there: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    for words in commands(cli):
        for line in lines(words, ODD[odd]):
            os.chdir(there)
            code, complaints = run(line, monkeypatch)
            assert b"Traceback" not in complaints
            assert code == 0 or complaints or words[-1] in {"check", "verify", "doctor", "hook"}


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\nb", b"\xc3\x28", "\u202e".encode()])
def test_a_project_may_lie_in_a_folder_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
    os.mkdir(folder)
    monkeypatch.chdir(folder)
    calls = (["init"], ["remember", "A"], ["status"], ["recall", "A"], ["list"], ["doctor"])
    for git_first in (False, True):
        if git_first:
            git(Path(folder), "init", "-q")
        for call in calls:
            assert run(call, monkeypatch) == (0, b"") or call[0] in {"init", "doctor"}, call
