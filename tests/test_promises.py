"""docs/promises.md leaves out no promise, counts right, and names only what exists."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click

from loki_memory.cli.main import COMMANDS, cli

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
# How many promises each system makes: Loki Mode, Lore, claude-flow, Lynkr; then the design's own,
# and those that the lists of the four leave out.
PROMISES = {"K": 39, "L": 26, "C": 19, "Y": 21, "D": 8, "S": 24}
IDS = [f"{letter}{n}" for letter, last in PROMISES.items() for n in range(1, last + 1)]
STATES = ["kept", "kept differently", "partly", "not yet"]
COUNTS = re.compile(r"\*\*(\d+) kept, (\d+) kept differently, (\d+) partly, (\d+) not yet\*\*")
NOT_RUN = {"pytest.mark.xfail", "pytest.mark.skip"}


class Row(NamedTuple):
    """A promise as the page has it."""

    id: str
    promise: str
    state: str
    where: str

    def tests(self) -> list[str]:
        return re.findall(r"`(tests/[^`]*)`", self.where)

    def commands(self) -> list[str]:
        return re.findall(r"`loki-mem ([^`]*)`", self.where)


def _rows() -> Iterator[Row]:
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and re.fullmatch(r"[A-Z]\d+", cells[0]):
            yield Row(*cells)


ROWS = list(_rows())


def test_every_promise_has_one_row_in_order() -> None:
    assert [row.id for row in ROWS] == IDS


def test_every_row_has_a_state_of_the_four_and_no_empty_cell() -> None:
    assert [row for row in ROWS if row.state not in STATES or not all(row)] == []


def test_the_counts_on_top_are_those_of_the_rows() -> None:
    states = Counter(row.state for row in ROWS)
    told = [[int(number) for number in found] for found in COUNTS.findall(PAGE)]
    assert told == [[states[state] for state in STATES]]


def test_whatever_is_kept_in_part_or_whole_names_a_test_and_nothing_else_does() -> None:
    assert [row for row in ROWS if bool(row.tests()) != (row.state != "not yet")] == []


def test_every_named_test_exists_and_is_run() -> None:
    assert [(row.id, name) for row in ROWS for name in row.tests() if not _is_run(name)] == []


def test_every_named_command_exists_with_its_options() -> None:
    assert [(row.id, told) for row in ROWS for told in row.commands() if not _works(told)] == []


def test_names_that_do_not_exist_are_noticed() -> None:
    here = "tests/test_promises.py"
    assert _is_run(f"{here}::test_every_promise_has_one_row_in_order")
    wrong = [here, f"{here}::_is_run", f"{here}::test_x", "tests/no.py::test_x", "tests/no.txt"]
    assert [name for name in wrong if _is_run(name)] == []
    assert _works("handoff list --to")
    wrong = ["fly", "list --nowhere", "handoff fly", "handoff list --nowhere"]
    assert [told for told in wrong if _works(told)] == []


def test_the_page_about_clients_names_only_tests_that_are_there() -> None:
    page = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:clients/)?test_\w+\.py(?:::\w+)?)`", page)
    assert [name for name in named if not _is_there(f"tests/{name}")] == []


def _is_there(name: str) -> bool:
    return _is_run(name) if "::" in name else (ROOT / name).is_file()


def _is_run(name: str) -> bool:
    """Whether a test (`file.py::test`, `file.py::Class::test`) or a transcript is there."""
    file, _, inside = name.partition("::")
    if not (ROOT / file).is_file():
        return False
    return inside in _tests_of(file) if file.endswith(".py") else file.endswith(".txt")


@cache
def _tests_of(file: str) -> set[str]:
    return set(_named(ast.parse((ROOT / file).read_text(encoding="utf-8")).body))


def _named(body: list[ast.stmt]) -> Iterator[str]:
    """The tests that pytest runs and that are expected to pass."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) if name.startswith("test_") and _counts(node):
                yield name
            case ast.ClassDef(name=name) if name.startswith("Test") and _counts(node):
                yield from (f"{name}::{inside}" for inside in _named(node.body))
            # A state machine: `TestEdits = Edits.TestCase`.
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(attr="TestCase")):
                yield name


def _counts(node: ast.FunctionDef | ast.ClassDef) -> bool:
    marks = {ast.unparse(mark).partition("(")[0] for mark in node.decorator_list}
    return not marks & NOT_RUN


def _works(told: str) -> bool:
    """Whether there is such a command (`verb`, `verb --option`, `verb subverb --option`)."""
    verb, *words = told.split()
    if verb not in COMMANDS:
        return False
    command = cli.get_command(click.Context(cli), verb)
    if isinstance(command, click.Group) and words:
        command = command.commands.get(words.pop(0))
    known = {name for parameter in command.params for name in parameter.opts} if command else set()
    return command is not None and {word for word in words if word[0] == "-"} <= known
