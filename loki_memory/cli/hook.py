"""The command that a harness calls at events of a session: hook."""

from __future__ import annotations

import json
import sys
from typing import TypedDict

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import print_json
from loki_memory.hooks.response import answer, show


class HookText(TypedDict):
    """Text for the session, in the format of harnesses."""

    hookEventName: str
    additionalContext: str


class HookOutput(TypedDict, total=False):
    """Printed by `hook`; an empty object if there is nothing to say."""

    hookSpecificOutput: HookText


@command("hook")
@click.argument("event")
@click.option("--wait", is_flag=True, help="Do the work of SessionEnd here, not in a new process.")
def hook_command(session: Session, event: str, wait: bool) -> None:
    """Answer an event of an agent's session (JSON on stdin).

    Prints memory for the session as JSON that Claude Code and Codex understand, or nothing.
    Exits with 0 whatever happens; errors go to the log in this machine's own zone. Events are
    SessionStart, UserPromptSubmit, PreToolUse, PostToolUse, PostToolUseFailure, Stop, PreCompact,
    SubagentStart, SubagentStop, TaskCompleted and SessionEnd.

    \b
    Example:
      echo '{"prompt": "Add an endpoint"}' | loki-mem hook UserPromptSubmit
    """
    response = answer(event, folder=session.directory, wait=wait)
    if session.json:
        result: HookOutput = json.loads(response.out or "{}")
        print_json(result)
    else:
        show(response)
    if response.code:
        sys.exit(response.code)
