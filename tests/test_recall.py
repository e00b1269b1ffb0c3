"""Recall from end to end: the right memories, what is said of each, and nothing changed by it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_models import EPISODE, LEDGER, PATTERN
from test_sync import overwrite, wait_until_current, write

import loki_memory
from loki_memory import Workspace
from loki_memory.embedding import load
from loki_memory.embedding.static_model import Embedding, Model2VecModel, StaticModel
from loki_memory.errors import InvalidConfig, InvalidRecord
from loki_memory.index import vectors
from loki_memory.index.vectors import Vectors
from loki_memory.integrity.citations import is_stale
from loki_memory.recall import retriever
from loki_memory.recall.links import shared
from loki_memory.recall.recall import RecallOptions, _in_dispute, _RankedLine, note_shown, recall
from loki_memory.recall.result import Recollection

NOW = "2026-02-01T12:00:00Z"
FACTS = (
    "The contract tests need a running database",
    "Deployments happen on Fridays after lunch",
    "The billing service rounds to four decimals",
    "Logs are rotated every night at two",
    "Passwords are hashed with argon2",
    "The mobile app talks to the gateway over gRPC",
    "Feature flags live in a table called switches",
    "Ana decides about the public interface",
)


def ids(hits: Sequence[Recollection]) -> list[str]:
    return [hit.id for hit in hits]


def titles(hits: Sequence[Recollection]) -> list[str]:
    return [hit.title for hit in hits]


def of(hits: Sequence[Recollection], memory_id: str) -> Recollection:
    return next(hit for hit in hits if hit.id == memory_id)


def put(ws: Workspace, folder: str, document: dict[str, Any]) -> Path:
    """A record as an agent writes it."""
    path = ws.layout.memory / folder / f"{document['id']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def fill(ws: Workspace) -> None:
    for statement in FACTS:
        ws.remember(statement)
    ws.record(EPISODE)
    put(ws, "semantic/patterns", PATTERN)


def contents(ws: Workspace) -> dict[str, tuple[bytes, int]]:
    """All of memory, byte for byte, with its times."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(ws.layout.loki.rglob("*"))
        if path.is_file()
        and not path.is_relative_to(ws.layout.cache)
        and not path.is_relative_to(ws.layout.local)
    }


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A store that tests only ask; made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOKI_HOME", str(tmp_path_factory.mktemp("nobody") / ".loki"))
        workspace = Workspace.init(tmp_path_factory.mktemp("library"))
        fill(workspace)
        assert workspace.recall("database")
        yield workspace
        workspace.close()


@pytest.fixture
def full(ws: Workspace) -> Workspace:
    fill(ws)
    return ws


