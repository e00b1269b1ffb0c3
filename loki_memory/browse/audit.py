"""Audit a store: which memories are not worth their place, of which class, and what to do.

Every class reuses the judgement of the part that owns it: the lint and the merge of consolidation,
its dispositions of facts that contradict each other, and the citations of code. Nothing is written.
A memory may be of several classes; it counts once in the junk rate. Contradictions do not count
there: both sides are worth reading, and a person decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.consolidation.lint import is_unfounded, vacuous
from loki_memory.consolidation.merge import repeated_statements
from loki_memory.consolidation.reconcile import reconcile
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.index.list_filter import ListFilter
from loki_memory.integrity.citations import content, passage_of
from loki_memory.models import Belief, Episode, Fact, Learning, Memory, Pattern, Skill
from loki_memory.models.confidence import cited, is_produced
from loki_memory.models.fence import LABEL
from loki_memory.models.kinds import USERS_WORDS
from loki_memory.models.lesson_text import objection
from loki_memory.models.text import normal, runs

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_DEAD = frozenset({"superseded", "rejected", "retired", "resolved"})
# Words of a user that are the memory itself: a rule is remembered as it was said.
_MAY_QUOTE = frozenset({"preference", "rule", "decision", "convention"})
_EMPTY_TALK = frozenset({"orders one piece of work", "is a question"})
# Of what was extracted from a session: other reasons to object were wrong in a third of a sample.
_REPORTS = frozenset({"tells what was done", "points to something that is not said"})
_OWN_LINE = re.compile(r"\W{0,4}\[(?:ep|sem|anti|fact|learn|skill)(?:-[\w-]{3,}|: [\w-]+)\] ")
_QUOTED = 0.8  # share of a text's runs of words that a file has
_DOCUMENTS = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")
_FOLDERS = ("docs", "doc")


class AuditFinding(NamedTuple):
    """A memory of a class, and why it is of it."""

    id: str
    kind: str
    status: str
    text: str
    why: str


class AuditClass(NamedTuple):
    """The memories of one class, those that would be believed most first."""

    name: str
    meaning: str
    advice: str
    is_junk: bool  # whether it counts in the junk rate
    memories: int
    rate: float  # share of the memories
    findings: list[AuditFinding]


class Audit(NamedTuple):
    """The state of a store."""

    memories: int  # facts, patterns, anti-patterns, learnings and skills that speak
    junk: int  # those of at least one class that counts
    rate: float  # the junk rate: junk / memories
    classes: list[AuditClass]
    unchecked: list[str]  # classes that could not be looked at, and why


class AuditedStore(NamedTuple):
    """The input of an audit: what is believed, what it rests on, and the project around it."""

    records: list[Memory]
    episodes: list[Episode]
    known: frozenset[str]  # ids of episodes that are here, archived ones too
    files: Mapping[str, str]  # documents of the project that agents and people read
    root: Path | None  # of the project; None if it is not known
    threshold: float = 0.5  # likeness of statements that say the same
    repeats: int = 0  # entries of an import that were exact copies of others


Flag = tuple[Memory, str]
Check = Callable[[AuditedStore], Iterator[Flag]]


def audit(workspace: OpenWorkspace, root: Path | None, *, repeats: int = 0) -> Audit:
    """Audit the project's memory; `root` is the project whose code and documents it is about."""
    from loki_memory.consolidation.snapshot import Thresholds
    from loki_memory.home import parsed

    home = workspace.home
    home.ensure("read")
    found = home.answer(partial(home.bodies, ListFilter()))
    memories = [parsed(kind, body) for kind, body in found]
    episodes = [memory for memory in memories if isinstance(memory, Episode)]
    store = AuditedStore(
        records=[memory for memory in memories if _speaks(memory)],
        episodes=episodes,
        known=frozenset([*(episode.id for episode in episodes), *_archived_ids(workspace)]),
        files=_documents(root) if root else {},
        root=root,
        threshold=Thresholds.of(workspace.config).merge,
        repeats=repeats,
    )
    return audit_store(store)


def _archived_ids(workspace: OpenWorkspace) -> Iterator[str]:
    from loki_memory.files.scan import archived

    return (Path(path).stem for path in archived(workspace.layout))


def _speaks(memory: Memory) -> bool:
    if not isinstance(memory, Belief):
        return isinstance(memory, Learning | Skill)
    return memory.status not in _DEAD


