"""Anti-patterns: one record per error, with what helped, from episodes in any order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki_memory.consolidation.anti_patterns import antipatterns
from loki_memory.consolidation.failures import SILENCE, mishaps
from loki_memory.consolidation.features import EpisodeFeatures, episode_features
from loki_memory.consolidation.snapshot import Snapshot, Thresholds
from loki_memory.consolidation.weigh import weigh
from loki_memory.models import (
    AntiPattern,
    Episode,
    Memory,
    Tombstone,
    parse,
    tombstone_id,
)
from loki_memory.models.error_noise import teaches
from loki_memory.models.error_signature import signature

TS7030 = "src/todos.ts(12,5): error TS7030: Not all code paths return a value."
NO_TABLE = "Table 'shop.carts' doesn't exist"


def episode(n: int, **fields: Any) -> Episode:
    given = {
        "id": f"ep-2026-01-{n:02d}-001",
        "timestamp": f"2026-01-{n:02d}T10:00:00Z",
        "goal": f"Task {n}",
        "outcome": "success",
    }
    return parse(Episode, {**given, **fields})


def met(n: int, message: str = NO_TABLE, resolution: str = "", **fields: Any) -> Episode:
    error = {"type": "error", "message": message, "resolution": resolution}
    return episode(n, errors_encountered=[error], **fields)


def steps(*log: tuple[str, str, str]) -> list[dict[str, str]]:
    """An action log of (tool, target, error)."""
    return [
        {"action": tool, "target": target, "result": "fail" if error else "ok", "error": error}
        for tool, target, error in log
    ]


def learned(*records: Memory, **fields: Any) -> list[AntiPattern]:
    put = antipatterns(Snapshot(records, **fields)).put
    return [one for one in put if isinstance(one, AntiPattern)]


def only(*records: Memory, **fields: Any) -> AntiPattern:
    (one,) = learned(*records, **fields)
    return one


# -- what becomes an anti-pattern ----------------------------------------------------------------


def test_one_error_met_by_three_episodes_is_one_anti_pattern_that_cites_them() -> None:
    found = only(
        met(1, TS7030, "Annotate the handler with : void"),
        met(2, TS7030.replace("12,5", "40,1"), "annotate the handler with : void."),
        met(3, TS7030.replace("todos", "lists"), "Return early in every branch"),
    )
    assert found.what_fails == "error TS7030: Not all code paths return a value."
    assert found.evidence.for_ == [f"ep-2026-01-0{n}-001" for n in (1, 2, 3)]
    assert [one.for_ for one in found.resolutions] == [
        found.evidence.for_[:2],
        found.evidence.for_[2:],
    ]
    assert found.prevention is not None
    assert found.prevention.lower().startswith("annotate the handler with : void")
    assert found.status == "candidate"
    assert (found.valid_from, found.at) == ("2026-01-01", "2026-01-03T10:00:00Z")


@pytest.mark.parametrize("outcome", ["success", "failure", "partial", "unknown"])
def test_an_episode_teaches_whatever_its_outcome(outcome: str) -> None:
    assert only(met(1, outcome=outcome)).evidence.for_ == ["ep-2026-01-01-001"]


def test_an_error_that_only_the_log_tells_is_learned_with_its_command() -> None:
    log = steps(("bash", "npm run biuld", 'npm ERR! Missing script: "biuld"'))
    found = only(episode(1, action_log=log))
    assert found.what_fails == 'npm ERR! Missing script: "biuld" (running npm run biuld)'
    assert found.document()["key"]["head"] == "npm run biuld"


def test_an_error_that_episode_and_log_tell_is_one() -> None:
    log = steps(("run_sql", "SELECT 1 FROM carts", f"Error executing query: {NO_TABLE}"))
    assert len(mishaps(met(1, action_log=log))) == 1


def test_errors_about_other_things_stay_apart() -> None:
    assert len(learned(met(1), met(2, NO_TABLE.replace("carts", "users")))) == 2


def test_a_cascade_teaches_nothing() -> None:
    assert not antipatterns(Snapshot([met(1, "Sibling tool call errored"), met(2, "Exit code 1")]))


def test_what_fails_has_the_signature_of_the_error_so_that_recall_finds_it() -> None:
    output = "error: externally-managed-environment\n\nhint: See PEP 668 for the specification."
    log = steps(("bash", "cd app && pip3 install requests", output))
    found = only(episode(1, action_log=log))
    assert signature(found.what_fails) == signature(output)
    assert found.what_fails.endswith("(running pip install)")


# -- what helped ---------------------------------------------------------------------------------


def test_without_words_the_exchanged_names_and_the_command_that_worked_say_it() -> None:
    log = steps(
        ("run_sql", "SELECT name FROM carts", NO_TABLE),
        ("run_sql", "SHOW TABLES", ""),
        ("run_sql", "SELECT name FROM cart WHERE id = 3", ""),
    )
    (found,) = only(episode(1, action_log=log)).resolutions
    assert found.do == "carts -> cart, e.g. SELECT name FROM cart WHERE id = 3"
    assert found.for_ == ["ep-2026-01-01-001"]


def test_one_exchange_in_two_commands_is_one_resolution() -> None:
    first = steps(("sql", "SELECT a FROM carts", NO_TABLE), ("sql", "SELECT a FROM cart", ""))
    second = steps(("sql", "SELECT b FROM carts", NO_TABLE), ("sql", "SELECT b FROM cart", ""))
    (found,) = only(episode(1, action_log=first), episode(2, action_log=second)).resolutions
    assert found.for_ == ["ep-2026-01-01-001", "ep-2026-01-02-001"]


@pytest.mark.parametrize(
    ("tool", "target", "error"),
    [
        ("Edit", "cart.py", "File has not been read yet. Read it first before writing to it."),
        ("Read", "cart.py", "File does not exist."),
        ("Bash", "cat cart.py", "cat: cart.py: No such file or directory"),
        ("Bash", "git merge dev", "CONFLICT (content): Merge conflict in cart.py"),
        ("Bash", "go test ./...", "--- FAIL: TestCart (0.00s)"),
        ("Bash", "go build", "undefined: cart"),
        ("Bash", "python -c 'print(x)'", "NameError: name 'x' is missing"),
        ("Bash", "make", "Exit code 2"),
    ],
)
def test_an_error_that_explains_itself_teaches_nothing(tool: str, target: str, error: str) -> None:
    assert learned(episode(1, action_log=steps((tool, target, error)))) == []


def test_an_exception_of_a_script_teaches_only_where_something_got_over_it() -> None:
    raised = "AttributeError: 'Cart' object has no attribute 'item'"
    log = [{"action": "Bash", "target": "python try_cart.py", "error": raised}]
    assert learned(episode(1, action_log=log)) == []
    resolved = {"type": "Bash", "message": raised, "resolution": "Use `python3` instead of it."}
    assert only(episode(1, action_log=log, errors_encountered=[resolved])).prevention


def test_one_rule_of_a_linter_in_two_places_is_one_anti_pattern() -> None:
    first = met(1, "a.go:3: Error return value of `os.Remove` is not checked (errcheck)")
    second = met(2, "b.go:9: Error return value of `f.Close` is not checked (errcheck)")
    found = only(first, second)
    assert found.what_fails == "Error return value of `…` is not checked (errcheck)"
    assert len(found.evidence.for_) == 2


def test_what_was_said_of_the_code_of_one_place_is_no_remedy_of_a_rule() -> None:
    change = "`_ = f.Close()` \u2192 `if err := f.Close(); err != nil {` (b.go)"
    line = "b.go:9: Error return value of `f.Close` is not checked (errcheck)"
    said = {"of one place": "`errcheck` on `f.Close` needs a check", "of all": "Check the error"}
    told = {
        of: only(met(1, line, resolution=f"{words}. E.g. {change}")).prevention
        for of, words in said.items()
    }
    assert told == {"of one place": f"Change {change}", "of all": "Check the error."}


def test_a_command_that_was_called_wrongly_teaches_from_one_session_on() -> None:
    log = steps(
        ("bash", "gh pr diff 104 --stat", "unknown flag: --stat"),
        ("bash", "gh pr diff 104 --name-only", ""),
    )
    known = Snapshot([episode(1, action_log=log)])
    known = known.with_changes(antipatterns(known))
    (found,) = known.with_changes(weigh(known)).of(AntiPattern)
    assert (found.prevention, found.status) == ("Run `gh pr diff 104 --name-only`", "active")


def test_a_mere_retry_is_no_resolution() -> None:
    again = "npm test 2>&1 | tail -5"
    log = steps(("bash", "npm test", "Error: timed out"), ("bash", again, ""))
    assert only(episode(1, action_log=log)).resolutions == []


def test_the_option_that_made_a_command_work_is_shown() -> None:
    failing = "error: externally-managed-environment"
    fixed = "pip install --break-system-packages requests"
    log = steps(("bash", "pip install requests", failing), ("bash", fixed, ""))
    (found,) = only(episode(1, action_log=log)).resolutions
    assert found.do == f"Run `{fixed}`"


def test_what_was_tried_before_the_same_error_came_again_speaks_against_it() -> None:
    errors = [
        {"message": NO_TABLE, "resolution": "Create the table by hand"},
        {"message": NO_TABLE, "resolution": "Run the migrations"},
    ]
    best, worst = only(episode(1, errors_encountered=errors)).resolutions
    assert (best.do, best.against) == ("Run the migrations", [])
    assert (worst.do, worst.for_) == ("Create the table by hand", [])


def test_the_remedy_of_an_episode_that_failed_speaks_against_it() -> None:
    (found,) = only(met(1, resolution="Restart it", outcome="failure")).resolutions
    assert (found.for_, found.against) == ([], ["ep-2026-01-01-001"])


def test_the_three_surest_resolutions_are_kept() -> None:
    episodes = [met(n, resolution=f"Try way {n % 5}") for n in range(1, 12)]
    episodes += [met(20, resolution="Try way 0", outcome="failure")]
    found = only(*episodes)
    assert [len(one.for_) for one in found.resolutions] == [3, 2, 2]
    assert found.prevention == "Try way 1"
    assert len(found.evidence.for_) == 12


def queried(n: int, wrong: str, right: str, **fields: Any) -> Episode:
    """An episode whose query met a table that does not exist, and the query that ran then."""
    log = steps(("run_sql", wrong, NO_TABLE), ("run_sql", right, ""))
    return episode(n, action_log=log, **fields)


def test_whoever_got_over_it_by_a_name_that_a_remedy_brings_in_speaks_for_it() -> None:
    found = only(
        queried(1, "SELECT name FROM carts", "SELECT name FROM cart"),
        queried(2, "SELECT pay FROM carts", "SELECT pay FROM cart JOIN item ON item.id = cart.id"),
        queried(3, "SELECT title FROM carts", "SELECT title FROM basket"),
    )
    assert found.resolutions[0].do.startswith("carts -> cart, e.g. ")
    assert [one.for_ for one in found.resolutions] == [
        ["ep-2026-01-01-001", "ep-2026-01-02-001"],
        ["ep-2026-01-03-001"],
    ]


def test_two_who_use_one_name_agree_though_their_exchanges_read_otherwise() -> None:
    one = queried(1, "SELECT x FROM carts", "SELECT x FROM line JOIN basket ON line.x = basket.x")
    other = queried(2, "SELECT x FROM carts, users", "SELECT x FROM basket JOIN owner ON 1 = 1")
    found = only(one, other)
    assert len(found.resolutions) == 2
    assert [one.for_ for one in found.resolutions] == [found.evidence.for_] * 2


def test_words_that_two_sentences_share_make_them_no_one_remedy() -> None:
    found = only(met(1, resolution="Run the migrations"), met(2, resolution="Drop the migrations"))
    assert sorted(one.for_ for one in found.resolutions) == [[name] for name in found.evidence.for_]


def test_tasks_that_failed_do_not_sink_the_remedy_that_helped_most() -> None:
    helped = [met(n, resolution="Use cart") for n in (1, 2)]
    failed = [met(n, resolution="Use cart", outcome="failure") for n in range(3, 12)]
    found = only(*helped, *failed, met(12, resolution="Use basket"))
    assert found.prevention == "Use cart"
    assert len(found.resolutions[0].against) == 9


def test_who_overcame_it_by_what_is_not_kept_is_listed_as_otherwise() -> None:
    ways = [met(n, resolution=f"Try way {n}") for n in range(1, 6)]
    assert only(*ways).document()["otherwise"] == ["ep-2026-01-01-001", "ep-2026-01-02-001"]
    unknown = [met(8), met(9, resolution="Try way 9", outcome="failure")]
    assert "otherwise" not in only(*ways[:3], *unknown).document()


def test_a_command_that_worked_helps_though_the_task_failed() -> None:
    error = {
        "type": "python",
        "message": "ImportError: No module named pathlib",
        "resolution": "Use `python3` instead of `python`. E.g. `python3 a.py`",
        "command": "python3 a.py",
    }
    episodes = [_failed(day, error) for day in (1, 2)]
    (known,) = [one for one in antipatterns(Snapshot(episodes)).put if isinstance(one, AntiPattern)]
    assert (known.prevention or "").startswith("Use `python3` instead of `python`. E.g. ")
    assert [len(resolution.for_) for resolution in known.resolutions] == [2]


def _failed(day: int, error: dict[str, str]) -> EpisodeFeatures:
    other = {**error, "resolution": error["resolution"].replace("a.py", f"b{day}.py")}
    episode = {
        "id": f"ep-2026-01-{day:02}-001",
        "timestamp": f"2026-01-{day:02}T10:00:00Z",
        "context": {"goal": "Run it"},
        "outcome": "failure",
        "captured": True,
        "errors_encountered": [other, error],
    }
    return episode_features(parse(Episode, episode))


def test_what_is_kept_again_is_no_longer_listed_as_otherwise() -> None:
    ways = [met(1, resolution="Use cart"), met(2, resolution="Use basket")]
    strict = Snapshot(ways, thresholds=Thresholds(resolutions=1))
    (known,) = strict.with_changes(antipatterns(strict)).of(AntiPattern)
    assert known.document()["otherwise"] == ["ep-2026-01-01-001"]
    assert only(known, *ways).document() == only(*ways).document()


def test_who_is_listed_as_otherwise_stays_so_in_the_archive() -> None:
    ways = [met(n, resolution=f"Try way {n}") for n in range(1, 6)]
    known, new = only(*ways), met(7, resolution="Try way 5")
    assert only(known, new).document()["otherwise"] == known.document()["otherwise"]


# -- what is already there -----------------------------------------------------------------------


def test_a_second_run_changes_nothing() -> None:
    before = Snapshot([met(1, resolution="Run the migrations"), met(2), met(3, TS7030)])
    after = before.with_changes(antipatterns(before))
    assert not antipatterns(after)
    assert not antipatterns(after, frozenset({"ep-2026-01-02-001"}))


def test_what_is_known_of_archived_episodes_stays() -> None:
    first = Snapshot([met(1, resolution="Run the migrations")])
    (known,) = (one for one in antipatterns(first).put if isinstance(one, AntiPattern))
    found = only(known, met(2, resolution="run the migrations"))
    assert found.evidence.for_ == ["ep-2026-01-01-001", "ep-2026-01-02-001"]
    assert found.resolutions[0].for_ == found.evidence.for_
    assert found.valid_from == "2026-01-01"


def test_fields_of_others_and_the_words_of_the_owner_stay() -> None:
    known = only(met(1)).changed(
        what_fails="The carts table is called cart", origin="owner", team="shop", pinned=True
    )
    found = only(known, met(2, resolution="Use cart"))
    assert found.what_fails == "The carts table is called cart"
    assert (found.document()["team"], found.pinned, found.origin) == ("shop", True, "owner")
    assert len(found.evidence.for_) == 2
    assert found.resolutions[0].do == "Use cart"


def test_a_rejected_value_is_not_learned_again() -> None:
    assert not learned(met(1), rejected=[tombstone_id(NO_TABLE)])


def test_a_rejected_record_stays_rejected_in_other_words() -> None:
    known = only(met(1, "Unknown column 'a' in 'field list'"))
    stone = parse(Tombstone, {"value": known.value(), "rejected": known.id})
    assert not learned(stone, met(2, "Unknown column 'a' in 'order clause'"))


@pytest.mark.parametrize(
    ("sources", "origin"),
    [
        (("owner", "agent"), "agent"),
        (("agent", "import"), "import"),
        (("external", "import"), "external"),
        ((None,), "agent"),
    ],
)
def test_it_is_trusted_no_more_than_its_least_trusted_source(
    sources: tuple[str | None, ...], origin: str
) -> None:
    assert only(*(met(n, origin=one) for n, one in enumerate(sources, 1))).origin == origin


# -- any order, any batches ----------------------------------------------------------------------

STORE = [
    met(n, message, resolution, outcome=outcome)
    for n, (message, resolution, outcome) in enumerate(
        [
            (NO_TABLE, "Run the migrations", "success"),
            (TS7030, "Add : void", "success"),
            (NO_TABLE, "run the migrations.", "failure"),
            (NO_TABLE, "Create the table", "success"),
            (TS7030.replace("12", "7"), "", "unknown"),
            (NO_TABLE, "Use cart", "partial"),
            (NO_TABLE, "Ask the owner", "success"),
            (TS7030, "Add : void", "success"),
        ],
        start=1,
    )
]


def documents(snapshot: Snapshot) -> list[dict[str, Any]]:
    known = sorted(snapshot.records.items())
    return [one.document() for _, one in known if isinstance(one, Memory)]


def in_batches(order: list[Episode], size: int) -> Snapshot:
    """What is known once episodes have come, so many at a time."""
    grown = Snapshot([])
    for start in range(0, len(order), size):
        batch = order[start : start + size]
        grown = Snapshot([*grown.records.values(), *batch])
        grown = grown.with_changes(antipatterns(grown, frozenset(one.id for one in batch)))
    return grown


@given(st.permutations(STORE), st.integers(1, len(STORE)))
@settings(max_examples=40, deadline=None)
def test_episodes_in_any_order_and_batches_make_equal_records(
    order: list[Episode], size: int
) -> None:
    at_once = Snapshot(STORE)
    expected = documents(at_once.with_changes(antipatterns(at_once)))
    assert documents(in_batches(order, size)) == expected


@given(st.permutations(range(1, 32)), st.integers(3, 20))
@settings(max_examples=15, deadline=None)
def test_an_error_met_by_very_many_episodes_is_the_same_in_any_batches(
    order: list[int], size: int
) -> None:
    """More than are read again: the words are of the newest, the evidence is of all."""
    store = {n: met(n, resolution=f"Try way {n % 7}") for n in order}
    at_once = Snapshot(store.values())
    expected = documents(at_once.with_changes(antipatterns(at_once)))
    assert documents(in_batches([store[n] for n in order], size)) == expected
    assert sum(len(one["evidence"]["for"]) for one in expected if "evidence" in one) == 31


REPAIRED = (
    "SELECT x FROM cart",
    "SELECT x FROM basket",
    "SELECT x FROM cart JOIN item",
    "SELECT x FROM item JOIN basket",
    "SELECT x FROM shop",
    "SELECT x FROM stall",
    "SELECT x FROM till",
)


@given(st.permutations(range(1, 15)), st.integers(1, 14))
@settings(max_examples=25, deadline=None)
def test_remedies_that_share_names_are_the_same_in_any_order_and_batches(
    order: list[int], size: int
) -> None:
    store = {n: queried(n, "SELECT x FROM carts", REPAIRED[n % len(REPAIRED)]) for n in order}
    at_once = Snapshot(store.values())
    expected = documents(at_once.with_changes(antipatterns(at_once)))
    assert documents(in_batches([store[n] for n in order], size)) == expected
    (error,) = at_once.with_changes(antipatterns(at_once)).of(AntiPattern)
    assert len(error.resolutions[0].for_) == 6  # item or basket
    assert len(error.document()["otherwise"]) == 6  # shop, stall, till


def test_episodes_that_only_say_that_it_helped_are_evidence_and_not_occurrences() -> None:
    store = [met(1, resolution="Run the migrations"), met(2)]
    before = Snapshot(store)
    before = before.with_changes(antipatterns(before))
    (known,) = before.of(AntiPattern)
    helped = [episode(n, recalled=[{"id": known.id, "helpful": True}]) for n in range(3, 31)]
    told = Snapshot([*before.records.values(), *helped])
    told = told.with_changes(weigh(told))
    assert len(told.of(AntiPattern)[0].evidence.for_) == 30
    assert not antipatterns(told)
    assert not antipatterns(told, frozenset({"ep-2026-01-02-001", "ep-2026-01-30-001"}))


def test_one_message_of_two_tools_is_two_anti_patterns_that_a_reader_can_tell_apart() -> None:
    log = steps(("bash", "deploy", "no token is set"), ("bash", "publish", "no token is set"))
    titles = {one.what_fails for one in learned(episode(1, action_log=log))}
    assert titles == {
        "no token is set (running deploy)",
        "no token is set (running publish)",
    }


@pytest.mark.parametrize(
    "printed",
    ["---", "diff --git a/src/a.ts b/src/a.ts", "3f2a91c Fix the import", "connected."],
)
def test_what_a_command_printed_without_a_complaint_teaches_nothing(printed: str) -> None:
    assert not teaches(printed, "Bash", "git diff HEAD~1")


@pytest.mark.parametrize(
    "command",
    ["git stash drop", "git reset --hard origin/main", "rm -rf build", "git push --force"],
)
def test_a_command_that_may_destroy_work_is_no_remedy(command: str) -> None:
    failed = {
        "action": "Bash",
        "target": "git merge main",
        "error": "local changes stand in the way",
    }
    worked = {"action": "Bash", "target": f"{command} && git merge main --no-edit"}
    given = {"goal": "Merge", "timestamp": "2026-03-02", "action_log": [failed, worked]}
    assert [failure.do for failure in mishaps(parse(Episode, given))] == [""]


def test_a_rule_is_silenced_only_where_half_of_those_that_met_it_did_so() -> None:
    """One place that is meant so does not make the rule void elsewhere."""
    finding = "Error return value of `log.Init` is not checked (errcheck)"
    silenced = f"{SILENCE}, e.g. `//nolint:errcheck // nothing to do then` (log.go)"
    meant, mended = met(1, finding, silenced), [met(n, finding) for n in (2, 3)]
    assert only(meant, mended[0]).prevention == silenced
    assert only(meant, *mended).prevention is None


def test_a_linters_rule_belongs_to_the_commands_that_report_it_alone() -> None:
    """`make fmt && make lint` says nothing of which of both complained."""
    finding = "a.go:3:2: Error return value is not checked (errcheck)"
    ran = (
        "make lint",
        "make fmt && make lint",
        "cd src && make lint | tail -5",
        "make fmt && go vet",
    )
    logs = [steps(("Bash", command, finding)) for command in ran]
    found = only(*[met(n, finding, action_log=log) for n, log in enumerate(logs, 1)])
    assert (found.model_extra or {})["commands"] == ["make lint"]
