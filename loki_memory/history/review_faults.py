"""Changes of a pull request that a person has to look at before it is merged.

No program can tell whether a command is the right one, or who really reviewed a belief. It can tell
where the question arises:

    a skill, or a belief that names a command to run;
    characters that a reader does not see;
    a text that addresses the agent, or runs what it downloads;
    a claim that the commits of the change do not bear out: a review by somebody who wrote none of
    them, `owner` where neither a review nor the write log says so, evidence from later than the
    commit, or of another day than its id;
    a tombstone that is gone;
    settings, and any other file that is no record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.history.belief_diff import reviews
from loki_memory.models import Belief, Memory, Skill
from loki_memory.models.prompt_injection import gives_instructions, pipes_download
from loki_memory.models.text import has_hidden

if TYPE_CHECKING:
    from loki_memory.history.file_changes import FileChange, RecordChange

_TAUGHT = frozenset({"pattern", "anti-pattern", "fact", "learning"})
# A span of code with an argument or a path in it, or a verb and what to run.
_CODE = re.compile(r"`[^`\n]*[\s/][^`\n]*`|^\s*\$ \S", re.MULTILINE)
_RUN = re.compile(
    r"\b(?:run|rerun|execute|invoke|launch|install|source|call)\s+(?:`|\./|"
    r"(?!(?:on|in|at|as|by|for|with|from|to|and|or|after|before|when|if|out|over)\b)"
    r"[a-z][\w.-]*(?:\s|$))"
    r"|(?:^|[\s`'\"(])(?:sudo|curl|wget|bash|sh|npx|pipx|eval|chmod)\s+\S",
    re.IGNORECASE,
)
_DAY = re.compile(r"ep-(\d{4}-\d\d-\d\d)-")
_SHOWN = 120  # characters of a text that is quoted


class Doubt(NamedTuple):
    """A reason for a person to look."""

    path: str
    id: str
    said: str


class Commits(NamedTuple):
    """Facts about the commits of a change, against which its claims are held."""

    authors: frozenset[str]
    last_day: str  # of the newest; empty if it is not committed yet
    logged: frozenset[str]  # the paths that the published write log knows


def doubts_about_text(changes: Iterable[RecordChange]) -> Iterator[Doubt]:
    """Find texts that a reader cannot see, or that speak to an agent."""
    for change in changes:
        for field in change.fields:
            text = field.after
            if has_hidden(text):
                said = f"{field.field} holds characters that are not seen"
                yield Doubt(change.path, change.id, said)
            if gives_instructions(text) or pipes_download(text):
                said = f"{field.field} addresses the agent: {text[:_SHOWN]}"
                yield Doubt(change.path, change.id, said)


def doubts_about_commands(changes: Iterable[RecordChange]) -> Iterator[Doubt]:
    """Find skills, and beliefs that name a command to run."""
    for change in changes:
        told = [field for field in change.fields if field.after]
        if change.kind == "skill" and told:
            yield Doubt(
                change.path, change.id, f"is a skill, which agents carry out: {change.title}"
            )
        elif change.kind in _TAUGHT:
            naming = (field for field in told if names_command(field.field, field.after))
            for field in list(naming)[:1]:
                said = f"{field.field} names a command to run: {field.after[:_SHOWN]}"
                yield Doubt(change.path, change.id, said)


def names_command(field: str, text: str) -> bool:
    """Check if a text tells its reader to run something.

    >>> names_command("statement", "Run `npm run types` first")
    True
    >>> names_command("statement", "The tests run on Fridays")
    False
    """
    is_log = field in {"id", "at", "links", "evidence", "source_episodes", "citations", "history"}
    return not is_log and bool(_CODE.search(text) or _RUN.search(text))


def doubts_about_claims(
    pairs: Iterable[tuple[str, Memory | None, Memory]], commits: Commits
) -> Iterator[Doubt]:
    """Find reviews, origins and evidence that nobody who wrote the commits could have made.

    `pairs` are the path of a record, its version before and the one now.
    """
    for path, before, after in pairs:
        for said in (
            *_review_claims(path, before, after, commits),
            *_evidence_claims(after, commits),
        ):
            yield Doubt(path, after.id, said)


def _review_claims(
    path: str, before: Memory | None, after: Memory, commits: Commits
) -> Iterator[str]:
    known = reviews(before) if before else []
    new = [mark for mark in reviews(after) if mark not in known]
    names = {str(mark.get("by", "")) for mark in new}
    strangers = sorted(names - commits.authors)
    if strangers:
        yield f"says that {', '.join(strangers)} reviewed it, who wrote none of these commits"
    became_owner = _origin(after) == "owner" and (before is None or _origin(before) != "owner")
    if became_owner and not names and path not in commits.logged:
        yield "says that it is its owner's, and neither a review nor the write log says so"


def _origin(record: Memory) -> str:
    if isinstance(record, Skill):
        return record.metadata.get("loki-origin", "")
    return str(getattr(record, "origin", None) or "")


def _evidence_claims(record: Memory, commits: Commits) -> Iterator[str]:
    if not isinstance(record, Belief):
        return
    for name in record.episodes_for():
        day, mark = _DAY.match(name), record.evidence.episodes.get(name)
        if day and commits.last_day and day[1] > commits.last_day:
            yield f"rests on {name}, which is later than the commit"
        elif day and mark and mark.day and mark.day != day[1]:
            yield f"rests on {name}, and says that it was on {mark.day}"


def doubts_about_stones(gone: Iterable[tuple[str, Memory]]) -> Iterator[Doubt]:
    """Find rejected values that could be learned again; `gone` are paths and tombstones."""
    for path, stone in gone:
        yield Doubt(path, stone.id, f"was rejected and may come back: {stone.title()[:_SHOWN]}")


def doubts_about_files(files: Iterable[FileChange]) -> Iterator[Doubt]:
    """Find changed settings and other files that are no records."""
    for file in files:
        name = file.path.removeprefix(".loki/")
        if file.is_as_init_writes_it():
            continue
        what = "settings" if name == "config.toml" else "a file that is no record"
        yield Doubt(file.path, "", f"{what}: {file.what}")
