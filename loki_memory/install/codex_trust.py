"""Hooks of ours that Codex does not run yet, because its user has not trusted them.

Codex notes what was trusted in the user's `config.toml`, by the place of a hook:
`[hooks.state."/home/ana/.codex/hooks.json:session_start:0:0"]`, with a hash of what it
runs. We look only for the place: the hash is Codex's own affair, and to write it would be to
trust ourselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from loki_memory.install import codex_config, settings
from loki_memory.install.site import Site


class HookPlace(NamedTuple):
    """The place of a hook as Codex counts: event, group, and handler in the group."""

    event: str
    group: int
    handler: int

    def key(self) -> str:
        event = re.sub(r"(?<!^)(?=[A-Z])", "_", self.event).lower()
        return f"{event}:{self.group}:{self.handler}"


def untrusted(site: Site, hooks: Path, config: Path) -> list[HookPlace]:
    """Find the hooks of ours in a file that the user's configuration does not name as trusted."""
    trusted = set(_trusted(site.text(config) or "", config, hooks))
    ours = (HookPlace(*place) for place in settings.our_hooks(site.text(hooks), hooks))
    return [place for place in ours if place.key() not in trusted]


def _trusted(text: str, config: Path, hooks: Path) -> Iterator[str]:
    """Yield the keys of trusted hooks in a file, without its path."""
    state = codex_config.parsed(text, config).get("hooks", {})
    state = state.get("state", {}) if isinstance(state, dict) else {}
    for name in state if isinstance(state, dict) else ():
        path, *place = name.rsplit(":", 3)
        if os.path.realpath(path) == str(hooks):  # Codex names a link as it is
            yield ":".join(place)
