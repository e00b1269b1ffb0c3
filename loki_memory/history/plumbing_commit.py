"""One commit of memory files that leaves the user's other work alone.

Neither `git add` nor `git commit` is used: they would take the user's staged files along, run
hooks and ask for keys. `git fast-import` makes the objects from bytes that were already checked,
so that the checked content is what is committed. Then, in this order:

1. the user's index is given the committed files, and nothing else in it changes. Git holds
   `index.lock` meanwhile; if another process does, nothing is committed;
2. the branch advances, if it is still where we found it. If not, all is done again from there.

Killed between the two, memory files are staged, as by `git add`, and the next commit takes them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from loki_memory.errors import GitFailed
from loki_memory.git_repository import Repository, configured
from loki_memory.integrity.signatures import signed
from loki_memory.models.ids import digest

FILE, PROGRAM = "100644", "100755"
_NOBODY = ("loki-mem", "loki-mem@localhost")  # the author where git knows no user
_PENDING = "refs/loki/pending"  # fast-import wants a name; it is dropped before it is written
# Lines of `git status` by their mark: fields before the path, positions of HEAD's mode and blob.
_LINES = {"1": (8, 3, 6), "u": (10, 4, 8)}
_PACKS = 40
_NOT_IN_A_NAME = re.compile(r"[<>\x00-\x1f]")


class TreeEntry(NamedTuple):
    """A path's mode and blob in a commit; both empty if the commit has no such file."""

    mode: str
    blob: str


NOTHING = TreeEntry("", "")


class HeadState(NamedTuple):
    """The state of a repository, and the memory files that differ from HEAD."""

    head: str  # empty before the first commit
    branch: str  # empty if HEAD is detached
    changed: dict[str, TreeEntry]  # path from the root -> its entry in HEAD


class File(NamedTuple):
    """The new content of a path."""

    mode: str
    data: bytes


Files = Mapping[str, File | None]  # path from the root -> its content; None: it is removed


class Message(NamedTuple):
    """The message of a commit."""

    subject: str
    body: str = ""
    trailers: Mapping[str, str] = {}

    def text(self) -> str:
        lines = ((name, " ".join(value.split())) for name, value in self.trailers.items())
        trailers = "\n".join(f"{name}: {value}" for name, value in lines if value)
        parts = (" ".join(self.subject.split()), self.body.strip(), trailers)
        return "\n\n".join(part for part in parts if part) + "\n"


class Seal(NamedTuple):
    """The time of a commit, and the key that signs it; empty: it is not signed."""

    when: str
    key: str = ""


def standing(repository: Repository, place: str) -> HeadState:
    """Ask git which files below a folder differ; ignored files do not count.

    A file that the user staged is compared by its content on disk, as `git commit --only` would.
    """
    asked = ("--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames")
    answer = repository.run("status", *asked, "--ignore-submodules=all", "--", place)
    head = branch = ""
    changed: dict[str, TreeEntry] = {}
    for line in os.fsdecode(answer).split("\0"):
        if line.startswith("# branch.oid "):
            head = line.removeprefix("# branch.oid ").replace("(initial)", "")
        elif line.startswith("# branch.head "):
            branch = line.removeprefix("# branch.head ").replace("(detached)", "")
        elif line and line[0] != "#":
            path, known = _listed(line)
            changed[path] = known
    return HeadState(head, branch, changed)


def _listed(line: str) -> tuple[str, TreeEntry]:
    """The path in a line of `git status`, and its entry in HEAD."""
    if line[0] not in _LINES:
        return line[2:], NOTHING  # not tracked
    count, mode, blob = _LINES[line[0]]
    *fields, path = line.split(" ", count)
    known = TreeEntry(fields[mode], fields[blob])
    return path, known if int(known.mode, 8) else NOTHING


