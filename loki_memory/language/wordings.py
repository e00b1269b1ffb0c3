"""Wordings: how a language model put what a memory says, kept on this machine.

They are found by a hash of the words of a record, not by its id. So a record whose words changed,
by an edit, a merge or new evidence, is told in its own words until it is worded again.

Hooks read this module before every prompt: it imports nothing heavy.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

OFF = "off"
_REMEDIES = 3  # of an error: as many as an anti-pattern keeps
_STEPS = 2_000  # characters of a skill's body
_FIELDS = {
    "pattern": ("pattern", "conditions", "correct_approach", "incorrect_approach"),
    "anti-pattern": ("what_fails", "why", "prevention"),
    "fact": ("statement",),
    "skill": ("name", "description"),
}


class Wording(NamedTuple):
    """The text of a memory by a language model, or why there is none."""

    text: str = ""
    name: str = ""  # of a topic
    refused: str = ""  # the gate that the answer did not pass
    by: str = ""  # backend and model
    prompt: str = ""  # the prompt's name and version
    chosen: str = ""  # backend and model as the settings name them: another may do better


def words_of(kind: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """The words of a record that can be put otherwise; empty if its kind has none."""
    said = {name: record[name] for name in _FIELDS.get(kind, ()) if record.get(name)}
    if kind == "anti-pattern":
        given = record.get("resolutions")
        remedies = given if isinstance(given, list) else []
        told = [str(remedy.get("do", "")) for remedy in remedies if isinstance(remedy, Mapping)]
        said |= {"remedies": told[:_REMEDIES]} if told else {}
        key = record.get("key")
        command = key.get("head") if isinstance(key, Mapping) else None
        said |= {"command": command} if command and isinstance(command, str) else {}
    if kind == "skill":
        said["steps"] = str(record.get("body", ""))[:_STEPS]
    return said


def digest(kind: str, record: Mapping[str, Any]) -> str:
    """The hash of a record's words.

    >>> digest("fact", {"statement": "a", "id": "1"}) == digest("fact", {"statement": "a"})
    True
    """
    said = json.dumps([kind, words_of(kind, record)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def wordings_path(local: Path) -> Path:
    return local / "language" / "wordings.json"


def read_wordings(local: Path) -> dict[str, Wording]:
    """All wordings of a workspace by the hash of what they word."""
    path = str(wordings_path(local))
    try:
        found = os.stat(path)
    except OSError:
        return {}
    return _read(path, (found.st_mtime_ns, found.st_size, found.st_ino))


@lru_cache(maxsize=4)
def _read(path: str, stamp: tuple[int, int, int]) -> dict[str, Wording]:  # noqa: ARG001 - the key
    try:
        with open(path, encoding="utf-8") as file:
            entries = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(entries, dict):
        return {}
    return {name: _wording(entry) for name, entry in entries.items() if isinstance(entry, dict)}


def _wording(entry: Mapping[str, Any]) -> Wording:
    return Wording(*(str(entry.get(field, "")) for field in Wording._fields))


def worded(workspace: OpenWorkspace, kind: str, record: Mapping[str, Any]) -> Wording:
    """The wording of a memory; empty if there is none, or the language model is off."""
    if kind not in _FIELDS or workspace.config.text("language.backend") == OFF:
        return Wording()
    known = read_wordings(workspace.layout.local)
    return known.get(digest(kind, record), Wording()) if known else Wording()
