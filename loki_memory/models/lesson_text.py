"""Statements that read as lessons, and those that only report: a lesson holds for the next session.

What an agent says is mostly about the work of the moment: what it changed, what is fixed now, what
comes next. Such a sentence stays a candidate, which is found when somebody asks and not told
unasked. The rules are about English, not about a project.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache

Rules = tuple[tuple[str, Callable[[str], bool]], ...]

_LONG = 220  # characters, of which nobody reads more without having asked
_MOST_NAMES = 4  # of code: more are a description of one place
_STARTS_BADLY = re.compile(
    r"(?:\d+\s*[.)\u2013\u2014-]|`?Test\w+`?\s"
    r"|there(?:'s| is) (?:also )?(?:an? )?(?:\w+ )?(?:bug|error|issue|problem)s?\b"
    r"|(?:but|and|so|also|then|now|next|first|later|however|additionally|otherwise|similarly|unlike"
    r"|why|given|note|good|missing|notable|optional|manual(?:ly)?|result|task|step|bug|fix|issue|should"
    r"|as you can see|looking at|based on the|try to|set to|primary request|user identified"
    r"|(?:before|after) (?:the|this) fix|the next (?:file|fix)|the key (?:\w+ )?points?"
    r"|test (?:case|that|with|for|if|scripts?)|check (?:if|that|for)"
    r"|(?:build|find|verify) (?:an?|all|if|the)|[a-z]+ [\w `./-]{0,40}\band verify)\b"
    r"|(?:allow|check|contain|default|generat|handl|mak|pars|provid|read|return|run|set|show|us)"
    r"e?s\b"
    r"|(?:we|i|you|he|she|they|it|both|all|none|these|those)\b)",  # who?
    re.IGNORECASE,
)
_DONE = (  # verbs that tell what a session did to the code
    r"add|chang|clean|convert|creat|declin|defin|delet|design|extract|fix|implement|keep|kept|merg"
    r"|migrat|modif|mov|remov|renam|replac|resolv|simplif|skip|split|updat|wir"
)
_REPORTS = re.compile(
    rf"(?:(?:`[^`]+`|[\w./-]+\.\w+)?\s*[:\u2013\u2014-]+\s*)?(?:{_DONE})(?:e|i?e?d|i?e?s|ped|ing)?\b"
    r"|.{3,80}?: (?:added|changed|fixed|removed|updated)\b"
    r"|(?:[\w() `-]{1,40}: )?(?:built|reduced|specified|used|verified)\b"
    r"|make (?!sure)",
    re.IGNORECASE,
)
_PASSES = re.compile(  # what will not be so tomorrow
    r"\b(?:now|no longer|already|currently|previously|was|were|had|has been|have been|still|yet"
    r"|caused|prevented|returned(?! by)|couldn't|wasn't|weren't|did(?: not|n't)?"
    r"|this (?:pr|branch|session|test)"
    r"|failing|broken?|breaks|dismissed|pre-existing|stale|silently|dropped|just \w+ed|incoming"
    r"|remains|(?:tests?|lint|build) (?:pass|fail)\w*|lines? \d+)\b"
    r"|\bthe (?:current|existing) (?:branch|code|fix|implementation|tests?)\b"
    r"|\[`?[\w./-]+:\d|\w\.[a-z]{1,4}-\d|[\u2713\u2714\u2705]"
    r"|\b(?:pr|issue|story|epic|metric|task|bug|test|case|phase|step)s? ?#?\d"
    r"|\b[0-9a-f]{7,40}\b",
    re.IGNORECASE,
)
_OVERCAME = re.compile(  # what went wrong once, and the way around it
    r"\b(?:resolved|solved|fixed|worked around|avoided) by \w+ing\b|\bthe workaround is\b",
    re.IGNORECASE,
)
_GUESSES = re.compile(  # hypotheses, plans, and what a reviewer thinks of something
    r"\bconsider\b|\b(?:would(?:n't)?|could(?:n't)?|\w+'d)\b"
    r"|\b(?:approach|option)s? (?:is|are)\b|\bmay (?:not )?have\b|\bwill (?!break|fail)"
    r"|\b(?:unnecessary|(?:is|are) valid|the real value|reasonable|low(?:er)? risk"
    r"|proposed|future option)\b",
    re.IGNORECASE,
)
_EXPECTS = re.compile(  # a comment beside an assertion
    r"\bshould (?:not )?(?:be (?:\w+ )?(?:nil|null|none|present|absent|empty|omitted|true|false"
    r"|zero|unchanged|recogni[sz]ed)|return (?:an? )?(?:true|false|nil|null|none|empty|zero|\d)"
    r"|raise an? (?:error|exception)|fail|handle it|be able to|result in|show|verify|work)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"`[^`]*`|\"[^\"]*\"| \([^()]*\)")  # quoted, or in brackets
_NOTATION = re.compile(  # for which a sentence has words: arrows, operators, cells, lists
    r"\b(?:needs?|requires?|includes?|has|have|are|is): "
    r"| (?:\u2192|->|=>|\|) | (?:[!=]=|&&|\|\|) |\w\(\w+\.\w+\(| [\u2013\u2014] .* [\u2013\u2014] "
)
_LABEL = re.compile(r"([^:.,;]{1,50}?)(?:(?<!\w):|: | [\u2013\u2014-] )")  # of an item of a list
_DOCUMENTS = re.compile(r"(?:(?:[A-Z][a-z]+){3,}|[a-z]+(?:[A-Z][a-z]+)+) ")  # what it defines
_CUT = re.compile(r"\.\.\.|\u2026")
_WE = re.compile(r"\b(?:[Ww]e|[Oo]ur|us|[Mm]y|me)\b")  # in that session
_ONE_PLACE = re.compile(r"in `[^`]+`(?: |,)|`[^`]+` (?:and `[^`]+` )?in `[^`]+`", re.IGNORECASE)
_POINTS = re.compile(  # to something that a reader of the sentence alone does not see
    r"\A(?:this|that|these|those|it) |\A(?:after|when|once|if|before) (?:it|they|that|this)\b"
    r"|\b(?:this|that|these|those) (?:case|file|bug|issue|method|function|problem|part|field|call"
    r"|change)s?\b"
    r"|\b(?:use|using|for|with|of|to|on|in) (?:it|them|this|that)(?:[.,;]| \(|$)|\bthese\b"
    r"|\b(?:detects|does|handles) (?:this|that|it)\b|\bso (?:that|this|it) (?:works|is)\b"
    r"|\bsince (?:that|this|it)(?:'s| is)\b"
    r"|\b(?:the|that) \w+(?:Error|Exception)\b|\b(?:above|below|as well|here)\b"
    r"|\ba specific pattern\b|\bthe (?:fix|change)\b(?! is to\b)",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"(?:ok(?:ay)?,? |then |now )*(?:let's|let us|can you|could you|please) "
    r"(?:also |just |now )*(?:add|check|commit|create|do|fix|go|look|make a|rebase|review|run|see"
    r"|try|write)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(  # a user wants something done from now on
    r"\A(?:please|always|never|don't|do not|use|prefer|avoid|make sure|ensure|remember|respond"
    r"|reply|answer|keep|write|run|no|every|all)\b|[,.;:] (?:always|never) \w|\bplease\b"
    r"|\b(?:we|you|i|tests?|code|everything) (?:should|must|always|never|prefer|want|don't want"
    r"|need to)\b|\blet's (?:make sure|use|keep|avoid|always|never|not)\b|\bmust\b"
    r"|\bshould (?:always|never|be using|use)\b",
    re.IGNORECASE,
)
_FAULTY = (  # verbs and adjectives with which somebody tells of a defect
    r"fails?|leaks?|lacks?|loses?|misses|crash(?:es)?|panics?|corrupts?|overwrites?|ignores?|drops?"
    r"|skips?|hides?|(?:it's|is|are) (?:missing|wrong|incorrect|misleading|unused|duplicated?"
    r"|redundant|outdated|inconsistent"
    r"|not (?:validated|enforced|updated|handled|called|set|cleared|checked))"
    r"|(?:does|do|is|are)(?:n't| not)|can(?:'t|not)|never (?:calls?|sets?|updates?|clears?|checks?)"
    r"|without (?:check|clear|clos|handl|migrat|releas|updat|validat|verify)ing|raises?|prevents"
    r"|regardless of"
)
_OWN_NAME = (  # of the project's code; in backquotes, a command or an option may be anybody's
    r"(?:`?(?:\w+\.)*(?:(?-i:\w*[a-z][A-Z]\w*)|\w+_\w+)(?:\(\))?`?|`[^`\s]*[\w)]\(\)`"
    r"|`?[\w./-]*\w\.(?:go|py|tsx?|jsx?|mjs|rs|java|kt|rb|php|c|cc|cpp|h|cs|swift|astro|vue|svelte"
    r"|css|sh)`?)"
)
_IDENTIFIER = re.compile(  # such as only the project's own code has
    r"\b[a-z]+[A-Z]\w*|\b(?:[A-Z][a-z]+){3,}\b|\b[a-z]+_\w+|\b\w+\(\)|\b[A-Z]+_[A-Z_]+\b"
)
_OWN_FIRST = re.compile(
    rf"(?:(?:[Tt]he|[Ww]hen|[Ii]f|[Ff]or|[Aa]fter)\s+)?`?(?:{_IDENTIFIER.pattern})"
)
_FAULT_OF = re.compile(  # a name of the project's own code, and what is wrong with it
    rf"(?:(?:the|when|if|in|at|during|for|while|both)\b.{{0,40}}?)?(?P<name>{_OWN_NAME})"
    rf"(?:[^.;]|\.\w){{0,90}}?\b(?:{_FAULTY})\b",
    re.IGNORECASE,
)
_DEFECT = re.compile(  # a fault of the project's own code: somebody mends it, or has
    rf"{_FAULT_OF.pattern}"
    r"|the (?:(?:actual|only|real|specific|underlying) )?(?:bug|error|problem|issue|root cause"
    r"|remaining|only remaining|comment|code)\b"
    r"|.{0,200}\b(?:incorrectly|when it should|but instead|should not happen|is never set up)\b"
    r"|.{0,80}\b(?:duplicated? (?:from|of|in)|(?:should|can) be (?:removed|deleted|renamed|moved"
    r"|pinned|extracted))\b",
    re.IGNORECASE,
)
_MENDED = re.compile(r"\b(?:fix(?:ed|es)|resolve[ds]|corrected|repaired)\b", re.IGNORECASE)
_CHANGED = re.compile(  # a name of code is otherwise now, and that is no new fault
    rf"{_OWN_NAME} (?:is |are |was |were )?(?:now|no longer)\b"
    r"(?! (?:\w+ly )?(?:works?|compiles?|fails?|crash(?:es)?|panics?|breaks?)\b)",
    re.IGNORECASE,
)
_TO_MEND = re.compile(r"\b(?:fix|repair|resolve|correct|mend|solve)\b", re.IGNORECASE)
_OWN = re.compile(_OWN_NAME, re.IGNORECASE)
_FORBIDS = re.compile(
    r"\b(?:must|always(?! \w+s\b)|should (?:not|never))\b"
    r"|(?:\A|[.;:,\u2013\u2014-] )(?:never|do not|don't)\b",
    re.IGNORECASE,
)
_GUIDES = re.compile(  # it says what to do, why, or what not to rely on
    r"\b(?:must|should|shall|always|never|only|unless|until|before|after|when|whenever|if|because"
    r"|since|so|so that|instead|requires?|needs?|use|run|prefer|avoid|make sure|ensure|not|cannot"
    r"|can't|don't|doesn't|without|otherwise|recommended|expects?|every|each|please|defaults?)\b",
    re.IGNORECASE,
)
_HOLDS = re.compile(  # it is said of more than one place, or with its reason
    r"\b(?:always|never|must|only|unless|until|do not|don't|avoid|cannot|can't"
    r"|because|since|otherwise|so that|to (?:avoid|prevent))\b",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(  # what comes of it
    r"\b(?:causes?|so|which means|leads? to|fails? with|to fail|(?:will )?breaks?)\b", re.IGNORECASE
)
_STRESSED = re.compile(r"\b(?:NOT|MUST|ALWAYS|NEVER|ONLY)\b")  # whoever wrote it had a reason
_PRESCRIBES = re.compile(  # what to do here, and what not
    r"\b(?i:instead of|rather than|must|never|always|do not|don't|avoid|should)\b|\bNOT\b"
    r"|\A\W*[Nn]o `?\w"
)
_WORK = re.compile(  # an imperative of a plan or of a commit: done once
    r"(?:generate|include|pass|return|save|show|test|validate|write)\b", re.IGNORECASE
)
_GUIDANCE = re.compile(r"(?:use|set|keep|run|call|pass)\b", re.IGNORECASE)
_CONTRAST = re.compile(r"\b(?:instead of|rather than|not|never|without)\b", re.IGNORECASE)
_PROPOSAL = re.compile(  # what one thing should be: somebody still has to do it
    r"(?:the|an?|this) (?:[\w`'./()-]+ ){1,9}?should(?:n't| not)? (?!use US|always|never)",
    re.IGNORECASE,
)
_NAME = re.compile(r"`[^`]+`|\b\w*[a-z][A-Z]\w*\b(?:\(\))?|\b\w+_\w+\b(?:\(\))?|\b\w+\(\)")

_FILE = re.compile(r"\.[a-z]{1,6}\Z")
_ONLY_CODE = re.compile(r"`[^`]*`[.:;]?")
_CALL = re.compile(r"\b\w+(?:\.\w+)*\([^)]*\)|\b[a-z]\w*\.[A-Z]\w*")


def _is_notation(text: str) -> bool:
    return bool(_NOTATION.search(_ASIDE.sub("_", text)))


def _is_heading(text: str) -> bool:
    return not has_verb(_ASIDE.sub("_", text))


def _is_item(text: str) -> bool:
    """Check for an item of a list, which begins with what it is about: "Option B: check it"."""
    label = _LABEL.match(_ASIDE.sub("_", text))
    return label is not None and not has_verb(label[1])


def _is_one_change(text: str) -> bool:
    """Check for a change that somebody planned for one place."""
    if _HOLDS.search(_ASIDE.sub("_", text)):
        return False
    is_bare = _GUIDANCE.match(text) and not _CONTRAST.search(text)
    is_own = bool(_WORK.match(text) or is_bare)
    return is_own or bool(_PROPOSAL.match(text))


def _is_of_moment(text: str) -> bool:
    return bool(_PASSES.search(text)) and not _OVERCAME.search(text)


def objection(text: str, *, is_stated: bool = False, is_at_place: bool = False) -> str:
    """Why a statement does not read as a lesson; empty if it does.

    A user's own words (`is_stated`) are a rule however they are put, if they ask for something and
    do not point elsewhere. To somebody who works at the very place that a statement is about
    (`is_at_place`) a description of it is a lesson too.

    >>> objection("Every test calls `t.Parallel()`, unless it changes the folder of the process.")
    ''
    >>> objection("Added a call of `EnsureGitignore()` to `setup.go`.")
    'tells what was done'
    """
    rules = (*_OF_ALL, *(_OF_USERS if is_stated else _OF_AGENTS))
    if not (is_stated or is_at_place):
        rules += _ELSEWHERE
    return next((reason for reason, holds in rules if holds(text)), "")


def asks(text: str) -> bool:
    """Tell whether a user wants something, and does not only tell how it is.

    >>> asks("Always write a test first"), asks("Edits before the first prompt are never captured")
    (True, False)
    """
    return bool(_ASKS.search(text))


def points(text: str) -> bool:
    """Tell whether a sentence points to something that only its session could see."""
    return bool(_POINTS.search(text))


def prescribes(text: str) -> bool:
    """Tell whether a text says what to do or what not, and not only how something is.

    >>> prescribes("No MUI: the pages use Tailwind instead"), prescribes("The pages use Tailwind")
    (True, False)
    """
    return bool(_PRESCRIBES.search(_ASIDE.sub("_", text)))


def is_report(text: str) -> bool:
    """Tell a statement about the work of the moment: its place, its doings, its defects."""
    is_of_work = _POINTS.search(text) or _REPORTS.match(text) or _DEFECT.match(text)
    return bool(is_of_work) or _is_item(text)


@lru_cache(maxsize=4096)
def faulty_name(text: str) -> str:
    """The name in the project's code of which a text tells a defect; empty if it tells of none.

    >>> faulty_name("`config.parse_keys()` silently drops keys that it does not know")
    'parse_keys'
    """
    found = None if says_mended(text) else _FAULT_OF.match(text)
    return _plain_name(found["name"]) if found else ""


def own_names(text: str) -> set[str]:
    """The names in a text that are of the project's own code."""
    return {_plain_name(found[0]) for found in _OWN.finditer(text)}


