"""Every field in which two versions of a memory differ, with both values.

`belief_diff` tells a change in words and leaves out what most readers do not need. This is the
complete list behind it: fields of any name and depth, of every kind, live or in the archive. A text
of several lines is compared line by line, a list item by item.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.models.text import revealed

if TYPE_CHECKING:
    from loki_memory.history.belief_diff import Shift
    from loki_memory.history.tree import Records
    from loki_memory.models import Memory

_LONG = 8  # characters: a shorter value may stand in another text by chance
# An episode's mark is one value, or each piece of evidence would be four lines.
_WHOLE = ("evidence.episodes.",)


# The words for fields in the details of a shift.
_SPOKEN = {
    "when": "conditions",
    "do": "correct_approach",
    "not": "incorrect_approach",
    "instead": "prevention",
    "said by": "by",
}
# The words for a memory that was not there before, or that ends.
_NEW = frozenset({"learned", "added", "recorded", "superseded", "candidate"})
_FOR_THE_TOOL = frozenset(
    {"surprise", "score", "importance", "quoted", "key", "at", "timestamp", "valid_from"}
)


class FieldChange(NamedTuple):
    """A value of one field before and after; empty where there was none, or is none."""

    field: str
    before: str
    after: str

    def words(self) -> str:
        """`tags: net -> ops`, or without an arrow if there is one value only."""
        before, after = revealed(self.before), revealed(self.after)
        if not self.before:
            return f"{self.field}: {after}"
        return f"{self.field}: {before} -> {after or 'nothing'}"


class RecordChange(NamedTuple):
    """A memory that differs, and all fields in which it does."""

    id: str
    kind: str
    path: str  # of its file in memory
    title: str
    fields: list[FieldChange]


def record_changes(old: Records, new: Records) -> list[RecordChange]:
    """The memories that differ between two states, by id; those in the archive too."""
    names = sorted(old.known().keys() | new.known().keys())
    return [change for name in names if (change := _record_change(old, new, name)).fields]


def _record_change(old: Records, new: Records, name: str) -> RecordChange:
    shown = new.known().get(name) or old.known()[name]
    path = new.paths.get(name) or old.paths.get(name, "")
    pairs = _versions(old, new, name)
    fields = [change for before, after in pairs for change in _changes(before, after)]
    return RecordChange(name, shown.kind, path, shown.title(), fields)


def _changes(before: Memory | None, after: Memory | None) -> Iterator[FieldChange]:
    """Compare two versions; of one that is new or gone, default values are left out."""
    present = before or after
    usual = _defaults(type(present)) if present and not (before and after) else {}
    for change in field_changes(_values(before), _values(after)):
        if usual.get(change.field) not in {change.before, change.after}:
            yield change


@cache
def _defaults(model: type[Memory]) -> dict[str, str]:
    """The values that fields have where nothing is said: `active`, `project`, `false`."""
    return {
        name: _words(info.default)
        for name, info in model.model_fields.items()
        if isinstance(info.default, str | bool) and info.default != ""
    }


def _versions(
    old: Records, new: Records, name: str
) -> Iterator[tuple[Memory | None, Memory | None]]:
    """Pair the versions of a memory; one that was moved to or from the archive is one memory."""
    before = old.live.get(name), old.archived.get(name)
    after = new.live.get(name), new.archived.get(name)
    if before.count(None) == after.count(None) == 1:
        yield old.known()[name], new.known()[name]
    else:
        yield from zip(before, after, strict=True)


def _values(record: Memory | None) -> dict[str, Any]:
    return dict(_flat(record.document(), "")) if record is not None else {}


def _flat(document: Mapping[str, Any], within: str) -> Iterator[tuple[str, Any]]:
    """`{"context": {"goal": …}}` as `context.goal`."""
    for name, value in document.items():
        if isinstance(value, dict) and value and not within.startswith(_WHOLE):
            yield from _flat(value, f"{within}{name}.")
        else:
            yield within + name, value


def field_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldChange]:
    """Compare two versions, given as values by the names of their fields."""
    for name in dict.fromkeys((*before, *after)):
        for was, now in _pairs(_parts(before.get(name)), _parts(after.get(name))):
            yield FieldChange(name, was, now)


def _parts(value: Any) -> list[str]:
    """A value as texts that are compared one by one: items of a list, lines of a text."""
    if value is None:
        return []
    if isinstance(value, list):
        return [_words(item) for item in value]
    return value.split("\n") if isinstance(value, str) else [_words(value)]


def _words(value: Any) -> str:
    """A value for readers: `do: clear the cache; for: ep-1, ep-2`."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_words(part)}" for name, part in value.items() if part != [])
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    return json.dumps(value)


def _pairs(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            both = min(j - i, m - k)
            yield from zip(old[i : i + both], new[k : k + both], strict=True)
            yield from ((text, "") for text in old[i + both : j])
            yield from (("", text) for text in new[k + both : m])


# -- showing ---------------------------------------------------------------------------------------


def untold(change: RecordChange, shift: Shift | None) -> list[FieldChange]:
    """The fields whose values do not stand in the words about a memory."""
    details, caused_by = (shift.details, shift.caused_by) if shift else ((), ())
    said = [_on_one_line(text) for text in (change.title, *details)]
    named = {named for text in said for named in _named_values(text)}
    known = {"", change.id, said[0], *caused_by}

    def is_told(field: str, value: str) -> bool:
        text = _on_one_line(value)
        if text in known or (field, text) in named:
            return True
        return len(text) >= _LONG and any(text in line for line in said)

    return [
        field
        for field in change.fields
        if (field.field != "confidence" or shift is None)  # every shift gives both numbers
        and not (is_told(field.field, field.before) and is_told(field.field, field.after))
    ]


def bookkeeping(field: FieldChange, shift: Shift) -> bool:
    """Check for a field of something new that only the tool reads, or that another line says.

    Nothing of it is told to an agent, and a reviewer who wants it has `--all`.
    """
    if field.before or shift.what not in _NEW:
        return False
    root, _, rest = field.field.partition(".")
    if root == "evidence":
        return rest.removeprefix("episodes.") in shift.caused_by
    if root == "resolutions":
        remedy, _, episodes = field.after.removeprefix("do: ").partition("; for: ")
        is_said = f"instead: {_on_one_line(remedy)}" in shift.details
        return is_said and {*episodes.split(", ")} <= {*shift.caused_by}
    if root == "links":
        to, _, relation = field.after.removeprefix("to: ").partition("; relation: ")
        return not {f"{relation} {to}", f"by {to}"}.isdisjoint(shift.details)
    return root in _FOR_THE_TOOL or (root == "origin" and field.after == "agent")


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _named_values(detail: str) -> Iterator[tuple[str, str]]:
    """Take `tags: net -> ops` and `when: CI; macOS` apart: the field, and each value."""
    name, _, said = detail.partition(": ")
    field = name.removesuffix(" added").removesuffix(" removed")
    for value in (*said.split(" -> "), *said.split("; ")):
        yield _SPOKEN.get(field, field), "" if value == "nothing" else value
