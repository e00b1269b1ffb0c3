"""The command line: JSON, errors, colours, hostile text, pipes, completion, start-up."""

from __future__ import annotations

import ctypes
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from conftest import LATE, put_into_git

from loki_memory import Workspace
from loki_memory.cli.main import ALIASES, FURTHER, GROUPS, cli, main
from loki_memory.cli.main import COMMANDS as EVERY
from loki_memory.models import tombstone_id
from loki_memory.resources import resource

EXAMPLE = resource("example_workspace")
EPISODE = '{"goal": "Add search", "timestamp": "2026-01-19T10:00:00Z"}\n'

# Every command as somebody would call it in the example workspace.
CALLS = {
    "consolidate": "consolidate",
    "explore": "explore sem-001",
    "traverse": "traverse sem-001 associations",
    "recall": "recall return type",
    "context": "context 'Add an endpoint'",
    "continuity": "continuity --goal 'Add an endpoint'",
    "feedback": "feedback sem-001 --helpful",
    "topics": "topics",
    "timeline": "timeline",
    "graph": "graph sem-001",
    "record": "record episodes.jsonl",
    "remember": "remember 'Deploys are on Fridays'",
    "lesson": "lesson 'the types change' --do 'run npm run types'",
    "supersede": "supersede sem-001 'Handlers return void everywhere'",
    "correct": "correct sem-001 confidence=0.6",
    "reject": "reject sem-q4znwpmtgb --why 'it was a guess'",
    "forget": "forget ep-2026-01-06-001",
    "purge": "purge anti-ns66z0vk7n",
    "taint": "taint ep-2026-01-06-001",
    "quarantine": "quarantine list",
    "restore": "restore tomb-zkfr79ncf1",
    "archive": "archive ep-2026-01-06-001",
    "pin": "pin sem-001",
    "link": "link sem-001 supports sem-qn3nbpznby",
    "status": "status",
    "show": "show sem-001",
    "list": "list --kind pattern",
    "learnings": "learnings",
    "skills": "skills",
    "stats": "stats",
    "ledger": "ledger qa-001-testing --task task-070",
    "handoff create": "handoff create eng-001 qa-001 'Added search'",
    "handoff list": "handoff list",
    "handoff accept": "handoff accept handoff-pntnsg6v73",
    "handoff close": "handoff close handoff-pntnsg6v73",
    "mcp": "mcp",
    "hook": "hook SessionStart",
    "injections": "injections",
    "pause": "pause --for 2h",
    "resume": "resume",
    "init": "init",
    "seed": "seed",
    "trust": "trust --yes",
    "sync": "sync",
    "rebuild": "rebuild",
    "doctor": "doctor --deep",
    "verify": "verify --adopt",
    "commit": "commit",
    "pull": "pull",
    "push": "push",
    "remote": "remote list",
    "diff": "diff",
    "review": "review",
    "check": "check",
    "log": "log",
    "blame": "blame sem-001",
    "ingest": "ingest",
    "staged": "staged",
    "watch": "watch --once",
    "daemon": "daemon status",
    "replay": "replay ep-2026-01-06-001",
    "import": "import claude-memory README.md",
    "export": "export --local mine.jsonl",
    "clear": "clear --yes",
    "audit": "audit",
    "dedupe": "dedupe --plan",
    "copy": "copy sem-001 --scope user",
    "move": "move sem-001 --scope local",
    "bisect": "bisect --query 'logs of staging journalctl' --reject fact-2f61dyj12e",
    "revert": "revert HEAD",
    "resolve": "resolve --plan",
    "merge-driver": f"merge-driver {LATE} {LATE} {LATE} {LATE}",
    "install": "install git",
    "uninstall": "uninstall git",
    "gc": "gc",
    "config": "config",
    "demo": "demo",
    "completion": "completion bash",
    "version": "version",
}


CLOSED = -1  # instead of a descriptor


class Said(NamedTuple):
    """How a run of the program ended."""

    code: int
    out: str
    err: str


def run(
    folder: Path,
    *arguments: str,
    stdin: int | None = None,
    stdout: int | None = None,
    powerless: bool = False,
) -> Said:
    """Run the program in a process of its own; standard input is empty unless given."""
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        Path(os.devnull).open("rb") as nothing,
    ):
        child = _start(
            folder,
            arguments,
            nothing.fileno() if stdin is None else stdin,
            out.fileno() if stdout is None else stdout,
            err.fileno(),
            powerless=powerless,
        )
        code = _wait(child)
        out.seek(0)
        err.seek(0)
        return Said(code, out.read().decode(), err.read().decode())


