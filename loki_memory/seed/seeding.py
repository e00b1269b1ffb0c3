"""Seed an empty memory: propose facts about a project, keep them as candidates, accept them.

A candidate is a fact on this machine with the key `seed`. It is found when somebody asks, and it is
neither told nor published until somebody accepts it, here or in `review`. Rules of instruction
files are not told after that either: the client that loads the file tells them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.editing.removal import forgotten_files
from loki_memory.errors import GitFailed, RejectedValue
from loki_memory.files.layout import place
from loki_memory.files.scan import archived
from loki_memory.index.queries import paths_saying
from loki_memory.models import Fact, parse
from loki_memory.models.rejected import value_id
from loki_memory.seed import git_history
from loki_memory.seed.git_history import HistoryCommit
from loki_memory.seed.plan import Sources, plan
from loki_memory.seed.project_files import ProjectFiles
from loki_memory.seed.proposal import COMMANDS, CONVENTIONS, HISTORY, RULES, Proposal

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.homes import OpenWorkspace

# The key of a fact says which source it has; the gate knows `instructions`.
_KEYS = {COMMANDS: "command", CONVENTIONS: "convention", HISTORY: "history", RULES: "instructions"}
_ENOUGH = 100  # of worth


class SeedLine(NamedTuple):
    """A proposed fact, where it comes from, and how it stands in memory."""

    id: str
    text: str
    type: str  # convention, rule, decision or gotcha
    group: str
    sources: list[str]  # files, or a commit
    standing: str  # new, candidate, accepted, known or declined


class SeedPlan(NamedTuple):
    """Printed by `seed`."""

    lines: list[SeedLine]
    sessions: int  # transcripts of agents in this project that were not read
    problems: list[str]  # files that were left out, and why
    planned: bool  # nothing was written


def proposals(root: Path) -> tuple[list[Proposal], list[str]]:
    """The proposals of a project's files and history, and remarks on files that were left out."""
    files = ProjectFiles(root)
    found = plan(Sources(files, *_history(root)))
    return found, list(dict.fromkeys(files.problems))


def _history(root: Path) -> tuple[list[HistoryCommit], str]:
    """The newest commits that changed the project, and the address under which the user commits.

    Only commits of an ordinary size are read: a message can be as long as its author likes.
    """
    from loki_memory.git_repository import Repository

    repo = Repository.find(root)
    with suppress(GitFailed):
        if repo is not None and repo.head():
            inside = repo.prefix.removesuffix(".loki")
            paths = ("--", inside) if inside else ()
            asked = ("--no-merges", f"-n{git_history.COMMITS}", "HEAD", *paths)
            sizes = repo.run("cat-file", git_history.SIZES, input=repo.run("rev-list", *asked))
            names = "\n".join(git_history.small_commits(sizes.decode()))
            batch = repo.run("cat-file", "--batch", input=f"{names}\n".encode())
            return git_history.parse_commits(batch), repo.settings.get("user.email", "")
    return [], ""


def unopened(root: Path) -> SeedPlan:
    """The plan for a folder that has no memory yet; nothing is written."""
    found, problems = proposals(root)
    lines = [_line(proposal, _fact(proposal, ""), "new") for proposal in found]
    return SeedPlan(lines, 0, problems, planned=True)


def seed(workspace: OpenWorkspace, *, plan_only: bool = False) -> SeedPlan:
    """Propose facts, and keep those that are new as candidates on this machine."""
    from loki_memory.ingest.run import to_be_taken

    found, problems = proposals(workspace.layout.root)
    if not plan_only:
        workspace.home.before_write()
    workspace.home.ensure("current")
    keeping = _Keeping(workspace)
    lines = list(keeping.plan(found) if plan_only else keeping.keep(found))
    return SeedPlan(lines, len(to_be_taken(workspace)), problems, plan_only)


def accept(workspace: OpenWorkspace, ids: Iterable[str]) -> list[str]:
    """Publish candidates that a person or an agent accepts; returns their ids.

    A fact in our own words becomes the word of whoever accepts it. Words of a file or a commit that
    an agent accepts keep their origin, and so wait for a person before they are told.
    """
    wanted = set(ids)
    today = workspace.now()[:10]
    mark = {"by": workspace.origin, "at": today, "origin": workspace.origin}
    found, _ = proposals(workspace.layout.root)
    accepted = []
    workspace.home.before_write()
    with workspace.store.change() as change:
        for proposal in found:
            fact = _fact(proposal, today)
            if fact.id in wanted:
                origin = _accepted_origin(proposal, workspace.origin)
                public = fact.changed(status="active", origin=origin, reviewed=[mark])
                change.put(fact.changed(scope="local", published=today))
                change.put(public)
                accepted.append(fact.id)
    return accepted


def _accepted_origin(proposal: Proposal, origin: str) -> str:
    return origin if origin == "owner" or not proposal.is_quoted else _origin(proposal)


def _origin(proposal: Proposal) -> str:
    return "external" if proposal.is_foreign else "import"


def _fact(proposal: Proposal, today: str) -> Fact:
    """The candidate for a proposal, with the id that it keeps when it is published."""
    paths = [] if proposal.commit else proposal.sources
    key = {"seed": _KEYS[proposal.group], "commit": proposal.commit}
    given = {
        "statement": proposal.text,
        "type": proposal.type,
        "status": "candidate",
        "importance": min(proposal.worth, _ENOUGH) / _ENOUGH,
        "key": {name: value for name, value in key.items() if value},
        "citations": [{"path": path} for path in paths],
        "valid_from": today,
        "origin": _origin(proposal),
    }
    return parse(Fact, {name: value for name, value in given.items() if value})


def _line(proposal: Proposal, fact: Fact, standing: str) -> SeedLine:
    return SeedLine(
        fact.id, fact.statement, proposal.type, proposal.group, [*proposal.sources], standing
    )


class _Keeping:
    """Candidates while they are compared with memory and written."""

    def __init__(self, workspace: OpenWorkspace) -> None:
        self._workspace = workspace
        self._today = workspace.now()[:10]
        layout = workspace.layout
        self._taken_out = {Path(path).stem for path in archived(layout)}
        self._taken_out |= {path.stem for path in forgotten_files(layout)}

    def plan(self, found: Iterable[Proposal]) -> Iterator[SeedLine]:
        """Say how each proposal stands in memory; nothing is written."""
        from loki_memory.files.store import Change

        return self._each(Change(self._workspace.store), found)

    def keep(self, found: Iterable[Proposal]) -> list[SeedLine]:
        """Write the new ones as candidates, all or none."""
        with self._workspace.store.change() as change:
            return list(self._each(change, found))

    def _each(self, change: Change, found: Iterable[Proposal]) -> Iterator[SeedLine]:
        for proposal in found:
            fact = _fact(proposal, self._today)
            standing = self._standing(change, fact)
            if standing == "new":
                change.create(fact.changed(scope="local"))
            yield _line(proposal, fact, standing)

    def _standing(self, change: Change, fact: Fact) -> str:
        if fact.id in self._taken_out or _is_rejected(change, fact):
            return "declined"
        if change.read(place(fact)):
            return "accepted"
        if change.read(place(fact.changed(scope="local"))):
            return "candidate"
        said = paths_saying(self._workspace.index, "fact", value_id(fact.value()))
        return "known" if said else "new"


def _is_rejected(change: Change, fact: Fact) -> bool:
    try:
        change.admit(fact)
    except RejectedValue:
        return True
    return False
