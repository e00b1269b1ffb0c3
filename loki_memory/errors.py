"""The errors as one tree: each writes its own sentence and says what to do next.

    LokiMemoryError            1
    ├── NotAWorkspace          3   no .loki folder here or above
    │   ├── NotAFolder         3   the given path is not a folder
    │   └── NotAProject        3   the home folder is none
    ├── SymlinkedRoot          3   .loki is a symbolic link
    ├── NestedRepository       3   .loki lies in a submodule, or another repository inside
    ├── NewerFormat            3   written by a newer loki-memory
    ├── InvalidConfig          3   a setting that cannot be read
    ├── InvalidRecord          4   a record that breaks the format
    │   └── InvalidId          4   an id that must not reach a path
    ├── NotFound               5   no memory with this id
    │   ├── Ambiguous          5   several ids begin so
    │   ├── NothingToUndo      5   it was not archived, forgotten or rejected
    │   ├── NoLedger           5   the agent has not checked in
    │   ├── NoRemote           5   no team server of this user has that name
    │   ├── NoToken            5   no token of the team server that works has that name
    │   ├── UnknownRevision    5   git knows no such commit
    │   ├── NoHistory          5   the folder is in no git repository
    │   └── NoChange           5   a recall was the same at both ends
    ├── Conflict               6
    │   ├── FileChanged        6   changed since it was read
    │   ├── IdTaken            6   the id belongs to another memory
    │   ├── LiesAbove          6   the memory of a workspace above is not changed from below
    │   ├── ReadOnlyPast       6   the memory of a commit is not written to
    │   ├── TrackedByGit       6   work in the background changes no tracked file
    │   └── WouldLoseBeliefs   6   a consolidation that would drop beliefs
    ├── RejectedValue          7   a person rejected this value
    ├── StoreBusy              8   another process holds the store
    │   └── AlreadyWatched     8   another process watches the workspace
    ├── StoreFailed            9   the file system refused
    │   └── LinkRefused        9   a symbolic link is in a place where memory is written
    ├── EverythingVanished    10   all memory files are gone at once
    ├── GitFailed             11   git could not do what was asked
    │   ├── NotOnABranch      11   memory is not kept on a branch of its own
    │   └── PullStopped       11   git did not pull, or stopped at a conflict
    ├── NoAnswer              12   the watcher of the workspace does not do as it should
    ├── BadArchive            13   a file of this machine's own memory cannot be read or written
    ├── ModelUnavailable      14   a model on a server does not embed
    ├── DatabaseFailed        15   the team server's database cannot be used
    ├── NoAccess              16   a token does not reach that repository
    │   └── RemoteRefused     16   a team server refuses the token of this user
    └── RemoteFailed          17   a team server does not answer as it should

The number is the exit code of `loki-mem`; 2 is a mistake in the command line, 20 to 28 are the
findings of `loki-mem check`.
"""

from __future__ import annotations

from collections.abc import Sequence


class LokiMemoryError(Exception):
    """The root of the tree."""

    exit_code = 1


class NotAWorkspace(LokiMemoryError):
    """`by` is how another place is named: an option on the command line, an argument over MCP."""

    exit_code = 3

    def __init__(self, start: object, by: str = "-C DIR or LOKI_WORKSPACE") -> None:
        self.start = start
        super().__init__(
            f"no .loki folder in {start} or above it; create one with `loki-mem init`, "
            f"or name another place with {by}."
        )

    def naming(self, by: str) -> NotAWorkspace:
        """The same error, with another way to name a place."""
        return type(self)(self.start, by)


class NotAFolder(NotAWorkspace):
    def __init__(self, path: object, by: str = "-C DIR") -> None:
        self.start = path
        LokiMemoryError.__init__(self, f"{path} is not a folder; name one that is with {by}.")


class NotAProject(NotAWorkspace):
    def __init__(self, path: object, _by: str = "") -> None:
        self.start = path
        LokiMemoryError.__init__(
            self,
            f"{path} is the home folder, whose .loki is the user scope; go to a project's folder "
            "and init there.",
        )


class SymlinkedRoot(LokiMemoryError):
    exit_code = 3

    def __init__(self, path: object, target: object) -> None:
        super().__init__(
            f"{path} is a symbolic link to {target}, and links are not followed; replace it by a "
            "folder, or work in the project that holds the original."
        )


class NestedRepository(LokiMemoryError):
    exit_code = 3

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path} is a git repository of its own, so that nobody can tell who wrote the memory "
            "in it; keep memory in the project's repository, or at the top of another one."
        )


class NewerFormat(LokiMemoryError):
    exit_code = 3

    def __init__(self, path: object, found: object, known: int) -> None:
        super().__init__(
            f"{path} says format {found}, and this loki-memory knows formats up to {known}; "
            "install a newer loki-memory."
        )


