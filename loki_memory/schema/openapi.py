"""The OpenAPI document of the REST interface, made from its table of endpoints."""

from __future__ import annotations

from typing import Any

from loki_memory import __version__
from loki_memory.schema.outputs import output_schema
from loki_memory.ui.page import PageError
from loki_memory.ui.rest import ENDPOINTS, TOP, Endpoint, Parameter

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
        "schema": {"type": given.type},
    }


def _object(body: list[Parameter]) -> dict[str, Any]:
    fields = {given.name: {"type": given.type, "description": given.about} for given in body}
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
