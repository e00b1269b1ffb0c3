"""Check that registered hooks arrive: run each as its client does, with an event that is a probe.

A probe is answered with the version that answered, and nothing is noted of it. What a project's
settings name may come with a clone: there only the program that the user's own PATH finds is run.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import LokiMemoryError
from loki_memory.install import settings
from loki_memory.install.site import Site

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

PROBE = "loki_mem_probe"  # the field that marks an event; hooks/response.py knows it
_SECONDS = 20.0  # longer than any hook takes
_NAMED = re.compile(r"(?:command -v loki-mem >/dev/null 2>&1 \|\| exit 0; exec )?loki-mem hook \w+")
_PLACES = (
    ("Claude Code", "settings.json", "CLAUDE_CONFIG_DIR", ".claude"),
    ("Codex", "hooks.json", "CODEX_HOME", ".codex"),
)


class HookCheck(NamedTuple):
    """The hooks of one settings file: how many answered, and why others did not."""

    client: str
    where: str
    answered: int
    failures: list[str]

    def sentence(self) -> str:
        if not self.failures:
            return f"{self.client}: all {self.answered} in {self.where} answer"
        return f"{self.client}: {len(self.failures)} in {self.where} do not answer: " + "; ".join(
            dict.fromkeys(self.failures)
        )


def check_hooks(workspace: OpenWorkspace) -> Iterator[HookCheck]:
    """Run our hooks of every settings file that has some."""
    for client, name, variable, folder in _PLACES:
        for site in (Site.of(workspace), Site.of(workspace, user=True)):
            try:
                path = _file(site, name, variable, folder)
                commands = list(settings.our_commands(site.text(path), path))
            except LokiMemoryError as error:  # of a file that is the client's, not ours
                yield HookCheck(client, name, 0, [str(error)])
                continue
            if commands:
                reasons = [_failure(site, event, command) for event, command in commands]
                failures = [reason for reason in reasons if reason]
                answered = len(commands) - len(failures)
                yield HookCheck(client, site.shown(path), answered, failures)


def _file(site: Site, name: str, variable: str, folder: str) -> Path:
    if site.user:
        return site.in_home(name, variable, folder)
    return site.in_project(f"{folder}/{name}")


def _failure(site: Site, event: str, command: str) -> str:
    """Run one hook with a probe; returns the reason why it does not answer, empty if it does."""
    if not site.user and not _NAMED.fullmatch(command):
        return f"{event} names a program of its own, which is not run"
    given = {PROBE: True, "hook_event_name": event, "cwd": str(site.root)}
    try:
        done = subprocess.run(  # noqa: S603 - this very program
            ["sh", "-c", command],  # noqa: S607 - as clients do
            input=json.dumps(given).encode(),
            cwd=site.root,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{event}: {error}"
    if done.returncode:
        return f"{event} exits with {done.returncode}"
    return "" if b'"loki-mem"' in done.stdout else f"{event} is silent: loki-mem is not on PATH"
