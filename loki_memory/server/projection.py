"""Bring the rows of a repository up to date with the memory of its trusted branch.

The difference between two commits is applied in one transaction, together with the commit that it
leads to: a server or database that is killed stands at one commit or at the other. One process at a
time fetches a repository, so that no late one can take it back to an older commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki_memory.errors import GitFailed
from loki_memory.files.layout import PRIVATE, kind_of, view_kind
from loki_memory.files.scan import etag
from loki_memory.history.as_of import content
from loki_memory.server import records
from loki_memory.server.tokens import repository_id

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.server.database import Connection, Database
    from loki_memory.server.mirror import Mirror

_FETCHING = 0x666574  # of the advisory locks of fetching: "fet"
_SETTINGS = ".loki/config.toml"


def refresh(database: Database, mirror: Mirror) -> bool:
    """Fetch a repository and apply what changed; True if anything did.

    A source that cannot be reached is noted, and its memory stays as it was.
    """
    try:
        return _refresh(database, mirror)
    except GitFailed as error:
        with database.as_owner() as connection:
            connection.execute(
                "UPDATE loki.repositories SET problem = %s WHERE id = %s",
                (str(error), repository_id(connection, mirror.source.name)),
            )
        return False


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
