"""Before a prompt: a few lines that are relevant to it.

These are what mended an error that it quotes, the lessons that name the same code, and those
nearest to it, each at most once in a session until the session loses its context. A prompt without
work in it (an assent, "commit and push", a command of ours, a notification) gets none.
"""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from loki_memory.injection.gate import Gate, as_hit, is_about_rule, is_silent, told_before
from loki_memory.injection.told import note_told, told_lines
from loki_memory.recall.result import FEW, Recollection

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.index.gate import SharingLesson

_LINES = 3  # before a prompt: read at every one of them
_LOOKED_AT = 8  # hits, some of which may be withheld
# The chance of a lesson that is only like a prompt, and the words that both have. What somebody put
# into words needs one that is rare. Read by hand on 330 prompts, mistakes that share fewer words
# with a prompt were about something else.
_CHANCE = 0.2
_SHARED = 3
_MOST_WORDS, _COMPARED = 40, 100  # words that are looked up, and lessons that are compared
_BEGINNING = 300  # characters in which a long prompt says what it is about; plans name all code
_SEVERAL = 2  # names of code that a lesson and a plan have in common
_CONTENT = 2  # words that say something: "fix it up" has one
_ASIDE = re.compile(r" \(running [^()]*\)| E\.g\. .*")  # the command that failed, and an example
# What only a printed error has: a label, a code, or the rule of a linter at the end of a line.
_QUOTES = re.compile(
    r"\b(?:[Ee]rror|fatal|panic|warning)(?:\[\w+\])?: |\b[A-Z]\w+(?:Error|Exception)\b|Traceback"
    r"|\b[A-Z]{1,4}\d{3,5}\b|\([a-z][\w-]+\)\s*$|:\d+:\d+:? ",
    re.MULTILINE,
)
_CODE = re.compile(r"\b[A-Z]{1,4}\d{3,5}\b")  # of a rule or an error: TS7030, E0308
_FILE_NAME = re.compile(r"[\w./@+-]*\w\.[A-Za-z]\w{0,9}\b(?!\()")
_ASKED = 2_000  # characters of a prompt: the rest is pasted


def reminder(workspace: OpenWorkspace, prompt: str, session: str, surface: str) -> str:
    """Lines that are relevant to a prompt; empty where nothing is relevant enough."""
    asked = _beginning(without_private(prompt))
    words = _words(asked) if asked and states_goal(asked) else frozenset()
    if len(words) < _CONTENT or is_silent(workspace):
        return ""
    workspace.home.ensure("folders")
    named = [*_quoted(workspace, asked), *_naming(workspace, asked)]
    near = _near(workspace, asked, words, session)
    every = {hit.id: hit for hit in (*named, *near)}
    at_place = {hit.id for hit in named}
    nearest = islice(told_lines(Gate(workspace), every.values(), at_place), _LINES)
    known = told_before(workspace, session)
    fresh = [told for told in nearest if told.id not in known]
    note_told(workspace, fresh, surface, asked, session)
    return "".join(f"{told.text}\n" for told in fresh)


def _near(
    workspace: OpenWorkspace, asked: str, words: frozenset[str], session: str
) -> list[Recollection]:
    """The lessons that are about a prompt: likely, and by several words of what they say.

    The words are looked at first: most prompts share few with any lesson, and recall takes longer
    to load than all the rest. Among a few memories nothing is likely, and a word is enough.
    """
    from loki_memory.index.gate import lessons_sharing
    from loki_memory.recall.question import ask

    said = ask(asked).words[:_MOST_WORDS]
    about: set[str] = set()
    in_few: set[str] = set()
    for home in workspace.homes:
        home.ensure("folders")
        is_few = sum(home.index.counts().values()) < FEW
        least = 1 if is_few else _SHARED - 1
        lessons = home.answer(partial(lessons_sharing, home.index, said, least, _COMPARED))
        about |= {lesson.id for lesson in lessons if _is_about_prompt(lesson, words)}
        in_few |= {lesson.id for lesson in lessons if is_few}
    if not (about or in_few):
        return []
    from loki_memory.recall.recall import RecallOptions, recall

    options = RecallOptions(asked, _LOOKED_AT, session=session)
    hits, _ = recall(workspace, options.as_query(workspace.now(), injected=True, unasked=True))
    likely = [hit for hit in hits if hit.score >= _CHANCE and hit.id in about]
    return [hit for hit in hits if hit.id in in_few] if hits.in_few else likely


def _is_about_prompt(lesson: SharingLesson, words: frozenset[str]) -> bool:
    """Check if a lesson may be about a prompt, by the words of both.

    A sentence of a session is about one place in the code, whatever words it has: it waits for a
    prompt that names the place. What is about the rule of a linter waits for the linter.
    """
    from loki_memory.injection.line import gist, is_extracted

    record = json.loads(lesson.body)
    if lesson.kind == "skill" or is_extracted(record) or is_about_rule(record):
        return False  # clients load skills themselves
    said = _ASIDE.sub("", gist(lesson.kind, lesson.title, record))
    return len(words & _words(said)) >= (1 if lesson.is_stated else _SHARED)


def _words(text: str) -> frozenset[str]:
    """The words of a text that something could be about, without their endings."""
    from loki_memory.models.text import stem
    from loki_memory.recall.question import ask

    return frozenset(map(stem, ask(text).words))


def _quoted(workspace: OpenWorkspace, prompt: str) -> list[Recollection]:
    """The remedies of an error that a prompt quotes, and of the rules of linters in it."""
    if not _QUOTES.search(prompt):
        return []
    from loki_memory.index.gate import rule_lessons
    from loki_memory.injection.at_error import known_remedies
    from loki_memory.models.error_signature import signature

    found = signature(prompt)
    quoted = known_remedies(workspace, prompt, f"error:{found.exact}", "") if found else []
    codes = dict.fromkeys(_CODE.findall(prompt))
    ruled = [lesson for code in codes for lesson in rule_lessons(workspace.index, code)]
    return [*quoted, *(as_hit("anti-pattern", lesson) for lesson in ruled)]


def _naming(workspace: OpenWorkspace, prompt: str) -> list[Recollection]:
    """The lessons that name code which a prompt names: one name where the prompt says what it is
    about, or several anywhere in it.
    """
    if prompt.islower() and prompt.replace(" ", "").isalnum():
        return []
    from loki_memory.index.gate import lessons_naming
    from loki_memory.models.text import long_symbols

    said = _FILE_NAME.sub(" ", prompt)  # lessons about files wait for the files
    named = lessons_naming(workspace.index, long_symbols(said[:_BEGINNING]))
    named += lessons_naming(workspace.index, long_symbols(said), _SEVERAL)
    return [as_hit(kind, lesson) for kind, lesson in named]


def states_goal(prompt: str) -> bool:
    """Check if a prompt says what is to be done."""
    from loki_memory.ingest.boundaries import states_goal as states

    return states(prompt)


def _beginning(text: str) -> str:
    """The part of a prompt that is searched for; secrets are redacted before it is cut."""
    if len(text) <= _ASKED:
        return text
    from loki_memory.files.redaction import clip

    return clip(text, _ASKED)


def without_private(text: str) -> str:
    """A prompt as it may be searched for and journaled."""
    if "<" not in text:
        return text.strip()
    from loki_memory.ingest.turns import clean

    return clean(text)
