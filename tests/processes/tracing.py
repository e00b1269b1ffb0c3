"""Run an action in a process of its own while strace injects a fault into its system calls.

The process is a fork of the test that waits until strace is attached: only what the action itself
calls is counted, and each run takes milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

from loki_memory.errors import LokiMemoryError

# C libraries differ in which of several equal calls they use; `?` lets an unknown one pass.
CALLS = {
    "open": "?open,openat",
    "read": "read",
    "write": "write",
    "fsync": "fsync",
    "syncfs": "syncfs",
    "rename": "?rename,?renameat,?renameat2",
    "unlink": "?unlink,unlinkat",
    "mkdir": "?mkdir,mkdirat",
    "rmdir": "?rmdir",
    "index": "pwrite64,fdatasync",  # only SQLite uses these
    "durable": "write,fsync,syncfs,?rename,?renameat,?renameat2",
}
_PR_SET_PTRACER, _ANYONE = 0x59616D61, ctypes.c_ulong(-1)


class Outcome(NamedTuple):
    """How an action ended."""

    injected: bool
    killed: bool
    said: str  # what it returned, or the error's class and sentence; empty if it was killed


def traced(
    action: Callable[[], object], call: str, effect: str, log: Path, only: Path | None = None
) -> Outcome:
    """Inject an effect, as strace spells it, into a call; into those on one path if it is given."""
    ours, its = socket.socketpair()
    child = os.fork()
    if not child:
        _act(action, its)
    its.close()
    ours.recv(1)
    strace = _attached(child, call, effect, log, only)
    ours.send(b"!")
    _, status = os.waitpid(child, 0)
    said = ours.recv(1 << 16).decode()
    ours.close()
    strace.communicate()
    killed = os.WIFSIGNALED(status)
    return Outcome(killed or "INJECTED" in log.read_text(), killed, said)


def _act(action: Callable[[], object], parent: socket.socket) -> NoReturn:
    """Do it when told, and answer through a socket: `send` is none of the calls that fail."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYONE, 0, 0, 0)
    parent.send(b"!")
    parent.recv(1)
    try:
        said = f"returned {action()!r}"
    except LokiMemoryError as error:
        said = f"{type(error).__name__}: {error}"
    except BaseException as error:  # noqa: BLE001 - nothing may run past this point
        said = f"raw {type(error).__name__}: {error}"
    parent.send(said.encode())
    os._exit(0)


def _attached(
    child: int, call: str, effect: str, log: Path, only: Path | None
) -> subprocess.Popen[bytes]:
    calls = CALLS[call]
    faults = ["-e", f"trace={calls}", "-e", f"inject={calls}:{effect}"]
    if only:
        faults += ["-P", str(only)]
    strace = subprocess.Popen(
        ["strace", "-p", str(child), "-o", str(log), *faults],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert strace.stderr is not None
    said = strace.stderr.readline().decode()
    if "attached" not in said:
        os.kill(child, 9)
        os.waitpid(child, 0)
        strace.communicate()
        raise OSError(said)
    return strace


def can_trace(folder: Path) -> bool:
    """Whether strace is here, may attach to a process, and does inject."""
    if shutil.which("strace") is None:
        return False
    try:
        found = traced(lambda: os.listdir(folder), "open", "error=EIO:when=1", folder / "log")
    except OSError:
        return False
    return found.injected and found.said.startswith("raw OSError")
