"""The git history: what was reverted or mended, with the reason in the commit's own words.

A subject says what was done, and git tells that better. Kept is the sentence of the body that says
why, without trailers, names, addresses and numbers of issues.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from loki_memory.seed.proposal import HISTORY, Proposal

COMMITS = 2_000  # that are looked at, the newest
SIZES = "--batch-check=%(objectname) %(objectsize)"  # of `git cat-file`
_LARGEST = 10_000  # bytes of a commit; a longer message is a report
_LONGEST_SUBJECT = 300  # characters
_HEADER = re.compile(rb"([0-9a-f]{40,64}) commit (\d+)\n")
_AUTHOR = re.compile(r"^author .*?<([^<>]*)>", re.MULTILINE)
_REVERT = re.compile(
    r"""Revert\s+["\u201c](.+?)["\u201d]?\s*(?:\(#\d+\))?$|revert(?:\(.*?\))?!?:\s*(.+)"""
)
_REVERTED = re.compile(r"\s*This reverts commits? [0-9a-f]{7,40}[^.\n]*(?:\n(?!\n)[^.\n]*)*\.?")
_FIX = re.compile(
    r"(?:fix|bugfix|hotfix)(?:\([^)]*\))?!?:\s*(.+)|(?:[\w/.,-]{1,30}: )?((?:fix"
    r"|work ?around|avoid|prevent|handle|do not|don't|never|stop)\b.+)",
    re.IGNORECASE,
)
_CHORE = re.compile(
    r"typo|lint|flake|formatting|readme|changelog|changes|docs?\b|spelling|grammar|merge",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|so that|otherwise|regress(?:ion|ed)|must(?: not|n't)?|never|cannot|can't"
    r"|due to|caused|causes|breaks|broke|deadlock\w*|race|leak\w*|crash\w*|fails?|failed"
    r"|too (?:slow|much|many)|instead of|unless|only works|does(?: not|n't)|is not|are not"
    r"|requires?|relies|relied)\b",
    re.IGNORECASE,
)
_TRAILER = re.compile(
    r"^[A-Z]+(?:-[A-Z]+)+: .*$|^(?:cc|bug|issue|pr|change-id): .*$",
    re.MULTILINE | re.IGNORECASE,
)
_CREDIT = re.compile(
    r"\b(?:reported|suggested|reviewed|spotted|found|noticed|discovered|fixed|written|authored)"
    r"(?:-| )by\b|\bthanks\b|\bthank you\b|@|https?:|\bco-authored|\bsigned-off"
    r"|\b(?:my|i'm|i've|me)\b|(?<!\S)i(?=\s)",
    re.IGNORECASE,
)
_NUMBERS = re.compile(
    r"\s*\(?(?:(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?|refs?|see|issue|pr|gh)[ :-]*)?"
    r"(?:#|gh-|bpo-)\d+\)?",
    re.IGNORECASE,
)
_HASH = re.compile(r"\b[0-9a-f]{7,40}\b")
_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n\s*\n|\n\s*[-*+]\s+")
_SHORTEST, _LONGEST = 20, 240  # characters of a reason
_MOST = 6  # lines from the history


class HistoryCommit(NamedTuple):
    """A commit as far as it is looked at."""

    id: str
    email: str
    subject: str
    body: str


def small_commits(sizes: str) -> list[str]:
    """The ids of commits that may be read, from the lines `ID SIZE` of `git cat-file`."""
    rows = (line.split() for line in sizes.splitlines())
    return [row[0] for row in rows if len(row) == 2 and int(row[1]) <= _LARGEST]  # noqa: PLR2004


def parse_commits(batch: bytes) -> list[HistoryCommit]:
    """Parse the output of `git cat-file --batch` for commits."""
    found = []
    start = 0
    while header := _HEADER.match(batch, start):
        end = header.end() + int(header[2])
        found.append(_commit(header[1].decode(), batch[header.end() : end]))
        start = end + 1
    return found


def _commit(id_: str, content: bytes) -> HistoryCommit:
    head, _, message = content.decode(errors="replace").partition("\n\n")
    author = _AUTHOR.search(head)
    subject, _, body = message.strip().partition("\n\n")
    subject = " ".join(subject.split())
    return HistoryCommit(id_, author[1] if author else "", subject[:_LONGEST_SUBJECT], body)


def facts(commits: Iterable[HistoryCommit], own_email: str = "") -> list[Proposal]:
    """Reverts and fixes that say why, the newest first; reverts before fixes."""
    found = list(_reasons(commits, own_email))
    chosen = sorted(found, key=lambda proposal: -proposal.worth)
    unique = {proposal.text: proposal for proposal in reversed(chosen)}
    return [proposal for proposal in chosen if unique[proposal.text] is proposal][:_MOST]


def _reasons(commits: Iterable[HistoryCommit], own_email: str) -> Iterator[Proposal]:
    for commit in commits:
        reverted = _REVERT.match(commit.subject)
        text = _revert(reverted, commit) if reverted else _fix(commit)
        if text:
            yield Proposal(
                text,
                "decision" if reverted else "gotcha",
                HISTORY,
                (commit.id[:10],),
                78 if reverted else 65,
                is_quoted=True,
                is_foreign=not own_email or commit.email != own_email,
                commit=commit.id,
            )


def _revert(match: re.Match[str], commit: HistoryCommit) -> str:
    what = _tidy(match[1] or match[2] or "")
    why = reason(_REVERTED.sub("", commit.body), is_given=True)
    return f'"{what}" was reverted: {why}' if what and why else ""


def _fix(commit: HistoryCommit) -> str:
    match = _FIX.match(commit.subject)
    what = _tidy(match[1] or match[2] or "") if match else ""
    if not what or _CHORE.search(what):
        return ""
    why = reason(commit.body)
    return f"{what[:1].upper()}{what[1:]}: {why}" if why else ""


def _tidy(subject: str) -> str:
    """A subject without the numbers of issues; empty if it names a person or a hash."""
    text = _NUMBERS.sub("", subject).strip(' .:"')
    is_clean = text and not _CREDIT.search(text) and not _HASH.search(text)
    return text if is_clean and len(text) <= 100 and "\ufffd" not in text else ""  # noqa: PLR2004


def reason(body: str, *, is_given: bool = False) -> str:
    """The first sentence of a body that says why; any sentence, if a reason is given.

    >>> reason("Fixes #12.\\n\\nThe lock must not be held here because the child waits for it.")
    'The lock must not be held here because the child waits for it.'
    """
    text = _TRAILER.sub("\n\n", body)
    for part in _ENDS.split(text):
        if "\n    " in part or part.lstrip().startswith((">", "    ", "```", "|", "$")):
            continue
        sentence = _sentence(part)
        if sentence and (is_given or _REASON.search(sentence)):
            return sentence
    return ""


def _sentence(part: str) -> str:
    """A part of a body as one sentence; empty if it is none, or names somebody."""
    text = _NUMBERS.sub("", " ".join(part.split())).strip(" -*")
    is_prose = text[:1].isalpha() or text[:1] == "`"
    if not is_prose or _CREDIT.search(text) or _HASH.search(text) or "\ufffd" in text:
        return ""
    if not _SHORTEST <= len(text) <= _LONGEST or text.endswith((":", "?", "…", "...", ",")):
        return ""
    return text if text.endswith((".", "!")) else f"{text}."
