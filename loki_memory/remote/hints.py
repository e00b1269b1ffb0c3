"""A line of another repository before a prompt: only with the setting `remote.hooks`.

The server has 150 ms for its answer; after that the session goes on with local memory alone. What
is shown shares several words with the prompt, names its repository, and comes once in a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from loki_memory.errors import LokiMemoryError
from loki_memory.injection.before_prompt import states_goal, without_private
from loki_memory.injection.gate import is_silent, told_before
from loki_memory.injection.told import ToldLine, note_told
from loki_memory.models.text import printable_line, stem
from loki_memory.recall.question import ask

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.remote.client import ElsewhereAnswer
    from loki_memory.remote.servers import RemoteServer

_DEADLINE = 0.15  # seconds; a prompt waits for it
_LINES = 2
_LOOKED_AT = 8
_SHARED = 3  # words, as local lessons must share that are only like a prompt
_ASKED = 500  # characters of a prompt that leave this machine
_WIDTH = 300


def hints(workspace: OpenWorkspace, prompt: str, session: str, surface: str) -> str:
    """Lines of other repositories that are about a prompt; empty if there are none in time."""
    from loki_memory.files.redaction import clip, redact

    asked = clip(redact(without_private(prompt)), _ASKED)
    words = frozenset(map(stem, ask(asked).words))
    if len(words) < _SHARED or is_silent(workspace) or not states_goal(asked):
        return ""
    known = told_before(workspace, session)
    found = [line for line in _found(workspace, asked, words) if line.id not in known][:_LINES]
    note_told(workspace, found, surface, asked, session)
    return "".join(f"{line.text}\n" for line in found)


def _found(workspace: OpenWorkspace, asked: str, words: frozenset[str]) -> Iterator[ToldLine]:
    from loki_memory.remote.servers import servers

    for server in servers()[:1]:
        answer = in_time(server, asked, server.project(workspace.layout), _DEADLINE)
        for hit in answer.hits if answer else ():
            title = printable_line(hit.title, _WIDTH)
            if len(words & frozenset(map(stem, ask(title).words))) >= _SHARED:
                place = printable_line(hit.repository, 60)
                yield ToldLine(hit.id, f"- [{hit.id}] (of {place}, may not hold here) {title}")


def in_time(
    server: RemoteServer, asked: str, project: str, deadline: float
) -> ElsewhereAnswer | None:
    """The answer of a server, if it comes before the deadline."""
    from loki_memory.remote import client

    answers: list[ElsewhereAnswer] = []

    def work() -> None:
        given: dict[str, str | int] = {"q": asked, "k": _LOOKED_AT, "project": project}
        shape = client.ElsewhereAnswer
        with suppress(LokiMemoryError):
            answers.append(
                client.get(server, "/elsewhere", shape, given, patience=0, timeout=deadline)
            )

    thread = Thread(target=work, daemon=True)  # one that still waits ends with the process
    thread.start()
    thread.join(deadline)
    return answers[0] if answers else None
