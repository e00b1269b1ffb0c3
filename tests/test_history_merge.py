"""Merging two versions of a memory: the rules, and the laws that they keep."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from loki_memory.history.merge import are_strangers, merge, told_apart
from loki_memory.history.merge_fields import comparable_bytes, listed
from loki_memory.history.resolve import MergeConflict, split
from loki_memory.models import (
    MODELS,
    AntiPattern,
    Belief,
    Episode,
    Fact,
    Handoff,
    Ledger,
    Memory,
    Skill,
    parse,
)
from loki_memory.models.ids import digest
from loki_memory.models.kinds import KINDS, Kind
from loki_memory.models.text import normal

# -- random records --------------------------------------------------------------------------------

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04")
EPISODES = tuple(f"ep-2026-01-0{n}-aaaaaaaaaa" for n in range(1, 5))
ORIGINS = ("owner", "agent", "import", "external")
WORDS = ("Use pnpm", "Use npm", "Use yarn", "use   PNPM.")

some_days = st.sampled_from(DAYS)
some_episodes = st.lists(st.sampled_from(EPISODES), unique=True, max_size=3)
some_words = st.sampled_from(WORDS)
some_scores = st.sampled_from((0.5, 0.75, 0.8, 0.9))
some_tags = st.lists(st.sampled_from(("a", "b", "c")), unique=True, max_size=2)
some_links = st.lists(
    st.fixed_dictionaries(
        {"to": st.sampled_from(("sem-001", "sem-002")), "relation": st.just("related_to")},
        optional={"strength": some_scores},
    ),
    max_size=2,
)
SHARED: dict[str, SearchStrategy[Any]] = {
    "tags": some_tags,
    "pinned": st.booleans(),
    "origin": st.sampled_from(ORIGINS),
    "importance": some_scores,
    "links": some_links,
    "somebodys_own": st.sampled_from((1, True, "x", [2, 1], {"a": None})),
}


def some_history(*names: str) -> SearchStrategy[Any]:
    entry = st.builds(
        lambda day, name, text: {"on": day, "by": "owner", "was": {name: text}},
        some_days,
        st.sampled_from(names),
        some_words,
    )
    return st.lists(entry, max_size=2)


def belief_fields(*words: str) -> dict[str, SearchStrategy[Any]]:
    return {
        **SHARED,
        **dict.fromkeys(words, some_words),
        "category": st.sampled_from(("build", "test")),
        "status": st.sampled_from(
            ("candidate", "active", "disputed", "superseded", "rejected", "retired")
        ),
        "source_episodes": some_episodes,
        "evidence": st.fixed_dictionaries({"for": some_episodes, "against": some_episodes}),
        "confidence": some_scores,
        "history": some_history(*words),
        "conflicts": st.lists(st.just({"statement": "x"}), max_size=1),
        "citations": st.lists(
            st.fixed_dictionaries({"path": st.just("a.py"), "blob": st.sampled_from(("1", "2"))}),
            max_size=1,
        ),
        "usage_count": st.integers(0, 5),
        "last_used": some_days,
        "at": some_days,
        "valid_from": some_days,
        "invalid_at": some_days,
        "parent": st.sampled_from(("fact-001", "fact-002")),
    }


some_resolutions = st.lists(
    st.fixed_dictionaries({"do": some_words, "for": some_episodes, "against": some_episodes}),
    max_size=2,
)
FIELDS: dict[Kind, dict[str, SearchStrategy[Any]]] = {
    "pattern": {
        **belief_fields("pattern", "correct_approach"),
        "conditions": st.lists(some_words, unique=True, max_size=3),
    },
    "anti-pattern": {
        **belief_fields("what_fails", "why", "prevention"),
        "resolutions": some_resolutions,
    },
    "fact": belief_fields("statement"),
    "episode": {
        **SHARED,
        "timestamp": some_days,
        "outcome": st.sampled_from(("success", "failure")),
        "context": st.fixed_dictionaries({"goal": some_words, "constraints": some_tags}),
        "action_log": st.lists(st.just({"action": "run"}), max_size=2),
        "detail": st.just("summary"),
        "recalled": st.lists(
            st.fixed_dictionaries({"id": st.just("sem-001"), "helpful": st.booleans()}), max_size=1
        ),
        "errors_encountered": st.lists(st.fixed_dictionaries({"message": some_words}), max_size=2),
        "files_read": some_tags,
    },
    "learning": {**SHARED, "timestamp": some_days, "lesson": some_words, "error": some_words},
    "link": {
        "from": st.just("sem-001"),
        "to": st.just("sem-002"),
        "strength": some_scores,
        "note": some_words,
        "origin": st.sampled_from(ORIGINS),
    },
    "tombstone": {
        "value": st.sampled_from(("Use pnpm", "use PNPM")),
        "why": some_words,
        "at": some_days,
        "origin": st.sampled_from(ORIGINS),
    },
    "handoff": {
        "timestamp": some_days,
        "to_agent": st.just("qa"),
        "status": st.sampled_from(("open", "accepted", "done", "expired")),
        "accepted_by": st.sampled_from(("qa-1", "qa-2")),
        "accepted_at": some_days,
        "closed_at": some_days,
        "note": some_words,
        "context": st.fixed_dictionaries({"what_was_done": some_words, "artifacts": some_tags}),
        "origin": st.sampled_from(ORIGINS),
    },
    "ledger": {
        "agent_id": st.just("qa-1"),
        "last_checkpoint": some_days,
        "tasks_completed": st.integers(0, 3),
        "context": st.fixed_dictionaries(
            {"patterns_learned": some_tags}, optional={"current_goal": some_words}
        ),
        "origin": st.sampled_from(ORIGINS),
    },
    "skill": {
        "name": st.just("release"),
        "description": some_words,
        "license": st.sampled_from(("MIT", "Apache-2.0")),
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "loki-evidence": some_episodes.map(", ".join),
                "loki-date": some_days,
                "loki-origin": st.sampled_from(ORIGINS),
                "team": some_words,
            },
        ),
        "body": st.lists(
            st.sampled_from(("# Release", "## Steps", "1. build", "2. push", "- tag it", "Text."))
            | some_words,
            max_size=5,
            unique=True,
        ).map("\n".join),
    },
}
NEEDED: dict[Kind, tuple[str, ...]] = {
    "pattern": ("pattern",),
    "anti-pattern": ("what_fails",),
    "fact": ("statement",),
    "episode": ("timestamp", "context"),
    "learning": ("timestamp", "lesson"),
    "link": ("from", "to"),
    "tombstone": ("value",),
    "handoff": ("timestamp", "to_agent"),
    "ledger": ("agent_id",),
    "skill": ("name",),
}
IDS: dict[Kind, str] = {
    "pattern": "sem-001",
    "anti-pattern": "anti-001",
    "fact": "fact-001",
    "episode": "ep-001",
    "learning": "learn-001",
    "link": "link-001",
    "handoff": "handoff-001",
}
MADE = {"key": {"cluster": EPISODES[0]}}  # what consolidation writes into what it made


@st.composite
def families(draw: st.DrawFn, kind: Kind | None = None, *, with_base: bool | None = None) -> Any:
    """A record and three branches of it; or three records with no common beginning."""
    kind = kind or draw(st.sampled_from(KINDS))
    common = {"id": IDS[kind]} if kind in IDS else {}
    if issubclass(MODELS[kind], Belief) and draw(st.booleans()):
        common |= MADE
    base = (
        draw(_documents(kind)) if with_base or (with_base is None and draw(st.booleans())) else None
    )
    sides = [draw(_branches(kind, base)) for _ in range(3)]
    if kind == "skill" and draw(st.booleans()):
        base, *sides = [one and _written(one) for one in (base, *sides)]
        sides[0] = draw(st.sampled_from((sides[0], {**sides[0], "body": "# By hand"})))
    made = [parse(MODELS[kind], {**common, **one}) for one in sides]
    return (parse(MODELS[kind], {**common, **base}) if base else None, *made)


def _written(skill: dict[str, Any]) -> dict[str, Any]:
    """The skill as if consolidation had written it."""
    mark = digest("body", parse(Skill, skill).body)
    return {**skill, "metadata": {**skill.get("metadata", {}), "loki-digest": mark}}


def _documents(kind: Kind) -> SearchStrategy[dict[str, Any]]:
    fields = FIELDS[kind]
    needed = {name: fields[name] for name in NEEDED[kind]}
    return st.fixed_dictionaries(
        needed, optional={name: one for name, one in fields.items() if name not in needed}
    )


@st.composite
def _branches(draw: st.DrawFn, kind: Kind, base: dict[str, Any] | None) -> dict[str, Any]:
    """A record with a few fields of the base changed, or left out."""
    if base is None:
        return draw(_documents(kind))
    changed = draw(st.lists(st.sampled_from(sorted(FIELDS[kind])), unique=True, max_size=4))
    document = dict(base)
    for name in changed:
        if name not in NEEDED[kind] and draw(st.integers(0, 5)) == 0:
            document.pop(name, None)
        else:
            document[name] = draw(FIELDS[kind][name])
    return document


def told_of(record: Memory) -> bytes:
    """What a record says, apart from what depends on the order in which branches are merged.

    That is the order of what three branches added to one place of a skill, and how often a memory
    was used if two branches, once merged, are the same as the third: they are taken for one.
    """
    document = record.document()
    document.pop("usage_count", None)
    if isinstance(record, Skill):
        lines = (line.lstrip("0123456789") for line in record.body.splitlines())
        document["body"] = sorted(line for line in lines if line)
    return comparable_bytes(document)


# -- laws ------------------------------------------------------------------------------------------

# The same families every time: benchmarks/long/merges.py tries others.
LAW = settings(
    max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
Family = tuple[Any, ...]


@LAW
@given(families())
def test_a_merge_does_not_depend_on_whose_side_is_whose(family: Family) -> None:
    base, ours, theirs, _ = family
    assert comparable_bytes(merge(base, ours, theirs).document()) == comparable_bytes(
        merge(base, theirs, ours).document()
    )


@LAW
@given(families())
def test_three_branches_give_the_same_in_any_order(family: Family) -> None:
    base, a, b, c = family
    first = merge(base, merge(base, a, b), c)
    assert told_of(first) == told_of(merge(base, a, merge(base, b, c)))
    assert told_of(first) == told_of(merge(base, b, merge(base, a, c)))


@LAW
@given(families())
def test_who_changed_nothing_has_no_say(family: Family) -> None:
    base, ours, theirs, _ = family
    assert merge(base, ours, ours) == ours
    if base is not None:
        assert merge(base, ours, base) == ours
        assert merge(base, base, theirs) == theirs


@LAW
@given(families())
def test_nothing_that_either_side_said_is_lost(family: Family) -> None:
    base, ours, theirs, _ = family
    both = merge(base, ours, theirs)
    kept = everything_in(both)
    before = everything_in(base) if base else set()
    for side in (ours, theirs):
        assert statements(base, side) <= kept
        assert (evidence_of(side) - before) <= kept
        former = histories(side) - (histories(base) if base else set())
        assert former <= histories(both)


@LAW
@given(families())
def test_trust_is_never_raised(family: Family) -> None:
    base, ours, theirs, _ = family
    both = merge(base, ours, theirs)
    assert trust(both) <= max(trust(ours), trust(theirs))
    speaking = [one for one in (ours, theirs) if both.value() and one.value() == both.value()]
    if base is None and not made(both):
        assert trust(both) == min(trust(ours), trust(theirs))
    elif speaking:
        assert trust(both) <= max(map(trust, speaking))


def trust(record: Memory) -> int:
    """Who does not say stands between the owner and an agent."""
    found = record.document()
    origin = found.get("origin") or (found.get("metadata") or {}).get("loki-origin")
    return (*ORIGINS[:0:-1], None, "owner").index(origin)


def made(record: Memory) -> bool:
    """Whether consolidation wrote the record, and so its words."""
    if isinstance(record, Skill):
        return record.metadata.get("loki-digest") == digest("body", record.body)
    return "key" in (record.model_extra or {})


def statements(base: Memory | None, side: Memory) -> set[bytes]:
    """What somebody said on a side and not before; words made from evidence are nobody's."""
    if isinstance(side, Ledger) or made(side):
        return set()
    before = base.document() if base else {}
    texts = ("statement", "pattern", "what_fails", "why", "prevention", "lesson", "error", "note")
    found = {name: side.document().get(name) for name in (*texts, "somebodys_own", "description")}
    return {
        comparable_bytes(text) for name, text in found.items() if text and text != before.get(name)
    }


