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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from loki_memory.browse import check_filters
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
from loki_memory.home import Home, opened_layout, parsed, user_home
from loki_memory.homes import Homes
from loki_memory.models.kinds import Kind

if TYPE_CHECKING:  # pydantic costs 50 ms: only what reads or writes records pays for it
    from loki_memory.browse import Browse
    from loki_memory.browse.doctor import Diagnosis
    from loki_memory.browse.status import Garbage, Status
    from loki_memory.config import Config
    from loki_memory.consolidation.publish import Reach
    from loki_memory.consolidation.run import Report
    from loki_memory.editing.removal import Forgotten
    from loki_memory.files.problem import Problem
    from loki_memory.files.store import Store
    from loki_memory.history import History
    from loki_memory.index.index import Index, Summary
    from loki_memory.ingest import Sessions
    from loki_memory.ingest.run import Ingested
    from loki_memory.injection.context import TaskContext
    from loki_memory.injection.log import Injection
    from loki_memory.install.edits import InstallStep
    from loki_memory.interop import Skills
    from loki_memory.interop.import_memory import Imported
    from loki_memory.journal import Journal
    from loki_memory.models import Episode, Link, Memory, Tombstone
    from loki_memory.recall.result import Recollections
    from loki_memory.sync import Changes, Progress
    from loki_memory.team import Team

_KEPT: dict[Layout, Workspace] = {}  # open in this process, with what they have read
FEW = 100  # episodes at once that are work just done; more are an import


