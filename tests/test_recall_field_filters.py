"""Questions that plain SQL answers: ids, beginnings of ids, fields; all else is text."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_sync import write

from loki_memory import Workspace
from loki_memory.errors import InvalidRecord
from loki_memory.index.index import Index
from loki_memory.recall.field_filters import route


@pytest.fixture
def index(ws: Workspace) -> Index:
    """Five facts and two episodes."""
    write(
        ws,
        "a",
        statement="Tests need a database",
        category="testing",
        tags=["db", "CI flow"],
        by="ana",
        session="s1",
        parent="fact-b",
    )
    write(ws, "b", statement="Call parse_config first", category="Set-up", origin="import")
    write(ws, "c", statement="Old news", status="superseded", category="testing")
    write(ws, "ab", statement="Deploy on Fridays", tags=["db"])
    write(ws, "quoted", statement="Odd", category='a "b" c', tags=["x' OR '1'='1"])
    ws.record(
        [
            {
                "id": "ep-2026-01-06-001",
                "timestamp": "2026-01-06",
                "agent": "eng-001",
                "git_branch": "cart",
                "outcome": "success",
                "context": {"goal": "Add search", "files_involved": ["src/app.ts"]},
            },
            {
                "id": "ep-2026-01-07-001",
                "timestamp": "2026-01-07",
                "goal": "Fix",
                "outcome": "failed",
            },
        ]
    )
    ws.list()
    return ws.index


def names(index: Index, rows: object) -> list[str]:
    known = dict(index.ask("SELECT row, id FROM memories"))
    return [known[row] for row in rows]  # type: ignore[attr-defined]


def left(index: Index, query: str) -> list[str] | None:
    """The ids that the exact parts of a question leave."""
    rows = route(query, index).rows
    return None if rows is None else sorted(names(index, rows))


def is_only_text(query: str, index: Index) -> bool:
    found = route(query, index)
    return (found.text, found.rows, found.named, found.status) == (query, None, (), "")


# -- ids -----------------------------------------------------------------------------------------


def test_nothing_but_an_id_is_that_memory(index: Index) -> None:
    found = route("fact-a", index)
    assert found.text == ""
    assert names(index, found.rows) == names(index, found.named) == ["fact-a"]


@pytest.mark.parametrize("query", ["[fact-a]", "fact-a, fact-b.", "(fact-a) 'fact-b'", "`fact-b`"])
def test_ids_are_known_in_any_punctuation(index: Index, query: str) -> None:
    found = route(query, index)
    assert found.text == ""
    assert left(index, query) == sorted(names(index, found.named))


def test_an_id_among_words_is_named_and_the_words_are_ranked(index: Index) -> None:
    found = route("why does fact-a say so?", index)
    assert found.text == "why does fact-a say so?"
    assert found.rows is None
    assert names(index, found.named) == ["fact-a"]


def test_ids_are_named_in_the_order_of_the_question_each_once(index: Index) -> None:
    named = route("compare fact-b with fact-a and fact-b", index).named
    assert names(index, named) == ["fact-b", "fact-a"]


def test_an_id_that_nobody_has_is_text(index: Index) -> None:
    assert is_only_text("fact-unknown", index)


def test_the_beginning_of_an_id_leaves_what_begins_so(index: Index) -> None:
    assert left(index, "ep-2026-01-06*") == ["ep-2026-01-06-001"]
    assert left(index, "ep-2026*") == ["ep-2026-01-06-001", "ep-2026-01-07-001"]
    assert left(index, "fact-a*") == ["fact-a", "fact-ab"]


def test_what_is_left_of_the_text_is_ranked(index: Index) -> None:
    assert route("ep-2026* search", index).text == "search"


@pytest.mark.parametrize("query", ["src/*.ts", "*", "a * b", "**bold**", "fact*", "2 * 3"])
def test_other_asterisks_are_text(index: Index, query: str) -> None:
    assert route(query, index).rows is None


@pytest.mark.parametrize("query", ["pre-* hooks", "the feature-* branches"])
def test_words_that_begin_no_id_are_text(index: Index, query: str) -> None:
    assert route(query, index).rows is None


# -- fields --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("id:fact-a", ["fact-a"]),
        ("kind:episode", ["ep-2026-01-06-001", "ep-2026-01-07-001"]),
        ("category:testing", ["fact-a", "fact-c"]),
        ("category:set-up", ["fact-b"]),
        ("tag:DB", ["fact-a", "fact-ab"]),
        ('tag:"ci flow"', ["fact-a"]),
        ("by:Ana", ["fact-a"]),
        ("agent:eng-001", ["ep-2026-01-06-001"]),
        ("branch:cart", ["ep-2026-01-06-001"]),
        ("session:s1", ["fact-a"]),
        ("status:superseded", ["fact-c"]),
        ("outcome:failure", ["ep-2026-01-07-001"]),
        ("parent:fact-b", ["fact-a"]),
        ("file:src/app.ts", ["ep-2026-01-06-001"]),
        ("symbol:parse_config", ["fact-b"]),
        ("category:testing tag:db", ["fact-a"]),
        ("category:testing category:set-up", []),
        ("fact-a* tag:db", ["fact-a", "fact-ab"]),
        ("category:nobody", []),
        ("scope:local", []),
    ],
)
def test_each_field_leaves_what_has_it(index: Index, query: str, ids: list[str]) -> None:
    assert left(index, query) == ids


def test_fields_are_taken_out_of_the_text(index: Index) -> None:
    found = route('  flaky category:testing tag:"ci flow"  tests ', index)
    assert found.text == "flaky tests"


@pytest.mark.parametrize(
    "query",
    [
        "note: this is text",
        "TypeError: x is undefined",
        "http://example.com:80/a",
        "std::vector",
        "unknown:field",
        "kind:dinosaur",
        "status:unheard",
        "scope:galaxy",
        "Category:testing",
        "category: testing",
        "category:",
        ":testing",
        "xcategory:testing",
        "10:30",
        'tag:"open',
        "c:\\windows",
    ],
)
def test_any_other_colon_is_text(index: Index, query: str) -> None:
    assert is_only_text(query, index)


def test_a_status_that_is_asked_for_is_told(index: Index) -> None:
    assert route("status:superseded news", index).status == "superseded"
    assert route("status:all", index).status == "all"
    assert route("status:all", index).rows is None
    assert route("news", index).status == ""


def test_a_field_is_taken_out_where_it_stands(index: Index) -> None:
    assert route("xkind:fact kind:fact", index).text == "xkind:fact"


# -- hostile questions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "category:x'--",
        'category:"x\' OR 1=1 --"',
        "tag:\"') OR ('1'='1\"",
        "id:fact-a'; DROP TABLE memories; --",
        "kind:fact'",
        "fact-a'*",
        "file:%",
        "tag:_",
        "category:test%",
    ],
)
def test_no_value_becomes_sql(index: Index, query: str) -> None:
    assert left(index, query) in (None, [])
    assert index.scalar("SELECT count(*) FROM memories") == 7


def test_a_value_with_quotes_is_a_value(index: Index) -> None:
    assert left(index, "tag:\"x' OR '1'='1\"") == ["fact-quoted"]


@given(
    st.lists(
        st.sampled_from(
            [
                "tag:",
                "kind:fact",
                '"',
                "*",
                "fact-",
                "ep-2026*",
                "a",
                ":",
                "'",
                "\0",
                "é",
                "\n",
                " ",
            ]
        )
        | st.characters(codec="utf-8"),
        max_size=12,
    ).map("".join)
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_question_is_an_error(index: Index, query: str) -> None:
    found = route(query, index)
    assert len(found.text) <= len(query)


@pytest.mark.parametrize(
    "query", ["tag:a " * 200, "fact-a " * 50_000, "a:" * 300_000, "fact-x* " * 99]
)
def test_a_very_long_question_is_none_either(index: Index, query: str) -> None:
    assert len(route(query, index).text) <= len(query)


def test_lines_of_a_question_stay_lines_and_needless_space_goes(index: Index) -> None:
    assert route("Login  fails\n\n  category:testing behind a proxy \n", index).text == (
        "Login fails\nbehind a proxy"
    )


TUESDAY = "2026-11-17T09:00:00Z"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("since:yesterday", "since 2026-11-16"),
        ('since:"last week"', "since 2026-11-09"),
        ("until:last-week", "until 2026-11-15"),
        ("until:today", "until 2026-11-17"),
        ("since:2026-11", "since 2026-11"),
        ("until:2026-11", "until 2026-11-31"),
    ],
)
def test_a_day_may_be_put_into_words(index: Index, query: str, said: str) -> None:
    assert route(query, index, TUESDAY, strict=True).said == (said,)


def test_what_is_no_day_is_refused_with_what_to_write(index: Index) -> None:
    with pytest.raises(InvalidRecord, match=r"'Whitsun' is not a day.*yesterday"):
        route("since:Whitsun", index, TUESDAY, strict=True)


def test_a_prompt_with_a_colon_is_no_error(index: Index) -> None:
    assert route("broken since:Whitsun", index, TUESDAY).text == "broken since:Whitsun"
