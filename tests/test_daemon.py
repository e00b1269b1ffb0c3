"""The watcher as a process: started, asked, answered by, and stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest
from test_daemon_watcher import FAILED, PATIENCE, wait_for, write_episode

import loki_memory
from loki_memory import Workspace
from loki_memory.cli import run as run_command_line
from loki_memory.daemon import client, protocol, server
from loki_memory.daemon.process import is_watched, place
from loki_memory.daemon.run_command import CommandRunner
from loki_memory.daemon.server import Listener, Reply, Request
from loki_memory.errors import NoAnswer

PROGRAM = [sys.executable, "-c", "from loki_memory.cli import program; program()"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are watched by /proc")


@pytest.fixture(scope="module")
def runtime() -> Iterator[str]:
    """Sockets of tests lie apart from those of the user, under a path that the kernel takes."""
    with tempfile.TemporaryDirectory(prefix="lm-", dir="/tmp") as folder:
        yield folder


@pytest.fixture(autouse=True)
def _apart(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of sockets before anybody made it."""
    with tempfile.TemporaryDirectory(prefix="lm-", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(protocol.folder())


def run(project: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words], cwd=project, capture_output=True, text=True, check=False, **more
    )


def told(project: Path, *words: str) -> Any:
    done = run(project, "daemon", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def watched(ws: Workspace, project: Path) -> Iterator[int]:
    """A watcher in the background that is at rest; its process."""
    with watching(project) as process:
        yield process


@pytest.fixture(scope="module")
def asked(runtime: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project with a watcher, for tests that only ask."""
    project = tmp_path_factory.mktemp("asked")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", runtime)
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        Workspace.init(project)
        with watching(project):
            yield project


@contextmanager
def watching(project: Path) -> Iterator[int]:
    with Workspace.open(project) as workspace:
        workspace.remember("Contract tests need the database running")
        workspace.sync()
    process = told(project, "start")["state"]["process"]
    try:
        wait_for(lambda: answered(project, "recall", "contract tests"), "it never answered")
        yield process
    finally:
        told(project, "stop")


def answered(project: Path, *words: str, given: bytes = b"", **variables: str) -> Reply | None:
    """What the watcher says to a command; None if the command has to do its work itself."""
    here, before = Path.cwd(), dict(os.environ)
    os.chdir(project)
    os.environ.update(variables)
    try:
        connection = protocol.reach(protocol.address(project / ".loki"), PATIENCE)
        with socket.socket(fileno=connection.detach()) as open_:
            open_.settimeout(PATIENCE)
            assert protocol.receive(open_) == [client.GREETING]
            protocol.send(open_, client.request(words, given))
            parts = protocol.receive(open_)
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)
    return Reply(int(parts[1]), *parts[2:]) if parts[0] == client.ANSWER else None


def is_alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


# -- the process -----------------------------------------------------------------------------------


def test_a_daemon_is_started_once_and_stopped(ws: Workspace, project: Path) -> None:
    assert told(project, "status") == {"running": False, "state": None}
    first = told(project, "start")["state"]["process"]
    try:
        assert told(project, "start")["state"]["process"] == first
        assert is_watched(ws.layout)
    finally:
        assert told(project, "stop")["running"] is False
    wait_for(lambda: not is_alive(first))  # the lock is free a moment before
    assert not Path(protocol.address(ws.layout.loki)).exists()
    assert told(project, "stop")["running"] is False


def test_a_second_watcher_is_refused(watched: int, project: Path) -> None:
    refused = run(project, "watch")
    assert refused.returncode == 8
    assert "daemon stop" in refused.stderr


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_leaves_nothing(
    ws: Workspace, project: Path, watched: int, how: signal.Signals
) -> None:
    children = Path(f"/proc/{watched}/task/{watched}/children").read_text(encoding="utf-8")
    assert children.split() == []
    handle = os.pidfd_open(watched)
    signal.pidfd_send_signal(handle, how)
    ended = wait([handle], PATIENCE)
    os.close(handle)
    assert ended
    assert not is_watched(ws.layout)
    assert not Path(protocol.address(ws.layout.loki)).exists()


def test_a_killed_daemon_is_no_obstacle(ws: Workspace, project: Path, watched: int) -> None:
    os.kill(watched, signal.SIGKILL)
    wait_for(lambda: not is_watched(ws.layout))
    assert Path(protocol.address(ws.layout.loki)).exists()  # nobody could take it away
    assert told(project, "status") == {"running": False, "state": None}
    assert run(project, "recall", "contract tests").stdout
    assert told(project, "start")["state"]["process"] != watched


def test_it_learns_from_files_while_nobody_asks(ws: Workspace, project: Path, watched: int) -> None:
    write_episode(ws, "a")
    wait_for(lambda: told(project, "status")["state"]["standing"]["learned"] == 1)
    assert any("learned from 1" in line for line in told(project, "logs")["lines"])
    assert len(ws.list(kind="anti-pattern")) == 1


def test_what_lies_in_the_local_zone_is_for_its_owner(
    ws: Workspace, project: Path, watched: int
) -> None:
    path = Path(protocol.address(ws.layout.loki))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert place(ws.layout, "log").is_relative_to(ws.layout.local)


def test_a_daemon_that_cannot_start_says_so(ws: Workspace, project: Path, fresh: Path) -> None:
    fresh.mkdir()
    fresh.chmod(0o755)  # others may enter: not used
    failed = run(project, "daemon", "start")
    assert failed.returncode == 12
    assert "daemon logs" in failed.stderr
    assert any("others may enter" in line for line in told(project, "logs")["lines"])
    assert not is_watched(ws.layout)


# -- answers ---------------------------------------------------------------------------------------

COMMANDS = [
    ("recall", "contract tests"),
    ("recall", "contract tests", "--json"),
    ("--json", "recall", "contract tests", "-k", "1"),
    ("recall", "nothing of the kind is known here"),
    ("recall", "--error", "-"),
    ("recall",),  # a mistake
    ("recall", "tests", "--kind", "nonsense"),
    ("context", "write contract tests"),
    ("context", "write contract tests", "--format", "preamble"),
    ("status",),
    ("status", "--json"),
]


def settled(text: bytes | str) -> str:
    """Output without what differs from run to run."""
    lines = (text.decode() if isinstance(text, bytes) else text).splitlines()
    return "\n".join(line for line in lines if "took_ms" not in line)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_daemon_says_what_the_command_says(
    asked: Path, fresh: Path, runtime: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = b"the contract tests failed"
    done = subprocess.run(  # no watcher is found where there is no socket
        [*PROGRAM, *words], cwd=asked, input=given, capture_output=True, check=False
    )
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    answer = answered(asked, *words, given=given)
    assert answer is not None
    assert answer.code == done.returncode
    assert settled(answer.out) == settled(done.stdout)
    assert settled(answer.complaints) == settled(done.stderr)


def test_a_daemon_counts_what_it_answered(asked: Path) -> None:
    before = told(asked, "status")["state"]["answered"]
    assert answered(asked, "recall", "contract tests")
    assert told(asked, "status")["state"]["answered"] == before + 1


def test_a_command_that_is_answered_loads_nothing_of_its_own(asked: Path) -> None:
    code = (
        "import sys, os\nfrom loki_memory.daemon import client\n"
        "code = client.run(['recall', 'contract tests'])\n"
        "slow = {'click', 'pydantic', 'numpy', 'json', 'socket', 'typing', 'sqlite3', 're'}\n"
        "sys.stderr.write(f'{code} {sorted(slow & set(sys.modules))}')"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=asked,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(loki_memory.__file__).parents[1])},
    )
    assert done.stderr == "0 []"
    assert "Contract tests" in done.stdout


def test_an_edit_is_in_the_next_answer(ws: Workspace, project: Path, watched: int) -> None:
    folder = ws.layout.memory / "semantic" / "facts"
    for number in range(3):
        text = f"The password of release {number} is xylophone"
        (folder / f"fact-edit{number}.json").write_text(json.dumps({"statement": text}))
        done = run(project, "recall", f"password of release {number}")
        assert f"release {number}" in done.stdout


def test_an_edit_in_place_is_in_the_next_answer_after_the_cache_was_deleted(
    ws: Workspace, project: Path, watched: int
) -> None:
    path = ws.browse.where(ws.remember("The build needs xylophone 22").id)
    assert "xylophone 22" in run(project, "recall", "xylophone").stdout
    for version in (23, 24):
        shutil.rmtree(ws.layout.cache)
        path.write_text(path.read_text().replace(str(version - 1), str(version)))
        assert f"xylophone {version}" in run(project, "recall", "xylophone").stdout


def test_settings_of_who_asks_count(asked: Path) -> None:
    usual = answered(asked, "recall", "zebra crossing")
    all_ = answered(asked, "recall", "zebra crossing", LOKI_RECALL_FLOOR="0")
    again = answered(asked, "recall", "zebra crossing")
    assert usual is not None
    assert again == usual
    assert all_ is not None
    assert all_.out != usual.out


def test_a_setting_that_is_written_counts_at_once(project: Path, watched: int) -> None:
    before = answered(project, "recall", "zebra crossing")
    run(project, "config", "recall.floor", "0")
    after = answered(project, "recall", "zebra crossing")
    assert before is not None
    assert after is not None
    assert after.out != before.out


# -- who is answered, and what is not --------------------------------------------------------------


def request(folder: Path, *words: str, variables: Mapping[str, str] | None = None) -> Request:
    given = {**os.environ, **(variables or {})}
    environment = {n: value for n, value in given.items() if n.startswith(client.VARIABLES)}
    return Request(str(folder), list(words), b"", environment)


@pytest.mark.parametrize(
    "words",
    [
        ("remember", "something"),
        ("forget", "fact-1"),
        ("daemon", "stop"),
        ("recall", "x", "--as-of", "HEAD"),
        ("recall", "x", "--as-of=HEAD"),
        ("recall", "--help"),
        ("hook", "SessionEnd"),
        ("--version",),
        (),
    ],
    ids=" ".join,
)
def test_only_commands_that_read_are_done(ws: Workspace, project: Path, words: list[str]) -> None:
    assert CommandRunner(ws, run_command_line).answer(request(project, *words), False) is None


def test_another_workspace_is_refused(ws: Workspace, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    Workspace.init(other)
    desk = CommandRunner(ws, run_command_line)
    assert desk.answer(request(other, "status"), False) is None
    assert desk.answer(request(project, "-C", str(other), "status"), False) is None
    assert desk.answer(request(tmp_path / "gone", "status"), False) is None
    below = project / "src"
    below.mkdir()
    assert desk.answer(request(below, "status"), False) is not None


def test_a_request_leaves_the_process_as_it_was(ws: Workspace, project: Path) -> None:
    before = dict(os.environ), Path.cwd(), sys.argv, sys.stdin, sys.stdout, sys.stderr
    variables = {"LOKI_RECALL_FLOOR": "0", "CLAUDE_PROJECT_DIR": "/x"}
    answer = CommandRunner(ws, run_command_line).answer(
        request(project, "status", variables=variables), False
    )
    assert answer is not None
    assert answer.code == 0
    assert (dict(os.environ), Path.cwd(), sys.argv, sys.stdin, sys.stdout, sys.stderr) == before


def test_another_version_is_not_asked(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _asked_of(ws, project, b"/elsewhere 1 2", monkeypatch) is None


def test_the_same_version_is_asked(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _asked_of(ws, project, client.GREETING, monkeypatch) == 7


def _asked_of(
    ws: Workspace, project: Path, says: bytes, monkeypatch: pytest.MonkeyPatch
) -> int | None:
    """What a command gets from a watcher that greets so and answers with exit code 7."""
    from threading import Thread

    monkeypatch.chdir(project)
    listener = Listener(protocol.address(ws.layout.loki))

    def serve() -> None:
        connection, _ = listener.socket.accept()
        with connection:
            protocol.send(connection, [says])
            try:
                protocol.receive(connection)
                protocol.send(connection, [client.ANSWER, b"7", b"", b""])
            except protocol.Garbled:
                return

    thread = Thread(target=serve)
    thread.start()
    try:
        return _errand(["status"], monkeypatch)
    finally:
        thread.join()
        listener.close()


def _errand(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int | None:
    import io

    with monkeypatch.context() as streams:
        for name in ("stdout", "stderr"):
            streams.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
        return client.run(words)


def test_a_watcher_that_hangs_is_not_waited_for(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    listener = Listener(protocol.address(ws.layout.loki))  # nobody accepts
    try:
        assert _errand(["status"], monkeypatch) is None
    finally:
        listener.close()


def test_standard_input_is_there_for_who_has_to_do_it_after_all(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"an error"), encoding="utf-8"))
    listener = Listener(protocol.address(ws.layout.loki))
    try:
        assert _errand(["recall", "--error", "-"], monkeypatch) is None
    finally:
        listener.close()
    assert sys.stdin.buffer.read() == b"an error"


def test_a_stale_socket_is_replaced(ws: Workspace) -> None:
    path = protocol.address(ws.layout.loki)
    first = Listener(path)
    os.rename(path, f"{path}.old")  # as if its process had been killed
    Path(path).touch()
    second = Listener(path)
    first.close()
    assert Path(path).is_socket()
    second.close()
    assert not Path(path).exists()


def test_a_socket_that_was_cleared_away_is_made_again(ws: Workspace) -> None:
    path = Path(protocol.address(ws.layout.loki))
    listener = Listener(str(path))
    path.unlink()
    listener.keep()
    assert path.is_socket()
    listener.close()


def test_a_folder_that_others_may_enter_is_not_used(ws: Workspace, fresh: Path) -> None:
    fresh.mkdir()
    fresh.chmod(0o755)
    with pytest.raises(NoAnswer, match="others may enter"):
        Listener(protocol.address(ws.layout.loki))
    with pytest.raises(PermissionError):
        protocol.reach(protocol.address(ws.layout.loki), 1)


def test_a_link_instead_of_the_folder_is_not_followed(
    ws: Workspace, fresh: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    fresh.symlink_to(elsewhere)
    with pytest.raises(NoAnswer):
        Listener(protocol.address(ws.layout.loki))


@pytest.mark.parametrize(
    "message",
    [b"", b"\xff\xff\xff\xff", b"\x00\x00\x00\x05\x00\x00\x00\x09x", b"\x00\x00\x00\x02a"],
    ids=["nothing", "too long", "a part that is longer than all", "cut short"],
)
def test_a_message_that_makes_no_sense_is_garbled(message: bytes) -> None:
    here, there = socket.socketpair()
    with here, there:
        here.sendall(message)
        here.shutdown(socket.SHUT_WR)
        with pytest.raises(protocol.Garbled):
            protocol.receive(there)


def test_a_message_is_received_as_it_was_sent() -> None:
    here, there = socket.socketpair()
    parts = [b"", b"\x00\xff", b"x" * 100_000]
    with here, there:
        from threading import Thread

        sender = Thread(target=protocol.send, args=(here, parts))
        sender.start()
        assert protocol.receive(there) == parts
        sender.join()


def test_nonsense_on_the_socket_harms_nobody(asked: Path) -> None:
    path = protocol.address(asked / ".loki")
    for junk in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x00", b"\xff" * 64):
        connection = protocol.reach(path, 5)
        connection.sendall(junk)
        connection.close()
    for parts in ([b"run"], [b"run", b"/", b"x"], [b"run", b"/", b"9", b"a"]):
        connection = protocol.reach(path, 5)
        protocol.receive(connection)
        protocol.send(connection, parts)
        connection.close()
    assert server.ask(Workspace.open(asked).layout, server.STATE) is not None
    assert answered(asked, "status") is not None


def test_many_who_ask_at_once_all_get_their_answer(asked: Path) -> None:
    """From the watcher, or if it is busy by their own work."""
    asking = [
        subprocess.Popen([*PROGRAM, "recall", "contract tests"], cwd=asked, stdout=-1, stderr=-1)
        for _ in range(8)
    ]
    said = {process.communicate()[0] for process in asking}
    assert len(said) == 1
    assert b"Contract tests" in said.pop()


def test_episodes_and_answers_go_on_side_by_side(
    ws: Workspace, project: Path, watched: int
) -> None:
    for number in range(5):
        write_episode(ws, f"e{number}", session=f"s{number}", task_id=f"t{number}")
        assert run(project, "status").returncode == 0
    wait_for(lambda: told(project, "status")["state"]["standing"]["learned"] == 5)
    assert FAILED["goal"] in run(project, "recall", "fix the build").stdout


# -- started by a session --------------------------------------------------------------------------


def begin(project: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A session that begins in a project."""
    event = json.dumps({"session_id": "s", "cwd": str(project), "source": "startup"})
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    return run(project, "hook", "SessionStart", input=event, env={**environment, **variables})


def test_a_session_that_begins_starts_a_daemon_which_ends_by_itself(
    ws: Workspace, project: Path
) -> None:
    assert begin(project).stderr == ""
    wait_for(lambda: told(project, "status")["state"], "it never answered")
    try:
        state = told(project, "status")["state"]
        assert state["idle_minutes"] == 30
        assert "started by a session; ends after 30 idle minutes" in run(project, "daemon").stdout
        begin(project)
        assert told(project, "status")["state"]["process"] == state["process"]
    finally:
        told(project, "stop")


def test_a_daemon_that_a_user_started_says_so_and_stays(watched: int, project: Path) -> None:
    assert told(project, "status")["state"]["idle_minutes"] == 0
    assert "started by hand" in run(project, "daemon").stdout


@pytest.mark.parametrize("variables", [{"CI": "true"}, {"LOKI_DAEMON_AUTOSTART": "false"}])
def test_no_daemon_is_started_where_it_is_not_wanted(
    ws: Workspace, project: Path, variables: dict[str, str]
) -> None:
    begin(project, **variables)
    assert not place(ws.layout, "log").exists()


def test_a_daemon_of_a_session_holds_none_of_its_keys_and_files(
    ws: Workspace, project: Path
) -> None:
    begin(project, ANTHROPIC_API_KEY="k", CLAUDE_CODE_MESSAGING_TOKEN="t")  # noqa: S106
    wait_for(lambda: told(project, "status")["state"], "it never answered")
    try:
        process = Path(f"/proc/{told(project, 'status')['state']['process']}")
        variables = (process / "environ").read_bytes()
        assert b"ANTHROPIC" not in variables
        assert b"TOKEN" not in variables
        assert os.readlink(process / "fd/0") == os.devnull
        assert os.readlink(process / "fd/1") == str(place(ws.layout, "log"))
        assert os.readlink(process / "cwd") == "/"
    finally:
        told(project, "stop")


def test_an_idle_timer_is_over_when_nobody_asked_for_long_enough() -> None:
    clock = iter([0.0, 59.0, 60.0, 100.0, 120.0])
    idle = server.IdleTimer(60.0, lambda: next(clock))
    assert not idle.is_over()
    idle.restart()
    assert not idle.is_over()
    assert idle.is_over()
    assert not server.IdleTimer(0.0).is_over()


def test_a_daemon_ends_when_its_workspace_is_gone(ws: Workspace, project: Path) -> None:
    process = told(project, "start")["state"]["process"]
    wait_for(lambda: answered(project, "status"), "it never answered")
    shutil.rmtree(project)
    wait_for(lambda: not is_alive(process), "it is still there")
    assert not project.exists()


def test_a_daemon_whose_memory_is_gone_ends_and_makes_nothing_again(
    ws: Workspace, project: Path
) -> None:
    process = told(project, "start")["state"]["process"]
    wait_for(lambda: answered(project, "status"), "it never answered")
    shutil.rmtree(project / ".loki")
    wait_for(lambda: not is_alive(process), "it is still there")
    assert list(project.iterdir()) == []
