"""Views: the reference layout's one-file-per-kind, rendered from records and accepted as input.

Beside each view a *base* is kept (`memory/.views/`): which entries were rendered, with their hash.
It tells an edit from a view that is merely out of date:

    entry as in base                      somebody else's change came meanwhile: nothing to do
    entry differs, record as in base      edited in the view: taken over
    entry differs, record differs too     both changed: the record stays, the entry goes to
                                          its `conflicts`, and a Problem says so
    entry that base does not know         added in the view: a new record

A missing entry is never a deletion, a missing field neither. A view with an entry that cannot be
read is not rendered again before that is mended: what somebody wrote stays where it is.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from loki_memory.errors import InvalidRecord, RejectedValue, StoreFailed
from loki_memory.files import codec, scan
from loki_memory.files.layout import Layout, date_in, kind_of, place, view_kind
from loki_memory.files.problem import Problem, both_changed, other_kind
from loki_memory.files.store import Change, Store, sealed
from loki_memory.models import Episode, Memory
from loki_memory.models.kinds import Kind

_LISTS: dict[Kind, str] = {
    "pattern": "patterns",
    "anti-pattern": "anti_patterns",
    "fact": "facts",
    "link": "links",
    "episode": "episodes",
    "learning": "learnings",
}
SHOWN = tuple(_LISTS)
_PATHS: dict[Kind, str] = {
    "pattern": "semantic/patterns.json",
    "anti-pattern": "semantic/anti-patterns.json",
    "fact": "semantic/facts.json",
    "link": "semantic/links.json",
    "episode": "episodic/index.json",
}
_MAX_VIEW_BYTES = 256 << 20
_BASE, _STATE = ".views/{}.json", ".views/state.json"


class Base(NamedTuple):
    """What was rendered last: the view's etag; each entry's path and hash."""

    etag: str
    entries: dict[str, tuple[str, str]]


class Edit(NamedTuple):
    """An entry of a view that is not what we rendered."""

    view: str
    entry: dict[str, Any]
    record: Memory  # the entry by itself, as a record


class Takeover(NamedTuple):
    """What a take-over did, and what the one who edited the view should be told."""

    written: list[str]
    told: list[Problem]


def view_paths(layout: Layout, *, days: bool = True) -> list[str]:
    """The views that exist, in a stable order; those of single days only if they are asked for."""
    return list(_view_stamps(layout, days=days))


def _view_stamps(layout: Layout, *, days: bool) -> dict[str, list[int]]:
    stamps: dict[str, list[int]] = {}
    paths = list(_PATHS.values())
    folder = layout.file("learnings")
    if days and os.path.isdir(folder):
        paths += [f"learnings/{name}" for name in sorted(os.listdir(folder))]
    for path in paths:
        if view_kind(path):
            with suppress(FileNotFoundError, NotADirectoryError):
                status = os.stat(layout.file(path))
                if stat.S_ISREG(status.st_mode):
                    stamps[path] = [status.st_mtime_ns, status.st_ctime_ns, status.st_size]
    return stamps


class State(NamedTuple):
    """A shortcut that may be missing or out of date in nobody's favour."""

    stamps: dict[str, list[int]]  # of views as they were rendered
    rendered: dict[str, int]  # per kind, the index's fingerprint when it was rendered


def state(store: Store) -> State:
    found = store.read(_STATE)
    try:
        raw = json.loads(found.data) if found else {}
        return State(dict(raw["stamps"]), dict(raw["rendered"]))
    except (ValueError, KeyError, TypeError):
        return State({}, {})


def note_state(store: Store, fingerprints: Mapping[Kind, int]) -> None:
    """Remember what is rendered now, so that the next look costs a stat per view."""
    edited = {view_kind(path) for path in edited_views(store)}
    rendered = {str(kind): n for kind, n in fingerprints.items() if kind not in edited}
    new = State(dict(sorted(store.rendered.items())), rendered)
    if new != state(store):
        with store.change() as change:
            change.render(_STATE, codec.dump(new._asdict()))


def edited_views(store: Store, *, days: bool = True) -> list[str]:
    """The views that are not, byte for byte, what we rendered.

    `days` looks at the learnings of each day too: there may be hundreds, and a write that is no
    learning leaves them to the next sync.
    """
    stamps = _view_stamps(store.layout, days=days)
    if stamps and not store.rendered:
        store.rendered.update(state(store).stamps)
    for path in store.rendered.keys() - stamps.keys() if days else ():
        del store.rendered[path]
    now = time.time_ns()
    edited = []
    for path, stamp in stamps.items():
        if store.rendered.get(path) == stamp:
            continue
        if not is_rendered(store, path):
            edited.append(path)
        elif _is_settled(stamp, now):
            store.rendered[path] = stamp
    return edited


