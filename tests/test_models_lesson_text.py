"""Which statements read as lessons for the next session, and which only report."""

from __future__ import annotations

import pytest

from loki_memory.models.lesson_text import objection, worth

LESSONS = [
    "Build guards run in the `config:setup` hook only, since no other hook gets the command.",
    "Commit messages should include the number of the ticket, and use US English.",
    "Every top-level test calls `t.Parallel()`, unless it changes process-global state.",
    "The importer needs a running Redis, because it locks the queue there.",
    "`main.py` prints errors to stderr, unless the error is a `SilentError`.",
    "Use `npm run fetch-data` before the first build; the cache file is not in git.",
    "Git has no hook for `restore`, so nobody can detect when work is discarded.",
    "`saveState()` must not be called twice; it never checks for a lock.",
    "When a worker is started with `--once`, it must not fork (see `fork -> exec` in its manual).",
    "A handler returns errors and never exits; exit codes are set in `main.py` only.",
    "If `make` is called without a target, it builds everything, so name one.",
    "`npm create app` with `--strict` was read as a folder; solved by leaving out the flag.",
    "Tokens are defined in `global.css`, NOT in a config file.",
    "Cannot use `t.Parallel()` because subtests change the environment.",
    "The `strict` linter is on and `Cart` is not listed, so removing the comment ends the build.",
    "The parser matches every tag of the current folder, not of its parents, until it is told so.",
    "`text.Upper` from `shop/words` upper-cases *every word*, not only the first letter.",
    "macOS resolves `/var` to `/private/var`, so compare paths only after `realpath`.",
]
REPORTS = {
    "`go build ./... && mise run lint`": "is code without a sentence",
    "Added a helper for the date.": "tells what was done",
    "Use the wrapper with the flag that reads the environment": "plans a change of one place",
    "The step needs: `cart`, `total` and the name of the branch if there is one.": "is notes",
    "The current implementation only reads the first line of a report.": "tells how things stand",
    "The order (tests 2 & 4) is kept only if nobody sorts the rows.": "tells how things stand",
    "`setup.go` - Removed the second call of `EnsureIgnore()`.": "is an item of a list",
    "The fix was to pass the type as the second argument.": "points to something",
    "But `replace` is not in the list, so the file is not found.": "begins in the middle",
    "2 — The idle session keeps its branch when nothing is new.": "begins in the middle",
    "Returns an empty string if the file is not there.": "begins in the middle",
    "The tests pass when the flag is set.": "tells how things stand",
    "The flag is still needed for old clients.": "tells how things stand",
    "PR #60 needs the same check as the other one.": "tells how things stand",
    "`a_b` calls `c_d`, `e_f`, `g_h` and `i_j` if one of them is set.": "describes one place",
    "`saveState()` ignores the error of `writeFile()` when the disk is full.": "tells of a defect",
    "When `hasNews` is false, the handler doesn't copy the name.": "tells of a defect",
    "The problem is that `save_all` runs if the list is empty.": "tells of a defect",
    "Recommendation: use one helper for both.": "is an item of a list",
    "Test that a renamed key is not used when the old one is set.": "begins in the middle",
    "Before the fix, `max()` must not be called with nothing.": "points to something",
    "Modified the check so that only expressions must be filterable.": "tells what was done",
    "When upgrading to 3.0, tuples in a filter caused a `TypeError`.": "tells how things stand",
    "The session is an alias for the state.": "does not say",
    "Should the cache be cleared when the branch changes?": "is a question",
    "Do that for this file when the test runs.": "points to something",
    "Completed: the login ✓, the cart. Pending: the invoice.": "is an item of a list",
    "The script will scan the log and store the commands.": "is a guess or a plan",
    "A hook would prevent it if somebody forgets the flag.": "is a guess or a plan",
    "The hosted approach is better, because tokens expire there.": "is a guess or a plan",
    "Check if the trailer is present, since the parser validates it.": "begins in the middle",
    "Git has no hook for `restore`, so we cannot know when work is lost.": "speaks for those",
    "Used the `--local` flag to write the command, if it is set.": "tells what was done",
    "`checkAll`: Reduced to five cases, since the rest is the same.": "is an item of a list",
    "Integration tests to run without requiring a network": "is a heading",
    "ConflictError - Starting a session when old work exists": "is an item of a list",
    "Proper session ids - `$(uuidgen)` instead of `test-$(date)`": "is an item of a list",
    "Pass the writer to `explainAll` and use it when printing.": "plans a change",
    "The safer default should be `true` when the limit is hit.": "plans a change",
    "`readAll`: use absolute paths instead of relative ones": "is an item of a list",
    "The `--all` code path calls `ag.isReady()` directly without checking it.": "tells of a defect",
    "There's a schema error, so the key must be renamed.": "begins in the middle",
    "The message should be present when the hook blocks.": "tells what a test expects",
    "In `readAll`, when the file is old, it prints a hint.": "describes one place",
    "The current code returns an error when the branch exists.": "tells how things stand",
    "Checking for these files is the only way to detect a rebase.": "points to something",
    "First, update the parser to use a type when one is given.": "begins in the middle",
    "User identified that the reader must close its file.": "begins in the middle",
    "`retry.limit` \u2014 `3` \u2014 Attempts before a job is not tried again": "is notes and not",
    "Refresh: `make data` \u2192 `make dev`, needed when the cache is old.": "is notes and not",
    "If name != 'x' and not done: exit(1) should be used.": "is notes and not a sentence",
    "The link is /admin/... instead of /custom/..., if the site is named.": "leaves out words",
    "Long lines - `chunks.py` - A line beyond the limit passes without an error.": "is an item",
    "Runs `make data` \u2014 the script needs a token.": "begins in the middle",
    "Example: in a chain of redirects, the last should keep its method.": "is an item of a list",
    "Test script to show that the key is not updated.": "begins in the middle",
    "Raising an error in a converter should result in a page, not a trace.": "tells what a test",
    "A second write of the same text should return false.": "tells what a test expects",
    "LoadOrderSettings reads the file, so call it once.": "describes one place",
    "Only `cart_test.py` remains, which has to change its folder.": "tells how things stand",
    "Should parse once, so that nothing is read twice.": "begins in the middle",
    "Option B: check whether the commit is an ancestor of the branch.": "is an item of a list",
    "Designed a helper so that handlers need no switch.": "tells what was done",
}


