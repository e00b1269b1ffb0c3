"""Choose among candidates and say why: what is known of a memory besides its text tilts the order.

Relevance decides. Confidence, strength, freshness, status and the type of task, where it is known,
only tilt it: each factor is bounded, so that no memory is shown for being popular, and none hidden
for being old. The weights of types of task are those of Loki Mode's documents, except that what
went wrong before is never weighted 0: the agent that implements is the one that repeats a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.models.kinds import KINDS
from loki_memory.models.text import tokens
from loki_memory.recall.question import split_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from loki_memory.index.index import Index
    from loki_memory.recall.catalogue import Catalogue
    from loki_memory.recall.ranking import Ranked
    from loki_memory.recall.result import Nearness
    from loki_memory.recall.signals import Word


class Weights(NamedTuple):
    """Weights of each family of memories for a type of task."""

    episodic: float
    semantic: float
    skills: float
    warnings: float


_NEVER_NOTHING = 0.15  # what anti-patterns and skills weigh where Loki Mode says 0
TASKS: Mapping[str, Weights] = {
    "exploration": Weights(0.6, 0.3, 0.1, _NEVER_NOTHING),
    "implementation": Weights(0.15, 0.5, 0.35, _NEVER_NOTHING),
    "debugging": Weights(0.4, 0.2, 0.05, 0.4),
    "review": Weights(0.3, 0.5, 0.05, 0.2),
    "refactoring": Weights(0.25, 0.45, 0.3, _NEVER_NOTHING),
}
FAMILIES: Mapping[str, str] = {
    "episode": "episodic",
    "handoff": "episodic",
    "ledger": "episodic",
    "pattern": "semantic",
    "fact": "semantic",
    "skill": "skills",
    "anti-pattern": "warnings",
    "learning": "warnings",
}

# Whole words and phrases; "refactor*" also stands for what begins so. "prefix" is no fix, and
# "address" adds nothing.
_CUES: Mapping[str, str] = {
    "exploration": "explor*, investigat*, understand, research, survey, find out, look in, "
    "look into, look at, look for, look around, how do, how does, where is, where are, where do, "
    "where does, what is, what are, what does, why is, why are, why do, why does, overview, "
    "learn about, read up, map out",
    "implementation": "implement*, build, builds, building, add, adds, adding, create, creates, "
    "creating, write, writing, develop*, introduc*, support, integrat*, feature, endpoint, set up, "
    "setup, wire up, scaffold",
    "debugging": "debug*, fix, fixes, fixing, fixed, bug, bugs, error, errors, fail, fails, "
    "failing, failed, failure, failures, broken, breaks, crash*, exception, exceptions, traceback, "
    "stack trace, stacktrace, regress*, flaky, hang, hangs, leak, leaks, troubleshoot*, wrong, "
    "not working, doesn't work, does not work, root cause",
    "review": "review*, audit*, inspect*, check over, assess*, evaluat*, critique, approve, "
    "pull request, code quality, lint, security check, sign off",
    "refactoring": "refactor*, clean up, cleanup, restructur*, renam*, extract*, simplif*, "
    "dedup*, reorganis*, reorganiz*, modernis*, moderniz*, migrat*, decoupl*, inline",
}
_PHASES: Mapping[str, str] = {
    "exploration": "exploration",
    "discovery": "exploration",
    "bootstrap": "exploration",
    "research": "exploration",
    "planning": "exploration",
    "architecture": "exploration",
    "development": "implementation",
    "implementation": "implementation",
    "coding": "implementation",
    "testing": "debugging",
    "qa": "debugging",
    "debugging": "debugging",
    "verification": "review",
    "review": "review",
    "refactoring": "refactoring",
    "cleanup": "refactoring",
    "maintenance": "refactoring",
}
_AROUND = ".,;:!?()[]{}'\"`"
_LONGEST = 4000  # characters of a question that are looked at
_WORD_COUNTS, _ERROR_COUNTS, _PHASE_COUNTS = 2, 3, 4  # Loki Mode's: keyword, action, phase


def detect(text: str, *, phase: str = "", error: bool = False) -> str:
    """The type of task that a question is asked for; empty if nothing tells."""
    words = [word.strip(_AROUND) for word in text[:_LONGEST].lower().split()]
    votes = {task: _WORD_COUNTS * _heard(cues, words) for task, cues in _CUES.items()}
    if error:
        votes["debugging"] += _ERROR_COUNTS
    known = _PHASES.get(phase.strip().lower(), "")
    if known:
        votes[known] += _PHASE_COUNTS
    best = max(votes, key=lambda task: (votes[task], task == known))
    alone = list(votes.values()).count(votes[best]) == 1
    return best if votes[best] and (alone or known == best) else ""


def _heard(cues: str, words: list[str]) -> int:
    """Count the cues that a text has."""
    line = f" {' '.join(words)} "
    heard = 0
    for cue in cues.split(", "):
        begins = cue.endswith("*")
        heard += f" {cue[:-1]}" in line if begins else f" {cue} " in line
    return heard


def weight(kind: str, task: str) -> float:
    """The weight of a kind of memory for a task, as a share of the greatest."""
    weights = TASKS.get(task)
    if weights is None:
        return 1.0
    own: float = getattr(weights, FAMILIES.get(kind, "semantic"))
    return own / max(weights)


# -- choosing --------------------------------------------------------------------------------------


FRESH_DAYS = 180  # after which a memory counts half as fresh
_STATUS = {
    "candidate": 0.95,
    "disputed": 0.85,
    "superseded": 0.8,
    "retired": 0.8,
    "resolved": 0.8,
    "rejected": 0.7,
}
_SUPPOSED = 0.8  # confidence of a memory that states none
_TASK_TILT = 0.15  # exponent: a kind that weighs a third is pushed back by 15 %
UNHELPFUL = -1.0  # the strength of a memory of which somebody here said that it did not help
UNHELPFUL_TILT = 0.5  # it is half as likely to help, and still found by who asks for it
RIVAL = 0.7  # of the best score, and of the best cover of the question, from which on two compete
_ABOUT = 0.4  # of the question's rarity: a sentence that covers less is about something else
_STEM = 5  # letters by which two forms of a word are one
_SENTENCE_END = r"(?<=[.!?;])\s+|\n+"
_VALUE = r"""(?<!\w)'[^'\s]+(?: [^'\s]+){0,2}'(?!\w)|"[^"\n]+"|`[^`\n]+`|(?<![\w.])\$?\d"""
_NORM = (
    r"(?i)\b(?:always|never|must|from now on|going forward|no longer|any ?more|prefer(?:s|red)?"
    r"|instead|convention|rule|standard)\b"
)


class Candidate(NamedTuple):
    """A memory that may be shown."""

    number: int  # its place among the candidates: what `alike` is asked with
    relevance: float
    kind: str
    status: str = "active"
    scope: str = "project"
    outcome: str = ""
    confidence: float | None = None
    importance: float | None = None
    strength: float = 0.0
    age_days: int | None = None


class DatedPassage(NamedTuple):
    """A candidate that may state a value: when, and in which words."""

    number: int
    at: str
    text: str


def newer_first(
    candidates: Sequence[Candidate],
    statements: Sequence[DatedPassage],
    rarity: Mapping[str, float],
) -> list[Candidate]:
    """Give the better scores to the newer of the statements that answer with a value.

    Two statements are of one thing if a sentence of each covers as much of the question, by the
    rarity of its words, and both state it if that sentence has a value (a number, something quoted)
    or a norm in it. A narrative has neither and keeps its order. Scores only change hands, so that
    no other candidate moves.
    """
    weights = _by_stem(rarity)
    answers = [(statement, *_answer(statement.text, weights)) for statement in statements]
    most = max((cover for _, cover, _ in answers), default=0.0)
    enough = max(RIVAL * most, _ABOUT * sum(weights.values()))
    rivals = [rival for rival, cover, states in answers if states and cover >= enough > 0]
    newest = sorted(rivals, key=lambda rival: rival.at, reverse=True)
    best = sorted((candidates[rival.number].relevance for rival in rivals), reverse=True)
    passed = {rival.number: score for rival, score in zip(newest, best, strict=True)}
    return [
        candidate._replace(relevance=passed.get(candidate.number, candidate.relevance))
        for candidate in candidates
    ]


def _answer(text: str, weights: Mapping[str, float]) -> tuple[float, bool]:
    """The share of a question that the best sentence covers, and if it states something."""
    return max(
        (_cover(sentence, weights), bool(re.search(_VALUE, sentence) or re.search(_NORM, sentence)))
        for sentence in re.split(_SENTENCE_END, text)
    )


_LEAST_WORDS = 4  # of a sentence that says something
_MARKUP = r"^(?:[-*#>\s]+|\d+\.\s+)+|(?<!\S)\*+(?=[\w`])|(?<=[\w`:.!?)])\*+(?!\w)|;$"


def excerpt(texts: Sequence[str], title: str, rarity: Mapping[str, float]) -> str:
    """The sentence that covers most of a question, the first of equal ones; no title or heading.

    >>> texts = ["Fix it\\nThe lock was stale. It is removed when its owner is gone."]
    >>> excerpt(texts, "Fix it", {"owner": 2.0})
    'It is removed when its owner is gone.'
    """
    weights = _by_stem(rarity)
    sentences = (
        " ".join(re.sub(_MARKUP, "", sentence.strip()).split())
        for text in texts
        for sentence in re.split(_SENTENCE_END, text)
        if not sentence.lstrip().startswith("#")
    )
    telling = (
        sentence
        for sentence in sentences
        if len(sentence.split()) >= _LEAST_WORDS
        and not (sentence.endswith(":") or " | " in sentence or sentence in title)
    )
    return max(telling, key=lambda sentence: _cover(sentence, weights), default="")


def _by_stem(rarity: Mapping[str, float]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for word, rare in rarity.items():
        weights[_stem(word)] = max(rare, weights.get(_stem(word), 0.0))
    return weights


def _cover(sentence: str, weights: Mapping[str, float]) -> float:
    stems = {_stem(word.lower()) for word in split_words(sentence)}
    return sum(weight for stem, weight in weights.items() if stem in stems)


def _stem(word: str) -> str:
    return word[:_STEM] if len(word) > _STEM else word.rstrip("s")


def judged(candidate: Candidate, task: str) -> float:
    """Relevance, tilted by what else is known."""
    sure = _SUPPOSED if candidate.confidence is None else candidate.confidence
    matters = 0.5 if candidate.importance is None else candidate.importance
    age = FRESH_DAYS if candidate.age_days is None else max(0, candidate.age_days)
    prefers_success = candidate.kind == "episode" and task != "debugging"
    return float(
        candidate.relevance
        * (0.85 + 0.15 * sure)
        * (0.95 + 0.1 * matters)
        * (0.9 + 0.1 * 0.5 ** (age / FRESH_DAYS))
        * _use_tilt(candidate.strength)
        * _STATUS.get(candidate.status, 1.0)
        * (1.05 if prefers_success and candidate.outcome == "success" else 1.0)
        * weight(candidate.kind, task) ** _TASK_TILT
    )


def _use_tilt(strength: float) -> float:
    return UNHELPFUL_TILT if strength < 0 else 1 + 0.1 * strength / (1 + strength)


def choose(candidates: Sequence[Candidate], k: int, task: str) -> list[tuple[Candidate, float]]:
    """At most k candidates with their scores, best first."""
    scored = [(candidate, judged(candidate, task)) for candidate in candidates]
    scored.sort(key=lambda pair: (-pair[1], pair[0].number))
    return scored[:k]


def within(texts: Sequence[str], budget: int) -> int:
    """Count the lines that fit a budget of tokens, estimated as bytes / 4."""
    used = 0
    for number, text in enumerate(texts):
        used += tokens(text)
        if used > budget:
            return number
    return len(texts)


# -- the reasons -----------------------------------------------------------------------------------


_READ = 20  # passages of an episode that are read for an excerpt: more than any summary has
_EPISODE = KINDS.index("episode")
_CLOSE = 0.8  # of the best cosine, from which on meaning is a reason of its own
_WORDS_TOLD = 6


class Hit(NamedTuple):
    """A memory that was chosen: its row, its score, the reasons, what the score is made of."""

    row: int
    score: float
    why: list[str]
    parts: dict[str, float]
    nearness: Nearness | None = None  # None where nothing was ranked
    excerpt: str = ""  # of an episode, whose title is what was asked for and not what was found


def explained(
    store: Catalogue,
    asked: Sequence[Word],
    ranked: Ranked,
    chosen: Sequence[tuple[int, float]],
    reasons: Mapping[int, Sequence[str]],
    sure: Collection[int],
    best: Nearness | None,
) -> list[Hit]:
    """The chosen documents as hits; those in `sure` have a reason that cannot be an accident."""
    documents = ranked.documents[[number for number, _ in chosen]]
    words = _words_in(store, asked, documents)
    cosine = ranked.parts.get("cosine")
    closest = float(cosine.max(initial=0)) if cosine is not None else 0.0
    hits = []
    for (number, score), document in zip(chosen, documents.tolist(), strict=True):
        parts = {name: float(values[number]) for name, values in ranked.parts.items()}
        close = closest > 0 and parts.get("cosine", 0.0) >= _CLOSE * closest
        why = _why(reasons.get(document, []), words.get(document, []), close=close)
        if not why:
            lent = parts.get("bm25", 0.0) > 0
            why = ["stands beside what matches" if lent else "the nearest there is"]
        row = int(store.corpus.row[document])
        near = _nearness(best, ranked, number, is_sure=document in sure)
        hits.append(Hit(row, score, why, parts, near))
    return hits


def with_excerpts(
    index: Index,
    store: Catalogue,
    ranked: Ranked,
    chosen: Sequence[tuple[int, float]],
    hits: Sequence[Hit],
    rarity: Mapping[str, float],
) -> list[Hit]:
    """The hits, each episode with the sentence of it that answers best."""
    return [
        hit._replace(excerpt=_excerpt(index, store, ranked, number, rarity))
        if store.corpus.kind[ranked.documents[number]] == _EPISODE
        else hit
        for hit, (number, _) in zip(hits, chosen, strict=True)
    ]


def _excerpt(
    index: Index, store: Catalogue, ranked: Ranked, number: int, rarity: Mapping[str, float]
) -> str:
    from loki_memory.index.search import dated_passages

    first, after = store.corpus.first[ranked.documents[number] :][:2].tolist()
    told = [at for at in range(first, after) if store.entry[at] >= 0]  # others are its log
    rows = store.passage[told[:_READ]].tolist()
    texts = {passage.row: passage.text for passage in dated_passages(index, rows)}
    if not texts:
        return ""
    title = texts[rows[0]].partition("\n")[0]
    nearest = int(store.passage[ranked.passage[number]])
    in_order = sorted(rows, key=lambda row: row != nearest)
    return excerpt([texts[row] for row in in_order if row in texts], title, rarity)


def _nearness(
    best: Nearness | None, ranked: Ranked, number: int, *, is_sure: bool
) -> Nearness | None:
    """The nearness of a document; None for one that was not ranked, but reached by a link."""
    alike, cosine = float(ranked.alike[number]), float(ranked.cosine[number])
    if best is None or alike == cosine == 0:
        return None
    return best._replace(alike=alike, cosine=cosine, is_exact=is_sure)


def _words_in(
    store: Catalogue, asked: Sequence[Word], documents: NDArray[np.int32]
) -> dict[int, list[str]]:
    """The words of the question that each document has."""
    import numpy as np  # whoever only words a line imports this module too

    found: dict[int, list[str]] = {}
    for word in asked:
        has = np.zeros(len(store.corpus.row), np.bool_)
        has[store.corpus.document[word.passages]] = True
        for document in documents[has[documents]].tolist():
            found.setdefault(document, []).append(word.word)
    return found


def _why(reasons: Sequence[str], words: Sequence[str], *, close: bool) -> list[str]:
    why = list(dict.fromkeys(reasons))
    if words:
        why.append("matches " + ", ".join(f"'{word}'" for word in words[:_WORDS_TOLD]))
    if close:
        why.append("close in meaning")
    return why
