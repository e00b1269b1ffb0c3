"""Secrets that colours, invisible characters, line wraps, escapes or base64 hide from a pattern.

A terminal colours part of a token, a chat puts a zero-width space into it, a narrow window wraps
it, a URL, a string of code or a page spells its signs as %3D, \\u003d or &#61;, a manifest holds it
in base64. Each disguise is taken off in a copy of the text, which knows where every character of it
stands in the original.
"""

from __future__ import annotations

import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from loki_memory.files.secret_names import Secret

# Escape sequences of terminals, as they are and as JSON and shells spell them.
_SEQUENCE = (
    r"(?:\x1b|\\u001[bB]|\\x1[bB]|\\033|\\e)"
    r"(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|[@-Z^_]"
    r"|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\|\\u001[bB]\\{1,2}))"  # the second of a link's two ends
    r"|\x9b[0-?]{0,32}[ -/]{0,4}[@-~]"
)
# Characters that show nothing, and their spelling in JSON.
_INVISIBLE = (
    "\x00-\x08\x0e-\x1a\x7f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u2800"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"  # accents
)
_HIDDEN = rf"{_SEQUENCE}|[{_INVISIBLE}]|\\u(?:00ad|200[b-f]|202[a-e]|206[0-9a-f]|feff)"
# Blocks of letters, digits and signs that are plain ones in another shape: wide, bold, in a circle.
_SHAPED = (
    *((0xAA, 0xBB), (0x2070, 0x20A0), (0x2100, 0x2150), (0x2460, 0x2500), (0xFE50, 0xFE70)),
    *((0xFF01, 0xFF5F), (0x1D400, 0x1D800), (0x1F100, 0x1F190), (0x1FBF0, 0x1FBFA)),
)
# The same in UTF-8, for a first look: bytes that are no plain text, and escapes.
_PLAIN = bytes((*b"\t\n\r", *range(0x20, 0x7F)))
_HIDDEN_BYTES = re.compile(
    rb"[\x00-\x1f\x7f]|\xc2[\x9b\xad\xaa\xb2\xb3\xb9\xba]|\xcc|\xcd[\x80-\xaf]|\xd2[\x83-\x89]|\xd8\x9c"
    rb"|\xe1(?:\x85|\x9e|\xa0|\xaa|\xab|\xb7)|\xe2(?:\x80[\x8b-\x8f\xaa-\xae]|[\x81\x82\x84\x85]"
    rb"|\x83[\x90-\xbf]|[\x91-\x93]|\xa0\x80)|\xe3\x85\xa4|\xf3\xa0|\xf0(?:\x9b\xb2|\x9d|\x9f[\x84\x86\xaf])"
    rb"|\xef(?:\xb8|\xb9|\xbb\xbf|\xbc[\x81-\xbf]|\xbd[\x80-\x9e]|\xbe\xa0|\xbf[\xb9-\xbb])"
)
_ESCAPED = re.compile(rb"\\(?:u(?:001[bB]|00ad|200[b-f]|202[a-e]|206|feff)|x1[bB]|033|e\[)")
_LINE_ENDS = (b"\\n", b"\r", b"\v", b"\f", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
# A line's end inside a token, with the margin of the next line: spaces, quotation or comment marks.
_WRAP = re.compile(
    r"(?:=?\n|=?\r\n|\\\n|\\\r\n|\\n|\\r\\n|[\r\v\f\x85\u2028\u2029]|\\u202[89])"
    r"[ \t]{0,40}(?:[>|#*]{1,3}[ \t]{0,4})?"
    r"(?=[\w.~-])(?![A-Z]?[a-z]{2,}(?![\w~-]))"  # a plain word begins a sentence's next line
)
# A sign as URLs, strings of code, HTML and Markdown spell it.
_HEX = "[2-7][0-9A-Fa-f]"
_NAMED = {
    "lowbar": "_",
    "UnderBar": "_",
    "hyphen": "-",
    "dash": "-",
    "period": ".",
    "colon": ":",
    "sol": "/",
    "equals": "=",
    "plus": "+",
    "commat": "@",
    "num": "#",
    "amp": "&",
    "quot": '"',
    "apos": "'",
    "lt": "<",
    "gt": ">",
    "nbsp": " ",
}
_ESCAPE = (
    rf"%(?P<url>0[9AaDd]|{_HEX})"
    rf"|\\{{1,4}}(?:(?:u00|x)(?P<code>{_HEX})|U0{{6}}(?P<long>{_HEX})|u\{{0{{0,4}}(?P<point>{_HEX})\}}"
    r"|(?P<octal>0[4-7][0-7]|1[0-7][0-7])|(?P<mark>[_.~-]))"
    rf"|&(?:#[xX]0{{0,6}}(?P<page>{_HEX})|#0{{0,6}}(?P<decimal>3[2-9]|[4-9]\d|1[01]\d|12[0-6])(?!\d)"
    rf"|(?P<named>{'|'.join(_NAMED)}));?"
)
_BASES = {"url": 16, "code": 16, "long": 16, "point": 16, "page": 16, "octal": 8, "decimal": 10}
_ESCAPE_BYTES = re.compile(_ESCAPE.encode())
SHORTEST_HEAD = 6  # characters before the first wrap of a token
_SHORTEST_REST = 6  # of a line that goes on with it
# Base64, at least as long as a short token; its lines may be wrapped.
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,}+")
_NEXT_LINE = re.compile(r"(?:\r?\n|\\r?\\n|\\n)[ \t>|#*]{0,40}([A-Za-z0-9+/_-]+)")
_CODE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_CODE_RUNS = bytes(ord("a" if byte in _CODE else " ") for byte in range(256))
_CODE_RUN = b"a" * 24
_TEXT = re.compile(r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*+")
_WIDE_BYTES = re.compile(rb"(?:[\t\n\r\x20-\x7e]\0)++")  # UTF-16, as PowerShell encodes commands
_STANDARD = bytes.maketrans(b"-_", b"+/")
_CUT_LETTER = 2  # bytes of a letter that a probe may cut
_PROBE = 16  # characters of base64 that have to decode to text
_LONGEST_ENCODED = 64_000


class View(NamedTuple):
    """A text without parts of another one, and where its characters stand there."""

    text: str
    places: list[int]  # in this text, at which something was left out, ascending
    removed: list[int]  # characters left out up to each of these places

    def in_original(self, place: int) -> int:
        """The place of a character in the original."""
        before = bisect_right(self.places, place)
        return place + (self.removed[before - 1] if before else 0)

    def whole(self, found: Secret) -> Secret:
        """The same with all of the escapes at its ends, of which the rest was left out."""
        start, end = self.in_original(found.start), self.in_original(found.end)
        return found._replace(start=start, end=end)

    def secret(self, found: Secret) -> Secret:
        """A secret of this text as one of the original."""
        last = self.in_original(found.end - 1)
        return found._replace(start=self.in_original(found.start), end=last + 1)


def _without(text: str, spans: Iterable[tuple[int, int]]) -> View:
    kept: list[str] = []
    places: list[int] = []
    sizes: list[int] = []
    position = length = 0
    for start, end in spans:
        kept.append(text[position:start])
        length += start - position
        places.append(length)
        sizes.append(end - start)
        position = end
    return View("".join((*kept, text[position:])), places, list(accumulate(sizes)))


def is_disguised(data: bytes) -> bool:
    """Look fast at UTF-8: if False, it holds nothing that is invisible or wide."""
    unusual = data.translate(None, _PLAIN)
    if unusual and _HIDDEN_BYTES.search(unusual):
        return True
    return b"\\" in data and _ESCAPED.search(data) is not None


def visible(text: str) -> View:
    """The text without what nobody sees, its letters in other shapes as plain ones."""
    view = _without(text, (hidden.span() for hidden in re.finditer(_HIDDEN, text)))
    return view._replace(text=view.text.translate(_plain_letters()))


@lru_cache(maxsize=1)
def _plain_letters() -> dict[int, str]:
    """The plain letters of those in another shape, as far as each is one ASCII character."""
    from unicodedata import normalize

    codes = (code for start, end in _SHAPED for code in range(start, end))
    plain = ((code, normalize("NFKC", chr(code))) for code in codes)
    return {code: letter for code, letter in plain if len(letter) == 1 and letter.isascii()}


def is_escaped(data: bytes) -> bool:
    """Look fast at UTF-8: if False, it spells no sign in another way."""
    has_mark = b"%" in data or b"\\" in data or b"&" in data
    return has_mark and _ESCAPE_BYTES.search(data) is not None


def unescaped(text: str) -> View:
    """The text with each %3D, \\u003d and &#61; as the sign that it stands for."""
    escapes = list(re.finditer(_ESCAPE, text))
    view = _without(text, ((escape.start() + 1, escape.end()) for escape in escapes))
    letters = list(view.text)
    for place, escape in zip(view.places, escapes, strict=True):
        letters[place - 1] = _sign(escape)
    return view._replace(text="".join(letters))


def _sign(escape: re.Match[str]) -> str:
    kind = escape.lastgroup or ""
    base = _BASES.get(kind)
    return chr(int(escape[kind], base)) if base else _NAMED.get(escape[kind], escape[kind])


# -- wrapped lines ---------------------------------------------------------------------------------


def last_words(data: bytes) -> bytes:
    """The last word of every line of UTF-8 text or JSON that may go on in the next line."""
    for end in _LINE_ENDS:
        if end in data:
            data = data.replace(end, b"\n")
    if b"\n" not in data:
        return b""
    lines = data.split(b"\n")
    words = (line[line.rfind(b" ") + 1 :] for line in lines)
    return b" ".join(word for word in words if len(word) >= SHORTEST_HEAD)


def unwrapped(text: str) -> View:
    """The text with words joined that a line's end may have split."""
    wraps = (wrap.span() for wrap in _WRAP.finditer(text) if _is_inside(text, wrap.start()))
    return _without(text, wraps)


def _is_inside(text: str, place: int) -> bool:
    return place > 0 and (text[place - 1].isalnum() or text[place - 1] in "_-.~")


def first_line(view: View, found: Secret) -> str:
    """The part of a secret of an unwrapped text that stands on its first line."""
    first = bisect_right(view.places, found.start)
    return view.text[found.start : min([found.end, *view.places[first : first + 1]])]


def continued(view: View, found: Secret) -> list[int]:
    """The line ends up to which a token of an unwrapped text may reach, the nearest first.

    What follows a token on the next line is usually a word, so its last line that looks random is
    the first candidate; none does if the token has no wrap.
    """
    first = bisect_right(view.places, found.start)
    wraps = view.places[first : bisect_right(view.places, found.end - 1)]
    if not wraps or wraps[0] - found.start < SHORTEST_HEAD:
        return []
    ends = [*wraps[1:], found.end]
    lines = [view.text[start:end] for start, end in zip(wraps, ends, strict=True)]
    random = [number for number, line in enumerate(lines) if _looks_random(line)]
    return ends[random[-1] :] if random else []


def _looks_random(line: str) -> bool:
    is_mixed = re.search(r"\d", line) and re.search(r"[A-Za-z]", line)
    return len(line) >= _SHORTEST_REST and bool(is_mixed or re.search(r"[a-z][A-Z].*[A-Z]", line))


# -- base64 ----------------------------------------------------------------------------------------


def may_hold_encoded(data: bytes) -> bool:
    """Look fast at UTF-8 text or JSON: if False, it holds no base64 of a text."""
    runs = data.translate(_CODE_RUNS) + b" "
    start = runs.find(_CODE_RUN)
    while start >= 0:
        if _is_text(data[start : start + _PROBE]):
            return True
        start = runs.find(_CODE_RUN, runs.index(b" ", start))
    return False


def _is_text(code: bytes) -> bool:
    decoded = _decoded(code)
    return bool(decoded) and len(_text_in(decoded)[1]) >= len(decoded) - _CUT_LETTER


def _text_in(decoded: bytes) -> tuple[str, bytes]:
    """The text that some bytes begin with, and its bytes."""
    if wide := _WIDE_BYTES.match(decoded):
        return wide[0].decode("utf-16-le"), wide[0]
    match = _TEXT.match(decoded.decode("utf-8", "replace").partition("\ufffd")[0])
    text = match[0] if match else ""
    return text, text.encode("utf-8")


def _decoded(code: bytes) -> bytes:
    plain = code.translate(_STANDARD)
    if len(plain) % 4 == 1:
        plain = plain[:-1]
    try:
        return binascii.a2b_base64(plain + b"=" * (-len(plain) % 4))
    except ValueError:
        return b""


def encoded(text: str, find: Callable[[str], list[Secret]]) -> Iterator[Secret]:
    """Find base64 of texts in which `find` finds a secret."""
    covered = 0
    for run in _ENCODED.finditer(text):
        if run.start() < covered or not _is_text(run[0][:_PROBE].encode()):
            continue
        code, places = _lines_from(text, run)
        inside, data = _text_in(_decoded(code.encode()))
        covered = places[-1] + 1
        if secrets := find(inside):
            last = min(len(code), -(-len(data) * 4 // 3)) - 1
            end = places[last] + 1
            padding = len(text[end : end + 2]) - len(text[end : end + 2].lstrip("="))
            yield Secret(secrets[0].kind, run.start(), end + padding)


def _lines_from(text: str, run: re.Match[str]) -> tuple[str, list[int]]:
    """Base64 from a run on over the lines that follow, and the place of each of its characters."""
    code, places, end = [run[0]], [*range(*run.span())], run.end()
    while len(places) < _LONGEST_ENCODED and (line := _NEXT_LINE.match(text, end)):
        code.append(line[1])
        places += range(*line.span(1))
        end = line.end()
    return "".join(code), places
