"""Prose that an agent puts down with a tool: commit messages, pull requests, comments, documents.

Edits are also read as hunks: the lines that they remove and add.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from loki_memory.ingest.sentences import begins_anew
from loki_memory.ingest.turns import Hunk, first_hunks, hunk, prose_text
from loki_memory.models.error_signature import is_shell

_PUBLISHES = re.compile(r"\bgit\b[^|;&\n]*\b(?:commit|tag)\b|\bgh\s+(?:pr|issue|api|release)\b")
_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?[^\n]*\n(.*?)^\s*\1\b", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(
    r"(?:(?<=\s)-(?:[a-z]*m|b|t)|--(?:message|body|title|notes)|-[fF]\s+(?:body|title))[=\s]*"
    r"(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')",
    re.DOTALL,
)
_SUBSTITUTION = re.compile(r"\$\(|<<")
_TRAILER = re.compile(
    r"^(?:Co-Authored-By|Signed-off-by|[\w-]+-Checkpoint):.*$|^.*Generated with.*$", re.MULTILINE
)
_PROSE_FIELDS = ("plan", "title", "description", "body")  # of plans and of trackers' tools
_TRACKER = re.compile(r"mcp__.*(?:issue|comment|pull|ticket|task|document|page)", re.IGNORECASE)
_DOCUMENT = re.compile(r"\.(?:md|mdx|markdown|rst|txt|adoc)$", re.IGNORECASE)
_COMMENT = re.compile(
    r"^\s*(?://+!?|#(?![!\[]|include|define|if|endif|else|pragma)|/\*+|\*(?!/)|--|;;+)\s?(.*?)(?:\*/)?$"
)
_DOCSTRING = re.compile(r'(?:"""|\'\'\')(.*?)(?:"""|\'\'\')', re.DOTALL)
_DIRECTIVE = re.compile(
    r"\s*(?:nolint|noqa|type:|eslint|ts-|go:|pylint|prettier|@\w+)", re.IGNORECASE
)


def written_prose(tool: str, given: Mapping[str, Any]) -> str:
    """The prose that a call puts down, in Markdown; empty if it puts down none."""
    if is_shell(tool):
        command = given.get("command")
        return published_prose(command) if isinstance(command, str) else ""
    texts = [*_edited(given), *_filed(tool, given)]
    return prose_text("\n\n".join(filter(None, texts)))


def published_prose(command: str) -> str:
    """The message of a commit, or the text of a pull request or an issue."""
    if not _PUBLISHES.search(command):
        return ""
    bodies = [body for _, body in _HEREDOC.findall(command)]
    rest = _HEREDOC.sub(" ", command)
    quoted = [double or single for double, single in _QUOTED.findall(rest)]
    plain = [text.replace('\\"', '"').replace("\\n", "\n") for text in quoted]
    texts = [text for text in (*plain, *bodies) if not _SUBSTITUTION.search(text)]
    return prose_text("\n\n".join(_TRAILER.sub("", text) for text in texts))


def _filed(tool: str, given: Mapping[str, Any]) -> Iterator[str]:
    """Plans, and what a tracker is told."""
    if tool == "ExitPlanMode" or _TRACKER.match(tool):
        values = (given.get(name) for name in _PROSE_FIELDS)
        yield from (value for value in values if isinstance(value, str))


def _edited(given: Mapping[str, Any]) -> Iterator[str]:
    """Prose that an edit adds to a file: all of a document, the comments of code."""
    path = given.get("file_path")
    for before, after in _replacements(given):
        yield added_prose(path if isinstance(path, str) else "", before, after)


