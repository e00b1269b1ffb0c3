"""The three zones of a workspace, and the path of each record.

Paths of records are relative, with forward slashes, and start at `memory/`; those of private
records (scope local or session) start with `local/` and are in the local zone. The bases of views
are written together with them, and have paths too: those start with `view-bases/`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import NestedRepository, NotAWorkspace, StoreFailed, SymlinkedRoot
from loki_memory.files.git_files import REPOSITORY, git_home, is_tracked, named_by
from loki_memory.models.ids import MINTED_LENGTH, digest, file_stem
from loki_memory.models.kinds import Kind

if TYPE_CHECKING:  # pydantic is not needed to find a folder
    from loki_memory.models import Memory

LOCAL = "local"  # the folder in `.loki` for this machine only
PRIVATE = f"{LOCAL}/"
MADE_HERE = ".made-here"  # a file in that folder: this machine made it
VIEW_BASES = "view-bases/"  # what was rendered last, in one working tree of this machine
IN_HOME = ".in-home"  # a file in that folder: what it held is in the user's folder
_WORKTREE = re.compile(r"^\s*worktree\s*=(.*)$", re.MULTILINE | re.IGNORECASE)  # of a submodule
ARCHIVE = "archive/"
TEMPORARY = ".tmp-"  # prefix of files that a killed writer may leave
FOLDERS: dict[str, Kind] = {
    "semantic/patterns": "pattern",
    "semantic/anti-patterns": "anti-pattern",
    "semantic/facts": "fact",
    "semantic/links": "link",
    "semantic/rejected": "tombstone",
    "ledgers": "ledger",
    "handoffs": "handoff",
}
TOP_FOLDERS = ("episodic", "semantic", "skills", "ledgers", "handoffs", "learnings")
_FOLDER_OF = {kind: folder for folder, kind in FOLDERS.items()}
_DATE = r"\d{4}-\d\d-\d\d"
_VIEWS: dict[str, Kind] = {
    "semantic/patterns.json": "pattern",
    "semantic/anti-patterns.json": "anti-pattern",
    "semantic/facts.json": "fact",
    "semantic/links.json": "link",
    "episodic/index.json": "episode",
}
_DATED = re.compile(_DATE)
# The zones that only their user may read: local, what is derived from it, and working memory.
_OWN = re.compile(
    r"/\.loki/(?:local(?:-\d+)?|cache|continuity)(?:/|\Z)|/loki-memory/(?:root|[0-9a-z]{10})(?:/|\Z)"
)
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_LONGEST_MARK = 200
_KEY = re.compile(r"[0-9a-z][0-9a-z-]{0,60}")
_DAY_VIEW = re.compile(rf"learnings/{_DATE}\.json")


class Layout(NamedTuple):
    """The folders of one workspace."""

    root: Path  # the folder that holds .loki, or for the user scope the home of memory itself
    loki: Path
    memory: Path
    local: Path
    cache: Path

    def resolve(self, path: str) -> Path:
        """The absolute path of a record's path on this machine."""
        return Path(self.file(path))

    def file(self, path: str) -> str:
        """The same as text, which is faster for every file of a rebuild."""
        if path.startswith("/") or (".." in path and ".." in path.split("/")):
            raise StoreFailed(path, "leads out of the memory folder")
        if path.startswith(PRIVATE):
            return f"{self.local}/memory/{path.removeprefix(PRIVATE)}"
        if path.startswith(VIEW_BASES):
            return f"{view_bases(self)}/{path.removeprefix(VIEW_BASES)}"
        return f"{self.memory}/{path}"


def layout(root: Path) -> Layout:
    """The layout of the workspace whose `.loki` folder is (or will be) in `root`.

    Where git tracks a file in `.loki/cache`, that folder is a clone's, and ours is in the local
    zone: else a commit of all changes would publish an index with private memory in it.
    """
    loki = root / ".loki"
    for folder in (loki, loki / "memory"):
        if folder.is_symlink():
            raise SymlinkedRoot(folder, folder.resolve())
        if is_repository(folder):
            raise NestedRepository(folder)
    local = local_zone(root, loki)
    key = key_in_home(local)
    cache = loki / "cache"
    if is_tracked(root, ".loki/cache/") or is_repository(
        cache
    ):  # worktrees share the local zone, and have a cache each
        cache = local / f"cache-{_place_name(str(loki))}"
    return Layout(root, loki, loki / "memory", home_zone(key) if key else local, cache)


def is_repository(folder: Path) -> bool:
    """Check if a folder is the top of a git repository or of a submodule."""
    return os.path.lexists(folder / REPOSITORY)


