"""Sentences for arguments that do not fit: which tool, which argument, and what is expected.

An agent corrects its call by them. pydantic's own text names our classes and a web page instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Place = Sequence[str | int]
_TOLD = 3  # sentences; a list of a thousand wrong items needs no more
_LONGEST_NAME = 80  # characters
_EXPECTED = {
    "greater_than_equal": "be at least {ge:g}",
    "less_than_equal": "be at most {le:g}",
    "string_too_short": "have at least {min_length} characters",
    "string_too_long": "have at most {max_length} characters",
    "literal_error": "be one of {expected}",
}
_TYPES = {  # by the first word of pydantic's type of error: int_type, int_parsing, …
    "string": "be a text",
    "int": "be a whole number",
    "float": "be a number",
    "finite": "be a number",
    "bool": "be true or false",
    "tuple": "be a list",
    "dict": "be an object",
}
_OTHERWISE = "be as the schema says"


def unknown_argument(tool: str, name: str, names: Iterable[str]) -> str:
    """Say that a tool has no such argument, and which it has."""
    return f"{tool} has no argument {_shown(name)}; it takes {', '.join(names)}."


def misfits(tool: str, schema: Mapping[str, Any], errors: Sequence[ErrorDetails]) -> str:
    """Say what is wrong with the arguments of a call, in a few sentences."""
    sentences = dict.fromkeys(_sentence(tool, schema, error) for error in errors)
    return " ".join(islice(sentences, _TOLD))


def _sentence(tool: str, schema: Mapping[str, Any], error: ErrorDetails) -> str:
    place = _known_place(schema, error["loc"])
    *above, name = place
    choices = _choices(_part(schema, place))
    if len(choices) > 1 and error["type"] != "missing":
        return f"{_subject(tool, place)} must be {_one_of(choices)}."
    if error["type"] == "missing":
        return f"{_subject(tool, above)} needs {name}{_description(schema, place)}."
    if error["type"] == "extra_forbidden":
        fields = _object(_part(schema, above))
        return f"{_subject(tool, above)} has no field {_shown(str(name))}; it must {fields}."
    return f"{_subject(tool, place)} must {_expected(_part(schema, place), error)}."


def _subject(tool: str, place: Place) -> str:
    """Name a tool, or a part of its arguments: `memory_recall: files[0]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    path = "".join(steps).removeprefix(".")
    return f"{tool}: {path}" if path else tool


def _expected(part: Mapping[str, Any], error: ErrorDetails) -> str:
    kind, limits = error["type"], error.get("ctx", {})
    if kind == "dict_type":
        return _object(part)
    if kind == "string_too_short" and limits["min_length"] == 1:
        return "not be empty"
    if kind in _EXPECTED:
        return _EXPECTED[kind].format(**limits)
    return _TYPES.get(kind.partition("_")[0], _OTHERWISE)


def _object(part: Mapping[str, Any]) -> str:
    fields = ", ".join(part.get("properties", ()))
    return f"be an object with {fields}" if fields else "be an object"


def _description(schema: Mapping[str, Any], place: Place) -> str:
    said = _part(schema, place).get("description", "").rstrip(".")
    return f" ({said})" if said else ""


def _known_place(schema: Mapping[str, Any], place: Place) -> Place:
    """A place without what pydantic adds to it: which of several forms did not fit."""
    for length in range(len(place)):
        if len(_choices(_part(schema, place[:length]))) > 1:
            return place[:length]
    return place


def _choices(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The forms that an argument may have; to leave it out is none."""
    found: list[Mapping[str, Any]] = []
    for form in part.get("anyOf", ()):
        found += _choices(form) or ([form] if form.get("type") != "null" else [])
    return found


def _one_of(choices: Iterable[Mapping[str, Any]]) -> str:
    """`a number, high, medium or low`."""
    named = {"number": "a number", "integer": "a whole number", "string": "a text"}
    forms: list[str] = []
    for choice in choices:
        forms += [*choice.get("enum", ())] or filter(None, [named.get(choice.get("type", ""))])
    *rest, last = forms or ["as the schema says"]
    return f"{', '.join(rest)} or {last}" if rest else last


def _part(schema: Mapping[str, Any], place: Place) -> Mapping[str, Any]:
    """The schema of a part of the arguments."""
    found = schema
    for step in place:
        below = found.get("items") if isinstance(step, int) else found["properties"].get(step)
        found = _resolved(schema, below or {})
    return found


def _resolved(schema: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part itself, where it is a reference to a definition."""
    name = part.get("$ref", "").rpartition("/")[2]
    return schema["$defs"][name] if name else part


def _shown(name: str) -> str:
    # All of it or nothing: half a secret is not recognised as one.
    return repr(name) if len(name) <= _LONGEST_NAME else f"of {len(name)} characters"
