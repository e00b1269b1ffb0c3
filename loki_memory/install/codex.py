"""Codex CLI: hooks, the MCP server, the skill, and the block in AGENTS.md.

Hooks and server are in the user's settings (`~/.codex`), with `--project` in `.codex/`, which
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


def install(workspace: Workspace, options: InstallOptions) -> list[InstallStep]:
    """Add hooks, MCP server, skill and the block in AGENTS.md; entries of others stay."""
    site = _site(workspace, options)
    copies = (written(site, path, text, "skill") for path, text in _skill(site))
    edits = [
        settings.hooks_added(site, _file(site, "hooks.json"), _hooks(site.program())),
        _with_server(site),
        *copies,
        with_lesson(site),
    ]
    return carry_out(edits, plan_only=options.plan_only)


def uninstall(workspace: Workspace, options: InstallOptions) -> list[InstallStep]:
    """Remove what `install` added."""
    site = _site(workspace, options)
    copies = (removed(site, path, "no skill") for path, _ in _skill(site))
    edits = [
        settings.hooks_removed(site, _file(site, "hooks.json")),
        _without_server(site),
        *copies,
        without_lesson(site),
    ]
    return carry_out(edits, plan_only=options.plan_only)


def _site(workspace: Workspace, options: InstallOptions) -> Site:
    return Site.of(workspace, user=options.user is not False)


def _hooks(program: str) -> dict[str, list[dict[str, Any]]]:
    """The shipped hooks without `async`: Codex skips a hook that has this field."""
    hooks = settings.shipped_hooks(program)
    for handler in (handler for groups in hooks.values() for g in groups for handler in g["hooks"]):
        handler.pop("async", None)
    return {event: hooks[event] for event in _EVENTS}


def _with_server(site: Site) -> Edit:
    """Append a block to config.toml: a table at the end does not split another one."""
    path = _file(site, "config.toml")
    before = site.text(path)
    if settings.SERVER in _servers(before, path) and find(before or "", HASH, str(path)) is None:
        entry = f"kept: another server has the name {settings.SERVER}"
        return changed(site, path, entry, before, before)
    edit = block_added(site, path, _table(site.program()), HASH, "MCP server")
    _servers(edit.after, path)  # raises if the result is not valid TOML
    return edit


def _without_server(site: Site) -> Edit:
    return block_removed(site, _file(site, "config.toml"), HASH, "no MCP server")


def _table(program: str) -> str:
    server = settings.shipped_server(program)
    lines = (f"{name} = {json.dumps(value)}" for name, value in server.items())
    return "\n".join([f"[mcp_servers.{settings.SERVER}]", *lines])


def _servers(text: str | None, path: Path) -> dict[str, Any]:
    """The servers of a configuration; raises InvalidConfig where it is not TOML."""
    try:
        servers = tomllib.loads(text or "").get("mcp_servers", {})
    except (ValueError, RecursionError) as error:  # also for too many digits or brackets
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
