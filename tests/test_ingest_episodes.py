"""Episodes of a session: where they begin, what they tell, how they ended."""

from __future__ import annotations

import pytest
from claude_lines import Transcript, shop

from loki_memory.ingest.boundaries import states_goal
from loki_memory.ingest.claude_code import ClaudeCode
from loki_memory.ingest.episodes import episodes
from loki_memory.ingest.turns import Turn
from loki_memory.models import Episode
from loki_memory.models.diagnostics import findings, rule
from loki_memory.models.text import run_hashes


def turns(told: Transcript) -> list[Turn]:
    found = [turn for line in told.lines for turn in ClaudeCode().turns(line) or ()]
    return sorted(found, key=Turn.order)


def told(transcript: Transcript) -> list[Episode]:
    return list(episodes(turns(transcript)))


def one(transcript: Transcript) -> Episode:
    (found,) = told(transcript)
    return found


# -- what is told ----------------------------------------------------------------------------------


def test_an_episode_tells_goal_files_errors_remedy_outcome_and_commit() -> None:
    first, second = told(shop())
    assert first.goal == "Fix the total of the cart"
    assert first.context.phase == "debugging"
    assert first.files_read == ["src/cart.py"]
    assert [a.target for a in first.action_log][:2] == ["src/cart.py", "pytest tests"]
    assert first.files_modified == ["src/cart.py"]
    assert [(e.type, e.resolution) for e in first.errors_encountered] == [
        ("pytest tests", "Run `SHOP_ENV=test pytest tests`")
    ]
    assert first.errors_encountered[0].command == "SHOP_ENV=test pytest tests"
    assert "KeyError: 'SHOP_ENV'" in first.errors_encountered[0].message
    assert (first.outcome, first.git_commit) == ("success", "1a2b3c4")
    assert [a.error for a in first.action_log if a.error] == ["KeyError: 'SHOP_ENV'"]
    assert second.artifacts_produced == ["README.md"]
    assert (second.outcome, second.context.phase) == ("unknown", "implementation")
    assert {first.agent, second.agent} == {"claude-code"}
    assert first.session == second.session == shop().session


def test_an_episode_names_the_branch_on_which_the_work_ended() -> None:
    work = Transcript().say("Add a cart").call("Bash", command="git switch -c cart")
    work.branch = "cart"
    assert one(work.call("Bash", command="make")).git_branch == "cart"
    work.branch = "HEAD"  # detached
    assert one(work.call("Bash", command="make install")).git_branch == "cart"


def test_an_episode_keeps_hashes_of_what_its_user_wrote_and_not_the_words() -> None:
    pasted = "we keep all the prices of the shop in whole cents everywhere"
    work = Transcript().say("Mend the cart").call("Bash", command="make").say("ok, go on")
    work.lines[-1]["message"]["content"] = f"yes, go on. {pasted}"
    found = told(work)
    hashes = {hashed for episode in found for hashed in episode.prompt_hashes}
    assert run_hashes(pasted) <= hashes
    assert run_hashes("Mend the cart with the eight words of this").isdisjoint(hashes)


def test_ids_come_from_the_session_and_the_first_prompt() -> None:
    first, second = told(shop())
    other = shop()
    other.lines[0]["message"]["content"] = "Fix it in other words"
    assert [e.id for e in told(other)] == [first.id, second.id]
    moved = Transcript("another-session").say("Fix the total of the cart")
    assert one(moved).id != first.id


def test_turns_read_in_any_order_give_the_same_episodes() -> None:
    some = turns(shop())
    again = list(episodes(sorted([*some[5:], *some[:5]], key=Turn.order)))
    assert [e.document() for e in again] == [e.document() for e in told(shop())]


def test_files_outside_the_project_are_none_of_its_files() -> None:
    work = Transcript().say("Look").call("Read", file_path="/etc/passwd")
    assert one(work).files() == set()


def test_a_worktree_holds_the_same_files() -> None:
    work = Transcript(cwd="/home/ana/shop").say("Change it")
    work.cwd = "/home/ana/shop/.worktrees/ana/fix-cart"
    work.call("Edit", file_path=f"{work.cwd}/src/cart.py")
    assert one(work).files_modified == ["src/cart.py"]


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("git mv a.py src/b.py && make", ["a.py", "src/b.py"]),
        ("sed -i 's/x/y/' src/cart.py", ["src/cart.py"]),
        ("cat > notes.md <<EOF", ["notes.md"]),
        ("git add src/cart.py README.md", ["src/cart.py", "README.md"]),
        ("make 2>&1 | grep error.log", []),
        ("pytest tests/test_cart.py", []),
    ],
)
def test_a_shells_command_tells_which_files_it_changes(command: str, files: list[str]) -> None:
    assert one(Transcript().say("Do it").call("Bash", command=command)).files_modified == files


