"""Output schemas (`--json`) of the commands around the sessions of agents."""

from __future__ import annotations

from typing import Any, NotRequired  # pydantic wants these before Python 3.12

from typing_extensions import TypedDict


class HookSpecificOutput(TypedDict):
    """Text for the session, in the format of harnesses."""

    hookEventName: str
    additionalContext: str


class HookOutput(TypedDict):
    """Printed by `hook`; an empty object where there is nothing to say."""

    hookSpecificOutput: NotRequired[HookSpecificOutput]


class PauseOutput(TypedDict):
    """Printed by `pause`; `until` is empty for a pause without an end."""

    since: str
    until: str


class ResumeOutput(TypedDict):
    """Printed by `resume`."""

    was_paused: bool


class InjectedOutput(TypedDict):
    """A memory that was injected; without a title where it is gone."""

    id: str
    title: str


class InjectionOutput(TypedDict):
    """An injection: the memories that a session got at one time."""

    at: str
    session: str
    occasion: str
    why: str
    memories: list[InjectedOutput]
    tokens: int


class InjectionsOutput(TypedDict):
    """Printed by `injections`."""

    injections: list[InjectionOutput]


OUTPUTS: dict[str, Any] = {
    "hook": HookOutput,
    "pause": PauseOutput,
    "resume": ResumeOutput,
    "injections": InjectionsOutput,
}
