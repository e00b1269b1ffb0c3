"""Looking after memory in the background: what rings, what is done, and what is left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from claude_lines import Transcript
from conftest import git

from loki_memory import Workspace
from loki_memory.daemon.background import Background
from loki_memory.daemon.process import is_watched, leading
from loki_memory.daemon.watcher import EventListener, FileEvents, Watcher, file_system, is_noise
from loki_memory.errors import AlreadyWatched, TrackedByGit
from loki_memory.home.background_store import tracked_by_git
from loki_memory.models import AntiPattern

PATIENCE = 300.0  # seconds until a test gives up: far more than anything takes
FAILED = {
    "goal": "Fix the build",
    "outcome": "failure",
    "timestamp": "2026-11-16T10:00:00Z",
    "errors_encountered": [
        {
            "type": "ModuleNotFoundError",
            "message": "No module named 'flask'",
            "resolution": "pip install flask",
        }
    ],
}


def wait_for(condition: Callable[[], object], what: str = "") -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what or "it did not happen"
        time.sleep(0.01)


def write_episode(ws: Workspace, name: str, **fields: object) -> Path:
    """As an agent does: a file."""
    folder = ws.layout.memory / "episodic" / "2026-11-16"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**FAILED, **fields}))
    return path


def write_session(project: Path) -> None:
    """What Claude Code keeps of a session in this project."""
    path = Path(os.environ["HOME"]) / ".claude" / "projects" / "p" / "s.jsonl"
    Transcript(cwd=str(project)).say("Fix the build").call("Bash", command="make").write(path)


class Rounds:
    """Background work whose time is the test's."""

    def __init__(self, ws: Workspace) -> None:
        self.told: list[str] = []
        self.clock = 1000.0
        self.workspace = Workspace(ws.home.in_background())
        self.background = Background(self.workspace, self.told.append, self.clock)

    def after(self, seconds: float) -> list[str]:
        """Do a round so much later; what it told."""
        self.told.clear()
        self.clock += seconds
        self.background.round(self.clock)
        return list(self.told)


@pytest.fixture
def rounds(ws: Workspace) -> Iterator[Rounds]:
    found = Rounds(ws)
    found.after(0)
    yield found
    found.workspace.close()


def memory_files(ws: Workspace) -> dict[str, tuple[int, int]]:
    """Every file of memory that is no lock, with what changes when it is written."""
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in ws.layout.loki.rglob("*")
        if path.is_file() and not path.name.startswith(".") and ws.layout.cache not in path.parents
    }


def in_git(project: Path) -> None:
    git(project, "init", "-q", "-b", "main")


# -- rounds ----------------------------------------------------------------------------------------


def test_an_episode_that_an_agent_wrote_as_a_file_is_learned_from_at_once(
    ws: Workspace, rounds: Rounds
) -> None:
    write_episode(ws, "a")
    rounds.after(1)
    assert rounds.background.standing.learned == 1
    (lesson,) = ws.list(kind="anti-pattern")
    assert "flask" in lesson.title()


def test_an_episode_that_another_process_indexed_first_is_learned_from_too(
    ws: Workspace, rounds: Rounds
) -> None:
    write_episode(ws, "a")
    ws.sync()
    rounds.after(1)
    assert rounds.background.standing.learned == 1


def test_an_episode_that_comes_in_the_middle_of_a_round_is_not_passed_over(ws: Workspace) -> None:
    workspace, told = Workspace(ws.home.in_background()), list[str]()

    def tell(text: str) -> None:
        if text == "learned from 1 episode" and len(told) < 2:
            write_episode(ws, "b", session="two", task_id="b")
        told.append(text)

    background = Background(workspace, tell, 0.0)
    background.round(0.0)
    write_episode(ws, "a", session="one", task_id="a")
    background.round(1.0)
    assert background.standing.learned == 2
    workspace.close()


def test_what_was_there_at_the_start_is_left_to_consolidation(ws: Workspace) -> None:
    write_episode(ws, "a")
    rounds = Rounds(ws)
    rounds.after(0)
    assert rounds.background.standing.learned == 0
    assert ws.list(kind="anti-pattern") == []


def test_a_round_that_finds_nothing_new_writes_nothing(ws: Workspace, rounds: Rounds) -> None:
    ws.continuity(goal="Fix the build")
    write_episode(ws, "a")
    rounds.after(1)
    rounds.after(10)  # views are rendered once it is quiet
    before, done = memory_files(ws), rounds.background.standing.rounds
    for _ in range(3):
        assert rounds.after(10) == []
    assert memory_files(ws) == before
    assert rounds.background.standing.rounds == done


