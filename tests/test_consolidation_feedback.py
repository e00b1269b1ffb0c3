"""Feedback: an episode says what it was shown and whether it helped, and later rankings follow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki_memory import Workspace
from loki_memory.consolidation.feedback import Span, shown_memories, verdict
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.consolidation.weigh import weigh
from loki_memory.errors import IdTaken
from loki_memory.journal import Journal
from loki_memory.models import AntiPattern, Belief, Episode, Fact, Pattern, parse

START = datetime(2026, 1, 6, 10, 0, tzinfo=UTC)
Clock = Callable[..., str]


def at(**later: float) -> str:
    return f"{START + timedelta(**later):%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set the time of day that the workspace sees; returns it."""

    def turn(**later: float) -> str:
        monkeypatch.setenv("LOKI_NOW", at(**later))
        return at(**later)

    turn()
    return turn


def recalled(episode: Episode) -> dict[str, bool | None]:
    return {one.id: one.helpful for one in episode.recalled}


def note(ws: Workspace, text: str = "Restart the broker before the load tests") -> str:
    return ws.remember(text, kind="pattern").id


# -- what an episode was shown -------------------------------------------------------------------


def test_an_episode_says_what_its_session_was_shown(ws: Workspace, clock: Clock) -> None:
    broker = note(ws)
    ws.recall("load tests", session="s1")
    clock(minutes=5)
    stored = ws.record({"goal": "Run the load tests", "session": "s1", "outcome": "success"})
    assert recalled(stored) == {broker: None}
    assert ws.get(stored.id) == stored


def test_what_is_put_before_an_agent_unasked_counts_for_who_works_then(
    ws: Workspace, clock: Clock
) -> None:
    broker = note(ws)
    ws.context("Run the load tests")
    clock(minutes=5)
    assert recalled(ws.record({"goal": "Run the load tests", "session": "s1"})) == {broker: None}
    ws.continuity(goal="Run the load tests")
    clock(minutes=9)
    assert broker in recalled(ws.record({"goal": "Run them again"}))


def test_what_was_opened_or_judged_counts_too(ws: Workspace, clock: Clock) -> None:
    opened, helpful, not_so = (note(ws, f"Restart the {it}") for it in ("cache", "bus", "proxy"))
    ws.browse.opened(opened, session="s1")
    ws.feedback(helpful, helpful=True)
    ws.feedback(not_so, helpful=True)
    ws.feedback(not_so, helpful=False)
    clock(minutes=5)
    stored = ws.record({"goal": "Run the load tests", "session": "s1", "outcome": "success"})
    assert recalled(stored) == {opened: None, helpful: True, not_so: False}


@pytest.mark.parametrize("own", [[], [{"id": "sem-9", "helpful": True}]])
def test_what_an_episode_says_itself_is_left_as_it_is(
    ws: Workspace, clock: Clock, own: list[dict[str, Any]]
) -> None:
    note(ws)
    ws.recall("load tests")
    clock(minutes=5)
    stored = ws.record({"goal": "Run the load tests", "recalled": own})
    assert stored.document()["recalled"] == own


def test_another_session_is_another_story(ws: Workspace, clock: Clock) -> None:
    note(ws)
    ws.recall("load tests", session="s2")
    clock(minutes=5)
    assert ws.record({"goal": "Run the load tests", "session": "s1"}).recalled == []
    assert ws.record({"goal": "Tidy up"}).recalled == []


@pytest.mark.parametrize("session", ["s1", None])
def test_what_the_episode_before_was_shown_is_not_counted_again(
    ws: Workspace, clock: Clock, session: str | None
) -> None:
    note(ws)
    ws.recall("load tests", session=session)
    told = {"session": session} if session else {}
    clock(minutes=5)
    assert len(ws.record({"goal": "Run the load tests", **told}).recalled) == 1
    clock(minutes=10)
    assert ws.record({"goal": "Tidy up", **told}).recalled == []


