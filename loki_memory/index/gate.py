"""The gate: the memories that may be told to an agent that has not asked.

Somebody who asks (`recall`, `context`) is shown every memory that fits, with its status beside it.
What hooks, CONTINUITY.md and briefs say unasked passes two conditions first:

`TRUSTED`  The project's own people and agents said or saw it. What was imported, or came from
           outside, waits until somebody asks.
`PROVEN`   It is more than a candidate: evidence made it active, or somebody put it into words.
           Held back are
           - beliefs and skills whose status is `candidate`, unless their owner accepted them in
             `review`, or somebody wrote them without saying how sure they are and only the weighing
             of their episodes calls them candidates;
           - anti-patterns that consolidation made of an error for which nobody knows a remedy, or
             only a change of one place in the code;
           - facts about a defect that was mended;
           - episodes that were made from a transcript: their goal is a prompt, word for word, and
             what they found out is told as facts and anti-patterns;
           - learnings that consolidation wrote: they repeat an error and what resolved it on one
             day, which is told as soon as the anti-pattern of that error is active;
           - topics, which quote their members, candidates among them;
           - rules that `seed` found in an instruction file, which the client loads itself.
           Other episodes, ledgers and handoffs are no beliefs and are not asked this.

Two exceptions: right after an error, a candidate is told that knows this very error and what mended
it (`MENDED`); where the very code is at hand that a sentence of one session names, that sentence is
told if it is likely to matter (`LIKELY`), for this is the other session that met the name.

Each condition is SQL about a row of the index that the statement calls `m`. The named queries below
them answer with what passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.index.search import phrase

if TYPE_CHECKING:
    from loki_memory.index.index import Index

UNTRUSTED = frozenset({"import", "external"})
TRUSTED = "m.origin NOT IN ('import', 'external')"
_ACCEPTED = (
    "m.origin = 'owner' AND coalesce(json_extract(m.body, '$.reviewed'), "
    "json_extract(m.body, '$.metadata.\"loki-reviewed\"')) IS NOT NULL"
)
# What weighing writes beside a belief for which nobody stated a confidence.
_WORDED = "json_type(m.body, '$.asserted') = 'null' AND json_extract(m.body, '$.key') IS NULL"
_REPEATED = (
    "json_extract(m.body, '$.lesson') = "
    "json_extract(m.body, '$.error') || ': ' || json_extract(m.body, '$.resolution')"
)
MENDED = (
    "EXISTS (SELECT 1 FROM json_each(m.body, '$.resolutions') AS r "
    "WHERE json_array_length(r.value, '$.for') > 0)"
)
# A change of one place in the code explains nothing by itself.
_EXPLAINED = (
    "json_extract(m.body, '$.prevention') NOT GLOB 'Change `*' "
    "AND json_extract(m.body, '$.prevention') NOT GLOB 'Add `*' "
    "AND json_extract(m.body, '$.prevention') NOT GLOB 'Remove `*'"
)
PROVEN = f"""CASE
  WHEN json_extract(m.body, '$.key.seed') = 'instructions' THEN 0
  WHEN m.status = 'resolved' THEN 0
  WHEN m.status = 'candidate' THEN coalesce(({_ACCEPTED}) OR ({_WORDED}), 0)
  WHEN m.kind = 'anti-pattern' AND json_extract(m.body, '$.key') IS NOT NULL
    THEN coalesce({_EXPLAINED}, {MENDED})
  WHEN m.kind = 'episode' THEN json_extract(m.body, '$.captured') IS NULL
  WHEN m.kind = 'learning' THEN NOT coalesce({_REPEATED}, 0)
  WHEN m.kind = 'fact' THEN json_extract(m.body, '$.key.topic') IS NULL
  ELSE 1 END"""

LIKELY = (  # by the score from which on one session suffices
    "m.status = 'candidate' AND coalesce(json_extract(m.body, '$.type') <> 'preference', 0) "
    "AND json_extract(m.body, '$.score') >= 0.6"
)
_FEW_HAVE = 12  # memories, beyond which a word in common says nothing by itself
_SUBJECT = 60  # characters in which a sentence names what it is about
_RULE = "coalesce(json_extract(m.body, '$.key.template'), '') GLOB 'rule *'"
# What somebody put into words on purpose, and no session was searched for.
_STATED = "m.kind <> 'episode' AND json_extract(m.body, '$.key') IS NULL"


_LESSON = (  # the columns of a ToldLesson
    "SELECT m.id, m.title, m.confidence, m.status, (SELECT count(*) FROM edges AS e "
    "WHERE e.source = m.id AND e.relation = 'derived_from') AS evidence FROM live AS m"
)


class WarningEvidence(NamedTuple):
    """A warning and one of the episodes that it rests on; empty where it rests on none."""

    id: str
    title: str
    confidence: float | None
    status: str
    episode: str
    at: str
    session: str


class ToldLesson(NamedTuple):
    """A lesson that may be told, and on how many episodes it rests."""

    id: str
    title: str
    confidence: float | None
    status: str
    evidence: int


class DatedLesson(NamedTuple):
    """A lesson that may be told, and the moment it speaks of."""

    id: str
    title: str
    confidence: float | None
    status: str
    evidence: int
    at: str


class SharingLesson(NamedTuple):
    """A memory that may be told and shares words with a text; the body is its record."""

    id: str
    kind: str
    title: str
    body: str
    is_stated: bool  # by what few memories have in common with the text, and put into words


class GateEpisode(NamedTuple):
    """An episode in which a gate of the project said its verdict."""

    body: str
    gate: str


def rejected_values(index: Index) -> frozenset[str]:
    """Values that a person rejected: the ids of their tombstones, and those of the values."""
    rows = index.ask("SELECT id, tombstone FROM memories WHERE kind = 'tombstone'")
    return frozenset(name for row in rows for name in row)


def tellable_ids(index: Index) -> set[str]:
    """The memories that may be told unasked."""
    sql = f"SELECT m.id FROM live AS m WHERE {TRUSTED} AND {PROVEN}"  # noqa: S608 - constants
    return {row[0] for row in index.ask(sql)}


def warnings(index: Index, *, unasked: bool) -> list[WarningEvidence]:
    """All warnings with their evidence, by id; unasked, only those that are proven."""
    gate = f"{TRUSTED} AND {PROVEN}" if unasked else TRUSTED
    rows = index.ask(
        "SELECT m.id, m.title, m.confidence, m.status, coalesce(e.target, ''), "  # noqa: S608
        "coalesce(ep.at, ''), coalesce(ep.session, '') FROM live AS m "
        "LEFT JOIN edges AS e ON e.source = m.id AND e.relation = 'derived_from' "
        "LEFT JOIN memories AS ep ON ep.id = e.target "
        f"WHERE m.kind = 'anti-pattern' AND {gate} ORDER BY m.id, e.target"
    )
    return [WarningEvidence(*row) for row in rows]


def lessons(index: Index, mark: str, command: str = "") -> list[ToldLesson]:
    """The warnings that know an error and what to do about it.

    Those that say it in words come first, then those about the command that met it, then the
    surest.
    """
    rows = index.ask(
        f"{_LESSON} JOIN marks AS k ON k.memory = m.row "
        f"WHERE k.mark = ? AND m.kind = 'anti-pattern' AND {TRUSTED} "
        f"AND ({MENDED} OR {PROVEN} AND (json_array_length(m.body, '$.resolutions') > 0 "
        "OR json_extract(m.body, '$.prevention') <> '')) "
        f"ORDER BY coalesce({_EXPLAINED}, 0) DESC, m.title LIKE '%(running ' || ? || ')' DESC, "
        "m.confidence DESC, evidence DESC, m.id",
        mark,
        command,
    )
    return [ToldLesson(*row) for row in rows]


def rule_lessons(index: Index, rule: str) -> list[ToldLesson]:
    """The warning about a rule of a linter or compiler, if it knows what to do."""
    rows = index.ask(
        f"{_LESSON} WHERE m.kind = 'anti-pattern' AND {TRUSTED} "
        f"AND json_extract(m.body, '$.key.template') = 'rule ' || ? AND ({MENDED} OR {PROVEN})",
        rule,
    )
    return [ToldLesson(*row) for row in rows]


def command_lessons(index: Index, head: str) -> list[ToldLesson]:
    """The warnings about a command that know what to do, those met most often first.

    A linter's rule belongs to the commands that report it; a change of one place is an example.
    """
    rows = index.ask(
        f"{_LESSON} WHERE m.kind = 'anti-pattern' AND {TRUSTED} AND ({MENDED}) "  # noqa: S608
        f"AND (json_extract(m.body, '$.key.head') = ?1 AND coalesce({_EXPLAINED}, 0) "
        "OR EXISTS (SELECT 1 FROM json_each(m.body, '$.commands') AS c WHERE c.value = ?1)) "
        "ORDER BY evidence DESC, m.confidence DESC, m.id",
        head,
    )
    return [ToldLesson(*row) for row in rows]


def routine(index: Index) -> list[ToldLesson]:
    """The commands that are run before a commit."""
    rows = index.ask(
        f"{_LESSON} WHERE m.kind = 'fact' AND json_extract(m.body, '$.key.routine') IS NOT NULL "
        f"AND {TRUSTED} AND {PROVEN} ORDER BY evidence DESC, m.id LIMIT 1"
    )
    return [ToldLesson(*row) for row in rows]


def file_lessons(index: Index, path: str, name: str) -> list[tuple[str, ToldLesson]]:
    """The beliefs about a file, with their kinds: those that cite it, then those that name it.

    A name that memory knows of another file may mean any of them.
    """
    rows = index.ask(
        f"SELECT t.*, m.kind FROM ({_LESSON}) AS t JOIN live AS m ON m.id = t.id "  # noqa: S608
        "LEFT JOIN edges AS cited ON cited.source = m.id AND cited.target = 'file:' || ?1 "
        f"WHERE m.kind IN ('fact', 'pattern', 'anti-pattern') AND {TRUSTED} AND {PROVEN} "
        "AND (cited.target IS NOT NULL OR ?2 <> '' AND instr(m.title, ?2) > 0 "
        "AND NOT EXISTS (SELECT 1 FROM edges AS o WHERE o.target BETWEEN 'file:' AND 'file;' "
        "AND o.target LIKE 'file:%/' || ?2 AND o.target NOT LIKE '%/' || ?1 "
        "AND o.target <> 'file:' || ?1)) "
        "GROUP BY m.id ORDER BY cited.target IS NULL, m.confidence DESC, m.id LIMIT 8",
        path,
        name,
    )
    return [(row[-1], ToldLesson(*row[:-1])) for row in rows]


def learned_on(index: Index, paths: Sequence[str]) -> dict[str, int]:
    """By belief: on how many of some files the episodes worked that it rests on."""
    rows = index.ask(
        "SELECT rests.source, count(DISTINCT works.target) FROM edges AS works "  # noqa: S608
        "JOIN edges AS rests ON rests.target = works.source AND rests.relation = 'derived_from' "
        f"WHERE works.target IN ({_marks(paths)}) GROUP BY rests.source ORDER BY 2 DESC, 1",
        *(f"file:{path}" for path in paths),
    )
    return dict(rows)


def lessons_among(
    index: Index, ids: Sequence[str], since: str, limit: int
) -> list[tuple[str, DatedLesson]]:
    """The lessons that may be told among some memories and the newest since a moment, with their
    kinds.
    """
    rows = index.ask(
        f"SELECT t.*, m.at, m.kind FROM ({_LESSON}) AS t JOIN live AS m ON m.id = t.id "  # noqa: S608
        "WHERE m.kind IN ('fact', 'pattern', 'anti-pattern', 'skill') "
        f"AND (m.id IN ({_marks(ids)}) OR m.at >= ?) "
        f"AND m.scope <> 'session' AND {TRUSTED} AND {PROVEN} "
        f"ORDER BY m.id IN ({_marks(ids)}) DESC, m.at DESC, m.id LIMIT ?",
        *ids,
        since,
        *ids,
        limit,
    )
    return [(row[-1], DatedLesson(*row[:-1])) for row in rows]


def lessons_naming(
    index: Index, names: Sequence[str], least: int = 1
) -> list[tuple[str, ToldLesson]]:
    """The lessons about so many of some pieces of code, with their kinds, the surest first.

    What a sentence is about comes first in it. One about the rule of a linter waits for the linter.
    """
    if len(names) < least:
        return []
    rows = index.ask(
        f"SELECT t.*, m.kind FROM ({_LESSON}) AS t JOIN live AS m ON m.id = t.id "  # noqa: S608
        "JOIN marks AS k ON k.memory = m.row "
        f"WHERE k.mark IN ({_marks(names)}) AND m.kind IN ('fact', 'pattern', 'anti-pattern') "
        f"AND m.scope <> 'session' AND {TRUSTED} AND ({PROVEN} OR {LIKELY}) AND NOT {_RULE} "
        f"AND instr(substr(m.title, 1, {_SUBJECT}), substr(k.mark, length('symbol:') + 1)) > 0 "
        "GROUP BY m.id HAVING count(*) >= ? "
        "ORDER BY count(*) DESC, m.confidence DESC, m.id LIMIT 8",
        *(f"symbol:{name}" for name in names),
        least,
    )
    return [(row[-1], ToldLesson(*row[:-1])) for row in rows]


def lessons_sharing(
    index: Index, words: Sequence[str], least: int, limit: int
) -> list[SharingLesson]:
    """The lessons that have so many of these words, those with most of them first; of what somebody
    put into words, one that few memories have is enough.

    The full text knows words by their stems, and two of them may have one.
    """
    if not words:
        return []
    of_word = "SELECT ? AS word, rowid FROM words WHERE words MATCH ?"
    matches = " UNION ALL ".join([of_word] * len(words))
    rows = index.ask(
        f"WITH said AS ({matches}), "  # noqa: S608 - constants and question marks
        f"rare AS (SELECT word FROM said GROUP BY word HAVING count(*) <= {_FEW_HAVE}), "
        "s AS (SELECT p.memory AS row, count(DISTINCT said.word) AS shared, "
        "max(said.word IN (SELECT word FROM rare)) AS is_rare "
        "FROM said JOIN passages AS p ON p.row = said.rowid GROUP BY p.memory) "
        f"SELECT m.id, m.kind, m.title, m.body, s.is_rare AND {_STATED} AS is_stated "
        "FROM s JOIN live AS m ON m.row = s.row WHERE (s.shared >= ? OR is_stated) "
        f"AND {TRUSTED} AND {PROVEN} ORDER BY is_stated DESC, s.shared DESC, m.id LIMIT ?",
        *(part for word in words for part in (word, phrase(word))),
        least,
        limit,
    )
    return [SharingLesson(*row) for row in rows]


def sessions_since(index: Index, limit: int) -> list[str]:
    """The last moments of the newest sessions, in the order of time."""
    rows = index.ask(
        "SELECT max(at) FROM memories WHERE session <> '' GROUP BY session ORDER BY 1 DESC LIMIT ?",
        limit,
    )
    return [row[0] for row in reversed(rows)]


def standing(index: Index, limit: int) -> list[ToldLesson]:
    """Lessons for any goal: the routine, requests of people, then the project's own commands.

    The most frequent and the most important come first.
    """
    rows = index.ask(
        f"{_LESSON} WHERE m.kind = 'fact' AND m.scope <> 'session' "
        "AND (json_extract(m.body, '$.key.routine') IS NOT NULL "
        "OR json_extract(m.body, '$.key.seed') = 'command' "
        f"OR json_extract(m.body, '$.type') IN ('preference', 'rule')) AND {TRUSTED} AND {PROVEN} "
        "ORDER BY json_extract(m.body, '$.key.routine') IS NULL, "
        "json_extract(m.body, '$.key.seed') IS NOT NULL, evidence DESC, m.importance DESC, m.id "
        "LIMIT ?",
        limit,
    )
    return [ToldLesson(*row) for row in rows]


def general(index: Index, limit: int) -> list[ToldLesson]:
    """Sentences of sessions that may hold for any work, those of most episodes first: what one
    session alone said is about its own work.
    """
    rows = index.ask(
        f"{_LESSON} WHERE m.kind = 'fact' AND m.status = 'active' AND m.scope <> 'session' "
        "AND json_extract(m.body, '$.key.statement') IS NOT NULL "
        "AND coalesce(json_extract(m.body, '$.type'), '') NOT IN ('preference', 'rule') "
        "AND evidence > 1 "
        f"AND {TRUSTED} AND {PROVEN} ORDER BY evidence DESC, m.confidence DESC, m.id LIMIT ?",
        limit,
    )
    return [ToldLesson(*row) for row in rows]


def noted(index: Index, kind: str, limit: int) -> list[ToldLesson]:
    """Beliefs of a kind that somebody put into words, newest first."""
    rows = index.ask(
        f"{_LESSON} WHERE m.kind = ? AND m.scope <> 'session' "
        f"AND json_extract(m.body, '$.key') IS NULL AND {TRUSTED} AND {PROVEN} "
        "ORDER BY m.at DESC, m.id LIMIT ?",
        kind,
        limit,
    )
    return [ToldLesson(*row) for row in rows]


def latest_episodes(index: Index) -> list[tuple[str, str]]:
    """(id, title) of the episodes that may be told unasked, newest first."""
    return index.ask(
        f"SELECT id, title FROM live AS m WHERE kind = 'episode' AND {TRUSTED} AND {PROVEN} "  # noqa: S608
        "ORDER BY at DESC, id"
    )


def verdicts(index: Index, until: str, limit: int) -> list[GateEpisode]:
    """Verdicts of the project's gates, up to a moment if one is given; newest first."""
    rows = index.ask(
        "SELECT body, substr(tag.value, 6) FROM live AS m, json_each(body, '$.tags') AS tag "  # noqa: S608
        f"WHERE kind = 'episode' AND scope = 'project' AND {TRUSTED} AND (?1 = '' OR at <= ?1) "
        "AND substr(tag.value, 1, 5) = 'gate:' ORDER BY at DESC, m.id LIMIT ?2",
        until,
        limit,
    )
    return [GateEpisode(*row) for row in rows]


