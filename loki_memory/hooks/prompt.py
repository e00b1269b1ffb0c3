"""A prompt was typed: inject the few lines that are relevant to it."""

from __future__ import annotations

from loki_memory.hooks.event import Event
from loki_memory.hooks.response import Done
from loki_memory.workspace import Workspace

_SURFACE = "hook:UserPromptSubmit"


def userpromptsubmit(workspace: Workspace, event: Event) -> Done:
    """Return lines that are relevant to the prompt; nothing if none is relevant enough."""
    prompt = event.text("prompt")
    if not event.transcript and event.session and prompt:
        workspace.sessions.note_prompt(event.session, event.folder, prompt)
    workspace.home.assume_scanned()
    told = workspace.injection.reminder(prompt, event.session, _SURFACE)
    if workspace.config.get("remote.hooks"):
        from loki_memory.remote.hints import hints

        told += hints(workspace, prompt, event.session, _SURFACE)
    return Done(told)
