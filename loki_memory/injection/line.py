"""The line of one memory that an agent reads: its text and its evidence."""

from __future__ import annotations

import json  # not orjson, which takes longer to load: lines are injected before every prompt
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.language.wordings import worded
from loki_memory.models.fence import defused
from loki_memory.models.ids import ID
from loki_memory.models.kinds import KINDS, USERS_WORDS
from loki_memory.models.prompt_injection import (
    gives_instructions,
    pipes_download,
    without_advice,
)
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace


class InjectedLine(NamedTuple):
    """One memory as it is injected."""

    id: str
    kind: str
    text: str
    confidence: float | None
    evidence: int
    score: float
    status: str = "active"


def injected_line(
    workspace: OpenWorkspace, hit: Recollection, record: Mapping[str, Any]
) -> InjectedLine:
    """Build the line of a hit from what may be told of its record; nothing may be of an empty one.

    The line has no text if it must not be injected.
    """
    if not record:
        return line_of_hit(hit, hit.title)
    return line_of_hit(hit, told_text(workspace, hit, record))


def told_text(workspace: OpenWorkspace, hit: Recollection, record: Mapping[str, Any]) -> str:
    """The text of a hit: as the language model put it, where the user has one, else its gist."""
    said = worded(workspace, hit.kind, record).text or gist(hit.kind, hit.title, record)
    return tellable(hit.kind, record, said)


def record_of(workspace: OpenWorkspace, name: str) -> Mapping[str, Any]:
    """The record of a memory as the index has it; empty if it is gone."""
    for home in workspace.homes:
        body = home.index.body(name)
        if body is not None:
            record: Mapping[str, Any] = json.loads(body[1])
            return record
    return {}


def line_of_hit(hit: Recollection, text: str) -> InjectedLine:
    """Build the line of a hit with a given text."""
    fields = (hit.kind, defused(text), hit.confidence, hit.evidence, hit.score, hit.status)
    return InjectedLine(hit.id, *fields)


def tellable(kind: str, record: Mapping[str, Any], text: str) -> str:
    """The text of a memory; empty if it may be an injection by a third party.

    A command that pipes a download into a shell is never injected. Instructions to the reader are
    dropped where a command printed them: in errors that consolidation made warnings and learnings
    of. Text that people and agents wrote may address its reader.
    """
    if pipes_download(text) or (_was_printed(kind, record) and gives_instructions(text)):
        return ""
    return text


def _was_printed(kind: str, record: Mapping[str, Any]) -> bool:
    """Check if a command printed the text: consolidation adds a key, or both parts of a lesson."""
    if kind == "learning":
        return bool(record.get("error") and record.get("resolution"))
    return kind == "anti-pattern" and "key" in record


def line(injected: InjectedLine) -> BulletLine:
    """Format a memory as a line of inert Markdown; a reader counts episodes, not hundredths."""
    name = injected.id.removeprefix("skill-") if injected.kind == "skill" else injected.id
    notes = ["not confirmed"] if injected.status == "candidate" else []
    if injected.evidence > 1:
        notes.append(f"{injected.evidence} episodes")
    return BulletLine(name, injected.kind, injected.text, ", ".join(notes))


# -- A memory as one line of inert Markdown --------------------------------------------------------


TEXT_LIMIT = 300  # two sentences; five such mistakes fit into half of the usual 1,000 tokens
NOTE_LIMIT = 60
GOAL_LIMIT = 120  # enough to see what was asked; the prompt itself may be pages
_READ = 4_000  # characters examined: enough for TEXT_LIMIT after folding
_SKILL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_BLANK = {"Cc", "Zl", "Zp", "Zs"}
# Marks that only change how their neighbour is drawn, and the invisible "tag" characters: both
# have been used to hide text from people that models read.
_HIDDEN = re.compile("[\u034f\ufe00-\ufe0f\U000e0000-\U000e0fff]")
_BACKTICKS = re.compile(r"(?:\\*`)+")
_OPENS_TAG = re.compile(r"(?<!\\)((?:\\\\)*)(<(?=[A-Za-z/!?|])|(?<=!)\[)")


class BulletLine(NamedTuple):
    """One memory in the block."""

    id: str
    kind: str
    text: str
    note: str = ""


def bullet(line: BulletLine) -> str:
    """`- [sem-001] text (note)`; empty if nothing of the text can be shown."""
    text = one_line(line.text, TEXT_LIMIT)
    note = one_line(line.note, NOTE_LIMIT)
    return labelled(_label(line), f"{text} ({note})" if note else text) if text else ""


def labelled(label: str, text: str) -> str:
    return f"- [{label}] {text}"


def one_line(text: str, limit: int) -> str:
    return defused(_inert(_cut(_folded(text[:_READ]), limit)))


def _label(line: BulletLine) -> str:
    """The id, if it has the form of one; else the kind: a label never carries free text."""
    if line.kind == "skill" and _SKILL.fullmatch(line.id):
        return f"skill: {line.id}"
    if ID.fullmatch(line.id):
        return line.id
    return line.kind if line.kind in KINDS else "memory"


def _folded(text: str) -> str:
    """Fold all whitespace, line separators and controls into spaces; drop invisible characters."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_shown, _HIDDEN.sub("", text)))
    return " ".join(text.split())


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category in _BLANK:
        return " "
    if category == "Cs":  # half a surrogate pair cannot be written as UTF-8
        return "\ufffd"
    return "" if category == "Cf" else character


def _cut(text: str, limit: int) -> str:
    """At most `limit` characters, ending at a word where there is one in the last third."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    end = head.rfind(" ", limit * 2 // 3)
    return (head[:end] if end > 0 else head).rstrip(" ,;:-") + "…"


