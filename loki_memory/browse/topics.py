"""Progressive disclosure: topics and recent events, before any memory is opened.

Topics take about 100 tokens, a timeline about 500; then `show` opens one memory. Queries of the
index and the shaping of their results are kept apart; results of several indexes (the project's,
the user's) are joined before they are cut to size. Tokens are estimated as bytes / 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from loki_memory.errors import NotFound
from loki_memory.index import queries
from loki_memory.index.graph import associations
from loki_memory.index.index import Index
from loki_memory.index.queries import TopicMember
from loki_memory.models.text import plural, printable_line, tokens

DECISIONS = ("decision", "decisions", "architecture", "adr")
_ACTIONS, _DECISIONS = 100, 50  # as many as Loki Mode keeps in its timeline
_TITLE = 90  # characters


# -- topics ----------------------------------------------------------------------------------------


class Topic(NamedTuple):
    """Memories that belong together: under one memory, of one category, or of one kind."""

    id: str  # a memory's id, `category:…` or `kind:…`
    title: str
    memories: int
    kinds: dict[str, int]
    tokens: int  # to read all of them
    last: str  # the day of the newest

    def line(self) -> str:
        name = self.title if ":" in self.id else f"[{self.id}] {self.title}"
        number = plural(self.memories, "memory")
        return f"{printable_line(name, _TITLE)}: {number}, {self.tokens:,} tokens"


class Topics(NamedTuple):
    """The topics that fit into a budget, and the totals."""

    topics: list[Topic]
    more: int
    total_memories: int
    total_tokens: int


def topics(index: Index) -> list[Topic]:
    """Every live memory in exactly one topic, so that the counts add up."""
    found = grouped(queries.topic_members(index))
    titles = queries.titles(index, [topic.id for topic in found])
    return [
        topic if ":" in topic.id else topic._replace(title=titles.get(topic.id) or topic.id)
        for topic in found
    ]


def grouped(members: Iterable[TopicMember]) -> list[Topic]:
    """Members by their topic; a topic that is a memory still lacks its title."""
    return [_topic(name, group) for name, group in _groups(members).items()]


def _groups(members: Iterable[TopicMember]) -> dict[str, list[TopicMember]]:
    known = {member.id: member for member in members}
    parents = {member.parent for member in known.values() if member.parent in known}
    groups: dict[str, list[TopicMember]] = {}
    for member in known.values():
        groups.setdefault(_topic_of(member, known, parents), []).append(member)
    return groups


def _topic_of(member: TopicMember, known: dict[str, TopicMember], parents: set[str]) -> str:
    """The top of the tree that it is in, else its category, else its kind."""
    top, climbed = member, {member.id}
    while top.parent in known and top.parent not in climbed:
        top = known[top.parent]
        climbed.add(top.id)
    if top.parent not in known and (top.is_top or top.id in parents):
        return top.id
    category = " ".join(member.category.lower().split())
    return f"category:{category}" if category else f"kind:{member.kind}"


def _topic(name: str, group: list[TopicMember]) -> Topic:
    sort, _, title = name.partition(":")
    kinds: dict[str, int] = {}
    for member in group:
        kinds[member.kind] = kinds.get(member.kind, 0) + 1
    return Topic(
        id=name,
        title=f"{title}s" if sort == "kind" else title,
        memories=len(group),
        kinds=dict(sorted(kinds.items())),
        tokens=sum(member.tokens for member in group),
        last=max(member.day for member in group),
    )


def listed_topic(index: Index, name: str) -> Branch | None:
    """The memories of a category or a kind, by the name under which `topics` lists it."""
    wanted = name.casefold()
    for topic_id, members in _groups(queries.topic_members(index)).items():
        title = _topic(topic_id, members).title
        if ":" in topic_id and wanted in {topic_id.casefold(), title.casefold()}:
            return _listed_branch(index, topic_id, title, members)
    return None


def _listed_branch(index: Index, topic_id: str, title: str, members: list[TopicMember]) -> Branch:
    titles = queries.titles(index, [member.id for member in members])
    newest = sorted(members, key=lambda member: (member.day, member.id), reverse=True)
    children = [Branch(m.id, m.kind, titles.get(m.id) or m.id, 0, []) for m in newest]
    return Branch(topic_id, "topic", title, len(children), children)


def overview(found: Iterable[Topic], budget: int) -> Topics:
    """Choose topics of one or several indexes, stated ones first, then the largest."""
    joined: dict[str, Topic] = {}
    for topic in found:
        joined[topic.id] = _both(joined[topic.id], topic) if topic.id in joined else topic
    order = sorted(joined.values(), key=lambda topic: (":" in topic.id, -topic.tokens, topic.id))
    shown = list(_fitting(order, [tokens(topic.line()) for topic in order], budget))
    return Topics(
        shown,
        len(order) - len(shown),
        sum(topic.memories for topic in order),
        sum(topic.tokens for topic in order),
    )


def _both(a: Topic, b: Topic) -> Topic:
    kinds = {name: a.kinds.get(name, 0) + b.kinds.get(name, 0) for name in {**a.kinds, **b.kinds}}
    return Topic(
        id=a.id,
        title=a.title,
        memories=a.memories + b.memories,
        kinds=dict(sorted(kinds.items())),
        tokens=a.tokens + b.tokens,
        last=max(a.last, b.last),
    )


def _fitting(items: Iterable[Any], costs: Iterable[int], budget: int) -> Iterator[Any]:
    """Yield items from the first on, until one does not fit; the first always does."""
    spent = 0
    for number, (item, cost) in enumerate(zip(items, costs, strict=True)):
        spent += cost
        if spent > budget and number:
            return
        yield item


# -- timeline --------------------------------------------------------------------------------------


class Item(NamedTuple):
    """One item of the timeline, and the memory that it comes from."""

    id: str
    at: str
    agent: str
    text: str
    outcome: str = ""

    def line(self) -> str:
        outcome = self.outcome and f"({self.outcome})"
        parts = (
            self.at[:10],
            self.agent,
            printable_line(self.text, _TITLE),
            outcome,
            f"[{self.id}]",
        )
        return " ".join(part for part in parts if part)


class Timeline(NamedTuple):
    """Events, decisions and the state of all agents; newest first."""

    recent_actions: list[Item]
    key_decisions: list[Item]
    focus: list[Item]
    blockers: list[Item]
    next_up: list[Item]
    more: int = 0  # items that did not fit


def timeline(index: Index, since: str | None, now: str) -> Timeline:
    """The full timeline; `within` cuts it to size."""
    first = since or ""
    ledgers, handoffs = _ledgers(index, first), _handoffs(index, first)
    return Timeline(
        recent_actions=_actions(index, first),
        key_decisions=_decisions(index, first, now),
        focus=[item for ledger in ledgers for item in _focus(*ledger)],
        blockers=[
            *(item for ledger in ledgers for item in _blocked(*ledger)),
            *(item for handoff in handoffs for item in _known_issues(*handoff)),
        ],
        next_up=[
            *(item for handoff in handoffs for item in _waiting(*handoff)),
            *(item for ledger in ledgers for item in _planned(*ledger)),
        ],
    )


def _actions(index: Index, first: str) -> list[Item]:
    return [_item(row) for row in queries.episodes_since(index, first, _ACTIONS)]


def _decisions(index: Index, first: str, now: str) -> list[Item]:
    """Decisions that still hold."""
    rows = queries.decisions_since(index, first, now, DECISIONS, _DECISIONS)
    return [_item(row) for row in rows]


def _ledgers(index: Index, first: str) -> list[tuple[Item, dict[str, Any]]]:
    return [(_item(row), orjson.loads(row.body)) for row in queries.ledgers_since(index, first)]


def _handoffs(index: Index, first: str) -> list[tuple[Item, dict[str, Any]]]:
    """Tasks that are not finished, with the agent that has to act."""
    rows = queries.handoffs_since(index, first)
    found = ((_item(row), orjson.loads(row.body)) for row in rows)
    return [(item._replace(agent=body.get("to_agent") or ""), body) for item, body in found]


def _item(row: queries.TimelineRow) -> Item:
    return Item(row.id, row.at, row.agent, row.title, row.state)


def _focus(ledger: Item, body: dict[str, Any]) -> Iterator[Item]:
    goal = _context(body).get("current_goal") or body.get("current_task")
    yield from (ledger._replace(text=text) for text in _texts(goal))


def _blocked(ledger: Item, body: dict[str, Any]) -> Iterator[Item]:
    yield from (ledger._replace(text=text) for text in _texts_in(body, "blocked_by", "blockers"))


def _planned(ledger: Item, body: dict[str, Any]) -> Iterator[Item]:
    yield from (ledger._replace(text=text) for text in _texts_in(body, "next_up", "next_steps"))


def _known_issues(handoff: Item, body: dict[str, Any]) -> Iterator[Item]:
    issues = _texts(_context(body).get("known_issues"))
    yield from (handoff._replace(text=text, outcome="") for text in issues)


def _waiting(handoff: Item, body: dict[str, Any]) -> Iterator[Item]:
    """A handoff that no agent has accepted, and its tests to do."""
    if handoff.outcome == "open":
        done = _texts(_context(body).get("what_was_done")) or [handoff.text]
        yield handoff._replace(text=f"take over: {done[0]}")
    to_test = _texts(_context(body).get("needs_testing"))
    yield from (handoff._replace(text=f"test: {text}", outcome="") for text in to_test)


def _texts_in(body: dict[str, Any], *names: str) -> list[str]:
    """Fields that agents add to a ledger, at its top or in its context."""
    places = (body, _context(body))
    return [text for place in places for name in names for text in _texts(place.get(name))]


def _context(body: dict[str, Any]) -> dict[str, Any]:
    context = body.get("context")
    return context if isinstance(context, dict) else {}


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str) and text.strip()]


# The share of the budget for each part of a timeline; the next part may use the rest of one.
_SHARES = {
    "blockers": 0.2,
    "focus": 0.15,
    "next_up": 0.15,
    "key_decisions": 0.2,
    "recent_actions": 0.3,
}


def within(found: Iterable[Timeline], budget: int) -> Timeline:
    """Join timelines of one or several indexes, and cut them to a budget."""
    timelines, parts = list(found), {}
    left, more = 0.0, 0
    for name, share in _SHARES.items():
        items = [item for timeline in timelines for item in getattr(timeline, name)]
        items.sort(key=lambda item: item.at, reverse=True)
        costs = [tokens(item.line()) for item in items]
        left += share * budget
        parts[name] = list(_fitting(items, costs, int(left)))
        left -= sum(costs[: len(parts[name])])
        more += len(items) - len(parts[name])
    return Timeline(**parts, more=more)


# -- trees -----------------------------------------------------------------------------------------


class Branch(NamedTuple):
    """A memory in a tree, and its children."""

    id: str
    kind: str
    title: str
    below: int  # memories below it, at any depth
    children: list[Branch]


def branch(index: Index, memory_id: str, depth: int) -> Branch:
    """The tree below a memory. A cycle of parents ends where it would begin again."""
    return _branch(index, memory_id, depth, frozenset())


def _branch(index: Index, memory_id: str, depth: int, above: frozenset[str]) -> Branch:
    found = queries.heading(index, memory_id)
    if found is None:
        raise NotFound(memory_id)
    above |= {memory_id}
    names = [name for name in beside(index, memory_id, "children") if name not in above]
    children = [_branch(index, name, depth - 1, above) for name in names] if depth > 0 else []
    below = queries.descendant_count(index, memory_id)
    return Branch(memory_id, found.kind, found.title, below, children)


def beside(index: Index, memory_id: str, way: str) -> list[str]:
    """The ids to which a way leads."""
    ways = {"children": queries.children, "parent": queries.parents, "associations": associations}
    return ways[way](index, memory_id)
