"""The trust filter: memories that are recalled when asked for but not injected.

With `trust.require_signature` these are all that no signed or reviewed commit brought in. Memory
that never leaves this machine is trusted. An edit by hand stays in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki_memory.errors import GitFailed
from loki_memory.files.layout import PRIVATE

if TYPE_CHECKING:
    from loki_memory.home import Home


def withheld(home: Home) -> frozenset[str]:
    """The ids of memories that must not be injected; leaves a notice with the unsigned ones."""
    if home.is_user or not home.config.get("trust.require_signature"):
        return frozenset()
    from loki_memory.index.queries import versions

    home.ensure("folders")
    ours = [record for record in versions(home.index) if not record.path.startswith(PRIVATE)]
    signed = _vouched_for(home)
    unsigned = {record.id for record in ours if signed.get(record.path) != record.etag}
    _notice(home, len(unsigned))
    return frozenset(unsigned)


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