def _inert(text: str) -> str:
    """The text with its code spans closed, and nothing that a Markdown reader would act on.

    Runs of backticks become single ones, and one without a partner an apostrophe, so that code is
    the text between an odd backtick and the next; there `<` is safe, elsewhere it is escaped. A
    comment is broken everywhere: a program that looks for it with a regular expression finds it
    inside code too.
    """
    text = _BACKTICKS.sub("`", text.replace("<!--", "<! --"))
    if text.count("`") % 2:
        start, _, rest = text.rpartition("`")
        text = f"{start}'{rest}"
    parts = text.split("`")
    parts[::2] = [_OPENS_TAG.sub(r"\1\\\2", part) for part in parts[::2]]
    return "`".join(parts)


# -- The gist of a memory: its lesson in a line, from the record's JSON ----------------------------


_RUNNING = " (running "  # before the command that met an error
ASKED = "A user asked: "  # before words that nobody but a session has of them


def gist(kind: str, title: str, record: Mapping[str, Any]) -> str:
    """Summarise a memory in one line that an agent can act on."""
    summarise = _GISTS.get(kind)
    return (summarise(record) if summarise else "") or title


def _pattern(record: Mapping[str, Any]) -> str:
    return _with_remedy(record.get("pattern"), record.get("correct_approach"))


# How `ingest` words that another program works: it helps whatever the wrong one meets next.
_EXCHANGE = re.compile(r"Use `([^`]+)` instead of `([^`]+)`")


class ProgramAdvice(NamedTuple):
    """Advice to use one program in place of another."""

    advice: str
    program: str
    wrong: str


def program_advice(text: str) -> ProgramAdvice | None:
    """The advice to use another program with which a text begins.

    >>> program_advice("Use `python3` instead of `python`.").wrong
    'python'
    """
    found = _EXCHANGE.match(text)
    return ProgramAdvice(found[0], found[1], found[2]) if found else None


def _anti_pattern(record: Mapping[str, Any]) -> str:
    fails = _text(record.get("what_fails"))
    advised = program_advice(_best(record))
    if advised:
        return f"{advised.advice}, which met: {_complained(fails.partition(_RUNNING)[0])}"
    fails = _complained(fails) if _was_printed("anti-pattern", record) else fails
    fails = ": ".join(filter(None, (fails, _text(record.get("why")))))
    return _with_remedy(fails, _best(record))


def _complained(text: str) -> str:
    """A printed error as it is told, with the command that met it; a linter's rule as it is."""
    said, by, command = text.partition(_RUNNING)
    if _names_rule(text):
        return text
    return f"{without_advice(said) or 'an error'}{by}{command}"


def _names_rule(text: str) -> bool:
    from loki_memory.models.diagnostics import rule  # 2 ms to compile, for warnings only

    return bool(rule(text))


def _best(record: Mapping[str, Any]) -> str:
    """The resolution with the most episodes for it; empty if episodes speak against all."""
    resolutions = [
        resolution
        for resolution in _list(record.get("resolutions"))
        if isinstance(resolution, Mapping)
    ]
    sound = [
        resolution
        for resolution in resolutions
        if _support(resolution) >= 0 and _remedy(resolution.get("do"))
    ]
    best = max(sound, key=_support, default={})
    return _remedy(best.get("do") or record.get("prevention"))


def _remedy(value: Any) -> str:
    text = _text(value)
    return "" if pipes_download(text) else text


def is_extracted(record: Mapping[str, Any]) -> bool:
    """Check if the sentence of a fact was found in a session, and not put into words on purpose."""
    key = record.get("key")
    return isinstance(key, Mapping) and "statement" in key


def _fact(record: Mapping[str, Any]) -> str:
    """The words of a user that no person made a rule yet, as a user's; else the title tells it."""
    said = _text(record.get("statement"))
    is_quoted = record.get("type") in USERS_WORDS and record.get("origin") != "owner"
    return f'{ASKED}"{said}"' if said and is_quoted and is_extracted(record) else ""


def _learning(record: Mapping[str, Any]) -> str:
    return _with_remedy(record.get("lesson"), record.get("resolution"))


def _episode(record: Mapping[str, Any]) -> str:
    context = record.get("context")
    goal = _text(context.get("goal")) if isinstance(context, Mapping) else ""
    outcome = _text(record.get("outcome"))
    errors = [
        error for error in _list(record.get("errors_encountered")) if isinstance(error, Mapping)
    ]
    met = [
        _with_remedy(
            _printed(error.get("message") or error.get("type")), _remedy(error.get("resolution"))
        )
        for error in errors
    ]
    known = f"{goal} ({outcome})" if outcome not in {"", "unknown"} else goal
    return "; met: ".join(filter(None, (known, "; ".join(filter(None, met[:2])))))


def _printed(value: Any) -> str:
    return without_advice(value) if isinstance(value, str) else ""


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


def _with_remedy(problem: Any, instead: Any) -> str:
    """Join what is wrong and what to do, unless the former says so already."""
    said, remedy = _text(problem), _text(instead)
    if said.casefold().endswith(remedy.casefold()):
        return said
    return " -> ".join(filter(None, (said, remedy)))


def _support(resolution: Mapping[str, Any]) -> int:
    return len(_list(resolution.get("for"))) - len(_list(resolution.get("against")))


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []


_GISTS = {
    "pattern": _pattern,
    "anti-pattern": _anti_pattern,
    "fact": _fact,
    "learning": _learning,
    "episode": _episode,
    "skill": _skill,
    "handoff": _handoff,
}
