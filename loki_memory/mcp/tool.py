"""A tool: a function of a workspace, and its presentation to an agent.

A function takes the workspace and its own arguments, and returns a typed dictionary. The agent
sees the same arguments with `project` in place of the workspace, and a schema of the answer.
The text of our errors reaches the agent as a tool error; any other exception is a crash, which
the SDK logs and keeps from the client.
"""

from __future__ import annotations

import inspect
import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol, get_type_hints

import orjson
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool as SdkTool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from loki_memory.errors import InvalidRecord, LokiMemoryError, NotAWorkspace
from loki_memory.mcp.answers import ANSWER_TOKENS
from loki_memory.mcp.arguments import Project, misfits, unknown_argument
from loki_memory.models.fence import defused, defused_value, inert_json
from loki_memory.models.text import BYTES_PER_TOKEN
from loki_memory.workspace import quotable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mcp.server.mcpserver import Context

    from loki_memory.workspace import Workspace


class Effect(NamedTuple):
    """The effect of a call on memory, by which clients decide whether to ask their user first."""

    reads_only: bool
    removes: bool = False
    repeats: bool = True  # the same call again changes nothing more


READS = Effect(reads_only=True)
ADDS = Effect(reads_only=False)
ADDS_EACH_TIME = Effect(reads_only=False, repeats=False)
REMOVES = Effect(reads_only=False, removes=True)


class Tool(NamedTuple):
    """A function under the name that agents call."""

    name: str
    title: str
    effect: Effect
    function: Callable[..., Mapping[str, Any]]
    page: str = ""  # address of the app that clients may show beside the answer

    def annotations(self) -> ToolAnnotations:
        return ToolAnnotations(
            title=self.title,
            read_only_hint=self.effect.reads_only,
            destructive_hint=self.effect.removes,
            idempotent_hint=self.effect.repeats,
            open_world_hint=False,
        )


def for_server(tool: Tool, projects: ProjectFinder) -> SdkTool:
    """The tool as the SDK's server takes it."""
    made = CheckedTool.from_function(
        called(tool, projects),
        name=tool.name,
        title=tool.title,
        description=inspect.cleandoc(tool.function.__doc__ or ""),
        annotations=tool.annotations(),
        meta=_meta(tool),
        structured_output=True,
    )
    made.parameters["additionalProperties"] = False
    return made


def _meta(tool: Tool) -> dict[str, Any]:
    most = {"anthropic/maxResultSizeChars": ANSWER_TOKENS * BYTES_PER_TOKEN}
    return {**most, "ui": {"resourceUri": tool.page}} if tool.page else most


def called(tool: Tool, projects: ProjectFinder) -> Callable[..., CallToolResult]:
    """Wrap the function of a tool as the SDK calls it."""

    def call(*, project: str | None = None, **given: Any) -> CallToolResult:
        try:
            with projects.at(project) as workspace:
                answer = {**tool.function(workspace, **given)}
                workspace.flush()
                answer["notices"] = list(workspace.notices)
        except LokiMemoryError as error:
            return _answer(defused(quotable(str(error))), is_error=True)
        answer = defused_value(answer)
        return _answer(inert_json(orjson.dumps(answer).decode()), structured_content=answer)

    call.__name__ = tool.name
    call.__signature__ = _signature(tool.function)  # type: ignore[attr-defined]
    return call


def _answer(text: str, **fields: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], **fields)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """The function's arguments without the workspace, then `project`."""
    # A workspace is never parsed, so its name need not resolve (which would cost an import).
    names = {**inspect.unwrap(function).__globals__, "Workspace": object}
    hints = get_type_hints(function, names, include_extras=True)
    _, *own = inspect.signature(function).parameters.values()
    kind = inspect.Parameter.KEYWORD_ONLY
    given = [parameter.replace(annotation=hints[parameter.name], kind=kind) for parameter in own]
    project = inspect.Parameter("project", kind, default=None, annotation=Project)
    answer = Annotated[CallToolResult, hints["return"]]
    return inspect.Signature([*given, project], return_annotation=answer)


# Every answer of ours says `id`, and a record says `statement`.
_GUESSED = (
    ("id", "memory_id"),
    ("id", "handoff_id"),
    ("statement", "text"),
    ("errors", "errors_encountered"),
)


