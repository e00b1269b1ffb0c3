"""Read the settings from their files and from the environment, and write them.

A file is parsed with care, because a clone brings one: its size, depth and names are limited, and
no link in its place is followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loki_memory.config import FORMAT, Config, Setting, Value, cut, is_plain, shown
from loki_memory.errors import InvalidConfig, NewerFormat
from loki_memory.settings import SETTINGS

_ONLY_FORMAT = re.compile(r"(?:\s|#[^\n]*\n)*format\s*=\s*([0-9]{1,9})(?:\s|#[^\n]*(?:\n|\Z))*\Z")
_MOST_BYTES = 64_000  # of a file: all settings with their meanings have a tenth of that
_MOST_DOTS = 200  # on a line: `tomllib` takes 18 s for a key of 32,000 parts
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # a pipe in place of a file must not block
_DEEP = "is nested too deeply; settings stand in tables of one level. Mend or delete it."
_SHARED = "only the workspace's config.toml sets it, so that every clone consolidates alike"


def load(
    workspace: Path,
    user: Path,
    environment: Mapping[str, str] | None = None,
    confirmed: Path | None = None,
) -> Config:
    """Read the settings; later sources win: default, user, workspace, environment.

    But a workspace's value of privacy or trust counts only if it is as strict as its user's, and
    some only if the file `confirmed` has them: see `Setting.asks`.
    """
    environment = os.environ if environment is None else environment
    config = Config({s.name: Value(s, s.default, "default") for s in SETTINGS}, [], [])
    if workspace == user:  # the user's own file is the only one
        _take(config, "user", user, {})
    else:
        _take(config, "user", user, {s.name: _SHARED for s in SETTINGS if s.shared})
        before = dict(config.values)
        theirs = {s.name: _personal(s) for s in SETTINGS if s.names_path or s.is_personal}
        _take(config, "workspace", workspace, theirs)
        _withdraw_unconfirmed(config, before, workspace, confirmed)
    for setting in SETTINGS:
        if setting.spelled in environment:
            _take_variable(config, setting, environment[setting.spelled])
    return config


def _take(config: Config, source: str, path: Path, refused: Mapping[str, str]) -> None:
    """Take the settings of a file that it may set; note the reason for the others."""
    if source == "workspace" and path.is_symlink():
        config.ignored.append(f"{path} is ignored: it is a symbolic link, which is not followed")
        return
    for name, raw in _read(path, follow=source == "user").items():
        if name == "format":
            _check_format(path, raw)
        elif name not in config.values:
            config.unknown.append(f"{path}: {cut(name)}")
        elif name in refused:
            config.ignored.append(f"{name} in {path} is ignored: {refused[name]}")
        else:
            _set(config, name, raw, source, path)


def _withdraw_unconfirmed(
    config: Config, before: Mapping[str, Value], workspace: Path, confirmed: Path | None
) -> None:
    """Take back what a workspace's file widens and its user has not set here."""
    for setting in (setting for setting in SETTINGS if setting.asks):
        name, value = setting.name, config.values[setting.name].value
        is_wider = setting.widens(value, before[name].value)
        if is_wider and not _is_confirmed(confirmed, name, value):
            config.values[name] = before[name]
            written = setting.written(value)
            config.ignored.append(
                f"{name} = {written} in {workspace} is ignored until you set it in this clone: "
                f"`loki-mem config {name} {written}`"
            )


def _is_confirmed(path: Path | None, name: str, value: int | str) -> bool:
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path else []
    except (OSError, UnicodeDecodeError):
        return False
    return f"{name} {value}" in lines