def evidence_of(side: Memory) -> set[bytes]:
    if not isinstance(side, Belief):
        return set()
    return {comparable_bytes(one) for one in (*side.episodes_for(), *side.episodes_against())}


def histories(side: Memory) -> set[bytes]:
    """The history, without what a merge listed: that goes once the value has won."""
    entries = listed(side.document().get("history"))
    return {comparable_bytes(entry) for entry in entries if "merged" not in entry}


def everything_in(record: Memory) -> set[bytes]:
    """Every value that a record holds, however deep; what a skill lists is JSON in a text."""
    found: set[bytes] = set()
    waiting: list[Any] = [record.document()]
    while waiting:
        value = waiting.pop()
        found.add(comparable_bytes(value))
        if isinstance(value, str) and value.startswith("["):
            waiting.append(json.loads(value))
        elif isinstance(value, (dict, list)):
            waiting += value.values() if isinstance(value, dict) else value
    return found


# -- rules -----------------------------------------------------------------------------------------


def fact(**fields: Any) -> Fact:
    return parse(Fact, {"id": "fact-001", "statement": "Use pnpm", "origin": "agent", **fields})


def error(**fields: Any) -> AntiPattern:
    """An anti-pattern as consolidation makes it."""
    given = {"id": "anti-001", "what_fails": "ENOENT", "key": {"head": "npm"}, "origin": "agent"}
    return parse(AntiPattern, {**given, **fields})


