"""The plan: what the sources propose, joined into few lines, the most useful first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from loki_memory.files.redaction import find_secrets
from loki_memory.models.prompt_injection import gives_instructions, pipes_download
from loki_memory.seed import (
    ci_files,
    git_history,
    instruction_files,
    node_project,
    other_projects,
    python_facts,
    python_project,
    task_files,
)
from loki_memory.seed.ci_files import CiFile
from loki_memory.seed.git_history import HistoryCommit
from loki_memory.seed.project_files import ProjectFiles
from loki_memory.seed.proposal import (
    CI_STEP,
    COMMANDS,
    CONFIGURED,
    CONVENTIONS,
    GROUPS,
    HISTORY,
    PURPOSES,
    RULES,
    Proposal,
    Task,
    only_checks,
    quoted,
)

MOST = 20  # lines: what somebody reads before deciding
_ROOM = {COMMANDS: 12, CONVENTIONS: 10, HISTORY: 5, RULES: 5}  # lines of a group, at most
_PARTS = 3  # commands of one job that a line names
_OF_SCRIPTS = frozenset({"dev", "start"})  # `make dev` may as well prepare a machine
# Jobs that may be done in parts: what is called `build:version` need not build anything.
_IN_PARTS = frozenset({"test", "lint", "types", "format"})
_BY_SEVERAL = frozenset({"lint", "types"})  # that several tools may do side by side


class Sources(NamedTuple):
    """All that a plan is made from."""

    files: ProjectFiles
    commits: Sequence[HistoryCommit] = ()
    own_email: str = ""  # of the user, as git knows it


def plan(sources: Sources) -> list[Proposal]:
    """The proposals for a project, by group, at most a screen of them."""
    files = sources.files
    ci = ci_files.read(files)
    found = [
        *_commands(files, ci),
        *_facts(files, ci),
        *git_history.facts(sources.commits, sources.own_email),
        *instruction_files.facts(files),
    ]
    return _grouped(_fitting(_distinct(found)))


def _distinct(proposals: Iterable[Proposal]) -> list[Proposal]:
    by_text: dict[str, Proposal] = {}
    for proposal in filter(_is_safe, proposals):
        by_text.setdefault(proposal.text, proposal)
    return sorted(by_text.values(), key=lambda proposal: -proposal.worth)


def _is_safe(proposal: Proposal) -> bool:
    """Check that a line gives no orders, shows all that it says, and holds no secret."""
    text = proposal.text
    if not text.isprintable() or find_secrets(text):
        return False
    return not gives_instructions(text) and not pipes_download(text)


def _fitting(proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    """The best proposals, of no group more than it has room for."""
    room, left = dict(_ROOM), MOST
    for proposal in proposals:
        if left and room[proposal.group]:
            room[proposal.group] -= 1
            left -= 1
            yield proposal


def _grouped(proposals: Iterable[Proposal]) -> list[Proposal]:
    return sorted(proposals, key=lambda proposal: GROUPS.index(proposal.group))


def _facts(files: ProjectFiles, ci: Sequence[CiFile]) -> Iterator[Proposal]:
    python, node = python_project.read(files), node_project.read(files)
    yield from python_facts.facts(python) if python else ()
    yield from node_project.facts(node) if node else ()
    yield from other_projects.facts(files)
    yield from task_files.hook_facts(files)
    yield from ci_files.facts(ci)


# -- commands --------------------------------------------------------------------------------------


def _commands(files: ProjectFiles, ci: Sequence[CiFile]) -> Iterator[Proposal]:
    """One line for each job: the command by which it is done."""
    tasks = list(_tasks(files, ci))
    main = next((task.language for task in tasks if task.language), "")
    jobs: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in tasks:
        if task.purpose in _OF_SCRIPTS and not task.runs:
            continue
        if task.is_part and task.purpose not in _IN_PARTS:
            continue
        jobs[task.purpose, task.language if task.language != main else ""].append(task)
    for (purpose, language), known in jobs.items():
        yield _line(purpose, language, _best(known, ci), ci)


def _tasks(files: ProjectFiles, ci: Sequence[CiFile]) -> Iterator[Task]:
    """All tasks; the first with a language has the project's main one."""
    python, node = python_project.read(files), node_project.read(files)
    own = [
        *(python_project.tasks(python) if python else ()),
        *other_projects.tasks(files),
        *(node_project.tasks(node) if node else ()),
    ]
    yield from own
    yield from task_files.tasks(files)
    yield from task_files.hook_tasks(files)
    main = next((task.language for task in own), "")
    yield from ci_files.tasks(ci, main)


def _best(tasks: Sequence[Task], ci: Sequence[CiFile]) -> list[Task]:
    """The task by which a job is done best, or several that do parts of it."""

    def order(task: Task) -> int:
        is_confirmed = task.rank < CI_STEP and bool(ci_files.sources_of(ci, task.command))
        return 2 * task.rank + 3 * task.is_part - is_confirmed

    best = min(tasks, key=order)
    if best.purpose in _BY_SEVERAL and best.rank == CONFIGURED:
        return [task for task in tasks if task.rank == CONFIGURED][:_PARTS]
    if not best.is_part:
        return [best]
    return [task for task in tasks if task.is_part and task.source == best.source][:_PARTS]


def _line(purpose: str, language: str, tasks: list[Task], ci: Sequence[CiFile]) -> Proposal:
    best = tasks[0]
    named = quoted(*dict.fromkeys(task.command for task in tasks))
    job = PURPOSES[purpose]
    said = job.of_language.format(language, named) if language else job.sentence.format(named)
    if purpose == "format" and only_checks(f"{best.command} {best.runs}"):
        said = f"Formatting is checked with {named}"
    if purpose == "docs" and "serve" in best.runs:
        said = f"The documentation is served with {named}"
    runs = f", which runs `{best.runs}`" if best.runs and len(tasks) == 1 else ""
    confirmed = (
        path for task in tasks for path in ci_files.sources_of(ci, task.command, task.runs)
    )
    defined = (task.source for task in tasks)
    sources = tuple(dict.fromkeys([*defined, *confirmed]))[:_PARTS]
    worth = job.worth - bool(language)
    return Proposal(f"{said}{runs}.", "convention", COMMANDS, sources, worth)
