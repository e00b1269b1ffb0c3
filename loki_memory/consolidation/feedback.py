"""Feedback: which memories an episode had before it, and whether they helped.

An episode that does not say so itself is completed from the journal when it is recorded. From then
on the episode is the witness; nothing else of this machine's journal reaches consolidation.

*Which.* What was shown, opened or judged in the episode's session since the one before it was
recorded: memory is asked before work begins, so up to four hours before `timestamp`; until shortly
after the episode ended, or for want of a duration until it was recorded. What names no session
counts for whoever worked at that time.

*Whether it helped* is what somebody said. Where nobody did, the outcome tells it in two cases only,
both of a warning about an error that the episode met: what it advises was done and the episode
succeeded; it was done and the same error came again, or was all that a failed episode met. All else
stays open. That a memory was shown, or opened, before a success proves nothing.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import IdTaken, LokiMemoryError
from loki_memory.files.layout import PRIVATE, place
from loki_memory.journal import name_of
from loki_memory.models import AntiPattern, Episode, Memory

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.home import Home

_REACH = 4 * 3600  # seconds; work that goes on for longer is told in several episodes
_AFTERWARDS = 600  # seconds after the end in which somebody still says what helped
_MOST = 20  # memories: about as many as one context shows
_FOLLOWED = 0.6  # of the words of an advice that the error does not say anyway
_ACTS = {"=": "opened", "+": "helpful", "-": "unhelpful"}  # as a folded journal writes them


class Span(NamedTuple):
    """The time of an episode, and whose it was."""

    begin: str
    end: str
    session: str
    episode: str

    def holds(self, line: Mapping[str, Any]) -> bool:
        if line.get("episode"):
            return bool(line["episode"] == self.episode)
        return self.begin < line["at"] <= self.end and line["session"] in {"", self.session}


class ShownMemories(NamedTuple):
    """Entries of the journal within a span: ids and when they were last shown or read."""

    last: dict[str, str]
    opened: set[str]
    said: dict[str, bool]  # somebody's last word on whether it helped

    def ids(self) -> list[str]:
        """Return those that somebody judged first, then those that were read, then the latest."""
        rest = sorted(self.last, key=lambda entry: (self.last[entry], entry), reverse=True)
        return list(dict.fromkeys([*sorted(self.said), *sorted(self.opened), *rest]))


# -- recording -----------------------------------------------------------------------------------


def completed(home: Home, episodes: Sequence[Episode], now: str) -> dict[str, Episode]:
    """By id: the episodes that do not say what they recalled, with what the journal says.

    Never fails a recording: a journal that cannot be read is a notice.
    """
    silent = {
        episode.id: episode for episode in episodes if "recalled" not in episode.model_fields_set
    }
    try:
        lines = home.journal.recent() if silent else []
        spans = _spans(silent.values(), lines, now) if lines else []
        return {
            entry.id: _completed(home, entry, shown_memories(lines, span)) for entry, span in spans
        }
    except (OSError, sqlite3.DatabaseError, LokiMemoryError) as error:
        home.notices.append(f"stored without what was recalled before it: {error}")
        return {}


def create(change: Change, given: Episode, whole: Episode, path: str) -> Episode:
    """Store an episode as completed. One that stands there and says the same stays as it is:
    what it recalled was written when it was recorded first.
    """
    from loki_memory.files.store import sealed

    try:
        return change.create(whole, path)  # type: ignore[return-value]
    except IdTaken:
        told = sealed(given)[0]
        there = change.record(path or place(told))
        if not isinstance(there, Episode) or _said(there, given) != _said(told, given):
            raise
        return there


def _said(episode: Memory, given: Episode) -> dict[str, Any]:
    """Return what an episode tells, less what is not the teller's to say or was left open."""
    open_ = {"origin"} if "recalled" in given.model_fields_set else {"origin", "recalled"}
    return {name: value for name, value in episode.document().items() if name not in open_}


def _completed(home: Home, episode: Episode, found: ShownMemories) -> Episode:
    is_private = episode.scope in {"local", "session"}
    paths = _standing(home, found.ids(), is_private=is_private)
    if not paths:
        return episode
    judge = _judge(home, episode)
    recalled = []
    for name in sorted(paths):
        helpful = found.said.get(name)
        helpful = judge(paths[name]) if helpful is None else helpful
        recalled.append({"id": name} | ({} if helpful is None else {"helpful": helpful}))
    return episode.changed(recalled=recalled)


def _standing(home: Home, ids: Iterable[str], *, is_private: bool) -> dict[str, str]:
    """The first few memories that this workspace has, with their files."""
    standing = ((name, path) for name in ids if (path := _path(home, name)))
    named = (pair for pair in standing if is_private or not pair[1].startswith(PRIVATE))
    return dict(islice(named, _MOST))  # what is private is not named where others read it


def _path(home: Home, name: str) -> str:
    path = home.record_path(name) or home.place_of(name) or ""
    return path if path and os.path.isfile(home.layout.file(path)) else ""


# -- when ----------------------------------------------------------------------------------------


def _spans(
    episodes: Iterable[Episode], lines: Sequence[Any], now: str
) -> Iterator[tuple[Episode, Span]]:
    """The span of each episode. What was shown once counts for one of a session's episodes."""
    before: dict[str, str] = {}
    ordered = sorted(episodes, key=lambda episode: (episode.timestamp, episode.id))
    for number, episode in enumerate(ordered):
        session = name_of(episode.session)
        begin = max(
            _later(episode.timestamp, -_REACH),
            before.get(session) or _recorded(lines, session, episode.timestamp),
        )
        later = (
            other.timestamp for other in ordered[number + 1 :] if other.session == episode.session
        )
        end = min(_end(episode), now, next(later, now))
        before[session] = end
        yield episode, Span(begin, end, session, episode.id)


