"""Search across repositories: PostgreSQL finds by words and by meaning, and joins both orders.

What a repository says of itself is no rule for another one, so hits come with the name of theirs,
and the caller's own repository is left to its own recall. Both searches are exact. They run as the
token of the request: its rows are all that there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from loki_memory.server import records

if TYPE_CHECKING:
    from loki_memory.server.database import Connection

_POOL = 50  # passages by words, and as many by meaning
_FLOOR = 0.35  # cosine below which a passage is about something else
_SEARCH = """
WITH question AS (
  SELECT replace(plainto_tsquery('english', %(text)s)::text, '&', '|')::tsquery AS words,
    %(vector)s::vector AS meaning
), reached AS (
  SELECT p.repository, p.path, p.words, p.meaning
  FROM loki.passages AS p JOIN loki.records AS r USING (repository, path)
  WHERE r.repository <> coalesce((SELECT id FROM loki.repositories WHERE name = %(own)s), 0)
    AND r.kind IN ('fact', 'pattern', 'anti-pattern', 'learning', 'skill')
    AND r.status NOT IN ('superseded', 'rejected', 'retired', 'candidate') AND NOT r.gone
    AND NOT EXISTS (SELECT FROM loki.records AS t WHERE t.repository = r.repository
      AND t.value = r.value AND t.kind = 'tombstone' AND NOT t.gone AND r.value <> '')
), by_words AS (
  SELECT repository, path, row_number() OVER (ORDER BY score DESC, repository, path) AS rank
  FROM (SELECT repository, path, max(ts_rank_cd(reached.words, question.words)) AS score
    FROM reached, question WHERE reached.words @@ question.words GROUP BY 1, 2
    ORDER BY 3 DESC, 1, 2 LIMIT %(pool)s) AS best
), by_meaning AS (
  SELECT repository, path, row_number() OVER (ORDER BY distance, repository, path) AS rank
  FROM (SELECT repository, path, min(reached.meaning <=> question.meaning) AS distance
    FROM reached, question GROUP BY 1, 2 ORDER BY 3, 1, 2 LIMIT %(pool)s) AS best
  WHERE distance <= 1 - %(floor)s
)
SELECT o.name, r.id, r.kind, r.title
FROM (SELECT repository, path, sum(1.0 / (60 + rank)) AS score
  FROM (SELECT * FROM by_words UNION ALL SELECT * FROM by_meaning) AS ranked
  GROUP BY 1, 2) AS joined
JOIN loki.records AS r USING (repository, path) JOIN loki.repositories AS o ON o.id = repository
ORDER BY joined.score DESC, o.name, r.path LIMIT %(k)s
"""


class RepositoryHit(NamedTuple):
    """A memory of another repository."""

    repository: str
    id: str
    kind: str
    title: str


def search(connection: Connection, query: str, k: int, own: str) -> list[RepositoryHit]:
    """The best memories for a question in all repositories of a token but its own."""
    vector = records.embedding().encode([query]).vectors[0]
    given = {"text": query, "vector": records.as_vector(vector), "own": own, "k": k}
    rows = connection.execute(_SEARCH, {**given, "pool": _POOL, "floor": _FLOOR})
    return [RepositoryHit(*row) for row in rows.fetchall()]
