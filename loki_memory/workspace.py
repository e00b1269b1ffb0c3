"""A workspace: the memory of one project, and every use of it as one method.

    from loki_memory import Workspace

    ws = Workspace.init(".")
    ws.remember("Contract tests need the database running", category="testing")
    for memory in ws.list(kind="fact"):
        print(memory.id, memory.title())

Reading first brings the index up to date with the files and never changes memory. Writing takes
over edits of views, and is on disk when it returns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from loki_memory.browse import check_filters
from loki_memory.errors import StoreFailed
from loki_memory.home import Home
from loki_memory.home.place import found_layout, new_layout
from loki_memory.homes import OpenWorkspace
from loki_memory.models.kinds import FactType, Kind

if TYPE_CHECKING:  # pydantic costs 50 ms: only commands that read or write records pay for it
    from pathlib import Path

    from loki_memory.browse import Browse
    from loki_memory.browse.care import Care
    from loki_memory.browse.status import Status
    from loki_memory.consolidation.publish import Reach
    from loki_memory.consolidation.run import Report
    from loki_memory.editing.removal import Forgotten
    from loki_memory.files.layout import Layout
    from loki_memory.history import History
    from loki_memory.ingest import Sessions
    from loki_memory.ingest.run import Ingested
    from loki_memory.injection import Injector
    from loki_memory.injection.context import TaskContext
    from loki_memory.interop import Interop, Skills
    from loki_memory.models import Episode, Link, Memory, Tombstone
    from loki_memory.recall.result import Recollections
    from loki_memory.team import Team

    AnyPath = str | os.PathLike[str]
    AnyEpisode = Episode | Mapping[str, Any]

_KEPT: dict[Layout, Workspace] = {}  # open in this process; `kept` puts them here


class Workspace(OpenWorkspace):
    """The memory of one project, and every use of it.

    `origin` says who uses it (`owner` for a person, `agent` for anything else) and is written into
    every record: it depends on the surface, never on the data that comes in. `home` is the
    project's `.loki` folder, `homes` has it and the user's.
    """

    def __repr__(self) -> str:
        return f"<Workspace {str(self.layout.root)!r} origin={self.origin!r}>"

    # -- opening and closing -------------------------------------------------------------------

    @classmethod
    def open(cls, path: AnyPath | None = None, *, origin: str = "agent") -> Workspace:
        """The nearest workspace from `path`, LOKI_WORKSPACE or the working directory upwards."""
        place = found_layout(path)
        return _KEPT.get(place) or cls(Home(place), origin=origin)

    @classmethod
    def init(
        cls, path: AnyPath = ".", *, origin: str = "agent", adopt_local: bool = False
    ) -> Workspace:
        """Create `.loki/` in a folder, or complete one that is there. Touches nothing outside it.

        `adopt_local` takes a `.loki/local` into use that was made elsewhere, as in a copied folder.
        """
        home = Home(new_layout(path, adopt_local=adopt_local))
        home.settle_in()
        home.note_trust(is_trusted=True)
        return cls(home, origin=origin)

    @classmethod
    def user(cls, *, origin: str = "agent") -> Workspace:
        """The user scope: `~/.loki`, or the folder that LOKI_HOME names."""
        return cls(Home.of_user(), origin=origin)

    # -- uses by feature -----------------------------------------------------------------------

    @cached_property
    def history(self) -> History[Workspace]:
        """Memory in git: commit, diff, review, blame and the like."""
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
    def interop(self) -> Interop:
        """Memory of other systems: import it, and list ours there."""
        from loki_memory.interop import Interop

        return Interop(self)

    @cached_property
    def browse(self) -> Browse:
        """Lists, topics, timeline, graph, counts, and what was injected."""
        from loki_memory.browse import Browse

        return Browse(self)

    @cached_property
    def care(self) -> Care:
        """Problems of files, the doctor, and clearing what is no longer needed."""
        from loki_memory.browse.care import Care

        return Care(self)

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions of agents: those that wait, verdicts of gates, pauses."""
        from loki_memory.ingest import Sessions

        return Sessions(self)

    @cached_property
    def injection(self) -> Injector:
        """The lines that an agent is told unasked: brief, hints, lessons at an error."""
        from loki_memory.injection import Injector

        return Injector(self)

    # -- writing -------------------------------------------------------------------------------

    @overload
    def record(self, episode: AnyEpisode) -> Episode: ...
    @overload
    def record(self, episode: Iterable[AnyEpisode]) -> list[Episode]: ...
    def record(self, episode: AnyEpisode | Iterable[AnyEpisode]) -> Episode | list[Episode]:
        """Record an episode, or many at once, and return what was stored.

        All of them or none: one that is not valid raises InvalidRecord before anything is written.
        The same episode again changes nothing. If an episode does not say which memories it was
        shown (`recalled`), the journal does, except for an import.

        >>> ws.record({"goal": "Fix the build", "outcome": "success"})  # doctest: +SKIP
        """
        from loki_memory.ingest.record import record
        from loki_memory.models import Episode

        if isinstance(episode, (Episode, Mapping)):
            return record(self, [episode])[0]
        return record(self, episode)

    def ingest(self, paths: Iterable[AnyPath] | None = None, source: str | None = None) -> Ingested:
        """Turn sessions of agents into episodes: those of this repository, or the files named."""
        from loki_memory.ingest.run import ingest

        return ingest(self, paths, source, progress=self.home.progress)

    def remember(
        self,
        text: str,
        kind: Kind | FactType = "fact",
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

        `kind` may also be a type of fact: preference, rule, decision, convention or gotcha.
        `importance` is a number from 0 to 1, or high, medium or low; `by` is who said it;
        `session` and `at` place it in a sequence; `details` are other fields of its kind. A
        statement that is known already is not doubled: its fields are updated.

        >>> ws.remember("We deploy on Fridays", by="ana", importance=0.9)  # doctest: +SKIP
        """
        from loki_memory.editing.edits import remember

        fields = {"category": category, "scope": scope, "importance": importance, "parent": parent}
        source = {"by": by, "session": session, "at": at}
        return remember(self, text, kind, {**fields, **source, **(details or {})})

    def correct(self, memory_id: str, **fields: Any) -> Memory:
        """Change fields of a memory; their former values are kept in its `history`."""
        from loki_memory.editing.edits import correct

        return self.skills.keep_accepted(*correct(self, memory_id, fields))

    def pin(self, memory_id: str, pinned: bool = True) -> Memory:
        """Keep a memory from being forgotten by age; `pinned=False` lets go of it."""
        from loki_memory.editing.edits import pin

        return self.skills.keep_accepted(*pin(self, memory_id, pinned))

    def supersede(self, old: str, new: str) -> Memory:
        """Let a belief replace another one; returns the one that holds now.

        `new` is the id of a memory, or a statement in words.

        >>> ws.supersede("fact-7m2c9k4xq1", "US English everywhere").title()  # doctest: +SKIP
        """
        from loki_memory.editing.edits import supersede

        return supersede(self, old, new)

    def link(self, a: str, relation: str, b: str) -> Link:
        """State how one memory relates to another."""
        from loki_memory.editing.edits import link

        return link(self, a, relation, b)

    def reject(self, memory_id: str, why: str = "") -> Tombstone:
        """Reject a value: it is not recalled any more, and no surface takes it again.

        >>> ws.reject("fact-7m2c9k4xq1", why="we never did that")  # doctest: +SKIP
        """
        from loki_memory.editing.edits import reject

        stone = reject(self, memory_id, why)
        self.browse.tell_again()
        return stone

    def forget(self, memory_id: str, why: str = "") -> Forgotten:
        """Remove a memory and what was derived only from it.

        Git keeps its history, and `restore` brings it back on this machine.
        """
        from loki_memory.editing.edits import forget

        forgotten = forget(self, memory_id, why)
        self.browse.tell_again()
        return forgotten

    def archive(self, memory_id: str) -> str:
        """Take a memory out of index and views; returns the path where its file is kept."""
        from loki_memory.editing.edits import archive

        return archive(self, memory_id)

    def restore(self, memory_id: str) -> Memory:
        """Undo an archive, a forget or a reject; a summarised episode is whole again."""
        from loki_memory.editing.edits import restore

        restored = restore(self, memory_id)
        self.browse.tell_again()
        return restored

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
        """Turn episodes into anti-patterns, patterns, skills and links, and report what is new.

        As of the day of the newest episode, unless `day` says otherwise. A second run changes
        nothing. `plan_only` writes nothing; `since` (`24h`, `7d` or a date) looks only at what
        newer episodes touch. `commit` also updates published skills and commits memory with all
        its evidence; the result of that is among the notices. By default the settings decide
        (`git.commit`, `git.mode`). `reach` says which files that git tracks may be written: those
        with `news`, `all`, also for mere evidence, or `nothing`, for work in the background.
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
            self.interop.keep_in_step()
        if commits:
            self.notices += self.history.commit().remarks()
        return report

    # -- reading -------------------------------------------------------------------------------

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
        tokens of the lines; `under` keeps to memories below a topic; `as_of` asks the memory of
        a commit, or of the last one until a date. `sem-001`, `ep-2026-01*`, `category:testing` or
        `tag:auth` in the query are looked up exactly. If nothing is near enough, nothing is
        returned (`.filtered`).

        >>> [hit.title for hit in ws.recall("why does the build fail?")]  # doctest: +SKIP
        """
        from loki_memory.recall.recall import RecallOptions, note_shown, recall

        options = (query, k, kinds, task, files, error, deep, scope, session, status, under)
        asked = RecallOptions(*options).as_query(self.now())
        if as_of is not None:
            return recall(self.history.as_of(as_of), asked, budget=budget)[0]
        found, _ = recall(self, asked, budget=budget)
        note_shown(self, "recall", query, found, session)
        return found

    def context(
        self,
        goal: str,
        phase: str | None = None,
        files: Iterable[str] = (),
        error: str | None = None,
        budget: int = 800,
        session: str | None = None,
    ) -> TaskContext:
        """The memories that an agent should know before a task, within a budget of tokens.

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
        """Write what matters now into CONTINUITY.md (of an agent: into its own); returns its path.

        Only our block changes, and only if it differs. Notes of the agent under its own headings
        become memory first. Without a goal, the last one is taken.

        >>> ws.continuity(goal="Add a PATCH endpoint")  # doctest: +SKIP
        """
        from loki_memory.continuity.file import Reader, continuity

        return continuity(self, goal, agent or "", tuple(files), budget, Reader(session))[0]

    def feedback(self, memory_id: str, helpful: bool, episode: str | None = None) -> str:
        """Say whether a memory that was shown helped; returns its id.

        It goes to the journal of this machine, and into the next episode that is recorded.
        """
        memory_id = self.resolve(memory_id)
        home, _ = self.homes.find(memory_id)
        if episode is not None:
            self.homes.find(episode)
        now = self.now()
        if not home.journal.feedback(memory_id, helpful, episode=episode, session=None, now=now):
            raise StoreFailed(home.layout.local, "the journal cannot be written")
        return memory_id

    def status(self) -> Status:
        """Check if all is well, and if not, what to do next."""
        from loki_memory.browse.status import status

        self.home.ensure("read")
        return status(self)

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
        since = check_filters(kind, status, since, self.now())
        return self.homes.memories(kind, status, since, scope)


def quotable(text: str, longest: int | None = None) -> str:
    """Text that a surface may print or log: without secrets, then cut."""
    from loki_memory.files.redaction import clip, redact

    return redact(text) if longest is None else clip(text, longest)


@contextmanager
def kept(workspace: Workspace) -> Iterator[None]:
    """Let every `Workspace.open` of this workspace in this process return this one."""
    _KEPT[workspace.layout] = workspace
    try:
        yield
    finally:
        del _KEPT[workspace.layout]
