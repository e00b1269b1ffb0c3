"""Changes of memory in words: a line, a commit's message, a review, a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from loki_memory.history.belief_diff import Shift
from loki_memory.history.file_changes import FieldChange, FileChange, RecordChange, untold
from loki_memory.models.ids import ID
from loki_memory.models.text import revealed, shorten

WIDTH = 72  # git's own advice for a subject
_TITLE = 100
_BESIDE = {"learning", "link"}  # they come with a belief, and are not the subject
_LINES = 100  # enough for a reader; `loki-mem diff` has all


def message(shifts: Sequence[Shift], episodes: int = 0) -> tuple[str, str]:
    """Compose subject and body. `episodes` is the number of episodes that caused the change."""
    return subject(shifts, episodes), "\n".join(_body(shifts))


def subject(shifts: Sequence[Shift], episodes: int = 0) -> str:
    """Compose one line that fits where git shows it; the body has the rest."""
    beliefs = [shift for shift in shifts if shift.what != "recorded"]
    weighty = [shift for shift in beliefs if shift.kind not in _BESIDE]
    parts = list(phrases(weighty or beliefs or shifts)) or ["no belief changed"]
    source = f" (from {count(episodes, 'episode')})" if episodes and beliefs else ""
    line = f"memory: {', '.join(parts)}{source}"
    while len(line) > WIDTH and len(parts) > 1:
        parts.pop()
        line = f"memory: {', '.join(parts)}, …{source}"
    return line


def phrases(shifts: Iterable[Shift]) -> Iterator[str]:
    """`2 patterns learned`, `1 superseded`: the noun only where it changes."""
    last = ""
    for (word, kind), group in groupby(shifts, lambda shift: (shift.what, shift.kind)):
        number = sum(1 for _ in group)
        yield f"{number:,} {word}" if kind == last else f"{count(number, kind)} {word}"
        last = kind


def count(number: int, noun: str) -> str:
    """`1 fact`, `2 facts`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _body(shifts: Sequence[Shift]) -> Iterator[str]:
    beliefs = [shift for shift in shifts if shift.what != "recorded"]
    yield from (f"- {line(shift)}" for shift in beliefs[:_LINES])
    if len(beliefs) > _LINES:
        yield f"- and {len(beliefs) - _LINES:,} more"
    if len(beliefs) < len(shifts):
        yield f"- recorded {count(len(shifts) - len(beliefs), 'episode')}"


def line(shift: Shift) -> str:
    """One shift on one line."""
    text = f"{shift.what} {shift.id}: {plain(shift.title, _TITLE)}"
    weight = ", ".join(filter(None, (shift.weight(), _sources(shift))))
    return f"{text} ({weight})" if weight else text


def _sources(shift: Shift) -> str:
    return count(len(shift.caused_by), "episode") if shift.caused_by else ""


def plain(text: str, width: int = 0) -> str:
    """Put stored text on one line, without characters that a terminal could obey."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    shown = " ".join(shown.split())
    return shorten(shown, width) if width else shown


# -- a review: the changes between two states, and the episodes behind them ------------------------


CANDIDATES = "candidates of this machine"  # what a review of them compares with


class Cause(NamedTuple):
    """An episode that caused a change, in one line."""

    id: str
    goal: str
    outcome: str
    agent: str


class Unreadable(NamedTuple):
    """A file that is no record, and why."""

    path: str
    reason: str


class Review(NamedTuple):
    """The compared states, the changes, and their evidence."""

    before: str
    after: str
    shifts: list[Shift]
    evidence: dict[str, Cause]  # by the ids in `caused_by`; missing if it was not found
    invalid: list[Unreadable]
    records: Sequence[RecordChange] = ()  # every field that differs, of every memory
    files: Sequence[FileChange] = ()  # every other file below `.loki` that differs

    @property
    def is_of_candidates(self) -> bool:
        """Check if it compares what is published with the candidates of this machine."""
        return self.after == CANDIDATES

    @property
    def is_empty(self) -> bool:
        return not (self.shifts or self.invalid or self.records or self.files)

    def fields(self, shift: Shift) -> list[FieldChange]:
        """The fields of a changed memory that the words of its shift do not tell."""
        return [
            field
            for change in self.records
            if change.id == shift.id
            for field in untold(change, shift)
        ]

    def quiet(self) -> list[RecordChange]:
        """The memories that differ only in fields about which no shift speaks."""
        told = {shift.id for shift in self.shifts}
        left = (change for change in self.records if change.id not in told)
        return [change._replace(fields=untold(change, None)) for change in left]

    def counts(self) -> dict[str, int]:
        """Count the changes by their word, in the order of the shifts."""
        return {word: len(shifts) for word, shifts in self.by_word().items()}

    def by_word(self) -> dict[str, list[Shift]]:
        """Group the shifts by their word, in their order."""
        groups: dict[str, list[Shift]] = {}
        for shift in self.shifts:
            groups.setdefault(shift.what, []).append(shift)
        return groups

    def summary(self) -> str:
        """`2 patterns learned, 1 superseded`."""
        return ", ".join(phrases(self.shifts))

    def markdown(self) -> str:
        """The text of a pull request's comment: all that changed, or as much as a forge takes."""
        texts = (_page(MarkdownPage(self, *size)) for size in _SIZES)
        text = next((page_text for page_text in texts if len(page_text) <= LIMIT), "")
        return text or f"{MARK}\n{_headline(self)}\n\n{_PARTLY}\n"


