"""The trust filter: memories that are recalled when asked for but not injected.

These are the ones that the last `verify` could not confirm and, with `trust.require_signature`, all
that no signed or reviewed commit brought in. Memory that never leaves this machine is trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki_memory.errors import GitFailed
from loki_memory.files.layout import PRIVATE
from loki_memory.integrity.unverified import doubts

if TYPE_CHECKING:
    from loki_memory.home import Home


def withheld(home: Home) -> frozenset[str]:
    """The ids of memories that must not be injected; leaves a notice with the unsigned ones."""
    doubted = doubts(home.layout)
    is_required = bool(home.config.get("trust.require_signature")) and not home.is_user
    if not (doubted or is_required):
        return frozenset()
    home.look_again()
    rows = home.index.ask("SELECT id, path, etag FROM memories")
    ours = [(name, path, etag) for name, path, etag in rows if not path.startswith(PRIVATE)]
    held = {name for name, path, etag in ours if doubted.get(path) == etag}
    if is_required:
        vouched = _vouched_for(home)
        unsigned = {name for name, path, etag in ours if vouched.get(path) != etag} - held
        _notice(home, len(unsigned))
        held |= unsigned
    return frozenset(held)


def _vouched_for(home: Home) -> dict[str, str]:
    from loki_memory.integrity.signatures import vouched

    try:
        return vouched(home)
    except GitFailed as error:  # without git nothing is vouched for
        home.notices.append(f"trust.require_signature: {error}")
        return {}


def _notice(home: Home, many: int) -> None:
    if many:
        subject = "memory is" if many == 1 else "memories are"
        why = "no signed or reviewed commit brought it in (trust.require_signature)"
        home.notices.append(f"{many} {subject} withheld: {why}")
