"""The files behind Anthropic's memory tool (`memory_20250818`): notes that a model keeps itself.

    from loki_memory import Workspace
    from loki_memory.interop.anthropic_memory_tool import MemoryTool

    memory = MemoryTool(Workspace.open())
    answer = memory(block.input)  # of a `tool_use` block whose name is "memory"

The model sees one folder, `/memories`. Its files are plain files in `.loki/memories/`, tracked and
reviewed with the code. The project's own memories for the last goal are there too, as
`/memories/project.md`, which can be read but not written.

Answers are worded as Anthropic documents them, because models were trained on those sentences.
An error is an answer as well: the model reads it and tries something else.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError, validate_call

from loki_memory.continuity.file import block_text
from loki_memory.errors import LokiMemoryError
from loki_memory.files import disk
from loki_memory.files.redaction import redact

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

ROOT = "/memories"
PROJECT = f"{ROOT}/project.md"
_FOLDER = "memories"
_MOST_LINES = 999_999
_MOST_BYTES = 1 << 20  # the limit of a record's file
_LEVELS = 2
_AROUND = 4  # lines shown before and after an edit
_MISSING = "The path {} does not exist. Please provide a valid path."


class ToolRefusal(Exception):
    """A refusal that is answered to the model."""


class MemoryTool:
    """The commands of the memory tool on one workspace."""

    def __init__(self, workspace: OpenWorkspace) -> None:
        self._workspace = workspace
        self._top = workspace.layout.loki / _FOLDER

    def __call__(self, command: Mapping[str, Any]) -> str:
        """Answer a command of the model: `{"command": "view", "path": "/memories"}`."""
        given = dict(command)
        name = given.pop("command", None)
        commands: dict[Any, Callable[..., str]] = {
            "view": self.view,
            "create": self.create,
            "str_replace": self.str_replace,
            "insert": self.insert,
            "delete": self.delete,
            "rename": self.rename,
        }
        if not isinstance(name, str) or name not in commands:
            return f"Error: Unknown command {name!r}. Use one of: {', '.join(commands)}."
        try:
            return validate_call(commands[name])(**given)
        except ValidationError as error:
            wrong = ", ".join(sorted({str(problem["loc"][0]) for problem in error.errors()}))
            return f"Error: Missing, unknown or unfit parameters of {name}: {wrong}."
        except (ToolRefusal, LokiMemoryError) as refusal:
            return str(refusal)
        except OSError as error:
            return f"Error: {error.strerror}."

    # -- commands ------------------------------------------------------------------------------

    def view(self, path: str, view_range: tuple[int, int] | None = None) -> str:
        """List a folder, or show a file with the numbers of its lines."""
        if path.rstrip("/") != PROJECT and (self._file(path).is_dir() or _is_root(path)):
            return self._listing(path.rstrip("/"))
        lines = self._text(path, _MISSING).splitlines()
        if len(lines) > _MOST_LINES:
            raise ToolRefusal(f"File {path} exceeds maximum line limit of {_MOST_LINES:,} lines.")
        first, last = _range(view_range, len(lines))
        shown = _numbered(lines[first - 1 : last], first)
        return f"Here's the content of {path} with line numbers:\n{shown}"

    def create(self, path: str, file_text: str) -> str:
        """Write a new file."""
        with self._workspace.store.change():
            if path == PROJECT or os.path.lexists(self._file(path)):
                raise ToolRefusal(f"Error: File {path} already exists")
            self._write(path, file_text)
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replace a text that occurs once."""
        with self._workspace.store.change():
            text = self._own_text(path, f"Error: {_MISSING}")
            at = text.find(old_str) if old_str else -1
            if at < 0:
                raise ToolRefusal(
                    f"No replacement was performed, old_str `{old_str}` did not appear verbatim "
                    f"in {path}."
                )
            places = _lines_of(text, old_str)
            if len(places) > 1:
                raise ToolRefusal(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}` "
                    f"in lines: {', '.join(map(str, places))}. Please ensure it is unique"
                )
            new = self._write(path, text[:at] + new_str + text[at + len(old_str) :])
        return f"The memory file has been edited.\n{_excerpt(new, places[0], new_str)}"

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Put text below a line; 0 is the top."""
        with self._workspace.store.change():
            lines = self._own_text(path, f"Error: {_MISSING}").splitlines()
            if not 0 <= insert_line <= len(lines):
                raise ToolRefusal(
                    f"Error: Invalid `insert_line` parameter: {insert_line}. It should be within "
                    f"the range of lines of the file: [0, {len(lines)}]"
                )
            lines[insert_line:insert_line] = insert_text.splitlines()
            self._write(path, "".join(f"{line}\n" for line in lines))
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file, or a folder with everything in it."""
        with self._workspace.store.change():
            found = self._own(path)
            if not found.exists():
                raise ToolRefusal(f"Error: The path {path} does not exist")
            if found.is_dir():
                disk.refuse_links(found)
                shutil.rmtree(found)
            else:
                disk.remove(found)
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Rename or move a file or folder."""
        with self._workspace.store.change():
            old, new = self._own(old_path), self._own(new_path)
            if not old.exists():
                raise ToolRefusal(f"Error: The path {old_path} does not exist")
            if os.path.lexists(new):
                raise ToolRefusal(f"Error: The destination {new_path} already exists")
            disk.make_folder(new.parent)
            disk.move(old, new)
            disk.flush_folder(new.parent)
        return f"Successfully renamed {old_path} to {new_path}"

    # -- files ---------------------------------------------------------------------------------

    def _file(self, path: str) -> Path:
        """The file of a path from the model: inside our folder, by plain names and no links."""
        parts = path.rstrip("/").split("/")
        if parts[:2] != ROOT.split("/") or not all(map(_is_plain, parts[2:])):
            raise ToolRefusal(f"Error: {path!r} is not a path of plain names below {ROOT}")
        places = [self._top]
        for name in parts[2:]:
            places.append(places[-1] / name)
        if any(place.is_symlink() for place in places):
            raise ToolRefusal(f"Error: {path} leads through a symbolic link")
        return places[-1]

    def _own(self, path: str) -> Path:
        """As `_file`, for a path to be changed: neither the root folder nor our own file."""
        if _is_root(path) or path.rstrip("/") == PROJECT:
            raise ToolRefusal(f"Error: {path} cannot be changed")
        return self._file(path)

    def _text(self, path: str, missing: str) -> str:
        if path == PROJECT:
            return block_text(self._workspace, None, "", (), None)
        found = self._file(path)
        data = None if found.is_dir() else disk.read_bytes(found)
        if data is None:
            raise ToolRefusal(missing.format(path))
        return data.decode("utf-8", "replace")

    def _own_text(self, path: str, missing: str) -> str:
        self._own(path)
        return self._text(path, missing)

    def _write(self, path: str, text: str) -> str:
        """Write a file atomically, without secrets, and return its text."""
        clean = redact(text)
        data = clean.encode("utf-8", "replace")
        if len(data) > _MOST_BYTES:
            raise ToolRefusal(f"Error: {path} would be longer than {_MOST_BYTES:,} bytes")
        disk.write_bytes(self._own(path), data)
        return clean

    def _listing(self, path: str) -> str:
        head = (
            f"Here're the files and directories up to {_LEVELS} levels deep in {path}, excluding "
            "hidden items and node_modules:"
        )
        folder = self._file(path)
        sizes = {shown: _size(file) for file, shown in _walk(folder, path, _LEVELS)}
        total = _size(folder)
        if path == ROOT:
            sizes[PROJECT] = len(self._text(PROJECT, _MISSING).encode())
            total += sizes[PROJECT]
        rows = [f"{_short(sizes[name])}\t{name}" for name in sorted(sizes)]
        return "\n".join([head, f"{_short(total)}\t{path}", *rows])


def _is_root(path: str) -> bool:
    return path.rstrip("/") == ROOT


def _is_plain(name: str) -> bool:
    return bool(name) and name.isprintable() and name[0] != "." and "\\" not in name


def _walk(folder: Path, path: str, levels: int) -> Iterator[tuple[Path, str]]:
    """Yield files and folders below, each with the path that the model uses."""
    if levels == 0 or not folder.is_dir():
        return
    for file in sorted(folder.iterdir()):
        if file.name[0] != "." and file.name != "node_modules" and not file.is_symlink():
            shown = f"{path}/{file.name}"
            yield file, f"{shown}/" if file.is_dir() else shown
            yield from _walk(file, shown, levels - 1)


def _size(file: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    if not file.is_dir():
        return file.stat().st_size if file.exists() else 0
    return sum(_size(inner) for inner in file.iterdir() if not inner.is_symlink())


def _short(size: int) -> str:
    kilo = size / 1024
    return f"{kilo:.1f}K" if kilo < 1024 else f"{kilo / 1024:.1f}M"  # noqa: PLR2004


def _range(given: tuple[int, int] | None, count: int) -> tuple[int, int]:
    """The first and last line to show; -1 is the end."""
    if given is None:
        return 1, count
    first, last = given
    last = count if last == -1 else last
    if not 1 <= first <= max(last, 1) or last > count:
        raise ToolRefusal(
            f"Error: Invalid `view_range` parameter: {list(given)}. It should be within the "
            f"range of lines of the file: [1, {count}]"
        )
    return first, last


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(lines, first))


def _lines_of(text: str, part: str) -> list[int]:
    """The line of each occurrence, overlapping ones too."""
    found, at = [], text.find(part)
    while at >= 0:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(part, at + 1)
    return found


def _excerpt(text: str, line: int, put_in: str) -> str:
    """The lines around an edit."""
    lines = text.splitlines()
    first = max(1, line - _AROUND)
    last = line + put_in.count("\n") + _AROUND
    return _numbered(lines[first - 1 : last], first)
