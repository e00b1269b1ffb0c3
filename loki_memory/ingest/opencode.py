"""OpenCode's sessions: rows of `~/.local/share/opencode/opencode.db`, which holds all projects.

A session is named like a file below the database, `opencode.db/ses_…`, and its parts are read like
the lines of one, in the order in which OpenCode stored them: a value has the part, the message that
it belongs to, and the folder of the session. A part that OpenCode still changes (a call that runs,
a text that is being written) waits, and so do all behind it. Once a later message exists, nobody
will finish it, and it is read as it is.

The database is opened for reading only; OpenCode keeps a write-ahead log, so that neither of us
waits for the other. Versions before 1.2 kept a file for each part and were moved into the database
by the first start of a later one; these files are not read.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from loki_memory.errors import InvalidRecord
from loki_memory.ingest.json_lines import LONGEST, Piece, Value, decoded
from loki_memory.ingest.tool_calls import (
    answered,
    called,
    diff_hunks_of,
    fields_of,
    is_failure,
    text_of,
)
from loki_memory.ingest.turns import (
    COMPACT,
    PROMPT,
    SAY,
    Hunk,
    Turn,
    first_hunks,
    flag_in,
    id_in,
    instant_in,
    name_in,
    prompt_text,
    prose_text,
    summary_text,
    text_in,
)

_SILENT = {
    "reasoning",
    "file",
    "step-start",
    "step-finish",
    "snapshot",
    "patch",
    "agent",
    "retry",
    "compaction",
    "subtask",
}
# Tools of OpenCode itself; any other one is of an MCP server or a plugin.
_OWN = re.compile(
    r"bash|read|edit|write|multiedit|apply_patch|patch|glob|grep|list|task|todowrite|todoread"
    r"|webfetch|websearch|codesearch|skill|question|lsp|batch|plan_enter|plan_exit|invalid"
)
_SERVER = "loki_"  # in front of the names of our tools
_ABORTED = "Tool execution aborted"


class OpenCode:
    """Parts of messages as turns."""

    name = "opencode"

    @classmethod
    def reading(cls, first: Mapping[str, Any]) -> Self | None:
        """The dialect of a session of the database; each of its values tells the session."""
        return cls() if {"part", "message", "session"} <= first.keys() else None

    def turns(self, value: Mapping[str, Any]) -> list[Turn] | None:
        kind = text_in(value, "type")
        if kind in _SILENT:
            return []
        if kind not in {"text", "tool"}:
            return None
        part, message = _object(value, "part"), _object(value, "message")
        base = Turn(
            id_in(value, "id"),
            id_in(value, "session"),
            _instant(value, "at"),
            "",
            cwd=name_in(value, "cwd"),
            agent=self.name,
        )
        if kind == "tool":
            return _tool(base, part)
        is_hidden = value.get("is_subagent") is True or flag_in(part, "synthetic")
        return _text(base, part, message, is_hidden=is_hidden)


def _text(
    base: Turn, part: Mapping[str, Any], message: Mapping[str, Any], *, is_hidden: bool
) -> list[Turn]:
    text = text_in(part, "text")
    if text_in(message, "role") == "user":
        typed = "" if is_hidden or flag_in(part, "ignored") else prompt_text(_unquoted(text))
        return [base._replace(kind=PROMPT, text=typed)] if typed else []
    if message.get("summary") is True:
        return [base._replace(kind=COMPACT, text=summary_text(text))]
    said = prose_text(text)
    return [base._replace(kind=SAY, text=said)] if said else []


def _unquoted(text: str) -> str:
    """A prompt as it was typed: `opencode run` puts one of several words in quotation marks."""
    inner = text[1:-1]
    is_quoted = len(text) > len('""') and text[0] == text[-1] == '"'
    return inner.replace('\\"', '"') if is_quoted and " " in inner else text


def _tool(base: Turn, part: Mapping[str, Any]) -> list[Turn]:
    state, call = _object(part, "state"), id_in(part, "callID")
    turns = called(base, call, _name(name_in(part, "tool")), state.get("input"))
    status = text_in(state, "status")
    if status not in {"completed", "error"} or text_of(state, "error") == _ABORTED:
        return turns
    at = base._replace(at=_instant(fields_of(state, "time"), "end"))
    metadata = fields_of(state, "metadata")
    failed = status == "error" or is_failure(metadata.get("exit"))
    text = text_in(state, "error") if status == "error" else text_in(state, "output")
    return [*turns, answered(at, call, text, failed=failed, hunks=_hunks(state, metadata))]


def _hunks(state: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[Hunk, ...]:
    """The lines that a call changed: in the file of an edit, or in each file of a patch."""
    patched = metadata.get("files")
    if not isinstance(patched, list):
        path = text_of(fields_of(state, "input"), "filePath")
        return diff_hunks_of(path, text_of(metadata, "diff"))
    diffs = ((text_of(file, "filePath"), text_of(file, "patch")) for file in patched)
    return first_hunks(hunk for path, diff in diffs for hunk in diff_hunks_of(path, diff))


def _name(tool: str) -> str:
    """The name of a tool, of another server's in the form that other clients use."""
    if tool.startswith(_SERVER):
        return f"mcp__loki__{tool.removeprefix(_SERVER)}"
    return tool if _OWN.fullmatch(tool) else f"mcp__{tool}"


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    if not isinstance(found, Mapping):
        raise InvalidRecord("is no object", field=name)
    return found


