"""The protocol between a command and the watcher of its workspace, over a Unix socket.

The socket is in a folder that only its owner can enter, under a short path, because the name of
a socket must fit into 108 bytes. Its name contains the device and inode of the `.loki` folder, so
that every path to a workspace leads to one watcher. A message is a list of byte strings, each
preceded by its length in four bytes, the whole preceded by its own length.

A hook connects before every prompt and must not take twice as long as a Python that does nothing.
`json`, `socket` and `typing` alone would take that time, so this module does without them.
"""

from __future__ import annotations

import _socket
import os
import stat
import sys
from _socket import SOCK_STREAM, SOL_SOCKET, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CAN_LISTEN = hasattr(_socket, "AF_UNIX")  # Windows has no such sockets, and so no watcher
LONGEST = 16 << 20  # bytes of a message; the output of a command is far shorter
_NAME_LIMIT = 100  # bytes of a path; the kernel takes 108, macOS 104
_LENGTH = 4
_PEERCRED = 17 if sys.platform == "linux" else 0  # SO_PEERCRED: three numbers: process, user, group


class Garbled(Exception):
    """A message that cannot be parsed."""


def folder() -> str:
    """The folder of all sockets of this user."""
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    if named.startswith("/") and len(named) < _NAME_LIMIT // 2 and os.path.isdir(named):
        return f"{named}/loki-memory"
    return f"/tmp/loki-memory-{os.getuid()}"  # noqa: S108 - entered only if it is ours alone


def name_of(loki: str | os.PathLike[str]) -> str:
    """The name of a workspace in file names of its watcher, by its `.loki` folder."""
    status = os.stat(loki)
    return f"{status.st_dev:x}-{status.st_ino:x}"


def address(loki: str | os.PathLike[str]) -> str:
    """The socket path of a workspace's watcher, whether or not one runs."""
    return f"{folder()}/{name_of(loki)}.sock"


def is_private(path: str) -> bool:
    """Check if a folder is ours and only we can enter it."""
    status = os.lstat(path)
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return is_ours and not status.st_mode & 0o077


def is_own(connection: socket) -> bool:
    """Check if the peer is a process of our own user; without SO_PEERCRED the folder must do."""
    if not _PEERCRED:
        return True
    credentials = connection.getsockopt(SOL_SOCKET, _PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.getuid()


def reach(path: str, seconds: float) -> socket:
    """Connect to the watcher that listens there; raises OSError if there is none of ours."""
    if not is_private(os.path.dirname(path)):
        raise PermissionError(path)
    connection = socket(_socket.AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(path)
        if not is_own(connection):
            raise PermissionError(path)
    except OSError:
        connection.close()
        raise
    return connection


def send(connection: socket, parts: Sequence[bytes]) -> None:
    body = b"".join(len(part).to_bytes(_LENGTH, "big") + part for part in parts)
    connection.sendall(len(body).to_bytes(_LENGTH, "big") + body)


def receive(connection: socket) -> list[bytes]:
    """Receive a message; raises Garbled if it is too long, cut short, or cannot be parsed."""
    size = int.from_bytes(_exactly(connection, _LENGTH), "big")
    if size > LONGEST:
        raise Garbled
    body, parts, at = _exactly(connection, size), [], 0
    while at < size:
        end = at + _LENGTH + int.from_bytes(body[at : at + _LENGTH], "big")
        if end > size:
            raise Garbled
        parts.append(body[at + _LENGTH : end])
        at = end
    return parts


def _exactly(connection: socket, size: int) -> bytes:
    body = b""
    while len(body) < size:
        chunk = connection.recv(min(size - len(body), 1 << 16))
        if not chunk:
            raise Garbled
        body += chunk
    return body
