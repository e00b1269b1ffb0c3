"""Error signatures and symbols: what stays the same when an error comes again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki_memory.models.error_signature import (
    complaint,
    head,
    key,
    salient,
    signature,
    with_command,
)
from loki_memory.models.text import symbols


def exact(error: str) -> str:
    found = signature(error)
    assert found is not None
    return found.exact


def broad(error: str) -> str:
    found = signature(error)
    assert found is not None
    return found.broad


# -- one error, met twice ------------------------------------------------------------------------

SAME = {
    "numbers": (
        "IndexError: index 5 is out of bounds for axis 0 with size 3",
        "IndexError: index 17 is out of bounds for axis 1 with size 12",
    ),
    "folders": (
        "fatal: could not read /home/ana/work/app/config.yml",
        "fatal: could not read /srv/build-7/app/config.yml",
    ),
    "folders of Windows": (
        "error: cannot open C:\\Users\\ana\\app\\config.yml",
        "error: cannot open D:\\build\\config.yml",
    ),
    "addresses": (
        "RuntimeError: lost <Worker object at 0x7f3a9c21d0>",
        "RuntimeError: lost <Worker object at 0x10ee4f>",
    ),
    "hosts and ports": (
        "Error: connect ECONNREFUSED 127.0.0.1:5432",
        "Error: connect ECONNREFUSED 10.0.0.12:6379",
    ),
    "hashes": (
        "error: object file 3f2a9c1d77aa is empty",
        "error: object file 00b1ff23c9d4e5 is empty",
    ),
    "uuids": (
        "Error: job 123e4567-e89b-12d3-a456-426614174000 failed",
        "Error: job 00000000-e89b-12d3-a456-42661417ffff failed",
    ),
    "moments": (
        "2026-01-06T10:30:00Z ERROR worker failed",
        "2026-02-17 23:59:59,123 ERROR worker failed",
    ),
    "addresses on the web": (
        "Error: failed to fetch https://example.com/a?b=1",
        "Error: failed to fetch https://example.org/zzz",
    ),
    "case and spaces": ("ERROR:  Connection   refused", "error: connection refused"),
    "colours": (
        "\x1b[1;31merror: connection refused\x1b[0m",
        "error: connection refused",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_differs_between_two_occurrences_is_masked(name: str) -> None:
    first, second = SAME[name]
    assert signature(first) == signature(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("KeyError: 'user_id'", "KeyError: 'order_id'"),
        ('ERROR: relation "users" does not exist', 'ERROR: relation "orders" does not exist'),
        ("error: cannot find value `alpha`", "error: cannot find value `beta`"),
        ("Error: module \u2018a\u2019 not found", "Error: module \u2018b\u2019 not found"),
        (
            "Type 'string' is not assignable to type 'number'.",
            "Type 'Date' is not assignable to type 'string'.",
        ),
    ],
)
def test_names_in_quotes_are_told_apart_by_the_exact_grain_only(first: str, second: str) -> None:
    assert exact(first) != exact(second)
    assert broad(first) == broad(second)


def test_other_errors_have_other_signatures_in_both_grains() -> None:
    assert broad("KeyError: 'a'") != broad("NameError: name 'a' is not defined")


def test_a_module_is_known_by_its_last_name() -> None:
    """`app.store` and `store` are one module, seen from two folders."""
    assert exact("No module named 'app.store'") == exact("No module named 'store'")


def test_files_in_quotes_are_told_apart() -> None:
    sentence = "FileNotFoundError: [Errno 2] No such file or directory: '/app/{}.json'"
    assert exact(sentence.format("package")) != exact(sentence.format("config"))


def test_an_apostrophe_opens_no_quotation() -> None:
    sentence = "python: can't open file '{}': [Errno 2] No such file or directory"
    assert broad(sentence.format("a.py")) == broad(sentence.format("b.py"))


def test_where_a_compiler_points_to_is_no_part_of_the_error() -> None:
    complaint = "error TS7030: Not all code paths return a value."
    assert broad(f"src/a.ts:12:5 - {complaint}") == broad(f"src/b.ts:1:1 - {complaint}")


# -- the line that says what went wrong ----------------------------------------------------------

OUTPUTS = {
    "python": (
        (
            "Traceback (most recent call last):\n"
            '  File "/app/run.py", line 3, in <module>\n'
            "    main()  # cannot fail\n"
            '  File "/app/run.py", line 9, in main\n'
            '    raise ValueError("unknown mode")\n'
            "ValueError: unknown mode\n"
        ),
        "ValueError: unknown mode",
    ),
    "python, an error while another is handled": (
        (
            "Traceback (most recent call last):\nKeyError: 'a'\n\n"
            "During handling of the above exception, another exception occurred:\n\n"
            "Traceback (most recent call last):\nRuntimeError: no a\n"
        ),
        "RuntimeError: no a",
    ),
    "python, an exception of a package": (
        (
            "Traceback (most recent call last):\n"
            '  File "db.py", line 1, in <module>\n'
            "sqlite3.OperationalError: no such table: users"
        ),
        "sqlite3.OperationalError: no such table: users",
    ),
    "node": (
        (
            "node:internal/modules/cjs/loader:1080\n  throw err;\n  ^\n\n"
            "Error: Cannot find module './routes'\nRequire stack:\n- /app/index.js\n"
            "    at Module._load (node:internal/modules/cjs/loader:922:27)\n"
        ),
        "Error: Cannot find module './routes'",
    ),
    "typescript": (
        "> tsc --noEmit\n\nsrc/todos.ts(12,5): error TS7030: Not all code paths return a value.\n",
        "src/todos.ts(12,5): error TS7030: Not all code paths return a value.",
    ),
    "go": (
        "# example.com/app\n./main.go:10:2: undefined: handler\n",
        "./main.go:10:2: undefined: handler",
    ),
    "go, running": (
        (
            "panic: runtime error: index out of range [5] with length 3\n\n"
            "goroutine 1 [running]:\nmain.main()\n"
        ),
        "panic: runtime error: index out of range [5] with length 3",
    ),
    "rust": (
        (
            "   Compiling app v0.1.0 (/app)\n"
            "error[E0382]: borrow of moved value: `text`\n  --> src/main.rs:4:20\n"
        ),
        "error[E0382]: borrow of moved value: `text`",
    ),
    "java": (
        (
            'Exception in thread "main" java.lang.NullPointerException: value is null\n'
            "\tat Main.main(Main.java:5)\n"
        ),
        'Exception in thread "main" java.lang.NullPointerException: value is null',
    ),
    "sql": (
        (
            "INSERT 0 1\n"
            'ERROR:  duplicate key value violates unique constraint "users_email_key"\n'
            "DETAIL:  Key (email)=(a@b.c) already exists.\n"
        ),
        'ERROR:  duplicate key value violates unique constraint "users_email_key"',
    ),
    "shell": ("bash: loki-mem: command not found\n", "bash: loki-mem: command not found"),
    "make": (
        "cc -o app app.c\nmake: *** [Makefile:12: app] Error 1\n",
        "make: *** [Makefile:12: app] Error 1",
    ),
    "git": (
        "Auto-merging a.txt\nCONFLICT (content): Merge conflict in a.txt\n",
        "CONFLICT (content): Merge conflict in a.txt",
    ),
    "git, remote": (
        (
            "To example.com:app.git\n ! [rejected]        main -> main (fetch first)\n"
            "error: failed to push some refs to 'example.com:app.git'\n"
        ),
        "error: failed to push some refs to 'example.com:app.git'",
    ),
    "docker": (
        ('#8 0.9 done\nfailed to solve: process "/bin/sh -c make" failed: exit code: 2\n'),
        'failed to solve: process "/bin/sh -c make" failed: exit code: 2',
    ),
    "pip": (
        (
            "Collecting requirements\n"
            "ERROR: Could not find a version that satisfies the requirement foo==1.2\n"
            "ERROR: No matching distribution found for foo==1.2\n"
        ),
        "ERROR: Could not find a version that satisfies the requirement foo==1.2",
    ),
    "npm": (
        "npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve dependency tree\n",
        "npm ERR! ERESOLVE unable to resolve dependency tree",
    ),
    "pytest, in short": (
        (
            "collected 3 items\n\n=== short test summary info ===\n"
            "FAILED tests/test_a.py::test_a - assert 1 == 2\n"
        ),
        "FAILED tests/test_a.py::test_a - assert 1 == 2",
    ),
    "nothing that complains": ("one\ntwo\n", "one"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_line_that_says_what_went_wrong_is_found(name: str) -> None:
    output, line = OUTPUTS[name]
    assert salient(output) == line


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_and_its_line_have_one_signature(name: str) -> None:
    output, line = OUTPUTS[name]
    assert signature(output) == signature(line)


@pytest.mark.parametrize(
    "raised",
    [
        "psycopg2.errors.UniqueViolation: duplicate key value",
        "subprocess.TimeoutExpired: Command 'x' timed out after 5 seconds",
        "requests.exceptions.ConnectTimeout: host='a'",
    ],
)
def test_a_traceback_ends_with_its_exception_whatever_its_name(raised: str) -> None:
    output = (
        "Traceback (most recent call last):\n"
        '  File "a.py", line 3, in <module>\n'
        "    check(unknown)  # cannot fail\n"
        f"{raised}\n"
    )
    assert salient(output) == raised


def test_pytest_and_python_report_one_exception_alike() -> None:
    pytest_says = "    int(text)\nE   ValueError: invalid literal: 'x'\n\na.py:3: ValueError\n"
    assert signature(pytest_says) == signature("ValueError: invalid literal: 'x'")


def test_an_exception_in_colour_is_an_exception() -> None:
    output = "check(unknown)\n\x1b[31mTypeError: x is not a function\x1b[0m\n    at main\n"
    assert exact(output) == "typeerror: x is not a function"


def test_a_warning_does_not_hide_an_error() -> None:
    assert salient("ValueError: bad mode\nWarning: cleanup skipped") == "ValueError: bad mode"


# -- hostile input -------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", ["", " ", "\n\n", "\t\r\n", "\x1c\x1d \u2028"])
def test_nothing_has_no_signature(nothing: str) -> None:
    assert signature(nothing) is None


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "a/" * 500_000,
        "'" * 1_000_000,
        "0" * 1_000_000,
        "a-" * 500_000 + " failed",
        "error " * 200_000,
        "Error: one line of many\n" * 50_000,
        "\x00\x01\x02\x7f",
        "\x1b[31mfailed " * 1000,
        "<name> 'a' <name> 'b'",
        "\U0001f4a5 failed " * 1000,
        "\ud800 failed",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_any_text_has_a_short_signature(text: str) -> None:
    found = signature(text)
    assert found is not None
    assert len(found.exact) <= 2000
    assert "\n" not in found.exact + found.broad


@given(st.text(max_size=400))
@settings(max_examples=60, deadline=None)
def test_a_signature_depends_on_nothing_but_the_text(text: str) -> None:
    found = signature(text)
    assert found == signature(text)
    assert (found is None) == (not text.strip())


def test_the_end_of_a_long_log_is_read() -> None:
    log = "all is well\n" * 5000 + "ValueError: at last\n"
    assert salient(log) == "ValueError: at last"


# -- symbols -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("call parse_config before run_all", ["parse_config", "run_all"]),
        ("the userId of a TodoItem", ["userId", "TodoItem"]),
        ("MAX_RETRIES is three", ["MAX_RETRIES"]),
        ("pass --no-cache to it", ["--no-cache"]),
        ("store.write(record) and main()", ["store.write", "main"]),
        ("parse_config twice: parse_config", ["parse_config"]),
        ("nothing but words, e.g. these.", []),
        ("src/routes/todo_items.ts is a path", []),
        ("", []),
    ],
)
def test_names_of_code_are_told_from_words(text: str, names: list[str]) -> None:
    assert symbols(text) == names


def test_a_log_of_a_thousand_names_gives_few() -> None:
    assert len(symbols(" ".join(f"name_{n}" for n in range(1000)))) == 30


@pytest.mark.parametrize("text", ["a_" * 500_000, "aA" * 500_000, "a.a" * 300_000, "_" * 1_000_000])
def test_what_is_too_long_for_a_name_is_none(text: str) -> None:
    assert symbols(text) == []


@given(st.text(alphabet="aA_.-(/ 0é", max_size=200))
@settings(max_examples=60, deadline=None)
def test_symbols_stand_in_the_text_each_once(text: str) -> None:
    found = symbols(text)
    assert len(found) == len(set(found))
    assert all(name in text for name in found)


# -- keys: one error, of one command, about one thing --------------------------------------------

GOLDEN = json.loads((Path(__file__).parent / "errors" / "outputs.json").read_text("utf-8"))


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_an_output_of_an_ecosystem_has_its_key(case: dict[str, Any]) -> None:
    found = key("\n".join(case["output"]), case["action"], case["target"])
    assert (found and found._asdict()) == case["key"]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_recall_and_consolidation_read_one_signature(case: dict[str, Any]) -> None:
    """What an anti-pattern tells of an error has the signature that the error itself has."""
    output = "\n".join(case["output"])
    sentence = with_command(complaint(output), (case["key"] or {}).get("head", ""))
    assert signature(sentence) == signature(output)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Table 'shop.carts' doesn't exist", "Table 'blog.carts' doesn't exist"),
        ("error TS7030: Not all paths return.", "error TS7031: Not all paths return."),
        ("Request failed with status code 404", "Request failed with status code 503"),
        ("Unknown column 'a.name'", "Unknown column 'a.title'"),
        (
            "ERROR: No matching distribution found for reqests==1",
            "ERROR: No matching distribution found for nunpy==1",
        ),
    ],
)
def test_errors_that_need_other_remedies_have_other_keys(first: str, second: str) -> None:
    assert key(first) != key(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Unknown column 'T1.name' in 'field list'", "Unknown column 'name' in 'order clause'"),
        ("Cannot open '/srv/a/config.yml'", "Cannot open '/home/b/config.yml'"),
        ("Error: job '4711' is gone", "Error: job '4712' is gone"),
        ("Exit code 1\nfatal: bad revision 'x'", "Exit code 128\nfatal: bad revision 'x'"),
    ],
)
def test_one_error_in_other_words_has_one_key(first: str, second: str) -> None:
    assert key(first) == key(second)


@pytest.mark.parametrize(
    ("action", "target", "name"),
    [
        ("bash", "git -C /srv/app commit -m 'a b'", "git commit"),
        ("Bash", "cd app && CI=1 npm run test -- --watch=false", "npm run test"),
        ("bash", "sudo -u shop ./deploy.sh now", "deploy.sh"),
        ("bash", "timeout 30 python3.11 -m pip install x", "pip install"),
        ("run_command", "uv run pytest -q", "pytest"),
        ("bash", "cat a | grep b", "cat"),
        ("cargo build --release", "", "cargo build"),
        ("Edit", "src/a.py", "Edit"),
        ("Add the missing route", "src/a.py", ""),
        ("bash", "", ""),
        ("", "", ""),
    ],
)
def test_the_head_of_an_action_is_its_command_or_tool(action: str, target: str, name: str) -> None:
    assert head(action, target) == name


def test_of_a_chain_the_command_that_the_error_names_has_met_it() -> None:
    chain = "npm ci && tar xf a.tgz && git push"
    assert head("bash", chain, "tar: a.tgz: Cannot open") == "tar"
    assert head("bash", chain, "error: failed to push some refs") == "git push"
    assert head("bash", chain, "Something else") == "npm ci"


@given(st.text(max_size=300), st.text(max_size=40), st.text(max_size=80))
@settings(max_examples=60, deadline=None)
def test_any_text_may_stand_where_an_error_or_a_command_is_meant(
    error: str, action: str, target: str
) -> None:
    found = key(error, action, target)
    assert found == key(error, action, target)
    assert found is None or "\n" not in "".join(found)
