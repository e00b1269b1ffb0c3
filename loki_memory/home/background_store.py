"""A store for work in the background: no file that git tracks changes.

While a person works in a git repository, `git pull --rebase` would refuse to touch what a watcher
had changed meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from loki_memory.errors import GitFailed, TrackedByGit
from loki_memory.files.layout import PRIVATE, Layout
from loki_memory.files.store import Change, Store
from loki_memory.git_repository import NO_GIT, NO_REPOSITORY, Repository


class BackgroundStore(Store):
    """A store that raises TrackedByGit instead of changing a file that git tracks."""

    @contextmanager
    def change(self, seconds: float | None = None) -> Iterator[Change]:
        with super().change(seconds) as change:
            yield change
            tracked = tracked_by_git(self.layout, change.overwritten())
            if tracked:
                raise TrackedByGit(tracked[0])


def tracked_by_git(layout: Layout, paths: Iterable[str]) -> list[str]:
    """Return those of the record files that git tracks; all, if git cannot say."""
    asked = [path for path in paths if not path.startswith(PRIVATE)]
    return [path for path in asked if path in _known_to_git(layout, asked)] if asked else []


def _known_to_git(layout: Layout, paths: Sequence[str]) -> set[str]:
    try:
        repository = Repository.open(layout.root)
        places = (f"{repository.memory}/{path}" for path in paths)
        listed = os.fsdecode(repository.run("ls-files", "-z", "--", *places)).split("\0")
    except GitFailed as error:
        return set() if error.reason in {NO_REPOSITORY, NO_GIT} else set(paths)
    return {path.removeprefix(f"{repository.memory}/") for path in listed}