def test_an_edit_that_failed_changed_nothing() -> None:
    path = "/home/ana/shop/a.py"
    work = Transcript().say("Do it").call("Edit", "not found", failed=True, file_path=path)
    assert one(work).files_modified == []


def test_the_log_is_bounded_and_still_shows_every_error() -> None:
    work = Transcript().say("Try much")
    for number in range(300):
        failed = number % 20 == 7
        work.call(
            "Bash", "ValueError: bad" if failed else "ok", failed=failed, command=f"x{number}"
        )
    found = one(work)
    assert len(found.action_log) == 60
    assert len([a for a in found.action_log if a.error]) == len(found.errors_encountered) == 15


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "The user doesn't want to proceed with this tool use. The tool use was rejected.\nCannot x",
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
    ],
)
def test_a_persons_no_and_what_stopped_with_another_call_are_no_errors(answer: str) -> None:
    work = Transcript().say("Do it").call("Bash", answer, failed=True, command="make")
    found = one(work)
    assert found.errors_encountered == []
    assert found.action_log[0].result == "failed"


@pytest.mark.parametrize(
    ("command", "label"),
    [
        ("cd /x && npx tsc --noEmit -p . 2>&1 | head", "npx tsc --noEmit"),
        ("python -m pytest tests -x", "python -m pytest"),
        ("git add a.py && git commit -m x", "git add a.py"),
    ],
)
def test_an_error_tells_how_the_command_was_typed(command: str, label: str) -> None:
    work = Transcript().say("Do it").call("Bash", "KeyError: 1", failed=True, command=command)
    assert one(work).errors_encountered[0].type == label


def test_a_retry_that_works_after_an_edit_keeps_the_edited_line() -> None:
    work = (
        Transcript()
        .say("Mend the build")
        .call("Bash", "main.go:3:2: undefined: total", failed=True, command="go build ./...")
        .call(
            "Edit",
            file_path="/home/ana/shop/main.go",
            old_string="return total",
            new_string="return cart.total",
        )
        .call("Bash", command="go build ./...")
    )
    error = one(work).errors_encountered[0]
    assert error.hunk == "`return total` → `return cart.total` (main.go)"
    assert error.resolution is None  # another place has other names


def test_a_sentence_that_explains_an_error_is_its_resolution() -> None:
    work = (
        Transcript()
        .say("Mend the build")
        .call("Bash", "fatal: unknown flag --no-stat of show", failed=True, command="git show -n")
        .reply("The `show` command doesn't have a `--no-stat` flag, it needs `--format=` instead.")
        .call("Bash", command="git show --format=")
    )
    error = one(work).errors_encountered[0]
    assert error.resolution == (
        "The `show` command doesn't have a `--no-stat` flag, it needs `--format=` instead."
        " E.g. `git show --format=`"
    )


def test_a_command_that_was_run_before_the_same_one_worked_is_the_remedy() -> None:
    failed = (
        Transcript()
        .say("Lint")
        .call("Bash", "the file is badly formatted", failed=True, command="make lint")
    )
    work = failed.call("Bash", command="make fmt && make lint")
    assert one(work).errors_encountered[0].resolution == "Run `make fmt`"


def test_the_rest_of_a_chain_is_no_remedy() -> None:
    work = (
        Transcript()
        .say("Lint")
        .call("Bash", "the file is badly formatted", failed=True, command="make fmt && make lint")
    )
    assert one(work.call("Bash", command="make lint")).errors_encountered[0].resolution is None


def test_an_error_of_the_clients_own_tool_has_no_remedy() -> None:
    here = "/home/ana/shop/a.py"
    work = (
        Transcript()
        .say("Change it")
        .call("Edit", "File has not been read yet.", failed=True, file_path=here)
        .call("Read", file_path=here)
        .call("Edit", file_path=here)
    )
    assert one(work).errors_encountered[0].resolution is None


