"""Positions: what a statement chooses among alternatives, so that a later choice replaces it.

"I prefer Python", "let's use tabs for indentation", "make the start command hidden": each chooses
one of several things that exclude each other, about something. Two statements contradict each other
if they choose differently about the same. What excludes what is a closed list of words; a name that
is in no list is understood where two statements have the same form, or one says what it replaces.

Opposite words alone mean little: they count only where everything else that is said is the same.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from loki_memory.consolidation.similarity import content
from loki_memory.models.text import normal

# Of these somebody has one at a time.
_EXCLUSIVE = {
    "case of names": "snake_case|camelcase|kebab-case|pascalcase",
    "clock": "12-hour|24-hour",
    "indentation": "tabs|spaces",
    "package manager": "npm|pnpm|yarn|bun|pip|uv|poetry|pipenv|conda",
    "quotes": "single|double",
    "spelling": "british|american|us|uk",
    "theme": "dark|light",
    "units": "metric|imperial",
}
# Of these a project may have several, so that only a wish or a change says that it is one.
COMPETING = {
    "cloud": "aws|gcp|azure",
    "database": "postgres|postgresql|mysql|mariadb|sqlite|mongodb|oracle",
    "editor": "vim|neovim|emacs|vscode|vs code|zed|sublime|helix|intellij|pycharm",
    "language": (
        r"python|golang|go|rust|java|kotlin|typescript|javascript|ruby|php|c\+\+|c#|scala|swift"
        "|elixir|zig|haskell|clojure|perl|lua"
    ),
    "merging": "rebase|rebasing|merge commits|squash|squashing",
    "shell": "bash|zsh|fish|powershell",
    "test runner": "jest|vitest|mocha|jasmine|pytest|unittest|nose",
}
# The nouns that go with a choice and say nothing more; without one, some words are ordinary.
_NOUNS = {
    "clock": "(?: (?:clock|times?|format))*",
    "quotes": "[ -](?:quotes|quoted)(?: strings?)?",
    "spelling": "(?: (?:english|spelling))+",
    "theme": " (?:mode|themes?)",
    "units": " units?",
}
_ALIASES = {
    "golang": "go",
    "postgresql": "postgres",
    "rebasing": "rebase",
    "squashing": "squash",
    "uk": "british",
    "us": "american",
    "vs code": "vscode",
}
# Verbs, and what is then so: of each pair in `_OPPOSED` only one can be.
_FATES = {
    "hide": "hidden",
    "hidden": "hidden",
    "show": "shown",
    "unhide": "shown",
    "visible": "shown",
    "remove": "removed",
    "removed": "removed",
    "delete": "removed",
    "drop": "removed",
    "get rid of": "removed",
    "keep": "kept",
    "add": "added",
    "bring back": "added",
    "enable": "on",
    "enabled": "on",
    "turn on": "on",
    "switch on": "on",
    "disable": "off",
    "disabled": "off",
    "turn off": "off",
    "switch off": "off",
    "allow": "allowed",
    "allowed": "allowed",
    "permit": "allowed",
    "forbid": "forbidden",
    "forbidden": "forbidden",
    "ban": "forbidden",
    "public": "public",
    "private": "private",
    "required": "required",
    "mandatory": "required",
    "optional": "optional",
}
_OPPOSED = frozenset(
    {
        frozenset({"hidden", "shown"}),
        *(frozenset({entry, "removed"}) for entry in ("hidden", "shown", "kept", "added")),
        frozenset({"on", "off"}),
        frozenset({"allowed", "forbidden"}),
        frozenset({"public", "private"}),
        frozenset({"required", "optional"}),
    }
)
_STATES = (
    "hidden|visible|removed|enabled|disabled|allowed|forbidden|public|private|required|mandatory"
    "|optional"
)
_VERBS = "|".join(sorted({*_FATES} - {*_STATES.split("|")}))
_CHANGES = re.compile(
    r"\b(?:actually|thinking again|on second thoughts?|scratch that|correction|change of plans?"
    r"|from now on|going forward|as of (?:now|today)|instead(?! of)|no longer|any ?more|stop"
    r"|switch(?:ed|ing)?(?: over)? (?:from|to)|mov(?:e|ed|ing) (?:from|to)|migrat(?:e|ed|ing) to)\b"
)
_LEAD = re.compile(
    r"^(?:(?:actually|thinking again|on second thoughts?|scratch that|correction|change of plans?"
    r"|from now on|going forward|as of (?:now|today)|please|ok(?:ay)?|so|well|hey|hmm|oh|and|but"
    r"|also|then|now|just|always|completely|entirely|let's|let us|make sure(?: that)?|be sure to"
    r"|remember to|(?:we|you|i) (?:should|must|need to|have to|want to|will|can)|we're|we are"
    r"|(?:we|i)(?: have|'ve)? (?:decided|chose|agreed) to|decided to|i'd like (?:you )?to"
    r"|i want you to|i'd|to)\b[\s,:;.!-]*)+"
)
_NEGATED = re.compile(
    r"\b(?:don't|do not|doesn't|does not|never|not|no longer|stop|avoid|shouldn't|mustn't|isn't"
    r"|aren't|can't|cannot)\b"
)
_WISH = re.compile(
    r"(?:^|\b(?:let's|please|should|must|to|we're|always|never|not|don't|avoid|stop|no longer) )"
    r"(?:use|using|pick|choose|adopt|go(?:ing)? with|stick (?:to|with)|write in|stay with)\b"
    r"|\b(?:prefer|want|switch(?:ed|ing)?(?: over)? to|mov(?:e|ed|ing) to|migrat(?:e|ed|ing) to"
    r"|standardi[sz]e on)\b|\bin(?= (?:british|american|us|uk) (?:english|spelling)\b)"
)
_USES = re.compile(r"\b(?:uses?|using|prefers|likes?|(?:is|are) written in)\b")
_ARTICLE = re.compile(r"^\s*(?:(?:the|a|an|our|only|just|always)\s+)*")
_FROM_TO = re.compile(r"\b(?:from) (?P<old>[\w.+#-]+) to (?P<new>.+)$")
_REPLACES = re.compile(
    r",?\s*\b(?:instead of|rather than|in place of|over|(?:and )?not)(?: using)? "
    r"(?P<old>[\w.+#-]+)(?: mode| theme| english| spelling| quotes)?"
)
_PURPOSE = re.compile(r"^(?P<value>[^,;:]{1,40}?)(?: (?:for|as) (?P<purpose>[^,;:]{1,60}))?$")
_CLAUSES = re.compile(r" - |[;.] ")
_FACE = re.compile(r"[:;]-?[)(dp](?!\w)|[\"`\u2026()]|(?<!\w)'|'(?!\w)")
_TAIL = re.compile(r"(?:[\s,.!]+(?:please|everywhere|instead|always|now|again|any ?more|thanks))+$")
# Who wants it, how much and since when says nothing about what it is about.
_FILLER = re.compile(
    r"\b(?:i|we|you|let|let's|we're|we'd|i'd|i'll|make|sure|please|everywhere|always|really|actually"
    r"|completely|entirely|thinking|again|instead|want|like|prefer|ok|okay|now|from now on|thanks"
    r"|decided|going forward|no longer|any ?more|consistently|switch(?:ed|ing)?|mov(?:e|ed|ing)"
    r"|migrat(?:e|ed|ing))\b"
)
_EVERYWHERE = re.compile(r"\b(?:everywhere|throughout|in (?:all|every) cases?)\b")
_FIRST_PERSON = re.compile(r"\b(?:i|i'd|my|me)\b")
_LABEL = re.compile(r"\s*(?:[:|\u2013\u2014]|-\s)")  # behind the name of an entry of a list
_LONGEST = 200  # characters: more is no plain statement
_SHORT = 6  # words of a choice without a verb: "dark mode in the docs, please"
_NAMED = 3  # words of a choice that is in no list
OTHER, FATE = "other", "fate"
TELLS = frozenset({"gotcha", "fact", "entity", "relationship"})  # types that choose nothing


class Position(NamedTuple):
    """One choice, and what it is about."""

    group: str  # the alternatives from which it chooses
    value: str
    is_negated: bool
    about: frozenset[str]  # stems of what else is said
    replaced: str = ""  # what is given up by name
    is_wish: bool = True
    is_first_person: bool = False
    is_change: bool = False  # it says that it was otherwise
    is_everywhere: bool = False  # it says that it holds in every place

    def denies(self, other: Position) -> bool:
        """Check whether both cannot hold."""
        if self.group != other.group:
            return False
        return (self._excludes(other) and self._is_near(other)) or self._replaces(other)

    def settles(self, other: Position) -> bool:
        """Check that this position holds if it is the later of two that exclude each other.

        Of a rule and a special case only a rule for everything is sure to mean the other too.
        """
        if self.about == other.about or self._replaces(other):
            return True
        if self.is_everywhere or other.is_everywhere:
            return self.is_everywhere and self.about <= other.about
        return bool(self.about and other.about)

    def _replaces(self, other: Position) -> bool:
        """Check whether either gives up by name what the other wants."""
        pairs = ((self, other), (other, self))
        return any(
            new.replaced and new.replaced == old.value and new.about <= old.about
            for new, old in pairs
        )

    def _is_near(self, other: Position) -> bool:
        """Check that both are about the same; a change or a general rule may say less."""
        if self.about == other.about:
            return True
        if not any(entry.is_change or entry.is_everywhere for entry in (self, other)):
            return False
        return self.about <= other.about or other.about <= self.about

    def _excludes(self, other: Position) -> bool:
        if self.value == other.value:
            return self.is_negated != other.is_negated
        if self.group == FATE:
            are_opposed = frozenset((self.value, other.value)) in _OPPOSED
            return are_opposed and self.is_negated == other.is_negated
        if self.is_negated or other.is_negated:
            return False
        if self.group == OTHER and not self._is_named_like(other):
            return False
        is_change = self.is_change or other.is_change
        return self.group in _EXCLUSIVE or is_change or (self.is_wish and other.is_wish)

    def _is_named_like(self, other: Position) -> bool:
        """Check whether two choices that are in no list are names of things for one purpose."""
        if not all(_is_name(entry.value) for entry in (self, other)):
            return False
        return bool(self.about and other.about) or self.is_change or other.is_change


def _is_name(value: str) -> bool:
    return " " not in value and not value.endswith("s")


@lru_cache(maxsize=4096)
def position(text: str) -> Position | None:
    """The choice that a statement makes; None if it makes none, or none that is plain.

    >>> position("Actually, I prefer Go").value
    'go'
    >>> position("let's make the start command hidden").value
    'hidden'
    """
    if len(text) > _LONGEST or text.rstrip().endswith("?"):
        return None
    said = " ".join(_FACE.sub(" ", normal(text)).split()).rstrip(" .!;,")
    found = _fate(said) or _choice(said)
    if found is None:
        return None
    return found._replace(
        is_change=bool(_CHANGES.search(said)),
        is_everywhere=bool(_EVERYWHERE.search(said)),
        is_first_person=bool(_FIRST_PERSON.search(said)),
    )


# -- What becomes of something ---------------------------------------------------------------------


_WHERE = " (?:in|on|for|by|at|from|during|outside|inside) .+"
_DONE_TO = re.compile(rf"^(?P<verb>{_VERBS}) (?P<about>.+)$")
_TURNED = re.compile(rf"^(?:turn|switch) (?P<about>.+) (?P<state>on|off)(?P<where>{_WHERE})?$")
_IS_SO = re.compile(
    r"^(?:(?:make|keep|leave|mark|have) )?(?P<about>.+?)"
    r"(?: (?:is|are|be|stays?|remains?|should (?:be|stay)|must (?:be|stay)|as|will be|isn't|aren't)"
    rf"(?: not)?)? (?P<state>{_STATES})(?P<where>{_WHERE})?$"
)


def _fate(said: str) -> Position | None:
    """The position of "remove X", "turn X off", "make X hidden", "X is enabled"."""
    plain = _LEAD.sub("", _TAIL.sub("", said))
    is_negated = bool(_NEGATED.search(plain))
    plain = _LEAD.sub("", _NEGATED.sub("", plain).strip()) if is_negated else plain
    found = _TURNED.match(plain) or _IS_SO.match(plain) or _DONE_TO.match(plain)
    if not found:
        return None
    told = found.groupdict(default="")
    about = _about(f"{told['about']} {told.get('where', '')}")
    state = told.get("state") or told["verb"]
    value = _FATES.get(state, state)
    return Position(FATE, value, is_negated, about) if about else None


_POINTS = re.compile(rf"\b(?P<verb>{_VERBS}) (?:it|that|this|them)\b(?!\s+\w+ing\b)", re.IGNORECASE)


def subject(text: str) -> str:
    """The thing of which a statement says what becomes of it; empty if it speaks of none.

    >>> subject("let's make the start command hidden")
    'the start command'
    """
    said = " ".join(_FACE.sub(" ", normal(text)).split()).rstrip(" .!;,")
    plain = _LEAD.sub("", _TAIL.sub("", said))
    found = _TURNED.match(plain) or _IS_SO.match(plain) or _DONE_TO.match(plain)
    about = found["about"].strip() if found and len(text) <= _LONGEST else ""
    return about if len(about.split()) <= _NAMED + 2 and _about(about) else ""


def with_subject(text: str, about: str) -> str:
    """A statement with the thing that its pronoun means; empty if it has no such pronoun.

    >>> with_subject("thinking again: remove it", "the start command")
    'thinking again: remove the start command'
    """
    found = _POINTS.search(text) if about and len(text) <= _LONGEST else None
    if not found or position(text):
        return ""
    return f"{text[: found.start()]}{found['verb']} {about}{text[found.end() :]}"


# -- What is chosen --------------------------------------------------------------------------------


def _choice(said: str) -> Position | None:
    """The position of "I prefer X", "use X for Y", "X, not Z" and the like."""
    frame = _WISH.search(said) or _USES.search(said)
    start, end = frame.span() if frame else (0, 0)
    before, after = said[:start], said[end:]
    moved = _FROM_TO.search(said) if _CHANGES.search(said) else None
    replaced = _REPLACES.search(after)
    given_up = (moved or replaced or {"old": ""})["old"]
    if moved:
        before, after = said[: moved.start()], moved["new"]
    elif replaced:
        after = after[: replaced.start()] + after[replaced.end() :]
    if not frame and not moved:
        after = _LEAD.sub("", after) if len(said.split()) <= _SHORT else ""
    chosen = _chosen(_ARTICLE.sub("", after), is_framed=bool(frame or moved))
    if chosen is None:
        return None
    group, value, rest = chosen
    if not (frame or moved) and _LABEL.match(rest):
        return None  # "Ruby - Solargraph" is about Ruby and does not choose it
    is_wish = frame is None or bool(_WISH.match(said, start))
    clause = f"{_CLAUSES.split(before)[-1]} {_CLAUSES.split(rest)[0]}"
    about = _about(_NEGATED.sub(" ", clause))
    is_negated = bool(_NEGATED.search(said[:end]))
    return Position(group, value, is_negated, about, _known_as(given_up), is_wish=is_wish)


class _Chosen(NamedTuple):
    group: str
    value: str
    rest: str


def _chosen(after: str, *, is_framed: bool) -> _Chosen | None:
    """Return what comes after the verb: a choice from a list, else a short name."""
    for group, member in _MEMBERS:
        found = member.match(after)
        if found:
            return _Chosen(group, _known_as(found["value"]), after[found.end() :])
    plain = _PURPOSE.match(_TAIL.sub("", after)) if is_framed else None
    if plain is None or len(plain["value"].split()) > _NAMED:
        return None
    return _Chosen(OTHER, plain["value"], plain["purpose"] or "")


def _members() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (
            group,
            re.compile(rf"(?P<value>{names})(?![\w+#-]*[\w+#]){_NOUNS.get(group, '')}(?!\w)"),
        )
        for group, names in (*_EXCLUSIVE.items(), *COMPETING.items())
    )


_MEMBERS = _members()


def _known_as(name: str) -> str:
    return _ALIASES.get(name, name)


def _about(text: str) -> frozenset[str]:
    return frozenset(content(_FILLER.sub(" ", text)))