def find_workspace(start: Path, homes: Iterable[Path]) -> Path:
    """The nearest folder, from `start` upwards, that holds `.loki`.

    The search stops at a home folder, whose `.loki` is the user scope and no project.
    """
    start = Path(os.path.abspath(start))
    stops = {os.path.realpath(home) for home in homes}
    for folder in (start, *start.parents):
        if os.path.realpath(folder) in stops:
            break
        if (folder / ".loki").is_dir() or (folder / ".loki").is_symlink():
            return folder
    raise NotAWorkspace(start)


def local_zone(root: Path, loki: Path) -> Path:
    """The folder of this machine's own data.

    In a git repository it is under the common git directory, where no clone can put anything and
    where `git clean -fdx` and the removal of a worktree do not reach, with one folder for each
    workspace of a monorepo. Elsewhere it is `.loki/local`, unless another machine made that: then
    it is a folder named after the inode of `.loki`, which the author of an archive cannot foresee.
    """
    beside = loki / LOCAL
    in_git = zone_in_git(root)
    if in_git is not None:
        return in_git
    if not os.path.lexists(beside) or is_made_here(beside):
        return beside
    return loki / f"{LOCAL}-{os.stat(loki).st_ino}"


def user_folder() -> Path:
    """The folder of the user scope: `~/.loki`, or the one that LOKI_HOME names."""
    home = Path(os.environ.get("LOKI_HOME") or Path.home() / ".loki")
    return home.resolve() if home.is_symlink() else home


def home_zone(key: str) -> Path:
    """The local zone of a project in the user's folder."""
    return user_folder() / "projects" / key


def key_in_home(zone: Path) -> str:
    """The key under which the user's folder holds what belongs into a zone; empty if it does not.

    The mark names the inode of the zone itself, so that no archive or copy can bring it.
    """
    try:
        inode, key = _mark(zone / IN_HOME).decode().split()
        is_ours = f"{inode}\n".encode() == made_here(os.lstat(zone))
    except (OSError, ValueError):
        return ""
    return key if is_ours and _KEY.fullmatch(key) else ""


def is_made_here(zone: Path) -> bool:
    """Check if this machine made a local zone: its mark names the folder's own inode.

    A copy, an archive and a clone have another inode.
    """
    try:
        status = os.lstat(zone)
        mark = _mark(zone / MADE_HERE) if stat.S_ISDIR(status.st_mode) else b""
    except OSError:
        return False
    return mark == made_here(status)


def _mark(path: Path) -> bytes:
    """The content of a small file; a link is not followed, and a pipe is not waited for."""
    fd = os.open(path, os.O_RDONLY | _CAREFULLY)
    try:
        return os.read(fd, _LONGEST_MARK)
    finally:
        os.close(fd)


def made_here(status: os.stat_result) -> bytes:
    """The mark of a local zone."""
    return f"{status.st_ino}\n".encode()


def view_bases(layout: Layout) -> str:
    """The bases of a memory folder's views: each worktree has its own views."""
    return f"{layout.local}/view-bases/{_place_name(str(layout.memory))}"


def chain_path(layout: Layout) -> str:
    """The write log of a memory folder: worktrees share a local zone, but have a chain each."""
    return f"{layout.local}/witness/{_place_name(str(layout.memory))}.jsonl"


@cache
def _place_name(memory: str) -> str:
    return digest("place", memory)


def is_private(path: str) -> bool:
    """Check if only this machine's user may read a path: in a zone of this machine, or at home."""
    environment = os.environ.get("LOKI_HOME"), os.environ.get("HOME")
    return _OWN.search(path) is not None or f"{path}/".startswith(_user_prefix(*environment))


@cache
def _user_prefix(*_environment: str | None) -> str:
    """The user's folder as the beginning of a path; looked up once for each environment."""
    return f"{os.path.abspath(user_folder())}/"


def zone_in_git(root: Path) -> Path | None:
    """The local zone if `root` is in a git repository."""
    found = git_home(root)
    if found is None:
        return None
    top, common = found
    inside = root.relative_to(top).as_posix()
    if not _is_own_worktree(top):
        return common / "loki-memory" / digest("place", str(top), inside)
    return common / "loki-memory" / ("root" if inside == "." else digest("place", inside))


