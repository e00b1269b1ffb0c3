"""Working memory: what matters now in CONTINUITY.md, and what the agent noted there itself."""

from __future__ import annotations

from loki_memory.continuity.block import place
from loki_memory.continuity.harvest import Noted, harvest
from loki_memory.continuity.line import Line
from loki_memory.continuity.render import Now, render

__all__ = ["Line", "Noted", "Now", "harvest", "place", "render"]