def corrected(on: str, **was: Any) -> list[dict[str, Any]]:
    return [{"on": on, "by": "owner", "was": was}]


def test_of_two_corrections_the_newer_stands_and_the_other_is_listed() -> None:
    base = fact()
    ours = fact(statement="Use npm", history=corrected("2026-01-02", statement="Use pnpm"))
    theirs = fact(statement="Use yarn", history=corrected("2026-01-03", statement="Use pnpm"))
    both = merge(base, ours, theirs)
    assert both.statement == "Use yarn"
    assert {"on": "2026-01-02", "was": {"statement": "Use npm"}, "merged": True} in both.history
    assert len(both.history) == 3


def test_of_two_statements_without_a_history_the_newer_record_stands() -> None:
    ours = fact(statement="Use npm", at="2026-01-02")
    theirs = fact(statement="Use yarn", at="2026-01-01")
    for base in (fact(at="2026-01-01"), None):
        both = merge(base, ours, theirs)
        assert both.statement == "Use npm"
        assert "Use yarn" in str(both.history)


def test_different_fields_are_both_taken() -> None:
    base = fact()
    both = merge(base, fact(tags=["a"], category="build"), fact(tags=["b"], importance=0.9))
    assert (both.tags, both.category, both.importance) == (["a", "b"], "build", 0.9)
    assert not both.history


