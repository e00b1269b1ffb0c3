"""Pull where memory travels with the code: `git pull`, with uncommitted memory out of its way.

Git itself pulls, with the user's settings, hooks and credentials. The user's other changes are
git's business: where it refuses because of them, memory is put back and git's reason is told.
"""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from loki_memory.errors import GitFailed, PullStopped, StoreFailed
from loki_memory.files import disk
from loki_memory.files.layout import ARCHIVE
from loki_memory.files.store import failures_named
from loki_memory.git_repository import elsewhere
from loki_memory.history.branch_mode import Exchanged
from loki_memory.history.inline_commit import one_at_a_time, opened
from loki_memory.history.refusals import uncommitted
from loki_memory.history.resolve import merge_files, resolve
from loki_memory.history.review import diff
from loki_memory.index.queries import problem_paths
from loki_memory.models.ids import file_stem

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.homes import OpenWorkspace


_NAMED = 3  # files that a notice names


def pull(workspace: OpenWorkspace, remote: str = "") -> Exchanged:
    """Set uncommitted memory aside, pull, and merge it back; raises GitFailed."""
    repository = opened(workspace)
    workspace.home.ensure("edits")  # what somebody edited in a view is in files now
    known = set(problem_paths(workspace.index))
    with one_at_a_time(workspace):
        if waiting(workspace.layout.local):
            workspace.notices.append("memory that an earlier pull had set aside is back")
            merge_back(workspace, repository)
        _refuse_if_busy(repository)
        before = repository.head() or ""
        set_aside(workspace, repository)
        said = ""
        try:
            said = _git_pull(repository, remote)
        finally:
            back = _put_back(workspace, repository)
    workspace.sync()
    if said:
        raise PullStopped(said)
    after = repository.head() or ""
    _tell_of_problems(workspace, known)
    return Exchanged(
        after, _summary(workspace, before, after), *map(tuple, (back.joined, back.kept))
    )


def _refuse_if_busy(repository: Repository) -> None:
    busy = repository.under_way()
    if busy:
        raise GitFailed(("pull",), f"{busy} is under way" if busy.startswith("a ") else busy)


def _git_pull(repository: Repository, remote: str) -> str:
    """Run git as the user would; returns its complaint, empty if all went well."""
    command = ["git", "pull", *(["--", remote] if remote else [])]
    done = subprocess.run(  # noqa: S603 - git
        command, cwd=repository.root, env=elsewhere(), capture_output=True, text=True, check=False
    )
    complaint = done.stderr.strip() or done.stdout.strip() or "it gave no reason"
    return f"{done.stdout}\n{complaint}".strip() if done.returncode else ""


def _put_back(workspace: OpenWorkspace, repository: Repository) -> MergedBack:
    """Merge memory back, after conflicts among memory files are resolved by our own rules."""
    if repository.under_way():
        resolve(workspace)
    if not waiting(workspace.layout.local):
        return MergedBack([], [], "")
    done = merge_back(workspace, repository)
    workspace.notices += [
        f"{path} changed on both sides and cannot be merged; your version is in {done.folder}"
        for path in done.kept
    ]
    return done


def _tell_of_problems(workspace: OpenWorkspace, known: set[str]) -> None:
    """Say what came and is no memory: a link, a name or a content that is refused."""
    new = sorted(set(problem_paths(workspace.index)) - known)
    if new:
        some = ", ".join(new[:_NAMED]) + (", …" if len(new) > _NAMED else "")
        workspace.notices.append(
            f"what came holds {some}, which cannot be used as memory and is left alone; "
            "`loki-mem doctor` says why"
        )


def _summary(workspace: OpenWorkspace, before: str, after: str) -> str:
    if before == after:
        return "up to date"
    news = diff(workspace, f"{before}..{after}").summary() if before else ""
    return f"pulled: {news or 'nothing new in memory'}"


# Set uncommitted memory aside for a pull, and merge it back.
#
# All of it is written to one file of this machine first, with the committed version of each
# record; then the files of the worktree become those of the last commit. Whatever happens in
# between, the next pull finds that file and merges it back. A version that cannot be merged is
# kept beside it.
_FILE = "set-aside.json"
_MEMORY = ".loki/memory/"


class AsideFile(NamedTuple):
    """A memory file with an uncommitted change; None where there is no file."""

    path: str  # relative to the memory folder
    base: bytes | None  # as committed
    mine: bytes | None  # as it was here
    is_staged: bool


class MergedBack(NamedTuple):
    """Paths of what was merged back, relative to the memory folder."""

    joined: list[str]  # changed on both sides; both changes are in
    kept: list[str]  # changed on both sides, and could not be merged
    folder: str  # of this machine's version of those


def waiting(local: Path) -> bool:
    """Check if memory waits to be merged back, after a pull that was killed."""
    return (local / _FILE).exists()


