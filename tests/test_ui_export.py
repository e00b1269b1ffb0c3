"""`loki-mem export --html`: memory as one file that needs no server."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

from conftest import put_into_git

from loki_memory import Workspace
from loki_memory.ui.export_page import export_page

HOSTILE = '<script>alert(1)</script><img src="http://example.invalid/x.png">\x1b[31m\u202e'
SECRET = "ghp_" + "a1B2" * 9


class Tags(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def exported(workspace: Workspace) -> str:
    return export_page(workspace).html.decode()


def test_the_page_tells_beliefs_with_evidence_and_links(example: Path) -> None:
    with Workspace.open(example) as ws:
        text = exported(ws)
    assert "Express route handlers require explicit return types" in text
    assert "Evidence: " in text
    assert 'href="#sem-001"' in text
    assert "<svg" in text


def test_history_by_commit_is_told_where_there_is_git(example: Path) -> None:
    put_into_git(example)
    with Workspace.open(example) as ws:
        assert "History: " in exported(ws)


def test_the_page_loads_nothing_and_its_policy_allows_only_its_own_script(example: Path) -> None:
    with Workspace.open(example) as ws:
        text = exported(ws)
    loading = [
        (tag, attributes)
        for tag, attributes in Tags(text).found
        if tag in {"img", "link", "iframe", "object"} or "src" in attributes
    ]
    assert loading == []
    links = [attributes.get("href") or "#" for tag, attributes in Tags(text).found if tag == "a"]
    assert all(link.startswith("#") for link in links)
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(script) == 1
    digest = b64encode(sha256(script[0].encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in text
    assert "default-src &#39;none&#39;" in text


def test_what_is_private_to_this_machine_stays_here(example: Path) -> None:
    with Workspace.open(example) as ws:
        ws.remember("My own note about lunch", scope="local")
        assert "lunch" not in exported(ws)


def test_a_secret_in_a_file_is_replaced(ws: Workspace, project: Path) -> None:
    fact = ws.remember("The token is kept in the vault")
    path = ws.browse.where(fact.id)
    path.write_text(path.read_text().replace("is kept in the vault", f"is {SECRET}"))
    text = exported(ws)
    assert SECRET not in text
    assert "[REDACTED" in text
    assert project.name in text


def test_a_hostile_store_brings_no_markup(ws: Workspace) -> None:
    ws.remember(HOSTILE, category=HOSTILE, by=HOSTILE)
    ws.remember(
        HOSTILE, kind="pattern", details={"conditions": [HOSTILE], "correct_approach": HOSTILE}
    )
    text = exported(ws)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_file_never_grows_beyond_its_limit(ws: Workspace) -> None:
    for number in range(6):
        ws.remember(f"Rule {number}: " + "word " * 300)
    found = export_page(ws, largest=405_000)
    assert 0 < found.beliefs < 6
    assert found.left_out == 6 - found.beliefs
    assert "did not fit" in found.html.decode()
    assert len(found.html) < 405_000


def test_an_empty_memory_says_what_to_do(ws: Workspace) -> None:
    assert "has no beliefs yet" in exported(ws)
