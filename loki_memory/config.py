"""Settings: of the workspace, of the user, of the environment; each with its meaning.

The workspace's `config.toml` comes with a clone and is data: a setting that names a path (a command
or an address would be another) is read from the user's file or the environment only.
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
_SWITCH = {"true": 1, "1": 1, "false": 0, "0": 0}


class Setting(NamedTuple):
    """A key, its default, and what it means; the default says whether it is a number or a text."""

    name: str
    default: int | str
    meaning: str
    is_switch: bool = False  # 0 or 1, written `false` or `true`
    names_path: bool = False

    @property
    def variable(self) -> str:
        return "LOKI_" + self.name.replace(".", "_").upper()

    @property
    def form(self) -> str:
        if isinstance(self.default, str):
            return "a text"
        return "true or false" if self.is_switch else "a whole number, 0 or more"

    def parsed(self, raw: Any) -> int | str | None:
        """What a file or a person wrote, as a value; None if it is none."""
        if isinstance(self.default, str):
            return raw if isinstance(raw, str) else None
        if self.is_switch:
            return _SWITCH.get(str(raw).lower())
        whole = isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0
        return int(raw) if whole or (isinstance(raw, str) and raw.isdecimal()) else None


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
    Setting(
        "embedding.model",
        "",
        "a folder with another model that model2vec reads; empty: the one that is shipped",
        names_path=True,
    ),
    Setting(
        "recall.floor",
        45,
        "how certain recall must be of its best answer to answer at all, in hundredths",
    ),
    Setting(
        "continuity.budget",
        1000,
        "up to how many tokens CONTINUITY.md says",
    ),
    Setting(
        "continuity.track",
        0,
        "whether git tracks CONTINUITY.md",
        is_switch=True,
    ),
)


class Value(NamedTuple):
    """A setting as it is in force, and where it was set."""

    setting: Setting
    value: int | str
    source: str  # default, user, workspace or environment


class Config(NamedTuple):
    """All settings as they are in force, keys that nobody knows, and what is not obeyed and why."""

    values: dict[str, Value]
    unknown: list[str]
    ignored: list[str]

    def get(self, name: str) -> int:
        return int(self.values[name].value)

    def text(self, name: str) -> str:
        return str(self.values[name].value)


def load(workspace: Path, user: Path, environment: Mapping[str, str] | None = None) -> Config:
    """Read the settings; later sources win: default, user, workspace, environment."""
    environment = os.environ if environment is None else environment
    config = Config({s.name: Value(s, s.default, "default") for s in SETTINGS}, [], [])
    _take(config, "user", user)
    if workspace != user:  # as it is when the workspace is the user's own
        _take(config, "workspace", workspace)
    for setting in SETTINGS:
        if setting.variable in environment:
            _set(
                config, setting.name, environment[setting.variable], "environment", setting.variable
            )
    return config


def _take(config: Config, source: str, path: Path) -> None:
    for name, raw in _flat(_read(path)).items():
        if name == "format":
            _check_format(path, raw)
        elif name not in config.values:
            config.unknown.append(f"{path}: {name}")
        elif config.values[name].setting.names_path and source == "workspace":
            config.ignored.append(f"{name} in {path} is ignored: {_who_may(name)}")
        else:
            _set(config, name, raw, source, path)


def _who_may(name: str) -> str:
    return f"only the user's config or {_setting(name).variable} may name a path"


def _set(config: Config, name: str, raw: Any, source: str, where: object) -> None:
    setting = config.values[name].setting
    value = setting.parsed(raw)
    if value is None:
        raise InvalidConfig(where, f"{name} is {raw!r}; it must be {setting.form}.")
    config.values[name] = Value(setting, value, source)


def _setting(name: str) -> Setting:
    found = [setting for setting in SETTINGS if setting.name == name]
    if not found:
        raise InvalidConfig(name, "is not a setting; `loki-mem config` lists them.")
    return found[0]


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


def chosen(name: str, written: str, *, by_user: bool = False) -> int | str:
    """The value that someone wrote for a setting of a workspace, or of the user's own."""
    setting = _setting(name)
    if setting.names_path and not by_user:
        raise InvalidConfig(name, f"a workspace cannot set it: {_who_may(name)}.")
    value = setting.parsed(written)
    if value is None:
        raise InvalidConfig(name, f"{written!r} is not {setting.form}.")
    return value


def edited(text: str, name: str, value: int | str) -> str:
    """A config file's text with one key set; comments and order stay as they are."""
    import tomlkit

    document = tomlkit.parse(text)
    table: Any = document
    *tables, key = name.split(".")
    for part in tables:
        table = table.setdefault(part, tomlkit.table())
        if not isinstance(table, dict):
            raise InvalidConfig("config.toml", f"{part} is not a table; remove that line.")
    table[key] = bool(value) if _setting(name).is_switch else value
    return tomlkit.dumps(document)
