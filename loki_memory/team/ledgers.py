"""Ledgers, and checkpoints that wait: hooks and other background work write those.

A ledger is a tracked file, and background work changes none: a tree that is always dirty refuses
every `git pull --rebase`. So checkpoints wait in this machine's own zone, one line each, until a
command writes them into the ledgers. A line is appended under a lock and is on disk when
`note_checkpoint` returns; it is removed only after the ledger is written, so that a crash in
between repeats it, which changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from loki_memory.errors import InvalidRecord
from loki_memory.files import disk
from loki_memory.files.layout import place
from loki_memory.files.lock import locked
from loki_memory.files.store import failures_named
from loki_memory.home import parsed
from loki_memory.index import gate
from loki_memory.models import Handoff, Ledger, parse
from loki_memory.models.ids import file_stem
from loki_memory.models.team import is_addressed

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.home import Home
    from loki_memory.homes import OpenWorkspace

_OUTSIDE = ("external", "import")
_SETS = ("patterns_learned", "handoffs")  # of the context: these only grow
_LINE = 300  # characters of a report in a ledger


def note_checkpoint(workspace: OpenWorkspace, agent: str, fields: Mapping[str, Any]) -> Ledger:
    """Keep a checkpoint until a command writes it; `fields` are the changed fields of a ledger."""
    import orjson

    from loki_memory.files.redaction import redact_value

    ledger = checkpoint_ledger(agent, fields, workspace.now(), workspace.origin)
    line = orjson.dumps(redact_value(ledger.document())) + b"\n"
    with failures_named(_file(workspace.home)), _held(workspace.home):
        _append(_file(workspace.home), line)
    return ledger


def headline(text: str) -> str:
    """The first line of an agent's message, redacted and short enough for a ledger."""
    from loki_memory.files.redaction import clip

    lines = (line.strip() for line in text.splitlines())
    return clip(next(filter(None, lines), ""), _LINE)


def waiting_checkpoints(home: Home) -> dict[str, Ledger]:
    """The checkpoints that wait, joined by agent."""
    with failures_named(_file(home)):
        return _by_agent(disk.read_bytes(_file(home)) or b"")


def take_over_checkpoints(workspace: OpenWorkspace) -> list[Ledger]:
    """Write waiting checkpoints into the ledgers, and return those.

    A checkpoint whose ledger cannot be read keeps waiting, with a notice.
    """
    path = _file(workspace.home)
    with failures_named(path):
        if not os.path.exists(path):
            return []
        with _held(workspace.home):
            waiting = _by_agent(disk.read_bytes(path) or b"")
            written, kept = _written(workspace, waiting)
            _keep(path, kept)
    return written


def checkpoint_ledger(agent: str, fields: Mapping[str, Any], now: str, origin: str) -> Ledger:
    """A ledger with the fields of a checkpoint; raises InvalidRecord."""
    document = {"last_checkpoint": now, **fields, "agent_id": agent, "origin": origin}
    return parse(Ledger, document)


def known_fields(workspace: OpenWorkspace, agent: str) -> dict[str, Any]:
    """An agent's ledger, joined with the checkpoints that wait to be written into it."""
    import orjson

    waiting = waiting_checkpoints(workspace.home).get(agent)
    found = workspace.home.look_up(f"ledger-{file_stem(agent)}")
    ledger = parse(Ledger, orjson.loads(found[1])) if found else None
    both = joined(ledger, waiting) if waiting else ledger
    return both.document() if both else {}


def joined(there: Ledger | None, new: Ledger) -> Ledger:
    """Join a ledger with a checkpoint: the later one wins, field by field.

    An origin from outside stays: its words are still in the ledger.
    """
    if there is None:
        return new
    first, last = there.document(), new.document()
    if there.when() > new.when():
        first, last = last, first
    inner = {name: {**_part(first, name), **_part(last, name)} for name in ("state", "context")}
    for name in _SETS:
        both = [*_part(first, "context").get(name, ()), *_part(last, "context").get(name, ())]
        inner["context"] |= {name: both} if both else {}
    given = {name: value for name, value in inner.items() if value}
    outside = next((origin for origin in _OUTSIDE if origin in {there.origin, new.origin}), None)
    origin = {"origin": outside} if outside else {}
    return parse(Ledger, {**first, **last, **given, **origin})


def put(workspace: OpenWorkspace, change: Change, new: Ledger) -> Ledger:
    """Join a checkpoint into an agent's ledger, wherever its file is."""
    path = workspace.home.place_of(new.id) or place(new)
    there = change.record(path)
    known = there if isinstance(there, Ledger) else None
    return change.put(joined(known, new), path)  # type: ignore[return-value]