def to_render(store: Store, fingerprints: Mapping[Kind, int]) -> list[Kind]:
    """The kinds whose views do not show what the index says."""
    known, there = state(store), set(view_paths(store.layout))
    gone = {path for path in _rendered_once(store) if path not in there}
    kinds = {view_kind(path) for path in (*edited_views(store), *gone)}
    return [
        kind
        for kind, value in fingerprints.items()
        if kind in kinds or known.rendered.get(kind) != value
    ]


def _rendered_once(store: Store) -> list[str]:
    """The views that have a base: they were there when we last looked."""
    folder = store.layout.file(".views")
    bases = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    days = [name.removeprefix("learnings-") for name in bases if name.startswith("learnings-")]
    views = [*_PATHS.values(), *(f"learnings/{day}" for day in sorted(days))]
    return [view for view in views if _base_path(view).rpartition("/")[2] in bases]


def is_rendered(store: Store, path: str) -> bool:
    """Whether a view is, byte for byte, what we made of the records."""
    try:
        found = store.read(path)
    except StoreFailed:
        return False
    return found is not None and found.etag == read_base(store, path).etag


def _is_settled(stamp: list[int], now_ns: int) -> bool:
    mtime, ctime, size = stamp
    return scan.settled((mtime, ctime, size), now_ns) != scan.UNSETTLED


def read_base(store: Store, path: str) -> Base:
    found = store.read(_base_path(path))
    try:
        raw = json.loads(found.data) if found else {}
        entries = {
            name: (str(place_), str(hash_))
            for name, (place_, hash_) in raw.get("entries", {}).items()
            if kind_of(str(place_)) == view_kind(path)  # a base may come with somebody's clone
        }
        return Base(str(raw.get("etag", "")), entries)
    except (ValueError, AttributeError, TypeError):
        return Base("", {})


def _base_path(path: str) -> str:
    return _BASE.format(path.removesuffix(".json").replace("/", "-"))


def edits(store: Store, path: str) -> tuple[list[Edit], list[Problem]]:
    """The entries of a view that differ from what was rendered, and those that cannot be read."""
    kind = view_kind(path)
    try:
        found = store.read(path)
    except StoreFailed as error:
        return [], [Problem(path, f"cannot be read ({error.__cause__})")]
    if kind is None or found is None:
        return [], []
    try:
        entries = _entries(kind, codec.read_json(found.data, _MAX_VIEW_BYTES))
    except InvalidRecord as error:
        return [], [Problem.of(error.at(path))]
    base = read_base(store, path)
    good: list[Edit] = []
    bad: list[Problem] = []
    for number, entry in enumerate(entries):
        try:
            edit = _edit(path, kind, entry)
        except InvalidRecord as error:
            named = f"{_LISTS[kind]}.{number}{'.' if error.field else ''}{error.field}"
            wrong = InvalidRecord(error.reason, field=named, advice=error.advice)
            bad.append(Problem.of(wrong.at(path)))
            continue
        if base.entries.get(edit.record.id, ("", ""))[1] != _hash(edit.entry):
            good.append(edit)
    return good, bad


def _edit(path: str, kind: Kind, entry: Any) -> Edit:
    if kind == "learning" and isinstance(entry, str):
        entry = {"lesson": entry}
    record = sealed(codec.build(kind, codec.dated(kind, entry, date_in(path))))[0]
    shown = entry_of(record)
    # Of an episode the index shows a part; of everything else the record as it stands.
    given = {k: v for k, v in shown.items() if k in entry or k == "id"}
    return Edit(path, given if kind == "episode" else record.document(), record)


