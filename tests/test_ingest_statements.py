"""Statements: which sentences of a session are kept, how they are worded, what type they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki_memory import Workspace
from loki_memory.files.redaction import find_secrets
from loki_memory.ingest.claude_code import ClaudeCode
from loki_memory.ingest.run import ingest
from loki_memory.ingest.sentences import sentences
from loki_memory.ingest.statement_types import statement_type
from loki_memory.ingest.statements import PER_SESSION, FoundStatement, Utterance, statements, tidy
from loki_memory.ingest.turns import Turn
from loki_memory.ingest.utterances import chosen, utterances
from loki_memory.ingest.written import added_prose, given_hunks, published_prose
from loki_memory.models import Episode
from tests.claude_lines import Transcript

GOTCHA = "go-git doesn't read global gitignore files, so `git status` and the CLI disagree."


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return Workspace.init(tmp_path / "shop")


def kept(text: str, source: str = "say") -> list[FoundStatement]:
    return statements([Utterance("k", text, source)])


def told(ws: Workspace, work: Transcript, path: Path) -> list[Episode]:
    ingest(ws, [work.write(path / "a.jsonl")])
    records = (ws.get(found.id) for found in ws.list(kind="episode"))
    return [record for record in records if isinstance(record, Episode)]


# -- sentences -------------------------------------------------------------------------------------


def test_code_blocks_and_headings_are_no_sentences() -> None:
    text = "# Plan\n\nThe cart is sorted.\n```py\nx = 1. Y = 2\n```\nIt keeps duplicates."
    assert list(sentences(text)) == ["The cart is sorted.", "It keeps duplicates."]


def test_an_item_goes_on_in_the_next_line_and_a_table_row_is_one_sentence() -> None:
    text = "- first item\n  goes on here\n- second\n\n| a | b |\n|---|---|\n| c | d |"
    assert list(sentences(text)) == ["first item goes on here", "second", "a — b", "c — d"]


def test_an_abbreviation_ends_no_sentence() -> None:
    text = "Use a lock, e.g. `flock`. Then write."
    assert list(sentences(text)) == ["Use a lock, e.g. `flock`.", "Then write."]


# -- which sentences -------------------------------------------------------------------------------


def test_a_fact_about_an_outside_tool_is_kept_as_a_gotcha() -> None:
    (found,) = kept(GOTCHA)
    assert (found.text, found.type) == (GOTCHA.replace("go-git", "Go-git"), "gotcha")


@pytest.mark.parametrize(
    "text",
    [
        "Let me check how `CartStore` handles the missing totals in `cart.py`.",
        "Should `CartStore` return the totals when the `cart.py` file is missing?",
        "It seems that `CartStore` doesn't return the totals when `cart.py` is missing.",
        "I need to look at `CartStore` because the totals in `cart.py` are not returned.",
        "The commit 1a2b3c4d5e doesn't return the totals of `CartStore` when it is missing.",
        "Here is what `CartStore` returns when the totals in `cart.py` are missing:",
        "All done.",
    ],
)
def test_plans_questions_hedges_and_progress_are_not_kept(text: str) -> None:
    assert kept(text) == []


def test_at_most_twenty_statements_of_a_session_are_kept() -> None:
    many = [
        Utterance(
            str(n), f"`Cart{n}Store` doesn't return `total{n}` when `file{n}` is missing.", "say"
        )
        for n in range(40)
    ]
    assert len(statements(many)) == PER_SESSION


def test_a_statement_that_repeats_a_better_one_is_not_kept() -> None:
    assert len(kept(f"{GOTCHA} And go-git doesn't read global gitignore files in the CLI.")) == 1


def test_a_sentence_that_is_said_again_scores_higher() -> None:
    once = [Utterance("a", GOTCHA, "say")]
    twice = [
        *once,
        Utterance("b", "As go-git doesn't read global gitignore files, it fails.", "say"),
    ]
    assert statements(twice)[0].score > statements(once)[0].score


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("please use the british spelling :)", "preference"),
        ("let's make sure we're using US English everywhere please", "preference"),
        ("we should be using the strong types instead of string wherever we can", "preference"),
        ("let's make the start command hidden in the help", "decision"),
        ("Actually, I prefer Go for the command line tools", "preference"),
    ],
)
def test_what_a_user_wants_is_a_preference_or_a_decision(text: str, type_: str) -> None:
    assert [found.type for found in kept(text, "user")] == [type_]


@pytest.mark.parametrize(
    "text",
    [
        "Rename getUser to loadUser everywhere in this package",
        "please replace all tabs by spaces everywhere in these files",
        "edits that are made before the first prompt are never captured by it",
        "rebase off main, then push",
        "aws secret keys",
    ],
)
def test_an_order_of_one_session_and_a_description_are_no_preference(text: str) -> None:
    assert "preference" not in [found.type for found in kept(text, "user")]


@pytest.mark.parametrize(
    "text",
    [
        "always rename a branch after its ticket before you push",
        "please never add a dependency without asking me first",
        "every test should run without a network in this repository",
    ],
)
def test_an_order_for_every_time_is_a_preference(text: str) -> None:
    assert [found.type for found in kept(text, "user")] == ["preference"]


@pytest.mark.parametrize(
    "text",
    ["ok let's keep going", "I'd like to generate a changelog", "but this means both hooks run?"],
)
def test_other_words_of_a_user_are_not_kept(text: str) -> None:
    assert kept(text, "user") == []


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("Every test must call `t.Parallel()` unless it changes the process.", "convention"),
        ("The branch name is left out intentionally, because `HEAD` can be detached.", "decision"),
        ("`TurnEndHandler` is an optional interface for strategies with deferred work.", "entity"),
        (
            "`initHookLogging()` calls `FindMostRecentSession()` before the file is open.",
            "relationship",
        ),
    ],
)
def test_the_agents_statements_have_a_type(text: str, type_: str) -> None:
    assert statement_type(text, "say", 0.5, frozenset()) == type_


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Good catch — **the** hook reads `HEAD` (line 12).", "The hook reads `HEAD`."),
        ("Fixed in ffa06892. The lock is released.", "The lock is released."),
        ("the `--no-stat` flag is unknown", "The `--no-stat` flag is unknown"),
        ("[Review][Patch] the badge is stale", "The badge is stale"),
        ("Meanwhile, locally we use `mise`.", "Locally we use `mise`."),
        ("Unfortunately, git has no such hook.", "Git has no such hook."),
        ("Uses the git CLI for each commit.", "Uses the git CLI for each commit."),
    ],
)
def test_a_statement_is_shown_without_interjection_emphasis_and_line_numbers(
    text: str, shown: str
) -> None:
    assert tidy(text) == shown


# -- what an agent writes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "git commit -q -m 'Sort the cart\n\nThe store keeps insertion order.'",
        'git add -A && git commit -m "Sort the cart" -m "The store keeps insertion order."',
        (
            "git commit -m \"$(cat <<'EOF'\nSort the cart\n\nThe store keeps insertion order.\n\n"
            'Co-Authored-By: A <a@b.c>\nEOF\n)"'
        ),
        'gh pr create --title "Sort the cart" --body "The store keeps insertion order."',
    ],
)
def test_messages_of_commits_and_pull_requests_are_prose(command: str) -> None:
    found = list(sentences(published_prose(command)))
    assert found[0] == "Sort the cart"
    assert found[1:] == ["The store keeps insertion order."]


def test_a_command_that_publishes_nothing_is_no_prose() -> None:
    assert published_prose('echo "The store keeps insertion order."') == ""


def test_comments_that_an_edit_adds_are_prose_and_those_that_were_there_are_not() -> None:
    before = "// sorts the cart\nfunc Sort() {}"
    after = (
        "// sorts the cart\n// Uses the git CLI because go-git ignores\n// hooks.\nfunc Sort() {}"
    )
    assert added_prose("a.go", before, after) == "Uses the git CLI because go-git ignores\nhooks."


def test_a_document_that_is_written_is_prose() -> None:
    assert added_prose("README.md", "", "# Cart\nIt is sorted.") == "# Cart\nIt is sorted."


def test_an_edit_is_a_hunk_of_the_lines_that_differ() -> None:
    (found,) = given_hunks({"file_path": "a.py", "old_string": "a\nb\nc", "new_string": "a\nB\nc"})
    assert (found.path, found.line, found.removed, found.added) == ("a.py", 0, "b", "B")


# -- in episodes -----------------------------------------------------------------------------------


def test_a_heading_among_comments_is_no_part_of_the_sentence_below_it() -> None:
    code = "// Ignore files\n// Git reads them only from an absolute path,\n// not a relative one."
    prose = added_prose("main.go", "", code)
    assert "Git reads them only from an absolute path, not a relative one." in sentences(prose)


def test_comments_at_two_places_are_two_and_so_are_two_lines_that_begin_a_sentence() -> None:
    after = "// Reads the key from the environment\nrun()\n// Writes the key to the cache\nstop()"
    prose = added_prose("main.go", "run()\nstop()", after)
    assert list(sentences(prose)) == [
        "Reads the key from the environment",
        "Writes the key to the cache",
    ]
    notes = "Local mode: use the wrapper script\nDefault mode: use the binary from the path"
    assert list(sentences(notes)) == notes.split("\n")
    wrapped = "The order of hooks matters, since the first one that fails at all stops\nGit itself."
    assert list(sentences(wrapped)) == [wrapped.replace("\n", " ")]


DEFECT = "When the list is empty, `shop.totals` raises a `ValueError` instead of giving zero."


@pytest.mark.parametrize("is_edited", [True, False])
def test_a_defect_that_a_task_tells_of_is_resolved_once_files_are_edited(
    ws: Workspace, tmp_path: Path, is_edited: bool
) -> None:
    task = f"{DEFECT}\n\n{'The report of this month shows the numbers of all carts. ' * 14}"
    work = Transcript().say(task).reply("Looking into it.")
    if is_edited:
        work.call(
            "Edit", file_path="/shop/a.py", old_string="max(x)", new_string="max(x, default=0)"
        )
    (episode, *_) = told(ws, work, tmp_path)
    found = {entry.text: entry.resolved for entry in episode.statements}
    assert bool(found[DEFECT]) is is_edited


WHY_IT_FAILS = "The totals are added before the discount, so an invoice of several carts is wrong."


@pytest.mark.parametrize(
    ("task", "is_edited", "is_resolved"),
    [
        ("Fix this bug: invoices of several carts have wrong totals", True, True),
        ("Fix this bug: invoices of several carts have wrong totals", False, False),
        ("Write a page about invoices, carts and their totals", True, False),
        ("Fix this bug: the login page forgets the language", True, False),
    ],
)
def test_what_explains_a_reported_defect_is_resolved_with_it(
    ws: Workspace, tmp_path: Path, task: str, is_edited: bool, is_resolved: bool
) -> None:
    rule = "Invoices must always be rounded with `round_once()`, because carts have own totals."
    work = Transcript().say(task).reply(f"{WHY_IT_FAILS} {rule}")
    if is_edited:
        work.call("Edit", file_path="/shop/a.py", old_string="add(x)", new_string="add(less(x))")
    (episode, *_) = told(ws, work, tmp_path)
    found = {entry.text: bool(entry.resolved) for entry in episode.statements}
    assert found == {WHY_IT_FAILS: is_resolved, rule: False}


def test_what_a_session_edits_is_no_tool_from_outside() -> None:
    work = (
        Transcript().say("Mend the query").reply("Django silently drops the ordering of `only()`.")
    )
    for name in ("django/db/models.py", "tests/test_only.py"):
        work.call("Edit", file_path=f"/here/{name}", old_string="a", new_string="b")
    turns = [turn for line in work.lines for turn in ClaudeCode().turns(line) or ()]
    tools = utterances(sorted(turns, key=Turn.order)).tools
    assert "django" not in tools
    assert "flask" in tools


def test_a_tool_is_what_a_gotcha_is_about_and_not_a_word_in_passing() -> None:
    told = kept("Build guards fail without the right hook in Astro 6, which passes `command`.")
    assert [found.type for found in told] == ["gotcha"]
    told = kept("`saveAll` doesn't go on when `total` is missing, since it must be set next.")
    assert [found.type for found in told] != ["gotcha"]


def test_an_episode_holds_the_statements_made_in_it(ws: Workspace, tmp_path: Path) -> None:
    work = (
        Transcript().say("Fix the ignored files").call("Bash", command="git status").reply(GOTCHA)
    )
    (episode,) = told(ws, work, tmp_path)
    (found,) = episode.statements
    assert (found.type, found.source) == ("gotcha", "say")
    assert GOTCHA[10:] in episode.passage().text


def test_prose_after_a_foreign_tool_stands_in_an_external_episode(
    ws: Workspace, tmp_path: Path
) -> None:
    work = Transcript().say("Look it up").call("WebFetch", "some page", url="https://example.org")
    first, second = sorted(told(ws, work.reply(GOTCHA), tmp_path), key=lambda e: e.origin or "")
    assert (first.origin, first.statements) == ("agent", [])
    assert (second.origin, len(second.statements)) == ("external", 1)


def test_words_with_which_a_user_rejects_a_call_are_the_users(
    ws: Workspace, tmp_path: Path
) -> None:
    refusal = (
        "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user "
        "said:\nplease don't run the integration tests, too slow."
    )
    work = Transcript().say("Test the cart").call("Bash", refusal, failed=True, command="make test")
    (episode,) = told(ws, work, tmp_path)
    assert [(s.type, s.source) for s in episode.statements] == [("preference", "user")]
    assert episode.errors_encountered == []


def test_a_session_that_an_older_reader_staged_is_told_with_its_statements(
    ws: Workspace, tmp_path: Path
) -> None:
    work = (
        Transcript().say("Fix the ignored files").call("Bash", command="git status").reply(GOTCHA)
    )
    (episode,) = told(ws, work, tmp_path)
    (log,) = (ws.layout.local / "ingest" / "sessions").glob("*.jsonl")
    staged = [line for line in log.read_text().splitlines() if '"say"' not in line]
    log.write_text("".join(f"{line}\n" for line in staged))
    for mark in (ws.layout.local / "ingest" / "marks").glob("*.json"):
        mark.write_bytes(mark.read_bytes().replace(b'"reader":3', b'"reader":2'))
    (again,) = told(ws, work, tmp_path)
    assert again == episode


def test_a_secret_in_prose_is_replaced_before_it_is_staged(ws: Workspace, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    work = Transcript().say("Fix the ignored files")
    work.reply(f"The `deploy` job fails because the token {secret} doesn't have `repo` scope.")
    work.call("Edit", file_path="/home/ana/shop/a.py", old_string="x", new_string=f"t = '{secret}'")
    told(ws, work, tmp_path)
    files = [path for path in ws.layout.root.rglob("*") if path.is_file()]
    assert not any(secret.encode() in path.read_bytes() for path in files)
    assert find_secrets(secret)


def test_a_plain_choice_of_the_user_is_kept_however_short() -> None:
    said = [
        Utterance("1", "I prefer Python", "user"),
        Utterance("2", "Actually, I prefer Go", "user"),
    ]
    found = {(one.text, one.type) for one in statements(said)}
    assert found == {("I prefer Python", "preference"), ("Actually, I prefer Go", "preference")}


def test_short_words_of_an_agent_or_without_a_choice_are_not() -> None:
    said = [Utterance("1", "I prefer Python", "say"), Utterance("2", "Use it", "user")]
    assert statements(said) == []


OPTIONS = (
    "Two ways:\n\n**Option A: Store summaries in the existing metadata struct.** No migration.\n"
    "**Option B: Write summaries to a file of their own.** Simpler to delete."
)


@pytest.mark.parametrize(
    "reply", ["A.", "a", "I like Option A", "let's go with A please", "A) is fine"]
)
def test_an_option_that_a_user_picks_by_its_letter_becomes_a_decision(reply: str) -> None:
    assert chosen(reply, OPTIONS) == "Store summaries in the existing metadata struct."
    work = Transcript().say("Where do summaries go?").reply(OPTIONS).say(reply)
    found = statements(*utterances(turns_of(work)))
    decided = [(each.type, each.text) for each in found if each.source == "user"]
    assert decided == [("decision", "Chosen: Store summaries in the existing metadata struct.")]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("C", OPTIONS),
        ("A", "I have mended the test."),
        ("1", "1. Read the file\n2. Mend it\n\nOr:\n\n1. Ask\n2. Wait"),
        ("not A, and 1 is not good either", OPTIONS),
        ("1", "1. There is only one way"),
    ],
)
def test_a_letter_that_names_nothing_picks_nothing(reply: str, said: str) -> None:
    assert chosen(reply, said) == ""


def test_a_pronoun_is_told_as_what_the_user_spoke_of_before(ws: Workspace, tmp_path: Path) -> None:
    work = Transcript().say("let's make the start command hidden").reply("Done, it is hidden now.")
    work.say("thinking again: remove it completely").reply("The command is gone.")
    said = [each.text for each in utterances(turns_of(work)).utterances if each.type]
    assert said == ["thinking again: remove the start command completely"]
    ws.ingest([work.write(tmp_path / "a.jsonl")])
    ws.consolidate()
    facts = {fact.title(): fact.status for fact in ws.list(kind="fact", status="all")}
    assert facts["Let's make the start command hidden"] == "superseded"


def test_a_pronoun_without_anything_before_it_decides_nothing() -> None:
    work = Transcript().say("What does the cart do?").reply("It sums up.").say("remove it please")
    assert [each.text for each in utterances(turns_of(work)).utterances if each.type] == []


def turns_of(work: Transcript) -> list[Turn]:
    found = [turn for line in work.lines for turn in ClaudeCode().turns(line) or ()]
    return sorted(found, key=Turn.order)