def test_views_are_rendered_when_it_is_quiet(ws: Workspace, rounds: Rounds) -> None:
    rounds.after(10)
    write_episode(ws, "a")
    view = ws.layout.memory / "episodic" / "index.json"
    rounds.after(1)
    assert "Fix the build" not in (view.read_text() if view.exists() else "")
    assert rounds.background.pause(60) < 60
    rounds.after(10)
    assert "Fix the build" in view.read_text()
    assert rounds.background.pause(60) == 60


def test_what_is_new_is_embedded_when_it_is_quiet(ws: Workspace, rounds: Rounds) -> None:
    rounds.after(10)
    write_episode(ws, "a")
    rounds.after(1)
    vectors, passages = "SELECT key FROM vectors", "SELECT key FROM passages WHERE key <> 0"
    assert ws.index.ask(vectors) == []
    rounds.after(10)
    assert set(ws.index.ask(vectors)) == set(ws.index.ask(passages)) != set()


def test_what_an_agent_added_to_a_view_is_taken_over(ws: Workspace, rounds: Rounds) -> None:
    view = ws.layout.memory / "semantic" / "facts.json"
    view.write_text(json.dumps({"facts": [{"statement": "Deploys are on Fridays"}]}))
    rounds.after(1)
    assert [fact.title() for fact in ws.list(kind="fact")] == ["Deploys are on Fridays"]
    assert len(list((ws.layout.memory / "semantic" / "facts").glob("*.json"))) == 1


def test_continuity_is_rendered_for_the_last_goal(ws: Workspace, rounds: Rounds) -> None:
    path = ws.continuity(goal="Fix the flask build")
    assert "pip install flask" not in path.read_text()
    write_episode(ws, "a")
    assert "rendered CONTINUITY.md" in rounds.after(1)
    assert "pip install flask" in path.read_text()


def test_what_an_agent_notes_in_continuity_becomes_memory(ws: Workspace, rounds: Rounds) -> None:
    path = ws.continuity(goal="Fix the build")
    note = "\n## Mistakes & Learnings\n\n- Never deploy before the migration has run\n"
    path.write_text(path.read_text() + note)
    rounds.after(1)
    assert any("migration" in one.title() for one in ws.list())


def test_continuity_is_left_alone_where_nobody_uses_it(ws: Workspace, rounds: Rounds) -> None:
    write_episode(ws, "a")
    rounds.after(1)
    assert not (ws.layout.loki / "CONTINUITY.md").exists()


def test_a_folder_without_git_gets_candidates_which_a_command_publishes(
    ws: Workspace, rounds: Rounds
) -> None:
    for name in ("a", "b"):
        write_episode(ws, name, session=name, task_id=name)
    assert not any("consolidated:" in line for line in rounds.after(1))
    told = rounds.after(301)
    assert any("consolidated:" in line for line in told)
    assert {step.what for step in ws.consolidate(plan_only=True).steps} == {"published"}
    assert not [*ws.layout.memory.glob("semantic/*/*.json")]
    ws.consolidate()
    assert [*ws.layout.memory.glob("semantic/anti-patterns/*.json")]
    assert rounds.after(301) == []


def test_enough_new_episodes_are_consolidated_at_once(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_WATCH_EPISODES", "2")
    rounds = Rounds(ws)
    rounds.after(0)
    for name in ("a", "b"):
        write_episode(ws, name, session=name, task_id=name)
    assert any("consolidated:" in line for line in rounds.after(1))


def test_in_a_git_repository_consolidation_makes_candidates(project: Path) -> None:
    in_git(project)
    ws = Workspace.init(project)
    rounds = Rounds(ws)
    rounds.after(0)
    for name in ("a", "b"):
        write_episode(ws, name, session=name, task_id=name)
    rounds.after(1)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "all")
    rounds.after(301)
    assert git(project, "status", "--porcelain") == ""
    (learned,) = ws.list(kind="anti-pattern")
    assert isinstance(learned, AntiPattern)
    assert (learned.scope, len(learned.evidence.for_)) == ("local", 2)
    ws.consolidate()
    (published,) = ws.list(kind="anti-pattern")
    assert (published.id, published.scope) == (learned.id, "project")  # type: ignore[attr-defined]