@lru_cache(maxsize=4096)
def says_mended(text: str) -> bool:
    """Tell whether a text says that something was mended, or is otherwise now.

    >>> says_mended("`parse_keys` now reports keys that it does not know")
    True
    """
    return bool(_MENDED.search(text) or _CHANGED.search(text))


def asks_to_mend(text: str) -> bool:
    """Tell whether a text asks for a defect to be mended."""
    return bool(_TO_MEND.search(text))


def _plain_name(name: str) -> str:
    """A name without quotes, call and qualifiers; a file keeps its suffix."""
    plain = name.strip("`").removesuffix("()")
    return plain.rpartition("/")[2] if _FILE.search(plain) else plain.rpartition(".")[2]


def names_code(text: str) -> bool:
    """Tell whether a text names something of the code, such as a function or a call.

    >>> names_code("If there is an error, always exit with os.Exit(1)")
    True
    >>> names_code("Always write a test first")
    False
    """
    return bool(_NAME.search(text) or _CALL.search(text))


def worth(text: str, type_: str, score: float, sessions: int) -> float:
    """Weigh a statement for somebody who has not asked, to put several in order.

    The number is the logit of a chance. It grows with the score and with the sessions that said it.
    What is said of a tool from outside, and a rule, hold longer than a description of one's own
    code, what comes of it makes it heeded, and many names of code are about one place.
    """
    chance = min(max(score, 0.02), 0.98)
    names, own = len({*_NAME.findall(text)}), len({*_IDENTIFIER.findall(text)})
    return round(
        math.log(chance / (1 - chance))
        + 0.9 * math.log2(max(1, sessions))
        + _OF_TYPE.get(type_, 0.0)
        + 0.4 * bool(_HOLDS.search(_ASIDE.sub("_", text)) or prescribes(text))
        + bool(_STRESSED.search(text))
        + 0.4 * bool(_FOLLOWS.search(text))
        - 0.4 * (len(text) > _LONG)
        - 0.35 * max(0, names - 2)
        - 0.5 * max(0, own - 1)
        - bool(_OWN_FIRST.match(text)),
        4,
    )


