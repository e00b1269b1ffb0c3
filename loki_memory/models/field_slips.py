"""Fields of a hand-written record that nobody reads, because the format has another word for them.

Unknown fields are kept, so that `"errors"` instead of `"errors_encountered"` is no error; and
nothing is learned from it. A field that no program of ours knows, and that is not near one, is left
alone: another program may need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from loki_memory.models.base import Memory, Part
from loki_memory.models.kinds import Kind

_NEAR = 0.8  # how alike a field must be to a known one; no field of real foreign stores is
# Words that people use for a field whose name is not near them.
_OTHER_WORDS: dict[Kind, dict[str, str]] = {
    "episode": {
        "actions": "action_log",
        "artifacts": "artifacts_produced",
        "commit": "git_commit",
        "date": "timestamp",
        "error": "errors_encountered",
        "errors": "errors_encountered",
        "files": "context.files_involved",
        "result": "outcome",
    },
    "pattern": {"do": "correct_approach", "dont": "incorrect_approach", "when": "conditions"},
    "anti-pattern": {"fix": "prevention", "remedy": "prevention", "resolution": "prevention"},
    "fact": {"date": "at", "file": "citations", "files": "citations"},
}
# The field without which a file cannot be a record of its kind; no other kind has it.
MAIN_FIELDS: dict[str, Kind] = {
    "goal": "episode",
    "pattern": "pattern",
    "what_fails": "anti-pattern",
    "statement": "fact",
    "what_was_done": "handoff",
}


class Slip(NamedTuple):
    """A field that nobody reads, or that says nothing, and what to do about it."""

    field: str
    reason: str
    advice: str = ""


def slips(record: Memory) -> Iterator[Slip]:
    """Yield the fields that were probably meant to be others, at any depth."""
    others = _OTHER_WORDS.get(record.kind, {})
    for name in record.model_extra or ():
        known = others.get(name) or nearest(name, _names(type(record)))
        if known:
            yield _meant(name, known)
    for name, part in _parts(record):
        for inner in part.model_extra or ():
            known = nearest(inner, _names(type(part)))
            if known:
                yield _meant(f"{name}.{inner}", known)
    if _is_number(record.title()):
        yield Slip("", f"says only {record.title()!r}", "State it in words.")


def nearest(name: str, known: tuple[str, ...]) -> str:
    """The known field that a name is a misspelling of; empty if there is none."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name.lower(), known, 1, _NEAR)), "")


def misread_kind(document: Any, kind: Kind) -> Kind | None:
    """The other kind whose main field a document has; None if it has none."""
    if not isinstance(document, dict):
        return None
    kinds = [other for field, other in MAIN_FIELDS.items() if field in document]
    return kinds[0] if kinds and kind not in kinds else None


def _meant(name: str, known: str) -> Slip:
    return Slip(name, "is a field that nothing reads", f"Did you mean {known!r}?")


def _parts(record: Memory) -> Iterator[tuple[str, Part]]:
    for name, value in record.__dict__.items():
        if isinstance(value, Part):
            yield name, value
        elif isinstance(value, list) and value and isinstance(value[0], Part):
            yield from ((f"{name}.{number}", part) for number, part in enumerate(value))


@cache
def _names(model: type[Part]) -> tuple[str, ...]:
    return tuple(info.alias or name for name, info in model.model_fields.items())


def _is_number(title: str) -> bool:
    return title.replace(".", "", 1).strip().isdigit()
