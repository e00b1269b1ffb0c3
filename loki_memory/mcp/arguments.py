"""Arguments of the tools, as agents read them, and what is said of those that do not fit.

An agent corrects its call by these sentences: which tool, which argument, and what is expected.
pydantic's own text names our classes and a web page instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict  # pydantic wants these before Python 3.12

from loki_memory.models.kinds import FactType, Kind

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


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
class ErrorArgument(TypedDict, total=False):
    """An error, and its resolution if it has one."""

    type: str
    message: str
    resolution: str
    hunk: str
    command: str


@_only_these
class ActionArgument(TypedDict, total=False):
    """One step of the work."""

    t: float
    action: str
    target: str
    result: str
    error: str


@_only_these
class JudgementArgument(TypedDict):
    """A memory that was shown, and whether it helped."""

    id: str
    helpful: bool


Actions = Annotated[tuple[ActionArgument, ...], Field(description="The steps, in order.")]
Errors = Annotated[
    tuple[ErrorArgument, ...],
    Field(description="Errors, each with its resolution: later sessions are warned by these."),
]
Judgements = Annotated[
    tuple[JudgementArgument, ...], Field(description="Memories that helped, or that misled.")
]


# -- what is said of arguments that do not fit -----------------------------------------------------


Place = Sequence[str | int]
_TOLD = 3  # sentences; a list of a thousand wrong items needs no more
_LONGEST_NAME = 80  # characters
_EXPECTED = {
    "greater_than_equal": "be at least {ge:g}",
    "less_than_equal": "be at most {le:g}",
    "string_too_short": "have at least {min_length} characters",
    "string_too_long": "have at most {max_length} characters",
    "literal_error": "be one of {expected}",
}
_TYPES = {  # by the first word of pydantic's type of error: int_type, int_parsing, …
    "string": "be a text",
    "int": "be a whole number",
    "float": "be a number",
    "finite": "be a number",
    "bool": "be true or false",
    "tuple": "be a list",
    "dict": "be an object",
}
_OTHERWISE = "be as the schema says"


def unknown_argument(tool: str, name: str, names: Iterable[str]) -> str:
    """Say that a tool has no such argument, and which it has."""
    return f"{tool} has no argument {_shown(name)}; it takes {', '.join(names)}."


def misfits(tool: str, schema: Mapping[str, Any], errors: Sequence[ErrorDetails]) -> str:
    """Say what is wrong with the arguments of a call, in a few sentences."""
    sentences = dict.fromkeys(_sentence(tool, schema, error) for error in errors)
    return " ".join(islice(sentences, _TOLD))


def _sentence(tool: str, schema: Mapping[str, Any], error: ErrorDetails) -> str:
    place = _known_place(schema, error["loc"])
    *above, name = place
    choices = _choices(_part(schema, place))
    if len(choices) > 1 and error["type"] != "missing":
        return f"{_subject(tool, place)} must be {_one_of(choices)}."
    if error["type"] == "missing":
        return f"{_subject(tool, above)} needs {name}{_description(schema, place)}."
    if error["type"] == "extra_forbidden":
        fields = _object(_part(schema, above))
        return f"{_subject(tool, above)} has no field {_shown(str(name))}; it must {fields}."
    return f"{_subject(tool, place)} must {_expected(_part(schema, place), error)}."


def _subject(tool: str, place: Place) -> str:
    """Name a tool, or a part of its arguments: `memory_recall: files[0]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    path = "".join(steps).removeprefix(".")
    return f"{tool}: {path}" if path else tool


def _expected(part: Mapping[str, Any], error: ErrorDetails) -> str:
    kind, limits = error["type"], error.get("ctx", {})
    if kind == "dict_type":
        return _object(part)
    if kind == "string_too_short" and limits["min_length"] == 1:
        return "not be empty"
    if kind in _EXPECTED:
        return _EXPECTED[kind].format(**limits)
    return _TYPES.get(kind.partition("_")[0], _OTHERWISE)


def _object(part: Mapping[str, Any]) -> str:
    fields = ", ".join(part.get("properties", ()))
    return f"be an object with {fields}" if fields else "be an object"


def _description(schema: Mapping[str, Any], place: Place) -> str:
    said = _part(schema, place).get("description", "").rstrip(".")
    return f" ({said})" if said else ""


def _known_place(schema: Mapping[str, Any], place: Place) -> Place:
    """A place without what pydantic adds to it: which of several forms did not fit."""
    for length in range(len(place)):
        if len(_choices(_part(schema, place[:length]))) > 1:
            return place[:length]
    return place


def _choices(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The forms that an argument may have; to leave it out is none."""
    found: list[Mapping[str, Any]] = []
    for form in part.get("anyOf", ()):
        found += _choices(form) or ([form] if form.get("type") != "null" else [])
    return found


def _one_of(choices: Iterable[Mapping[str, Any]]) -> str:
    """`a number, high, medium or low`."""
    named = {"number": "a number", "integer": "a whole number", "string": "a text"}
    forms: list[str] = []
    for choice in choices:
        forms += [*choice.get("enum", ())] or filter(None, [named.get(choice.get("type", ""))])
    *rest, last = forms or ["as the schema says"]
    return f"{', '.join(rest)} or {last}" if rest else last


def _part(schema: Mapping[str, Any], place: Place) -> Mapping[str, Any]:
    """The schema of a part of the arguments."""
    found = schema
    for step in place:
        below = found.get("items") if isinstance(step, int) else found["properties"].get(step)
        found = _resolved(schema, below or {})
    return found


def _resolved(schema: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part itself, where it is a reference to a definition."""
    name = part.get("$ref", "").rpartition("/")[2]
    return schema["$defs"][name] if name else part


def _shown(name: str) -> str:
    # All of it or nothing: half a secret is not recognised as one.
    return repr(name) if len(name) <= _LONGEST_NAME else f"of {len(name)} characters"
