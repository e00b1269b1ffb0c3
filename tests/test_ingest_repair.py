"""Repairs: which sentence, change or command is told as the remedy of an error."""

from __future__ import annotations

import pytest
from claude_lines import Transcript

from loki_memory.ingest.claude_code import ClaudeCode
from loki_memory.ingest.episodes import episodes
from loki_memory.ingest.turns import Turn
from loki_memory.models.error_signature import complaint

HERE = "/home/ana/shop"


def remedy(work: Transcript) -> str:
    """The resolution of the first error of a session; empty if it has none."""
    turns = [turn for line in work.lines for turn in ClaudeCode().turns(line) or ()]
    first = next(iter(episodes(sorted(turns, key=Turn.order))))
    return first.errors_encountered[0].resolution or ""


def failing(command: str, error: str) -> Transcript:
    return Transcript().say("Do it").call("Bash", error, failed=True, command=command)


def edit(work: Transcript, path: str, old: str, new: str) -> Transcript:
    return work.call("Edit", file_path=f"{HERE}/{path}", old_string=old, new_string=new)


# -- commands --------------------------------------------------------------------------------------


def test_the_program_that_worked_in_place_of_another_is_named() -> None:
    work = failing("python tests.py", "ImportError: No module named pathlib")
    work.call("Bash", "Python 2.7", command="python --version")
    work.call("Bash", command="python3 tests.py")
    assert remedy(work) == "Use `python3` instead of `python`."


def test_a_script_that_worked_is_no_remedy_of_another_script() -> None:
    work = failing("python3 first.py", "ImportError: No module named yaml")
    assert remedy(work.call("Bash", command="python3 second.py")) == ""


def test_what_runs_the_same_tests_replaces_a_runner_that_is_not_there() -> None:
    work = failing("python -m pytest tests/forms/test_media.py", "python: No module named pytest")
    work.call("Bash", command="python3 tests/run.py forms.test_media -v 2 2>&1 | tail -20")
    assert remedy(work) == "Use `python3 tests/run.py` instead of `python -m pytest`."


STALE = "tests/api.test.ts(31,24): error TS2339: Property 'due' does not exist on type 'Todo'."


def test_what_was_run_before_a_compiler_is_content_is_a_remedy_of_its_complaint() -> None:
    work = failing("npm run test:contract", STALE)
    work.call("Bash", command="npm run generate:types").call(
        "Bash", command="npm run test:contract"
    )
    assert remedy(work) == "Run `npm run generate:types`"


def test_a_command_beside_an_edit_is_no_remedy_of_a_compilers_complaint() -> None:
    work = failing("npm run test:contract", STALE)
    work = edit(work, "tests/api.test.ts", "todo.due", "todo.dueDate")
    work.call("Bash", command="npm run generate:types").call(
        "Bash", command="npm run test:contract"
    )
    assert "generate" not in remedy(work)


def test_a_pipe_that_hides_a_failure_is_no_success() -> None:
    work = failing("make build", "ld: cannot find -lz of the library")
    work.call("Bash", "error: linker failed", command="make build CFLAGS=-g 2>&1 | head -5")
    assert remedy(work) == ""


def test_a_command_that_worked_after_an_edit_is_how_it_was_tried_and_no_remedy() -> None:
    work = failing("run.sh all", "KeyError: the label of the cart is unknown")
    edit(work, "cart.py", "a = 1", "a = 2")
    assert remedy(work.call("Bash", command="run.sh some")) == ""


def test_of_a_chain_of_subcommands_of_one_script_nobody_knows_which_failed() -> None:
    work = failing("./h.sh begin && ./h.sh end", "The following paths are ignored by git")
    work.call("Bash", command="./h.sh begin --quietly && ./h.sh other")
    assert remedy(work) == ""


def test_the_failed_part_of_a_chain_is_compared_with_its_own_kind() -> None:
    work = failing("go build -o ./x ./cmd/... && ./x run", "go: cannot write multiple packages")
    work.call("Bash", command="go build -o ./x ./cmd/main.go && ./x run")
    assert remedy(work) == "Run `go build -o ./x ./cmd/main.go`"


@pytest.mark.parametrize("other", ["pip install -e shop -q", "pip install --help"])
def test_what_only_says_less_or_asks_for_help_is_no_other_form(other: str) -> None:
    work = failing("pip install -e shop", "ERROR: shop is not a valid editable requirement")
    assert remedy(work.call("Bash", command=other)) == ""


