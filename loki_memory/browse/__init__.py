"""Browse memory: topics, graph, status and the doctor."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from loki_memory.errors import InvalidRecord
from loki_memory.models.kinds import FACT_TYPES, KINDS, STATUSES
from loki_memory.models.text import moment

if TYPE_CHECKING:
    from pathlib import Path

    from loki_memory.browse.activity import Activity
    from loki_memory.browse.file_memory import FileMemory, KnownFiles
    from loki_memory.browse.graph import Graph
    from loki_memory.browse.memory_map import Layout, MemoryMap
    from loki_memory.browse.metrics import Metrics
    from loki_memory.browse.status import Stats
    from loki_memory.browse.topics import Branch, PlaceStep, Timeline, Topic, Topics
    from loki_memory.browse.trust import BroughtMemories
    from loki_memory.homes import OpenWorkspace
    from loki_memory.index.index import Summary
    from loki_memory.index.overview import BeliefList
    from loki_memory.injection.told import Injection
    from loki_memory.journal import Uses
    from loki_memory.journal.tally import Economics
    from loki_memory.language.wordings import Wording
    from loki_memory.recall.result import Recollections


TOPICS_BUDGET, TIMELINE_BUDGET = 100, 500  # tokens
WAYS = ("children", "subtree", "parent", "associations", "before", "after")
DRAWINGS = ("text", "dot", "mermaid")
_DEEPEST = 99  # levels of a tree


class Browse:
    """Memory to look around in, as `ws.browse`: topics, what happened lately, links, counts."""

    def __init__(self, workspace: OpenWorkspace) -> None:
        self._workspace = workspace

    def stats(self, *, with_junk: bool = True) -> Stats:
        """Count the memories of each kind, and the share of junk, for which all are examined."""
        from loki_memory.browse.audit import audit
        from loki_memory.browse.status import stats

        workspace = self._workspace
        workspace.home.ensure("read")
        rate = audit(workspace, workspace.layout.root).rate if with_junk else None
        return stats(workspace, rate)

    def brought(self) -> BroughtMemories:
        """List what came with this clone, and tell whether its user trusts it."""
        from loki_memory.browse.trust import brought_memories

        return brought_memories(self._workspace)

    def metrics(self) -> Metrics:
        """Sum the work of the last seven days, and write it to `.loki/metrics`."""
        from loki_memory.browse.metrics import metrics

        return metrics(self._workspace)

    def economics(self, since: str | None = None) -> Economics:
        """Count from the journal what memory has sent here, in tokens, by occasion."""
        return self._workspace.home.journal.economics(
            check_filters(None, None, since, self._workspace.now())
        )

    def topics(self, budget: int = TOPICS_BUDGET) -> Topics:
        """List the topics of memory in about so many tokens.

        >>> [topic.title for topic in ws.browse.topics().topics]  # doctest: +SKIP
        """
        from loki_memory.browse.topics import overview, topics

        found = (home.answer(partial(topics, home.index)) for home in self._workspace.homes.fresh())
        named = (self._named(topic) for each in found for topic in each)
        return overview(named, budget)

    def _named(self, topic: Topic) -> Topic:
        """A topic under the name that a language model gave it, if any did."""
        is_memory = ":" not in topic.id
        name = self.wording(topic.id).name if is_memory else ""
        return topic._replace(title=name) if name else topic

    def wording(self, memory_id: str) -> Wording:
        """Show how the user's language model put a memory; empty if it did not.

        >>> ws.browse.wording("fact-0123456789").text  # doctest: +SKIP
        """
        from loki_memory.language.wordings import OFF, Wording, worded

        if self._workspace.config.text("language.backend") == OFF:
            return Wording()
        record = self._workspace.homes.get(memory_id)
        return worded(self._workspace, record.kind, record.document())

    def timeline(self, since: str | None = None, budget: int = TIMELINE_BUDGET) -> Timeline:
        """Show recent events, decisions that hold, and where every agent stands.

        >>> ws.browse.timeline(since="2026-01-12").blockers  # doctest: +SKIP
        """
        from loki_memory.browse.topics import timeline, within

        now = self._workspace.now()
        since = check_filters(None, None, since, now)
        found = (
            home.answer(partial(timeline, home.index, since, now))
            for home in self._workspace.homes.fresh()
        )
        return within(found, budget)

    def activity(self) -> Activity:
        """Show sessions by day, errors that repeat or stopped after a lesson, and tokens by day.

        >>> [found.line for found in ws.browse.activity().prevention.stopped]  # doctest: +SKIP
        """
        from loki_memory.browse.activity import activity

        return activity(self._workspace)

    def learnings(self, since: str | None = None) -> list[Summary]:
        """List what each day taught, newest first: notes, and anti-patterns by day.

        >>> [learning.title for learning in ws.browse.learnings()]  # doctest: +SKIP
        """
        from loki_memory.index.overview import taught

        start = (check_filters(None, None, since, self._workspace.now()) or "")[:10]
        found = self.summaries(kind="learning", since=since)
        for home in self._workspace.homes.fresh():
            lessons = (lesson.summary() for lesson in home.answer(partial(taught, home.index)))
            found += [lesson for lesson in lessons if lesson.at >= start]
        found.sort(key=lambda line: line.id)
        return sorted(found, key=lambda line: line.at, reverse=True)

    def graph(self, memory_id: str, depth: int = 1, similar: int = 0) -> Graph:
        """Show the links of a memory, or of a file of the project (`file:src/app.ts`).

        With `similar`, also so many memories that are nearest to it in meaning.

        >>> ws.browse.graph("sem-001", depth=2).edges  # doctest: +SKIP
        """
        from loki_memory.browse.graph import linked

        return linked(self._workspace, memory_id, depth, similar)

    def place_of(self, memory_id: str) -> list[PlaceStep]:
        """The topics above a memory, the topmost first; empty if it stands by itself."""
        from loki_memory.browse.topics import place_of

        home = self._workspace.homes.up_to_date(memory_id)
        return home.answer(partial(place_of, home.index, memory_id))

    def neighbours(self, name: str, depth: int = 1) -> MemoryMap:
        """Lay out the neighbourhood of a memory, a file (`file:…`) or a topic (`topic:…`)."""
        from loki_memory.browse.memory_map import around

        return around(self._workspace, name, depth)

    def memory_map(self, layout: Layout = "links", *, with_episodes: bool = False) -> MemoryMap:
        """Lay out all beliefs by their links, or by `meaning`, the same at every run.

        >>> ws.browse.memory_map().communities  # doctest: +SKIP
        """
        from loki_memory.browse.memory_map import whole_map

        return whole_map(self._workspace, layout, with_episodes=with_episodes)

    def files(self, containing: str = "") -> KnownFiles:
        """List the files of the project that memories name."""
        from loki_memory.browse.file_memory import files_known

        return files_known(self._workspace, containing)

    def file(self, path: str) -> FileMemory:
        """Show what memory knows about a file of the project.

        >>> [belief.title for belief in ws.browse.file("src/app.ts").beliefs]  # doctest: +SKIP
        """
        from loki_memory.browse.file_memory import file_memory

        return file_memory(self._workspace, path)

    def drawing(self, graph: Graph, form: str = "text") -> str:
        """Draw a graph for the terminal (`text`), for Graphviz (`dot`) or for `mermaid`."""
        from loki_memory.browse.graph import dot, draw, mermaid

        return {"text": draw, "dot": dot, "mermaid": mermaid}[form](graph)

    def whole_graph(self) -> Graph:
        """All memories of the project, and every link between them."""
        from loki_memory.browse.graph import whole

        home = self._workspace.home
        home.ensure("read")
        return home.answer(partial(whole, home.index))

    def explore(self, topic: str, depth: int = 2) -> Branch:
        """A topic, by its id or as `topics` names it, with what stands below it, down to a depth.

        >>> ws.browse.explore("queue", depth=1).children  # doctest: +SKIP
        """
        from loki_memory.browse.topics import branch, listed_topic
        from loki_memory.index.queries import topic_named

        self._workspace.home.ensure("read")
        memory_id = topic_named(self._workspace.index, topic)
        for home in self._workspace.homes.fresh() if not memory_id else ():
            found = home.answer(partial(listed_topic, home.index, topic))
            if found is not None:
                return found
        memory_id = memory_id or self._workspace.resolve(topic)
        return branch(self._workspace.homes.up_to_date(memory_id).index, memory_id, depth)

    def subtree(self, topic: str) -> list[str]:
        """The ids of all memories below a topic, the nearest first."""
        found: list[str] = []
        waiting = [self.explore(topic, depth=_DEEPEST)]
        while waiting:
            waiting = [child for branch in waiting for child in branch.children]
            found += [branch.id for branch in waiting]
        return found

    def traverse(self, memory_id: str, way: str) -> list[Summary]:
        """From a memory to its `children`, `subtree`, `parent` or `associations` (links).

        `before` and `after` lead to what came before and after it in its session.
        """
        from loki_memory.browse.topics import beside
        from loki_memory.index.list_filter import ListFilter

        if way not in WAYS:
            raise InvalidRecord(f"{way!r} is not a way", advice=f"Use one of: {', '.join(WAYS)}.")
        memory_id = self._workspace.resolve(memory_id)
        home = self._workspace.homes.up_to_date(memory_id)
        found = self.subtree(memory_id) if way == "subtree" else beside(home.index, memory_id, way)
        wanted = set(found)
        return [line for line in home.lines(ListFilter(status="all")) if line.id in wanted]

    def edges(self, memory_id: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """(relation, id) pairs that leave a memory, and that arrive at it."""
        home = self._workspace.homes.up_to_date(memory_id)
        out = [(relation, target) for relation, target, _ in home.index.edges_from(memory_id)]
        back = [(relation, source) for relation, source, _ in home.index.edges_to(memory_id)]
        return out, back

    def summaries(
        self,
        kind: str | None = None,
        status: str | None = None,
        since: str | None = None,
        scope: str | None = None,
    ) -> list[Summary]:
        """List memories as `ws.list` does, one line each, without reading the records."""
        since = check_filters(kind, status, since, self._workspace.now())
        return self._workspace.homes.summaries(kind, status, since, scope)

    def where(self, memory_id: str) -> Path:
        """The file of a memory."""
        home, path = self._workspace.homes.find(memory_id)
        return home.layout.resolve(path)

    def explain(self, query: str, k: int = 5, **options: Any) -> list[dict[str, float]]:
        """Show for each hit of `ws.recall` the parts that add up to its score."""
        return self.search(query, k, **options)[1]

    def search(
        self, query: str, k: int = 5, **options: Any
    ) -> tuple[Recollections, list[dict[str, float]]]:
        """Recall for a person who looks around: with each hit the parts of its score.

        The journal, which tells what agents were shown, does not note it.
        """
        from loki_memory.recall.recall import RecallOptions, recall

        asked = RecallOptions(query, k, **options).as_query(self._workspace.now())
        return recall(self._workspace, asked)

    def beliefs(self, most: int = 50, **wanted: Any) -> BeliefList:
        """List the beliefs that pass the filters of `BeliefFilter`, newest first, candidates last.

        >>> ws.browse.beliefs(kind="fact", type="decision", least=0.8).total  # doctest: +SKIP
        """
        from loki_memory.index.overview import BeliefFilter, BeliefList, belief_list

        since = check_filters(
            wanted.get("kind") or None, None, wanted.get("since") or None, self._workspace.now()
        )
        asked = BeliefFilter(**{**wanted, "since": since or ""})
        homes = self._workspace.homes.fresh("folders")
        found = [home.answer(partial(belief_list, home.index, asked, most)) for home in homes]
        lines = sorted((line for part in found for line in part.lines), key=lambda line: line.id)
        lines.sort(key=lambda line: line.at, reverse=True)
        lines.sort(key=lambda line: line.status == "candidate")
        return BeliefList(lines[:most], sum(part.total for part in found))

    def belief_ids(self, **wanted: Any) -> set[str]:
        """The ids of all beliefs that pass the filters of `beliefs`."""
        from loki_memory.index.overview import BeliefFilter, belief_ids

        asked = BeliefFilter(**wanted)
        homes = self._workspace.homes.fresh("folders")
        found = (home.answer(partial(belief_ids, home.index, asked)) for home in homes)
        return set[str]().union(*found)

    def categories(self, most: int = 50) -> list[str]:
        """The categories of live beliefs, the largest first."""
        from loki_memory.index.overview import largest_categories

        homes = self._workspace.homes.fresh("folders")
        found = (home.answer(partial(largest_categories, home.index, most)) for home in homes)
        return list(dict.fromkeys(name for names in found for name in names))

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
        """The block that `ws.continuity` would write, or would have written; nothing is written."""
        from loki_memory.continuity.file import Reader, block_text
        from loki_memory.history.as_of import workspace_as_of
        from loki_memory.injection.session_state import last_goal

        if goal is None:
            goal = last_goal(self._workspace, agent or "")
        past = self._workspace if as_of is None else workspace_as_of(self._workspace, as_of)
        reader = Reader(session, surface)
        return block_text(past, goal, agent or "", tuple(files), budget, reader)

    def refresh_continuity(self) -> bool:
        """Render CONTINUITY.md for the last goal where it is in use; tells whether it changed."""
        if not (self._workspace.layout.loki / "CONTINUITY.md").exists():
            return False
        from loki_memory.continuity.file import refresh

        return refresh(self._workspace)

    def tell_again(self) -> None:
        """Bring what agents are told in step with memory: views, skills, CONTINUITY.md."""
        from loki_memory.interop import Skills

        self._workspace.flush()
        Skills(self._workspace).keep_in_step()
        self.refresh_continuity()

    def injections(self, session: str | None = None) -> list[Injection]:
        """List the memories that were injected into sessions lately, when and why; newest last.

        >>> [line.id for line in ws.browse.injections()[-1].memories]  # doctest: +SKIP
        """
        from loki_memory.injection.told import injections

        return injections(self._workspace, session)

    def opened(self, memory_id: str, session: str | None = None) -> bool:
        """Note that all of a memory was read: that is a use. False if it cannot be noted."""
        from loki_memory.index.queries import tokens_of

        home, _ = self._workspace.homes.find(memory_id)
        tokens, now = tokens_of(home.index, memory_id), self._workspace.now()
        return home.journal.opened(memory_id, tokens, session=session, now=now)

    def uses(self, memory_id: str) -> Uses:
        """Count how often a memory was opened or found helpful on this machine, and when last."""
        home, _ = self._workspace.homes.find(memory_id)
        return home.journal.uses(memory_id)


def check_filters(kind: str | None, status: str | None, since: str | None, now: str) -> str | None:
    """Refuse a filter that could never fit anything; return `since` as it is compared."""
    for name, value, known in (("kind", kind, (*KINDS, *FACT_TYPES)), ("status", status, STATUSES)):
        if value is not None and value not in known:
            raise InvalidRecord(
                f"{value!r} is not a {name}", advice=f"Use one of: {', '.join(known)}."
            )
    if not since:
        return None
    try:
        return _begin(since, now)
    except ValueError:
        raise InvalidRecord(
            f"{since[:40]!r} is not a day",
            field="since",
            advice='Write a day such as 2026-01-20, today, yesterday or "last week".',
        ) from None


def _begin(since: str, now: str) -> str:
    """The moment with which a period begins: a date, `yesterday`, `last week`; else ValueError."""
    from loki_memory.recall.field_filters import period

    limits = period(since.strip().lower().replace("-", " "), now[:10])
    return limits[0] if limits else moment(since)
