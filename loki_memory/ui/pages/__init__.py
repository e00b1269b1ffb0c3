"""The pages, one module each: a function that collects the data, its `routes`, its `shapes`."""

from __future__ import annotations

from typing import Any

from starlette.routing import Route

from loki_memory.ui.pages import (
    belief,
    beliefs,
    files,
    frame,
    graph,
    handoffs,
    health,
    now,
    review,
    timeline,
)

MODULES = (
    now,
    beliefs,
    belief,
    review,
    timeline,
    graph,
    files,
    handoffs,
    health,
    frame,
)
ROUTES: list[Route] = [route for module in MODULES for route in module.routes]
# The types of the data of pages, by their names in `schemas/ui-NAME.schema.json`.
SHAPES: dict[str, Any] = {
    name: shape for module in MODULES for name, shape in module.shapes.items()
}
