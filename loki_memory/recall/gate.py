"""The gate: which memories may be told to an agent that has not asked.

Somebody who asks (`recall`, `context`) is shown every memory that fits, with its status beside it.
What hooks, CONTINUITY.md and briefs say unasked passes two conditions first:

`TRUSTED`  The project's own people and agents said or saw it. What was imported, or came from
           outside, waits until somebody asks.
`PROVEN`   It is more than a candidate: evidence made it active, or somebody put it into words.
           Held back are
           - beliefs and skills whose status is `candidate`, unless their owner accepted them in
             `review`, or somebody wrote them without saying how sure they are and only the weighing
             of their episodes calls them candidates;
           - anti-patterns that consolidation made of an error for which nobody knows a remedy;
           - facts about a defect that was mended;
           - learnings that consolidation wrote: they repeat an error and what resolved it on one
             day, which is told as soon as the anti-pattern of that error is active;
           - topics, which quote their members, candidates among them.
           Episodes, ledgers and handoffs are no beliefs and are not asked this.

One exception: right after an error, a candidate is told that knows this very error and what mended
it (`MENDED`).

Each condition is SQL about a row of the index that the statement calls `m`.
"""

from __future__ import annotations

UNTRUSTED = frozenset({"import", "external"})
TRUSTED = "m.origin NOT IN ('import', 'external')"
_ACCEPTED = (
    "m.origin = 'owner' AND coalesce(json_extract(m.body, '$.reviewed'), "
    "json_extract(m.body, '$.metadata.\"loki-reviewed\"')) IS NOT NULL"
)
# What weighing writes beside a belief for which nobody stated a confidence.
_WORDED = "json_type(m.body, '$.asserted') = 'null' AND json_extract(m.body, '$.key') IS NULL"
_REPEATED = (
    "json_extract(m.body, '$.lesson') = "
    "json_extract(m.body, '$.error') || ': ' || json_extract(m.body, '$.resolution')"
)
MENDED = (
    "EXISTS (SELECT 1 FROM json_each(m.body, '$.resolutions') AS r "
    "WHERE json_array_length(r.value, '$.for') > 0)"
)
PROVEN = f"""CASE
  WHEN m.status = 'resolved' THEN 0
  WHEN m.status = 'candidate' THEN coalesce(({_ACCEPTED}) OR ({_WORDED}), 0)
  WHEN m.kind = 'anti-pattern' AND json_extract(m.body, '$.key') IS NOT NULL
    THEN json_extract(m.body, '$.prevention') IS NOT NULL OR {MENDED}
  WHEN m.kind = 'learning' THEN NOT coalesce({_REPEATED}, 0)
  WHEN m.kind = 'fact' THEN json_extract(m.body, '$.key.topic') IS NULL
  ELSE 1 END"""
