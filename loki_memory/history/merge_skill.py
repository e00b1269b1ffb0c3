"""Merge two versions of a skill: the front matter by fields, the body section by section.

Inside a section that both sides changed, paragraphs and list items are interleaved: an addition of
either side keeps its place, a removal of either side holds, and where both rewrote a part, both
versions follow each other. Steps are numbered anew. There are no conflict markers.

A skill that consolidation wrote and nobody changed is taken from one side, the newer; one that was
changed by hand takes precedence. Front matter is text, so overruled values are listed in
`metadata.loki-history` as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from loki_memory.history.merge_fields import (
    ABSENT,
    CONTESTED,
    Document,
    Rule,
    Sides,
    Versions,
    comparable_bytes,
    elsewhere,
    latest,
    listed,
    merged,
    stated,
)
from loki_memory.models.base import least_trusted_origin
from loki_memory.models.ids import digest
from loki_memory.models.skill import headings

_HISTORY, _ORIGIN = "loki-history", "loki-origin"
_OURS = "loki-"  # prefix of metadata that we write
_NUMBERED = re.compile(r"^\d+([.)])\s+")
_ITEM = re.compile(r"^(?:[-*+]|\d+[.)])\s+")
_FENCE = re.compile(r"^\s*(?:```|~~~)")


def merged_skill(given: Versions) -> Document:
    """Merge two versions of a skill."""
    versions = Versions(*map(_opened, given.all()))
    document = versions.with_history(merged(versions, _rules(versions), stated))
    history, metadata = document.pop("history", None), document.pop("metadata", {})
    if history:
        metadata = {**metadata, _HISTORY: comparable_bytes(history).decode()}
    return {**document, "metadata": metadata} if metadata else document


def _opened(document: Document) -> Document:
    """The document with its history as a list."""
    metadata = dict(document.get("metadata") or {})
    text = metadata.pop(_HISTORY, "")
    opened = {name: value for name, value in document.items() if name != "metadata"}
    opened |= {"metadata": metadata} if metadata else {}
    return {**opened, "history": _entries(text)} if text else opened


def _entries(text: str) -> list[Any]:
    try:
        return listed(orjson.loads(text))
    except orjson.JSONDecodeError:  # not ours: kept as it is
        return [{"was": {_HISTORY: text}}]


def _rules(versions: Versions) -> dict[str, Rule]:
    ours, theirs = _is_written_by_us(versions.ours), _is_written_by_us(versions.theirs)
    if not ours and not theirs:
        return {"body": _body, "metadata": _metadata}
    chosen = _chosen_text(versions, ours=ours, theirs=theirs)
    taken: dict[str, Rule] = {
        name: lambda _, name: chosen.get(name, ABSENT) for name in ("body", "description")
    }
    return {**taken, "metadata": _metadata_of(chosen)}


def _is_written_by_us(document: Document) -> bool:
    mark = (document.get("metadata") or {}).get("loki-digest")
    return bool(mark) and mark == digest("body", document.get("body", ""))


def _chosen_text(versions: Versions, *, ours: bool, theirs: bool) -> Document:
    """The text of one side: the changed one; else the one written by hand; else the newer."""
    sides = Sides(*map(_text, versions.all()))
    text = sides.settled()
    if text is CONTESTED and ours != theirs:
        text = sides.theirs if ours else sides.ours
    elif text is CONTESTED:
        text = max(sides.ours, sides.theirs, key=lambda side: (_date(side), comparable_bytes(side)))
    return dict(text)


def _text(document: Document) -> Document:
    """The parts of a skill that consolidation writes."""
    metadata = document.get("metadata") or {}
    written = {key: value for key, value in metadata.items() if _is_written(key)}
    text: Document = {n: document[n] for n in ("body", "description") if n in document}
    return {**text, "metadata": written}


def _is_written(key: str) -> bool:
    """Check if metadata comes with the text; the origin does not."""
    return key.startswith(_OURS) and key != _ORIGIN


def _date(text: Document) -> str:
    return str(text["metadata"].get("loki-date", ""))


def _metadata_of(chosen: Document) -> Rule:
    def rule(versions: Versions, name: str) -> Any:
        inside = versions.inside(name)
        written = dict.fromkeys(filter(_is_written, inside.names()), elsewhere)
        found = merged(inside, {**written, _ORIGIN: elsewhere}, stated)
        return {**found, **chosen["metadata"], **_origin(versions)}

    return rule


def _metadata(versions: Versions, name: str) -> Any:
    return {**merged(versions.inside(name), _METADATA, stated), **_origin(versions)}


def _origin(versions: Versions) -> Document:
    """The least trusted origin, unless only one side changed it."""
    origins = versions.inside("metadata").sides(_ORIGIN)
    origin = origins.settled() if versions.base else CONTESTED
    origin = least_trusted_origin(origins[1:]) if origin is CONTESTED else origin
    return {} if origin is ABSENT else {_ORIGIN: origin}


def _ids(versions: Versions, name: str) -> Any:
    """The rule of a text with a list of ids, such as `loki-evidence`."""
    sides = versions.sides(name)
    value = sides.settled()
    if value is not CONTESTED:
        return value
    base, ours, theirs = (_split(text) for text in sides)
    kept = (ours & theirs) | ((ours | theirs) - base)
    return ", ".join(sorted(kept))


def _split(text: Any) -> set[str]:
    return set() if text is ABSENT else set(str(text).replace(",", " ").split())


_METADATA: dict[str, Rule] = {
    "loki-evidence": _ids,
    "loki-compared": _ids,
    "loki-date": latest,
    _ORIGIN: elsewhere,
}


# -- the body ------------------------------------------------------------------------------------

Key = tuple[str, int]  # a text, and its number among equal ones


class Section(NamedTuple):
    """A heading and the text below it, down to the next heading."""

    heading: str
    text: str


def _body(versions: Versions, name: str) -> Any:
    sides = versions.sides(name)
    value = sides.settled()
    if value is not CONTESTED:
        return value
    found = [_sections("" if body is ABSENT else body) for body in sides]
    order = woven(found, lambda key: _is_kept(*(side.get(key) for side in found)))
    parts = (_section(*(side.get(key) for side in found)) for key in order)
    return "\n\n".join(part for part in parts if part) + "\n"


def _sections(body: str) -> dict[Key, Section]:
    found: list[tuple[str, list[str]]] = [("", [])]
    for line, level, _ in headings(body):
        if level:
            found.append((line.strip(), []))
        else:
            found[-1][1].append(line)
    texts = (Section(heading, "\n".join(lines).strip("\n")) for heading, lines in found)
    return _numbered((section.heading.casefold(), section) for section in texts)


def _numbered(items: Iterable[tuple[str, Any]]) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    counts: dict[str, int] = {}
    for text, item in items:
        counts[text] = counts.get(text, 0) + 1
        found[text, counts[text]] = item
    return found


def _is_kept(base: Section | None, ours: Section | None, theirs: Section | None) -> bool:
    """Check if a section stays: one that one side removed and the other changed does."""
    there = [section for section in (ours, theirs) if section is not None]
    return len(there) > 1 or any(section != base for section in there)


def _section(base: Section | None, ours: Section | None, theirs: Section | None) -> str:
    if ours is None or theirs is None:
        return _with_heading(*(ours or theirs or Section("", "")))
    texts = Sides(base.text if base else "", ours.text, theirs.text)
    text = texts.settled()
    heading = max(ours.heading, theirs.heading)  # they differ in case at most
    return _with_heading(heading, _woven_text(texts) if text is CONTESTED else text)


def _with_heading(heading: str, text: str) -> str:
    return "\n".join(part for part in (heading, text) if part)


def _woven_text(texts: Sides) -> str:
    found = [_blocks(text) for text in texts]
    everything: Mapping[Key, str] = {**found[0], **found[1], **found[2]}
    order = woven(found, lambda key: key in found[1] and key in found[2])
    return _laid_out([everything[key] for key in order])


def _blocks(text: str) -> dict[Key, str]:
    """Paragraphs, list items and code blocks, identified by their text without its number."""
    return _numbered((_NUMBERED.sub("", block), block) for block in _split_blocks(text))


def _split_blocks(text: str) -> Iterator[str]:
    block: list[str] = []
    fenced = False
    for line in text.splitlines():
        starts = not fenced and (not line.strip() or _ITEM.match(line))
        if starts and block:
            yield "\n".join(block)
            block = []
        if _FENCE.match(line):
            fenced = not fenced
        if line.strip() or fenced:
            block.append(line)
    if block:
        yield "\n".join(block)


def _laid_out(blocks: Sequence[str]) -> str:
    """Lay out items below each other, numbered in turn; an empty line between paragraphs."""
    text, number, was_item = "", 0, False
    for block in blocks:
        is_item = bool(_ITEM.match(block))
        number = number + 1 if _NUMBERED.match(block) else 0
        gap = "" if not text else "\n" if is_item and was_item else "\n\n"
        text += gap + _NUMBERED.sub(lambda found, n=number: f"{n}{found[1]} ", block)  # type: ignore[misc]
        was_item = is_item
    return text


# -- interleaving --------------------------------------------------------------------------------


def woven(versions: Sequence[Iterable[Key]], kept: Callable[[Key], bool]) -> list[Key]:
    """Interleave two sequences with a common base: an addition follows what it was added to.

    `kept` says which keys of the base stay.
    """
    base, *sides = map(list, versions)
    added = [_additions(base, side) for side in sides]
    order: list[Key] = []
    for at, key in enumerate([None, *base]):
        if key is not None and kept(key):
            order.append(key)
        mine, other = sorted(additions.get(at, []) for additions in added)
        order += [*mine, *other]
    return list(dict.fromkeys(order))


def _additions(base: Sequence[Key], side: Iterable[Key]) -> dict[int, list[Key]]:
    """The additions of a side, by the number of items of the base before them."""
    places = {key: number for number, key in enumerate(base, 1)}
    found: dict[int, list[Key]] = {}
    at = 0
    for key in side:
        if key in places:
            at = max(at, places[key])
        else:
            found.setdefault(at, []).append(key)
    return found
