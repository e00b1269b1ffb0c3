"""Codex CLI: hooks, the MCP server, the skill, and the block in AGENTS.md.

Hooks and server are in the user's settings (`~/.codex`), with `--project` in `.codex/`, which
Codex reads in projects that its user trusts. Skill and AGENTS.md belong to the project.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import InvalidConfig, LokiMemoryError
from loki_memory.install import settings
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
from loki_memory.install.settings import SERVER, is_our_server
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
    if has_foreign_server(before, path):
        return changed(site, path, settings.KEPT, before, before)
    after = with_server(before or "", settings.shipped_server(site.program()), path)
    return changed(site, path, "MCP server", before, after)


def _without_server(site: Site) -> Edit:
    path = _file(site, "config.toml")
    before = site.text(path)
    if has_foreign_server(before, path):
        return changed(site, path, settings.KEPT_CHANGED, before, before)
    after = without_server(before, path) if before else before
    return changed(site, path, "no MCP server", before, after)


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
    state = parsed(text, config).get("hooks", {})
    state = state.get("state", {}) if isinstance(state, dict) else {}
    for name in state if isinstance(state, dict) else ():
        path, *place = name.rsplit(":", 3)
        if os.path.realpath(path) == str(hooks):  # Codex names a link as it is
            yield ":".join(place)


# -- our MCP server in `config.toml`, known by its name and value ----------------------------------

# Codex rewrites this file, and puts tables of its own before the comments at the end: into a block
# of ours, if a comment ended it. So there are no marks around our table any more. It is put in and
# cut out as text, and every other byte stays; marks of an earlier version go with it.

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
