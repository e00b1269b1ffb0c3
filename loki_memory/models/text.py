"""Text helpers: normal forms that decide when two texts are one value, symbols, token counts."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b

# Letters of other scripts that look like Latin ones, after case folding. Compatibility forms
# (full width, mathematical, ligatures) are NFKC's work and not listed.
_LOOK_ALIKES = str.maketrans(
    {
        **dict(zip("авекмнорстухіјѕԁԛԝһӏ", "abekmhopctyxijsdqwhl", strict=True)),
        **dict(zip("αβεζηικμνορτυχϲ", "abeznikmvoptuxc", strict=True)),
        **dict(
            zip(
                "\u0131\u0251\u0261\u0269\u028b\u2013\u2014\u2212\u2018\u2019\u201c\u201d",
                "iagiv---''\"\"",
                strict=True,
            )
        ),
    }
)
_SHOWN = 30
_UNSEEN = re.compile(  # formats without a width, and the colours of terminals
    "[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]"
    r"|\x1b\[[0-9;?]*[A-Za-z]"
)
_ENDS = " .!;,"
_SELECTORS = {chr(n) for n in (0x34F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))}
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,9}))?\s*(.*))?", re.DOTALL
)
_CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)?Z?")


# Sorting a run of combining marks takes quadratic time. No language writes more than a few; beyond
# 30 the Stream-Safe Text Format of Unicode breaks a run with a character that shows nothing.
_MOST_MARKS, _JOINER = 30, "\u034f"
_MAY_BE_MARKS = re.compile(rf"[^\w\s\x00-\u02ff]{{{_MOST_MARKS + 1},}}")


def _stream_safe(text: str) -> str:
    return _MAY_BE_MARKS.sub(_broken_up, text)


def _broken_up(run: re.Match[str]) -> str:
    pieces, marks = [], 0
    for character in run[0]:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > _MOST_MARKS:
            pieces.append(_JOINER)
            marks = 1
        pieces.append(character)
    return "".join(pieces)


def visible(text: str) -> str:
    """A text as a reader sees it: no invisible characters, no colours, no other widths."""
    if text.isascii() and "\x1b" not in text:
        return text
    return unicodedata.normalize("NFKC", _stream_safe(_UNSEEN.sub("", text)))


def look_alike(text: str) -> str:
    """A visible text in small letters, with Latin ones for those that only look so."""
    return visible(text).casefold().translate(_LOOK_ALIKES)


def nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", _stream_safe(text))


def runs(text: str) -> set[str]:
    """Every eight words in a row of a text: two texts that share one quote each other."""
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[at : at + 8]) for at in range(len(words) - 7)}


def run_hashes(text: str) -> set[str]:
    """Hashes of the runs of a text, by which a quotation is known without keeping the text."""
    return {blake2b(run.encode(), digest_size=5).hexdigest() for run in runs(text)}


def normal(text: str) -> str:
    """The value of a text: without case, whitespace, invisible and look-alike characters."""
    if text.isascii() and text.isprintable():
        return " ".join(text.lower().split()).rstrip(_ENDS)
    folded = unicodedata.normalize(
        "NFKC", unicodedata.normalize("NFKC", _stream_safe(text)).casefold()
    )
    visible = (" " if c.isspace() else c for c in folded if c.isspace() or not _is_invisible(c))
    return " ".join("".join(visible).translate(_LOOK_ALIKES).split()).rstrip(_ENDS)


def _is_invisible(character: str) -> bool:
    """Check for controls and formats, and marks that only change how their neighbour is drawn."""
    return unicodedata.category(character) in {"Cf", "Cc"} or character in _SELECTORS


@lru_cache(maxsize=4096)  # related records have the same dates
def moment(text: str) -> str:
    """Normalise a time to `YYYY-MM-DDTHH:MM:SSZ`, with a fraction if there is one; a date stays.

    Lenient about the spelling of agents: other offsets, none at all (taken as UTC), and the
    `+00:00Z` that some tools produce. Raises ValueError for anything else.
    """
    from datetime import UTC, date, datetime  # to find a folder, no calendar is needed

    if _CANONICAL.fullmatch(text):
        datetime.fromisoformat(text)  # raises ValueError if it is no time
        return text
    match = _MOMENT.fullmatch(text.strip())
    if not match:
        raise ValueError(
            f"{text[:40]!r} is not a moment such as 2026-01-20T09:00:00Z or 2026-01-20"
        )
    day, clock, seconds, fraction, zone = match.groups()
    if clock is None:
        return date.fromisoformat(day).isoformat()
    try:
        local = datetime.fromisoformat(f"{day}T{clock}{seconds or ':00'}{_offset(zone)}")
        when = local.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{_shown(text)} is out of range") from None
    tail = (fraction or "").rstrip("0")
    return f"{when:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + (f".{tail}Z" if tail else "Z")


def _offset(zone: str) -> str:
    if zone in {"", "Z", "z"}:
        return "+00:00"
    match = _OFFSET.fullmatch(zone)
    if not match:
        raise ValueError(f"{_shown(zone)} is not a time zone; write UTC with a Z")
    sign, hours, minutes = match.groups()
    return f"{sign}{hours}:{minutes or '00'}"


def _shown(text: str) -> str:
    """A bad value for a message. Never a part of it: half a secret is not recognised as one."""
    return repr(text) if len(text) <= _SHOWN else f"a text of {len(text)} characters"


def shorten(text: str, width: int, *, at_word: bool = False) -> str:
    """Cut a text to a width, and put … for the rest; at the end of a word if that is asked for.

    >>> shorten("one two three", 9)
    'one two…'
    """
    if len(text) <= width:
        return text
    kept = text[: width - 1]
    return ((kept.rpartition(" ")[0] or kept) if at_word else kept).rstrip() + "…"


def printable_line(text: str, width: int) -> str:
    """Put text on one line, without control characters, cut to a width."""
    line = " ".join(text.split())
    shown = (c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    return shorten("".join(shown), width)


# -- What a text says of places and of cases ------------------------------------------------------


_HOME = re.compile(r"/(?:Users|home)/[\w.-]+")
_EVERYWHERE = re.compile(
    r"\b(?:always|never|everywhere|wherever|every (?:test|file|commit|time|function))\b",
    re.IGNORECASE,
)


def without_home(text: str) -> str:
    """The text with `~` for each home folder.

    >>> without_home("cat /home/ana/shop/a.py")
    'cat ~/shop/a.py'
    """
    return _HOME.sub("~", text)


def holds_everywhere(text: str) -> bool:
    """Tell whether a wish says that it holds in every case."""
    return _EVERYWHERE.search(text) is not None


# -- Symbols: the names of code that a text mentions ----------------------------------------------


_MOST = 30  # per memory: a log of a thousand names says nothing about any of them
_LONGEST = 64
_LONG_NAME = 8  # letters: `GitHub` and `tmpDir` are everywhere
# Spellings of code: snake_case, camelCase, dotted.names, CONSTANTS_SO, --options, calls().
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


def long_symbols(text: str) -> list[str]:
    """Names of code that tell one thing from another, without the package that they are of.

    >>> long_symbols("strategy.getStagedFiles() reads tmpDir")
    ['strategy.getStagedFiles', 'getStagedFiles']
    """
    every = dict.fromkeys([*symbols(text), *symbols(text.replace(".", " "))])
    return [name for name in every if len(name) >= _LONG_NAME]


# -- The cost of a text for a language model: an estimate -----------------------------------------


BYTES_PER_TOKEN = 4


def tokens(text: str) -> int:
    """Estimate the tokens of a text: its bytes / 4, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A word without its ending: `merges`, `merged` and `merging` are one.

    Few rules and fixed ones: a stem that another version computes otherwise would move decisions
    that are already in files.
    """
    if len(word) <= 3 or not word.isascii():  # noqa: PLR2004 - too short to have an ending
        return word
    word = _singular(word.removesuffix("'s"))
    for ending, least in (("ing", 3), ("ed", 3), ("ly", 4), ("ment", 5), ("ness", 4)):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= least and re.search("[aeiouy]", rest):
            return _bare(rest)
    return _bare(word)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:  # noqa: PLR2004 - but not `ties`
        return f"{word[:-3]}y"
    if re.search("(?:ss|sh|ch|x|z)es$", word):
        return word[:-2]
    return word[:-1] if re.search("[^suiy]s$|ys$", word) else word


def _bare(word: str) -> str:
    """Without a final `e`, a doubled consonant, or a `y` where others have an `i`."""
    if len(word) > 3:  # noqa: PLR2004 - `use` stays
        word = word.removesuffix("e")
    if re.search("([bdfgmnprt])\\1$", word):
        word = word[:-1]
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 3 else word  # noqa: PLR2004


# Characters that a reader does not see, and a program or a language model does.
#
# Zero-width and reordering characters, tags, control characters, and letters that are drawn as
# nothing (the Hangul fillers, the empty Braille pattern). The joiner and the variation selector
# of an emoji are part of what one sees.
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
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
    return unicodedata.category(character) in _UNSEEN_CATEGORIES


def plural(number: int, noun: str) -> str:
    """Count a noun: `1 memory`, `2 memories`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"
