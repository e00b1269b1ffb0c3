"""The same small session as each client wrote it, for tests that need a transcript of any of them.

`tests/sessions/` holds what real clients wrote when a scripted model had them work: a prompt, a
failing command, an edit, the same command that passes, a closing message. Paths, instructions and
lines that only count tokens were replaced or left out. Versions: Claude Code 2.1.325, Codex
0.166.0, Copilot CLI 1.0.102, Gemini CLI 0.61.0, OpenCode 1.18.33, Qwen Code 0.24.4.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent / "sessions"
HERE = "/home/ana/demo"  # where the recorded sessions began
Line = dict[str, Any]
Change = Callable[[Line], Line]


class Client(NamedTuple):
    """A client, and where below the home folder it keeps a session."""

    name: str
    place: str
    session: str  # the id that it gave to the recorded one

    def lines(self, folder: str = HERE) -> list[Line]:
        """The recorded session, as if it had begun in `folder`."""
        text = (FOLDER / f"{self.name}.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.replace(HERE, folder).splitlines()]

    def write(self, home: Path, lines: list[Line], folder: str = HERE) -> Path:
        path = home / self.place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        if self.name == "gemini":
            (path.parent.parent / ".project_root").write_text(folder)
        return path


class OpenCodeClient(Client):
    """OpenCode, whose lines are rows: statements that make a database."""

    __slots__ = ()

    def lines(self, folder: str = HERE) -> list[Line]:
        text = (FOLDER / "opencode.sql").read_text(encoding="utf-8").replace(HERE, folder)
        statements = text.split(";\n")
        return [{"sql": statement} for statement in statements if statement.strip()]

    def write(self, home: Path, lines: list[Line], folder: str = HERE) -> Path:
        path = home / self.place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as database:
            for line in lines:
                database.execute(line["sql"])
            database.commit()
        return path


CLIENTS = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            ".claude/projects/-home-ana-demo/6f74391a-32eb-4b4a-b227-fcb274b27560.jsonl",
            "6f74391a-32eb-4b4a-b227-fcb274b27560",
        ),
        Client(
            "codex",
            ".codex/sessions/2026/11/18/rollout-2026-11-18T01-51-36.jsonl",
            "01a1ec5a-304f-71d2-86ad-500c33cd5975",
        ),
        Client(
            "copilot",
            ".copilot/session-state/096c52d6-aa23-4f26-85f6-9e4de02ee8cb/events.jsonl",
            "096c52d6-aa23-4f26-85f6-9e4de02ee8cb",
        ),
        Client(
            "gemini",
            ".gemini/tmp/demo/chats/session-2026-11-18T01-40-fdb7d96a.jsonl",
            "fdb7d96a-47c6-4ef2-a13a-b9e39c706cb0",
        ),
        OpenCodeClient(
            "opencode", ".local/share/opencode/opencode.db", "ses_e13b141abffe6zhxdM09iRT2QJ"
        ),
        Client(
            "qwen",
            ".qwen/projects/-home-ana-demo/chats/f6f6d36f-68cd-4651-924e-633590b2a1d8.jsonl",
            "f6f6d36f-68cd-4651-924e-633590b2a1d8",
        ),
    )
}
