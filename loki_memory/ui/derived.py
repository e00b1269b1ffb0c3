"""Values that take long to compute, kept for as long as memory and git do not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

T = TypeVar("T")

_MOST = 300  # values, such as the history of as many beliefs
_KEPT: WeakKeyDictionary[Workspace, tuple[object, dict[str, Any]]] = WeakKeyDictionary()


def derived(workspace: Workspace, name: str, compute: Callable[[], T]) -> T:
    """The value of this name; computed again once memory, its uses, git or the day changed."""
    workspace.home.ensure("read")
    state = (*(home.stamp() for home in workspace.homes.readable()), workspace.now()[:10])
    kept = _KEPT.get(workspace)
    if kept is None or kept[0] != state or len(kept[1]) >= _MOST:
        kept = _KEPT[workspace] = (state, {})
    if name not in kept[1]:
        kept[1][name] = compute()
    value: T = kept[1][name]
    return value


def recompute(workspace: Workspace) -> None:
    """Forget all values: something changed that is no memory, such as a file of another kind."""
    _KEPT.pop(workspace, None)
