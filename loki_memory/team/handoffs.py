"""Work among agents: checkpoints in ledgers, and handoffs from one agent to the next.

A handoff is open until an agent accepts it, and accepted until it is done or has expired; it never
goes back. The ledger of the agent that accepts it refers to it from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import GitFailed, InvalidRecord
from loki_memory.home import parsed
from loki_memory.index import gate
from loki_memory.ingest.gate import failing_now, is_verdict
from loki_memory.ingest.steps import CHECKS
from loki_memory.integrity.citations import blob_id, content
from loki_memory.models import Episode, Handoff, Ledger, Memory, parse
from loki_memory.models.error_signature import complaint
from loki_memory.models.kinds import article
from loki_memory.models.team import is_addressed, is_role
from loki_memory.models.text import normal, shorten
from loki_memory.team.ledgers import checkpoint_ledger, ledger_of, put, take_over_checkpoints

if TYPE_CHECKING:
    from loki_memory.homes import Changing, OpenWorkspace


_HANDOFFS = "`loki-mem handoff list --all` shows them."
_STATES = {"open": {"accepted", "done", "expired"}, "accepted": {"done", "expired"}}


def checkpoint(workspace: OpenWorkspace, ledger: Ledger | Mapping[str, Any]) -> Ledger:
    """Write an agent's ledger, replacing its last one."""
    document = ledger.document() if isinstance(ledger, Ledger) else dict(ledger)
    document.setdefault("last_checkpoint", workspace.now())
    record = parse(Ledger, {**document, "origin": workspace.origin})
    take_over_checkpoints(workspace)
    workspace.home.before_write("ledgers/")
    return workspace.store.write(record, workspace.home.place_of(record.id) or "")  # type: ignore[return-value]


def check_in(workspace: OpenWorkspace, agent: str, fields: Mapping[str, Any]) -> Ledger:
    """Update an agent's ledger with the given fields; all others stay as they were."""
    new = checkpoint_ledger(agent, fields, workspace.now(), workspace.origin)
    take_over_checkpoints(workspace)
    workspace.home.before_write("ledgers/")
    with workspace.store.change() as change:
        return put(workspace, change, new)


def draft(
    workspace: OpenWorkspace,
    from_agent: str,
    to_agent: str,
    what_was_done: str | None,
    context: Mapping[str, Any],
) -> Handoff:
    """Build a handoff: the given fields, completed by what is recorded."""
    for name, text in (("from", from_agent), ("to", to_agent)):
        if not text.strip():
            raise InvalidRecord("is empty", field=name, advice="A handoff needs both agents.")
    given = {"what_was_done": what_was_done, **context}
    document = {
        "from_agent": from_agent,
        "to_agent": to_agent,
        "timestamp": workspace.now(),
        "context": completed(workspace, from_agent, given),
        "status": "open",
        "origin": workspace.origin,
    }
    return parse(Handoff, document)


def hand_off(
    workspace: OpenWorkspace,
    from_agent: str,
    to_agent: str,
    what_was_done: str | None,
    context: Mapping[str, Any],
) -> Handoff:
    """Pass work to another agent."""
    workspace.home.before_write()
    take_over_checkpoints(workspace)
    record = draft(workspace, from_agent, to_agent, what_was_done, context)
    with workspace.store.change() as change:
        return change.create(record)  # type: ignore[return-value]


def accept(workspace: OpenWorkspace, handoff: Changing, by: str | None) -> Handoff:
    """Take on a handoff that is open; the receiver's ledger refers to it in the same change."""
    take_over_checkpoints(workspace)
    workspace.home.before_write("ledgers/")
    with handoff as (change, path, record):
        taken = advanced(record, "accepted", {"accepted_at": workspace.now(), "accepted_by": by})
        receiver = by or taken.to_agent or ""
        if by or not is_role(receiver):
            fields = {"context": {"handoffs": [taken.id]}}
            new = checkpoint_ledger(receiver, fields, workspace.now(), workspace.origin)
            put(workspace, change, new)
        return change.put(taken, path)  # type: ignore[return-value]