def test_a_command_about_one_issue_is_no_remedy() -> None:
    work = failing("gh api repos/shop/issue/7", "gh: Not Found (HTTP 404) for the issue")
    assert remedy(work.call("Bash", command="gh api repos/shop/issues/174/comments")) == ""


def test_a_path_is_no_news_where_the_error_says_what_is_wrong() -> None:
    work = failing("pip install -e shop", "ERROR: shop should either be a path or an address")
    assert remedy(work.call("Bash", command="pip install -e ./work/shop")) == ""


# -- changes ---------------------------------------------------------------------------------------


def test_a_rule_that_is_silenced_with_a_reason_is_a_remedy() -> None:
    work = failing("make lint", "a.go:3:2: error is not nil but it returns nil (nilerr)")
    edit(work, "a.go", "return nil", "return nil //nolint:nilerr // a missing file is expected")
    edit(work, "a.go", "return 1", "return 2")
    assert remedy(work.call("Bash", command="make lint")) == ""  # their lines are unknown
    assert remedy(_silenced("return nil //nolint:nilerr // a missing file is expected")) == (
        "Where the code is meant so, silence the rule and say why, e.g."
        " `//nolint:nilerr // a missing file is expected` (a.go)"
    )
    assert remedy(_silenced("return nil //nolint:nilerr")) == ""


def _silenced(line: str) -> Transcript:
    work = failing("make lint", "a.go:3:2: error is not nil but it returns nil (nilerr)")
    patched(work, "a.go", 3, ["return nil"], [line])
    return work.call("Bash", command="make lint")


def patched(work: Transcript, path: str, line: int, old: list[str], new: list[str]) -> None:
    edit(work, path, "\n".join(old), "\n".join(new))
    lines = [*(f"-{text}" for text in old), *(f"+{text}" for text in new)]
    work.lines[-1]["toolUseResult"] = {
        "filePath": f"{HERE}/{path}",
        "structuredPatch": [{"oldStart": line, "newStart": line, "lines": lines}],
    }


def test_a_change_at_an_unknown_line_is_meant_if_no_other_was_made_to_its_file() -> None:
    work = failing("make lint", "a.go:3:2: error is not nil but it returns nil (nilerr)")
    edit(work, "a.go", "return nil", "return nil //nolint:nilerr // a missing file is expected")
    told = "`//nolint:nilerr // a missing file is expected` (a.go)"
    assert remedy(work.call("Bash", command="make lint")).endswith(told)
    work = failing("make lint", "a.go:3:2: error is not nil but it returns nil (nilerr)")
    edit(work, "a.go", "return nil", "return nil //nolint:nilerr // a missing file is expected")
    edit(work, "a.go", "return 1", "return 2")
    assert remedy(work.call("Bash", command="make lint")) == ""


def test_an_error_that_is_thrown_away_is_no_remedy() -> None:
    work = failing("mise run lint", "main.go:9:2: Error return value is not checked (errcheck)")
    patched(work, "main.go", 9, ["\tf.Close()"], ["\t_ = f.Close()"])
    assert remedy(work.call("Bash", command="mise run lint")) == ""


def test_a_rule_that_shall_be_silenced_without_a_reason_is_no_remedy() -> None:
    work = failing("mise run lint", "run.go:9:2: G204: Subprocess launched (gosec)")
    work.reply("The `gosec` G204 in the subprocess - need to mark as safe.")
    assert remedy(work.call("Bash", command="mise run lint")) == ""


def test_a_command_that_drops_staged_work_is_no_remedy() -> None:
    work = failing("git status", "fatal: unable to read the tree of the index")
    work.call("Bash", command="git read-tree HEAD")
    assert remedy(work.call("Bash", command="git status")) == ""


def test_a_line_that_is_changed_twice_is_told_as_changed_once() -> None:
    work = failing("make lint", "a.go:3:2: Error return value is not checked (errcheck)")
    patched(work, "a.go", 3, ["return err"], ["return err //nolint:errcheck // it is wrapped"])
    patched(
        work, "a.go", 3, ["return err //nolint:errcheck // it is wrapped"], ["return wrap(err)"]
    )
    work.call("Bash", command="make lint")
    assert remedy(work) == "Mended before, e.g. in a.go: `return err` → `return wrap(err)`"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return load(key)", 'return load(key), fmt.Errorf("load: %w", err)'),  # calls one function
        ("return err", "return ErrNoCart"),  # a name of the project
        ("case cart.Full:", "case cart.Full, cart.Paid:"),
    ],
)
def test_a_change_that_only_its_place_can_have_is_no_remedy_of_a_rule(old: str, new: str) -> None:
    work = failing("make lint", "a.go:3:2: error from another package is unwrapped (wraps)")
    patched(work, "a.go", 3, [old], [new])
    assert remedy(work.call("Bash", command="make lint")) == ""


