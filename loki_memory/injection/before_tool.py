"""Before a tool is used: the lesson of the command, or the beliefs about the file, in two lines.

A command is told the mistake that was made with it before: always if it has the very option that
was refused or runs a program in whose place another one works, otherwise if two episodes met the
error and somebody knows what to do. A linter is told the two rules that were broken most often,
before it runs for the first time. A commit is told the routine. A file is told the lessons that
cite or name it, and those that name the code which is about to be changed. Each is told once in a
session; the call itself is neither judged nor changed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loki_memory.index import gate
from loki_memory.injection.gate import Gate, as_hit, is_silent, told_before
from loki_memory.injection.line import ProgramAdvice, program_advice, record_of
from loki_memory.injection.told import distinct, note_told, told_lines
from loki_memory.models.error_signature import head
from loki_memory.models.text import long_symbols
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace


_LINES = 2
_RULES = 2  # of a linter that a session is told of, by whichever door
_AGAIN = 2  # episodes that met an error, unless the command repeats it
_PARTS = re.compile(r"&&|\|\||[;|\n]")
_MOST_PARTS = 12  # of a chain of commands
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_SHORT = 6  # characters of a name that says little


def command_lesson(workspace: OpenWorkspace, command: str, session: str, surface: str) -> str:
    """Lines about a command that is about to run; empty if there is nothing to say."""
    if is_silent(workspace):
        return ""
    workspace.home.ensure("folders")
    parts = [part.strip() for part in _PARTS.split(command)[:_MOST_PARTS]]
    heads = list(dict.fromkeys(filter(None, (head("Bash", part) for part in parts))))
    hits = _of_command(workspace, command, heads, told_before(workspace, session))
    return _told(workspace, hits, command, session, surface)


def file_lessons(
    workspace: OpenWorkspace, paths: Sequence[str], changed: str, session: str, surface: str
) -> str:
    """Lines about files that are about to be read, or about the code of them that is `changed`;
    empty if there is nothing to say.
    """
    if is_silent(workspace):
        return ""
    workspace.home.ensure("folders")
    root = str(workspace.layout.root)
    inside = [posixpath.relpath(path, root) if path.startswith(root) else path for path in paths]
    hits = [hit for path in inside for hit in _of_file(workspace, path)]
    named = gate.lessons_naming(workspace.index, long_symbols(changed))
    hits += [as_hit(kind, lesson) for kind, lesson in named]
    at_place = {hit.id for hit in hits}
    return _told(workspace, hits, " ".join(inside), session, surface, at_place)


def _told(
    workspace: OpenWorkspace,
    hits: Iterable[Recollection],
    why: str,
    session: str,
    surface: str,
    at_place: Container[str] = (),
) -> str:
    lines = distinct(told_lines(Gate(workspace, session), hits, at_place))[:_LINES]
    note_told(workspace, lines, surface, why, session)
    return "".join(f"{told.text}\n" for told in lines)


def _of_command(
    workspace: OpenWorkspace, command: str, heads: Sequence[str], known: Collection[str]
) -> Iterator[Recollection]:
    for name in heads:
        lessons = gate.command_lessons(workspace.index, name)
        records = {lesson.id: record_of(workspace, lesson.id) for lesson in lessons}
        rules = {lesson for lesson, record in records.items() if "commands" in record}
        room = _RULES - len(rules.intersection(known))
        for lesson in lessons:
            if not _is_due(lesson, advice(records[lesson.id]), command):
                continue
            room -= lesson.id in rules
            if lesson.id not in rules or room >= 0:
                yield as_hit("anti-pattern", lesson)
    if "git commit" in heads:
        for lesson in gate.routine(workspace.index):
            yield as_hit("fact", lesson)


def _is_due(lesson: gate.ToldLesson, advised: ProgramAdvice | None, command: str) -> bool:
    """Check if a command is about to repeat a mistake, or one that was made with it again."""
    if advised:
        return applies(advised, command)
    options = _OPTION.findall(command)
    is_repeated = not {*options}.isdisjoint(_OPTION.findall(lesson.title))
    return is_repeated or (lesson.evidence >= _AGAIN and lesson.status == "active")


def _of_file(workspace: OpenWorkspace, path: str) -> Iterator[Recollection]:
    name = posixpath.basename(path)
    name = name if len(name) >= _SHORT else ""
    for kind, lesson in gate.file_lessons(workspace.index, path, name):
        if not _means_another(lesson.title, path):
            yield as_hit(kind, lesson)


def _means_another(text: str, path: str) -> bool:
    """Check if a text names a file as this one is named, and means one in another folder.

    >>> _means_another("`.claude/settings.json` has the hooks", ".app/settings.json")
    True
    >>> _means_another("`settings.json` has the hooks", ".app/settings.json")
    False
    """
    name = re.escape(posixpath.basename(path))
    named = {found.removeprefix("./") for found in re.findall(rf"[\w./@+-]*{name}(?![\w/])", text)}
    return bool(named) and not any(
        path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}") for other in named
    )


def advice(record: Mapping[str, Any]) -> ProgramAdvice | None:
    """The advice of a warning to use another program, if it gives any."""
    return program_advice(str(record.get("prevention") or ""))


def applies(advised: ProgramAdvice, command: str) -> bool:
    """Check if a command runs the program that the advice is against.

    >>> python3 = ProgramAdvice("Use `python3` instead of `python`", "python3", "python")
    >>> applies(python3, "cd x && python a.py")
    True
    >>> applies(python3, "python3 a.py")
    False
    """
    return _runs(command, advised.wrong) and not _runs(command, advised.program)


def _runs(command: str, program: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(program)}(?![\w./-])", command) is not None