# -- teams: ledgers, handoffs, what agents did ----------------------------------------------------


def ledgers(index: Index) -> list[tuple[str, str, bool]]:
    """(id, JSON, whether it is trusted) of all ledgers."""
    sql = f"SELECT id, body, {TRUSTED} FROM live AS m WHERE kind = 'ledger' ORDER BY id"  # noqa: S608
    return [(name, body, bool(is_trusted)) for name, body, is_trusted in index.ask(sql)]


def standing_handoffs(index: Index) -> list[str]:
    """The JSON of handoffs that are not finished, newest first."""
    rows = index.ask(
        "SELECT body FROM live AS m WHERE kind = 'handoff' "  # noqa: S608
        f"AND status IN ('open', 'accepted') AND {TRUSTED} ORDER BY at DESC, id"
    )
    return [row[0] for row in rows]


def agents(index: Index, kind: str) -> list[str]:
    """The names of agents in records of a kind."""
    sql = "SELECT DISTINCT agent FROM live WHERE kind = ? ORDER BY agent"
    return [row[0] for row in index.ask(sql, kind)]


def last_handoff(index: Index, agents: Sequence[str]) -> str:
    """The moment of the newest handoff by one of these agents; empty if there is none."""
    sql = f"SELECT max(at) FROM live WHERE kind = 'handoff' AND agent IN ({_marks(agents)})"  # noqa: S608
    return index.scalar(sql, *agents) or ""


def episodes_of(index: Index, agents: Sequence[str], since: str, limit: int) -> list[str]:
    """The JSON of what these agents did after a moment, newest first."""
    rows = index.ask(
        "SELECT body FROM live AS m WHERE kind = 'episode' AND scope = 'project' "  # noqa: S608
        f"AND {TRUSTED} AND at > ? AND agent IN ({_marks(agents)}) ORDER BY at DESC, id LIMIT ?",
        since,
        *agents,
        limit,
    )
    return [row[0] for row in rows]


def trusted_among(index: Index, ids: Sequence[str], limit: int) -> list[str]:
    """The first of these memories that are the project's own and stand."""
    rows = index.ask(
        f"SELECT id FROM live AS m WHERE scope = 'project' AND {TRUSTED} "  # noqa: S608
        f"AND id IN ({_marks(ids)}) ORDER BY id LIMIT ?",
        *ids,
        limit,
    )
    return [row[0] for row in rows]


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
