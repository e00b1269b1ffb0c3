"""Views: Loki Mode's layout of one file per kind, rendered from records and accepted as input.

For each view a *base* is kept (`local/view-bases/`): the rendered entries, with their hash and the
etag of the record. By it an edit is distinguished from a view that is merely out of date:

    entry as in base                      the record changed meanwhile: nothing to do
    entry differs, record as in base      edited in the view: taken over
    entry differs, record differs too     both changed: the record stays, the entry goes to
                                          its `conflicts`, and a Problem says so
    entry that base does not know         added in the view: a new record

A missing entry is never a deletion, nor is a missing field. A view with an entry that cannot be
read is not rendered again before that is mended, so that nothing written there is lost.

Bases are in the local zone and not in the cache: nothing else tells a view that is older than a
deleted record from one with a new entry. Where a base is missing all the same (the folder was
moved, say), an entry that differs from its record is out of date if the record's file is newer than
the view, and else an edit: every writer takes over edits before it writes, and renders afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from loki_memory.errors import InvalidRecord, RejectedValue, StoreFailed
from loki_memory.files import codec, scan
from loki_memory.files.layout import Layout, date_in, kind_of, place, view_kind
from loki_memory.files.problem import Problem, both_changed, not_ours, other_kind
from loki_memory.files.scan import etag
from loki_memory.files.store import Change, Store, failures_named, sealed
from loki_memory.files.view_state import (
    STATE,
    Base,
    ViewState,
    base_path,
    etag_in,
    rendered_once,
    view_stamps,
    view_state,
)
from loki_memory.models import Episode, Learning, Memory
from loki_memory.models.base import least_trusted_origin
from loki_memory.models.kinds import Kind

LISTS: dict[Kind, str] = {
    "pattern": "patterns",
    "anti-pattern": "anti_patterns",
    "fact": "facts",
    "link": "links",
    "episode": "episodes",
    "learning": "learnings",
}
_MAX_VIEW_BYTES = 256 << 20


class ViewEdit(NamedTuple):
    """An entry of a view that is not as rendered."""

    view: str
    entry: dict[str, Any]
    record: Memory  # the entry by itself, as a record


class Brought(NamedTuple):
    """The entries of a view that somebody else wrote: all, or those of a committed version."""

    is_all: bool = False
    committed: bytes = b""

    def has(self, edit: ViewEdit) -> bool:
        if self.is_all or not self.committed:
            return self.is_all
        kind = edit.record.kind
        try:
            found = list_in(kind, codec.read_json(self.committed, _MAX_VIEW_BYTES))
            return any(_edit(edit.view, kind, entry).entry == edit.entry for entry in found)
        except InvalidRecord:
            return True


class Takeover(NamedTuple):
    """The result of a take-over: written paths, and problems for the editor of the view."""

    written: list[str]
    told: list[Problem]


def view_paths(layout: Layout) -> list[str]:
    """The views that exist, in a stable order."""
    return list(_stamps(layout))


def _stamps(layout: Layout, *, days: bool = True) -> dict[str, list[int]]:
    with failures_named(layout.memory):
        return view_stamps(layout, days=days)


def note_state(
    store: Store, fingerprints: Mapping[Kind, int], written: Collection[str] = ()
) -> None:
    """Note what is rendered now, so that the next check costs a stat per view.

    `written` are views that were just written: the next check compares them.
    """
    edited = {view_kind(path) for path in edited_views(store, but=written)}
    rendered = {str(kind): n for kind, n in fingerprints.items() if kind not in edited}
    new = ViewState(dict(sorted(store.rendered.items())), rendered)
    if new != view_state(store.layout):
        with store.change() as change:
            change.render(STATE, codec.dump(new._asdict()))


def edited_views(store: Store, *, days: bool = True, but: Collection[str] = ()) -> list[str]:
    """The views that are not, byte for byte, as rendered; those of `but` are skipped.

    `days` includes the learnings of each day: there may be hundreds, and a write that is no
    learning leaves them to the next sync.
    """
    stamps = _stamps(store.layout, days=days)
    if stamps and not store.rendered:
        store.rendered.update(view_state(store.layout).stamps)
    for path in store.rendered.keys() - stamps.keys() if days else ():
        del store.rendered[path]
    now = time.time_ns()
    edited = []
    for path, stamp in stamps.items():
        if path in but or store.rendered.get(path) == stamp:
            continue
        if not is_rendered(store, path):
            edited.append(path)
        elif _is_settled(stamp, now):
            store.rendered[path] = stamp
    return edited


def to_render(store: Store, fingerprints: Mapping[Kind, int]) -> list[Kind]:
    """The kinds whose views differ from the index."""
    known, there = view_state(store.layout), set(view_paths(store.layout))
    with failures_named(store.layout.local):
        gone = {path for path in rendered_once(store.layout) if path not in there}
    kinds = {view_kind(path) for path in (*edited_views(store), *gone)}
    return [
        kind
        for kind, value in fingerprints.items()
        if kind in kinds or known.rendered.get(kind) != value
    ]


def is_rendered(store: Store, path: str) -> bool:
    """Check if a view is, byte for byte, as rendered."""
    try:
        found = store.read(path)
    except StoreFailed:
        return False
    return found is not None and found.etag == etag_in(store.derived(base_path(path)))


def _is_settled(stamp: list[int], now_ns: int) -> bool:
    mtime, ctime, size = stamp
    return scan.settled((mtime, ctime, size), now_ns) != scan.UNSETTLED


def read_base(store: Store, path: str) -> Base:
    found = store.derived(base_path(path))
    try:
        raw = orjson.loads(found) if found else {}
        return Base(str(raw.get("etag", "")), dict(raw.get("entries", {})))
    except (ValueError, AttributeError, TypeError):
        return Base("", {})


def edits(store: Store, path: str) -> tuple[list[ViewEdit], list[Problem]]:
    """The entries of a view that differ from the rendered ones, and those that cannot be read."""
    kind = view_kind(path)
    try:
        found = store.read(path)
    except StoreFailed as error:
        return [], [Problem(path, f"cannot be read ({error.__cause__})")]
    if kind is None or found is None:
        return [], []
    try:
        entries = list_in(kind, codec.read_json(found.data, _MAX_VIEW_BYTES))
    except InvalidRecord as error:
        return [], [Problem.of(error.at(path))]
    base = read_base(store, path)
    good: list[ViewEdit] = []
    bad: list[Problem] = []
    for number, entry in enumerate(entries):
        try:
            edit = _edit(path, kind, entry)
        except InvalidRecord as error:
            named = f"{LISTS[kind]}.{number}{'.' if error.field else ''}{error.field}"
            wrong = InvalidRecord(error.reason, field=named, advice=error.advice)
            bad.append(Problem.of(wrong.at(path)))
            continue
        is_ours = isinstance(edit.record, Learning) and edit.record.is_view_entry
        if not is_ours and base.shown(edit.record.id).hash != hash_of(edit.entry):
            good.append(edit)
    return good, bad


def _edit(path: str, kind: Kind, entry: Any) -> ViewEdit:
    if kind == "learning" and isinstance(entry, str):
        entry = {"lesson": entry}
    record = sealed(codec.build(kind, codec.dated(kind, entry, date_in(path))))[0]
    shown = entry_of(record)
    # The index of episodes shows a part of each; other views show the whole record.
    given = {k: v for k, v in shown.items() if k in entry or k == "id"}
    return ViewEdit(path, given if kind == "episode" else record.document(), record)


def list_in(kind: Kind, value: Any) -> list[Any]:
    """The entries of a view, which is a list or an object that holds one; else InvalidRecord."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for name, entries in value.items():
            if is_list(kind, name, entries):
                return list(entries)
    raise InvalidRecord(
        f"holds no list of {LISTS[kind]}",
        advice=f'Write {{"{LISTS[kind]}": […]}} or a bare list.',
    )


