"""Events of a session that are worth a lesson: a correction, an error overcome, a decision.

The agent that did the work words a lesson best, and is asked to only where there is one to word.
What is found here are drafts for it: the words in which the user corrected it, the error with what
mended it, the sentence that states the decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from loki_memory.files.redaction import clip
from loki_memory.ingest.boundaries import Stretch, states_goal, stretches
from loki_memory.ingest.repair import repair
from loki_memory.ingest.statement_types import DECISION
from loki_memory.ingest.statements import statements
from loki_memory.ingest.steps import Step, steps
from loki_memory.ingest.turns import CALL, PROMPT, RESULT, Turn
from loki_memory.ingest.utterances import utterances
from loki_memory.models.error_signature import complaint

CORRECTED, OVERCOME, DECIDED = "correction", "error", "decision"
_DRAFT = 200  # characters
_DRAFTS = 3
_TRIES, _CALLS = 2, 5  # failures of a command, or calls up to its success, that are an effort
_LEAST_WORDS = 3  # of a correction: "no" alone may answer a question
_CORRECTS = re.compile(
    r"\W*(?:no\b(?! (?:problem|worries|need|rush))|nope|wrong|stop\b|undo|revert|don'?t|do not"
    r"|never|always|instead|actually|not (?:like )?(?:that|this|what)|that(?:'s| is) (?:not|wrong)"
    r"|you (?:should|must|forgot|broke|missed|still|keep)|i (?:said|told|asked|meant)\b"
    r"|please (?:don'?t|do not|use|always|never)"
    r"|(?:it|this|that) (?:still )?(?:does ?n[o']t|did ?n[o']t|fails|is wrong|is not))"
    r"|.{0,200}\b(?:instead of|rather than|use \S+.{0,40}\binstead)\b",
    re.IGNORECASE,
)
_REJECTED = "the user said:"  # before the words with which a user rejects a call


class Draft(NamedTuple):
    """A lesson that the session may have taught."""

    reason: str  # correction, error or decision
    text: str


def last_events(turns: Iterable[Turn]) -> list[Draft]:
    """The events of the last piece of work of a session, three at most; none if it had none."""
    pieces = list(stretches(turns))
    if not pieces:
        return []
    found = (
        *_corrections(pieces[-1], is_first=len(pieces) == 1),
        *_overcome(steps(pieces[-1].turns)),
        *_decisions(pieces[-1].turns),
    )
    drafts = (draft._replace(text=_in_a_line(draft.text)) for draft in found)
    return list(islice({draft.text: draft for draft in drafts}.values(), _DRAFTS))


def is_correction(prompt: str) -> bool:
    """Check if a prompt that follows work says that it was not what the user wants."""
    is_said = len(prompt.split()) >= _LEAST_WORDS and states_goal(prompt)
    return is_said and _CORRECTS.match(prompt.strip()) is not None


def _corrections(piece: Stretch, *, is_first: bool) -> Iterator[Draft]:
    """The prompts that correct the work before them, and the words with which calls were refused.

    Nobody corrects with the first prompt of a session: there was no work yet.
    """
    has_worked = not is_first
    for turn in piece.turns:
        if turn.kind == PROMPT and has_worked and is_correction(turn.text):
            yield Draft(CORRECTED, turn.text)
        elif turn.kind == RESULT and turn.failed and _REJECTED in turn.text:
            yield Draft(CORRECTED, turn.text.partition(_REJECTED)[2])
        has_worked = has_worked or turn.kind == CALL


def _overcome(done: Sequence[Step]) -> Iterator[Draft]:
    """The errors of commands that worked only after several calls, with what mended them."""
    seen: set[str] = set()
    for at, step in enumerate(done):
        if not (step.is_shell and step.met_error) or step.head in seen:
            continue
        later = [each for each in done[at + 1 :] if each.head == step.head]
        end = next((number for number, each in enumerate(later) if each.worked), None)
        if end is None:
            continue
        seen.add(step.head)
        calls = done[at:].index(later[end])
        if end + 1 >= _TRIES or calls >= _CALLS:
            mended = repair(done, at).line()
            yield Draft(OVERCOME, f"{complaint(step.answer)} -> {mended}".removesuffix(" -> "))


def _decisions(turns: Sequence[Turn]) -> Iterator[Draft]:
    found = statements(*utterances(turns))
    decided = (
        statement for statement in found if statement.type == DECISION and not statement.is_external
    )
    return (Draft(DECIDED, statement.text) for statement in decided)


def _in_a_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _DRAFT else f"{clip(line, _DRAFT - 1).rstrip()}…"
