"""Settings: of the workspace, of the user, of the environment; each with its meaning.

The workspace's `config.toml` comes with a clone and is data: a setting that could name a command,
an address or a path would be read from the user's file or the environment only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from loki_memory.errors import InvalidConfig, NewerFormat

FORMAT = 1
_ONLY_FORMAT = re.compile(r"(?:\s|#[^\n]*\n)*format\s*=\s*(\d+)(?:\s|#[^\n]*(?:\n|\Z))*\Z")


class Setting(NamedTuple):
    """A key, its default, and what it means."""

    name: str
    default: int
    meaning: str

    @property
    def variable(self) -> str:
        return "LOKI_" + self.name.replace(".", "_").upper()


SETTINGS = (
    Setting(
        "store.lock_seconds",
        10,
        "how long a writer waits for another process before it gives up",
    ),
    Setting(
        "sync.scan_limit",
        10_000,
        "up to this many files every command compares all of them; above, folders",
    ),
    Setting(
        "sync.full_scan_seconds",
        300,
        "above that limit, how often all files are compared nevertheless",
    ),
    Setting(
        "gc.keep_days",
        30,
        "how long `gc` leaves what was forgotten restorable on this machine",
    ),
)


class Value(NamedTuple):
    """A setting as it is in force, and where it was set."""

    setting: Setting
    value: int
    source: str  # default, user, workspace or environment


class Config(NamedTuple):
    """All settings as they are in force, and keys that nobody knows."""

    values: dict[str, Value]
    unknown: list[str]

    def get(self, name: str) -> int:
        return self.values[name].value


def load(workspace: Path, user: Path, environment: Mapping[str, str] | None = None) -> Config:
    """Read the settings; later sources win: default, user, workspace, environment."""
    environment = os.environ if environment is None else environment
    config = Config({s.name: Value(s, s.default, "default") for s in SETTINGS}, [])
    for source, path in (("user", user), ("workspace", workspace)):
        for name, raw in _flat(_read(path)).items():
            if name == "format":
                _check_format(path, raw)
            elif name in config.values:
                _set(config, name, raw, source, path)
            else:
                config.unknown.append(f"{path}: {name}")
    for setting in SETTINGS:
        if setting.variable in environment:
            _set(
                config, setting.name, environment[setting.variable], "environment", setting.variable
            )
    return config


def _set(config: Config, name: str, raw: Any, source: str, where: object) -> None:
    setting = config.values[name].setting
    whole = isinstance(raw, int) and not isinstance(raw, bool)
    value = int(raw) if whole or (isinstance(raw, str) and raw.isdecimal()) else -1
    if value < 0:
        raise InvalidConfig(where, f"{name} is {raw!r}; it must be a whole number, 0 or more.")
    config.values[name] = Value(setting, value, source)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(path, f"cannot be read ({error}).") from error
    # Most workspaces say only this, and the TOML reader costs 15 ms of every command.
    plain = _ONLY_FORMAT.match(text)
    return {"format": int(plain[1])} if plain else _parse(path, text)


def _parse(path: Path, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(path, f"is not valid TOML: {error}. Mend or delete it.") from error


def _flat(tables: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _check_format(path: Path, found: Any) -> None:
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise InvalidConfig(path, f"format is {found!r}; it must be {FORMAT}.")
    if found > FORMAT:
        raise NewerFormat(path, found, FORMAT)


def edited(text: str, name: str, value: int) -> str:
    """A config file's text with one key set; comments and order stay as they are."""
    import tomlkit

    document = tomlkit.parse(text)
    table: Any = document
    *tables, key = name.split(".")
    for part in tables:
        table = table.setdefault(part, tomlkit.table())
        if not isinstance(table, dict):
            raise InvalidConfig("config.toml", f"{part} is not a table; remove that line.")
    table[key] = value
    return tomlkit.dumps(document)
