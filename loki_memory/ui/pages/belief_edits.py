"""Changes of one memory from its page: edit, pin, reject, supersede, archive.

Each is the same function of the workspace that the command of that name calls, and each says how
it is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.responses import Response

from loki_memory.errors import FileChanged, InvalidRecord
from loki_memory.models import Memory
from loki_memory.models.text import shorten
from loki_memory.ui.page import Visit, back, write
from loki_memory.ui.pages.belief import EDITABLE, shown_hash

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_QUOTED = 80  # characters of a title in the words about a change


def wrote(
    visit: Visit, words: str, path: str, undo: Callable[[], object] | None = None
) -> Response:
    """Finish a write as a command does, tell open pages, and go back to a page."""
    visit.workspace.browse.refresh_continuity()
    visit.workspace.flush()
    visit.site.broadcast.notify()
    return back(path, visit.site.undo.push(words, undo))


def page_of(memory_id: str) -> str:
    return f"/beliefs/{quote(memory_id)}"


def put_back(workspace: Workspace, record: Memory) -> None:
    """Give a memory the content that it had before a change."""
    workspace.care.put_back(record)
    workspace.flush()


def _memory(visit: Visit) -> Memory:
    return visit.workspace.get(visit.workspace.resolve(visit.parameter("id")))


def _named(record: Memory) -> str:
    return f"“{shorten(record.title(), _QUOTED)}”"


def edit(visit: Visit) -> Response:
    """Change the fields that differ from what is stored."""
    record, workspace = _memory(visit), visit.workspace
    if visit.form.get("seen", "") not in {"", shown_hash(record)}:
        raise FileChanged(workspace.browse.where(record.id))
    fields = _edited(record, visit.form)
    if not fields:
        return back(page_of(record.id), visit.site.undo.push("Nothing was changed."))
    workspace.correct(record.id, **fields)
    undo = partial(put_back, workspace, record)
    return wrote(visit, f"Edited {_named(record)}", page_of(record.id), undo)


def _edited(record: Memory, form: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a form that differ from the record, as the record has them."""
    document, found = record.document(), dict[str, Any]()
    for name in EDITABLE.get(record.kind, {}):
        if name not in form:
            continue
        text = form[name].replace("\r\n", "\n").strip()
        is_list = name == "conditions"
        value: Any = (
            [line.strip() for line in text.split("\n") if line.strip()] if is_list else text
        )
        if value != (document.get(name) or ([] if is_list else "")):
            found[name] = value
    return found


def pin(visit: Visit) -> Response:
    record, workspace = _memory(visit), visit.workspace
    pinned = visit.form.get("pinned") == "yes"
    workspace.pin(record.id, pinned)
    undo = partial(workspace.pin, record.id, not pinned)
    word = "Pinned" if pinned else "Unpinned"
    return wrote(visit, f"{word} {_named(record)}", page_of(record.id), undo)


def reject(visit: Visit) -> Response:
    record, workspace = _memory(visit), visit.workspace
    workspace.reject(record.id, visit.form.get("why", "").strip())
    undo = partial(workspace.restore, record.id)
    return wrote(visit, f"Rejected {_named(record)}", page_of(record.id), undo)


def supersede(visit: Visit) -> Response:
    """Let another belief stand in its place: an id, or a statement in words."""
    record, workspace = _memory(visit), visit.workspace
    new = visit.form.get("new", "").strip()
    if not new:
        raise InvalidRecord("nothing takes its place", advice="Give an id, or a statement.")
    heir = workspace.supersede(record.id, new)
    undo = partial(put_back, workspace, record)
    return wrote(visit, f"Superseded {_named(record)}", page_of(heir.id), undo)


def archive(visit: Visit) -> Response:
    record, workspace = _memory(visit), visit.workspace
    workspace.archive(record.id)
    undo = partial(workspace.restore, record.id)
    return wrote(visit, f"Archived {_named(record)}", "/beliefs", undo)


routes = [
    *write("/beliefs/{id}/edit", edit),
    *write("/beliefs/{id}/pin", pin),
    *write("/beliefs/{id}/reject", reject),
    *write("/beliefs/{id}/supersede", supersede),
    *write("/beliefs/{id}/archive", archive),
]
shapes: dict[str, Any] = {}
