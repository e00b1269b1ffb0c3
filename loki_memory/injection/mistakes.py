"""Mistakes to avoid: which warnings come before a task, in which order, and what each line says.

Errors come in families: a command, or a tool, complains of one thing today and of another
tomorrow, and whoever uses it again may meet any of them. So a family has one line: who complains,
of what most often, and what helped. A command whose complaints differ each time (a linter's do) is
told by the line with which it announces that it failed.

What was met by most sessions comes first, where a session counts less the longer it is past, and
what is near the goal as if it had been met more often.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from math import exp2
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from loki_memory.injection.line import family_gist, gist, tellable
from loki_memory.models.error_signature import head, signature, with_command
from loki_memory.models.prompt_injection import without_instructions
from loki_memory.recall.gate import PROVEN, TRUSTED
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.home import Home
    from loki_memory.workspace import Workspace

_HALF_LIFE = 30  # days; of the decayed counters in the study the one that foretold reuse best
_MEMBERS = 3  # complaints that a line tells
_FIRST = 5  # lines of families, before what else is near the goal
# The warning nearest to the goal counts as if 1 + this many times as many sessions had met it, the
# next half as many more. Between 1 and 5 the share of errors that were warned of stays the same
# (benchmarks/prewarn).
_NEARNESS = 3
_SAMPLES = 6  # newest episodes that are asked how a command announces its failure
_RUNNING = re.compile(r"\s*\(running ([^()]*)\)$")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ANNOUNCES = re.compile(
    r"(?i)\b(?:errors?|err!|fail(?:s|ed|ure)?|fatal|conflict|panic|abort(?:ed|ing)?|denied|"
    r"not found|cannot|could not|unable|undefined|invalid|no such)\b"
)
_EXIT = re.compile(r"(?i)^\W*(?:exit (?:code|status)|command exited)\b.*$")
_FIGURES = re.compile(r"\d+")


class FamilyMember(NamedTuple):
    """A warning, and when it was met."""

    id: str
    text: str  # what fails
    confidence: float | None
    met: Mapping[str, str]  # session -> its last day; none if somebody only said so
    episodes: Sequence[str]  # newest last
    kind: str = "anti-pattern"
    status: str = "active"

    @property
    def head(self) -> str:
        """The command or tool; empty if the warning names none."""
        return _head(self.text)

    @property
    def rank(self) -> tuple[float, str]:
        """Among equals: what is surer comes first."""
        return (-(self.confidence or 0), self.id)

    @property
    def complaint(self) -> str:
        return _RUNNING.sub("", self.text)


def _head(text: str) -> str:
    found = _RUNNING.search(text)
    return found[1] if found else ""


def _group(name: str, text: str) -> str:
    """What makes warnings one family: the command; a warning without one stands alone."""
    return _head(text) or name


class Family(NamedTuple):
    """Warnings about one command or tool, what matters most comes first."""

    head: str
    members: Sequence[FamilyMember]
    weight: float  # sessions that met one of them, each by its age
    weights: Mapping[str, float]  # the same for each of them, by its id

    @property
    def name(self) -> str:
        return _group(self.members[0].id, self.members[0].text)

    @property
    def episodes(self) -> list[str]:
        return sorted({one for member in self.members for one in member.episodes})


def families(members: Iterable[FamilyMember]) -> list[Family]:
    """Warnings by who complains; most met first. Ages count from the newest day there is."""
    groups: dict[str, list[FamilyMember]] = {}
    for one in members:
        groups.setdefault(_group(one.id, one.text), []).append(one)
    days = (day for group in groups.values() for one in group for day in one.met.values())
    newest = max(days, default="")
    return ordered([_family(group, newest) for group in groups.values()], {})


def _family(group: Sequence[FamilyMember], newest: str) -> Family:
    met: dict[str, str] = {}
    for one in group:
        for session, day in one.met.items():
            met[session] = max(day, met.get(session, ""))
    weights = {one.id: _weight(one.met, newest) for one in group}
    return Family(group[0].head, group, _weight(met, newest), weights)


def _weight(met: Mapping[str, str], newest: str) -> float:
    """Sessions by their age; what somebody said without having met it counts as one of today."""
    if not met:
        return 1.0
    return round(sum(exp2(-_days(day, newest) / _HALF_LIFE) for day in met.values()), 6)


def _days(day: str, newest: str) -> int:
    if not day or not newest:
        return 0
    return (date.fromisoformat(newest) - date.fromisoformat(day)).days


def ordered(found: Iterable[Family], near: Mapping[str, int]) -> list[Family]:
    """Families, and the warnings of each, as they matter now. `near` tells how near to the goal a
    warning is, by its id, and a family, by its name: 1 is nearest.
    """

    def matters(name: str, weight: float) -> float:
        return weight * (1 + (_NEARNESS / near[name] if name in near else 0))

    def within(one: Family) -> Family:
        members = sorted(one.members, key=lambda m: (-matters(m.id, one.weights[m.id]), *m.rank))
        return one._replace(members=members)

    return sorted(
        map(within, found), key=lambda one: (-matters(one.name, one.weight), *one.members[0].rank)
    )


# -- from the index --------------------------------------------------------------------------------


def mistakes(
    workspace: Workspace,
    hits: Sequence[Recollection],
    most: int,
    held: Collection[str] = (),
    *,
    unasked: bool = False,
) -> list[tuple[Recollection, str]]:
    """The warnings for a task, best first, each with its line, without those that are held back;
    `hits` are near the goal. Unasked, only those that are proven.
    """
    members = list(_members(workspace, held, unasked=unasked))
    known = {_group(one.id, one.text) for one in members}
    members += [
        FamilyMember(hit.id, hit.title, hit.confidence, {}, [], hit.kind, hit.status)
        for hit in hits
        if _group(hit.id, hit.title) not in known  # a learning says what its family says
    ]
    members = [one for one in members if _is_told(workspace, one)]
    best = ordered(families(members), _near(hits))
    near = {one.id: one for one in members}
    chosen = _chosen(best, [near[hit.id] for hit in hits if hit.id in near])
    return [(_recollection(one, hits), _line(workspace, one)) for one in chosen[:most]]


def _chosen(best: Sequence[Family], near: Iterable[FamilyMember]) -> list[Family]:
    """First some families; then what is near the goal and is not told in their lines, each in one
    of its own; then more families.
    """
    first = best[:_FIRST]
    told_of = {one.id for family in first for one in shown(family)}
    alone = [Family(one.head, [one], 0, {}) for one in near if one.id not in told_of]
    told_of |= {one.members[0].id for one in alone}
    return [*first, *alone, *(one for one in best[_FIRST:] if one.members[0].id not in told_of)]


def _near(hits: Iterable[Recollection]) -> dict[str, int]:
    """The place of each hit, and of the command that it speaks of."""
    near: dict[str, int] = {}
    for at, hit in enumerate(hits, 1):
        near.setdefault(hit.id, at)
        near.setdefault(_group(hit.id, hit.title), at)
    return near


def _is_told(workspace: Workspace, member: FamilyMember) -> bool:
    """Whether a warning may be told; its record is read where its words give a reason to ask."""
    if without_instructions(member.text) == member.text:
        return True
    return bool(tellable(member.kind, _record(workspace, member.id), member.text))


def _members(workspace: Home, held: Collection[str], *, unasked: bool) -> Iterator[FamilyMember]:
    gate = f"{TRUSTED} AND {PROVEN}" if unasked else TRUSTED
    rows = workspace.index.ask(
        "SELECT m.id, m.title, m.confidence, m.status, coalesce(e.target, ''), "  # noqa: S608
        "coalesce(ep.at, ''), coalesce(ep.session, '') FROM live AS m "
        "LEFT JOIN edges AS e ON e.source = m.id AND e.relation = 'derived_from' "
        "LEFT JOIN memories AS ep ON ep.id = e.target "
        f"WHERE m.kind = 'anti-pattern' AND {gate} ORDER BY m.id, e.target"
    )
    members: dict[str, tuple[str, float | None, str, dict[str, str], list[str]]] = {}
    for name, title, confidence, status, episode, at, session in rows:
        known = members.setdefault(name, (title, confidence, status, {}, []))
        met, episodes = known[3:]
        if episode:
            day = at[:10] or _day(episode)
            met[session or episode] = max(day, met.get(session or episode, ""))
            episodes += [] if episode in held else [episode]
    for name, (title, confidence, status, met, episodes) in members.items():
        if name not in held:
            yield FamilyMember(name, title, confidence, met, episodes, status=status)


def _day(episode: str) -> str:
    """Of an episode that is archived its id still tells the day."""
    found = _DAY.search(episode)
    return found[0] if found else ""


def _recollection(family: Family, hits: Iterable[Recollection]) -> Recollection:
    first = family.members[0]
    known = next((hit for hit in hits if hit.id == first.id), None)
    met = len(family.episodes)
    if known:
        return known._replace(evidence=max(met, known.evidence))
    why = (f"met in {met} episodes",) if met else ()
    return Recollection(
        first.id,
        first.kind,
        first.text,
        why=why,
        confidence=first.confidence,
        evidence=met,
        status=first.status,
    )


def _line(workspace: Workspace, family: Family) -> str:
    members = shown(family)
    samples = list(_samples(workspace, family))
    typed = _commonest(label for label, _ in samples) or family.head
    if len(members) == 1:
        title, record = with_command(members[0].complaint, typed), _record(workspace, members[0].id)
        record = {**record, "what_fails": title} if typed else record
        return tellable(members[0].kind, record, gist(members[0].kind, title, record))
    each = [(one.complaint, _record(workspace, one.id)) for one in members]
    return family_gist(typed, _announcement(family, samples), each)


def shown(family: Family) -> list[FamilyMember]:
    """The warnings that the line of a family tells."""
    return distinct(family.members)[:_MEMBERS]


def distinct(members: Sequence[FamilyMember]) -> list[FamilyMember]:
    """Of complaints that differ only in what they name, the first."""
    found: dict[str, FamilyMember] = {}
    for one in members:
        known = signature(one.complaint)
        found.setdefault(known.broad if known else one.complaint, one)
    return list(found.values())


def _record(workspace: Workspace, name: str) -> Mapping[str, Any]:
    for home in workspace.homes():
        found = home.index.body(name)
        if found is not None:
            record: Mapping[str, Any] = orjson.loads(found[1])
            return record
    return {}


def _samples(workspace: Workspace, family: Family) -> Iterator[tuple[str, str]]:
    """How the command was typed, and what it said, in the newest episodes that tell both."""
    for name in family.episodes[-_SAMPLES:] if family.head else ():
        for error in _record(workspace, name).get("errors_encountered") or ():
            if isinstance(error, Mapping) and head("shell", str(error.get("type"))) == family.head:
                yield str(error["type"]), without_instructions(str(error.get("message") or ""))


def _announcement(family: Family, samples: Iterable[tuple[str, str]]) -> str:
    """How a command says that it failed, if it said so in the same words more than once."""
    said = [_FIGURES.sub("0", announcing(message)) for _, message in samples]
    known = {_FIGURES.sub("0", one.complaint) for one in family.members}
    often = _commonest(line for line in said if line and line not in known)
    return often if said.count(often) > 1 else ""


def _commonest(texts: Iterable[str]) -> str:
    counts = Counter(texts)
    return min(counts, key=lambda text: (-counts[text], text), default="")


def announcing(message: str) -> str:
    """The first line of an error that says that something failed."""
    lines = (line.strip() for line in message.splitlines())
    return next((one for one in lines if _ANNOUNCES.search(one) and not _EXIT.match(one)), "")