_OF_TYPE = {"gotcha": 1.0, "convention": 0.5, "rule": 0.5, "preference": 0.5}
_OF_ALL: Rules = (
    ("orders one piece of work", lambda text: bool(_ORDERS.match(text))),
    ("is a question", lambda text: text.rstrip().endswith("?")),
    ("is code without a sentence", lambda text: bool(_ONLY_CODE.fullmatch(text.strip()))),
    ("points to something that is not said", lambda text: bool(_POINTS.search(text))),
)
_OF_USERS: Rules = (
    ("asks for nothing", lambda text: not _ASKS.search(text)),
    ("is a question", lambda text: "?" in text),
)
_OF_AGENTS: Rules = (
    ("begins in the middle of something", lambda text: bool(_STARTS_BADLY.match(text))),
    ("is notes and not a sentence", _is_notation),
    ("is an item of a list", _is_item),
    ("leaves out words", lambda text: bool(_CUT.search(_ASIDE.sub("_", text)))),
    ("tells what was done", lambda text: bool(_REPORTS.match(text))),
    ("tells how things stand at the moment", _is_of_moment),
    ("is a guess or a plan", lambda text: bool(_GUESSES.search(text))),
    ("speaks for those who worked on it", lambda text: bool(_WE.search(text))),
    ("tells what a test expects", lambda text: bool(_EXPECTS.search(text))),
    ("is a heading and not a sentence", _is_heading),
    ("plans a change of one place", _is_one_change),
    ("tells of a defect", lambda text: bool(_DEFECT.match(text) and not _FORBIDS.search(text))),
)
_ELSEWHERE: Rules = (  # to somebody who does not work there
    ("describes one place in the code", lambda text: bool(_ONE_PLACE.match(text))),
    ("describes one place in the code", lambda text: bool(_DOCUMENTS.match(text))),
    ("describes one place in the code", lambda text: len(_NAME.findall(text)) > _MOST_NAMES),
    (
        "does not say what to do or why",
        lambda text: not (_GUIDES.search(text) or _OVERCAME.search(text)),
    ),
)

# -- Finite verbs ----------------------------------------------------------------------------------
# A text without one is a heading or a note. No grammar is needed to tell most of them: auxiliaries,
# verbs with which people write about software (with an s, or after a plural), and imperatives.

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