@pytest.fixture
def no_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small stores are sure of nothing; what is tested here is what comes after."""
    monkeypatch.setenv("LOKI_RECALL_FLOOR", "0")


# -- what is found, and what is said about it ----------------------------------------------------


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("what do the contract tests need?", FACTS[0]),
        ("when do deployments happen", FACTS[1]),
        ("how are passwords stored securely", FACTS[4]),
        ("billing rounding", FACTS[2]),
        ("return types of Express handlers", PATTERN["pattern"]),
        ("todos endpoint", EPISODE["context"]["goal"]),
    ],
)
def test_the_memory_that_answers_comes_first(library: Workspace, question: str, title: str) -> None:
    assert library.recall(question)[0].title == title


def test_a_hit_says_all_that_one_needs_to_judge_it(
    library: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_NOW", NOW)
    hit = library.recall("explicit return types in strict mode")[0]
    assert (hit.id, hit.kind, hit.title) == ("sem-001", "pattern", PATTERN["pattern"])
    assert hit.score > 0
    assert hit.why[0] == "matches 'explicit', 'return', 'types', 'strict', 'mode'"
    assert (hit.confidence, hit.evidence, hit.status, hit.scope) == (0.95, 2, "active", "project")
    assert (hit.at, hit.age_days) == (PATTERN["last_used"], 26)
    assert hit.stale is False
    assert hit.contradicts == ()
    assert hit.tokens > 50


def test_an_excerpt_never_says_what_was_rejected(full: Workspace) -> None:
    fact = full.remember("Husky keeps all of its hooks in .git/hooks")
    episode = {"goal": "are you sure?", "outcome": "success"}
    full.record(episode | {"summary": f"I looked.\n\n# Where husky hooks are\n- {fact.title()}"})
    question = "where does husky keep its hooks"
    assert full.recall(question, kinds=["episode"])[0].excerpt == fact.title()
    full.reject(fact.id)
    assert full.recall(question, kinds=["episode"])[0].excerpt == ""


def test_what_states_no_moment_has_no_age(library: Workspace) -> None:
    (hit,) = library.recall("Passwords hashed argon2", k=1, kinds=["fact"])
    given_at = library.get(hit.id).when()
    assert (hit.at, hit.age_days is None) == (given_at, not given_at)


def test_hits_come_best_first_and_each_once(library: Workspace) -> None:
    hits = library.recall("tests of the billing database", k=8)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len(set(ids(hits))) == len(hits) == 8


def test_every_hit_has_a_reason(library: Workspace) -> None:
    assert all(hit.why for hit in library.recall("database tests and gRPC", k=10))


def test_the_answer_says_how_long_it_took_and_for_which_task(library: Workspace) -> None:
    hits = library.recall("fix the failing contract tests")
    assert hits.took > 0
    assert hits.task == "debugging"
    assert library.recall("fix the contract tests", task="review").task == "review"
    assert library.recall("contract tests").task == ""


def test_scores_are_explained_hit_by_hit(library: Workspace) -> None:
    hits = library.recall("contract tests database", k=3)
    parts = library.browse.explain("contract tests database", k=3)
    assert len(parts) == len(hits)
    assert parts[0]["bm25"] > 0


def test_a_long_memory_is_one_hit_and_found_by_its_end(ws: Workspace) -> None:
    filler = " ".join(f"Line {n} of the minutes says little." for n in range(200))
    minutes = ws.remember(f"{filler} Finally the zeppelin was grounded.")
    ws.remember("Something short about lines")
    hits = ws.recall("why was the zeppelin grounded")
    assert hits[0].id == minutes.id
    assert len(set(ids(hits))) == len(hits)


def test_a_long_text_is_answered_where_its_title_alone_is(full: Workspace) -> None:
    title = "Deployments happen on Fridays"
    rest = "\n".join(f"0x{n:04x} mov rax rbx cmp jne xor shl" for n in range(20))
    assert full.recall(title)[0].title == FACTS[1]
    assert FACTS[1] in titles(full.recall(f"{title}\n\n{rest}"))


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_writing_does_not_matter(ws: Workspace, order: int) -> None:
    for statement in FACTS[::order]:
        ws.remember(statement, at="2026-01-01")
    hits = ws.recall("contract tests and the public interface", k=4)
    assert titles(hits)[:2] == [FACTS[0], FACTS[7]]


def test_the_same_question_has_the_same_answer(library: Workspace) -> None:
    question = "who decides about deployments and tests"
    first = library.recall(question, k=8)
    assert list(library.recall(question, k=8)) == list(first)
    with Workspace.open(library.layout.root) as other:
        assert list(other.recall(question, k=8)) == list(first)


# -- exact questions -----------------------------------------------------------------------------


def test_an_id_is_that_memory_and_nothing_else(library: Workspace) -> None:
    (hit,) = library.recall("sem-001")
    assert (hit.id, hit.why) == ("sem-001", ("its id",))


def test_an_id_in_a_sentence_comes_first(library: Workspace) -> None:
    hits = library.recall("does sem-001 apply to the contract tests?")
    assert hits[0].id == "sem-001"
    assert hits[0].why[0] == "its id"
    assert FACTS[0] in titles(hits)


def test_the_beginning_of_an_id_is_enough(library: Workspace) -> None:
    assert ids(library.recall("ep-2026-01*")) == ["ep-2026-01-06-001"]


def test_a_field_limits_what_is_ranked(library: Workspace) -> None:
    assert ids(library.recall("category:typescript tests")) == ["sem-001"]
    assert ids(library.recall("kind:episode endpoint")) == [EPISODE["id"]]
    assert library.recall("category:nothing tests") == []


def test_fields_alone_give_the_newest_first(ws: Workspace) -> None:
    for name, at in (("a", "2026-01-01"), ("b", "2026-01-03"), ("c", "2026-01-02")):
        write(ws, name, statement=f"Statement {name}", category="x", at=at)
    assert ids(ws.recall("category:x")) == ["fact-b", "fact-c", "fact-a"]


# -- what is asked for ---------------------------------------------------------------------------


def test_kinds_limit_what_is_found(library: Workspace) -> None:
    hits = library.recall("types tests endpoint", k=9, kinds=["episode", "pattern"])
    assert {hit.kind for hit in hits} == {"episode", "pattern"}


@pytest.mark.parametrize(
    "wish", [{"kinds": ["x"]}, {"task": "x"}, {"scope": "x"}, {"status": "x"}, {"k": 0}, {"k": -1}]
)
def test_a_wish_that_nothing_could_fit_is_refused(library: Workspace, wish: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecord):
        library.recall("tests", **wish)


@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_k_means_k(library: Workspace, k: int) -> None:
    assert len(library.recall("contract tests", k=k)) == k


def test_more_than_there_are_is_all_there_are(library: Workspace) -> None:
    assert len(library.recall("contract tests", k=1000)) == len(library.list())


def test_a_budget_limits_what_is_shown(library: Workspace) -> None:
    everything = library.recall("contract tests", k=5)
    for budget in (0, 10, 20, 40, 1000):
        hits = library.recall("contract tests", k=5, budget=budget)
        assert ids(hits) == ids(everything)[: len(hits)]
        told = [f"{hit.id} {hit.title}\n{'; '.join(hit.why)}" for hit in hits]
        cost = sum((len(text.encode()) + 3) // 4 for text in told)
        assert cost <= budget
    assert len(library.recall("contract tests", k=5, budget=0)) == 0
    assert library.recall("contract tests", k=5, budget=0).cut == 5
    assert len(library.recall("contract tests", k=5, budget=1000)) == 5


# -- nothing near enough -------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["zebra migration in Tanzania", "xyzzy", "Lieblingsfarbe"])
def test_where_nothing_is_near_enough_nothing_is_returned(
    library: Workspace, question: str
) -> None:
    hits = library.recall(question)
    assert hits == []
    assert hits.filtered > 0


def test_what_was_withheld_comes_without_a_floor(no_floor: None, ws: Workspace) -> None:
    fill(ws)
    hits = ws.recall("what does the reader of tables need?")
    assert len(hits) == 5
    assert hits.filtered == 0


@pytest.mark.parametrize("question", ["zebra", "tabs", "xyzzy"])
def test_without_a_floor_nothing_is_ever_withheld(
    no_floor: None, ws: Workspace, question: str
) -> None:
    ws.remember(FACTS[0])
    hits = ws.recall(question)
    assert (len(hits), hits.filtered) == (1, 0)


def test_a_floor_does_not_hide_what_was_asked_for_exactly(
    full: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_RECALL_FLOOR", "1000")
    with Workspace.open(full.layout.root) as strict:
        assert strict.recall("contract tests") == []
        assert ids(strict.recall("sem-001")) == ["sem-001"]
        assert ids(strict.recall("category:typescript")) == ["sem-001"]


def test_the_floor_holds_where_only_a_hidden_memory_shares_something(ws: Workspace) -> None:
    fill(ws)
    write(ws, "old", statement="About parse_config", status="superseded")
    assert ws.recall("zebra migration parse_config") == []


@pytest.mark.parametrize(
    "question", ["", " ", "anything", "sem-001", "kind:fact", "a*", "status:all"]
)
def test_an_empty_store_has_no_answer(ws: Workspace, question: str) -> None:
    hits = ws.recall(question, files=["a"], error="Error: x", deep=True)
    assert (hits, hits.filtered) == ([], 0)


def test_a_store_of_one_answers(ws: Workspace) -> None:
    fact = ws.remember(FACTS[0])
    assert ids(ws.recall("contract tests database")) == [fact.id]


# -- any question at all -------------------------------------------------------------------------

STRANGE = [
    *(
        "",
        " ",
        "\n",
        "?",
        "...",
        "'",
        '"',
        '"unterminated',
        "*",
        "a*",
        "%",
        ";--",
        "\\",
        "(((",
        "[]",
    ),
    *(
        "NEAR(a b, 2)",
        "a AND OR NOT b",
        "^a",
        "text:a",
        "\0",
        "a\0b",
        "\x1b[31m",
        "\ufeff",
        "\u202e",
    ),
    *("👩 🎉", "契約テスト", "база данных", "قاعدة البيانات", "मेमोरी", "İstanbul"),
    *("\ufb01x", "x" * 1_000_000, "tests " * 200_000, "契" * 100_000, "\n" * 100_000),
    *("🎉" * 50_000, " ".join(f"w{n}" for n in range(10_000))),
]


@pytest.mark.parametrize("question", STRANGE, ids=lambda text: ascii(text[:12]))
def test_no_question_is_an_error(library: Workspace, question: str) -> None:
    hits = library.recall(question, deep=True)
    assert len(hits) <= 5
    assert library.notices == []


@given(st.text(max_size=60), st.text(max_size=40), st.lists(st.text(max_size=20), max_size=2))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_question_error_or_file_is_an_error(
    library: Workspace, question: str, error: str, files: list[str]
) -> None:
    assert len(library.recall(question, error=error, files=files)) <= 5
    assert library.notices == []


HALF = "caf\udce9"  # the bytes of a file's name in Latin-1, as Python gives them


def test_half_a_character_in_a_question_is_no_error(library: Workspace) -> None:
    assert library.recall(f"contract tests {HALF}")[0].title == FACTS[0]


@pytest.mark.parametrize(
    "wish",
    [
        {"error": f"Error: cannot read {HALF}"},
        {"files": [f"{HALF}.py"]},
        {"query": f"contract tests category:{HALF}"},
    ],
)
def test_half_a_character_anywhere_else_is_none(full: Workspace, wish: dict[str, Any]) -> None:
    hits = full.recall(**{"query": "contract tests", **wish})
    assert hits == [] or hits[0].title == FACTS[0]
    assert full.notices == []


# -- status and scope ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["superseded", "rejected", "retired"])
def test_what_is_over_does_not_appear_unless_asked_for(full: Workspace, status: str) -> None:
    write(full, "old", statement="The contract tests need a mainframe", status=status)
    question = "contract tests need"
    assert "fact-old" not in ids(full.recall(question, k=20))
    assert ids(full.recall(question, status=status)) == ["fact-old"]
    assert ids(full.recall(f"status:{status} {question}")) == ["fact-old"]
    hit = of(full.recall(question, k=20, status="all"), "fact-old")
    assert hit.status == status


def test_who_names_an_id_asks_for_it(full: Workspace) -> None:
    write(full, "old", statement="The contract tests need a mainframe", status="superseded")
    assert ids(full.recall("fact-old")) == ["fact-old"]


def test_a_value_that_was_rejected_does_not_come_back(full: Workspace) -> None:
    fact = full.remember("The contract tests need a mainframe")
    assert fact.id in ids(full.recall("contract tests need"))
    full.reject(fact.id)
    put(full, "semantic/facts", {"id": "fact-again", "statement": fact.title()})
    assert not {fact.id, "fact-again"} & set(ids(full.recall("contract tests need", k=20)))


def test_what_was_archived_or_forgotten_does_not_appear(full: Workspace) -> None:
    a, b = full.remember("The tests need a mainframe"), full.remember("The tests need a miracle")
    assert {a.id, b.id} <= set(ids(full.recall("tests need")))
    full.archive(a.id)
    full.forget(b.id)
    assert not {a.id, b.id} & set(ids(full.recall("tests need", k=20, status="all")))


def test_candidates_and_disputed_beliefs_say_so(full: Workspace) -> None:
    for status in ("candidate", "disputed"):
        write(full, status, statement=f"The {status} tests need a mainframe", status=status)
    hits = full.recall("tests need a mainframe")
    assert of(hits, "fact-candidate").status == "candidate"
    assert of(hits, "fact-disputed").status == "disputed"


def test_a_ledger_is_shown_to_who_asks_for_ledgers(full: Workspace) -> None:
    full.team.checkpoint(LEDGER)
    goal = full.recall("kind:ledger")[0].title
    assert "ledger" not in {hit.kind for hit in full.recall(goal, k=20)}
    assert [hit.kind for hit in full.recall(goal, kinds=["ledger"])] == ["ledger"]


def test_links_and_tombstones_are_no_answers(full: Workspace) -> None:
    a, b = full.remember("Walnuts grow"), full.remember("Walnuts fall")
    full.link(a.id, "supports", b.id)
    full.reject(full.remember("Walnuts fly").id)
    kinds = {hit.kind for hit in full.recall("walnuts fly supports", k=30, status="all")}
    assert not kinds & {"link", "tombstone"}


def test_a_session_sees_its_own_memories_and_no_other(full: Workspace) -> None:
    own = full.remember("The walnut token is blue", scope="session", session="s1")
    assert own.id not in ids(full.recall("walnut token", k=20))
    assert own.id not in ids(full.recall("walnut token", k=20, session="s2"))
    assert full.recall("walnut token", session="s1")[0].id == own.id
    assert own.id not in ids(full.recall("walnut token", k=20, scope="session"))
    assert ids(full.recall("walnut token", scope="session", session="s1")) == [own.id]


def test_a_session_is_no_limit_for_what_is_not_of_a_session(full: Workspace) -> None:
    said = full.remember("The walnut token is blue", session="s1", at="2026-01-01")
    assert full.recall("walnut token")[0].id == said.id
    assert full.recall("walnut token", session="s2")[0].id == said.id


def test_scopes_limit_what_is_found(full: Workspace) -> None:
    local = full.remember("The walnut token is blue", scope="local")
    project = full.remember("The walnut token is green")
    assert {local.id, project.id} <= set(ids(full.recall("walnut token")))
    assert ids(full.recall("walnut token", scope="local")) == [local.id]
    assert local.id not in ids(full.recall("walnut token", k=20, scope="project"))


def test_the_memory_of_the_user_joins_that_of_the_project(full: Workspace) -> None:
    mine = full.remember("Walnut tokens are always blue", scope="user")
    ours = full.remember("Walnut tokens are never blue")
    hits = full.recall("walnut tokens blue", k=3)
    assert ids(hits)[:2] == [ours.id, mine.id]
    assert of(hits, mine.id).scope == "user"
    assert mine.id not in ids(full.recall("walnut tokens blue", k=20, scope="project"))


@pytest.mark.parametrize("question", ["deploy the gateway", "which walnut tokens do we sign"])
def test_what_another_store_knows_little_about_does_not_come_before_what_answers(
    no_floor: None, ws: Workspace, question: str
) -> None:
    ws.remember("Walnut tokens are signed by the gateway")
    ws.remember("Deployments happen on Fridays")
    for text in ("I like my coffee black", "My bicycle is red", "I sign letters by hand"):
        ws.remember(text, scope="user")
    hits = ws.recall(question, k=20)
    best = max(hit.score for hit in hits if hit.scope == "user")
    assert hits[0].scope == "project"
    assert best < 0.8 * hits[0].score


def test_the_user_scope_is_the_memory_of_the_user_alone(full: Workspace) -> None:
    mine = full.remember("Walnut tokens are always blue", scope="user")
    full.remember("Walnut tokens are never blue")
    assert ids(full.recall("walnut tokens blue", scope="user")) == [mine.id]


@pytest.mark.parametrize("origin", ["import", "external"])
def test_what_comes_from_outside_is_recalled_and_not_injected(full: Workspace, origin: str) -> None:
    write(full, "alien", statement="The walnut token is blue", origin=origin)
    assert full.recall("walnut token")[0].id == "fact-alien"
    injected, _ = recall(full, RecallOptions("walnut token", k=20).as_query(NOW, injected=True))
    assert "fact-alien" not in ids(injected)


@pytest.mark.parametrize("origin", ["owner", "agent", None])
def test_what_was_learned_here_is_injected(full: Workspace, origin: str | None) -> None:
    write(full, "own", statement="The walnut token is blue", origin=origin)
    injected, _ = recall(full, RecallOptions("walnut token").as_query(NOW, injected=True))
    assert injected[0].id == "fact-own"


# -- what is at hand: an error, files ------------------------------------------------------------

FAILED = {
    "id": "ep-failed",
    "timestamp": "2026-01-06",
    "context": {"goal": "Publish the newsletter"},
    "errors_encountered": [{"message": "KeyError: 'user_id'", "resolution": "Log in first"}],
}


def trace(name: str) -> str:
    return (
        "Traceback (most recent call last):\n"
        f"  File \"/srv/app/run.py\", line 93, in main\nKeyError: '{name}'\n"
    )


def test_an_error_finds_who_met_it_before(full: Workspace) -> None:
    full.record(FAILED)
    hits = full.recall("whatever happened", error=trace("user_id"))
    assert {hit.kind for hit in hits[:2]} == {"episode", "anti-pattern"}
    assert of(hits, "ep-failed").why[0] == "same error signature: keyerror: user_id"
    assert hits.task == "debugging"


def test_a_compilers_complaint_finds_the_warning_about_its_rule(ws: Workspace) -> None:
    remedy = "Annotate the handler with ': void'"
    fails = "Some branches of a handler end without a result (TS7030)"
    ws.remember(fails, kind="anti-pattern", details={"prevention": remedy})
    ws.record({"goal": "Change src/cart1.ts: code paths return a value, an error of the past"})
    complaint = "src/cart1.ts(50,5): error TS7030: Not all code paths return a value."
    [first, *_] = ws.recall("", error=complaint)
    assert first.title == fails
    assert first.why[0] == "the same rule: TS7030"
    assert first.remedy == remedy


def test_who_got_over_an_error_counts_for_more_than_who_failed_at_it(ws: Workspace) -> None:
    message = "Table 'shop.orders' doesn't exist"
    for outcome in ("failure", "success"):
        error = {"message": message, "resolution": "use shop.purchases"}
        ws.record({"goal": outcome, "outcome": outcome, "errors_encountered": [error]})
    ws.sync()
    rows = dict(ws.index.ask("SELECT row, title FROM memories WHERE kind = 'episode'"))
    found = shared(ws.index, 4, text="", named=(), error=message, files=())
    worth = {rows[one.row]: one.worth for one in found if one.row in rows}
    assert worth["success"] > worth["failure"] > 0


def test_an_error_of_the_same_kind_is_found_and_said_to_be_one(full: Workspace) -> None:
    full.record(FAILED)
    hits = full.recall("whatever happened", error=trace("basket"))
    assert "same kind of error: keyerror: <name>" in of(hits, "ep-failed").why


def test_an_error_that_nobody_met_is_no_error(full: Workspace) -> None:
    assert isinstance(full.recall("whatever", error="SegFault: core dumped"), list)


@pytest.mark.parametrize("path", ["src/routes/todos.ts", "./src/routes/todos.ts"])
def test_a_file_at_hand_finds_who_worked_on_it(library: Workspace, path: str) -> None:
    hits = library.recall("anything to know?", files=[path])
    assert "file src/routes/todos.ts" in of(hits, EPISODE["id"]).why


def test_a_file_at_hand_may_be_named_from_the_root(library: Workspace) -> None:
    path = library.layout.root / "src" / "routes" / "todos.ts"
    hits = library.recall("anything to know?", files=[str(path)])
    assert EPISODE["id"] in ids(hits)


def test_a_name_of_code_finds_who_speaks_of_it(full: Workspace) -> None:
    write(full, "named", statement="Never call parseConfig twice")
    hits = full.recall("what about parseConfig?")
    assert hits[0].id == "fact-named"
    assert "names parseConfig" in hits[0].why


# -- code that has changed since -----------------------------------------------------------------


def blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def test_a_belief_about_code_is_stale_once_the_code_has_changed(full: Workspace) -> None:
    code = full.layout.root / "src" / "app.py"
    code.parent.mkdir()
    code.write_bytes(b"print('one')\n")
    cited = [{"path": "src/app.py", "blob": blob(code.read_bytes())}]
    write(full, "cites", statement="The walnut is printed", citations=cited)
    assert full.recall("walnut printed")[0].stale is False
    code.write_bytes(b"print('two')\n")
    assert full.recall("walnut printed")[0].stale is True
    code.write_bytes(b"print('one')\n")
    assert full.recall("walnut printed")[0].stale is False
    code.unlink()
    assert full.recall("walnut printed")[0].stale is True


def test_the_id_of_a_file_is_the_one_that_git_gives_it(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    empty = {"path": "empty", "blob": "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}
    assert not is_stale(tmp_path, [empty])


@pytest.mark.parametrize("path", ["../outside", "/etc/hostname", "link", ".", "folder"])
def test_nothing_outside_the_project_is_looked_at(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "outside").write_bytes(b"")
    (root / "link").symlink_to(tmp_path / "outside")
    assert is_stale(root, [{"path": path, "blob": blob(b"")}])


def test_a_citation_without_a_blob_is_never_stale(tmp_path: Path) -> None:
    assert not is_stale(tmp_path, [{"path": "gone"}, {"path": "gone", "blob": None}])
    assert not is_stale(tmp_path, [])


@pytest.mark.parametrize("citations", ["see the wiki", 5])
def test_citations_that_are_none_are_no_error(full: Workspace, citations: Any) -> None:
    """Only beliefs have citations; whatever an episode says under that name is its own."""
    full.record({"goal": "Plant a walnut", "timestamp": "2026-01-06", "citations": citations})
    assert full.recall("plant a walnut")[0].title == "Plant a walnut"
    assert full.notices == []


# -- contradictions ------------------------------------------------------------------------------


def test_hits_that_contradict_each_other_both_say_so_and_the_newer_comes_first(
    full: Workspace,
) -> None:
    write(full, "old", statement="The walnut token is blue and round", at="2026-01-01")
    write(
        full,
        "new",
        statement="Walnut: green",
        at="2026-01-20",
        links=[{"to": "fact-old", "relation": "contradicts"}],
    )
    hits = full.recall("walnut token blue round", k=4)
    assert ids(hits).index("fact-new") < ids(hits).index("fact-old")
    assert of(hits, "fact-new").contradicts == ("fact-old",)
    assert "contradicts fact-old" in of(hits, "fact-new").why
    assert of(hits, "fact-old").contradicts == ("fact-new",)
    assert "contradicts fact-new" in of(hits, "fact-old").why


def test_a_link_record_may_say_that_they_contradict(full: Workspace) -> None:
    a, b = full.remember("The walnut token is blue"), full.remember("The walnut token is green")
    full.link(a.id, "contradicts", b.id)
    hits = full.recall("walnut token")
    assert of(hits, a.id).contradicts == (b.id,)
    assert of(hits, b.id).contradicts == (a.id,)


def slot(ws: Workspace, name: str, value: str, at: str, **fields: Any) -> None:
    about = {"subject": "Walnut", "attribute": "colour", **fields}
    write(ws, name, statement=f"The walnut is {value}", at=at, **about)


def test_facts_about_one_thing_that_differ_contradict_each_other(full: Workspace) -> None:
    slot(full, "a", "blue", "2026-01-01")
    slot(full, "b", "green", "2026-01-03", subject="walnut")
    slot(full, "c", "red", "2026-01-02", attribute="Colour")
    slot(full, "d", "round", "2026-01-04", attribute="shape")
    hits = full.recall("colour of the walnut", k=4)
    disputed = [hit.id for hit in hits if hit.contradicts]
    assert disputed == ["fact-b", "fact-c", "fact-a"]
    assert of(hits, "fact-a").contradicts == ("fact-b", "fact-c")
    assert of(hits, "fact-d").contradicts == ()


CHANGED = (
    ("2026-01-05", "Start all variable names with the prefix 'x_'."),
    ("2026-01-06", "An update of our conventions: start variable names with the prefix 'y_'."),
)


@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("which prefix do variable names start with", "2026-01-06"),
        ("which prefix did variable names start with on 5 January", "2026-01-05"),
    ],
)
def test_the_statement_that_holds_now_comes_first_unless_the_past_is_asked_for(
    full: Workspace, question: str, day: str
) -> None:
    for at, text in CHANGED:
        full.remember(text, at=at)
    assert full.recall(question)[0].at == day


def test_each_of_three_in_dispute_comes_after_what_is_newer_than_it() -> None:
    """The first two contradict the third, which is newer than the one and older than the other."""
    days = {"a": "2026-01-02", "b": "2026-01-06", "c": "2026-01-03"}
    against = {"a": ("c",), "b": ("c",), "c": ("a", "b")}
    told = [
        _RankedLine(
            Recollection(name, "fact", name, at=day, contradicts=against[name]), name, "", {}
        )
        for name, day in days.items()
    ]
    order = [one.hit.id for one in _in_dispute(told)]
    assert order.index("b") < order.index("c") < order.index("a")


def test_the_same_said_twice_is_no_contradiction(full: Workspace) -> None:
    slot(full, "a", "blue", "2026-01-01")
    slot(full, "b", "blue", "2026-01-02")
    assert [hit.contradicts for hit in full.recall("colour of the walnut", k=2)] == [(), ()]


def test_a_contradiction_that_is_not_among_the_hits_is_not_told(full: Workspace) -> None:
    slot(full, "a", "blue", "2026-01-01")
    slot(full, "b", "green", "2026-01-03", status="superseded")
    (hit,) = full.recall("colour of the walnut", k=1)
    assert (hit.id, hit.contradicts) == ("fact-a", ())


# -- files that change between two questions -----------------------------------------------------


@pytest.fixture
def asked(full: Workspace) -> Workspace:
    """A workspace that was asked before, with a fact that its answers show."""
    write(full, "w", statement="The walnut token is blue")
    wait_until_current(full.home)
    assert full.recall("walnut token")[0].title == "The walnut token is blue"
    return full


def test_a_shown_file_that_was_edited_in_place_is_shown_as_it_is(asked: Workspace) -> None:
    overwrite(asked.layout.memory / "semantic/facts/w.json", statement="The walnut token is red")
    assert asked.recall("walnut token")[0].title == "The walnut token is red"


def test_a_shown_file_that_speaks_of_something_else_now_is_not_shown(asked: Workspace) -> None:
    overwrite(asked.layout.memory / "semantic/facts/w.json", statement="Whales are mammals")
    assert not [hit for hit in asked.recall("walnut token") if hit.id == "fact-w"]
    assert asked.recall("whales mammals")[0].id == "fact-w"


def test_a_file_that_was_replaced_is_seen(asked: Workspace) -> None:
    path = asked.layout.memory / "semantic/facts/w.json"
    scratch = asked.layout.root / "scratch"
    scratch.write_text('{"id": "fact-w", "statement": "Zeppelins are slow"}', encoding="utf-8")
    os.replace(scratch, path)
    assert asked.recall("slow zeppelins")[0].id == "fact-w"


def test_a_file_that_was_added_is_seen(asked: Workspace) -> None:
    write(asked, "z", statement="Zeppelins are slow")
    assert asked.recall("slow zeppelins")[0].id == "fact-z"


def test_a_file_that_was_deleted_is_gone(asked: Workspace) -> None:
    (asked.layout.memory / "semantic/facts/w.json").unlink()
    assert "fact-w" not in ids(asked.recall("walnut token", k=20))


def test_files_of_the_project_and_of_the_user_are_both_looked_at(asked: Workspace) -> None:
    mine = asked.remember("My walnut token is yellow", scope="user")
    assert mine.id in ids(asked.recall("walnut token"))
    _, user = asked.homes
    wait_until_current(user)
    overwrite(asked.layout.memory / "semantic/facts/w.json", statement="The walnut token is red")
    overwrite(asked.browse.where(mine.id), statement="My walnut token is violet")
    hits = asked.recall("walnut token")
    assert of(hits, "fact-w").title == "The walnut token is red"
    assert of(hits, mine.id).title == "My walnut token is violet"


def test_what_comes_instead_is_shown_as_it_is_too(asked: Workspace) -> None:
    write(asked, "v", statement="A walnut is green")
    wait_until_current(asked.home)
    assert ids(asked.recall("walnut token", k=1)) == ["fact-w"]
    overwrite(asked.layout.memory / "semantic/facts/w.json", statement="Whales are mammals")
    overwrite(asked.layout.memory / "semantic/facts/v.json", statement="A walnut is violet")
    assert titles(asked.recall("walnut token", k=1)) == ["A walnut is violet"]


def test_a_memory_that_another_process_remembered_is_seen(asked: Workspace) -> None:
    with Workspace.open(asked.layout.root) as other:
        new = other.remember("Zeppelins are slow")
    assert asked.recall("slow zeppelins")[0].id == new.id


# -- what is derived may vanish ------------------------------------------------------------------


def vectors_folder(ws: Workspace) -> Path:
    (folder,) = ws.layout.cache.glob("vectors-*")
    return folder


def test_the_cache_may_be_deleted_between_two_questions(asked: Workspace) -> None:
    before = list(asked.recall("walnut token"))
    shutil.rmtree(asked.layout.cache)
    assert list(asked.recall("walnut token")) == before
    asked.close()
    with Workspace.open(asked.layout.root) as fresh:
        assert list(fresh.recall("walnut token")) == before
        assert fresh.notices == []


def test_the_vectors_may_be_deleted_between_two_questions(asked: Workspace) -> None:
    before = list(asked.recall("walnut token"))
    shutil.rmtree(vectors_folder(asked))
    assert list(asked.recall("walnut token")) == before
    write(asked, "z", statement="Zeppelins are slow")
    assert asked.recall("slow zeppelins")[0].id == "fact-z"
    with Workspace.open(asked.layout.root) as fresh:
        assert fresh.recall("walnut token")[0].id == "fact-w"
        assert entries(fresh) == passages(fresh)


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts our own reader embedded at each time."""
    counts: list[int] = []
    encode = StaticModel.encode

    def counted(model: StaticModel, texts: Sequence[str]) -> Any:
        counts.append(len(texts))
        return encode(model, texts)

    monkeypatch.setattr(StaticModel, "encode", counted)
    return counts


