"""Injection: memories that an agent gets unasked, and the wording of a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.models import Handoff


class Injector:
    """The lines that an agent is told unasked, as `ws.injection`; each is empty if there are none.

    `session` is the session that is told, and `surface` the place where: both are journaled.
    """

    def __init__(self, workspace: OpenWorkspace) -> None:
        self._workspace = workspace

    def brief(
        self,
        goal: str,
        handoffs: Iterable[Handoff],
        session: str,
        surface: str,
        files: Sequence[str] = (),
    ) -> str:
        """A few lines at the start of a session, and whose review a branch waits for."""
        from loki_memory.injection.brief import brief
        from loki_memory.injection.session_state import branch_line

        told = brief(self._workspace, goal, handoffs, session, surface, files)
        return f"{told}\n{branch_line(self._workspace)}".strip("\n")

    def last_goal(self, agent: str = "") -> str:
        """The goal for which memory was rendered last; empty if there was none."""
        from loki_memory.injection.session_state import last_goal

        return last_goal(self._workspace, agent)

    def clone_line(self) -> str:
        """The line about memory that came with a clone which its user does not trust yet."""
        from loki_memory.injection.session_state import clone_line

        return clone_line(self._workspace)

    def reminder(self, prompt: str, session: str, surface: str) -> str:
        """Lines that are relevant to a prompt."""
        from loki_memory.injection.before_prompt import reminder

        return reminder(self._workspace, prompt, session, surface)

    def lesson(self, error: str, tool: str, target: str, session: str, surface: str) -> str:
        """The remedy of the same error before, by the tool that met it and its target."""
        from loki_memory.injection.at_error import lesson

        return lesson(self._workspace, error, tool, target, session, surface)

    def remedy_in_session(self, session: str, error: str, call: str = "") -> str:
        """The remedy of the same error earlier in a session, which is no episode yet.

        `call` is the one that met the error now.
        """
        from loki_memory.ingest.hook_turns import staged_turns
        from loki_memory.injection.session_remedy import session_remedy

        turns = staged_turns(self._workspace, session) if session else []
        return session_remedy([turn for turn in turns if not call or turn.call != call], error)

    def command_lesson(self, command: str, session: str, surface: str) -> str:
        """The lesson about a command that is about to run."""
        from loki_memory.injection.before_tool import command_lesson

        return command_lesson(self._workspace, command, session, surface)

    def file_lessons(self, paths: Sequence[str], changed: str, session: str, surface: str) -> str:
        """The beliefs about files that are about to be read, or about code that is `changed`."""
        from loki_memory.injection.before_tool import file_lessons

        return file_lessons(self._workspace, paths, changed, session, surface)

    def is_look_due(self) -> bool:
        """Check if memory changed since it was verified last."""
        from loki_memory.injection.session_state import is_look_due

        return is_look_due(self._workspace)

    def look(self) -> None:
        """Verify memory that is new, and keep the findings for the next session."""
        from loki_memory.injection.session_state import look

        look(self._workspace)

    def take_findings(self) -> str:
        """The findings of the last `look`, once."""
        from loki_memory.injection.session_state import take_findings

        return take_findings(self._workspace)
