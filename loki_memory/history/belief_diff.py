"""Changes of memory in terms of belief: learned, strengthened, superseded, rejected, …

Two states are compared by id, and each memory that differs gets one shift: a word for the change,
its confidence before and after, the episodes that caused it, and the rest as details. Where several
words would fit, the one that matters more to agents wins: the status, then the text, then the
confidence.

A fact that replaces another one is reported once, as an update of the older; a tombstone is
reported with the belief that it rejects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from loki_memory.history.text_diff import differing, restated, revised, shown_text, traits
from loki_memory.models import (
    KINDS,
    Belief,
    Fact,
    Handoff,
    Kind,
    Learning,
    Ledger,
    Link,
    Memory,
    Skill,
    Tombstone,
    tombstone_id,
)

# In the order of a reader's interest: what is believed now, what no longer is, what weighs
# more or less, and then the work of agents.
WORDS = (
    "learned",
    "added",
    "updated",
    "corrected",
    "revised",
    "contradicted",
    "superseded",
    "retired",
    "rejected",
    "removed",
    "restored",
    "strengthened",
    "weakened",
    "changed",
    "reviewed",
    "archived",
    "opened",
    "accepted",
    "closed",
    "moved",
    "recorded",
)
_NEW = {"episode": "recorded", "ledger": "moved", "tombstone": "rejected"}
_HANDOFFS = {"open": "opened", "accepted": "accepted", "done": "closed", "expired": "closed"}


class Shift(NamedTuple):
    """The change of one memory. `before` and `after` are its confidence."""

    what: str
    kind: Kind
    id: str
    title: str
    before: float | None = None
    after: float | None = None
    caused_by: tuple[str, ...] = ()  # ids of episodes
    details: tuple[str, ...] = ()

    def weight(self) -> str:
        """`0.62 -> 0.81`, or the one confidence that there is; empty if there is none."""
        known = [f"{value:.2f}" for value in (self.before, self.after) if value is not None]
        return " -> ".join(dict.fromkeys(known))


class States(NamedTuple):
    """Records by id, before and after; and which ids went to the archive or came from there."""

    before: Mapping[str, Memory]
    after: Mapping[str, Memory]
    archived: Collection[str]
    unarchived: Collection[str]
    heirs: Mapping[str, str]  # a superseded memory -> its successor
    stones: Mapping[str, Tombstone]  # the tombstones afterwards


def differences(
    before: Mapping[str, Memory],
    after: Mapping[str, Memory],
    *,
    archived: Collection[str] = (),
    unarchived: Collection[str] = (),
) -> list[Shift]:
    """Return the shifts between two states of records, by id, in a fixed order.

    Records that are equal in both may be left out of both. `archived` are ids that are in the
    archive afterwards, `unarchived` ids that were there before.
    """
    stones = {name: record for name, record in after.items() if isinstance(record, Tombstone)}
    states = States(before, after, archived, unarchived, _heirs(before, after), stones)
    names = sorted(before.keys() | after.keys())
    shifts = {name: shift for name in names if (shift := _shift(states, name))}
    return sorted(_without_duplicates(states, shifts), key=_order)


def _order(shift: Shift) -> tuple[int, int, str]:
    return WORDS.index(shift.what), KINDS.index(shift.kind), shift.id


def _without_duplicates(states: States, shifts: Mapping[str, Shift]) -> Iterator[Shift]:
    """Drop tombstones that go with their beliefs, and facts that go with their successors."""
    updates = _updates(states, shifts)
    replaced = {old for olds in updates.values() for old in olds}
    for name, shift in shifts.items():
        if name in updates:
            yield _updated(states, shift, updates[name])
        elif name not in replaced and not _goes_with_its_belief(states, shift, shifts):
            yield shift


def _updates(states: States, shifts: Mapping[str, Shift]) -> dict[str, list[str]]:
    """Map facts to those that they replaced."""
    found: dict[str, list[str]] = {}
    for old, heir in states.heirs.items():
        pair = (states.before.get(old), states.after.get(heir))
        is_new = old in shifts and shifts[old].what == "superseded"
        if is_new and heir in shifts and all(isinstance(record, Fact) for record in pair):
            found.setdefault(heir, []).append(old)
    return found


def _updated(states: States, shift: Shift, olds: Iterable[str]) -> Shift:
    replaced = [states.before[old] for old in sorted(olds)]
    was = [f"was: {shown_text(fact.title())} ({fact.id})" for fact in replaced]
    details = [detail for detail in shift.details if not detail.startswith("supersedes ")]
    return shift._replace(what="updated", before=confidence(replaced[0]), details=(*was, *details))


def _goes_with_its_belief(states: States, shift: Shift, shifts: Mapping[str, Shift]) -> bool:
    stone = states.after.get(shift.id) or states.before.get(shift.id)
    if not isinstance(stone, Tombstone):
        return False
    belief = shifts.get(stone.rejected or "")
    return belief is not None and belief.what == shift.what


# -- one memory --------------------------------------------------------------------------------


def _shift(states: States, name: str) -> Shift | None:
    old, new = states.before.get(name), states.after.get(name)
    if old is None and new is not None:
        return _arrived(states, new)
    if new is None and old is not None:
        return _departed(states, old)
    if old is None or new is None or old == new:
        return None
    return _changed(states, old, new)


def _arrived(states: States, new: Memory) -> Shift:
    evidence = evidence_of(new)
    details = [*_about(states, new), *traits(new)]
    word = "restored" if new.id in states.unarchived else _word_of_new(new, evidence)
    return _shift_of(word, new, (None, confidence(new)), evidence.ids(), details)


def _word_of_new(new: Memory, evidence: ShiftEvidence) -> str:
    if isinstance(new, Handoff):
        return _HANDOFFS[new.state]
    if new.kind in _NEW:
        return _NEW[new.kind]
    if status(new) == "disputed" or (isinstance(new, Link) and new.relation == "contradicts"):
        return "contradicted"
    if status(new) in DEAD:
        return status(new)
    return "learned" if evidence.support else "added"


def _departed(states: States, old: Memory) -> Shift:
    if old.id in states.archived:
        word = "archived"
    elif isinstance(old, Tombstone):
        word = "restored"
    elif _stone(states, old):
        word = "rejected"
    else:
        word = "superseded" if old.id in states.heirs else "removed"
    return _shift_of(word, old, (confidence(old), None), (), _about(states, old))


def _changed(states: States, old: Memory, new: Memory) -> Shift | None:
    if isinstance(new, (Ledger, Handoff)):
        return _moved(old, new)
    fresh = evidence_of(new).since(evidence_of(old))
    word = _status_word(old, new) or _text_word(old, new, fresh) or _weight_word(old, new, fresh)
    details = [*_about(states, new, old), *_counted(old, new, fresh), *_text(old, new)]
    if reviews(new) != reviews(old):
        word = word or "reviewed"
    elif not word:
        word, details = "changed", details or differing(old, new, every=True)
    if not details and word == "changed":
        return None  # only counters that reading changes
    caused_by = fresh.ids() or (_heirs_evidence(states, new) if word == "superseded" else ())
    return _shift_of(word, new, (confidence(old), confidence(new)), caused_by, details)


def _moved(old: Memory, new: Ledger | Handoff) -> Shift | None:
    """The shift of a ledger or a handoff."""
    details = differing(old, new, every=True)
    word = "moved"
    if isinstance(new, Handoff):
        has_moved = isinstance(old, Handoff) and old.state != new.state
        word = _HANDOFFS[new.state] if has_moved else "changed"
    return _shift_of(word, new, (None, None), (), details) if details else None


def _status_word(old: Memory, new: Memory) -> str:
    """The word for a status that matters to readers."""
    was, now = status(old), status(new)
    if was == now:
        return ""
    if now in DEAD:
        return now
    if now == "disputed":
        return "contradicted"
    return "restored" if was in DEAD else ""


def _text_word(old: Memory, new: Memory, fresh: ShiftEvidence) -> str:
    """The word for a changed text. A text that follows new evidence is no correction."""
    if isinstance(new, Skill):
        return "revised" if _text(old, new) else ""
    by_hand = len(getattr(new, "history", ())) > len(getattr(old, "history", ()))
    return "corrected" if restated(old, new) and (by_hand or not fresh.ids()) else ""


def _weight_word(old: Memory, new: Memory, fresh: ShiftEvidence) -> str:
    if contradicted(new) - contradicted(old):
        return "contradicted"
    before, after = confidence(old) or 0.0, confidence(new) or 0.0
    if before != after:
        return "strengthened" if after > before else "weakened"
    if len(fresh.support) != len(fresh.against):
        return "strengthened" if len(fresh.support) > len(fresh.against) else "weakened"
    if {status(old), status(new)} == {"candidate", "active"}:
        return "strengthened" if status(new) == "active" else "weakened"
    return ""


# -- beside it -----------------------------------------------------------------------------------


def _heirs(before: Mapping[str, Memory], after: Mapping[str, Memory]) -> dict[str, str]:
    """Map superseded memories to their successors, by the links of either; of several the first."""
    found: dict[str, str] = {}
    for record in (*before.values(), *after.values()):
        for edge in record.edges():
            source = record.from_ if isinstance(record, Link) else record.id
            if edge.relation == "superseded_by":
                found[source] = min(edge.target, found.get(source, edge.target))
            elif edge.relation == "supersedes":
                found[edge.target] = min(source, found.get(edge.target, source))
    return {old: heir for old, heir in found.items() if heir not in before or heir in after}


def _heirs_evidence(states: States, record: Memory) -> tuple[str, ...]:
    """The evidence of the belief that superseded this one."""
    heir = states.after.get(states.heirs.get(record.id, ""))
    return evidence_of(heir).ids() if heir else ()


def _stone(states: States, record: Memory) -> Tombstone | None:
    """The tombstone of a record's value, if it is among the changes."""
    return states.stones.get(tombstone_id(record.value())) if states.stones else None


