"""Changed files below `.loki` that no record explains: settings, attributes, views, links, modes.

Together with the records (`field_changes`) this is all that a commit changes there, except for new
files of the write log: every commit of memory brings one, and nothing in it is ever told.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.files import disk
from loki_memory.files.redaction import redact
from loki_memory.history.tree import empty_tree, raw_edits
from loki_memory.models.text import revealed
from loki_memory.resources import template

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout
    from loki_memory.git_repository import Repository
    from loki_memory.history.belief_diff import Shift
    from loki_memory.history.tree import Records
    from loki_memory.models import Memory


PLAIN = "100644"  # git's modes
LINK = "120000"
_KINDS = {PLAIN: "file", "100755": "executable file", LINK: "symbolic link", "160000": "submodule"}
_NO_MODE = "000000"
_MOST_LINES = 2_000  # of one file; what is longer is said
_WITNESS = re.compile(r"\.loki/memory/witness/[\w-]+/[\w-]+\.jsonl")


class FileChange(NamedTuple):
    """A file that differs: what happened to it, and its lines, `-` those before, `+` those now."""

    path: str  # from the folder of the workspace
    what: str
    lines: list[str]

    def is_as_init_writes_it(self) -> bool:
        """Check for a new file that says what `loki-mem init` writes, and nothing else."""
        name = self.path.removeprefix(".loki/")
        if name not in {"config.toml", ".gitignore"} or self.what != "added, a file":
            return False
        ours = template(name.lstrip(".")).splitlines()
        return [line.removeprefix("+ ") for line in self.lines] == ours


class _Version(NamedTuple):
    mode: str
    blob: str  # zeros for a file of the working tree

    @property
    def kind(self) -> str:
        return _KINDS.get(self.mode, f"file of mode {self.mode}")


class FileEdit(NamedTuple):
    """A path below `.loki`, from the folder of the workspace, in two states."""

    path: str
    before: _Version
    after: _Version

    @property
    def is_plain(self) -> bool:
        """Check for a regular file that is not executable, where there is a file."""
        return {self.before.mode, self.after.mode} <= {PLAIN, _NO_MODE}

    @property
    def is_new_witness(self) -> bool:
        is_new = (self.before.mode, self.after.mode) == (_NO_MODE, PLAIN)
        return is_new and _WITNESS.fullmatch(self.path) is not None


def file_edits(repo: Repository, before: str, after: str) -> list[FileEdit]:
    """The files below `.loki` that differ: from a commit (or nothing) to one, or to those here."""
    start = before or empty_tree(repo)
    shape = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev", start)
    where = ("--", f"{repo.prefix}/")
    if after:
        return list(_parsed(repo, repo.run("diff-tree", *shape, after, *where)))
    found = list(_parsed(repo, repo.run("diff-index", *shape[1:], *where)))
    asked = ("ls-files", "--others", "--exclude-standard", "-z")
    others = os.fsdecode(repo.run(*asked, *where)).split("\0")
    return [*found, *(_untracked(repo, path) for path in others if path)]


def _untracked(repo: Repository, path: str) -> FileEdit:
    return FileEdit(_inside(repo, path), _Version(_NO_MODE, ""), _on_disk(repo, path))


def _inside(repo: Repository, path: str) -> str:
    return path.removeprefix(repo.prefix.removesuffix(".loki"))


def _on_disk(repo: Repository, path: str) -> _Version:
    try:
        mode = os.lstat(repo.root / path).st_mode
    except OSError:
        return _Version(_NO_MODE, "")
    if stat.S_ISLNK(mode):
        return _Version(LINK, "")
    return _Version("100755" if mode & stat.S_IXUSR else PLAIN, "")


def _parsed(repo: Repository, raw: bytes) -> Iterator[FileEdit]:
    for path, (old_mode, new_mode, old, new, _) in raw_edits(raw):
        yield FileEdit(_inside(repo, path), _Version(old_mode, old), _Version(new_mode, new))


def file_change(repo: Repository, layout: Layout, edit: FileEdit) -> FileChange | None:
    """The change of one file; None if it has the same bytes in both states."""
    old = _content(repo, layout, edit.path, edit.before)
    new = _content(repo, layout, edit.path, edit.after)
    if old == new and edit.before.mode == edit.after.mode:
        return None
    lines = list(_lines(old, new))
    return FileChange(edit.path, _verdict(edit), lines[:_MOST_LINES] + _left_out(lines))


def _verdict(edit: FileEdit) -> str:
    if edit.before.mode == _NO_MODE:
        return f"added, {_article(edit.after.kind)}"
    if edit.after.mode == _NO_MODE:
        return f"removed, {_article(edit.before.kind)}"
    if edit.before.mode == edit.after.mode:
        return "changed" if edit.is_plain else f"changed, {_article(edit.after.kind)}"
    return f"was {_article(edit.before.kind)}, is {_article(edit.after.kind)}"


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _content(repo: Repository, layout: Layout, path: str, version: _Version) -> bytes:
    if version.mode in {_NO_MODE, "160000"}:
        return b""
    if version.blob.strip("0"):
        return next(data for _, data in repo.blobs([version.blob]))
    place = layout.root / path
    try:
        if version.mode == LINK:
            return os.fsencode(os.readlink(place))
        return disk.read_bytes(place) or b""
    except OSError:
        return b""


def _lines(old: bytes, new: bytes) -> Iterator[str]:
    before, after = _text(old), _text(new)
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (f"- {line}" for line in before[i:j])
            yield from (f"+ {line}" for line in after[k:m])


def _text(data: bytes) -> list[str]:
    """The lines of a file, without secrets; of one that is no text, its size."""
    try:
        return redact(data.decode()).splitlines() if b"\0" not in data else [_size(data)]
    except UnicodeDecodeError:
        return [_size(data)]


def _size(data: bytes) -> str:
    return f"{len(data):,} bytes that are no text"


def _left_out(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_LINES
    return [f"and {more:,} more lines"] if more > 0 else []


# -- fields of records -----------------------------------------------------------------------------


_LONG = 8  # characters: a shorter value may stand in another text by chance
# An episode's mark is one value, or each piece of evidence would be four lines.
_WHOLE = ("evidence.episodes.",)


# The words for fields in the details of a shift.
_SPOKEN = {
    "when": "conditions",
    "do": "correct_approach",
    "not": "incorrect_approach",
    "instead": "prevention",
    "said by": "by",
}
# The words for a memory that was not there before, or that ends.
_NEW = frozenset({"learned", "added", "recorded", "superseded", "candidate"})
_FOR_THE_TOOL = frozenset(
    {"surprise", "score", "importance", "quoted", "key", "at", "timestamp", "valid_from"}
)


class FieldChange(NamedTuple):
    """A value of one field before and after; empty where there was none, or is none."""

    field: str
    before: str
    after: str

    def words(self) -> str:
        """`tags: net -> ops`, or without an arrow if there is one value only."""
        before, after = revealed(self.before), revealed(self.after)
        if not self.before:
            return f"{self.field}: {after}"
        return f"{self.field}: {before} -> {after or 'nothing'}"


class RecordChange(NamedTuple):
    """A memory that differs, and all fields in which it does."""

    id: str
    kind: str
    path: str  # of its file in memory
    title: str
    fields: list[FieldChange]


def record_changes(old: Records, new: Records) -> list[RecordChange]:
    """The memories that differ between two states, by id; those in the archive too."""
    names = sorted(old.all().keys() | new.all().keys())
    return [change for name in names if (change := _record_change(old, new, name)).fields]


def _record_change(old: Records, new: Records, name: str) -> RecordChange:
    shown = new.all().get(name) or old.all()[name]
    path = new.paths.get(name) or old.paths.get(name, "")
    pairs = _versions(old, new, name)
    fields = [change for before, after in pairs for change in _changes(before, after)]
    return RecordChange(name, shown.kind, path, shown.title(), fields)


def _changes(before: Memory | None, after: Memory | None) -> Iterator[FieldChange]:
    """Compare two versions; of one that is new or gone, default values are left out."""
    present = before or after
    usual = _defaults(type(present)) if present and not (before and after) else {}
    for change in field_changes(_values(before), _values(after)):
        if usual.get(change.field) not in {change.before, change.after}:
            yield change


@cache
def _defaults(model: type[Memory]) -> dict[str, str]:
    """The values that fields have where nothing is said: `active`, `project`, `false`."""
    return {
        name: _words(info.default)
        for name, info in model.model_fields.items()
        if isinstance(info.default, str | bool) and info.default != ""
    }


def _versions(
    old: Records, new: Records, name: str
) -> Iterator[tuple[Memory | None, Memory | None]]:
    """Pair the versions of a memory; one that was moved to or from the archive is one memory."""
    before = old.live.get(name), old.archived.get(name)
    after = new.live.get(name), new.archived.get(name)
    if before.count(None) == after.count(None) == 1:
        yield old.all()[name], new.all()[name]
    else:
        yield from zip(before, after, strict=True)


def _values(record: Memory | None) -> dict[str, Any]:
    return dict(_flat(record.document(), "")) if record is not None else {}


def _flat(document: Mapping[str, Any], within: str) -> Iterator[tuple[str, Any]]:
    """`{"context": {"goal": …}}` as `context.goal`."""
    for name, value in document.items():
        if isinstance(value, dict) and value and not within.startswith(_WHOLE):
            yield from _flat(value, f"{within}{name}.")
        else:
            yield within + name, value


def field_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldChange]:
    """Compare two versions, given as values by the names of their fields."""
    for name in dict.fromkeys((*before, *after)):
        for was, now in _pairs(_parts(before.get(name)), _parts(after.get(name))):
            yield FieldChange(name, was, now)


def _parts(value: Any) -> list[str]:
    """A value as texts that are compared one by one: items of a list, lines of a text."""
    if value is None:
        return []
    if isinstance(value, list):
        return [_words(item) for item in value]
    return value.split("\n") if isinstance(value, str) else [_words(value)]


def _words(value: Any) -> str:
    """A value for readers: `do: clear the cache; for: ep-1, ep-2`."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_words(part)}" for name, part in value.items() if part != [])
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    return json.dumps(value)