def _entries(kind: Kind, value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for name, entries in value.items():
            if _is_list(kind, name, entries):
                return list(entries)
    raise InvalidRecord(
        f"holds no list of {_LISTS[kind]}",
        advice=f'Write {{"{_LISTS[kind]}": […]}} or a bare list.',
    )


def _same_name(a: str, b: str) -> bool:
    """`anti_patterns`, `anti-patterns` and `antiPatterns` are one name."""
    return "".join(filter(str.isalpha, a.lower())) == "".join(filter(str.isalpha, b.lower()))


def entry_of(record: Memory) -> dict[str, Any]:
    """What a view shows of a record: all of it, but of an episode only what finds it again."""
    if not isinstance(record, Episode):
        return record.document()
    fields = {
        "id": record.id,
        "timestamp": record.timestamp,
        "task_id": record.task_id,
        "agent": record.agent,
        "goal": record.goal,
        "outcome": record.outcome,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _hash(entry: dict[str, Any]) -> str:
    return codec.etag(codec.dump(entry))[:16]


def take_over(
    store: Store, change: Change, views: Iterable[str], path_of: Callable[[str], str | None]
) -> Takeover:
    """Bring what was edited in views into record files. The caller holds the store.

    `path_of` tells where the record of an id stands, which need not be where we would put it.
    """
    done = Takeover([], [])
    for view in views:
        base = read_base(store, view)
        found, unread = edits(store, view)
        done.told.extend(unread)
        for edit in found:
            known, before = base.entries.get(edit.record.id, ("", ""))
            path = path_of(edit.record.id) or known or place(edit.record)
            if kind_of(path) != edit.record.kind:
                done.told.append(other_kind(view, edit.record.id, path))
                continue
            try:
                _adopt(change, edit, path, before, done)
            except InvalidRecord as error:
                done.told.append(Problem.of(error.at(view)))
            except RejectedValue as error:
                done.told.append(Problem(view, str(error), field=edit.record.id))
    return done


def _adopt(change: Change, edit: Edit, path: str, before: str, done: Takeover) -> None:
    current = change.record(path)
    if current is None:
        new = edit.record.changed(origin="agent")
        change.put(new, path)
        done.written.append(path)
        return
    there = current.document()
    wanted = _merged(there, edit.entry)
    if wanted == there:
        return
    if before != _hash(entry_of(current)):
        wanted = {**there, "conflicts": [*there.get("conflicts", []), _given(edit.entry)]}
        done.told.append(both_changed(path, edit.view))
    change.put(type(current).model_validate(wanted), path)
    done.written.append(path)


def _merged(record: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    """The record with the entry's fields; where it came from is not for the entry to say."""
    given = _given(entry)
    if given in record.get("conflicts", []):
        return record
    if "goal" in given and "context" in record:
        given["context"] = {**record["context"], "goal": given.pop("goal")}
    return {**record, **given}


def _given(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in {"origin", "conflicts"}}


def render(store: Store, kind: Kind, records: Iterable[tuple[str, Memory]]) -> list[str]:
    """Write the views of one kind from (path, record) pairs; return those that changed.

    A view that was edited meanwhile, or holds what could not be taken over, is left alone.
    """
    by_view: dict[str, list[tuple[str, Memory]]] = {}
    for view in (*_PATHS.values(), *view_paths(store.layout)):
        if view_kind(view) == kind:
            by_view[view] = []
    for path, record in records:
        by_view.setdefault(_view_of(kind, record), []).append((path, record))
    written = []
    with store.change() as change:
        for view, pairs in by_view.items():
            there = os.path.lexists(store.layout.file(view))
            if (pairs or there) and _render_one(store, change, view, kind, pairs):
                written.append(view)
    return written


def _view_of(kind: Kind, record: Memory) -> str:
    return _PATHS.get(kind) or f"learnings/{record.when()[:10]}.json"


def _render_one(
    store: Store, change: Change, view: str, kind: Kind, pairs: list[tuple[str, Memory]]
) -> bool:
    if not is_rendered(store, view) and any(_left_to_do(store, view, pairs)):
        return False
    found = store.read(view)
    pairs = sorted(pairs, key=lambda pair: pair[1].id)
    entries = [entry_of(record) for _, record in pairs]
    data = codec.dump(_shaped(kind, entries, found.data if found else b""))
    hashes = {r.id: (p, _hash(e)) for (p, r), e in zip(pairs, entries, strict=True)}
    base = {"etag": codec.etag(data), "entries": hashes}
    change.render(view, data)
    change.render(_base_path(view), codec.dump(base))
    return found is None or found.data != data


def _left_to_do(
    store: Store, view: str, pairs: Iterable[tuple[str, Memory]]
) -> Iterator[Edit | Problem]:
    """What a rendering would wipe out: entries that no record has, or that cannot be read."""
    found, unread = edits(store, view)
    records = {record.id: record for _, record in pairs}
    yield from unread
    for edit in found:
        current = records.get(edit.record.id)
        there = current.document() if current else {}
        if _merged(there, edit.entry) != there:
            yield edit


def _shaped(kind: Kind, entries: list[dict[str, Any]], before: bytes) -> Any:
    """In the shape that the view had: a bare list stays one, and foreign keys beside it stay."""
    old = json.loads(before) if before else {}
    if isinstance(old, list):
        return entries
    name = next((n for n in old if _is_list(kind, n, old[n])), _LISTS[kind])
    return {**{n: value for n, value in old.items() if n != name}, name: entries}


def _is_list(kind: Kind, name: str, value: Any) -> bool:
    return _same_name(name, _LISTS[kind]) and isinstance(value, list)


def pending(store: Store) -> Iterator[tuple[str, Memory]]:
    """Entries of edited views by themselves: what a reader shows before anyone took them over."""
    for view in edited_views(store):
        base = read_base(store, view)
        for edit in edits(store, view)[0]:
            if edit.record.id not in base.entries:
                yield view, edit.record


def problems(store: Store, view: str) -> list[Problem]:
    """What in a view cannot be read."""
    return [] if is_rendered(store, view) else edits(store, view)[1]
