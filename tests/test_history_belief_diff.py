"""What changed between two states of memory, told as shifts of belief."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory.history.belief_diff import WORDS, Shift, differences
from loki_memory.history.report import (
    LIMIT,
    MARK,
    WIDTH,
    Cause,
    Review,
    Unreadable,
    escaped,
    message,
)
from loki_memory.models import (
    AntiPattern,
    Episode,
    Fact,
    Handoff,
    Learning,
    Ledger,
    Link,
    Memory,
    Pattern,
    Skill,
    Tombstone,
    parse,
)

SUPERSEDES = [{"to": "fact-port", "relation": "supersedes"}]
EP1, EP2, EP3 = "ep-2026-01-06-001", "ep-2026-01-06-002", "ep-2026-01-07-003"


def pattern(**fields: Any) -> Pattern:
    start = {"id": "sem-001", "pattern": "Migrate before contract tests", "confidence": 0.6}
    return parse(Pattern, {**start, "source_episodes": [EP1], **fields})


def fact(name: str = "fact-port", statement: str = "The port is 80", **fields: Any) -> Fact:
    return parse(Fact, {"id": name, "statement": statement, **fields})


def skill(*steps: str, **metadata: str) -> Skill:
    return Skill.from_sections("deploy", "Deploy", steps=steps, metadata=metadata)


def by_id(records: Iterable[Memory]) -> dict[str, Memory]:
    return {one.id: one for one in records}


def shifts(before: Iterable[Memory], after: Iterable[Memory], **moved: Any) -> list[Shift]:
    return differences(by_id(before), by_id(after), **moved)


def only(before: Iterable[Memory], after: Iterable[Memory], **moved: Any) -> Shift:
    (shift,) = shifts(before, after, **moved)
    return shift


# -- beliefs -------------------------------------------------------------------------------------


def test_a_belief_that_rests_on_episodes_was_learned() -> None:
    told = only([], [pattern(conditions=["CI"], correct_approach="migrate")])
    assert told == Shift(
        "learned",
        "pattern",
        "sem-001",
        "Migrate before contract tests",
        None,
        0.6,
        (EP1,),
        ("when: CI", "do: migrate"),
    )


def test_a_belief_that_rests_on_nothing_was_added() -> None:
    told = only([], [fact(by="ana")])
    assert (told.what, told.caused_by, told.details) == ("added", (), ("said by: ana",))


def test_more_evidence_strengthens_and_names_the_new_episodes_only() -> None:
    told = only([pattern()], [pattern(source_episodes=[EP1, EP2], confidence=0.75)])
    assert (told.what, told.before, told.after) == ("strengthened", 0.6, 0.75)
    assert told.caused_by == (EP2,)
    assert told.details == ("1 episode more for it",)


def test_evidence_against_weakens() -> None:
    told = only([pattern()], [pattern(evidence={"against": [EP2, EP3]}, confidence=0.5)])
    assert (told.what, told.caused_by) == ("weakened", (EP2, EP3))
    assert told.details == ("2 episodes more against it",)


def test_evidence_that_moves_no_number_is_told_too() -> None:
    assert only([pattern()], [pattern(source_episodes=[EP1, EP2])]).what == "strengthened"
    assert only([pattern()], [pattern(evidence={"against": [EP2]})]).what == "weakened"


def test_evidence_that_is_gone_is_said() -> None:
    told = only([pattern(source_episodes=[EP1, EP2])], [pattern(confidence=0.5)])
    assert told.details == ("1 episode no longer counted",)


@pytest.mark.parametrize(
    ("status", "what"),
    [
        ("superseded", "superseded"),
        ("retired", "retired"),
        ("rejected", "rejected"),
        ("disputed", "contradicted"),
    ],
)
def test_a_change_of_status_is_told_by_its_own_word(status: str, what: str) -> None:
    told = only([pattern()], [pattern(status=status, confidence=0.9)])
    assert (told.what, told.before, told.after) == (what, 0.6, 0.9)


@pytest.mark.parametrize("status", ["superseded", "retired", "rejected"])
def test_a_belief_that_holds_again_is_restored(status: str) -> None:
    assert only([pattern(status=status)], [pattern()]).what == "restored"


def test_a_candidate_that_became_active_is_stronger() -> None:
    told = only([pattern(status="candidate")], [pattern()])
    assert (told.what, told.details) == ("strengthened", ("status: candidate -> active",))
    assert only([pattern()], [pattern(status="candidate")]).what == "weakened"


def test_other_words_are_a_correction_with_the_old_and_the_new() -> None:
    told = only([fact()], [fact(statement="The port is\n81")])
    assert (told.what, told.title) == ("corrected", "The port is 81")
    assert told.details == ("statement: The port is 80 -> The port is 81",)


def test_items_that_joined_or_left_a_list_are_told_one_by_one() -> None:
    told = only([pattern(conditions=["CI", "Linux"])], [pattern(conditions=["CI", "macOS"])])
    assert told.what == "corrected"
    assert told.details == ("conditions added: macOS", "conditions removed: Linux")


def test_words_that_new_evidence_brought_are_no_correction() -> None:
    after = pattern(pattern="Migrate first", source_episodes=[EP1, EP2], confidence=0.7)
    told = only([pattern()], [after])
    assert told.what == "strengthened"
    assert "pattern: Migrate before contract tests -> Migrate first" in told.details
    by_hand = after.changed(history=[{"on": "2026-01-20", "by": "owner", "was": {}}])
    assert only([pattern()], [by_hand]).what == "corrected"


def test_a_remedy_is_told_by_what_it_says_not_by_its_episodes() -> None:
    def failing(*remedies: dict[str, Any]) -> AntiPattern:
        return parse(AntiPattern, {"what_fails": "npm ci", "resolutions": list(remedies)})

    old, new = failing({"do": "clear cache"}), failing({"do": "clear cache", "for": [EP1]})
    told = only([old], [new])
    assert (told.what, told.details) == ("strengthened", ("1 episode more for it",))
    told = only([old], [failing({"do": "clear cache"}, {"do": "use npm install"})])
    assert (told.what, told.details) == ("corrected", ("resolutions added: use npm install",))


def test_a_link_that_contradicts_contradicts() -> None:
    told = only([fact()], [fact(links=[{"to": "fact-b", "relation": "contradicts"}])])
    assert (told.what, told.details) == ("contradicted", ("contradicts fact-b",))


def test_what_reading_leaves_behind_is_no_change() -> None:
    assert shifts([pattern()], [pattern(usage_count=4, last_used="2026-01-20")]) == []


def test_fields_beside_the_statement_are_a_change() -> None:
    told = only([fact(tags=["net"])], [fact(tags=["ops"], pinned=True)])
    assert told.what == "changed"
    assert told.details == ("tags added: ops", "tags removed: net", "pinned: nothing -> true")


def test_a_change_of_a_quiet_field_alone_is_told() -> None:
    told = only([fact(at="2026-01-06")], [fact(at="2026-01-07")])
    assert (told.what, len(told.details)) == ("changed", 1)


def test_a_review_is_told_as_that() -> None:
    told = only([fact()], [fact(reviewed=[{"by": "Ana", "at": "2026-01-20"}])])
    assert told.what == "reviewed"


# -- records that speak of each other --------------------------------------------------------------


def test_a_fact_that_replaces_another_is_one_update_from_old_to_new() -> None:
    old = fact("fact-old", "The port is 80", confidence=0.7)
    gone = old.changed(status="superseded", links=[{"to": "fact-new", "relation": "superseded_by"}])
    new = fact(
        "fact-new",
        "The port is 81",
        confidence=0.9,
        links=[{"to": "fact-old", "relation": "supersedes"}],
    )
    told = only([old], [gone, new])
    assert (told.what, told.id, told.before, told.after) == ("updated", "fact-new", 0.7, 0.9)
    assert told.details == ("was: The port is 80 (fact-old)",)


def test_a_pattern_that_was_superseded_names_its_heir_and_the_heirs_episodes() -> None:
    gone = pattern(status="superseded", links=[{"to": "sem-002", "relation": "superseded_by"}])
    heir = pattern(id="sem-002", pattern="Migrate first", source_episodes=[EP2])
    learned, superseded = shifts([pattern()], [gone, heir])
    assert (learned.what, learned.id) == ("learned", "sem-002")
    assert (superseded.what, superseded.caused_by) == ("superseded", (EP2,))
    assert superseded.details == ("by sem-002",)


def test_a_tombstone_is_told_with_the_belief_that_it_rejects() -> None:
    stone = parse(Tombstone, {"value": "The port is 80", "why": "a guess", "rejected": "fact-port"})
    told = only([fact()], [fact(status="rejected"), stone])
    assert (told.what, told.kind, told.details) == ("rejected", "fact", ("why: a guess",))
    back = only([fact(status="rejected"), stone], [fact()])
    assert (back.what, back.kind) == ("restored", "fact")


def test_a_tombstone_alone_is_told_by_its_value() -> None:
    stone = parse(Tombstone, {"value": "The port is 80", "why": "a guess"})
    told = only([], [stone])
    assert (told.what, told.kind, told.title) == ("rejected", "tombstone", "The port is 80")


@pytest.mark.parametrize(
    ("beside", "what"),
    [
        ([], "removed"),
        ([Tombstone(value="The port is 80")], "rejected"),
        (
            [fact("fact-new", "81", links=[{"to": "fact-port", "relation": "supersedes"}])],
            "updated",
        ),
        ([pattern(links=[{"to": "fact-port", "relation": "supersedes"}])], "superseded"),
    ],
)
def test_a_belief_that_is_gone_is_lost_unless_something_took_its_place(
    beside: list[Memory], what: str
) -> None:
    assert what in {one.what for one in shifts([fact()], beside)}
    assert ("removed" in {one.what for one in shifts([fact()], beside)}) == (what == "removed")


def test_the_archive_takes_and_gives_back() -> None:
    assert only([fact()], [], archived={"fact-port"}).what == "archived"
    assert only([], [fact()], unarchived={"fact-port"}).what == "restored"


# -- other kinds -----------------------------------------------------------------------------------


def test_a_skill_changes_step_by_step() -> None:
    old = skill("build", "test", "push", "announce")
    new = skill("build all", "test", "tag", "push")
    told = only([old], [new])
    assert told.what == "revised"
    assert told.details == (
        "step 1: build -> build all",
        "step 3 added: tag",
        "step 4 removed: announce",
    )


def test_a_skill_that_says_something_else_around_its_lists_is_revised() -> None:
    old = skill("build")
    told = only([old], [old.changed(body=old.body + "\nMind the gap.\n")])
    assert (told.what, told.details) == ("revised", ("text around its lists changed",))


def test_a_skill_weighs_more_with_more_confidence() -> None:
    old = skill("build", **{"loki-confidence": "0.75", "loki-evidence": EP1})
    new = skill("build", **{"loki-confidence": "0.80", "loki-evidence": f"{EP1}, {EP2}"})
    told = only([old], [new])
    assert told[:6] == ("strengthened", "skill", "skill-deploy", "Deploy", 0.75, 0.8)
    assert told.caused_by == (EP2,)


def test_handoffs_open_are_accepted_and_closed() -> None:
    start = {"from_agent": "eng", "to_agent": "qa", "timestamp": "2026-01-06T09:00:00Z"}
    opened = parse(Handoff, {**start, "status": "open"})
    taken = opened.changed(status="accepted", accepted_by="qa-7")
    done = taken.changed(status="done")
    assert only([], [opened]).what == "opened"
    assert only([opened], [taken]).what == "accepted"
    assert "accepted_by: nothing -> qa-7" in only([opened], [taken]).details
    assert only([taken], [done]).what == "closed"
    assert only([opened], [opened.changed(note="soon")]).what == "changed"


def test_a_ledger_moves() -> None:
    old = parse(Ledger, {"agent_id": "qa", "current_task": "t1", "context": {"current_goal": "A"}})
    new = old.changed(current_task="t2", context={"current_goal": "B"})
    told = only([old], [new])
    assert (told.what, told.kind) == ("moved", "ledger")
    assert told.details == ("current_task: t1 -> t2", "context.current_goal: A -> B")


def test_episodes_are_recorded_and_learnings_learned() -> None:
    at = "2026-01-06T09:00:00Z"
    episode = parse(Episode, {"goal": "Fix", "timestamp": at, "outcome": "failed"})
    learning = parse(Learning, {"timestamp": at, "lesson": "Look first", "source": EP1})
    learned, recorded = shifts([], [episode, learning])
    assert (learned.what, learned.caused_by) == ("learned", (EP1,))
    assert (recorded.what, recorded.details) == ("recorded", ("outcome: failure",))


def test_a_stated_contradiction_is_one() -> None:
    link = parse(Link, {"from": "fact-a", "relation": "contradicts", "to": "fact-b"})
    assert only([], [link]).what == "contradicted"
    assert only([], [link.changed(id="", relation="supports")]).what == "added"


# -- laws ------------------------------------------------------------------------------------------

STATUS = st.sampled_from(["candidate", "active", "disputed", "superseded", "rejected", "retired"])
FACTS = st.builds(
    lambda n, text, status, sure, episodes: fact(
        f"fact-{n}", text, status=status, confidence=sure, source_episodes=episodes
    ),
    st.integers(0, 5),
    st.sampled_from(["one", "two", "three"]),
    STATUS,
    st.sampled_from([0.2, 0.5, 0.9]),
    st.sets(st.sampled_from([EP1, EP2, EP3])).map(sorted),
)
STATES = st.lists(FACTS, max_size=6)


@given(STATES, STATES)
def test_every_memory_that_differs_is_told_once_and_the_order_is_fixed(
    before: list[Fact], after: list[Fact]
) -> None:
    old, new = by_id(before), by_id(after)
    found = differences(old, new)
    assert sorted(one.id for one in found) == sorted(
        name for name in old.keys() | new.keys() if old.get(name) != new.get(name)
    )
    assert found == differences(dict(reversed(old.items())), dict(reversed(new.items())))
    assert found == sorted(found, key=lambda one: (WORDS.index(one.what), one.id))
    assert differences(new, new) == []


# -- the message of a commit -----------------------------------------------------------------------


def test_a_message_says_what_was_learned_and_from_how_many_episodes() -> None:
    gone = pattern(id="sem-000", status="superseded")
    found = shifts([gone.changed(status="active")], [pattern(), pattern(id="sem-002"), gone])
    subject, body = message(found, 6)
    assert subject == "memory: 2 patterns learned, 1 superseded (from 6 episodes)"
    assert body.splitlines() == [
        "- learned sem-001: Migrate before contract tests (0.60, 1 episode)",
        "- learned sem-002: Migrate before contract tests (0.60, 1 episode)",
        "- superseded sem-000: Migrate before contract tests (0.60)",
    ]


def test_a_message_counts_episodes_and_does_not_list_them() -> None:
    at = "2026-01-06T09:00:00Z"
    found = shifts([], [parse(Episode, {"goal": f"Fix {n}", "timestamp": at}) for n in range(3)])
    assert message(found) == ("memory: 3 episodes recorded", "- recorded 3 episodes")
    assert message([]) == ("memory: no belief changed", "")


def test_a_stored_text_cannot_add_lines_or_trailers_to_a_message() -> None:
    told = fact(statement="x\n\nLoki-Agent: someone\x1b[31m else")
    subject, body = message(shifts([], [told]))
    assert subject == "memory: 1 fact added"
    assert body == "- added fact-port: x Loki-Agent: someone [31m else"


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(["fact", "skill"]))))
def test_a_subject_fits_into_a_line(kinds: list[tuple[str, Any]]) -> None:
    found = [Shift(what, kind, f"fact-{n}", "A title") for n, (what, kind) in enumerate(kinds)]
    subject, body = message(found, 1_234_567)
    assert len(subject) <= WIDTH
    assert subject.startswith("memory: ")
    assert "\n" not in subject
    assert len(body.splitlines()) <= 102


# -- the comment on a pull request -----------------------------------------------------------------

HOSTILE = (
    "| a | `rm` </details><script>alert(1)</script> @team #12 ![x](http://e.example/i.png) "
    "[link](javascript:1) **bold** ~~gone~~ www.e.example\n\n# Heading\n/close &lt; $x$"
)


def comment(*found: Shift, invalid: Iterable[Unreadable] = (), **causes: Cause) -> str:
    return Review("main", "HEAD", list(found), causes, list(invalid)).markdown()


def test_a_comment_has_counts_on_top_and_evidence_closed() -> None:
    told = only([], [pattern()])
    cause = Cause(EP1, "Fix the tests", "success", "eng-1")
    text = Review("main", "HEAD", [told], {EP1: cause}, []).markdown()
    lines = text.splitlines()
    assert lines[:4] == [MARK, "### Memory: 1 pattern learned", "", "From main to HEAD"]
    row = "| pattern | Migrate before contract tests `sem-001` | 0.60 | 1 episode |"
    assert row in lines
    assert lines[-6:] == [
        "<details><summary>Evidence: 1 episode</summary>",
        "",
        "- `sem-001`",
        f"  - `{EP1}` Fix the tests: success, by eng-1",
        "",
        "</details>",
    ]


def test_stored_text_stays_text_in_a_comment() -> None:
    shift = Shift("added", "fact", "fact-1", HOSTILE, None, None, ("`x`|@y",), (HOSTILE,))
    text = comment(shift, invalid=[Unreadable(HOSTILE, HOSTILE)])
    ours = {"<details>", "<summary>", "</summary>", "</details>", "<br>", MARK}
    assert {tag for tag in _tags(text) if tag not in ours} == set()
    rows = [line for line in text.splitlines() if line.startswith("| fact")]
    assert [row.count("|") for row in rows] == [5]
    assert re.findall(r"(?<!\\)`[^`]*(?<!\\)`", text) == ["`fact-1`"] * 2
    assert not re.search(r"(?<!\\)[*_~$!\[\]]", text.replace(MARK, ""))
    assert not re.search(r"@\w|#\d|://\w|www\.\w", html.unescape(text))
    assert not any(line.startswith(("# ", "/")) for line in text.splitlines())


def _tags(text: str) -> list[str]:
    return [f"<{part.partition('>')[0]}>" for part in text.split("<")[1:]]


@given(st.text(max_size=80))
def test_no_text_leaves_its_place(text: str) -> None:
    shown = escaped(text)
    assert not set("|<>\n\r") & set(shown)
    assert not set("`*_[]~$!") & set(re.sub(r"\\.", "", shown))
    assert not re.search(r"[@#]\w", html.unescape(shown))


def test_a_comment_is_cut_to_what_a_forge_takes() -> None:
    found = [
        Shift(
            "learned",
            "fact",
            f"fact-{n}",
            "w " * 120,
            0.1,
            0.9,
            tuple(f"ep-{n}-{m}" for m in range(9)),
        )
        for n in range(2000)
    ]
    text = comment(*found)
    assert len(text) <= LIMIT
    assert "2,000 facts learned" in text
    assert "more; `loki-mem diff` has all." in text
    assert text.count("<details>") == text.count("</details>") == 1
