"""A browser without a screen for the pages of `loki-mem ui`: Starlette's test client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.testclient import TestClient

from loki_memory import Workspace
from loki_memory.ui.server import application, make_site
from loki_memory.ui.site import UiSite

PORT = 4711
BASE = f"http://127.0.0.1:{PORT}"


class Browser:
    """A client that may have opened the one-time link."""

    def __init__(self, client: TestClient, site: UiSite) -> None:
        self.client, self.site = client, site

    def open(self) -> None:
        assert self.client.get(self.site.secrets.link()).status_code == 200

    def html(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/html")
        return answer.text

    def json(self, path: str) -> Any:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, **fields: str) -> Any:
        """Send a form as our pages do; the answer is the page that it leads to."""
        given = {"csrf": self.site.secrets.csrf, **fields}
        return self.client.post(path, data=given, headers={"origin": BASE})


@contextmanager
def browser(workspace: Workspace, *, read_only: bool = False) -> Iterator[Browser]:
    """A browser that opened the page of a workspace."""
    site = make_site(workspace, PORT, read_only=read_only)
    with TestClient(application(site), base_url=BASE) as client:
        visitor = Browser(client, site)
        visitor.open()
        yield visitor