def run_on_terminal(folder: Path, *arguments: str) -> str:
    """Run the program as a person does; what the terminal got to see."""
    ours, theirs = pty.openpty()
    child = _start(folder, arguments, theirs, theirs, theirs)
    os.close(theirs)
    seen = b""
    with open(ours, "rb", buffering=0) as terminal, suppress(OSError):
        while part := terminal.read(4096):
            seen += part
    assert _wait(child) == 0
    return seen.decode()


def _start(folder: Path, arguments: tuple[str, ...], *streams: int, powerless: bool = False) -> int:
    """A fork has the program imported already, which is most of the time that a run takes."""
    child = os.fork()
    if child:
        return child
    code: object = 70
    try:
        os.chdir(folder)
        if powerless:
            _give_up_powers()
        for target, source in enumerate(streams):
            os.close(target) if source == CLOSED else os.dup2(source, target)
        sys.stdin = None if streams[0] == CLOSED else open(0)  # noqa: SIM115
        sys.stdout = None if streams[1] == CLOSED else open(1, "w")  # noqa: SIM115
        sys.stderr = open(2, "w")  # noqa: SIM115
        sys.argv = ["loki-mem", *arguments]
        main()
    except SystemExit as end:
        code = end.code
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - a traceback, as of any other program
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code if isinstance(code, int) else 1)


def _give_up_powers() -> None:
    """Have permissions mean something to root, too."""
    version, nothing = 0x20080522, (ctypes.c_uint32 * 6)()
    if os.geteuid() == 0:
        assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(version, 0), nothing) == 0


def _wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example workspace with its index, which is made once, and a file to record from."""
    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("indexed") / "example")
    (folder / "episodes.jsonl").write_text(EPISODE, encoding="utf-8")
    (folder / "junit.xml").write_text('<testsuite name="pytest"/>', encoding="utf-8")
    put_into_git(folder)
    return folder


@pytest.fixture
def example(indexed: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    copy = shutil.copytree(indexed, tmp_path / "example")
    Workspace.open(copy).home.note_trust(is_trusted=True)
    return copy


def every_command(
    group: click.Group = cli, before: str = ""
) -> Iterator[tuple[str, click.Command]]:
    """The commands and what they are called by, those of `handoff` included."""
    context = click.Context(group)
    for name in EVERY if group is cli else group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{name} ")


COMMANDS = dict(every_command())
SERVERS = {"ui", "serve", "token"}  # they serve until stopped, or ask a database


# -- JSON ----------------------------------------------------------------------------------------


def test_every_command_is_called_below() -> None:
    single = {name for name, it in COMMANDS.items() if not isinstance(it, click.Group)}
    assert single - SERVERS == {*CALLS}  # test_ui_cli.py, test_server_cli.py


@pytest.fixture
def _mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is exchanged with others where it has a branch of its own."""
    if {"pull", "push"} & set(request.node.callspec.params.values()):
        monkeypatch.setenv("LOKI_GIT_MODE", "branch")


@pytest.mark.usefixtures("_mode")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_json_is_one_object_and_nothing_else(example: Path, call: str) -> None:
    said = run(example, *shlex.split(call), "--json")
    assert said.code == 0, said.err
    assert isinstance(json.loads(said.out), dict)


@pytest.mark.usefixtures("_mode")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_json_before_the_verb_is_the_same_and_nothing_asks(example: Path, call: str) -> None:
    """Standard input is closed: whoever wanted to ask could not."""
    said = run(example, "--json", *shlex.split(call), stdin=CLOSED)
    assert said.code == 0, said.err
    assert isinstance(json.loads(said.out), dict)


# -- errors --------------------------------------------------------------------------------------

TAKEN = '{"id": "ep-2026-01-06-001", "goal": "Another", "timestamp": "2026-01-07T10:00:00Z"}'
STONE = "Run vitest with --no-file-parallelism to avoid SQLITE_BUSY"
# The error: its exit code, what happens before, and the command that meets it.
MISHAPS = {
    "UsageError": (2, "", "list --kind banana"),
    "NotAWorkspace": (3, "rm -r .loki", "status"),
    "SymlinkedRoot": (3, "mv .loki there && ln -s there .loki", "status"),
    "NestedRepository": (3, "echo gitdir: x > .loki/.git", "status"),
    "NewerFormat": (3, "echo format = 99 > .loki/config.toml", "status"),
    "InvalidConfig": (3, "echo format = one > .loki/config.toml", "status"),
    "InvalidRecord": (4, "", "correct sem-001 confidence=2"),
    "NotFound": (5, "", "show sem-404"),
    "IdTaken": (6, f"echo '{TAKEN}' > taken.json", "record taken.json"),
    "RejectedValue": (7, "", f"remember --kind pattern '{STONE}'"),
    "StoreFailed": (9, "cd .loki/memory/semantic; rm -r facts; touch facts", "remember Fridays"),
    "EverythingVanished": (10, "loki-mem sync; rm -r .loki/memory", "list"),
    "PullStopped": (11, "git init -q", "pull"),
    "BadArchive": (13, "echo x > mine.jsonl", "export mine.jsonl"),
}


