"""JSON Schemas of everything that is written or printed, generated from the types of it.

    python -m loki_memory.schema schemas/

One per kind, one per view, one per `--json` output, one per page of `loki-mem ui`.
A test compares them with what is committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loki_memory import __version__
from loki_memory.files.codec import dump
from loki_memory.models import MODELS, Episode
from loki_memory.schema.outputs import OUTPUTS, output_schema
from loki_memory.ui.page import PageError
from loki_memory.ui.pages import SHAPES
from loki_memory.ui.rest import ENDPOINTS, TOP, Endpoint, Parameter

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VIEWS = {
    "patterns": "pattern",
    "anti-patterns": "anti-pattern",
    "facts": "fact",
    "links": "link",
    "learnings": "learning",
}


def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by its file name."""
    kinds = {
        kind: model.model_json_schema(by_alias=True, mode="validation")
        for kind, model in MODELS.items()
    }
    found = {f"{kind}.schema.json": _headed(schema) for kind, schema in kinds.items()}
    for view, kind in _VIEWS.items():
        found[f"view-{view}.schema.json"] = _headed(_view(view.replace("-", "_"), kind, kinds))
    found["view-index.schema.json"] = _headed(_episode_index())
    for command, printed in OUTPUTS.items():
        found[f"output-{command}.schema.json"] = _headed(output_schema(printed))
    for page, shape in SHAPES.items():
        found[f"ui-{page}.schema.json"] = _headed(output_schema(shape))
    found["openapi.json"] = openapi()
    return found


def _headed(schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": _DIALECT, **schema}


def _view(name: str, kind: str, kinds: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    """A view is the records of a kind, as a list or in an object."""
    record = dict(kinds[kind])
    definitions = record.pop("$defs", {})
    items = {"type": "array", "items": {"$ref": f"#/$defs/{record['title']}"}}
    return {
        "title": f"View of {name}",
        "description": "Rendered from records; entries that you add or change are taken over.",
        "anyOf": [{"type": "object", "properties": {name: items}, "required": [name]}, items],
        "$defs": {**definitions, record["title"]: record},
    }


def _episode_index() -> dict[str, Any]:
    shown = ("id", "timestamp", "task_id", "agent", "outcome")
    whole = Episode.model_json_schema(by_alias=True)["properties"]
    entry = {
        "type": "object",
        "properties": {**{name: whole[name] for name in shown}, "goal": {"type": "string"}},
        "required": ["id", "goal"],
    }
    return {
        "title": "View of episodes",
        "description": "The temporal index: one reference per episode.",
        "type": "object",
        "properties": {"episodes": {"type": "array", "items": entry}},
        "required": ["episodes"],
    }


def write(folder: Path) -> None:
    """Write every schema into a folder."""
    for name, schema in schemas().items():
        (folder / name).write_bytes(dump(schema))


# The OpenAPI document of the REST interface, made from its table of endpoints.

_DEFINITIONS, _COMPONENTS = "#/$defs/", "#/components/schemas/"


def openapi() -> dict[str, Any]:
    """The document, in OpenAPI 3.1, whose schemas are JSON Schemas as they are."""
    schemas: dict[str, Any] = {}
    paths = {f"{TOP}/{endpoint.path}": _path(endpoint, schemas) for endpoint in ENDPOINTS}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "loki-memory",
            "version": __version__,
            "description": "The memory of one project, as `loki-mem ui` serves it on this machine. "
            "Requests carry the cookie that its one-time link sets.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "cookie": {"type": "apiKey", "in": "cookie", "name": "loki-mem-PORT"}
            },
        },
        "security": [{"cookie": []}],
    }


def _path(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    name = endpoint.path.replace("/{id}", "_by_id")
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": endpoint.about,
        "parameters": [_parameter(given) for given in endpoint.parameters if given.place != "body"],
        "responses": {
            "200": _answer("The answer.", _reference(endpoint.shape, schemas)),
            "4XX": _answer("The reason of a refusal.", _reference(PageError, schemas)),
        },
    }
    body = [given for given in endpoint.parameters if given.place == "body"]
    if body:
        operation["requestBody"] = {"content": {"application/json": {"schema": _object(body)}}}
    return {endpoint.method.lower(): operation}


def _parameter(given: Parameter) -> dict[str, Any]:
    return {
        "name": given.name,
        "in": given.place,
        "required": given.place == "path",
        "description": given.about,
        "schema": given.schema(),
    }


def _object(body: list[Parameter]) -> dict[str, Any]:
    fields = {given.name: {**given.schema(), "description": given.about} for given in body}
    return {"type": "object", "properties": fields}


def _answer(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _reference(shape: type, schemas: dict[str, Any]) -> dict[str, Any]:
    """Put the schema of a type among the components, and refer to it."""
    schema = output_schema(shape)
    found = {**schema.pop("$defs", {}), shape.__name__: schema}
    schemas |= {name: _moved(definition) for name, definition in found.items()}
    return {"$ref": f"{_COMPONENTS}{shape.__name__}"}


def _moved(value: Any) -> Any:
    """The same schema with references to components."""
    if isinstance(value, dict):
        return {name: _moved(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_moved(part) for part in value]
    is_reference = isinstance(value, str) and value.startswith(_DEFINITIONS)
    return value.replace(_DEFINITIONS, _COMPONENTS, 1) if is_reference else value
