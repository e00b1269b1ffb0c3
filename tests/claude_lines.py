"""Lines as Claude Code writes them, for tests that need a transcript."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

SESSION = "5f1c2d3e-0000-4000-8000-000000000001"


class Transcript:
    """A session, told line by line; every line comes ten seconds after the one before it."""

    def __init__(self, session: str = SESSION, cwd: str = "/home/ana/shop") -> None:
        self.session, self.cwd, self.branch = session, cwd, "main"
        self.lines: list[dict[str, Any]] = []
        self.seconds = 0
        self._numbers = count(1)

    def say(self, text: str, **more: Any) -> Transcript:
        return self._add("user", text, **more)

    def reply(self, text: str) -> Transcript:
        """Prose of the agent."""
        return self._add("assistant", [{"type": "text", "text": text}])

    def call(
        self, tool: str, answer: str = "ok", *, failed: bool = False, **given: Any
    ) -> Transcript:
        """A call and its result."""
        return self.begin(tool, **given).answer(answer, failed=failed)

    def begin(self, tool: str, **given: Any) -> Transcript:
        use = {"type": "tool_use", "id": f"toolu_{next(self._numbers)}", "name": tool}
        return self._add("assistant", [{**use, "input": given}])

    def answer(self, text: str, *, failed: bool = False) -> Transcript:
        blocks = [line["message"]["content"][0] for line in self.lines]
        calls = [block for block in blocks if isinstance(block, dict) and "name" in block]
        use = calls[-1]["id"]
        result = {"type": "tool_result", "tool_use_id": use, "content": text}
        return self._add("user", [{**result, "is_error": True} if failed else result])

    def wait(self, minutes: int) -> Transcript:
        self.seconds += minutes * 60
        return self

    def _add(self, kind: str, content: Any, **more: Any) -> Transcript:
        self.seconds += 10
        hours, rest = divmod(self.seconds, 3600)
        self.lines.append(
            {
                "type": kind,
                "uuid": f"{self.session[:8]}-{len(self.lines):04}",
                "sessionId": self.session,
                "timestamp": f"2026-03-02T{9 + hours:02}:{rest // 60:02}:{rest % 60:02}.000Z",
                "cwd": self.cwd,
                "gitBranch": self.branch,
                "isSidechain": False,
                "message": {"role": kind, "content": content},
                **more,
            }
        )
        return self

    def text(self, lines: int | None = None) -> str:
        return "".join(json.dumps(line) + "\n" for line in self.lines[:lines])

    def write(self, path: Path, lines: int | None = None) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(lines), encoding="utf-8")
        return path


def shop() -> Transcript:
    """A bug is fixed: the tests fail for want of a variable, the right command is found."""
    return (
        Transcript()
        .say("Fix the total of the cart")
        .call("Read", "def total(): ...", file_path="/home/ana/shop/src/cart.py")
        .call("Bash", "Exit code 2\nKeyError: 'SHOP_ENV'", failed=True, command="pytest tests")
        .call("Edit", "The file has been updated", file_path="/home/ana/shop/src/cart.py")
        .call("Bash", "5 passed", command="SHOP_ENV=test pytest tests")
        .call("Bash", "[main 1a2b3c4] Fix the total", command="git commit -am 'Fix the total'")
        .say("Thanks! Now document the cart in README.md")
        .call("Write", "File created", file_path="/home/ana/shop/README.md", content="# Cart")
    )
