"""Front matter: the YAML at the head of a skill, in which every scalar is text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import orjson

from loki_memory.errors import InvalidRecord

MAX_BYTES = 1 << 16
MAX_DEPTH = 64
# YAML takes these for line breaks, unless they are escaped.
_BREAKS = ("\x85", "\u2028", "\u2029", "\ufeff")


# -- reading -------------------------------------------------------------------------------------


def read(text: str) -> dict[str, Any]:
    """Parse front matter into text (`no` is "no"), without aliases, anchors and tags."""
    if len(text) > MAX_BYTES:
        _refuse(f"has {len(text):,} bytes, and {MAX_BYTES:,} is the most", None)
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # in C where there is libyaml
    try:
        _check_events(yaml.parse(text, Loader=loader))
        value = yaml.load(text, Loader=loader)  # noqa: S506 - makes only text
    except yaml.YAMLError as error:
        _refuse(f"is not valid YAML ({getattr(error, 'problem', error)})", _mark(error))
    except (ValueError, OverflowError) as error:
        _refuse(f"is not valid YAML ({error})", None)
    except RecursionError:
        _refuse("is nested too deeply", None)
    if not isinstance(value, dict):
        _refuse("is not a list of `key: value` lines", None)
    return value


def _refuse(reason: str, mark: Any) -> NoReturn:
    line = mark.line + 2 if mark else 0
    raise InvalidRecord(f"front matter {reason}", line=line, advice="Use plain `key: value`.")


def _check_events(events: Iterable[Any]) -> None:
    """Check for bounded nesting, and against aliases, tags and repeated keys."""
    import yaml

    open_ones: list[_Opened] = []
    for event in events:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            _refuse("uses an alias or anchor", event.start_mark)
        if getattr(event, "tag", None):
            _refuse("uses a tag", event.start_mark)
        if isinstance(event, yaml.CollectionEndEvent):
            open_ones.pop()
        elif isinstance(event, yaml.NodeEvent):
            if open_ones and open_ones[-1].has_twice(getattr(event, "value", None)):
                _refuse(f"has {event.value!r} twice", event.start_mark)  # type: ignore[attr-defined]
            if isinstance(event, yaml.CollectionStartEvent):
                open_ones.append(_Opened(isinstance(event, yaml.MappingStartEvent)))
        if len(open_ones) > MAX_DEPTH:
            _refuse("is nested too deeply", event.start_mark)


class _Opened:
    """A list or mapping of YAML while it is read: every other node of a mapping is a key."""

    def __init__(self, is_mapping: bool) -> None:
        self._keys: set[str] | None = set() if is_mapping else None
        self._at_key = True

    def has_twice(self, node: str | None) -> bool:
        if self._keys is None:
            return False
        at_key, self._at_key = self._at_key, not self._at_key
        if not at_key or node is None:
            return False
        if node in self._keys:
            return True
        self._keys.add(node)
        return False


def _mark(error: Exception) -> Any:
    return getattr(error, "problem_mark", None)


# -- writing -------------------------------------------------------------------------------------


def written(document: dict[str, Any]) -> str:
    """Write front matter as YAML, the same on every machine: not with libyaml's emitter."""
    import yaml

    shown = orjson.dumps(document).decode()
    return yaml.safe_dump(
        document,
        sort_keys=False,
        allow_unicode=not any(mark in shown for mark in _BREAKS),
        width=10**6,
        default_flow_style=False,
    )
