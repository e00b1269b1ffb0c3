"""The pages of `loki-mem ui`: what they show, and what their forms do to files."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import git, put_into_git
from ui_client import Browser, browser

from loki_memory import Workspace
from loki_memory.resources import resource
from loki_memory.ui.confidence_curve import confidence_curve
from loki_memory.ui.templates import ago

NOW = "2026-02-01T09:00:00Z"
ERROR = {
    "type": "TS7030",
    "message": "error TS7030: Not all code paths return a value.",
    "resolution": "Return explicitly from every branch of the handler.",
    "hunk": "- if (a) return b;\n+ return a ? b : null;",
}
COMMAND = {"t": 0, "action": "run_test", "target": "npm run typecheck", "result": "success"}


@pytest.fixture
def shop(example: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """The page of the example, with its memory in git."""
    monkeypatch.setenv("LOKI_NOW", NOW)
    put_into_git(example)
    git(example, "config", "user.name", "ana")
    git(example, "config", "user.email", "ana@example.org")
    with Workspace.open(example, origin="owner") as workspace, browser(workspace) as opened:
        yield opened


def test_what_was_computed_is_computed_again_once_git_or_memory_moved(shop: Browser) -> None:
    workspace = shop.site.workspace
    workspace.remember("CI runs on Node 24")
    assert "CI runs on Node 24" in shop.html("/review")
    git(workspace.layout.root, "add", "-A")
    git(workspace.layout.root, "commit", "-qm", "memory")
    assert "All of memory is committed" in shop.html("/review")
    assert shop.json("/beliefs.json")["total"] + 1 == _count_after(shop, "Node 26 is next")


def _count_after(shop: Browser, statement: str) -> int:
    """The number of beliefs after somebody wrote one by hand."""
    facts = shop.site.workspace.layout.memory / "semantic" / "facts"
    (facts / "by-hand.json").write_text(json.dumps({"statement": statement}), encoding="utf-8")
    return int(shop.json("/beliefs.json")["total"])


@pytest.fixture
def new(project: Path) -> Iterator[Browser]:
    """The page of an empty workspace without git."""
    with Workspace.init(project) as workspace, browser(workspace) as opened:
        yield opened


@pytest.fixture
def taught(project: Path) -> Iterator[Browser]:
    """A repository with one candidate, which a captured session taught."""
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "user.name", "ana")
    git(project, "config", "user.email", "ana@example.org")
    with Workspace.init(project, origin="owner") as workspace:
        git(project, "add", "-A")
        git(project, "commit", "-qm", "begin")
        workspace.record(captured(1))
        workspace.consolidate()
        with browser(workspace) as opened:
            yield opened


def captured(number: int) -> dict[str, Any]:
    return {
        "goal": f"Add an endpoint ({number})",
        "timestamp": f"2026-01-{number:02}T09:00:00Z",
        "session": f"session-{number}",
        "agent": "claude-code",
        "outcome": "success",
        "scope": "local",
        "captured": True,
        "errors_encountered": [ERROR],
    }


def workspace_of(browser: Browser) -> Workspace:
    return browser.site.workspace


def tracked(browser: Browser) -> list[str]:
    memory = workspace_of(browser).layout.memory / "semantic"
    return sorted(path.name for path in memory.glob("*/*.json"))


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("/now", "now"),
        ("/beliefs", "beliefs"),
        ("/beliefs?q=return+type", "beliefs"),
        ("/beliefs/sem-001", "belief"),
        ("/beliefs/ep-2026-01-06-001", "belief"),
        ("/beliefs/anti-ns66z0vk7n", "belief"),
        ("/beliefs/skill-api-endpoint-implementation", "belief"),
        ("/review", "review"),
        ("/pulse", "pulse"),
    ],
)
def test_a_page_and_its_json_say_the_same_and_the_json_obeys_its_schema(
    shop: Browser, path: str, schema: str
) -> None:
    assert "<h1" in shop.html(path)
    address, mark, query = path.partition("?")
    answer = shop.client.get(f"{address}.json{mark}{query}")
    assert f"ui-{schema}.schema.json" in answer.headers["link"]
    kept = json.loads((resource("schemas") / f"ui-{schema}.schema.json").read_bytes())
    jsonschema.Draft202012Validator(kept).validate(answer.json())
    assert shop.json(f"/schemas/ui-{schema}.schema.json") == kept


@pytest.mark.parametrize("path", ["/now", "/beliefs", "/review"])
def test_an_empty_workspace_says_what_to_do(new: Browser, path: str) -> None:
    assert "<code>loki-mem " in new.html(path)


def test_a_page_that_is_not_there_says_so(shop: Browser) -> None:
    answer = shop.client.get("/beliefs/fact-0000000000")
    assert answer.status_code == 404
    assert "This did not work" in answer.text
    assert shop.client.get("/beliefs/fact-0000000000.json").json()["type"] == "NotFound"


# -- now -------------------------------------------------------------------------------------------


def test_now_shows_the_brief_with_the_memory_behind_each_line(shop: Browser) -> None:
    workspace = workspace_of(shop)
    rule = workspace.remember("Always run make check before a commit", kind="rule")
    lines = {line["id"]: line["text"] for line in shop.json("/now.json")["brief"]}
    assert "make check" in lines[rule.id]
    assert f'href="/beliefs/{rule.id}"' in shop.html("/now")


def test_looking_at_pages_is_not_noted_as_told_to_an_agent(shop: Browser) -> None:
    before = workspace_of(shop).home.journal.recent()
    for path in ("/now", "/beliefs?q=return+type", "/beliefs/sem-001", "/review"):
        shop.html(path)
    assert workspace_of(shop).home.journal.recent() == before


def test_now_shows_what_a_session_was_told_and_what_it_was_not_told(shop: Browser) -> None:
    workspace = workspace_of(shop)
    workspace.home.journal.shown(
        [("sem-001", 12)],
        surface="hook:UserPromptSubmit",
        query="add a handler",
        session="s1",
        now="2026-01-31T09:00:00Z",
    )
    workspace.record(
        {
            "goal": "Add a handler",
            "session": "s1",
            "timestamp": "2026-01-31T09:05:00Z",
            "outcome": "success",
            "recalled": [{"id": "sem-001", "helpful": True}],
            "errors_encountered": [{"message": "EADDRINUSE: address already in use"}],
        }
    )
    session = shop.json("/now.json")["sessions"][0]
    assert (session["goal"], session["outcome"]) == ("Add a handler", "success")
    assert session["injections"][0]["door"] == "at a prompt"
    assert session["injections"][0]["memories"][0]["id"] == "sem-001"
    assert session["verdicts"] == []  # what an agent says about itself proves nothing
    assert session["untold_errors"] == ["EADDRINUSE: address already in use"]
    (telling,) = shop.json("/beliefs/sem-001.json")["tellings"]
    assert (telling["goal"], telling["door"]) == ("Add a handler", "at a prompt")
    assert "Add a handler" in shop.html("/beliefs/sem-001")


def test_a_lesson_that_was_told_before_its_error_counts_as_help_once_the_error_stays_away(
    taught: Browser,
) -> None:
    workspace = workspace_of(taught)
    failed = {**COMMAND, "result": "failure", "error": ERROR["message"]}
    workspace.record({**captured(2), "action_log": [failed]})
    workspace.consolidate()
    (lesson,) = workspace.list(kind="anti-pattern")
    for number in (3, 4):
        workspace.record(typechecked(number))
        workspace.home.journal.shown(
            [(lesson.id, 12)],
            surface="hook:PreToolUse",
            query="npm run typecheck",
            session=f"session-{number}",
            now=f"2026-01-{number:02}T08:00:00Z",
        )
    tally = taught.json("/now.json")["tally"]
    assert (tally["sessions"], tally["helped"], tally["failed"]) == (2, 2, 0)
    assert "2 of 2 times" in taught.html("/now")
    told = taught.json(f"/beliefs/{lesson.id}.json")["tellings"]
    assert [telling["verdict"] for telling in told] == ["helped", "helped"]
    (stopped,) = taught.json("/timeline.json")["prevention"]["stopped"]
    assert stopped["runs_after"] == 1  # the session of the first telling proves nothing
    assert "Not met in 1 later session" in taught.html("/timeline")


def typechecked(number: int) -> dict[str, Any]:
    """A session that ran the command of the error, and did not meet it."""
    return {**captured(number), "errors_encountered": [], "action_log": [COMMAND]}


def test_a_belief_to_merge_with_is_chosen_among_similar_ones(shop: Browser) -> None:
    workspace = workspace_of(shop)
    kept = workspace.remember("The API server listens on port 3000")
    other = workspace.remember("The API server of this project listens on port 3000 locally")
    found = shop.json(f"/review/{other.id}/merge.json")
    assert found["similar"][0]["id"] == kept.id
    assert other.id not in [belief["id"] for belief in found["similar"]]
    assert f'value="{kept.id}"' in shop.html(f"/review/{other.id}/merge")


def test_now_of_a_clone_that_nobody_trusts_says_that_agents_are_told_nothing(
    example: Path,
) -> None:
    workspace = Workspace.open(example)
    workspace.home.note_trust(is_trusted=False)
    with browser(workspace) as visitor:
        assert "loki-mem trust" in visitor.html("/now")


# -- beliefs ---------------------------------------------------------------------------------------


def test_a_search_ranks_as_recall_does_and_gives_the_parts_of_each_score(shop: Browser) -> None:
    ranked = [hit.id for hit in workspace_of(shop).recall("handler return type", k=30)]
    found = shop.json("/beliefs.json?q=handler+return+type")["beliefs"]
    assert [hit["id"] for hit in found] == ranked
    assert found[0]["why"]
    assert all(0 <= part["share"] <= 1 for hit in found for part in hit["parts"])
    assert found[0]["parts"]


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("kind=pattern", {"pattern"}),
        ("kind=anti-pattern&confidence=0.7", {"anti-pattern"}),
        ("q=type&kind=pattern", {"pattern"}),
    ],
)
def test_filters_leave_what_they_name(shop: Browser, query: str, kinds: set[str]) -> None:
    found = shop.json(f"/beliefs.json?{query}")["beliefs"]
    assert {hit["kind"] for hit in found} == kinds


def test_filters_of_category_status_type_and_age_count_together(ws: Workspace) -> None:
    kept = ws.remember("Use tabs", kind="convention", category="style", at="2026-01-30")
    ws.remember("Use spaces", kind="convention", category="other", at="2026-01-30")
    ws.remember("Use semicolons", category="style", at="2020-01-30")
    with browser(ws) as visitor:
        for query in ("category=style&type=convention", "type=convention&category=style&q=use"):
            found = visitor.json(f"/beliefs.json?{query}")["beliefs"]
            assert [hit["id"] for hit in found] == [kept.id]
        assert visitor.json("/beliefs.json?status=rejected")["beliefs"] == []
        assert visitor.json("/beliefs.json?kind=nonsense&start=x")["total"] == 3


def test_a_long_list_has_pages(ws: Workspace) -> None:
    for number in range(60):
        ws.remember(f"Fact number {number}")
    with browser(ws) as visitor:
        first = visitor.json("/beliefs.json")
        second = visitor.json(f"/beliefs.json?start={first['next']}")
    ids = {belief["id"] for part in (first, second) for belief in part["beliefs"]}
    assert (len(first["beliefs"]), len(ids), second["next"]) == (50, 60, None)


# -- one belief ------------------------------------------------------------------------------------


def test_the_page_of_a_belief_shows_evidence_remedies_and_history(shop: Browser) -> None:
    found = shop.json("/beliefs/anti-ns66z0vk7n.json")
    assert found["texts"]
    assert found["evidence"]
    assert found["curve"]["points"]
    assert found["steps"][0]["commit"]
    assert "<svg" in shop.html("/beliefs/anti-ns66z0vk7n")


def test_a_candidate_of_this_machine_has_a_page_too(taught: Browser) -> None:
    card = workspace_of(taught).history.candidates().shifts[0]
    found = taught.json(f"/beliefs/{card.id}.json")
    assert found["steps"] == []
    assert found["resolutions"][0]["mendings"][0]["hunk"] == ERROR["hunk"]


def test_an_edit_is_on_disk_and_can_be_undone(shop: Browser) -> None:
    workspace = workspace_of(shop)
    before = workspace.get("sem-001").document()
    answer = shop.post("/beliefs/sem-001/edit", pattern="Handlers return void", conditions="a\r\nb")
    assert "Edited" in answer.text
    stored = json.loads(workspace.browse.where("sem-001").read_bytes())
    assert (stored["pattern"], stored["conditions"]) == ("Handlers return void", ["a", "b"])
    undo(shop, answer.text)
    assert workspace.get("sem-001").document() == before


def test_an_edit_of_what_somebody_changed_meanwhile_is_refused(shop: Browser) -> None:
    seen = shop.json("/beliefs/sem-001.json")["seen"]
    workspace_of(shop).correct("sem-001", category="other")
    answer = shop.post("/beliefs/sem-001/edit", pattern="Mine", seen=seen)
    assert answer.status_code == 409
    assert workspace_of(shop).get("sem-001").title() != "Mine"


def test_reject_pin_supersede_and_archive_can_be_undone(shop: Browser) -> None:
    workspace = workspace_of(shop)
    fact = workspace.remember("We deploy on Mondays")
    for path, fields, status in (
        ("reject", {"why": "never"}, "rejected"),
        ("supersede", {"new": "We deploy on Fridays"}, "superseded"),
    ):
        text = shop.post(f"/beliefs/{fact.id}/{path}", **fields).text
        assert getattr(workspace.get(fact.id), "status", "") == status
        undo(shop, text)
        assert getattr(workspace.get(fact.id), "status", "") == "active"
    text = shop.post(f"/beliefs/{fact.id}/pin", pinned="yes").text
    assert workspace.get(fact.id).document()["pinned"] is True
    undo(shop, text)
    assert workspace.get(fact.id).document()["pinned"] is False
    text = shop.post(f"/beliefs/{fact.id}/archive").text
    assert fact.id not in {line.id for line in workspace.browse.summaries(status="all")}
    undo(shop, text)
    assert workspace.get(fact.id).title() == "We deploy on Mondays"


def undo(visitor: Browser, text: str) -> None:
    """Press Undo on a page, which works once."""
    key = text.partition('name="key" value="')[2].partition('"')[0]
    assert key
    assert "Undone" in visitor.post("/undo", key=key, next="/beliefs").text
    assert "Undone" not in visitor.post("/undo", key=key, next="/beliefs").text


# -- review ----------------------------------------------------------------------------------------


def test_accepting_a_candidate_writes_its_file_and_undo_takes_it_back(taught: Browser) -> None:
    card = taught.json("/review.json")["candidates"][0]["cards"][0]
    assert tracked(taught) == []
    answer = taught.post(f"/review/{card['id']}/accept")
    assert "Accepted" in answer.text
    assert tracked(taught) == [f"{card['id']}.json"]
    assert taught.json("/review.json")["candidates"] == []
    patch = taught.json("/review.json")["patches"][0]
    assert patch["what"] == "new"
    assert any("TS7030" in line for line in patch["lines"])
    undo(taught, answer.text)
    assert tracked(taught) == []
    again = taught.json("/review.json")["candidates"][0]["cards"][0]
    assert again["id"] == card["id"]


def test_a_rejected_candidate_does_not_come_back(taught: Browser) -> None:
    card = taught.json("/review.json")["candidates"][0]["cards"][0]
    answer = taught.post(f"/review/{card['id']}/reject", why="not ours")
    workspace_of(taught).consolidate()
    assert taught.json("/review.json")["candidates"] == []
    undo(taught, answer.text)
    assert taught.json("/review.json")["candidates"]


def test_an_edited_candidate_is_accepted_in_that_form(taught: Browser) -> None:
    card = taught.json("/review.json")["candidates"][0]["cards"][0]
    taught.post(f"/review/{card['id']}/edit", text="error TS7030: a branch returns nothing")
    stored = json.loads(workspace_of(taught).browse.where(card["id"]).read_bytes())
    assert stored["what_fails"] == "error TS7030: a branch returns nothing"
    assert stored["origin"] == "owner"


def test_a_merged_card_leads_to_the_belief_that_stays(shop: Browser) -> None:
    workspace = workspace_of(shop)
    old, kept = workspace.remember("Tests run in CI"), workspace.remember("CI runs all tests")
    answer = shop.post(f"/review/{old.id}/merge", **{"with": kept.id})
    assert getattr(workspace.get(old.id), "status", "") == "superseded"
    undo(shop, answer.text)
    assert getattr(workspace.get(old.id), "status", "") == "active"


def test_changes_are_committed_when_asked_and_only_then(taught: Browser) -> None:
    project = workspace_of(taught).layout.root
    card = taught.json("/review.json")["candidates"][0]["cards"][0]
    taught.post(f"/review/{card['id']}/accept")
    assert git(project, "log", "--format=%s") == "begin"
    assert "Memory:" in taught.json("/review.json")["comment"]
    assert "committed as" in taught.post("/review/commit", subject="memory: TS7030").text
    assert git(project, "log", "-1", "--format=%s") == "memory: TS7030"
    assert taught.json("/review.json")["patches"] == []


# -- pieces ----------------------------------------------------------------------------------------


def test_times_are_relative() -> None:
    assert ago("2026-01-31T09:00:00Z", NOW) == "1 d ago"
    assert ago("2026-02-01T08:59:40Z", NOW) == "just now"
    assert ago("2025-01-31T09:00:00Z", NOW) == "1 y ago"
    assert ago("not a time", NOW) == "not a time"


def test_a_curve_rises_with_what_speaks_for_a_belief_and_falls_with_what_speaks_against() -> None:
    evidence = [("2026-01-01", "for"), ("2026-01-10T10:00:00Z", "for"), ("2026-01-20", "against")]
    curve = confidence_curve(evidence, "2026-01-15T00:00:00Z", NOW)
    assert curve is not None
    assert [point.confidence for point in curve.points] == [0.75, 0.8, 0.67]
    assert curve.fade
    assert confidence_curve([], "", NOW) is None


def test_the_pictures_show_the_pages_as_they_are() -> None:
    """`python docs/images/screenshots.py` makes them anew."""
    images = Path(__file__).parent.parent / "docs" / "images"
    made_of = (images / "templates.sha256").read_text(encoding="utf-8").strip()
    assert made_of == runpy.run_path(str(images / "screenshots.py"))["templates_hash"]()