def test_a_note_on_a_name_with_a_dot_is_no_remedy_of_its_rule() -> None:
    work = failing("make lint", "a.go:3:2: Error of `log.Init` is not checked (errcheck)")
    work.reply("`errcheck` on `log.Init` - need to handle or explicitly ignore")
    assert remedy(work.call("Bash", command="make lint")) == ""


def test_what_was_run_beside_an_edit_is_no_remedy_unless_the_error_misses_it() -> None:
    work = failing("python3 try.py", "ImportError: cannot import name carts")
    work.call("Bash", command="pip install carts")
    edit(work, "try.py", "import carts", "import shop")
    assert remedy(work.call("Bash", command="python3 try.py")) == ""
    work = failing("python3 try.py", "ModuleNotFoundError: No module named 'carts'")
    work.call("Bash", command="pip install carts")
    edit(work, "try.py", "carts.one()", "carts.all()")
    assert remedy(work.call("Bash", command="python3 try.py")) == "Run `pip install carts`"


@pytest.mark.parametrize(
    "said",
    [
        "The parser needs an integer for the total and the correct field name.",
        "It's picking up the wrong total of the parser.",
        "Create a simpler test that doesn't require the total of the parser.",
    ],
)
def test_what_leaves_the_answer_open_is_no_remedy(said: str) -> None:
    work = failing("tool run", "ImportError: the parser has no total in module canvas").reply(said)
    assert remedy(work.call("Bash", command="tool run")) == ""


def test_words_about_a_script_of_the_moment_are_no_remedy() -> None:
    work = failing("python3 try.py", "FAIL: the total of the cart is still wrong")
    work.reply("The total of the cart must be added after the discount, because of `cart.sum()`.")
    assert remedy(work.call("Bash", command="python3 try.py")) == ""


def test_a_change_that_brings_the_names_of_one_complaint_is_no_remedy_of_its_rule() -> None:
    cases = (
        "missing cases in switch of type door.State: door.StateOpen, door.StateShut (exhaustive)"
    )
    work = failing("make lint", f"door.go:8:2: {cases}")
    patched(work, "door.go", 8, ["default:"], ["case StateOpen, StateShut: // both are fine"])
    assert remedy(work.call("Bash", command="make lint")) == ""


@pytest.mark.parametrize(
    ("message", "new"),
    [
        ("redundant `return` statement (gosimple)", []),  # the message says so itself
        ("string `user` has 3 occurrences, make it a constant (goconst)", ["name := roleUser"]),
        ("for error assertions use require (testifylint)", ['require("user")']),
    ],
)
def test_a_change_that_only_one_place_needs_or_that_the_message_states_is_no_remedy(
    message: str, new: list[str]
) -> None:
    work = failing("make lint", f"a.go:3:2: {message}")
    patched(work, "a.go", 3, ['name := assert("user")'], new)
    assert remedy(work.call("Bash", command="make lint")) == ""


def test_a_patch_of_one_place_is_no_remedy_of_an_error_that_no_rule_names() -> None:
    error = 'File "shop.py", line 3, in total\nTypeError: cannot unpack non-iterable NoneType cart'
    work = failing("python3 run.py", error)
    patched(work, "shop.py", 3, ["a, b = cart"], ["a, b = cart or empty"])
    assert remedy(work.call("Bash", command="python3 run.py")) == ""


def test_a_slip_in_a_file_that_was_just_written_has_no_remedy() -> None:
    work = Transcript().say("Try it").call("Write", file_path=f"{HERE}/try.py", content="a.get()")
    error = 'File "try.py", line 1, in <module>\nAttributeError: the cart has no attribute get'
    work.call("Bash", error, failed=True, command="python3 try.py")
    edit(work, "try.py", "cart.get()", "cart.attribute()")
    assert remedy(work.call("Bash", command="python3 try.py")) == ""


# -- words -----------------------------------------------------------------------------------------


def test_a_plan_says_what_to_do_where_its_message_names_the_complaint() -> None:
    work = failing("make lint", "a.go:3:2: lines are duplicate of `b.go:5-9` (dupl)")
    work.reply(
        "The linter found duplicate lines in tests."
        " Let me refactor to a table of cases, since only the inputs differ:"
    )
    assert remedy(work.call("Bash", command="make lint")) == (
        "Refactor to a table of cases, since only the inputs differ"
    )