def _end(episode: Episode) -> str:
    lasted = episode.duration_seconds
    return _later(episode.timestamp, _REACH if lasted is None else lasted + _AFTERWARDS)


def _recorded(lines: Iterable[Any], session: str, before: str) -> str:
    """When the last episode of a session was recorded, or the last that names none."""
    last = ""
    for line in lines:
        with suppress(KeyError, TypeError, AttributeError):  # somebody else's line
            of, at = line["of"], line["at"]
            is_one = of == session if session else of.startswith(f"{Episode.prefix}-")
            if line["act"] == "outcome" and is_one and last < at <= before:
                last = at
    return last


def _later(moment: str, seconds: float) -> str:
    try:
        later = datetime.fromisoformat(moment) + timedelta(seconds=seconds)
    except (OverflowError, ValueError):  # no time at all, or beyond the calendar
        return moment
    return _moment(later)


def _moment(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


# -- what was seen -------------------------------------------------------------------------------


def shown_memories(lines: Iterable[Any], span: Span) -> ShownMemories:
    """Return what lines of the journal say of a span; what is not a line of ours is passed over."""
    found = ShownMemories({}, set(), {})
    for line in lines:
        with suppress(KeyError, TypeError, ValueError, AttributeError, OverflowError):
            for entry in _unfolded(line):
                if span.holds(entry):
                    _take(entry, found)
    return found


def _take(line: Mapping[str, Any], found: ShownMemories) -> None:
    act, at = line["act"], str(line["at"])
    if act == "shown":
        found.last.update({str(name): at for name, _ in line["ids"]})
    elif act == "opened":
        found.opened.add(str(line["id"]))
    elif act in {"helpful", "unhelpful"}:
        found.said[str(line["id"])] = act == "helpful"


def _unfolded(line: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A line, or the uses of the last days that a folded one stands for."""
    if line["act"] != "used":
        yield line
        return
    for key, when in line["seen"].items():
        at = _moment(datetime.fromtimestamp(when, UTC))
        session = "" if key[1:] == at[:10] else key[1:]
        yield {"act": _ACTS[key[0]], "at": at, "session": session, "id": line["id"]}


# -- whether it helped ---------------------------------------------------------------------------


def _judge(home: Home, episode: Episode) -> Callable[[str], bool | None]:
    """Return what the outcome tells of the memory in a file."""
    if not _met_errors(episode):
        return lambda _: None

    def verdict_on(path: str) -> bool | None:
        record = home.store.record(path) if "/anti-patterns/" in path else None
        return verdict(record, episode) if isinstance(record, AntiPattern) else None

    return verdict_on


def teaches(episode: Episode) -> bool:
    """Check whether an episode met an error, states something, or says what helped or misled it."""
    is_judge = any(recalled.helpful is not None for recalled in episode.recalled)
    return _met_errors(episode) or bool(episode.statements) or is_judge


def _met_errors(episode: Episode) -> bool:
    return bool(episode.errors_encountered) or any(action.error for action in episode.action_log)


def verdict(warning: AntiPattern, episode: Episode) -> bool | None:
    """Check whether heeding a warning helped in an episode; None where that is not clear."""
    from loki_memory.consolidation.failures import mishaps

    met = mishaps(episode)
    same = [mishap for mishap in met if _is_about(warning, mishap.line) or mishap.id == warning.id]
    heeded = [mishap for mishap in same if mishap.do and _follows(warning, mishap.do)]
    helped = episode.outcome == "success" and any(mishap.worked for mishap in heeded)
    ended_so = episode.outcome == "failure" and bool(heeded) and len(same) == len(met)
    misled = ended_so or _came_again(warning, episode)
    return helped if helped != misled else None


def _is_about(warning: AntiPattern, error: str) -> bool:
    from loki_memory.models.error_signature import signature

    found = signature(error)
    return found is not None and found in map(signature, warning.errors())


def _follows(warning: AntiPattern, done: str) -> bool:
    """Check whether what was done is what the warning advises: most of what is new in its words."""
    from loki_memory.consolidation.failures import group
    from loki_memory.consolidation.similarity import FUNCTION_WORDS, words

    known = FUNCTION_WORDS.union(*map(words, warning.errors()))
    took = words(_put_in(done))
    for advice in filter(
        None, [warning.prevention, *(resolution.do for resolution in warning.resolutions)]
    ):
        new = words(_put_in(group(advice))) - known
        if new and len(new & took) >= _FOLLOWED * len(new):
            return True
    return False


def _put_in(text: str) -> str:
    """Of an exchange (`conductors -> conductor`) what came in; else all of it."""
    return text.rpartition("->")[2]


def _came_again(warning: AntiPattern, episode: Episode) -> bool:
    """Check whether the error came again after what the warning advises had been done about it."""
    log = episode.action_log
    failed = [
        at for at, action in enumerate(log) if action.error and _is_about(warning, action.error)
    ]
    between = log[failed[0] + 1 : failed[-1] + 1] if failed else []
    tried = [f"{action.action} {action.target or ''}" for action in between]
    told = [
        met for met in episode.errors_encountered if _is_about(warning, met.message or met.type)
    ]
    tried += [met.resolution for met in told[:-1] if met.resolution]
    return any(_follows(warning, entry) for entry in tried)
