"""Find the verdicts about contents of memory, with the help of git: see `integrity.reviewed`.

The trusted branch is followed by its first parents: what a merged branch held in between was never
on it. A commit counts as this machine's own if the reflog says that it was made here; then the
contents are ours by which it differs from the commit before it. The reflog is local to a clone, as
the name of an author is not. A content that is not committed, and that no branch of the remote has,
was written here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import GitFailed
from loki_memory.files.scan import etag
from loki_memory.git_repository import repository_if_any
from loki_memory.integrity.reviewed import (
    NO_VERDICTS,
    Contents,
    ReviewedText,
    Verdicts,
    content_of,
    is_due,
    keep,
    own_writes,
    resting_on,
    state_of,
    verdicts,
)
from loki_memory.integrity.signatures import trusted_branch
from loki_memory.integrity.write_log import content_hash

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.home.folder import HomeFolder
    from loki_memory.index.queries import RecordVersion

Blob = tuple[str, str]  # a path of memory, and the id of its content

_MADE_HERE = re.compile(r"commit(?: \((?:amend|initial)\))?: |loki-mem: ")
_RAW = ("--raw", "-r", "-z", "--no-renames", "--no-abbrev")
_MOST_ASKED = 20_000  # branches times records that are compared


class _ContentRow(NamedTuple):
    """A record in the working tree, with its content by all its names."""

    version: RecordVersion
    blob: str
    sha256: str

    @property
    def named(self) -> Blob:
        return self.version.path, self.blob


def renew(home: HomeFolder) -> None:
    """Find the verdicts again if git or memory moved since.

    Starts processes of git: not for hooks.
    """
    if is_due(home):
        found = find_verdicts(home, verdicts(home.layout))
        keep(home.layout, found, state_of(home, found.ref))


def find_verdicts(home: HomeFolder, known: Verdicts) -> Verdicts:
    """The verdicts about all shared records as they are now, and what was known of our own."""
    repository = repository_if_any(home.layout, home.config)
    if repository is None:
        return NO_VERDICTS
    ref = trusted_branch(home, repository)
    rows = list(_rows(home, repository))
    mainline = set(_mainline(repository, ref)) if ref else set()
    branch = _contents({}, (row for row in rows if row.named in mainline))
    found = Verdicts(branch, known.own, {}, ref)
    left = [row for row in rows if not found.is_reviewed(row.version.path, row.version.etag)]
    ours = _own(home, repository, left, found, mainline) if left else []
    found = found._replace(own=_contents(known.own, ours))
    left = [row for row in left if not found.is_reviewed(row.version.path, row.version.etag)]
    return found._replace(texts=_texts(repository, ref, left) if ref and left else {})


def _contents(known: Contents, rows: Iterable[_ContentRow]) -> Contents:
    found = {path: dict(contents) for path, contents in known.items()}
    for row in rows:
        found.setdefault(row.version.path, {})[row.version.etag] = row.sha256
    return found


def _rows(home: HomeFolder, repository: Repository) -> Iterator[_ContentRow]:
    from loki_memory.files.layout import PRIVATE
    from loki_memory.index.queries import versions

    for version in versions(home.index):
        data = None if version.path.startswith(PRIVATE) else content_of(home.layout, version.path)
        if data is not None and etag(data) == version.etag:
            yield _ContentRow(version, repository.blob_id(data), content_hash(data))


# -- the trusted branch ----------------------------------------------------------------------------


def _mainline(repository: Repository, ref: str) -> Iterator[Blob]:
    """Every content that memory ever had on a branch."""
    asked = ("log", "--first-parent", "-m", *_RAW, "--format=", "--no-color", "--no-notes")
    where = ("--end-of-options", ref, "--", repository.memory)
    yield from _brought(repository.memory, repository.run(*asked, *where))
    yield from repository.tree(repository.commit_of(ref)).items()


def _brought(folder: str, raw: bytes) -> Iterator[Blob]:
    """Parse `:100644 100644 OLD NEW M` and a path, repeatedly."""
    words = iter(os.fsdecode(raw).split("\0"))
    for word in words:
        if word.startswith(":"):
            path = next(words, "")
            if path.startswith(f"{folder}/"):
                yield path.removeprefix(f"{folder}/"), word.split()[3]


def _texts(
    repository: Repository, ref: str, left: Sequence[_ContentRow]
) -> dict[str, ReviewedText]:
    """The words of the trusted branch in the files of these records, if they may be told."""
    from loki_memory.files.store import Stored
    from loki_memory.index.gate import tellable_ids
    from loki_memory.index.index import Index
    from loki_memory.sync.apply import entry_in

    tree = repository.tree(repository.commit_of(ref))
    blobs = {row.version.path: tree[row.version.path] for row in left if row.version.path in tree}
    data = dict(repository.blobs(blobs.values()))
    index = Index(None)
    found: dict[str, ReviewedText] = {}
    with index.change() as revision:
        for path, blob in sorted(blobs.items()):
            entry, _ = entry_in(path, Stored(data[blob], etag(data[blob])))
            if entry is not None:
                revision.put(entry)
                found[entry.row.id] = ReviewedText(entry.row.kind, entry.row.title, entry.row.body)
    passed = tellable_ids(index)
    index.close()
    return {name: text for name, text in found.items() if name in passed}


def brought_content(home: HomeFolder, path: str, *, review_counts: bool) -> bytes:
    """The content in the last commit of a file below `.loki` that git brought from elsewhere.

    Empty if there is nothing of it, if it was committed here or, where a review counts, if the
    trusted branch has had it.
    """
    repository = repository_if_any(home.layout, home.config)
    tip = repository.tip() if repository else None
    if repository is None or tip is None:
        return b""
    try:
        blob = repository.run("rev-parse", "--verify", "-q", f"{tip}:{repository.prefix}/{path}")
    except GitFailed:  # git does not track it
        return b""
    content = path, os.fsdecode(blob).strip()
    ref = trusted_branch(home, repository) if review_counts else ""
    in_memory = path.removeprefix("memory/"), content[1]
    if ref and in_memory in set(_mainline(repository, ref)):
        return b""
    if content in set(_committed_here(repository, repository.prefix)):
        return b""
    return next(data for _, data in repository.blobs([content[1]]))


# -- what was written here, or signed --------------------------------------------------------------


def _own(
    home: HomeFolder,
    repository: Repository,
    rows: Sequence[_ContentRow],
    known: Verdicts,
    mainline: Iterable[Blob],
) -> list[_ContentRow]:
    """Records whose content was written, committed or accepted here, or came in a signed commit."""
    before = _with_past(repository, rows, known, mainline)
    logged = own_writes(home, [row.version for row in rows], before)
    by_hand = [row for row in rows if row.version.id not in logged]
    ours = {name for name, write in logged.items() if write.is_ours}
    ours |= _by_hand(repository, by_hand)
    left = [row for row in rows if row.version.id not in ours]
    signed = {*_signed(repository, left, known.ref)} if left else set()
    ours |= {row.version.id for row in left if row.named in signed}
    accepted = {name for name, write in logged.items() if write.is_accepted}
    unreviewed = {row.version.id for row in rows} - ours
    ours -= resting_on(home, unreviewed, ours - accepted)
    return [row for row in rows if row.version.id in ours]


def _by_hand(repository: Repository, rows: Sequence[_ContentRow]) -> set[str]:
    """Records that somebody wrote here without our tool, committed or not."""
    found = {row.version.id for row in _uncommitted(repository, rows)} if rows else set()
    left = [row for row in rows if row.version.id not in found]
    named = {*_committed_here(repository)} if left else set()
    return found | {row.version.id for row in left if row.named in named}


def _with_past(
    repository: Repository, rows: Iterable[_ContentRow], known: Verdicts, mainline: Iterable[Blob]
) -> Verdicts:
    """The verdicts with earlier contents of the trusted branch: ours may have come from them."""
    paths = {row.version.path for row in rows}
    past = [(path, blob) for path, blob in mainline if path in paths and blob.strip("0")]
    data = dict(repository.blobs(blob for _, blob in past))
    branch = {path: dict(contents) for path, contents in known.branch.items()}
    for path, blob in past:
        branch.setdefault(path, {})[etag(data[blob])] = content_hash(data[blob])
    return known._replace(branch=branch)


def _uncommitted(repository: Repository, rows: Sequence[_ContentRow]) -> list[_ContentRow]:
    """Records that are not committed so, while no operation brings in what others committed."""
    is_squash = (repository.git_dir / "SQUASH_MSG").exists()
    if is_squash or repository.under_way():
        return []
    tip = repository.tip()
    tree = repository.tree(tip) if tip else {}
    found = [row for row in rows if tree.get(row.version.path) != row.blob]
    elsewhere = set(_on_remote_branches(repository, found)) if found else set()
    return [row for row in found if row.named not in elsewhere]


def _on_remote_branches(repository: Repository, rows: Sequence[_ContentRow]) -> Iterator[Blob]:
    """The contents that branches of remotes have in the files of these records."""
    listed = repository.run("for-each-ref", "--format=%(objectname)", "refs/remotes")
    tips = sorted(set(os.fsdecode(listed).split()))[: max(1, _MOST_ASKED // len(rows))]
    paths = [row.version.path for row in rows]
    asked = [f"{tip}:{repository.memory}/{path}" for tip in tips for path in paths]
    said = repository.run("cat-file", "--batch-check", input="\n".join(asked).encode() + b"\n")
    for number, line in enumerate(os.fsdecode(said).splitlines()):
        yield paths[number % len(paths)], line.split(" ")[0]


def _committed_here(repository: Repository, folder: str = "") -> Iterator[Blob]:
    """The contents of commits that were made in this clone, and not taken from elsewhere.

    Of memory, or of another folder; paths are from there.
    """
    folder = folder or repository.memory
    pairs = list(dict.fromkeys(_reflog(repository)))
    there = _present(repository, {name for pair in pairs for name in pair})
    lines = [
        f"{new} {old}" if old.strip("0") else new
        for old, new in pairs
        if new in there and (old in there or not old.strip("0"))
    ]
    if lines:
        asked = ("diff-tree", "--stdin", "--root", *_RAW, "--no-commit-id")
        given = "\n".join([*lines, ""]).encode()
        raw = repository.run(*asked, "--", folder, input=given)
        yield from _brought(folder, raw)


def _reflog(repository: Repository) -> Iterator[tuple[str, str]]:
    """The commits before and after each commit that was made in a worktree of this clone."""
    places = [repository.common_dir, *(repository.common_dir / "worktrees").glob("*")]
    for place in places:
        with suppress(OSError):
            text = (place / "logs" / "HEAD").read_text("utf-8", "replace")
            for line in text.splitlines():
                names, _, said = line.partition("\t")
                if _MADE_HERE.match(said):
                    old, new = names.split(" ")[:2]
                    yield old, new


def _present(repository: Repository, names: Iterable[str]) -> set[str]:
    """The commits among some objects that are in this clone; others were cleared away."""
    given = "\n".join([*sorted(names), ""]).encode()
    said = os.fsdecode(repository.run("cat-file", "--batch-check", input=given))
    return {line.split(" ")[0] for line in said.splitlines() if " commit " in line}


def _signed(repository: Repository, rows: Sequence[_ContentRow], ref: str) -> Iterator[Blob]:
    """The contents of these records that signed commits brought to the branch of memory."""
    from loki_memory.integrity.signatures import is_signed, memory_commits

    pending, tip = {row.named for row in rows}, repository.tip()
    if tip is None:
        return
    for brought in memory_commits(repository, tip, without=ref):
        contents = brought.contents & pending
        if contents and is_signed(repository, brought.commit):
            yield from contents
