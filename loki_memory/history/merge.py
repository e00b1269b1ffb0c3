"""Merge two versions of a memory that have a common base, field by field.

    sets             the additions of either side, without the removals of either
    counters         the additions of both
    dates            the first start, the last use
    texts            the later correction; the other is listed in `history`
    trust            the least
    status           a rejection wins, then superseded, over live ones
    derived fields   recomputed from the joined evidence: see `merge_belief`

A side that changed nothing has no say. Without a common base the two are joined: nothing counts as
removed.
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
    """Merge two versions of a memory."""
    documents = [version.document() if version else {} for version in (base, ours, theirs)]
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
    """Check if two branches gave one name to two different memories.

    An id that was derived from a key says that they are the same; one that was written by
    hand, such as `ep-2026-01-06-001`, does not.
    """
    if base is not None:
        return False
    if ours.id != theirs.id:
        return True
    is_minted = len(ours.id.rpartition("-")[2]) == MINTED_LENGTH
    return ours.keeps_id and not is_minted and ours.key() != theirs.key()


def told_apart(ours: Memory, theirs: Memory) -> tuple[Memory, Memory]:
    """Order two different memories: the one that keeps the id, and the one that gets a new one.

    The order depends on their content, not on who merges.
    """
    keeps, moves = sorted(
        (ours, theirs), key=lambda record: sha256(comparable_bytes(record.document())).digest()
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
    """Merge a learning; a side that left its words alone has no say about their origin."""
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
_SUMMARY = "summary"  # the `detail` of an episode whose log was shortened
_EPISODE: dict[str, Rule] = {
    **_SHARED,
    **dict.fromkeys(_LOG, elsewhere),
    "context": nested({"constraints": joined, "files_involved": joined}),
    "recalled": keyed(lambda memory: memory["id"]),
    **dict.fromkeys(
        ("errors_encountered", "artifacts_produced", "files_read", "files_modified"), joined
    ),
}


def _episode(versions: Versions) -> Document:
    """Merge an episode; it does not change, but its log may be a summary on one side.

    Where both sides changed the log, the full one is kept: it can be summarised again.
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
    """Take the furthest state that a handoff reached, and the first agent that accepted it."""
    acceptance = _together(versions, _ACCEPTANCE, _accepted, lists=bool)
    state = _together(versions, _STATE, _reached, lists=lambda handoff: "closed_at" in handoff)
    return {**merged(versions, _HANDOFF, stated), **acceptance, **state}


def _accepted(handoff: Document) -> tuple[bool, str]:
    at = handoff.get("accepted_at")
    return (not at, at or "")


def _reached(handoff: Document) -> tuple[int, bool, str]:
    state, at = handoff.get("status") or "open", handoff.get("closed_at")
    return (_STATES.index(state), not at, at or "")


_LEDGER_SETS = ("patterns_learned", "handoffs")


def _ledger(versions: Versions) -> Document:
    """Take the newest checkpoint, and all that either side learned or accepted."""
    names = tuple(sorted({*versions.base, *versions.ours, *versions.theirs} - {"origin"}))
    documents = ({n: version[n] for n in names if n in version} for version in versions.all())
    bare = [_without_sets(version) for version in documents]
    newest = Sides(*bare).settled()
    if newest is CONTESTED:
        newest = max(
            bare[1:],
            key=lambda side: (side.get("last_checkpoint") or "", comparable_bytes(side)),
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
    """Take some fields together from one side, the one that ranks first.

    The fields of the other side are listed in the history if `lists` says so.
    """
    sides = Sides(*({n: version[n] for n in names if n in version} for version in versions.all()))
    won = sides.settled()
    if won is CONTESTED:
        won, lost = sorted(sides[1:], key=lambda side: (rank(side), comparable_bytes(side)))
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
