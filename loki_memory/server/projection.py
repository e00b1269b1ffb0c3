"""Fetch a repository, and bring its rows up to date with the memory of its trusted branch.

A mirror has the last commit of one branch, fetched into a bare repository of ours. Nothing is ever
checked out, no hook, filter or submodule of the source runs here, and a local repository is fetched
from like any other, so that uncommitted work is never served.

The difference between two commits is applied in one transaction, together with the commit that it
leads to: a server or database that is killed stands at one commit or at the other. One process at a
time fetches a repository, so that no late one can take it back to an older commit.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import GitFailed, InvalidRecord
from loki_memory.files.layout import PRIVATE, kind_of, view_kind
from loki_memory.files.scan import etag
from loki_memory.git_repository import Repository, elsewhere
from loki_memory.history.as_of import content
from loki_memory.models.ids import file_stem
from loki_memory.server import records
from loki_memory.server.tokens import repository_id

if TYPE_CHECKING:
    from loki_memory.server.database import Connection, Database

_TRUSTED = "refs/loki/trusted"
_EMPTY_REMOTE = "couldn't find remote ref"
_FETCHING = 0x666574  # of the advisory locks of fetching: "fet"
_SETTINGS = ".loki/config.toml"


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

    @classmethod
    def parse_all(cls, texts: Iterable[str]) -> list[RepositorySource]:
        """Read several; raises InvalidRecord if two have one name."""
        sources: dict[str, RepositorySource] = {}
        for text in texts:
            source = cls.parse(text)
            if source.name in sources:
                advice = f"Give one of them a name of its own: NAME={text}."
                raise InvalidRecord("has the name of another", field=source.name, advice=advice)
            sources[source.name] = source
        return list(sources.values())


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


def refresh(database: Database, mirror: Mirror) -> bool:
    """Fetch a repository and apply what changed; True if anything did.

    A source that cannot be reached is noted, its memory stays as it was, and GitFailed is raised.
    """
    try:
        return _refresh(database, mirror)
    except GitFailed as error:
        with database.as_owner() as connection:
            connection.execute(
                "UPDATE loki.repositories SET problem = %s WHERE id = %s",
                (str(error), repository_id(connection, mirror.source.name)),
            )
        raise


def _refresh(database: Database, mirror: Mirror) -> bool:
    with database.as_owner() as connection:
        repository = repository_id(connection, mirror.source.name)
    with database.as_owner() as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_FETCHING, repository))
        commit = mirror.fetch()
        is_new = _known_commit(connection, repository) != commit
        if is_new:
            _apply(connection, repository, mirror.repository(), commit)
        connection.execute(
            "UPDATE loki.repositories SET fetched = now(), problem = '' WHERE id = %s",
            (repository,),
        )
    return is_new


def _known_commit(connection: Connection, repository: int) -> str:
    found = connection.execute(
        "SELECT commit FROM loki.repositories WHERE id = %s FOR UPDATE", (repository,)
    ).fetchone()
    return str(found[0]) if found else ""


def _apply(connection: Connection, repository: int, git: Repository, commit: str) -> None:
    files = memory_files(git, commit) if commit else {}
    known = records.etags(connection, repository)
    come = [path for path, data in sorted(files.items()) if known.get(path) != etag(data)]
    gone = sorted(known.keys() - files.keys())
    settings = content(git, commit, _SETTINGS) if commit else None
    connection.execute(
        "UPDATE loki.repositories SET version = version + 1, commit = %s, settings = %s "
        "WHERE id = %s",
        (commit, settings or b"", repository),
    )
    found = connection.execute("SELECT version FROM loki.repositories WHERE id = %s", (repository,))
    version = int((found.fetchone() or (0,))[0])
    records.put(
        connection, repository, version, (records.row_of(path, files[path]) for path in come)
    )
    records.remove(connection, repository, version, gone)


def memory_files(git: Repository, commit: str) -> dict[str, bytes]:
    """Records and views in a commit: the files that a rebuild in a checkout would read.

    What a commit has below `local/` is nobody's: that folder is never shared.
    """
    tree = {
        path: blob
        for path, blob in git.tree(commit).items()
        if (kind_of(path) or view_kind(path)) and not path.startswith(PRIVATE)
    }
    data = dict(git.blobs(tree.values()))
    return {path: data[blob] for path, blob in tree.items()}
