"""Memory for AI coding agents that lives in the project's repository.

from loki_memory import Workspace

ws = Workspace.init(".")
ws.record({"goal": "Add search", "outcome": "success"})
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes as long to load as Python itself, and so does a hook
if TYPE_CHECKING:
    from typing import Any

    from loki_memory.errors import LokiMemoryError
    from loki_memory.models import (
        AntiPattern,
        Episode,
        Fact,
        Handoff,
        Learning,
        Ledger,
        Link,
        Memory,
        Pattern,
        Skill,
        Tombstone,
    )
    from loki_memory.workspace import Workspace

__version__ = "0.1.0"
__all__ = [
    "AntiPattern",
    "Episode",
    "Fact",
    "Handoff",
    "Learning",
    "Ledger",
    "Link",
    "LokiMemoryError",
    "Memory",
    "Pattern",
    "Skill",
    "Tombstone",
    "Workspace",
]


def __getattr__(name: str) -> Any:
    """Import on first use: `loki-mem --version` must not pay for pydantic."""
    if name == "Workspace":
        from loki_memory.workspace import Workspace

        return Workspace
    if name == "LokiMemoryError":
        from loki_memory.errors import LokiMemoryError

        return LokiMemoryError
    if name in __all__:
        from loki_memory import models

        return getattr(models, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what the package offers, also before it is imported, and nothing of its inside."""
    return [*__all__, "__version__"]