class InvalidConfig(LokiMemoryError):
    exit_code = 3

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class InvalidRecord(LokiMemoryError):
    """A record that breaks the format. `advice` is the sentence that says what to do."""

    exit_code = 4

    def __init__(
        self, reason: str, *, field: str = "", path: str = "", line: int = 0, advice: str = ""
    ) -> None:
        self.reason, self.field, self.path, self.line = reason, field, path, line
        self.advice = advice or "See docs/format.md."
        super().__init__(f"{self._where()}{reason}. {self.advice}")

    def _where(self) -> str:
        place = f"{self.path}:{self.line}" if self.path and self.line else self.path
        return "".join(f"{part}: " for part in (place, self.field) if part)

    def at(self, path: str, line: int = 0) -> InvalidRecord:
        """The same error, with its place in a file."""
        named = {"field": self.field, "advice": self.advice}
        return InvalidRecord(self.reason, path=path, line=line or self.line, **named)


class InvalidId(InvalidRecord):
    def __init__(self, value: str) -> None:
        # All of it or nothing: half a secret is not recognised as one.
        shown = repr(value) if len(value) <= 80 else f"a text of {len(value)} characters"  # noqa: PLR2004
        super().__init__(
            f"{shown} is not a valid id",
            field="id",
            advice="An id is 2-8 small letters, a hyphen, then letters, digits, _ or - (at most "
            "80), such as sem-001; leave it out and one is made.",
        )


class NotFound(LokiMemoryError):
    exit_code = 5

    def __init__(self, what: object) -> None:
        shows = "skills" if str(what).startswith("skill-") else "list"
        super().__init__(f"no memory {what}; `loki-mem {shows}` shows what there is.")


class Ambiguous(NotFound):
    def __init__(self, start: str, found: list[str]) -> None:
        shown = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")  # noqa: PLR2004
        LokiMemoryError.__init__(self, f"{start} begins several ids ({shown}); give more of it.")


class NothingToUndo(NotFound):
    def __init__(self, memory_id: str) -> None:
        LokiMemoryError.__init__(
            self, f"{memory_id} was not archived, forgotten or rejected; there is nothing to undo."
        )


class NoRemote(NotFound):
    def __init__(self, name: str) -> None:
        LokiMemoryError.__init__(self, f"{name!r} is no team server; see `loki-mem remote list`.")


class NoToken(NotFound):
    def __init__(self, name: str) -> None:
        LokiMemoryError.__init__(self, f"no token {name!r} is in use; see `loki-mem token list`.")


class NoLedger(NotFound):
    def __init__(self, agent: str) -> None:
        LokiMemoryError.__init__(
            self, f"{agent} has no ledger; `loki-mem ledger` lists those that have one."
        )


class UnknownRevision(NotFound):
    def __init__(self, rev: str) -> None:
        LokiMemoryError.__init__(
            self,
            f"git knows no commit {rev!r} here; name a commit, branch or tag, or a date such as "
            "2026-01-20.",
        )


class NoHistory(NotFound):
    def __init__(self, folder: object) -> None:
        LokiMemoryError.__init__(
            self,
            f"{folder} is in no git repository, so its memory has no history; "
            "`git init` and `loki-mem commit` begin one.",
        )


class NoChange(NotFound):
    """`is_right_now`: the recall is right in the newest commit; else it never was."""

    def __init__(self, memory_id: str, *, expected: bool, is_right_now: bool) -> None:
        if is_right_now:
            state = "is recalled" if expected else "is not recalled"
            said = f"{state} in the newest commit, as it should be; there is nothing to find."
        else:
            state = "is recalled in no" if expected else "is recalled in every"
            said = f"{state} commit that was asked; name one where it was right: GOOD..BAD."
        LokiMemoryError.__init__(self, f"{memory_id} {said}")


class Conflict(LokiMemoryError):
    exit_code = 6


class FileChanged(Conflict):
    def __init__(self, path: object, etag: str = "") -> None:
        self.etag = etag
        super().__init__(f"{path} changed since it was read; read it again and repeat the change.")


class IdTaken(Conflict):
    def __init__(self, memory_id: str, path: object) -> None:
        super().__init__(
            f"{memory_id} is already in {path} with other content; change it with "
            f"`loki-mem correct {memory_id}`, or leave the id out and one is made."
        )


class LiesAbove(Conflict):
    def __init__(self, memory_id: str, root: object) -> None:
        super().__init__(
            f"{memory_id} is memory of the workspace above, {root}, and is only read from here; "
            f"change it there with `loki-mem -C {root}`."
        )


class ReadOnlyPast(Conflict):
    def __init__(self, commit: str) -> None:
        super().__init__(
            f"the memory of commit {commit[:12]} is as it was and cannot be changed; write to the "
            "workspace itself."
        )


class TrackedByGit(Conflict):
    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path} is tracked by git, and work in the background changes no tracked file; "
            "`loki-mem consolidate` or `loki-mem sync` does."
        )


class WouldLoseBeliefs(Conflict):
    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(
            f"consolidation would lose {', '.join(ids)} without a record that supersedes "
            "them. Nothing was written; please report this."
        )


