"""Publish: decide which of what was learned becomes a file that git tracks, and in which form.

Sessions that were captured are private to this machine, and what is learned from them is a
candidate: a file in the local zone. A candidate is published, as a file under `memory/`, when
somebody put it into words, or when it was met in enough sessions and reads as a lesson. What rests
on tracked episodes alone is published as soon as it is learned: every clone can learn it.

A candidate stays beside what was published of it, with all its evidence. A published file is
written again when its words or its status change; mere evidence waits for a commit, so that a pull
finds no file in its way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Literal, NamedTuple

from loki_memory.consolidation.failures import BARE
from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.links import SOURCE
from loki_memory.consolidation.lint import lint
from loki_memory.consolidation.phases import Plan
from loki_memory.consolidation.provenance import DEAD, extra, ids_in
from loki_memory.consolidation.similarity import LEFT_OUT
from loki_memory.consolidation.snapshot import BeliefChange, Snapshot, burst_marks, session_mark
from loki_memory.consolidation.statements import WORTH_TELLING
from loki_memory.files.layout import PRIVATE, place
from loki_memory.models import AntiPattern, Belief, Fact, Link, Memory, Pattern, Skill, parse
from loki_memory.models.diagnostics import rule
from loki_memory.models.kinds import USERS_WORDS
from loki_memory.models.lesson_text import objection
from loki_memory.models.prompt_injection import advises
from loki_memory.models.text import run_hashes

Etags = dict[str, tuple[str, str | None]]  # by id: the file, and its etag when it was read
# Which tracked files a run may write: none, those with news in their words, or all.
Reach = Literal["nothing", "news", "all"]

_LONGEST = 300  # characters of a lesson that others shall read
_MAY_QUOTE = USERS_WORDS | {"decision"}
# A path of one machine, an address of a person.
_PERSONAL = re.compile(
    r"(?:/home/|/Users/|/root/|[A-Z]:\\Users\\)\w|[\w.+-]+@[\w-]+\.[a-z]{2,}(?!\w)", re.IGNORECASE
)
# A hunk, as a remedy tells it.
_CHANGE = re.compile(r"(?:Change|Mended before, e\.g\. in \S+: (?:added)?) ?`.+`")
_SAYS = (
    "statement",
    "pattern",
    "what_fails",
    "why",
    "prevention",
    "correct_approach",
    "incorrect_approach",
    "type",
    "status",
    "origin",
    "invalid_at",
)


class Rewritten(NamedTuple):
    """The etag of a file before and after; None if there is no file."""

    before: str | None
    after: str | None


class Files(NamedTuple):
    """The files that a run has read."""

    shared: Etags  # in git
    local: Etags  # on this machine
    private: frozenset[str]  # episodes that only this machine has
    published: dict[str, Belief]  # by id, where a candidate stands beside it
    once: dict[str, str]  # by id, the day on which a candidate was published
    declined: frozenset[str] = frozenset()  # of these, those that somebody deleted since


class RecordWrite(NamedTuple):
    """A record, and the file that it is written to; without an etag, any or none."""

    path: str
    record: Memory
    etag: str | None


class Placed(NamedTuple):
    """The files that a run writes and archives, and the ids of what they hold."""

    writes: list[RecordWrite]
    archived: list[str]
    ids: frozenset[str]
    published: list[BeliefChange]  # candidates that became files that git tracks
    private: frozenset[str]  # ids of what is written or archived on this machine only


class Publishing:
    """The files to which the records of a plan are written."""

    def __init__(self, snapshot: Snapshot, files: Files, reach: Reach, sessions: int) -> None:
        self._snapshot, self._files = snapshot, files
        self._reach, self._sessions = reach, sessions
        self._made: dict[str, Memory] = {}

    def placed(self, plan: Plan) -> Placed:
        """Return where a plan's records are written, and which files go to the archive."""
        self._made = {record.id: record for record in plan.put}
        writes, gone = [*self._writes(plan)], [*filter(self._archives, plan.archive)]
        ids = frozenset((*(write.record.id for write in writes), *gone))
        archived = [path for name in gone for path in self._files_of(name)]
        published = [*map(_told, filter(self._is_published, writes))]
        tracked = {write.record.id for write in writes if not write.path.startswith(PRIVATE)}
        tracked.update(name for name in gone if name in self._files.shared)
        return Placed(writes, archived, ids, published, ids - tracked)

    def _is_published(self, write: RecordWrite) -> bool:
        name = write.record.id
        is_new = name not in self._files.shared and name in self._files.local
        return is_new and not write.path.startswith(PRIVATE)

    def _writes(self, plan: Plan) -> Iterator[RecordWrite]:
        """The files of a plan's records, and of candidates that are due."""
        made = self._made
        waiting = set(self._files.local) if self._reach != "nothing" else set()
        for name in sorted({*made, *waiting} - {*plan.archive}):
            record = made.get(name) or self._snapshot.records.get(name)
            if isinstance(record, Memory):
                yield from self._write(record, is_new=name in made)
        for name in plan.archive:
            if name in made and self._archives(name):
                yield self._at_its_place(made[name])

    def _files_of(self, name: str) -> list[str]:
        """The file that goes to the archive; a candidate beside it goes with it."""
        found = self._files.shared.get(name) or self._files.local.get(name)
        return [found[0]] if found else []

    def _archives(self, name: str) -> bool:
        return self._reach != "nothing" or name not in self._files.shared

    def _write(self, record: Memory, *, is_new: bool) -> Iterator[RecordWrite]:
        if isinstance(record, Belief):
            yield from self._write_belief(record, is_new=is_new)
        elif isinstance(record, Link):
            if is_new and extra(record, "by") == SOURCE and record.id not in self._files.shared:
                yield self._candidate(record)
            elif is_new and self._reach != "nothing":
                yield self._at_its_place(record)
        elif isinstance(record, Skill) and record.id not in self._files.shared:
            yield from self._write_skill(record, is_new=is_new)
        elif is_new and (self._reach != "nothing" or record.id in self._files.local):
            yield self._at_its_place(record)

    def _write_skill(self, skill: Skill, *, is_new: bool) -> Iterator[RecordWrite]:
        """A skill tells of what it was learned from in the words of prompts: it is not published
        by itself, unless every clone can learn it.
        """
        is_private = not self._files.private.isdisjoint(ids_in(skill, "loki-evidence"))
        is_owned = skill.metadata.get("loki-origin") == "owner"
        if is_new and (is_private or self._reach == "nothing"):
            yield self._candidate(skill)
        if self._reach != "nothing" and (is_owned or not is_private):
            yield RecordWrite(place(skill), skill, None)

    def _at_its_place(self, record: Memory) -> RecordWrite:
        path, etag = self._files.shared.get(record.id) or self._files.local.get(
            record.id, ("", None)
        )
        return RecordWrite(path or place(record), record, etag)

    def _candidate(self, record: Memory, published: str = "") -> RecordWrite:
        path, etag = self._files.local.get(record.id, ("", None))
        published = published or self._files.once.get(record.id, "")
        mark = {"published": published} if published else {}
        private = record.changed(scope="local", **mark)
        return RecordWrite(path or place(private), private, etag)

    def _write_belief(self, belief: Belief, *, is_new: bool) -> Iterator[RecordWrite]:
        known = belief.id in self._files.shared
        if not self._is_private(belief):
            is_open = not known and belief.id not in self._files.declined
            if self._reach == "nothing":
                yield from [self._candidate(belief)] if is_new else ()
            elif is_new or is_open:
                yield self._public(belief)
            return
        is_due = self._reach != "nothing" and not known and self.is_due(belief)
        if is_new or is_due:
            yield self._candidate(belief, self._snapshot.day if is_due else "")
        if is_due or (known and self._reach != "nothing"):
            write = self._public(belief)
            old = self._files.published.get(belief.id) or self._snapshot.records.get(belief.id)
            if is_due or (isinstance(old, Belief) and self._is_news(old, write.record)):
                yield write

    def _is_news(self, old: Belief, new: Memory) -> bool:
        """Check whether a published file is written again."""
        if self._reach == "all":
            return old.document() != new.document()
        return isinstance(new, Belief) and says(old) != says(new)

    def _is_private(self, belief: Belief) -> bool:
        """Check whether a belief rests on anything that only this machine has.

        What `seed` proposed rests on no episode, and on this machine's user to accept it.
        """
        if "seed" in (extra(belief, "key") or ()):
            return True
        return not self._files.private.isdisjoint({*belief.rests_on(), *belief.episodes_against()})

    def _public(self, belief: Belief) -> RecordWrite:
        """A belief as others may read it: it names nothing that only this machine has."""
        path, etag = self._files.shared.get(belief.id, ("", None))
        document = belief.document()
        if isinstance(belief, Fact) and "statement" in (extra(belief, "key") or ()):
            document["key"] = {"statement": belief.statement}  # not another, unpublished wording
        if belief.parent and self._stays_here(belief.parent):
            document.pop("parent", None)
            document.pop("depth", None)
        if belief.links:
            links = [
                link.model_dump(mode="json", exclude_unset=True)
                for link in belief.links
                if not self._stays_here(link.to)
            ]
            document["links"] = links
            if not links:
                del document["links"]
        evidence = self._marks(belief)
        if evidence:
            document["evidence"] = {**document.get("evidence", {}), "episodes": evidence}
        record = parse(type(belief), document)
        return RecordWrite(path or place(record), record, etag)

    def _stays_here(self, name: str) -> bool:
        """Check whether a memory is on this machine only."""
        if name in self._files.shared:
            return False
        record = self._made.get(name) or self._snapshot.records.get(name)
        if not isinstance(record, Belief):
            return name in self._files.private
        return self._is_private(record) and not self.is_due(record)

    def _marks(self, belief: Belief) -> dict[str, dict[str, Any]]:
        """Return what others must know of private episodes to weigh them."""
        found = belief.evidence.model_dump(mode="json", exclude_unset=True).get("episodes", {})
        for name in {*belief.rests_on(), *belief.episodes_against()} & self._files.private:
            episode = self._snapshot.episode(name)
            if episode:
                found[name] = mark(episode, self._snapshot.session_of(name))
        return dict(sorted(found.items()))

    # -- the rule ----------------------------------------------------------------------------------

    def is_due(self, belief: Belief) -> bool:
        """Check that a candidate may be published: worded by a person, or confirmed."""
        if belief.id in self._files.declined or belief.status in DEAD | {"resolved"}:
            return False
        if belief.origin == "owner":
            return True
        if belief.status != "active" or belief.origin in {"import", "external"}:
            return False
        shared = belief.rests_on() - self._files.private
        is_confirmed = shared or len(self._met_in(belief)) >= self._sessions
        return bool(is_confirmed) and not self.objections(belief)

    def _met_in(self, belief: Belief) -> set[str]:
        """The sessions that support a belief."""
        return {*self._snapshot.sessions(belief.rests_on()).values()}

    def objections(self, belief: Belief) -> list[str]:
        """Reasons for which a belief stays on this machine; empty if there are none."""
        found = lint(belief)
        if _is_summary(belief):
            found.append("sums up other beliefs")
        texts = [*_texts(belief)]
        if any(map(_PERSONAL.search, texts)):
            found.append("names a person or a folder of one machine")
        if len(belief.title()) > _LONGEST:
            found.append(f"is longer than {_LONGEST} characters")
        if isinstance(belief, AntiPattern) and not _is_worded(belief):
            found.append("says what fails and not what to do")
        if isinstance(belief, AntiPattern) and _advises(belief):
            found.append("repeats the advice of an output")
        if isinstance(belief, Fact):
            reason = objection(belief.statement, is_stated=belief.type in USERS_WORDS)
            found += [reason] if reason else []
            if belief.score is not None and belief.score < WORTH_TELLING:
                found.append("is hardly worth keeping")
        if isinstance(belief, Pattern) and LEFT_OUT in belief.pattern:
            found.append("leaves out words")
        if getattr(belief, "type", None) not in _MAY_QUOTE and self._quotes(belief, texts):
            found.append("quotes a prompt")
        return found

    def _quotes(self, belief: Belief, texts: Iterable[str]) -> bool:
        """Check whether a text repeats what a user wrote."""
        if extra(belief, "quoted"):
            return True
        return any(not self._asked.isdisjoint(run_hashes(text)) for text in texts)

    @cached_property
    def _asked(self) -> frozenset[str]:
        """Hashes of all that users wrote, in whichever session."""
        found: set[str] = set()
        for episode in self._snapshot.episodes:
            found.update(episode.prompt_hashes or run_hashes(episode.goal))
        return frozenset(found)