def _instant(value: Mapping[str, Any], name: str) -> str:
    """A moment that is counted in milliseconds."""
    count = value.get(name)
    if not isinstance(count, int) or isinstance(count, bool):
        raise InvalidRecord("is no number of milliseconds", field=name)
    try:
        when = datetime.fromtimestamp(count / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        when = "-"
    return instant_in({name: when}, name)


# -- the database ----------------------------------------------------------------------------------

_SECONDS = 2.0  # to wait for a lock, which only a migration of OpenCode holds for long
_SESSIONS = "SELECT id FROM session ORDER BY time_created, id"
_SESSION = "SELECT directory, parent_id FROM session WHERE id = :session"
_STATE = """
    SELECT count(*), CAST(coalesce(max(time_updated), 0) AS INTEGER)
    FROM part WHERE session_id = :session
"""
_LAST = """
    SELECT id FROM message WHERE session_id = :session ORDER BY time_created DESC, id DESC LIMIT 1
"""
# Only ids are sorted: the data of a long session would fill the memory.
_IDS = "SELECT id FROM part WHERE session_id = :session ORDER BY time_created, id"
# Data that is too long to be held is not even fetched.
_PART = """
    SELECT part.id, part.message_id, part.time_created,
           CASE WHEN length(part.data) <= :longest THEN part.data END,
           CASE WHEN length(message.data) <= :longest THEN message.data END
    FROM part LEFT JOIN message ON message.id = part.message_id
    WHERE part.id = :part
"""


class _MessageRow(NamedTuple):
    """A part as it is stored."""

    id: Any
    message_id: Any
    at: Any
    part: Any
    message: Any


def is_database(path: Path) -> bool:
    return path.suffix == ".db" and path.is_file()


def is_session(path: Path) -> bool:
    """Check if a path names a session of a database."""
    return is_database(path.parent)


def sessions(database: Path) -> list[Path]:
    """The sessions of a database as paths below it. Raises OSError."""
    with closing(_connected(database)) as connection:
        return [database / str(name) for (name,) in _rows(connection, database, _SESSIONS)]


def session_folder(path: Path) -> str:
    """The folder in which a session began. Raises OSError."""
    with closing(SessionRows(path)) as rows:
        return rows.folder


class SessionRows:
    """The parts of one session."""

    def __init__(self, path: Path) -> None:
        self._database, self._session = path.parent, path.name
        self._connection = _connected(self._database)
        try:
            folder, parent = self._about()
        except OSError:
            self.close()
            raise
        self.folder = folder if isinstance(folder, str) else ""
        # An agent that works for another one is part of the session of that.
        self._fields: Value = {
            "session": parent or self._session,
            "is_subagent": parent is not None,
            "cwd": folder,
        }

    def state(self) -> tuple[int, int]:
        count, changed = next(self._select(_STATE))
        return count, changed

    def pieces(self, start: int = 0, line: int = 0) -> Iterator[Piece]:
        last = next(self._select(_LAST), None)
        parts = self._ids[start:]
        rows = (_MessageRow._make(row) for part in parts for row in self._select(_PART, part))
        for number, row in enumerate(rows, line + 1):
            values, reason = _values(row, self._fields)
            if (row.message_id,) == last and any(map(_is_open, values)):
                yield Piece(number, 1, number - 1, waits=True)
                return
            yield Piece(number, 1, number, values, reason)

    def fingerprint(self, end: int) -> str:
        """Digest of the first and the last part that were read."""
        if not 0 < end <= len(self._ids):
            return ""
        ends = repr((self._ids[0], self._ids[end - 1]))
        return blake2b(ends.encode("utf-8", "replace"), digest_size=16).hexdigest()

    def close(self) -> None:
        self._connection.close()

    @cached_property
    def _ids(self) -> list[Any]:
        return [part for (part,) in self._select(_IDS)]

    def _about(self) -> tuple[Any, ...]:
        for row in self._select(_SESSION):
            return row
        raise FileNotFoundError(2, "no such session", f"{self._database}/{self._session}")

    def _select(self, statement: str, part: Any = None) -> Iterator[tuple[Any, ...]]:
        given = {"session": self._session, "part": part, "longest": LONGEST}
        return _rows(self._connection, self._database, statement, given)


def _connected(database: Path) -> sqlite3.Connection:
    try:
        uri = f"file:{quote(str(database))}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, timeout=_SECONDS)
    except sqlite3.Error as error:
        raise OSError(5, str(error), str(database)) from None
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def _rows(
    connection: sqlite3.Connection,
    database: Path,
    statement: str,
    given: Mapping[str, Any] | None = None,
) -> Iterator[tuple[Any, ...]]:
    try:
        yield from connection.execute(statement, given or {})
    except sqlite3.Error as error:  # no database of OpenCode, or of another version
        raise OSError(5, str(error), str(database)) from None


def _values(row: _MessageRow, fields: Value) -> tuple[tuple[Value, ...], str]:
    """A row as one value: what OpenCode wrote, and beside it what the columns say."""
    found: list[Value] = []
    for text in (row.part, row.message):
        if not isinstance(text, str):
            return (), f"is no text of at most {LONGEST >> 20} MB"
        values, reason = decoded(text.encode("utf-8", "replace"))
        if reason or len(values) != 1:
            return (), reason or "is not one JSON object"
        found += values
    part, message = found
    columns = {"id": row.id, "message_id": row.message_id, "at": row.at}
    return ({**fields, **columns, "type": part.get("type"), "part": part, "message": message},), ""


def _is_open(value: Value) -> bool:
    """Check if OpenCode will still change a part."""
    part, message = value["part"], value["message"]
    state = part.get("state")
    if part.get("type") == "tool":
        return isinstance(state, dict) and state.get("status") in {"pending", "running"}
    time = part.get("time")
    is_written = part.get("type") == "text" and message.get("role") == "assistant"
    return is_written and not (isinstance(time, dict) and time.get("end"))