def _pairs(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            both = min(j - i, m - k)
            yield from zip(old[i : i + both], new[k : k + both], strict=True)
            yield from ((text, "") for text in old[i + both : j])
            yield from (("", text) for text in new[k + both : m])


# -- showing ---------------------------------------------------------------------------------------


def untold(change: RecordChange, shift: Shift | None) -> list[FieldChange]:
    """The fields whose values do not stand in the words about a memory."""
    details, caused_by = (shift.details, shift.caused_by) if shift else ((), ())
    said = [_on_one_line(text) for text in (change.title, *details)]
    named = {named for text in said for named in _named_values(text)}
    known = {"", change.id, said[0], *caused_by}

    def is_told(field: str, value: str) -> bool:
        text = _on_one_line(value)
        if text in known or (field, text) in named:
            return True
        return len(text) >= _LONG and any(text in line for line in said)

    return [
        field
        for field in change.fields
        if (field.field != "confidence" or shift is None)  # every shift gives both numbers
        and not (is_told(field.field, field.before) and is_told(field.field, field.after))
    ]


def bookkeeping(field: FieldChange, shift: Shift) -> bool:
    """Check for a field of something new that only the tool reads, or that another line says.

    Nothing of it is told to an agent, and a reviewer who wants it has `--all`.
    """
    if field.before or shift.what not in _NEW:
        return False
    root, _, rest = field.field.partition(".")
    if root == "evidence":
        return rest.removeprefix("episodes.") in shift.caused_by
    if root == "resolutions":
        remedy, _, episodes = field.after.removeprefix("do: ").partition("; for: ")
        is_said = f"instead: {_on_one_line(remedy)}" in shift.details
        return is_said and {*episodes.split(", ")} <= {*shift.caused_by}
    if root == "links":
        to, _, relation = field.after.removeprefix("to: ").partition("; relation: ")
        return not {f"{relation} {to}", f"by {to}"}.isdisjoint(shift.details)
    return root in _FOR_THE_TOOL or (root == "origin" and field.after == "agent")


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _named_values(detail: str) -> Iterator[tuple[str, str]]:
    """Take `tags: net -> ops` and `when: CI; macOS` apart: the field, and each value."""
    name, _, said = detail.partition(": ")
    field = name.removesuffix(" added").removesuffix(" removed")
    for value in (*said.split(" -> "), *said.split("; ")):
        yield _SPOKEN.get(field, field), "" if value == "nothing" else value
