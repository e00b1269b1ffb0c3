"""Three versions of a document, and the rules that merge a field of them into one value.

Where one side changed a field, its value is taken. Where both did, the rule of the field decides.
No rule knows which side is ours: a rebase swaps them. And each is a join over one base, so that
three branches give the same result in any order of merges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import orjson

Document = dict[str, Any]
ITEM = "[]"  # the suffix of a list's name where one of its items is meant
Days = Mapping[str, str]  # field -> the day on which it was last corrected


class Marker(Enum):
    """Values that are distinct from every JSON value."""

    ABSENT = "the field is not there"
    CONTESTED = "both sides changed it, differently"


ABSENT, CONTESTED = Marker.ABSENT, Marker.CONTESTED


def comparable_bytes(value: Any) -> bytes:
    """Encode a value as bytes that are equal where values are, and that give a total order.

    Python takes true for 1, and 1 for 1.0; files do not.
    """
    return b"" if value is ABSENT else orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


class Sides(NamedTuple):
    """One value in three versions."""

    base: Any
    ours: Any
    theirs: Any

    def settled(self) -> Any:
        """The value, if at most one side changed it; CONTESTED if both did."""
        base, ours, theirs = map(comparable_bytes, self)
        if ours in (theirs, base):
            return self.theirs
        return self.ours if theirs == base else CONTESTED


class Versions:
    """A document in three versions, and the values of either side that were overruled."""

    def __init__(self, base: Document, ours: Document, theirs: Document) -> None:
        self.base, self.ours, self.theirs = base, ours, theirs
        before = days(base)
        self.days = (before, *(_later(before, days(side)) for side in (ours, theirs)))
        self.overruled: list[Document] = []
        self.place = ""  # prefix of field names, where these are a part of a document

    def sides(self, name: str) -> Sides:
        return Sides(*(document.get(name, ABSENT) for document in self.all()))

    def inside(self, name: str) -> Versions:
        """The three versions of an object that a field holds."""
        values = ({} if value is ABSENT else value for value in self.sides(name))
        inner = Versions(*values)
        inner.days, inner.overruled = self.days, self.overruled
        inner.place = f"{self.place}{name}."
        return inner

    def all(self) -> tuple[Document, Document, Document]:
        return self.base, self.ours, self.theirs

    def names(self) -> list[str]:
        """The fields of all versions."""
        return list({**self.ours, **self.theirs})

    def overrule(self, name: str, value: Any, day: str = "") -> None:
        """Keep a value that did not win, as `history` keeps corrected ones."""
        if value is not ABSENT and value is not None:
            dated = {"on": day} if day else {}
            self.overruled.append({**dated, "was": {self.place + name: value}, "merged": True})

    def with_history(self, document: Document) -> Document:
        """The merged document with the former values of both sides and of this merge."""
        sides = self.sides("history")
        entries = [*listed(sides.ours), *listed(sides.theirs), *self.overruled]
        if not self.overruled and comparable_bytes(sides.ours) == comparable_bytes(sides.theirs):
            return document if sides.ours is ABSENT else {**document, "history": sides.ours}
        return {**document, "history": _remembered(entries, document)}


def _remembered(entries: Iterable[Any], document: Document) -> list[Any]:
    """List every entry once, the oldest first.

    A value that was overruled is listed by its latest day, and not at all once it has won.
    """
    known: dict[bytes, Any] = {}
    for entry in sorted(entries, key=lambda entry: (_day(entry), comparable_bytes(entry))):
        if not _is_overruled(entry):
            known[comparable_bytes(entry)] = entry
        elif not _says(document, former(entry)):
            known[comparable_bytes(former(entry))] = entry
    return sorted(known.values(), key=lambda entry: (_day(entry), comparable_bytes(entry)))


def _is_overruled(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("merged") is True


def _says(document: Document, former_values: Document) -> bool:
    """Check if a document has these values now."""
    return all(_has(document, name, value) for name, value in former_values.items())


def _has(document: Any, name: str, value: Any) -> bool:
    outer, dot, inner = name.partition(".")
    if dot:
        return isinstance(document, dict) and _has(document.get(outer), inner, value)
    if not isinstance(document, dict):
        return False
    if name.endswith(ITEM):
        return comparable_bytes(value) in map(
            comparable_bytes, listed(document.get(name.removesuffix(ITEM)))
        )
    return comparable_bytes(document.get(name)) == comparable_bytes(value)


Rule = Callable[[Versions, str], Any]


def merged(versions: Versions, rules: Mapping[str, Rule], default: Rule) -> Document:
    """Merge every field by its rule; `history` follows from all of them."""
    names = [name for name in versions.names() if name != "history" or versions.place]
    found = ((name, rules.get(name, default)(versions, name)) for name in names)
    return {name: value for name, value in found if value is not ABSENT}


def days(document: Document) -> dict[str, str]:
    """The days on which fields were last corrected, by the document's history."""
    found: dict[str, str] = {}
    for entry in listed(document.get("history", ABSENT)):
        for name in former(entry):
            found[name] = max(found.get(name, ""), _day(entry))
    return found


def _later(first: Days, second: Days) -> Days:
    """The later days of both: a correction counts even if its entry is gone."""
    return {name: max(first.get(name, ""), second.get(name, "")) for name in {**first, **second}}


def former(entry: Any) -> Document:
    """The former values in an entry of a history."""
    was = entry.get("was") if isinstance(entry, dict) else None
    return was if isinstance(was, dict) else {}


