"""The change of a file that answered an error.

It is an example of its place. It is told elsewhere only if it could be done there too: its line
calls nothing and has no name of the project's own code, and what it brings is not what the finding
was about. Of a rule that was silenced only the comment with the reason is told.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loki_memory.consolidation.similarity import content
from loki_memory.ingest.steps import Step
from loki_memory.ingest.turns import Hunk
from loki_memory.models.diagnostics import Diagnostic

_NEAR = 6  # lines between a complaint and the change that answers it
_SHOWN = 200  # characters of a line before, or of all lines after
_REASON = 2  # words that say why
_COMMENTS = ("//", "# ", "*", "/*", "--")
SILENCES = re.compile(
    r"nolint|noqa|eslint-disable|ts-ignore|ts-expect-error|type: ?ignore|pylint: ?disable"
    r"|pragma: no cover|shellcheck disable|NOSONAR",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"(?://|#|/\*|--|<!--)\s*(?=\S)")
_LITERAL = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
OWN_NAME = re.compile(r"\b[a-z]+[A-Z]\w*|\b[A-Za-z]+_\w+|\b[A-Z][a-z]+[A-Z]\w*")
_OF_PLACE = re.compile(r"\w[(.]\w|\w\(")  # a call, or a name with what has it
_ERROR_NAME = re.compile(r"\b\w*(?:err|error|exception)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_NAMED = re.compile(r"(?<=\w\.)\w+|(?<=[`'\"])\w+(?=[`'\"])")  # by a message: code of its place
_RULE_CODE = re.compile(r"\b[A-Z]{1,4}\d{3,5}\b")


class CodeChange(NamedTuple):
    """A change in one line."""

    text: str
    path: str
    silences: bool = False  # it tells a linter that the code is meant so, and why
    is_transferable: bool = False

    @property
    def file(self) -> str:
        return posixpath.basename(self.path)


def best_change(steps: Sequence[Step], finding: Diagnostic) -> CodeChange | None:
    """The change near the place of an error that has most words of it; None if none is near."""
    words = frozenset(content(finding.message))
    hunks = _joined(hunk for step in steps if step.worked for hunk in step.hunks)
    near = [hunk for hunk in hunks if _is_near(hunk, finding)] or _only(hunks, finding)
    best = max(near, key=lambda hunk: _shared(hunk, words), default=None)
    return _told(best, finding) if best else None


def _joined(hunks: Iterable[Hunk]) -> list[Hunk]:
    """Hunks in their order; what was changed again counts as changed once."""
    found: list[Hunk] = []
    for hunk in hunks:
        at = next((at for at, known in enumerate(found) if _goes_on(known, hunk)), None)
        if at is None:
            found.append(hunk)
        else:
            found[at] = found[at]._replace(added=hunk.added)
    return found


def _goes_on(before: Hunk, hunk: Hunk) -> bool:
    """Check if a hunk takes out what an earlier one put in."""
    added = before.added.strip()
    return bool(added) and before.path == hunk.path and added in hunk.removed


def _is_near(hunk: Hunk, finding: Diagnostic) -> bool:
    """Check that a change is where an error says; a linter points at the line that it means."""
    if not (hunk.line and finding.line):
        return not finding.rule and _is_there(hunk, finding)
    return abs(hunk.line - finding.line) <= _NEAR and _is_there(hunk, finding)


def _only(hunks: Iterable[Hunk], finding: Diagnostic) -> list[Hunk]:
    """The one change of a file, where nobody knows its line."""
    found = [hunk for hunk in hunks if _is_there(hunk, finding)]
    return found if len(found) == 1 and not found[0].line else []


def _is_there(hunk: Hunk, finding: Diagnostic) -> bool:
    return posixpath.basename(finding.path) == posixpath.basename(hunk.path)


def _shared(hunk: Hunk, words: frozenset[str]) -> int:
    """Count the words of a complaint in a change; a change of other comments comes last."""
    is_code = _lines(hunk.removed) or _lines(hunk.added) or SILENCES.search(hunk.added)
    return len(words.intersection(content(f"{hunk.removed}\n{hunk.added}"))) if is_code else -1


def _told(hunk: Hunk, finding: Diagnostic) -> CodeChange | None:
    if SILENCES.search(hunk.added) and not SILENCES.search(hunk.removed):
        reason = _directive(hunk.added, finding)
        return CodeChange(f"`{reason}`", hunk.path, silences=True) if reason else None
    removed, added = _lines(hunk.removed), _lines(hunk.added)
    before, after = " ".join(removed), " ".join(added)
    if not after or max(len(before), len(after)) > _SHOWN:
        return None
    is_line = len(removed or added) == 1
    is_transferable = is_line and _is_transferable(before, after, finding.message)
    text = f"`{before}` \N{RIGHTWARDS ARROW} `{after}`" if before else f"added `{after}`"
    return CodeChange(text, hunk.path, is_transferable=is_transferable)


def _directive(added: str, finding: Diagnostic) -> str:
    """The comment that silences the rule of a finding and says why; empty if it does not say."""
    for line in added.splitlines():
        found = SILENCES.search(line)
        is_reasoned = found and len(_WORD.findall(line[found.end() :])) > _REASON + 1
        if found and is_reasoned and _names_rule(line, finding):
            starts = [start.start() for start in _COMMENT.finditer(line, 0, found.start() + 1)]
            return line[starts[-1] :].strip() if starts else ""
    return ""


def _names_rule(added: str, finding: Diagnostic) -> bool:
    """Check if a directive names a rule; of a linter with codes, the code of the finding."""
    codes = _RULE_CODE.findall(added)
    is_code = not codes or not _RULE_CODE.match(finding.kind) or finding.kind in codes
    return bool(finding.rule) and finding.rule in added and is_code


def _is_transferable(before: str, after: str, message: str) -> bool:
    """Check that a change can be done in another place, and does not drop an error.

    >>> unwrapped = "error returned from external package is unwrapped"
    >>> _is_transferable("return err", 'return fmt.Errorf("read: %w", err)', unwrapped)
    True
    >>> _is_transferable("return load(key)", "return load(key), nil", unwrapped)
    False
    >>> _is_transferable("case Open:", "case Open, Shut:", "missing cases: door.Shut")
    False
    """
    known, added = {*_WORD.findall(before)}, _LITERAL.sub("", after)
    news = {*_WORD.findall(added)} - known
    if not news or _OF_PLACE.search(before) or OWN_NAME.search(f"{before} {added}"):
        return False
    drops_error = _ERROR_NAME.search(before) and not _ERROR_NAME.search(after)
    return not drops_error and news.isdisjoint(_NAMED.findall(message))


def _lines(text: str) -> list[str]:
    """The lines of one side of a hunk without comments."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(_COMMENTS)]
