"""Codex CLI: hooks, the MCP server, the skill, and the block in AGENTS.md.

Hooks and server are in the user's settings (`~/.codex`), with `--project` in `.codex/`, which
Codex reads in projects that its user trusts. Skill and AGENTS.md belong to the project.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import LokiMemoryError
from loki_memory.install import codex_config, settings
from loki_memory.install.agents_md import with_lesson, without_lesson
from loki_memory.install.claude_code import skill_files
from loki_memory.install.edits import (
    Edit,
    InstallOptions,
    InstallStep,
    carry_out,
    changed,
    removed,
    written,
)
from loki_memory.install.site import Site

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_EVENT = re.compile(r"\w+$")  # at the end of a hook's command
# The events of ours that Codex has.
_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PreCompact",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "SessionEnd",
)


def install(workspace: OpenWorkspace, options: InstallOptions) -> list[InstallStep]:
    """Add hooks, MCP server, skill and the block in AGENTS.md; entries of others stay."""
    site = _site(workspace, options)
    copies = (written(site, path, text, "skill") for path, text in _skill(site))
    edits = [
        settings.hooks_added(site, _file(site, "hooks.json"), _hooks(site.program())),
        _with_server(site),
        *copies,
        with_lesson(site),
    ]
    steps = carry_out(edits, plan_only=options.plan_only)
    if not options.plan_only and (steps[0].did or _untrusted(site)):
        workspace.notices.append(
            "Codex runs no hook that is new or changed until you trust it: start `codex` once and "
            "trust them (`/hooks`)"
        )
    return steps


def uninstall(workspace: OpenWorkspace, options: InstallOptions) -> list[InstallStep]:
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


def trust_remarks(workspace: OpenWorkspace) -> list[str]:
    """Say which files have hooks of ours that Codex does not run, for they are not trusted."""
    remarks = []
    for site in (Site.of(workspace, user=True), Site.of(workspace)):
        try:
            waiting = _untrusted(site)
        except LokiMemoryError as error:  # of files that are Codex's, not the workspace's
            remarks.append(str(error))
            continue
        if waiting:
            where = site.shown(_file(site, "hooks.json"))
            remarks.append(
                f"Codex does not run {len(waiting)} of our hooks in {where}, for they are not "
                "trusted: start `codex` once and trust them (`/hooks`)"
            )
    return remarks


def _untrusted(site: Site) -> list[HookPlace]:
    """Hooks that are not trusted; the user's configuration says so for a project's, too."""
    config = _file(site._replace(user=True), "config.toml")
    return untrusted(site, _file(site, "hooks.json"), config)


def _site(workspace: OpenWorkspace, options: InstallOptions) -> Site:
    return Site.of(workspace, user=options.user is not False)


def _hooks(program: str) -> dict[str, list[dict[str, Any]]]:
    """The shipped hooks without `async` and matchers: Codex skips a hook that has the former.

    Codex has no event for a failing command, so that errors are looked for after every one.
    """
    hooks = settings.shipped_hooks(program)
    hooks["PostToolUse"] = settings.shipped_hooks(program)["PostToolUseFailure"]
    for event, groups in hooks.items():
        for group in groups:
            group.pop("matcher", None)
            for handler in group["hooks"]:
                handler.pop("async", None)
                handler["command"] = _EVENT.sub(event, handler["command"])
    return {event: hooks[event] for event in _EVENTS}


def _with_server(site: Site) -> Edit:
    path = _file(site, "config.toml")
    before = site.text(path)
    after = codex_config.with_server(before or "", settings.shipped_server(site.program()), path)
    foreign = codex_config.has_foreign_server(before, path)
    entry = f"kept: another server has the name {settings.SERVER}" if foreign else "MCP server"
    return changed(site, path, entry, before, before if foreign else after)


def _without_server(site: Site) -> Edit:
    path = _file(site, "config.toml")
    before = site.text(path)
    after = codex_config.without_server(before, path) if before else before
    foreign = codex_config.has_foreign_server(before, path)
    entry = (
        f"kept: the server {settings.SERVER} was changed by hand" if foreign else "no MCP server"
    )
    return changed(site, path, entry, before, after)


def _skill(site: Site) -> Iterator[tuple[Path, str]]:
    for name, text in skill_files():
        yield site.in_project(f".agents/skills/{name}"), text


def _file(site: Site, name: str) -> Path:
    if site.user:
        return site.in_home(name, "CODEX_HOME", ".codex")
    return site.in_project(f".codex/{name}")


# -- hooks that the user has not trusted -----------------------------------------------------------


class HookPlace(NamedTuple):
    """The place of a hook as Codex counts: event, group, and handler in the group."""

    event: str
    group: int
    handler: int

    def key(self) -> str:
        event = re.sub(r"(?<!^)(?=[A-Z])", "_", self.event).lower()
        return f"{event}:{self.group}:{self.handler}"


def untrusted(site: Site, hooks: Path, config: Path) -> list[HookPlace]:
    """Find the hooks of ours in a file that the user's configuration does not name as trusted.

    Codex notes what was trusted by the place of a hook, with a hash of what it runs:
    `[hooks.state."/home/ana/.codex/hooks.json:session_start:0:0"]`. We look only for the place: the
    hash is Codex's own affair, and to write it would be to trust ourselves.
    """
    trusted = set(_trusted(site.text(config) or "", config, hooks))
    ours = (HookPlace(*place) for place in settings.our_hooks(site.text(hooks), hooks))
    return [place for place in ours if place.key() not in trusted]


def _trusted(text: str, config: Path, hooks: Path) -> Iterator[str]:
    """Yield the keys of trusted hooks in a file, without its path."""
    state = codex_config.parsed(text, config).get("hooks", {})
    state = state.get("state", {}) if isinstance(state, dict) else {}
    for name in state if isinstance(state, dict) else ():
        path, *place = name.rsplit(":", 3)
        if os.path.realpath(path) == str(hooks):  # Codex names a link as it is
            yield ":".join(place)