def test_evidence_for_a_tracked_file_waits_until_a_person_consolidates(project: Path) -> None:
    in_git(project)
    ws = Workspace.init(project)
    ws.record({**FAILED, "session": "one"})
    ws.sync()
    git(project, "add", "-A")
    git(project, "commit", "-qm", "the first lesson")
    rounds = Rounds(ws)
    rounds.after(0)
    write_episode(ws, "again", session="two", timestamp="2026-11-16T12:00:00Z")
    rounds.after(1)
    assert rounds.background.standing.learned == 1
    assert git(project, "status", "--porcelain", "-uno") == ""
    ws.consolidate()
    assert "anti-patterns/" in git(project, "status", "--porcelain", "-uno")


def test_a_new_lesson_is_written_also_in_a_git_repository(project: Path) -> None:
    in_git(project)
    ws = Workspace.init(project)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "empty")
    rounds = Rounds(ws)
    rounds.after(0)
    write_episode(ws, "a")
    rounds.after(1)
    assert len(ws.list(kind="anti-pattern")) == 1
    assert git(project, "status", "--porcelain", "-uno") == ""


def test_a_workspace_that_only_adds_refuses_to_change_what_git_tracks(project: Path) -> None:
    in_git(project)
    ws = Workspace.init(project)
    fact = ws.remember("Deploys are on Fridays")
    adding = Workspace(ws.home.in_background())
    adding.pin(fact.id)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "a fact")
    with pytest.raises(TrackedByGit, match=fact.id):
        adding.pin(fact.id, pinned=False)
    assert git(project, "status", "--porcelain") == ""
    adding.remember("Deploys are announced")


def test_a_repository_that_git_refuses_counts_as_tracked(project: Path) -> None:
    in_git(project)
    ws = Workspace.init(project)
    (project / ".git" / "HEAD").write_text("nonsense")
    assert tracked_by_git(ws.layout, ["a.json", "local/b.json"]) == ["a.json"]


def test_sessions_that_rest_are_ingested_and_learned_from(
    ws: Workspace, rounds: Rounds, project: Path
) -> None:
    write_session(project)
    rounds.after(31)
    assert rounds.background.standing.ingested == 1
    assert [one.title() for one in ws.list(kind="episode")] == ["Fix the build"]
    rounds.after(31)
    assert rounds.background.standing.ingested == 1


def test_nothing_is_ingested_where_memory_is_off(ws: Workspace, project: Path) -> None:
    ws.home.set_config("memory.enabled", "false")
    write_session(project)
    rounds = Rounds(ws)
    rounds.after(31)
    assert ws.list(kind="episode") == []


def test_settings_are_obeyed_once_they_are_written(ws: Workspace, rounds: Rounds) -> None:
    ws.home.set_config("watch.idle_seconds", "7")
    rounds.after(1)
    assert rounds.workspace.config.get("watch.idle_seconds") == 7


def test_trouble_is_told_once_and_gone_when_it_is_mended(ws: Workspace, rounds: Rounds) -> None:
    config = ws.layout.loki / "config.toml"
    whole = config.read_text()
    config.write_text("format = 'nonsense'\n")
    assert any("trouble" in line for line in rounds.after(1))
    assert rounds.after(1) == []
    assert "format" in rounds.background.standing.trouble
    config.write_text(whole)
    rounds.after(1)
    assert rounds.background.standing.trouble == ""


# -- what rings ----------------------------------------------------------------------------------


@contextmanager
def listening(folder: Path) -> Iterator[FileEvents]:
    file_events = FileEvents()
    listener = EventListener(file_events, [(folder, True)], polls_only=False)
    listener.renew()
    assert listener.gets_events
    try:
        yield file_events
    finally:
        listener.close()


@pytest.mark.skipif(sys.platform != "linux", reason="inotify")
@pytest.mark.parametrize("what", ["create", "edit", "rename", "remove", "below"])
def test_a_change_rings(tmp_path: Path, what: str) -> None:
    (tmp_path / "there.json").write_text("{}")
    (tmp_path / "deep").mkdir()
    acts: dict[str, Callable[[], object]] = {
        "create": lambda: (tmp_path / "new.json").write_text("{}"),
        "edit": lambda: (tmp_path / "there.json").write_text("[]"),
        "rename": lambda: (tmp_path / "there.json").rename(tmp_path / "other.json"),
        "remove": (tmp_path / "there.json").unlink,
        "below": lambda: (tmp_path / "deep" / "new.json").write_text("{}"),
    }
    with listening(tmp_path) as file_events:
        acts[what]()
        assert file_events.wait(PATIENCE, 0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="inotify")
