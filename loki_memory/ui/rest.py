"""The REST interface under `/api/memory/`, with the paths that users of Loki Mode know.

Each entry of `ENDPOINTS` is a path, what it takes, and the type of its answer; the routes are made
from them, and so is `schemas/openapi.json`, which the server shows at `/schemas/openapi.json`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from loki_memory.errors import InvalidRecord, LokiMemoryError, NotFound
from loki_memory.ui.page import PageError, Visit, as_json, check_write, status_code
from loki_memory.ui.site import UiSite
from loki_memory.workspace import quotable

if TYPE_CHECKING:
    from loki_memory.browse.file_memory import FileMemory, KnownFiles
    from loki_memory.browse.status import Stats
    from loki_memory.browse.topics import Timeline, Topics
    from loki_memory.journal.tally import Economics
    from loki_memory.models.kinds import Kind
    from loki_memory.recall.result import Recollection
    from loki_memory.workspace import Workspace

TOP = "/api/memory"
_LARGEST_BODY = 1 << 20  # bytes
_LISTED, _MOST = 50, 1000
_HITS, _MOST_HITS = 5, 100

Given = Mapping[str, Any]  # parameters of path, query and body, by name
PlaceOfParameter = Literal["path", "query", "body"]


# -- answers ---------------------------------------------------------------------------------------


class EpisodicSummary(TypedDict):
    """Episodes, counted."""

    count: int
    latestDate: str | None


class SemanticSummary(NamedTuple):
    """Beliefs, counted."""

    patterns: int
    antiPatterns: int  # noqa: N815 - as Loki Mode spells it
    facts: int


class ProceduralSummary(NamedTuple):
    """Skills, counted."""

    skills: int


class MemorySummary(NamedTuple):
    """The answer of `summary`."""

    episodic: EpisodicSummary
    semantic: SemanticSummary
    procedural: ProceduralSummary
    tokenEconomics: Economics  # noqa: N815 - as Loki Mode spells it


class RecordPage(NamedTuple):
    """The answer of `episodes`, `patterns` and `skills`."""

    records: list[dict[str, Any]]  # as in the files, each with its kind
    more: int  # records that were left out


class OneRecord(NamedTuple):
    """The answer for one id."""

    record: dict[str, Any]  # as in the file, with its kind


class Hits(NamedTuple):
    """The answer of `search` and `retrieve`."""

    query: str
    hits: list[Recollection]


class ConsolidationResult(NamedTuple):
    """The answer of `consolidate`."""

    counts: dict[str, int]  # what was learned, by kind of step


class EconomicsAnswer(NamedTuple):
    """The answer of `economics`."""

    economics: Economics


class StatsAnswer(NamedTuple):
    """The answer of `stats`."""

    stats: Stats


class IndexAnswer(NamedTuple):
    """The answer of `index`."""

    topics: Topics


class TimelineAnswer(NamedTuple):
    """The answer of `timeline`."""

    timeline: Timeline


class FilesAnswer(NamedTuple):
    """The answer of `files`."""

    files: KnownFiles


class FileAnswer(NamedTuple):
    """The answer of `file`."""

    file: FileMemory


# -- what each endpoint does -----------------------------------------------------------------------


def _summary(workspace: Workspace, _: Given) -> MemorySummary:
    counts = workspace.status().counts
    days = workspace.browse.stats(with_junk=False).days
    return MemorySummary(
        EpisodicSummary(count=counts.get("episode", 0), latestDate=max(days, default=None)),
        SemanticSummary(*(counts.get(kind, 0) for kind in ("pattern", "anti-pattern", "fact"))),
        ProceduralSummary(counts.get("skill", 0)),
        workspace.browse.economics(),
    )


def _listed(kind: Kind) -> Callable[[Workspace, Given], RecordPage]:
    def answer(workspace: Workspace, given: Given) -> RecordPage:
        limit = _number(given, "limit", _LISTED, _MOST)
        records = workspace.list(kind=kind)
        shown = [{"kind": record.kind, **record.document()} for record in records[:limit]]
        return RecordPage(shown, len(records) - len(shown))

    return answer


def _of_kind(kind: Kind) -> Callable[[Workspace, Given], OneRecord]:
    def answer(workspace: Workspace, given: Given) -> OneRecord:
        record = workspace.get(workspace.resolve(_text(given, "id")))
        if record.kind != kind:
            raise NotFound(_text(given, "id"))
        return OneRecord({"kind": record.kind, **record.document()})

    return answer


def _search(workspace: Workspace, given: Given) -> Hits:
    query, k = _text(given, "q"), _number(given, "limit", _HITS, _MOST_HITS)
    return Hits(query, list(workspace.recall(query, k)))


def _retrieve(workspace: Workspace, given: Given) -> Hits:
    query, k = _text(given, "query"), _number(given, "top_k", _HITS, _MOST_HITS)
    return Hits(query, list(workspace.recall(query, k, task=_text(given, "task_type") or None)))


def _consolidate(workspace: Workspace, given: Given) -> ConsolidationResult:
    return ConsolidationResult(workspace.consolidate(since=_text(given, "since") or None).counts())


def _timeline(workspace: Workspace, given: Given) -> TimelineAnswer:
    return TimelineAnswer(workspace.browse.timeline(since=_text(given, "since") or None))


def _text(given: Given, name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise InvalidRecord(f"{name} must be a text", field=name)
    return value.strip()


def _number(given: Given, name: str, default: int, most: int) -> int:
    value = given.get(name, default)
    if isinstance(value, bool) or not str(value).isdecimal() or not 0 < int(value) <= most:
        raise InvalidRecord(f"{name} must be a number from 1 to {most}", field=name)
    return int(value)


# -- the table -------------------------------------------------------------------------------------


class Parameter(NamedTuple):
    """A value that an endpoint takes."""

    name: str
    place: PlaceOfParameter
    type: Literal["string", "integer"]
    about: str
    most: int = 0  # of a number, which begins at 1

    def schema(self) -> dict[str, Any]:
        """The parameter's JSON Schema."""
        return {"type": self.type, **({"minimum": 1, "maximum": self.most} if self.most else {})}


class Endpoint(NamedTuple):
    """A path below `/api/memory/`, and how it is answered."""

    path: str
    about: str
    shape: Any
    answer: Callable[[Workspace, Given], tuple[Any, ...]]
    parameters: tuple[Parameter, ...] = ()
    method: Literal["GET", "POST"] = "GET"
    writes: bool = False


_LIMIT = Parameter("limit", "query", "integer", "How many at most.", _MOST)
_HIT_LIMIT = _LIMIT._replace(most=_MOST_HITS)
_ID = Parameter("id", "path", "string", "The id, or how it begins.")
_SINCE = Parameter("since", "query", "string", "A day or a moment: only what is newer.")

ENDPOINTS = (
    Endpoint("summary", "Count what is remembered.", MemorySummary, _summary),
    Endpoint("episodes", "List episodes, newest first.", RecordPage, _listed("episode"), (_LIMIT,)),
    Endpoint("episodes/{id}", "Show an episode.", OneRecord, _of_kind("episode"), (_ID,)),
    Endpoint("patterns", "List patterns, newest first.", RecordPage, _listed("pattern"), (_LIMIT,)),
    Endpoint("patterns/{id}", "Show a pattern.", OneRecord, _of_kind("pattern"), (_ID,)),
    Endpoint("skills", "List skills.", RecordPage, _listed("skill"), (_LIMIT,)),
    Endpoint("skills/{id}", "Show a skill.", OneRecord, _of_kind("skill"), (_ID,)),
    Endpoint(
        "economics",
        "Count what reading memory has cost and saved, in tokens.",
        EconomicsAnswer,
        lambda workspace, _: EconomicsAnswer(workspace.browse.economics()),
    ),
    Endpoint(
        "consolidate",
        "Turn episodes into beliefs; needs the header x-csrf-token.",
        ConsolidationResult,
        _consolidate,
        (Parameter("since", "body", "string", "`24h`, `7d` or a date: only newer episodes."),),
        "POST",
        writes=True,
    ),
    Endpoint(
        "retrieve",
        "Recall the memories that matter for a question.",
        Hits,
        _retrieve,
        (
            Parameter("query", "body", "string", "The question."),
            Parameter("task_type", "body", "string", "exploration, implementation, debugging, …"),
            Parameter("top_k", "body", "integer", "How many at most.", _MOST_HITS),
        ),
        "POST",
    ),
    Endpoint(
        "index",
        "List the topics of memory.",
        IndexAnswer,
        lambda workspace, _: IndexAnswer(workspace.browse.topics(budget=2_000)),
    ),
    Endpoint("timeline", "Show recent events and decisions.", TimelineAnswer, _timeline, (_SINCE,)),
    Endpoint(
        "search",
        "Recall the memories that matter for a question.",
        Hits,
        _search,
        (Parameter("q", "query", "string", "The question."), _HIT_LIMIT),
    ),
    Endpoint(
        "stats",
        "Count memories by several fields.",
        StatsAnswer,
        lambda workspace, _: StatsAnswer(workspace.browse.stats()),
    ),
    Endpoint(
        "files",
        "List the files that memories name.",
        FilesAnswer,
        lambda workspace, given: FilesAnswer(workspace.browse.files(_text(given, "q"))),
        (Parameter("q", "query", "string", "A part of the path."),),
    ),
    Endpoint(
        "file",
        "Show what memory knows about a file.",
        FileAnswer,
        lambda workspace, given: FileAnswer(workspace.browse.file(_text(given, "path"))),
        (Parameter("path", "query", "string", "The file, relative to the project."),),
    ),
)


# -- routes ----------------------------------------------------------------------------------------


def _route(endpoint: Endpoint) -> Route:
    async def called(request: Request) -> Response:
        site: UiSite = request.app.state.site
        visit = Visit(site, request)
        try:
            if endpoint.writes:
                check_write(visit)
            given = {**request.query_params, **await _body(request), **request.path_params}
            loop = asyncio.get_running_loop()
            data = await loop.run_in_executor(site.worker, endpoint.answer, site.workspace, given)
        except LokiMemoryError as error:
            shown = PageError(type(error).__name__, quotable(str(error)))
            return _json(shown, status_code(error))
        return _json(data)

    return Route(f"{TOP}/{endpoint.path}", called, methods=[endpoint.method])


async def _body(request: Request) -> Given:
    """The JSON object of a request; nothing if it has no body."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_BODY:
            raise InvalidRecord("the request is larger than 1 MB")
    try:
        value = orjson.loads(body) if body else {}
    except orjson.JSONDecodeError:
        raise InvalidRecord("the request is not JSON", advice='Send {"query": "…"}.') from None
    if not isinstance(value, dict):
        raise InvalidRecord("the request is no JSON object", advice='Send {"query": "…"}.')
    return value


def _json(data: Any, code: int = 200) -> Response:
    return Response(as_json(data), code, media_type="application/json")


REST_ROUTES = [_route(endpoint) for endpoint in ENDPOINTS]
