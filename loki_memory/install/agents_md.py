"""AGENTS.md: one block that teaches any agent to read and write memory with a file editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki_memory.install.edits import (
    MARKDOWN,
    Edit,
    InstallOptions,
    InstallStep,
    block_added,
    block_removed,
    carry_out,
)
from loki_memory.install.site import Site
from loki_memory.resources import resource

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_NAME = "AGENTS.md"


def install(workspace: OpenWorkspace, options: InstallOptions) -> list[InstallStep]:
    """Put the block into AGENTS.md, or renew it there."""
    return carry_out([with_lesson(Site.of(workspace))], plan_only=options.plan_only)


def uninstall(workspace: OpenWorkspace, options: InstallOptions) -> list[InstallStep]:
    """Take the block out of AGENTS.md."""
    return carry_out([without_lesson(Site.of(workspace))], plan_only=options.plan_only)


def lesson() -> str:
    """Explain how to read and write memory by hand: the same text that the skill refers to."""
    path = resource("plugin") / "skills" / "loki-memory" / "references" / "by-hand.md"
    return path.read_text(encoding="utf-8")


def with_lesson(site: Site) -> Edit:
    entry = "how memory is read and written"
    return block_added(site, site.in_project(_NAME), lesson(), MARKDOWN, entry)


def without_lesson(site: Site) -> Edit:
    return block_removed(site, site.in_project(_NAME), MARKDOWN, "no block of ours")
