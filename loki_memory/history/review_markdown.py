"""A review as Markdown that is made to be a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from loki_memory.history.belief_diff import Shift
from loki_memory.history.commit_message import count, plain
from loki_memory.history.review_result import Review
from loki_memory.models.ids import ID

# A workflow finds its last comment by this line, and replaces it.
MARK = "<!-- loki-mem review -->"
LIMIT = 60_000  # characters: GitHub takes 65,536 in a comment
_ROWS = (200, 50, 15, 5, 1)  # per section; the most that fits
_WIDTH = 240
# Characters with a meaning within a line of Markdown. Stored text never begins a line.
_ACTIVE = re.compile(r"[\\`*_\[\]~$!]")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"})
# A forge looks for these after Markdown is rendered, so only a character in between stops it.
_SUMMONS = re.compile(r"(@|#|(?i:GH-)|(?i:://)|(?i:www\.))(?=\S)")
_BREAK = "\N{ZERO WIDTH SPACE}"


class MarkdownPage(NamedTuple):
    """A review, and how many rows each of its sections may have."""

    review: Review
    rows: int


def markdown(review: Review) -> str:
    """The comment, with as many rows as a forge takes."""
    texts = (_page(MarkdownPage(review, rows)) for rows in _ROWS)
    text = next((page_text for page_text in texts if len(page_text) <= LIMIT), "")
    return text or f"{MARK}\n{_headline(review)}\n"


def escaped(text: str, width: int = _WIDTH) -> str:
    """Escape stored text for Markdown, on one line."""
    shown = _SUMMONS.sub(rf"\1{_BREAK}", plain(text, width))
    return _ACTIVE.sub(r"\\\g<0>", shown).translate(_ENTITIES)


def _page(page: MarkdownPage) -> str:
    review = page.review
    lines = [MARK, _headline(review), "", _compared(review), ""]
    for word, shifts in review.by_word().items():
        if word != "recorded":
            lines += [*_section(page, word, shifts), ""]
    return "\n".join([*lines, *_invalid(page)]).rstrip("\n") + "\n"


def _headline(review: Review) -> str:
    return f"### Memory: {review.summary() or 'no belief changed'}"


def _compared(review: Review) -> str:
    spoilt = f" · {count(len(review.invalid), 'file')} cannot be read" if review.invalid else ""
    return f"From {escaped(review.before)} to {escaped(review.after)}{spoilt}"


def _section(page: MarkdownPage, word: str, shifts: Sequence[Shift]) -> Iterator[str]:
    shown = shifts[: page.rows]
    yield f"#### {word.capitalize()} ({len(shifts):,})"
    yield ""
    yield "| | memory | confidence | rests on |"
    yield "|---|---|---|---|"
    yield from (_row(shift) for shift in shown)
    if len(shifts) > len(shown):
        yield f"\n… and {len(shifts) - len(shown):,} more; `loki-mem diff` has all."
    yield from _evidence(page.review, shown)


def _row(shift: Shift) -> str:
    said = [f"{escaped(shift.title)} {_code(shift.id)}", *map(escaped, shift.details)]
    rests = count(len(shift.caused_by), "episode") if shift.caused_by else ""
    return f"| {shift.kind} | {'<br>'.join(said)} | {shift.weight()} | {rests} |"


def _evidence(review: Review, shifts: Iterable[Shift]) -> Iterator[str]:
    """List the episodes behind a section, each once, folded."""
    caused = [shift for shift in shifts if shift.caused_by]
    if not caused:
        return
    episodes = {name for shift in caused for name in shift.caused_by}
    yield f"\n<details><summary>Evidence: {count(len(episodes), 'episode')}</summary>\n"
    for shift in caused:
        yield f"- {_code(shift.id)}"
        yield from (f"  - {_cause_in_markdown(review, name)}" for name in shift.caused_by)
    yield "\n</details>"


def _cause_in_markdown(review: Review, name: str) -> str:
    found = review.evidence.get(name)
    if found is None:
        return f"{_code(name)} (not here)"
    by = f", by {escaped(found.agent)}" if found.agent else ""
    return f"{_code(name)} {escaped(found.goal)}: {found.outcome}{by}"


def _code(name: str) -> str:
    """Format an id as code. Evidence may name anything; a text that is no id is escaped."""
    return f"`{name}`" if ID.fullmatch(name) else escaped(name)


def _invalid(page: MarkdownPage) -> Iterator[str]:
    if page.review.invalid:
        yield f"#### Cannot be read ({len(page.review.invalid):,})"
        yield ""
        for problem in page.review.invalid[: page.rows]:
            yield f"- {escaped(problem.path)}: {escaped(problem.reason)}"
