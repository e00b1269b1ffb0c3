"""Shell sessions with their exact output: one file per command, and one per kind of mishap.

A line that starts with `$ ` is a command, lines that start with `> ` right after it go on with it
(a heredoc), and what follows is what it printed, errors included. `[exit 4]` ends the output of a
command that did not exit with 0; `$ # …` is a remark.

    UPDATE_TRANSCRIPTS=1 pytest tests/test_transcripts.py

writes what the program prints now into the files; read the diff before you believe it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from difflib import unified_diff
from pathlib import Path

import pytest

from loki_memory.cli.main import COMMANDS

HERE = Path(__file__).parent
SESSIONS = sorted((HERE / "transcripts").glob("*.txt"))
EXAMPLE = HERE.parent / "example_workspace"
UPDATE = bool(os.environ.get("UPDATE_TRANSCRIPTS"))

# What differs between machines, and what is written instead.
_VARYING = (
    (
        re.compile(r"(SQLite|Python|git version|loki-mem) \d+\.\d+\S*?(?=[,\s]|$)", re.MULTILINE),
        r"\1 <version>",
    ),
    (re.compile(r"journal (WAL|TRUNCATE)( \([^)]*\))?"), "journal <mode>"),
    (re.compile(r"^( *index( bytes)? +)[\d.]+ k?B", re.MULTILINE), r"\1<size>"),
    (re.compile(r"loki-mem-demo-\w+"), "loki-mem-demo-<random>"),
    (re.compile(r"(?<![\w/-])[0-9a-f]{10}(?![\w-])"), "<commit>"),
)
_END = "\x1e"  # marks the end of a command's output, with its exit code


@pytest.fixture(scope="module")
def replayed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Path, Future[str]]]:
    """The sessions that were asked for, as many at a time as there are cores."""
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    wanted = [
        Path(str(item.callspec.params["session"]))
        for item in items
        if hasattr(item, "callspec") and item.module is request.module
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {
            path: pool.submit(
                replay, path.read_text(encoding="utf-8"), tmp_path_factory.mktemp(path.stem)
            )
            for path in wanted
        }


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_the_program_prints_what_the_transcript_says(
    session: Path, replayed: dict[Path, Future[str]]
) -> None:
    expected, actual = session.read_text(encoding="utf-8"), replayed[session].result()
    if UPDATE:
        session.write_text(actual, encoding="utf-8")
    elif actual != expected:
        lines = unified_diff(
            expected.splitlines(), actual.splitlines(), session.name, "now", lineterm=""
        )
        pytest.fail("\n".join(lines), pytrace=False)


def test_every_command_has_a_transcript() -> None:
    told = "\n".join(path.read_text(encoding="utf-8") for path in SESSIONS)
    assert [name for name in COMMANDS if f"loki-mem {name}" not in told] == []


def replay(text: str, folder: Path) -> str:
    """The session again, with the output that its commands have now."""
    commands = _commands(text)
    script = "".join(f"{command}\nprintf '{_END}%d{_END}' $?\n" for command in commands)
    home = folder / "home"
    work = home / "tmp"  # below the home folder, where the search for a workspace ends
    work.mkdir(parents=True)
    shutil.copytree(EXAMPLE, folder / "example", ignore=_what_is_derived)
    (folder / "session.sh").write_text(script, encoding="utf-8")
    said = subprocess.run(
        ["bash", folder / "session.sh"],
        cwd=work,
        env=_environment(home, work, folder / "example"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    told = said.stdout.decode().replace(str(work), "$TMP").replace(str(home), "$HOME")
    outputs = re.split(f"{_END}(\\d+){_END}", told)
    return "".join(
        _as_typed(command) + _as_printed(output, int(code))
        for command, output, code in zip(commands, outputs[::2], outputs[1::2], strict=False)
    )


def _commands(text: str) -> list[str]:
    """The commands of a session; one that goes on over several lines is one of them."""
    found = re.findall(r"^\$ (.*\n(?:> .*\n|>\n)*)", text, re.MULTILINE)
    return [re.sub(r"^> ?", "", command, flags=re.MULTILINE).rstrip("\n") for command in found]


def _as_typed(command: str) -> str:
    first, *more = command.split("\n")
    return "".join([f"$ {first}\n", *(f"> {line}".rstrip() + "\n" for line in more)])


def _as_printed(output: str, code: int) -> str:
    for varying, instead in _VARYING:
        output = varying.sub(instead, output)
    end = "\n" if output and not output.endswith("\n") else ""
    return f"{output}{end}" + (f"[exit {code}]\n" if code else "")


_what_is_derived = shutil.ignore_patterns("cache", "local")


def _environment(home: Path, work: Path, example: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # the package that the tests import
        "HOME": str(home),
        "LOKI_HOME": str(home / ".loki"),
        "CI": "1",  # sessions start no daemon
        "LOKI_NOW": "2026-01-20T09:00:00Z",
        "LOKI_HOOK_SECONDS": "60",  # a busy machine shows the same
        "LOKI_TRUST": "1",  # the example is copied, which is what trust.txt is about
        "EXAMPLE": str(example),
        "TMPDIR": str(work),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "TZ": "UTC",
    }
