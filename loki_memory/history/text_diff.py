"""The differences of two versions of a record, field by field and step by step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from loki_memory.models import AntiPattern, Belief, Episode, Memory, Pattern, Skill
from loki_memory.models.kinds import STATEMENT

# Fields that reading changes, or that only repeat the change.
_NOISE = frozenset({"$schema", "usage_count", "last_used", "history"})
# Fields that are reported in words of their own, or that change together with those.
_WEIGHED = frozenset(
    {
        "status",
        "confidence",
        "evidence",
        "source_episodes",
        "links",
        "at",
        "key",
        "reviewed",
        "surprise",
    }
)


def shown_text(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def restated(old: Memory, new: Memory) -> bool:
    """Check if the statement itself changed."""
    return any(_words(old, name) != _words(new, name) for name in STATEMENT)


def _words(record: Memory, name: str) -> Any:
    value = vars(record).get(name)
    return [getattr(item, "do", item) for item in value] if isinstance(value, list) else value


def differing(old: Memory, new: Memory, *, every: bool = False) -> list[str]:
    """`field: old -> new` for each field that differs; `every` includes status and evidence."""
    before, after = _flat(old.document()), _flat(new.document())
    hushed = _NOISE if every else _NOISE | _WEIGHED
    names = [name for name in (*before, *after) if name.partition(".")[0] not in hushed]
    return [
        line
        for name in dict.fromkeys(names)
        for line in _field(name, _comparable(before.get(name)), _comparable(after.get(name)))
    ]


def _flat(document: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """`{"context": {"goal": …}}` as `{"context.goal": …}`."""
    flat: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{within}{name}."))
        else:
            flat[within + name] = value
    return flat


def _field(name: str, old: Any, new: Any) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old or new, list):
        yield from _items(name, old or [], new or [])
    else:
        yield f"{name}: {_shown(old)} -> {_shown(new)}"


def _items(name: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """List additions to a list and removals; a new order alone is reported as that."""
    gone = [item for item in old if item not in new]
    come = [item for item in new if item not in old]
    yield from (f"{name} added: {item}" for item in come)
    yield from (f"{name} removed: {item}" for item in gone)
    if not gone and not come:
        yield f"{name}: in another order"


def _comparable(value: Any) -> Any:
    """A value as it is compared and shown: items as text, resolutions without their episodes."""
    if not isinstance(value, list):
        return value
    return [shown_text(item) if isinstance(item, str) else _entry(item) for item in value]


def _entry(value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("do"), str):
        return shown_text(value["do"])
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "nothing"
    return shown_text(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# -- skills ------------------------------------------------------------------------------------


def revised(old: Skill, new: Skill) -> list[str]:
    """The changes of a skill, step by step."""
    if old.body == new.body and old.description == new.description:
        return []
    changes = [*_steps(old.steps, new.steps), *_lists(old, new)]
    changes += _field("description", old.description, new.description)
    return changes or ["text around its lists changed"]


def _steps(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    before, after = [shown_text(text) for text in old], [shown_text(text) for text in new]
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        both = min(j - i, m - k)
        for n in range(both):
            yield f"step {k + n + 1}: {before[i + n]} -> {after[k + n]}"
        yield from (f"step {n + 1} removed: {before[n]}" for n in range(i + both, j))
        yield from (f"step {n + 1} added: {after[n]}" for n in range(k + both, m))


def _lists(old: Skill, new: Skill) -> Iterator[str]:
    for name, before, after in (
        ("prerequisite", old.prerequisites, new.prerequisites),
        ("common error", _errors(old), _errors(new)),
        ("exit criterion", old.exit_criteria, new.exit_criteria),
    ):
        if before != after:
            yield from _items(name, _comparable(before), _comparable(after))


def _errors(skill: Skill) -> list[str]:
    return [f"{error.error}: {error.fix}" for error in skill.common_errors]


# -- what is new ---------------------------------------------------------------------------------


def traits(record: Memory) -> list[str]:
    """The details that a reader of a new memory needs beside its title."""
    return [f"{name}: {shown_text(text)}" for name, text in _traits(record) if text]


def _traits(record: Memory) -> Iterable[tuple[str, str]]:
    if isinstance(record, Pattern):
        yield "when", "; ".join(record.conditions)
        yield "do", record.correct_approach or ""
        yield "not", record.incorrect_approach or ""
    if isinstance(record, AntiPattern):
        yield "instead", record.prevention or ""
    if isinstance(record, Belief):
        yield "said by", record.by or ""
        yield "status", record.status if record.status == "candidate" else ""
    if isinstance(record, Episode):
        yield "outcome", record.outcome
        yield "agent", record.agent or ""
    # The origin matters where it is not this project's own work.
    origin = getattr(record, "origin", None) or ""
    yield "origin", origin if origin in {"import", "external"} else ""
