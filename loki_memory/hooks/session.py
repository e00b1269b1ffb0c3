"""A session begins, rests, loses its context, or ends."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from loki_memory.daemon.process import start_for_session
from loki_memory.hooks.response import GUARD, Done, Event
from loki_memory.workspace import Workspace

# A session that goes on gets the memories for its last prompt.
_GOES_ON = ("resume", "compact")
_FILES = 3  # that a brief is about: the newest say best what a session works on
_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def sessionstart(workspace: Workspace, event: Event) -> Done:
    """Take in files that others wrote, then give the brief, and what `verify` found last.

    In a clone that its user does not trust nothing is taken in, which could change its files.
    """
    if not workspace.home.trust().is_trusted:
        return Done(workspace.injection.clone_line())
    returned = _returned(workspace)
    workspace.sync()
    brief = _brief(workspace, event)
    is_due = _is_review_due(workspace) or workspace.injection.is_look_due()
    if is_due or _is_one_left_behind(workspace, event):
        _continue_later(workspace, event)
    start_for_session(workspace, os.environ)
    said = ", ".join(filter(None, (returned, workspace.injection.take_findings())))
    return Done(brief, said, aloud=bool(said))


def precompact(workspace: Workspace, event: Event) -> Done:
    """Keep the state of a session that is about to lose its context."""
    note = _staged(workspace, event)
    agent = _agent(event)
    goal = _last_prompt(workspace, event)
    if agent and goal:
        context = {"current_goal": " ".join(goal.split())[:400]}
        workspace.team.note_checkpoint(agent, context=context, session=event.session)
        note = f"{note}, a checkpoint of {agent} waits".lstrip(", ")
    return Done(note=note)


def stop(workspace: Workspace, event: Event) -> Done:
    """Read what the agent did so far, and ask it for lessons if that was eventful.

    What was read becomes an episode once the session has ended.
    """
    note = _staged(workspace, event)
    if not note:
        return Done()
    from loki_memory.hooks.ask import request

    asked = request(workspace, event, os.environ)
    return Done(asked, "asked for lessons", goes_on=True) if asked else Done(note=note)


def sessionend(workspace: Workspace, event: Event) -> Done:
    """Hand the rest to a process of its own at once: a harness that ends does not wait."""
    copied = kept_copies(workspace, event)
    if not event.session:
        return Done(note=copied)
    _continue_later(workspace, event)
    return Done(note=", ".join(filter(None, ("handed over", copied))))


def _is_one_left_behind(workspace: Workspace, event: Event) -> bool:
    if not event.transcript:
        return False
    return bool(workspace.sessions.left_behind(event.transcript))


def _is_review_due(workspace: Workspace) -> bool:
    """Check if git has to be asked who answers for memory, which a hook does not do."""
    return workspace.history.is_review_due()


def _continue_later(workspace: Workspace, event: Event) -> None:
    """Leave the second part of an event to a process of its own."""
    import orjson

    given = {"session_id": event.session, "transcript_path": event.transcript}
    data = orjson.dumps({**given, "cwd": str(workspace.layout.root)})
    _hand_over([sys.executable, "-m", "loki_memory", "hook", event.name, "--wait"], data)


def sessionstart_afterwards(workspace: Workspace, event: Event) -> Done:
    """Record earlier sessions that ended without a word: killed, or run by a script; look who
    answers for memory that is new, and verify it.
    """
    workspace.history.renew_review()
    episodes = 0
    for path in workspace.sessions.left_behind(event.transcript) if event.transcript else ():
        if workspace.sessions.began_here(str(path)):
            done = workspace.sessions.ingest_new(_transcripts(str(path)))
            episodes += done.episodes
            found = _SESSION.search(path.stem)
            session = found[0] if found else path.stem
            workspace.sessions.note_gates(session)
            workspace.sessions.learn(session)
    workspace.sessions.note_look()
    workspace.injection.look()
    return Done(note=f"{_new_episodes(episodes)} of earlier sessions" if episodes else "")


def sessionend_afterwards(workspace: Workspace, event: Event) -> Done:
    """Record the session as episodes, as new files only; runs in the process of its own."""
    if not event.transcript:
        workspace.sessions.note_end(event.session, event.folder)
        return Done(note="ended; the next `loki-mem ingest` records what was noted of it")
    if not workspace.sessions.began_here(event.transcript):
        return Done(note="not taken: it did not begin in this repository")
    done = workspace.sessions.ingest_new(_transcripts(event.transcript))
    workspace.sessions.note_gates(event.session)
    workspace.sessions.learn(event.session)
    workspace.interop.keep_in_step()
    if not workspace.config.get("continuity.track"):
        workspace.browse.refresh_continuity()
    errors = "1 error" if done.errors == 1 else f"{done.errors} errors"
    return Done(note=f"recorded as {_new_episodes(done.episodes)} with {errors}")


def _new_episodes(number: int) -> str:
    return "1 new episode" if number == 1 else f"{number} new episodes"


def _transcripts(path: str) -> list[str | Path]:
    """The transcript of a session, and those of its subagents beside it."""
    subagents = Path(path).with_suffix("") / "subagents"
    return [path, *sorted(subagents.glob("agent-*.jsonl"))]


def _brief(workspace: Workspace, event: Event) -> str:
    """A few lines about what matters; CONTINUITY.md itself stays as it is."""
    agent = _agent(event)
    handoffs = workspace.team.open_handoffs_to(agent)
    goes_on = event.text("source") in _GOES_ON
    goal = _last_prompt(workspace, event) if goes_on else ""
    goal = goal or workspace.injection.last_goal(agent)
    files = _last_files(workspace, event) if goes_on else []
    surface = "hook:SessionResume" if event.text("source") == "resume" else "hook:SessionStart"
    return workspace.injection.brief(goal, handoffs, event.session, surface, files)


def _agent(event: Event) -> str:
    """The name of the agent, if it has one; empty for the agent that CONTINUITY.md is for."""
    return event.agent or os.environ.get("LOKI_AGENT", "")


def _last_prompt(workspace: Workspace, event: Event) -> str:
    return workspace.sessions.last_prompt(event.session) if event.session else ""


def _last_files(workspace: Workspace, event: Event) -> list[str]:
    """The files that a session read or changed last, as paths within the project."""
    return workspace.sessions.last_files(event.session)[:_FILES] if event.session else []


def _staged(workspace: Workspace, event: Event) -> str:
    if not event.transcript:
        return ""
    if not workspace.sessions.stage_transcript(event.transcript):
        return ""
    workspace.sessions.note_client(os.environ, event.transcript)
    workspace.sessions.note_gates(event.session)
    return "read"


def _hand_over(command: list[str], data: bytes) -> None:
    """Start a process that outlives this one and the harness, with none of their files open."""
    import subprocess

    process = subprocess.Popen(  # noqa: S603 - this program
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, GUARD: "1"},
        start_new_session=True,
    )
    if process.stdin:
        with process.stdin as stdin:
            stdin.write(data)  # far less than a pipe's buffer: this never blocks


# -- worktrees that may be about to be removed -----------------------------------------------------


def leaving_worktree(workspace: Workspace, event: Event) -> Done:
    """Copy what would be lost when the agent leaves its worktree, unless the worktree stays."""
    given = event.fields.get("tool_input")
    if isinstance(given, dict) and given.get("action") == "keep":
        return Done()
    note = workspace.history.salvage(event.folder).sentence()
    return Done(note=note, aloud=bool(note))


def is_linked(folder: str) -> bool:
    """Check if a folder is in a linked worktree, by the file that git has there for its folder."""
    place = os.path.abspath(folder)
    while not os.path.exists(f"{place}/.git"):
        above = os.path.dirname(place)
        if above == place:
            return False
        place = above
    return os.path.isfile(f"{place}/.git")


def kept_copies(workspace: Workspace, event: Event) -> str:
    """Copy the uncommitted memory of a linked worktree, which may be removed after this; returns a
    note for the log.
    """
    if not event.folder or not is_linked(event.folder):
        return ""
    number = workspace.history.keep_copies(event.folder)
    return f"{number} uncommitted records of the worktree copied" if number else ""


def _returned(workspace: Workspace) -> str:
    """Bring back the memory of worktrees that are gone, if there may be some; returns a note."""
    if not (workspace.layout.local / "worktrees").is_dir():
        return ""
    return workspace.history.bring_back().sentence()
