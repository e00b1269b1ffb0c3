"""Memories that came with a clone, about which its user decides with `loki-mem trust`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.files.workspace_trust import address_of
from loki_memory.index.queries import shared_records
from loki_memory.integrity.reviewed import known_unreviewed
from loki_memory.models.prompt_injection import gives_instructions, pipes_download

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_TITLES = 5  # that give an impression
_TOLD = ("fact", "pattern", "anti-pattern", "skill")  # kinds that agents are told


class BroughtMemory(NamedTuple):
    """A memory that came with a clone: its title, or the text in it that is suspicious."""

    id: str
    kind: str
    text: str


class BroughtMemories(NamedTuple):
    """All that came with a clone, and whether it is trusted."""

    workspace: str
    trusted: bool
    why: str
    remote: str  # empty if there is none
    counts: dict[str, int]
    titles: list[BroughtMemory]  # some of those that agents would be told, newest first
    suspicious: list[BroughtMemory]  # texts that tell their reader to do something
    unreviewed: int  # of a branch that nobody reviewed: not told in a trusted workspace either


def brought_memories(workspace: OpenWorkspace) -> BroughtMemories:
    """Count and sample the shared memories, and look for text that is meant for agents."""
    trust, records = workspace.home.trust(), shared_records(workspace.index)
    counts: dict[str, int] = {}
    for record in records:
        counts[record.kind] = counts.get(record.kind, 0) + 1
    told = [record for record in records if record.kind in _TOLD]
    return BroughtMemories(
        workspace=str(workspace.layout.root),
        trusted=trust.is_trusted,
        why=trust.why,
        remote=address_of(workspace.layout),
        counts=dict(sorted(counts.items())),
        titles=[BroughtMemory(*record[:3]) for record in told[:_TITLES]],
        suspicious=[
            BroughtMemory(record.id, record.kind, text)
            for record in records
            for text in _suspicious(json.loads(record.body))
        ],
        unreviewed=len(known_unreviewed(workspace.home)),
    )


def _suspicious(value: Any) -> Iterator[str]:
    """The texts of a record that a careful reader would look at twice."""
    if isinstance(value, str) and (gives_instructions(value) or pipes_download(value)):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _suspicious(part)
