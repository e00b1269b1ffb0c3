"""The phases of consolidation, in their order.

    digest         what waits becomes episodes (what is an episode already needs nothing)
    routine        what sessions run before they commit becomes one fact
    key, induce    errors by their signature become anti-patterns; episodes that are alike,
                   patterns
    merge          what says the same becomes one, guarded
    weigh          evidence -> confidence and status; that of twins counts for the one that stays
    reconcile      facts that cannot both hold get a disposition
    proceduralise  what successes have in common -> skills
    reflect        what several beliefs have in common; links between them
    forget         by age: summaries, then the archive
    seal           nothing may be lost

After an episode was recorded only the first of them run, for what it met.
"""

from __future__ import annotations

from loki_memory.consolidation.archive import forget
from loki_memory.consolidation.first_phases import EARLY
from loki_memory.consolidation.links import relate
from loki_memory.consolidation.merge import merge
from loki_memory.consolidation.patterns import patterns
from loki_memory.consolidation.pipeline import Phases
from loki_memory.consolidation.reconcile import reconcile
from loki_memory.consolidation.reflect import reflect
from loki_memory.consolidation.routines import routine
from loki_memory.consolidation.skills import proceduralise

(FIRST, FACTS, WEIGH) = EARLY
ALL: Phases = (
    FIRST,
    FACTS,
    ("routine", routine),
    ("induce", patterns),
    ("merge", merge),
    WEIGH,
    ("reconcile", reconcile),
    ("reflect", reflect),  # before skills: they name the errors that reflection finds common
    ("proceduralise", proceduralise),
    ("reflect", relate),
    ("forget", forget),
)
