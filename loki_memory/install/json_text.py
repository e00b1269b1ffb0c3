"""JSON of other owners, changed in one place and left alone in all others.

Parsing and printing would lay out the whole file anew. So the text is parsed into values with
their positions, and a member is inserted or cut out as an editor would do it, in the layout of
its neighbours. Cutting out the last insertion restores the bytes that were there before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_DECODER = json.JSONDecoder()
Path = Sequence[str | int]


class JsonValue(NamedTuple):
    """A value and its position; `entries` are the members or items of a container."""

    start: int
    end: int
    entries: list[JsonEntry] | None = None


class JsonEntry(NamedTuple):
    """A member of an object or an item of a list; `start` is that of its name, if it has one."""

    name: str | int
    start: int
    value: JsonValue


def put(text: str, path: Path, value: Any) -> str:
    """Return the text with a member at the end of its object; missing containers are made.

    `path` names the member: `("hooks", "Stop")`. A value that is already there is replaced.
    """
    parent, known = _nearest(text, path)
    if known == len(path):
        return _replaced(text, _at(text, path), value)
    for name in reversed(path[known + 1 :]):
        value = {name: value}
    return _added(text, parent, f"{json.dumps(path[known])}: ", value)


def append(text: str, path: Path, item: Any) -> str:
    """Return the text with one more item at the end of a list, which is made if it is missing."""
    parent, known = _nearest(text, path)
    if known < len(path):
        return put(text, path, [item])
    return _added(text, parent, "", item)


def cut(text: str, path: Path) -> str:
    """Return the text without the member or item that the path names."""
    *above, name = path
    parent = _at(text, above)
    entries = parent.entries or []
    at = [entry.name for entry in entries].index(name)
    if len(entries) == 1:
        return text[: parent.start + 1] + text[parent.end - 1 :]
    if at == len(entries) - 1:
        return text[: entries[at - 1].value.end] + text[entries[at].value.end :]
    return text[: entries[at].start] + text[entries[at + 1].start :]


def _added(text: str, parent: JsonValue, label: str, value: Any) -> str:
    entries = parent.entries or []
    if entries:
        last = entries[-1]
        gap = _gap_before(text, last.start)
        put_in = f",{gap or ' '}{label}{_printed(text, value, gap)}"
        return text[: last.value.end] + put_in + text[last.value.end :]
    break_ = "\r\n" if "\r\n" in text else "\n"
    outer = break_ + _indentation(text, parent.start)
    inner = outer + _unit(text)
    put_in = f"{inner}{label}{_printed(text, value, inner)}{outer}"
    return text[: parent.start + 1] + put_in + text[parent.end - 1 :]


def _replaced(text: str, old: JsonValue, value: Any) -> str:
    line = "\n" + _indentation(text, old.start)
    gap = line if "\n" in text[old.start : old.end] else ""
    return text[: old.start] + _printed(text, value, gap) + text[old.end :]


def _printed(text: str, value: Any, gap: str) -> str:
    """Print a value in the layout of its place: over several lines where its neighbours are."""
    if "\n" not in gap:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return ("\r\n" if "\r\n" in text else "\n").join(
        [lines[0], *(gap.rpartition("\n")[2] + line for line in lines[1:])]
    )


def _gap_before(text: str, place: int) -> str:
    """The white space in front of a place."""
    start = len(text[:place].rstrip(" \t\r\n"))
    return text[start:place]


def _indentation(text: str, place: int) -> str:
    """The white space that the line of a place begins with."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """The indentation of the file."""
    first = _INDENT.search(text)
    return first[1] if first else "  "


def _nearest(text: str, path: Path) -> tuple[JsonValue, int]:
    """The deepest value on a path that exists, and how many steps lead to it."""
    value, known = _parsed(text), 0
    for name in path:
        found = _entry(value, name)
        if found is None:
            break
        value, known = found.value, known + 1
    return value, known


def _at(text: str, path: Path) -> JsonValue:
    value, known = _nearest(text, path)
    if known < len(path):
        raise KeyError(path[known])
    return value


def _entry(value: JsonValue, name: str | int) -> JsonEntry | None:
    """The last entry of a name, which is the one that a parser takes."""
    return next((entry for entry in reversed(value.entries or []) if entry.name == name), None)


def _parsed(text: str) -> JsonValue:
    """Parse a text that is known to be JSON into its one value."""
    return _value(text, _after_space(text, 0))


def _value(text: str, start: int) -> JsonValue:
    if text[start] in "{[":
        return _container(text, start)
    return JsonValue(start, _DECODER.raw_decode(text, start)[1])


def _container(text: str, start: int) -> JsonValue:
    named = text[start] == "{"
    entries: list[JsonEntry] = []
    at = _after_space(text, start + 1)
    while text[at] not in "}]":
        first, name = at, len(entries)
        if named:
            name, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # past the colon
        value = _value(text, at)
        entries.append(JsonEntry(name, first, value))
        at = _after_space(text, value.end)
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return JsonValue(start, at + 1, entries)


def _after_space(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start