# -- a review as Markdown, made to be a comment on a pull request ----------------------------------


# A workflow finds its last comment by this line, and replaces it.
MARK = "<!-- loki-mem review -->"
LIMIT = 60_000  # characters: GitHub takes 65,536 in a comment
# Rows per section, and characters per text (0: all of it); the first that fits.
_SIZES = ((10_000, 0), (10_000, 240), (200, 240), (50, 240), (15, 240), (5, 240), (1, 240))
_PARTLY = (
    "**This comment is too small for everything that changed.** Read the rest before you merge: "
    "`loki-mem diff` prints all of it."
)
# Characters with a meaning within a line of Markdown. Stored text never begins a line.
_ACTIVE = re.compile(r"[\\`*_\[\]~$!]")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"})
# A forge looks for these after Markdown is rendered, so only a character in between stops it.
_SUMMONS = re.compile(r"(@|#|(?i:GH-)|(?i:://)|(?i:www\.))(?=\S)")
_BREAK = "\N{ZERO WIDTH SPACE}"


class MarkdownPage(NamedTuple):
    """A review, how many rows each of its sections may have, and how long a text may be."""

    review: Review
    rows: int
    width: int

    def escaped(self, text: str) -> str:
        return escaped(text, self.width)


def escaped(text: str, width: int = 0) -> str:
    """Escape stored text for Markdown, on one line; hidden characters are shown."""
    shown = _SUMMONS.sub(rf"\1{_BREAK}", plain(revealed(text), width))
    return _ACTIVE.sub(r"\\\g<0>", shown).translate(_ENTITIES)


def _page(page: MarkdownPage) -> str:
    review = page.review
    lines = [MARK, _headline(review), "", _compared(review), ""]
    if (page.rows, page.width) != _SIZES[0]:
        lines += [_PARTLY, ""]
    for word, shifts in review.by_word().items():
        lines += [*_section(page, word, shifts), ""]
    return "\n".join([*lines, *_quiet(page), *_files(page), *_invalid(page)]).rstrip("\n") + "\n"


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
    yield from (_row(page, shift) for shift in shown)
    if len(shifts) > len(shown):
        yield f"\n… and {len(shifts) - len(shown):,} more; `loki-mem diff` has all."
    yield from _evidence(page.review, shown)


def _row(page: MarkdownPage, shift: Shift) -> str:
    said = [f"{page.escaped(shift.title)} {_code(shift.id)}", *map(page.escaped, shift.details)]
    said += _fields(page, page.review.fields(shift))
    rests = count(len(shift.caused_by), "episode") if shift.caused_by else ""
    return f"| {shift.kind} | {'<br>'.join(said)} | {shift.weight()} | {rests} |"


def _fields(page: MarkdownPage, fields: Iterable[FieldChange]) -> list[str]:
    return [page.escaped(field.words()) for field in fields]


def _quiet(page: MarkdownPage) -> Iterator[str]:
    """List memories of which only fields changed about which no word speaks."""
    changes = page.review.quiet()
    if changes:
        yield f"#### Beside beliefs ({len(changes):,})"
        yield ""
    for change in changes[: page.rows]:
        said = [f"{page.escaped(change.title)} {_code(change.id)}", *_fields(page, change.fields)]
        yield f"- {change.kind}: {'<br>'.join(said)}"
    yield from _more(changes, page.rows)
    yield from [""] if changes else []


def _files(page: MarkdownPage) -> Iterator[str]:
    """List changed files that are no records, with their lines."""
    files = page.review.files
    if files:
        yield f"#### Other files ({len(files):,})"
        yield ""
    for file in files[: page.rows]:
        lines = [page.escaped(line) for line in file.lines[: page.rows]]
        if len(file.lines) > page.rows:
            lines.append(f"… and {len(file.lines) - page.rows:,} more lines")
        yield f"- {'<br>'.join([f'{page.escaped(file.path)}: {file.what}', *lines])}"
    yield from _more(files, page.rows)
    yield from [""] if files else []


def _more(listed: Sequence[object], rows: int) -> Iterator[str]:
    if len(listed) > rows:
        yield f"- … and {len(listed) - rows:,} more; `loki-mem diff` has all."


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
            yield f"- {escaped(problem.path, 240)}: {escaped(problem.reason, 240)}"
