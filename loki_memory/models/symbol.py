"""Symbols: the names of code that a text mentions."""

from __future__ import annotations

import re

_MOST = 30  # per memory: a log of a thousand names says nothing about any of them
_LONGEST = 64
# What only code looks like: snake_case, camelCase, dotted.names, CONSTANTS_SO, --options, calls().
_SYMBOL = re.compile(
    r"(?<![\w/.-])(?:"
    r"--[a-z][\w-]+"
    r"|[A-Za-z]\w*(?:_\w+)+"
    r"|[a-z]+(?:[A-Z]+[a-z0-9]*)+"
    r"|(?:[A-Z]+[a-z0-9]+){2,}"
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?=\()"
    r"|[A-Za-z_]\w*(?=\(\))"
    r")"
)


def symbols(text: str) -> list[str]:
    """Names of code in a text, each once, in the order in which they come."""
    found = (name for name in _SYMBOL.findall(text) if len(name) <= _LONGEST)
    return list(dict.fromkeys(found))[:_MOST]
