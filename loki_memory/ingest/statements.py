"""Statements: the sentences of a session that a careful engineer would have written down.

All prose of a session is split into sentences, scored, and typed. At most twenty a session and
eight an episode are kept. A statement is a function of the turns of its session: no store, no model
and no clock take part.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from loki_memory.consolidation.positions import COMPETING, FATE, OTHER, position
from loki_memory.consolidation.similarity import content
from loki_memory.ingest.sentences import sentences
from loki_memory.ingest.statement_score import (
    CODE_NAME,
    DEFECT,
    USER,
    is_refused,
    score,
)
from loki_memory.ingest.statement_types import (
    CONVENTION,
    OUTSIDE,
    PREFERENCE,
    is_about_tool,
    statement_type,
)
from loki_memory.models.lesson_text import asks, asks_to_mend, objection
from loki_memory.models.text import runs

STORED = 0.15  # the least score that is kept
PER_SESSION = 20
PER_EPISODE = 12  # with 8 a long episode loses what careful readers learned from it
LONGEST = 300  # characters
_DEFECTS = frozenset({"fact", "entity", "relationship"})  # types that may tell of a defect
_FORBIDS = re.compile(r"\b(?:must|always|never|do not|don't|should not)\b", re.IGNORECASE)
_STATED_BY_USER = 0.5  # the score of a preference or decision in the user's own words
_MOST_SENTENCES = 20_000  # of a session: more are those of a log that somebody pasted
_LEAST_CONTENT = 3  # words
_SHORT_CHOICE = 6  # words; a longer one is judged like any sentence
_SHARED, _SHARE = 4, 0.55  # words of content that make two sentences say nearly the same
_CONTAINED = 0.8  # of the words of a sentence: the other repeats it
_REASON = re.compile(r"(?<=\w) (?:because|since) ")
_SUBJECT = 3  # words that name what a reason is about
_BEGINNING = 30  # characters of a prompt that say what there is to do
_OF_REPORT = 2  # words of content that a statement about a reported defect has in common with it
_MOST_COMMON = 400  # sentences that have a word: one that is more common tells nothing apart


class Utterance(NamedTuple):
    """A piece of prose of one turn."""

    key: str  # of its turn
    text: str
    source: str  # say, written, user or compact
    is_external: bool = False  # it may repeat what a tool of third parties answered
    type: str = ""  # of the statement that it makes, where that is known
    is_task: bool = False  # the first prompt, which tells what there is to do


class FoundStatement(NamedTuple):
    """A sentence worth keeping."""

    key: str  # of the turn in which it stands
    text: str
    type: str
    source: str
    score: float
    at: int = 0  # the number of its utterance in the session
    is_external: bool = False
    is_task: bool = False
    is_resolved: bool = False
    is_quoted: bool = False


class _Sentence(NamedTuple):
    at: int  # the number of its utterance
    text: str
    words: frozenset[str]


def statements(
    utterances: Sequence[Utterance],
    tools: Iterable[str] = OUTSIDE,
    edited: Mapping[str, int] = MappingProxyType({}),
    prompts: Iterable[str] = (),
) -> list[FoundStatement]:
    """The statements of one session, the best first.

    `tools` are names of outside programs; `edited` tells for names of code how many utterances came
    before their last edit; `prompts` are all that the user wrote.
    """
    outside = frozenset(tools)
    asked = [*prompts]
    reported = _reported(asked)
    said = list(_sentences(utterances))
    having = _having(said)
    found = (
        _statement(utterances[sentence.at], sentence, _restated(sentence, said, having), outside)
        for sentence in said
        if _may_be_kept(sentence.text, utterances[sentence.at].source)
    )
    kept = [
        statement._replace(is_resolved=_is_resolved(statement, edited, outside, reported))
        for statement in found
        if statement
    ]
    best = _chosen(sorted(kept, key=lambda statement: (-statement.score, statement.text)))
    quoted = {run for prompt in asked for run in runs(prompt)}
    return [entry._replace(is_quoted=not quoted.isdisjoint(runs(entry.text))) for entry in best]


def sentences_of(utterances: Sequence[Utterance]) -> Iterator[tuple[str, str, int]]:
    """Each sentence with its source and the number of utterances that restate it."""
    said = list(_sentences(utterances))
    having = _having(said)
    for sentence in said:
        yield sentence.text, utterances[sentence.at].source, _restated(sentence, said, having)


def _sentences(utterances: Sequence[Utterance]) -> Iterator[_Sentence]:
    """Each sentence with enough words of content, once, as it would be shown."""
    seen: set[str] = set()
    for at, utterance in enumerate(utterances):
        for sentence in sentences(utterance.text):
            text = _lasting(tidy(sentence), utterance.source)
            words = frozenset(content(text))
            is_enough = len(words) >= _LEAST_CONTENT or _is_choice(text, utterance.source)
            if text not in seen and is_enough:
                seen.add(text)
                yield _Sentence(at, text, words)
        if len(seen) >= _MOST_SENTENCES:
            return


def _lasting(text: str, source: str) -> str:
    """Return what outlasts the work: of a report, its reason, if that is a tool from outside.

    >>> _lasting("Removed it because go-git doesn't delete the packed refs of worktrees.", "say")
    "Go-git doesn't delete the packed refs of worktrees."
    """
    found = _REASON.search(text) if source != USER else None
    if found is None or not objection(text):
        return text
    why = text[found.end() :]
    reason = why[:1].upper() + why[1:]
    is_lesson = is_about_tool(" ".join(why.split()[:_SUBJECT]), OUTSIDE) and not objection(reason)
    return reason if is_lesson and not is_refused(reason, source) else text


def _having(said: Sequence[_Sentence]) -> dict[str, list[int]]:
    """The numbers of the sentences that have a word."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for number, sentence in enumerate(said):
        for word in sentence.words:
            found[word].append(number)
    return found