def test_what_one_side_took_out_of_a_set_is_gone() -> None:
    base = fact(tags=["a", "b"])
    assert merge(base, fact(tags=["a"]), fact(tags=["a", "b", "c"])).tags == ["a", "c"]


def test_counters_add_up_and_dates_span() -> None:
    base = fact(usage_count=2, last_used="2026-01-01", valid_from="2026-01-02")
    ours = fact(usage_count=5, last_used="2026-01-04", valid_from="2026-01-01")
    theirs = fact(usage_count=3, last_used="2026-01-03", valid_from="2026-01-02")
    both = merge(base, ours, theirs)
    assert (both.usage_count, both.last_used, both.valid_from) == (6, "2026-01-04", "2026-01-01")
    assert merge(None, ours, theirs).usage_count == 5


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        ("rejected", "superseded", "rejected"),
        ("superseded", "active", "superseded"),
        ("disputed", "active", "disputed"),
    ],
)
def test_a_rejection_wins_then_what_is_superseded(ours: str, theirs: str, both: str) -> None:
    base = fact(status="candidate")
    assert merge(base, fact(status=ours), fact(status=theirs)).status == both


def test_joined_evidence_is_weighed_again() -> None:
    base = error(evidence={"for": [EPISODES[0]]}, confidence=0.75, status="candidate")
    ours = error(evidence={"for": EPISODES[:2]}, confidence=0.8, status="active")
    theirs = error(evidence={"for": [EPISODES[0], EPISODES[2]]}, confidence=0.8, status="candidate")
    both = merge(base, ours, theirs)
    assert both.evidence.for_ == list(EPISODES[:3])
    assert (both.confidence, both.status) == (0.83, "active")


