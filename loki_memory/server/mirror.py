"""A mirror: the last commit of one branch of a repository, fetched into a bare repository of ours.

Nothing is ever checked out, no hook, filter or submodule of the source runs here, and a local
repository is fetched from like any other, so that uncommitted work is never served.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from loki_memory.errors import GitFailed, InvalidRecord
from loki_memory.git_repository import Repository, elsewhere
from loki_memory.models.ids import file_stem

_TRUSTED = "refs/loki/trusted"
_EMPTY_REMOTE = "couldn't find remote ref"


class RepositorySource(NamedTuple):
    """A repository to serve: its name for clients, where it is, and the branch that is trusted."""

    name: str
    url: str
    branch: str = ""  # empty: the one that the source's HEAD names

    @classmethod
    def parse(cls, text: str) -> RepositorySource:
        """Read `[NAME=]PATH-OR-URL[#BRANCH]`."""
        place, _, branch = text.partition("#")
        name, equals, url = place.partition("=")
        if not equals or "/" in name:
            name, url = Path(place.rstrip("/")).name.removesuffix(".git"), place
        if not all((name, url)) or any(part.startswith("-") for part in (name, url, branch)):
            advice = "Write NAME=URL, a path, or a URL, and #BRANCH if it is not the default one."
            raise InvalidRecord("is no repository", field=text, advice=advice)
        return cls(name, str(Path(url).resolve()) if Path(url).exists() else url, branch)


class Mirror:
    """The mirror of one source."""

    def __init__(self, source: RepositorySource, folder: Path) -> None:
        self.source = source
        self._path = folder / f"{file_stem(source.name)}.git"

    def fetch(self) -> str:
        """Fetch the branch and return its commit; empty if the source has none yet."""
        repository = self._opened()
        wanted = f"refs/heads/{self.source.branch}" if self.source.branch else "HEAD"
        try:
            repository.reach(
                "fetch",
                "--quiet",
                "--force",
                "--depth=1",
                "--no-tags",
                "--no-recurse-submodules",
                "--",
                self.source.url,
                f"+{wanted}:{_TRUSTED}",
            )
        except GitFailed as error:
            if _EMPTY_REMOTE in str(error) and not self.source.branch:
                return ""
            raise
        return repository.resolve(_TRUSTED) or ""

    def repository(self, commit: str = "") -> Repository:
        """The mirror, with a commit if the source still has it."""
        repository = self._opened()
        if commit and repository.resolve(commit) is None:
            self.fetch()
        return repository

    def _opened(self) -> Repository:
        if not (self._path / "HEAD").exists():
            self._path.mkdir(parents=True, exist_ok=True)
            made = subprocess.run(  # noqa: S603 - git
                ["git", "init", "--quiet", "--bare", "--template=", str(self._path)],  # noqa: S607
                env=elsewhere(),
                capture_output=True,
                check=False,
            )
            if made.returncode:
                raise GitFailed(("init",), made.stderr.decode(errors="replace"))
        return Repository(self._path, self._path, self._path, ".loki")
