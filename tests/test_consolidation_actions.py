"""What a log looks like from afar, and what several logs share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory.consolidation.actions import Move, move, moves
from loki_memory.consolidation.habits import GAP, LONGEST, contains, shared
from loki_memory.models import Action, Episode, parse

A, B, C, D, X = (Move(letter) for letter in "ABCDX")
SEQUENCES = st.lists(st.lists(st.sampled_from([A, B, C, X]), max_size=9), min_size=1, max_size=6)


def episode(*actions: tuple[str, str]) -> Episode:
    log = [{"action": name, "target": target} for name, target in actions]
    return parse(
        Episode, {"goal": "a goal", "timestamp": "2026-01-05T10:00:00Z", "action_log": log}
    )


@pytest.mark.parametrize(
    ("action", "target", "expected"),
    [
        ("run_command", "npm run lint -- --fix", Move("npm run lint")),
        ("run_command", "cd web && CI=1 npm test", Move("npm test")),
        ("bash", "git commit -m 'todos: get one by id'", Move("git commit")),
        ("git push origin main", "", Move("git push")),
        ("run_sql", "SELECT name FROM singer", Move("select")),
        ("run_sql", "show  TABLES", Move("show tables")),
        ("run_sql", "DESCRIBE singer", Move("desc")),
        ("edit_file", "src/routes/todos.ts", Move("edit_file", "source .ts")),
        ("edit_file", "tests/contract.test.ts", Move("edit_file", "test .ts")),
        ("write_file", "package.json", Move("write_file", "config .json")),
        ("read_file", "docs/README.md", Move("read_file", "document .md")),
        ("search_code", "where is the handler", Move("search_code")),
    ],
)
def test_an_action_is_its_command_or_its_tool_and_kind_of_file(
    action: str, target: str, expected: Move
) -> None:
    assert move(Action(action=action, target=target)) == expected


def test_moves_that_repeat_count_once() -> None:
    log = episode(
        ("edit_file", "src/a.ts"), ("edit_file", "src/b.ts"), ("run_test", "npm test"), ("", "")
    )
    assert moves(log) == (Move("edit_file", "source .ts"), Move("npm test"))


def test_a_subsequence_may_leave_out_a_few_moves_and_no_more() -> None:
    assert contains([A, *[X] * GAP, B], [A, B])
    assert not contains([A, *[X] * (GAP + 1), B], [A, B])
    assert contains([A, *[X] * (GAP + 1), A, B], [A, B]), "a later start is tried too"
    assert not contains([B, A], [A, B])


def test_only_the_longest_of_equally_common_subsequences_is_named() -> None:
    found = shared([[A, X, B, C], [A, B, X, C], [A, B, C], [D]], least=3)
    assert [(one.moves, one.users) for one in found] == [((A, B, C), (0, 1, 2))]


def test_a_shorter_subsequence_that_more_have_is_named_beside_the_longer_one() -> None:
    found = shared([[A, B, C], [A, B, C], [A, B]], least=2)
    assert [(one.moves, len(one.users)) for one in found] == [((A, B), 3), ((A, B, C), 2)]


@given(SEQUENCES)
def test_users_are_exactly_those_that_contain_it(sequences: list[list[Move]]) -> None:
    for one in shared(sequences, least=2):
        assert 2 <= len(one.moves) <= LONGEST
        assert one.users == tuple(
            at for at, sequence in enumerate(sequences) if contains(sequence, one.moves)
        )


@given(SEQUENCES.flatmap(lambda given: st.tuples(st.just(given), st.permutations(given))))
def test_the_order_of_the_sequences_does_not_matter(
    orders: tuple[list[list[Move]], list[list[Move]]],
) -> None:
    sequences, turned = orders
    before = [(one.moves, len(one.users)) for one in shared(sequences, least=2)]
    assert [(one.moves, len(one.users)) for one in shared(turned, least=2)] == before


def test_long_identical_logs_do_not_explode() -> None:
    letters = [Move(chr(97 + n % 26) + str(n)) for n in range(40)]
    found = shared([letters] * 5, least=3)
    assert 0 < len(found) < 200
