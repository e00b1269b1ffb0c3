"""Learnings of a day as a view over anti-patterns: no file repeats what an anti-pattern says.

An anti-pattern with a remedy taught something on each day of an episode that it rests on. Learnings
that somebody wrote down are records of their own, and stand beside these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from loki_memory.index.index import Index, Summary
from loki_memory.models.ids import digest

if TYPE_CHECKING:
    from loki_memory.models import Learning

_SAYS = """
SELECT
  id, kind, title, status, scope, at, agent, confidence, pinned, path, etag,
  json_extract(body, '$.what_fails'), json_extract(body, '$.prevention')
FROM live
WHERE kind = 'anti-pattern' AND coalesce(json_extract(body, '$.prevention'), '') <> ''
ORDER BY id
"""
# Episodes that are here, and the days of those that only another machine has; any text may
# stand in place of such a day.
_DAYS = """
SELECT x.source, substr(e.at, 1, 10) AS day
FROM edges AS x JOIN memories AS e ON e.id = x.target AND e.kind = 'episode'
WHERE x.relation = 'derived_from' AND x.source IN (
  SELECT id FROM memories WHERE kind = 'anti-pattern')
UNION
SELECT a.id, mark.value ->> '$.day'
FROM memories AS a, json_each(a.body, '$.evidence.episodes') AS mark
WHERE a.kind = 'anti-pattern' AND date(mark.value ->> '$.day') = mark.value ->> '$.day'
"""


class Taught(NamedTuple):
    """The lesson of an anti-pattern on one day."""

    source: Summary
    etag: str
    day: str
    error: str
    resolution: str

    def summary(self) -> Summary:
        """Its line in a listing, under the id of the anti-pattern."""
        return self.source._replace(title=f"{self.error}: {self.resolution}", at=self.day)

    def learning(self) -> Learning:
        """Its entry in the view of the day."""
        from loki_memory.models import Learning

        return Learning.taught_by(self.source.id, self.day, self.error, self.resolution)

    def former_id(self) -> str:
        """The id of the record that held the same before learnings were a view."""
        return f"learn-{digest('learning', self.source.id, self.day)}"


def taught(index: Index) -> list[Taught]:
    """The lessons of all live anti-patterns, by anti-pattern and day."""
    days: dict[str, set[str]] = {}
    for source, day in index.ask(_DAYS):
        if day:
            days.setdefault(source, set()).add(day)
    written = {name for (name,) in index.ask("SELECT id FROM memories WHERE kind = 'learning'")}
    found = [
        Taught(summary, etag, day, error, resolution)
        for *row, etag, error, resolution in index.ask(_SAYS)
        for summary in [Summary(*row)]
        for day in sorted(days.get(summary.id) or filter(None, [summary.at[:10]]))
    ]
    return [lesson for lesson in found if lesson.former_id() not in written]
