"""A real browser for the pages of `loki-mem ui`: the system's chromium, driven by playwright.

Neither belongs to a development environment; `.ci/run` installs both, and tests that need them
are skipped with a reason where they are missing.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.ui.server import UiServer, listen, make_site

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
AXE = Path(os.environ.get("AXE_CORE", "axe.min.js"))
needs_browser = pytest.mark.skipif(
    not CHROMIUM or find_spec("playwright") is None,
    reason="needs chromium and playwright: apt-get install chromium; pip install playwright",
)


class Page:
    """A page in the browser, and what it asked for and complained about."""

    def __init__(self, page: Any, base: str, site: Any) -> None:
        self.page, self.base, self.site = page, base, site
        self.requested: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requested.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._dialog)

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def go(self, path: str) -> None:
        """Load a page, and wait until its script has run."""
        self.page.goto(f"{self.base}{path}")
        self.page.wait_for_selector(".badge-stopped")

    def text(self) -> str:
        return str(self.page.inner_text("body"))

    def is_as_wide_as_the_screen(self) -> bool:
        wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        return bool(self.page.evaluate(wide))

    def went_elsewhere(self) -> list[str]:
        """The requests that did not go to our server."""
        return [url for url in self.requested if not url.startswith(f"{self.base}/")]


@contextmanager
def served(workspace: Workspace) -> Iterator[tuple[Any, str]]:
    """A real server of a workspace, in a thread."""
    with listen(0) as listening:
        port = listening.getsockname()[1]
        site = make_site(workspace, port)
        server = UiServer(site)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield site, f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def opened(workspace: Workspace, chromium: Any, **context: Any) -> Iterator[Page]:
    """The page of a workspace in the browser."""
    with served(workspace) as (site, base):
        tab = chromium.new_context(**context)
        try:
            page = Page(tab.new_page(), base, site)
            page.page.goto(site.secrets.link())
            page.page.wait_for_url("**/now")
            yield page
        finally:
            tab.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all tests of a module; each test has a context of its own."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except Error as error:
            pytest.skip(f"chromium does not start here: {error}")
        yield browser
        browser.close()
