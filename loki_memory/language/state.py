"""The language model of a workspace in a line: which it is, what it has done, what it cost."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.language.usage import Usage, read_usage
from loki_memory.language.wordings import OFF, read_wordings

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_COMMANDS = frozenset({"claude", "codex"})


class LanguageState(NamedTuple):
    """The line of a doctor about the language model."""

    said: str
    is_ready: bool


def language_state(workspace: OpenWorkspace) -> LanguageState | None:
    """Describe the language model; None if it is off."""
    name = workspace.config.text("language.backend")
    if name == OFF:
        return None
    if name in _COMMANDS and shutil.which(name) is None:
        return LanguageState(f"{name} is chosen, and there is no such command on PATH", False)
    if name == "openai" and not workspace.config.text("language.url"):
        return LanguageState("openai is chosen, and `language.url` names no server", False)
    local = workspace.layout.local
    wordings = read_wordings(local).values()
    worded = sum(bool(wording.text) for wording in wordings)
    today = read_usage(local).get(workspace.now()[:10], Usage())
    cost = f", ${today.cost:.4f}" if today.cost else ""
    spent = f"today {today.calls} calls, {today.tokens:,} tokens{cost}"
    return LanguageState(
        f"{name}: {worded} worded, {len(wordings) - worded} refused; {spent}", True
    )