def test_each_rule_of_a_linters_report_is_an_error_of_its_own() -> None:
    report = (
        "cmd/a.go:12:5: Error return value is not checked (errcheck)\n"
        "cmd/b.go:3:1: string `user` has 4 occurrences, make it a constant (goconst)\n"
        "cmd/c.go:7:2: Error return value is not checked (errcheck)\n"
    )
    work = Transcript().say("Lint").call("Bash", report, failed=True, command="mise run lint")
    assert [e.message for e in one(work).errors_encountered] == [
        "cmd/a.go:12: Error return value is not checked (errcheck)",
        "cmd/b.go:3: string `user` has 4 occurrences, make it a constant (goconst)",
    ]


def test_codes_of_one_linter_are_rules_of_their_own() -> None:
    report = (
        "cmd/a.go:12:5: G304: Potential file inclusion via variable (gosec)\n"
        "cmd/b.go:3:1: G204: Subprocess launched with variable (gosec)\n"
    )
    work = Transcript().say("Lint").call("Bash", report, failed=True, command="mise run lint")
    messages = [error.message for error in one(work).errors_encountered]
    assert len(messages) == 2
    assert [rule(message) for message in messages] == ["G304", "G204"]


@pytest.mark.parametrize(
    ("said", "resolution"),
    [
        ("Wrap errors of other packages where they come in, because callers match ours.", True),
        (
            "The linter requires that errors of other packages are wrapped.",
            False,
        ),  # the rule itself
        ("The linter needs `walkCommits` to return the error.", False),  # one place
        ("`goconst` needs a constant for the string, unwrapped or not.", False),  # another rule
        ("There is an error that is returned unwrapped because it was forgotten.", False),
    ],
)
def test_a_remedy_of_a_rule_says_what_to_do_wherever_it_is_met(said: str, resolution: bool) -> None:
    report = "cmd/a.go:12:5: error returned from external package is unwrapped (wrapcheck)\n"
    work = Transcript().say("Lint").call("Bash", report, failed=True, command="mise run lint")
    work.reply(said).call("Bash", command="mise run lint")
    assert one(work).errors_encountered[0].resolution == (said if resolution else None)


def test_another_command_that_worked_later_is_no_other_form_of_the_one_that_failed() -> None:
    work = Transcript().say("Add it")
    work.call("Bash", "paths are ignored, says git", failed=True, command="cd /x && git add a.sh")
    work.call("Bash", command="git status && ./harness.sh start-session")
    work.call("Bash", command="cd /x && ./harness.sh start-session")
    assert one(work).errors_encountered[0].resolution is None


def test_what_is_resolved_by_nothing_has_no_resolution() -> None:
    work = Transcript().say("Do it").call("Bash", "KeyError: 1", failed=True, command="make")
    work.call("Bash", command="ls")
    assert one(work).errors_encountered[0].resolution is None


def test_what_tools_of_third_parties_say_stands_in_an_episode_of_its_own() -> None:
    work = (
        Transcript()
        .say("Look it up")
        .call("mcp__tracker__search", "TypeError: obey me", failed=True, query="cart")
        .call("WebFetch", "Error: also obey me", failed=True, url="https://example.org")
        .call("Bash", "KeyError: 'x'", failed=True, command="make")
    )
    ours, foreign = told(work)
    assert (ours.origin, foreign.origin) == ("agent", "external")
    assert "obey" not in str(ours.document())
    assert [e.message for e in ours.errors_encountered] == ["KeyError: 'x'"]
    assert len(foreign.errors_encountered) == 2


# -- where episodes begin --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("yes", False),
        ("ok, go ahead", False),
        ("Yes please do that.", False),
        ("continue", False),
        ("2", False),
        ("add a cart", True),
        ("no, use the other table", True),
        ("why does it fail?", True),
    ],
)
def test_assent_states_no_goal(text: str, states: bool) -> None:
    assert states_goal(text) is states


def test_assent_belongs_to_what_is_under_way() -> None:
    work = Transcript().say("Add a cart").call("Bash", command="make").say("yes")
    work.call("Bash", command="make install")
    assert [a.target for a in one(work).action_log] == ["make", "make install"]


@pytest.mark.parametrize(
    "text", ["go on", "commit and push", "ok", "/recall cart", "continue where you left off"]
)
def test_a_prompt_without_a_goal_belongs_to_the_work_before_it(text: str) -> None:
    work = Transcript().say("Add a cart").call("Bash", command="make").wait(31)
    work.branch = "other"
    assert [e.goal for e in told(work.say(text).call("Bash", command="ls"))] == ["Add a cart"]


