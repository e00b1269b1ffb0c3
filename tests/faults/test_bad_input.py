"""Input that nobody should write, and that people's machines hold: none of it stops the rest."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from claude_lines import Transcript
from click.testing import CliRunner

from loki_memory import Workspace
from loki_memory.cli import _OTHER_HOOK_SECONDS, HOOK_SECONDS
from loki_memory.cli.sessions import record_command
from loki_memory.ingest.run import ingest
from loki_memory.resources import resource

PROMPT = b'{"session_id": "s", "prompt": "Which version of node does the build need?"}'


def _lines(session: str) -> bytes:
    lines = Transcript(session).say(f"Do the work of {session}").lines
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def _cut_gzip(path: Path) -> None:
    """Several good sessions, of which the end is lost."""
    sessions = b"".join(_lines(f"packed-{number}") for number in range(2000))
    whole = gzip.compress(sessions)
    path.with_suffix(".jsonl.gz").write_bytes(whole[: len(whole) * 2 // 3])


NO_TRANSCRIPTS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a link to a device without end": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a folder": Path.mkdir,
    "a compressed file that is none": lambda path: path.with_suffix(".jsonl.gz").write_bytes(
        b"\x1f\x8b\x08\x00 junk"
    ),
    "a compressed file that was cut": _cut_gzip,
    "a line of 20 MB": lambda path: path.write_bytes(b'{"type": "' + b"a" * (20 << 20) + b'"}\n'),
    "bytes": lambda path: path.write_bytes(bytes(range(256)) * 40),
}


@pytest.mark.parametrize("name", NO_TRANSCRIPTS)
def test_what_is_no_transcript_is_named_and_keeps_no_other_out(
    ws: Workspace, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "transcripts"
    folder.mkdir()
    (folder / "good.jsonl").write_bytes(_lines("good"))
    NO_TRANSCRIPTS[name](folder / "bad.jsonl")
    done = ingest(ws, [folder])
    assert {Path(refused.path).name.partition(".")[0] for refused in done.reasons} == {"bad"}
    assert any("Do the work of good" in memory.title() for memory in ws.list(kind="episode"))


def test_the_sessions_before_the_cut_of_a_compressed_file_are_told(
    ws: Workspace, tmp_path: Path
) -> None:
    _cut_gzip(tmp_path / "bad.jsonl")
    done = ingest(ws, [tmp_path / "bad.jsonl.gz"])
    assert done.read > 0
    assert done.refused == 1
    assert done.read + done.refused + done.waiting == done.lines
    assert ingest(ws, [tmp_path / "bad.jsonl.gz"]).lines == 0


def test_a_pipe_that_a_belief_cites_is_not_opened(ws: Workspace, project: Path) -> None:
    """A hook looks at the files that beliefs cite."""
    from loki_memory.integrity.citations import content

    os.mkfifo(project / "pipe")
    (project / "file").write_bytes(b"x")
    assert content(project, "pipe") is None
    assert content(project, "a" * 5000) is None
    assert content(project, "file") == b"x"


# -- hooks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [b"", PROMPT[:20], PROMPT])
@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop", "SessionEnd"])
def test_a_hook_whose_input_is_never_closed_ends_by_itself(
    ws: Workspace, project: Path, event: str, given: bytes
) -> None:
    """The test would wait for ever if the hook did."""
    ws.remember("The build needs node version 22")
    ws.sync()
    hook = subprocess.Popen(
        [sys.executable, "-m", "loki_memory", "hook", event],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert hook.stdin is not None
    assert hook.stdout is not None
    hook.stdin.write(given)
    hook.stdin.flush()
    said = hook.stdout.read()  # while the input is open
    hook.stdin.close()
    assert hook.wait() == 0
    assert (b"version 22" in said) == (event == "UserPromptSubmit" and given == PROMPT)


def test_each_hook_gives_up_before_its_client_does() -> None:
    shipped = resource("plugin") / "hooks" / "hooks.json"
    found = re.findall(r'hook (\w+)", "timeout": (\d+)', shipped.read_text(encoding="utf-8"))
    assert len(found) == len(HOOK_SECONDS) + 3
    for event, seconds in found:
        assert HOOK_SECONDS.get(event, _OTHER_HOOK_SECONDS) < float(seconds), event


def test_an_input_without_end_is_refused(project: Path) -> None:
    Workspace.init(project).close()
    place = {"directory": str(project), "json": False}
    for args in (["/dev/zero"], ["--from-gate", "/dev/zero"]):
        refused = CliRunner().invoke(record_command, args, obj=place)
        assert (refused.exit_code, "split it" in refused.output) == (2, True)


@pytest.mark.parametrize("name", ["cache/index.db-journal", "local/trust"])
def test_a_pipe_in_place_of_a_file_blocks_nobody(ws: Workspace, name: str) -> None:
    zone, _, file = name.partition("/")
    ws.remember("Contract tests need the database")
    ws.close()
    path = (ws.layout.local if zone == "local" else ws.layout.cache) / file
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with Workspace.open(ws.layout.root) as again:
        assert len(list(again.recall("contract tests"))) == 1