class Workspace:
    """The memory of one project, and every use of it.

    `origin` says who is at the other end (`owner` for a person, `agent` for anything else) and is
    written into every record: it is bound to the way in, never taken from what comes in. `home` is
    the project's `.loki` folder, `homes` that and the user's.
    """

    def __init__(self, home: Home, *, origin: str = "agent") -> None:
        self.home = home
        self.homes = Homes(home)
        self.notices = home.notices
        self.origin = origin

    def __repr__(self) -> str:
        return f"<Workspace {str(self.layout.root)!r} origin={self.origin!r}>"

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
        place = opened_layout(find_workspace(start, (user_home().parent, Path.home())))
        return _KEPT.get(place) or cls(Home(place), origin=origin)

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
        home = Home(adopt(place) if adopt_local else place)
        home.settle_in()
        return cls(home, origin=origin)

    @classmethod
    def user(cls, *, origin: str = "agent") -> Workspace:
        """The user scope: `~/.loki`, or the folder that LOKI_HOME names."""
        return cls(Home.of_user(), origin=origin)

    def flush(self) -> None:
        """Bring index and views up to date with what was written here.

        A write is on disk when it returns, and reading sees it at once. Views are files that all
        writes of a while share, so they follow here, when the workspace is closed, or at the end of
        a command.
        """
        self.homes.flush()

    def close(self) -> None:
        """Flush as far as that takes no waiting, and let go of the index.

        A workspace that is used again opens it again.
        """
        self.homes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- parts ---------------------------------------------------------------------------------

    @property
    def layout(self) -> Layout:
        """The paths of everything."""
        return self.home.layout

    @property
    def config(self) -> Config:
        """The settings that hold here."""
        return self.home.config

    @property
    def store(self) -> Store:
        """The memory files."""
        return self.home.store

    @property
    def index(self) -> Index:
        """The index of the memory files: what it says, without a look at the files."""
        return self.home.index

    @property
    def journal(self) -> Journal:
        """What was shown, opened and found helpful on this machine."""
        return self.home.journal

    @cached_property
    def history(self) -> History:
        """Memory in git: commit, diff, review, blame and their like."""
        from loki_memory.history import History

        return History(self)

    @cached_property
    def team(self) -> Team:
        """The work of several agents: ledgers, handoffs and briefs."""
        from loki_memory.team import Team

        return Team(self)

    @cached_property
    def skills(self) -> Skills:
        """Skills, and their copies where agents look for them."""
        from loki_memory.interop import Skills

        return Skills(self)

    @cached_property
    def browse(self) -> Browse:
        """Topics, timeline, graph and counts."""
        from loki_memory.browse import Browse

        return Browse(self)

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions of agents: what waits to be told, verdicts of gates, pauses."""
        from loki_memory.ingest import Sessions

        return Sessions(self)

    def sync(self, progress: Progress | None = None) -> Changes:
        """Bring the index and the views up to date with the files, and say what changed.

        Needed for files that others wrote, not for what was written here. `progress` is called
        with the number of files read and to be read.
        """
        return self.home.ensure("views", progress=progress)

    def rebuild(self, progress: Progress | None = None) -> Changes:
        """Read every file again and make the index from nothing; then as `sync`."""
        return self.home.rebuild(progress)

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
        self.home.before_write()
        taken = self._taken(records)
        homes: dict[Home, list[Episode]] = {}
        for one in records:
            homes.setdefault(self.homes.of_scope(one.scope), []).append(one)
        ours = homes.get(self.home, []) if len(records) <= FEW else []
        whole = completed(self.home, ours, self.now())
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
        if told and not self.home.is_user:
            from loki_memory.consolidation.learn_now import learn

            try:
                learn(self, told)
            except (
                LokiMemoryError
            ) as error:  # the episodes are stored; the next run learns from them
                self.notices.append(f"stored, and not learned from yet: {error}")

    def ingest(
        self,
        paths: Iterable[str | os.PathLike[str]] | None = None,
        source: str | None = None,
    ) -> Ingested:
        """Tell sessions of agents as episodes: those of this repository, or the files named.

        >>> ws.ingest(["session.jsonl"]).episodes  # doctest: +SKIP
        """
        from loki_memory.ingest.run import ingest

        return ingest(self, paths, source, progress=self.home.progress)

    def valid_episode(self, given: Episode | Mapping[str, Any]) -> Episode:
        """The episode as it would be recorded; raises InvalidRecord."""
        from loki_memory.models import Episode, parse

        if isinstance(given, Episode) and given.origin == self.origin and given.timestamp:
            return given
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
            self.home.ensure("current")
        return {one: path for one in chosen if (path := self.home.record_path(one))}

    def remember(
        self,
        text: str,
        kind: Kind = "fact",
        category: str | None = None,
        scope: str = "project",
        importance: float | str | None = None,
        parent: str | None = None,
        by: str | None = None,
        session: str | None = None,
        at: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Remember a statement: a fact, a pattern, an anti-pattern or a learning.

        `importance` is a number from 0 to 1, or high, medium or low; `by` is who said it;
        `session` and `at` place it in a sequence; `details` are other fields of its kind. What is
        already remembered is not doubled: its fields are brought up to date.

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
                **(details or {}),
            },
            now=self.now(),
            origin=self.origin,
        )
        home = self.homes.prepare(scope, place(record))
        with home.store.change() as change:
            elsewhere = home.index.paths_saying(kind, tombstone_id(record.value()))
            return remember(change, record, elsewhere)

    def _depth_below(self, parent: str | None) -> int | None:
        if parent is None:
            return None
        return (getattr(self.get(parent), "depth", None) or 0) + 1

    def correct(self, memory_id: str, **fields: Any) -> Memory:
        """Change fields of a memory; what they said before is kept in its `history`.

        >>> ws.correct("sem-001", confidence=0.5)  # doctest: +SKIP
        """
        from loki_memory.editing.statements import corrected

        with self.homes.changing(memory_id) as (change, path, record):
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

        with self.homes.changing(memory_id) as (change, path, record):
            new = change.put(with_field(record, "pinned", pinned), path)
        return self._changed(record, new)

    def supersede(self, old: str, new: str) -> Memory:
        """Let a belief take the place of another one; returns the one that stands now.

        `new` is the id of a memory, or what holds from now on in words.

        >>> ws.supersede("fact-7m2c9k4xq1", "US English everywhere").title()  # doctest: +SKIP
        """
        from loki_memory.editing.statements import superseded
        from loki_memory.models.ids import ID

        before = self.get(self.resolve(old))
        superseded(before, "", self.now()[:10])  # a kind that cannot be is refused at once
        if " " not in new.strip() and ID.fullmatch(new.strip()):
            heir = self.get(self.resolve(new))
        else:
            category = getattr(before, "category", None)
            scope = str(getattr(before, "scope", "project"))
            heir = self.remember(new, before.kind, category, scope)
        with self.homes.changing(before.id) as (change, path, record):
            change.put(superseded(record, heir.id, self.now()[:10]), path)
        return self.get(heir.id)

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
        home, _ = self.homes.find(a)
        self.homes.find(b)
        self.home.before_write()
        link = parse(Link, {"from": a, "relation": relation, "to": b, "origin": self.origin})
        with home.store.change() as change:
            return change.create(link)  # type: ignore[return-value]

    def consolidate(
        self,
        day: str | None = None,
        plan_only: bool = False,
        since: str | None = None,
        *,
        commit: bool | None = None,
        reach: Reach = "news",
        learn: bool = True,
    ) -> Report:
        """Turn episodes into anti-patterns, patterns, skills and links, and say what was learned.

        As of the day of the newest episode, unless `day` says otherwise. Run again, it changes
        nothing. `plan_only` writes nothing; `since` (`24h`, `7d` or a date) looks only at what
        newer episodes touch. `commit` also brings published skills in step and commits memory with
        all its evidence; what came of that is among the notices. By default the settings decide
        (`git.commit`, `git.mode`). `reach` says which files that git tracks may be written:
        those with `news`, `all`, also for mere evidence, or `nothing`, for work in the background.
        Without `learn`, lessons that are due are published, and nothing is learned.

        >>> ws.consolidate(commit=True).counts()  # doctest: +SKIP
        """
        from loki_memory.consolidation.run import RunOptions, consolidate

        commits = self.history.is_automatic() if commit is None else commit
        commits = commits and not plan_only and reach != "nothing"
        written: Reach = "all" if commits else reach
        options = RunOptions(day, plan_only, since, self.home.progress, written, learn)
        report = consolidate(self, options)
        if not plan_only and reach != "nothing":
            self.skills.keep_in_step()
        if commits:
            self.notices += self.history.commit().remarks()
        return report

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

        with self.homes.changing(memory_id) as (change, path, record):
            stone = change.put(tombstone(record, why, self.now()[:10], self.origin))
            if isinstance(record, Belief):
                change.put(record.changed(status="rejected"), path)
            return stone  # type: ignore[return-value]

    def forget(self, memory_id: str, why: str = "") -> Forgotten:
        """Remove a memory and what was derived only from it.

        Git keeps its history, and `restore` brings it back on this machine.
        """
        from loki_memory.editing.removal import forget

        self.home.before_write()
        home = self.homes.up_to_date(memory_id)
        forgotten = forget(home.store, home.index, memory_id, why, self.now()[:10])
        home.wrote()
        return forgotten

    def archive(self, memory_id: str) -> str:
        """Take a memory out of index and views; returns where its file is kept."""
        from loki_memory.editing.removal import archive

        with self.homes.changing(memory_id) as (change, path, _):
            kept = archive(change, path)
        for home in self.homes:
            home.wrote()
        return kept

    def restore(self, memory_id: str) -> Memory:
        """Undo an archive, a forget or a reject; a summarised episode is whole again."""
        from loki_memory.editing.removal import is_summary, lift

        self.home.before_write()
        try:
            home: Home | None = self.homes.up_to_date(memory_id)
        except NotFound:
            home = None
        if home is not None and not is_summary(self.get(memory_id)):
            return lift(home.store, home.index, memory_id)
        self._restore_somewhere(memory_id)
        return self.get(memory_id)

    def _restore_somewhere(self, memory_id: str) -> None:
        from loki_memory.editing.removal import restore

        try:
            restore(self.store, memory_id)
        except NotFound:
            if self.homes.user is None:
                raise
            restore(self.homes.user.store, memory_id)

    # -- reading -------------------------------------------------------------------------------

    def get(self, memory_id: str) -> Memory:
        """The memory with this id; raises NotFound.

        >>> ws.get("sem-001").title()  # doctest: +SKIP
        """
        for home in self.homes:
            if found := home.look_up(memory_id):
                return home.as_its_own(parsed(*found))
        home = self.homes.up_to_date(memory_id)
        if found := home.index.body(memory_id):
            return home.as_its_own(parsed(*found))
        raise NotFound(memory_id)

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
            return recall(self.history.as_of(as_of), wish.asked(self.now()), budget=budget)[0]
        found, _ = recall(self, wish.asked(self.now()), budget=budget)
        note_shown(self, "recall", query, found, session)
        return found

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
        *,
        if_used: bool = False,
    ) -> Path:
        """Write what matters now into CONTINUITY.md (of an agent: into its own), and say where.

        Only our block changes, and only if it differs. What the agent noted there under its own
        headings becomes memory first. Without a goal, the last one is taken. With `if_used` a file
        that is there follows a change of memory, and none is made.

        >>> ws.continuity(goal="Add a PATCH endpoint")  # doctest: +SKIP
        """
        from loki_memory.continuity.file import Reader, continuity, continuity_path, refresh

        if if_used:
            refresh(self)
            return continuity_path(self, "")
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
        from loki_memory.continuity.file import Reader, block_text
        from loki_memory.injection.goal import last_goal

        if goal is None:
            goal = last_goal(self, agent or "")
        home = self if as_of is None else self.history.as_of(as_of)
        reader = Reader(session, surface)
        return block_text(home, goal, agent or "", tuple(files), budget, reader)

    def feedback(self, memory_id: str, helpful: bool, episode: str | None = None) -> str:
        """Say whether a memory that was shown helped; returns its id.

        It goes to the journal of this machine, and into the next episode that is recorded.

        >>> ws.feedback("sem-001", helpful=True)  # doctest: +SKIP
        """
        memory_id = self.resolve(memory_id)
        home, _ = self.homes.find(memory_id)
        if episode is not None:
            self.homes.find(episode)
        if not home.journal.feedback(
            memory_id, helpful, episode=episode, session=None, now=self.now()
        ):
            raise StoreFailed(home.layout.local, "the journal cannot be written")
        return memory_id

    def opened(self, memory_id: str, session: str | None = None) -> bool:
        """Note that all of a memory was read: that is a use. False if it cannot be noted."""
        from loki_memory.index.queries import tokens_of

        home, _ = self.homes.find(memory_id)
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
        since = check_filters(kind, status, since)
        return [
            summary
            for home in self.homes.fresh()
            for summary in home.answer(partial(home.lines, kind, status, since, scope))
        ]

    def resolve(self, start: str) -> str:
        """The one id that begins so."""
        for home in self.homes.fresh():
            if home.index.path_of(start):
                return start
        found = [name for home in self.homes.fresh() for name in home.index.ids_starting(start)]
        if len(found) > 1:
            raise Ambiguous(start, found)
        if not found:
            raise NotFound(start)
        return found[0]

    def where(self, memory_id: str) -> Path:
        """The file that a memory stands in."""
        home, path = self.homes.find(memory_id)
        return home.layout.resolve(path)

    def problems(self) -> list[Problem]:
        """What could not be read, or needs a person: file, line, field, reason, what to do."""
        from loki_memory.files.problem import Problem

        self.home.ensure("read")
        return [*self.home.zone_problems(), *(Problem(*row) for row in self.index.problems())]

    def status(self) -> Status:
        """Is all well, and if not, what next."""
        from loki_memory.browse.status import status

        self.home.ensure("read")
        return status(self)

    def injections(self, session: str | None = None) -> list[Injection]:
        """What sessions were told unasked lately, when and why; newest last.

        >>> [told.id for told in ws.injections()[-1].memories]  # doctest: +SKIP
        """
        from loki_memory.injection.log import injections

        return injections(self, session)

    # -- care ------------------------------------------------------------------------------------

    def doctor(self, *, deep: bool = False, fix: bool = False) -> Diagnosis:
        """Examine the workspace; with `fix`, mend what can be mended without loss."""
        from loki_memory.browse.doctor import examine

        return examine(self, deep=deep, fix=fix)

    def gc(self, *, dry_run: bool = False, untrack_sessions: bool = False) -> Garbage:
        """Clear what is no longer needed: litter of killed writers, old indexes, what was
        forgotten long ago. Memory is never touched, but if asked, the episodes of captured
        sessions move out of git to this machine.
        """
        from loki_memory.browse.status import collect_garbage

        garbage = collect_garbage(self, dry_run=dry_run)
        if not untrack_sessions:
            return garbage
        from loki_memory.consolidation import untrack_sessions as sessions

        done = sessions.untrack_sessions(self, dry_run=dry_run)
        return garbage._replace(untracked=done.episodes, completed=done.completed)

    # -- inside --------------------------------------------------------------------------------

    def now(self) -> str:
        """The present moment. LOKI_NOW replaces it, for runs that shall be repeatable."""
        return self.home.now()

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
        since = check_filters(kind, status, since)
        return [
            home.as_its_own(parsed(found, body))
            for home in self.homes.fresh()
            for found, body in home.answer(partial(home.bodies, kind, status, since, scope))
        ]


@contextmanager
def kept(workspace: Workspace) -> Iterator[None]:
    """While this lasts, whoever opens this workspace in this process gets this one."""
    _KEPT[workspace.layout] = workspace
    try:
        yield
    finally:
        del _KEPT[workspace.layout]