def _same_name(a: str, b: str) -> bool:
    """`anti_patterns`, `anti-patterns` and `antiPatterns` are one name."""
    return "".join(filter(str.isalpha, a.lower())) == "".join(filter(str.isalpha, b.lower()))


def entry_of(record: Memory) -> dict[str, Any]:
    """The entry of a record in a view: all of it, but of an episode only a reference."""
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


def hash_of(entry: dict[str, Any]) -> str:
    return etag(codec.dump(entry))[:16]


def take_over(
    store: Store,
    change: Change,
    views: Iterable[str],
    path_of: Callable[[str], str | None],
    brought: Callable[[str], Brought],
) -> Takeover:
    """Write edits of views into record files. The caller holds the store.

    `path_of` gives the path of the record with an id, which need not be the default one; `brought`
    gives the entries of a view that others wrote: new ones are imported, and none changes a record.
    """
    done = Takeover([], [])
    for view in views:
        base = read_base(store, view)
        found, unread = edits(store, view)
        done.told.extend(unread)
        theirs = brought(view) if found else Brought()
        for edit in found:
            known = base.shown(edit.record.id)
            path = path_of(edit.record.id) or _believed(known.path, view) or place(edit.record)
            if is_outdated(store, view, path, base):
                continue
            if kind_of(path) != edit.record.kind:
                done.told.append(other_kind(view, edit.record.id, path))
                continue
            try:
                _adopt(change, edit, path, known.hash, done, is_theirs=theirs.has(edit))
            except InvalidRecord as error:
                done.told.append(Problem.of(error.at(view)))
            except RejectedValue as error:
                done.told.append(Problem(view, str(error), field=edit.record.id))
    return done


