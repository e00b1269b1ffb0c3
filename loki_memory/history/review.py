"""Review of memory: the changes between two states, and a person's decision on new beliefs.

The states to compare are given as in git:

    (nothing)   the last commit with the working tree
    A           A with the working tree
    A..B        A with B
    A...B       the commit at which B left A, with B: what a pull request brings
    A^!         the changes of the commit A; of a merge, those that it brought to its branch

A and B are commits, branches, tags or dates.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from difflib import unified_diff
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.editing.edits import correct
from loki_memory.errors import InvalidRecord, NotFound, UnknownRevision
from loki_memory.files import zones
from loki_memory.files.layout import kind_of, view_kind
from loki_memory.git_repository import repository, repository_if_any, tracked
from loki_memory.history.belief_diff import Shift, confidence, differences, evidence_of, reviews
from loki_memory.history.file_changes import FileChange, file_change, file_edits, record_changes
from loki_memory.history.report import CANDIDATES, Cause, Review, Unreadable
from loki_memory.history.tree import (
    MemoryTree,
    Records,
    changed,
    of_commit,
    of_folder,
    of_nothing,
    of_worktree,
    original,
)
from loki_memory.index import queries
from loki_memory.integrity import write_log
from loki_memory.integrity.accepted_skills import accept as accept_skills
from loki_memory.integrity.accepted_skills import keep_accepted
from loki_memory.integrity.write_log import WriteNote, content_hash, is_witnessed
from loki_memory.models import Belief, Episode, Memory, Skill
from loki_memory.models.base import EpisodeMark
from loki_memory.models.lesson_order import ranked

if TYPE_CHECKING:
    from loki_memory.files.problem import Problem
    from loki_memory.git_repository import Repository
    from loki_memory.homes import OpenWorkspace


# Changes that a person reviews: beliefs that are new, or say something else than before.
_ASKED = frozenset(
    {"learned", "added", "updated", "corrected", "revised", "contradicted", "restored"}
)
_STATEMENTS = {
    "pattern": "pattern",
    "anti-pattern": "what_fails",
    "fact": "statement",
    "learning": "lesson",
    "skill": "body",
}
_SHORT = 10  # characters of a commit id that are shown


class Comparison(NamedTuple):
    """Two states of memory, and the records in the files that differ."""

    before: MemoryTree
    after: MemoryTree
    old: Records
    new: Records

    def gone(self) -> dict[str, Memory]:
        return gone(self.old, self.new)

    def shifts(self) -> list[Shift]:
        return shifts(self.old, self.new)

    def explains(self, path: str) -> bool:
        """Check if the records that were compared tell all of a file of memory that differs."""
        here = [records for records in (self.old, self.new) if path in records.paths.values()]
        there = [tree for tree in (self.before, self.after) if path in tree.files]
        is_record = kind_of(original(path)) is not None and path not in self.new.invalid
        return is_record and len(here) == len(there)


def gone(old: Records, new: Records) -> dict[str, Memory]:
    """Records that are neither live nor archived any more.

    A file that cannot be read any more has not removed its record.
    """
    left = old.all().keys() - new.all().keys()
    return {name: old.all()[name] for name in sorted(left) if old.paths[name] not in new.invalid}


def shifts(old: Records, new: Records) -> list[Shift]:
    """The changes between two states; a record made and archived in between counts as made."""
    stayed = old.live.keys() & new.all().keys()
    come = new.archived.keys() - old.all().keys()
    return differences(
        {**{name: old.live[name] for name in stayed}, **gone(old, new)},
        {**new.live, **{name: new.archived[name] for name in come}},
        archived=new.archived.keys() - new.live.keys(),
        unarchived=old.archived.keys() - old.live.keys(),
    )


def diff(workspace: OpenWorkspace, spec: str | None = None) -> Review:
    """Compare memory at two points, in terms of belief, with the episodes behind each change."""
    return _whole(workspace, compare(*editions(workspace, spec)))


def _whole(workspace: OpenWorkspace, compared: Comparison) -> Review:
    """A comparison with everything else below `.loki` that differs."""
    review = review_of(compared)
    invalid = [
        Unreadable(problem.path, problem.reason)
        for problem in zone_problems(workspace, compared.after.commit)
    ]
    files = other_files(workspace, compared)
    return review._replace(invalid=[*invalid, *review.invalid], files=files)


def other_files(workspace: OpenWorkspace, compared: Comparison) -> list[FileChange]:
    """The files below `.loki` that differ and are not told as records."""
    repo = repository(workspace.layout, workspace.config)
    if repo.line != "HEAD" and not compared.after.commit:
        return []  # git does not see these files
    old, new = compared.old.paths, compared.new.paths
    told_ids = {change.id for change in record_changes(compared.old, compared.new)}
    told_ids |= {name for name in old.keys() & new.keys() if old[name] != new[name]}  # moved
    paths = (path for found in (old, new) for name, path in found.items() if name in told_ids)
    told = {path for path in paths if compared.explains(path)}
    found = (
        file_change(repo, workspace.layout, edit)
        for edit in file_edits(repo, compared.before.commit, compared.after.commit)
        if not edit.is_new_witness
        and not (edit.is_plain and edit.path.removeprefix(".loki/memory/") in told)
    )
    return [change for change in found if change is not None]


def zone_problems(workspace: OpenWorkspace, commit: str = "") -> list[Problem]:
    """Links, and files of zones that belong to one machine: here, or tracked in a commit."""
    if not commit:
        return workspace.home.zone_problems()
    found = tracked(workspace.layout.root, [".loki"], commit)
    return [
        zones.link_problem(file.path) if file.is_link else zones.tracked_problem(file.path)
        for file in found
        if file.is_link or f"{file.path}/".startswith(zones.NEVER_TRACKED)
    ]


def compare(before: MemoryTree, after: MemoryTree) -> Comparison:
    """Read the files that differ between two states, and only those."""
    paths = changed(before, after)
    return Comparison(before, after, before.records(paths), after.records(paths))


def review_of(comparison: Comparison) -> Review:
    """A comparison with the episodes behind it."""
    found = comparison.shifts()
    invalid = sorted(comparison.new.invalid.items())
    return Review(
        comparison.before.label,
        comparison.after.label,
        found,
        _causes(comparison, found),
        [Unreadable(*problem) for problem in invalid],
        record_changes(comparison.old, comparison.new),
    )


def _causes(comparison: Comparison, shifts: Iterable[Shift]) -> dict[str, Cause]:
    wanted = {name for shift in shifts for name in shift.caused_by}
    known = {**comparison.old.all(), **comparison.new.all()}
    found = comparison.after.find(wanted - known.keys())
    episodes = {name: known.get(name) or found.get(name) for name in sorted(wanted)}
    private = {
        name: Cause(name, *private_session(mark))
        for shift in shifts
        if isinstance(belief := known.get(shift.id), Belief)
        for name, mark in belief.evidence.episodes.items()
    }
    there = {name: _cause(episode) for name, episode in episodes.items() if episode is not None}
    return {**{name: private[name] for name in sorted(wanted & private.keys())}, **there}


def private_session(mark: EpisodeMark) -> tuple[str, str, str]:
    """The words for an episode that is on another machine, its outcome and its agent."""
    words = f"a private session of {mark.day}" if mark.day else "a private session"
    return words, mark.outcome or "", mark.agent or ""


def _cause(record: Memory) -> Cause:
    if isinstance(record, Episode):
        return Cause(record.id, record.goal, record.outcome, record.agent or "")
    return Cause(record.id, record.title(), "", "")


# -- what to compare -----------------------------------------------------------------------------


def editions(workspace: OpenWorkspace, spec: str | None) -> tuple[MemoryTree, MemoryTree]:
    """The two states that a spec names."""
    repo = repository(workspace.layout, workspace.config)
    spec = (spec or "").strip()
    if spec.endswith("^!"):
        return _parent(repo, spec.removesuffix("^!")), _edition(repo, spec.removesuffix("^!"))
    if "..." in spec:
        old, _, new = spec.partition("...")
        return _base(repo, old or "HEAD", new or "HEAD"), _edition(repo, new)
    old, dots, new = spec.partition("..")
    after = _edition(repo, new) if dots else present_tree(repo, workspace)
    return _edition(repo, old), after


def present_tree(repo: Repository, workspace: OpenWorkspace) -> MemoryTree:
    """Memory in this worktree; where it has a branch of its own, git does not track the files."""
    if repo.line != "HEAD":
        return of_folder(workspace.layout)
    return of_worktree(repo, workspace.layout)


def _edition(repo: Repository, rev: str) -> MemoryTree:
    """Memory as of a revision, by default HEAD; empty before the first commit."""
    if not rev and repo.tip() is None:
        return of_nothing()
    rev = rev or "HEAD"
    commit = repo.commit_of(rev)
    return of_commit(repo, commit, _label(rev, commit))


def _label(rev: str, commit: str) -> str:
    return commit[:_SHORT] if commit.startswith(rev) else f"{rev} ({commit[:_SHORT]})"


def _parent(repo: Repository, rev: str) -> MemoryTree:
    commit = repo.commit_of(rev or "HEAD")
    first = repo.resolve(f"{commit}^1")
    return of_commit(repo, first, first[:_SHORT]) if first else of_nothing()


def _base(repo: Repository, old: str, new: str) -> MemoryTree:
    commit = repo.base(repo.commit_of(old), repo.commit_of(new))
    if not commit:
        raise UnknownRevision(f"{old}...{new}")
    return of_commit(repo, commit, _label(f"where {new} left {old}", commit))


def since_branching(workspace: OpenWorkspace) -> str | None:
    """The commit at which this branch left the default branch: where a review begins.

    On the default branch itself that is the last commit that others have, else the last one.
    """
    repo = repository_if_any(workspace.layout, workspace.config)
    if repo is None or repo.tip() is None or repo.line != "HEAD":
        return None
    main = _default_branch(repo)
    return (repo.base(main, repo.commit_of("HEAD")) or None) if main else None


def _default_branch(repo: Repository) -> str | None:
    """The branch that others start from: as the remote says, else by its usual names."""
    named = repo.settings.get("init.defaultbranch", "main")
    usual = [f"{home}{name}" for name in (named, "main", "master") for home in ("origin/", "")]
    return next((name for name in ("origin/HEAD", *usual) if repo.resolve(name)), None)


# -- decisions -----------------------------------------------------------------------------------


def open_questions(workspace: OpenWorkspace, spec: str | None = None) -> tuple[Review, list[Shift]]:
    """Compare up to the working tree, and list the changed beliefs that nobody has reviewed yet.

    Without a spec: since this branch left the default branch.
    """
    found = compare(*editions(workspace, spec or since_branching(workspace)))
    review = _whole(workspace, found)
    asked = [
        shift
        for shift in review.shifts
        if shift.what in _ASKED and shift.kind in _STATEMENTS and _is_unread(found, shift.id)
    ]
    return review, asked


def candidates(workspace: OpenWorkspace, most: int) -> Review:
    """The lessons that were learned on this machine and are not published, the best first."""
    shifts: list[Shift] = []
    causes: dict[str, Cause] = {}
    for record in ranked(map(workspace.get, queries.candidates(workspace.index)))[:most]:
        episodes = evidence_of(record).ids()
        told = (record.kind, record.id, record.title(), None, confidence(record), episodes)
        shifts.append(Shift("candidate", *told))
        for episode in episodes:
            with suppress(NotFound):
                causes.setdefault(episode, _cause(workspace.get(episode)))
    return Review("published lessons", CANDIDATES, shifts, causes, [])


def _is_unread(found: Comparison, memory_id: str) -> bool:
    new, old = found.new.live.get(memory_id), found.old.all().get(memory_id)
    return new is not None and len(reviews(new)) <= len(reviews(old) if old else ())


def accept(workspace: OpenWorkspace, memory_id: str) -> Memory:
    """Note in a belief that a person or an agent accepted it.

    An accepted belief is the person's word from then on: its origin is `owner`, and consolidation
    only moves its evidence; a skill may be published as it is. If an agent accepts it, that is
    noted, and its origin stays.
    """
    workspace.home.before_write()
    mark = {"by": _reader(workspace), "at": workspace.now()[:10], "origin": workspace.origin}
    with workspace.homes.changing(workspace.resolve(memory_id)) as (change, path, record):
        read = change.put(_reviewed(record, mark), path)
    if workspace.origin == "owner":
        _answer_for(workspace, path)
    if isinstance(read, Skill) and workspace.origin == "owner":
        accept_skills(workspace.layout, read)
    return read


def _answer_for(workspace: OpenWorkspace, path: str) -> None:
    """Note in the write log that the user accepted a record, whoever wrote what was there."""
    data = workspace.store.data(path) if is_witnessed(path) else None
    if data is not None:
        with workspace.store.change():
            write_log.note(workspace.layout, [WriteNote("adopt", path, content_hash(data), "")])


def _reader(workspace: OpenWorkspace) -> str:
    """The name that git would write into a commit."""
    repo = repository_if_any(workspace.layout, workspace.config)
    named = repo.settings.get("user.name", "") if repo else ""
    return " ".join(named.replace(";", " ").split()) or workspace.origin


def _reviewed(record: Memory, mark: dict[str, str]) -> Memory:
    if mark in reviews(record):
        return record
    is_owners = mark["origin"] == "owner"
    if not isinstance(record, Skill):
        fields = _owned(record) if is_owners else {}
        return record.changed(reviewed=[*reviews(record), mark], **fields)
    known = filter(None, [record.metadata.get("loki-reviewed", ""), " ".join(mark.values())])
    fields = {"loki-origin": "owner"} if is_owners else {}
    metadata = {**record.metadata, **fields, "loki-reviewed": "; ".join(known)}
    return record.changed(metadata=metadata)


def _owned(record: Memory) -> dict[str, str]:
    """The fields of a belief that its owner accepted; without evidence, the word alone counts."""
    is_candidate = isinstance(record, Belief) and record.status == "candidate"
    if is_candidate and not evidence_of(record).ids():
        return {"origin": "owner", "status": "active"}
    return {"origin": "owner"}


def statement(record: Memory) -> str:
    """The statement of a belief, which a person can edit."""
    return str(getattr(record, _field(record)))


def reword(workspace: OpenWorkspace, memory_id: str, text: str) -> Memory:
    """Change the words of a belief, and accept it in that form."""
    field = _field(workspace.get(memory_id))
    keep_accepted(workspace.layout, *correct(workspace, memory_id, {field: text}))
    return accept(workspace, memory_id)


def _field(record: Memory) -> str:
    if record.kind not in _STATEMENTS:
        raise InvalidRecord(f"{record.id} is no belief", advice="Review beliefs and skills.")
    return _STATEMENTS[record.kind]


# -- line by line ----------------------------------------------------------------------------------


_MOST_LINES, _WIDTH = 400, 400  # of one file, and characters of a line; the files have all


class FilePatch(NamedTuple):
    """A memory file that differs from the last commit."""

    path: str  # below .loki/memory
    what: str  # new, changed, gone
    lines: list[str]  # of the unified diff, without its head


def patch(workspace: OpenWorkspace) -> list[FilePatch]:
    """Compare the working tree with the last commit; raises NoHistory outside of git."""
    before, after = editions(workspace, None)
    paths = [path for path in changed(before, after) if not view_kind(path)]
    old = dict(before.read(path for path in paths if path in before.files))
    new = dict(after.read(path for path in paths if path in after.files))
    return [
        _patch(path, old.get(path), new.get(path))
        for path in paths
        if old.get(path) != new.get(path)
    ]


def _patch(path: str, old: bytes | None, new: bytes | None) -> FilePatch:
    what = "new" if old is None else "gone" if new is None else "changed"
    found = unified_diff(_lines(old), _lines(new), lineterm="", n=2)
    lines = [line[:_WIDTH] for line in list(found)[2 : _MOST_LINES + 2]]
    return FilePatch(path, what, lines)


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()