def _told(write: RecordWrite) -> BeliefChange:
    record = write.record
    evidence = tuple(record.episodes_for()) if isinstance(record, Belief) else ()
    return BeliefChange("published", record.id, record.title(), evidence, write.path)


def candidate(record: Memory) -> tuple[Memory, str]:
    """A candidate as phases see it, and the day on which it was published; empty if it was not."""
    document = record.document()
    day = str(document.pop("published", ""))
    document.pop("scope", None)
    if isinstance(record, Belief):
        document["scope"] = "project"
    return parse(type(record), document), day


def joined(shared: Belief, here: Belief) -> Belief:
    """A published belief with the evidence that only this machine has."""
    for_ = sorted({*shared.evidence.for_, *here.evidence.for_})
    against = sorted({*shared.evidence.against, *here.evidence.against})
    sources = sorted({*shared.source_episodes, *here.source_episodes})
    fields: dict[str, Any] = {}
    if (for_, against) != (shared.evidence.for_, shared.evidence.against):
        fields["evidence"] = shared.evidence.with_lists(for_, against)
    if sources != shared.source_episodes:
        fields["source_episodes"] = sources
    return shared.changed(**fields) if fields else shared


def mark(episode: EpisodeFeatures, session: str = "") -> dict[str, Any]:
    """Return what others must know of a private episode to weigh it."""
    given = {
        "day": episode.date,
        "agent": episode.agent or "",
        "outcome": episode.outcome,
        "session": session or session_mark(episode),
        "bursts": sorted(burst_marks(episode)),
    }
    return {key: value for key, value in given.items() if value}


