"""Links: between what was met together, and what says more than something shorter."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from loki_memory.consolidation.links import relate, weight
from loki_memory.consolidation.snapshot import Snapshot
from loki_memory.models import AntiPattern, Episode, Fact, Link, Memory, Pattern, Skill, parse


def episode(n: int) -> Episode:
    given = {"id": f"ep-{n}", "goal": f"goal {n}", "timestamp": f"2026-01-{n:02d}T10:00:00Z"}
    return parse(Episode, given)


EPISODES = [episode(n) for n in range(1, 10)]


def belief(name: str, *episodes: int, **fields: Any) -> Pattern:
    """A pattern whose words no other one shares."""
    given = {"id": f"sem-{name}", "pattern": f"{name}1 {name}2 {name}3 {name}4"}
    return parse(Pattern, {**given, "source_episodes": [f"ep-{n}" for n in episodes], **fields})


def links(*records: Memory, day: str = "2026-01-09") -> list[Link]:
    changes = relate(Snapshot([*EPISODES, *records], day))
    return [one for one in changes.put if isinstance(one, Link)]


def ends(found: Sequence[Link]) -> list[tuple[str, str, str]]:
    return [(one.from_, one.relation, one.to) for one in found]


def test_two_beliefs_of_two_common_episodes_are_related() -> None:
    (link,) = links(belief("b", 1, 2, 3), belief("a", 2, 3, 4))
    assert ends([link]) == [("sem-a", "related_to", "sem-b")]
    assert link.strength == 0.75
    assert link.origin == "agent"
    assert link.document()["evidence"] == ["ep-2", "ep-3"]
    assert link.document()["at"] == "2026-01-03"


def test_a_link_names_the_five_latest_episodes_and_is_as_old_as_the_last() -> None:
    given = {"id": "ep-0", "goal": "late", "timestamp": "2026-01-08T12:00:00Z"}
    late = parse(Episode, given)  # whatever its id
    one, other = belief("a", *range(9)), belief("b", *range(8), 99)  # nobody knows episode 99
    (link,) = links(one, other, late)
    assert link.document()["evidence"] == ["ep-0", "ep-4", "ep-5", "ep-6", "ep-7"]
    assert link.document()["at"] == "2026-01-08"
    assert link.strength == 1.0


def test_common_episodes_that_nobody_knows_have_no_date_and_count() -> None:
    (link,) = links(belief("a", 88, 99), belief("b", 88, 99), day="2030-01-01")
    assert link.strength == 0.75
    assert "at" not in link.document()


def test_one_common_episode_may_be_chance() -> None:
    assert links(belief("a", 1, 2), belief("b", 2, 3)) == []


def test_a_skill_is_related_to_what_its_episodes_taught() -> None:
    skill = Skill(name="deploy", metadata={"loki-evidence": "ep-1, ep-2"})
    assert ends(links(skill, belief("a", 1, 2))) == [("sem-a", "related_to", "skill-deploy")]


@pytest.mark.parametrize(
    "fields",
    [{"status": "superseded"}, {"scope": "local"}, {"depth": 0}, {"parent": "sem-b"}],
    ids=["dead", "private", "topic", "child"],
)
def test_nothing_is_linked_to_what_is_dead_private_or_already_above(fields: dict[str, Any]) -> None:
    assert links(belief("a", 1, 2, **fields), belief("b", 1, 2)) == []


def test_what_someone_linked_is_not_linked_again() -> None:
    said = parse(Link, {"from": "sem-b", "relation": "contradicts", "to": "sem-a"})
    assert links(belief("a", 1, 2), belief("b", 1, 2), said) == []
    named = belief("a", 1, 2, links=[{"to": "sem-b", "relation": "supersedes"}])
    assert links(named, belief("b", 1, 2)) == []


def test_a_statement_that_contains_another_elaborates_it() -> None:
    short = Fact(id="fact-s", statement="The deploy script needs a clean checkout")
    long = Fact(
        id="fact-l",
        statement="The deploy script needs a clean checkout because generated files are compared",
    )
    assert ends(links(short, long)) == [("fact-l", "elaborates", "fact-s")]


def test_a_longer_statement_that_denies_a_shorter_one_does_not_elaborate_it() -> None:
    short = Fact(id="fact-s", statement="The deploy script needs a clean checkout")
    long = Fact(
        id="fact-l", statement="The deploy script never needs a clean checkout since release two"
    )
    assert links(short, long) == []


def test_messages_of_errors_elaborate_nothing() -> None:
    short = {
        "id": "anti-s",
        "what_fails": "cannot open database file readonly mode",
        "key": {"head": "x"},
    }
    long = {
        **short,
        "id": "anti-l",
        "what_fails": "cannot open database file readonly mode var lib todo",
    }
    assert links(parse(AntiPattern, short), parse(AntiPattern, long)) == []


def test_an_association_halves_in_its_half_life_and_unknown_dates_do_not_fade() -> None:
    assert weight(0.8, "2026-01-01", "2026-01-01", 45) == 0.8
    assert weight(0.8, "2026-01-01", "2026-02-15", 45) == 0.4
    assert weight(0.8, "", "2026-02-15", 45) == 0.8


def test_a_link_that_faded_is_archived_and_not_made_again() -> None:
    records = [*EPISODES, belief("a", 1, 2), belief("b", 1, 2)]
    snapshot = Snapshot(records, "2026-01-09")
    (link,) = relate(snapshot).put
    later = Snapshot([*records, link], "2026-06-30")
    assert relate(later).archive == (link.id,)
    assert not relate(later.with_changes(relate(later)))


def test_links_that_someone_asserted_are_never_archived() -> None:
    said = parse(Link, {"from": "sem-a", "to": "sem-b", "strength": 0.2})
    assert relate(Snapshot([*EPISODES, said], "2027-01-01")).archive == ()


def test_a_memory_has_at_most_ten_links_the_strongest_first() -> None:
    names = "bcdefghijklmno"
    others = [belief(name, 1, 2, *([3] if name == "o" else [])) for name in names]
    found = links(belief("a", 1, 2, 3), *others)
    count = [sum(name in (one.from_, one.to) for one in found) for name in ["sem-a", "sem-o"]]
    assert count[0] <= 10
    assert ("sem-a", "related_to", "sem-o") in ends(found)


def test_again_and_in_any_order_it_is_the_same() -> None:
    records: list[Memory] = [
        *EPISODES,
        *(belief(name, 1, 2, n) for n, name in enumerate("abcd", 3)),
    ]
    snapshot = Snapshot(records)
    changes = relate(snapshot)
    assert changes.put
    assert not relate(snapshot.with_changes(changes))
    for seed in range(3):
        random.Random(seed).shuffle(records)  # noqa: S311 - an order, not a secret
        assert relate(Snapshot(records)) == changes
