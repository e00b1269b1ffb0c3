"""The gate: what an agent is told unasked, by the same rules at every door.

A door is a session that begins, a prompt, a tool call, an error, CONTINUITY.md or a brief. The
rules about what a memory is stand in SQL (`index.gate`): an active belief, of trusted origin, put
into words on purpose or met in two sessions with a remedy; no raw prompt. The rules here need its
words, the session, git or the disk:

    the workspace is trusted on this machine, and memory is not turned off;
    somebody answers for the memory: see `integrity.reviewed`, or with `trust.require_signature`
    `integrity.signatures`; where a branch changes it, the trusted branch's words are told;
    it is near enough to what the session is about;
    it was not told before in this session, and nobody here said last that it did not help;
    it is not about the client's own tools;
    an extracted sentence reads as a lesson, and a statement of how things stand is not old;
    code that it cites has not changed since;
    an episode found something out.

Somebody who asks is shown everything, with what is known about it beside it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import GitFailed
from loki_memory.files.layout import PRIVATE
from loki_memory.files.off_switches import switched_off
from loki_memory.injection.line import is_extracted, record_of
from loki_memory.models.kinds import USERS_WORDS
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.home import Home
    from loki_memory.homes import OpenWorkspace
    from loki_memory.index.gate import DatedLesson, ToldLesson
    from loki_memory.integrity.reviewed import ReviewedText

# A session that began, or lost its context, may be told everything again. What was told to its
# subagents does not count.
BEGINNING, RESUMED = "hook:SessionStart", "hook:SessionResume"
_DOORS = (BEGINNING, RESUMED, "hook:UserPromptSubmit", "hook:PreToolUse")
_OFF = "memory.enabled is false: no memory is put before agents"
_UNTRUSTED = "this workspace is not trusted, so agents are told nothing of it: `loki-mem trust`"
_STANDS = re.compile(  # a sentence that says how things stand, and will not be so for long
    r"\b(?:pending|waiting (?:for|on)|in progress|under review|not (?:yet )?merged"
    r"|blocked (?:by|on|until)|still open|to be (?:decided|merged|reviewed))\b",
    re.IGNORECASE,
)
_STANDS_DAYS = 14  # two weeks: a sprint
_RUNNING = re.compile(r"\(running ([^()]*)\)$")


def is_silent(workspace: OpenWorkspace) -> bool:
    """Check if nothing at all is told unasked here; leaves a notice with the reason."""
    why = "" if workspace.config.get("memory.enabled") else _OFF
    if not why and (switch := switched_off(workspace.layout.loki, os.environ)):
        why = f"{switch}: no memory is put before agents"
    why = why or ("" if workspace.home.trust().is_trusted else _UNTRUSTED)
    if why and why not in workspace.notices:
        workspace.notices.append(why)
    return bool(why)


# -- who answers for a memory ----------------------------------------------------------------------


class Withheld:
    """Memories that must not be told unasked; some are told in the trusted branch's words.

    What a person rejected is left out of every record.
    """

    def __init__(
        self,
        ids: frozenset[str] = frozenset(),
        texts: Mapping[str, ReviewedText] | None = None,
        *,
        rejected: frozenset[str] = frozenset(),
        is_all: bool = False,
    ) -> None:
        self.ids = ids
        self._texts = texts or {}
        self._rejected = rejected
        self._is_all = is_all

    def __contains__(self, name: object) -> bool:
        return self._is_all or name in self.ids

    def text(self, name: str) -> ReviewedText | None:
        """The words of the trusted branch for a memory that is withheld as it is here."""
        return self._texts.get(name) if name in self.ids and not self._is_all else None

    def passing(self, hits: Iterable[Recollection]) -> Iterator[Recollection]:
        """The hits that may be told, each with the words that may be."""
        for hit in hits:
            text = self.text(hit.id)
            if text is not None:
                yield hit._replace(title=text.title)
            elif hit.id not in self:
                yield hit

    def record(self, workspace: OpenWorkspace, name: str) -> Mapping[str, Any]:
        """The record of a memory with the words that may be told; empty if there are none."""
        text = self.text(name)
        if text is None:
            return self._unrejected(record_of(workspace, name))
        import json

        return self._unrejected(json.loads(text.body))

    def _unrejected(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """A record without what a person rejected; empty if it says nothing else."""
        if not self._rejected:
            return record
        from loki_memory.models.rejected import value_id, without_rejected

        return without_rejected(record, lambda text: value_id(text) in self._rejected) or {}

    def is_rejected(self, workspace: OpenWorkspace, name: str) -> bool:
        """Check if a memory says what a person rejected; no record is read where nobody did."""
        return bool(self._rejected) and not self.record(workspace, name)


def withheld(home: Home) -> Withheld:
    """The memories that nobody here answers for; leaves a notice with the unsigned ones."""
    if home.is_user:
        return Withheld()
    if not home.trust().is_trusted:
        return Withheld(is_all=True)
    from loki_memory.index.gate import rejected_values

    home.ensure("folders")
    rejected = rejected_values(home.index)
    if home.config.get("trust.require_signature"):
        return Withheld(_unsigned(home), rejected=rejected)
    return Withheld(*_unreviewed(home), rejected=rejected)


def _unreviewed(home: Home) -> tuple[frozenset[str], Mapping[str, ReviewedText]]:
    """The memories that nobody reviewed, and the trusted branch's words for some of them."""
    from loki_memory.integrity.reviewed import unreviewed

    if home.starts_git:
        _renew(home)
    ids = unreviewed(home)
    if not ids:
        return ids, {}
    from loki_memory.integrity.reviewed import reviewed_texts

    return ids, reviewed_texts(home)


