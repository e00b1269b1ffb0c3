"""The base of all memories: an id derived from the key, and fields that survive a round trip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic_core import ErrorDetails

from loki_memory.errors import InvalidRecord
from loki_memory.models.ids import ID, check_id, digest
from loki_memory.models.kinds import Kind, article
from loki_memory.models.text import moment

Scope = Literal["project", "local", "user", "session"]
Origin = Literal["owner", "agent", "import", "external"]
ORIGINS: tuple[str, ...] = get_args(Origin)  # the most trusted first
Status = Literal["candidate", "active", "disputed", "superseded", "rejected", "retired", "resolved"]
# The seven relations of Loki Mode's documents; `supports` joined them in its later versions.
Relation = Literal[
    "derived_from",
    "related_to",
    "contradicts",
    "elaborates",
    "example_of",
    "supersedes",
    "superseded_by",
    "supports",
]
RELATIONS: tuple[str, ...] = get_args(Relation)
M = TypeVar("M", bound="Memory")

Text = str  # NFC where it is written: once per file, not once per field
Moment = Annotated[str, AfterValidator(moment)]
# Empty means: make one.
Id = Annotated[
    str,
    AfterValidator(lambda value: check_id(value) if value else value),
    Field(json_schema_extra={"pattern": f"^({ID.pattern})?$"}),
]
# Two decimals: a confidence of 0.8333 and one of 0.83 are the same belief and one diff line.
Score = Annotated[float, Field(ge=0, le=1), AfterValidator(lambda value: round(value, 2))]
IMPORTANCE = {"high": 0.9, "medium": 0.5, "low": 0.2}  # the words for it


def _as_number(value: Any) -> Any:
    """The number that a word for an importance stands for; anything else as it is."""
    return IMPORTANCE.get(value.strip().lower(), value) if isinstance(value, str) else value


Importance = Annotated[
    Score,
    BeforeValidator(_as_number, json_schema_input_type=Score | Literal["high", "medium", "low"]),
]


def _as_list(value: Any) -> Any:
    """Turn one text into a list: agents write it so."""
    return [value] if isinstance(value, str) else value


Texts = Annotated[list[Text], BeforeValidator(_as_list)]
# A set: the order has no meaning, so it is sorted without repetitions; a diff reads "+1 episode".
TextSet = Annotated[
    list[Text], BeforeValidator(_as_list), AfterValidator(lambda values: sorted(set(values)))
]


class Part(BaseModel):
    """A piece of a record. Unknown fields are kept: another program may need them."""

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        coerce_numbers_to_str=True,
        ser_json_inf_nan="constants",  # so that the store can refuse them: null would be a lie
    )


class LinkTo(Part):
    """A link inside the record that it starts from."""

    to: Text
    relation: Text = Field("related_to", examples=list(RELATIONS))
    strength: Score | None = None


class EpisodeMark(Part):
    """A private episode as a belief tells of it, so that other clones can weigh it."""

    day: Text | None = None
    agent: Text | None = None
    outcome: Text | None = None
    session: Text | None = None  # a hash of the session's id
    bursts: TextSet = Field(default_factory=list)  # hashes of when its agent recorded it


class Evidence(Part):
    """The episodes that speak for and against a belief."""

    for_: TextSet = Field(default_factory=list, alias="for")
    against: TextSet = Field(default_factory=list)
    episodes: dict[Text, EpisodeMark] = Field(default_factory=dict)  # those that are private

    def with_lists(self, for_: list[str], against: list[str]) -> dict[str, Any]:
        """The evidence as it is written, with other lists of episodes."""
        rest = self.model_dump(mode="json", exclude_unset=True)
        return {**rest, "for": for_, "against": against}


class Citation(Part):
    """A place in the code that a belief is about; `blob` is git's id of the file's content."""

    path: Text
    blob: Text | None = None
    symbol: Text | None = None


def _sorted_links(links: list[LinkTo]) -> list[LinkTo]:
    return sorted(links, key=lambda link: (link.relation, link.to))


Links = Annotated[list[LinkTo], AfterValidator(_sorted_links)]


class Passage(NamedTuple):
    """The searchable text of a memory: `title` weighs most, `detail` least."""

    title: str
    text: str
    detail: str


def least_trusted_origin(origins: Iterable[Any]) -> Any:
    return max(origins, key=distrust)


def distrust(origin: Any) -> float:
    """The rank of an origin; a missing one is below the owner's and above all others."""
    return ORIGINS.index(origin) if origin in ORIGINS else 0.5


