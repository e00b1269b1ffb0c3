"""Values that take long to compute, kept for as long as memory does not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

T = TypeVar("T")

_KEPT: WeakKeyDictionary[Workspace, dict[str, tuple[object, Any]]] = WeakKeyDictionary()


def derived(workspace: Workspace, name: str, compute: Callable[[], T]) -> T:
    """The value of this name; computed again once a file of memory or the journal changed."""
    workspace.home.ensure("read")
    state = (workspace.index.note("changed_ns"), workspace.home.journal.stamp())
    kept = _KEPT.setdefault(workspace, {})
    if name not in kept or kept[name][0] != state:
        kept[name] = (state, compute())
    value: T = kept[name][1]
    return value
