"""Reconcile: facts that cannot both hold get a disposition, never silence.

Two facts are about one thing if they name the same slot (subject and attribute), or state one in
one of a few plain forms ("X runs on Y", "port of X is N"), or choose among the same alternatives
(`positions.py`: "I prefer X", "use X for Y", "make X hidden"). Then

- *update*: another value was stated on a later day. The older fact gets the status superseded and
  ends (`invalid_at`) when the first later value begins, and links say so in both directions.
- *conflict*: no later value decides between them: both are of one day and neither says that it
  changes something ("actually, …"), one is not dated, the older one is pinned, or the later one
  comes from outside or may mean another case. Both stay, disputed, with a `contradicts` link.
- *scoped*: they are of different scopes, or one says under which condition it holds. Both stay.

A slot is what a plain statement gives a value to, whatever the order of its words:

    "Feature flags live in Unleash"     the place of feature flags   -> Unleash
    "Reviews need two approvals"        how many approvals           -> 2
    "Write the changelog in German"     the language of the same     -> german
    "Never deploy on Fridays"           whether to deploy then       -> no

A number, or a word of a list of alternatives, is a value where everything else that is said is the
same. Opposite words alone mean nothing. What a thing supports, reads or is tested with are things
of which it has several, and no slot. What a person rejected is not here: the store refuses it.

A slot is decided from all its facts each time, those included that were superseded here before: a
value that becomes known late, from another branch, takes its place between the others. The links
that are written here say why, and so are known again; what somebody else closed stays closed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from loki_memory.consolidation.positions import TELLS, Position, position
from loki_memory.consolidation.provenance import (
    DEAD,
    LATER,
    UNDECIDED,
    differs,
    given_back,
    replaced_because,
    standing,
    why,
)
from loki_memory.consolidation.similarity import content
from loki_memory.consolidation.snapshot import BeliefChange, PhaseChanges, Snapshot, Touched
from loki_memory.models import Fact, LinkTo, parse
from loki_memory.models.text import normal, stem

_OURS = frozenset({LATER, UNDECIDED})
_CHOICE = "choice"
_OUTSIDE = "external"
_CONDITION = re.compile(r"\b(?:if|when|unless|only (?:in|on|for|if|when)|except)\b")

ScopedSlot = tuple[str, str, str]  # scope, subject, attribute


class FactValue(NamedTuple):
    """A fact with its value for each slot that it speaks of."""

    day: str  # on which it was stated; empty if unknown
    id: str
    text: str
    is_conditional: bool
    fact: Fact
    slots: Mapping[ScopedSlot, str]
    position: Position | None = None

    def denies(self, other: FactValue) -> bool:
        if self.text == other.text or self.is_conditional != other.is_conditional:
            return False
        if self._are_two_tastes(other):
            return False
        return self._differs(other) or bool(
            self.position and other.position and self.position.denies(other.position)
        )

    def _are_two_tastes(self, other: FactValue) -> bool:
        """Check whether two people each say what they like."""
        both = (self.position, other.position)
        speak_of_themselves = all(chosen and chosen.is_first_person for chosen in both)
        return speak_of_themselves and self.fact.by != other.fact.by

    def _differs(self, other: FactValue) -> bool:
        """Check whether both give something a value, and not the same one."""
        shared = self.slots.keys() & other.slots.keys()
        return any(self.slots[slot] != other.slots[slot] for slot in shared)

    def settles(self, other: FactValue) -> bool:
        """Check whether this value, which denies another one, is the later and takes its place."""
        if self.fact.origin == _OUTSIDE != other.fact.origin or self.order <= other.order:
            return False
        if self._differs(other) or not (self.position and other.position):
            return True
        return self.position.settles(other.position)

    @property
    def order(self) -> tuple[str, bool]:
        """When it was stated; of one day, what says that it changes something is the later."""
        return self.day, bool(self.position and self.position.is_change)


class Disposition(NamedTuple):
    """The standing of a value: how it relates to the others of its slot."""

    heirs: list[Fact]  # the first later values that deny it
    replaced: list[Fact]  # the values whose heir it is
    rivals: list[Fact]  # values that deny it, and neither is the later

    def links(self) -> Iterator[dict[str, str]]:
        sides = (
            ("superseded_by", LATER, self.heirs),
            ("supersedes", LATER, self.replaced),
            ("contradicts", UNDECIDED, self.rivals),
        )
        for relation, reason, facts in sides:
            yield from ({"to": fact.id, "relation": relation, "why": reason} for fact in facts)


def reconcile(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:  # noqa: ARG001 - facts are few
    """Dispositions for all facts that contradict each other, or no longer do."""
    put: list[Fact] = []
    steps: list[BeliefChange] = []
    for fact, found in _dispositions(_values(snapshot)):
        new = _disposed(fact, found)
        if differs(new, snapshot.records):
            put.append(new)
            steps += _told(fact, new, found)
    return PhaseChanges(tuple(sorted(put, key=lambda belief: belief.id)), steps=tuple(steps))


def _values(snapshot: Snapshot) -> list[FactValue]:
    """The facts that may contradict each other, in the order of time."""
    open_ = (
        _value(fact)
        for fact in snapshot.records.values()  # archived ones too: they keep their heirs
        if isinstance(fact, Fact) and _is_open(fact, is_archived=fact.id in snapshot.archived)
    )
    return sorted(open_, key=lambda entry: (entry.order, entry.id))


def _opponents(values: Sequence[FactValue]) -> dict[str, list[FactValue]]:
    """The values that deny each value, in the order of time."""
    met: dict[ScopedSlot, list[FactValue]] = defaultdict(list)
    for value in values:
        for place in _places(value):
            met[place].append(value)
    found: dict[str, list[FactValue]] = {}
    for value in values:
        near = {other.id: other for place in _places(value) for other in met[place]}
        against = (other for other in near.values() if value.denies(other))
        found[value.id] = sorted(against, key=lambda entry: (entry.order, entry.id))
    return found


def _places(value: FactValue) -> Iterator[ScopedSlot]:
    """Yield the slots in which a value meets those that it may contradict."""
    yield from value.slots
    if value.position:
        yield value.fact.scope, value.position.group, _CHOICE


def _is_open(fact: Fact, *, is_archived: bool) -> bool:
    """Check whether it is for us to say how long a fact holds: nobody else ended it or took it out.

    What was said in a talk is no setting.
    """
    if fact.session:
        return False
    if fact.status in DEAD:
        return fact.status == "superseded" and replaced_because(fact) == {LATER}
    return not is_archived and (not fact.invalid_at or LATER in replaced_because(fact))


def _slots_of(fact: Fact) -> dict[ScopedSlot, str]:
    """The slots of a fact with its values: the one that it names, else those of its words."""
    if fact.subject and fact.attribute:
        return {(fact.scope, normal(fact.subject), normal(fact.attribute)): normal(fact.statement)}
    return {(fact.scope, *slot): value for slot, value in slots(fact.statement).items()}


def _position(fact: Fact) -> Position | None:
    """Return what a fact chooses, unless it names its slot or only tells how something is."""
    if (fact.subject and fact.attribute) or fact.type in TELLS:
        return None
    return position(fact.statement)


def _value(fact: Fact) -> FactValue:
    text = normal(fact.statement)
    day, is_conditional = _since(fact)[:10], bool(_CONDITION.search(text))
    return FactValue(day, fact.id, text, is_conditional, fact, _slots_of(fact), _position(fact))


def _since(fact: Fact) -> str:
    return fact.valid_from or fact.at or ""


def _dispositions(values: Sequence[FactValue]) -> Iterator[tuple[Fact, Disposition]]:
    against = _opponents(values)
    heirs = {value.id: _heirs(value, against[value.id]) for value in values}
    replaced: dict[str, list[Fact]] = defaultdict(list)
    for value in values:
        for heir in heirs[value.id]:
            replaced[heir.id].append(value.fact)
    for value in values:
        current = [other.fact for other in against[value.id] if not heirs[other.id]]
        rivals = [] if heirs[value.id] else current
        yield value.fact, Disposition(heirs[value.id], replaced[value.id], rivals)


def _heirs(value: FactValue, against: Sequence[FactValue]) -> list[Fact]:
    """The facts of the first later day that deny a value; what is pinned or undated has none."""
    if value.fact.pinned or not value.day:
        return []
    later = [other for other in against if other.settles(value)]
    return [other.fact for other in later if other.day == later[0].day]


def _disposed(fact: Fact, found: Disposition) -> Fact:
    """The fact with the links, the status and the end that follow; as it was if none does."""
    was_ours = any(_is_ours(link) for link in fact.links)
    if not (any(found) or was_ours):
        return fact
    document = given_back(fact, _OURS)
    if LATER in replaced_because(fact):
        document.pop("invalid_at", None)
    if any(found):
        document["links"] = [*document.get("links", ()), *_links(fact, found)]
    if found.heirs:
        document |= {"status": "superseded", "invalid_at": min(map(_since, found.heirs))}
    elif found.rivals:
        document["status"] = "disputed"
    return parse(Fact, document)


def _links(fact: Fact, found: Disposition) -> Iterator[dict[str, Any]]:
    """The links that are missing; those that end or dispute it say what it counted as before."""
    stated = {(link.to, link.relation) for link in fact.links if not _is_ours(link)}
    was = standing(fact, _OURS)
    for link in found.links():
        if (link["to"], link["relation"]) not in stated:
            yield {**link, **({} if link["relation"] == "supersedes" else was)}


def _is_ours(link: LinkTo) -> bool:
    return why(link) in _OURS


def _told(old: Fact, new: Fact, found: Disposition) -> Iterator[BeliefChange]:
    """Yield what became of a fact, in a line; a new link alone is told by the other end."""
    if new.status == old.status and new.invalid_at == old.invalid_at:
        return
    if found.heirs:
        yield BeliefChange("superseded", new.id, new.title(), why=f"updated by {found.heirs[0].id}")
    elif found.rivals:
        yield BeliefChange("disputed", new.id, new.title(), why=f"contradicts {found.rivals[0].id}")
    else:
        yield BeliefChange("restored", new.id, new.title(), why="nothing contradicts it any more")


# -- Slots: what a plain statement gives a value to ----------------------------------------------

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
