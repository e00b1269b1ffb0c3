"""Front matter: the YAML at the head of a skill, in which every scalar is text.

PyYAML parses whatever is not simple. Our own output is: lines of `key: text` and one level of them
below a key. PyYAML takes ten times as long for these lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NoReturn

import orjson

from loki_memory.errors import InvalidRecord

MAX_BYTES = 1 << 16
MAX_DEPTH = 64
_LONGEST_NAME = 64  # beyond 128 characters a key is written in another way
# Texts that YAML writes as they are, and texts that it quotes since they look like another type.
_PLAIN = r"[A-Za-z][\w./()+-]*(?:,? \w[\w./()+-]*)*|(?!0[bx])\d+[a-z][a-z\d]*"
_IS_PLAIN = re.compile(_PLAIN, re.ASCII)
_LIKE_BOOLEAN = {"true", "false", "yes", "no", "on", "off", "null"}
_LIKE_NUMBER = re.compile(r"0|[1-9]\d*|\d+\.\d+|\d{4}-\d\d-\d\d", re.ASCII)
_LINE = re.compile(rf"(  )?([A-Za-z][\w-]{{0,63}}):(?: ({_PLAIN}|'(?:[^']|'')*'))?", re.ASCII)
# YAML takes these for line breaks, unless they are escaped.
_BREAKS = ("\x85", "\u2028", "\u2029", "\ufeff")


# -- reading -------------------------------------------------------------------------------------


def read(text: str) -> dict[str, Any]:
    """Parse front matter into text (`no` is "no"), without aliases, anchors and tags."""
    if len(text) > MAX_BYTES:
        _refuse(f"has {len(text):,} bytes, and {MAX_BYTES:,} is the most", None)
    return _read_lines(text) or _read_yaml(text)


def _read_lines(text: str) -> dict[str, Any] | None:
    """Parse lines as we write them; None if there is any other."""
    document: dict[str, Any] = {}
    inner: dict[str, Any] | None = None
    lines = text.removesuffix("\n").split("\n")
    if not all(map(str.isprintable, lines)):
        return None
    for line in lines:
        found = _LINE.fullmatch(line)
        indent, name, value = found.groups() if found else ("", "", None)
        there = inner if indent else document
        if not name or there is None or name in there or (indent and value is None):
            return None
        if not indent:
            inner = {} if value is None else None
        there[name] = inner if value is None else _unquoted(value)
    return None if {} in document.values() else document


def _unquoted(value: str) -> str:
    return value[1:-1].replace("''", "'") if value[0] == "'" else value


def _read_yaml(text: str) -> dict[str, Any]:
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
    """Write front matter as YAML."""
    shown = orjson.dumps(document).decode()
    unicode = not any(mark in shown for mark in _BREAKS)
    return "".join(_written(name, value, unicode=unicode) for name, value in document.items())


def _written(name: str, value: Any, *, unicode: bool) -> str:
    """Write one key. Simple values are written here, because PyYAML is slow."""
    lines = _lines(name, value, "", unicode=unicode)
    if lines is not None:
        return lines
    import yaml

    return yaml.safe_dump(
        {name: value}, sort_keys=False, allow_unicode=unicode, width=10**6, default_flow_style=False
    )


def _lines(name: str, value: Any, indent: str, *, unicode: bool) -> str | None:
    """The lines that YAML has for a text or a mapping of texts; None where that is not certain."""
    if not _is_plain(name) or len(name) > _LONGEST_NAME:
        return None
    if isinstance(value, dict) and value:
        below = f"{indent}  "
        inner = [_lines(key, item, below, unicode=unicode) for key, item in value.items()]
        certain = [lines for lines in inner if lines is not None]
        return f"{indent}{name}:\n" + "".join(certain) if len(certain) == len(inner) else None
    text = _text(value, unicode=unicode) if isinstance(value, str) else None
    return None if text is None else f"{indent}{name}: {text}\n"


def _text(text: str, *, unicode: bool) -> str | None:
    if _is_plain(text):
        return text
    printable = text.isprintable() and (unicode or text.isascii())
    if printable and (": " in text or " #" in text or _LIKE_NUMBER.fullmatch(text)):
        return "'" + text.replace("'", "''") + "'"
    return None


def _is_plain(text: str) -> bool:
    return bool(_IS_PLAIN.fullmatch(text)) and text.lower() not in _LIKE_BOOLEAN
