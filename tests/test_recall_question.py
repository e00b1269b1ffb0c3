"""What is read out of the text of a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory.recall.question import Date, ask


def test_words_come_once_in_their_order_without_those_that_every_question_has() -> None:
    assert ask("Where did the parser fail, and why did the Parser log nothing?").words == (
        "parser",
        "fail",
        "log",
        "nothing",
    )


def test_a_question_of_nothing_but_common_words_keeps_them() -> None:
    assert ask("to be or not to be").words == ("to", "be", "or", "not")


def test_an_identifier_is_its_parts_as_in_the_full_text() -> None:
    assert ask("max_tokens in src/app.ts").words == ("max", "tokens", "src", "app", "ts")


def test_marks_and_other_scripts_stay_inside_their_words() -> None:
    assert ask("naïve हिन्दी 未定義のエラー?").words == ("naïve", "हिन्दी", "未定義のエラー")


def test_a_pasted_log_is_read_up_to_a_limit() -> None:
    question = ask(" ".join(f"word{n}" for n in range(20_000)) + " x" * 50_000)
    assert question.words == tuple(f"word{n}" for n in range(200))
    assert len(question.text) == 10_000


def test_a_line_without_spaces_is_no_word() -> None:
    assert ask("hash " + "f" * 200).words == ("hash",)


# -- who ------------------------------------------------------------------------------------------


def test_the_one_speaker_named_is_wanted_and_the_name_is_no_word() -> None:
    question = ask("What did Caroline's sister paint?", ["Melanie", "Caroline"])
    assert question.speaker == 1
    assert question.words == ("sister", "paint")


def test_two_speakers_named_are_not_told_apart() -> None:
    question = ask("Where did Caroline meet Melanie?", ["Melanie", "Caroline"])
    assert question.speaker == -1
    assert question.words == ("meet",)


def test_a_name_alone_is_also_the_word_that_is_looked_for() -> None:
    question = ask("Caroline?", ["Caroline"])
    assert (question.speaker, question.words) == (0, ("caroline",))


def test_an_agent_is_named_by_its_whole_id() -> None:
    speakers = ["qa-001", "qa-002", "qa"]
    assert ask("what did qa-002 find", speakers).speaker == 1


def test_an_ordinary_word_is_not_the_agent_of_that_name() -> None:
    question = ask("how does review of user input work", ["review", "user"])
    assert question.speaker == -1
    assert "review" in question.words


@pytest.mark.parametrize("text", ["What did I decide?", "my last decision", "Remind me."])
def test_who_says_i_means_the_user(text: str) -> None:
    assert ask(text, ["assistant", "user"]).speaker == 1
    assert ask(text, ["assistant"]).speaker == -1


# -- when and how many ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("on 25 February, 2022", Date(2022, 2, 25)),
        ("on the 3rd of March", Date(0, 3, 3)),
        ("before July 24, 2023", Date(2023, 7, 24)),
        ("on Sept. 8th 2023", Date(2023, 9, 8)),
        ("in August 2023", Date(2023, 8, 0)),
        ("in May?", Date(0, 5, 0)),
        ("since 2024-03-15", Date(2024, 3, 15)),
        ("all of 2024-03", Date(2024, 3, 0)),
        ("October at 10:30", Date(0, 10, 0)),
    ],
)
def test_a_date_is_understood(text: str, date: Date) -> None:
    assert ask(text).dates == (date,)


def test_several_dates_are_kept_once_each() -> None:
    assert ask("between March and May, or in May").dates == (Date(0, 3, 0), Date(0, 5, 0))


@pytest.mark.parametrize(
    "text", ["May I merge it?", "March through the list", "it may fail", "2024-13-01", "July 45"]
)
def test_what_only_looks_like_a_date_is_none(text: str) -> None:
    assert ask(text).dates == ()


@pytest.mark.parametrize("text", ["When did it break?", "How long was it?", "which year was it"])
def test_who_asks_when_expects_a_time(text: str) -> None:
    assert "yesterday" in ask(text).expected


@pytest.mark.parametrize("text", ["How many tests fail?", "how much memory"])
def test_who_asks_how_many_expects_a_number(text: str) -> None:
    assert {"two", "7"} <= set(ask(text).expected)


def test_when_as_a_conjunction_asks_for_nothing() -> None:
    assert ask("What happens when the cache is deleted?").expected == ()


@given(st.text(), st.lists(st.text(), max_size=4))
def test_any_text_is_a_question(text: str, speakers: list[str]) -> None:
    question = ask(text, speakers)
    assert len(question.words) == len(set(question.words)) <= 40
    assert -1 <= question.speaker < len(speakers)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("which port does the gateway use", False),
        ("which port did the gateway use", True),
        ("what was the port before", True),
        ("which port does the gateway use on 2026-01-05", True),
        ("which port holds now", False),
    ],
)
def test_a_question_about_the_past_is_told_from_one_about_what_holds(
    text: str, expected: bool
) -> None:
    assert ask(text).asks_past is expected


ISSUE = """Login fails behind a proxy

We moved the gateway last week. {filler}
  File "auth.py", line 3, in check_token
TokenError: signature of the token has expired
{filler} See also RefreshTokenView and its documentation.
"""


def test_a_long_question_is_read_whole_and_has_a_title() -> None:
    filler = " ".join(f"padding{n}" for n in range(50))
    question = ask(ISSUE.format(filler=filler))
    assert {"login", "tokenerror", "refreshtokenview", "padding49"} <= {*question.words}
    assert {"login", "proxy"} <= question.title
    assert "tokenerror" not in question.title


def test_a_line_that_ends_in_a_colon_announces_the_title() -> None:
    plan = "Implement the following plan:\n\n# Cache the parser\n\n" + "It is slow today. " * 20
    assert ask(plan).title == {"implement", "following", "plan", "cache", "parser"}


def test_a_short_question_has_no_title() -> None:
    question = ask(ISSUE.format(filler=""))
    assert "documentation" in question.words
    assert not question.title


def test_a_date_is_no_word() -> None:
    question = ask("What dish did Nate make on 9 November, 2022?")
    assert question.words == ("dish", "nate", "make")
    assert question.dates == (Date(2022, 11, 9),)


def test_a_question_of_nothing_but_a_date_keeps_its_words() -> None:
    assert ask("2022-11-09?").words == ("2022", "11", "09")