def test_numbers_stand_where_only_one_side_has_new_evidence() -> None:
    base = error(evidence={"for": [EPISODES[0]]}, confidence=0.75, status="candidate")
    ours = error(evidence={"for": EPISODES[:2]}, confidence=0.77, status="candidate")
    theirs = error(evidence={"for": [EPISODES[0]]}, confidence=0.75, status="candidate", tags=["a"])
    both = merge(base, ours, theirs)
    assert (both.confidence, both.status, both.tags) == (0.77, "candidate", ["a"])


def test_a_stated_confidence_is_where_joined_evidence_starts() -> None:
    weighed = {"asserted": 0.9, "weighed": 0.93, "confidence": 0.93}
    base = fact(confidence=0.9)
    ours = fact(evidence={"for": [EPISODES[0]]}, **weighed)
    theirs = fact(evidence={"for": [EPISODES[1]]}, **weighed)
    both = merge(base, ours, theirs)
    assert (both.confidence, (both.model_extra or {})["asserted"]) == (0.95, 0.9)
    assert (both.model_extra or {})["weighed"] == both.confidence


def test_words_of_the_newest_evidence_stand_and_no_history_is_made_of_it() -> None:
    base = error(at="2026-01-01")
    ours = error(what_fails="ENOENT: a", prevention="mkdir", at="2026-01-03")
    theirs = error(what_fails="ENOENT: b", prevention="touch", at="2026-01-02")
    both = merge(base, ours, theirs)
    assert (both.what_fails, both.prevention, both.history) == ("ENOENT: a", "mkdir", [])


def test_a_persons_words_stand_above_what_evidence_wrote() -> None:
    base = error(prevention="mkdir", at="2026-01-01")
    ours = error(
        prevention="Run setup first",
        origin="owner",
        at="2026-01-01",
        history=corrected("2026-01-01", prevention="mkdir"),
    )
    theirs = error(prevention="touch", evidence={"for": [EPISODES[0]]}, at="2026-01-04")
    both = merge(base, ours, theirs)
    assert (both.prevention, both.origin) == ("Run setup first", "owner")
    assert both.evidence.for_ == [EPISODES[0]]


def test_an_owner_who_takes_over_words_that_nobody_changed_is_their_origin() -> None:
    base = fact()
    assert merge(base, fact(origin="owner"), fact(tags=["a"])).origin == "owner"
    changed = fact(statement="Use npm")
    assert merge(base, fact(origin="owner"), changed).origin == "agent"
    assert merge(base, fact(origin="external"), fact(tags=["a"])).origin == "external"
    assert merge(None, fact(origin="owner"), changed).origin == "agent"


def test_remedies_that_are_spelled_differently_are_one() -> None:
    ours = error(resolutions=[{"do": "mkdir  out", "for": [EPISODES[0]], "against": []}])
    theirs = error(
        resolutions=[
            {"do": "Mkdir out.", "for": [EPISODES[1]], "against": [EPISODES[2]]},
            {"do": "touch it", "for": [], "against": [EPISODES[3]]},
        ]
    )
    both = merge(error(), ours, theirs)
    assert [normal(one.do) for one in both.resolutions] == ["mkdir out", "touch it"]
    assert both.resolutions[0].for_ == list(EPISODES[:2])


