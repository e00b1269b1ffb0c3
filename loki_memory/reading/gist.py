"""The gist of a memory: its lesson in a line, read from the record's JSON.

A title says what a memory is about. What is put before an agent unasked must say what to do:
the resolution with the error, the right way with the rule. What an error says to its reader is
left out, and so is a remedy that pipes a download into a shell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loki_memory.models.prompt_injection import pipes_download, without_instructions

# A line has 300 characters: room for three complaints and what helped against the first.
_SYMPTOM, _REMEDY, _REMEDIES = 76, 50, 1


def gist(kind: str, title: str, record: Mapping[str, Any]) -> str:
    """One line of a memory that somebody can act on."""
    tell = _GISTS.get(kind)
    return (tell(record) if tell else "") or title


def _pattern(record: Mapping[str, Any]) -> str:
    return _led(record.get("pattern"), record.get("correct_approach"))


def _anti_pattern(record: Mapping[str, Any]) -> str:
    fails = ": ".join(filter(None, (_text(record.get("what_fails")), _text(record.get("why")))))
    return _led(fails, _best(record))


def family_gist(
    head: str, announcement: str, members: Sequence[tuple[str, Mapping[str, Any]]]
) -> str:
    """Several complaints of one command or tool in a line, the first ones with what helped."""
    parts = [_short(announcement, _SYMPTOM)] if announcement else []
    for number, (complaint, record) in enumerate(members):
        helped = _short(_best(record), _REMEDY) if number < _REMEDIES else ""
        parts.append(_led(_short(complaint, _SYMPTOM), helped))
    return f"{head}: {'; '.join(dict.fromkeys(filter(None, parts)))}"


def _best(record: Mapping[str, Any]) -> str:
    """The remedy that most episodes speak for; empty if they speak against all."""
    resolutions = [one for one in _list(record.get("resolutions")) if isinstance(one, Mapping)]
    sound = [one for one in resolutions if _support(one) >= 0 and _remedy(one.get("do"))]
    best = max(sound, key=_support, default={})
    return _remedy(best.get("do") or record.get("prevention"))


def _remedy(value: Any) -> str:
    text = _text(value)
    return "" if pipes_download(text) else text


def _short(text: str, longest: int) -> str:
    text = _text(text)
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "\u2026"


def _learning(record: Mapping[str, Any]) -> str:
    return _led(record.get("lesson"), record.get("resolution"))


def _episode(record: Mapping[str, Any]) -> str:
    context = record.get("context")
    goal = _text(context.get("goal")) if isinstance(context, Mapping) else ""
    outcome = _text(record.get("outcome"))
    errors = [one for one in _list(record.get("errors_encountered")) if isinstance(one, Mapping)]
    met = [
        _led(_printed(one.get("message") or one.get("type")), _remedy(one.get("resolution")))
        for one in errors
    ]
    known = f"{goal} ({outcome})" if outcome not in {"", "unknown"} else goal
    return "; met: ".join(filter(None, (known, "; ".join(filter(None, met[:2])))))


def _printed(value: Any) -> str:
    return without_instructions(value) if isinstance(value, str) else ""


def _skill(record: Mapping[str, Any]) -> str:
    return _text(record.get("description"))


def _handoff(record: Mapping[str, Any]) -> str:
    context = record.get("context")
    if not isinstance(context, Mapping):
        return ""
    done = _text(context.get("what_was_done"))
    test = ", ".join(map(_text, _list(context.get("needs_testing"))))
    issues = ", ".join(map(_text, _list(context.get("known_issues"))))
    parts = (done, test and f"needs testing: {test}", issues and f"known issues: {issues}")
    if not any(parts):
        return ""
    who = f"{_text(record.get('from_agent')) or '?'} -> {_text(record.get('to_agent')) or '?'}"
    return f"{who}: " + "; ".join(filter(None, parts))


def _led(what: Any, instead: Any) -> str:
    return " -> ".join(filter(None, (_text(what), _text(instead))))


def _support(resolution: Mapping[str, Any]) -> int:
    return len(_list(resolution.get("for"))) - len(_list(resolution.get("against")))


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []


_GISTS = {
    "pattern": _pattern,
    "anti-pattern": _anti_pattern,
    "learning": _learning,
    "episode": _episode,
    "skill": _skill,
    "handoff": _handoff,
}
