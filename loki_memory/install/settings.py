"""Our entries in the JSON settings of an agent: hooks by event, and the MCP server.

An entry is ours if it runs our program. Entries of others, their order and their layout stay.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loki_memory.errors import InvalidConfig
from loki_memory.install import json_text
from loki_memory.install.edits import Edit, changed
from loki_memory.install.site import Site
from loki_memory.resources import resource

SERVER = "loki"
_NAME = r"""(?:[^\s'"]*[/\\]|'[^']*[/\\]|"[^"]*[/\\]|['"])?loki-mem(?:\.exe)?['"]?"""
# Where the program is not installed a hook is silent; older versions did not look.
_HOOK = re.compile(rf"(?:command -v {_NAME} >/dev/null 2>&1 \|\| exit 0; exec )?{_NAME} hook \w+")
# The tools that only read. Their names stand here too, for to ask the server costs a second.
READING_TOOLS = tuple(
    f"mcp__{SERVER}__memory_{name}"
    for name in ("recall", "get", "context", "blame", "verify", "status")
)
_ALLOWED = ("permissions", "allow")
_PROGRAM = re.compile(r"(?:.*[/\\])?loki-mem(?:\.exe)?")
# Fields that some clients want besides; with another value they are somebody's choice.
_AS_WRITTEN = {"enabled": True, "tools": ["*"]}
Hooks = Mapping[str, list[dict[str, Any]]]


def shipped_hooks(program: str) -> dict[str, list[dict[str, Any]]]:
    """The hooks of the plugin, with the path of the program."""
    text = (resource("plugin") / "hooks" / "hooks.json").read_text(encoding="utf-8")
    hooks: dict[str, list[dict[str, Any]]] = json.loads(text)["hooks"]
    for handler in (handler for groups in hooks.values() for g in groups for handler in g["hooks"]):
        handler["command"] = handler["command"].replace("loki-mem", shlex.quote(program))
    return hooks


def shipped_server(program: str) -> dict[str, Any]:
    """The MCP server of the plugin."""
    text = (resource("plugin") / ".mcp.json").read_text(encoding="utf-8")
    return {**json.loads(text)["mcpServers"][SERVER], "command": program}


def hooks_added(site: Site, path: Path, hooks: Hooks) -> Edit:
    """Plan to add our hooks to a settings file."""
    before = site.text(path)
    after = with_hooks(before, hooks, path)
    return changed(site, path, f"hooks for {len(hooks)} events", before, after)


def hooks_removed(site: Site, path: Path) -> Edit:
    """Plan to remove our hooks from a settings file."""
    before = site.text(path)
    return changed(site, path, "no hooks", before, without_hooks(before, path))


def with_hooks(text: str | None, hooks: Hooks, path: Path) -> str:
    """Return settings with our hooks, once per event, and none of ours for any other event."""
    text, found = _read(text, path)
    others = _object(found, "hooks", path).items()
    retired = [event for event, there in others if event not in hooks and isinstance(there, list)]
    for event, groups in hooks.items():
        there = _list(found, event, path)
        if all(group in there for group in groups) and len(list(_ours(there))) == len(groups):
            continue
        text = _without_event(text, event, path)
        for group in groups:
            text = json_text.append(text, ("hooks", event), group)
    for event in retired:
        text = _without_event(text, event, path)
    return text


def without_hooks(text: str | None, path: Path) -> str | None:
    """Return settings without our hooks and the containers they leave empty; None if nothing is
    left.
    """
    if text is None:
        return None
    text, found = _read(text, path)
    for event in _object(found, "hooks", path):
        text = _without_event(text, event, path)
    return _unless_empty(text)


def with_allowed(text: str | None, path: Path) -> str:
    """Return settings that allow the tools that only read, without asking."""
    text, found = _read(text, path)
    there = _object(found, "permissions", path).get("allow", [])
    if not isinstance(there, list):
        raise _broken(path, "`permissions.allow` is not a list")
    for name in (name for name in READING_TOOLS if name not in there):
        text = json_text.append(text, _ALLOWED, name)
    return text


def without_allowed(text: str | None, path: Path) -> str | None:
    """Return settings that do not mention the tools that only read; None if nothing is left."""
    if text is None:
        return None
    allowed = _allowed(text, path)
    ours = [at for at, name in enumerate(allowed) if name in READING_TOOLS]
    for at in reversed(ours):
        text = json_text.cut(text, (*_ALLOWED, at))
    return _unless_empty(_without_empty(text, _ALLOWED) if ours else text)


def allows_reading(text: str | None, path: Path) -> bool:
    """Check if all tools that only read are allowed."""
    return set(READING_TOOLS) <= {name for name in _allowed(text, path) if isinstance(name, str)}


def _allowed(text: str | None, path: Path) -> list[Any]:
    """The tools that are allowed; none where the settings have something else there."""
    permissions = _read(text, path)[1].get("permissions")
    allowed = permissions.get("allow") if isinstance(permissions, dict) else None
    return allowed if isinstance(allowed, list) else []


def our_hooks(text: str | None, path: Path) -> Iterator[tuple[str, int, int]]:
    """Yield the positions of our handlers in settings: event, group, and place in the group."""
    found = _object(_read(text, path)[1], "hooks", path)
    for event, groups in found.items():
        for position in _ours(groups if isinstance(groups, list) else []):
            yield event, *position


def our_commands(text: str | None, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the events of our handlers in settings, and the command of each."""
    found = _object(_read(text, path)[1], "hooks", path)
    for event, group, place in our_hooks(text, path):
        yield event, found[event][group]["hooks"][place]["command"]


def _without_event(text: str, event: str, path: Path) -> str:
    """Return settings without our handlers of an event."""
    groups = _list(_read(text, path)[1], event, path)
    for at, handler in reversed(list(_ours(groups))):
        place: tuple[str | int, ...] = ("hooks", event, at, "hooks", handler)
        text = json_text.cut(text, place)
        text = _without_empty(text, place[:-1])
    return text


def _without_empty(text: str, place: tuple[str | int, ...]) -> str:
    """Return the text without a container that is empty now, and its empty parents."""
    while place and not _says_something(_value_at(text, place)):
        text, place = json_text.cut(text, place), place[:-1]
    return text


def _value_at(text: str, place: tuple[str | int, ...]) -> Any:
    value = json.loads(text)
    for name in place:
        value = value[name]
    return value


def _says_something(value: Any) -> bool:
    """Check if a value runs anything; a group with only a matcher does not."""
    return bool(value) and (isinstance(value, list) or value.keys() != {"matcher"})


def _ours(groups: list[Any]) -> Iterator[tuple[int, int]]:
    """Yield the positions of our handlers: group, and place in it."""
    for at, group in enumerate(groups):
        handlers = group.get("hooks") if isinstance(group, dict) else None
        for number, handler in enumerate(handlers if isinstance(handlers, list) else []):
            command = handler.get("command") if isinstance(handler, dict) else None
            if isinstance(command, str) and _HOOK.fullmatch(command):
                yield at, number


_SERVERS = "mcpServers"  # where most clients keep their servers
KEPT = f"kept: another server has the name {SERVER}"
KEPT_CHANGED = f"kept: the server {SERVER} was changed by hand"


def server_added(
    site: Site, path: Path, server: Mapping[str, Any], servers: str = _SERVERS
) -> Edit:
    """Plan to add our MCP server to a settings file."""
    before = site.text(path)
    after = with_server(before, server, path, servers)
    if has_foreign_server(before, path, servers):
        return changed(site, path, KEPT, before, before)
    return changed(site, path, "MCP server", before, after)


def server_removed(site: Site, path: Path, servers: str = _SERVERS) -> Edit:
    """Plan to remove our MCP server from a settings file."""
    before = site.text(path)
    after = without_server(before, path, servers)
    is_foreign = before is not None and has_foreign_server(before, path, servers)
    return changed(site, path, KEPT_CHANGED if is_foreign else "no MCP server", before, after)


def with_server(
    text: str | None, server: Mapping[str, Any], path: Path, servers: str = _SERVERS
) -> str:
    """Return settings with our MCP server; another server of the same name stays."""
    text, found = _read(text, path)
    there = _object(found, servers, path).get(SERVER)
    if there is not None and (there == server or not is_our_server(there)):
        return text
    return json_text.put(text, (servers, SERVER), server)


def without_server(text: str | None, path: Path, servers: str = _SERVERS) -> str | None:
    """Return settings without our MCP server; None if nothing is left."""
    if text is None:
        return None
    text, found = _read(text, path)
    there = _object(found, servers, path)
    if SERVER not in there or not is_our_server(there[SERVER]):
        return text
    text = json_text.cut(text, (servers, SERVER))
    if len(there) == 1:
        text = json_text.cut(text, (servers,))
    return _unless_empty(text)


def has_foreign_server(text: str | None, path: Path, servers: str = _SERVERS) -> bool:
    """Check if the name of our server is used for another one."""
    there = _object(_read(text, path)[1], servers, path).get(SERVER)
    return there is not None and not is_our_server(there)


def is_our_server(entry: Any) -> bool:
    """Check if an entry starts our server and has no other fields."""
    if not isinstance(entry, dict) or entry.keys() - {"type", "command", "args", *_AS_WRITTEN}:
        return False
    if any(name in entry and entry[name] != value for name, value in _AS_WRITTEN.items()):
        return False
    command = entry.get("command")
    line = command if isinstance(command, list) else [command, *_items(entry.get("args"))]
    return line[1:] == ["mcp"] and bool(_PROGRAM.fullmatch(str(line[0])))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _unless_empty(text: str) -> str | None:
    return text if json.loads(text) else None


def _read(text: str | None, path: Path) -> tuple[str, dict[str, Any]]:
    """Parse settings; raises InvalidConfig where they are not an object."""
    text = text if text and text.strip() else "{}\n"
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"is not valid JSON ({error.msg})"
        raise _broken(f"{path}:{error.lineno}:{error.colno}", reason) from None
    except RecursionError:
        raise _broken(path, "is nested too deeply") from None
    except ValueError:
        raise _broken(path, "has a number of too many digits") from None
    if not isinstance(found, dict):
        raise _broken(path, "is not an object")
    return text, found


def _object(found: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    value = found.get(name, {})
    if not isinstance(value, dict):
        raise _broken(path, f"`{name}` is not an object")
    return value


def _list(found: Mapping[str, Any], event: str, path: Path) -> list[Any]:
    value = _object(found, "hooks", path).get(event, [])
    if not isinstance(value, list):
        raise _broken(path, f"`hooks.{event}` is not a list")
    return value


def _broken(where: object, reason: str) -> InvalidConfig:
    return InvalidConfig(where, f"{reason}. Nothing was written; mend the file and repeat.")