@pytest.mark.parametrize("text", LESSONS)
def test_a_lesson_holds_for_the_next_session(text: str) -> None:
    assert objection(text) == ""


@pytest.mark.parametrize(("text", "reason"), REPORTS.items())
def test_a_report_is_of_the_moment(text: str, reason: str) -> None:
    assert objection(text).startswith(reason)


def test_a_description_is_a_lesson_to_somebody_who_works_there() -> None:
    description = "`a_b` calls `c_d`, `e_f`, `g_h` and `i_j` if one of them is set."
    assert objection(description, is_at_place=True) == ""
    assert objection("The session is an alias for the state.", is_at_place=True) == ""
    assert objection("Added a helper for the date.", is_at_place=True) == "tells what was done"


def test_a_users_words_are_a_rule_however_they_are_put() -> None:
    assert objection("Respond directly to each review comment please", is_stated=True) == ""
    assert objection("We always squash before a merge", is_stated=True) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Let's add a few table tests.",
        "Never do that in this file.",
        "This means it never works.",
        "User edits before the first prompt are never captured.",
        "Using the command should always be fine, right? We do so elsewhere.",
    ],
)
def test_an_order_for_one_piece_of_work_is_no_rule(text: str) -> None:
    assert objection(text, is_stated=True)


def test_a_gotcha_of_an_outside_tool_is_worth_more_than_a_description() -> None:
    assert worth("`readAll()` needs a lock.", "fact", 0.5, 1) < worth("It does.", "fact", 0.5, 1)
    gotcha = worth("Git has no hook for `restore`.", "gotcha", 0.5, 1)
    assert gotcha > worth("`run()` returns the code.", "fact", 0.5, 1)
    assert gotcha < worth("Git has no hook for `restore`.", "gotcha", 0.5, 3)
    assert worth("`a` `b` `c` `d` do it.", "fact", 0.5, 1) < worth("`a` does it.", "fact", 0.5, 1)
