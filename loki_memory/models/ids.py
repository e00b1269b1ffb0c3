"""Ids: derived from a record's key, and safe as file names."""

from __future__ import annotations

import re

from loki_memory.errors import InvalidId
from loki_memory.models.text import nfc

# Anything that becomes a file name has no dots, no slashes, no spaces.
ID = re.compile(r"[a-z]{2,8}-[0-9A-Za-z][0-9A-Za-z_-]{0,79}")

# Crockford's alphabet has no i, l, o, u: ids survive being read aloud and copied by hand.
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
MINTED_LENGTH = 10  # 50 bits; about one chance in 20 million of a collision among 10,000 records

# Windows reserves these names for devices, whatever their extension.
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul"] + [f"{port}{n}" for port in ("com", "lpt") for n in range(10)]
)
_SAFE_STEM = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


def check_id(value: str) -> str:
    """Return the id, or raise InvalidId."""
    if not ID.fullmatch(value):
        raise InvalidId(value)
    return value


def digest(kind: str, *key: str) -> str:
    """Ten characters that identify a kind and a key, the same on every machine."""
    import hashlib  # 3 ms, and not needed to find a folder

    text = nfc("\0".join((kind, *key)))  # bytes of a file name that are not UTF-8 stay as they are
    return encode(hashlib.sha256(text.encode(errors="surrogateescape")).digest(), MINTED_LENGTH)


def encode(data: bytes, length: int) -> str:
    """The first `length` Crockford characters (five bits each) of some bytes."""
    bits = int.from_bytes(data[: (length * 5 + 7) // 8], "big")
    bits >>= -(length * 5) % 8
    return "".join(_CROCKFORD[bits >> (5 * i) & 31] for i in reversed(range(length)))


def slug(text: str, limit: int = 40) -> str:
    """Lower-case letters, digits and single hyphens; empty if the text has none of them."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:limit].strip("-")


def file_stem(name: str) -> str:
    """A file name for a free-text name: itself where that is safe everywhere, else slug and hash.

    Upper case counts as unsafe: `QA-1` and `qa-1` are one file on some systems.
    """
    if _SAFE_STEM.fullmatch(name) and name not in _RESERVED:
        return name
    return f"{slug(name) or 'x'}-{digest('name', name)}"
