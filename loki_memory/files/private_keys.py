"""Blocks of private keys, whole or with one end cut off."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loki_memory.files.secret_rule import Secret

MARKS = (b"-----BEGIN", b"-----END")
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