def is_outdated(store: Store, view: str, path: str, base: Base) -> bool:
    """Check if a view whose base is lost is older than the file of a record."""
    if base.etag:
        return False
    rendered = scan.stamp_of(store.layout.file(view))
    written = scan.stamp_of(store.layout.file(path))
    return rendered is not None and written is not None and rendered < written


def _believed(path: str, view: str) -> str:
    """The path of a record in a base, unless a record cannot be there."""
    return path if kind_of(path) == view_kind(view) else ""


def _adopt(
    change: Change, edit: ViewEdit, path: str, before: str, done: Takeover, *, is_theirs: bool
) -> None:
    current = change.record(path)
    if current is None:
        claimed = getattr(edit.record, "origin", None)
        origin = least_trusted_origin(("import" if is_theirs else "agent", claimed))
        change.put(edit.record.changed(origin=origin), path)
        done.written.append(path)
        return
    if says_nothing_new(edit, current):
        return
    there, shown = current.document(), entry_of(current)
    wanted = merged(there, edit.entry)
    if is_theirs:
        done.told.append(not_ours(edit.view, edit.record.id))
        return
    if before != hash_of(shown):
        wanted = {**there, "conflicts": [*there.get("conflicts", []), _given(edit.entry)]}
        done.told.append(both_changed(path, edit.view))
    change.put(type(current).model_validate(wanted), path)
    done.written.append(path)


def says_nothing_new(edit: ViewEdit, record: Memory) -> bool:
    """Check if an entry says only what its record says.

    A view shows defaults that a record leaves out.
    """
    there, shown = record.document(), entry_of(record)
    is_as_shown = all(shown.get(name) == value for name, value in _given(edit.entry).items())
    return is_as_shown or merged(there, edit.entry) == there


def merged(record: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    """The record with the entry's fields, except for its origin."""
    given = _given(entry)
    if given in record.get("conflicts", []):
        return record
    if "goal" in given and "context" in record:
        given["context"] = {**record["context"], "goal": given.pop("goal")}
    return {**record, **given}


def _given(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in {"origin", "conflicts"}}


def is_list(kind: Kind, name: str, value: Any) -> bool:
    return _same_name(name, LISTS[kind]) and isinstance(value, list)


def pending(store: Store, view: str) -> tuple[list[Memory], list[Problem]]:
    """Read an edited view before it is taken over: its new entries as records, and the problems
    of those that cannot be read.
    """
    base = read_base(store, view)
    found, unread = edits(store, view)
    new = (edit for edit in found if not _believed(base.shown(edit.record.id).path, view))
    return [edit.record for edit in new], unread
