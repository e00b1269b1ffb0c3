"""Finite verbs: a text without one is a heading or a note, and no sentence.

No grammar is needed to tell most of them: auxiliaries, the third person of the verbs with which
people write about software, the same verbs after a plural, and imperatives at the beginning.
"""

from __future__ import annotations

import re

_VERBS = re.findall(
    r"\w+",
    "accept access add affect aggregate alias allow append apply assume avoid become begin behave "
    "belong block break build bypass cache call capture carry cause change check choose clear "
    "close come compare compile configure conflict contain continue convert copy count cover crash "
    "create decide default define delegate delete depend derive describe detect determine "
    "disable discard display drop emit enable end enforce ensure exclude execute exist exit expand "
    "expect expire export expose extend fail fall fetch filter find fire fit fix follow force "
    "format generate get give go guarantee handle hang happen hide hold ignore implement import "
    "include inherit inject insert install invoke keep know lack leak let list live load lock log "
    "look lose make map mark mask match mean merge miss move need normalize omit open override "
    "overwrite own parse pass persist pick point populate prefer prepend preserve prevent print "
    "produce prompt propagate protect prove provide prune push put raise reach read receive "
    "recognize redact refer refuse register reject release rely remain remember remove rename "
    "render replace report represent require reset resolve respect rest restore return reuse run "
    "save say scan see send serialize serve set shadow share show silence skip sort specify split "
    "start stay stop store strip supply support swallow switch take target tell throw track "
    "transform translate traverse treat trigger truncate try turn unpack update use validate vary "
    "verify wait walk want warn watch work wrap write yield",
)
_MOSTLY_NOUNS = frozenset(  # with an s
    re.findall(
        r"\w+",
        "access alias cache change check conflict fix format list log map match prompt report "
        "target update",
    )
)


def _third(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{verb}s"


_ANY = "|".join(_VERBS)
_THIRD = "|".join(_third(verb) for verb in _VERBS if verb not in _MOSTLY_NOUNS)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|can|cannot|could|must|should|shall|will|would"
    rf"|may|might|{_THIRD})\b|n['\u2019]t\b|[a-z]s \W?(?:every|each)\b"
    rf"|(?:s|\b(?:who|which|that|they|you|we|and|people|never|always|only))\s+(?:{_ANY})\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"(?:[^:.]{1,60}: |[^.]*[,;\u2013\u2014-] )?(?:please |always |never |only |do not )?"
    rf"(?:{_ANY})\b",
    re.IGNORECASE,
)


def has_verb(text: str) -> bool:
    """Tell whether a text has a finite verb.

    >>> has_verb("Git has no hook for restore"), has_verb("Tests to run without a network")
    (True, False)
    """
    return bool(_FINITE.search(text) or _IMPERATIVE.match(text))
