"""Surprise: how much a statement tells that was not known, from five factors.

    novelty         .40  the share of it that no known statement says
    contradiction   .25  a known statement about the same is denied
    specificity     .20  it names things, values or code
    emphasis        .10  the words insist
    context switch  .05  it speaks of something else than what was said before it

The score is the mean of the factors that apply, by these weights. Novelty and specificity always
apply; contradiction where something about the same is known, emphasis where the words insist, and
the switch where something was said before. A plain weighted sum would give a first statement, which
contradicts nothing, no more than .65. What is specific, insistent or sudden counts half as much in
a statement that tells nothing new: it repeats something specific.

Greetings, assent, praise and questions state nothing, and their score is 0.

Surprise refuses repeats. It does not say what is worth most: what matters is said again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from loki_memory.consolidation.positions import FATE, OTHER, TELLS, position
from loki_memory.consolidation.similarity import NameMarks, content, is_form, marks, proper
from loki_memory.models.belief import Surprise
from loki_memory.models.text import normal, stem

WEIGHTS = {
    "novelty": 0.40,
    "contradiction": 0.25,
    "specificity": 0.20,
    "emphasis": 0.10,
    "context_switch": 0.05,
}
_WHAT = frozenset({"novelty", "contradiction"})  # the others are about how it is said
_NOTHING = Surprise(
    score=0, novelty=0, contradiction=0, specificity=0, emphasis=0, context_switch=0
)
_ABOUT_THE_SAME = 0.5  # of the words of a statement that another one has
_REPEATED = 0.9  # of them: the rest is another way to say it
_DENIED = 0.8  # of the words of each, where only a negation or a value differs
_TELLING = 2  # words about a matter: one alone, and no name, is chatter ("alright, ship it")
_ONE_NAME, _SEVERAL = 0.7, 1.0  # specificity of a statement that names one thing, or more
_PER_WORD, _NO_NAME = 0.1, 0.5  # and of one that names none, by its words of content, and at most
# Words in which one speaks of oneself, and not of the matter.
_TALK = frozenset(
    stem(word)
    for word in re.findall(
        r"[\w']+",
        "actually afternoon again agree agreed ahead alright amazing anyway awesome bit "
        "brilliant bye cheers continue cool correct correction decide decided definitely "
        "done evening everywhere exactly excellent fantastic feel fine get go going good "
        "got great guess hello hey hi i'd i'll i'm important instead it's job keep kind let "
        "let's lgtm like longer look love make maybe morning nice nicely nope note now ok "
        "okay one perfect please prefer preference proceed really remember right same say "
        "second see seem set sorry sound start stick sure switch take thank thanks that's "
        "there's thing think thinking thoughts today tomorrow true try understood want way "
        "we'd we'll we're well wonderful work works yeah yep yes",
    )
)
_PRAISE = re.compile(
    r"(?:(?:very |really |so )?(?:nice|great|good|awesome|excellent|perfect|lovely|amazing"
    r"|fantastic|brilliant|beautiful|impressive)(?: \w+)? (?:job|work|one|catch|point|stuff|find"
    r"|idea|question|progress|start|results?|fix)\b"
    r"|(?:thanks|thank you|cheers|well done|congrat\w*|good (?:morning|evening|afternoon))\b"
    r"|(?:this|that|it|everything|all)(?:'s| is| are| looks?| sounds?| works?| seems?| was)\b"
    r"(?: (?:all|really|very|so|pretty|much|just|good|great|nice|fine|ok|okay|perfect|better|right"
    r"|correct|cool|awesome|clean|clear|solid|lovely|done|amazing|now|to|me|like|a|an|plan|well"
    r"|what|i|wanted|expected|working|as))+$)",
)
_CLAUSE = re.compile(r"^[^,.;:!\u2013\u2014-]*[,.;:!\u2013\u2014\s-]*")
_QUESTION = re.compile(
    r"\?\s*$|^(?:(?:what|why|how|where) (?:do|does|did|can|could|should|would|must)|should (?:i|we)"
    r"|can (?:you|we|i)|(?:could|would) you|do (?:we|you|i)|is (?:it|there|this|that)"
    r"|are (?:we|there|you))\b(?!.*[.,:;] )"
)
_EMPHASIS = re.compile(
    r"!|\b(?:always|never|must|mustn't|important|importantly|critical|crucial|essential|everywhere"
    r"|absolutely|definitely|make sure|no exceptions?|at all times|under no circumstances"
    r"|remember(?: that| to|:)|please note|very|really)\b"
)
_CAPITALS = re.compile(
    r"\b(?:ALWAYS|NEVER|NOT|MUST|DO|DON'T|ONLY|ALL|IMPORTANT|PLEASE|STOP|EVERY|NO)\b"
)
_PATH = re.compile(r"[\w.-]*/[\w./-]+|\b\w+\.[a-z]{1,5}\b|--?\w[\w-]+")


def surprise(text: str, known: Iterable[str] = (), before: str = "", type_: str = "") -> Surprise:
    """The surprise of a statement, given what is known and what was said right before it.

    >>> surprise("I prefer Python").score
    0.9
    >>> surprise("I prefer Python", ["I prefer Python"]).score
    0.08
    >>> surprise("Actually, I prefer Go", ["I prefer Python"]).score
    0.93
    """
    if says_nothing(text):
        return _NOTHING
    pairs = [_compared(text, other, type_) for other in known]
    novelty = 1 - max((_repeats(pair) for pair in pairs), default=0.0)
    contradiction = max((pair.denial for pair in pairs), default=0.0)
    said_before = _stems(before)
    factors = {
        "novelty": novelty,
        "contradiction": contradiction,
        "specificity": _specificity(text),
        "emphasis": _emphasis(text),
        "context_switch": 1 - _share(_stems(text), said_before) if said_before else 0.0,
    }
    left_out = {
        "contradiction": not any(pair.is_about_the_same for pair in pairs),
        "emphasis": not factors["emphasis"],
        "context_switch": not said_before,
    }
    weights = {name: WEIGHTS[name] for name in factors if not left_out.get(name)}
    return Surprise(score=_mean(factors, weights), **factors)


def _mean(factors: dict[str, float], weights: dict[str, float]) -> float:
    """The mean of the factors that have a weight; how it is said counts as far as it is news."""
    news = max(factors["novelty"], factors["contradiction"])
    counts = {name: 1.0 if name in _WHAT else (1 + news) / 2 for name in weights}
    total = sum(weights[name] * counts[name] * factors[name] for name in weights)
    return total / sum(weights.values())


def says_nothing(text: str) -> bool:
    """Check whether a text is a greeting, assent, praise or a question, and states nothing."""
    said = normal(text)
    if _QUESTION.search(said):
        return True
    is_praise = _PRAISE.match(said)
    rest = _CLAUSE.sub("", said, count=1) if is_praise else text
    return len(_stems(rest)) < _TELLING and not _named(rest)


def repeated(text: str, other: str) -> float:
    """The share of a statement that another one says too."""
    return _repeats(_compared(text, other, ""))


# -- What is known ---------------------------------------------------------------------------------


class _Compared(NamedTuple):
    """A statement beside a known one."""

    share: float  # of its words that the known one has
    is_other: bool  # it has a value, a name or a negation that the known one has not
    denial: float

    @property
    def is_about_the_same(self) -> bool:
        return self.denial > 0 or self.share >= _ABOUT_THE_SAME


def _repeats(pair: _Compared) -> float:
    """Return how much of it is a repeat: none below half of its words, all from nine in ten on."""
    if pair.is_other or pair.denial:
        return 0.0
    rise = (pair.share - _ABOUT_THE_SAME) / (_REPEATED - _ABOUT_THE_SAME)
    return min(1.0, max(0.0, rise))


def _compared(text: str, other: str, type_: str) -> _Compared:
    if normal(text) == normal(other):
        return _Compared(1.0, is_other=False, denial=0.0)
    share = _share(_stems(text), _stems(other))
    own, its = marks(text), marks(other)
    both = min(share, _share(_stems(other), _stems(text)))
    denial = max(_chosen_otherwise(text, other, type_), _denied(own, its, both))
    return _Compared(share, _adds(own, its), denial)


def _adds(own: NameMarks, its: NameMarks) -> bool:
    """Check whether a statement differs from a known one in what must agree, or has more of it."""
    if own.is_negated != its.is_negated:
        return True
    return not (own.values <= its.values and own.names <= its.names and own.sides <= its.sides)


def _chosen_otherwise(text: str, other: str, type_: str) -> float:
    """1 if both choose, differently, about the same."""
    if type_ in TELLS:
        return 0.0
    entry, two = position(text), position(other)
    return 1.0 if entry and two and entry.denies(two) else 0.0


def _denied(own: NameMarks, its: NameMarks, both: float) -> float:
    """Nearly 1 if the same words are negated, less if only a value differs."""
    if both < _DENIED:
        return 0.0
    if own.is_negated != its.is_negated:
        return 0.9
    has_changed = own.values and its.values and own.values.isdisjoint(its.values)
    return 0.7 if has_changed else 0.0


def _share(own: frozenset[str], other: frozenset[str]) -> float:
    """The share of words of which the other one has a form."""
    had = [word for word in own if word in other or any(is_form(word, entry) for entry in other)]
    return len(had) / len(own) if own else 0.0


@lru_cache(maxsize=65536)
def _stems(text: str) -> frozenset[str]:
    """The stems of what a text is about; values are compared by themselves."""
    return frozenset(
        word for word in content(text) if word not in _TALK and not word[0].isdigit()
    ) or frozenset(_named(text))


# -- How it is said --------------------------------------------------------------------------------


def _specificity(text: str) -> float:
    named = len(_named(text))
    if named:
        return _ONE_NAME if named == 1 else _SEVERAL
    return min(_NO_NAME, _PER_WORD * len(_stems(text)))


@lru_cache(maxsize=65536)
def _named(text: str) -> frozenset[str]:
    """Names of code, proper names, values, paths, and what is chosen from a list."""
    found = marks(text)
    chosen = position(text)
    choice = {stem(chosen.value)} if chosen and chosen.group not in {FATE, OTHER} else set()
    paths = {path.lower() for path in _PATH.findall(text)}
    return frozenset(found.values | found.names | proper(text) | paths | choice) - {"i"}


def _emphasis(text: str) -> float:
    return 1.0 if _EMPHASIS.search(normal(text)) or _shouts(text) else 0.0


def _shouts(text: str) -> bool:
    return "!" in text or (bool(_CAPITALS.search(text)) and not text.isupper())