def test_a_plan_that_gives_no_reason_and_names_nothing_is_no_remedy() -> None:
    work = failing("make lint", "a.go:3:2: lines are duplicate of `b.go:5-9` (dupl)")
    work.reply("The linter found duplicate lines in tests. Let me refactor to a table of cases:")
    assert remedy(work.call("Bash", command="make lint")) == ""


@pytest.mark.parametrize(
    "said",
    [
        "The linter requires all errors to be wrapped.",
        "Need to fix the unwrapped error, as the rule expects it.",
    ],
)
def test_what_says_the_complaint_again_is_no_remedy(said: str) -> None:
    work = failing("make lint", "a.go:3:2: the error is unwrapped (wraps)").reply(said)
    assert remedy(work.call("Bash", command="make lint")) == ""


@pytest.mark.parametrize(
    "said",
    [
        "Use `t.Open()` which is closed with the test.",
        "Fix the complaint by splitting `readAll()` into small helpers.",
    ],
)
def test_what_is_said_of_one_place_is_no_remedy_of_a_rule(said: str) -> None:
    work = failing("make lint", "a.go:3:2: the result of `readAll` is not checked (checks)")
    assert remedy(work.reply(said).call("Bash", command="make lint")) == ""


def test_a_request_for_something_else_is_no_remedy() -> None:
    work = failing("gh api repos/o/shop/commits/x", "gh: No commit found for x (HTTP 404)")
    assert remedy(work.call("Bash", command="gh api repos/o/shop/branches --paginate")) == ""
    work = failing("pip install -e .", "ERROR: shop requires a different Python: 3.8")
    work.call("Bash", command="python3.11 -m pip install -e . -q")
    assert remedy(work) == "Run `python3.11 -m pip install -e . -q`"
    work = failing("python3 run.py carts.One", "AttributeError: carts has no attribute One")
    assert remedy(work.call("Bash", command="python3 run.py carts --jobs 1")) == ""


def test_a_command_that_gives_what_the_error_asks_for_is_no_remedy() -> None:
    work = failing("ask --print", "Error: a question must be provided when using --print")
    assert remedy(work.call("Bash", command='ask --print --tools "" "How many carts?"')) == ""


def test_a_change_that_does_not_fit_into_a_line_is_not_shown() -> None:
    error = "a.go:3:2: the error of `Close` is not checked (errs)"
    call = ", ".join(f"parameter{number}" for number in range(9))
    work = failing("make lint", error)
    patched(work, "a.go", 3, [f"Close({call})"], [f"if err := Close({call}); err != nil {{"])
    assert remedy(work.call("Bash", command="make lint")) == ""


@pytest.mark.parametrize(
    "said",
    [
        "`noctx` in the test - need to use `exec.CommandContext` for the exec.",
        "Need to use `exec.CommandContext` instead of `exec.Command`.",
        "NumPy 1.24 raises warnings about exec.Command because of this.",
        "The fix is a `//nolint:noctx` comment on exec.Command.",
    ],
)
def test_a_note_about_one_place_and_an_error_said_back_explain_nothing(said: str) -> None:
    error = "a.go:3:2: exec.Command must not be called. use exec.CommandContext (noctx)"
    work = failing("make lint", error).reply(said)
    assert remedy(work.call("Bash", command="make lint")) == ""


def test_a_sentence_that_shares_only_common_words_with_an_error_explains_nothing() -> None:
    work = failing("tool run", "AttributeError: object has no attribute of the loader")
    work.reply("The issue is that a file is read twice because the test does not close it.")
    assert remedy(work.call("Bash", command="tool run")) == ""


def test_giving_up_is_no_remedy() -> None:
    work = failing("tool run", "ImportError: cannot import name shapes from module canvas")
    work.reply("Try a different approach - create a test that doesn't require the `canvas` module.")
    assert remedy(work.call("Bash", command="tool run")) == ""


# -- what an interpreter says at every start -------------------------------------------------------


def test_a_report_that_comes_with_every_start_is_no_error() -> None:
    output = (
        "Exit code 1\nError processing line 1 of /opt/site-packages/a-nspkg.pth:\n\n"
        "  Traceback (most recent call last):\n    exec(line)\n"
        "  AttributeError: 'NoneType' object has no attribute 'loader'\n\n"
        "Remainder of file ignored\nKeyError: 'SHOP'\n"
    )
    assert complaint(output) == "KeyError: 'SHOP'"
