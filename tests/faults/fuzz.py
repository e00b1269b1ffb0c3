"""Doors through which foreign bytes come in, and input to try on them.

A door is a function of bytes or of a JSON value; it returns, or raises one of our own errors.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st

from loki_memory.config_file import load
from loki_memory.errors import LokiMemoryError
from loki_memory.files.codec import decode, read_json
from loki_memory.files.redaction import redact
from loki_memory.history.merge import merge
from loki_memory.ingest.json_lines import decoded
from loki_memory.ingest.read_transcript import DIALECTS
from loki_memory.ingest.turns import checked
from loki_memory.models import MODELS, Memory, parse
from loki_memory.models.ids import check_id, file_stem

# Words that readers look for, so that random values go further than the first line of code.
WORDS = [
    *("type", "message", "content", "role", "user", "assistant", "uuid", "sessionId", "timestamp"),
    *("cwd", "text", "tool_use", "tool_result", "id", "name", "input", "is_error", "payload"),
    *("response_item", "session_meta", "function_call", "arguments", "output", "data", "kind"),
    *("goal", "errors_encountered", "evidence", "links", "statement", "pattern", "confidence"),
    *("2026-03-02T09:10:00.000Z", "0001-01-01T00:00:00+14:00", "event_msg", "parts", "function"),
    *("resolutions", "action_log", "importance", "scope", "status", "valid_from", "origin"),
]
TEXTS = st.sampled_from(WORDS) | st.text(max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=6),
    max_leaves=20,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=10)
BYTES = st.binary(max_size=300) | OBJECTS.map(lambda value: json.dumps(value).encode())
_SOUND = {"statement": "S", "pattern": "P", "goal": "G", "timestamp": "2026-03-02T09:10:00Z"}
PATHS = {
    "fact": "semantic/facts/fact-x.json",
    "pattern": "semantic/patterns/sem-x.json",
    "episode": "episodic/2026-01-06/ep-x.json",
    "ledger": "ledgers/a.json",
    "handoff": "handoffs/handoff-x.json",
    "skill": "skills/x.md",
}


def read_records(data: bytes) -> None:
    for path in PATHS.values():
        _refusing(lambda path=path: decode(path, data))


def read_skill(data: bytes) -> None:
    _refusing(lambda: decode(PATHS["skill"], b"---\n" + data + b"\n---\nbody\n"))


def read_lines(data: bytes) -> None:
    values, reason = decoded(data)
    assert bool(values) != bool(reason)
    for value in values:
        read_turns(value)


def read_turns(value: dict[str, Any]) -> None:
    """Read a value of a transcript, as each client might have written it."""
    for dialect in DIALECTS:
        _refusing(lambda dialect=dialect: _turns(dialect, value))


def _turns(dialect: Any, value: dict[str, Any]) -> None:
    reader = dialect.reading(value)
    if reader is not None:
        for turn in reader.turns(value) or ():
            checked(turn)


def build_records(value: dict[str, Any]) -> None:
    for model in MODELS.values():
        _refusing(lambda model=model: parse(model, value))


def name_files(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    _refusing(lambda: check_id(text))
    assert "/" not in file_stem(text)


def redact_text(data: bytes) -> None:
    once = redact(data.decode("utf-8", "replace"))
    assert redact(once) == once


def read_settings(data: bytes) -> None:
    path = Path(_folder().name, "config.toml")
    path.write_bytes(data)
    _refusing(lambda: load(path, path.with_name("none"), {}))


@cache
def _folder() -> TemporaryDirectory[str]:
    """Make one folder for all files: to make and remove one each time takes most of the time."""
    return TemporaryDirectory()


def merge_records(value: dict[str, Any]) -> None:
    """Merge two versions of a record that differ in whatever the value says."""
    try:
        value = read_json(json.dumps(value).encode("utf-8", "surrogatepass"))
    except LokiMemoryError:  # no file can hold it
        return
    for model in MODELS.values():
        _refusing(lambda model=model: _merged(model, value))


def _merged(model: type[Memory], value: dict[str, Any]) -> Memory:
    ours = parse(model, {**_SOUND, **value})
    return merge(parse(model, _SOUND), ours, parse(model, {**_SOUND, "title": "Another"}))


def _refusing(read: Callable[[], object]) -> None:
    try:
        read()
    except LokiMemoryError as error:
        assert str(error)  # noqa: PT017 - an error is one of two good ends


OF_BYTES: dict[str, Callable[[bytes], None]] = {
    "records": read_records,
    "skills": read_skill,
    "lines of transcripts": read_lines,
    "names": name_files,
    "secrets": redact_text,
    "settings": read_settings,
}
OF_OBJECTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "turns": read_turns,
    "models": build_records,
    "merges": merge_records,
}
