"""One commit of memory files, made beside whatever else the user is doing.

Neither `git add` nor `git commit` is used: they would take the user's staged files along, run
hooks and ask for keys. The objects are made by `git fast-import` from bytes that were already
looked at, so that what was checked is what is committed. Then, in this order:

1. the user's index is given the committed files, and nothing else in it changes. Git holds
   `index.lock` meanwhile; if somebody else does, nothing is committed;
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
from loki_memory.history.repository import Repository, configured
from loki_memory.integrity.signatures import signed
from loki_memory.models.ids import digest

FILE, PROGRAM = "100644", "100755"
_NOBODY = ("loki-mem", "loki-mem@localhost")  # commits where git knows no user
_PENDING = "refs/loki/pending"  # fast-import wants a name; it is dropped before it is written
# Lines of `git status` by their mark: fields before the path, and where HEAD's mode and blob stand.
_LINES = {"1": (8, 3, 6), "u": (10, 4, 8)}
_PACKS = 40
_NOT_IN_A_NAME = re.compile(r"[<>\x00-\x1f]")


class TreeEntry(NamedTuple):
    """A path's mode and blob in a commit; both empty if the commit has no such file."""

    mode: str
    blob: str


NOTHING = TreeEntry("", "")


class HeadState(NamedTuple):
    """Where a repository stands, and which of its memory files differ from HEAD."""

    head: str  # empty before the first commit
    branch: str  # empty if HEAD is detached
    changed: dict[str, TreeEntry]  # path from the root -> what HEAD has there


class File(NamedTuple):
    """What a path shall hold."""

    mode: str
    data: bytes


Files = Mapping[str, File | None]  # path from the root -> its content; None: it is removed


class Message(NamedTuple):
    """What a commit says of itself."""

    subject: str
    body: str = ""
    trailers: Mapping[str, str] = {}

    def text(self) -> str:
        lines = ((name, " ".join(value.split())) for name, value in self.trailers.items())
        told = "\n".join(f"{name}: {value}" for name, value in lines if value)
        parts = (" ".join(self.subject.split()), self.body.strip(), told)
        return "\n\n".join(part for part in parts if part) + "\n"


class Seal(NamedTuple):
    """When a commit is made, and the key that signs it; none: it is not signed."""

    when: str
    key: str = ""


def standing(repository: Repository, place: str) -> HeadState:
    """Ask git what differs below a folder; what is ignored does not count.

    A file that the user staged is compared by what lies on disk, as `git commit --only` would.
    """
    asked = ("--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames")
    told = repository.run(
        "status", *asked, "--ignore-submodules=all", "--", place, env=repository.unfiltered
    )
    head = branch = ""
    changed: dict[str, TreeEntry] = {}
    for line in os.fsdecode(told).split("\0"):
        if line.startswith("# branch.oid "):
            head = line.removeprefix("# branch.oid ").replace("(initial)", "")
        elif line.startswith("# branch.head "):
            branch = line.removeprefix("# branch.head ").replace("(detached)", "")
        elif line and line[0] != "#":
            path, known = _listed(line)
            changed[path] = known
    return HeadState(head, branch, changed)


def _listed(line: str) -> tuple[str, TreeEntry]:
    """The path of a line of `git status`, and what HEAD has there."""
    if line[0] not in _LINES:
        return line[2:], NOTHING  # not tracked
    count, mode, blob = _LINES[line[0]]
    *fields, path = line.split(" ", count)
    known = TreeEntry(fields[mode], fields[blob])
    return path, known if int(known.mode, 8) else NOTHING


def run_id(repository: Repository, parents: Sequence[str], files: Files) -> str:
    """What names one run: the same files on the same commit are the same run everywhere."""
    told = (
        f"{path} {repository.blob_id(file.data) if file else ''}"
        for path, file in sorted(files.items())
    )
    return digest("run", *parents, *told)


def commit(
    repository: Repository, at: HeadState, files: Files, message: Message, seal: Seal
) -> str | None:
    """Commit files onto the branch that is checked out, and into the index, and nothing else.

    None if the branch moved meanwhile: look again where it stands.
    """
    made = written(repository, files, [at.head] if at.head else [], message, seal)
    stage(repository, files)
    moved = advance(repository, f"refs/heads/{at.branch}", made, at.head, message.subject)
    return made if moved else None


def written(
    repository: Repository, files: Files, parents: Sequence[str], message: Message, seal: Seal
) -> str:
    """Write a commit that has its first parent's files but for these; no branch names it yet."""
    told = [b"feature done\ncommit %b\nmark :1\n" % _PENDING.encode(), _who(repository, seal.when)]
    told.append(_data(message.text().encode()))
    for word, parent in zip(["from", *["merge"] * len(parents)], parents, strict=False):
        told.append(f"{word} {parent}\n".encode())
    for path, file in files.items():
        name = _quoted(path)
        if file is None:
            told.append(b"D %b\n" % name)
        else:
            told += [b"M %b inline %b\n" % (file.mode.encode(), name), _data(file.data)]
    told.append(f"\nget-mark :1\nreset {_PENDING}\nfrom {repository.zero}\n\ndone\n".encode())
    env = configured({"fastimport.unpackLimit": "1" if _may_pack(repository) else "100"})
    answer = repository.run("fast-import", "--quiet", "--done", input=b"".join(told), env=env)
    made = answer.decode().strip()
    return signed(repository, made, seal.key) if seal.key else made


def _may_pack(repository: Repository) -> bool:
    """Whether the objects may stay together in a pack.

    That is one file to flush instead of twenty, and none of them can be torn by a power cut. Git
    tidies up from 50 packs on (gc.autoPackLimit), and our commits shall not be what sets it off.
    """
    packs = repository.common_dir / "objects/pack"
    return not packs.is_dir() or sum(name.endswith(".pack") for name in os.listdir(packs)) < _PACKS


def stage(repository: Repository, paths: Iterable[str]) -> None:
    """Give the user's index these files as they lie on disk, and nothing else.

    Git takes them itself, so that it knows their stamps and need not read them again; unfiltered,
    as they were committed.
    """
    taken = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
    told = os.fsencode("".join(f"{path}\0" for path in paths))
    repository.run(*taken, input=told, env=repository.unfiltered)


def advance(repository: Repository, ref: str, new: str, old: str, why: str) -> bool:
    """Move a branch from one commit to the next; False if it is not there any more."""
    try:
        repository.run("update-ref", "-m", f"loki-mem: {why}", ref, new, old or repository.zero)
    except GitFailed:
        if (repository.resolve(ref) or "") == old:
            raise  # it is something else that git dislikes
        return False
    return True


def _who(repository: Repository, when: str) -> bytes:
    """The author and the committer: git's own user, at a given moment."""
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
