"""The change of a file that answers an error, in one line."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loki_memory.consolidation.similarity import content
from loki_memory.files.redaction import clip
from loki_memory.ingest.steps import Step
from loki_memory.ingest.turns import Hunk
from loki_memory.models.diagnostics import Diagnostic

_LEAST = 0.7  # of the score
_NEAR = 6  # lines between a complaint and the change that answers it
_WHOLE = 200  # characters of several lines that are shown as one
_CODE = 90  # characters of a line of code
_DIRECTIVE = 150  # of one that says why a rule is silenced
_REASON = 2  # words that say why
_FEW_LINES, _TYPICAL = 3, 0.5  # lines of a hunk that one pair stands for, or how alike it must be
_COMMENTS = ("//", "# ", "*", "/*", "--")
_SILENCES = re.compile(
    r"nolint|noqa|eslint-disable|ts-ignore|ts-expect-error|type: ?ignore|pylint: ?disable"
    r"|SuppressWarnings|#\[allow|pragma: no cover|shellcheck disable|NOSONAR",
    re.IGNORECASE,
)
_DISCARDS = re.compile(r"^\s*_(?:, _)* :?= ", re.MULTILINE)  # a result that nobody looks at
_SUPERFLUOUS = re.compile(
    r"\b(?:unused|never used|not used|redundant|unnecessary|superfluous|ineffectual|unreachable"
    r"|dead code|empty|useless|trailing|deprecated|extra|duplicated?)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[a-z]\w*\.[A-Z]\w*|(?<=`)[\w.]+(?=`)")
_DECLARED = re.compile(r"(?<=\bfunc )\w+|(?<=\bdef )\w+|(?<=\bfunction )\w+|(?<=\bclass )\w+")
_LITERAL = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
OWN_NAME = re.compile(r"\b[a-z]+[A-Z]\w*|\b[A-Za-z]+_\w+|\b[A-Z][a-z]+[A-Z]\w*")
_ERROR_NAME = re.compile(r"\b\w*(?:err|error|exception)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_ADVICE = re.compile(
    r"\b(?:use|prefer|instead|replaced? (?:by|with)|consider|call)\b.*", re.IGNORECASE
)
_RULE_CODE = re.compile(r"\b[A-Z]{1,4}\d{3,5}\b")
_COMMENTED = re.compile(r"^(?://|#|--)\s*")


class CodeChange(NamedTuple):
    """A change in one line."""

    text: str
    silences: bool = False  # it tells a linter that the code is meant so, and why
    is_general: bool = False  # it brings no name that only one place has


def best_change(steps: Sequence[Step], error: str, finding: Diagnostic | None) -> CodeChange | None:
    """The change that answers an error best; None if none does."""
    hunks = _joined(hunk for step in steps if step.worked for hunk in step.hunks)
    words = frozenset(content(error))
    scores = [(_answers(hunk, words, finding), -number) for number, hunk in enumerate(hunks)]
    best = max(scores, default=(0.0, 0))
    if best[0] < _LEAST:
        return None
    hunk = hunks[-best[1]]
    shown = _shown(hunk) if _is_meant(hunk, words, finding) else None
    return shown._replace(is_general=_is_general(hunk, error)) if shown else None


def _is_general(hunk: Hunk, error: str) -> bool:
    """Check that a change says more than its error, and brings no name that only one place has.

    The other place that meets the error has other names, also where the error says or quotes them:
    of the error, only the names that it advises are those of its rule.
    """
    known, added = f"{hunk.removed}\n{_LITERAL.sub('', error)}", _LITERAL.sub("", hunk.added)
    has_news = any(word not in known for word in _WORD.findall(added))
    advised = _ADVICE.search(error)
    kept = f"{hunk.removed}\n{advised[0] if advised else ''}"
    names = [name for name in OWN_NAME.findall(added) if not _ERROR_NAME.search(name)]
    return has_news and all(name in kept for name in names)


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


def _is_meant(hunk: Hunk, words: frozenset[str], finding: Diagnostic | None) -> bool:
    """Check that a change can be what an error asked for."""
    if not hunk.added.strip() and finding and not _SUPERFLUOUS.search(finding.message):
        return not finding.rule  # a rule that calls nothing superfluous asks for more
    is_pair = hunk.removed.strip() and hunk.added.strip()
    if is_pair and _comments_out(hunk):
        return False
    is_about = words & frozenset(content(f"{hunk.removed}\n{hunk.added}"))
    is_silencing = finding is not None and _is_reasoned(hunk)
    has_name = not finding or _has_name(hunk, finding.message)
    return bool(is_silencing or (has_name and (is_pair or is_about)))


def _comments_out(hunk: Hunk) -> bool:
    added = hunk.added.strip()
    bare = _COMMENTED.sub("", added)
    return bare != added and hunk.removed.strip() in hunk.added


def _has_name(hunk: Hunk, message: str) -> bool:
    """Check if a change brings one of the names that a complaint calls missing, if it does."""
    return not _missing(message) or _brings_missing(hunk, message)


def _brings_missing(hunk: Hunk, message: str) -> bool:
    return any(name in hunk.added for name in _missing(message))


def _missing(message: str) -> set[str]:
    """The names that a complaint calls missing."""
    _, missing, listed = message.partition("missing ")
    return {name.rpartition(".")[2] for name in _NAME.findall(listed)} if missing else set()


def _answers(hunk: Hunk, error: frozenset[str], finding: Diagnostic | None) -> float:
    score = 0.0
    if finding is None:
        return score
    if posixpath.basename(finding.path) == posixpath.basename(hunk.path):
        is_near = bool(hunk.line) and abs(hunk.line - finding.line) <= _NEAR
        is_near = is_near or _brings_missing(hunk, finding.message)
        if finding.rule and finding.line and not is_near:
            return score  # a linter points at the line that it means
        score += 0.5 + 0.8 * is_near
    if _is_silencing(hunk):
        return score if _names_rule(hunk.added, finding) else 0.0
    lines = f"{hunk.removed}\n{hunk.added}"
    score += 0.25 * min(3, len(frozenset(content(lines)) & error))
    return score - 0.6 * _is_comment(hunk)


def _names_rule(added: str, finding: Diagnostic) -> bool:
    """Check if a directive names a rule; of a linter with codes, the code of the finding."""
    codes = _RULE_CODE.findall(added)
    is_code = not codes or not _RULE_CODE.match(finding.kind) or finding.kind in codes
    return bool(finding.rule) and finding.rule in added and is_code


def _is_comment(hunk: Hunk) -> bool:
    lines = [line.strip() for line in f"{hunk.removed}\n{hunk.added}".splitlines() if line.strip()]
    return all(line.startswith(_COMMENTS) for line in lines)


# -- a rule that is silenced -----------------------------------------------------------------------


def _is_silencing(hunk: Hunk) -> bool:
    return bool(_SILENCES.search(hunk.added) and not _SILENCES.search(hunk.removed))


def _is_reasoned(hunk: Hunk) -> bool:
    return _is_silencing(hunk) and bool(_directive(hunk))


def _directive(hunk: Hunk) -> str:
    """The line that silences a rule and says why in a few words; empty if it does not say."""
    for line in hunk.added.splitlines():
        found = _SILENCES.search(line)
        if found and len(_WORD.findall(line[found.end() :])) > _REASON + 1:  # and the rule's name
            return line.strip()
    return ""


def _silenced(hunk: Hunk) -> CodeChange | None:
    line, name = _directive(hunk), posixpath.basename(hunk.path)
    if not line or len(line) > _DIRECTIVE:
        return None
    if line.startswith(_COMMENTS):
        return CodeChange(f"add `{line}` ({name})", silences=True)
    before = max(_lines(hunk.removed), key=lambda other: _alike(other, line), default="")
    shown = _code(before) if before and _alike(before, line) else ""
    pair = f"`{shown}` → `{line}`" if shown else f"`{line}`"
    return CodeChange(f"{pair} ({name})", silences=True)


# -- wording ---------------------------------------------------------------------------------------


def _shown(hunk: Hunk) -> CodeChange | None:
    """A hunk in one line: the pair of a removed and an added line that have most in common.

    None where one line does not stand for the change: it removes or adds a passage, silences a rule
    without a reason, drops an error, or rewords a text.
    """
    if _is_silencing(hunk):
        return _silenced(hunk)
    if _DISCARDS.search(hunk.added) and not _DISCARDS.search(hunk.removed):
        return None
    name = posixpath.basename(hunk.path)
    removed, added = _lines(hunk.removed), _lines(hunk.added)
    if not (removed and added):
        verb, lines = ("add", added) if added else ("remove", removed)
        code = _code(lines[0])
        return CodeChange(f"{verb} `{code}` ({name})") if len(lines) == 1 and code else None
    whole = " ".join(hunk.added.split())
    if len(removed) == 1 < len(added) and len(whole) <= _WHOLE:
        before, after = _code(removed[0]), whole
    else:
        before, after = map(_code, _pair(removed, added) or ("", ""))
    return CodeChange(f"`{before}` → `{after}` ({name})") if before and after else None


def _pair(removed: Sequence[str], added: Sequence[str]) -> tuple[str, str] | None:
    """The lines that stand for a change; None if no two do."""
    pairs = [
        (_alike(before, after), -first, -second)
        for first, before in enumerate(removed)
        for second, after in enumerate(added)
    ]
    likeness, first, second = max(pairs)
    before, after = removed[-first], added[-second]
    is_passage = max(len(removed), len(added)) > _FEW_LINES and likeness < _TYPICAL
    is_name = any(kind.sub("", before) == kind.sub("", after) for kind in (_LITERAL, _DECLARED))
    drops_error = _ERROR_NAME.search(before) and not _ERROR_NAME.search(after)
    return None if is_passage or is_name or drops_error else (before, after)


def _lines(text: str) -> list[str]:
    """The lines of one side of a hunk; comments only if there is nothing else."""
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) > 1]
    return [line for line in lines if not line.startswith(_COMMENTS)] or lines


def _alike(before: str, after: str) -> float:
    if before == after:
        return -1.0
    words, others = set(_WORD.findall(before)), set(_WORD.findall(after))
    return len(words & others) / max(1, len(words | others))


def _code(line: str) -> str:
    """A line of code as it is shown; empty if it is too long to be shown whole."""
    return line if clip(line, _CODE) == line else ""