def passages(ws: Workspace) -> int:
    texts = ws.index.scalar("SELECT count(DISTINCT key) FROM passages WHERE key <> 0")
    return int(texts)


@pytest.mark.parametrize("suffix", ["vectors", "tokens"])
def test_deleting_a_file_of_vectors_embeds_nothing(
    asked: Workspace, embedded: list[int], suffix: str
) -> None:
    before = list(asked.recall("walnut token"))
    asked.close()
    (file,) = vectors_folder(asked).glob(f"*.{suffix}")
    file.unlink()
    with Workspace.open(asked.layout.root) as fresh:
        assert list(fresh.recall("walnut token")) == before
        assert entries(fresh) == passages(fresh)
    assert embedded == []


def test_deleting_the_index_embeds_everything_again(asked: Workspace, embedded: list[int]) -> None:
    before = list(asked.recall("walnut token"))
    asked.close()
    (asked.layout.cache / "index.db").unlink()
    with Workspace.open(asked.layout.root) as fresh:
        assert list(fresh.recall("walnut token")) == before
        assert embedded == [passages(fresh)]
        shutil.rmtree(vectors_folder(asked))
    with Workspace.open(asked.layout.root) as again:
        assert list(again.recall("walnut token")) == before
    assert len(embedded) == 1


def test_a_rebuild_embeds_nothing_again(asked: Workspace, embedded: list[int]) -> None:
    asked.recall("walnut token")
    asked.rebuild()
    assert asked.recall("walnut token")[0].id == "fact-w"
    assert embedded == []


