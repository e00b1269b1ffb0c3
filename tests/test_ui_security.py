"""Who may ask the pages of `loki-mem ui`, and who may write."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from ui_client import BASE, PORT, Browser, browser

from loki_memory import Workspace
from loki_memory.ui.pages import ROUTES
from loki_memory.ui.server import application, listen, make_site, mountable
from loki_memory.ui.site import UiSite

READING = [route.path for route in ROUTES if "POST" not in (route.methods or ())]
WRITING = [route.path for route in ROUTES if "POST" in (route.methods or ())]


@pytest.fixture
def site(ws: Workspace) -> UiSite:
    return make_site(ws, PORT)


@pytest.fixture
def stranger(site: UiSite) -> Iterator[TestClient]:
    with TestClient(application(site), base_url=BASE) as client:
        yield client


@pytest.fixture
def visitor(ws: Workspace) -> Iterator[Browser]:
    with browser(ws) as opened:
        yield opened


@pytest.mark.parametrize("path", [*READING, "/", "/events", "/static/ui.css", "/nowhere"])
def test_a_process_without_the_token_gets_401(stranger: TestClient, path: str) -> None:
    assert stranger.get(path).status_code == 401


@pytest.mark.parametrize("path", WRITING)
def test_a_write_without_the_token_gets_401(stranger: TestClient, path: str) -> None:
    assert stranger.post(path).status_code == 401


def test_a_wrong_cookie_opens_nothing(stranger: TestClient) -> None:
    stranger.cookies.set(f"loki-mem-{PORT}", "guessed")
    assert stranger.get("/now").status_code == 401


def test_the_link_opens_one_browser_once(site: UiSite) -> None:
    link = site.secrets.link()
    with TestClient(application(site), base_url=BASE) as first:
        answer = first.get(link)
        assert answer.status_code == 200
        assert first.get("/now").status_code == 200
        assert TestClient(application(site), base_url=BASE).get(link).status_code == 401
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_a_wrong_key_leaves_the_link_usable(stranger: TestClient, site: UiSite) -> None:
    assert stranger.get("/open?key=guess").status_code == 401
    assert stranger.get("/open?key=").status_code == 401
    assert stranger.get("/open").status_code == 401
    assert stranger.get(site.secrets.link()).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", ""])
def test_another_host_name_is_refused(visitor: Browser, host: str) -> None:
    """A page elsewhere may let its name resolve to this machine."""
    assert visitor.client.get("/now", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"http://127.0.0.1:{PORT + 1}"])
@pytest.mark.parametrize("path", WRITING)
def test_a_page_of_another_origin_cannot_write(visitor: Browser, path: str, origin: str) -> None:
    given = {"csrf": visitor.site.secrets.csrf}
    answer = visitor.client.post(path, data=given, headers={"origin": origin})
    assert answer.status_code == 403


@pytest.mark.parametrize("path", WRITING)
@pytest.mark.parametrize("token", ["", "guessed"])
def test_a_form_without_the_write_token_is_refused(visitor: Browser, path: str, token: str) -> None:
    answer = visitor.client.post(path, data={"csrf": token}, headers={"origin": BASE})
    assert answer.status_code == 403


def test_a_form_that_is_too_large_is_refused(visitor: Browser) -> None:
    given = {"csrf": visitor.site.secrets.csrf, "text": "x" * 2_000_000}
    assert visitor.client.post("/undo", data=given, headers={"origin": BASE}).status_code == 403


@pytest.mark.parametrize("path", [path for path in WRITING if path != "/theme"])
def test_a_read_only_page_refuses_every_write(ws: Workspace, path: str) -> None:
    with browser(ws, read_only=True) as visitor:
        assert "read only" in visitor.html("/now")
        assert visitor.post(path).status_code == 403


def test_every_answer_forbids_scripts_and_requests_from_elsewhere(visitor: Browser) -> None:
    for path in ("/now", "/now.json", "/nowhere", "/static/ui.js", "/open?key=guess"):
        headers = visitor.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


def test_a_redirect_never_leads_to_another_server(visitor: Browser) -> None:
    for target in ("//evil.example", "/\\evil.example", "https://evil.example", ""):
        answer = visitor.client.post(
            "/theme",
            data={"csrf": visitor.site.secrets.csrf, "next": target},
            headers={"origin": BASE},
            follow_redirects=False,
        )
        assert answer.headers["location"] == "/now"


def test_static_files_are_only_those_of_the_page(visitor: Browser) -> None:
    assert visitor.client.get("/static/ui.css").status_code == 200
    for path in ("/static/../base.html", "/static/%2e%2e/base.html", "/schemas/..%2fREADME.md"):
        assert visitor.client.get(path).status_code == 404


def test_the_server_listens_on_loopback_only() -> None:
    with listen(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


def test_every_page_has_json_beside_it() -> None:
    paths = {route.path for route in ROUTES if isinstance(route, Route)}
    pages = {path for path in READING if not path.endswith((".json", ".webmanifest"))}
    assert {f"{path}.json" for path in pages} <= paths


def test_templates_hold_no_inline_script_and_no_inline_style() -> None:
    folder = Path(__file__).parent.parent / "templates" / "ui"
    for path in folder.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert " style=" not in text, path
        assert "<style" not in text, path
        assert "|safe" not in text, path
        assert text.count("<script") == text.count('<script src="{{ root }}/static/'), path


def test_an_open_connection_hears_of_a_change_and_ends_with_the_server(site: UiSite) -> None:
    async def listen_to_events() -> list[str]:
        heard = []
        async for event in site.broadcast.events():
            heard.append(event)
            site.broadcast.notify() if len(heard) == 1 else site.broadcast.close()
        return heard

    first, second, *_ = asyncio.run(listen_to_events())
    assert first.startswith(":")
    assert second == "event: changed\ndata: \n\n"


def test_pages_can_be_mounted_under_a_path_of_another_server(ws: Workspace) -> None:
    ws.remember("CI runs on Node 24")
    site = make_site(ws, PORT, read_only=True)
    server = Starlette(routes=[Mount("/team/shop", mountable(site))])
    with TestClient(server, base_url=BASE) as visitor:
        for path in ("/now", "/beliefs", "/review", "/timeline", "/graph", "/files", "/health"):
            answer = visitor.get(f"/team/shop{path}")
            assert answer.status_code == 200
            places = re.findall(r'(?:href|src|action|hx-get)="(/[^"]*)"', answer.text)
            assert [place for place in places if not place.startswith("/team/shop/")] == []
            assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert visitor.get("/team/shop/static/ui.css").status_code == 200
        assert visitor.get("/team/shop").url.path == "/team/shop/now"
        theme = {"csrf": site.secrets.csrf, "theme": "dark", "next": "/beliefs"}
        assert visitor.post("/team/shop/theme", data=theme).url.path == "/team/shop/beliefs"
        refused = visitor.post("/team/shop/review/commit", data={"csrf": site.secrets.csrf})
        assert refused.status_code == 403
    site.close()


def test_the_theme_is_kept_in_a_cookie(visitor: Browser) -> None:
    assert 'data-theme="' not in visitor.html("/now")
    assert 'data-theme="dark"' in visitor.post("/theme", theme="dark", next="/now").text
    assert 'data-theme="' not in visitor.post("/theme", theme="<script>", next="/now").text