def close_handoff(
    workspace: OpenWorkspace, handoff: Changing, note: str | None, status: str
) -> Handoff:
    """Mark a handoff as `done`, or as `expired`."""
    take_over_checkpoints(workspace)
    with handoff as (change, path, record):
        closed = advanced(record, status, {"closed_at": workspace.now(), "note": note})
        return change.put(closed, path)  # type: ignore[return-value]


def advanced(record: Memory, status: str, fields: Mapping[str, Any]) -> Handoff:
    """A handoff in its next state; going back is an error."""
    if not isinstance(record, Handoff):
        raise InvalidRecord(
            f"{record.id} is {article(record.kind)} and no handoff", advice=_HANDOFFS
        )
    if status not in _STATES.get(record.state, set()):
        raise InvalidRecord(
            f"{record.id} is {record.state} and cannot become {status}", advice=_HANDOFFS
        )
    given = {name: value for name, value in fields.items() if value is not None}
    return record.changed(status=status, **given)


# -- The context of a handoff, completed by what is recorded ---------------------------------------


_EPISODES = 20  # the latest: an agent without a handoff may have thousands
_GOALS, _GOAL = 5, 120  # in what was done, and characters of each
_FILES, _TESTS, _ISSUES, _PATTERNS = 30, 10, 10, 10  # at most
_LISTS = ("artifacts", "needs_testing", "known_issues", "relevant_patterns")
_UNSETTLED = {"failure", "partial"}


class Work(NamedTuple):
    """An agent's work since its last handoff, oldest first, and its ledger."""

    since: str
    episodes: Sequence[Episode]
    ledger: Ledger | None


