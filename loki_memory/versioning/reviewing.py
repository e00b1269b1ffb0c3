"""Reviewing memory: what changed between two editions of it, and a person's word on what is new.

What to compare is said as git says it:

    (nothing)   the last commit with the working tree
    A           A with the working tree
    A..B        A with B
    A...B       the commit at which B left A, with B: what a pull request brings
    A^!         what the commit A did; a merge is told by what it brought to its branch

A and B are commits, branches, tags or dates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidRecord, NotFound, UnknownRevision
from loki_memory.files import zones
from loki_memory.history.difference import Shift, differences
from loki_memory.history.repository import tracked
from loki_memory.history.review import Cause, Review, Unreadable
from loki_memory.history.standing import reviews
from loki_memory.models import Episode, Memory, Skill
from loki_memory.parts import Changing
from loki_memory.versioning.edition import (
    Edition,
    Records,
    changed,
    of_commit,
    of_folder,
    of_nothing,
    of_worktree,
)
from loki_memory.versioning.versioned import repository, repository_if_any

if TYPE_CHECKING:
    from loki_memory.files.problem import Problem
    from loki_memory.history.repository import Repository
    from loki_memory.workspace import Workspace

# What a person is asked about: beliefs that are new, or say something else than before.
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
    """Two editions, and the records in the files that are not the same in both."""

    before: Edition
    after: Edition
    old: Records
    new: Records

    def gone(self) -> dict[str, Memory]:
        return gone(self.old, self.new)

    def shifts(self) -> list[Shift]:
        return shifts(self.old, self.new)


def gone(old: Records, new: Records) -> dict[str, Memory]:
    """Records that are neither live nor archived any more.

    A file that cannot be read any more has not taken its record with it.
    """
    left = old.known().keys() - new.known().keys()
    return {name: old.known()[name] for name in sorted(left) if old.paths[name] not in new.invalid}


def shifts(old: Records, new: Records) -> list[Shift]:
    """What changed; what was made and archived in between counts as made."""
    stayed = old.live.keys() & new.known().keys()
    come = new.archived.keys() - old.known().keys()
    return differences(
        {**{name: old.live[name] for name in stayed}, **gone(old, new)},
        {**new.live, **{name: new.archived[name] for name in come}},
        archived=new.archived.keys() - new.live.keys(),
        unarchived=old.archived.keys() - old.live.keys(),
    )


def diff(workspace: Workspace, spec: str | None = None) -> Review:
    """What changed in memory between two points, in terms of belief, and from which episodes."""
    compared = compare(*editions(workspace, spec))
    review = told(compared)
    invalid = [
        Unreadable(problem.path, problem.reason)
        for problem in zone_problems(workspace, compared.after.commit)
    ]
    return review._replace(invalid=[*invalid, *review.invalid])


def zone_problems(workspace: Workspace, commit: str = "") -> list[Problem]:
    """Links, and files of zones that belong to one machine: here, or tracked in a commit."""
    if not commit:
        return workspace.zone_problems()
    found = tracked(workspace.layout.root, [".loki"], commit)
    return [
        zones.link_problem(file.path) if file.is_link else zones.tracked_problem(file.path)
        for file in found
        if file.is_link or f"{file.path}/".startswith(zones.NEVER_TRACKED)
    ]


def compare(before: Edition, after: Edition) -> Comparison:
    """Read what differs between two editions, and only that."""
    paths = changed(before, after)
    return Comparison(before, after, before.records(paths), after.records(paths))


def told(comparison: Comparison) -> Review:
    """A comparison with the episodes behind it."""
    found = comparison.shifts()
    invalid = sorted(comparison.new.invalid.items())
    return Review(
        comparison.before.label,
        comparison.after.label,
        found,
        _causes(comparison, found),
        [Unreadable(*one) for one in invalid],
    )


def as_markdown(review: Review) -> str:
    """A review as a comment on a pull request."""
    from loki_memory.history.markdown import markdown

    return markdown(review)


def _causes(comparison: Comparison, shifts: Iterable[Shift]) -> dict[str, Cause]:
    wanted = {name for shift in shifts for name in shift.caused_by}
    known = {**comparison.old.known(), **comparison.new.known()}
    found = comparison.after.find(wanted - known.keys())
    episodes = {name: known.get(name) or found.get(name) for name in sorted(wanted)}
    return {name: _cause(one) for name, one in episodes.items() if one is not None}


def _cause(record: Memory) -> Cause:
    if isinstance(record, Episode):
        return Cause(record.id, record.goal, record.outcome, record.agent or "")
    return Cause(record.id, record.title(), "", "")


# -- what to compare -----------------------------------------------------------------------------


def editions(workspace: Workspace, spec: str | None) -> tuple[Edition, Edition]:
    """The two editions that a spec names."""
    repo = repository(workspace)
    spec = (spec or "").strip()
    if spec.endswith("^!"):
        return _parent(repo, spec.removesuffix("^!")), _edition(repo, spec.removesuffix("^!"))
    if "..." in spec:
        old, _, new = spec.partition("...")
        return _base(repo, old or "HEAD", new or "HEAD"), _edition(repo, new)
    old, dots, new = spec.partition("..")
    after = _edition(repo, new) if dots else here(repo, workspace)
    return _edition(repo, old), after


def here(repo: Repository, workspace: Workspace) -> Edition:
    """Memory as it lies here; where it has a branch of its own, git takes no note of the files."""
    if repo.line != "HEAD":
        return of_folder(workspace.layout)
    return of_worktree(repo, workspace.layout)


def _edition(repo: Repository, rev: str) -> Edition:
    """Memory as of a revision; of HEAD, if none is named, though there be no commit yet."""
    if not rev and repo.tip() is None:
        return of_nothing("nothing")
    rev = rev or "HEAD"
    commit = repo.commit_of(rev)
    return of_commit(repo, commit, _label(rev, commit))


def _label(rev: str, commit: str) -> str:
    return commit[:_SHORT] if commit.startswith(rev) else f"{rev} ({commit[:_SHORT]})"


def _parent(repo: Repository, rev: str) -> Edition:
    commit = repo.commit_of(rev or "HEAD")
    first = repo.resolve(f"{commit}^1")
    return of_commit(repo, first, first[:_SHORT]) if first else of_nothing("nothing")


def _base(repo: Repository, old: str, new: str) -> Edition:
    commit = repo.base(repo.commit_of(old), repo.commit_of(new))
    if not commit:
        raise UnknownRevision(f"{old}...{new}")
    return of_commit(repo, commit, _label(f"where {new} left {old}", commit))


def since_branching(workspace: Workspace) -> str | None:
    """Where this branch left the default branch: what a review begins with.

    On the default branch itself that is the last commit that others have, else the last one.
    """
    repo = repository_if_any(workspace)
    if repo is None or repo.tip() is None or repo.line != "HEAD":
        return None
    main = _default_branch(repo)
    return (repo.base(main, repo.commit_of("HEAD")) or None) if main else None


def _default_branch(repo: Repository) -> str | None:
    """The branch that others start from: as the remote says, else by its usual names."""
    named = repo.settings.get("init.defaultbranch", "main")
    usual = [f"{home}{name}" for name in (named, "main", "master") for home in ("origin/", "")]
    return next((name for name in ("origin/HEAD", *usual) if repo.resolve(name)), None)


# -- a person's word -------------------------------------------------------------------------------


def open_questions(workspace: Workspace, spec: str | None = None) -> tuple[Review, list[Shift]]:
    """What changed up to the working tree, and of that the beliefs nobody has reviewed as they are.

    Without a spec: since this branch left the default branch.
    """
    found = compare(*editions(workspace, spec or since_branching(workspace)))
    review = told(found)
    asked = [
        shift
        for shift in review.shifts
        if shift.what in _ASKED and shift.kind in _STATEMENTS and _is_unread(found, shift.id)
    ]
    return review, asked


def _is_unread(found: Comparison, memory_id: str) -> bool:
    new, old = found.new.live.get(memory_id), found.old.known().get(memory_id)
    return new is not None and len(reviews(new)) <= len(reviews(old) if old else ())


def accept(workspace: Workspace, memory_id: str) -> Memory:
    """Note in a belief that somebody read it and let it stand.

    What a person accepted is that person's word from then on: its origin is `owner`, and
    consolidation only moves its evidence; a skill may be published as it is. What an agent accepts
    is noted, and trusted as before.
    """
    workspace.before_write()
    path = workspace.record_path(workspace.resolve(memory_id))
    if path is None:
        raise NotFound(memory_id)
    mark = {"by": _reader(workspace), "at": workspace.now()[:10], "origin": workspace.origin}
    with Changing(workspace.store, memory_id, path) as (change, path, record):
        read = change.put(_reviewed(record, mark), path)
    if isinstance(read, Skill) and workspace.origin == "owner":
        from loki_memory.writing import publishing

        publishing.accept(workspace.layout, read)
    return read


def _reader(workspace: Workspace) -> str:
    """The name that git would write into a commit."""
    repo = repository_if_any(workspace)
    named = repo.settings.get("user.name", "") if repo else ""
    return " ".join(named.replace(";", " ").split()) or workspace.origin


def _reviewed(record: Memory, mark: dict[str, str]) -> Memory:
    if mark in reviews(record):
        return record
    is_owners = mark["origin"] == "owner"
    if not isinstance(record, Skill):
        fields = {"origin": "owner"} if is_owners else {}
        return record.changed(reviewed=[*reviews(record), mark], **fields)
    known = filter(None, [record.metadata.get("loki-reviewed", ""), " ".join(mark.values())])
    fields = {"loki-origin": "owner"} if is_owners else {}
    metadata = {**record.metadata, **fields, "loki-reviewed": "; ".join(known)}
    return record.changed(metadata=metadata)


def statement(record: Memory) -> str:
    """The text that a person edits: what the belief says."""
    return str(getattr(record, _field(record)))


def reword(workspace: Workspace, memory_id: str, text: str) -> Memory:
    """Put a belief into other words, and accept it as it is then."""
    field = _field(workspace.get(memory_id))
    workspace.correct(memory_id, **{field: text})
    return accept(workspace, memory_id)


def _field(record: Memory) -> str:
    if record.kind not in _STATEMENTS:
        raise InvalidRecord(f"{record.id} is no belief", advice="Review beliefs and skills.")
    return _STATEMENTS[record.kind]
