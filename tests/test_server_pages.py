"""The pages of `loki-mem ui` over the team server: read by people of a token, in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from team_server import Team, make_repository, make_token, team

PAGES = "/repositories/app/"
FACT = "Deploys of the app run through the blue script"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Team]:
    with team(tmp_path / "server") as running:
        for name, statement in (("app", FACT), ("shop", "The shop closes at noon on Sundays")):
            make_repository(tmp_path / name, statement)
            running.fetch(tmp_path / name, name)
        yield running


@pytest.fixture
def browser(server: Team) -> TestClient:
    """A browser, which sends no bearer token."""
    return TestClient(
        server.app,
        base_url="http://127.0.0.1",
        headers={"accept": "text/html"},
        raise_server_exceptions=False,
    )


def sign_in(browser: TestClient, secret: str) -> Any:
    return browser.post("/repositories/sign-in", data={"token": secret})


def test_a_person_signs_in_reads_every_page_and_signs_out(
    server: Team, browser: TestClient
) -> None:
    assert "Your token" in browser.get("/repositories/app/now").text
    assert browser.get("/repositories/").status_code == 401
    assert sign_in(browser, "loki_wrong").status_code == 401
    listed = sign_in(browser, make_token(server.database))
    assert "/repositories/app/" in listed.text
    assert "shop" not in listed.text, "only what the token reaches"
    pages = re.findall(r'href="(/repositories/app/\w+)" data-go', browser.get(PAGES).text)
    assert f"{PAGES}beliefs" in pages
    assert f"{PAGES}health" not in pages, "that of the server is nobody's business"
    for path in [*pages, f"{PAGES}files/src", f"{PAGES}beliefs.json"]:
        page = browser.get(path)
        assert page.status_code == 200, (path, page.text)
        assert str(server.folder) not in page.text
        assert not re.search(r'(href|src|action)="/(?!repositories/app/)', page.text)
    for path in ("health", "review", "api/memory/summary"):
        assert browser.get(f"{PAGES}{path}").status_code == 404
    assert FACT in browser.get("/repositories/app/beliefs").text
    assert browser.get("/repositories/shop/beliefs").status_code == 403
    assert sign_in(browser, "").status_code == 401
    assert browser.get("/repositories/app/now").status_code == 401


def test_a_page_of_a_belief_changes_nothing_and_is_in_the_audit(
    server: Team, browser: TestClient
) -> None:
    secret = make_token(server.database, "read", "push", "admin")
    sign_in(browser, secret)
    (fact,) = server.pull(secret).json()["records"]
    page = browser.get(f"/repositories/app/beliefs/{fact['id']}")
    assert FACT in page.text
    assert "content-security-policy" in page.headers
    for act in ("reject", "archive", "pin", "edit"):
        refused = browser.post(f"/repositories/app/beliefs/{fact['id']}/{act}", data={})
        assert refused.status_code == 403
    with server.database.as_owner() as connection:
        seen = connection.execute("SELECT act FROM loki.audit WHERE %s = ANY (ids)", (fact["id"],))
        assert (f"page /beliefs/{fact['id']}",) in seen.fetchall()


def test_the_cookie_opens_pages_only_and_no_other_site_signs_in(
    server: Team, browser: TestClient
) -> None:
    secret = make_token(server.database, "read", "push")
    forged = browser.post(
        "/repositories/sign-in", data={"token": secret}, headers={"sec-fetch-site": "cross-site"}
    )
    assert forged.status_code == 403
    sign_in(browser, secret)
    for path in ("/status", "/pull?project=app"):
        cookie = {"cookie": f"loki-mem-token={secret}"}
        assert browser.get(path, headers=cookie).status_code == 401
    far = TestClient(server.app, base_url="http://memory.example")
    given = far.post("/repositories/sign-in", data={"token": secret}, follow_redirects=False)
    assert "Secure" in given.headers["set-cookie"], "over TLS only, except on this machine"
    assert "HttpOnly" in given.headers["set-cookie"]