def _renew(home: Home) -> None:
    try:
        home.renew_review()
    except GitFailed as error:
        home.notices.append(f"what was reviewed is not known: {error}")


def _unsigned(home: Home) -> frozenset[str]:
    from loki_memory.index.queries import versions

    ours = [record for record in versions(home.index) if not record.path.startswith(PRIVATE)]
    signed = _signed(home)
    unsigned = {record.id for record in ours if signed.get(record.path) != record.etag}
    if unsigned:
        subject = "1 memory is" if len(unsigned) == 1 else f"{len(unsigned)} memories are"
        why = "no signed or reviewed commit brought it in (trust.require_signature)"
        home.notices.append(f"{subject} withheld: {why}")
    return frozenset(unsigned)


def _signed(home: Home) -> dict[str, str]:
    from loki_memory.integrity.signatures import vouched, vouched_before

    if not home.starts_git:
        return vouched_before(home)
    try:
        return vouched(home)
    except GitFailed as error:  # without git nothing is vouched for
        home.notices.append(f"trust.require_signature: {error}")
        return {}


# -- the rules for one memory ----------------------------------------------------------------------


def as_hit(kind: str, lesson: ToldLesson | DatedLesson, at: str = "") -> Recollection:
    """A lesson of the index as a hit, which the gate takes."""
    return Recollection(
        lesson.id,
        kind,
        lesson.title,
        confidence=lesson.confidence,
        evidence=lesson.evidence,
        status=lesson.status,
        at=at,
    )


class PassedMemory(NamedTuple):
    """A memory that may be told, and its record."""

    hit: Recollection
    record: Mapping[str, Any]


class Gate:
    """The rules at one door, for one session at one moment."""

    def __init__(self, workspace: OpenWorkspace, session: str = "", least: float = 0.0) -> None:
        """`session` is the one that must not hear anything twice; `least` the lowest score."""
        self.workspace = workspace
        self._least = least
        self._told = told_before(workspace, session)
        self._unhelpful = _unhelpful(workspace)
        self.held = withheld(workspace.home)

    def passed(
        self, hits: Iterable[Recollection], at_place: Container[str] = ()
    ) -> Iterator[PassedMemory]:
        """The memories that may be told, in their order.

        The session works at the very place that the memories `at_place` are about.
        """
        for hit in self.held.passing(hits):
            if hit.score >= self._least and hit.id not in self._told:
                record = self.held.record(self.workspace, hit.id)
                is_at_place = hit.id in at_place
                is_rejected = self.held.is_rejected(self.workspace, hit.id)
                if not is_rejected and not self.refusal(hit, record, is_at_place=is_at_place):
                    yield PassedMemory(hit, record)

    def shown(self, hits: Iterable[Recollection]) -> list[Recollection]:
        """The memories that are shown to somebody who asked for all that fits a task."""
        shown = self.held.passing(hits)
        return [hit for hit in shown if not self.held.is_rejected(self.workspace, hit.id)]

    def admits(self, hit: Recollection) -> bool:
        """Check if what a memory says may be told."""
        record = self.held.record(self.workspace, hit.id)
        is_rejected = self.held.is_rejected(self.workspace, hit.id)
        return not is_rejected and not self.refusal(hit, record)

    def refusal(
        self, hit: Recollection, record: Mapping[str, Any], *, is_at_place: bool = False
    ) -> str:
        """The reason why a memory is not told, by what it says; empty if it may be."""
        if hit.id in self._unhelpful and record.get("origin") != "owner":
            return "did not help here"  # an agent cannot silence what a person stands for
        if _is_about_client(hit):
            return "is about the client's own tools"
        if not reads_as_lesson(hit.kind, record, is_at_place=is_at_place):
            return "does not read as a lesson"
        if _has_expired(hit.kind, record, self.workspace.now()):
            return "says how things stood"
        if hit.kind == "episode" and not _has_finding(record):
            return "found nothing out"
        return "cites code that has changed" if self._is_stale(record) else ""

    def _is_stale(self, record: Mapping[str, Any]) -> bool:
        cited = record.get("citations")
        if not isinstance(cited, list) or not cited or self.workspace.config.get("memory.stale"):
            return False
        from loki_memory.integrity.citations import is_stale

        return is_stale(self.workspace.layout.root, cited)


