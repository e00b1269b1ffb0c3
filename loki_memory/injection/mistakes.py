"""Mistakes to avoid: choose and order the warnings for a task, and word each line.

Errors come in families: a command or tool complains of one thing today and of another tomorrow,
and its next user may meet any of them. So a family has one line: the command, its most frequent
complaints, and what helped. A command whose complaints differ each time (a linter's do) is
described by the line with which it announces its failure.

Warnings that most sessions met come first, where a session counts less with its age, and one near
the goal counts as if it had been met more often.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from math import exp2
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.index import gate
from loki_memory.injection.gate import Withheld
from loki_memory.injection.line import family_gist, gist, record_of, tellable
from loki_memory.language.wordings import worded
from loki_memory.models.error_signature import head, signature, with_command
from loki_memory.models.prompt_injection import without_instructions
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.home import Home
    from loki_memory.homes import OpenWorkspace

_HALF_LIFE = 30  # days; of the decayed counters in the study the best predictor of reuse
_MEMBERS = 3  # complaints in a line
_FIRST = 5  # lines of families, before other warnings near the goal
# The warning nearest to the goal counts as if 1 + this many times as many sessions had met it, the
# next half as many more. Between 1 and 5 the share of errors with a warning stays the same
# (benchmarks/prewarn).
_NEARNESS = 3
_SAMPLES = 6  # newest episodes that are searched for the announcement of a failure
_RUNNING = re.compile(r"\s*\(running ([^()]*)\)$")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ANNOUNCES = re.compile(
    r"(?i)\b(?:errors?|err!|fail(?:s|ed|ure)?|fatal|conflict|panic|abort(?:ed|ing)?|denied|"
    r"not found|cannot|could not|unable|undefined|invalid|no such)\b"
)
_EXIT = re.compile(r"(?i)^\W*(?:exit (?:code|status)|command exited)\b.*$")
_FIGURES = re.compile(r"\d+")


class FamilyMember(NamedTuple):
    """A warning, and the sessions that met it."""

    id: str
    text: str  # the title, which says what fails
    confidence: float | None
    met: Mapping[str, str]  # session -> its last day; empty if it was only stated
    episodes: Sequence[str]  # newest last
    kind: str = "anti-pattern"
    status: str = "active"

    @property
    def head(self) -> str:
        """The command or tool; empty if the warning names none."""
        return _head(self.text)

    @property
    def rank(self) -> tuple[float, str]:
        """The order among equals: the surer first."""
        return (-(self.confidence or 0), self.id)

    @property
    def complaint(self) -> str:
        return _RUNNING.sub("", self.text)


def _head(text: str) -> str:
    found = _RUNNING.search(text)
    return found[1] if found else ""


def _group(name: str, text: str) -> str:
    """The key of a warning's family: the command; a warning without one is a family of its own."""
    return _head(text) or name


class Family(NamedTuple):
    """Warnings about one command or tool, the most important first."""

    head: str
    members: Sequence[FamilyMember]
    weight: float  # sessions that met one of them, each by its age
    weights: Mapping[str, float]  # the same for each member, by its id

    @property
    def name(self) -> str:
        return _group(self.members[0].id, self.members[0].text)

    @property
    def episodes(self) -> list[str]:
        return sorted({name for member in self.members for name in member.episodes})


def families(members: Iterable[FamilyMember]) -> list[Family]:
    """Group warnings by command; most met first. Ages count from the newest day of all."""
    groups: dict[str, list[FamilyMember]] = {}
    for member in members:
        groups.setdefault(_group(member.id, member.text), []).append(member)
    days = (day for group in groups.values() for member in group for day in member.met.values())
    newest = max(days, default="")
    return ordered([_family(group, newest) for group in groups.values()], {})


def _family(group: Sequence[FamilyMember], newest: str) -> Family:
    met: dict[str, str] = {}
    for member in group:
        for session, day in member.met.items():
            met[session] = max(day, met.get(session, ""))
    weights = {member.id: _weight(member.met, newest) for member in group}
    return Family(group[0].head, group, _weight(met, newest), weights)


def _weight(met: Mapping[str, str], newest: str) -> float:
    """Count sessions by their age; a warning that was only stated counts as one of today."""
    if not met:
        return 1.0
    return round(sum(exp2(-_days(day, newest) / _HALF_LIFE) for day in met.values()), 6)


def _days(day: str, newest: str) -> int:
    if not day or not newest:
        return 0
    return (date.fromisoformat(newest) - date.fromisoformat(day)).days


def ordered(found: Iterable[Family], near: Mapping[str, int]) -> list[Family]:
    """Order families, and the warnings of each, for a goal. `near` gives the rank of a warning by
    its id, and of a family by its name: 1 is nearest to the goal.
    """

    def matters(name: str, weight: float) -> float:
        return weight * (1 + (_NEARNESS / near[name] if name in near else 0))

    def within(family: Family) -> Family:
        members = sorted(
            family.members, key=lambda m: (-matters(m.id, family.weights[m.id]), *m.rank)
        )
        return family._replace(members=members)

    return sorted(
        map(within, found),
        key=lambda family: (-matters(family.name, family.weight), *family.members[0].rank),
    )


# -- from the index --------------------------------------------------------------------------------


