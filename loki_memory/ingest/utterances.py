"""The prose of a session: who said or wrote it, turn by turn."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from loki_memory.consolidation.positions import subject, with_subject
from loki_memory.ingest.sentences import sentences
from loki_memory.ingest.statement_score import COMPACT as SUMMARY
from loki_memory.ingest.statement_score import SAY as SAID
from loki_memory.ingest.statement_score import USER, WRITTEN
from loki_memory.ingest.statement_types import DECISION, OUTSIDE
from loki_memory.ingest.statements import Utterance
from loki_memory.ingest.turns import CALL, COMPACT, PROMPT, RESULT, SAY, Turn, is_foreign
from loki_memory.models.error_signature import head, is_shell

_PLAN = 700  # characters: a first prompt that is longer is a plan that somebody wrote before
_READ = 4000  # characters of a plan: what comes after is pasted
_SHORT = 300  # characters of a prompt that decides something in passing
_REJECTED = "the user said:"  # before the words with which a user rejects a call
_NAME = re.compile(r"[A-Za-z_]\w{3,}")
_LONGEST_ORDER = 1500  # characters of a later prompt; more is pasted


class Prose(NamedTuple):
    """All prose of a session, the tools from outside, and what it edited after what was said."""

    utterances: list[Utterance]
    tools: frozenset[str]
    edited: dict[str, int]  # names of code -> number of utterances before the last edit of it
    prompts: list[str] = []  # noqa: RUF012 - never changed: all that the user wrote or pasted


def utterances(turns: Iterable[Turn]) -> Prose:
    """The prose of turns in the order of time."""
    reader = _Reader()
    found: list[Utterance] = []
    for turn in turns:
        found += reader.read(turn)
        reader.edit(turn, len(found))
    tools = (OUTSIDE | reader.tools) - _own_folders(reader.paths)
    return Prose(found, tools, reader.edited, reader.asked)


def _own_folders(paths: Iterable[str]) -> frozenset[str]:
    """The names of the folders below the one that holds all files."""
    folders = [path.replace("\\", "/").split("/")[:-1] for path in paths]
    shared = len(posixpath.commonprefix(folders))
    return frozenset(name.lower() for folder in folders for name in folder[shared:])


class _Reader:
    def __init__(self) -> None:
        self.prompts = 0
        self.asked: list[str] = []
        self.said = ""  # the agent's last message
        self.subject = ""  # what the user spoke of last, if it was to become something
        self.foreign: set[str] = set()  # calls of tools that answer with words of third parties
        self.after_foreign = False  # such an answer came, and nothing else since
        self.tools: set[str] = set()
        self.edited: dict[str, int] = {}
        self.paths: set[str] = set()

    def edit(self, turn: Turn, count: int) -> None:
        """Note the names in the lines that a turn changed, `count` utterances into the session."""
        for hunk in turn.hunks:
            self.paths.add(hunk.path)
            for name in _NAME.findall(f"{hunk.removed}\n{hunk.added}"):
                self.edited[name] = count

    def read(self, turn: Turn) -> Iterator[Utterance]:
        if turn.kind == CALL:
            yield from self._called(turn)
        elif turn.kind == RESULT:
            self.after_foreign = turn.call in self.foreign
            if turn.failed and _REJECTED in turn.text:
                yield Utterance(turn.key, turn.text.partition(_REJECTED)[2], USER)
        elif turn.kind == PROMPT:
            yield from self._asked(turn)
        elif turn.kind in {SAY, COMPACT}:
            source = SAID if turn.kind == SAY else SUMMARY
            self.said = turn.text
            yield Utterance(turn.key, turn.text, source, self.after_foreign)
            yield from self._repeated(turn, source)

    def _called(self, turn: Turn) -> Iterator[Utterance]:
        if is_foreign(turn.tool):
            self.foreign.add(turn.call)
        elif is_shell(turn.tool):
            self.tools.update(head(turn.tool, turn.text).split()[:1])
        if turn.written:
            yield Utterance(turn.key, turn.written, WRITTEN, self.after_foreign)
        yield from self._repeated(turn, WRITTEN)

    def _repeated(self, turn: Turn, source: str) -> Iterator[Utterance]:
        """Sentences that only repeat what a tool printed."""
        if turn.repeated:
            yield Utterance(turn.key, turn.repeated, source, is_external=True)

    def _asked(self, turn: Turn) -> Iterator[Utterance]:
        self.after_foreign = False
        self.prompts += 1
        self.asked.append(turn.text)
        yield from self._decided(turn)
        self.said = ""
        if len(turn.text) > _PLAN and self.prompts == 1:
            yield Utterance(turn.key, turn.text[:_READ], WRITTEN, is_task=True)
        elif len(turn.text) <= _LONGEST_ORDER:
            yield Utterance(turn.key, turn.text, USER)

    def _decided(self, turn: Turn) -> Iterator[Utterance]:
        """Decisions that say only together with what was said before what they are about."""
        option = chosen(turn.text, self.said)
        if option:
            yield Utterance(turn.key, f"Chosen: {option}", USER, type=DECISION)
        known, self.subject = self.subject, ""
        for sentence in sentences(turn.text) if len(turn.text) <= _SHORT else ():
            named = with_subject(sentence, self.subject or known)
            if named:
                yield Utterance(turn.key, named, USER, type=DECISION)
            self.subject = subject(named or sentence) or self.subject


# -- options that a user picks by letter or number: "A.", "2", "I like Option 1" -------------------

_LONGEST_REPLY = 60  # characters
_FEWEST = 2  # options among which somebody picks
_PICK = re.compile(
    r"(?:(?:yes|yeah|ok(?:ay)?|so|i(?:'d)? (?:like|prefer|choose|pick|vote for|go with|think)"
    r"|let'?s (?:do|go with|use|try|take|pick)|go (?:with|for)|do|use|take|pick|choose)[\s,:]+)*"
    r"(?:(?:the )?(?:option|choice|variant|approach|number)\s*#?)?(?P<name>[a-d]|[1-9])"
    r"[\s.)!,:;-]*(?:(?:it )?(?:is|sounds|looks|seems) (?:fine|good|great|best|better|ok(?:ay)?)"
    r"|please|works|then|it is|thanks|\s|[.!,])*",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"^[ \t]*(?:[-*+\u2022][ \t]+|#+[ \t]*|>[ \t]*)?(?:\*\*|__)?"
    r"(?:option|choice|variant|approach)?[ \t]*(?P<name>[A-Da-d]|[1-9])"
    r"(?:\*\*|__)?[ \t]*[.):\u2014\u2013-]+(?:\*\*|__)?[ \t]+(?P<text>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)

_WORK = re.compile(  # an option that says what to do next, and decides nothing about the project
    r"(?:run|apply|done|fix|quick fix|continue|resolve|proceed|commit|start|stop|skip|dismiss"
    r"|review|both|all|none|yes|no|end|merge|push|wait)\b"
    r"|.*(?:\bthis session\b|`/|\byour call\b|\bas-is\b)",
    re.IGNORECASE,
)


def chosen(reply: str, said: str) -> str:
    """The text of the option that a reply picks from a message; empty if it picks none.

    >>> chosen("I like option 2", "1. Keep the old path\\n2. Write to a new file. It is slower.")
    'Write to a new file.'
    """
    picked = _PICK.fullmatch(reply.strip()) if len(reply) <= _LONGEST_REPLY else None
    options = _options(said) if picked else {}
    found = options.get(picked["name"].lower(), set()) if picked else set()
    return found.pop() if len(options) >= _FEWEST and len(found) == 1 else ""


def _options(said: str) -> dict[str, set[str]]:
    """The texts of options by their letters; a list that begins anew may give one letter two."""
    found: dict[str, set[str]] = {}
    for option in _OPTION.finditer(said):
        text = option["text"].replace("**", "").replace("__", "").strip(" *_")
        first = next(sentences(text), "")
        if first and not _WORK.match(first):
            found.setdefault(option["name"].lower(), set()).add(first)
    return found