def _day(entry: Any) -> str:
    day = entry.get("on") if isinstance(entry, dict) else None
    return day if isinstance(day, str) else ""


def listed(value: Any) -> list[Any]:
    """A list; nothing or a single value becomes a list."""
    if value is ABSENT or value is None:
        return []
    return value if isinstance(value, list) else [value]


# -- rules ---------------------------------------------------------------------------------------


def elsewhere(_versions: Versions, _name: str) -> Any:
    """The rule of fields that are merged together elsewhere."""
    return ABSENT


def stated(versions: Versions, name: str) -> Any:
    """The rule of a stated field: the later correction wins, the other is listed in the history.

    Trust has no say: merging lowers it, and then the result would depend on the order of merges.
    """
    return _register(versions, name, lists=lambda _: True)


def rendered(versions: Versions, name: str) -> Any:
    """The rule of a field written from evidence: as `stated`, but only corrections are listed."""
    before = versions.days[0].get(versions.place + name, "")
    return _register(versions, name, lists=lambda day: day > before)


def _register(versions: Versions, name: str, lists: Callable[[str], bool]) -> Any:
    full = versions.place + name
    values = versions.sides(name)
    said = [(day.get(full, ""), value) for day, value in zip(versions.days, values, strict=True)]
    base, ours, theirs = ((day, comparable_bytes(value)) for day, value in said)
    if ours[1] == theirs[1] or ours == base:
        return values.theirs
    if theirs == base:
        return values.ours
    won, lost = (said[1], said[2]) if ours > theirs else (said[2], said[1])
    if lists(lost[0]):
        versions.overrule(name, lost[1], lost[0])
    return won[1]


def among(choose: Callable[..., Any], key: Callable[[Any], Any]) -> Rule:
    """A rule that takes the min or max (`choose`) of two values by a key; the other is dropped."""

    def rule(versions: Versions, name: str) -> Any:
        sides = versions.sides(name)
        value = sides.settled()
        if value is not CONTESTED:
            return value
        there = [value for value in sides[1:] if value is not ABSENT and value is not None]
        return choose(there, key=lambda each: (key(each), comparable_bytes(each)), default=None)

    return rule


latest = among(max, lambda moment: moment)
earliest = among(min, lambda moment: moment)
either = among(max, bool)


def counted(versions: Versions, name: str) -> Any:
    """The rule of a counter: the additions of both; without a common base, the larger count."""
    base, ours, theirs = (value or 0 for value in _numbers(versions.sides(name)))
    if not versions.base:
        return max(ours, theirs)
    return base + max(0, ours - base) + max(0, theirs - base)


def _numbers(sides: Sides) -> Iterable[Any]:
    return (None if value is ABSENT else value for value in sides)


def joined(versions: Versions, name: str) -> Any:
    """The rule of a set: the additions of either side, without the removals of either."""
    sides = versions.sides(name)
    value = sides.settled()
    return union(sides) if value is CONTESTED else value


def union(sides: Sides) -> list[Any]:
    """The items of the base in their order, then the additions."""
    base, ours, theirs = (
        {comparable_bytes(item): item for item in listed(value)} for value in sides
    )
    kept = [item for text, item in base.items() if text in ours and text in theirs]
    added = {text: item for text, item in (ours | theirs).items() if text not in base}
    return kept + [added[text] for text in sorted(added)]


def nested(rules: Mapping[str, Rule]) -> Rule:
    """A rule for an object whose fields have rules of their own."""

    def rule(versions: Versions, name: str) -> Any:
        value = versions.sides(name).settled()
        if value is not CONTESTED:
            return value
        return merged(versions.inside(name), rules, stated)

    return rule


Key = Callable[[Document], Any]
Join = Callable[[Sides], Document]


def keyed(key: Key, join: Join | None = None) -> Rule:
    """A rule for a list in which each item has a key.

    Two items with one key are joined; without a `join` one of them is taken and the other listed
    in the history. An item that one side removed and the other changed stays, changed.
    """

    def rule(versions: Versions, name: str) -> Any:
        sides = versions.sides(name)
        value = sides.settled()
        if value is not CONTESTED:
            return value
        found = [_by_key(items, key, join or _larger) for items in sides]
        each = (Sides(*(side.get(at, ABSENT) for side in found)) for at in _keys(found))
        items = (_item(versions, name, item_sides, join) for item_sides in each)
        return [item for item in items if item is not ABSENT]

    return rule


def _by_key(items: Any, key: Key, join: Join) -> dict[Any, Document]:
    found: dict[Any, Document] = {}
    for item in listed(items):
        there = found.get(key(item))
        found[key(item)] = join(Sides(ABSENT, there, item)) if there else item
    return found


def _keys(found: Sequence[Mapping[Any, Document]]) -> list[Any]:
    base, ours, theirs = found
    return [*base, *sorted((ours.keys() | theirs.keys()) - base.keys())]


def _item(versions: Versions, name: str, sides: Sides, join: Join | None) -> Any:
    value = sides.settled()
    if value is not CONTESTED:
        return value
    if ABSENT in sides[1:]:
        return sides.theirs if sides.ours is ABSENT else sides.ours
    if join is not None:
        return join(sides)
    value = _larger(sides)
    versions.overrule(name + ITEM, sides.theirs if value is sides.ours else sides.ours)
    return value


def _larger(sides: Sides) -> Document:
    """The larger of two items with one key: any order will do, if it is always the same."""
    document: Document = max(sides.ours, sides.theirs, key=comparable_bytes)
    return document
