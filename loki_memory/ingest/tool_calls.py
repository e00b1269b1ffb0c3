"""Calls of tools as turns, for clients that name tools and their arguments in their own way.

Every client has a shell and can read, edit and write files; only the spelling differs. The names
are brought into one spelling here, so that an episode reads the same whichever client was used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loki_memory.ingest.seen_words import marks
from loki_memory.ingest.turns import (
    CALL,
    RESULT,
    Hunk,
    Turn,
    argument_text,
    first_hunks,
    is_ours,
    result_text,
    writable,
)
from loki_memory.ingest.written import (
    given_hunks,
    patch_prose,
    patch_text_hunks,
    patched_files,
    unified_hunks,
    written_prose,
)

SHELL = "shell"
_TOOLS = {
    "bash": SHELL,
    "powershell": SHELL,
    "run_shell_command": SHELL,
    "shell_command": SHELL,
    "exec_command": SHELL,
    "local_shell": SHELL,
    "container.exec": SHELL,
    "read": "Read",
    "read_file": "Read",
    "view": "Read",
    "edit": "Edit",
    "replace": "Edit",
    "multiedit": "Edit",
    "write": "Write",
    "write_file": "Write",
    "create": "Write",
    "webfetch": "WebFetch",
    "web_fetch": "WebFetch",
    "websearch": "WebSearch",
    "web_search": "WebSearch",
    "google_web_search": "WebSearch",
    "codesearch": "WebSearch",
}
_ARGUMENTS = {
    "filePath": "file_path",
    "absolute_path": "file_path",
    "oldString": "old_string",
    "old_str": "old_string",
    "newString": "new_string",
    "new_str": "new_string",
    "file_text": "content",
}
_TARGETS = ("command", "file_path", "path", "pattern", "url", "query", "description", "prompt")
# What clients put beside the words of a user or a tool: above all what hooks said. They escape it,
# so that our own fence is not found by its brackets.
_ADDED = re.compile(
    r"<(session_context|hook_context|qwen:[\w-]+)\b[^>]*>.*?(?:</\1>|\Z)"
    r"|&lt;loki-memory\b.*?(?:&lt;/loki-memory&gt;|\Z)",
    re.DOTALL,
)
_PATCH = "*** Begin Patch"
_ON_FILES = frozenset({"Read", "Edit", "Write"})


def called(base: Turn, call: str, tool: str, given: Any) -> list[Turn]:
    """The turn of a call; none if it asks memory itself."""
    tool, fields = _TOOLS.get(tool, tool), _arguments(given)
    patch = next((v for v in (given, *fields.values()) if isinstance(v, str) and _PATCH in v), "")
    if patch:
        turn = patched(base, call, tuple(map(argument_text, patched_files(patch))))
        return [turn._replace(written=patch_prose(patch), hunks=patch_text_hunks(patch))]
    if tool in _ON_FILES and "file_path" not in fields and "path" in fields:
        fields = {**fields, "file_path": fields["path"]}
    target = next((v for n in _TARGETS if isinstance(v := fields.get(n), str) and v), "")
    if not tool or is_ours(tool, target):
        return []
    path = fields.get("file_path")
    files = (argument_text(path),) if isinstance(path, str) and path else ()
    turn = base._replace(kind=CALL, key=f"{call}:in", call=call, tool=tool, files=files)
    written, hunks = written_prose(tool, fields), given_hunks(fields)
    return [turn._replace(text=argument_text(target), written=written, hunks=hunks)]


def patched(base: Turn, call: str, files: tuple[str, ...]) -> Turn:
    """The turn of a patch in the form that GPT models write, whichever client carries it out."""
    turn = base._replace(kind=CALL, key=f"{call}:in", call=call, tool="apply_patch", files=files)
    return turn._replace(text=files[0] if files else "")


def answered(
    base: Turn, call: str, text: str, *, failed: bool, hunks: tuple[Hunk, ...] = ()
) -> Turn:
    """The turn of a result."""
    answer = without_added(text)
    said = result_text(answer, failed=failed)
    turn = base._replace(kind=RESULT, key=f"{call}:out", call=call, text=said, failed=failed)
    return turn._replace(hunks=hunks, seen=marks(answer))


def without_added(text: str) -> str:
    """A text as its author wrote it, without what the client added."""
    return _ADDED.sub(" ", text) if "<" in text or "&lt;" in text else text


def diff_hunks_of(path: str, diff: str) -> tuple[Hunk, ...]:
    """The hunks of a unified diff of one file; none if the file is unknown."""
    return first_hunks(unified_hunks(argument_text(path), diff)) if path else ()


def _arguments(given: Any) -> dict[str, Any]:
    """Arguments in one spelling; none if they are no object."""
    fields: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    return {_ARGUMENTS.get(name, name): value for name, value in fields.items()}


# -- fields of another program's values, where what is missing or of another kind says nothing -----


def text_of(fields: Any, name: str) -> str:
    """A field that holds text; empty if it holds none."""
    value = fields.get(name) if isinstance(fields, Mapping) else None
    return writable(value) if isinstance(value, str) else ""


def fields_of(fields: Any, name: str) -> Mapping[str, Any]:
    """A field that holds an object; an empty one if it holds none."""
    value = fields.get(name) if isinstance(fields, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def is_failure(code: Any) -> bool:
    """Check if an exit code tells of a failure."""
    return isinstance(code, int) and not isinstance(code, bool) and code != 0