class CheckedTool(SdkTool):
    """The SDK's tool, which refuses arguments that the tool does not have, and in our words.

    The SDK drops them: an agent that calls `errors` what is called `errors_encountered` would be
    told that all is well, and its errors would be lost. Names that agents guess are understood;
    the schema has the real names only.
    """

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> Any:
        names = self.parameters["properties"]
        given = with_real_names(arguments, names)
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ToolError(unknown_argument(self.name, unknown[0], names))
        try:
            return await super().run(given, context, convert_result)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                wrong = error.__cause__.errors(include_url=False, include_input=False)
                raise ToolError(misfits(self.name, self.parameters, wrong)) from error.__cause__
            raise


def with_real_names(given: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    """Return the arguments with the real name in place of a guessed one, if it is still free."""
    found = dict(given)
    for guess, name in _GUESSED:
        if guess in found and guess not in names and name in names and name not in found:
            found[name] = found.pop(guess)
    return found


# -- the workspaces of the projects that calls name ------------------------------------------------

# Each call may name a project, because one server may serve worktrees and several projects: those
# in or below the folder that the server was started for, worktrees of its repository, and what the
# person who started it named. A caller cannot reach the memory of any other project.
# Calls to one workspace take turns; calls to different ones do not wait for each other.

_KEPT = 8  # workspaces; more than an agent works in at a time


class _Held(NamedTuple):
    workspace: Workspace
    settings: tuple[object, ...]  # stamps of files that are read once, to see if they changed
    turn: Lock


class ProjectFinder(Protocol):
    """Finder of the workspace that a call means: among folders here, or those of a team server."""

    def at(self, project: str | None) -> AbstractContextManager[Workspace]:
        """Hold the workspace of a project for one call."""


class Projects:
    """Finder of a project's workspace, as in every command: from its folder upwards."""

    def __init__(self, default: str | None = None, within: Sequence[str] = ()) -> None:
        self._default = default  # for calls that name no project
        self._within = [os.path.realpath(os.path.expanduser(folder)) for folder in within]
        self._held: OrderedDict[object, _Held] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def at(self, project: str | None) -> Iterator[Workspace]:
        """Hold the workspace of a project for one call."""
        held = self._hold(project)
        with held.turn:
            held.workspace.notices.clear()
            yield held.workspace

    def _hold(self, project: str | None) -> _Held:
        if project and "\0" in project:
            raise InvalidRecord("is no path", field="project", advice="Name a folder.")
        workspace = _open(folder(project or self._default))
        if project and not self._may_reach(workspace, project):
            raise InvalidRecord(
                "lies outside the folders that this server was started for",
                field="project",
                advice="Whoever starts the server can add folders: loki-mem mcp --within DIR.",
            )
        settings = workspace.home.settings_stamp()
        with self._lock:
            held = self._held.get(workspace.layout)
            if held is None or held.settings != settings:
                held = _Held(workspace, settings, Lock())
            self._held[workspace.layout] = held
            self._held.move_to_end(workspace.layout)
            if len(self._held) > _KEPT:
                self._held.popitem(last=False)  # closed when its last call is done with it
        return held

    def _may_reach(self, workspace: Workspace, project: str) -> bool:
        """Check that both the named folder and the memory found for it are this server's."""
        root, named = (
            os.path.realpath(workspace.layout.root),
            os.path.realpath(folder(project) or ""),
        )
        start = os.path.realpath(folder(self._default) or ".")
        places = [*self._within, *([] if start in _anybodys() else [start])]
        if any(_is_within(root, place) and _is_within(named, place) for place in places):
            return True
        return self._is_same_repository(workspace, start)

    def _is_same_repository(self, workspace: Workspace, start: str) -> bool:
        """Check for the server's own project, and worktrees of it: they share the local zone."""
        try:
            own = _open(start)
        except NotAWorkspace:
            return False
        return own.layout.local == workspace.layout.local


def _anybodys() -> set[str]:
    """Folders that hold every project: a server that was started there was started for none."""
    return {
        os.path.realpath(place) for place in ("/", os.path.expanduser("~"), tempfile.gettempdir())
    }


def _is_within(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place.rstrip('/')}/")


def _open(path: str | None) -> Workspace:
    from loki_memory.workspace import Workspace

    try:
        workspace = Workspace.open(path)
    except NotAWorkspace as error:
        raise error.naming("the argument `project`") from None
    workspace.home.is_long_lived = True
    return workspace


def folder(project: str | None) -> str | None:
    """The folder of the named project, else the server's default.

    LOKI_WORKSPACE is ours, CLAUDE_PROJECT_DIR is set by Claude Code for every server; without
    either, None means the working directory.
    """
    if project:
        return os.path.expanduser(project)
    environment = os.environ
    return environment.get("LOKI_WORKSPACE") or environment.get("CLAUDE_PROJECT_DIR") or None
