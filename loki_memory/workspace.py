"""A workspace: the memory of one project, and every use of it as one method.

    from loki_memory import Workspace

    ws = Workspace.init(".")
    ws.remember("Contract tests need the database running", category="testing")
    for memory in ws.list(kind="fact"):
        print(memory.id, memory.title())

Reading first brings the index up to date with the files and never changes memory. Writing takes
over what somebody edited in a view, and is on disk when it returns.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from loki_memory.errors import (
    Ambiguous,
    InvalidRecord,
    LokiMemoryError,
    NotAFolder,
    NotAProject,
    NotFound,
    StoreFailed,
)
from loki_memory.files.layout import Layout, find_workspace
from loki_memory.files.zones import adopt
from loki_memory.home import Changing, Home, opened_layout, parsed, user_home
from loki_memory.index.index import Summary
from loki_memory.models.kinds import KINDS, STATUSES, Kind
from loki_memory.models.text import moment

if TYPE_CHECKING:  # pydantic costs 50 ms: only what reads or writes records pays for it
    from loki_memory.browse.doctor import Diagnosis
    from loki_memory.browse.graph import Graph
    from loki_memory.browse.status import Garbage, Stats, Status
    from loki_memory.browse.topics import Branch, Timeline, Topics
    from loki_memory.consolidation.run import Report
    from loki_memory.economics import Economics
    from loki_memory.editing.removal import Forgotten
    from loki_memory.files.problem import Problem
    from loki_memory.history.belief_diff import Shift
    from loki_memory.history.bisect import BisectTurn
    from loki_memory.history.blame import Blame, BlameStep
    from loki_memory.history.branch_mode import Exchanged
    from loki_memory.history.check import Fault
    from loki_memory.history.commit import Committed
    from loki_memory.history.resolve import Resolved
    from loki_memory.history.revert import Reverted
    from loki_memory.history.review import Review
    from loki_memory.ingest.pause import Pause
    from loki_memory.ingest.replay import Replay
    from loki_memory.ingest.run import Ingested, Waiting
    from loki_memory.injection.context import TaskContext
    from loki_memory.injection.log import Injection
    from loki_memory.install.edits import InstallStep
    from loki_memory.integrity.verify import Verified
    from loki_memory.interop.import_memory import Imported
    from loki_memory.journal import Uses
    from loki_memory.models import Episode, Handoff, Ledger, Link, Memory, Skill, Tombstone
    from loki_memory.recall.result import Recollections
    from loki_memory.team.brief import Brief

_KEPT: dict[Layout, Workspace] = {}  # open in this process, with what they have read
FEW = 100  # episodes at once that are work just done; more are an import


class Workspace(Home):
    """The memory of one project: its parts, and every use of them.

    `origin` says who is at the other end (`owner` for a person, `agent` for anything else) and is
    written into every record: it is bound to the way in, never taken from what comes in.
    """

    def __init__(self, place: Layout, *, origin: str = "agent", is_user: bool = False) -> None:
        super().__init__(place, is_user=is_user)
        self.origin = origin

    # -- finding and making --------------------------------------------------------------------

    @classmethod
    def open(
        cls, path: str | os.PathLike[str] | None = None, *, origin: str = "agent"
    ) -> Workspace:
        """The nearest workspace from `path` upwards (or LOKI_WORKSPACE, or the working directory).

        >>> Workspace.open("src")  # doctest: +SKIP
        """
        try:
            start = Path(path or os.environ.get("LOKI_WORKSPACE") or Path.cwd())
        except FileNotFoundError:
            raise NotAFolder("the working directory") from None
        if not start.is_dir():
            raise NotAFolder(start)
        homes = (user_home().parent, Path.home())
        place = opened_layout(find_workspace(start, homes))
        return _KEPT.get(place) or cls(place, origin=origin)

    @classmethod
    def init(
        cls,
        path: str | os.PathLike[str] = ".",
        *,
        origin: str = "agent",
        adopt_local: bool = False,
    ) -> Workspace:
        """Create `.loki/` in a folder, or complete one that is there. Touches nothing outside it.

        `adopt_local` takes a `.loki/local` into use that was made elsewhere, as in a copied folder.

        >>> Workspace.init("/tmp/project")  # doctest: +SKIP
        """
        root = Path(os.path.abspath(path))
        if os.path.realpath(root) in {
            os.path.realpath(h) for h in (user_home().parent, Path.home())
        }:
            raise NotAProject(root)
        place = opened_layout(root)
        workspace = cls(adopt(place) if adopt_local else place, origin=origin)
        workspace.settle_in()
        return workspace

    @classmethod
    def user(cls, *, origin: str = "agent") -> Workspace:
        """The user scope: `~/.loki`, or the folder that LOKI_HOME names."""
        home = user_home()
        place = Layout(home.parent, home, home / "memory", home / "local", home / "cache")
        return cls(place, origin=origin, is_user=True)

    @cached_property
    def _user(self) -> Workspace | None:
        """The user scope, if there is one and this is not it."""
        if self.is_user or not (user_home() / "memory").is_dir():
            return None
        return Workspace.user(origin=self.origin)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """While this lasts, whoever opens this workspace in this process gets this one."""
        _KEPT[self.layout] = self
        try:
            yield
        finally:
            del _KEPT[self.layout]

    def close(self) -> None:
        """Let go of the index, once it knows what was written here.

        A workspace that is used again opens it again.
        """
        self.leave_in_order()
        self.index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- writing -------------------------------------------------------------------------------

    @overload
    def record(self, episode: Episode | Mapping[str, Any]) -> Episode: ...
    @overload
    def record(self, episode: Iterable[Episode | Mapping[str, Any]]) -> list[Episode]: ...
    def record(
        self, episode: Episode | Mapping[str, Any] | Iterable[Episode | Mapping[str, Any]]
    ) -> Episode | list[Episode]:
        """Record an episode, or many at once, and return what was stored.

        All of them or none: one that is not valid raises InvalidRecord before anything is written.
        The same episode again changes nothing. Where an episode does not say which memories it
        was shown, the journal does (`recalled`); not for an import.

        >>> ws.record({"goal": "Fix the build", "outcome": "success"})  # doctest: +SKIP
        """
        from loki_memory.consolidation.feedback import completed, create
        from loki_memory.models import Episode

        if isinstance(episode, (Episode, Mapping)):
            return self.record([episode])[0]
        records = [self._numbered(one, number) for number, one in enumerate(episode, 1)]
        self.before_write()
        taken = self._taken(records)
        homes: dict[Workspace, list[Episode]] = {}
        for one in records:
            homes.setdefault(self._home(one.scope), []).append(one)
        ours = homes.get(self, []) if len(records) <= FEW else []
        whole = completed(self, ours, self.now())
        stored: dict[int, Episode] = {}
        new: list[Episode] = []
        for home, group in homes.items():
            with home.store.change() as change:
                for one in group:
                    before = len(change)
                    told, path = whole.get(one.id, one), taken.get(one.id, "")
                    stored[id(one)] = create(change, one, told, path)
                    new += [stored[id(one)]] * (len(change) > before)
        if len(new) <= FEW:
            self._learn_from(new)
        return [stored[id(one)] for one in records]

    def _learn_from(self, episodes: Iterable[Episode]) -> None:
        """A lesson is there for the next task: the first phases of consolidation, at once."""
        from loki_memory.consolidation.feedback import teaches

        for one in episodes:
            self.journal.outcome(one.session or one.id, one.outcome, now=self.now())
        told = [one for one in episodes if one.scope == "project" and teaches(one)]
        if told and not self.is_user:
            from loki_memory.consolidation.learn_now import learn

            try:
                learn(self, told)
            except (
                LokiMemoryError
            ) as error:  # the episodes are stored; the next run learns from them
                self.notices.append(f"stored, and not learned from yet: {error}")

    def record_verdict(
        self,
        report: bytes,
        gate: str = "",
        goal: str = "",
        outcome: str = "",
        agent: str = "",
        task: str = "",
    ) -> Episode:
        """Record the verdict of a gate (tests, a linter, a review) from its report.

        JUnit XML, the JSON of ESLint and ruff, SARIF, or a small form of our own. What is given
        besides wins over what the report says.

        >>> ws.record_verdict(Path("junit.xml").read_bytes()).outcome  # doctest: +SKIP
        """
        from loki_memory.ingest.gate import GateOptions, record_verdict

        return record_verdict(self, report, GateOptions(gate, goal, outcome, agent, task))

    def ingest(
        self,
        paths: Iterable[str | os.PathLike[str]] | None = None,
        source: str | None = None,
    ) -> Ingested:
        """Tell sessions of agents as episodes: those of this repository, or the files named.

        >>> ws.ingest(["session.jsonl"]).episodes  # doctest: +SKIP
        """
        from loki_memory.ingest.run import ingest

        return ingest(self, paths, source, progress=self.progress)

    def staged(self) -> list[Waiting]:
        """What was read of sessions and is not told as episodes yet, and why."""
        from loki_memory.ingest.run import staged

        return staged(self)

    def pause(self, span: str | None = None) -> Pause:
        """Capture nothing and inject nothing on this machine, for a while or until `resume`.

        >>> ws.pause("2h").until  # doctest: +SKIP
        """
        from loki_memory.ingest.pause import pause

        return pause(self, span)

    def resume(self) -> bool:
        """Capture and inject again; says whether it was paused."""
        from loki_memory.ingest.pause import resume

        return resume(self)

    def replay(self, episode: str) -> Replay:
        """An episode step by step, and what became of each file that it touched."""
        from loki_memory.ingest.replay import replay

        return replay(self, episode)

    def valid_episode(self, given: Episode | Mapping[str, Any]) -> Episode:
        """The episode as it would be recorded; raises InvalidRecord."""
        from loki_memory.models import Episode, parse

        if not isinstance(given, (Episode, Mapping)):
            raise InvalidRecord("is not a JSON object", advice="An episode is one {…}.")
        document = given.document() if isinstance(given, Episode) else dict(given)
        document.setdefault("timestamp", self.now())
        return parse(Episode, {**document, "origin": self.origin})

    def _numbered(self, given: Episode | Mapping[str, Any], number: int) -> Episode:
        try:
            return self.valid_episode(given)
        except InvalidRecord as error:
            raise error.at(f"episode {number}") from None

    def _taken(self, records: Iterable[Episode]) -> dict[str, str]:
        """Where ids that somebody chose stand already: in files that we would name differently."""
        chosen = [one.id for one in records if one.id != f"{one.prefix}-{one.mint()}"]
        if chosen:
            self.refresh(wait=True)
        return {one: path for one in chosen if (path := self.record_path(one))}

    def remember(
        self,
        text: str,
        kind: Kind = "fact",
        category: str | None = None,
        scope: str = "project",
        importance: float | None = None,
        parent: str | None = None,
        by: str | None = None,
        session: str | None = None,
        at: str | None = None,
    ) -> Memory:
        """Remember a statement: a fact, a pattern, an anti-pattern or a learning.

        `by` is who said it; `session` and `at` place it in a sequence. What is already remembered
        is not doubled: its fields are brought up to date.

        >>> ws.remember("We deploy on Fridays", by="ana", importance=0.9)  # doctest: +SKIP
        """
        from loki_memory.editing.statements import remember, statement
        from loki_memory.files.layout import place
        from loki_memory.models import tombstone_id

        record = statement(
            text,
            kind,
            {
                "category": category,
                "scope": scope,
                "importance": importance,
                "parent": parent,
                "depth": self._depth_below(parent),
                "by": by,
                "session": session,
                "at": at,
            },
            now=self.now(),
            origin=self.origin,
        )
        self.before_write(learning=kind == "learning")
        home = self._home(scope)
        folder, _, name = place(record).rpartition("/")
        home.know_strangers(folder, name)
        with home.store.change() as change:
            elsewhere = home.index.paths_saying(kind, tombstone_id(record.value()))
            stored = remember(change, record, elsewhere)
        home.wrote_in(folder)
        return stored

    def _depth_below(self, parent: str | None) -> int | None:
        if parent is None:
            return None
        return (getattr(self.get(parent), "depth", None) or 0) + 1

    def add_skill(self, skill: Skill | str) -> Skill:
        """Write a skill, given as a Skill or as the Markdown of a SKILL.md."""
        from loki_memory.editing.statements import complete_skill
        from loki_memory.interop.publish_skills import accept

        record = complete_skill(skill, self.origin)
        self.before_write()
        self.know_strangers("skills")
        path = self.place_of(record.id) or ""
        stored: Skill = self.store.write(record, path)  # type: ignore[assignment]
        accept(self.layout, stored)
        return stored

    def correct(self, memory_id: str, **fields: Any) -> Memory:
        """Change fields of a memory; what they said before is kept in its `history`.

        >>> ws.correct("sem-001", confidence=0.5)  # doctest: +SKIP
        """
        from loki_memory.editing.statements import corrected

        with self._changing(memory_id) as (change, path, record):
            new = change.put(corrected(record, fields, self.now()[:10], self.origin), path)
        return self._changed(record, new)

    def _changed(self, record: Memory, new: Memory) -> Memory:
        """What somebody here made of a record; a skill that was accepted stays so."""
        from loki_memory.interop.publish_skills import accept_change
        from loki_memory.models import Skill

        if isinstance(record, Skill) and isinstance(new, Skill):
            accept_change(self.layout, record, new)
        return new

    def pin(self, memory_id: str, pinned: bool = True) -> Memory:
        """Keep a memory from being forgotten by age; `pinned=False` lets go of it."""
        from loki_memory.editing.statements import with_field

        with self._changing(memory_id) as (change, path, record):
            new = change.put(with_field(record, "pinned", pinned), path)
        return self._changed(record, new)

    def link(self, a: str, relation: str, b: str) -> Link:
        """State how one memory relates to another.

        >>> ws.link("sem-001", "supersedes", "sem-012")  # doctest: +SKIP
        """
        from loki_memory.models import RELATIONS, Link, parse

        if relation not in RELATIONS:
            raise InvalidRecord(
                f"{relation!r} is not a relation",
                field="relation",
                advice=f"Use one of: {', '.join(RELATIONS)}.",
            )
        if a == b:
            raise InvalidRecord(f"{a} cannot be linked to itself", advice="Name another memory.")
        home, _ = self._find(a)
        self._find(b)
        self.before_write()
        link = parse(Link, {"from": a, "relation": relation, "to": b, "origin": self.origin})
        with home.store.change() as change:
            return change.create(link)  # type: ignore[return-value]

    def checkpoint(self, ledger: Ledger | Mapping[str, Any]) -> Ledger:
        """Write an agent's ledger, replacing its last one.

        >>> ws.checkpoint({"agent_id": "qa-001", "current_task": "task-7"})  # doctest: +SKIP
        """
        from loki_memory.team.handoffs import checkpoint

        return checkpoint(self, ledger)

    def check_in(self, agent: str, **fields: Any) -> Ledger:
        """Write what is new of an agent into its ledger; what is not told stays as it was.

        >>> ws.check_in("qa-001", current_task="task-7")  # doctest: +SKIP
        """
        from loki_memory.team.handoffs import check_in

        return check_in(self, agent, fields)

    def note_checkpoint(self, agent: str, **fields: Any) -> Ledger:
        """The same from background work: it waits on this machine until a command writes it."""
        from loki_memory.team.ledgers import note_checkpoint

        return note_checkpoint(self, agent, fields)

    def take_over_checkpoints(self) -> list[Ledger]:
        """Write the checkpoints that wait into the ledgers, and say which those are."""
        from loki_memory.team.ledgers import take_over_checkpoints

        return take_over_checkpoints(self)

    def hand_off(
        self, from_agent: str, to_agent: str, what_was_done: str | None = None, **context: Any
    ) -> Handoff:
        """Pass work to another agent; `context` takes artifacts, needs_testing, known_issues, …

        What is not given, and what is recorded besides, is taken from the sender's episodes and
        ledger since its last handoff, from gates and from git.

        >>> ws.hand_off("eng-1", "qa-1", "Added search", needs_testing=["paging"])  # doctest: +SKIP
        """
        from loki_memory.team.handoffs import hand_off

        return hand_off(self, from_agent, to_agent, what_was_done, context)

    def draft_handoff(
        self, from_agent: str, to_agent: str, what_was_done: str | None = None, **context: Any
    ) -> Handoff:
        """The handoff that `hand_off` would write; nothing is written."""
        from loki_memory.team.handoffs import draft

        return draft(self, from_agent, to_agent, what_was_done, context)

    def accept(self, handoff_id: str, by: str | None = None) -> Handoff:
        """Take on a handoff that is open; the receiver's ledger refers to it."""
        from loki_memory.team.handoffs import accept

        return accept(self, self._changing(handoff_id), by)

    def close_handoff(
        self, handoff_id: str, note: str | None = None, status: str = "done"
    ) -> Handoff:
        """Say that a handoff is `done`, or has `expired`."""
        from loki_memory.team.handoffs import close_handoff

        return close_handoff(self, self._changing(handoff_id), note, status)

    def consolidate(
        self,
        day: str | None = None,
        plan_only: bool = False,
        since: str | None = None,
        *,
        commit: bool = False,
    ) -> Report:
        """Turn episodes into anti-patterns, patterns, skills and links, and say what was learned.

        As of the day of the newest episode, unless `day` says otherwise. Run again, it changes
        nothing. `plan_only` writes nothing; `since` (`24h`, `7d` or a date) looks only at what
        newer episodes touch. `commit` also brings published skills in step and commits memory; what
        came of that is among the notices.

        >>> ws.consolidate(commit=True).counts()  # doctest: +SKIP
        """
        from loki_memory.consolidation.run import RunOptions, consolidate

        report = consolidate(self, RunOptions(day, plan_only, since, self.progress))
        if commit and not plan_only:
            self.keep_skills_in_step()
            self.notices += self.commit().remarks()
        return report

    def publish_skills(
        self,
        target: str,
        plan_only: bool = False,
        names: Collection[str] = (),
        every: bool = False,
    ) -> list[InstallStep]:
        """Copy the skills to where agents look: `claude` (.claude/skills) or `agents`.

        Those that were learned or accepted on this machine. `names` accepts some, `every` all.

        >>> ws.publish_skills("claude", names=["run-tests"])  # doctest: +SKIP
        """
        from loki_memory.interop.publish_skills import publish

        return publish(self, target, names=names, every=every, plan_only=plan_only)

    def withdraw_skills(self, target: str, plan_only: bool = False) -> list[InstallStep]:
        """Take the copies of skills away again; those that somebody changed stay."""
        from loki_memory.interop.publish_skills import withdraw

        return withdraw(self, target, plan_only=plan_only)

    def keep_skills_in_step(self) -> list[InstallStep]:
        """Publish again where skills are published; says what changed."""
        from loki_memory.interop.publish_skills import keep_in_step

        return keep_in_step(self)

    def import_memory(
        self,
        source: str,
        path: str | os.PathLike[str] | None = None,
        scope: str = "project",
        plan_only: bool = False,
    ) -> Imported:
        """Take in what another system remembers, as facts of the origin `import`.

        >>> ws.import_memory("claude-memory").known  # doctest: +SKIP
        """
        from loki_memory.interop.import_memory import import_memory

        place = None if path is None else Path(path)
        return import_memory(self, source, place, scope=scope, plan_only=plan_only)

    def tell_back(
        self,
        source: str,
        path: str | os.PathLike[str] | None = None,
        plan_only: bool = False,
    ) -> InstallStep:
        """List this project's memories in a block of another system's index."""
        from loki_memory.interop.import_memory import write_back

        return write_back(self, source, None if path is None else Path(path), plan_only=plan_only)

    # -- taking out and bringing back -------------------------------------------------------------

    def reject(self, memory_id: str, why: str = "") -> Tombstone:
        """Reject a value: it is not recalled any more, and no way in takes it again.

        >>> ws.reject("fact-7m2c9k4xq1", why="we never did that")  # doctest: +SKIP
        """
        from loki_memory.editing.statements import tombstone
        from loki_memory.models import Belief

        with self._changing(memory_id) as (change, path, record):
            stone = change.put(tombstone(record, why, self.now()[:10], self.origin))
            if isinstance(record, Belief):
                change.put(record.changed(status="rejected"), path)
            return stone  # type: ignore[return-value]

    def forget(self, memory_id: str, why: str = "") -> Forgotten:
        """Remove a memory and what was derived only from it.

        Git keeps its history, and `restore` brings it back on this machine.
        """
        from loki_memory.editing.removal import forget

        self.before_write()
        home = self._up_to_date(memory_id)
        forgotten = forget(home.store, home.index, memory_id, why, self.now()[:10])
        home.took_out()
        return forgotten

    def archive(self, memory_id: str) -> str:
        """Take a memory out of index and views; returns where its file is kept."""
        from loki_memory.editing.removal import archive

        with self._changing(memory_id) as (change, path, _):
            kept = archive(change, path)
        self.took_out()
        if self._user:
            self._user.took_out()
        return kept

    def restore(self, memory_id: str) -> Memory:
        """Undo an archive, a forget or a reject; a summarised episode is whole again."""
        from loki_memory.editing.removal import is_summary, lift

        self.before_write()
        try:
            home: Workspace | None = self._up_to_date(memory_id)
        except NotFound:
            home = None
        if home is not None and not is_summary(home.get(memory_id)):
            return lift(home.store, home.index, memory_id)
        self._restore_somewhere(memory_id)
        return self.get(memory_id)

    def _restore_somewhere(self, memory_id: str) -> None:
        from loki_memory.editing.removal import restore

        try:
            restore(self.store, memory_id)
        except NotFound:
            if self._user is None:
                raise
            restore(self._user.store, memory_id)

    # -- reading -------------------------------------------------------------------------------

    def get(self, memory_id: str) -> Memory:
        """The memory with this id; raises NotFound.

        >>> ws.get("sem-001").title()  # doctest: +SKIP
        """
        found = self.look_up(memory_id) or (self._user and self._user.look_up(memory_id))
        if not found:
            home, _ = self._find(memory_id)
            found = home.index.body(memory_id)
        if not found:
            raise NotFound(memory_id)
        return self.as_its_own(parsed(*found))

    def recall(
        self,
        query: str,
        k: int = 5,
        kinds: Iterable[str] | None = None,
        task: str | None = None,
        files: Iterable[str] = (),
        error: str | None = None,
        deep: bool = False,
        scope: str | None = None,
        session: str | None = None,
        budget: int | None = None,
        status: str | None = None,
        under: str | None = None,
        as_of: str | None = None,
    ) -> Recollections:
        """The memories that matter for a question, best first, each with the reasons for it.

        `files` and `error` say what is at hand; `deep` also follows links; `budget` limits the
        tokens of the lines; `under` keeps to what stands below a topic; `as_of` asks the memory of
        a commit, or of the last one until a date. `sem-001`, `ep-2026-01*`, `category:testing` or
        `tag:auth` in the query are looked up exactly. Nothing is returned where nothing is near
        enough (`.filtered`).

        >>> [hit.title for hit in ws.recall("why does the build fail?")]  # doctest: +SKIP
        """
        from loki_memory.recall.recall import RecallOptions, note_shown, recall

        wish = RecallOptions(
            query, k, kinds, task, files, error, deep, scope, session, status, under
        )
        if as_of is not None:
            return recall(self.as_of(as_of), wish.asked(self.now()), budget=budget)[0]
        found, _ = recall(self, wish.asked(self.now()), budget=budget)
        note_shown(self, "recall", query, found, session)
        return found

    def as_of(self, rev: str) -> Workspace:
        """The memory of a commit, or of the last one until a date: to be read, not written.

        >>> ws.as_of("2026-01-20").list(kind="pattern")  # doctest: +SKIP
        """
        from loki_memory.history.as_of import as_of

        return as_of(self, rev)

    def explain(self, query: str, k: int = 5, **options: Any) -> list[dict[str, float]]:
        """How each hit of `recall` came by its score: the parts that were added up."""
        from loki_memory.recall.recall import RecallOptions, recall

        return recall(self, RecallOptions(query, k, **options).asked(self.now()))[1]

    def context(
        self,
        goal: str,
        phase: str | None = None,
        files: Iterable[str] = (),
        error: str | None = None,
        budget: int = 800,
        session: str | None = None,
    ) -> TaskContext:
        """What an agent should know before a task, within a budget of tokens.

        >>> ws.context("Add a PATCH endpoint").avoid_these  # doctest: +SKIP
        """
        from loki_memory.injection.context import context

        return context(self, goal, phase or "", tuple(files), error or "", budget, session)

    def continuity(
        self,
        goal: str | None = None,
        agent: str | None = None,
        files: Iterable[str] = (),
        budget: int | None = None,
        session: str | None = None,
    ) -> Path:
        """Write what matters now into CONTINUITY.md (of an agent: into its own), and say where.

        Only our block changes, and only if it differs. What the agent noted there under its own
        headings becomes memory first. Without a goal, the last one is taken.

        >>> ws.continuity(goal="Add a PATCH endpoint")  # doctest: +SKIP
        """
        from loki_memory.continuity.file import Reader, continuity

        return continuity(self, goal, agent or "", tuple(files), budget, Reader(session))[0]

    def continuity_block(
        self,
        goal: str | None = None,
        agent: str | None = None,
        files: Iterable[str] = (),
        budget: int | None = None,
        as_of: str | None = None,
        session: str | None = None,
        surface: str = "continuity",
    ) -> str:
        """The block that `continuity` would write, or would have written; nothing is written."""
        from loki_memory.continuity.file import Reader, block_text, last_goal

        if goal is None:
            goal = last_goal(self, agent or "")
        home = self if as_of is None else self.as_of(as_of)
        reader = Reader(session, surface)
        return block_text(home, goal, agent or "", tuple(files), budget, reader)

    def resume_brief(self, agent: str, budget: int = 800) -> Brief:
        """What an agent needs to go on where it stood, within a budget of tokens.

        >>> print(ws.resume_brief("eng-001-backend").text())  # doctest: +SKIP
        """
        from loki_memory.team.brief import resume_brief

        return resume_brief(self, agent, budget)

    def handoff_brief(self, handoff: Handoff, budget: int = 800) -> Brief:
        """What whoever takes on a handoff needs, within a budget of tokens."""
        from loki_memory.team.brief import handoff_brief

        return handoff_brief(self, handoff, budget)

    def explore(self, memory_id: str, depth: int = 2) -> Branch:
        """A topic with what stands below it, down to a depth.

        >>> ws.explore("fact-7m2c9k4xq1", depth=1).children  # doctest: +SKIP
        """
        from loki_memory.browse.topics import branch

        memory_id = self.resolve(memory_id)
        return branch(self._up_to_date(memory_id).index, memory_id, depth)

    def traverse(self, memory_id: str, way: str) -> list[Summary]:
        """From a memory to its `children`, its `parent`, or its `associations` (links)."""
        from loki_memory.browse.topics import WAYS, beside

        if way not in WAYS:
            raise InvalidRecord(f"{way!r} is not a way", advice=f"Use one of: {', '.join(WAYS)}.")
        memory_id = self.resolve(memory_id)
        home = self._up_to_date(memory_id)
        wanted = set(beside(home.index, memory_id, way))
        return [one for one in home.lines(None, "all", None, None) if one.id in wanted]

    def feedback(self, memory_id: str, helpful: bool, episode: str | None = None) -> str:
        """Say whether a memory that was shown helped; returns its id.

        It goes to the journal of this machine, and into the next episode that is recorded.

        >>> ws.feedback("sem-001", helpful=True)  # doctest: +SKIP
        """
        memory_id = self.resolve(memory_id)
        home, _ = self._find(memory_id)
        if episode is not None:
            self._find(episode)
        if not home.journal.feedback(
            memory_id, helpful, episode=episode, session=None, now=self.now()
        ):
            raise StoreFailed(home.layout.local, "the journal cannot be written")
        return memory_id

    def uses(self, memory_id: str) -> Uses:
        """How often a memory was opened or found helpful on this machine, and when last."""
        home, _ = self._find(memory_id)
        return home.journal.uses(memory_id)

    def opened(self, memory_id: str, session: str | None = None) -> bool:
        """Note that all of a memory was read: that is a use. False if it cannot be noted."""
        from loki_memory.index.queries import tokens_of

        home, _ = self._find(memory_id)
        tokens = tokens_of(home.index, memory_id)
        return home.journal.opened(memory_id, tokens, session=session, now=self.now())

    def summaries(
        self,
        kind: str | None = None,
        status: str | None = None,
        since: str | None = None,
        scope: str | None = None,
    ) -> list[Summary]:
        """The same as one line each, without reading the records."""
        since = _check_filters(kind, status, since)
        return [
            summary
            for home in self._homes()
            for summary in home.answer(partial(home.lines, kind, status, since, scope))
        ]

    def resolve(self, start: str) -> str:
        """The one id that begins so."""
        for home in self._homes():
            if home.index.path_of(start):
                return start
        found = [name for home in self._homes() for name in home.index.ids_starting(start)]
        if len(found) > 1:
            raise Ambiguous(start, found)
        if not found:
            raise NotFound(start)
        return found[0]

    def where(self, memory_id: str) -> Path:
        """The file that a memory stands in."""
        home, path = self._find(memory_id)
        return home.layout.resolve(path)

    def is_unverified(self, memory_id: str) -> bool:
        """Whether the last `verify` found that nobody vouches for what this memory says."""
        from loki_memory.integrity.unverified import doubts

        home, path = self._find(memory_id)
        doubted = doubts(home.layout).get(path)
        found = home.store.read(path) if doubted else None
        return found is not None and found.etag == doubted

    def edges(self, memory_id: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """(relation, id) pairs that leave a memory, and that arrive at it."""
        home = self._up_to_date(memory_id)
        out = [(relation, target) for relation, target, _ in home.index.edges_from(memory_id)]
        back = [(relation, source) for relation, source, _ in home.index.edges_to(memory_id)]
        return out, back

    def problems(self) -> list[Problem]:
        """What could not be read, or needs a person: file, line, field, reason, what to do."""
        from loki_memory.files.problem import Problem

        self.refresh()
        return [*self.zone_problems(), *(Problem(*row) for row in self.index.problems())]

    def status(self) -> Status:
        """Is all well, and if not, what next."""
        from loki_memory.browse.status import status

        self.refresh()
        return status(self)

    def stats(self) -> Stats:
        """What there is, counted."""
        from loki_memory.browse.status import stats

        self.refresh()
        return stats(self)

    def injections(self, session: str | None = None) -> list[Injection]:
        """What sessions were told unasked lately, when and why; newest last.

        >>> [told.id for told in ws.injections()[-1].memories]  # doctest: +SKIP
        """
        from loki_memory.injection.log import injections

        return injections(self, session)

    def economics(self, since: str | None = None) -> Economics:
        """What reading memory here has cost and saved, in tokens, counted from the journal."""
        return self.journal.economics(_check_filters(None, None, since))

    def topics(self, budget: int = 100) -> Topics:
        """What there is to know, by topic, in about so many tokens.

        >>> [topic.title for topic in ws.topics().topics]  # doctest: +SKIP
        """
        from loki_memory.browse.topics import overview, topics

        found = (home.answer(partial(topics, home.index)) for home in self._homes())
        return overview((topic for each in found for topic in each), budget)

    def timeline(self, since: str | None = None, budget: int = 500) -> Timeline:
        """What happened lately, what was decided, and where everybody stands.

        >>> ws.timeline(since="2026-01-12").blockers  # doctest: +SKIP
        """
        from loki_memory.browse.topics import timeline, within

        since, now = _check_filters(None, None, since), self.now()
        found = (home.answer(partial(timeline, home.index, since, now)) for home in self._homes())
        return within(found, budget)

    def graph(self, memory_id: str, depth: int = 1) -> Graph:
        """What a memory, or a file of the project (`file:src/app.ts`), is linked with.

        >>> ws.graph("sem-001", depth=2).edges  # doctest: +SKIP
        """
        from loki_memory.browse.graph import neighbourhood

        if memory_id.startswith("file:"):
            self.refresh()
            home = self
        else:
            home = self._up_to_date(memory_id)
        return home.answer(partial(neighbourhood, home.index, memory_id, depth))

    # -- history ---------------------------------------------------------------------------------

    def commit(self, agent: str = "", subject: str = "", dry_run: bool = False) -> Committed:
        """Commit what changed in memory and nothing else. Never fails because of git.

        >>> ws.commit().subject  # doctest: +SKIP
        """
        from loki_memory.history.commit import commit

        if not dry_run:
            self.take_over_checkpoints()
        self.sync()
        return commit(self, agent, subject=subject, dry_run=dry_run)

    def pull(self, remote: str = "origin") -> Exchanged:
        """Fetch memory that others shared, and merge it; where it has a branch of its own.

        >>> ws.pull().what  # doctest: +SKIP
        """
        from loki_memory.history.branch_mode import pull

        return pull(self, remote)

    def push(self, remote: str = "origin") -> Exchanged:
        """Share memory with others, after merging theirs; where it has a branch of its own.

        >>> ws.push().what  # doctest: +SKIP
        """
        from loki_memory.history.branch_mode import push

        return push(self, remote)

    def diff(self, span: str | None = None) -> Review:
        """What changed in memory between two points, in terms of belief; None: since HEAD.

        >>> ws.diff("main...HEAD").counts()  # doctest: +SKIP
        """
        from loki_memory.history.review import diff

        return diff(self, span)

    def review(self, since: str | None = None) -> tuple[Review, list[Shift]]:
        """The same up to the working tree, and of that the beliefs that nobody has reviewed."""
        from loki_memory.history.review import open_questions

        return open_questions(self, since)

    def approve(self, memory_id: str) -> Memory:
        """Let a belief stand, as somebody who has read it."""
        from loki_memory.history.review import accept

        return accept(self, self.resolve(memory_id))

    def check(
        self, span: str | None = None, *, continuity_budget: int | None = None
    ) -> list[Fault]:
        """What should not be merged, the gravest first."""
        from loki_memory.history.check import check

        return check(self, span, continuity_budget=continuity_budget)

    def verify(self, *, adopt: Collection[str] | None = None, fix: bool = False) -> Verified:
        """Compare every record with the chain of writes, and citations with the code.

        `adopt` takes for good what was found: of these ids, or all of it if none is named.
        """
        from loki_memory.integrity.verify import verify

        return verify(self, adopt=adopt, fix=fix)

    def verify_news(self, most: int = 3000) -> Verified | None:
        """As `verify`, if anything changed since and there are no more records than this."""
        from loki_memory.integrity.verify import verify_news

        return verify_news(self, most)

    def mend_conflicts(self, *, plan_only: bool = False) -> list[Resolved]:
        """Merge both sides of every memory file that a merge left with a conflict."""
        from loki_memory.history.resolve import resolve

        return resolve(self, plan_only=plan_only)

    def blame(self, memory_id: str) -> Blame:
        """Where a memory comes from: its episodes, their agents, and each commit that changed it.

        >>> [source.agent for source in ws.blame("sem-001").sources]  # doctest: +SKIP
        """
        from loki_memory.history.blame import blame

        return blame(self, self.resolve(memory_id))

    def log(self, memory_id: str | None = None, limit: int | None = None) -> list[BlameStep]:
        """The commits that changed memory, or one memory, newest first, in belief terms."""
        from loki_memory.history.blame import log

        return log(self, memory_id and self.resolve(memory_id), limit)

    def bisect(
        self,
        query: str,
        expect: str | None = None,
        reject: str | None = None,
        between: str | None = None,
        k: int = 5,
    ) -> BisectTurn:
        """The commit at which a recall began to miss a memory, or to bring one up.

        >>> ws.bisect("flaky tests", expect="sem-001").step.subject  # doctest: +SKIP
        """
        from loki_memory.history.bisect import bisect

        return bisect(self, query, expect or reject or "", bool(expect), between, k)

    def revert(self, name: str) -> Reverted:
        """Undo what one run or commit did to beliefs, and commit that; later changes stay."""
        from loki_memory.history.revert import revert

        return revert(self, name)

    # -- care ------------------------------------------------------------------------------------

    def doctor(self, *, deep: bool = False, fix: bool = False) -> Diagnosis:
        """Examine the workspace; with `fix`, mend what can be mended without loss."""
        from loki_memory.browse.doctor import examine

        return examine(self, deep=deep, fix=fix)

    def gc(self, *, dry_run: bool = False) -> Garbage:
        """Clear what is no longer needed: litter of killed writers, old indexes, what was
        forgotten long ago. Memory is never touched.
        """
        from loki_memory.browse.status import collect_garbage

        return collect_garbage(self, dry_run=dry_run)

    # -- inside --------------------------------------------------------------------------------

    def now(self) -> str:
        """The present moment. LOKI_NOW replaces it, for runs that shall be repeatable."""
        from datetime import UTC, datetime

        given = os.environ.get("LOKI_NOW")
        return given or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"

    def _home(self, scope: str) -> Workspace:
        """The workspace that records of a scope are written to."""
        if scope != "user" or self.is_user:
            return self
        home = Workspace.user(origin=self.origin)
        if not home.layout.memory.is_dir():
            home.settle_in()
            self.__dict__.pop("_user", None)
        return home

    def homes(self) -> list[Workspace]:
        """This workspace, then the user scope, as they are."""
        return [home for home in (self, self._user) if home is not None]

    def _homes(self, *, wait: bool = False) -> Iterator[Workspace]:
        """This workspace, then the user scope, each brought up to date."""
        for home in self.homes():
            home.refresh(wait=wait)
            yield home

    def _find(self, memory_id: str) -> tuple[Workspace, str]:
        """Where a memory stands, by the cheapest look that is sure."""
        for home in self.homes():
            path = home.place_of(memory_id)
            if path is not None:
                return home, path
        for home in self._homes(wait=True):
            path = home.index.path_of(memory_id)
            if path is not None:
                return home, path
        raise NotFound(memory_id)

    def _up_to_date(self, memory_id: str) -> Workspace:
        """The workspace of a memory, its whole index up to date: for what follows links."""
        home, _ = self._find(memory_id)
        home.refresh(wait=True)
        return home

    def _changing(self, memory_id: str) -> Changing:
        self.before_write()
        home, path = self._find(memory_id)
        return Changing(home.store, memory_id, path)

    # Last, because its name hides the type of the same name from what follows in this class.

    def list(
        self,
        kind: Kind | None = None,
        status: str | None = None,
        since: str | None = None,
        scope: str | None = None,
    ) -> list[Memory]:
        """Memories, newest first: live ones, or those with a status; `all` gives every one.

        >>> [m.title() for m in ws.list(kind="pattern", since="2026-01-01")]  # doctest: +SKIP
        """
        since = _check_filters(kind, status, since)
        return [
            home.as_its_own(parsed(found, body))
            for home in self._homes()
            for found, body in home.answer(partial(home.bodies, kind, status, since, scope))
        ]


def _check_filters(kind: str | None, status: str | None, since: str | None) -> str | None:
    """Refuse what could never fit anything; returns `since` as it is compared."""
    for name, value, known in (("kind", kind, KINDS), ("status", status, STATUSES)):
        if value is not None and value not in known:
            raise InvalidRecord(
                f"{value!r} is not a {name}", advice=f"Use one of: {', '.join(known)}."
            )
    try:
        return moment(since) if since else None
    except ValueError as error:
        raise InvalidRecord(
            str(error), field="since", advice="Write 2026-01-20 or 2026-01-20T09:00:00Z."
        ) from None
