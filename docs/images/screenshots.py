"""Make the pictures of `loki-mem ui` in README.md and docs/ from the example workspace.

    python docs/images/screenshots.py

It needs chromium and playwright (`apt-get install chromium`, `pip install playwright`). A test
compares `templates.sha256` with the templates, so that no picture shows a page of the past.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
PAGES = TOP / "templates" / "ui"
SIZE = {"width": 1200, "height": 750}
PICTURES = {
    "now": "/now",
    "belief": "/beliefs/sem-001",
    "review": "/review",
    "graph": "/graph?all=1",
}


def templates_hash() -> str:
    """A hash of the templates and styles that the pictures show."""
    hashed = hashlib.sha256()
    for path in sorted(PAGES.rglob("*")):
        if path.is_file() and "vendor" not in path.parts:
            hashed.update(path.relative_to(PAGES).as_posix().encode() + b"\0" + path.read_bytes())
    return hashed.hexdigest()


def main() -> None:
    sys.path.insert(0, str(TOP / "tests"))
    from conftest import put_into_git
    from playwright.sync_api import sync_playwright
    from ui_browser import CHROMIUM, opened

    from loki_memory import Workspace

    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"LOKI_HOME": f"{folder}/home", "LOKI_NOW": "2026-01-20T10:00:00Z"}
        shop = shutil.copytree(TOP / "example_workspace", Path(folder) / "shop")
        put_into_git(shop)
        subprocess.run(
            [sys.executable, "-m", "loki_memory", "trust", "--yes"], cwd=shop, check=True
        )
        with Workspace.open(shop, origin="owner") as workspace, sync_playwright() as playwright:
            workspace.ingest(sorted((shop / "sessions").glob("*.jsonl")))
            workspace.consolidate()
            workspace.continuity(goal="Add an endpoint that deletes a todo")
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
            )
            with opened(workspace, browser, viewport=SIZE) as page:
                for name, path in PICTURES.items():
                    page.go(path)
                    page.page.wait_for_timeout(1500)  # the graph settles
                    page.page.screenshot(path=HERE / f"ui-{name}.png")
            browser.close()
    (HERE / "templates.sha256").write_text(f"{templates_hash()}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
