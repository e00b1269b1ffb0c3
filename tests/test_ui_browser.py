"""The pages of `loki-mem ui` in a real browser: keys, themes, small screens, hostile memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import git, put_into_git
from ui_browser import AXE, Page, chromium, needs_browser, opened

from loki_memory import Workspace

pytestmark = needs_browser
__all__ = ["chromium"]  # a fixture
PAGES = [
    "/now",
    "/beliefs",
    "/beliefs?q=return+type",
    "/beliefs/sem-001",
    "/review",
    "/timeline",
    "/graph",
    "/graph?around=sem-001",
    "/graph?all=1",
    "/files",
    "/handoffs",
    "/health",
    "/health/junk",
]
LESSON = "Return explicitly from every branch of the handler."


@pytest.fixture
def shop(example: Path, chromium: Any) -> Iterator[Page]:
    put_into_git(example)
    workspace = Workspace.open(example, origin="owner")
    for number in (1, 2):
        workspace.record(_captured(number))
    workspace.consolidate()
    with opened(workspace, chromium) as page:
        yield page


def _captured(number: int) -> dict[str, Any]:
    """A session that teaches something of its own."""
    return {
        "goal": f"Add endpoint {number}",
        "timestamp": f"2026-01-{number + 10}T09:00:00Z",
        "session": f"session-{number}",
        "outcome": "success",
        "scope": "local",
        "captured": True,
        "errors_encountered": [
            {"message": f"error TS703{number}: complaint {'ab'[number - 1]}", "resolution": LESSON}
        ],
    }


def test_every_page_loads_without_a_complaint_and_asks_nobody_else(shop: Page) -> None:
    for path in PAGES:
        shop.go(path)
        assert shop.page.locator("h1").count() == 1
    assert shop.complaints == []
    assert shop.went_elsewhere() == []


def test_pages_fit_a_phone(shop: Page) -> None:
    shop.page.set_viewport_size({"width": 375, "height": 800})
    for path in PAGES:
        shop.go(path)
        assert shop.is_as_wide_as_the_screen(), path


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: AXE_CORE=path/to/axe.min.js")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1400])
def test_pages_are_accessible_in_both_themes(shop: Page, theme: str, width: int) -> None:
    shop.page.emulate_media(color_scheme=theme)
    shop.page.set_viewport_size({"width": width, "height": 800})
    for path in PAGES:
        shop.go(path)
        shop.page.evaluate(f"{AXE.read_text(encoding='utf-8')};0")
        rules = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}"
        found = shop.page.evaluate(f"axe.run(document, {rules}).then((r) => r.violations)")
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found] == [], path


def test_the_keyboard_reaches_every_page_and_lists_its_keys(shop: Page) -> None:
    shop.go("/now")
    shop.page.keyboard.press("?")
    assert shop.page.locator("dialog[open]").is_visible()
    shop.page.keyboard.press("Escape")
    shop.page.keyboard.press("g")
    shop.page.keyboard.press("b")
    shop.page.wait_for_url("**/beliefs")
    shop.page.wait_for_selector(".badge-stopped")
    shop.page.keyboard.press("j")
    first = shop.page.locator("[data-item] a").first.get_attribute("href")
    shop.page.keyboard.press("Enter")
    shop.page.wait_for_url(f"**{first}")


def test_search_answers_while_one_types_and_the_address_follows(shop: Page) -> None:
    shop.go("/beliefs")
    shop.page.keyboard.press("/")
    shop.page.keyboard.type("handler return type")
    shop.page.wait_for_selector("#results .score")
    assert "q=handler" in shop.page.url
    shop.page.reload()
    assert shop.page.locator("#results .score").count() > 0


def test_a_candidate_is_accepted_by_a_key_and_undone_by_another(shop: Page) -> None:
    workspace: Workspace = shop.site.workspace
    card = workspace.history.candidates().shifts[0]
    shop.go("/review")
    shop.page.keyboard.press("j")
    shop.page.keyboard.press("a")
    shop.page.wait_for_selector(".done")
    file = workspace.layout.memory / "semantic" / "anti-patterns" / f"{card.id}.json"
    assert json.loads(file.read_bytes())["origin"] == "owner"
    shop.page.wait_for_selector(".badge-stopped")
    shop.page.keyboard.press("u")
    shop.page.wait_for_selector("text=Undone")
    assert not file.exists()


def test_a_candidate_is_rejected_with_a_reason(shop: Page) -> None:
    workspace: Workspace = shop.site.workspace
    card = workspace.history.candidates().shifts[0]
    shop.go("/review")
    shop.page.keyboard.press("j")
    shop.page.keyboard.press("x")
    shop.page.keyboard.type("not ours")
    shop.page.keyboard.press("Enter")
    shop.page.wait_for_selector("text=Rejected")
    assert getattr(workspace.get(card.id), "status", "") == "rejected"


def test_a_key_leads_to_the_beliefs_that_a_candidate_can_be_merged_with(shop: Page) -> None:
    workspace: Workspace = shop.site.workspace
    card = workspace.history.candidates().shifts[0]
    shop.go("/review")
    shop.page.keyboard.press("j")
    shop.page.keyboard.press("m")
    shop.page.wait_for_url("**/merge")
    shop.page.locator("input[type=radio]").first.check()
    shop.page.click("button:has-text('Merge')")
    shop.page.wait_for_selector("text=Merged")
    assert getattr(workspace.get(card.id), "status", "") == "superseded"


def test_the_theme_is_switched_and_kept(shop: Page) -> None:
    shop.go("/now")
    light = shop.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    shop.page.keyboard.press("t")
    shop.page.wait_for_selector("html[data-theme=dark]")
    shop.go("/beliefs")
    dark = shop.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert light != dark


def test_an_open_page_follows_a_change_of_memory(shop: Page) -> None:
    shop.go("/now")
    shop.site.workspace.remember("Always run make check first", kind="rule")
    shop.site.broadcast.notify()
    shop.page.wait_for_selector("text=Always run make check first")


def test_pages_work_without_scripts(example: Path, chromium: Any) -> None:
    workspace = Workspace.open(example, origin="owner")
    with opened(workspace, chromium, java_script_enabled=False) as page:
        page.page.goto(f"{page.base}/beliefs")
        page.page.fill("#q", "handler return type")
        page.page.click("button:has-text('Search')")
        page.page.click("#results a >> nth=0")
        page.page.click("button:has-text('Pin')")
        assert page.page.locator(".done").inner_text().startswith("Pinned")


# -- hostile memory --------------------------------------------------------------------------------

HOSTILE = (
    "<script>document.title='owned'</script><img src=http://evil.example/x.png onerror=alert(1)>"
    "{{ 7 * 7 }}\"'><svg onload=alert(2)> javascript:alert(3) \x1b[31mred\x1b[0m "
    "\u202egnp.exe ![x](http://evil.example/y.png) <iframe src=//evil.example></iframe>"
)


@pytest.fixture
def hostile(project: Path, chromium: Any) -> Iterator[Page]:
    """Script, remote images, escapes and bidi in every field, and texts of a megabyte."""
    git(project, "init", "-q", "-b", "main")
    with Workspace.init(project, origin="owner") as workspace:
        _fill(workspace)
        with opened(workspace, chromium) as page:
            yield page


def _fill(workspace: Workspace) -> None:
    workspace.record(
        {
            "id": "ep-2026-01-01-001",
            "goal": HOSTILE,
            "agent": HOSTILE,
            "session": "s1",
            "outcome": "failure",
            "timestamp": "2026-01-01T09:00:00Z",
            "summary": HOSTILE,
            "errors_encountered": [{"message": HOSTILE, "resolution": HOSTILE, "hunk": HOSTILE}],
            "files_modified": [HOSTILE],
        }
    )
    evidence = {"source_episodes": ["ep-2026-01-01-001"], "tags": [HOSTILE], "by": HOSTILE}
    approach = {"conditions": [HOSTILE], "correct_approach": HOSTILE, "incorrect_approach": HOSTILE}
    workspace.remember(HOSTILE, kind="pattern", category=HOSTILE, details={**evidence, **approach})
    workspace.remember(f"Large {'wide ' * 200_000}", kind="rule")  # a record has 1 MiB at most
    workspace.remember("A large category", category="x" * 1_000_000)
    workspace.home.journal.shown(
        [("ep-2026-01-01-001", 9)],
        surface="hook:SessionStart",
        query=HOSTILE,
        session="s1",
        now="2026-01-01T09:00:00Z",
    )
    workspace.continuity(goal=HOSTILE)


def test_hostile_memory_runs_nothing_and_asks_nobody(hostile: Page) -> None:
    lines = hostile.site.workspace.browse.summaries(status="all")
    paths = [f"/beliefs/{line.id}" for line in lines]
    for path in ["/now", "/beliefs", "/beliefs?q=script", "/review", *paths]:
        hostile.go(path)
        assert hostile.page.locator("iframe, main img, main svg[onload]").count() == 0, path
        assert hostile.page.title() != "owned"
        content = hostile.page.content()
        assert "\u202e" not in content
        assert "\x1b" not in content
        assert len(content) < 1_000_000, path
    assert hostile.complaints == []
    assert hostile.went_elsewhere() == []
    hostile.page.set_viewport_size({"width": 375, "height": 800})
    for path in ["/now", "/beliefs", *paths]:
        hostile.go(path)
        assert hostile.is_as_wide_as_the_screen(), path


def test_ten_thousand_beliefs_are_listed_and_searched(example: Path, chromium: Any) -> None:
    folder = example / ".loki" / "memory" / "semantic" / "facts"
    for number in range(10_000):
        record = {"id": f"fact-{number:010}", "statement": f"Service {number} listens on a port"}
        (folder / f"fact-{number:010}.json").write_text(json.dumps(record), encoding="utf-8")
    with opened(Workspace.open(example), chromium) as page:
        page.go("/beliefs")
        assert page.page.locator("#results li").count() == 50
        page.go("/beliefs?q=service+4711+port")
        assert "Service 4711 listens" in page.text()
    assert page.complaints == []


def test_a_node_is_found_without_asking_the_graphics_card(shop: Page) -> None:
    """The answer of the card is waited for at every move of the pointer."""
    shop.page.add_init_script(
        "window.asked = 0; const read = WebGL2RenderingContext.prototype.readPixels;"
        "WebGL2RenderingContext.prototype.readPixels = function (...a) {"
        " window.asked++; return read.apply(this, a); }"
    )
    shop.go("/graph?all=1")
    shop.page.wait_for_selector(".canvas canvas")  # the policy of the page forbids to poll by eval
    place = shop.page.evaluate(
        "(id) => lokiGraph.framedGraphToViewport(lokiGraph.getNodeDisplayData(id))", "sem-001"
    )
    shop.page.locator(".canvas").click(position={"x": place["x"], "y": place["y"]})
    shop.page.wait_for_selector(".inspector h2")
    assert "explicit return types" in shop.page.inner_text(".inspector h2")
    box = shop.page.locator(".canvas").bounding_box()
    shop.page.mouse.move(box["x"] + 40, box["y"] + 40)
    shop.page.mouse.down()
    shop.page.mouse.move(box["x"] + 200, box["y"] + 120, steps=10)
    shop.page.mouse.up()
    assert shop.page.evaluate("window.asked") == 0
