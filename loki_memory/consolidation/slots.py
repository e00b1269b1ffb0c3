"""Slots: what a plain statement gives a value to, so that another value of the same contradicts it.

    "Feature flags live in Unleash"     the place of feature flags   -> Unleash
    "Reviews need two approvals"        how many approvals           -> 2
    "Write the changelog in German"     the language of the same     -> german
    "Never deploy on Fridays"           whether to deploy then       -> no

A number, or a word of a list of alternatives, is a value where everything else that is said is the
same, whatever the order. Opposite words alone mean nothing. What a thing supports, reads or is
tested with are things of which it has several, and no slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain

from loki_memory.consolidation.similarity import content
from loki_memory.models.text import normal, stem

Slot = tuple[str, str]  # the subject, and what is said of it

# Words of one list exclude each other, in otherwise the same words; those of one place are one.
_ALTERNATIVES = {
    "case": ("upper-?case|capitals", "lower-?case"),
    "currency": ("euros?|eur", "(?:us )?dollars?|usd", "pounds?|gbp", "yen|jpy", "francs?|chf"),
    "direction": ("ascending", "descending"),
    "format": ("markdown|md", "restructuredtext|rst", "asciidoc", "json", "ya?ml", "toml", "xml"),
    "language": tuple(
        re.findall(
            r"\w+",
            "english german french spanish italian portuguese dutch polish russian chinese "
            "japanese korean",
        )
    ),
    "length": ("concise|brief|short|terse", "detailed|long|verbose"),
    "grammatical number": ("singular", "plural"),
    "paths": ("relative", "absolute"),
    "region": (r"[a-z]{2}-(?:north|south|east|west|central)[a-z]*-?\d",),
    "scale": ("log(?:arithmic)?(?= (?:scale|axis|axes))", "linear"),
    "temperature": ("celsius", "fahrenheit", "kelvin"),
    "time zone": ("utc", "local time"),
    "timing": ("async(?:hronous(?:ly)?)?", "sync(?:hronous(?:ly)?)?"),
    "way": ("by hand|manual(?:ly)?", "automatic(?:ally)?|automated"),
}
_LISTS = {
    group: re.compile(r"(?<![\w-])(?:" + "|".join(f"({word})" for word in words) + r")(?![\w-])")
    for group, words in _ALTERNATIVES.items()
}
# Of these a thing has several: another value is one more.
_SEVERAL = re.compile(
    r"^(?:add|test|see|fix|close|check)\b|\b(?:supports?|accepts?|handles?|reads?|parses?|covers?"
    r"|imports?|exports?|fix(?:es|ed)|closed|also|works? (?:with|on)|tested)\b"
)
_COUNTED = re.findall(r"\w+", "one two three four five six seven eight nine ten eleven twelve")
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTED, 1)}
_NUMBER = re.compile(
    r"(?<![\w.#/-])[$v]?(?P<digits>\d+(?:[.,:]\d+)*)(?P<unit>%|[a-z]{1,2})?(?![\w-])"
    rf"|\b(?P<word>{'|'.join(_NUMBER_WORDS)})(?= \w)|\bevery (?=(?:hour|day|week|month|sprint)\b)"
)
_NAMED_BY_NUMBER = re.compile(
    r"\b(?:issue|pr|pull request|step|phase|part|task|ticket|chapter|section|line|error|code|item"
    r"|bug|case|rule|milestone|sprint|the|this|that|old|new|each|any|no|which) ?$"
)
_LEAD = re.compile(
    r"^(?:(?:actually|thinking again|on second thoughts?|scratch that|correction|change of plans?"
    r"|from now on|going forward|as of (?:now|today)|please|ok(?:ay)?|so|well|and|but|then|now|just"
    r"|always|let's|let us|make sure(?: that)?|be sure to|remember to|remember(?: that)?|note that"
    r"|(?:we|you|i) (?:should|must|need to|have to|want to|will|can|may)"
    r"|(?:we|i)(?: have|'ve)? (?:decided|chose|agreed) to|decided to|we're|we are|we|you|to)\b"
    r"[\s,:;.!-]*)+"
)
_TAIL = re.compile(
    r"(?:[\s,.!]+(?:please|instead|always|now|again|any ?more|thanks|from now on|going forward"
    r"|for now|everywhere))+$"
)
_NOT = re.compile(
    r"\b(?:not|never|no longer|don't|doesn't|do not|does not|didn't|cannot|can't|isn't|aren't"
    r"|mustn't|shouldn't|won't|without|avoid|no need to|stop|no"
    r"|(?:drop|dropped|drops|dropping)(?= support))\b"
)
_EMPTY = frozenset(
    re.findall(
        r"\w+",
        "a an the all any every each our your my we you i it is are be been do does did can could "
        "may should must will would always really ever just use uses using used have has add adds "
        "with for of there now already currently still to that please again",
    )
)
_FILLER = re.compile(
    r"\b(?:i|we|you|me|prefer|want|like|give|make|please|actually|now|from now on|instead|any ?more"
    r"|always|only|again|everywhere|let's|already|currently|going forward)\b"
)
_FRAMES = (
    re.compile(
        r"^(?P<subject>.{2,60}?) (?P<attribute>runs? on|lives? in|listens? on|defaults? to"
        r"|(?:is|are) (?:deployed to|hosted (?:on|at|by|with)|stored in|kept in|pinned to|owned by"
        r"|maintained by|managed (?:by|with)|written in|served (?:by|from))) (?P<value>.{1,80})$"
    ),
    re.compile(
        r"^(?:the |our )?(?P<attribute>port|version|timeout|limit|owner|url|branch|region|database|"
        r"name|(?:default|minimum|maximum|min|max|primary|preferred|official) [\w -]{2,40}?)"
        r"(?: (?:of|for) (?P<subject>.{2,60}?))? is (?P<value>.{1,80})$"
    ),
    re.compile(
        r"^(?:the |our )?(?P<subject>.{2,60}?) (?P<attribute>port|version|timeout|limit|owner|url"
        r"|branch|region|database|name) is (?P<value>.{1,80})$"
    ),
    re.compile(
        r"^(?P<attribute>store|keep|save|put|place) (?P<subject>.{2,50}?) (?:in|into|inside|next to"
        r"|beside|alongside) (?P<value>(?!.*\b(?:order|mind|sync|place|check|case)$).{1,50})$"
    ),
    re.compile(r"^(?P<attribute>name|call) (?P<subject>.{2,50}?) (?P<value>\S+)$"),
)
_REPLACED = re.compile(r",| instead of | rather than | not ")  # before what a value replaces
_WHERE = re.compile(r" (?:in|for|on|at|during|within) ")  # before the place where it holds
_LONGEST = 200  # characters: more is no plain statement
_FEWEST = 2  # words that tell what is denied


@lru_cache(maxsize=4096)
def slots(text: str) -> Mapping[Slot, str]:
    """The slots of a statement with the value of each; none of a question or of a long text.

    >>> slots("Reviews need two approvals")[("approval review", "number")]
    '2'
    """
    said = normal(text).rstrip(" .!;,")
    if len(said) > _LONGEST or text.rstrip().endswith("?"):
        return {}
    plain = _LEAD.sub("", _TAIL.sub("", said))
    found = dict(_polarity(plain))
    if not _SEVERAL.search(plain):
        found |= dict(chain(_framed(plain), _numbers(plain), _listed(plain)))
    return found


def _framed(plain: str) -> Iterator[tuple[Slot, str]]:
    """The slot of a few plain forms of speech."""
    for frame in _FRAMES:
        if told := frame.match(plain):
            value, *rest = _WHERE.split(_REPLACED.split(told["value"])[0], maxsplit=1)
            about = _bag(" ".join([told["subject"] or "", *rest]))
            yield (about, f"{_bag(told['attribute'])} is"), value.strip()
            return


def _numbers(plain: str) -> Iterator[tuple[Slot, str]]:
    """A slot for each number, about all that is said besides it."""
    for found in _NUMBER.finditer(plain):
        if _NAMED_BY_NUMBER.search(plain[: found.start()]):
            continue
        about = _bag(f"{plain[: found.start()]} {found['unit'] or ''} {plain[found.end() :]}")
        if about:
            value = found["digits"] or _NUMBER_WORDS.get(found["word"] or "", "1")
            yield (about, "number"), value


def _listed(plain: str) -> Iterator[tuple[Slot, str]]:
    """A slot for each word that is one of a list of alternatives, about all besides it."""
    for group, words in _LISTS.items():
        found = words.search(plain)
        about = _bag(f"{plain[: found.start()]} {plain[found.end() :]}") if found else ""
        if found and about:
            value = found[0] if group == "region" else str(found.lastindex)
            yield (about, group), value


def _polarity(plain: str) -> Iterator[tuple[Slot, str]]:
    """The slot of a statement and its negation."""
    words = re.findall(r"[\w'.#+-]+", _NOT.sub(" ", plain))
    told = sorted({stem(word) for word in words if word not in _EMPTY})
    if len(told) >= _FEWEST and ":" not in plain:
        yield (" ".join(told), "is so"), "no" if len(_NOT.findall(plain)) % 2 else "yes"


def _bag(text: str) -> str:
    """The stems of what a text is about, whatever their order."""
    return " ".join(sorted(set(content(_FILLER.sub(" ", text)))))
