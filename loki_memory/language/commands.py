"""A language model by the command of a client that is installed anyway: `claude` or `codex`.

The command runs in an empty folder, without tools and without our own hooks: it sees the question
and nothing of the project, and the session that it is leaves no memory.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from loki_memory.language.model import ModelReply, ModelRequest, Unanswered, count, fields

_QUIET = {"LOKI_SKIP_MEMORY": "1"}  # our hooks stay silent in that session
_CLAUDE = (
    *("claude", "-p", "--output-format", "json", "--tools", "", "--strict-mcp-config"),
    *("--no-session-persistence", "--setting-sources", "user", "--disable-slash-commands"),
)
_CODEX = (
    *("codex", "exec", "--json", "--skip-git-repo-check", "--ephemeral"),
    *("--sandbox", "read-only", "--color", "never"),
)


class ClaudeCommand(NamedTuple):
    """`claude -p`, with the user's own login."""

    model: str
    timeout: int

    def ask(self, request: ModelRequest) -> ModelReply:
        """Answer a request."""
        named = ["--model", self.model] if self.model else []
        command = [*_CLAUDE, *named, "--system-prompt", request.system]
        with tempfile.TemporaryDirectory() as folder:
            printed = _printed(command, request.prompt, folder, self.timeout)
        return _claude_reply(_object(printed))


def _claude_reply(found: dict[str, Any]) -> ModelReply:
    if found.get("is_error") or not isinstance(found.get("result"), str):
        said = str(found.get("result") or found.get("subtype") or "nothing")[:200]
        raise Unanswered(f"`claude` says: {said}")
    usage, cost = fields(found.get("usage")), found.get("total_cost_usd")
    read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return ModelReply(
        found["result"],
        sum(count(usage.get(name)) for name in read),
        count(usage.get("output_tokens")),
        cost if isinstance(cost, int | float) and 0 <= cost < math.inf else None,
        ", ".join(fields(found.get("modelUsage"))),
    )


class CodexCommand(NamedTuple):
    """`codex exec`, with the user's own login."""

    model: str
    timeout: int

    def ask(self, request: ModelRequest) -> ModelReply:
        """Answer a request."""
        named = ["--model", self.model] if self.model else []
        with tempfile.TemporaryDirectory() as folder:
            schema = Path(folder) / "schema.json"
            schema.write_text(json.dumps(request.schema), encoding="utf-8")
            command = [*_CODEX, *named, "--output-schema", str(schema), "-"]
            asked = f"{request.system}\n\n{request.prompt}"
            printed = _printed(command, asked, folder, self.timeout)
        return _codex_reply([*_events(printed)], self.model)


def _codex_reply(events: Sequence[dict[str, Any]], model: str) -> ModelReply:
    """The last message of a session, and what its turns used."""
    text, tokens_in, tokens_out = "", 0, 0
    for event in events:
        item, usage = fields(event.get("item")), fields(event.get("usage"))
        if item.get("type") == "agent_message":
            text = str(item.get("text", ""))
        tokens_in += count(usage.get("input_tokens"))
        tokens_out += count(usage.get("output_tokens"))
    if not text:
        raise Unanswered("`codex` gave no answer")
    return ModelReply(text, tokens_in, tokens_out, model=model)


def _printed(command: Sequence[str], given: str, folder: str, timeout: int) -> str:
    program = shutil.which(command[0])
    if program is None:
        raise Unanswered(f"there is no command `{command[0]}` on PATH")
    try:
        done = subprocess.run(  # noqa: S603 - the user's own client
            [program, *command[1:]],
            input=given,
            cwd=folder,
            env={**os.environ, **_QUIET},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unanswered(f"`{command[0]}` gave no answer in {timeout} seconds") from None
    except OSError as error:
        raise Unanswered(f"`{command[0]}` does not start ({error.strerror})") from error
    if done.returncode and not done.stdout.strip():
        said = " ".join(done.stderr.split())[:200]
        raise Unanswered(f"`{command[0]}` failed: {said or f'exit code {done.returncode}'}")
    return done.stdout


def _events(printed: str) -> Iterator[dict[str, Any]]:
    for line in printed.splitlines():
        if line.startswith("{"):
            yield _object(line)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Unanswered("the command printed no JSON", is_over=False) from None
    return fields(found)
