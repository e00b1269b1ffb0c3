"""Run a read-only command in the watcher of its workspace, if one is running.

The watcher has everything loaded and gives the same answer sooner. Whenever anything is in doubt
(no watcher, another version, an option that is not known here, no answer in time) the command runs
in its own process. So does a command at a terminal, which shows colours and progress.
"""

from __future__ import annotations

import os
import select
import sys
import time

from loki_memory.daemon import protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

RUN, ANSWER = b"run", b"answer"
COMMANDS = ("recall", "context", "status")
# The hooks that come often and answer at once.
HOOKS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop")
# Variables of the environment that the program reads.
VARIABLES = (
    *("LOKI_", "CLAUDE", "CODEX", "GIT_", "HOME", "NO_COLOR", "AI_AGENT", "HOOK_PARENT"),
    "MEMORY_ENABLED",  # a switch of another system
)
_NOT_HERE = ("--help", "-h", "--as-of")  # laid out for a terminal; rare, and large in memory
_GREETING_SECONDS, _ANSWER_SECONDS = 0.1, 2.0
_ANSWERED = (ANSWER, "exit code", "standard output", "standard error")
_NO_OUTPUT = 9  # the exit code of a command that cannot print its result


def _program() -> bytes:
    """Identify this program as it is installed: only the same one gives the same answers."""
    folder = os.path.dirname(__file__)
    status = os.stat(f"{folder}/__init__.py")
    return os.fsencode(f"{folder} {status.st_mtime_ns} {status.st_ino}")


GREETING = _program()  # of this process, even if another version is installed while it runs


def run(arguments: Sequence[str]) -> int | None:
    """Run a command in the watcher and return its exit code; None if it must run here."""
    if not _is_plain_output():
        return None
    try:
        answer = _answer(list(arguments))
    except (OSError, ValueError, protocol.Garbled):
        return None
    return _print(answer) if len(answer) == len(_ANSWERED) and answer[0] == ANSWER else None


def _is_plain_output() -> bool:
    """Check if output goes to a program that takes UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None or stream.isatty() or stream.encoding.lower() != "utf-8":
            return False
    return True


def _answer(arguments: list[str]) -> list[bytes]:
    """Ask the watcher; nothing if there is none, or if it does not run this command."""
    start, words = read(arguments)
    path = protocol.address(loki_of(start)) if is_for_us(words) else ""
    if not path or not os.path.exists(path):
        return []
    given = _standard_input(words)
    connection = protocol.reach(path, _GREETING_SECONDS)
    if protocol.receive(connection) != [GREETING]:
        return []
    connection.settimeout(_ANSWER_SECONDS)
    protocol.send(connection, request(arguments, given))
    return protocol.receive(connection)


def read(arguments: list[str]) -> tuple[str, list[str]]:
    """The folder of the command, and its words from its name on; none if they are not plain."""
    start, at = "", 0
    while at < len(arguments) and arguments[at].startswith("-"):
        if arguments[at] == "-C" and at + 1 < len(arguments):
            start, at = arguments[at + 1], at + 1
        elif arguments[at] != "--json":
            return "", []
        at += 1
    return start or os.environ.get("LOKI_WORKSPACE") or os.getcwd(), arguments[at:]


def is_for_us(words: list[str]) -> bool:
    if not words or any(word.split("=")[0] in _NOT_HERE for word in words):
        return False
    return words[0] in COMMANDS or (words[0] == "hook" and words[-1] in HOOKS)


def loki_of(start: str) -> str:
    """The nearest `.loki` folder. The watcher looks again, and refuses one that is not its own."""
    place = os.path.abspath(start)
    while not os.path.isdir(f"{place}/.loki"):
        above = os.path.dirname(place)
        if above == place:
            raise FileNotFoundError(start)
        place = above
    return f"{place}/.loki"


def _standard_input(words: list[str]) -> bytes:
    """Read standard input, and put it back in case this process runs the command itself."""
    if sys.stdin is None or not (words[0] == "hook" or words[-1].endswith("-") or "-" in words):
        return b""
    import io

    given = read_event(sys.stdin.buffer) if words[0] == "hook" else sys.stdin.buffer.read()
    sys.stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8", errors="surrogateescape")
    return given


def request(arguments: Sequence[str], given: bytes) -> list[bytes]:
    """Build the message: `run`, folder, number of words, words, standard input, environment."""
    words = [os.fsencode(word) for word in arguments]
    return [RUN, os.fsencode(os.getcwd()), b"%d" % len(words), *words, given, *_environment()]


def _environment() -> Iterator[bytes]:
    yield b"HOOK_PARENT=%d" % os.getppid()  # a hook looks at the client that started it
    for name, value in os.environ.items():
        if name.startswith(VARIABLES):
            yield os.fsencode(f"{name}={value}")


def _print(answer: list[bytes]) -> int:
    """Print the answer; from here on this process does not run the command itself."""
    _, code, out, complaints = answer
    try:
        for stream, data in ((sys.stdout, out), (sys.stderr, complaints)):
            stream.buffer.write(data)
            stream.flush()
    except BrokenPipeError:  # the reader closed the pipe
        return 0
    except OSError:
        return _NO_OUTPUT
    return int(code)


# -- the standard input of a hook ------------------------------------------------------------------

# Some clients never close the pipe. Then the input ends with the object that it holds, or when the
# client has had time enough.

MOST_BYTES = 4_000_000  # a tool may answer with a whole file; no hook needs more than this
_BLOCK = 1 << 20
_SECONDS = 1.5  # for all of it: a client has it ready when it starts a hook
_LOOK_MS = 20  # without a new byte, before a look at whether it is complete


def read_event(stream: IO[bytes]) -> bytes:
    """Read all input, so that the client is never blocked; empty if it is too long."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # it is held in memory
        data = stream.read()
    else:
        data = _read(descriptor, time.monotonic() + _SECONDS)
    return data if len(data) <= MOST_BYTES else b""


def _read(descriptor: int, deadline: float) -> bytes:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    data = b""
    while time.monotonic() < deadline:
        if poll.poll(_LOOK_MS):
            block = os.read(descriptor, _BLOCK)
            if not block:
                break
            data += block[: MOST_BYTES + 1 - len(data)]
        elif _is_complete(data):
            break
    return data


def _is_complete(data: bytes) -> bool:
    """Check if the bytes are a whole JSON object, however long the pipe stays open."""
    if not data.rstrip().endswith(b"}"):
        return False
    import json

    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
