"""Shared memory as values for a page that is passed on: beliefs, evidence, history and links.

Only files of the shared zone are read, so nothing that is private to this machine can reach the
page; the evidence of a private session is its day, agent and outcome, as the belief states them.
Secrets in known formats are replaced in every text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import GitFailed, NoHistory
from loki_memory.files.redaction import redact
from loki_memory.history.blame import log
from loki_memory.interop.export_memory import stored_files
from loki_memory.models import AntiPattern, Belief, Episode, Memory, Pattern, Skill

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_COMMITS = 500  # the latest that changed memory
_ORDER = ("anti-pattern", "pattern", "fact", "skill")


class SharedEvidence(NamedTuple):
    """An episode that speaks for or against a belief."""

    episode: str
    speaks: str  # for, against
    day: str
    agent: str
    outcome: str
    goal: str  # empty where the episode is private to a machine


class SharedChange(NamedTuple):
    """A commit that changed a belief."""

    commit: str
    at: str
    what: str
    details: list[str]


class SharedLink(NamedTuple):
    """A link to another belief of the page."""

    id: str
    title: str
    relation: str
    is_outgoing: bool


class SharedBelief(NamedTuple):
    """A belief or a skill with everything that the page tells of it."""

    id: str
    kind: str
    title: str
    status: str
    confidence: float | None
    category: str
    at: str
    advice: list[tuple[str, str]]  # words such as `Do`, and the text
    evidence: list[SharedEvidence]
    history: list[SharedChange]
    links: list[SharedLink]
    files: list[str]


class SharedMemory(NamedTuple):
    """All beliefs and skills of the shared zone, mistakes first."""

    project: str
    beliefs: list[SharedBelief]
    unread: list[str]  # files that hold no readable record


def shared_memory(workspace: OpenWorkspace) -> SharedMemory:
    """Collect the shared memory of a workspace."""
    unread: list[str] = []
    records = [file.record for file in stored_files(workspace.layout, unread)]
    shown = [record for record in records if record.kind in _ORDER]
    shown.sort(key=lambda record: (_ORDER.index(record.kind), record.id))
    episodes = {record.id: record for record in records if isinstance(record, Episode)}
    links, changes = _links(shown), _changes(workspace)
    beliefs = [
        _belief(record, episodes, changes.get(record.id, []), links.get(record.id, []))
        for record in shown
    ]
    return SharedMemory(workspace.layout.root.name, [_clean(belief) for belief in beliefs], unread)


def _belief(
    record: Memory,
    episodes: Mapping[str, Episode],
    history: list[SharedChange],
    links: list[SharedLink],
) -> SharedBelief:
    belief = record if isinstance(record, Belief) else None
    return SharedBelief(
        id=record.id,
        kind=record.kind,
        title=record.title(),
        status=belief.status if belief else "active",
        confidence=belief.confidence if belief else None,
        category=(belief.category or "") if belief else "",
        at=record.when(),
        advice=[(words, text) for words, text in _advice(record) if text],
        evidence=_evidence(belief, episodes) if belief else [],
        history=history,
        links=links,
        files=sorted({cited.path for cited in belief.citations}) if belief else [],
    )


def _advice(record: Memory) -> list[tuple[str, str]]:
    if isinstance(record, Pattern):
        given = [("When", condition) for condition in record.conditions]
        approaches = [("Do", record.correct_approach), ("Don't", record.incorrect_approach)]
        return [*given, *((words, text or "") for words, text in approaches)]
    if isinstance(record, AntiPattern):
        done = [("Do", resolution.do) for resolution in record.resolutions]
        return [("Do", record.prevention or ""), *done]  # the title says why
    return [("Steps", record.body)] if isinstance(record, Skill) else []


def _evidence(belief: Belief, episodes: Mapping[str, Episode]) -> list[SharedEvidence]:
    supporting = [(name, "for") for name in belief.episodes_for()]
    found = [*supporting, *((name, "against") for name in belief.episodes_against())]
    return [_piece(belief, name, speaks, episodes.get(name)) for name, speaks in found]


def _piece(belief: Belief, name: str, speaks: str, episode: Episode | None) -> SharedEvidence:
    if episode is not None:
        told = (episode.date, episode.agent or "", episode.outcome, episode.goal)
        return SharedEvidence(name, speaks, *told)
    mark = belief.evidence.episodes.get(name)
    if mark is None:
        return SharedEvidence(name, speaks, "", "", "", "")
    return SharedEvidence(name, speaks, mark.day or "", mark.agent or "", mark.outcome or "", "")


def _links(records: Iterable[Memory]) -> dict[str, list[SharedLink]]:
    titles = {record.id: record.title() for record in records}
    found: dict[str, list[SharedLink]] = defaultdict(list)
    for record in records:
        for edge in record.edges():
            if edge.target in titles and edge.target != record.id:
                words = edge.relation.replace("_", " ")
                there = SharedLink(edge.target, titles[edge.target], words, is_outgoing=True)
                back = SharedLink(record.id, titles[record.id], words, is_outgoing=False)
                found[record.id].append(there)
                found[edge.target].append(back)
    return found


def _changes(workspace: OpenWorkspace) -> dict[str, list[SharedChange]]:
    """The commits that changed each memory; none in a folder without git."""
    found: dict[str, list[SharedChange]] = defaultdict(list)
    try:
        steps = log(workspace, None, _COMMITS)
    except (GitFailed, NoHistory):
        return found
    for step in steps:
        for shift in step.shifts:
            change = SharedChange(step.commit[:10], step.at, shift.what, list(shift.details))
            found[shift.id].append(change)
    return found


def _clean(value: Any) -> Any:
    """The same value with secrets replaced in every text."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_clean(part) for part in value]
    if isinstance(value, tuple):
        parts = map(_clean, value)
        return type(value)._make(parts) if hasattr(value, "_make") else tuple(parts)
    return value