def _is_own_worktree(top: Path) -> bool:
    """Check that the git directory of a worktree does not say that it is another folder's.

    An archive can bring a `.git` that leads to the repository of another project: neither that
    one's trust nor its private notes are for what lies beside such a file.
    """
    entry = top / REPOSITORY
    if entry.is_dir() and not entry.is_symlink():
        return True
    try:
        directory = entry.resolve() if entry.is_dir() else named_by(entry)
        back = directory / "gitdir"
        if back.is_file():
            named = directory / back.read_text(encoding="utf-8").strip()
            return named.parent.resolve() == top.resolve()
        worktree = _WORKTREE.search((directory / "config").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return False
    if worktree:
        return (directory / worktree[1].strip().strip('"')).resolve() == top.resolve()
    return directory.name != REPOSITORY or directory.parent == top.resolve()


def place(record: Memory) -> str:
    """The path at which a new record is written."""
    private = PRIVATE if getattr(record, "scope", "project") in {"local", "session"} else ""
    return private + _place_by_kind(record)


def _place_by_kind(record: Memory) -> str:
    if record.kind == "episode":
        return f"episodic/{record.when()[:10]}/{_episode_name(record)}.json"
    if record.kind == "learning":
        return f"learnings/{record.when()[:10]}/{record.id}.json"
    if record.kind == "skill":
        return f"skills/{file_stem(record.key()[0])}.md"
    if record.kind == "ledger":
        return f"ledgers/{file_stem(record.key()[0])}.json"
    return f"{_FOLDER_OF[record.kind]}/{record.id}.json"


def folder_of(kind: Kind) -> str:
    """The folder where people put a record of a kind, below `memory/`."""
    return {"episode": "episodic/<day>/", "skill": "skills/", "learning": "learnings/<day>/"}.get(
        kind, f"{_FOLDER_OF.get(kind, '')}/"
    )


def _episode_name(record: Memory) -> str:
    """`task-042-k7f3q2m9ab`: the task, for people; then the unique part of the id.

    An id that was written by hand stays whole, so that no two of them get the same name.
    """
    task = getattr(record, "task_id", None) or "episode"
    date = f"ep-{record.when()[:10]}-"
    tail = record.id.removeprefix(date)
    minted = tail != record.id and len(tail) == MINTED_LENGTH
    return f"{file_stem(task)}-{tail if minted else record.id}"


def archived_path(path: str) -> str:
    """The path of a record in the archive of its zone."""
    if path.startswith(PRIVATE):
        return PRIVATE + ARCHIVE + path.removeprefix(PRIVATE)
    return ARCHIVE + path


def kind_of(path: str) -> Kind | None:
    """The kind of the record file at this path; None for views and files that are not ours."""
    path = path.removeprefix(PRIVATE)
    folder, _, name = path.rpartition("/")
    if not folder or not name or name[0] == "." or ".." in folder.split("/"):
        return None
    top = folder.partition("/")[0]
    if top == "skills":
        return "skill" if _is_skill(folder, name) else None
    if not name.endswith(".json") or view_kind(path):
        return None
    if top == "episodic":
        return "episode"
    if top == "learnings":
        return "learning" if folder != top else None
    return FOLDERS.get(folder)


def is_misplaced(path: str) -> bool:
    """Check if a JSON file is beside the folders of facts and patterns, or among skills.

    Nothing reads it there. Deeper folders and those of learnings belong to other programs too.
    """
    folder = path.rpartition("/")[0]
    return folder in {"semantic", "skills"} and path.endswith(".json") and not view_kind(path)


def is_lost_record(name: str) -> bool:
    """Check if a file right below `memory/` has the name of a view or of a record."""
    stem, dot, suffix = name.rpartition(".")
    views = {PurePosixPath(view).stem for view in _VIEWS} - {"index"}  # Loki Mode has one there
    return dot + suffix == ".json" and (stem in views or bool(likely_places(stem)))


def _is_skill(folder: str, name: str) -> bool:
    """`skills/<name>.md` or `skills/<name>/SKILL.md`; other files of a skill folder are its own."""
    if folder == "skills":
        return name.endswith(".md") and name.upper() != "README.MD"
    return folder.count("/") == 1 and name == "SKILL.md"


def likely_places(memory_id: str) -> list[str]:
    """The paths where we would have put the record with this id, by the id alone."""
    prefix, _, rest = memory_id.partition("-")
    patterns = {
        "sem": f"semantic/patterns/{memory_id}.json",
        "anti": f"semantic/anti-patterns/{memory_id}.json",
        "fact": f"semantic/facts/{memory_id}.json",
        "link": f"semantic/links/{memory_id}.json",
        "tomb": f"semantic/rejected/{memory_id}.json",
        "handoff": f"handoffs/{memory_id}.json",
        "skill": f"skills/{rest}.md",
        "ledger": f"ledgers/{rest}.json",
    }
    found = [patterns[prefix], PRIVATE + patterns[prefix]] if prefix in patterns else []
    return [*found, f"skills/{rest}/SKILL.md"] if prefix == "skill" else found


def view_kind(path: str) -> Kind | None:
    """The kind that a view shows; None if the path is no view."""
    if path.startswith("learnings/"):
        return "learning" if _DAY_VIEW.fullmatch(path) else None
    return _VIEWS.get(path)


def date_in(path: str) -> str:
    """The date in a path, for records without one; empty if there is none."""
    found = _DATED.search(path)
    return found[0] if found else ""


def stem_in(path: str) -> str:
    """The name of a skill in its path."""
    parts = PurePosixPath(path)
    return parts.parent.name if parts.name == "SKILL.md" else parts.stem
