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
from collections.abc import Iterable, Iterator
from functools import partial
from operator import attrgetter, is_

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
from loki_memory.files.secret_names import STEMS, Secret, announced, is_credential, kind_of, lowered

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
    found = [*private_keys(text), *format_secrets(text, low, data)]
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
        any(mark in data for mark in _KEY_MARKS)
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


# -- private keys: whole blocks, or blocks with one end cut off ------------------------------------


_KEY_MARKS = (b"-----BEGIN", b"-----END")
# A header in a sentence, or in code that looks for one, has no key after it.
_PRIVATE_KEY = (
    r"(?a)-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"(?=\s{0,8}[\r\n]|\\{1,4}[nr]|\W{0,16}[A-Za-z0-9+/]{16})"
)
# The end of a key whose beginning was cut off (`tail key.pem`): the lines of base64 before the
# footer, each perhaps behind a line number or a quotation mark.
_KEY_FOOTER = r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
_KEY_WORDS = r"\\+[nrt]|([^\s\"'`\\]+)"  # words between spaces, quotes and escaped spaces
_KEY_LINE = r"(?:\d{1,6}\W{1,3})?[A-Za-z0-9+/=]{%s,}\W?|[\d|>#*:+,;\-]{1,8}"
_SHORT_LINE, _FULL_LINE = _KEY_LINE % 1, _KEY_LINE % 8  # the last may be short
_RANDOM_LINE = r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z0-9+/=]{16}"
_LONGEST_KEY = 16_384  # RSA with 16,384 bits has 12,700 characters


def private_keys(text: str) -> Iterator[Secret]:
    """Find private keys, and ends of keys whose beginning was cut off."""
    yield from _whole_keys(text)
    yield from _ends_of_keys(text)


def _whole_keys(text: str) -> Iterator[Secret]:
    """Find whole blocks, without a pattern that would read on from every header."""
    header = re.compile(_PRIVATE_KEY)
    start = text.find("-----BEGIN")
    while start >= 0:
        end = start + 1
        if match := header.match(text, start):
            end = _end_of_key(text, match.end())
            yield Secret("private_key", start, end)
        start = text.find("-----BEGIN", end)


def _end_of_key(text: str, start: int) -> int:
    """The end of a block; one that was cut off takes the rest of the text."""
    footer = text.find("-----END", start)
    if footer < 0:
        return len(text)
    dashes = text.find("-----", footer + 8, footer + 64)
    return dashes + 5 if dashes >= 0 else footer + 8


def _ends_of_keys(text: str) -> Iterator[Secret]:
    """Find ends of private keys, with the part of the key before them."""
    begin = 0
    for footer in re.finditer(_KEY_FOOTER, text) if "-----END" in text else ():
        start = _start_of_key(text, max(begin, footer.start() - _LONGEST_KEY), footer.start())
        if start < footer.start():
            yield Secret("private_key", start, footer.end())
        begin = footer.end()


def _start_of_key(text: str, begin: int, footer: int) -> int:
    """The start of a key's lines; the footer's position if nothing before it looks random."""
    found = re.compile(_KEY_WORDS).finditer(text, begin, footer)
    words = [word for word in found if word[1]]
    start, is_random = footer, False
    for word in reversed(words):
        shape = _SHORT_LINE if word is words[-1] else _FULL_LINE
        if not re.fullmatch(shape, word[0], re.ASCII):
            break
        start, is_random = word.start(), is_random or bool(re.search(_RANDOM_LINE, word[0]))
    return start if is_random else footer


# -- personal data, which memory that others read must not hold ------------------------------------


_HOME_MARKS = (b"/home/", b"/Users/", b"/root/", b"Users\\", b"\\home\\", b"@", b"%2F", b"%40")
# Before the folder of all homes: mounts of other systems, and drives as shells and WSL name them.
_ABOVE = r"(?:/(?:var|usr|export|private|System/Volumes/Data|mnt/[a-z]|[a-z]))?"
# A folder below a home: a route such as /home/settings has nothing below it.
_HOME = re.compile(
    rf"(?:(?<=://file)|(?<![\w.~-])){_ABOVE}(?:/home/|/Users/)[\w.-]+(?=/[\w.~-])"
    r"|(?<![\w.~/-])/root(?=/[\w.~-])"
    r"|%2F(?:home|Users)%2F[\w.-]+(?=%2F)"
    r"|\b[A-Za-z]:[\\/]{1,4}Users[\\/]{1,4}[\w.-]+(?=[\\/])"
    r"|\\{2,4}wsl(?:\$|\.localhost)\\{1,2}[\w.-]+\\{1,2}home\\{1,2}[\w.-]+(?=\\)"
)
_ADDRESS = re.compile(
    r"(?:(?<=mailto:)|(?<![\w:/.+@%-]))(?!(?:git|hg|noreply|no-reply)(?:@|%40))[\w.+-]{1,64}(?:@|%40)"
    r"(?!\d)"
    r"(?!(?:[\w-]+\.){0,4}(?:example(?:\.\w+)?|invalid|test|localhost|local)(?![\w.-]))"
    r"(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w@-]|\.\w|:[^\s\d])"
)
_PROMPT = re.compile(
    r"(?<![\w.@/-])[a-z_][\w.-]{0,31}@[A-Za-z][\w.-]{0,62}(?=:[~/][^\s]{0,128}[$#] | ~\S{0,128} % )"
    r"|(?<=\[)[a-z_][\w.-]{0,31}@[A-Za-z][\w.-]{0,62}(?= [^\s\]]{1,128}\][$#] )"
)


def may_hold_personal_data(data: bytes) -> bool:
    """Look fast at UTF-8 text or JSON: if False, it holds none."""
    return any(mark in data for mark in _HOME_MARKS)


def impersonal(text: str) -> str:
    """The text without home folders, e-mail addresses and the names in a shell's prompt."""
    text = _PROMPT.sub("user@host", _HOME.sub("~", text))
    has_address = "@" in text or "%40" in text
    return _ADDRESS.sub("[REDACTED:email]", text) if has_address else text


def impersonal_value(value: object) -> object:
    """The same for a JSON value; the same object if nothing changes."""
    if isinstance(value, str):
        clean = impersonal(value)
        return value if clean == value else clean
    if isinstance(value, list):
        items = [impersonal_value(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        fields = {name: impersonal_value(item) for name, item in value.items()}
        return value if all(fields[name] is value[name] for name in value) else fields
    return value