def audit_store(store: AuditedStore) -> Audit:
    """Look at every memory for every class; the same store gives the same audit."""
    found = {name: _once(check(store)) for name, (check, *_) in _CLASSES.items()}
    total = len(store.records) + store.repeats
    junk = {
        memory.id for name, flags in found.items() if _CLASSES[name].is_junk for memory, _ in flags
    }
    return Audit(
        memories=total,
        junk=len(junk) + store.repeats,
        rate=_rate(len(junk) + store.repeats, total),
        classes=[_class(name, flags, store, total) for name, flags in found.items()],
        unchecked=list(_unchecked(store)),
    )


def _once(flags: Iterable[Flag]) -> list[Flag]:
    """Each memory with its first reason, the worst first: what agents are told most surely."""
    first: dict[str, Flag] = {}
    for flag in flags:
        first.setdefault(flag[0].id, flag)
    return sorted(first.values(), key=lambda flag: (*_standing(flag[0]), flag[0].id))


def _standing(memory: Memory) -> tuple[bool, float]:
    sure = getattr(memory, "confidence", None)
    return getattr(memory, "status", "active") == "candidate", -(0.5 if sure is None else sure)


def _class(name: str, flags: list[Flag], store: AuditedStore, total: int) -> AuditClass:
    about = _CLASSES[name]
    count = len(flags) + (store.repeats if name == "duplicate" else 0)
    findings = [_finding(memory, why) for memory, why in flags]
    rate = _rate(count, total)
    return AuditClass(name, about.meaning, about.advice, about.is_junk, count, rate, findings)


def _finding(memory: Memory, why: str) -> AuditFinding:
    status = str(getattr(memory, "status", "active"))
    return AuditFinding(memory.id, memory.kind, status, " ".join(memory.title().split()), why)


def _rate(count: int, total: int) -> float:
    return round(count / total, 3) if total else 0.0


def _unchecked(store: AuditedStore) -> Iterator[str]:
    if store.root is None:
        yield "citations, because the project's code is not here"
    if not store.files:
        yield "echoes of documents, because the project's are not here"


# -- the classes ---------------------------------------------------------------------------------


def _vacuous(store: AuditedStore) -> Iterator[Flag]:
    for record in store.records:
        if isinstance(record, Skill):
            continue
        reasons = vacuous(record)
        if isinstance(record, Fact | Learning):
            reasons += [reason] if (reason := objection(record.title())) in _EMPTY_TALK else []
        yield from ((record, reason) for reason in reasons)


def _reports(store: AuditedStore) -> Iterator[Flag]:
    """Find sentences that were extracted from a session and hold for that session only."""
    for record in store.records:
        if isinstance(record, Fact) and record.score is not None:
            stated = record.type in USERS_WORDS
            reason = objection(record.statement, is_stated=stated, is_at_place=True)
            if reason in _REPORTS:
                yield record, reason


def _duplicates(store: AuditedStore) -> Iterator[Flag]:
    prose = [record for record in store.records if isinstance(record, Pattern | Fact)]
    for record, other in repeated_statements(prose, store.threshold):
        yield record, f"says nothing that is not in {other.id}"


def _echoes(store: AuditedStore) -> Iterator[Flag]:
    documents = {path: runs(text) for path, text in store.files.items()}
    asked = _asked(store.episodes)
    for record in store.records:
        if _OWN_LINE.match(record.title()) or LABEL in record.title():
            yield record, "repeats a line that memory itself printed"
        if path := _quoted_document(record, documents):
            yield record, f"repeats {path}"
        episode = asked.get(normal(record.title()))
        if episode and getattr(record, "type", None) not in _MAY_QUOTE:
            yield record, f"repeats the prompt of {episode}"


def _asked(episodes: Iterable[Episode]) -> dict[str, str]:
    return {normal(episode.goal): episode.id for episode in episodes}


def _quoted_document(record: Memory, documents: Mapping[str, set[str]]) -> str:
    """The document that has nearly all of a text; empty if none does, or if the text is short."""
    own = runs(record.title())
    for path, known in documents.items() if own and not _is_seeded(record) else ():
        if len(own & known) >= _QUOTED * len(own):
            return path
    return ""