def is_about_rule(record: Mapping[str, Any]) -> bool:
    """Check for a mistake against the rule of a linter, told when the linter reports it."""
    return bool(linter_rule(record))


def linter_rule(record: Mapping[str, Any]) -> str:
    """The rule of a linter that a mistake is about, such as `errcheck`; empty if it is none."""
    key = record.get("key")
    template = str(key.get("template", "")) if isinstance(key, Mapping) else ""
    return template.removeprefix("rule ") if template.startswith("rule ") else ""


def _is_about_client(hit: Recollection) -> bool:
    found = _RUNNING.search(hit.title) if hit.kind == "anti-pattern" else None
    if found is None:
        return False
    from loki_memory.models.error_noise import is_client_tool

    return is_client_tool(found[1])


def reads_as_lesson(kind: str, record: Mapping[str, Any], *, is_at_place: bool = False) -> bool:
    """Check if a memory says something to a reader who has not asked.

    What somebody put into words does. A sentence that was extracted from a session must read as a
    lesson.
    """
    if kind != "fact" or not is_extracted(record):
        return True
    from loki_memory.models.lesson_text import objection  # 10 ms to compile

    statement = str(record.get("statement") or "")
    is_stated = record.get("type") in USERS_WORDS
    return not objection(statement, is_stated=is_stated, is_at_place=is_at_place)


def _has_expired(kind: str, record: Mapping[str, Any], now: str) -> bool:
    """Check for a statement of how things stand that is older than such statements hold."""
    if kind != "fact" or not _STANDS.search(str(record.get("statement") or "")):
        return False
    from datetime import date

    said = str(record.get("valid_from") or record.get("at") or "")[:10]
    with suppress(ValueError):
        return (date.fromisoformat(now[:10]) - date.fromisoformat(said)).days > _STANDS_DAYS
    return True  # nobody knows when it was said


def _has_finding(record: Mapping[str, Any]) -> bool:
    """Check if an episode tells more than its goal: an error with its remedy, or a statement."""
    errors = record.get("errors_encountered")
    resolved = (
        isinstance(error, Mapping) and error.get("resolution")
        for error in (errors if isinstance(errors, list) else ())
    )
    return any(resolved) or bool(record.get("statements") or record.get("summary"))


def _unhelpful(workspace: OpenWorkspace) -> set[str]:
    return {name for home in workspace.homes for name in home.journal.unhelpful()}


# -- what a session was told before ----------------------------------------------------------------


def told_before(workspace: OpenWorkspace, session: str) -> set[str]:
    """The memories that a session was told since it began, or was compacted."""
    from loki_memory.journal import name_of

    known: set[str] = set()
    for surface, ids in _told(workspace, name_of(session)) if session else ():
        known = ids if surface == BEGINNING else known | ids
    return known


def _told(workspace: OpenWorkspace, session: str) -> Iterator[tuple[str, set[str]]]:
    """The latest lines of the journal about a session, by door; foreign ones are skipped."""
    try:
        entries = workspace.home.journal.recent()
    except OSError:
        return
    for entry in entries:
        with suppress(KeyError, TypeError, ValueError):
            if entry["session"] == session and entry["surface"] in _DOORS:
                yield entry["surface"], {str(name) for name, _ in entry["ids"]}
