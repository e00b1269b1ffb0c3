"""Secrets in known formats, found and replaced before a text is written anywhere.

A secret is recognised by a format that its vendor publishes (`secret_formats.py`), as a private key
(`private_keys.py`) or by a name that announces it (`secret_names.py`). Randomness alone is never a
reason: hashes, ids and images look as random as keys, and a false alarm silently damages a memory.
A placeholder in the exact shape of a vendor's token is replaced like the token.

Half a secret has no format any more. So a long text is redacted before it is cut,
never after: `clip` and `clip_end` do both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from operator import attrgetter, is_

from loki_memory.files import private_keys
from loki_memory.files.disguised_text import (
    encoded,
    is_disguised,
    is_escaped,
    may_hold_encoded,
    unescaped,
    visible,
)
from loki_memory.files.secret_formats import (
    format_secrets,
    may_hold_format,
    may_hold_wrapped_token,
    wrapped_tokens,
)
from loki_memory.files.secret_names import STEMS, announced, is_credential, kind_of
from loki_memory.files.secret_rule import Secret, lowered

_SHORTEST_TEXT = 8  # a URL with a password of three letters and nothing else
_LAYERS = 2  # encodings that are taken off: a URL may stand in the query of another
# Our replacement of a secret.
_PLACED = r"\[REDACTED:\w{1,40}\]"
_LONGEST_PLACED = 52


def find_secrets(text: str) -> list[Secret]:
    """Find the secrets of a text, in order and without overlap."""
    return _found(text, _LAYERS)


def _found(text: str, layers: int) -> list[Secret]:
    data = text.encode("utf-8", "surrogatepass")
    if len(data) < _SHORTEST_TEXT or not may_hold_secret(data):
        return []
    found = _in_view(text, data, layers)
    if is_disguised(data):
        view = visible(text)
        plain = view.text.encode("utf-8", "surrogatepass")
        hidden = _in_view(view.text, plain, layers)
        found += map(view.secret, hidden)
    if layers and is_escaped(data):
        view = unescaped(text)
        found += map(view.whole, _found(view.text, layers - 1))
    return _merged(found)


def _in_view(text: str, data: bytes, layers: int) -> list[Secret]:
    """Find secrets, from the most precise rules to the least."""
    low = lowered(text)
    found = [*private_keys.private_keys(text), *format_secrets(text, low, data)]
    found += wrapped_tokens(text, data)
    if layers and may_hold_encoded(data):
        found += encoded(text, partial(_found, layers=layers - 1))
    return [*found, *announced(low, text)]


def redact(text: str) -> str:
    """Replace each secret of a text by `[REDACTED:kind]`."""
    # Repeated, because a secret may show only when its neighbour is gone.
    while secrets := find_secrets(text):
        text = _replaced(text, secrets)
    return text


def clip(text: str, longest: int) -> str:
    """The beginning of a text, without secrets and without part of a placeholder."""
    clean = redact(text)
    if len(clean) <= longest:
        return clean
    return clean[: _placeholder_at(clean, longest)[0]]


def clip_end(text: str, longest: int) -> str:
    """The end of a text, without secrets and without part of a placeholder."""
    clean = redact(text)
    if len(clean) <= longest:
        return clean
    return clean[_placeholder_at(clean, len(clean) - longest)[1] :]


def _placeholder_at(text: str, place: int) -> tuple[int, int]:
    """The span of a placeholder that a cut would split; else the place of the cut."""
    around = re.compile(_PLACED).finditer(text, max(0, place - _LONGEST_PLACED))
    spans = (found.span() for found in around)
    return next((span for span in spans if span[0] < place < span[1]), (place, place))


def redact_value(value: object) -> object:
    """Replace the secrets of a JSON value, in keys too; the same object if it has none."""
    return _redacted(value, None)


def may_hold_secret(data: bytes) -> bool:
    """Look fast at UTF-8 text or JSON: if False, no string within holds a secret."""
    low = data.lower()
    return (
        any(mark in data for mark in private_keys.MARKS)
        or may_hold_format(data, low)
        or may_hold_wrapped_token(data)
        or is_disguised(data)
        or is_escaped(data)
        or may_hold_encoded(data)
        or any(stem in low and _holds(names, low) for stem, names in STEMS.items())
        # JSON may spell any letter as \u0070, which hides it from the checks above.
        or (b"\\u00" in data and _holds([rb"\\u00[2-7]"], data))
    )


def _holds(patterns: Iterable[bytes], data: bytes) -> bool:
    return any(re.search(pattern, data) for pattern in patterns)


def _merged(found: Iterable[Secret]) -> list[Secret]:
    """Join overlapping secrets, so that no part of one stays.

    The first names the kind: among those that start together, the one of the most precise rule.
    """
    merged: list[Secret] = []
    for secret in sorted(found, key=attrgetter("start")):
        if merged and secret.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(secret.end, merged[-1].end))
        else:
            merged.append(secret)
    return merged


def _replaced(text: str, secrets: list[Secret]) -> str:
    pieces: list[str] = []
    position = 0
    for kind, start, end in secrets:
        pieces += text[position:start], f"[REDACTED:{kind}]"
        position = end
    return "".join((*pieces, text[position:]))


def _redacted(value: object, kind: str | None) -> object:
    """Redact a value; `kind` is the one that its key announces."""
    if isinstance(value, str):
        return _redacted_string(value, kind)
    if isinstance(value, list):
        items = [_redacted(item, kind) for item in value]
        return value if all(map(is_, items, value)) else items
    return _redacted_object(value) if isinstance(value, dict) else value


def _redacted_string(value: str, kind: str | None) -> str:
    clean = redact(value)
    if kind is None or not is_credential(value, kind, quoted=True):
        return clean
    return clean if re.fullmatch(r"\[REDACTED:\w+\]", clean) else f"[REDACTED:{kind}]"


def _redacted_object(value: dict[str, object]) -> dict[str, object]:
    clean: dict[str, object] = {}
    for key, item in value.items():
        # Environments are written as pairs: "name": "DB_PASSWORD", "value": "…".
        announcing = value.get("name") if key == "value" else key
        clean[_unused(redact(key), clean)] = _redacted(item, kind_of(announcing))
    keys_same = all(map(is_, clean, value))
    return value if keys_same and all(map(is_, clean.values(), value.values())) else clean


def _unused(key: str, taken: dict[str, object]) -> str:
    """A free key: two secrets as keys become one placeholder, and neither value may be lost."""
    while key in taken:
        key += "'"
    return key