def says(belief: Belief) -> dict[str, Any]:
    """The words and the status of a belief, without its evidence and what follows from it."""
    document = belief.document()
    found = {name: document[name] for name in _SAYS if name in document}
    found["do"] = [remedy["do"] for remedy in document.get("resolutions", ())][:1]
    return found


def _is_summary(belief: Belief) -> bool:
    """Check whether a belief repeats others, as topics and parents do."""
    return belief.depth in {0, 1} or "topic" in (extra(belief, "key") or ())


def _is_worded(belief: AntiPattern) -> bool:
    """Check that a remedy explains something; a linter's rule does, and then a change suffices."""
    told = belief.prevention or ""
    is_ruled = bool(rule(belief.what_fails)) and _CHANGE.match(told)
    return bool(told) and bool(is_ruled or not BARE.match(told))


def _advises(belief: AntiPattern) -> bool:
    """Check whether an error is more than a complaint; a linter's rule may say what to use."""
    said = belief.what_fails.partition(" (running ")[0]
    is_printed = bool(extra(belief, "key")) and not rule(belief.what_fails)
    return is_printed and advises(said)


def _texts(belief: Belief) -> Iterator[str]:
    """All that a reader of the file reads."""
    document = belief.document()
    yield from (str(document[name]) for name in _SAYS if document.get(name))
    yield from map(str, document.get("conditions", ()))
    yield from (remedy["do"] for remedy in document.get("resolutions", ()))
