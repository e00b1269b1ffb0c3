"""The origin and the history of a belief: blame and log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import InvalidRecord, NotFound
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, kind_of
from loki_memory.files.scan import archived
from loki_memory.git_repository import repository, repository_if_any
from loki_memory.history.belief_diff import Shift, evidence_of
from loki_memory.history.report import line
from loki_memory.history.review import private_session, shifts
from loki_memory.history.tree import TreeEdit, edits, records_in
from loki_memory.models import Belief, Episode, Memory, Skill
from loki_memory.models.base import EpisodeMark

if TYPE_CHECKING:
    from loki_memory.git_repository import Commit, Repository
    from loki_memory.homes import OpenWorkspace

MEMORY = ("",)  # all of the memory folder
_IMPORT = 500  # files in one commit: more than a session changes


class BlameSource(NamedTuple):
    """An episode that a belief rests on, or that speaks against it."""

    id: str
    speaks: str  # for, against
    goal: str
    outcome: str
    agent: str
    session: str
    commit: str  # of the code that it was learned on
    at: str
    kept: str  # live, archived, history (only in git), private (another machine), or missing


class BlameStep(NamedTuple):
    """A commit that changed memory, and how, in belief terms."""

    commit: str
    at: str
    author: str
    agent: str
    run: str
    subject: str
    shifts: list[Shift]

    def lines(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield each shift in one line, with its details."""
        yield from ((line(shift), shift.details) for shift in self.shifts)


class Blame(NamedTuple):
    """A belief, its evidence, and every commit that changed it."""

    id: str
    kind: str
    title: str
    status: str
    confidence: float | None
    stated_by: str  # who stated it; empty where only episodes support it
    origin: str
    sources: list[BlameSource]
    steps: list[BlameStep]
    reviewed: list[dict[str, Any]]


def blame(workspace: OpenWorkspace, memory_id: str) -> Blame:
    """Trace a memory to its episodes and commits."""
    record = workspace.get(memory_id)
    return Blame(
        id=record.id,
        kind=record.kind,
        title=record.title(),
        status=getattr(record, "status", None) or "",
        confidence=getattr(record, "confidence", None),
        stated_by=_stated_by(record),
        origin=getattr(record, "origin", None) or "",
        sources=sources(workspace, record),
        steps=log(workspace, memory_id) if _is_in_history(workspace, memory_id) else [],
        reviewed=_reviews(record),
    )


def _stated_by(record: Memory) -> str:
    """The author of a stated belief; one with a `key` was made by consolidation."""
    if not isinstance(record, (Belief, Skill)) or "key" in (record.model_extra or {}):
        return ""
    return getattr(record, "by", None) or getattr(record, "origin", None) or ""


def _reviews(record: Memory) -> list[dict[str, Any]]:
    reviews = (record.model_extra or {}).get("reviewed", [])
    return (
        [review for review in reviews if isinstance(review, dict)]
        if isinstance(reviews, list)
        else []
    )


def _is_in_history(workspace: OpenWorkspace, memory_id: str) -> bool:
    """Check if git may know a memory: one of this machine alone has no commits."""
    path = workspace.home.record_path(memory_id)
    return path is not None and not path.startswith(PRIVATE) and _has_history(workspace)


def _has_history(workspace: OpenWorkspace) -> bool:
    repo = repository_if_any(workspace.layout, workspace.config)
    return repo is not None and repo.tip() is not None


def sources(workspace: OpenWorkspace, record: Memory) -> list[BlameSource]:
    """The episodes behind a memory: live, archived, or only in git's history."""
    evidence = evidence_of(record)
    found = {**dict.fromkeys(evidence.support, "for"), **dict.fromkeys(evidence.against, "against")}
    kept = _Traced(workspace)
    marks = record.evidence.episodes if isinstance(record, Belief) else {}
    there = {name: kept.find(name) for name in found}
    return [
        _private_source(name, speaks, marks[name])
        if there[name][0] is None and name in marks
        else _source(name, speaks, *there[name])
        for name, speaks in sorted(found.items())
    ]


def _private_source(name: str, speaks: str, mark: EpisodeMark) -> BlameSource:
    """An episode that another machine keeps, as far as the belief tells of it."""
    words, outcome, agent = private_session(mark)
    return BlameSource(name, speaks, words, outcome, agent, "", "", mark.day or "", "private")


