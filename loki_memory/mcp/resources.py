"""Resources: texts that a client can show or attach without a tool call.

The plain addresses belong to the project that the server was started for; with `?project=…`
they belong to another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.resources import ResourceSecurity

from loki_memory.errors import LokiMemoryError, NotFound
from loki_memory.mcp.projects import Projects
from loki_memory.mcp.records import reached
from loki_memory.models.fence import defused_value, fenced, inert_json

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

PAGE = "ui://loki-memory/memory.html"
PAGE_TYPE = "text/html;profile=mcp-app"  # clients show a page of no other type
_INDEX = 2_000  # tokens
# `project` is a path, but only the search for the workspace starts there: no file is read by it.
_SECURITY = ResourceSecurity(exempt_params={"project"})


class Resource(NamedTuple):
    """A text that is rendered from a workspace."""

    address: str
    name: str
    description: str
    type: str
    read: Callable[[Workspace], str]


def continuity(workspace: Workspace) -> str:
    return workspace.browse.continuity_block()


def index(workspace: Workspace) -> str:
    found = workspace.browse.topics(_INDEX)
    lines = [f"- {topic.line()}" for topic in found.topics]
    more = [f"- {found.more} more topics"] if found.more else []
    return fenced("\n".join(["# What there is to know", "", *lines, *more])) + "\n"


def pending(workspace: Workspace) -> str:
    waiting = workspace.list(kind="handoff", status="open")
    return _json({"handoffs": [{"id": handoff.id, **handoff.document()} for handoff in waiting]})


def memory_page(workspace: Workspace) -> str:
    """The shared memory as one HTML file, as `loki-mem export --html` writes it.

    It is an MCP App: clients that show apps render it beside an answer, others never ask for it.
    """
    from loki_memory.ui.export_page import export_page

    return export_page(workspace).html.decode()


RESOURCES = (
    Resource(
        "loki://state/continuity",
        "continuity",
        "What matters now: what was recalled for the last goal, mistakes to avoid.",
        "text/markdown",
        continuity,
    ),
    Resource(
        "loki://memory/index",
        "index",
        "The topics of memory, and the tokens that reading each takes.",
        "text/markdown",
        index,
    ),
    Resource(
        "loki://queue/pending",
        "pending",
        "Handoffs that no agent has accepted yet.",
        "application/json",
        pending,
    ),
    Resource(
        PAGE,
        "memory page",
        "Beliefs with evidence, history and links, as a page for people.",
        PAGE_TYPE,
        memory_page,
    ),
)


def add_resources(server: MCPServer[Any], projects: Projects) -> None:
    """Register every resource, and every record by its id."""
    for resource in RESOURCES:
        _add(server, projects, resource)

    @server.resource(
        "loki://memory/{id}{?project}",
        name="record",
        description="A memory by its id, whole.",
        mime_type="application/json",
        security=_SECURITY,
    )
    def record(id: str, project: str | None = None) -> str:  # noqa: A002
        return _read(projects, project, lambda workspace: _record(workspace, id))


def _add(server: MCPServer[Any], projects: Projects, resource: Resource) -> None:
    address = f"{resource.address}{{?project}}"
    about: dict[str, Any] = {
        "name": resource.name,
        "description": resource.description,
        "mime_type": resource.type,
    }

    @server.resource(resource.address, **about)
    def here() -> str:
        return _read(projects, None, resource.read)

    @server.resource(address, security=_SECURITY, **about)
    def elsewhere(project: str | None = None) -> str:
        return _read(projects, project, resource.read)


def _record(workspace: Workspace, memory_id: str) -> str:
    memory_id = workspace.resolve(memory_id)
    record = reached(workspace, memory_id)
    workspace.browse.opened(memory_id)
    return _json({"kind": record.kind, "id": record.id, **record.document()})


def _read(projects: Projects, project: str | None, read: Callable[[Workspace], str]) -> str:
    try:
        with projects.at(project) as workspace:
            return read(workspace)
    except NotFound as error:
        raise ResourceNotFoundError(str(error)) from error
    except LokiMemoryError as error:
        raise ResourceError(str(error)) from error


def _json(value: Any) -> str:
    return inert_json(orjson.dumps(defused_value(value), option=orjson.OPT_INDENT_2).decode())
