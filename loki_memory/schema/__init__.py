"""JSON Schemas of everything that is written or printed, generated from the types of it.

    python -m loki_memory.schema schemas/

One per kind, one per view, one per `--json` output, one per page of `loki-mem ui`.
A test compares them with what is committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loki_memory.files.codec import dump
from loki_memory.models import MODELS, Episode
from loki_memory.schema.openapi import openapi
from loki_memory.schema.outputs import OUTPUTS, output_schema
from loki_memory.ui.pages import SHAPES

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
