"""Arguments of the tools, with the descriptions that agents read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict  # pydantic wants these before Python 3.12

from loki_memory.models.kinds import FactType, Kind

Text = Annotated[str, Field(min_length=1)]
Texts = tuple[str, ...]
Score = Annotated[float, Field(ge=0, le=1)]
Importance = Annotated[
    Score | Literal["high", "medium", "low"], Field(description="0 to 1, or high, medium, low.")
]
Outcome = Literal["success", "failure", "partial", "unknown"]

Project = Annotated[
    str | None,
    Field(
        description="Folder of the project whose memory is meant, or any folder below it. "
        "Default: the project that the server was started for; others must lie below it."
    ),
]
Cursor = Annotated[
    str | None, Field(description="`next_cursor` of an answer to the same call: its next page.")
]
MemoryId = Annotated[str, Field(min_length=1, description="Id of a memory, such as sem-001.")]
HandoffId = Annotated[
    str, Field(min_length=1, description="Id of a handoff; memory_status lists open ones.")
]
Query = Annotated[
    str,
    Field(
        description="What you want to know, in words; or an id, `category:testing`, `tag:auth`, "
        "`file:src/app.ts`."
    ),
]
HowMany = Annotated[int, Field(ge=1, le=100, description="How many, at most.")]
Kinds = Annotated[tuple[Kind, ...], Field(description="Only these kinds.")]
Task = Annotated[
    Literal["exploration", "implementation", "debugging", "review", "refactoring"] | None,
    Field(description="The type of task; detected if absent."),
]
Files = Annotated[Texts, Field(description="Files at hand, relative to the project.")]
ErrorText = Annotated[str | None, Field(description="An error that you met, as it was printed.")]
Deep = Annotated[bool, Field(description="Also follow links between memories.")]
Topic = Annotated[str | None, Field(description="Only memories below this topic.")]
Session = Annotated[
    str | None, Field(description="Your session: memories of this session only are found too.")
]
AsOf = Annotated[
    str | None, Field(description="Ask the memory of this commit, or of this day (2026-01-20).")
]
Statement = Annotated[Text, Field(description="One statement that can be understood by itself.")]
When = Annotated[Text, Field(description="The situation, such as `you add an endpoint`.")]
Do = Annotated[Text, Field(description="What to do then, so that a colleague could follow it.")]
Why = Annotated[str, Field(description="The reason, if it is not plain.")]
Helped = Annotated[bool, Field(description="Whether it helped; false if it misled or was noise.")]
Heir = Annotated[
    str | None,
    Field(description="The id of the memory that stands now, or what holds from now on in words."),
]
StatementKind = Annotated[
    FactType | Literal["fact", "pattern", "anti-pattern", "learning"],
    Field(
        description="fact: what is so, or its type: preference, rule, decision, convention, "
        "gotcha; pattern: what works; anti-pattern: what fails; "
        "learning: a lesson of today."
    ),
]
Category = Annotated[str | None, Field(description="Such as testing, decision, preference.")]
Scope = Annotated[
    Literal["project", "local", "user", "session"],
    Field(
        description="project: shared in git; local: this machine; user: all projects of this "
        "user; session: this session only."
    ),
]
Parent = Annotated[str | None, Field(description="Id of the topic above it.")]
Speaker = Annotated[str | None, Field(description="Who said it.")]
Changes = Annotated[
    dict[str, Any] | None,
    Field(
        description='Fields and their new values, such as {"statement": "…"}; memory_get shows '
        "the fields that a memory has."
    ),
]
Rejection = Annotated[
    str | None,
    Field(
        description="Why it is wrong altogether: it is then no longer recalled, and not learned "
        "again."
    ),
]
Goal = Annotated[Text, Field(description="What the work is for.")]
Phase = Annotated[str | None, Field(description="development, testing, review, …")]
Budget = Annotated[int, Field(ge=1, le=4000, description="Tokens of the lines, at most.")]
Agent = Annotated[str | None, Field(description="Who you are, such as eng-001-backend.")]
Sender = Annotated[Text, Field(description="Who you are, such as eng-001-backend.")]
Receiver = Annotated[Text, Field(description="The agent or role that goes on, such as qa-001.")]
Done = Annotated[
    str | None,
    Field(
        description="What was done; left out, the goals that you reached since your last handoff."
    ),
]
GitState = Annotated[str | None, Field(description="The state of the work in git.")]
MemoryIds = Annotated[Texts, Field(description="Ids of memories that the receiver needs.")]


_only_these = with_config(ConfigDict(extra="forbid"))  # what has another name would be lost


@_only_these
class ErrorMet(TypedDict, total=False):
    """An error, and its resolution if it has one."""

    type: str
    message: str
    resolution: str
    hunk: str
    command: str


@_only_these
class Action(TypedDict, total=False):
    """One step of the work."""

    t: float
    action: str
    target: str
    result: str
    error: str


@_only_these
class Judged(TypedDict):
    """A memory that was shown, and whether it helped."""

    id: str
    helpful: bool


Actions = Annotated[tuple[Action, ...], Field(description="The steps, in order.")]
Errors = Annotated[
    tuple[ErrorMet, ...],
    Field(description="Errors, each with its resolution: later sessions are warned by these."),
]
Judgements = Annotated[
    tuple[Judged, ...], Field(description="Memories that helped, or that misled.")
]