# -- wording -------------------------------------------------------------------------------------


def _shift_of(
    word: str,
    record: Memory,
    weight: tuple[float | None, float | None],
    caused_by: tuple[str, ...],
    details: Iterable[str],
) -> Shift:
    title = shown_text(record.title())
    return Shift(word, record.kind, record.id, title, *weight, caused_by, tuple(details))


def _about(states: States, record: Memory, old: Memory | None = None) -> Iterator[str]:
    """Details from other records: the successor, and the reason of a rejection."""
    heir = states.heirs.get(record.id)
    if heir and (status(record) == "superseded" or record.id not in states.after):
        yield f"by {heir}"
    stone = record if isinstance(record, Tombstone) else _stone(states, record)
    if stone and stone.why:
        yield f"why: {shown_text(stone.why)}"
    gained = _links(record) - (_links(old) if old else set())
    yield from sorted(link for link in gained if not link.startswith("superseded_by "))


def _links(record: Memory) -> set[str]:
    return {f"{link.relation} {shown_text(link.to)}" for link in getattr(record, "links", ())}


def _counted(old: Memory, new: Memory, fresh: ShiftEvidence) -> Iterator[str]:
    """Details about evidence: episodes for and against, and the status."""
    was, now = status(old), status(new)
    if was != now and now not in DEAD:
        yield f"status: {was} -> {now}"
    gone = evidence_of(old).since(evidence_of(new))
    for number, meaning in (
        (len(fresh.support), "more for it"),
        (len(fresh.against), "more against it"),
        (len(gone.ids()), "no longer counted"),
    ):
        if number:
            yield f"{number} {'episode' if number == 1 else 'episodes'} {meaning}"


