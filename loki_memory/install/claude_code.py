"""Claude Code: hooks, the MCP server, commands and the skill.

In a project they are in `.claude/` and `.mcp.json`, to be committed with the code; with `--user`
in the user's own settings, for every project.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from loki_memory.install import settings
from loki_memory.install.edits import (
    Edit,
    InstallOptions,
    InstallStep,
    carry_out,
    removed,
    written,
)
from loki_memory.install.site import Site
from loki_memory.resources import resource

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_HOME = ("CLAUDE_CONFIG_DIR", ".claude")


def install(workspace: OpenWorkspace, options: InstallOptions) -> list[InstallStep]:
    """Add hooks, MCP server, commands and skill; entries of others stay."""
    site = Site.of(workspace, user=bool(options.user))
    copies = (written(site, path, text, what) for path, text, what in _copies(site))
    server = settings.shipped_server(site.program())
    edits = [
        _with_hooks(site, allow=options.allow),
        settings.server_added(site, _servers(site), server),
        *copies,
    ]
    steps = carry_out(edits, plan_only=options.plan_only)
    if not options.plan_only and not settings.allows_reading(edits[0].after, edits[0].path):
        workspace.notices.append(
            "Claude Code asks before it uses a tool of memory; "
            "`loki-mem install claude-code --allow` allows those that only read"
        )
    return steps


def uninstall(workspace: OpenWorkspace, options: InstallOptions) -> list[InstallStep]:
    """Remove what `install` added."""
    site = Site.of(workspace, user=bool(options.user))
    copies = (removed(site, path, f"no {what}") for path, _, what in _copies(site))
    edits = [_without_hooks(site), settings.server_removed(site, _servers(site)), *copies]
    return carry_out(edits, plan_only=options.plan_only)


def skill_files() -> list[tuple[str, str]]:
    """The files of the shipped skill: name below the folder of skills, and text."""
    top = resource("plugin") / "skills"
    paths = sorted(path for path in top.rglob("*.md"))
    return [(path.relative_to(top).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def _with_hooks(site: Site, *, allow: bool) -> Edit:
    """Plan the hooks and, where asked for, the permissions beside them: it is one file.

    Permissions go by the name of the server, so those of another server are not for us to give.
    """
    edit = settings.hooks_added(site, _hooks(site), settings.shipped_hooks(site.program()))
    servers = _servers(site)
    if not allow or settings.has_foreign_server(site.text(servers), servers):
        return edit
    tools = f"{len(settings.READING_TOOLS)} tools that only read are allowed"
    after = settings.with_allowed(edit.after, edit.path)
    return edit._replace(what=f"{edit.what}, {tools}", after=after)


def _without_hooks(site: Site) -> Edit:
    edit = settings.hooks_removed(site, _hooks(site))
    return edit._replace(after=settings.without_allowed(edit.after, edit.path))


def _copies(site: Site) -> Iterator[tuple[Path, str, str]]:
    """Yield the files of our own: path, text and description."""
    for path in sorted((resource("plugin") / "commands").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        yield _folder_file(site, f"commands/{path.name}"), text, f"command /{path.stem}"
    for name, text in skill_files():
        yield _folder_file(site, f"skills/{name}"), text, "skill"


def _folder_file(site: Site, name: str) -> Path:
    return site.in_home(name, *_HOME) if site.user else site.in_project(f".claude/{name}")


def _hooks(site: Site) -> Path:
    return _folder_file(site, "settings.json")


def _servers(site: Site) -> Path:
    """Claude Code keeps the user's servers in `~/.claude.json`, beside its folder."""
    if site.user:
        return site.in_home(".claude.json", _HOME[0], "")
    return site.in_project(".mcp.json")