def run_id(repository: Repository, parents: Sequence[str], files: Files) -> str:
    """The id of a run: the same files on the same commit are the same run everywhere."""
    lines = (
        f"{path} {repository.blob_id(file.data) if file else ''}"
        for path, file in sorted(files.items())
    )
    return digest("run", *parents, *lines)


def commit(
    repository: Repository, at: HeadState, files: Files, message: Message, seal: Seal
) -> str | None:
    """Commit files onto the branch that is checked out, and into the index, and nothing else.

    Returns None if the branch moved meanwhile: the caller looks again.
    """
    made = written(repository, files, [at.head] if at.head else [], message, seal)
    stage(repository, files)
    moved = advance(repository, f"refs/heads/{at.branch}", made, at.head, message.subject)
    return made if moved else None


def written(
    repository: Repository, files: Files, parents: Sequence[str], message: Message, seal: Seal
) -> str:
    """Write a commit that changes these files of its first parent; no branch names it yet."""
    commands = [
        b"feature done\ncommit %b\nmark :1\n" % _PENDING.encode(),
        _who(repository, seal.when),
    ]
    commands.append(_data(message.text().encode()))
    for word, parent in zip(["from", *["merge"] * len(parents)], parents, strict=False):
        commands.append(f"{word} {parent}\n".encode())
    for path, file in files.items():
        name = _quoted(path)
        if file is None:
            commands.append(b"D %b\n" % name)
        else:
            commands += [b"M %b inline %b\n" % (file.mode.encode(), name), _data(file.data)]
    commands.append(f"\nget-mark :1\nreset {_PENDING}\nfrom {repository.zero}\n\ndone\n".encode())
    env = configured({"fastimport.unpackLimit": "1" if _may_pack(repository) else "100"})
    answer = repository.run("fast-import", "--quiet", "--done", input=b"".join(commands), env=env)
    made = answer.decode().strip()
    return signed(repository, made, seal.key) if seal.key else made


def _may_pack(repository: Repository) -> bool:
    """Check if the objects may stay together in a pack.

    A pack is one file to flush instead of twenty, and a power cut cannot tear it. Git tidies up
    from 50 packs on (gc.autoPackLimit), and our commits shall not set that off.
    """
    packs = repository.common_dir / "objects/pack"
    return not packs.is_dir() or sum(name.endswith(".pack") for name in os.listdir(packs)) < _PACKS


def stage(repository: Repository, paths: Iterable[str]) -> None:
    """Put these files into the user's index as they are on disk, and nothing else.

    Git takes them itself, so that it knows their stamps and need not read them again; unfiltered,
    as they were committed.
    """
    taken = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
    names = os.fsencode("".join(f"{path}\0" for path in paths))
    repository.run(*taken, input=names)


def advance(repository: Repository, ref: str, new: str, old: str, why: str) -> bool:
    """Move a branch from one commit to the next; False if it has moved meanwhile."""
    try:
        repository.run("update-ref", "-m", f"loki-mem: {why}", ref, new, old or repository.zero)
    except GitFailed:
        if (repository.resolve(ref) or "") == old:
            raise  # another error of git
        return False
    return True


def _who(repository: Repository, when: str) -> bytes:
    """The author and the committer: git's own user, at a given time."""
    moment = int(datetime.fromisoformat(when).timestamp())
    lines = (
        f"{role} {_identity(repository, role)} {moment} +0000\n" for role in ("author", "committer")
    )
    return "".join(lines).encode()


def _identity(repository: Repository, role: str) -> str:
    """Name and address as git would find them, without its guess from the machine's name."""
    name, email = (
        os.environ.get(f"GIT_{role}_{part}".upper())
        or repository.settings.get(f"{role}.{part}")
        or repository.settings.get(f"user.{part}", "")
        for part in ("name", "email")
    )
    name, email = (_NOT_IN_A_NAME.sub("", part).strip() for part in (name, email))
    return f"{name or _NOBODY[0]} <{email or _NOBODY[1]}>"


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def _quoted(path: str) -> bytes:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return b'"%b"' % os.fsencode(escaped)
