"""Verdicts of gates as episodes: tests, linters and reviews that no agent speaks for.

A verdict that fails needs evidence: at least one failure that it can show. Each becomes an error
that consolidation knows again when it comes again. A gate that passes tells what resolved the
failures that it had since it last passed: the commits in between, where these are few enough to
say so. That is how a lesson comes about from runs that nobody explains.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import GitFailed, InvalidRecord, NotFound
from loki_memory.files.redaction import clip, clip_end, redact
from loki_memory.home import parsed
from loki_memory.index.gate import verdicts
from loki_memory.ingest.gate_reports import GateFailure, Verdict, verdict_in
from loki_memory.ingest.record import record, valid_episode
from loki_memory.models import Episode
from loki_memory.models.error_signature import complaint
from loki_memory.models.ids import digest
from loki_memory.models.text import moment

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.homes import OpenWorkspace
    from loki_memory.models.episode import ErrorMet

_ERRORS = 30  # as many as an episode of a session tells
_MESSAGE = 700  # characters of one: the complaint and what stands around it
_COMMITS = 3  # between a failure and a pass: of more, nobody knows which one helped
_BACK = 200  # verdicts that are looked at
_TAG = "gate:"
_NOT_PASSED = {"failure", "partial"}


class GateOptions(NamedTuple):
    """Details of a verdict by its recorder; empty where the report shall say it."""

    gate: str = ""
    goal: str = ""
    outcome: str = ""
    agent: str = ""
    task: str = ""


_NOTHING = GateOptions()


def record_verdict(workspace: OpenWorkspace, data: bytes, told: GateOptions = _NOTHING) -> Episode:
    """Record what a report says as an episode. The same report again changes nothing.

    A report that does not say when it ran was made now.
    """
    found = verdict_in(data)
    found = found._replace(
        gate=" ".join((told.gate or found.gate).split()),
        outcome=_outcome(workspace, told.outcome or found.outcome),
        failures=[_local(workspace, failure) for failure in found.failures],
        goal=told.goal or found.goal,
        at=_moment(found.at) or workspace.now(),
    )
    _check(found)
    name = f"ep-{found.at[:10]}-{digest('verdict', found.gate, found.at, sha256(data).hexdigest())}"
    try:
        known = workspace.get(name)
    except NotFound:
        known = None
    if isinstance(known, Episode):
        return known
    return record(workspace, [{"id": name, **_document(workspace, found, told)}])[0]


def is_verdict(episode: Episode) -> bool:
    """Check whether an episode tells what a gate said."""
    return any(tag.startswith(_TAG) for tag in episode.tags)


def failing_now(workspace: OpenWorkspace) -> list[str]:
    """Return what does not pass, by the last verdict of every gate: `pytest: test_paging`."""
    latest: dict[str, Episode] = {}
    for gate, verdict in _verdicts(workspace):
        latest.setdefault(gate, verdict)
    failing = (pair for pair in sorted(latest.items()) if pair[1].outcome in _NOT_PASSED)
    told = (f"{gate}: {_named(met)}" for gate, entry in failing for met in entry.errors_encountered)
    return list(dict.fromkeys(told))


def _named(met: ErrorMet) -> str:
    """The test that failed; a rule says less than its message, which begins with it."""
    line = complaint(met.message)
    return met.type if met.type and not line.startswith(met.type) else line


def _outcome(workspace: OpenWorkspace, word: str) -> str:
    """An outcome in the words that episodes have: gates say `passed` and `failed`."""
    return valid_episode(workspace, {"goal": "-", "outcome": word}).outcome


def _moment(text: str) -> str:
    try:
        return moment(text) if text else ""
    except ValueError:
        return ""


def _check(found: Verdict) -> None:
    if not found.gate:
        raise InvalidRecord(
            "is not named in the report", field="gate", advice="Name it with --gate, e.g. pytest."
        )
    if found.outcome in _NOT_PASSED and not found.failures:
        raise InvalidRecord(
            f"{found.gate} says {found.outcome} and shows no failure",
            field="failures",
            advice="A verdict that is not a success needs at least one, with its message.",
        )


def _document(workspace: OpenWorkspace, found: Verdict, told: GateOptions) -> dict[str, Any]:
    from loki_memory.git_repository import Repository

    repository = Repository.find(workspace.layout.root, workspace.layout.loki.name)
    head = (repository.head() if repository else None) or ""
    errors = list(_errors(found.failures))
    if found.outcome == "success":
        errors += _resolved(workspace, repository, found, head)
    files = sorted({failure.file for failure in found.failures if failure.file})
    document = {
        "task_id": told.task,
        "timestamp": found.at,
        "duration_seconds": found.seconds,
        "agent": told.agent,
        "session": found.run,
        "context": {
            "phase": "review",
            "goal": found.goal or f"Pass {found.gate}",
            "files_involved": files,
        },
        "outcome": found.outcome,
        "errors_encountered": errors,
        "git_commit": head[:12],
        "tags": [f"{_TAG}{found.gate}"],
    }
    return {name: value for name, value in document.items() if value not in ("", None)}


def _local(workspace: OpenWorkspace, failure: GateFailure) -> GateFailure:
    """A failure with paths as the project calls them: linters write where they lie here."""
    here = f"{workspace.layout.root}{os.sep}"
    name, message, file = (text.replace(here, "") for text in failure[:3])
    return GateFailure(name, message, file.replace(os.sep, "/"), failure.line)


def _errors(failures: Sequence[GateFailure]) -> Iterator[dict[str, str]]:
    """Every failure once, the place where it was first found before it, as compilers write it."""
    first: dict[tuple[str, str], GateFailure] = {}
    for failure in failures:
        first.setdefault((failure.name, failure.message), failure)
    for failure in list(first.values())[:_ERRORS]:
        place = f"{failure.file}:{failure.line}: " if failure.file and failure.line else ""
        error = {"type": failure.name, "message": _cut(f"{place}{failure.message}")}
        yield {name: value for name, value in error.items() if value}


def _cut(message: str) -> str:
    """A long message as its beginning and its end, with the line that says what went wrong."""
    message = redact(message)
    if len(message) <= _MESSAGE:
        return message
    half, line = _MESSAGE // 2, complaint(message)
    head, tail = clip(message, half), clip_end(message, half)
    return "\n".join([head, "…", *([line] if line not in head + tail else []), tail])


# -- what a pass tells -----------------------------------------------------------------------------


def _resolved(
    workspace: OpenWorkspace, repository: Repository | None, found: Verdict, head: str
) -> Iterator[dict[str, str]]:
    """The failures since the gate last passed, each with the commits that came after it."""
    if repository is None or not head:
        return
    for met, commit in _failed_before(workspace, found):
        resolution = _between(repository, commit, head)
        if resolution:
            yield {"type": met.type, "message": met.message, "resolution": resolution}


def _failed_before(workspace: OpenWorkspace, found: Verdict) -> list[tuple[ErrorMet, str]]:
    """Errors of a gate since it last passed, each with the commit at which it was last seen."""
    last: dict[str, tuple[ErrorMet, str]] = {}
    for gate, earlier in _verdicts(workspace, found.at):
        if gate == found.gate and earlier.outcome == "success":
            break
        for met in earlier.errors_encountered if gate == found.gate else ():
            last.setdefault(met.type or met.message, (met, earlier.git_commit or ""))
    return list(last.values())


def _between(repository: Repository, first: str, last: str) -> str:
    """The messages of the commits between two, without memory's own; empty if there are none."""
    from loki_memory.git_repository import PATTERNS

    start = repository.resolve(first) if first else None
    if start is None:
        return ""
    asked = ("log", "--no-merges", f"--max-count={_COMMITS + 1}", "--format=%H %s")
    places = ("--", ":(top)", f":(top,exclude){repository.prefix}")
    try:
        listed = repository.run(*asked, f"{start}..{last}", *places, env=PATTERNS)
    except GitFailed:
        return ""
    lines = [line.partition(" ") for line in listed.decode(errors="replace").splitlines()]
    told = [f"{subject} ({name[:10]})" for name, _, subject in reversed(lines)]
    return "; ".join(told) if len(told) <= _COMMITS else ""


def _verdicts(workspace: OpenWorkspace, until: str = "") -> Iterator[tuple[str, Episode]]:
    """Yield what gates said, newest first, each verdict with the name of its gate."""
    workspace.home.ensure("current")
    for body, gate in verdicts(workspace.index, until, _BACK):
        record = parsed("episode", body)
        if isinstance(record, Episode):
            yield gate, record