def _text(old: Memory, new: Memory) -> list[str]:
    if isinstance(old, Skill) and isinstance(new, Skill):
        return revised(old, new)
    return differing(old, new)


# -- The state of a memory: its status, its confidence, and its evidence ---------------------------


DEAD = frozenset({"superseded", "rejected", "retired"})


class ShiftEvidence(NamedTuple):
    """The episodes that speak for a memory, and against it."""

    support: frozenset[str]
    against: frozenset[str]

    def since(self, old: ShiftEvidence) -> ShiftEvidence:
        """The evidence that was added since."""
        return ShiftEvidence(self.support - old.support, self.against - old.against)

    def ids(self) -> tuple[str, ...]:
        return tuple(sorted(self.support | self.against))


def evidence_of(record: Memory) -> ShiftEvidence:
    """The evidence of a belief, a learning or a learned skill."""
    if isinstance(record, Belief):
        return ShiftEvidence(frozenset(record.episodes_for()), frozenset(record.episodes_against()))
    if isinstance(record, (Learning, Skill)):
        rests_on = (edge.target for edge in record.edges() if edge.relation == "derived_from")
        return ShiftEvidence(frozenset(rests_on), frozenset())
    return ShiftEvidence(frozenset(), frozenset())


def status(record: Memory) -> str:
    if isinstance(record, Skill):
        return record.metadata.get("loki-status", "active")
    return str(getattr(record, "status", None) or "active")


def confidence(record: Memory) -> float | None:
    if not isinstance(record, Skill):
        stated: float | None = getattr(record, "confidence", None)
        return stated
    try:
        return float(record.metadata.get("loki-confidence", ""))
    except ValueError:
        return None


def contradicted(record: Memory) -> set[str]:
    """The memories that a record says it contradicts."""
    return {edge.target for edge in record.edges() if edge.relation == "contradicts"}


def reviews(record: Memory) -> list[dict[str, str]]:
    """The reviews of a memory: who accepted it, and when. A skill's metadata holds them as text.

    >>> from loki_memory.models import Fact
    >>> reviews(Fact(statement="A", reviewed=[{"by": "Ana", "at": "2026-01-20"}]))
    [{'by': 'Ana', 'at': '2026-01-20'}]
    """
    if isinstance(record, Skill):
        entries = record.metadata.get("loki-reviewed", "").split("; ")
        parts = (entry.rsplit(" ", 2) for entry in entries)
        return [dict(zip(("by", "at", "origin"), part, strict=False)) for part in parts if part[0]]
    listed = (record.model_extra or {}).get("reviewed")
    return (
        [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )
