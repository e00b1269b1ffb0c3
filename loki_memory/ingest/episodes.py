"""Episodes: what a stretch of a session comes to, as a record that anybody could have written.

Everything here is a function of the turns: read in pieces or at once, in any order, a session gives
the same episodes. An episode is known by its session and its first turn. What tools of third
parties complained of stands in an episode of its own, whose origin is `external`, so that nothing
that is learned from it is ever put before an agent unasked.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

import orjson

from loki_memory.files.redaction import clip, clip_end
from loki_memory.ingest.boundaries import COMMITS, Stretch, stretches
from loki_memory.ingest.repair import repair
from loki_memory.ingest.statements import PER_EPISODE, FoundStatement
from loki_memory.ingest.steps import CHECKS, Step, TouchedFiles, localised, steps, touched
from loki_memory.ingest.turns import CALL, PROMPT, SAY, STOP, Turn, is_foreign
from loki_memory.models import Episode, parse
from loki_memory.models.diagnostics import Diagnostic, findings
from loki_memory.models.error_signature import complaint
from loki_memory.models.ids import digest
from loki_memory.models.text import moment, run_hashes

_GOAL = 400  # characters: two or three sentences say what is wanted
_ACTIONS = 60  # of the log: episodes are files that people review
_ERRORS = 30
_RULES = 6  # of one report of a linter
_TARGET = 200  # characters of what an action was done to
_HEAD, _TAIL = 500, 200  # of an error
_LINE = 240  # of the line that says what went wrong
_TOOL = 100  # of a tool's name
_PATHS = 60_000  # bytes of a list of files: about a thousand; a record has at most a megabyte
# Goals by their words, in the terms that recall has for tasks; the first that fits decides.
_PHASES = (
    ("review", re.compile(r"\b(?:review|audit)\w*", re.IGNORECASE)),
    (
        "debugging",
        re.compile(
            r"\b(?:fix|bug|error|fail|broken|crash|debug)(?:s|e?d|es|ing|ure)?\b", re.IGNORECASE
        ),
    ),
    (
        "refactoring",
        re.compile(r"\b(?:refactor|renam|restructur|clean ?up|simplif|dedup)\w*", re.IGNORECASE),
    ),
)


def episodes(
    turns: Iterable[Turn], scope: str = "project", stated: Iterable[FoundStatement] = ()
) -> Iterator[Episode]:
    """The episodes of one session: its turns in the order of time, and its statements."""
    by_turn: defaultdict[str, list[FoundStatement]] = defaultdict(list)
    for statement in stated:
        by_turn[statement.key].append(statement)
    for stretch in stretches(turns):
        own = [each for turn in stretch.turns for each in by_turn.get(turn.key, ())]
        for document in _documents(stretch, own):
            if scope != "project":
                document["scope"] = scope
            yield parse(Episode, document)


def _documents(stretch: Stretch, stated: Sequence[FoundStatement]) -> Iterator[dict[str, Any]]:
    done = localised(steps(stretch.turns), stretch.home)
    ours = [step._replace(answer="") if is_foreign(step.tool) else step for step in done]
    own = [statement for statement in stated if not statement.is_external]
    yield _document(stretch, ours, own)
    foreign = [step for step in done if is_foreign(step.tool)]
    external = [statement for statement in stated if statement.is_external]
    if external or any(step.met_error for step in foreign):
        yield _foreign_document(stretch, foreign, external)


def _document(
    stretch: Stretch, done: Sequence[Step], stated: Sequence[FoundStatement]
) -> dict[str, Any]:
    files = TouchedFiles(*map(_within, touched(done, stretch.home)))
    stopped = any(turn.kind == STOP for turn in stretch.turns)
    document = {
        **_head(stretch, "episode"),
        "duration_seconds": round(_seconds(stretch.turns[0].at, stretch.turns[-1].at)),
        "context": _context(stretch, files),
        "summary": closing_message(stretch),
        "statements": _stated(stated),
        "prompt_hashes": _prompt_hashes(stretch),
        **_log(stretch, done),
        "outcome": judged(done, stretch, stopped=stopped),
        "artifacts_produced": _produced(done, files, stretch.home),
        "git_commit": commit(done),
        "git_branch": _branch(stretch),
        "files_read": files.read,
        "files_modified": files.changed,
        "origin": "agent",
    }
    return {name: value for name, value in document.items() if value not in ("", [], None)}


def _branch(stretch: Stretch) -> str:
    """The branch that the client named last; a detached HEAD is none."""
    named = [turn.branch for turn in stretch.turns if turn.branch and turn.branch != "HEAD"]
    return named[-1] if named else ""


def _foreign_document(
    stretch: Stretch, done: Sequence[Step], stated: Sequence[FoundStatement]
) -> dict[str, Any]:
    """Complaints of third parties' tools during a stretch, and what was said of them."""
    document = {
        **_head(stretch, "external"),
        "context": {"goal": _goal(stretch)},
        "statements": _stated(stated),
        **_log(stretch, done),
        "origin": "external",
    }
    return {name: value for name, value in document.items() if value != []}


