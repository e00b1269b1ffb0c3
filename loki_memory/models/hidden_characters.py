"""Characters that a reader does not see, and a program or a language model does.

Zero-width and reordering characters, tags, control characters, and letters that are drawn as
nothing (the Hangul fillers, the empty Braille pattern). The joiner and the variation selector of an
emoji are part of what one sees.
"""

from __future__ import annotations

import unicodedata

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_DRAWN_AS_NOTHING = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5")
_IN_EMOJI = frozenset("\N{ZERO WIDTH JOINER}\N{VARIATION SELECTOR-16}")
_EMOJI = frozenset({"So", "Sk"})  # categories of the symbols that these two join


def has_hidden(text: str) -> bool:
    """Check if a text holds characters that are not seen.

    >>> has_hidden("run\\u200bit"), has_hidden("a line\\nand a tab\\t")
    (True, False)
    """
    return revealed(text) != text


def revealed(text: str) -> str:
    """The text with hidden characters as their code points.

    >>> revealed("run\\u200bit")
    'run<U+200B>it'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"<U+{ord(character):04X}>" if _is_hidden(character, text[at - 1 : at]) else character
        for at, character in enumerate(text)
    )


def _is_hidden(character: str, before: str) -> bool:
    if character in "\n\t\r":
        return False
    if character in _IN_EMOJI:
        return not before or unicodedata.category(before) not in _EMOJI
    if character in _DRAWN_AS_NOTHING or "\ufe00" <= character <= "\ufe0e":
        return True
    return unicodedata.category(character) in _UNSEEN
