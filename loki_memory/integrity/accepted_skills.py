"""The skills that were learned or accepted on this machine, by the digest of their text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki_memory.files import disk
from loki_memory.files.store import failures_named
from loki_memory.integrity.write_log import content_hash

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout
    from loki_memory.models import Memory, Skill

_ACCEPTED = "accepted-skills"  # in the local zone: a line for each text, its digest and its name


def accepted(layout: Layout) -> set[str]:
    """The digests of the texts that were learned or accepted on this machine."""
    path = layout.local / _ACCEPTED
    with failures_named(path):
        data = disk.read_bytes(path) or b""
    return {line.split(" ")[0] for line in data.decode("utf-8", "replace").splitlines()}


def accept(layout: Layout, *skills: Skill) -> None:
    """Allow skills to be published in their present text; another text needs a new acceptance."""
    path = layout.local / _ACCEPTED
    with failures_named(path):
        known = (disk.read_bytes(path) or b"").decode("utf-8", "replace").splitlines()
        lines = {*known, *(f"{acceptance(skill)} {skill.name}" for skill in skills)}
        if lines != set(known):
            disk.write_bytes(path, "".join(f"{line}\n" for line in sorted(lines)).encode())


def keep_accepted(layout: Layout, before: Memory, after: Memory) -> Memory:
    """Keep a skill accepted that somebody here changed; returns the record as it is now."""
    from loki_memory.models import Skill

    if not (isinstance(before, Skill) and isinstance(after, Skill)):
        return after
    if acceptance(before) in accepted(layout):
        accept(layout, after)
    return after


def acceptance(skill: Skill) -> str:
    """The digest of the text that would be published."""
    return content_hash(published_text(skill).encode())


def published_text(skill: Skill) -> str:
    """The text of a skill as it is published."""
    from loki_memory.files.codec import encode

    return encode(skill.changed(description=skill.description or skill.title()[:1024])).decode()
