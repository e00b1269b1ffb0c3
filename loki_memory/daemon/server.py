"""The watcher's process: it answers on the local socket, and ends when it is asked to.

`watch` runs it in the foreground, `start` detached from any terminal. Both are the same: the
lock says whether one runs, the socket how it is doing. There is no file with a process number that
could outlive its process.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from loki_memory.daemon import client, protocol
from loki_memory.daemon.background import BackgroundState
from loki_memory.daemon.process import detached, is_watched, leading, place
from loki_memory.daemon.watcher import Watcher, WatcherState
from loki_memory.errors import NoAnswer
from loki_memory.files import disk
from loki_memory.files.layout import Layout
from loki_memory.workspace import Workspace

STATE, STOP, BUSY = b"state", b"stop", b"busy"
_LOG_BYTES, _LOGS = 1 << 20, 3  # of one log, and how many older ones are kept
_CLIENT_SECONDS = 0.5  # for a client to send its request: it is ready when it connects
_TURN_SECONDS = 0.05  # for a round to end; after that a client is faster alone
_START_SECONDS, _STOP_SECONDS = 20.0, 5.0
_LOOK_SECONDS = 60.0  # between checks that the socket exists: /tmp is cleared at times
_MINUTE = 60.0
_PAUSE = 0.02


class Request(NamedTuple):
    """A command to run: its words, folder, standard input and environment."""

    folder: str
    arguments: list[str]
    given: bytes  # standard input
    environment: dict[str, str]

    @classmethod
    def of(cls, parts: Sequence[bytes]) -> Request:
        """Parse what `client.request` wrote; raises ValueError if it did not."""
        _, folder, count, *rest = parts
        words, given, variables = rest[: int(count)], rest[int(count)], rest[int(count) + 1 :]
        pairs = (os.fsdecode(variable).partition("=") for variable in variables)
        environment = {n: value for n, _, value in pairs if n.startswith(client.VARIABLES)}
        return cls(os.fsdecode(folder), [os.fsdecode(w) for w in words], given, environment)


class Reply(NamedTuple):
    """The output of a command, and its exit code."""

    code: int
    out: bytes
    complaints: bytes


# Runs a command. The flag says that all changes to files are known: no need to compare them again.
Answering = Callable[[Request, bool], Reply | None]


def watch(
    workspace: Workspace, answering: Answering, log: Callable[[str], None], idle_minutes: int = 0
) -> None:
    """Watch, and answer, until SIGTERM, SIGINT or a message says stop, or the workspace is gone.

    With `idle_minutes`, also until nobody has asked for so long.
    """
    with leading(workspace.layout), _asked_by_signals() as stop_sign:
        watcher = Watcher(workspace, log, stop_sign.show, idle_minutes)
        log(f"watching {workspace.layout.root}")
        with listening(workspace.layout) as listener:
            watcher.start()
            server = Server(listener, watcher, answering, stop_sign)
            log(server.serve(IdleTimer(idle_minutes * _MINUTE)))
        watcher.stop()
        if watcher.has_failed:
            raise NoAnswer(f"the watcher of {workspace.layout.root} failed; its log says why")
        log("stopped")


class IdleTimer:
    """The time since a command was last asked for, and how long it may be; 0 is forever."""

    def __init__(self, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest, self._clock = longest, clock
        self._since = clock()

    def restart(self) -> None:
        """Begin anew, because somebody asks."""
        self._since = self._clock()

    def is_over(self) -> bool:
        return bool(self._longest) and self._clock() - self._since >= self._longest


class StopSign:
    """A request to stop, from a message or a signal: a pipe, because a signal may interrupt a
    thread that holds a lock.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def show(self) -> None:
        with suppress(OSError):  # it is full already, or its reader has ended
            os.write(self._writing, b".")

    def fileno(self) -> int:
        return self._reading


@contextmanager
def _asked_by_signals() -> Iterator[StopSign]:
    sign = StopSign()
    signals = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: sign.show()) for number in signals}
    try:
        yield sign
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- the socket ------------------------------------------------------------------------------------


