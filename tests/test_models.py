"""What a memory is: the records of Loki Mode's documents, lenient input, ids that never change."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from loki_memory.errors import InvalidId, InvalidRecord
from loki_memory.files import codec
from loki_memory.models import MODELS, AntiPattern, Episode, Fact, Memory, Pattern, parse
from loki_memory.models.ids import check_id, digest, file_stem, slug
from loki_memory.models.text import moment

EPISODE: dict[str, Any] = {
    "id": "ep-2026-01-06-001",
    "task_id": "task-042",
    "timestamp": "2026-01-06T10:30:00Z",
    "duration_seconds": 342,
    "agent": "eng-001-backend",
    "context": {
        "phase": "development",
        "goal": "Implement POST /api/todos endpoint",
        "constraints": ["No third-party deps", "< 200ms response"],
        "files_involved": ["src/routes/todos.ts", "src/db/todos.ts"],
    },
    "action_log": [
        {"t": 0, "action": "read_file", "target": "openapi.yaml"},
        {"t": 5, "action": "write_file", "target": "src/routes/todos.ts"},
        {"t": 120, "action": "run_test", "result": "fail", "error": "missing return type"},
        {"t": 140, "action": "edit_file", "target": "src/routes/todos.ts"},
        {"t": 180, "action": "run_test", "result": "pass"},
    ],
    "outcome": "success",
    "errors_encountered": [
        {
            "type": "TypeScript compilation",
            "message": "Missing return type annotation",
            "resolution": "Added explicit :void to route handler",
        }
    ],
    "artifacts_produced": ["src/routes/todos.ts", "tests/todos.test.ts"],
    "git_commit": "abc123",
}
PATTERN: dict[str, Any] = {
    "id": "sem-001",
    "pattern": "Express route handlers require explicit return types in strict mode",
    "category": "typescript",
    "conditions": [
        "Using TypeScript strict mode",
        "Writing Express route handlers",
        "Handler doesn't return a value",
    ],
    "correct_approach": "Add `: void` to handler signature: `(req, res): void =>`",
    "incorrect_approach": "Omitting return type annotation",
    "confidence": 0.95,
    "source_episodes": ["ep-2026-01-06-001", "ep-2026-01-05-012"],
    "usage_count": 8,
    "last_used": "2026-01-06T14:00:00Z",
    "links": [
        {"to": "sem-005", "relation": "related_to"},
        {"to": "sem-012", "relation": "supersedes"},
    ],
}
LINKED: dict[str, Any] = {
    "pattern": "A pattern with every link of Loki Mode",
    "links": [
        {"to": "sem-005", "relation": "derived_from"},
        {"to": "sem-012", "relation": "contradicts"},
        {"to": "sem-018", "relation": "elaborates"},
        {"to": "sem-023", "relation": "example_of"},
        {"to": "sem-031", "relation": "superseded_by"},
    ],
}
ANTI_PATTERN: dict[str, Any] = {
    "what_fails": "TypeScript compilation",
    "why": "Missing return type annotation",
    "prevention": "Added explicit :void to route handler",
    "source": "ep-2026-01-06-001",
}
LEDGER: dict[str, Any] = {
    "agent_id": "eng-001-backend",
    "last_checkpoint": "2026-01-06T10:00:00Z",
    "tasks_completed": 12,
    "current_task": "task-042",
    "state": {
        "files_modified": ["src/routes/todos.ts"],
        "uncommitted_changes": True,
        "last_git_commit": "abc123",
    },
    "context": {
        "tech_stack": ["express", "typescript", "sqlite"],
        "patterns_learned": ["sem-001", "sem-005"],
        "current_goal": "Implement CRUD for todos",
    },
}
HANDOFF: dict[str, Any] = {
    "id": "handoff-001",
    "from_agent": "eng-001-backend",
    "to_agent": "qa-001-testing",
    "timestamp": "2026-01-06T11:00:00Z",
    "context": {
        "what_was_done": "Implemented POST /api/todos endpoint",
        "artifacts": ["src/routes/todos.ts"],
        "git_state": "commit abc123",
        "needs_testing": ["unit tests for validation", "contract tests"],
        "known_issues": [],
        "relevant_patterns": ["sem-001"],
    },
}
REFERENCE = [
    ("episode", EPISODE),
    ("pattern", PATTERN),
    ("pattern", LINKED),
    ("anti-pattern", ANTI_PATTERN),
    ("ledger", LEDGER),
    ("handoff", HANDOFF),
]
# One record of each kind that gives its own id, for tests that go through all of them.
SMALLEST: dict[str, dict[str, Any]] = {
    "episode": {"timestamp": "2026-01-06T10:30:00Z", "context": {"goal": "Add search"}},
    "pattern": {"pattern": "Use explicit return types"},
    "anti-pattern": {"what_fails": "Deploying on Friday", "why": "Nobody is there on Saturday"},
    "fact": {"statement": "The tests need a database"},
    "link": {"from": "sem-001", "relation": "supersedes", "to": "sem-012"},
    "handoff": {
        "timestamp": "2026-01-06T11:00:00Z",
        "from_agent": "eng",
        "to_agent": "qa",
        "context": {"what_was_done": "Added search"},
    },
    "learning": {"timestamp": "2026-01-06", "lesson": "Run the contract tests first"},
}
_SETS = {"source_episodes", "links", "patterns_learned", "relevant_patterns"}


def made(kind: str, document: dict[str, Any]) -> Memory:
    return parse(MODELS[kind], document)  # type: ignore[index]


def meaning(value: Any, name: str = "") -> Any:
    """A document without the order of what has none."""
    if isinstance(value, dict):
        return {key: meaning(item, key) for key, item in value.items()}
    if isinstance(value, list):
        items = [meaning(item) for item in value]
        return sorted(items, key=repr) if name in _SETS else items
    return value


# -- Loki Mode's documents -----------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "document"), REFERENCE)
def test_a_record_of_loki_modes_documents_loses_nothing(
    kind: str, document: dict[str, Any]
) -> None:
    written = made(kind, document).document()
    if "id" not in document:
        written.pop("id", None)
    assert meaning(written) == meaning(document)


@pytest.mark.parametrize(("kind", "document"), REFERENCE)
def test_what_was_written_reads_as_the_same_record(kind: str, document: dict[str, Any]) -> None:
    record = made(kind, document)
    again = made(kind, codec.read_json(codec.encode(record)))
    assert again == record
    assert codec.encode(again) == codec.encode(record)


@pytest.mark.parametrize(("kind", "document"), REFERENCE)
def test_a_record_keeps_the_id_that_others_gave_it(kind: str, document: dict[str, Any]) -> None:
    assert made(kind, document).id == document.get("id", made(kind, document).id)


def test_all_seven_relations_of_loki_modes_documents_are_known() -> None:
    from loki_memory.models import RELATIONS

    assert {
        "derived_from",
        "related_to",
        "contradicts",
        "elaborates",
        "example_of",
        "supersedes",
        "superseded_by",
    } <= set(RELATIONS)


def test_evidence_and_links_become_edges() -> None:
    edges = {(edge.relation, edge.target) for edge in made("pattern", PATTERN).edges()}
    assert edges == {
        ("related_to", "sem-005"),
        ("supersedes", "sem-012"),
        ("derived_from", "ep-2026-01-06-001"),
        ("derived_from", "ep-2026-01-05-012"),
    }


def test_an_episode_is_searched_by_goal_errors_and_files_before_its_log() -> None:
    title, text, detail = made("episode", EPISODE).passage()
    assert title == "Implement POST /api/todos endpoint"
    assert "Missing return type annotation" in text
    assert "tests/todos.test.ts" in text
    assert "openapi.yaml" not in text
    assert "openapi.yaml" in detail


# -- unknown fields ------------------------------------------------------------------------------

WITH_UNKNOWN = [
    ("episode", {**EPISODE, "mood": {"was": ["good", 1, None]}}),
    ("episode", {**EPISODE, "context": {**EPISODE["context"], "sprint": {"n": 7}}}),
    ("episode", {**EPISODE, "action_log": [{"t": 1, "action": "x", "exit": {"code": 1}}]}),
    ("episode", {**EPISODE, "errors_encountered": [{"type": "E", "message": "m", "stack": [1]}]}),
    ("episode", {**EPISODE, "recalled": [{"id": "sem-001", "helpful": True, "rank": 2}]}),
    ("pattern", {**PATTERN, "evidence": {"for": [], "against": [], "maybe": ["ep-1"]}}),
    ("pattern", {**PATTERN, "citations": [{"path": "a.py", "lines": [1, 2]}]}),
    ("pattern", {**PATTERN, "links": [{"to": "sem-2", "relation": "related_to", "why": "x"}]}),
    ("pattern", {**PATTERN, "links": [{"to": "sem-2", "relation": "blocks"}]}),
    ("anti-pattern", {**ANTI_PATTERN, "resolutions": [{"do": "x", "repair": ["a", "b"]}]}),
    ("anti-pattern", {**ANTI_PATTERN, "key": {"head": "sql", "template": "Table <*>"}}),
    ("ledger", {**LEDGER, "state": {**LEDGER["state"], "branch": "main"}}),
    ("handoff", {**HANDOFF, "context": {**HANDOFF["context"], "blockers": [{"id": 1}]}}),
    ("fact", {**SMALLEST["fact"], "title": "t", "value": "v", "kind": "k", "document": {}}),
    ("learning", {**SMALLEST["learning"], "seen": 3}),
    ("link", {**SMALLEST["link"], "weight_by": {"ana": 0.5}}),
]


@pytest.mark.parametrize(("kind", "document"), WITH_UNKNOWN)
def test_unknown_fields_survive_at_every_depth(kind: str, document: dict[str, Any]) -> None:
    record = made(kind, codec.read_json(codec.encode(made(kind, document))))
    written = record.document()
    assert meaning({name: written.get(name) for name in document}) == meaning(document)


def test_a_change_keeps_unknown_fields() -> None:
    changed = made("pattern", {**PATTERN, "mood": [1]}).changed(confidence=0.5)
    assert changed.document()["mood"] == [1]


def test_fields_that_were_not_given_are_not_written() -> None:
    assert set(made("fact", SMALLEST["fact"]).document()) == {"id", "statement"}


def test_null_stays_null() -> None:
    document = made("pattern", {"pattern": "P", "category": None}).document()
    assert document["category"] is None


# -- lenient input -------------------------------------------------------------------------------


def episode(**fields: Any) -> Episode:
    return parse(Episode, {"timestamp": "2026-01-06", "goal": "G", **fields})


def test_a_goal_at_the_top_is_the_contexts_goal() -> None:
    record = episode()
    assert record.goal == "G"
    assert record.document()["context"] == {"goal": "G"}
    assert "goal" not in record.document()


def test_a_goal_at_the_top_joins_the_context_that_is_there() -> None:
    assert episode(context={"phase": "dev"}).context.phase == "dev"


def test_the_contexts_own_goal_wins_and_nothing_is_lost() -> None:
    record = episode(context={"goal": "inner"})
    assert record.goal == "inner"
    assert record.document()["goal"] == "G"


@pytest.mark.parametrize("context", ["free text", ["a", "list"], 7])
def test_a_context_that_is_no_object_is_refused_in_words(context: object) -> None:
    with pytest.raises(InvalidRecord, match="context"):
        episode(context=context)


def test_an_error_given_as_text_is_its_message() -> None:
    [error] = episode(errors_encountered=["Table users does not exist"]).errors_encountered
    assert (error.type, error.message) == ("", "Table users does not exist")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("failed", "failure"),
        ("FAILED", "failure"),
        ("error", "failure"),
        ("succeeded", "success"),
        ("Success", "success"),
        ("completed", "success"),
        ("partial", "partial"),
    ],
)
def test_agents_own_words_for_an_outcome_are_understood(written: str, meant: str) -> None:
    assert episode(outcome=written).outcome == meant


def test_an_outcome_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="outcome"):
        episode(outcome="meh")


def test_one_text_stands_for_a_list_of_one() -> None:
    assert parse(Pattern, {"pattern": "P", "conditions": "only one"}).conditions == ["only one"]


def test_a_number_stands_for_its_text() -> None:
    assert episode(task_id=42).task_id == "42"


@pytest.mark.parametrize("name", ["statement", "fact", "content", "text"])
def test_a_facts_statement_has_several_names_and_one_form(name: str) -> None:
    assert parse(Fact, {name: "S"}).document()["statement"] == "S"


@pytest.mark.parametrize(
    ("kind", "missing"), [("episode", "timestamp"), ("pattern", "pattern"), ("ledger", "agent_id")]
)
def test_a_missing_field_is_named(kind: str, missing: str) -> None:
    document = {**SMALLEST.get(kind, LEDGER)}
    del document[missing]
    with pytest.raises(InvalidRecord) as refused:
        made(kind, document)
    assert refused.value.field == missing
    assert refused.value.reason == "is missing"
    assert refused.value.advice


@pytest.mark.parametrize("confidence", [-0.1, 1.1, "high", [0.5]])
def test_a_confidence_that_is_none_is_refused(confidence: object) -> None:
    with pytest.raises(InvalidRecord, match="confidence"):
        parse(Pattern, {"pattern": "P", "confidence": confidence})


def test_an_empty_statement_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="statement"):
        parse(Fact, {"statement": ""})


# -- moments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-01-06T10:30:00Z", "2026-01-06T10:30:00Z"),
        ("2026-01-06T10:30:00+00:00Z", "2026-01-06T10:30:00Z"),
        ("2026-03-21T08:15:30.123456+00:00Z", "2026-03-21T08:15:30.123456Z"),
        ("2026-01-06T10:30:00+02:00", "2026-01-06T08:30:00Z"),
        ("2026-01-06T10:30:00-0530", "2026-01-06T16:00:00Z"),
        ("2026-01-06T23:30:00-05", "2026-01-07T04:30:00Z"),
        ("2026-01-06T10:30:00", "2026-01-06T10:30:00Z"),
        ("2026-01-06 10:30", "2026-01-06T10:30:00Z"),
        ("2026-01-06T10:30:00.500Z", "2026-01-06T10:30:00.5Z"),
        ("2026-01-06T10:30:00,25Z", "2026-01-06T10:30:00.25Z"),
        ("2026-01-06T10:30:00.000Z", "2026-01-06T10:30:00Z"),
        ("  2026-01-06T10:30:00z ", "2026-01-06T10:30:00Z"),
        ("2026-01-06", "2026-01-06"),
    ],
)
def test_a_moment_is_written_in_one_way(written: str, meant: str) -> None:
    assert moment(written) == meant
    assert moment(meant) == meant


@pytest.mark.parametrize(
    "written",
    [
        "yesterday",
        "",
        "2026-13-01",
        "2026-02-30T10:00:00Z",
        "2026-01-06T25:00:00Z",
        "2026-01-06T10:30:00 CET",
        "06.01.2026",
        "1767695400",
        "2026-01-06T10:30:00Z/../..",
        "\u0662\u0660\u0662\u0666-01-06",
        "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:59:59-05:00",
        "2026-W02-2T10:30:00Z",
        "2026-01-06T103000.1Z",
    ],
)
def test_what_is_no_moment_is_refused_in_words(written: str) -> None:
    with pytest.raises(InvalidRecord, match="timestamp"):
        episode(timestamp=written)


# -- ids -----------------------------------------------------------------------------------------

GOLDEN = {
    "episode": "ep-2026-01-06-95yaxna6z1",
    "pattern": "sem-g44w46e0bs",
    "anti-pattern": "anti-e7hss2s0ss",
    "fact": "fact-0em19g7n4v",
    "link": "link-v2hf2534wm",
    "handoff": "handoff-nepv5cx4qe",
    "learning": "learn-pg2cba0kbc",
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_derived_ids_never_change(kind: str) -> None:
    assert made(kind, SMALLEST[kind]).id == GOLDEN[kind]


def test_ids_of_what_is_named_by_its_file_never_change() -> None:
    assert made("ledger", LEDGER).id == "ledger-eng-001-backend"
    assert made("ledger", {"agent_id": "QA 1"}).id == "ledger-qa-1-07z59jbpk1"
    assert made("skill", {"name": "run-tests"}).id == "skill-run-tests"
    assert made("tombstone", {"value": "We deploy on Fridays"}).id == "tomb-etcxqsh84m"


@pytest.mark.parametrize("kind", SMALLEST)
def test_an_id_follows_the_key_and_nothing_else(kind: str) -> None:
    record = made(kind, SMALLEST[kind])
    other = made(kind, {**SMALLEST[kind], "unknown": 1, "origin": "owner"})
    assert other.id == record.id


def test_spelling_does_not_make_another_fact() -> None:
    spelled = parse(Fact, {"statement": "  the TESTS need\ta database. "})
    assert spelled.id == made("fact", SMALLEST["fact"]).id


@pytest.mark.parametrize(
    "other",
    [
        {"statement": "The tests need a server"},
        {"scope": "user"},
        {"scope": "local"},
        {"session": "s-1"},
        {"at": "2026-01-06"},
    ],
)
def test_another_key_gives_another_id(other: dict[str, str]) -> None:
    fact = SMALLEST["fact"]
    assert made("fact", {**fact, **other}).id != made("fact", fact).id


def test_a_session_and_a_moment_of_the_same_text_are_two_keys() -> None:
    by_session = parse(Fact, {"statement": "S", "session": "2026-01-06"})
    by_moment = parse(Fact, {"statement": "S", "at": "2026-01-06"})
    assert by_session.id != by_moment.id


def test_two_reasons_make_two_anti_patterns() -> None:
    other = parse(AntiPattern, {"what_fails": "Deploying on Friday", "why": "The bar is open"})
    assert other.id != made("anti-pattern", SMALLEST["anti-pattern"]).id


def test_a_tombstones_id_is_the_lock_of_its_value() -> None:
    stone = made("tombstone", {"id": "tomb-other", "value": "We deploy on Fridays"})
    assert stone.id == made("tombstone", {"value": "we deploy  on FRIDAYS"}).id


def test_kinds_do_not_share_ids() -> None:
    assert digest("fact", "x") != digest("pattern", "x")


@pytest.mark.parametrize(
    "good",
    ["sem-001", "ep-2026-01-06-001", "fact-7m2c9k4xq1", "handoff-A_b-C", "ab-1", "x" * 8 + "-y"],
)
def test_ids_that_others_wrote_are_good(good: str) -> None:
    assert check_id(good) == good


def test_the_longest_id_is_good_and_one_more_character_is_not() -> None:
    assert check_id("sem-" + "x" * 80)
    with pytest.raises(InvalidId):
        check_id("sem-" + "x" * 81)


def hostile_ids() -> list[str]:
    """More than 200 texts that must never become a part of a path."""
    roots = ["..", ".", "/", "\\", "~", "", " ", "con", "nul", "com1", "aux.json", "C:", "*", "?"]
    bad = ["../x", "a/b", "..\\x", "a\\b", "sem-1/..", "sem-1/../../x", "./sem-1", "sem-1/", "//x"]
    escaped = [
        "%2e%2e%2fx",
        "sem-%2e%2e",
        "sem-1%00",
        "..%c0%af",
        "%252e",
        "&#46;&#46;/",
        "\\u002e",
    ]
    shells = ["sem-$(id)", "sem-`id`", "sem-1;ls", "sem-1|x", "sem-1&x", "-rf", "--help", "$HOME"]
    forms = [
        "SEM-001",
        "sem_001",
        "sem001",
        "s-1",
        "semsemsems-1",
        "1sem-1",
        "sem-",
        "sem--1",
        "-1",
    ]
    scripts = [
        "\u0455em-001",
        "sem-\uff10\uff10\uff11",
        "ﬁx-1",
        "sem-é",
        "sem-e\u0301",
        "sem-ß",
        "事実-1",
        "sem-1\u200b",
    ]
    marks = [
        *map(chr, range(33)),
        *"\x7f\x80\x85\xa0\xad!\"#$%&'()*+,./:;<=>?@[]^{|}~",
        *"\u061c\u115f\u180e\u200c\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069\u3000",
        *"\ufe0f\ufeff\uffa0\uffff\U0001d7ce\U000e0001",
    ]
    inside = [f"sem-0{mark}1" for mark in marks]
    after = [f"sem-1{mark}" for mark in ["\0", "\n", "\r", " ", ".", "/", "\\", ":", "\u202e"]]
    before = [f"{mark}sem-1" for mark in ["\0", "\n", " ", ".", "/", "\\", "~", "\u202e", "\ufeff"]]
    long = ["sem-" + "x" * length for length in (81, 255, 256, 4096, 100_000)]
    deep = ["../" * depth + "etc/passwd" for depth in range(1, 30)]
    drives = ["C:sem-1", "C:\\sem-1", "\\\\host\\share", "file:///etc/passwd", "sem-1:$DATA"]
    dotted = [f"sem-{stem}" for stem in ("1.json", "..", ".", ".hidden", "a..b", "1.")]
    groups = [roots, bad, escaped, shells, forms, scripts, inside, after, before, long, deep]
    return list(dict.fromkeys(chain(*groups, drives, dotted)))


HOSTILE_IDS = hostile_ids()


def test_there_are_enough_hostile_ids() -> None:
    assert len(HOSTILE_IDS) >= 200


@pytest.mark.parametrize("kind", SMALLEST)
def test_no_kind_takes_a_hostile_id(kind: str) -> None:
    taken = []
    for hostile in filter(None, HOSTILE_IDS):
        try:
            taken.append(made(kind, {**SMALLEST[kind], "id": hostile}).id)
        except InvalidId:
            continue
    assert taken == []


def test_an_empty_id_is_none_at_all() -> None:
    assert made("fact", {**SMALLEST["fact"], "id": ""}).id == made("fact", SMALLEST["fact"]).id


def test_a_refused_id_is_shown_short_and_says_what_would_be_good() -> None:
    with pytest.raises(InvalidId) as refused:
        check_id("x" * 10_000)
    assert len(str(refused.value)) < 400
    assert "sem-001" in str(refused.value)


# -- names that become files ---------------------------------------------------------------------


@pytest.mark.parametrize("safe", ["task-042", "eng-001-backend", "a", "x_1", "7"])
def test_a_safe_name_is_its_own_file_name(safe: str) -> None:
    assert file_stem(safe) == safe


@pytest.mark.parametrize(
    ("one", "other"), [("QA-1", "qa-1"), ("a b", "a-b"), ("é", "è"), ("con", "con "), ("/", ".")]
)
def test_names_that_differ_give_files_that_differ(one: str, other: str) -> None:
    assert file_stem(one).lower() != file_stem(other).lower()


def test_a_slug_has_single_hyphens_inside() -> None:
    assert slug("  Fix:  the -- Build!  ") == "fix-the-build"
    assert slug("一二三") == ""
