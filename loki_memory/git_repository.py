"""The git repository of a workspace, queried quietly.

A call of git here runs no hook, no pager, no filter and no helper that a configuration names,
prompts nobody, signs nothing and reaches no network, whatever the repository's own settings say: a
repository from an unknown source is not trusted. `reach` is the one exception, for fetching and
pushing when a person asked for it.

Paths of memory are relative to the memory folder, with forward slashes, as in the index.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import GitFailed, NoHistory, UnknownRevision

if TYPE_CHECKING:
    from loki_memory.config import Config
    from loki_memory.files.layout import Layout

BRANCH = "loki-memory"  # memory is on it, if `git.mode` is `branch`
BRANCH_BASE = "refs/worktree/loki-memory"  # the commit of it that the files here are in step with
NO_REPOSITORY, NO_GIT = "there is no git repository here", "git is not installed"
_QUIET = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "safe.bareRepository=explicit",  # a folder of a clone that looks like a git directory is none
    "core.pager=cat",
    "core.autocrlf=false",
    "core.fsync=committed,loose-object,reference,index",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
)
_OPTIONS = tuple(part for setting in _QUIET for part in ("-c", setting))
_SILENT = {
    "GIT_OPTIONAL_LOCKS": "0",  # a reader never holds the user's index
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",  # answers nothing, so that no window asks either
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_LITERAL_PATHSPECS": "1",  # a file called *.json is that file
}
PATTERNS = {"GIT_LITERAL_PATHSPECS": "0"}  # for the commands that refuse to take paths literally
_OFFLINE = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone would fetch missing objects
}
_UNDER_WAY = (
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply/applying", "a series of patches"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a cherry-pick"),
    ("BISECT_LOG", "a bisect"),
    ("index.lock", "the index is locked"),
)
_FULL_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?)?")
_FILTER = re.compile(r"filter\..*\.(?:clean|smudge|process|required)")
_FORMAT = "%H%x00%P%x00%an%x00%ae%x00%ct%x00%s%x00%b%x00%(trailers:only,unfold)"
_FIELDS = _FORMAT.count("%x00") + 1
# Commands that read files, for which git would run what a configuration names as their filter.
_READ_FILES = frozenset({"status", "diff-files", "diff-index", "add", "update-index"})
_LINK = "120000"  # git's mode of a symbolic link
_AT_ONCE = 1000  # blobs per call: their contents are held in memory


class Tracked(NamedTuple):
    """A file that git tracks, by its path from the given folder."""

    path: str
    is_link: bool


def tracked(folder: Path, paths: Sequence[str], commit: str = "") -> list[Tracked]:
    """The files below some paths of a folder that git tracks, now or in a commit.

    A plain subprocess: `status` needs this, and gitpython takes 0.2 s to load.
    """
    asked = ("ls-tree", "-r", "-z", commit) if commit else ("ls-files", "--stage", "-z")
    entries = (entry.partition("\t") for entry in listing(folder, *asked, "--", *paths))
    return [Tracked(path, about.startswith(_LINK)) for about, _, path in entries if path]


def deleted(folder: Path, paths: Sequence[str]) -> set[str]:
    """List those of some files that a commit of the checked-out branch deleted."""
    asked = ("log", "--diff-filter=D", "--name-only", "--relative", "--format=", "-z")
    return {path for path in listing(folder, *asked, "--", *paths) if path}


def listing(folder: Path, *command: str) -> list[str]:
    """Run a listing of git, without anything that a repository configures."""
    filters = {}
    if command[0] in _READ_FILES:
        filters = _without_filters(_settings(listing(folder, "config", "--list", "-z")))
    try:
        answer = subprocess.run(  # noqa: S603 - git
            ["git", *_OPTIONS, *command],  # noqa: S607
            cwd=folder,
            env={**elsewhere(), **_SILENT, **_OFFLINE, **filters},
            capture_output=True,
            check=False,
        )
    except OSError:  # git is not installed
        return []
    return [os.fsdecode(entry) for entry in answer.stdout.split(b"\0")]


def elsewhere() -> dict[str, str]:
    """The environment without the repository of the git hook that this process may run in."""
    named = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"}
    return {name: value for name, value in os.environ.items() if name not in named}


class Commit(NamedTuple):
    """One commit: its header and message."""

    id: str
    parents: tuple[str, ...]
    author: str
    email: str
    at: str  # when it was committed, in UTC
    subject: str
    body: str  # without the trailers
    trailers: dict[str, str]


class Repository:
    """The git repository of a workspace; every call is quiet."""

    def __init__(self, root: Path, git_dir: Path, common_dir: Path, prefix: str) -> None:
        self.root, self.git_dir, self.common_dir, self.prefix = root, git_dir, common_dir, prefix
        self.line = "HEAD"  # the branch of memory: HEAD, or a branch of its own

    @classmethod
    def find(cls, folder: Path, name: str = ".loki") -> Repository | None:
        """The repository that holds the folder's `.loki`; None if there is none that git uses."""
        try:
            return cls.open(folder, name)
        except GitFailed:
            return None

    @classmethod
    def open(cls, folder: Path, name: str = ".loki") -> Repository:
        """As `find`; raises GitFailed with the reason if there is none."""
        top = _nearest(folder)
        if top is None:
            raise GitFailed((), NO_REPOSITORY)
        if shutil.which("git") is None:
            raise GitFailed((), NO_GIT)
        env = {**_SILENT, **_OFFLINE}
        if "GIT_DIR" in os.environ:  # inside a hook: that repository may not be this one
            env |= {"GIT_DIR": str(top / ".git"), "GIT_WORK_TREE": str(top)}
        asked = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-prefix")
        found = _execute(folder, ("rev-parse", *asked), None, env)
        root, git_dir, common, inside = os.fsdecode(found).split("\n")[: len(asked)]
        return cls(Path(root), Path(git_dir), (folder / common).resolve(), inside + name)

    @property
    def memory(self) -> str:
        """The memory folder, relative to the root."""
        return f"{self.prefix}/memory"

    # -- asking git ----------------------------------------------------------------------------

    def run(
        self,
        *args: str,
        input: bytes | None = None,  # noqa: A002 - as in subprocess.run
        env: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run git without the network and return its output; raises GitFailed."""
        filters = _without_filters(self.settings) if args[0] in _READ_FILES else {}
        return _execute(self.root, args, input, {**self._env, **_OFFLINE, **filters, **(env or {})})

    def reach(self, *args: str) -> bytes:
        """As `run`, but git may use the network: for fetching and pushing only."""
        return _execute(self.root, args, None, self._env)

    @cached_property
    def _env(self) -> dict[str, str]:
        """All paths, stated explicitly: variables left by a hook must not mislead git."""
        return {
            **_SILENT,
            "GIT_DIR": str(self.git_dir),
            "GIT_COMMON_DIR": str(self.common_dir),
            "GIT_WORK_TREE": str(self.root),
            "GIT_INDEX_FILE": str(self.git_dir / "index"),
            "GIT_OBJECT_DIRECTORY": str(self.common_dir / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        }

    @cached_property
    def settings(self) -> dict[str, str]:
        """Git's configuration as it applies here; names in small letters, the last value wins."""
        return _settings(self.run("config", "--list", "-z").decode(errors="replace").split("\0"))

    def blob_id(self, data: bytes) -> str:
        """The id that git gives a content."""
        modern = self.settings.get("extensions.objectformat") == "sha256"
        whole = b"blob %d\0%b" % (len(data), data)
        return (hashlib.sha256 if modern else hashlib.sha1)(whole).hexdigest()

    @cached_property
    def zero(self) -> str:
        """Git's null id."""
        return "0" * len(self.blob_id(b""))

    # -- state ---------------------------------------------------------------------------------

    def head(self) -> str | None:
        """The commit that is checked out; None before the first."""
        return self.resolve("HEAD")

    def branch(self) -> str | None:
        """The branch that is checked out; None if HEAD is detached."""
        try:
            return _text(self.run("symbolic-ref", "-q", "HEAD")).removeprefix("refs/heads/")
        except GitFailed:
            return None

    def busy(self) -> str:
        """The operation in progress that a commit would disturb; empty if there is none."""
        return self.under_way() or ("" if self.branch() else "HEAD is detached")

    def under_way(self) -> str:
        """As `busy`, by git's own files only: for a caller that knows the branch."""
        found = (operation for name, operation in _UNDER_WAY if (self.git_dir / name).exists())
        return next(found, "")

    # -- the past ------------------------------------------------------------------------------

    def tip(self) -> str | None:
        """The last commit of memory's branch; None before the first."""
        return self.resolve(self.line)

    def branch_base(self) -> str:
        """The commit that this worktree's files were last in step with; empty if none was."""
        return self.resolve(BRANCH_BASE) or ""

    def resolve(self, rev: str) -> str | None:
        """The commit id that a revision names; None if it names none."""
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
        try:
            return _text(self.run(*asked))
        except GitFailed:
            return None

    def commit_of(self, rev: str) -> str:
        """The commit id of a revision, or of a date: the last one of memory's branch until then."""
        found = self.resolve(self.line if rev == "HEAD" else rev) or (
            _DATE.fullmatch(rev) and self._until(rev)
        )
        if not found:
            raise UnknownRevision(rev)
        return found

    def _until(self, date: str) -> str:
        """The last commit until a date; a day counts to its end, a branch by its merge."""
        moment = date if len(date) > len("2026-01-20") else f"{date}T23:59:59Z"
        asked = ("rev-list", "-1", "--first-parent", f"--before={moment}", self.line)
        return _text(self.run(*asked)) if self.tip() else ""

    def base(self, first: str, second: str) -> str:
        """The common ancestor of two commits; empty if none is here, as in a shallow clone."""
        try:
            return _text(self.run("merge-base", first, second))
        except GitFailed:
            return ""

    def tree(self, rev: str, folder: str = "") -> dict[str, str]:
        """The files of memory in a commit: path -> blob id. Links and submodules are no memory."""
        place = "/".join(part for part in (self.memory, folder) if part)
        commit = rev if _FULL_ID.fullmatch(rev) else self.commit_of(rev)
        listed = self.run("ls-tree", "-r", "-z", "--full-tree", commit, f"{place}/")
        entries = (entry.partition("\t") for entry in os.fsdecode(listed).split("\0") if entry)
        return {
            path.removeprefix(f"{self.memory}/"): about.split()[2]
            for about, _, path in entries
            if about.startswith("100")
        }

    def blobs(self, ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The contents of blobs by id, each once, in the order asked for."""
        wanted = list(dict.fromkeys(ids))
        for start in range(0, len(wanted), _AT_ONCE):
            asked = "".join(f"{blob}\n" for blob in wanted[start : start + _AT_ONCE]).encode()
            yield from _contents(self.run("cat-file", "--batch", input=asked))

    def commits(
        self, rev_range: str | None, paths: Sequence[str] = (), *, whole_merges: bool = False
    ) -> list[Commit]:
        """Commits, newest first: of a range (None: memory's branch), or those that changed paths.

        With `whole_merges` the commits that a merge brought in are left out.
        """
        if rev_range is None and self.tip() is None:
            return []
        asked = ["log", "-z", "--no-color", "--no-notes", f"--format=tformat:{_FORMAT}"]
        asked += ["--first-parent"] if whole_merges else []
        places = (f"{self.memory}/{path}" if path else self.memory for path in paths)
        revision = ("--end-of-options", rev_range or self.line, "--")
        fields = self.run(*asked, *revision, *places).decode(errors="replace").split("\0")
        return [_commit(fields[at : at + _FIELDS]) for at in range(0, len(fields) - 1, _FIELDS)]


def _settings(entries: Iterable[str]) -> dict[str, str]:
    pairs = (entry.partition("\n") for entry in entries if entry)
    return {_lowered(name): value for name, _, value in pairs}


def _without_filters(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment in which files are taken as they are: no configured filter runs."""
    names = (name for name in settings if _FILTER.fullmatch(name))
    return configured({n: "false" if n.endswith(".required") else "" for n in names})


def configured(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment that sets these keys of git's configuration; their names may hold a `=`."""
    first = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    env = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (name, value) in enumerate(settings.items(), first):
        env |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def _nearest(folder: Path) -> Path | None:
    """The nearest folder upwards that has a `.git`, found without asking git."""
    here = Path(os.path.abspath(folder))
    return next((top for top in (here, *here.parents) if (top / ".git").exists()), None)


def _execute(
    folder: Path, args: Sequence[str], given: bytes | None, env: Mapping[str, str]
) -> bytes:
    import git  # 0.2 s: only who really asks git pays for it

    try:
        process = git.Git(str(folder)).execute(
            ["git", *_OPTIONS, *args],
            istream=subprocess.PIPE,
            as_process=True,
            env=dict(env),
            start_new_session=True,  # without a terminal nothing can ask for a passphrase
        )
        out, complaint = process.communicate(given or b"")
    except (git.exc.GitCommandError, OSError) as error:
        raise GitFailed(args, str(error)) from None
    if process.returncode:
        raise GitFailed(args, complaint.decode(errors="replace"))
    return bytes(out)


def _text(answer: bytes) -> str:
    return os.fsdecode(answer).rstrip("\n")


def _lowered(name: str) -> str:
    """`filter.LFS.Clean` -> `filter.LFS.clean`: the middle part keeps its case."""
    section, dot, rest = name.partition(".")
    middle, last_dot, key = rest.rpartition(".")
    return f"{section.lower()}{dot}{middle}{last_dot}{key.lower()}"


def _contents(answer: bytes) -> Iterator[tuple[str, bytes]]:
    """Parse the output of `cat-file --batch`: `<id> <type> <size>`, the bytes, a line feed."""
    at = 0
    while at < len(answer):
        end = answer.index(b"\n", at)
        words = answer[at:end].decode(errors="replace").split()
        if len(words) != 3:  # noqa: PLR2004
            raise GitFailed(("cat-file",), f"object {words[0]} is missing from this clone")
        size = int(words[2])
        yield words[0], answer[end + 1 : end + 1 + size]
        at = end + size + 2


def _commit(fields: Sequence[str]) -> Commit:
    name, parents, author, email, at, subject, body, trailers = fields
    moment = datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = body.strip().removesuffix(trailers.strip()).strip()
    pairs = (line.partition(":") for line in trailers.splitlines() if ":" in line)
    named = {key.strip(): value.strip() for key, _, value in pairs}
    return Commit(name, tuple(parents.split()), author, email, moment, subject, text, named)


# -- The repository that keeps the history of a workspace's memory --------------------------------


def repository(place: Layout, config: Config) -> Repository:
    """As `repository_if_any`; raises NoHistory where there is none."""
    found = repository_if_any(place, config)
    if found is None:
        raise NoHistory(place.root)
    return found


def repository_if_any(place: Layout, config: Config) -> Repository | None:
    """The repository of a workspace; its `HEAD` means the branch that memory is on."""
    found = Repository.find(place.root, place.loki.name)
    if found is not None and config.text("git.mode") == "branch":
        found.line = BRANCH
    return found
