"""Note in the journal of this machine that a memory was read, or whether it helped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki_memory.errors import StoreFailed
from loki_memory.index.queries import tokens_of

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace


def feedback(workspace: OpenWorkspace, memory_id: str, helpful: bool, episode: str | None) -> str:
    """Note whether a memory that was shown helped; returns its id."""
    home, _ = workspace.homes.find(memory_id)
    if episode is not None:
        workspace.homes.find(episode)
    now = workspace.now()
    if not home.journal.feedback(memory_id, helpful, episode=episode, session=None, now=now):
        raise StoreFailed(home.layout.local, "the journal cannot be written")
    return memory_id


def note_opened(workspace: OpenWorkspace, memory_id: str, session: str | None) -> bool:
    """Note that all of a memory was read; False if that cannot be noted."""
    home, _ = workspace.homes.find(memory_id)
    tokens = tokens_of(home.index, memory_id)
    return home.journal.opened(memory_id, tokens, session=session, now=workspace.now())