@pytest.mark.parametrize("name", list(MISHAPS))
def test_an_error_is_one_sentence_and_as_json_one_object(
    example: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, before, call = MISHAPS[name]
    monkeypatch.setenv("LOKI_HOME", str(example.parent / ".loki"))  # nobody looks above it
    subprocess.run(["bash", "-c", before], cwd=example, check=True, env=_with_program())
    _check_error(example, name, code, call)


def _check_error(folder: Path, name: str, code: int, call: str) -> None:
    told = run(folder, *shlex.split(call))
    assert (told.code, told.out) == (code, "")
    assert re.fullmatch(r"error: [^\n]+\.\n", told.err)
    shown = run(folder, *shlex.split(call), "--json")
    assert (shown.code, shown.out) == (code, "")
    message = told.err.removeprefix("error: ").rstrip("\n")
    assert json.loads(shown.err) == {"error": {"type": name, "message": message, "exit_code": code}}


def _with_program() -> dict[str, str]:
    """The environment with this interpreter's `loki-mem`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path}


def test_a_busy_store_is_an_error_of_its_own(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_STORE_LOCK_SECONDS", "0")
    with Workspace.open(example) as workspace, workspace.store.change():
        _check_error(example, "StoreBusy", 8, "remember Fridays")


def test_the_exit_code_says_that_the_doctor_found_something(example: Path) -> None:
    assert run(example, "doctor").code == 0
    (example / ".loki/memory/semantic/facts/broken.json").write_text("{", encoding="utf-8")
    assert run(example, "doctor").code == 1


def test_lines_that_are_not_recorded_are_named_by_their_number(example: Path) -> None:
    """The others are recorded, and the exit code is 4."""
    lines = [EPISODE, "\n", '{"outcome": "success"}\n', "{\n", EPISODE.replace("search", "paging")]
    (example / "episodes.jsonl").write_text("".join(lines), encoding="utf-8")
    said = run(example, "record", "episodes.jsonl", "--json")
    shown = json.loads(said.out)
    assert [one["title"] for one in shown["stored"]] == ["Add search", "Add paging"]
    assert [one["line"] for one in shown["refused"]] == [3, 4]
    assert said.code == 4


def test_a_misspelled_command_is_answered_with_the_nearest(example: Path) -> None:
    said = run(example, "rember", "Fridays")
    assert said.code == 2
    assert "Did you mean 'remember'?" in said.err


# -- help ----------------------------------------------------------------------------------------


def _examples(command: click.Command) -> list[str]:
    text = (command.help or "").partition("Example:")[2]
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.usefixtures("_mode")
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in {*SERVERS, "remote"}])
def test_the_example_in_the_help_works(example: Path, name: str) -> None:
    lines = _examples(COMMANDS[name])
    assert lines
    assert all(line in run(example, *name.split(), "--help").out for line in lines)
    for line in lines:
        if line.startswith("loki-mem "):
            said = run(example, *shlex.split(line)[1:])
            assert said.code == 0, said.err
        else:
            subprocess.run(["bash", "-c", line], cwd=example, check=True, env=_with_program())


def test_the_help_lists_every_command_by_what_it_is_for(example: Path) -> None:
    shown = run(example, "--help").out
    for title, names in GROUPS.items():
        section = shown.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines()] == [*names]
    section = shown.partition("\nFurther commands:\n")[2]
    assert [line.split()[0] for line in section.splitlines()] == [*FURTHER]


def test_a_command_of_a_group_works_inside_the_group_and_at_the_top(example: Path) -> None:
    within, at_the_top = run(example, "history", "log"), run(example, "log")
    assert within == at_the_top
    assert within.code == 0


@pytest.mark.parametrize("group", FURTHER)
def test_a_group_without_a_command_prints_its_help(example: Path, group: str) -> None:
    said = run(example, group)
    assert (said.code, said.err) == (0, "")
    assert said == run(example, group, "--help")


def test_without_a_command_the_first_steps_are_shown(example: Path) -> None:
    said = run(example)
    assert (said.code, said.err) == (0, "")
    assert "loki-mem init" in said.out
    assert len(said.out.splitlines()) < 15


@pytest.mark.parametrize(("alias", "command"), ALIASES.items())
def test_a_name_that_other_tools_use_works(example: Path, alias: str, command: str) -> None:
    assert run(example, alias, "--help").out == run(example, command, "--help").out.replace(
        f"loki-mem {command}", f"loki-mem {alias}", 1
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("recal", "recall"), ("serch", "search"), ("banana", None), ("grep", None)],
)
def test_only_a_name_that_is_meant_is_suggested(
    example: Path, typed: str, meant: str | None
) -> None:
    said = run(example, typed).err
    assert (f"Did you mean {meant!r}?" in said) if meant else ("Did you mean" not in said)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("statsu", "Did you mean 'stats' or 'status'?"),
        ("history blam", "Did you mean 'blame'?"),
        ("history banana", "`loki-mem history --help` lists the commands."),
        ("list facts", "`loki-mem list --help` has an example."),
        ("correct sem-001 paterns=x", "Did you mean 'pattern'?"),
        ("correct sem-001 x", "`loki-mem supersede ID TEXT` replaces all"),
        ("config recall.limt", "did you mean recall.limit?"),
        ("copy sem-001 --to nowhere", "name one that is with --to DIR."),
        ("restore zzz", "there is nothing to undo."),
    ],
)
def test_a_mistake_is_answered_with_what_was_meant_or_what_to_do(
    example: Path, call: str, said: str
) -> None:
    assert said in run(example, *shlex.split(call)).err


def test_words_without_quotes_are_one_statement_and_types_of_facts_are_kinds(
    example: Path,
) -> None:
    stored = run(example, "remember", "Deploys", "need", "a", "tag", "--kind", "rules")
    assert stored.out.endswith("  Deploys need a tag\n")
    assert run(example, "list", "--kind", "rule", "--scope", "project").out.count("\n") == 1


@pytest.mark.parametrize("removed", ["archive", "forget"])
def test_what_was_removed_is_restored_by_the_beginning_of_its_id(
    example: Path, removed: str
) -> None:
    name = run(example, "remember", "Deploys need a tag").out.split()[0]
    assert f"`loki-mem restore {name}` undoes it" in run(example, removed, name[:10]).out
    assert run(example, "restore", name[:10]).out == f"{name}  Deploys need a tag\nrestored\n"


def test_a_first_word_of_settings_shows_all_of_them(example: Path) -> None:
    shown = json.loads(run(example, "config", "recall", "--json").out)["settings"]
    assert {one["name"] for one in shown} >= {"recall.limit", "recall.floor"}
    assert all(one["name"].startswith("recall.") for one in shown)


def test_notes_of_another_tool_are_the_next_step_of_an_empty_memory(tmp_path: Path) -> None:
    run(tmp_path, "init")
    notes = "# Working memory\n\n## Mistakes & Learnings\n- Spread ICON_DEFAULTS\n"
    (tmp_path / ".loki" / "CONTINUITY.md").write_text(notes, encoding="utf-8")
    assert "CONTINUITY.md has 1 note that is not memory yet" in run(tmp_path, "status").out
    run(tmp_path, "continuity")
    assert "all is well" in run(tmp_path, "status").out


def test_a_memory_below_another_one_says_so(example: Path) -> None:
    (example / "packages").mkdir()
    assert "has memory of its own" in run(example / "packages", "init").err


def test_a_review_does_not_print_what_init_writes(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    run(tmp_path, "init")
    run(tmp_path, "config", "recall.limit", "7")
    shown = run(tmp_path, "review").out
    assert ".loki/.gitignore  as `loki-mem init` writes it" in shown
    assert ".loki/config.toml  added, a file" in shown
    assert "/memory/semantic/patterns.json" not in shown


# -- colours -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [5, 5000])
def test_a_difference_goes_through_a_pager_on_a_terminal_that_is_too_small(
    example: Path, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    with Workspace.open(example) as workspace:
        for number in range(8):
            workspace.remember(f"Remark number {number} on the deployment of the shop")
    monkeypatch.setenv("PAGER", "sed s/^/paged:/")
    monkeypatch.setenv("LINES", str(lines))
    monkeypatch.setenv("COLUMNS", "80")
    shown = run_on_terminal(example, "diff")
    assert "Remark number 7" in shown
    assert ("paged:" in shown) == (lines == 5)
    assert "paged:" not in run(example, "diff").out


@pytest.mark.parametrize("call", ["status", "list", "show sem-001", "doctor", "show sem-404"])
def test_a_pipe_gets_no_colours(example: Path, call: str) -> None:
    said = run(example, *shlex.split(call))
    assert "\x1b" not in said.out + said.err


def test_a_terminal_gets_colours_unless_no_color_is_set(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[36msem-001" in run_on_terminal(example, "list", "--kind", "pattern")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run_on_terminal(example, "list", "--kind", "pattern")


# -- hostile text --------------------------------------------------------------------------------


def _is_dangerous(character: str) -> bool:
    """Moves the cursor, sets the title, reorders, hides. The joiner that emoji need is none."""
    kind = unicodedata.category(character)
    return kind in {"Cc", "Cf", "Co", "Zl", "Zp"} and character not in "\n\t\N{ZERO WIDTH JOINER}"


DANGEROUS = "".join(c for c in map(chr, range(1, 0x3000)) if _is_dangerous(c)) + "\ufeff\U000e0041"
HOSTILE = f"\x1b]0;owned\x07\x1b[2J\x9b31m{DANGEROUS}"
NAME = "\x1b]0;owned\x07\x9b31m\u202e\u200b"  # as long as a file name may be
RECORDS = {
    f"semantic/patterns/{NAME}.json": {
        "id": "sem-900",
        "pattern": f"P {HOSTILE}",
        "conditions": [HOSTILE],
        "category": HOSTILE,
        HOSTILE: {HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]},
        "links": [{"to": "sem-001", "relation": HOSTILE}],
        "evidence": {"for": [HOSTILE]},
        "citations": [{"path": HOSTILE}],
    },
    "semantic/anti-patterns/a.json": {"id": "anti-900", "what_fails": HOSTILE, "why": HOSTILE},
    "semantic/facts/f.json": {"id": "fact-900", "statement": f"F {HOSTILE}", "by": HOSTILE},
    "semantic/rejected/t.json": {"id": "tomb-900", "value": f"T {HOSTILE}", "why": HOSTILE},
    "semantic/facts/bad.json": {"statement": "Fridays", "confidence": HOSTILE},
    f"semantic/facts/bad-{NAME}.json": {"statement": {HOSTILE: HOSTILE}},
    "semantic/facts/same.json": {"id": "fact-900", "statement": f"another {HOSTILE}"},
    f"semantic/{NAME}.txt": {},
    f"semantic/facts/.tmp-{NAME}": {},
    "episodic/2026-01-19/e.json": {
        "id": "ep-900",
        "timestamp": "2026-01-19T10:00:00Z",
        "agent": HOSTILE,
        "context": {"goal": f"E {HOSTILE}", HOSTILE: HOSTILE},
    },
    "learnings/2026-01-19/l.json": {
        "id": "learn-900",
        "timestamp": "2026-01-19T10:00:00Z",
        "lesson": f"L {HOSTILE}",
    },
    "ledgers/l.json": {"agent_id": f"A {HOSTILE}", "context": {"current_goal": HOSTILE}},
    "handoffs/h.json": {
        "id": "handoff-900",
        "from_agent": HOSTILE,
        "to_agent": HOSTILE,
        "timestamp": "2026-01-19T10:00:00Z",
        "context": {"what_was_done": HOSTILE, HOSTILE: HOSTILE, "artifacts": [HOSTILE]},
    },
}
_TOLD = HOSTILE.replace("\U000e0041", "")  # YAML knows no pairs of surrogates
SKILL = f"---\nname: evil\ndescription: {json.dumps(_TOLD)}\n---\n\n# {_TOLD}\n\n{_TOLD}\n"
RAW = (
    "doctor",
    "doctor --deep",
    "stats",
    "ledger",
    "show sem-900",
    "show sem-001",
    "show anti-900",
    "show fact-900",
    "show {stone}",
    "show ep-900",
    "show learn-900",
    "show handoff-900",
    "show ledger-a",
    "show skill-evil",
    "handoff accept handoff-900",
    "correct sem-900 colour=blue",
    "archive sem-900",
)
TEXTS = [
    *RAW,
    "list --status all",
    "status",
    "learnings",
    "handoff list --all",
    "skills",
    "gc --dry-run",
    "config",
    "correct sem-900 confidence=0.5",
    "remember '{hostile}'",
    "pin sem-900",
    "link sem-900 supports sem-001",
    "forget ep-900",
    "reject fact-900",
]


@pytest.fixture(scope="module")
def hostile_once(indexed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace where everything that a clone can bring tries to reach the terminal."""
    folder = shutil.copytree(indexed, tmp_path_factory.mktemp("hostile") / "example")
    memory = folder / ".loki/memory"
    for path, record in RECORDS.items():
        (memory / path).parent.mkdir(parents=True, exist_ok=True)
        (memory / path).write_text(json.dumps(record), encoding="utf-8")
    (memory / "skills/evil.md").write_text(SKILL, encoding="utf-8")
    with (folder / ".loki/config.toml").open("a", encoding="utf-8") as config:
        config.write('"\\u001b]0;owned\\u009b31m" = 1\n')
    return folder


@pytest.fixture
def hostile(hostile_once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(hostile_once, tmp_path / "hostile")


@pytest.mark.parametrize("call", TEXTS)
def test_stored_text_reaches_no_terminal_raw(hostile: Path, call: str) -> None:
    words = {"hostile": f"T {HOSTILE}", "stone": tombstone_id(f"T {HOSTILE}")}
    said = run(hostile, *(word.format(**words) for word in shlex.split(call)))
    assert "Traceback" not in said.err
    assert "owned" in said.out + said.err
    assert not {c for c in said.out + said.err if _is_dangerous(c)}


def test_json_escapes_what_a_terminal_could_obey(hostile: Path) -> None:
    for call in ("show sem-900 --json", "list --json", "doctor --json", "status --json"):
        said = run(hostile, *shlex.split(call))
        assert not {c for c in said.out + said.err if _is_dangerous(c)}
    shown = json.loads(run(hostile, "show", "sem-900", "--json").out)
    assert shown["record"]["category"] == HOSTILE


def test_a_stored_text_cannot_forge_a_line_of_its_own(example: Path) -> None:
    facts = example / ".loki/memory/semantic/facts"
    fact = {"id": "fact-900", "statement": "Fridays\norigin  owner", "x\norigin  owner\ny": 1}
    (facts / "f.json").write_text(json.dumps(fact), encoding="utf-8")
    (facts / "f\norigin  owner\n.json").write_text("{", encoding="utf-8")
    for call in ("show fact-900", "list", "doctor", "correct fact-900 colour=blue"):
        said = run(example, *shlex.split(call))
        assert "origin  owner" not in (said.out + said.err).splitlines()


# -- standard input and output -------------------------------------------------------------------


@pytest.mark.parametrize("call", ["record -", "remember -"])
def test_a_closed_standard_input_is_an_empty_one(example: Path, call: str) -> None:
    said = run(example, *shlex.split(call), stdin=CLOSED)
    assert said.code == 4
    assert re.fullmatch(r"error: [^\n]+\.\n", said.err)


@pytest.mark.parametrize("call", ["status", "list --json", "recall types"])
def test_a_closed_standard_output_is_no_crash(example: Path, call: str) -> None:
    said = run(example, *shlex.split(call), stdout=CLOSED)
    assert said.code == 0
    assert "Traceback" not in said.err


@pytest.mark.parametrize("call", ["list", "list --json"])
def test_a_reader_that_went_away_is_no_error(example: Path, call: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    said = run(example, *shlex.split(call), stdout=writing)
    os.close(writing)
    assert (said.code, said.err) == (0, "")


def test_a_full_disk_behind_standard_output_is_one_sentence(example: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        said = run(example, "list", stdout=full.fileno())
    assert said.code != 0
    assert re.fullmatch(r"error: [^\n]*No space left on device[^\n]*\n", said.err)


def test_head_ends_the_list_quietly(example: Path) -> None:
    said = subprocess.run(
        ["bash", "-c", "loki-mem list --status all | head -1"],
        cwd=example,
        env=_with_program(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.count("\n") == 1
    assert said.stderr == ""


def test_a_terminal_makes_no_owner(example: Path) -> None:
    run_on_terminal(example, "remember", "Said by a person")
    run(example, "remember", "Said by a program")
    with Workspace.open(example) as workspace:
        origins = {m.title(): m.document()["origin"] for m in workspace.list(kind="fact")}
    assert origins["Said by a person"] == "agent"
    assert origins["Said by a program"] == "agent"


@pytest.mark.parametrize(
    "call",
    [
        "record owner.json",
        "correct sem-001 origin=owner",
        "skills --add owner.md",
    ],
)
def test_an_agent_cannot_make_itself_the_owner(example: Path, call: str) -> None:
    episode = {"goal": "Add search", "origin": "owner"}
    (example / "owner.json").write_text(json.dumps(episode), encoding="utf-8")
    skill = "---\nname: owner\nmetadata:\n  loki-origin: owner\n---\n\n# Owner\n"
    (example / "owner.md").write_text(skill, encoding="utf-8")
    said = run(example, *shlex.split(call), "--json")
    assert said.code != 0 or "owner" not in _origin(json.loads(said.out)["stored"][0]["record"])


def _origin(record: dict[str, Any]) -> str:
    return str(record.get("origin") or record.get("metadata", {}).get("loki-origin"))


# -- odd places and odd arguments ----------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "show ''",
        "record ''",
        "remember ''",
        "correct sem-001 =1",
        "correct sem-001 confidence=NaN",
        "link '' supports ''",
        "skills ''",
        "skills --add .",
        "config '' ''",
        "restore ''",
        "ledger ''",
        "handoff create '' '' ''",
        "list --status gone",
        "list --since lately",
        "link sem-001 supports sem-001",
    ],
)
def test_nonsense_is_refused_in_words(example: Path, call: str) -> None:
    said = run(example, *shlex.split(call))
    assert "Traceback" not in said.err
    assert said.code in {2, 3, 4, 5}


def test_a_working_directory_that_is_gone_is_told_in_words(example: Path) -> None:
    said = subprocess.run(
        ["bash", "-c", "mkdir gone && cd gone && rmdir ../gone && loki-mem status"],
        cwd=example,
        env=_with_program(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 3
    assert "Traceback" not in said.stderr


@contextmanager
def locked(folder: Path, mode: int) -> Iterator[None]:
    """Take permissions away from a folder and all below it, for a while."""
    paths = [folder, *folder.rglob("*")]
    modes = [path.stat().st_mode for path in paths]
    for path in reversed(paths):
        path.chmod(path.stat().st_mode & ~mode)
    try:
        yield
    finally:
        for path, before in zip(paths, modes, strict=True):
            path.chmod(before)


@pytest.mark.parametrize("call", ["status", "list", "show sem-001", "doctor", "stats"])
@pytest.mark.parametrize("indexed_before", [False, True])
def test_a_checkout_that_cannot_be_written_can_be_read(
    example: Path, call: str, indexed_before: bool
) -> None:
    if not indexed_before:
        shutil.rmtree(example / ".loki/cache")
    with locked(example / ".loki", 0o222):
        said = run(example, *shlex.split(call), powerless=True)
    assert said.code == 0, said.err
    assert "Traceback" not in said.err


def test_a_checkout_that_cannot_be_written_is_read_as_it_is_now(example: Path) -> None:
    path = example / ".loki/memory/semantic/patterns/sem-001.json"
    path.write_text(path.read_text(encoding="utf-8").replace("Express", "Koa"), encoding="utf-8")
    with locked(example / ".loki", 0o222):
        assert "Koa route handlers" in run(example, "list", powerless=True).out


@pytest.mark.parametrize(
    "call",
    [
        "remember Fridays",
        "pin sem-001",
        "gc",
        "rebuild",
        "config gc.keep_days 3",
    ],
)
def test_a_checkout_that_cannot_be_written_says_so(example: Path, call: str) -> None:
    with locked(example / ".loki", 0o222):
        said = run(example, *shlex.split(call), powerless=True)
    assert said.code == 9
    assert re.fullmatch(r"error: [^\n]*Permission denied[^\n]*\n", said.err)


def test_a_file_that_cannot_be_read_is_a_problem_beside_the_others(example: Path) -> None:
    with locked(example / ".loki/memory/semantic/patterns/sem-001.json", 0o777):
        assert "sem-qn3nbpznby" in run(example, "list", powerless=True).out
        said = run(example, "doctor", powerless=True)
    assert "semantic/patterns/sem-001.json: cannot be read" in said.out


def test_a_folder_that_cannot_be_read_is_a_problem_too(example: Path) -> None:
    with locked(example / ".loki/memory/semantic/facts", 0o777):
        assert "sem-qn3nbpznby" in run(example, "list", powerless=True).out
        said = run(example, "doctor", powerless=True)
    assert "problem semantic/facts: " in said.out


# -- completion ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(example: Path, shell: str) -> None:
    script = run(example, "completion", shell).out
    assert f"_LOKI_MEM_COMPLETE={shell}_complete" in script


def test_completion_knows_the_commands(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_LOKI_MEM_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "loki-mem rec")
    monkeypatch.setenv("COMP_CWORD", "1")
    offered = {line.partition(",")[2] for line in run(example).out.split()}
    assert offered == {"record", "recall"}


# -- start-up ------------------------------------------------------------------------------------

HEAVY = {"sklearn", "scipy", "git", "mcp", "jinja2", "watchdog", "model2vec", "numpy"}
_IMPORTED = """
import sys
from loki_memory.cli.main import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def _imported(folder: Path, *arguments: str) -> set[str]:
    said = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(said.stderr.split())


@pytest.mark.parametrize("call", ["--version", "show sem-001"])
def test_nothing_heavy_is_imported(example: Path, call: str) -> None:
    assert not _imported(example, *shlex.split(call)) & HEAVY


def test_a_status_without_changes_imports_next_to_nothing(example: Path) -> None:
    for _ in range(2):  # the second look settles what was too young for the first
        assert run(example, "status").code == 0
    assert not _imported(example, "status") & {*HEAVY, "pydantic", "orjson", "tomllib", "yaml"}


def test_an_importance_is_a_number_or_a_word(tmp_path: Path) -> None:
    run(tmp_path, "init")
    for given, stored in (("high", 0.9), ("MEDIUM", 0.5), ("0.25", 0.25)):
        said = run(tmp_path, "remember", f"It is {given}", "--importance", given, "--json")
        assert json.loads(said.out)["stored"][0]["record"]["importance"] == stored
    refused = run(tmp_path, "remember", "It is so", "--importance", "huge")
    assert refused.code == 2
    assert "number, high, medium or low" in refused.err


def test_continuity_follows_every_command_that_changes_memory(tmp_path: Path) -> None:
    path = tmp_path / ".loki" / "CONTINUITY.md"
    assert run(tmp_path, "init").code == 0
    run(tmp_path, "remember", "Deploys of the payment service happen on Mondays")
    assert not path.exists()
    run(tmp_path, "continuity", "--goal", "deploy the payment service")
    run(tmp_path, "remember", "Payment deploys need the VPN")
    assert "need the VPN" in path.read_text()
    met = ("--error", "KeyError: PAY", "--resolution", "set PAY")
    run(tmp_path, "record", "--goal", "Deploy payment", *met)
    assert "KeyError: PAY" in path.read_text()
    before = path.read_bytes()
    run(tmp_path, "consolidate", "--plan")
    assert path.read_bytes() == before


def test_ids_are_completed(ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = ws.remember("Deploys need two reviewers")
    ws.flush()
    monkeypatch.chdir(project)
    completer = ShellComplete(cli, {}, "loki-mem", "_LOKI_MEM_COMPLETE")
    for words in (["show"], ["-C", str(project), "forget"]):
        found = completer.get_completions(words, stored.id[:6])
        assert [item.value for item in found] == [stored.id]
    assert completer.get_completions(["-C", os.devnull, "show"], "fact") == []


def test_status_names_the_memory_above(project: Path) -> None:
    with Workspace.init(project), Workspace.init(project / "packages" / "api") as inner:
        assert inner.status().above == str(project)


def test_a_kind_may_be_named_in_the_plural(ws: Workspace, project: Path) -> None:
    stored = ws.remember("Deploys need two reviewers")
    ws.flush()
    for kind in ("fact", "facts"):
        done = CliRunner().invoke(cli, ["-C", str(project), "list", "--kind", kind])
        assert stored.id in done.output


def test_the_limit_of_hits_and_the_format_of_a_context_are_settings(
    ws: Workspace, project: Path
) -> None:
    for port in (8080, 8081):
        ws.remember(f"The staging server listens on port {port}")
    ws.flush()
    (project / ".loki/config.toml").write_text(
        'format = 1\n[recall]\nlimit = 1\n[context]\nformat = "preamble"\n'
    )

    def hits(*options: str) -> int:
        done = CliRunner().invoke(
            cli, ["-C", str(project), "--json", "recall", "which port has staging?", *options]
        )
        return len(json.loads(done.stdout)["hits"])

    assert (hits(), hits("-k", "2")) == (1, 2)
    asked = ["-C", str(project), "context", "Change the port of the staging server"]
    assert CliRunner().invoke(cli, asked).stdout.startswith("Before I begin")
    assert CliRunner().invoke(cli, [*asked, "--format", "compact"]).stdout.startswith("# Context")


# -- what a stranger tries first -------------------------------------------------------------------


@pytest.mark.parametrize("words", [["help"], ["help", "recall"], ["help", "handoff", "create"]])
def test_help_is_a_command_too(words: list[str]) -> None:
    asked = CliRunner().invoke(cli, words, prog_name="loki-mem")
    same = CliRunner().invoke(cli, [*words[1:], "--help"], prog_name="loki-mem")

    assert asked.exit_code == 0
    assert asked.output == same.output


def test_a_group_of_commands_alone_prints_its_help() -> None:
    asked = CliRunner().invoke(cli, ["handoff"])

    assert asked.exit_code == 0
    assert asked.output.startswith("Usage: cli handoff")


@pytest.mark.parametrize("command", ["list", "timeline", "learnings"])
def test_a_day_is_named_in_words(example: Path, command: str) -> None:
    named = run(example, command, "--since", "yesterday")
    wrong = run(example, command, "--since", "foo")

    assert named.code == 0
    assert "since: 'foo' is not a day. Write a day such as 2026-01-20" in wrong.err


def test_an_empty_memory_has_nothing_hidden(tmp_path: Path) -> None:
    run(tmp_path, "init")

    assert "hidden" not in run(tmp_path, "list").err


def test_what_is_hidden_is_counted_where_nothing_else_is(tmp_path: Path) -> None:
    run(tmp_path, "init")
    stored = json.loads(run(tmp_path, "remember", "CI runs on Node 20", "--json").out)
    run(tmp_path, "correct", stored["stored"][0]["id"], "status=retired")

    listed = run(tmp_path, "list")

    assert "1 memory hidden; `loki-mem list --status all` shows them" in listed.err


def test_an_export_names_a_folder_that_does_not_exist(example: Path, tmp_path: Path) -> None:
    made = run(example, "export", str(tmp_path / "nowhere" / "memory.jsonl"))

    assert made.code == 13
    assert "would lie in a folder that does not exist. Create it first" in made.err


def test_a_pull_without_a_remote_says_what_is_missing(example: Path) -> None:
    pulled = run(example, "pull")

    assert "this branch follows no branch of a remote" in pulled.err


def test_a_missing_choice_is_one_sentence(example: Path) -> None:
    asked = run(example, "traverse", "sem-001")

    assert "associations, before, after. `loki-mem traverse --help` has an example." in asked.err
