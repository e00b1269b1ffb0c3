"""Undo what one commit did to a record, and leave what came after it.

A field that the commit changed goes back to what it was if it still says what the commit made of
it; of a list, what the commit added goes and what it took away returns. Whatever was changed again
later stays as it is now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loki_memory.models import Memory, parse

_GONE: Any = object()


def undone(before: Memory | None, after: Memory | None, now: Memory | None) -> Memory | None:
    """The record without the change from `before` to `after`; None if it goes.

    A record that the commit made goes, unless it was changed since.
    """
    if before is None:
        return None if now == after else now
    if now is None or after is None:
        return before if now == after else now
    if now == after:
        return before
    fields = _fields(before.document(), after.document(), now.document())
    return parse(type(now), fields)


def _fields(
    before: Mapping[str, Any], after: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    names = dict.fromkeys((*now, *before))
    told = {
        name: _value(before.get(name, _GONE), after.get(name, _GONE), now.get(name, _GONE))
        for name in names
    }
    return {name: value for name, value in told.items() if value is not _GONE}


def _value(before: Any, after: Any, now: Any) -> Any:
    if before == after:
        return now
    if now == after:
        return before
    if all(isinstance(one, dict) for one in (before, after, now)):
        return _fields(before, after, now)
    lists = [[] if one is _GONE else one for one in (before, after, now)]
    if all(isinstance(one, list) for one in lists):
        return _listed(*lists)
    return now


def _listed(before: list[Any], after: list[Any], now: list[Any]) -> list[Any]:
    kept = [one for one in now if one in before or one not in after]
    return kept + [one for one in before if one not in after and one not in kept]
