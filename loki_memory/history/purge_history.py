"""Take a text out of git: out of memory's own branch, and commands for every other one.

A branch of its own (`git.mode = "branch"`) holds nothing but memory, so its commits are written
anew without the text. Where memory travels with the code, rewriting history is for the people who
share it: the commands are printed, and nothing is done. No text is ever an argument of a command:
others on the machine can read those.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.editing.purge import is_traced, without_traces
from loki_memory.errors import GitFailed
from loki_memory.git_repository import BRANCH, BRANCH_BASE, repository_if_any

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.home import Home

_LONGEST_LIST = 20  # commits that are named
_SIGNATURE = re.compile(rb"\ngpgsig(?:-sha256)? .*(?:\n .*)*")
_COMMANDS = (
    "read -rs TEXT  # type or paste it: it reaches neither the history of your shell nor a file",
    'printf "%s==>[PURGED]\\n" "$TEXT" | git filter-repo --force --replace-text /dev/stdin',
    'printf "%s==>[PURGED]\\n" "$TEXT" | git filter-repo --force --replace-message /dev/stdin',
    "git push --force --all && git push --force --tags",
)


class PurgedHistory(NamedTuple):
    """The result of a purge in git."""

    commits: list[str]  # that hold the text, in any branch, the newest first
    rewritten: int  # commits of memory's own branch
    commands: list[str]  # for what only the people who share a branch can do


def purge_history(home: Home, wanted: Sequence[bytes], paths: Sequence[str]) -> PurgedHistory:
    """Take spellings of a text out of memory's own branch, and tell where else they stand.

    `paths` are memory files that were removed as a whole: their former versions may word it
    otherwise.
    """
    repository = repository_if_any(home.layout, home.config)
    if repository is None:
        return PurgedHistory([], 0, [])
    rewritten = 0
    if repository.line == BRANCH and repository.tip():
        rewritten = _rewrite(repository, wanted)
    gone = [f"{repository.memory}/{path}" for path in paths]
    commits = list(
        dict.fromkeys([*_commits_with(repository, wanted), *_commits_at(repository, gone)])
    )
    return PurgedHistory(commits[:_LONGEST_LIST], rewritten, [*_commands(commits, rewritten, gone)])


def _commits_at(repository: Repository, paths: Sequence[str]) -> list[str]:
    """The commits of all branches and tags that changed files."""
    return _lines(repository.run("log", "--all", "--format=%H", "--", *paths)) if paths else []


def _commands(commits: list[str], rewritten: int, paths: Sequence[str]) -> Iterator[str]:
    if commits:
        yield from _COMMANDS[:-1]
        named = " ".join(f"--path {shlex.quote(path)}" for path in paths)
        yield from [f"git filter-repo --force --invert-paths {named}"] if paths else []
        yield _COMMANDS[-1]
    elif rewritten:
        yield f"git push --force origin {BRANCH}  # if it was pushed"
    if rewritten:
        yield "git gc --prune=now  # if the old objects were packed"


def _commits_with(repository: Repository, wanted: Sequence[bytes]) -> list[str]:
    """The commits of all branches and tags that brought the text, in a file or a message."""
    traced = set(_traced_blobs(repository, "--all", wanted))
    found: dict[str, None] = {}
    asked = ("log", "--all", "--no-color", "-m", "--raw", "--no-abbrev", "--format=commit %H")
    commit = ""
    for line in _lines(repository.run(*asked, "--", repository.prefix)) if traced else ():
        if line.startswith("commit "):
            commit = line.split()[1]
        elif line.startswith(":") and line.split()[3] in traced:
            found[commit] = None
    messages = repository.run("log", "--all", "-z", "--format=%H%n%B").split(b"\0")
    named = (message for message in messages if is_traced(message, wanted))
    found |= {message.partition(b"\n")[0].decode(): None for message in named}
    return list(found)


def _traced_blobs(repository: Repository, revisions: str, wanted: Sequence[bytes]) -> list[str]:
    asked = ("rev-list", "--objects", revisions, "--", repository.prefix)
    names = [line.partition(" ")[0] for line in _lines(repository.run(*asked)) if " " in line]
    return [blob for blob, data in _blobs(repository, names) if is_traced(data, wanted)]


def _blobs(repository: Repository, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The blobs among objects, with their contents; trees are left out."""
    asked = "".join(f"{name}\n" for name in names).encode()
    kinds = _lines(repository.run("cat-file", "--batch-check", input=asked))
    yield from repository.blobs(line.split()[0] for line in kinds if line.split()[1:2] == ["blob"])


def _tree(repository: Repository, commit: str) -> list[str]:
    listed = repository.run("ls-tree", "-r", "-z", "--full-tree", commit)
    return [entry for entry in listed.decode("utf-8", "surrogateescape").split("\0") if entry]


def _lines(answer: bytes) -> list[str]:
    return answer.decode("utf-8", "surrogateescape").split("\n")[:-1]


# -- memory's own branch ---------------------------------------------------------------------------


