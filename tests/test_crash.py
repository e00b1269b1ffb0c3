"""kill -9 at random moments: what was acknowledged is there, what was not is there wholly or not.

LOKI_TEST_LONG=1 kills ten times as often, LOKI_TEST_KILLS says how often. The moments come from a
fixed seed, and what they hit depends on the machine all the same.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import NoReturn

import pytest
from conftest import git
from processes import LONG, crash, hear, leftovers, rebuilt_digest, record_files, start, tell
from processes.victim import ACTIONS, BULK, COUNTER

from loki_memory import Fact, Workspace
from loki_memory.errors import StoreFailed
from loki_memory.files import transaction
from loki_memory.files.codec import decode, encode
from loki_memory.files.layout import place
from loki_memory.index.revision import Revision
from loki_memory.models import parse

KILLS = int(os.environ.get("LOKI_TEST_KILLS", "100" if LONG else "10"))  # of each action
_LONGEST_DELAY = 0.03  # seconds; most calls take less
_LONGER_DELAYS = {"consolidate": 0.6, "ingest": 0.2, "commit": 0.2, "publish": 0.1, "gc": 0.1}


@pytest.fixture
def victim(ws: Workspace, project: Path) -> Iterator[subprocess.Popen[str]]:
    ws.store.write(decode(f"semantic/patterns/{COUNTER}.json", _COUNTER))
    ws.sync()
    process = start("victim.py", project)
    yield process
    process.kill()
    process.communicate()


_COUNTER = json.dumps({"id": COUNTER, "pattern": "Count the edits", "category": "none"}).encode()


def _killed(
    victim: subprocess.Popen[str], action: str, name: str, dice: random.Random
) -> list[str]:
    """Let a process do something until it is killed; what was acknowledged before."""
    tell(victim, f"{action} {name}")
    pid = int(hear(victim))
    said = [hear(victim) for _ in range(dice.randint(0, 3))]
    assert "dead" not in said, said
    time.sleep(dice.uniform(0, _LONGER_DELAYS.get(action, _LONGEST_DELAY)))
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    while (line := hear(victim)) != "dead":
        said.append(line)
    assert not [line for line in said if line.startswith("stopped by")]
    return said


def _assert_sound(ws: Workspace) -> None:
    """All files are whole, nothing is half done, and the index says what the files say."""
    ws.sync()
    assert not transaction.waiting(ws.layout)
    for path, data in record_files(ws).items():
        decode(path, data)
    for view in ws.layout.memory.glob("*/*.json"):
        json.loads(view.read_bytes())
    assert ws.care.problems() == []
    assert ws.index.digest() == rebuilt_digest(ws)


@pytest.mark.parametrize("action", ACTIONS)
def test_kill_loses_nothing_acknowledged_and_the_next_open_heals(
    ws: Workspace, project: Path, victim: subprocess.Popen[str], action: str
) -> None:
    if action == "commit":
        git(project, "init", "-q", "-b", "main")
        git(project, "config", "user.name", "ana")
        git(project, "config", "user.email", "ana@example.org")
    dice = random.Random(action)  # noqa: S311 - the same moments every time
    acknowledged: list[str] = []
    for n in range(KILLS):
        acknowledged += _killed(victim, action, f"run{n}", dice)
        with Workspace.open(project) as fresh:
            fresh.status()
            _assert_sound(fresh)
            _CHECKS[action](fresh, acknowledged)
            fresh.remember(f"After kill {n}")
            assert not [path for path in leftovers(fresh) if path.startswith(".txn")]
        assert ws.care.problems() == []  # a process that was there all the time
    ws.care.gc()
    assert leftovers(ws) == []


def _ids_are_there(ws: Workspace, acknowledged: list[str]) -> None:
    there = {memory.id for memory in ws.list(status="all")}
    assert set(acknowledged) <= there


def _bulks_are_whole(ws: Workspace, acknowledged: list[str]) -> None:
    sizes = Counter(episode.task_id for episode in ws.list(kind="episode"))
    assert set(sizes.values()) <= {BULK}
    assert set(acknowledged) <= set(sizes)


def _corrections_are_in_history(ws: Workspace, acknowledged: list[str]) -> None:
    for fact in ws.list(kind="fact"):
        if fact.title() == "We deploy on Fridays":
            was = [entry["was"].get("category") for entry in fact.document()["history"]]
            said = [*was, fact.document()["category"]]
            assert set(acknowledged) <= set(said)
            assert len(said) == len(set(said))


def _edits_are_taken_over_together(ws: Workspace, acknowledged: list[str]) -> None:
    patterns = {pattern.title(): pattern.document() for pattern in ws.list(kind="pattern")}
    last = patterns.pop("Count the edits")["category"]
    words = {document["category"] for document in patterns.values()}
    assert set(acknowledged) <= words
    assert last in {*words, "none"}
    assert all("conflicts" not in document for document in patterns.values())
    newest = max(words, key=_run_and_number, default="none")
    assert last == newest


def _run_and_number(word: str) -> tuple[int, int]:
    run, number = word.removeprefix("run").split("-")
    return int(run), int(number)


def _forgotten_together(ws: Workspace, acknowledged: list[str]) -> None:
    there = {memory.id: memory for memory in ws.list(status="all")}
    for line in acknowledged:
        what, episode, pattern, fact = line.split()
        gone = {episode, pattern} - set(there)
        assert gone in (set(), {episode, pattern})
        assert bool(there[fact].document()["links"]) != bool(gone)
        if what == "forgot":
            assert gone
            assert (ws.layout.resolve(f"local/.forgotten/{episode}.json")).exists()


def _lessons_are_there(ws: Workspace, acknowledged: list[str]) -> None:
    _ids_are_there(ws, [name for line in acknowledged for name in line.split()])


def _sessions_are_told_once(ws: Workspace, acknowledged: list[str]) -> None:
    ws.ingest([ws.layout.root / "transcripts"])
    goals = Counter(episode.title() for episode in ws.list(kind="episode"))
    assert {f"Fix the cart of {session}" for session in acknowledged} <= set(goals)
    assert set(goals.values()) <= {1}


def _commits_are_whole(ws: Workspace, acknowledged: list[str]) -> None:
    _ids_are_there(ws, acknowledged)
    git(ws.layout.root, "fsck", "--strict", "--no-dangling")
    paths = git(ws.layout.root, "ls-tree", "-r", "--name-only", "HEAD") if acknowledged else ""
    committed = {Path(path).stem for path in paths.splitlines()}
    assert set(acknowledged) <= committed


def _copies_are_whole(ws: Workspace, acknowledged: list[str]) -> None:
    _ids_are_there(ws, acknowledged)
    copies = ws.layout.root / ".claude/skills"
    for name in acknowledged:
        text = (copies / name.removeprefix("skill-") / "SKILL.md").read_text("utf-8")
        assert "Read the log" in text


_CHECKS = {
    "record": _ids_are_there,
    "bulk": _bulks_are_whole,
    "correct": _corrections_are_in_history,
    "take_over": _edits_are_taken_over_together,
    "forget": _forgotten_together,
    "rebuild": _ids_are_there,
    "consolidate": _lessons_are_there,
    "ingest": _sessions_are_told_once,
    "commit": _commits_are_whole,
    "publish": _copies_are_whole,
    "gc": _ids_are_there,
}


# -- what is left of a change ----------------------------------------------------------------------


def _facts(*words: str, **fields: str) -> dict[str, bytes | None]:
    facts = [parse(Fact, {"id": f"fact-{word}", "statement": word, **fields}) for word in words]
    return {place(fact): encode(fact) for fact in facts}


@pytest.mark.parametrize("renames", [0, 1, 2, 3])
def test_a_change_is_carried_out_by_the_next_process_or_was_never_made(
    ws: Workspace, project: Path, renames: int
) -> None:
    change = _facts("one", "two")
    crash(ws, change, renames)
    with Workspace.open(project) as fresh:
        assert [memory.title() for memory in fresh.list()] == (["one", "two"] if renames else [])
        fresh.remember("three")
        assert leftovers(fresh) == []


@pytest.mark.parametrize("renames", [1, 2])
def test_a_file_that_is_edited_by_hand_after_a_crash_keeps_the_edit(
    ws: Workspace, renames: int
) -> None:
    """What was decided must not be carried out over what somebody wrote since."""
    _write(ws, _facts("one", "two"))
    edited = ws.layout.resolve("semantic/facts/fact-one.json")
    crash(ws, _facts("one", "two", category="new"), renames)
    edited.write_text('{"id": "fact-one", "statement": "by hand"}')
    ws.sync()
    assert ws.get("fact-one").title() == "by hand"


def test_a_file_that_is_removed_by_hand_after_a_crash_does_not_shut_the_store(
    ws: Workspace,
) -> None:
    crash(ws, _facts("one", "two"), renames=2)
    ws.layout.resolve("semantic/facts/fact-one.json").unlink()
    ws.remember("three")
    assert sorted(memory.title() for memory in ws.list()) == ["three", "two"]


@pytest.mark.parametrize(
    "path", ["../escaped", "semantic/../../escaped", "semantic/facts/../../../escaped"]
)
def test_a_change_that_came_with_a_clone_leads_nowhere(ws: Workspace, path: str) -> None:
    """Nobody but this program puts changes there, but a clone can hold anything."""
    crash(ws, _facts("one", "two"), renames=1)
    marker = transaction.staging(ws.layout) / "intent.json"
    marker.write_text(marker.read_text().replace("semantic/facts/fact-one.json", path))
    with suppress(StoreFailed):
        ws.remember("three")
    assert list(ws.layout.root.parent.rglob("escaped")) == []
    assert ws.list() is not None


@pytest.mark.parametrize("data", [b"", b"{", b"[[]]", b"3", b'[["0"]]', b"\xff"])
def test_a_marker_that_makes_no_sense_keeps_nobody_from_reading_or_writing(
    ws: Workspace, data: bytes
) -> None:
    ws.remember("one")
    _leave_marker(ws, data)
    assert [memory.title() for memory in ws.list()] == ["one"]
    ws.remember("two")
    assert sorted(memory.title() for memory in ws.list()) == ["one", "two"]


def test_a_second_marker_that_makes_no_sense_does_not_shut_the_store(ws: Workspace) -> None:
    for number in range(3):
        _leave_marker(ws, b"not ours")
        ws.remember(f"fact {number}")
    assert len(ws.list()) == 3


def _leave_marker(ws: Workspace, data: bytes) -> None:
    transaction.staging(ws.layout).mkdir(exist_ok=True)
    (transaction.staging(ws.layout) / "intent.json").write_bytes(data)


def test_killed_right_after_forgetting_the_last_memory_it_is_forgotten(
    ws: Workspace, project: Path
) -> None:
    memory_id = ws.remember("The only one").id
    ws.sync()
    child = os.fork()
    if not child:
        _die_before_the_index_knows(ws, memory_id)
    os.waitpid(child, 0)
    with Workspace.open(project) as fresh:
        assert fresh.list() == []


def _die_before_the_index_knows(ws: Workspace, memory_id: str) -> NoReturn:
    path, change = ws.browse.where(memory_id), ws.index.change

    def change_or_die(**how: bool) -> AbstractContextManager[Revision]:
        if not path.exists():
            os._exit(1)
        return change(**how)

    ws.index.change = change_or_die  # type: ignore[method-assign]
    try:
        ws.forget(memory_id)
    finally:
        os._exit(1)


def _write(ws: Workspace, files: dict[str, bytes | None]) -> None:
    with ws.store.change() as change:
        for path, data in files.items():
            change.put(decode(path, data or b""), path)
