"""Repairs: what mended an error, found in what was said and done after it.

A remedy has up to three parts, in this order of worth: a sentence that explains the error or tells
what to do, the change of a file next to the place that the error names, and the command that worked
in the end. A chain of tool names is no remedy, and neither is a command that only reads.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loki_memory.consolidation.similarity import content
from loki_memory.files.redaction import clip
from loki_memory.ingest.sentences import sentences
from loki_memory.ingest.statement_score import CODE_NAME, HEDGE
from loki_memory.ingest.statements import tidy
from loki_memory.ingest.steps import Step
from loki_memory.ingest.turns import Hunk
from loki_memory.models.diagnostics import Diagnostic, rule
from loki_memory.models.error_noise import INLINE, destroys
from loki_memory.models.error_signature import complaint, head, is_other_form
from loki_memory.models.text import without_home

_WITHIN = 40  # steps to the success that ends an error
_WITHOUT = 8  # steps that may explain one that nothing ended
_LEAST_EXPLANATION, _LEAST_HUNK = 1.15, 0.7
_NEAR = 6  # lines between a complaint and the change that answers it
_SHOWN = 200  # characters of a command
_CODE = 90  # characters of a line of code
_LEAST_WORDS, _MOST_WORDS = 5, 45

_TELLS = re.compile(
    r"\b(?:needs? to|must|should|instead|requires?|expects?|has to|have to|the fix is|by adding"
    r"|by using|use `|make sure|only works|not supported)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|doesn't|does not|isn't|is not|aren't|wrong|missing|unused|no longer|only"
    r"|the (?:issue|problem) (?:is|was)|stale|renamed|already|false positive|can't|cannot|due to"
    r"|since|never|not (?:set|found|available|installed|configured))\b",
    re.IGNORECASE,
)
_EMPTY = re.compile(
    r"\W*(?:(?:there (?:is|are)|two|three|four|a few|some|several|one|\d+)\b.{0,40}"
    r"\b(?:issues?|errors?|failures?|problems?)|i (?:can )?see|i need to see|conflicts? (?:is|are)"
    r"|let me (?:check|look|see|read|find|run|try|fix|verify)|now (?:let me|run|i)|good|great"
    r"|the (?:error|output|test)(?: message)? (?:confirms|shows|indicates|proves|reproduces)"
    r"|all (?:tests|good))\b",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\bnot (?:related|the focus|our|because of)\b|\bunrelated\b", re.IGNORECASE
)
_PASSES = re.compile(
    r"\ball (?:\w+ )?(?:tests? )?pass|\bpass(?:es|ing)?\b|\bclean\b", re.IGNORECASE
)
_ANNOUNCED = re.compile(
    r"^(?:(?:now|so|ok(?:ay)?|good|right|ah)\b[\s,.!—-]*)*"
    r"(?:(?:let me|i'?ll|i will|i need to|we need to)\s+)?(?:(?:also|just|now|first) )?",
    re.IGNORECASE,
)
_REFUSED = re.compile(  # questions, the first person, hashes, paths of one machine
    r"\?$|\bI\b|\bmy\b|\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b|/(?:Users|home)/"
    r"|\bcurrently\b|\byou(?:r|'re)?\b"
    r"|\bthis (?:worktree|repo(?:sitory)?|branch|machine|session|checkout)\b"
)
_OWN_NAME = re.compile(r"\b[a-z]+[A-Z]\w*|\b[A-Za-z]+_\w+|\b[A-Z][a-z]+[A-Z]\w*")
_NAME = re.compile(r"\b[a-z]\w*\.[A-Z]\w*|(?<=`)[\w.]+(?=`)")
_FIRST_NAME = re.compile(r"^\W*`([a-z][a-z0-9]+)`")
_RULE_CODE = re.compile(r"\b[A-Z]{1,4}\d{3,5}\b")
_PLACE = re.compile(r"([\w@./+-]*[\w-]\.[a-z]{1,5})(?::(\d+)|\b)")
_COMPLAINT_WORDS = 2  # a message without two words of content complains of nothing in particular
# Programs that change nothing that an error could have been about.
_READS = frozenset(
    [
        "cat",
        "ls",
        "head",
        "tail",
        "grep",
        "rg",
        "find",
        "wc",
        "echo",
        "pwd",
        "which",
        "stat",
        "file",
        "diff",
        "tree",
        "less",
        "more",
        "sed",
        "awk",
        "jq",
        "sort",
        "uniq",
        "ps",
        "env",
        "printenv",
        "date",
        "sleep",
        "true",
        "test",
        "cd",
    ]
)
_READING = re.compile(
    r"(?:git (?:status|log|diff|show|branch|blame|ls-files|rev-parse|grep|remote|reflog)"
    r"|gh (?:pr|issue|run) (?:view|list|diff|checks|status)|gh api"
    r"|(?:npm|pnpm|yarn|bun|mise|make|just|task|cargo|go|mvn|gradle|dotnet)"
    r"(?: run)? [\w:-]*(?:test|lint|check|build|vet|verify)[\w:-]*)\b"
)
_OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")
_CHAIN = re.compile(r"&&|;|\n")
_CONTINUED = re.compile(r"\\\n\s*")


_COMMENTS = ("//", "# ", "*", "/*", "--")
_SILENCES = re.compile(
    r"nolint|noqa|eslint-disable|ts-ignore|ts-expect-error|type: ?ignore|pylint: ?disable"
    r"|SuppressWarnings|#\[allow|pragma: no cover|shellcheck disable|NOSONAR",
    re.IGNORECASE,
)
_DECLARED = re.compile(r"(?<=\bfunc )\w+|(?<=\bdef )\w+|(?<=\bfunction )\w+|(?<=\bclass )\w+")
_LITERAL = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
_ERROR_NAME = re.compile(r"\b\w*(?:err|error|exception)\b", re.IGNORECASE)
_FEW_LINES, _TYPICAL = 3, 0.5  # lines of a hunk that one pair stands for, or how alike it must be


class Repair(NamedTuple):
    """What mended an error; each part is empty if it is unknown."""

    explanation: str = ""
    hunk: str = ""
    command: str = ""
    refused: str = ""  # an option that the error names and the command that worked has not

    def line(self) -> str:
        """The repair in one line."""
        example = self.hunk or (f"`{self.command}`" if self.command else "")
        if self.refused and not self.explanation:
            return f"Leave out `{self.refused}`. E.g. {example}"
        if not self.explanation:
            verb = "" if self.hunk[:1].isalpha() else "Change " if self.hunk else "Run "
            return f"{verb}{example}"[:1].upper() + f"{verb}{example}"[1:] if example else ""
        end = "" if self.explanation.endswith((".", "!")) else "."
        return f"{self.explanation}{end} E.g. {example}" if example else self.explanation


def repair(steps: Sequence[Step], at: int, finding: Diagnostic | None = None) -> Repair:
    """What mended the error of the step `at`; `finding` is the part of it that is meant."""
    if not steps[at].is_shell:  # the client's own tools
        return Repair()
    error = finding.message if finding else complaint(steps[at].answer)
    named = rule(error) if finding is None else ""
    finding = Diagnostic(named, error) if named else finding
    if len(content(error)) < _COMPLAINT_WORDS:
        return Repair()
    end = _success(steps, at, error, is_finding=finding is not None)
    between = steps[at + 1 : end] if end else steps[at + 1 : at + 1 + _WITHOUT]
    after = steps[at:end] if end else steps[at : at + 1 + _WITHOUT]
    command = _command(steps[at], between, steps[end]) if end and not finding else ""
    found = Repair(
        _explanation(after, error, finding),
        _hunk(between, error, finding or _named_file(steps[at])),
        command,
        _left_out(error, steps[at].target, command),
    )
    is_idle = finding is not None and not found.hunk and not _TELLS.search(found.explanation)
    return Repair() if is_idle else found  # a rule is met again, where only what to do helps


def _named_file(step: Step) -> Diagnostic | None:
    """The file, and perhaps the line, that an error names."""
    found = _PLACE.search(step.answer)
    return Diagnostic("", "", found[1], int(found[2] or 0)) if found else None


def _success(steps: Sequence[Step], at: int, error: str, *, is_finding: bool) -> int:
    """The first later step that does the same and no longer complains; 0 if there is none."""
    for end in range(at + 1, min(len(steps), at + 1 + _WITHIN)):
        later = steps[end]
        has_ended = later.worked or (is_finding and later.ended)
        if has_ended and _is_same(steps[at], later) and error not in later.answer:
            return end
    return 0


def _is_same(failed: Step, later: Step) -> bool:
    if failed.tool != later.tool:
        return False
    if failed.is_shell:  # of a chain, what failed stands first or last
        if INLINE.search(failed.target) or INLINE.search(later.target):
            return False
        heads = failed.heads
        return not {*heads[:1], *heads[-1:]}.isdisjoint(later.heads)
    return bool(failed.files) and failed.files == later.files


# -- words -----------------------------------------------------------------------------------------


def _explanation(steps: Sequence[Step], error: str, finding: Diagnostic | None) -> str:
    """The sentence said meanwhile that explains an error best; empty if none does."""
    words = frozenset(content(error))
    ranked = [
        (_explains(sentence, number, words, finding), -number, sentence)
        for number, sentence in _said(steps)
    ]
    best = max(ranked, default=(0.0, 0, ""))
    return best[2] if best[0] >= _LEAST_EXPLANATION else ""


def _said(steps: Sequence[Step]) -> Iterator[tuple[int, str]]:
    """Sentences as they would be told, with the number of the message since the error."""
    messages = (text for step in steps for text in step.said)
    for number, text in enumerate(messages):
        for sentence in sentences(text):
            told = tidy(_ANNOUNCED.sub("", sentence).rstrip(":"))
            if _LEAST_WORDS <= len(told.split()) <= _MOST_WORDS and not _REFUSED.search(told):
                yield number, told


def _explains(
    sentence: str, number: int, error: frozenset[str], finding: Diagnostic | None
) -> float:
    own = frozenset(content(sentence))
    if finding and (_is_of_another(sentence, finding) or not _is_of_rule(sentence, own, finding)):
        return 0.0
    if not finding and (not own & error or _ELSEWHERE.search(sentence)):
        return 0.0  # it speaks of something else
    score = 0.25 * min(2, len(own & error)) + 0.35 * min(4, len(own - error)) / 4
    score += 0.7 * (_TELLS.search(sentence) is not None)
    score += 0.5 * (_REASON.search(sentence) is not None)
    score += 0.25 * (CODE_NAME.search(sentence) is not None)
    score += 0.35 * (number == 0)
    score += 0.3 * (finding is not None and finding.rule in sentence)
    score -= 0.9 * (_EMPTY.match(sentence) is not None)
    score -= 0.4 * (HEDGE.search(sentence) is not None)
    score -= 0.5 * (_PASSES.search(sentence) is not None)
    return score - 0.15 * number


def _is_of_rule(sentence: str, words: frozenset[str], finding: Diagnostic) -> bool:
    """Whether a sentence names the rule or shares a word with what it complains of."""
    return finding.rule in sentence or not words.isdisjoint(content(finding.message))


def _is_of_another(sentence: str, finding: Diagnostic) -> bool:
    """Whether a sentence is about one place in the code, or about another rule of the linter.

    >>> _is_of_another("Mark the G204 as safe", Diagnostic("gosec", "G304: Potential inclusion"))
    True
    """
    text = finding.text()
    names = {*_OWN_NAME.findall(sentence), *_RULE_CODE.findall(sentence)}
    names |= {*_FIRST_NAME.findall(sentence)}
    return any(name not in text for name in names)


# -- the change ------------------------------------------------------------------------------------


def _hunk(steps: Sequence[Step], error: str, finding: Diagnostic | None) -> str:
    """The change that answers an error best, in one line; empty if none does."""
    hunks = [hunk for step in steps if step.worked for hunk in step.hunks]
    words = frozenset(content(error))
    scores = [(_answers(hunk, words, finding), -number) for number, hunk in enumerate(hunks)]
    best = max(scores, default=(0.0, 0))
    if best[0] < _LEAST_HUNK:
        return ""
    hunk = hunks[-best[1]]
    is_pair = hunk.removed.strip() and hunk.added.strip()
    is_about = words & frozenset(content(f"{hunk.removed}\n{hunk.added}"))
    is_meant = not finding or _has_name(hunk, finding.message)
    return change(hunk) if is_meant and (is_pair or is_about) else ""


def _has_name(hunk: Hunk, message: str) -> bool:
    """Whether a change brings one of the names that a complaint calls missing, if it does."""
    _, missing, listed = message.partition("missing ")
    names = {name.rpartition(".")[2] for name in _NAME.findall(listed)} if missing else set()
    return not names or any(name in hunk.added for name in names)


def _answers(hunk: Hunk, error: frozenset[str], finding: Diagnostic | None) -> float:
    score = 0.0
    if finding is None:
        return score
    if posixpath.basename(finding.path) == posixpath.basename(hunk.path):
        is_near = hunk.line and abs(hunk.line - finding.line) <= _NEAR
        if finding.rule and finding.line and not is_near:
            return score  # a linter points at the line that it means
        score += 0.5 + 0.8 * bool(is_near)
    lines = f"{hunk.removed}\n{hunk.added}"
    score += 0.25 * min(3, len(frozenset(content(lines)) & error))
    return score - 0.6 * _is_comment(hunk)


def _is_comment(hunk: Hunk) -> bool:
    lines = [line.strip() for line in f"{hunk.removed}\n{hunk.added}".splitlines() if line.strip()]
    is_directive = any("nolint" in line or "noqa" in line for line in lines)
    return not is_directive and all(line.startswith(_COMMENTS) for line in lines)


def change(hunk: Hunk) -> str:
    """A hunk in one line: the pair of a removed and an added line that have most in common.

    Empty where one line does not stand for the change: it removes or adds a passage, silences who
    complained, drops an error, or rewords a text.
    """
    name = posixpath.basename(hunk.path)
    removed, added = _lines(hunk.removed), _lines(hunk.added)
    if _SILENCES.search(hunk.added) and not _SILENCES.search(hunk.removed):
        return ""
    if not (removed and added):
        verb, lines = ("add", added) if added else ("remove", removed)
        return f"{verb} `{_code(lines[0])}` ({name})" if len(lines) == 1 else ""
    whole = " ".join(hunk.added.split())
    if len(removed) == 1 < len(added) and len(whole) <= _SHOWN:
        return f"`{_code(removed[0])}` → `{whole}` ({name})"
    pairs = [
        (_alike(before, after), -one, -other)
        for one, before in enumerate(removed)
        for other, after in enumerate(added)
    ]
    likeness, one, other = max(pairs)
    before, after = removed[-one], added[-other]
    is_passage = max(len(removed), len(added)) > _FEW_LINES and likeness < _TYPICAL
    is_name = any(kind.sub("", before) == kind.sub("", after) for kind in (_LITERAL, _DECLARED))
    if is_passage or is_name:
        return ""
    if _ERROR_NAME.search(before) and not _ERROR_NAME.search(after):
        return ""
    return f"`{_code(removed[-one])}` → `{_code(added[-other])}` ({name})"


def _lines(text: str) -> list[str]:
    """The lines of one side of a hunk; comments only if there is nothing else."""
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) > 1]
    return [line for line in lines if not line.startswith(_COMMENTS)] or lines


def _alike(before: str, after: str) -> float:
    if before == after:
        return -1.0
    one, other = set(re.findall(r"\w+", before)), set(re.findall(r"\w+", after))
    return len(one & other) / max(1, len(one | other))


def _code(line: str) -> str:
    return clip(line, _CODE) + ("…" if len(line) > _CODE else "")


# -- the command -----------------------------------------------------------------------------------


_PREPARES = re.compile(  # what is run once so that a command works
    r"\b(?:install|add|generate|gen|sync|fetch|pull|init|login|start|up|migrate|build|fmt|format"
    r"|fix|tidy|read-tree|update|download|restore-deps|bootstrap|setup|types)\b",
    re.IGNORECASE,
)


def _command(failed: Step, between: Sequence[Step], later: Step) -> str:
    """The form of a command that worked; where it is the same, what was run before it."""
    form, wrong = _same_part(failed, later), _same_part(failed, failed)
    if _bare(form) != _bare(wrong):
        return _shown(form) if is_other_form(wrong, form) else ""
    before = [step.target for step in between if step.worked and step.is_shell]
    before += [part for part in _CHAIN.split(later.target) if _bare(part) != _bare(form)]
    changing = [one for one in before if not _only_reads(one) and _PREPARES.search(one)]
    return _shown(changing[-1]) if changing else ""


def _left_out(error: str, failed: str, command: str) -> str:
    """The option that an error names, if the command that worked does without it.

    >>> _left_out("unknown flag: --stat", "gh pr diff 7 --stat", "gh pr diff 7 --name-only")
    '--stat'
    """
    named = [option for option in _OPTION.findall(error) if option in failed.split()]
    return named[0] if command and named and named[0] not in command.split() else ""


def _same_part(failed: Step, later: Step) -> str:
    """Of a chain, the command that the failed one was."""
    heads = {*failed.heads[:1], *failed.heads[-1:]}
    parts = _CHAIN.split(_CONTINUED.sub(" ", later.target))
    same = [part.strip() for part in parts if head(later.tool, part) in heads]
    return same[-1] if same else ""


def _only_reads(command: str) -> bool:
    parts = [part.strip() for part in re.split(r"&&|\|\||[;|\n]", command) if part.strip()]
    return all(
        part.split()[0] in _READS or _READING.match(part) or INLINE.search(part) for part in parts
    )


def _bare(command: str) -> str:
    """A command without what is done with its output."""
    return " ".join(re.split(r"\s+2?>&?1?\s|\s*\||\s2>&1", command)[0].split())


def _shown(command: str) -> str:
    """A command as it is told; empty if nothing of it can be, or if it may destroy something."""
    if destroys(command):
        return ""
    line = _HASH.sub("<hash>", without_home(" ".join(_CONTINUED.sub(" ", command).split())))
    is_private = "~/" in line or "~\\" in line
    return clip(line, _SHOWN) if re.search(r"\w\W+\w", line) and not is_private else ""