class _Traced:
    """Memories by id: live, archived, or only in git's history."""

    def __init__(self, workspace: OpenWorkspace) -> None:
        self._workspace = workspace
        self._archived: dict[str, Memory] | None = None

    def find(self, name: str) -> tuple[Memory | None, str]:
        with suppress(NotFound):
            return self._workspace.get(name), "live"
        if self._archived is None:
            self._archived = dict(_archived(self._workspace))
        if name in self._archived:
            return self._archived[name], "archived"
        past = _in_history(self._workspace, name)
        return past, "history" if past else "missing"


def _archived(workspace: OpenWorkspace) -> Iterable[tuple[str, Memory]]:
    for path in archived(workspace.layout):
        stored = None if path.startswith(PRIVATE) else workspace.store.read(path)
        if stored is not None:
            with suppress(InvalidRecord):
                record = decode(path.removeprefix(ARCHIVE), stored.data)
                yield record.id, record


def _in_history(workspace: OpenWorkspace, name: str) -> Memory | None:
    """The last version of an episode in git's history."""
    if not _has_history(workspace):
        return None
    repo = repository(workspace.layout, workspace.config)
    for path in _deleted(repo, name.rpartition("-")[2]):
        last = repo.commits(None, [path])[0]
        found = next(edit.before for edit in edits(repo, last) if edit.path == path)
        record = decoded(path, blobs(repo, [found]).get(found or ""))
        if record is not None and record.id == name:
            return record
    return None


def _deleted(repo: Repository, tail: str) -> list[str]:
    """Paths of deleted episodes whose names end like the id."""
    asked = ("log", "--format=", "--name-only", "-z", "--diff-filter=D", repo.line, "--")
    listed = repo.run(*asked, f"{repo.memory}/episodic").decode(errors="replace")
    paths = (path.removeprefix(f"{repo.memory}/") for path in listed.split("\0"))
    return sorted({path for path in paths if path.endswith(f"{tail}.json")})


def _source(name: str, speaks: str, record: Memory | None, kept: str) -> BlameSource:
    if not isinstance(record, Episode):
        return BlameSource(name, speaks, record.title() if record else "", "", "", "", "", "", kept)
    return BlameSource(
        name,
        speaks,
        record.context.goal,
        record.outcome,
        record.agent or "",
        record.session or "",
        str(getattr(record, "git_commit", None) or ""),
        record.timestamp,
        kept,
    )


def log(
    workspace: OpenWorkspace, memory_id: str | None = None, limit: int | None = None
) -> list[BlameStep]:
    """The commits that changed memory, or one memory, newest first, in belief terms."""
    repo = repository(workspace.layout, workspace.config)
    if memory_id is None:
        return [step(repo, commit) for commit in repo.commits(None, MEMORY)[:limit]]
    path = _path_of(workspace, memory_id)
    places = (path, ARCHIVE + path)
    steps = (step(repo, commit, memory_id, places) for commit in repo.commits(None, places))
    return [step for step in steps if step.shifts][:limit]


def _path_of(workspace: OpenWorkspace, memory_id: str) -> str:
    path = workspace.home.record_path(memory_id)
    if path is None or path.startswith(PRIVATE):
        raise NotFound(memory_id)
    return path


def step(
    repo: Repository, commit: Commit, only: str | None = None, places: Sequence[str] = ()
) -> BlameStep:
    """Describe the changes of a commit to memory, or to one memory at these places.

    Of an import of thousands, only the files of that memory are read.
    """
    agent, run = commit.trailers.get("Loki-Agent", ""), commit.trailers.get("Loki-Run", "")
    changed = edits(repo, commit)
    if places and len(changed) > _IMPORT:
        changed = [edit for edit in changed if edit.path in places]
    found = _shifts(repo, changed, only)
    return BlameStep(commit.id, commit.at, commit.author, agent, run, commit.subject, found)


def _shifts(repo: Repository, changed: Sequence[TreeEdit], only: str | None) -> list[Shift]:
    data = blobs(repo, [blob for edit in changed for blob in (edit.before, edit.after)])
    old = records_in((edit.path, data[edit.before]) for edit in changed if edit.before)
    new = records_in((edit.path, data[edit.after]) for edit in changed if edit.after)
    return [shift for shift in shifts(old, new) if only in {None, shift.id}]


def blobs(repo: Repository, names: Iterable[str | None]) -> Mapping[str, bytes]:
    return dict(repo.blobs(dict.fromkeys(name for name in names if name)))


def decoded(path: str, data: bytes | None) -> Memory | None:
    """Decode the record of a file; None if it is none, or cannot be read."""
    if data is None or kind_of(path) is None:
        return None
    try:
        return decode(path, data)
    except InvalidRecord:
        return None
