"""A disk that fails at each system call of whole commands: `record`, publishing, `consolidate`.

What was acknowledged is there, what was there before stays, no file is torn, and a failure is a
sentence. LOKI_TEST_LONG=1 tries each call, otherwise some.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from processes import LONG, record_files
from processes.tracing import can_trace, traced

from loki_memory import Workspace
from loki_memory.files.codec import decode
from loki_memory.models import Skill

CALLS = ("open", "write", "fsync", "rename", "mkdir", "unlink")
_STEPS = {"open": 41, "fsync": 5, "rename": 5}  # between the calls that are tried
COPIES = ".claude/skills"
# An error of the library, or of the system with its file: the command line words both.
FAILURES = {"StoreFailed", "IndexFailed", "raw OSError"}
BEFORE = "Known before the disk failed"


def record(ws: Workspace, number: int) -> str:
    return ws.record({"goal": f"Goal {number}", "outcome": "success"}).id


def consolidate(ws: Workspace, number: int) -> str:
    """Publish a lesson that two sessions met; its id is said."""
    error = {"type": "make", "message": f"error: zq{number} is broken", "resolution": "Mend it"}
    for day in (1, 2):
        at = {"session": f"s{number}-{day}", "timestamp": f"2026-01-0{day}T09:00:00Z"}
        ws.record({"goal": f"Build {number}, {day}", "errors_encountered": [error], **at})
    ws.consolidate()
    lessons = ws.list(kind="anti-pattern")
    return next((lesson.id for lesson in lessons if f"zq{number} " in lesson.title()), "")


def publish(ws: Workspace, number: int) -> str:
    """Put a skill where agents look; its id is said if a step says that its copy was written."""
    name = f"build-{number}"
    ws.skills.add(Skill.from_sections(name, f"Build {number}.", steps=["make", "Read the log"]))
    steps = ws.skills.publish("claude")
    return f"skill-{name}" if any(name in step.where and step.did for step in steps) else ""


ACTIONS = (record, consolidate, publish)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    if not can_trace(tmp_path):
        pytest.skip("strace is missing or may not attach")
    return tmp_path / "log"


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
def test_a_disk_that_fails_at_any_call_of_a_command_loses_nothing(
    ws: Workspace,
    log: Path,
    action: Callable[[Workspace, int], str],
    call: str,
    error: str,
) -> None:
    ws.remember(BEFORE)
    action(ws, 0)  # the modules that it imports are there, as they are on a disk that fails later
    ws.sync()
    acknowledged: set[str] = set()
    for number in count(1, 1 if LONG else _STEPS.get(call, 7)):
        ws.close()
        outcome = traced(partial(action, ws, number), call, f"error={error}:when={number}", log)
        assert not outcome.killed
        if outcome.said.startswith("returned "):
            acknowledged.add(outcome.said.removeprefix("returned ").strip("'"))
        else:
            assert outcome.said.partition(":")[0] in FAILURES, outcome.said
        _assert_nothing_is_lost(ws.layout.root, acknowledged)
        if not outcome.injected:
            break
    assert outcome.said.startswith("returned ")


def _assert_nothing_is_lost(root: Path, acknowledged: set[str]) -> None:
    with Workspace.open(root) as after:
        after.sync()
        for path, data in record_files(after).items():
            decode(path, data)
        assert after.care.problems() == []
        there = {memory.id: memory.title() for memory in after.list(status="all")}
        assert BEFORE in there.values()
        assert acknowledged - {""} <= set(there)
    copies = root / COPIES
    for path in copies.glob("*/SKILL.md") if copies.is_dir() else ():
        assert "Read the log" in path.read_text("utf-8")
    for name in acknowledged:
        if name.startswith("skill-"):
            assert (copies / name.removeprefix("skill-") / "SKILL.md").exists()
