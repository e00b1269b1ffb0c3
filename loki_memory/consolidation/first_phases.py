"""The phases that run at once for what was recorded: they load little, and look at few records."""

from __future__ import annotations

from loki_memory.consolidation.anti_patterns import antipatterns
from loki_memory.consolidation.pipeline import Phases
from loki_memory.consolidation.weigh import weigh

EARLY: Phases = (("induce", antipatterns), ("weigh", weigh))
