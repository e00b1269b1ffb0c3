"""Files of a project, read as data.

What a clone brings is not trusted: a file is read up to a size, never through a link that leads out
of the project, and one that cannot be parsed counts as absent, with a remark.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LARGEST = 400_000  # bytes: ten times the largest manifest that we have seen
_MOST_ENTRIES = 2_000  # of a folder
_DEEPEST = 50  # levels of YAML
_MOST_NODES = 20_000  # of a structured file that are looked at

Table = dict[str, Any]


class ProjectFiles:
    """The files of a project, each read once."""

    def __init__(self, root: Path) -> None:
        self.problems: list[str] = []  # sentences about files that were left out
        self._root = os.path.realpath(root)
        self._texts: dict[str, str] = {}

    def text(self, path: str) -> str:
        """The text of a file; empty if there is none that may be read."""
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def has(self, path: str) -> bool:
        """Check if there is such a file in the project."""
        status = self._status(path)
        return status is not None and stat.S_ISREG(status.st_mode)

    def has_folder(self, path: str) -> bool:
        status = self._status(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder, sorted; empty if there is no such folder in the project."""
        if folder and not self.has_folder(folder):
            return []
        try:
            with os.scandir(os.path.join(self._root, folder)) as entries:
                found = [
                    entry.name for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False)
                ]
        except OSError:
            return []
        return sorted(found)

    def first(self, *paths: str) -> str:
        """The first of some paths that is a file; empty if none is."""
        return next(filter(self.has, paths), "")

    def toml(self, path: str) -> Table:
        return self._parsed(path, tomllib.loads, "TOML")

    def json(self, path: str) -> Table:
        return self._parsed(path, json.loads, "JSON")

    def jsonc(self, path: str) -> Table:
        """JSON with comments and trailing commas, as TypeScript reads its settings."""
        return self._parsed(path, _load_jsonc, "JSON")

    def yaml(self, path: str) -> Table:
        return self._parsed(path, _load_yaml, "YAML")

    def ini(self, path: str) -> Table:
        """The sections of an INI file, each a table of texts."""
        return self._parsed(path, _load_ini, "INI")

    def _parsed(self, path: str, load: Callable[[str], object], form: str) -> Table:
        text = self.text(path)
        try:
            value = load(text) if text.strip() else {}
        except (ValueError, RecursionError):
            self.problems.append(f"{path} is not valid {form} and was left out.")
            return {}
        return value if isinstance(value, dict) else {}

    def _status(self, path: str) -> os.stat_result | None:
        """The status of what lies inside the project; links may lead there, and nowhere else."""
        real = os.path.realpath(os.path.join(self._root, path))
        if not real.startswith(self._root.rstrip(os.sep) + os.sep):
            return None
        try:
            return os.stat(real)
        except (OSError, ValueError):
            return None

    def _read(self, path: str) -> str:
        status = self._status(path)
        if status is None or not stat.S_ISREG(status.st_mode):
            return ""
        if status.st_size > _LARGEST:
            self.problems.append(f"{path} is larger than {_LARGEST // 1000} kB and was left out.")
            return ""
        try:
            with open(os.path.realpath(os.path.join(self._root, path)), "rb") as file:
                data = file.read(_LARGEST)
        except OSError as error:
            self.problems.append(f"{path} cannot be read: {error.strerror}.")
            return ""
        return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\0", "\ufffd")


def table(value: object, *names: str) -> Table:
    """The table at a path of keys; empty if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def texts(value: object) -> list[str]:
    """A text, or the texts of a list, as a list."""
    found = value if isinstance(value, list) else [value]
    return [entry for entry in found if isinstance(entry, str)]


def strings(
    value: object, keys: frozenset[str], without: frozenset[str] = frozenset()
) -> list[str]:
    """The texts under some keys, anywhere in a structure, in its order.

    A table that has one of the keys `without` is left out with everything in it.
    References in YAML can unfold a small file into a huge structure, so only a part is looked at.
    """
    found: list[str] = []
    waiting = [value]
    for _ in range(_MOST_NODES):
        if not waiting:
            break
        node = waiting.pop()
        if isinstance(node, dict):
            if not without.isdisjoint(node):
                continue
            for key in (key for key in node if key in keys):
                found += texts(node[key])
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        waiting += reversed([part for part in inner if isinstance(part, dict | list)])
    return found


# A string, which stays, or what JSON does not have.
_BESIDE_JSON = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


def _load_jsonc(text: str) -> object:
    for beside in (_BESIDE_JSON, _LAST_COMMA):
        text = beside.sub(lambda found: found[1] or "", text)
    return json.loads(text)


def _load_ini(text: str) -> Table:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from error
    return {name: dict(parser.items(name)) for name in parser.sections()}


def _load_yaml(text: str) -> object:
    """Load YAML as texts, lists and tables: no tag makes anything.

    The depth is checked first, because libyaml's own recursion ends in a crash.
    """
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # in C where there is libyaml
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise ValueError("is nested too deeply")
        return yaml.load(text, Loader=loader)  # noqa: S506 - makes only text
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
