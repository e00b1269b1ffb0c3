"""The lessons nearest to a goal: by words, by names of code, by files, and by how new they are."""

from __future__ import annotations

from loki_memory import Workspace
from loki_memory.injection.brief import brief
from loki_memory.injection.nearest import SessionGoal, TieToWork, code_names, nearest, score

NOWHERE = TieToWork(relevance=0.0, named=0, files=0.0, sessions=60, confidence=0.8)
PLACE = (  # describes one place: a lesson only to somebody who works there
    "`load_cart` reads `cart_items`, `cart_prices`, `cart_taxes` and `cart_rebates` from one table."
)


def session(number: int, said: str = "", files: tuple[str, ...] = ()) -> dict[str, object]:
    """An episode of a session of its own; what it says is sure enough to be told."""
    return {
        "goal": f"Work on part {number}",
        "session": f"session-{number}",
        "timestamp": f"2026-03-{number:02}T10:00:00Z",
        "files_modified": list(files),
        "statements": [{"text": said, "type": "fact", "score": 0.9}] if said else [],
    }


def learned(ws: Workspace, *episodes: dict[str, object]) -> None:
    for episode in episodes:
        ws.record(episode)
    ws.consolidate()


def titles(ws: Workspace, work: SessionGoal) -> list[str]:
    return [lesson.hit.title for lesson in nearest(ws, work, "")]


def test_a_name_of_code_in_common_counts_more_than_words() -> None:
    assert score(NOWHERE._replace(named=1)) > score(NOWHERE._replace(relevance=0.5))


def test_a_new_lesson_comes_before_an_old_one() -> None:
    assert score(NOWHERE._replace(sessions=0)) > score(NOWHERE)


def test_an_old_lesson_about_something_else_is_not_near() -> None:
    assert not NOWHERE.is_near
    assert not NOWHERE._replace(sessions=3).is_near
    assert NOWHERE._replace(sessions=3, fresh=5).is_near
    assert NOWHERE._replace(files=0.3).is_near


def test_names_of_code_and_of_files_are_read_off_a_text() -> None:
    found = code_names("`load_cart` in shop/cart_store.py calls parseItem()")
    assert {"load_cart", "cart_store.py", "parseItem"} <= found


def test_a_lesson_that_was_learned_on_a_file_is_near_to_it(ws: Workspace) -> None:
    said = "Totals are rounded last, because rebates must apply to exact prices."
    learned(ws, session(1, said, ("shop/cart.py",)), session(2, "", ("shop/other.py",)))
    (lesson,) = nearest(ws, SessionGoal("Go on", ["shop/cart.py"]), "")
    assert lesson.hit.title == said
    assert lesson.near.is_at_place
    (lesson,) = nearest(ws, SessionGoal("Go on", ["shop/other.py"]), "")
    assert not lesson.near.is_at_place


def test_a_description_of_a_place_is_told_to_who_works_there(ws: Workspace) -> None:
    files = ("shop/cart.py",)
    learned(ws, session(1, PLACE, files), session(2, PLACE, files))
    assert "load_cart" in brief(ws, "Make `load_cart` faster", (), "one", "hook:SessionStart")
    assert "load_cart" not in brief(ws, "Make the search faster", (), "two", "hook:SessionStart")
    told = brief(ws, "Make it faster", (), "three", "hook:SessionStart", files=files)
    assert "load_cart" in told


def test_what_nobody_proved_is_not_near(ws: Workspace) -> None:
    episode = session(1, "", ("shop/cart.py",))
    episode["statements"] = [{"text": PLACE, "type": "fact", "score": 0.2}]
    learned(ws, episode)
    assert titles(ws, SessionGoal("Make `load_cart` faster", ["shop/cart.py"])) == []
