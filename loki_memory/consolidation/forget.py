"""Forget by age: what is old is summarised, what is older and rests under nothing is archived.

A summary keeps the goal, the outcome, every error with its repair, and the moves that were made,
so that everything that is learned from an episode can be learned from its summary too. The episode
as it was written goes to the archive first: git may not have it, and nothing that somebody wrote is
lost. Ages are whole days between the evidence and the day of the snapshot; use plays no part in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from loki_memory.consolidation.kinship import head
from loki_memory.consolidation.sequences import move, runs
from loki_memory.consolidation.snapshot import Changes, Snapshot, Step
from loki_memory.consolidation.sources import days_between, extra, ids_in, is_live
from loki_memory.models import Action, Belief, Episode, Memory, Skill, parse

SUMMARY = "summary"
_IMPORTANT = 0.8  # from here on a memory is kept whatever its age
_REPAIR = 25  # actions after a failure among which its repair is looked for
_FAILED = frozenset({"fail", "failed", "failure", "error", "errored"})
_LONG = 200  # characters of a target that a summary keeps


def forget(snapshot: Snapshot, touched: frozenset[str] | None = None) -> Changes:  # noqa: ARG001 - age comes to all
    """Summaries of old episodes, and what may leave the memory that is searched."""
    gone = {*_old_episodes(snapshot), *_replaced(snapshot)}
    put = {one.id: one for one in _summaries(snapshot) if one.id not in gone}
    orphans = {one.id: one for one in _adopted(snapshot, gone)}
    steps = [Step("archived", one, snapshot.records[one].title()) for one in sorted(gone)]
    steps += [Step("summarised", one.id, one.title(), (one.id,)) for one in put.values()]
    return Changes(tuple({**put, **orphans}.values()), tuple(sorted(gone)), tuple(steps))


def _age(snapshot: Snapshot, moment: str) -> int:
    return days_between(moment, snapshot.day)


def _summaries(snapshot: Snapshot) -> Iterator[Episode]:
    for one in snapshot.episodes:
        if one.id in snapshot.archived:
            continue
        is_due = _age(snapshot, one.timestamp) > snapshot.thresholds.summarise_days
        if is_due and not one.pinned and extra(one, "detail") != SUMMARY:
            short = summary(one)
            if short is not None:
                yield short


def summary(episode: Episode) -> Episode | None:
    """The episode with a log that has each move once, whole where it failed or was repaired.

    None if that says as much in as many words.
    """
    essence = _essence(episode.action_log)
    if essence == episode.action_log:
        return None
    kept = [one.model_dump(mode="json", exclude_unset=True) for one in essence]
    counts = Counter(move(one).head for one in episode.action_log if one.action)
    repeated = {name: n for name, n in sorted(counts.items()) if n > 1}
    short = episode.changed(
        action_log=kept, detail=SUMMARY, **({"action_counts": repeated} if repeated else {})
    )
    return short if _size(short) < _size(episode) else None


def _size(episode: Episode) -> int:
    return len(episode.model_dump_json(exclude_unset=True))


def _essence(actions: Sequence[Action]) -> list[Action]:
    """The first action of each stretch and kind, slim; the first, the last, failures and repairs
    whole; and every step after a failure: how many there were says what belongs to its repair.
    """
    whole = {0, len(actions) - 1, *_failures(actions), *_repairs(actions)}
    whole |= {at for at, one in enumerate(actions) if not one.action}  # who knows what it was
    after = {at for failed in _failures(actions) for at in _soon(actions, failed)}
    numbers = {id(one): at for at, one in enumerate(actions)}
    first = {numbers[id(stretch[0])] for _, stretch in runs(actions)}
    first |= _first_of_kind(actions)
    return [
        one if at in whole else _slim(one, is_short=at not in after)
        for at, one in enumerate(actions)
        if at in whole or at in after or at in first
    ]


def _first_of_kind(actions: Sequence[Action]) -> set[int]:
    """Where each kind of step, by which episodes are found to be alike, is taken first."""
    return set({head(one): at for at, one in reversed([*enumerate(actions)])}.values())


def _failures(actions: Sequence[Action]) -> Iterator[int]:
    for at, one in enumerate(actions):
        if one.error or (one.result or "").lower() in _FAILED:
            yield at


def _soon(actions: Sequence[Action], failed: int) -> range:
    return range(failed + 1, min(failed + 1 + _REPAIR, len(actions)))


def _repairs(actions: Sequence[Action]) -> Iterator[int]:
    """From each failure to the last time soon after that the same was tried.

    What was done in between is the remedy.
    """
    made = [move(one) for one in actions]
    for failed in _failures(actions):
        again = [at for at in _soon(actions, failed) if made[at] == made[failed]]
        yield from range(failed + 1, again[-1] + 1 if again else failed + 1)


def _slim(action: Action, *, is_short: bool) -> Action:
    """What was done to what; the payload goes, and of a long target what is not looked at."""
    target = action.target
    if target and is_short and len(target) > _LONG:
        cut = Action(action=action.action, target=target[:_LONG])
        is_same = (move(cut), head(cut)) == (move(action), head(action))
        target = cut.target if is_same else target
    return Action(action=action.action, **({"target": target} if target else {}))


def _old_episodes(snapshot: Snapshot) -> Iterator[str]:
    """Old, not important, and nothing that lives rests on them."""
    limit = snapshot.thresholds.archive_days
    there = (one for one in snapshot.episodes if one.id not in snapshot.archived)
    old = [one for one in there if _age(snapshot, one.timestamp) > limit]
    if not old:
        return
    held = referenced(snapshot, {one.id for one in old})
    for one in old:
        is_kept = one.pinned or (one.importance or 0) >= _IMPORTANT or one.id in held
        if not is_kept:
            yield one.id


def referenced(snapshot: Snapshot, old: set[str]) -> set[str]:
    """What live records rest on; an old episode holds nobody else."""
    held: set[str] = set()
    for one in snapshot.records.values():
        if one.id not in old and is_live(one):
            held.update(_names(one))
    return held


def _names(record: Memory) -> Iterator[str]:
    """The ids that a record names; what a learned skill was compared with counts too."""
    yield from (edge.target for edge in record.edges())
    yield getattr(record, "from_", None) or record.id
    if isinstance(record, Skill):
        yield from ids_in(record, "loki-compared")


def _replaced(snapshot: Snapshot) -> Iterator[str]:
    """Beliefs that were superseded long ago by one that is there."""
    old = [
        one
        for one in snapshot.of(Belief)
        if one.status == "superseded" and not one.pinned and one.id not in snapshot.archived
    ]
    limit = snapshot.thresholds.superseded_days
    due = [one for one in old if _age(snapshot, one.invalid_at or one.when()) > limit]
    if not due:
        return
    inherited = _inherited(snapshot)
    yield from (one.id for one in due if one.id in inherited)


def _inherited(snapshot: Snapshot) -> set[str]:
    """The ids of beliefs in whose place a live one stands, be it as the heir of an heir."""
    forerunners: dict[str, set[str]] = defaultdict(set)
    for one in snapshot.of(Belief):
        for link in one.links:
            if link.relation == "superseded_by":
                forerunners[link.to].add(one.id)
            elif link.relation == "supersedes":
                forerunners[one.id].add(link.to)
    found: set[str] = set()
    waiting = [one for one in sorted(forerunners) if _lives(one, snapshot)]
    while waiting:
        more = forerunners[waiting.pop()] - found
        found |= more
        waiting += sorted(more)
    return found


def _lives(name: str, snapshot: Snapshot) -> bool:
    heir = snapshot.records.get(name)
    return heir is not None and is_live(heir)


def _adopted(snapshot: Snapshot, gone: set[str]) -> Iterator[Belief]:
    """Children of what goes, under the nearest ancestor that stays."""
    if not gone:
        return
    for child in snapshot.of(Belief):
        if child.id not in gone and child.parent in gone:
            rest = {name: value for name, value in child.document().items() if name != "parent"}
            parent = _ancestor(child, snapshot, gone)
            yield parse(type(child), {**rest, **({"parent": parent} if parent else {})})


def _ancestor(child: Belief, snapshot: Snapshot, gone: set[str]) -> str | None:
    parent, seen = child.parent, {child.id}
    while parent in gone and parent not in seen:
        seen.add(parent)
        parent = getattr(snapshot.records.get(parent), "parent", None)
    return parent if parent not in seen else None
