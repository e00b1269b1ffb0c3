"""The phases that also run when an episode is recorded: they load little."""

from __future__ import annotations

from loki_memory.consolidation.anti_patterns import antipatterns
from loki_memory.consolidation.pipeline import Phases
from loki_memory.consolidation.statements import facts
from loki_memory.consolidation.weigh import weigh

EARLY: Phases = (("induce", antipatterns), ("induce", facts), ("weigh", weigh))