def _stated(stated: Sequence[FoundStatement]) -> list[dict[str, Any]]:
    """The best statements, in the order in which they were made."""
    best = sorted(stated, key=lambda statement: -statement.score)[:PER_EPISODE]
    return [
        {
            "text": statement.text,
            "type": statement.type,
            "source": statement.source,
            "score": statement.score,
            **({"resolved": True} if statement.is_resolved else {}),
            **({"quoted": True} if statement.is_quoted else {}),
        }
        for statement in stated
        if statement in best
    ]


def _prompt_hashes(stretch: Stretch) -> list[str]:
    prompts = (turn.text for turn in stretch.turns if turn.kind == PROMPT)
    return sorted({hashed for text in prompts for hashed in run_hashes(text)})


def _head(stretch: Stretch, kind: str) -> dict[str, Any]:
    first = stretch.turns[0]
    at = moment(first.at)
    return {
        "id": f"ep-{at[:10]}-{digest(kind, first.session, first.key)}",
        "timestamp": at,
        "agent": first.agent,
        "session": first.session,
        "captured": True,
    }


def _context(stretch: Stretch, files: TouchedFiles) -> dict[str, Any]:
    context = {
        "phase": _phase(stretch.goal, bool(files.changed)),
        "goal": _goal(stretch),
        "files_involved": files.all(),
    }
    return {name: value for name, value in context.items() if value}


def _goal(stretch: Stretch) -> str:
    return _cut(stretch.goal, _GOAL) or "(no words)"


def _phase(goal: str, has_changed: bool) -> str:
    phase = next((name for name, words in _PHASES if words.search(goal[:_GOAL])), "")
    return phase or ("implementation" if has_changed else "exploration")


def _within(paths: Sequence[str]) -> list[str]:
    """The first paths, as many as a record has room for."""
    sizes = accumulate(len(orjson.dumps(path)) for path in paths)
    return [path for path, size in zip(paths, sizes, strict=True) if size <= _PATHS]


def _produced(done: Sequence[Step], files: TouchedFiles, home: str) -> list[str]:
    """Files that were written whole."""
    written = touched([step for step in done if step.tool == "Write"], home).changed
    return [path for path in written if path in files.changed]


def _log(stretch: Stretch, done: Sequence[Step]) -> dict[str, Any]:
    """Return what was done and what went wrong; every error that is told stands in the log too."""
    failing = [at for at, step in enumerate(done) if step.met_error][:_ERRORS]
    begin = stretch.turns[0].at
    return {
        "action_log": [_action(done[at], begin) for at in _shown(len(done), failing)],
        "errors_encountered": [error for at in failing for error in _errors(done, at)][:_ERRORS],
    }


