"""Codex CLI: hooks, the MCP server, the skill, and the block in AGENTS.md.

Hooks and server lie among the user's settings (`~/.codex`), with `--project` in `.codex/`, which
Codex reads in projects that its user trusts. Skill and AGENTS.md belong to the project.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loki_memory.errors import InvalidConfig
from loki_memory.install import settings
from loki_memory.install.agents_md import with_lesson, without_lesson
from loki_memory.install.claude_code import skill_files
from loki_memory.install.edits import (
    Edit,
    InstallOptions,
    InstallStep,
    block_added,
    block_removed,
    carry_out,
    changed,
    removed,
    written,
)
from loki_memory.install.managed import HASH, find
from loki_memory.install.site import Site

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

# The events of ours that Codex has.
_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PostToolUse",
    "PreCompact",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "SessionEnd",
)


def install(workspace: Workspace, wish: InstallOptions) -> list[InstallStep]:
    """Add hooks, MCP server, skill and the block in AGENTS.md; what others wrote stays."""
    site = _site(workspace, wish)
    copies = (written(site, path, text, "skill") for path, text in _skill(site))
    edits = [
        settings.hooks_added(site, _file(site, "hooks.json"), _hooks(site.program())),
        _with_server(site),
        *copies,
        with_lesson(site),
    ]
    return carry_out(edits, plan_only=wish.plan_only)


def uninstall(workspace: Workspace, wish: InstallOptions) -> list[InstallStep]:
    """Take out what `install` added."""
    site = _site(workspace, wish)
    copies = (removed(site, path, "no skill") for path, _ in _skill(site))
    edits = [
        settings.hooks_removed(site, _file(site, "hooks.json")),
        _without_server(site),
        *copies,
        without_lesson(site),
    ]
    return carry_out(edits, plan_only=wish.plan_only)


def _site(workspace: Workspace, wish: InstallOptions) -> Site:
    return Site.of(workspace, user=wish.user is not False)


def _hooks(program: str) -> dict[str, list[dict[str, Any]]]:
    """The shipped hooks, without the field that Codex does not carry out: it skips such a hook."""
    hooks = settings.shipped_hooks(program)
    for handler in (one for groups in hooks.values() for g in groups for one in g["hooks"]):
        handler.pop("async", None)
    return {event: hooks[event] for event in _EVENTS}


def _with_server(site: Site) -> Edit:
    """A block at the end of config.toml: a table there belongs to no other."""
    path = _file(site, "config.toml")
    before = site.text(path)
    if settings.SERVER in _servers(before, path) and find(before or "", HASH, str(path)) is None:
        what = f"kept, for somebody named a server {settings.SERVER}"
        return changed(site, path, what, before, before)
    edit = block_added(site, path, _table(site.program()), HASH, "MCP server")
    _servers(edit.after, path)  # what it makes is valid, too
    return edit


def _without_server(site: Site) -> Edit:
    return block_removed(site, _file(site, "config.toml"), HASH, "no MCP server")


def _table(program: str) -> str:
    server = settings.shipped_server(program)
    lines = (f"{name} = {json.dumps(value)}" for name, value in server.items())
    return "\n".join([f"[mcp_servers.{settings.SERVER}]", *lines])


def _servers(text: str | None, path: Path) -> dict[str, Any]:
    """The servers that a configuration names; raises InvalidConfig where it is not TOML."""
    try:
        servers = tomllib.loads(text or "").get("mcp_servers", {})
    except (ValueError, RecursionError) as error:  # also of too many digits or brackets
        raise InvalidConfig(
            path, f"is not valid TOML ({error}). Nothing was written; mend the file and repeat."
        ) from None
    return servers if isinstance(servers, dict) else {}


def _skill(site: Site) -> Iterator[tuple[Path, str]]:
    for name, text in skill_files():
        yield site.in_project(f".agents/skills/{name}"), text


def _file(site: Site, name: str) -> Path:
    if site.user:
        return site.in_home(name, "CODEX_HOME", ".codex")
    return site.in_project(f".codex/{name}")