def _rewrite(repository: Repository, wanted: Sequence[bytes]) -> int:
    """Write the commits of memory's branch anew without the text; returns how many changed."""
    tip = repository.tip() or ""
    old = _traced_blobs(repository, tip, wanted)
    clean = {blob: _clean_blob(repository, data, wanted) for blob, data in repository.blobs(old)}
    new: dict[str, str] = {}
    for commit in _lines(repository.run("rev-list", "--topo-order", "--reverse", tip)):
        new[commit] = _rewritten(repository, commit, new, clean, wanted)
    changed = sum(before != after for before, after in new.items())
    if changed:
        _move_refs(repository, new)
        _discard(repository, (*old, *(before for before, after in new.items() if before != after)))
    return changed


def _clean_blob(repository: Repository, data: bytes, wanted: Sequence[bytes]) -> str:
    clean = without_traces(data, wanted)
    return _lines(repository.run("hash-object", "-w", "--stdin", input=clean))[0]


def _rewritten(
    repository: Repository,
    commit: str,
    new: dict[str, str],
    clean: dict[str, str],
    wanted: Sequence[bytes],
) -> str:
    """The commit with clean files, a clean message and rewritten parents; itself if all are."""
    raw = repository.run("cat-file", "commit", commit)
    header, _, message = raw.partition(b"\n\n")
    lines = header.split(b"\n")
    tree = _clean_tree(repository, commit, clean) or lines[0].split()[1].decode()
    parents = [line.split()[1].decode() for line in lines if line.startswith(b"parent ")]
    changed = [f"tree {tree}", *(f"parent {new.get(parent, parent)}" for parent in parents)]
    rest = [line for line in lines[1:] if not line.startswith(b"parent ")]
    body = b"\n".join([*(line.encode() for line in changed), *rest])
    text = body + b"\n\n" + without_traces(message, wanted)
    if text == raw:
        return commit
    unsigned = _SIGNATURE.sub(b"", text)
    return _lines(repository.run("hash-object", "-t", "commit", "-w", "--stdin", input=unsigned))[0]


def _clean_tree(repository: Repository, commit: str, clean: dict[str, str]) -> str:
    """The tree of a commit with clean files in it; empty if it is clean."""
    entries = _tree(repository, commit)
    if not any(entry.split()[2] in clean for entry in entries):
        return ""
    env = {"GIT_INDEX_FILE": str(repository.git_dir / "loki-memory-purge.index")}
    try:
        repository.run("read-tree", "--empty", env=env)
        listed = "".join(f"{_clean_entry(entry, clean)}\0" for entry in entries)
        data = listed.encode("utf-8", "surrogateescape")
        repository.run("update-index", "-z", "--index-info", input=data, env=env)
        return _lines(repository.run("write-tree", env=env))[0]
    finally:
        (repository.git_dir / "loki-memory-purge.index").unlink(missing_ok=True)


def _clean_entry(entry: str, clean: dict[str, str]) -> str:
    about, _, path = entry.partition("\t")
    mode, kind, blob = about.split()
    return f"{mode} {kind} {clean.get(blob, blob)}\t{path}"


def _move_refs(repository: Repository, new: dict[str, str]) -> None:
    for ref in (BRANCH, BRANCH_BASE):
        name = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
        there = repository.resolve(name)
        if there and new.get(there, there) != there:
            repository.run("update-ref", name, new[there], there)
            with suppress(GitFailed):  # a reference without a log
                repository.run("reflog", "expire", "--expire=now", name)


def _discard(repository: Repository, objects: Iterable[str]) -> None:
    """Delete loose objects that no reference reaches any more."""
    reached = {
        line.partition(" ")[0] for line in _lines(repository.run("rev-list", "--all", "--objects"))
    }
    for name in objects:
        if name not in reached:
            path = repository.common_dir / "objects" / name[:2] / name[2:]
            path.unlink(missing_ok=True)


# -- sources ---------------------------------------------------------------------------------------


def files_from(home: Home, source: str) -> list[str]:
    """The memory files that a commit wrote, or every commit of an author, as paths of records."""
    repository = repository_if_any(home.layout, home.config)
    if repository is None or repository.tip() is None or not source:
        return []
    found = _commits_from(repository, source)
    asked = ("diff-tree", "--stdin", "-r", "-m", "--root", "--no-commit-id", "--name-only", "-z")
    names = repository.run(*asked, input="".join(f"{each}\n" for each in found).encode())
    below = f"{repository.memory}/"
    paths = (name for name in os.fsdecode(names).split("\0") if name.startswith(below))
    return sorted({path.removeprefix(below) for path in paths})


def _commits_from(repository: Repository, source: str) -> list[str]:
    """The commit that a hash names, or all commits of an author."""
    commit = repository.resolve(source) if re.fullmatch(r"[0-9a-f]{7,64}", source) else None
    if commit:
        return [commit]
    commits = repository.commits(None, [""])
    who = source.lower()
    return [each.id for each in commits if who in {each.author.lower(), each.email.lower()}]