class Edge(NamedTuple):
    """One edge of the graph: from the memory that names it to the one that is named."""

    target: str
    relation: str
    weight: float = 1.0


class Memory(Part):
    """Any record."""

    kind: ClassVar[Kind]
    prefix: ClassVar[str]
    keeps_id: ClassVar[bool] = True  # False where the file's own name is the id

    schema_: str | None = Field(None, alias="$schema")
    id: Id = ""

    def model_post_init(self, context: Any, /) -> None:  # noqa: ARG002 - pydantic's signature
        if self.id and self.keeps_id:
            return
        # Frozen for every other caller: an id is part of what validation produces.
        self.__dict__["id"] = check_id(f"{self.prefix}-{self.mint()}")
        if self.keeps_id:
            self.__pydantic_fields_set__.add("id")

    def mint(self) -> str:
        """The part of the id behind the prefix, when the record came without one."""
        return digest(self.kind, *self.key())

    def key(self) -> tuple[str, ...]:
        """The values that identify this record."""
        raise NotImplementedError

    def value(self) -> str:
        """The statement that a person could reject; empty where there is none."""
        return ""

    def title(self) -> str:
        """One line that describes this record to a reader."""
        raise NotImplementedError

    def passage(self) -> Passage:
        """The text of this memory that is indexed and embedded."""
        raise NotImplementedError

    def edges(self) -> Iterator[Edge]:
        """The edges that leave this memory."""
        yield from ()

    def errors(self) -> Iterator[str]:
        """The messages of errors that this memory is about."""
        yield from ()

    def when(self) -> str:
        """The time that this memory is about; empty if it has none."""
        return ""

    def changed(self, **fields: Any) -> Self:
        """A copy with other fields, validated like any other input."""
        return parse(type(self), {**self.document(), **fields})

    def document(self) -> dict[str, Any]:
        """The record as JSON values: the fields that were given, in the order of the schema.

        Unknown fields follow, sorted, so that two writers of equal content write equal bytes.
        """
        given = self.model_dump(mode="json", exclude_unset=True)
        if not self.keeps_id:
            given.pop("id", None)
        known = [name for name in field_order(type(self)) if name in given]
        unknown = sorted(name for name in given if name not in known)
        return {name: given[name] for name in (*known, *unknown)}


@cache
def field_order(model: type[Memory]) -> tuple[str, ...]:
    """Names on disk: the id, then the kind's own fields, then the shared ones."""
    own: list[str] = []
    for ancestor in model.__mro__:
        if issubclass(ancestor, Memory) and ancestor is not Memory:
            own += [name for name in vars(ancestor).get("__annotations__", {}) if name not in own]
    names = [name for name in (*Memory.model_fields, *own) if name in model.model_fields]
    infos = ((name, model.model_fields[name]) for name in names)
    return tuple(
        dict.fromkeys(info.serialization_alias or info.alias or name for name, info in infos)
    )


def parse(model: type[M], document: Mapping[str, Any]) -> M:
    """Parse a record from JSON values; raises InvalidRecord with the field and the reason."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise _first(error, model) from None


def _first(error: ValidationError, model: type[Memory]) -> InvalidRecord:
    """The first complaint, in words for a person who writes files by hand."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    if field == "context" and first["type"] == "missing":
        field = "goal"
    return InvalidRecord(
        _in_words(first),
        field=field,
        advice=f"docs/format.md has the format of {article(model.kind)}.",
    )


def _in_words(complaint: ErrorDetails) -> str:
    kind, about = complaint["type"], complaint.get("ctx", {})
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "literal_error":
        return "must be one of " + str(about["expected"]).replace(" or ", ", ").replace("'", "")
    if kind in {"greater_than_equal", "less_than_equal"}:
        bound = f"at least {about['ge']}" if "ge" in about else f"at most {about['le']}"
        return f"must be {bound}"
    return complaint["msg"].removeprefix("Value error, ").removeprefix("Input ")


# Pydantic's messages, shorter.
_WORDS = {
    "missing": "is missing",
    "string_too_short": "is empty",
    "string_type": "must be text",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}
