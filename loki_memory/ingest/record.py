"""Record episodes that an agent or a person tells, and learn from their errors at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from loki_memory.consolidation.feedback import completed, create, teaches
from loki_memory.errors import InvalidRecord, LokiMemoryError
from loki_memory.home import parsed
from loki_memory.index.queries import episodes_recorded
from loki_memory.models import Episode, parse
from loki_memory.models.error_signature import signature

if TYPE_CHECKING:
    from loki_memory.home import Home
    from loki_memory.homes import OpenWorkspace

FEW = 100  # episodes at once that are work just done; more are an import


def record(workspace: OpenWorkspace, given: Iterable[Episode | Mapping[str, Any]]) -> list[Episode]:
    """Record episodes, all or none, and return them as they were stored."""
    episodes = [_numbered(workspace, each, number) for number, each in enumerate(given, 1)]
    workspace.home.before_write()
    stored, new = _stored(workspace, episodes)
    if len(new) <= FEW:
        _learn_from(workspace, new)
    return stored


def valid_episode(workspace: OpenWorkspace, given: Episode | Mapping[str, Any]) -> Episode:
    """The episode as it would be recorded; raises InvalidRecord."""
    if isinstance(given, Episode) and given.origin == workspace.origin and given.timestamp:
        return given
    if not isinstance(given, (Episode, Mapping)):
        raise InvalidRecord("is not a JSON object", advice="An episode is one {…}.")
    document = given.document() if isinstance(given, Episode) else dict(given)
    document.setdefault("timestamp", workspace.now())
    return parse(Episode, {**document, "origin": workspace.origin})


def _numbered(workspace: OpenWorkspace, given: Episode | Mapping[str, Any], number: int) -> Episode:
    try:
        return valid_episode(workspace, given)
    except InvalidRecord as error:
        raise error.at(f"episode {number}") from None


def _stored(
    workspace: OpenWorkspace, episodes: Sequence[Episode]
) -> tuple[list[Episode], list[Episode]]:
    """Write episodes into the home of their scope; returns them, and of these the new ones."""
    taken = _taken(workspace, episodes)
    by_home: dict[Home, list[Episode]] = {}
    for episode in episodes:
        by_home.setdefault(workspace.homes.of_scope(episode.scope), []).append(episode)
    ours = by_home.get(workspace.home, []) if len(episodes) <= FEW else []
    whole = completed(workspace.home, ours, workspace.now())
    stored: dict[int, Episode] = {}
    new: list[Episode] = []
    for home, group in by_home.items():
        with home.store.change() as change:
            for episode in group:
                before, path = len(change), taken.get(episode.id, "")
                written = create(change, episode, whole.get(episode.id, episode), path)
                stored[id(episode)] = written
                new += [written] * (len(change) > before)
    return [stored[id(episode)] for episode in episodes], new


def _taken(workspace: OpenWorkspace, episodes: Iterable[Episode]) -> dict[str, str]:
    """The paths of ids that were chosen by hand and exist: we would name those files otherwise."""
    chosen = [
        episode.id for episode in episodes if episode.id != f"{episode.prefix}-{episode.mint()}"
    ]
    if chosen:
        workspace.home.ensure("current")
    return {name: path for name in chosen if (path := workspace.home.record_path(name))}


def _learn_from(workspace: OpenWorkspace, episodes: Iterable[Episode]) -> None:
    """Run the first phases of consolidation, so that a lesson is there for the next task."""
    for episode in episodes:
        session = episode.session or episode.id
        workspace.home.journal.outcome(session, episode.outcome, now=workspace.now())
    lessons = [episode for episode in episodes if episode.scope == "project" and teaches(episode)]
    if lessons and not workspace.home.is_user:
        from loki_memory.consolidation.learn_now import learn

        try:
            learn(workspace, lessons)
        except LokiMemoryError as error:  # the episodes are stored; the next run learns from them
            workspace.notices.append(f"stored, and not learned from yet: {error}")


def episodes_in(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the episodes of a file, each with its line: one object, a list, or JSONL.

    A line that is not JSON comes as its InvalidRecord; raises it if there is only that line.
    """
    from loki_memory.files.codec import read_json

    try:
        whole = read_json(data, max(len(data), 1))
    except InvalidRecord:
        if b"\n" not in data.strip():
            raise
    else:
        yield from enumerate(whole, 1) if isinstance(whole, list) else [(0, whole)]
        return
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                yield number, read_json(line)
            except InvalidRecord as error:
                yield number, error


# -- captured work that the agent recorded itself --------------------------------------------------

_RULE = re.compile(r"\b[A-Z]{1,4}\d{3,5}\b")  # TS7030, E0308: of a linter or a compiler
_AFTERWARDS = 120  # seconds after the last turn, in which a call that recorded it may have ended


def is_recorded(workspace: OpenWorkspace, episode: Episode) -> bool:
    """Check if the agent recorded the work of a captured episode itself."""
    if episode.origin != "agent":
        return False
    begun = datetime.fromisoformat(episode.timestamp)
    lasted = timedelta(seconds=(episode.duration_seconds or 0) + _AFTERWARDS)
    until = f"{(begun + lasted).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    bodies = episodes_recorded(workspace.index, episode.timestamp, until)
    found = (parsed("episode", body) for body in bodies)
    return any(isinstance(other, Episode) and _is_same(episode, other) for other in found)


def _is_same(captured: Episode, recorded: Episode) -> bool:
    if recorded.session:
        return recorded.session == captured.session
    return bool(_files(captured) & _files(recorded) or _errors(captured) & _errors(recorded))


def _files(episode: Episode) -> set[str]:
    return {*episode.files_modified, *episode.context.files_involved}


def _errors(episode: Episode) -> set[str]:
    """The errors of an episode, each by its form, and the rules that they name."""
    messages = [error.message for error in episode.errors_encountered]
    found = (signature(message) for message in messages)
    rules = (rule for message in messages for rule in _RULE.findall(message))
    return {*(known.broad for known in found if known), *rules}