@pytest.mark.parametrize(
    ("shown", "fields", "counts"),
    [
        ({"minutes": -1}, {"duration_seconds": 600}, True),  # asked before the work
        ({"minutes": 9}, {"duration_seconds": 600}, True),
        ({"minutes": 15}, {"duration_seconds": 600}, True),  # said right after it
        ({"minutes": 25}, {"duration_seconds": 600}, False),
        ({"hours": -5}, {"duration_seconds": 600}, False),
        ({"hours": 3}, {}, True),
        ({"hours": 5}, {}, False),
    ],
)
def test_only_what_was_shown_around_the_episode_counts(
    ws: Workspace, clock: Clock, shown: dict[str, int], fields: dict[str, Any], counts: bool
) -> None:
    note(ws)
    clock(**shown)
    ws.recall("load tests")
    clock(hours=9)
    stored = ws.record({"goal": "Run the load tests", "timestamp": at(), **fields})
    assert bool(stored.recalled) == counts


def test_of_episodes_that_come_together_each_has_its_own(ws: Workspace, clock: Clock) -> None:
    first, second = (note(ws, f"Restart the {it}") for it in ("cache", "proxy"))
    for minutes, name in ((5, first), (25, second)):
        clock(minutes=minutes)
        ws.browse.opened(name, session="s1")
    clock(minutes=40)
    told = [{"goal": f"Task {n}", "session": "s1", "timestamp": at(minutes=n)} for n in (20, 0)]
    later, earlier = ws.record(told)
    assert (recalled(earlier), recalled(later)) == ({first: None}, {second: None})


def test_an_episode_that_is_given_twice_at_once_is_completed_once(
    ws: Workspace, clock: Clock
) -> None:
    broker = note(ws)
    ws.browse.opened(broker)
    clock(minutes=5)
    one, same = ws.record([{"goal": "Run the load tests"}] * 2)
    assert one == same
    assert recalled(one) == {broker: None}


def test_only_memories_of_the_project_that_are_there_are_named(ws: Workspace, clock: Clock) -> None:
    kept, gone = note(ws), note(ws, "Restart the cache before the load tests")
    ws.remember("Restart the modem before the load tests", scope="user")
    private = ws.remember("Restart my laptop before the load tests", scope="local").id
    assert len(ws.recall("before the load tests", k=9)) == 4
    ws.forget(gone)
    clock(minutes=5)
    assert recalled(ws.record({"goal": "Load"})) == {kept: None}
    clock(minutes=7)
    ws.browse.opened(private)
    clock(minutes=9)
    assert recalled(ws.record({"goal": "Mine", "scope": "local"})) == {private: None}


def test_an_import_is_not_completed(ws: Workspace, clock: Clock) -> None:
    ws.browse.opened(note(ws))
    clock(minutes=5)
    stored = ws.record({"goal": f"Task {n}"} for n in range(101))
    assert not any(one.recalled for one in stored)


def test_of_very_many_the_judged_the_opened_and_the_latest_are_named(
    ws: Workspace, clock: Clock
) -> None:
    names = [note(ws, f"Restart machine number {n} before the load tests") for n in range(26)]
    ws.home.journal.shown([(names[0], 9)], surface="recall", query="", session=None, now=at())
    ws.feedback(names[1], helpful=True)
    ws.browse.opened(names[2])
    ws.home.journal.shown(
        [(one, 9) for one in names[3:]], surface="recall", query="", session=None, now=at(minutes=1)
    )
    clock(minutes=5)
    found = recalled(ws.record({"goal": "Run the load tests"}))
    assert len(found) == 20
    assert found[names[1]] is True
    assert names[2] in found
    assert names[0] not in found