def _replacements(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    edits = given.get("edits")
    for edit in (given, *(edits if isinstance(edits, list) else ())):
        if isinstance(edit, Mapping):
            after = edit.get("new_string", edit.get("content"))
            before = edit.get("old_string") or ""
            if isinstance(after, str) and isinstance(before, str):
                yield before, after


def added_prose(path: str, before: str, after: str) -> str:
    """Return what an edit adds that is prose."""
    known = {line.strip() for line in before.splitlines()}
    # A line that stays ends what stands before it: two comments around it are two.
    lines = ["" if line.strip() in known else line for line in after.splitlines()]
    return "\n".join(lines) if _DOCUMENT.search(path) else _comments(lines)


def _comments(lines: Sequence[str]) -> str:
    """The comments among lines of code, one paragraph for each run of them."""
    found: list[str] = []
    for line in lines:
        comment = _COMMENT.match(line)
        text = comment[1].strip() if comment else ""
        if found and begins_anew(found[-1], text):
            found.append("")
        found.append("" if _DIRECTIVE.match(text) else text)
    docstrings = _DOCSTRING.findall("\n".join(lines))
    return "\n".join([*found, "", *(f"{text.strip()}\n" for text in docstrings)]).strip()


# -- hunks -----------------------------------------------------------------------------------------


def given_hunks(given: Mapping[str, Any]) -> tuple[Hunk, ...]:
    """The hunks of an edit as a tool was given them; nobody knows yet at which line."""
    path = given.get("file_path")
    if not isinstance(path, str) or not path:
        return ()
    pairs = ((before, after) for before, after in _replacements(given) if before)
    return first_hunks(
        hunk(path, 0, *_differing(before.splitlines(), after.splitlines()))
        for before, after in pairs
    )


def _differing(before: Sequence[str], after: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines that only one of two texts has."""
    removed = [line for line in before if line not in set(after)]
    return removed, [line for line in after if line not in set(before)]


def patch_hunks(path: str, patches: Iterable[Mapping[str, Any]]) -> tuple[Hunk, ...]:
    """The hunks of a structured patch: `newStart`, and lines that begin with a blank, - or +."""
    return first_hunks(found for patch in patches for found in _of_patch(path, patch))


def _of_patch(path: str, patch: Mapping[str, Any]) -> Iterator[Hunk]:
    start, lines = patch.get("newStart"), patch.get("lines")
    if isinstance(start, int) and isinstance(lines, list):
        yield from diff_hunks(path, start, [line for line in lines if isinstance(line, str)])


def diff_hunks(path: str, start: int, lines: Iterable[str]) -> Iterator[Hunk]:
    """Hunks of one block of a diff, each a run of changed lines; `start` is its first line."""
    removed: list[str] = []
    added: list[str] = []
    at = first = start
    for line in (*lines, " "):
        if line[:1] in {"-", "+"}:
            first = first if removed or added else at
            (removed if line[0] == "-" else added).append(line[1:])
            at += line[0] == "+"
            continue
        if removed or added:
            yield hunk(path, first, removed, added)
            removed, added = [], []
        at += 1


_BLOCK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@.*$", re.MULTILINE)
_FILE = re.compile(r"^\*\*\* (?:Update|Add) File: (.+)$", re.MULTILINE)


def unified_hunks(path: str, diff: str) -> Iterator[Hunk]:
    """The hunks of a unified diff of one file."""
    starts = list(_BLOCK.finditer(diff))
    ends = (*(found.start() for found in starts[1:]), len(diff))
    for found, end in zip(starts, ends, strict=False):
        yield from diff_hunks(path, int(found[1]), diff[found.end() : end].strip("\n").split("\n"))


def _patched_files(patch: str) -> Iterator[tuple[str, list[str]]]:
    """Each file of a patch in Codex's form, with the lines that follow its name."""
    starts = list(_FILE.finditer(patch))
    ends = (*(found.start() for found in starts[1:]), len(patch))
    for found, end in zip(starts, ends, strict=False):
        yield found[1].strip(), patch[found.end() : end].split("\n")


_PATCHED = re.compile(r"^\*\*\* (?:Update File|Add File|Delete File|Move to): (.+)$", re.MULTILINE)


def patched_files(patch: str) -> list[str]:
    """The files that a patch in Codex's form names."""
    return _PATCHED.findall(patch)


def patch_text_hunks(patch: str) -> tuple[Hunk, ...]:
    """The hunks of a patch in Codex's form, which has no line numbers."""
    return first_hunks(
        found._replace(line=0)
        for path, lines in _patched_files(patch)
        for found in diff_hunks(path, 0, lines)
    )


def patch_prose(patch: str) -> str:
    """Prose that a patch in Codex's form adds."""
    texts = []
    for path, lines in _patched_files(patch):
        before = "\n".join(line[1:] for line in lines if line.startswith("-"))
        after = "\n".join(line[1:] for line in lines if line.startswith("+"))
        texts.append(added_prose(path, before, after))
    return prose_text("\n\n".join(filter(None, texts)))
