"""Memory in Markdown: rules for agents, Claude Code's memory, Serena, basic-memory and OKF.

Each bullet, row of a table or paragraph is a statement. Shell commands in a fence of up to six
lines are a statement under their heading. Other code is listed as not imported: an example is no
fact. Secrets are replaced first, because long notes are cut and sections become tags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from loki_memory.continuity.harvest import notes, outline
from loki_memory.errors import InvalidRecord
from loki_memory.files import front_matter
from loki_memory.files.redaction import redact
from loki_memory.ingest.discover import CLAUDE_INDEX, claude_folders
from loki_memory.install.edits import MARKDOWN, find
from loki_memory.interop.export_memory import record_in
from loki_memory.interop.sources.our_files import whole_record
from loki_memory.interop.sources.source import (
    FoundMemory,
    ImportSource,
    SourceReading,
    category,
    day,
    files_below,
    filled,
    names_in,
    tags,
    text_of,
    when,
)
from loki_memory.models.ids import slug

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*([\w+-]*).*")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)[\s#]*")
_SHELL = {"", "sh", "bash", "shell", "zsh", "console", "shellsession", "fish", "powershell"}
_SHORT = 6  # lines of commands that one statement can hold


class MarkdownNote(NamedTuple):
    """A Markdown file: its front matter, and the text below without our own block."""

    path: Path
    about: dict[str, Any]
    body: str


class CodeBlock(NamedTuple):
    """A fenced block with the heading above it."""

    heading: str
    language: str
    lines: list[str]


def page_of(path: Path) -> MarkdownNote:
    """Read a Markdown file; raises InvalidRecord where it is too large."""
    text = redact(text_of(path).removeprefix("\ufeff"))
    front = _FRONT.match(text)
    body = text[front.end() if front else 0 :]
    ours = find(body, MARKDOWN, str(path))
    body = ours.before + ours.after if ours else body
    return MarkdownNote(path, _front_matter(front[1]) if front else {}, body)


def _front_matter(text: str) -> dict[str, Any]:
    """Front matter as values; where it is no YAML (`globs: *.ts`), each line by itself."""
    try:
        return front_matter.read(text)
    except InvalidRecord:
        pairs = (line.partition(":") for line in text.splitlines() if line[:1].isalpha())
        return {name.strip(): value.strip().strip("'\"") for name, _, value in pairs}


def _add_page(
    page: MarkdownNote,
    reading: SourceReading,
    fields: Mapping[str, Any],
    *,
    private: bool = False,
    without: Callable[[str], bool] = lambda _: False,
) -> None:
    """Add each statement of a page as a fact with these fields, its section as a tag."""
    given = {"tags": tags([page.path.stem]), **fields}

    def add(statement: str, section: str = "") -> None:
        named = sorted({*given["tags"], *tags([section])})
        told = {"category": slug(section, 40), **given, "statement": statement, "tags": named}
        reading.found.append(FoundMemory("fact", filled(**told), page.path.name, private=private))

    for head in outline(page.body):
        for note in notes(head, head.title):
            if not without(note):
                add(note, head.title)
    for block in _code_blocks(page.body):
        commands = [line.strip() for line in block.lines if line.strip()]
        if block.language in _SHELL and 0 < len(commands) <= _SHORT:
            add(": ".join(filter(None, (block.heading, "; ".join(commands)))))
        elif commands:
            length = f"{len(commands)} lines" if len(commands) > 1 else "a line"
            why = f"{length} of {block.language or 'code'} in a fence"
            reading.refuse(page.path.name, commands[0], why)


def _code_blocks(body: str) -> Iterator[CodeBlock]:
    """The fenced blocks of a text; a fence without an end is none."""
    heading, mark, language, lines = "", "", "", list[str]()
    for line in body.split("\n"):
        fence = _FENCE.fullmatch(line)
        if mark and fence and fence[1].startswith(mark) and not fence[2]:
            yield CodeBlock(heading, language, lines)
            mark = ""
        elif mark:
            lines.append(line)
        elif fence:
            mark, language, lines = fence[1], fence[2].lower(), []
        elif title := _HEADING.fullmatch(line):
            heading = title[1].strip("*_ ")


# -- Rules for agents: CLAUDE.md, AGENTS.md, GEMINI.md, Cursor, Windsurf and Copilot ---------------

_RULES = {"claude.md", "claude.local.md", "agents.md", "gemini.md", ".cursorrules"}
_RULES |= {".windsurfrules", ".clinerules", "copilot-instructions.md"}
_RULES_PATTERNS = (
    "*.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".claude/CLAUDE.md",
    ".cursor/rules/**/*.mdc",
    ".github/copilot-instructions.md",
    ".github/instructions/**/*.instructions.md",
)


def _rules_files(path: Path) -> list[Path]:
    found = [path] if path.is_file() else files_below(path, *_RULES_PATTERNS)
    suffixes = (".mdc", ".instructions.md")
    return [f for f in found if f.name.lower() in _RULES or f.name.endswith(suffixes)]


def _read_rules(path: Path, reading: SourceReading) -> None:
    files = [path] if path.is_file() else _rules_files(path)  # a file that is named is meant
    reading.read_each(files, _read_rules_file)


def _read_rules_file(path: Path, reading: SourceReading) -> None:
    page = page_of(path)
    reading.count_left_out(page.about, ("globs", "applyTo", "alwaysApply"))
    applies_to = page.about.get("globs") or page.about.get("applyTo") or ""
    fields = {"type": "rule", "category": "rules", "applies_to": applies_to}
    _add_page(page, reading, fields, private="local" in path.stem.lower())


RULES = ImportSource(
    "rules", lambda path: bool(_rules_files(path)), _read_rules, lambda root, _: [root]
)


# -- Serena's notes: `.serena/memories/**/*.md`, plain Markdown without front matter ---------------


def _serena_files(path: Path) -> list[Path]:
    if path.is_file():
        is_note = path.suffix == ".md" and path.parent.parts[-2:] == (".serena", "memories")
        return [path] if is_note else []
    folders = [path / ".serena" / "memories"]
    if ".serena" in path.absolute().parts[-2:]:
        folders.append(path if path.name == "memories" else path / "memories")
    return [file for folder in folders for file in files_below(folder, "**/*.md")]


def _read_serena(path: Path, reading: SourceReading) -> None:
    files = [path] if path.is_file() else _serena_files(path)  # a file that is named is meant
    reading.read_each(files, lambda file, reading: _add_page(page_of(file), reading, {}))


SERENA = ImportSource(
    "serena",
    lambda path: bool(_serena_files(path)),
    _read_serena,
    lambda root, _: [root / ".serena"],
)


# -- Claude Code's own memory: MEMORY.md and its topic files ---------------------------------------
#
# The front matter of a topic file gives its subject and type; statements about the user stay on
# this machine. Lines of MEMORY.md that only point to a topic file are left out, because that file
# is read too.

_INSIDE = Path(".claude/memory")  # where some projects keep it in the repository
_POINTER = re.compile(r"\[[^\]]*\]\(([^)\s]+\.md)\)")


def _is_claude(path: Path) -> bool:
    places = (path, path / CLAUDE_INDEX, path / _INSIDE / CLAUDE_INDEX)
    return any(place.name == CLAUDE_INDEX and place.is_file() for place in places)


def _read_claude(path: Path, reading: SourceReading) -> None:
    folder = path / _INSIDE if (path / _INSIDE / CLAUDE_INDEX).is_file() else path
    files = [path] if path.is_file() else files_below(folder, "*.md")
    files.sort(key=lambda file: (file.name != CLAUDE_INDEX, file.name))
    reading.read_each(files, _read_claude_file)


def _read_claude_file(path: Path, reading: SourceReading) -> None:
    page = page_of(path)
    nested = page.about.get("metadata")  # where later versions put some of it
    about = {**page.about, **(nested if isinstance(nested, dict) else {})}
    type_ = category(about.get("type"))
    topic = [] if path.name == CLAUDE_INDEX else [path.stem]
    fields = filled(category=type_, valid_from=day(about.get("modified"))) | {"tags": tags(topic)}
    is_private = type_ == "user"
    if isinstance(about.get("description"), str) and about["description"].strip():
        lead = filled(**fields, statement=about["description"].strip())
        reading.found.append(FoundMemory("fact", lead, path.name, private=is_private))
    _add_page(page, reading, fields, private=is_private, without=lambda note: _points(note, path))


def _points(note: str, path: Path) -> bool:
    pointer = _POINTER.match(note)
    return pointer is not None and (path.parent / pointer[1]).is_file()


CLAUDE_MEMORY = ImportSource(
    "claude-memory", _is_claude, _read_claude, lambda root, _: claude_folders(root)
)


# -- Notes of basic-memory: Markdown with a permalink, observations and relations ------------------
#
# An observation is `- [category] text #tag (context)`, a relation `- verb [[Other note]]`, anywhere
# in the text. Prose around them is read like any other Markdown.

_OBSERVATION = re.compile(r"\s*[-*]\s+\[([^\[\]]{2,})\]\s+(?!\()(.+)")
_RELATION = re.compile(r"\s*[-*]\s+(?:([^\[\]]*?)\s+)?\[\[([^\[\]]+)\]\](.*)")
_TAG = re.compile(r"(?<!\S)#([\w-]+)")
_BASIC_USED = ("title", "type", "tags", "permalink", "created", "modified")
_LOOKED_AT = 50  # notes of a folder, before it counts as somebody else's


def _basic_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".md" else []
    found = ((file, file.relative_to(path).as_posix()) for file in files_below(path, "**/*.md"))
    return [file for file, name in found if "/." not in f"/{name}"]


def _is_basic(path: Path) -> bool:
    return any(_has_permalink(file) for file in _basic_files(path)[:_LOOKED_AT])


def _has_permalink(path: Path) -> bool:
    try:
        return "permalink" in page_of(path).about
    except (InvalidRecord, OSError):
        return False


def _read_basic(path: Path, reading: SourceReading) -> None:
    reading.read_each(_basic_files(path), _read_basic_note)


def _read_basic_note(path: Path, reading: SourceReading) -> None:
    page = page_of(path)
    reading.count_left_out(page.about, _BASIC_USED)
    title = str(page.about.get("title") or path.stem)
    known = tags(page.about.get("tags"))
    since: dict[str, Any] = {
        "valid_from": day(page.about.get("modified") or page.about.get("created"))
    }
    about = {**since, "subject": title}
    prose = []
    for line in page.body.split("\n"):
        if relation := _RELATION.fullmatch(line):
            verb = (relation[1] or "relates to").strip().replace("_", " ")
            said = f"{title} {verb} {relation[2].partition('|')[0].strip()}"
            fields = {**about, "statement": said, "type": "relationship"}
            reading.add("fact", path.name, fields)
        elif observed := _OBSERVATION.fullmatch(line):
            named = tags(known, [title], _TAG.findall(observed[2]))
            said = " ".join(_TAG.sub("", observed[2]).split())
            sort = category(observed[1])
            fields = {"statement": said, "category": sort, "type": sort, "tags": named}
            reading.add("fact", path.name, {**about, **fields})
        else:
            prose.append(line)
    fields = {**since, "tags": tags([path.stem], known)}
    _add_page(page._replace(body="\n".join(prose)), reading, fields)


BASIC_MEMORY = ImportSource(
    "basic-memory", _is_basic, _read_basic, lambda _, home: [home / "basic-memory"]
)


# -- Bundles of the Open Knowledge Format 0.2: a folder of pages, each with a `type` ---------------
#
# Pages that `loki-mem export --format okf` wrote hold their record and give it back as it was. Of
# others, the description and each statement of the text is a fact; `index.md` and `log.md` are made
# again.

_OKF_LISTS = {"index.md", "log.md"}
_OKF_USED = names_in({}, "type title description tags status stale_after generated timestamp")
_OKF_STATUS = {"draft": "candidate", "deprecated": "retired"}


def _is_okf(path: Path) -> bool:
    index = path / "index.md"
    return index.is_file() and "okf_version" in page_of(index).about


def _read_okf(path: Path, reading: SourceReading) -> None:
    files = [path] if path.is_file() else files_below(path, "**/*.md")
    reading.read_each(files, _read_okf_page)


def _read_okf_page(path: Path, reading: SourceReading) -> None:
    if path.name in _OKF_LISTS:
        reading.refuse(path.name, "the page", "a list, which is made again")
        return
    page = page_of(path)
    ours = record_in(page.body)
    if ours is not None:
        reading.found.append(whole_record(path.name, ours))
    elif page.about.get("type"):
        _add_okf_page(page, reading)
    else:
        reading.refuse(path.name, "the page", "it has no `type`")


def _add_okf_page(page: MarkdownNote, reading: SourceReading) -> None:
    about = page.about
    reading.count_left_out(about, _OKF_USED)
    generated = about.get("generated")
    made = generated.get("at") if isinstance(generated, dict) else None
    fields = {
        "category": category(about["type"]),
        "status": _OKF_STATUS.get(str(about.get("status"))),
        "valid_from": day(made) or day(about.get("timestamp")),
        "invalid_at": when(about.get("stale_after")),
        "tags": tags([page.path.stem], about.get("tags")),
    }
    if about.get("description"):
        said = f"{about.get('title') or page.path.stem}: {about['description']}"
        reading.add("fact", page.path.name, {**fields, "statement": said})
    _add_page(page, reading, fields)


OKF = ImportSource("okf", _is_okf, _read_okf)