def test_what_was_said_before_a_folding_is_not_lost(
    ws: Workspace, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, cache = note(ws), note(ws, "Restart the cache")
    ws.feedback(broker, helpful=False)
    monkeypatch.setattr("loki_memory.journal._USES_BYTES", 10)
    ws.browse.opened(cache, session="s1")
    assert b'"used"' in Path(ws.layout.local, "journal", "uses.jsonl").read_bytes()
    clock(minutes=5)
    stored = ws.record({"goal": "Run the load tests", "session": "s1"})
    assert recalled(stored) == {broker: False, cache: None}


def test_what_somebody_said_of_an_episode_counts_for_it_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for name, episode in (("sem-1", "ep-1"), ("sem-2", "ep-2")):
        journal.feedback(name, helpful=True, episode=episode, session=None, now=at())
    assert shown_memories(journal.recent(), Span(at(), at(hours=1), "", "ep-1")).said == {
        "sem-1": True
    }


# -- never in the way ----------------------------------------------------------------------------


@pytest.mark.parametrize("goal", ["Run the load tests", "Use ghp_" + "a1B2" * 10])
def test_the_same_episode_again_is_the_one_that_is_stored(
    ws: Workspace, clock: Clock, goal: str
) -> None:
    given = {"goal": goal, "session": "s1", "timestamp": at()}
    broker = note(ws)
    first = ws.record(given)
    assert first.recalled == []
    clock(minutes=5)
    ws.browse.opened(broker, session="s1")
    assert ws.record(given) == first
    clock(minutes=9)
    other = {**given, "timestamp": at(minutes=6)}
    second = ws.record(other)
    assert recalled(second) == {broker: None}
    clock(minutes=20)
    assert ws.record(other) == second
    assert ws.record([other] + [{"goal": f"Task {n}"} for n in range(101)])[0] == second
    assert ws.browse.economics().outcomes == {"unknown": 2}


def test_another_episode_of_the_same_id_is_still_refused(ws: Workspace, clock: Clock) -> None:
    ws.browse.opened(note(ws))
    clock(minutes=5)
    given = {"goal": "Run the load tests", "timestamp": at(minutes=1)}
    ws.record(given)
    with pytest.raises(IdTaken):
        ws.record({**given, "outcome": "failure"})
    with pytest.raises(IdTaken):
        ws.record({**given, "recalled": [{"id": "sem-other"}]})


def test_a_journal_that_cannot_be_read_is_a_notice(ws: Workspace, clock: Clock) -> None:
    ws.browse.opened(note(ws))
    (ws.layout.local / "journal" / "shown.jsonl").mkdir()
    stored = ws.record({"goal": "Run the load tests"})
    assert ws.get(stored.id) == stored
    assert any("stored without what was recalled" in one for one in ws.notices)


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[1]",
        '{"act":"shown","at":5,"session":"","ids":[["sem-1",1]]}',
        '{"act":"shown","at":"2026-01-06T10:00:01Z","session":"","ids":7}',
        '{"act":"used","id":"sem-1","seen":{"=s":"x"}}',
        '{"act":"used","id":"sem-1","seen":{"?s":1767693601}}',
        '{"act":"outcome","at":7,"of":"ep-1"}',
        '{"act":"outcome","at":"2026-01-06T10:00:01Z","of":9}',
    ],
)
def test_foreign_lines_are_passed_over(ws: Workspace, clock: Clock, line: str) -> None:
    broker = note(ws)
    ws.browse.opened(broker)
    for name in ("uses.jsonl", "shown.jsonl"):
        with (ws.layout.local / "journal" / name).open("a") as file:
            file.write(line + "\n")
    clock(minutes=5)
    assert recalled(ws.record({"goal": "Run the load tests"})) == {broker: None}


