"""Merge two versions of a memory that have a common beginning, field by field.

    sets             what either side added, without what either took away
    counters         what both added
    dates            the first beginning, the last use
    texts            the later correction; the other is listed in `history`
    trust            the least
    status           a rejection wins, then what is superseded, over what lives
    derived fields   as the joined evidence makes them: see `belief_merging`

A side that changed nothing has no say. Without a common beginning the two are joined: nothing
counts as taken away.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, TypeVar

from loki_memory.history.merge_belief import merged_belief, trusted
from loki_memory.history.merge_fields import (
    ABSENT,
    CONTESTED,
    Document,
    Rule,
    Sides,
    Versions,
    comparable_bytes,
    earliest,
    either,
    elsewhere,
    joined,
    keyed,
    merged,
    nested,
    stated,
)
from loki_memory.history.merge_skill import merged_skill
from loki_memory.models import Belief, Memory, Skill, parse
from loki_memory.models.ids import MINTED_LENGTH
from loki_memory.models.kinds import Kind

M = TypeVar("M", bound=Memory)


def merge(base: M | None, ours: M, theirs: M) -> M:
    """The memory that both sides made of it."""
    documents = [one.document() if one else {} for one in (base, ours, theirs)]
    before, mine, other = map(comparable_bytes, documents)
    if mine in {before, other}:
        return theirs
    if other == before:
        return ours
    return parse(type(ours), _document(base, ours, theirs, Versions(*documents)))


def _document(base: Memory | None, ours: Memory, theirs: Memory, versions: Versions) -> Document:
    if isinstance(ours, Belief) and isinstance(theirs, Belief):
        return merged_belief(base if isinstance(base, Belief) else None, ours, theirs, versions)
    if isinstance(ours, Skill):
        return merged_skill(versions)
    return versions.with_history(_KINDS.get(ours.kind, _by_fields)(versions))


def are_strangers(base: Memory | None, ours: Memory, theirs: Memory) -> bool:
    """Whether two branches gave one name to two different memories.

    An id that was derived from a key says that they are the same; one that somebody wrote by
    hand, such as `ep-2026-01-06-001`, does not.
    """
    if base is not None:
        return False
    if ours.id != theirs.id:
        return True
    is_minted = len(ours.id.rpartition("-")[2]) == MINTED_LENGTH
    return ours.keeps_id and not is_minted and ours.key() != theirs.key()


def told_apart(ours: Memory, theirs: Memory) -> tuple[Memory, Memory]:
    """Two strangers: the one that keeps the name, and the one that gets the id of its key.

    Which is which depends on what they say, not on who merges.
    """
    keeps, moves = sorted(
        (ours, theirs), key=lambda one: sha256(comparable_bytes(one.document())).digest()
    )
    return keeps, moves.changed(id="") if moves.id == keeps.id else moves


# -- kinds ---------------------------------------------------------------------------------------

_LINKS = keyed(lambda link: (link.get("relation", "related_to"), link["to"]))
_SHARED: dict[str, Rule] = {
    "tags": joined,
    "links": _LINKS,
    "conflicts": joined,
    "pinned": either,
    "timestamp": earliest,
    "origin": lambda versions, _: trusted(versions),
}


def _by_fields(versions: Versions) -> Document:
    return merged(versions, _SHARED, stated)


def _learning(versions: Versions) -> Document:
    """A lesson whose words one side left alone is as trusted as the other side has it."""
    sides = (
        _differs(versions.base, side, ("lesson", "error", "resolution"))
        for side in (versions.ours, versions.theirs)
    )
    says = (next(sides), next(sides))
    rules: dict[str, Rule] = {**_SHARED, "origin": lambda versions, _: trusted(versions, says)}
    return merged(versions, rules, stated)


def _differs(base: Document, side: Document, names: tuple[str, ...]) -> bool:
    return any(
        comparable_bytes(base.get(name, ABSENT)) != comparable_bytes(side.get(name, ABSENT))
        for name in names
    )


_LOG = ("action_log", "detail", "action_counts")
_SUMMARY = "summary"  # what `detail` says of an episode whose log was shortened
_EPISODE: dict[str, Rule] = {
    **_SHARED,
    **dict.fromkeys(_LOG, elsewhere),
    "context": nested({"constraints": joined, "files_involved": joined}),
    "recalled": keyed(lambda one: one["id"]),
    **dict.fromkeys(
        ("errors_encountered", "artifacts_produced", "files_read", "files_modified"), joined
    ),
}


def _episode(versions: Versions) -> Document:
    """What happened does not change; its log may have become a summary on one side.

    Where both sides changed the log, the whole one is kept: it can be summarised again.
    """
    log = _together(versions, _LOG, _is_summary, lists=lambda log: not _is_summary(log))
    return {**merged(versions, _EPISODE, stated), **log}


def _is_summary(log: Document) -> bool:
    return bool(log.get("detail") == _SUMMARY)


_ACCEPTANCE, _STATE = ("accepted_at", "accepted_by"), ("status", "closed_at")
_STATES = ("done", "expired", "accepted", "open")  # what was done has not expired
_HANDOFF: dict[str, Rule] = {
    **_SHARED,
    **dict.fromkeys((*_ACCEPTANCE, *_STATE), elsewhere),
    "context": nested(
        dict.fromkeys(("artifacts", "needs_testing", "known_issues", "relevant_patterns"), joined)
    ),
}


def _handoff(versions: Versions) -> Document:
    """The furthest state it reached; who accepted it first has it."""
    acceptance = _together(versions, _ACCEPTANCE, _accepted, lists=bool)
    state = _together(versions, _STATE, _reached, lists=lambda one: "closed_at" in one)
    return {**merged(versions, _HANDOFF, stated), **acceptance, **state}


def _accepted(handoff: Document) -> tuple[bool, str]:
    at = handoff.get("accepted_at")
    return (not at, at or "")


def _reached(handoff: Document) -> tuple[int, bool, str]:
    state, at = handoff.get("status") or "open", handoff.get("closed_at")
    return (_STATES.index(state), not at, at or "")


_LEDGER_SETS = ("patterns_learned", "handoffs")


def _ledger(versions: Versions) -> Document:
    """The newest checkpoint, and all that either side learned or took on."""
    names = tuple(sorted({*versions.base, *versions.ours, *versions.theirs} - {"origin"}))
    documents = ({n: one[n] for n in names if n in one} for one in versions.all())
    bare = [_without_sets(one) for one in documents]
    newest = Sides(*bare).settled()
    if newest is CONTESTED:
        newest = max(
            bare[1:], key=lambda one: (one.get("last_checkpoint") or "", comparable_bytes(one))
        )
    origin = trusted(versions)
    document = newest if origin is ABSENT else {**newest, "origin": origin}
    inside = versions.inside("context")
    return _with_sets(document, {name: joined(inside, name) for name in _LEDGER_SETS})


def _without_sets(ledger: Document) -> Document:
    context = ledger.get("context") or {}
    kept = {name: value for name, value in context.items() if name not in _LEDGER_SETS}
    return {**ledger, "context": kept}


def _with_sets(ledger: Document, sets: Document) -> Document:
    there = {name: values for name, values in sets.items() if values is not ABSENT}
    context = {**ledger.pop("context", {}), **there}
    return {**ledger, "context": context} if context else ledger


def _together(
    versions: Versions,
    names: tuple[str, ...],
    rank: Callable[[Document], Any],
    lists: Callable[[Document], bool],
) -> Document:
    """Fields that are taken from one side, all of them: from the one that ranks first.

    What the other side had is listed in the history if it `lists`.
    """
    sides = Sides(*({n: one[n] for n in names if n in one} for one in versions.all()))
    won = sides.settled()
    if won is CONTESTED:
        won, lost = sorted(sides[1:], key=lambda one: (rank(one), comparable_bytes(one)))
        if lists(lost):
            all_of_it = {name: lost.get(name) for name in names}
            versions.overruled.append({"was": all_of_it, "merged": True})
    return dict(won)


_KINDS: dict[Kind, Callable[[Versions], Document]] = {
    "episode": _episode,
    "handoff": _handoff,
    "ledger": _ledger,
    "learning": _learning,
}