def _restated(
    sentence: _Sentence, said: Sequence[_Sentence], having: Mapping[str, list[int]]
) -> int:
    """Count how many other utterances say nearly the same."""
    words = sentence.words
    telling = (having[word] for word in words if len(having[word]) <= _MOST_COMMON)
    shared = Counter(chain.from_iterable(telling))
    return len(
        {
            said[other].at
            for other, count in shared.items()
            if count >= _SHARED
            and said[other].at != sentence.at
            and count >= _SHARE * min(len(words), len(said[other].words))
        }
    )


def _statement(
    utterance: Utterance, sentence: _Sentence, restated: int, outside: frozenset[str]
) -> FoundStatement | None:
    """The statement that a sentence makes, if it is worth keeping."""
    source, text = utterance.source, sentence.text
    worth = score(text, source, restated)
    type_ = utterance.type or statement_type(text, source, worth, outside)
    if not type_ and _is_choice(text, source):
        type_ = PREFERENCE
    if source == USER and type_:
        worth = max(worth, _STATED_BY_USER)
    if not type_ or worth < STORED or len(text) > LONGEST:
        return None
    said = (utterance.key, text, type_, source, round(worth, 3))
    return FoundStatement(*said, sentence.at, utterance.is_external, utterance.is_task)


def _may_be_kept(text: str, source: str) -> bool:
    return not is_refused(text, source) or _is_choice(text, source)


def _is_choice(text: str, source: str) -> bool:
    """Check for a plain choice of a user that excludes others: "I prefer Go".

    "Rebase off main" names something that a project may have besides others, and wishes nothing.
    """
    if source != USER or len(text.split()) > _SHORT_CHOICE:
        return False
    chosen = position(text)
    if chosen is None or not chosen.is_wish or chosen.group in {FATE, OTHER}:
        return False
    return chosen.group not in COMPETING or chosen.is_change or asks(text)


def _reported(prompts: Sequence[str]) -> frozenset[str]:
    """The words of content of the first prompt, if it begins by asking for a defect to be mended.

    >>> "cart" in _reported(["Fix this bug: carts lose items", "Now commit"])
    True
    """
    asked = prompts[0] if prompts else ""
    return frozenset(content(asked) if asks_to_mend(asked[:_BEGINNING]) else ())