@pytest.mark.parametrize("timestamp", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_no_date_is_too_far(ws: Workspace, clock: Clock, timestamp: str) -> None:
    ws.browse.opened(note(ws))
    clock(minutes=5)
    given = {"goal": "Time", "timestamp": timestamp, "duration_seconds": 1e300}
    assert ws.record(given).recalled == []


# -- what the outcome tells ----------------------------------------------------------------------

ERROR = "psql: error: relation 'conductors' does not exist"
ADVICE = "conductors -> conductor, e.g. SELECT name FROM conductor"
ASKED = {"action": "sql", "target": "SELECT name FROM conductors", "error": ERROR}
ADVISED = {"action": "sql", "target": "SELECT name FROM conductor"}
OTHER = {"action": "sql", "target": "SELECT name FROM public.musicians"}


def warning(**fields: Any) -> AntiPattern:
    given = {"id": "anti-1", "what_fails": ERROR, "resolutions": [{"do": ADVICE}]}
    return parse(AntiPattern, {**given, **fields})


def work(log: Iterable[dict[str, str]] = (), outcome: str = "success", **fields: Any) -> Episode:
    given = {"goal": "List conductors", "timestamp": at(), "outcome": outcome}
    return parse(Episode, {**given, "action_log": list(log), **fields})


def met(resolution: str | None, error: str = ERROR) -> dict[str, Any]:
    return {"message": error, **({"resolution": resolution} if resolution else {})}


@pytest.mark.parametrize(
    ("episode", "expected"),
    [
        (work([ASKED, ADVISED]), True),
        (work(errors_encountered=[met("SELECT from conductor instead")]), True),
        (work(errors_encountered=[met(ADVICE)], outcome="failure"), False),
        (work([ASKED, {**ADVISED, "error": ERROR}, OTHER]), False),
        (work(errors_encountered=[met(ADVICE), met("it is called musicians")]), False),
        # Not clear: something else helped, or failed, or nobody knows.
        (work(), None),
        (work([ASKED, OTHER]), None),
        (work([ADVISED]), None),
        (work([ASKED, ADVISED], "unknown"), None),
        (work([ASKED, ADVISED], "partial"), None),
        (
            work(errors_encountered=[met(ADVICE), met(None, "KeyError: 'x'")], outcome="failure"),
            None,
        ),
        (work(errors_encountered=[met(ADVICE), met(ADVICE)]), None),
        (work(errors_encountered=[met(ADVICE, "relation 'flutes' does not exist")]), None),
    ],
)
def test_the_outcome_tells_only_what_is_clear(episode: Episode, expected: bool | None) -> None:
    assert verdict(warning(), episode) is expected


def test_advice_in_prose_is_followed_where_most_of_its_words_are_done() -> None:
    prose = warning(resolutions=[], prevention="Run the migrations before the integration tests")
    done = "Ran the migrations, then the integration tests"
    assert verdict(prose, work(errors_encountered=[met(done)])) is True
    assert verdict(prose, work(errors_encountered=[met("Raised the timeout of tests")])) is None


def test_a_warning_without_advice_is_never_judged_by_the_outcome() -> None:
    episode = work(errors_encountered=[met(ADVICE)])
    assert verdict(warning(resolutions=[]), episode) is None


def test_a_lesson_that_was_shown_and_heeded_is_confirmed_by_the_next_episode(
    ws: Workspace, clock: Clock
) -> None:
    log = [ASKED, ADVISED]
    ws.record({"goal": "List conductors", "action_log": log, "outcome": "success"})
    (lesson,) = ws.list(kind="anti-pattern")
    assert isinstance(lesson, AntiPattern)
    clock(hours=5)
    assert lesson.id in [hit.id for hit in ws.recall("conductors", error=ERROR, session="s2")]
    clock(hours=6)
    told = {"goal": "Count conductors", "session": "s2", "action_log": log, "outcome": "success"}
    stored = ws.record(told)
    assert recalled(stored)[lesson.id] is True
    after = ws.get(lesson.id)
    assert isinstance(after, AntiPattern)
    assert (lesson.confidence, after.confidence) == (0.75, 0.80)
    assert stored.id in after.evidence.for_
    clock(hours=7)
    ws.recall("conductors", error=ERROR, session="s3")
    clock(hours=8)
    failed = ws.record({**told, "session": "s3", "outcome": "failure"})
    assert recalled(failed)[lesson.id] is False
    again = ws.get(lesson.id)
    assert isinstance(again, AntiPattern)
    assert again.evidence.against == [failed.id]
    assert again.confidence == 0.67
    ws.consolidate()
    assert ws.get(lesson.id).document()["confidence"] == 0.67


# -- what follows from it ------------------------------------------------------------------------


def _tell(ws: Workspace, name: str, helpful: bool | None, times: int) -> list[str]:
    """Episodes of different sessions that say whether a memory helped."""
    told = [{"id": name} if helpful is None else {"id": name, "helpful": helpful}]
    begun = len(ws.list(kind="episode"))
    return [ws.record({"goal": f"Errand {begun + n}", "recalled": told}).id for n in range(times)]


@pytest.mark.parametrize("kind", ["pattern", "fact", "anti-pattern"])
def test_what_helped_ranks_higher_and_what_misled_ranks_lower(
    ws: Workspace, clock: Clock, kind: Any
) -> None:
    texts = [f"Restart the {it} before the load tests" for it in ("broker", "router")]
    pair = [ws.remember(text, kind=kind).id for text in texts]

    def ranking() -> list[str]:
        return [hit.id for hit in ws.recall("restart before load tests") if hit.id in pair]

    first, second = ranking()
    assert {first, second} == set(pair)
    helped = _tell(ws, second, True, 2)
    assert ranking() == [second, first]
    misled = _tell(ws, second, False, 4)
    assert ranking() == [first, second]
    before = ws.get(second)
    assert isinstance(before, Belief)
    assert (before.evidence.for_, before.evidence.against) == (sorted(helped), sorted(misled))
    ws.consolidate()
    assert ws.get(second) == before
    assert ranking() == [first, second]


@pytest.mark.parametrize("kind", ["pattern", "fact", "anti-pattern"])
def test_the_first_word_already_points_in_its_direction(
    ws: Workspace, clock: Clock, kind: Any
) -> None:
    better, plain, worse = (
        ws.remember(f"Restart the {it} before the load tests", kind=kind).id
        for it in ("broker", "router", "server")
    )
    _tell(ws, better, True, 1)
    _tell(ws, worse, False, 1)
    hits = [hit.id for hit in ws.recall("restart before load tests") if hit.kind == kind]
    assert hits == [better, plain, worse]


def test_use_alone_changes_no_belief(ws: Workspace, clock: Clock) -> None:
    name = note(ws)
    before = ws.get(name)
    for hour in range(12):
        clock(hours=hour)
        ws.recall("load tests", session=f"s{hour}")
        ws.browse.opened(name, session=f"s{hour}")
        stored = ws.record({"goal": f"Task {hour}", "session": f"s{hour}", "outcome": "success"})
        assert name in recalled(stored)
        assert not any(recalled(stored).values())
    ws.consolidate()
    assert ws.get(name) == before
    assert ws.browse.uses(name).times == 12


SAYINGS = st.lists(
    st.tuples(
        st.sampled_from(["pattern", "fact", "anti-pattern"]),
        st.sampled_from([True, False, None]),
    ),
    max_size=6,
)


@given(SAYINGS)
@settings(deadline=None, max_examples=15)
def test_counters_equal_what_was_written(sayings: list[tuple[str, bool | None]]) -> None:
    with TemporaryDirectory() as folder, Workspace.init(folder) as ws:
        names = {
            kind: ws.remember(f"Restart the {it} first", kind=kind).id  # type: ignore[arg-type]
            for kind, it in (("pattern", "cache"), ("fact", "proxy"), ("anti-pattern", "bus"))
        }
        said: dict[tuple[str, bool | None], set[str]] = {}
        for number, (kind, helpful) in enumerate(sayings):
            told = {"goal": f"Task {number}", "timestamp": at(days=number)}
            stored = ws.record({**told, "recalled": [{"id": names[kind], "helpful": helpful}]})
            said.setdefault((names[kind], helpful), set()).add(stored.id)
            ws.home.journal.opened(names[kind], 9, session=f"s{number}", now=at(days=number))
        for _ in range(2):
            for kind, name in names.items():
                found = ws.get(name)
                assert isinstance(found, Belief)
                assert set(found.evidence.for_) == said.get((name, True), set())
                assert set(found.evidence.against) == said.get((name, False), set())
                assert ws.browse.uses(name).times == sum(one == kind for one, _ in sayings)
            ws.consolidate()


# -- weighing ------------------------------------------------------------------------------------


def told(n: int, helpful: bool | None, name: str = "sem-h") -> Episode:
    saying = [{"id": name, "helpful": helpful}]
    given = {"id": f"ep-{n}", "goal": f"Task {n}", "timestamp": at(days=n), "outcome": "success"}
    return parse(Episode, {**given, "recalled": saying})


def weighed(belief: Belief, *episodes: Episode) -> Belief:
    snapshot = Snapshot([belief, *episodes])
    after = snapshot.with_changes(weigh(snapshot))
    assert not weigh(after)
    found = after.records[belief.id]
    assert isinstance(found, Belief)
    return found


def asserted(**fields: Any) -> Pattern:
    given = {"id": "sem-h", "pattern": "Run the migrations", "confidence": 0.9}
    return parse(Pattern, {**given, **fields})


def test_a_confidence_that_a_person_edits_is_the_new_assertion() -> None:
    misled = told(1, False)
    before = weighed(asserted(), misled)
    assert before.confidence == 0.60
    edited = weighed(before.changed(confidence=0.95), misled)
    assert edited.confidence == 0.95
    assert edited.document()["asserted"] == 0.95
    assert edited.evidence.against == ["ep-1"]
    later = weighed(edited, misled, told(2, False))
    assert later.confidence == 0.63  # moved by what came after the edit, and by nothing else
    assert weighed(later.changed(confidence=0.2), misled, told(2, False)).confidence == 0.2


def test_an_edit_and_new_evidence_at_once_give_the_same_as_one_after_the_other() -> None:
    before = weighed(asserted(), told(1, False)).changed(confidence=0.95)
    stepwise = weighed(weighed(before, told(1, False)), told(1, False), told(2, True))
    assert weighed(before, told(1, False), told(2, True)) == stepwise
    assert stepwise.confidence == 0.97


def test_a_record_of_before_there_was_a_note_of_the_weighing_is_not_taken_for_edited() -> None:
    old = asserted(confidence=0.6, asserted=0.9, evidence={"against": ["ep-1"]})
    assert weighed(old, told(1, False)).document()["asserted"] == 0.9


def test_an_episode_that_changes_its_mind_is_counted_once() -> None:
    before = weighed(asserted(), told(1, True))
    after = weighed(before, told(1, False))
    assert (after.evidence.for_, after.evidence.against) == ([], ["ep-1"])
    back = weighed(after, told(1, True))
    assert back == before


def test_where_a_fact_was_taken_from_does_not_make_it_surer() -> None:
    fact = parse(Fact, {"id": "fact-1", "statement": "We use pnpm", "source_episodes": ["ep-1"]})
    assert weighed(fact, told(1, None)) == fact
    assert weighed(fact, told(1, None), told(2, True, "fact-1")).confidence == 0.87


def test_facts_that_contradict_each_other_stay_disputed_whatever_helped() -> None:
    links = [{"to": "fact-2", "relation": "contradicts"}]
    fact = parse(
        Fact, {"id": "fact-1", "statement": "We use pnpm", "status": "disputed", "links": links}
    )
    assert weighed(fact, told(1, True, "fact-1")).status == "disputed"


@given(st.lists(st.sampled_from([True, False, None]), max_size=6), st.randoms())
def test_the_order_of_episodes_and_batches_does_not_matter(
    sayings: list[bool | None], chance: Any
) -> None:
    episodes = [told(n, helpful) for n, helpful in enumerate(sayings, 1)]
    whole = weighed(asserted(), *episodes)
    shuffled = chance.sample(episodes, len(episodes))
    now = Snapshot([asserted()])
    for one in shuffled:
        now = Snapshot([*now.records.values(), one])
        now = now.with_changes(weigh(now, frozenset({one.id})))
    assert now.records["sem-h"] == whole


def merged(name: str, into: str, **fields: Any) -> Pattern:
    link = {"to": into, "relation": "superseded_by", "why": "says the same"}
    given = {"id": name, "status": "superseded", "links": [link], "confidence": 0.8, **fields}
    return asserted(**given)


def test_what_was_merged_into_a_belief_counts_for_it_each_episode_once() -> None:
    """Three wordings of one belief: the first two were merged, then their survivor."""
    records = [
        asserted(evidence={"for": ["ep-1"]}),
        merged("sem-i", "sem-h", evidence={"for": ["ep-1", "ep-2"]}),
        merged("sem-j", "sem-i", evidence={"against": ["ep-3"]}),
    ]
    episodes = [told(n, None) for n in (1, 2, 3)] + [told(4, True, "sem-j")]
    snapshot = Snapshot([*records, *episodes])
    after = snapshot.with_changes(weigh(snapshot))
    assert not weigh(after)
    kept = after.records["sem-h"]
    assert isinstance(kept, Belief)
    assert kept.confidence == 0.80  # (2 * 0.9 + 3) / (2 + 3 + 1)
    assert (kept.evidence.for_, kept.evidence.against) == (["ep-1"], [])
    assert after.records["sem-j"].document()["evidence"]["for"] == ["ep-4"]
    alone = Snapshot([after.records["sem-h"], *episodes])
    found = alone.with_changes(weigh(alone)).records["sem-h"]
    assert found.document()["confidence"] == 0.93  # its own one again: (2 * 0.9 + 1) / 3


def test_a_belief_whose_twin_is_gone_is_as_sure_as_it_was_stated() -> None:
    twin = merged("sem-i", "sem-h", evidence={"against": ["ep-1"]})
    snapshot = Snapshot([asserted(), twin, told(1, None)])
    united = snapshot.with_changes(weigh(snapshot)).records["sem-h"]
    assert united.document()["confidence"] == 0.60
    alone = Snapshot([united, told(1, None)])
    assert alone.with_changes(weigh(alone)).records["sem-h"].document()["confidence"] == 0.9


def test_what_a_person_superseded_by_another_statement_does_not_count_for_it() -> None:
    other = merged("sem-i", "sem-h", links=[{"to": "sem-h", "relation": "superseded_by"}])
    against = other.changed(evidence={"against": ["ep-1"]})
    snapshot = Snapshot([asserted(), against, told(1, None)])
    assert snapshot.with_changes(weigh(snapshot)).records["sem-h"] == asserted()


def test_two_branches_that_merged_each_into_the_other_count_alike() -> None:
    one = merged("sem-h", "sem-i", evidence={"for": ["ep-1"]})
    other = merged("sem-i", "sem-h", evidence={"for": ["ep-2"]})
    snapshot = Snapshot([one, other, told(1, None), told(2, None)])
    after = snapshot.with_changes(weigh(snapshot))
    assert {found.document()["confidence"] for found in after.of(Pattern)} == {0.90}
    assert not weigh(after)


def test_recording_imports_no_vectors(project: Path) -> None:
    import subprocess
    import sys

    script = (
        "import sys; from loki_memory import Workspace; ws = Workspace.init(sys.argv[1]);"
        "ws.browse.opened(ws.remember('Restart the cache').id); ws.record({'goal': 'Load'});"
        "print('numpy' in sys.modules, 'loki_memory.consolidation.feedback' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(project)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
    written = next((project / ".loki/memory/episodic").rglob("*.json"))
    assert json.loads(written.read_text())["recalled"]