class Listener:
    """The socket of a workspace, which only its owner can reach; the holder of the lock has it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._ours = (0, 0)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.open()

    def open(self) -> None:
        """Listen. A socket that is there belonged to a process that ended, for we hold the lock."""
        folder = os.path.dirname(self._path)
        os.makedirs(folder, 0o700, exist_ok=True)
        if not protocol.is_private(folder):
            raise NoAnswer(f"{folder} belongs to another user, or others may enter it")
        self.close()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        Path(self._path).unlink(missing_ok=True)
        self.socket.bind(self._path)
        os.chmod(self._path, 0o600)
        self.socket.listen()
        self._ours = self._mark()

    def keep(self) -> None:
        """Listen anew if the socket was removed."""
        if self._mark() != self._ours:
            self.open()

    def _mark(self) -> tuple[int, int]:
        with suppress(FileNotFoundError):
            status = os.lstat(self._path)
            return status.st_dev, status.st_ino
        return 0, 0

    def close(self) -> None:
        """Stop listening, and remove the socket if it is still ours."""
        self.socket.close()
        if self._ours != (0, 0) and self._mark() == self._ours:
            Path(self._path).unlink(missing_ok=True)


@contextmanager
def listening(layout: Layout) -> Iterator[Listener]:
    listener = Listener(protocol.address(layout.loki))
    try:
        yield listener
    finally:
        listener.close()


class Server:
    """A server that answers each client in a thread, so that no client can block another.

    Commands run one at a time. A client that finds the server busy runs the command itself.
    """

    def __init__(
        self, listener: Listener, watcher: Watcher, answering: Answering, sign: StopSign
    ) -> None:
        self._listener, self._watcher, self._answering = listener, watcher, answering
        self._sign, self._idle = sign, IdleTimer(0)

    def serve(self, idle: IdleTimer) -> str:
        """Serve until the stop sign is shown or the timer is over; returns the reason."""
        self._idle = idle
        while True:
            waiting: list[StopSign | socket.socket] = [self._sign, self._listener.socket]
            ready, _, _ = select.select(waiting, [], [], _LOOK_SECONDS)
            if self._sign in ready:
                return "asked to stop"
            if not ready:
                if idle.is_over():
                    return "nobody has asked for long enough"
                self._listener.keep()
                continue
            connection, _ = self._listener.socket.accept()
            Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError, protocol.Garbled), connection:
            connection.settimeout(_CLIENT_SECONDS)
            if protocol.is_own(connection):
                protocol.send(connection, [client.GREETING])
                protocol.send(connection, self._reply(protocol.receive(connection)))

    def _reply(self, parts: Sequence[bytes]) -> list[bytes]:
        verb = parts[0] if parts else b""
        if verb == client.RUN:
            self._idle.restart()
            return self._run(Request.of(parts))
        if verb == STOP:
            self._sign.show()
        return [STATE, json.dumps(described(self._watcher.state())).encode()]

    def _run(self, request: Request) -> list[bytes]:
        """Run a command between two rounds: both use the process as a whole."""
        if not self._watcher.turn.acquire(timeout=_TURN_SECONDS):
            return [BUSY]
        try:
            answer = self._answering(request, self._watcher.is_current())
            self._watcher.answered += answer is not None
        finally:
            self._watcher.turn.release()
        if answer is None:
            return [BUSY]
        return [client.ANSWER, b"%d" % answer.code, answer.out, answer.complaints]


def described(state: WatcherState) -> dict[str, Any]:
    return {**state._asdict(), "standing": state.standing._asdict()}


def parsed(state: dict[str, Any]) -> WatcherState:
    """The state that a watcher described; raises ValueError if it is of another version."""
    try:
        return WatcherState(**{**state, "standing": BackgroundState(**state["standing"])})
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from None


# -- from outside --------------------------------------------------------------------------------


def ask(layout: Layout, message: bytes) -> WatcherState | None:
    """Send a message to the watcher of a workspace and return its state; None if none answers."""
    try:
        connection = protocol.reach(protocol.address(layout.loki), _CLIENT_SECONDS)
        protocol.receive(connection)  # a watcher of any version can be stopped
        protocol.send(connection, [message])
        state = parsed(json.loads(protocol.receive(connection)[1]))
    except (OSError, ValueError, IndexError, protocol.Garbled):
        return None
    return state


def start(layout: Layout, environment: Mapping[str, str]) -> WatcherState:
    """Start a watcher that outlives this process, and wait until it answers.

    Returns its state; if one runs already, the state of that one.
    """
    process = None if is_watched(layout) else detached(layout, environment)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        state = ask(layout, STATE)
        if state is not None:
            return state
        if process is not None and process.poll() is not None and not is_watched(layout):
            break
        time.sleep(_PAUSE)
    raise NoAnswer(f"the watcher of {layout.root} did not start; `loki-mem daemon logs` says why")


def stop(layout: Layout) -> bool:
    """Stop the watcher of a workspace and wait for its end; False if there is none."""
    if not is_watched(layout):
        return False
    ask(layout, STOP)
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline:
        if not is_watched(layout):
            return True
        time.sleep(_PAUSE)
    raise NoAnswer(f"the watcher of {layout.root} does not stop; end its process")


def log_to_file(layout: Layout) -> Callable[[str], None]:
    """Return a function that writes lines to the workspace's log; old logs are dropped."""
    path = place(layout, "log")
    disk.make_folder(path.parent)
    disk.refuse_links(path)
    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=_LOGS, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    logger = logging.getLogger("loki_memory.watch")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    return logger.info


def last_lines(layout: Layout, number: int) -> list[str]:
    """The end of the log."""
    try:
        text = place(layout, "log").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return text.splitlines()[-number:]