def _is_resolved(
    statement: FoundStatement,
    edited: Mapping[str, int],
    outside: frozenset[str],
    reported: frozenset[str],
) -> bool:
    """Check whether a statement tells of a defect in code that was edited after it was made.

    A task tells of a defect so that it is mended, and what a session says about a defect that was
    reported to it explains the code as it was. What is wrong with an outside tool stays true, and
    so does a rule.
    """
    if is_about_tool(statement.text, outside):
        return False
    if reported and edited and _may_be_mended(statement):
        return len(reported & {*content(statement.text)}) >= _OF_REPORT
    if not DEFECT.search(statement.text):
        return False
    if statement.is_task and _may_be_mended(statement):
        return max(edited.values(), default=-1) > statement.at
    names = (name.strip("`()").rpartition(".")[2] for name in CODE_NAME.findall(statement.text))
    is_edited = any(edited.get(name, -1) > statement.at for name in names)
    return is_edited and statement.type in _DEFECTS


def _may_be_mended(statement: FoundStatement) -> bool:
    """Check that a statement of a task forbids nothing: that stays true."""
    is_description = statement.type == CONVENTION and not _FORBIDS.search(statement.text)
    return is_description or statement.type in _DEFECTS


def _chosen(ranked: Iterable[FoundStatement]) -> list[FoundStatement]:
    """The best that do not repeat each other."""
    kept: list[FoundStatement] = []
    words: list[frozenset[str]] = []
    for statement in ranked:
        own = frozenset(content(statement.text))
        if any(_repeats(own, other) for other in words):
            continue
        kept.append(statement)
        words.append(own)
        if len(kept) >= PER_SESSION:
            break
    return kept


def _repeats(words: frozenset[str], other: frozenset[str]) -> bool:
    return len(words & other) >= _CONTAINED * min(len(words), len(other))


# -- wording ---------------------------------------------------------------------------------------

_INTERJECTION = re.compile(
    r"^(?:(?:good (?:catch|point|question)|right|found it|ok(?:ay)?|great|perfect|yes|no|exactly|so"
    "|confirmed|done|fixed|note|important|wait|ah|hmm|meanwhile|root cause"
    "|unfortunately|interestingly|actually(?!,? (?:i|we|let'?s)\\b))"
    "\\b\\s*[\u2013\u2014:,.!-]+\\s*)+",
    re.IGNORECASE,
)
_FIXED_IN = re.compile(
    "\\b(?:fixed|done|addressed) in `?[0-9a-f]{7,40}`?\\s*[\u2013\u2014:.-]*\\s*", re.IGNORECASE
)
_TAG = re.compile(
    r"^(?:\[[\w #-]+\]\s*)+[:—-]*\s*|\s*\[[\w./-]+\.\w+(?:, ~?lines? \d+)?\]"
    r"|\s*\((?:issue|bug|task|fix) #?\d+\)",
    re.IGNORECASE,
)
_PLACE = re.compile(
    "\\s*\\((?:at )?lines? \\d+(?:[-\u2013]\\d+)?\\)"
    r"|\s+at line \d+|(?<=\bline) \(\d+\)|(?<=\.\w\w):\d+(?::\d+)?\b"
)
# Stars and pairs of underscores, but `**options` and `__init__` are names of code.
_EMPHASIS = re.compile(r"(`[^`]+`)|\*\*|(?<!\w)__(\S[^_`]*\s[^_`]*)__(?!\w)")
_CHOSEN = re.compile(r"^Uses (?=.*\b(?:because|since|instead of|rather than|to avoid)\b)")
_LEADING = re.compile("^[\\s\u2013\u2014:;,.)\\]>*-]+")


def tidy(sentence: str) -> str:
    """A sentence as it is shown: no interjection, no emphasis, no line number.

    What a comment says was chosen, and why, is advice to the next reader.

    >>> tidy("Good catch — **the** hook reads `HEAD` (line 12).")
    'The hook reads `HEAD`.'
    >>> tidy("Uses the git CLI instead of go-git, which reads no `__init__`.")
    'Use the git CLI instead of go-git, which reads no `__init__`.'
    """
    plain = _EMPHASIS.sub(lambda found: found[1] or found[2] or "", sentence.replace("\\`", "`"))
    text = _TAG.sub("", plain)
    text = _FIXED_IN.sub("", text)
    text = _LEADING.sub("", _INTERJECTION.sub("", _LEADING.sub("", text), count=1))
    text = _PLACE.sub("", text).strip()
    return _CHOSEN.sub("Use ", text[:1].upper() + text[1:])
