"""Render the views of a home, and tell which of their entries git brought."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from loki_memory.errors import FileChanged, LinkRefused
from loki_memory.files.git_files import may_be_tracked
from loki_memory.files.layout import PRIVATE, view_kind
from loki_memory.files.view_state import SHOWN, are_views_current
from loki_memory.home.folder import parsed

if TYPE_CHECKING:
    from loki_memory.files.view_rendering import Listed, RecordOf
    from loki_memory.files.views import Brought
    from loki_memory.home.folder import HomeFolder
    from loki_memory.models import Memory
    from loki_memory.models.kinds import Kind


def brought(home: HomeFolder, view: str) -> Brought:
    """The entries of a view that came with a clone or a branch, and that nobody reviewed."""
    from loki_memory.files.views import Brought

    if home.is_user or home.stands_alone:
        return Brought()
    if not home.trust().is_trusted:
        return Brought(is_all=True)
    content = brought_content(home, f"memory/{view}", review_counts=True)
    return Brought(is_all=content is None, committed=content or b"")


def brought_content(home: HomeFolder, path: str, *, review_counts: bool) -> bytes | None:
    """The content of a file below `.loki` that git brought; None where git must be asked.

    A hook must not ask. Empty if nobody else can have a part in it.
    """
    from loki_memory.files.git_files import is_shared

    root = home.layout.root
    if not is_shared(root) or not may_be_tracked(root, [f".loki/{path}"]):
        return b""
    if not home.starts_git:
        return None
    from loki_memory.integrity.reviewed_contents import brought_content as find

    return find(home, path, review_counts=review_counts)


def are_current(home: HomeFolder) -> bool:
    """Check if every view is as it was rendered, and memory has not changed since."""
    return are_views_current(home.layout, _fingerprints(home))


def render_views(home: HomeFolder) -> None:
    """Render the views of the kinds that changed since they were rendered last."""
    from loki_memory.files import views
    from loki_memory.files.view_rendering import render

    prints = _fingerprints(home)
    written: list[str] = []
    try:
        for kind in views.to_render(home.store, prints):
            with suppress(FileChanged):  # edited this moment: the next sync takes it over
                written += render(home.store, kind, *_for_view(home, kind))
        views.note_state(home.store, prints, written)
    except LinkRefused as error:  # memory is complete without its views
        home.notices.append(str(error))


def _fingerprints(home: HomeFolder) -> dict[Kind, int]:
    """By kind, the fingerprint of all that its views show."""
    index = home.index
    rejected = index.fingerprint("tombstone")  # a rejected record leaves its view
    prints = {kind: index.fingerprint(kind) ^ rejected for kind in SHOWN}
    prints["learning"] ^= prints["anti-pattern"]  # each day shows what they taught
    return prints


def _for_view(home: HomeFolder, kind: Kind) -> tuple[list[Listed], RecordOf]:
    """The records of a kind that are in tracked files and not rejected."""
    from loki_memory.index.queries import listed

    records = [
        record
        for record in listed(home.index, kind)
        if not record.path.startswith(PRIVATE) and not view_kind(record.path)
    ]
    if kind == "learning":
        return _with_taught(home, records)
    return records, partial(_record, home)


def _with_taught(home: HomeFolder, records: list[Listed]) -> tuple[list[Listed], RecordOf]:
    """Add what anti-patterns taught to the learnings that somebody wrote."""
    from loki_memory.files.view_rendering import Listed
    from loki_memory.index.overview import taught

    made = {lesson.learning().id: lesson for lesson in taught(home.index)}
    shown = {record.id: record for record in records}
    for name, lesson in made.items():
        path = lesson.source.path
        if not path.startswith(PRIVATE):
            shown.setdefault(name, Listed(name, path, lesson.etag, lesson.day))

    def record_of(name: str) -> Memory | None:
        return _record(home, name) or (made[name].learning() if name in made else None)

    return [shown[name] for name in sorted(shown)], record_of


def _record(home: HomeFolder, memory_id: str) -> Memory | None:
    found = home.index.body(memory_id)
    return parsed(*found) if found else None