class RejectedValue(LokiMemoryError):
    exit_code = 7

    def __init__(self, value: str, why: str, tombstone: str) -> None:
        self.tombstone = tombstone
        super().__init__(
            f"{value[:120]!r} was rejected{f' ({why})' if why else ''} and is not stored again; "
            f"if the rejection no longer holds, `loki-mem restore {tombstone}`."
        )


class StoreBusy(LokiMemoryError):
    exit_code = 8

    def __init__(self, path: object, seconds: float) -> None:
        super().__init__(
            f"another process has held {path} for {seconds:g} s; try again, "
            "or raise store.lock_seconds."
        )


class AlreadyWatched(StoreBusy):
    def __init__(self, root: object) -> None:
        LokiMemoryError.__init__(
            self,
            f"another process watches {root}; `loki-mem daemon status` shows how it is doing, "
            "`loki-mem daemon stop` ends it.",
        )


class StoreFailed(LokiMemoryError):
    exit_code = 9

    def __init__(self, path: object, reason: str, *, decided: bool = False) -> None:
        after = (
            "The change is decided and the next command completes it."
            if decided
            else "Nothing was changed; free space or mend permissions and repeat."
        )
        super().__init__(f"{path}: {reason}. {after}")


class LinkRefused(StoreFailed):
    def __init__(self, path: object) -> None:
        LokiMemoryError.__init__(
            self,
            f"{path} is a symbolic link, and nothing below .loki is written through links. "
            "Nothing was changed; delete the link (with `git rm` if git tracks it) and repeat.",
        )


class EverythingVanished(LokiMemoryError):
    exit_code = 10

    def __init__(self, root: object, count: int) -> None:
        super().__init__(
            f"all {count} memory files under {root} are gone at once; the index still holds "
            "them. If that is meant, run `loki-mem rebuild`; if not, bring the files back."
        )


class GitFailed(LokiMemoryError):
    """A failure of git; `reason` is git's own complaint."""

    exit_code = 11

    def __init__(self, args: Sequence[str], reason: str) -> None:
        lines = [line.strip() for line in reason.splitlines() if line.strip()]
        first = next((line for line in lines if line.startswith(("fatal: ", "error: "))), "")
        self.reason = first[len("fatal: ") :] or (lines or ["it gave no reason"])[-1]
        failed = f"git {args[0]} failed: {self.reason}" if args else self.reason
        then = "mend what git names and repeat" if args else "this command needs git"
        super().__init__(f"{failed}. Memory files are as they were; {then}.")


class NotOnABranch(GitFailed):
    def __init__(self, mode: str) -> None:
        self.reason = f"git.mode is {mode}"
        advice = (
            "memory travels with your code, so commit it and use `git push`"
            if mode == "inline"
            else "nothing is exchanged"
        )
        LokiMemoryError.__init__(
            self, f"{self.reason}: {advice}; `loki-mem config git.mode branch` changes that."
        )


class PullStopped(GitFailed):
    def __init__(self, said: str) -> None:
        super().__init__(("pull",), said)
        advice = (
            "Your memory is back in its files, and nothing is lost; do what git says and repeat"
        )
        if "--set-upstream-to" in said:  # git explains at length that nothing is configured
            self.reason = "this branch follows no branch of a remote"
            advice = "Nothing was changed; name a remote, or run `git push -u origin HEAD` once"
        LokiMemoryError.__init__(self, f"git pull stopped: {self.reason}. {advice}.")


class BadArchive(LokiMemoryError):
    """A file of `export` that cannot be read or written; `reason` follows its name."""

    exit_code = 13

    def __init__(self, path: object, reason: str, advice: str = "") -> None:
        self.reason = reason
        super().__init__(f"{path} {reason}. {advice or 'Nothing was taken from it.'}")


class NoAnswer(LokiMemoryError):
    """`reason` is a sentence without its full stop."""

    exit_code = 12

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}. Without a watcher every command does its work itself.")


class ModelUnavailable(LokiMemoryError):
    exit_code = 14

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(
            f"the embedding model at {host} is not available ({reason}); "
            "the bundled model answers until it is"
        )


class DatabaseFailed(LokiMemoryError):
    exit_code = 15

    def __init__(self, reason: str) -> None:
        said = " ".join(reason.split())
        super().__init__(f"the database cannot be used: {said}; check what follows --database")


class NoAccess(LokiMemoryError):
    """The same for a repository that is not there, so that names cannot be guessed."""

    exit_code = 16

    def __init__(self, scope: str, repository: str) -> None:
        super().__init__(
            f"this token may not {scope} {repository!r}, or no repository has that name; whoever "
            "runs the server can make another token."
        )


class RemoteRefused(NoAccess):
    def __init__(self, name: str, reason: str) -> None:
        LokiMemoryError.__init__(
            self,
            f"the team server {name} refuses: {reason}. Whoever runs it can make another token; "
            f"`loki-mem remote add {name} URL` takes it.",
        )


class RemoteFailed(LokiMemoryError):
    exit_code = 17

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"the team server {name} does not answer ({' '.join(reason.split())}). Nothing is "
            "lost: local memory works without it, and what waits is sent by the next "
            "`loki-mem remote sync`."
        )
