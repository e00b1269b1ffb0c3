"""What a text costs a language model to read. An estimate, and called one wherever it is shown."""

from __future__ import annotations

BYTES_PER_TOKEN = 4


def tokens(text: str) -> int:
    """A token for every four bytes that were begun."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