def test_reading_and_locking_do_not_ring(tmp_path: Path) -> None:
    (tmp_path / "there.json").write_text("{}")
    with listening(tmp_path) as file_events:
        (tmp_path / "there.json").read_text()
        (tmp_path / ".lock").write_text("")
        (tmp_path / ".tmp-1").write_text("")
        (tmp_path / "sentinel.json").write_text("{}")  # events come in order
        assert file_events.wait(PATIENCE, 0.01)
        (tmp_path / "there.json").read_text()
        (tmp_path / ".lock").write_text("")
        assert not file_events.wait(0.3, 0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="inotify")
def test_a_folder_that_was_made_anew_is_listened_to_again(tmp_path: Path) -> None:
    folder, file_events = tmp_path / "memory", FileEvents()
    folder.mkdir()
    listener = EventListener(file_events, [(folder, True)], polls_only=False)
    listener.renew()
    folder.rename(tmp_path / "gone")
    folder.mkdir()
    listener.renew()
    file_events.wait(0, 0)
    (folder / "new.json").write_text("{}")
    assert file_events.wait(PATIENCE, 0.01)
    listener.close()


def test_a_burst_is_one_ring() -> None:
    file_events = FileEvents()
    for _ in range(3):
        file_events.notify()
    assert file_events.wait(0, 0.01)
    assert not file_events.is_set()
    assert not file_events.wait(0, 0.01)


def test_files_beside_memory_are_noise() -> None:
    assert is_noise("/p/.loki/memory/.lock")
    assert is_noise("/p/.loki/memory/facts/.tmp-123")
    assert not is_noise("/p/.loki/memory/facts/fact-1.json")


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /mnt/c rw - 9p drvfs rw
31 30 0:41 / /mnt/c/with\\040space rw - tmpfs none rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ana", "ext4"),
        ("/mnt/c", "9p"),
        ("/mnt/c/project", "9p"),
        ("/mnt/cc", "ext4"),
        ("/mnt/c/with space/project", "tmpfs"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_the_nearest_mount(path: str, kind: str) -> None:
    assert file_system(path, MOUNTS) == kind


# -- the watcher ---------------------------------------------------------------------------------


@contextmanager
def watching(ws: Workspace) -> Iterator[Watcher]:
    workspace = Workspace(ws.home.in_background())
    watcher = Watcher(workspace, lambda _: None, lambda: None)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.stop()
        workspace.close()
    assert not watcher._thread.is_alive()


@pytest.mark.parametrize("poll", ["false", "true"])
def test_a_watcher_learns_from_a_file_that_appears(
    ws: Workspace, poll: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_WATCH_POLL", poll)
    monkeypatch.setenv("LOKI_WATCH_POLL_SECONDS", "1")
    with watching(ws) as watcher:
        wait_for(lambda: watcher.state().standing.rounds or watcher.is_current())
        assert watcher.state().gets_events == (poll == "false" and sys.platform == "linux")
        write_episode(ws, "a")
        wait_for(lambda: watcher.state().standing.learned == 1)
    assert len(ws.list(kind="anti-pattern")) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_watcher_that_fails_says_that_it_ended(ws: Workspace) -> None:
    def tell(text: str) -> None:
        raise RuntimeError(text)

    ended = Event()
    ws.remember("Something to tell of")
    watcher = Watcher(Workspace(ws.home.in_background()), tell, ended.set)
    watcher.start()
    assert ended.wait(PATIENCE)
    assert watcher.has_failed
    watcher.stop()


def test_one_process_watches_a_workspace(ws: Workspace) -> None:
    assert not is_watched(ws.layout)
    with leading(ws.layout):
        assert is_watched(ws.layout)
        with pytest.raises(AlreadyWatched), leading(ws.layout):
            pass
    assert not is_watched(ws.layout)


def test_who_watched_and_was_killed_leaves_no_lock(ws: Workspace, project: Path) -> None:
    code = (
        "import sys, loki_memory.daemon.process as w; from loki_memory import Workspace\n"
        f"held = w.leading(Workspace.open({str(project)!r}).layout); held.__enter__()\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_watched(ws.layout)
        holder.kill()
        holder.wait()
    assert not is_watched(ws.layout)


@pytest.mark.skipif(sys.platform != "linux", reason="inotify")
def test_events_that_the_kernel_dropped_ring_too(tmp_path: Path) -> None:
    import logging

    with listening(tmp_path) as file_events:
        assert not file_events.is_set()
        logging.getLogger("watchdog.observers.inotify").warning("Inotify queue overflowed")
        assert file_events.is_set()