def confirmed_with(path: Path, name: str, value: int | str) -> bytes:
    """The file of confirmed settings with one more."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    kept = [line for line in lines if line.partition(" ")[0] != name]
    return "".join(f"{line}\n" for line in (*kept, f"{name} {value}")).encode()


def _take_variable(config: Config, setting: Setting, raw: str) -> None:
    if setting.shared:
        config.ignored.append(f"{setting.spelled} in the environment is ignored: {_SHARED}")
    else:
        _set(config, setting.name, raw, "environment", setting.variable)


def _personal(setting: Setting) -> str:
    what = "name a path" if setting.names_path else "say that"
    return f"only the user's config or {setting.variable} may {what}"


def _set(config: Config, name: str, raw: Any, source: str, where: object) -> None:
    there = config.values[name]
    setting = there.setting
    value = setting.parsed(raw)
    if value is None:
        raise InvalidConfig(where, f"{name} is {shown(raw)}; it must be {setting.form}.")
    if (source, there.source) == ("workspace", "user") and setting.widens(value, there.value):
        config.ignored.append(f"{name} in {where} is ignored: {_overruled(there, value)}")
    else:
        config.values[name] = Value(setting, value, source)


def _overruled(there: Value, value: int | str) -> str:
    written = there.setting.written
    says = f"the user's config says {written(there.value)}, which is stricter"
    return f"{says}; only a change there, or {there.setting.variable}, allows {written(value)}"


def _setting(name: str) -> Setting:
    found = [setting for setting in SETTINGS if setting.name == name]
    if not found:
        raise InvalidConfig(name, "is not a setting; `loki-mem config` lists them.")
    return found[0]


def _read(path: Path, *, follow: bool) -> dict[str, Any]:
    """The settings of a file, by their full names; empty if there is no file."""
    try:
        text = _bytes(path, follow=follow).decode()
    except UnicodeDecodeError as error:
        raise InvalidConfig(path, f"byte {error.start} is not UTF-8. Mend or delete it.") from None
    except OSError as error:
        raise InvalidConfig(path, f"cannot be read ({error.strerror}).") from error
    if not text:
        return {}
    # Most workspaces set only this, and the TOML parser costs 15 ms of every command.
    plain = _ONLY_FORMAT.match(text)
    return {"format": int(plain[1])} if plain else _parse(path, text)


def _bytes(path: Path, *, follow: bool) -> bytes:
    """A file's content, empty if there is none. Links of the user are followed, those of a clone
    are not.
    """
    try:
        file = os.open(path, os.O_RDONLY | _NONBLOCK | (0 if follow else _NOFOLLOW))
    except (FileNotFoundError, NotADirectoryError):
        return b""
    try:
        return _content(path, file)
    finally:
        os.close(file)


def _content(path: Path, file: int) -> bytes:
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        raise InvalidConfig(path, "is not a file. Remove it.")
    if found.st_size > _MOST_BYTES:
        raise InvalidConfig(path, f"has more than {_MOST_BYTES // 1000} kB. Mend or delete it.")
    return os.read(file, _MOST_BYTES)


def _parse(path: Path, text: str) -> dict[str, Any]:
    import tomllib

    if any(line.count(".") > _MOST_DOTS for line in text.splitlines()):
        raise InvalidConfig(path, _DEEP)
    try:
        return _flat(tomllib.loads(text))
    except ValueError as error:  # a number of too many digits is no TOMLDecodeError
        reason = cut(str(error).partition(";")[0], 200)
        raise InvalidConfig(path, f"is not valid TOML: {reason}. Mend or delete it.") from error
    except RecursionError:
        raise InvalidConfig(path, _DEEP) from None


def _flat(tables: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _check_format(path: Path, found: Any) -> None:
    is_whole = isinstance(found, int) and not isinstance(found, bool) and is_plain(found)
    if not is_whole or found < 0:
        raise InvalidConfig(path, f"format is {shown(found)}; it must be {FORMAT}.")
    if found > FORMAT:
        raise NewerFormat(path, found, FORMAT)


def chosen(name: str, written: str, *, by_user: bool = False) -> int | str:
    """Parse a value for a setting of a workspace, or of the user's own."""
    setting = _setting(name)
    if (setting.names_path or setting.is_personal) and not by_user:
        raise InvalidConfig(name, f"a workspace cannot set it: {_personal(setting)}.")
    value = setting.parsed(written)
    if value is None:
        raise InvalidConfig(name, f"{shown(written)} is not {setting.form}.")
    return value


def edited(text: str, name: str, value: int | str) -> str:
    """A config file's text with one key set; comments and order stay as they are."""
    import tomlkit

    try:
        document = tomlkit.parse(text)
    except (ValueError, RecursionError):  # it takes less depth than `tomllib` does
        raise InvalidConfig("config.toml", _DEEP) from None
    table: Any = document
    *tables, key = name.split(".")
    for part in tables:
        table = table.setdefault(part, tomlkit.table())
        if not isinstance(table, dict):
            raise InvalidConfig("config.toml", f"{part} is not a table; remove that line.")
    table[key] = bool(value) if _setting(name).is_switch else value
    return tomlkit.dumps(document)