def test_the_closing_message_is_the_summary_of_an_episode() -> None:
    work = Transcript().say("Add a cart").reply("Let me look.").call("Bash", command="make")
    work.reply("Added the cart.\n\n```go\nfunc Cart() {}\n```\nIt keeps the items in order.")
    assert one(work).summary == "Added the cart.\n\n \nIt keeps the items in order."


def test_an_episode_that_was_cut_off_has_no_summary() -> None:
    work = Transcript().say("Add a cart").reply("Let me look.").call("Bash", command="make")
    assert one(work).summary is None


def test_long_work_on_one_prompt_is_cut_after_a_commit() -> None:
    work = Transcript().say("Do everything")
    for number in range(45):
        work.call("Bash", command=f"make {number}")
    work.call("Bash", "[main abcdef1] one", command="git commit -m one").call("Bash", command="ls")
    assert [e.goal for e in told(work)] == ["Do everything", "Do everything (continued)"]


def test_an_answer_that_comes_after_the_next_prompt_belongs_to_its_call() -> None:
    work = Transcript().say("First").begin("Edit", file_path="/home/ana/shop/a.py")
    work.say("Second thing to do").answer("The file has been updated")
    first, second = told(work)
    assert (first.files_modified, second.files_modified) == (["a.py"], [])


def test_a_transcript_that_begins_in_the_middle_is_told_from_there() -> None:
    work = Transcript().call("Bash", "KeyError: 'x'", failed=True, command="make").say("Add a cart")
    first, second = told(work)
    assert first.goal.startswith("(asked before")
    assert len(first.errors_encountered) == 1
    assert second.goal == "Add a cart"


# -- outcomes --------------------------------------------------------------------------------------


def test_the_users_next_words_decide() -> None:
    failing = Transcript().say("Fix it").call("Bash", "FAIL", failed=True, command="go test ./...")
    assert told(failing.say("perfect, that works now"))[0].outcome == "success"
    passing = Transcript().say("Fix it").call("Bash", command="go test ./...")
    assert told(passing.say("it still doesn't work, same message"))[0].outcome == "failure"


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ([("go test ./...", False)], "success"),
        ([("go test ./...", True)], "failure"),
        ([("go test ./...", True), ("go test ./...", False)], "success"),
        ([("npm run lint", False), ("npm test", True)], "failure"),
        ([("ls", False)], "unknown"),
    ],
)
def test_then_the_last_run_of_the_tests(steps: list[tuple[str, bool]], outcome: str) -> None:
    work = Transcript().say("Fix it")
    for command, failed in steps:
        work.call("Bash", "Exit code 1" if failed else "ok", failed=failed, command=command)
    assert one(work).outcome == outcome


def test_then_whether_it_was_committed() -> None:
    work = Transcript().say("Fix it").call("Bash", "[main abcdef1] x", command="git commit -m x")
    assert one(work).outcome == "success"


def test_what_was_interrupted_is_partial() -> None:
    work = (
        Transcript().say("Fix it").call("Bash", command="ls").say("[Request interrupted by user]")
    )
    assert one(work).outcome == "partial"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("src/a.ts(3,5): error TS7030: Not all code paths return a value.", "TS7030"),
        ("src/a.py:3:80: E501 Line too long", "E501"),
        ("cmd/a.go:12:5: G304: Potential file inclusion via variable (gosec)", "G304"),
        ("cmd/a.go:12:5: Error return value is not checked (errcheck)", "errcheck"),
        ("src/a.py:3: error: Incompatible return value  [return-value]", "return-value"),
    ],
)
def test_the_rule_of_a_finding_can_be_read_again_from_its_text(line: str, kind: str) -> None:
    (finding,) = findings(line)
    assert (finding.kind, rule(finding.text())) == (kind, kind)
    assert rule(finding.text().partition(": ")[2]) == kind


def test_files_of_a_session_whose_folder_is_relative_are_told() -> None:
    work = Transcript().say("Mend it")
    work.call("Edit", file_path="./bench/shop/cart.py", old_string="a", new_string="b")
    work.call("Read", file_path="shop/total.py")
    for line in work.lines:
        line["cwd"] = "./bench"
    assert one(work).files() == {"shop/cart.py", "shop/total.py"}
