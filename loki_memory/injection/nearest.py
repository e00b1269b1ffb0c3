"""The lessons nearest to a goal and to the files that a session works on.

A prompt often says little ("address the review comments"), so words and meaning alone choose
poorly. What else tells that a lesson is about the work at hand: it names code or a file that the
goal names, sessions learned it while they worked on the same files, and it was learned lately.
`benchmarks/told/brief.py` measures the choice; the weights are a logistic regression's on one
project, rounded, and are reported on another.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.index import gate
from loki_memory.injection.gate import as_hit
from loki_memory.injection.line import gist, record_of
from loki_memory.models.text import symbols
from loki_memory.recall.question import ask
from loki_memory.recall.recall import RecallOptions, recall
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_LOOKED_AT = 40  # hits that are put in order
_KINDS = ("fact", "pattern", "anti-pattern")  # clients load skills themselves
_WEIGHTS = {"relevance": 3.0, "named": 2.0, "files": 3.0, "recent": 1.0, "confidence": 1.0}
_MOST_NAMED = 2  # names in common, beyond which one more tells nothing
_SESSIONS = 10  # after which a lesson counts a third as fresh
_REMEMBERED = 60  # sessions: of older ones nothing is fresh
_SUPPOSED = 0.8  # confidence of a lesson that states none
_CHANCE = 0.15  # from which on words and meaning alone are reason enough to tell a lesson
# Sessions since it was learned. The next ones often go on with the same work, and a goal that says
# little leaves nothing else to go by.
_JUST_NOW, _LATELY = 5, 20
_SAYS_LITTLE = 6  # words: a goal with fewer says little, such as "address the review comments"
_GENERAL = 100  # sentences of sessions that are looked at for any goal
_NOTED = 3  # beliefs of each kind that are told without a goal
_NORM = re.compile(
    r"\b(?:must|should|always|never|every|unless|instead|do not|cannot)\b|n't\b", re.IGNORECASE
)
_FILE_NAME = re.compile(r"[\w@+.-]*\w\.[A-Za-z]\w{0,9}\b")


class SessionGoal(NamedTuple):
    """The work of a session, for which lessons are chosen."""

    goal: str
    files: Sequence[str] = ()  # paths within the project

    def names(self) -> set[str]:
        """Names of code and of files that the work is about."""
        return code_names(self.goal) | {posixpath.basename(path) for path in self.files}

    def says_little(self) -> bool:
        """Check for a goal that any work could have, such as "address the review comments"."""
        return len(ask(self.goal).words) < _SAYS_LITTLE and not code_names(self.goal)


class TieToWork(NamedTuple):
    """The ties of a lesson to the work."""

    relevance: float  # of its words and meaning to the goal, 0 to 1
    named: int  # names of code and of files that both have
    files: float  # share of the files at hand on which it was learned
    sessions: int  # that were held since it was learned
    confidence: float
    fresh: int = 0  # sessions for which it is told for being new alone

    @property
    def is_at_place(self) -> bool:
        """Check if the work is done at the place that the lesson is about."""
        return bool(self.named or self.files)

    @property
    def is_near(self) -> bool:
        """Check for a reason that is enough by itself."""
        is_fresh = self.sessions < self.fresh
        return self.is_at_place or self.relevance >= _CHANCE or is_fresh


class NearLesson(NamedTuple):
    """A lesson, and why it may be about the work."""

    hit: Recollection
    near: TieToWork


def score(near: TieToWork) -> float:
    """The weight of a lesson among others; higher is nearer.

    >>> score(TieToWork(0.1, 1, 0.0, 50, 0.8)) > score(TieToWork(0.4, 0, 0.0, 50, 0.8))
    True
    """
    found = {
        "relevance": near.relevance,
        "named": min(near.named, _MOST_NAMED),
        "files": near.files,
        "recent": exp(-near.sessions / _SESSIONS),
        "confidence": near.confidence,
    }
    return sum(weight * found[name] for name, weight in _WEIGHTS.items())


def code_names(text: str) -> set[str]:
    """Names of code and of files in a text."""
    return {*symbols(text), *(posixpath.basename(name) for name in _FILE_NAME.findall(text))}


def nearest(workspace: OpenWorkspace, work: SessionGoal, session: str) -> list[NearLesson]:
    """The lessons that have a reason to be told for some work, the nearest first."""
    hits = {hit.id: hit for hit in _relevant(workspace, work, session)}
    learned = gate.learned_on(workspace.index, work.files)
    moments = gate.sessions_since(workspace.index, _REMEMBERED)
    since = moments[-_LATELY] if len(moments) >= _LATELY else ""
    others = gate.lessons_among(workspace.index, list(learned)[:_LOOKED_AT], since, _LOOKED_AT)
    known = ((kind, lesson) for kind, lesson in others if kind in _KINDS)
    hits = {lesson.id: as_hit(kind, lesson, lesson.at) for kind, lesson in known} | hits
    found = [
        NearLesson(hit, _tie(hit, _text(workspace, hit), work, learned, moments))
        for hit in hits.values()
    ]
    found.sort(key=lambda lesson: (-score(lesson.near), lesson.hit.id))
    return [lesson for lesson in found if lesson.near.is_near]


def general(workspace: OpenWorkspace) -> Iterator[Recollection]:
    """Lessons for any goal: what must be, and what must not."""
    for lesson in gate.general(workspace.index, _GENERAL):
        if _NORM.search(lesson.title):
            yield as_hit("fact", lesson)


def noted(workspace: OpenWorkspace) -> Iterator[Recollection]:
    """Beliefs that people put into words, the newest first: what is told without a goal."""
    for home in workspace.homes:
        for kind in ("pattern", "fact", "anti-pattern"):
            for lesson in gate.noted(home.index, kind, _NOTED):
                yield as_hit(kind, lesson)


def _relevant(workspace: OpenWorkspace, work: SessionGoal, session: str) -> Sequence[Recollection]:
    stems = (posixpath.splitext(posixpath.basename(path))[0] for path in work.files)
    asked = "\n".join([work.goal, *stems])
    options = RecallOptions(asked, _LOOKED_AT, kinds=_KINDS, session=session)
    hits, _ = recall(workspace, options.as_query(workspace.now(), injected=True, unasked=True))
    return hits


def _text(workspace: OpenWorkspace, hit: Recollection) -> str:
    return gist(hit.kind, hit.title, record_of(workspace, hit.id))


def _tie(
    hit: Recollection,
    text: str,
    work: SessionGoal,
    learned: Mapping[str, int],
    moments: Sequence[str],
) -> TieToWork:
    return TieToWork(
        relevance=hit.score,
        named=len(work.names() & code_names(text)),
        files=learned.get(hit.id, 0) / max(1, len(work.files)),
        sessions=len(moments) - bisect_right(moments, hit.at),
        confidence=_SUPPOSED if hit.confidence is None else hit.confidence,
        fresh=_fresh(hit, work),
    )


def _fresh(hit: Recollection, work: SessionGoal) -> int:
    """For how many sessions a lesson is new; what went wrong with a command waits for it."""
    if hit.kind == "anti-pattern":
        return 0
    return _LATELY if work.says_little() else _JUST_NOW