def _is_seeded(record: Memory) -> bool:
    """Check whether a fact was taken from a file of the project on purpose (`loki-mem seed`)."""
    key = (record.model_extra or {}).get("key")
    return isinstance(key, dict) and "seed" in key


def _stale(store: AuditedStore) -> Iterator[Flag]:
    for record in store.records if store.root else ():
        for place in record.citations if isinstance(record, Belief) else ():
            if gone := _gone(store.root, place.path, place.symbol or ""):
                yield record, gone


def _gone(root: Path | None, path: str, symbol: str) -> str:
    data = content(root, path) if root else None
    if data is None:
        return f"cites {path}, which is gone"
    lines = data.decode(errors="replace").splitlines()
    return (
        f"cites {symbol}, which is gone from {path}"
        if symbol and not passage_of(symbol, lines)
        else ""
    )


def _orphans(store: AuditedStore) -> Iterator[Flag]:
    """Find beliefs that were learned and rest on nothing that is here or described in them."""
    for record in store.records:
        if not isinstance(record, Belief):
            continue
        named = {*cited(record), *record.rests_on()}
        if named and named.isdisjoint(store.known | record.evidence.episodes.keys()):
            yield record, f"rests on {_some(named)}, of which nothing is here"
        elif is_produced(record) and not _is_seeded(record) and is_unfounded(record):
            yield record, "was learned, and names no episode"


def _some(names: set[str]) -> str:
    first, *rest = sorted(names)
    return f"{first} and {len(rest)} more" if rest else first


def _contradictions(store: AuditedStore) -> Iterator[Flag]:
    facts = [record for record in store.records if isinstance(record, Fact)]
    steps = {step.id: step for step in reconcile(Snapshot(facts)).steps if step.what == "disputed"}
    speaking = {record.id for record in store.records}
    for record in store.records:
        others = {edge.target for edge in record.edges() if edge.relation == "contradicts"}
        if record.id in steps:
            yield record, steps[record.id].why
        elif rivals := sorted(others & speaking):
            yield record, f"contradicts {rivals[0]}"
        elif getattr(record, "status", "") == "disputed":
            yield record, "is disputed by the evidence"


class _About(NamedTuple):
    check: Check
    meaning: str
    advice: str
    is_junk: bool = True


_CLASSES: dict[str, _About] = {
    "duplicate": _About(
        _duplicates,
        "says nothing that another memory does not say",
        "`loki-mem dedupe --plan`, or `loki-mem supersede ID OTHER`",
    ),
    "echo": _About(
        _echoes,
        "repeats a document of the project, a prompt or memory's own output",
        "`loki-mem forget ID`: agents read it there",
    ),
    "report": _About(
        _reports,
        "tells of the work of one session and helps no other",
        "`loki-mem archive ID`; consolidation does not publish it",
    ),
    "vacuous": _About(
        _vacuous,
        "says nothing that an agent could act on",
        "`loki-mem correct ID` with what is specific, or `loki-mem forget ID`",
    ),
    "stale": _About(
        _stale,
        "cites a file or a symbol that is gone",
        "`loki-mem supersede ID NEW` with what holds now, or `loki-mem archive ID`",
    ),
    "orphan": _About(
        _orphans,
        "was learned from episodes of which nothing is left",
        "`loki-mem remember` it if it is true, else `loki-mem archive ID`",
    ),
    "contradiction": _About(
        _contradictions,
        "cannot hold together with another memory",
        "`loki-mem supersede OLD NEW`, or `loki-mem reject ID --why …`",
        is_junk=False,
    ),
}


# -- the project -----------------------------------------------------------------------------------


def project_around(path: Path) -> Path | None:
    """The repository in which a path lies; None if it lies in none."""
    from loki_memory.files.git_files import git_home

    found = git_home(path)
    return found[0] if found else None


def _documents(root: Path) -> dict[str, str]:
    """The texts that agents load or people read first: instruction files, README, docs."""
    from loki_memory.seed.instruction_files import instruction_paths
    from loki_memory.seed.project_files import ProjectFiles

    files = ProjectFiles(root)
    paths = [*instruction_paths(files), *filter(files.has, _DOCUMENTS)]
    for folder in _FOLDERS:
        names = [name for name in files.names(folder) if name.endswith(".md")]
        paths += [f"{folder}/{name}" for name in names]
    return {path: files.text(path) for path in paths}