def set_aside(workspace: OpenWorkspace, repository: Repository) -> list[AsideFile]:
    """Write uncommitted memory to the local zone, and let git have its own files back."""
    changed = uncommitted(workspace.layout.root)
    if not changed:
        return []
    head = repository.head()
    tree = repository.tree(head) if head else {}
    blobs = dict(repository.blobs(tree[name] for name in map(_inside, changed) if name in tree))
    files = [
        AsideFile(
            name, blobs.get(tree.get(name, "")), _bytes_of(workspace, name), how[0] not in " ?"
        )
        for name, how in ((_inside(path), how) for path, how in sorted(changed.items()))
    ]
    with failures_named(workspace.layout.local):
        disk.make_folder(workspace.layout.local)
        disk.write_bytes(workspace.layout.local / _FILE, _encoded(files))
        _clear(workspace, repository, files)
    return files


def _inside(path: str) -> str:
    return path.removeprefix(_MEMORY)


def _bytes_of(workspace: OpenWorkspace, name: str) -> bytes | None:
    return disk.read_bytes(workspace.layout.file(name))


def _clear(workspace: OpenWorkspace, repository: Repository, files: list[AsideFile]) -> None:
    """Make the worktree and the index as the last commit has them, for these files only."""
    staged = [file.path for file in files if file.is_staged]
    if staged and repository.head():
        names = "".join(f"{repository.memory}/{path}\0" for path in staged).encode()
        asked = ("reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul", "HEAD")
        repository.run(*asked, input=names)
    for file in files:
        _write(workspace, file.path, file.base)


def _write(workspace: OpenWorkspace, path: str, data: bytes | None) -> None:
    """Write a file as somebody had it: it is nothing new that the write log would vouch for."""
    target = workspace.layout.file(path)
    if data is None:
        disk.remove(target)
    elif disk.read_bytes(target) != data:
        disk.write_bytes(target, data)


def merge_back(workspace: OpenWorkspace, repository: Repository) -> MergedBack:
    """Merge what was set aside into the files as they are now, then let go of it."""
    aside = workspace.layout.local / _FILE
    stem = file_stem(workspace.now().replace(":", "-").lower())
    done = MergedBack([], [], str(workspace.layout.local / "salvaged" / f"pull-{stem}"))
    with failures_named(aside):
        files = _decoded(aside)
        for file in files:
            _merge_one(workspace, file, done)
        _stage_again(repository, [file.path for file in files if file.is_staged])
        disk.remove(aside)
    return done


def _merge_one(workspace: OpenWorkspace, file: AsideFile, done: MergedBack) -> None:
    now = _bytes_of(workspace, file.path)
    if now in {file.base, file.mine}:
        _write(workspace, file.path, file.mine)
    elif now is None:
        _return_to_archive(workspace, file, done)
    elif file.mine is not None:
        _join(workspace, file.path, file, now, done)


def _return_to_archive(workspace: OpenWorkspace, file: AsideFile, done: MergedBack) -> None:
    """Others removed what was changed here: the change stays, in the archive if they moved it."""
    path = ARCHIVE + file.path
    archived = _bytes_of(workspace, path)
    if archived is None:
        _write(workspace, file.path, file.mine)
    elif file.mine is not None:
        _join(workspace, path, file, archived, done)


def _join(
    workspace: OpenWorkspace, path: str, file: AsideFile, now: bytes, done: MergedBack
) -> None:
    """Merge two versions by the rules of the merge driver; keep ours aside where that fails."""
    mine = file.mine or b""
    data = merge_files(file.base or b"", mine, now, f"{_MEMORY}{path}")
    if data is None:
        disk.write_bytes(Path(done.folder, path), mine)
        done.kept.append(path)
        return
    with workspace.store.change() as change:
        change.render(path, data)
    done.joined.append(path)


def _stage_again(repository: Repository, paths: list[str]) -> None:
    names = "".join(f"{repository.memory}/{path}\0" for path in paths).encode()
    if names:
        asked = ("update-index", "--add", "--remove", "-z", "--stdin")
        repository.run(*asked, input=names)


# -- the file of what was set aside ----------------------------------------------------------------


def _encoded(files: list[AsideFile]) -> bytes:
    rows = [[file.path, _text(file.base), _text(file.mine), file.is_staged] for file in files]
    return orjson.dumps({"files": rows})


def _decoded(path: Path) -> list[AsideFile]:
    data = disk.read_bytes(path)
    try:
        rows = orjson.loads(data)["files"] if data else []
        return [
            AsideFile(name, _bytes(base), _bytes(mine), bool(s)) for name, base, mine, s in rows
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise StoreFailed(path, f"is damaged ({error}); it holds uncommitted memory") from error


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