def _part(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    return dict(document.get(name) or {})


def _written(
    workspace: OpenWorkspace, waiting: Mapping[str, Ledger]
) -> tuple[list[Ledger], list[Ledger]]:
    """Write ledgers; returns those that were written, and the checkpoints that keep waiting."""
    written: list[Ledger] = []
    kept: list[Ledger] = []
    workspace.home.before_write("ledgers/")
    with workspace.store.change() as change:
        for agent, new in waiting.items():
            try:
                written.append(put(workspace, change, new))
            except InvalidRecord as error:
                kept.append(new)
                workspace.notices.append(f"a checkpoint of {agent} waits: {error}")
    return written, kept


def _by_agent(data: bytes) -> dict[str, Ledger]:
    found: dict[str, Ledger] = {}
    for checkpoint in _ledgers(data.split(b"\n")):
        found[checkpoint.agent_id] = joined(found.get(checkpoint.agent_id), checkpoint)
    return dict(sorted(found.items()))


def _ledgers(lines: Iterable[bytes]) -> Iterator[Ledger]:
    """Parse the complete lines; a line that a killed writer left is skipped."""
    import orjson

    for line in lines:
        try:
            yield parse(Ledger, orjson.loads(line))
        except (orjson.JSONDecodeError, InvalidRecord):
            continue


# -- the file ------------------------------------------------------------------------------------


def _file(home: Home) -> str:
    return f"{home.layout.local}/checkpoints/waiting.jsonl"


def _held(home: Home) -> AbstractContextManager[None]:
    folder = home.layout.local / "checkpoints"
    disk.make_folder(folder)
    return locked(folder / "lock", home.config.get("store.lock_seconds"))


def _append(path: str, line: bytes) -> None:
    """Append a line, on a line of its own even after a torn one."""
    is_new = not os.path.exists(path)
    fd = disk.open_to_change(path, append=True)
    try:
        size = os.fstat(fd).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        if os.write(fd, b"\n" * torn + line) < len(line) + torn:
            os.ftruncate(fd, size)
            raise OSError("the disk is full")
        os.fsync(fd)
    finally:
        os.close(fd)
    if is_new:
        disk.flush_folder(os.path.dirname(path))


def _keep(path: str, kept: Sequence[Ledger]) -> None:
    """Keep only the checkpoints that still wait."""
    import orjson

    if kept:
        disk.write_bytes(path, b"".join(orjson.dumps(ledger.document()) + b"\n" for ledger in kept))
    else:
        disk.remove(path)


# -- The state of agents: ledgers with waiting checkpoints, and handoffs --------------------------


def ledgers(workspace: OpenWorkspace, held: Container[str] | None = None) -> list[Ledger]:
    """Every agent's ledger, joined with its waiting checkpoint, newest first."""
    waiting = waiting_checkpoints(workspace.home)
    rows = gate.ledgers(workspace.index)
    if held is not None:
        rows = [row for row in rows if row[2] and row[0] not in held]
    known = (parsed("ledger", body) for _, body, _ in rows)
    found = [ledger for ledger in known if isinstance(ledger, Ledger)]
    complete = [joined(ledger, waiting.pop(ledger.agent_id, ledger)) for ledger in found]
    complete += waiting.values()
    return sorted(sorted(complete, key=lambda ledger: ledger.id), key=Ledger.when, reverse=True)


def ledger_of(
    workspace: OpenWorkspace, agent: str, held: Container[str] | None = None
) -> Ledger | None:
    """The ledger of an agent, also by its short name; None if it has not checked in."""
    found = ledgers(workspace, held)
    same = [ledger for ledger in found if ledger.agent_id == agent]
    near = [ledger for ledger in found if "-" in agent and is_addressed(agent, ledger.agent_id)]
    return next(iter([*same, *near]), None)


def handoffs_to(workspace: OpenWorkspace, agent: str, held: Container[str] = ()) -> list[Handoff]:
    """Open handoffs to an agent or its role, and those that it accepted, newest first.

    Without an agent: all open ones. Handoffs that were imported, or that come from outside, are
    left out.
    """
    return [
        handoff
        for handoff in _standing(workspace)
        if handoff.id not in held and _concerns(handoff, agent)
    ]


def _standing(workspace: OpenWorkspace) -> Iterator[Handoff]:
    for body in gate.standing_handoffs(workspace.index):
        record = parsed("handoff", body)
        if isinstance(record, Handoff):
            yield record


def _concerns(handoff: Handoff, agent: str) -> bool:
    if handoff.state == "open":
        return not agent or is_addressed(handoff.to_agent or "", agent)
    return bool(agent) and is_addressed(handoff.accepted_by or handoff.to_agent or "", agent)
