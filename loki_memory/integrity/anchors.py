"""Read from git the chain heads that commits anchor, and how memory files came to be gone."""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import NamedTuple

from loki_memory.errors import GitFailed
from loki_memory.git_repository import Repository

TRAILER = "Loki-Head"
_HEAD = re.compile(r"(w-[0-9a-z]{10}):(\d+):([0-9a-f]{64})")
_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PLAIN_NAMES = ("-c", "core.quotePath=false")


class Anchor(NamedTuple):
    """A commit with the head of a writer's chain at that time."""

    commit: str
    writer: str
    seq: int
    hash: str


class AnchoredPast:
    """The git history of a memory folder, as far as `verify` needs it.

    "Committed" means HEAD or, where memory has a branch of its own, the commit of that branch that
    the files are in step with.
    """

    def __init__(self, repository: Repository) -> None:
        self._git = repository
        self._tips = [tip for tip in (repository.branch_base(), repository.head()) if tip]
        self._tip = self._tips[0] if self._tips else ""

    @cached_property
    def anchors(self) -> list[Anchor]:
        """The anchors of every commit that the files here come from."""
        found = {}
        for tip in self._tips:
            shown = f"--format=%H %(trailers:key={TRAILER},valueonly,separator=%x20)"
            answer = self._git.run("log", f"--grep=^{TRAILER}: ", shown, tip, "--")
            for line in answer.decode(errors="replace").splitlines():
                commit, _, value = line.partition(" ")
                for writer, seq, head in _HEAD.findall(value):
                    found[commit, writer] = Anchor(commit, writer, int(seq), head)
        return list(found.values())

    @cached_property
    def tracked(self) -> dict[str, str]:
        """Committed paths with their blob ids."""
        return self._git.tree(self._tip) if self._tip else {}

    def removal(self, path: str) -> str:
        """The commit in the history of these files that removed a path; or empty."""
        return self._removals.get(path, "")

    def is_elsewhere(self, path: str) -> bool:
        """Check if only another branch has, or had, a file."""
        return path in self._ever_added

    @cached_property
    def _removals(self) -> dict[str, str]:
        if not self._tip:
            return {}
        names = self._names("-m", "--diff-filter=D", "--format=\x01%H", self._tip)
        found: dict[str, str] = {}
        commit = ""
        for line in filter(None, names):
            if line[0] == "\x01":
                commit = line[1:]
            else:
                found.setdefault(line.removeprefix(f"{self._git.memory}/"), commit)
        return found

    @cached_property
    def _ever_added(self) -> set[str]:
        names = self._names("--all", "--diff-filter=A", "--format=") if self._tip else []
        return {line.removeprefix(f"{self._git.memory}/") for line in names}

    def _names(self, *options: str) -> list[str]:
        asked = ("log", "--no-renames", "--name-only", *options, "--", self._git.memory)
        return os.fsdecode(self._git.run(*_PLAIN_NAMES, *asked)).split("\n")

    def blob(self, name: str) -> bytes | None:
        """The content of a blob; None if this clone does not have it."""
        try:
            return self._git.run("cat-file", "blob", name) if _BLOB.fullmatch(name) else None
        except GitFailed:
            return None
