"""Instruction files of coding agents: the rules that CLAUDE.md, AGENTS.md and others state.

A client that loads such a file tells its rules itself. They are taken in so that others find them
when they ask; the gate does not tell them a second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from loki_memory.install.edits import MARKDOWN
from loki_memory.models.lesson_text import objection
from loki_memory.seed.project_files import ProjectFiles
from loki_memory.seed.proposal import RULES, Proposal

_FILES = (
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".github/copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
)
_FOLDERS = (".cursor/rules", ".github/instructions")
_OURS = (MARKDOWN.says("begin"), MARKDOWN.says("end"))  # what `install` writes there
_FENCES = frozenset({"```", "~~~"})
_LONGEST_BLOCK = 2_000  # characters: more is no bullet
_BULLET = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+", re.MULTILINE)
_HEADING = re.compile(r"^\s*(?:#{1,6}\s|\||>|=+\s*$|-+\s*$)")
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_EXPLAINS = re.compile(r"`[^`]*`\s*(?:[-:\u2013\u2014]|$)")  # says what a command or file is
_SENTENCE = re.compile(r"(?<=[.!])\s+(?=[A-Z`])")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_FORBIDS = re.compile(
    r"\b(?:do not|don't|never|avoid|forbidden|not allowed|anti-?patterns?|mistakes?|bad|wrong)\b",
    re.IGNORECASE,
)
_SHORTEST, _LONGEST = 20, 220  # characters of a rule
_TELLING = 40  # characters of a sentence that asks for nothing, and guides all the same
_MOST = 6  # rules of a plan: the file itself has them all


def facts(files: ProjectFiles) -> list[Proposal]:
    """The rules of the files that agents load, each once."""
    found: dict[str, Proposal] = {}
    for path in instruction_paths(files):
        for text in rules(files.text(path)):
            known = found.get(text)
            sources = (*known.sources, path) if known else (path,)
            found[text] = Proposal(text, "rule", RULES, sources, 68, is_quoted=True)
    return list(found.values())[:_MOST]


def instruction_paths(files: ProjectFiles) -> Iterator[str]:
    yield from filter(files.has, _FILES)
    for folder in _FOLDERS:
        names = [name for name in files.names(folder) if name.endswith((".md", ".mdc"))]
        yield from (f"{folder}/{name}" for name in names)


def rules(text: str) -> list[str]:
    """The sentences that state a rule: bullets, or sentences of a paragraph.

    >>> rules("# Style\\n- Never commit to main.\\n- See the wiki.\\n")
    ['Never commit to main.']
    """
    text = _without(_without(text, *_OURS), "<!--", "-->")
    return [sentence for block in _blocks(_prose(text)) for sentence in _rules_of(block)]


def _without(text: str, opening: str, closing: str) -> str:
    """A text without what stands between two marks; a mark that is not closed stays."""
    parts, at = [], 0
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        parts.append(text[at:start])
        at = end + len(closing)
    return "\n\n".join([*parts, text[at:]])


def _prose(text: str) -> Iterator[str]:
    """The lines outside front matter and blocks of code."""
    lines = text.splitlines()
    fence = ""
    if lines and lines[0] == "---" and "---" in lines[1:]:
        lines = lines[lines.index("---", 1) + 1 :]
    for line in lines:
        mark = line.strip()[:3]
        if mark in _FENCES and fence in {"", mark}:
            fence = "" if fence else mark
            yield ""
        elif not fence:
            yield line


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """The bullets and paragraphs, each on one line.

    Bullets below a heading or a line that forbids ("Do not:") are left out: by themselves they say
    the opposite.
    """
    block: list[str] = []
    forbids = in_list = False
    for line in [*lines, ""]:
        is_bullet, is_break = bool(_BULLET.match(line)), not line.strip() or _HEADING.match(line)
        if (is_bullet or is_break) and block:
            whole = " ".join(" ".join(block).split())
            if whole.endswith(":"):
                forbids = bool(_FORBIDS.search(whole))
            elif not (forbids and in_list):
                yield whole
            block = []
        if line.lstrip().startswith("#"):
            forbids = bool(_FORBIDS.search(line))
        if not is_break:
            in_list = is_bullet or (in_list and bool(block))
            block.append(_BULLET.sub("", line))


def _rules_of(block: str) -> Iterator[str]:
    if len(block) > _LONGEST_BLOCK:
        return
    if _EXPLAINS.match(block):
        return
    plain = _LINK.sub(r"\1", _EMPHASIS.sub(r"\2", block)).strip()
    for sentence in _SENTENCE.split(plain):
        if _is_rule(sentence):
            yield sentence if sentence.endswith((".", "!")) else f"{sentence}."


def _is_rule(text: str) -> bool:
    if not _SHORTEST <= len(text) <= _LONGEST or text.endswith((":", ",", ";", "…", "...")):
        return False
    if "\ufffd" in text:
        return False
    return not objection(text, is_stated=True) or (len(text) >= _TELLING and not objection(text))
