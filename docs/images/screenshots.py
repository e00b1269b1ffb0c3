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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki_memory import Workspace

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
PAGES = TOP / "templates" / "ui"
NOW = "2026-01-20T10:00:00Z"
SESSIONS = (
    ("7c1d4be2-3f60-4a55-9d0e-1b6f0a3c9e01", "Add DELETE /api/todos/:id, with a test"),
    ("b2a97f10-58c4-4e1b-8a7d-6d1f3c2e7b02", "Todos need a due date: add it to the schema"),
    ("e05b6c3d-9127-4f4e-b3a8-2c7d9e4f1a03", "Rename the field done to completed"),
)
COMMANDS = ("npm run typecheck", "npm run test:contract")
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


def _live_through(workspace: Workspace, shop: Path) -> None:
    """Tell each session what was known when it began, and then learn from it."""
    for path, (session, goal) in zip(sorted((shop / "sessions").iterdir()), SESSIONS, strict=True):
        os.environ["LOKI_NOW"] = f"{path.name[:10]}T09:00:00Z"
        workspace.injection.brief(goal, [], session, "hook:SessionStart")
        workspace.injection.reminder(goal, session, "hook:UserPromptSubmit")
        for command in COMMANDS:
            workspace.injection.command_lesson(command, session, "hook:PreToolUse")
        workspace.ingest([path])
        workspace.consolidate()
    os.environ["LOKI_NOW"] = NOW


def main() -> None:
    sys.path.insert(0, str(TOP / "tests"))
    from conftest import put_into_git
    from playwright.sync_api import sync_playwright
    from ui_browser import CHROMIUM, opened

    from loki_memory import Workspace

    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"LOKI_HOME": f"{folder}/home", "LOKI_NOW": NOW}
        shop = shutil.copytree(TOP / "example_workspace", Path(folder) / "shop")
        put_into_git(shop)
        subprocess.run(
            [sys.executable, "-m", "loki_memory", "trust", "--yes"], cwd=shop, check=True
        )
        with Workspace.open(shop, origin="owner") as workspace, sync_playwright() as playwright:
            _live_through(workspace, shop)
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