def test_links_are_a_set_by_relation_and_target() -> None:
    def linked(*to: str) -> Fact:
        return fact(links=[{"to": one, "relation": "supports"} for one in to])

    both = merge(linked("sem-1"), linked("sem-1", "sem-2"), linked("sem-1", "sem-3"))
    assert [one.to for one in both.links] == ["sem-1", "sem-2", "sem-3"]
    assert merge(linked("sem-1"), linked(), linked("sem-1", "sem-2")).links == linked("sem-2").links


def test_the_newest_checkpoint_of_a_ledger_stands_with_all_patterns_learned() -> None:
    def ledger(at: str, task: str, *patterns: str) -> Ledger:
        context = {"patterns_learned": list(patterns), "current_goal": task}
        given = {"agent_id": "qa", "last_checkpoint": at, "current_task": task, "context": context}
        return parse(Ledger, given)

    base = ledger("2026-01-01", "a", "sem-1")
    both = merge(base, ledger("2026-01-03", "b", "sem-1", "sem-2"), ledger("2026-01-02", "c"))
    assert (both.current_task, both.context.current_goal) == ("b", "b")
    assert both.context.patterns_learned == ["sem-2"]


def handoff(**fields: Any) -> Handoff:
    given = {"id": "handoff-1", "timestamp": "2026-01-01", "to_agent": "qa", "status": "open"}
    return parse(Handoff, {**given, **fields})


def test_who_accepted_a_handoff_first_has_it() -> None:
    ours = handoff(status="accepted", accepted_by="qa-1", accepted_at="2026-01-03")
    theirs = handoff(status="accepted", accepted_by="qa-2", accepted_at="2026-01-02")
    both = merge(handoff(), ours, theirs)
    assert (both.accepted_by, both.accepted_at, both.status) == ("qa-2", "2026-01-02", "accepted")
    assert "qa-1" in str(both.model_extra)


def test_a_handoff_that_was_done_has_not_expired() -> None:
    done = handoff(status="done", closed_at="2026-01-04")
    expired = handoff(status="expired", closed_at="2026-01-03")
    both = merge(handoff(), done, expired)
    assert (both.status, both.closed_at) == ("done", "2026-01-04")


def episode(**fields: Any) -> Episode:
    log = [{"action": "build"}, {"action": "test"}]
    given = {"id": "ep-1", "timestamp": "2026-01-01", "goal": "Fix", "action_log": log}
    return parse(Episode, {**given, **fields})


def test_an_episode_that_one_side_summarised_is_a_summary_and_keeps_what_was_recalled() -> None:
    short = episode(action_log=[{"action": "build"}], detail="summary")
    told_more = episode(recalled=[{"id": "sem-001", "helpful": True}])
    both = merge(episode(), short, told_more)
    assert len(both.action_log) == 1
    assert both.recalled == told_more.recalled


def test_without_a_common_beginning_the_whole_log_is_kept() -> None:
    short = episode(action_log=[{"action": "build"}], detail="summary")
    assert merge(None, short, episode()).action_log == episode().action_log
    assert merge(None, episode(), short).document() == episode().document()


# -- skills ----------------------------------------------------------------------------------------

RELEASE = """\
# Skill: Release

## Steps
1. Build the image
2. Push the image

## Common Errors & Fixes
- denied: log in
"""


def skill(body: str = RELEASE, **fields: Any) -> Skill:
    return parse(Skill, {"name": "release", "description": "Release it.", "body": body, **fields})


def test_sections_that_one_side_changed_are_taken() -> None:
    ours = skill(RELEASE.replace("Push the image", "Push it twice"))
    theirs = skill(RELEASE.replace("denied: log in", "denied: ask"))
    both = merge(skill(), ours, theirs)
    assert both.steps == ["Build the image", "Push it twice"]
    assert both.common_errors == [("denied", "ask")]


def test_steps_of_both_sides_are_woven_and_numbered() -> None:
    ours = skill(RELEASE.replace("2. Push", "2. Scan the image\n3. Push"))
    theirs = skill(RELEASE.replace("2. Push the image", "2. Push the image\n3. Tell everybody"))
    both = merge(skill(), ours, theirs)
    assert both.steps == [
        "Build the image",
        "Scan the image",
        "Push the image",
        "Tell everybody",
    ]
    assert "4. Tell everybody" in both.body


