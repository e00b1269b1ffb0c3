"""Hints during a session: a few lines before a prompt, and the known remedy after an error.

Before a prompt, the memories nearest to it, each at most once in a session until the session loses
its context. After a failed tool call, what resolved the same error before. Both come from memory of
this project; a line that is not near enough, not trusted or not through the gate (`index.gate`) is
left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from loki_memory.injection.trust_filter import withheld
from loki_memory.models.text import tokens
from loki_memory.recall.recall import RecallOptions, note_shown, recall, shown
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_LINES = 3  # before a prompt: read at every one of them
_LOOKED_AT = 8  # hits, some of which may be withheld
_LESSONS = 2  # after a failure
_NEAR = 0.4  # of the best score, as for all that is injected
_ASKED = 2_000  # characters of a prompt: the rest is pasted
# A session that began, or lost its context, may get every memory again. Injections into its
# subagents do not count.
_BEGINNINGS = ("hook:SessionStart",)
_TELLING = (*_BEGINNINGS, "hook:UserPromptSubmit")


def reminder(workspace: Workspace, prompt: str, session: str, surface: str) -> str:
    """Lines that are relevant to a prompt; empty where nothing is relevant enough."""
    asked = _beginning(without_private(prompt))
    if not asked:
        return ""
    options = RecallOptions(asked, _LOOKED_AT, session=session)
    hits, _ = recall(workspace, options.asked(workspace.now(), injected=True, unasked=True))
    known = told_before(workspace, session)
    held = withheld(workspace.home)
    near = [hit for hit in hits if hit.score >= _NEAR * hits[0].score and hit.id not in held]
    fresh = _worded(workspace, (hit for hit in near[:_LINES] if hit.id not in known))
    if fresh:
        note_shown(workspace, surface, asked, [hit for hit, _ in fresh], session)
    return "".join(line for _, line in fresh)


def lesson(
    workspace: Workspace, error: str, tool: str, target: str, session: str, surface: str
) -> str:
    """The remedies of this very error, best first; empty if none is known."""
    from loki_memory.files.redaction import redact
    from loki_memory.models.error_signature import head, signature

    error = redact(error)  # as it was stored, and as it may be journaled
    found = signature(error)
    if found is None:
        return ""
    lessons = _lessons(workspace, f"error:{found.exact}", head(tool, target, error))
    known = _worded(workspace, lessons)[:_LESSONS]
    if known:
        costs = [(hit.id, tokens(shown(hit))) for hit, _ in known]
        workspace.journal.shown(
            costs, surface=surface, query=found.exact, session=session, now=workspace.now()
        )
    return "".join(line for _, line in known)


def _beginning(text: str) -> str:
    """The part of a prompt that is searched for; secrets are redacted before it is cut."""
    if len(text) <= _ASKED:
        return text
    from loki_memory.files.redaction import clip

    return clip(text, _ASKED)


def without_private(text: str) -> str:
    """A prompt as it may be searched for and journaled."""
    if "<" not in text:
        return text.strip()
    from loki_memory.ingest.turns import clean

    return clean(text)


def told_before(workspace: Workspace, session: str) -> set[str]:
    """The memories that were injected into a session since it began, or was compacted.

    Memories that a brief offered do not count: some of them may not have fitted in.
    """
    from loki_memory.journal import name_of

    known: set[str] = set()
    for surface, ids in _shown(workspace, name_of(session)) if session else ():
        known = set() if surface in _BEGINNINGS else known | ids
    return known


def _shown(workspace: Workspace, session: str) -> Iterator[tuple[str, set[str]]]:
    """The latest injections of a session with their surfaces; foreign lines are skipped."""
    try:
        lines = workspace.journal.recent()
    except OSError:
        return
    for line in lines:
        with suppress(KeyError, TypeError, ValueError):
            if line["session"] == session and line["surface"] in _TELLING:
                yield line["surface"], {str(name) for name, _ in line["ids"]}


def _lessons(workspace: Workspace, mark: str, by: str) -> list[Recollection]:
    """Warnings that know an error and its remedy, the surest first; of those that name a command,
    the ones about the command that met it, if there are any. A candidate counts if it knows what
    mended the error.
    """
    from loki_memory.index.gate import lessons

    workspace.home.look_again()
    rows = lessons(workspace.index, mark)
    held = withheld(workspace.home)
    known = [
        Recollection(name, "anti-pattern", title, confidence=sure, evidence=evidence, status=status)
        for name, title, sure, status, evidence in rows
        if name not in held
    ]
    return [hit for hit in known if hit.title.endswith(f"(running {by})")] or known


def _worded(workspace: Workspace, hits: Iterable[Recollection]) -> list[tuple[Recollection, str]]:
    """Memories that have a line to show, each with that line."""
    from loki_memory.injection.line import bullet, injected_line, line

    lines = ((hit, bullet(line(injected_line(workspace, hit)))) for hit in hits)
    return [(hit, f"{text}\n") for hit, text in lines if text]