def completed(workspace: OpenWorkspace, agent: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The context of a handoff: the given fields, then what is recorded."""
    workspace.home.ensure("current")
    work = _work(workspace, agent)
    known = _recorded(workspace, work)
    context = {name: value for name, value in given.items() if value}
    for name in _LISTS:
        both = [*_texts(name, context.get(name)), *known.pop(name)]
        context |= {name: list(dict.fromkeys(both))} if both else {}
    context = {**known, **context}
    if not str(context.get("what_was_done") or "").strip():
        raise _nothing_done(agent, work.since)
    cited = [_cited(workspace, path) for path in context.get("artifacts", [])]
    return context | ({"citations": list(filter(None, cited))} if any(cited) else {})


def _texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, str | list | tuple | None):
        raise InvalidRecord("must be a list", field=name, advice="Give several texts, or one.")
    return [value] if isinstance(value, str) else [str(text) for text in value or ()]


def _nothing_done(agent: str, since: str) -> InvalidRecord:
    after = f" since its handoff of {since[:16].replace('T', ' ')}" if since else ""
    return InvalidRecord(
        f"is empty, and no success of {agent} is recorded{after}",
        field="what_was_done",
        advice="Say what was done: WHAT on the command line, what_was_done elsewhere.",
    )


def _recorded(workspace: OpenWorkspace, work: Work) -> dict[str, Any]:
    fields = {
        "what_was_done": _done(work.episodes),
        "artifacts": _artifacts(workspace, work),
        "git_state": git_state(workspace),
        "needs_testing": _failing(workspace, work),
        "known_issues": list(_unresolved(work.episodes))[-_ISSUES:],
        "relevant_patterns": _helpful(workspace, work),
    }
    return {name: value for name, value in fields.items() if value or name in _LISTS}


# -- records of the agent --------------------------------------------------------------------------


def _work(workspace: OpenWorkspace, agent: str) -> Work:
    since = _last_handoff(workspace, agent)
    ledger = ledger_of(workspace, agent, held=())
    is_new = ledger is not None and ledger.when() > since
    return Work(since, _episodes(workspace, agent, since), ledger if is_new else None)


def _last_handoff(workspace: OpenWorkspace, agent: str) -> str:
    own = _names(workspace, "handoff", agent)
    return gate.last_handoff(workspace.index, own)


def _episodes(workspace: OpenWorkspace, agent: str, since: str) -> list[Episode]:
    own = _names(workspace, "episode", agent)
    bodies = gate.episodes_of(workspace.index, own, since, _EPISODES)
    records = [parsed("episode", body) for body in bodies]
    return [record for record in reversed(records) if isinstance(record, Episode)]


def _names(workspace: OpenWorkspace, kind: str, agent: str) -> list[str]:
    """The name of an agent in records of a kind: the whole name or the short form."""
    return [name for name in gate.agents(workspace.index, kind) if is_addressed(agent, name)]


# -- fields of the context -------------------------------------------------------------------------


def _done(episodes: Iterable[Episode]) -> str:
    reached = [
        episode for episode in episodes if episode.outcome == "success" and not is_verdict(episode)
    ]
    return "; ".join(dict.fromkeys(_short(episode.goal) for episode in reached[-_GOALS:]))


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), _GOAL)


def _artifacts(workspace: OpenWorkspace, work: Work) -> list[str]:
    """Files that were made or changed and still exist."""
    paths = [*(work.ledger.state.files_modified if work.ledger else ())]
    for episode in work.episodes:
        paths += [*episode.artifacts_produced, *episode.files_modified]
    there = [
        path for path in sorted(set(paths)) if content(workspace.layout.root, path) is not None
    ]
    return there[:_FILES]


def _cited(workspace: OpenWorkspace, path: str) -> dict[str, str] | None:
    """An artifact with its present blob id, so that the receiver sees if it changed."""
    root = workspace.layout.root
    data = content(root, path)
    return None if data is None else {"path": path, "blob": blob_id(data)}


def _failing(workspace: OpenWorkspace, work: Work) -> list[str]:
    """The failures of gates now, then the checks that failed in their last run."""
    failed: dict[str, None] = {}
    for episode in work.episodes:
        for action in episode.action_log:
            target = " ".join((action.target or "").split())
            if CHECKS.search(target):
                failed.pop(target, None)
                if action.error or action.result == "failed":
                    failed[target] = None
    lines = [f"{_short(target)} (failed when it was last run)" for target in failed]
    return [*failing_now(workspace), *lines][:_TESTS]


def _unresolved(episodes: Iterable[Episode]) -> Iterator[str]:
    """Goals that were not reached, each with its unresolved errors."""
    left: dict[str, list[str]] = {}
    for episode in episodes:
        left.pop(normal(episode.goal), None)
        if episode.outcome in _UNSETTLED and not is_verdict(episode):
            left[normal(episode.goal)] = [_not_reached(episode), *_open_errors(episode)]
    yield from (text for texts in left.values() for text in texts)


def _not_reached(episode: Episode) -> str:
    return f"{_short(episode.goal)} ({episode.outcome})"


def _open_errors(episode: Episode) -> list[str]:
    met = (error for error in episode.errors_encountered if not error.resolution)
    lines = (_short(complaint(error.message or error.type)) for error in met)
    return list(dict.fromkeys(filter(None, lines)))


def _helpful(workspace: OpenWorkspace, work: Work) -> list[str]:
    """Memories that helped, and patterns that the agent learned, of those that are live."""
    named = {
        memory.id for episode in work.episodes for memory in episode.recalled if memory.helpful
    }
    named |= set(work.ledger.context.patterns_learned if work.ledger else ())
    return gate.trusted_among(workspace.index, sorted(named), _PATTERNS)


# -- git -------------------------------------------------------------------------------------------


def git_state(workspace: OpenWorkspace) -> str:
    """`main at 0893e9f1ab, 2 files not committed`; empty outside of git."""
    from loki_memory.git_repository import Repository

    repository = Repository.find(workspace.layout.root, workspace.layout.loki.name)
    head = repository.head() if repository else None
    if repository is None or head is None:
        return ""
    try:
        listed = repository.run("status", "--porcelain", "-z")
    except GitFailed:
        return ""
    where = f"{repository.branch() or 'a detached HEAD'} at {head[:10]}"
    dirty = _uncommitted(listed.decode(errors="replace").split("\0"), repository.prefix)
    return f"{where}, {_files(dirty)} not committed" if dirty else f"{where}, nothing uncommitted"


def _uncommitted(entries: Sequence[str], ours: str) -> int:
    """Count the files that differ, without memory; the old name follows a renamed file."""
    count, at = 0, 0
    while at < len(entries) and entries[at]:
        status, path = entries[at][:2], entries[at][3:]
        count += not f"{path}/".startswith(f"{ours}/")
        at += 2 if "R" in status or "C" in status else 1
    return count


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