def mistakes(
    workspace: OpenWorkspace,
    hits: Sequence[Recollection],
    most: int,
    held: Withheld | None = None,
    *,
    unasked: bool = False,
) -> list[tuple[Recollection, str]]:
    """The warnings for a task, best first, each with its line, without withheld ones; `hits` are
    near the goal. Unasked, only proven ones.
    """
    held = held or Withheld()
    members = list(_members(workspace.home, held, unasked=unasked))
    known = {_group(member.id, member.text) for member in members}
    members += [
        FamilyMember(hit.id, hit.title, hit.confidence, {}, [], hit.kind, hit.status)
        for hit in hits
        if _group(hit.id, hit.title) not in known  # a learning repeats its family
    ]
    members = [member for member in members if _may_be_injected(workspace, member, held)]
    best = ordered(families(members), _near(hits))
    near = {member.id: member for member in members}
    chosen = _chosen(best, [near[hit.id] for hit in hits if hit.id in near])
    return [
        (_recollection(family, hits), _line(workspace, family, held)) for family in chosen[:most]
    ]


def _chosen(best: Sequence[Family], near: Iterable[FamilyMember]) -> list[Family]:
    """Choose some families first; then warnings near the goal that are not in their lines, each
    in a line of its own; then more families.
    """
    first = best[:_FIRST]
    covered = {member.id for family in first for member in shown(family)}
    alone = [Family(member.head, [member], 0, {}) for member in near if member.id not in covered]
    covered |= {family.members[0].id for family in alone}
    rest = (family for family in best[_FIRST:] if family.members[0].id not in covered)
    return [*first, *alone, *rest]


def _near(hits: Iterable[Recollection]) -> dict[str, int]:
    """The rank of each hit, and of its command."""
    near: dict[str, int] = {}
    for at, hit in enumerate(hits, 1):
        near.setdefault(hit.id, at)
        near.setdefault(_group(hit.id, hit.title), at)
    return near


def _may_be_injected(workspace: OpenWorkspace, member: FamilyMember, held: Withheld) -> bool:
    """Check if a warning may be injected; its record is read only if its words are suspicious."""
    if held.is_rejected(workspace, member.id):
        return False
    if without_instructions(member.text) == member.text:
        return True
    return bool(tellable(member.kind, held.record(workspace, member.id), member.text))


def _members(workspace: Home, held: Withheld, *, unasked: bool) -> Iterator[FamilyMember]:
    rows = gate.warnings(workspace.index, unasked=unasked)
    members: dict[str, tuple[str, float | None, str, dict[str, str], list[str]]] = {}
    for name, title, confidence, status, episode, at, session in rows:
        known = members.setdefault(name, (title, confidence, status, {}, []))
        met, episodes = known[3:]
        if episode:
            day = at[:10] or _day(episode)
            met[session or episode] = max(day, met.get(session or episode, ""))
            episodes += [] if episode in held else [episode]
    for name, (title, confidence, status, met, episodes) in members.items():
        reviewed = held.text(name)
        if reviewed or name not in held:
            words = reviewed.title if reviewed else title
            yield FamilyMember(name, words, confidence, met, episodes, status=status)


def _day(episode: str) -> str:
    """The day in the id of an episode, for archived ones."""
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


def _line(workspace: OpenWorkspace, family: Family, held: Withheld) -> str:
    members = shown(family)
    samples = list(_samples(workspace, family))
    typed = _commonest(label for label, _ in samples) or family.head
    if len(members) == 1:
        title, record = (
            with_command(members[0].complaint, typed),
            held.record(workspace, members[0].id),
        )
        put = worded(workspace, members[0].kind, record).text
        record = {**record, "what_fails": title} if typed else record
        said = put or gist(members[0].kind, title, record)
        return tellable(members[0].kind, record, said)
    each = [(member.complaint, held.record(workspace, member.id)) for member in members]
    return family_gist(typed, _announcement(family, samples), each)


def shown(family: Family) -> list[FamilyMember]:
    """The warnings in the line of a family."""
    return distinct(family.members)[:_MEMBERS]


def distinct(members: Sequence[FamilyMember]) -> list[FamilyMember]:
    """The first of complaints that differ only in the names they mention."""
    found: dict[str, FamilyMember] = {}
    for member in members:
        known = signature(member.complaint)
        found.setdefault(known.broad if known else member.complaint, member)
    return list(found.values())


def _samples(workspace: OpenWorkspace, family: Family) -> Iterator[tuple[str, str]]:
    """The commands as typed, and their messages, from the newest episodes that have both."""
    for name in family.episodes[-_SAMPLES:] if family.head else ():
        for error in record_of(workspace, name).get("errors_encountered") or ():
            if isinstance(error, Mapping) and head("shell", str(error.get("type"))) == family.head:
                yield str(error["type"]), without_instructions(str(error.get("message") or ""))


def _announcement(family: Family, samples: Iterable[tuple[str, str]]) -> str:
    """The line with which a command announces its failure, if it used it more than once."""
    announced = [_FIGURES.sub("0", announcing(message)) for _, message in samples]
    known = {_FIGURES.sub("0", member.complaint) for member in family.members}
    often = _commonest(line for line in announced if line and line not in known)
    return often if announced.count(often) > 1 else ""


def _commonest(texts: Iterable[str]) -> str:
    counts = Counter(texts)
    return min(counts, key=lambda text: (-counts[text], text), default="")


def announcing(message: str) -> str:
    """The first line of an error that says that something failed."""
    lines = (line.strip() for line in message.splitlines())
    return next((text for text in lines if _ANNOUNCES.search(text) and not _EXIT.match(text)), "")