def _shown(count: int, failing: Sequence[int]) -> list[int]:
    """The steps that the log shows: failures with the step after each, the last, the first."""
    wanted = [*failing, *(at + 1 for at in failing), *range(count - 1, count - _ACTIONS // 2, -1)]
    chosen = dict.fromkeys(at for at in (*wanted, *range(count)) if 0 <= at < count)
    return sorted(list(chosen)[:_ACTIONS])


def _action(step: Step, begin: str) -> dict[str, Any]:
    seconds = round(_seconds(begin, step.at))
    action: dict[str, Any] = {"t": seconds, "action": clip(step.tool, _TOOL)}
    if step.target:
        action["target"] = _cut(step.target, _TARGET)
    if step.met_error:
        action["error"] = clip(complaint(step.answer), _LINE)
    elif not step.worked:
        action["result"] = "failed" if step.failed else "not finished"
    return action


def _errors(done: Sequence[Step], at: int) -> Iterator[dict[str, Any]]:
    """The error of a step; of a linter's report, one for each rule."""
    found: dict[str, Diagnostic] = {}
    if done[at].is_shell:
        for finding in findings(done[at].answer):
            found.setdefault(finding.kind, finding)
    reported: list[Diagnostic | None] = [*list(found.values())[:_RULES]]
    for each in reported or [None]:
        mended = repair(done, at, each)
        error = {
            "type": clip(done[at].label, _TOOL),
            "message": clip(each.text(), _HEAD) if each else _message(done[at].answer),
            "resolution": mended.line(),
            "hunk": mended.hunk,
            "command": mended.command,
        }
        yield {name: value for name, value in error.items() if value}


def _message(text: str) -> str:
    """An error as it was shown: its beginning and its end, and between them what went wrong."""
    if len(text) <= _HEAD + _TAIL:
        return text
    head, tail, line = clip(text, _HEAD), clip_end(text, _TAIL), clip(complaint(text), _LINE)
    told = "" if line in head or line in tail else f"{line}\n"
    return f"{head}\n…\n{told}{tail}"


def _seconds(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def _cut(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else clip(line, longest - 1).rstrip() + "…"


# -- the outcome, judged from what was seen: nobody's word is taken for it alone -------------------

_SUMMARY_WORDS = 200
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_COMMITTED = re.compile(r"\[[\w./+-]+(?: \([\w -]+\))? ([0-9a-f]{7,40})\]")
_GOOD = re.compile(
    r"\W*(?:(?:ok(?:ay)?|yes|yeah)\W+)?"
    r"(?:thanks?\b|thank you|perfect|great|awesome|excellent|lgtm|nice\b|well done|works\b"
    r"|looks? (?:good|great)|(?:that|this|it)(?:'s| is)? (?:works|worked|good|great|perfect)"
    r"|(?:please )?commit\b|(?:let'?s |please |can you )(?:now )?commit|ship it"
    r"|(?:create|open|make) (?:a |the )?(?:pr|pull request)\b)",
    re.IGNORECASE,
)
_FINISHED = re.compile(
    r"\b(?:all (?:\w+ )?(?:tests? )?pass\w*|done|fixed|implemented|completed?|successfully|created"
    r"|updated|added|removed|committed|pushed|resolved|works|is now|are now|ready|replaced"
    r"|renamed)\b",
    re.IGNORECASE,
)
_GAVE_UP = re.compile(
    r"\b(?:unable to|could ?n[o']t|cannot proceed|still (?:fail|broken)|not able to|blocked)",
    re.IGNORECASE,
)
_NOT = r"(?:still|(?:still )?(?:does ?n[o']t|did ?n[o']t|is ?n[o']t|not))"
_BAD = re.compile(
    r"\W*(?:(?:no|nope|hmm+|wrong|undo|revert)\b"
    rf"|(?:(?:it|that|this|the [\w ]{{1,30}}?) )?(?:is |are )?{_NOT} "
    r"(?:fail|work|broken|right|correct|pass|what|the same|see|get|help)"
    r"|(?:i'?m |i )?(?:still )?(?:get|getting|see|seeing) (?:an?|the|this) (?:same )?"
    r"(?:error|issue)"
    r"|that broke|you broke|(?:the |that )?(?:tests?|lint|build|ci)\b[\w ]{0,20}\bfail)",
    re.IGNORECASE,
)


def judged(steps: Sequence[Step], stretch: Stretch, *, stopped: bool) -> str:
    """success, failure, partial or unknown."""
    verdicts = [verdict for reply in stretch.replies() if (verdict := _said(reply))]
    if verdicts:
        return verdicts[-1]
    checks = [step for step in steps if step.is_shell and step.ended and _is_check(step)]
    passed = checks[-1].worked if checks else None
    if stopped:
        return "partial" if passed is not False else "failure"
    if passed is False:
        return "partial" if commit(steps) else "failure"
    if passed or commit(steps):
        return "success"
    return _closed(closing_message(stretch), steps)


def _closed(closing: str, steps: Sequence[Step]) -> str:
    """The outcome as the closing message tells it; a question that got its answer is a success."""
    if not closing or (steps and not steps[-1].worked):
        return "unknown"
    if _GAVE_UP.search(closing):
        return "partial"
    if closing.rstrip().endswith("?") and not _FINISHED.search(closing):
        return "unknown"
    return "success" if _FINISHED.search(closing) or not _changes(steps) else "unknown"


def _changes(steps: Sequence[Step]) -> bool:
    return any(step.hunks for step in steps)


def commit(steps: Sequence[Step]) -> str:
    """The last commit that the steps made; empty if they made none."""
    for step in reversed(steps):
        if step.worked and step.is_shell and COMMITS.search(step.target):
            found = _COMMITTED.search(step.answer)
            if found:
                return found[1]
    return ""


def _said(following: str) -> str:
    if _BAD.match(following):
        return "failure"
    return "success" if _GOOD.match(following) else ""


def _is_check(step: Step) -> bool:
    return CHECKS.search(step.target) is not None


def closing_message(stretch: Stretch) -> str:
    """Return what the agent said last, if it did nothing afterwards; empty if it was cut off."""
    said = [turn for turn in stretch.turns if turn.kind in {SAY, CALL, STOP}]
    if not said or said[-1].kind != SAY:
        return ""
    words = _FENCE.sub(" ", said[-1].text).split(" ")
    text = " ".join(words[:_SUMMARY_WORDS]).strip()
    return text + ("…" if len(words) > _SUMMARY_WORDS else "")
