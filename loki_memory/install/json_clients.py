"""Clients whose settings are JSON: the MCP server as one entry and, where they run ours, hooks.

Gemini CLI, Qwen Code, OpenCode, Copilot CLI, Cursor and VS Code differ in the file, in the member
that holds the servers, and in the shape of an entry. Gemini and Qwen run hooks as Claude Code does;
Gemini has other names for some events, and counts milliseconds. Neither takes text before a tool is
used, so that event is not registered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.install import settings
from loki_memory.install.edits import Edit, InstallOptions, InstallStep, carry_out
from loki_memory.install.site import Site

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

Entry = Mapping[str, Any]
Hooks = dict[str, list[dict[str, Any]]]
_EVENT = re.compile(r"\w+$")  # at the end of a hook's command


class UserFile(NamedTuple):
    """A file in the user's home: its name, below the folder that a variable names or a default."""

    name: str
    variable: str
    default: str


class JsonClient(NamedTuple):
    """A client: its files, the shape of a server in them, and its hooks."""

    project: str
    user: UserFile | None = None
    by_default_user: bool = False
    servers: str = "mcpServers"
    entry: Callable[[str], Entry] = settings.shipped_server
    hooks: Callable[[str], Hooks] | None = None
    remark: str = ""

    def install(self, workspace: OpenWorkspace, options: InstallOptions) -> list[InstallStep]:
        """Add the server and the hooks; entries of others stay."""
        site = self._site(workspace, options)
        steps = carry_out([self._added(site)], plan_only=options.plan_only)
        if self.remark and self.remark not in workspace.notices:
            workspace.notices.append(self.remark)
        return steps

    def uninstall(self, workspace: OpenWorkspace, options: InstallOptions) -> list[InstallStep]:
        """Remove what `install` added."""
        site = self._site(workspace, options)
        return carry_out([self._removed(site)], plan_only=options.plan_only)

    def _site(self, workspace: OpenWorkspace, options: InstallOptions) -> Site:
        user = self.by_default_user if options.user is None else options.user
        return Site.of(workspace, user=user and self.user is not None)

    def _file(self, site: Site) -> Path:
        if site.user and self.user is not None:
            return site.in_home(*self.user)
        return site.in_project(self.project)

    def _added(self, site: Site) -> Edit:
        path = self._file(site)
        edit = settings.server_added(site, path, self.entry(site.program()), self.servers)
        if not self.hooks:
            return edit
        hooks = self.hooks(site.program())
        after = settings.with_hooks(edit.after, hooks, path)
        return edit._replace(what=f"{edit.what}, hooks for {len(hooks)} events", after=after)

    def _removed(self, site: Site) -> Edit:
        path = self._file(site)
        edit = settings.server_removed(site, path, self.servers)
        after = settings.without_hooks(edit.after, path) if self.hooks else edit.after
        what = edit.what if edit.what == settings.KEPT_CHANGED else "no entry of ours"
        return edit._replace(what=what, after=after)


def _stdio(program: str) -> Entry:
    return {"type": "stdio", **settings.shipped_server(program)}


def _with_all_tools(program: str) -> Entry:
    return {"type": "local", **settings.shipped_server(program), "tools": ["*"]}


def _one_command(program: str) -> Entry:
    server = settings.shipped_server(program)
    return {"type": "local", "command": [server["command"], *server["args"]], "enabled": True}


def _hooks_of(
    program: str, events: Mapping[str, str], tools: Mapping[str, str], unit: int = 1
) -> Hooks:
    """The shipped hooks by the client's events; a second has so many units of its timeouts.

    `tools` has the tools for which an event is told, where not for all. A failing command has an
    event of its own in Claude Code only; where it has none, errors are looked for after every one.
    """
    shipped = settings.shipped_hooks(program)
    shipped["PostToolUse"] = shipped["PostToolUseFailure"]
    hooks: Hooks = {}
    for event, ours in events.items():
        handler = {**shipped[ours][0]["hooks"][0]}
        handler.pop("async", None)
        handler["command"] = _EVENT.sub(ours, handler["command"])
        handler["timeout"] *= unit
        matcher = {"matcher": tools[event]} if event in tools else {}
        hooks[event] = [{**matcher, "hooks": [handler]}]
    return hooks


def _gemini_hooks(program: str) -> Hooks:
    events = {
        "SessionStart": "SessionStart",
        "BeforeAgent": "UserPromptSubmit",
        "AfterTool": "PostToolUse",
        "SessionEnd": "SessionEnd",
    }
    return _hooks_of(program, events, {"AfterTool": "run_shell_command"}, 1000)


def _qwen_hooks(program: str) -> Hooks:
    events = (
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUseFailure",
        "PreCompact",
        "SessionEnd",
    )
    return _hooks_of(program, {event: event for event in events}, {})


GEMINI = JsonClient(
    ".gemini/settings.json",
    UserFile(".gemini/settings.json", "GEMINI_CLI_HOME", ""),
    hooks=_gemini_hooks,
    remark="Gemini CLI starts servers and runs hooks only in folders that its user trusts",
)
QWEN = JsonClient(
    ".qwen/settings.json",
    UserFile("settings.json", "QWEN_HOME", ".qwen"),
    hooks=_qwen_hooks,
    remark="Qwen Code asks once before it starts the MCP server of a project",
)
OPENCODE = JsonClient(
    "opencode.json",
    UserFile("opencode/opencode.json", "XDG_CONFIG_HOME", ".config"),
    servers="mcp",
    entry=_one_command,
)
COPILOT = JsonClient(
    ".github/mcp.json",
    UserFile("mcp-config.json", "COPILOT_HOME", ".copilot"),
    by_default_user=True,
    entry=_with_all_tools,
    remark="Copilot CLI starts the MCP server of a project only in folders that its user trusts",
)
CURSOR = JsonClient(
    ".cursor/mcp.json",
    UserFile("mcp.json", "CURSOR_CONFIG_DIR", ".cursor"),
    remark="Cursor is unverified: the entry follows its documentation and was not tried with the "
    "program; its sessions are not ingested",
)
VSCODE = JsonClient(
    ".vscode/mcp.json",
    servers="servers",
    entry=_stdio,
    remark="VS Code is unverified: the entry follows its documentation and was not tried with the "
    "program",
)