def test_a_step_that_both_rewrote_is_kept_in_both_versions() -> None:
    ours = skill(RELEASE.replace("Build the image", "Build with podman"))
    theirs = skill(RELEASE.replace("Build the image", "Build with docker"))
    both = merge(skill(), ours, theirs)
    assert both.steps == ["Build with docker", "Build with podman", "Push the image"]
    assert "<<<<" not in both.body


def test_a_section_that_one_side_removed_and_the_other_changed_stays() -> None:
    ours = skill(RELEASE.partition("\n## Common")[0])
    theirs = skill(RELEASE.replace("log in", "log in again"), license="MIT")
    both = merge(skill(), ours, theirs)
    assert both.common_errors == [("denied", "log in again")]
    assert merge(skill(), ours, skill(license="MIT")).common_errors == []


def test_a_skill_that_somebody_changed_stands_above_one_that_was_written_anew() -> None:
    def written(body: str, date: str) -> Skill:
        return skill(body, metadata={"loki-digest": digest("body", body), "loki-date": date})

    base = written(RELEASE, "2026-01-01")
    newer = written(RELEASE.replace("Push", "Sign and push"), "2026-01-03")
    older = written(RELEASE.replace("Push", "Check and push"), "2026-01-02")
    hand = skill(RELEASE.replace("Push", "Carefully push"), metadata=base.metadata)
    assert merge(base, newer, older).body == newer.body
    assert merge(base, newer, hand).body == hand.body


# -- strangers -------------------------------------------------------------------------------------


def test_one_name_for_two_episodes_is_noticed_and_told_apart_the_same_way_everywhere() -> None:
    ours, theirs = episode(goal="Fix the build"), episode(goal="Write the docs")
    assert are_strangers(None, ours, theirs)
    assert not are_strangers(episode(), ours, theirs)
    assert not are_strangers(None, ours, episode(goal="Fix the build", tags=["a"]))
    keeps, moves = told_apart(ours, theirs)
    assert told_apart(theirs, ours) == (keeps, moves)
    assert keeps.id == "ep-1"
    assert moves.id == f"ep-{moves.mint()}"


def test_an_id_that_was_derived_means_one_memory_whatever_it_says_now() -> None:
    ours = parse(Fact, {"statement": "Use pnpm"})
    theirs = ours.changed(statement="Use npm")
    assert not are_strangers(None, ours, theirs)


# -- conflict markers ------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_markers_of_both_styles_are_taken_apart(end: str) -> None:
    lines = [
        "{",
        "<<<<<<< HEAD",
        "1",
        "||||||| 3f2a",
        "0",
        "=======",
        "2",
        ">>>>>>> other",
        "}",
        "",
    ]
    plain = [*lines[:3], *lines[5:]]
    found = split(end.join(lines).encode())
    assert found == MergeConflict(*(f"{{{end}{n}{end}}}{end}".encode() for n in (0, 1, 2)))
    assert split(end.join(plain).encode()) == found._replace(base=None)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "<<<<<<< HEAD"}\n',
        "Title\n=======\ntext\n",
        "<<<<<<< HEAD\n1\n=======\n2\n",
        "<<<<<<<< HEAD\n========\n>>>>>>>> x\n",
    ],
)
def test_what_only_looks_like_a_conflict_is_none(text: str) -> None:
    assert split(text.encode()) is None


def test_a_row_of_equals_signs_outside_a_conflict_is_text() -> None:
    found = split(b"Title\n=======\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n")
    assert found == MergeConflict(None, b"Title\n=======\na\n", b"Title\n=======\nb\n")


def test_a_topic_that_both_sides_added_to_has_no_confidence_as_it_had_none() -> None:
    topic = {"statement": "Topic sql", "category": "sql", "depth": 0, "key": {"topic": "sql"}}
    ours, theirs = (
        parse(Fact, {**topic, "source_episodes": [f"ep-{side}", "ep-both"]}) for side in "ab"
    )
    merged = merge(None, ours, theirs)
    assert merged is not None
    document = merged.document()
    assert document["source_episodes"] == ["ep-a", "ep-b", "ep-both"]
    assert "confidence" not in document
    assert "status" not in document
