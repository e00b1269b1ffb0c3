"""Our MCP server in Codex's `config.toml`, known by its name and value.

Codex rewrites this file, and puts tables of its own before the comments at the end: into a block
of ours, if a comment ended it. So there are no marks around our table any more. It is put in and
cut out as text, and every other byte stays; marks of an earlier version go with it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loki_memory.errors import InvalidConfig
from loki_memory.install.settings import SERVER, is_our_server

_STRING = r""""(?:\\.|[^"\\\n])*"|'[^'\n]*'"""
# Only the layout that we write: a line with a comment in it has something of somebody else.
_TABLE = re.compile(
    rf"^\[mcp_servers\.{SERVER}\][ \t]*\r?\n"
    rf"""(?:(?:type|command|args)[ \t]*=(?:{_STRING}|[^"'#\n])*(?:\n|\Z))+""",
    re.MULTILINE,
)
_MARK = re.compile(
    r"^(?:# loki-mem:(?:begin|end)|(?:\r?\n)?# loki-mem:written [0-9a-f]{16})[ \t]*(?:\r?\n|\Z)",
    re.MULTILINE,
)


def with_server(text: str, server: Mapping[str, Any], path: Path) -> str:
    """Return the configuration with our server; another server of the same name stays."""
    if has_foreign_server(text, path):
        return text
    bare = _without_marks(text)
    place = _place(bare, path)
    if place is None:
        return _appended(bare, _table(server, bare), path)
    if _servers(bare, path)[SERVER] == server:
        return bare
    return bare[: place.start()] + _table(server, bare) + bare[place.end() :]


def without_server(text: str, path: Path) -> str | None:
    """Return the configuration without our server; None if nothing is left."""
    if has_foreign_server(text, path):
        return text
    bare = _without_marks(text)
    place = _place(bare, path)
    return (_cut(bare, place) if place else bare) or None


def has_foreign_server(text: str | None, path: Path) -> bool:
    """Check if the name of our server is used for another one, or in a layout that is not ours."""
    there = _servers(text or "", path).get(SERVER)
    return there is not None and (not is_our_server(there) or _place(text or "", path) is None)


def _place(text: str, path: Path) -> re.Match[str] | None:
    """Our table in the text. Without it all else says the same: so it is not inside a string."""
    wanted = parsed(text, path)
    servers = wanted.get("mcp_servers")
    if not isinstance(servers, dict) or servers.pop(SERVER, None) is None:
        return None
    places = _TABLE.finditer(text)
    return next((place for place in places if _same(_cut(text, place), wanted)), None)


def _same(text: str, wanted: dict[str, Any]) -> bool:
    """Check if a text says what is wanted; a table of servers that is empty says nothing."""
    try:
        found = tomllib.loads(text)
    except ValueError:
        return False
    return {"mcp_servers": {}, **found} == {"mcp_servers": {}, **wanted}


def _cut(text: str, place: re.Match[str]) -> str:
    """Return the text without a table and the blank line that sets it apart."""
    before, after, line = text[: place.start()], text[place.end() :], _line_break(text)
    if not after and not place[0].endswith("\n"):
        return before.removesuffix(line + line)
    if before.endswith(line + line):
        return before.removesuffix(line) + after
    return before + after if before else after.removeprefix(line)


def _appended(text: str, table: str, path: Path) -> str:
    """Return the text with a table at its end, where it does not split another one."""
    line = _line_break(text)
    # The table ends with a line break if the text did: so its removal restores the text.
    longer = table
    if text:
        ended = text.endswith(line)
        longer = text + line + table if ended else text + line + line + table.removesuffix(line)
    parsed(longer, path)  # raises if the result is not valid TOML
    return longer


def _table(server: Mapping[str, Any], text: str) -> str:
    entries = (f"{name} = {json.dumps(value)}" for name, value in server.items())
    lines = [f"[mcp_servers.{SERVER}]", *entries, ""]
    return _line_break(text).join(lines)


def _without_marks(text: str) -> str:
    """Return the text without the marks that earlier versions put around our table."""
    bare = _MARK.sub("", text)
    # The last mark had no line break where the text before our block had none.
    return bare if bare == text or text.endswith("\n") else bare.removesuffix(_line_break(text))


def _line_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _servers(text: str, path: Path) -> dict[str, Any]:
    servers = parsed(text, path).get("mcp_servers", {})
    return servers if isinstance(servers, dict) else {}


def parsed(text: str, path: Path) -> dict[str, Any]:
    """Parse a configuration; raises InvalidConfig where it is not TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also for too many digits or brackets
        raise InvalidConfig(
            path, f"is not valid TOML ({error}). Nothing was written; mend the file and repeat."
        ) from None
