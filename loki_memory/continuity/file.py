"""Working memory: CONTINUITY.md, where an agent reads what matters now and notes what it learns.

The block between our markers is ours. Notes of the agent under its own headings become memory
before the block is rendered again, each note once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.continuity.block import Now, has_block, place, render
from loki_memory.continuity.harvest import harvest
from loki_memory.editing.edits import remember
from loki_memory.errors import RejectedValue
from loki_memory.files import disk
from loki_memory.files.git_files import may_be_tracked
from loki_memory.files.redaction import redact
from loki_memory.files.store import failures_named
from loki_memory.home.views import brought_content
from loki_memory.index.gate import latest_episodes, standing
from loki_memory.injection.context import EPISODES, found_for, injected, warnings
from loki_memory.injection.gate import Gate, Withheld, as_hit, is_silent
from loki_memory.injection.line import BulletLine, InjectedLine, gist, line, tellable
from loki_memory.injection.nearest import SessionGoal, general, nearest, noted
from loki_memory.injection.session_state import last_goal, note_goal
from loki_memory.models.ids import digest, file_stem
from loki_memory.models.team import is_addressed
from loki_memory.recall.recall import note_shown
from loki_memory.recall.result import Recollection
from loki_memory.team.ledgers import handoffs_to, ledgers

if TYPE_CHECKING:
    from loki_memory.continuity.harvest import Noted
    from loki_memory.homes import OpenWorkspace

_TRIES = 3  # at writing a file that another process writes at the same time
_STANDING = "standing"  # the group of what holds whatever the goal is
_RULES = 4  # of these
_PATTERNS = "relevant_patterns"  # the group of what was learned
_LESSONS, _NEAR = ("fact", "pattern"), 4  # lessons near the goal, and as many for any goal
_STANDINGS = 12  # lines about the state of agents
_TRACKED = (
    "git tracks {0}, so memory of this machine is kept out of it: `git rm --cached {0}`, or "
    "`loki-mem config continuity.track true` to share it"
)


class Reader(NamedTuple):
    """The reader of the block, for the journal; without a surface nobody reads it."""

    session: str | None = None
    surface: str = "continuity"


_NOBODY = Reader()


def continuity(
    workspace: OpenWorkspace,
    goal: str | None,
    agent: str,
    files: Sequence[str],
    budget: int | None,
    reader: Reader = _NOBODY,
) -> tuple[Path, bool]:
    """Harvest, render, replace the block; returns the path, and whether bytes changed."""
    path = continuity_path(workspace, agent)
    with failures_named(path):
        disk.refuse_links(path)
        if workspace.home.trust().is_trusted:  # else a clone may have brought the file
            _take_own_and_brought(workspace, path, agent)
    goal = redact(goal) if goal is not None else last_goal(workspace, agent)
    is_kept_out = _is_kept_out(workspace, path)
    now = Now("", (), ()) if is_kept_out else what_matters(workspace, goal, agent, files, reader)
    block = render(now, _limit(workspace, budget))
    changed = _replace_block(path, block, add=not is_kept_out)
    note_goal(workspace, agent, goal)
    return path, changed


def _is_kept_out(workspace: OpenWorkspace, path: Path) -> bool:
    """Check if a branch brought the file: the next commit of all changes would publish the block.

    Where only git knows and a hook must not ask it, the file counts as tracked.
    """
    root = workspace.layout.root
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
    if workspace.config.get("continuity.track") or not may_be_tracked(root, [name]):
        return False
    if not workspace.home.starts_git:
        return True
    is_tracked = bool(workspace.home.tracked([name]))
    workspace.notices += [_TRACKED.format(name)] if is_tracked else []
    return is_tracked


def _replace_block(path: Path, block: str, *, add: bool) -> bool:
    """Put the block into the file, or only in place of one; tells whether bytes changed."""
    for _ in range(_TRIES):
        with failures_named(path):
            before = disk.read_bytes(path)
            after = place(before, block) if add or has_block(before) else before
            if after is None or after == before:
                return False
            if disk.read_bytes(path) == before:  # an agent may write in between
                disk.write_bytes(path, after, private=True)
                return True
    return True


def refresh(workspace: OpenWorkspace) -> bool:
    """Render CONTINUITY.md for the last goal where it is in use; tells whether bytes changed.

    Nobody reads it at this moment, so nothing counts as shown.
    """
    if not continuity_path(workspace, "").exists() or is_silent(workspace):
        return False
    return continuity(workspace, None, "", (), None, Reader(surface=""))[1]


def block_text(
    workspace: OpenWorkspace,
    goal: str | None,
    agent: str,
    files: Sequence[str],
    budget: int | None,
    reader: Reader = _NOBODY,
) -> str:
    """Render the block alone, without writing."""
    goal = redact(goal) if goal is not None else last_goal(workspace, agent)
    now = what_matters(workspace, goal, agent, files, reader)
    return render(now, _limit(workspace, budget))


def _limit(workspace: OpenWorkspace, budget: int | None) -> int:
    return workspace.config.get("continuity.budget") if budget is None else budget


def continuity_path(workspace: OpenWorkspace, agent: str) -> Path:
    loki = workspace.layout.loki
    return loki / "continuity" / f"{file_stem(agent)}.md" if agent else loki / "CONTINUITY.md"


def what_matters(
    workspace: OpenWorkspace, goal: str, agent: str, files: Sequence[str], reader: Reader = _NOBODY
) -> Now:
    """Collect what passes the gate: memories for a goal, warnings, and the state of agents."""
    gate = Gate(workspace)
    if goal.strip():
        found, _, _ = found_for(
            workspace, goal, "", files, "", gate, unasked=True, session=reader.session
        )
    else:
        found = {} if is_silent(workspace) else _without_goal(workspace, gate)
    if not is_silent(workspace):
        found = _with_lessons(workspace, found, SessionGoal(goal, files), gate)
        found = _with_standing(workspace, found, gate)
    hits = [hit for group in found.values() for hit, _ in group]
    if reader.surface:
        note_shown(workspace, reader.surface, goal, hits, reader.session)
    lines = {name: [line(told) for _, told in group] for name, group in found.items()}
    memories = _in_turn(
        lines.get(name, []) for name in (_PATTERNS, "applicable_skills", "episodes")
    )
    return Now(
        goal,
        memories,
        lines.get("avoid_these", []),
        _handoffs(workspace, agent, gate.held),
        _ledger(workspace, agent, gate.held),
        lines.get(_STANDING, []),
    )


def _with_lessons(
    workspace: OpenWorkspace,
    found: dict[str, list[tuple[Recollection, InjectedLine]]],
    work: SessionGoal,
    gate: Gate,
) -> dict[str, list[tuple[Recollection, InjectedLine]]]:
    """Add the lessons that a brief tells: those nearest to the goal, or without one what people put
    into words last; and those for any goal.
    """
    has_goal = bool(work.goal.strip())
    near = nearest(workspace, work, "") if has_goal else []
    at_place = {lesson.hit.id for lesson in near if lesson.near.is_at_place}
    told = [lesson.hit for lesson in near] if has_goal else noted(workspace)
    hits = {hit.id: hit for hit in told if hit.kind in _LESSONS}
    chosen = [
        *islice(gate.passed(hits.values(), at_place), _NEAR),
        *islice(gate.passed(general(workspace)), _NEAR),
    ]
    known = found.get(_PATTERNS, [])
    ids = {hit.id for hit, _ in known}
    new = {hit.id: hit for hit, _ in chosen if hit.id not in ids}
    return {**found, _PATTERNS: [*known, *injected(workspace, new.values(), gate.held)]}


def _with_standing(
    workspace: OpenWorkspace,
    found: dict[str, list[tuple[Recollection, InjectedLine]]],
    gate: Gate,
) -> dict[str, list[tuple[Recollection, InjectedLine]]]:
    """Add what holds whatever the goal is, each memory in one place."""
    rules = [
        as_hit("fact", rule) for home in workspace.homes for rule in standing(home.index, _RULES)
    ]
    passed = (hit for hit, _ in islice(gate.passed(rules), _RULES))
    first = injected(workspace, passed, gate.held)
    known = {hit.id for hit, _ in first}
    rest = {
        name: [(hit, told) for hit, told in group if hit.id not in known]
        for name, group in found.items()
    }
    return {_STANDING: first, **rest}


def _in_turn(lists: Iterable[list[BulletLine]]) -> list[BulletLine]:
    """The first of each list, then the second of each: every kind has its best in any budget."""
    return [item for row in zip_longest(*lists) for item in row if item is not None]


def _without_goal(
    workspace: OpenWorkspace, gate: Gate
) -> dict[str, list[tuple[Recollection, InjectedLine]]]:
    """Memories without a goal: recurring warnings, and the latest episodes."""
    workspace.home.ensure("folders")
    episodes = latest_episodes(workspace.index)
    latest = (Recollection(name, "episode", title) for name, title in episodes)
    passed = (hit for hit, _ in islice(gate.passed(latest), EPISODES))
    return {
        "avoid_these": warnings(workspace, (), gate, unasked=True),
        "episodes": injected(workspace, passed, gate.held),
    }


def _handoffs(workspace: OpenWorkspace, agent: str, held: Withheld) -> list[BulletLine]:
    lines = (
        BulletLine(
            handoff.id,
            handoff.kind,
            tellable(handoff.kind, {}, gist(handoff.kind, handoff.title(), handoff.document())),
        )
        for handoff in handoffs_to(workspace, agent, held)
        if handoff.state == "open"
    )
    return [line for line in lines if line.text]


def _ledger(workspace: OpenWorkspace, agent: str, held: Withheld) -> list[str]:
    """The state of agents: task, goal and blockers."""
    lines: list[str] = []
    for ledger in ledgers(workspace, held):
        if (
            not agent
            or is_addressed(agent, ledger.agent_id)
            or is_addressed(ledger.agent_id, agent)
        ):
            lines += [
                f"{ledger.agent_id}: {name.replace('_', ' ')}: {text}"
                for name, text in _stand(ledger.document())
                if tellable(ledger.kind, {}, text)
            ]
    return lines[:_STANDINGS]


def _stand(record: dict[str, Any]) -> list[tuple[str, str]]:
    context_ = record.get("context") if isinstance(record.get("context"), dict) else {}
    both = {**(context_ or {}), **record}
    names = ("current_goal", "current_task", "blocked_by", "blockers", "next", "next_up")
    return [
        (name, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
        for name in names
        if (value := both.get(name))
    ]


# -- notes of the agent --------------------------------------------------------------------------


def _take_own_and_brought(workspace: OpenWorkspace, path: Path, agent: str) -> None:
    """Take notes; those that git brought from elsewhere are imported, and not this agent's.

    Where git may track the file and a hook must not ask it, notes wait for the next command.
    """
    name = path.relative_to(workspace.layout.loki).as_posix()
    brought = brought_content(workspace.home, name, review_counts=False)
    if brought is not None:
        take_notes(workspace, disk.read_bytes(path) or b"", agent, brought=brought)


def take_notes(workspace: OpenWorkspace, text: bytes, agent: str, *, brought: bytes = b"") -> int:
    """Remember what an agent noted under its own headings, each note once.

    `brought` is the file as somebody else committed it: its notes have the origin `import`.
    """
    path = workspace.layout.local / "harvested"
    known = set((disk.read_bytes(path) or b"").decode("ascii", "ignore").split())
    fresh = {name: note for name, note in _notes(text).items() if name not in known}
    foreign = _notes(brought) if fresh and brought else {}
    for name, note in fresh.items():
        writer = type(workspace)(workspace.home, origin="import") if name in foreign else workspace
        _keep(writer, note, agent)
    if fresh:
        disk.write_bytes(path, ("\n".join(sorted(known | fresh.keys())) + "\n").encode())
    return len(fresh)


def _notes(text: bytes) -> dict[str, Noted]:
    """The notes of a file by their digests. Secrets go first, because a long note is cut."""
    clean = redact(text.decode("utf-8", "surrogateescape"))
    found = harvest(clean.encode("utf-8", "surrogateescape"))
    return {digest("note", note.kind, note.text): note for note in found}


def _keep(workspace: OpenWorkspace, note: Noted, agent: str) -> None:
    category = "decision" if note.kind == "fact" else None
    try:
        fields = {"category": category, "scope": "project", "by": agent or None}
        remember(workspace, note.text, note.kind, fields)
    except RejectedValue:
        said = f"a note in CONTINUITY.md was rejected before and is not taken: {note.text}"
        workspace.notices.append(said)
