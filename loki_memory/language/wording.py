"""Word what consolidation found: lessons, skills and topics, many in one question.

Only what may be told is worded: an active lesson that reads as one, an error with a remedy, a
skill, a topic. What a person said, and what somebody put into words on purpose, stays as it was
said. Nothing is written but this machine's own file of wordings; see `wordings.py`.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from loki_memory.files.redaction import find_secrets
from loki_memory.language.asking import (
    Asker,
    backend,
    chosen_model,
    estimate,
    prompt,
    request_for,
    write_private,
)
from loki_memory.language.wordings import (
    Wording,
    digest,
    read_wordings,
    wordings_path,
    words_of,
)
from loki_memory.models import AntiPattern, Belief, Fact, Memory, Pattern, Skill
from loki_memory.models.fence import defused
from loki_memory.models.kinds import USERS_WORDS
from loki_memory.models.lesson_text import objection
from loki_memory.models.prompt_injection import gives_instructions, pipes_download
from loki_memory.models.text import stem

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace


BATCH = 12  # memories in one question: a session teaches fewer, so calls stay below sessions
_KEPT = 5_000  # wordings; of more, those of records that are gone are dropped
_MADE = "consolidation"  # the source that learned skills name


class WordedText(BaseModel):
    """The text of one item."""

    model_config = ConfigDict(extra="forbid")

    id: str
    text: str


class WordedTexts(BaseModel):
    """The answer to `lessons` and `skills`."""

    model_config = ConfigDict(extra="forbid")

    items: list[WordedText]


class NamedText(WordedText):
    """The name and the overview of a topic."""

    name: str


class NamedTexts(BaseModel):
    """The answer to `topics`."""

    model_config = ConfigDict(extra="forbid")

    items: list[NamedText]


_TASKS: dict[str, type[WordedTexts | NamedTexts]] = {
    "lessons": WordedTexts,
    "skills": WordedTexts,
    "topics": NamedTexts,
}


class LanguageReport(NamedTuple):
    """The questions of a run to a language model, made or planned, and their cost."""

    backend: str  # and the model, where it said which
    memories: tuple[str, ...]  # ids of what it was asked to word
    worded: int
    refused: int  # answers that did not pass a gate: the memory keeps its own words
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float  # US dollars, as far as it is known
    stopped: str = ""  # why nothing more was asked


class _Item(NamedTuple):
    """A memory that is to be worded."""

    record: Memory
    digest: str

    def payload(self) -> dict[str, Any]:
        kind = self.record.kind
        return {"id": self.record.id, "kind": kind, **words_of(kind, self.record.document())}


def word(
    workspace: OpenWorkspace, records: Iterable[Memory], lint: Lint, *, plan_only: bool
) -> LanguageReport | None:
    """Word what is not worded yet; None if there is no language model, or nobody trusts memory."""
    model = backend(workspace.config, os.environ)
    if model is None or not workspace.home.trust().is_trusted:
        return None
    local = workspace.layout.local
    known = read_wordings(local)
    waiting = _waiting(records, known, chosen_model(workspace.config))
    if plan_only:
        return _planned(workspace.config.text("language.backend"), waiting)
    asker = Asker(model, workspace.config, local, workspace.now()[:10])
    new = _ask(asker, waiting, lint)
    if new:
        kept = {**known, **new} if len(known) < _KEPT else {**_live(records, known), **new}
        write_private(wordings_path(local), {name: entry._asdict() for name, entry in kept.items()})
    if asker.failed:
        workspace.notices.append(
            f"the language model did not word everything: {asker.failed}; "
            "memories keep the words that they have"
        )
    return _report(asker, waiting, new)


def _live(records: Iterable[Memory], known: Mapping[str, Wording]) -> dict[str, Wording]:
    live = {digest(record.kind, record.document()) for record in records}
    return {name: wording for name, wording in known.items() if name in live}


def _waiting(
    records: Iterable[Memory], known: Mapping[str, Wording], chosen: str
) -> dict[str, list[_Item]]:
    """The memories to word by their task, those with most evidence first.

    What no gate let through is asked for again once another model is chosen.
    """
    marks = {task: prompt(task).mark for task in _TASKS}
    found: dict[str, list[_Item]] = defaultdict(list)
    for record in records:
        task = task_of(record)
        name = digest(record.kind, record.document()) if task else ""
        entry = known.get(name, Wording())
        is_new_model = bool(entry.refused) and entry.chosen != chosen
        if task and (entry.prompt != marks[task] or is_new_model):
            found[task].append(_Item(record, name))
    for items in found.values():
        items.sort(key=lambda item: (-_support(item.record), item.record.id))
    return {task: found[task] for task in _TASKS if task in found}


def _support(record: Memory) -> int:
    return len(record.rests_on()) if isinstance(record, Belief) else 0


def task_of(record: Memory) -> str:
    """The task that words a memory; empty if it keeps its own words."""
    if isinstance(record, Skill):
        is_ours = record.metadata.get("loki-source") == _MADE
        return "skills" if is_ours and not _is_owned(record) else ""
    key = (record.model_extra or {}).get("key")
    if not isinstance(record, Belief) or not isinstance(key, dict) or record.origin == "owner":
        return ""
    if "topic" in key:
        return "topics" if record.status == "active" else ""
    return "lessons" if _is_told(record) else ""


def _is_owned(skill: Skill) -> bool:
    return skill.metadata.get("loki-origin") == "owner"


def _is_told(belief: Belief) -> bool:
    """Check that a lesson may be told: at an error of its class, a candidate with a remedy too."""
    if isinstance(belief, AntiPattern):
        return bool(belief.prevention) and belief.status in {"active", "candidate"}
    if belief.status != "active":
        return False
    if isinstance(belief, Fact):
        return belief.type not in USERS_WORDS and not objection(belief.statement)
    return isinstance(belief, Pattern)


def _batches(items: Sequence[_Item]) -> Iterator[list[_Item]]:
    waiting = iter(items)
    while batch := list(islice(waiting, BATCH)):
        yield batch


def _ask(asker: Asker, waiting: Mapping[str, list[_Item]], lint: Lint) -> dict[str, Wording]:
    found: dict[str, Wording] = {}
    for task, items in waiting.items():
        for batch in _batches(items):
            answer = asker.ask(task, [item.payload() for item in batch], _TASKS[task])
            if answer is not None:
                found |= _gated(task, batch, answer, asker, lint)
            if asker.is_over:
                return found
    return found


def _gated(
    task: str, batch: Sequence[_Item], answer: WordedTexts | NamedTexts, asker: Asker, lint: Lint
) -> dict[str, Wording]:
    """The wordings of a batch, by digest; what passes no gate is noted, and not asked for again.

    A recording that lacks an answer says nothing about what a model would do.
    """
    answers = {entry.id: entry for entry in answer.items}
    asked = [item for item in batch if asker.by != "recorded" or item.record.id in answers]
    made = {"by": asker.by, "prompt": prompt(task).mark, "chosen": asker.chosen}
    return {item.digest: _wording(item, answers, lint)._replace(**made) for item in asked}


def _wording(item: _Item, answers: Mapping[str, WordedText], lint: Lint) -> Wording:
    entry = answers.get(item.record.id)
    if entry is None:
        return Wording(refused="the model left it out")
    given = "\n".join(_texts(item.payload()))
    text, is_topic = entry.text.strip(), isinstance(entry, NamedText)
    name = entry.name.strip() if isinstance(entry, NamedText) else ""
    why = refusal(text, given, lint, sums_up=is_topic)
    why = why or (refused_name(name, given) if is_topic else "")
    return Wording(refused=why) if why else Wording(text, name)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in inner:
        yield from _texts(part)


def _planned(name: str, waiting: Mapping[str, list[_Item]]) -> LanguageReport:
    """Plan the questions of a run, without asking."""
    asked = [
        request_for(task, [item.payload() for item in batch], _TASKS[task])
        for task, items in waiting.items()
        for batch in _batches(items)
    ]
    total = sum(map(estimate, asked))
    return LanguageReport(name, _ids(waiting), 0, 0, len(asked), total, 0, 0.0)


def _ids(waiting: Mapping[str, list[_Item]]) -> tuple[str, ...]:
    return tuple(item.record.id for items in waiting.values() for item in items)


def _report(
    asker: Asker, waiting: Mapping[str, list[_Item]], new: Mapping[str, Wording]
) -> LanguageReport:
    worded = sum(bool(wording.text) for wording in new.values())
    asked = tuple(item for item in _ids(waiting))
    return LanguageReport(
        asker.by, asked, worded, len(new) - worded, *asker.used, stopped=asker.failed
    )


# -- gates for answers -----------------------------------------------------------------------------


LONGEST = 300  # characters: the length of a line that is told
LONGEST_NAME = 60
Lint = Callable[[str], str]  # why a text says nothing specific; empty if it does

_CODE = re.compile(r"`([^`]*)`")
_NAME = re.compile(  # outside of backquotes: what only code, a file system or a count has
    r"(?<![\w-])-{1,2}[A-Za-z][\w-]*"  # an option
    r"|[\w.@~-]*/[\w./@~*-]+"  # a path or an address
    r"|\b\w+(?:\.\w+)+\b(?:\(\))?|\b\w*_\w+\b|\b[a-z]+[A-Z]\w*\b|\b\w+\(\)"
    r"|\b[A-Z][a-z0-9]+[A-Z]\w*\b|\b[A-Z]{2,}\d*\b|\b\w*\d[\w.]*\b"
)
_RULE = re.compile(r"\(([a-z][\w-]+)\)")  # of a linter, after its complaint
_ABBREVIATIONS = frozenset({"e.g", "i.e", "etc"})
_NEGATES = re.compile(
    r"\b(?:not|no|never|none|cannot|without|avoid\w*|unless|instead|neither|nor|leave out|only"
    r"|fails?|failed|refus\w+|reject\w*|lacks?|missing|unknown|invalid|unexpected)\b|n't\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]{3,}")
_EVERYDAY = frozenset(
    re.findall(
        r"\w+",
        "about after also and any are because been before but can could does for from get has "
        "have how into its may must need needs only other our should than that the their them "
        "then there these they this those use used uses using was were what when where which "
        "while will with would you your instead rather",
    )
)
_SUPPORT = 0.5  # of the words of an answer: fewer taken from the input tell another story


def refusal(text: str, given: str, lint: Lint, *, sums_up: bool = False) -> str:
    """Why an answer is not used; empty if it passes every gate.

    What sums up several statements may leave out names and conditions of any one of them.

    >>> said = "`gh pr diff --stat` fails: unknown flag. Use `gh pr diff --name-only`."
    >>> refusal("`gh pr diff` has no `--stat`; use `--name-only` instead.", said, lambda text: "")
    ''
    >>> refusal("`gh pr diff` has no `--stat`; use `--summary` instead.", said, lambda text: "")
    'names --summary, which the input does not'
    """
    reasons = (
        *(_form(text, LONGEST), _danger(text), _invention(text, given)),
        *("" if sums_up else _distortion(text, given), _digression(text, given)),
        *(objection(text), lint(text)),
    )
    return next(filter(None, reasons), "")


def refused_name(name: str, given: str) -> str:
    """Why a name of a topic is not used; empty if it passes."""
    reasons = (_form(name, LONGEST_NAME), _danger(name), _invention(name, given))
    return next(filter(None, reasons), "")


def _form(text: str, longest: int) -> str:
    if not text.strip() or not text.isprintable():
        return "is not one line of text"
    return f"is longer than {longest} characters" if len(text) > longest else ""


def _danger(text: str) -> str:
    if find_secrets(text):
        return "holds a secret"
    if defused(text) != text or gives_instructions(text):
        return "addresses its reader as an instruction would"
    return "pipes a download into a shell" if pipes_download(text) else ""


def _invention(text: str, given: str) -> str:
    """Name the first piece of code, path, option or number that the input does not have.

    Code between backquotes must stand there as a whole: a command that is put together from words
    of the input is another command.
    """
    known = " ".join(given.split())
    found = (name for name in _names(text) if not _occurs(name, known))
    unknown = next(found, "")
    return f"names {unknown}, which the input does not" if unknown else ""


def _names(text: str) -> Iterator[str]:
    yield from (" ".join(code.split()) for code in _CODE.findall(text) if code.strip())
    for found in _NAME.finditer(_CODE.sub(" ", text)):
        name = found[0].rstrip(".,:;")
        if name.casefold() not in _ABBREVIATIONS:
            yield name


def _occurs(name: str, known: str) -> bool:
    pattern = rf"(?<![\w-]){re.escape(name)}(?!\w)" if name[0].isalnum() else re.escape(name)
    return re.search(pattern, known) is not None


def _distortion(text: str, given: str) -> str:
    """Why an answer does not say what the input says; empty if it seems to."""
    about = [*_names(given), *_NAME.findall(given), *_RULE.findall(given)]
    if about and not any(_occurs(name, text) for name in about):
        return "names nothing of what it is about"
    if bool(_NEGATES.search(text)) != bool(_NEGATES.search(given)):
        return "may turn around what is said"
    return ""


def _digression(text: str, given: str) -> str:
    words, known = _content(text), _content(given)
    is_supported = not words or len(words & known) >= _SUPPORT * len(words)
    return "" if is_supported else "says what the input does not"


def _content(text: str) -> set[str]:
    words = (word.casefold() for word in _WORD.findall(text))
    return {stem(word) for word in words if word not in _EVERYDAY}