def test_vectors_that_came_with_a_copy_are_not_believed(
    asked: Workspace, tmp_path: Path, embedded: list[int]
) -> None:
    before = list(asked.recall("walnut token"))
    asked.close()
    copy = Path(shutil.copytree(asked.layout.root, tmp_path / "copy"))
    with sqlite3.connect(copy / ".loki" / "cache" / "index.db") as planted:
        planted.execute("UPDATE vectors SET vector = zeroblob(length(vector))")
    with Workspace.open(copy) as other:
        assert list(other.recall("walnut token")) == before
        assert embedded == [passages(other)]


def test_the_vectors_of_texts_that_are_gone_go_once_they_are_most(
    asked: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_FEW", 0)
    asked.recall("walnut token")
    for path in sorted((asked.layout.memory / "semantic/facts").iterdir())[1:]:
        path.unlink()
    write(asked, "z", statement="Zeppelins are slow")
    assert asked.recall("slow zeppelins")[0].id == "fact-z"
    assert entries(asked) == passages(asked) == asked.index.scalar("SELECT count(*) FROM vectors")


def after_damage(ws: Workspace, path: Path, data: bytes, question: str) -> list[Recollection]:
    ws.close()
    path.write_bytes(data)
    with Workspace.open(ws.layout.root) as fresh:
        hits = list(fresh.recall(question))
        assert fresh.notices == []
        return hits


def test_a_damaged_catalogue_is_made_anew(asked: Workspace) -> None:
    asked.sync()
    before = list(asked.recall("walnut token"))
    path = vectors_folder(asked) / "catalogue"
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    for data in (
        b"",
        whole[:head],
        whole[: len(whole) // 2],
        whole[:-1],
        whole[:head] + bytes(len(whole) - head),
        b"another state\n" + whole[head:],
    ):
        assert after_damage(asked, path, data, "walnut token") == before
        path.write_bytes(whole)


@pytest.mark.parametrize("begin", [0.25, 0.5, 0.9])
def test_a_catalogue_of_garbage_is_made_anew(asked: Workspace, begin: float) -> None:
    asked.sync()
    before = list(asked.recall("walnut token"))
    path = vectors_folder(asked) / "catalogue"
    whole = path.read_bytes()
    good = int(len(whole) * begin)
    data = whole[:good] + bytes(len(whole) - good)
    assert after_damage(asked, path, data, "walnut token") == before


def test_tokens_that_no_model_has_are_made_anew(asked: Workspace) -> None:
    before = list(asked.recall("walnut token"))
    (vectors_folder(asked) / "catalogue").unlink()
    (tokens,) = vectors_folder(asked).glob("*.tokens")
    beyond = np.full(tokens.stat().st_size // 4, load().vocabulary + 7, "<u4")
    assert after_damage(asked, tokens, beyond.tobytes(), "walnut token") == before


def test_a_cache_that_cannot_be_written_is_done_without(full: Workspace) -> None:
    before = list(full.recall("contract tests"))
    full.close()
    shutil.rmtree(full.layout.cache)
    full.layout.cache.write_text("not a folder", encoding="utf-8")
    with Workspace.open(full.layout.root) as fresh:
        assert list(fresh.recall("contract tests")) == before
        write(fresh, "z", statement="Zeppelins are slow")
        assert fresh.recall("slow zeppelins")[0].id == "fact-z"
        assert [said for said in fresh.notices if "in memory" in said]
        assert full.layout.cache.is_file()


def test_a_cache_that_came_with_a_copy_is_not_believed(asked: Workspace, tmp_path: Path) -> None:
    asked.close()
    copy = Path(shutil.copytree(asked.layout.root, tmp_path / "copy"))
    with Workspace.open(copy) as other:
        assert other.recall("walnut token")[0].id == "fact-w"
        assert len(list(other.layout.cache.glob("vectors-*"))) == 2


# -- others at work ------------------------------------------------------------------------------

ASK = (
    "import sys; from loki_memory import Workspace\n"
    "sys.stdin.readline()\n"
    "ws = Workspace.open(sys.argv[1])\n"
    "print([hit.id for hit in ws.recall('contract tests database', k=3)])\n"
    "print(ws.notices)\n"
)


def meanwhile(work: Callable[[], object]) -> tuple[Thread, Callable[[], None]]:
    """Work for another thread, and how to begin it; it may have to wait for the first one."""
    thread = Thread(target=work)

    def begin() -> None:
        thread.start()
        thread.join(0.2)

    return thread, begin


def entries(ws: Workspace) -> int:
    model = load()
    return len(Vectors(vectors_folder(ws), model.name, model.size))


def test_who_asks_while_the_first_index_is_made_waits_for_it(full: Workspace) -> None:
    full.close()
    shutil.rmtree(full.layout.cache, ignore_errors=True)
    with Workspace.open(full.layout.root) as first, Workspace.open(full.layout.root) as second:
        answer: list[Recollection] = []
        other = first.index.writer()
        other.execute("BEGIN IMMEDIATE")  # as a process does that reads all files
        thread, begin = meanwhile(lambda: answer.extend(second.recall("contract tests")))
        begin()
        other.execute("ROLLBACK")
        thread.join()
        assert answer[0].title == FACTS[0]


def test_two_processes_that_ask_a_fresh_store_both_get_their_answer(full: Workspace) -> None:
    """Both find no vectors; a text is embedded once."""
    full.list()
    environment = {**os.environ, "PYTHONPATH": str(Path(loki_memory.__file__).parents[1])}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", ASK, full.layout.root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=300)[0].splitlines() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    expected = ids(full.recall("contract tests database", k=3))
    assert [answer[0] for answer in answers] == [repr(expected)] * 2
    assert entries(full) == passages(full)


class Interrupted:
    """The model that is shipped, with something that happens while it is asked for tokens."""

    def __init__(self, moment: str, happens: Any) -> None:
        self._model = load()
        self._moment, self._happens = moment, happens
        self.name, self.size = self._model.name, self._model.size
        self.rows, self.embed = self._model.rows, self._model.embed
        self.encode = self._model.encode

    def _now(self, moment: str) -> None:
        if moment == self._moment:
            happens, self._happens = self._happens, lambda: None
            happens()

    @property
    def vocabulary(self) -> int:
        self._now("vocabulary")
        return self._model.vocabulary

    def tokens(self, text: str) -> list[int]:
        self._now("tokens")
        return self._model.tokens(text)


def interrupted(ws: Workspace, model: Embedding) -> Workspace:
    """The workspace with a retriever that uses this model instead of the one it has loaded."""
    assert ws.home.retriever.embedding.name == model.name
    ws.home.retriever._embedding = model
    return ws


def test_a_memory_that_vanishes_in_the_middle_of_an_answer_is_no_error(asked: Workspace) -> None:
    known = {memory.id: memory.title() for memory in asked.list()}

    def forgets() -> None:
        with Workspace.open(asked.layout.root) as other:
            other.forget("fact-w")
            other.remember("Another one in its row")
            other.list()

    thread, begin = meanwhile(forgets)
    interrupted(asked, Interrupted("tokens", begin))
    try:
        hits = asked.recall("walnut token")
    finally:
        thread.join()
    assert hits
    assert all(known.get(hit.id) == hit.title for hit in hits)
    assert "fact-w" not in ids(asked.recall("walnut token"))


def test_a_change_in_the_middle_of_making_the_catalogue_is_not_lost(full: Workspace) -> None:
    def remembers() -> None:
        with Workspace.open(full.layout.root) as other:
            other.remember("Zeppelins are slow")
            other.list()

    full.list()
    interrupted(full, Interrupted("vocabulary", remembers)).recall("contract tests")
    with Workspace.open(full.layout.root) as fresh:
        assert fresh.recall("slow zeppelins")[0].title == "Zeppelins are slow"


def test_two_threads_ask_one_workspace(asked: Workspace) -> None:
    """While one is answered, the index changes and the other one's answer is noted down."""

    def another_is_answered() -> None:
        with Workspace.open(asked.layout.root) as other:
            for number in range(20):
                write(other, f"n{number}", statement=f"A walnut token, number {number}")
            other.list()
        note_shown(asked, "recall", "walnut token", [])

    thread, begin = meanwhile(another_is_answered)
    interrupted(asked, Interrupted("tokens", begin))
    try:
        assert asked.recall("walnut token")
    finally:
        thread.join()


class Listing(list[Any], AbstractContextManager["Listing"]):
    """What `os.scandir` gives, read to its end."""

    def __exit__(self, *_: object) -> None:
        """There is nothing to let go of."""


def test_a_file_that_vanishes_during_a_look_is_no_error(
    asked: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process deletes it between the listing of its folder and the look at it."""
    doomed, listing = write(asked, "doomed", statement="Soon gone"), os.scandir

    def and_then_gone(folder: str | int) -> Any:
        with listing(folder) as entries:
            found = list(entries)
        if os.path.samestat(os.stat(folder), os.stat(doomed.parent)):
            doomed.unlink(missing_ok=True)
        return Listing(found)

    monkeypatch.setattr(os, "scandir", and_then_gone)
    assert "fact-doomed" not in ids(asked.recall("walnut token soon gone", k=20))


# -- the model -----------------------------------------------------------------------------------


def test_a_text_is_embedded_once(asked: Workspace) -> None:
    before = entries(asked)
    write(asked, "copy", statement="The walnut token is blue")
    write(asked, "z", statement="Zeppelins are slow")
    asked.recall("walnut")
    assert entries(asked) == before + 1
    with Workspace.open(asked.layout.root) as fresh:
        fresh.rebuild()
        fresh.recall("walnut")
        assert entries(fresh) == before + 1


def test_another_model_is_said_once(
    asked: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = Path(loki_memory.__file__).parent / "embedding" / "model"
    other = Path(shutil.copytree(shipped, tmp_path / "model"))
    asked.close()
    monkeypatch.setenv("LOKI_EMBEDDING_MODEL", str(other))
    with Workspace.open(asked.layout.root) as fresh:
        assert fresh.recall("walnut token")[0].id == "fact-w"
        assert len([said for said in fresh.notices if "model" in said]) == 1
    with Workspace.open(asked.layout.root) as again:
        assert again.recall("walnut token")[0].id == "fact-w"
        assert again.notices == []
    assert len(list(vectors_folder(asked).glob("*.vectors"))) == 1
    assert asked.index.scalar("SELECT count(DISTINCT model) FROM vectors") == 1


@pytest.fixture
def by_model2vec(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts model2vec embedded at each time; here it is asked for any number."""
    monkeypatch.setattr(retriever, "_MANY", 1)
    counts: list[int] = []
    encode = Model2VecModel.encode

    def counted(model: Model2VecModel, texts: Sequence[str]) -> Any:
        counts.append(len(texts))
        return encode(model, texts)

    monkeypatch.setattr(Model2VecModel, "encode", counted)
    return counts


def vector_rows(ws: Workspace) -> list[Any]:
    return ws.index.ask("SELECT model, key, length, tokens, vector FROM vectors ORDER BY key")


def test_a_rebuild_embeds_with_model2vec_what_a_question_would_embed(
    full: Workspace, embedded: list[int], by_model2vec: list[int]
) -> None:
    full.recall("contract tests")
    by_question = vector_rows(full)
    assert by_model2vec == []
    full.close()
    shutil.rmtree(full.layout.cache)
    with Workspace.open(full.layout.root) as fresh:
        fresh.rebuild()
        assert by_model2vec == [passages(fresh)] == embedded, "each reader embedded all of them"
        assert vector_rows(fresh) == by_question
        fresh.recall("contract tests")
    assert len(embedded) == len(by_model2vec) == 1


def test_consolidation_leaves_nothing_to_embed(full: Workspace, by_model2vec: list[int]) -> None:
    full.consolidate(plan_only=True)
    assert by_model2vec == []
    full.consolidate()
    assert by_model2vec == [passages(full)]


def test_a_few_texts_are_embedded_without_model2vec(full: Workspace) -> None:
    full.rebuild()
    assert len(vector_rows(full)) == passages(full)
    program = (
        "import sys; from loki_memory import Workspace\n"
        "with Workspace.open(sys.argv[1]) as ws: ws.remember('Zeppelins are slow'); ws.rebuild()\n"
        "assert 'model2vec' not in sys.modules and 'numpy' in sys.modules\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(loki_memory.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", program, full.layout.root], check=True, env=environment)


def test_a_model_that_cannot_be_read_stops_no_rebuild(
    full: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_EMBEDDING_MODEL", str(full.layout.root / "nowhere"))
    with Workspace.open(full.layout.root) as fresh:
        fresh.rebuild()
        with pytest.raises(InvalidConfig):
            fresh.recall("contract tests")


# -- reading changes nothing ---------------------------------------------------------------------


def test_recalling_changes_no_memory(full: Workspace) -> None:
    full.sync()
    before = contents(full)
    full.recall("contract tests", k=9, deep=True, error="Error: x", files=["src/routes/todos.ts"])
    full.recall("sem-001")
    full.browse.explain("contract tests")
    assert contents(full) == before


def lines(ws: Workspace) -> list[dict[str, Any]]:
    path = ws.layout.local / "journal" / "shown.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_recall_is_one_line_in_the_journal(full: Workspace) -> None:
    hits = full.recall("contract tests", k=3, session="s1")
    full.recall("zebra migration in Tanzania")
    full.browse.explain("contract tests")
    first, second = lines(full)
    assert [name for name, _ in first["ids"]] == ids(hits)
    assert (first["query"], first["session"]) == ("contract tests", "s1")
    assert first["available"] > first["offered"] > 0
    assert second["ids"] == []


def test_what_was_helpful_comes_first_among_equals(ws: Workspace) -> None:
    for name in "abc":
        write(ws, name, statement="The walnut token is blue")
    last = ws.recall("walnut token blue", k=3)[-1].id
    ws.feedback(last, helpful=True)
    assert ws.recall("walnut token blue", k=3)[0].id == last
