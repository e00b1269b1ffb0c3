"""Do things to a workspace until killed: `victim.py ROOT`.

Reads lines `ACTION NAME`; for each it starts a process that says its id, then does ACTION again and
again, and says one line for each time that the library acknowledged it. NAME makes what it writes
unlike everything before. When that process is dead, it says `dead`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from claude_lines import Transcript

from loki_memory import Workspace
from loki_memory.models import Fact, Pattern, Skill, parse

BULK = 50
COUNTER = "sem-counter"  # the pattern that every edit of the view changes beside adding another


def record(workspace: Workspace, name: str) -> Iterator[str]:
    for n in count():
        yield workspace.record({"goal": f"Goal {n} of {name}", "outcome": "success"}).id


def bulk(workspace: Workspace, name: str) -> Iterator[str]:
    for n in count():
        task = f"{name}-{n}"
        workspace.record([{"goal": f"Step {k}", "task_id": task} for k in range(BULK)])
        yield task


def correct(workspace: Workspace, name: str) -> Iterator[str]:
    memory_id = workspace.remember("We deploy on Fridays").id
    for n in count():
        workspace.correct(memory_id, category=f"{name}-{n}")
        yield f"{name}-{n}"


def take_over(workspace: Workspace, name: str) -> Iterator[str]:
    """Edit the view as an agent does, then sync: one entry more, and one changed."""
    view = workspace.layout.memory / "semantic" / "patterns.json"
    for n in count():
        document = json.loads(view.read_bytes())
        word = f"{name}-{n}"
        for entry in document["patterns"]:
            if entry["id"] == COUNTER:
                entry["category"] = word
        document["patterns"].append({"pattern": f"Pattern {word}", "category": word})
        _replace(view, json.dumps(document))
        workspace.sync()
        yield word


def forget(workspace: Workspace, name: str) -> Iterator[str]:
    """Forget an episode and the pattern that rests on it; a fact that names both stays."""
    for n in count():
        episode = workspace.record({"goal": f"Short-lived {n} of {name}"})
        text = {"pattern": f"Rests on {n} of {name}", "source_episodes": [episode.id]}
        pattern = workspace.store.write(parse(Pattern, text))
        links = [{"to": pattern.id}, {"to": episode.id}]
        fact = {"statement": f"Names {n} of {name}", "links": links}
        names = [episode.id, pattern.id, workspace.store.write(parse(Fact, fact)).id]
        yield f"made {' '.join(names)}"
        workspace.forget(episode.id)
        yield f"forgot {' '.join(names)}"


def rebuild(workspace: Workspace, name: str) -> Iterator[str]:
    for n in count():
        memory_id = workspace.remember(f"Rebuilt {n} of {name}").id
        workspace.rebuild()
        yield memory_id


def consolidate(workspace: Workspace, name: str) -> Iterator[str]:
    """Record the same error twice, with what mended it, and learn from it."""
    for n in count():
        episodes = [_failed(f"{name}{n}", f"{name}-{n}-{day}", day) for day in (1, 2)]
        ids = [episode.id for episode in workspace.record(episodes)]
        yield " ".join(ids)
        workspace.consolidate()
        lessons = workspace.list(kind="anti-pattern", status="all")
        yield " ".join([*ids, *(lesson.id for lesson in lessons)])


def _failed(what: str, session: str, day: int) -> dict[str, object]:
    error = {"type": "make", "message": f"error: {what} is broken", "resolution": f"Mend {what}"}
    work = {"goal": f"Build it, {session}", "session": session, "outcome": "success"}
    return {**work, "timestamp": f"2026-01-0{day}T09:00:00Z", "errors_encountered": [error]}


def ingest(workspace: Workspace, name: str) -> Iterator[str]:
    """Take in a session of a client."""
    for n in count():
        session = f"{name}-{n}"
        said = Transcript(session).say(f"Fix the cart of {session}").call("Bash", command="ls")
        path = said.write(workspace.layout.root / "transcripts" / f"{session}.jsonl")
        workspace.ingest([path])
        yield session


def commit(workspace: Workspace, name: str) -> Iterator[str]:
    for n in count():
        memory_id = workspace.remember(f"Committed {n} of {name}").id
        workspace.history.commit()
        yield memory_id


def publish(workspace: Workspace, name: str) -> Iterator[str]:
    """Write a skill and put its copy where agents look."""
    for n in count():
        steps = ["Run the tests", "Read the log"]
        skill = Skill.from_sections(f"{name}-{n}", f"Do {n} of {name}.", steps=steps)
        memory_id = workspace.skills.add(skill).id
        workspace.skills.publish("claude")
        yield memory_id


def gc(workspace: Workspace, name: str) -> Iterator[str]:
    """Clear up beside a memory that stays and one that was forgotten."""
    for n in count():
        kept = workspace.remember(f"Kept {n} of {name}").id
        workspace.forget(workspace.remember(f"Forgotten {n} of {name}").id)
        workspace.care.gc()
        yield kept


ACTIONS: dict[str, Callable[[Workspace, str], Iterator[str]]] = {
    act.__name__: act
    for act in (
        *(record, bulk, correct, take_over, forget, rebuild),
        *(consolidate, ingest, commit, publish, gc),
    )
}


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(".agent")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def _say(line: object) -> None:
    """One line in one write: an unbuffered `print` makes two, and can be killed in between."""
    os.write(1, f"{line}\n".encode())


def _die_doing(root: str, action: str, name: str) -> None:
    _say(os.getpid())
    try:
        for acknowledged in ACTIONS[action](Workspace.open(root), name):
            _say(acknowledged)
    finally:  # nobody killed it: say why it stopped
        _say(f"stopped by {traceback.format_exc()!r}")
        os._exit(1)


def main(root: str) -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _die_doing(root, *line.split())
        os.waitpid(child, 0)
        _say("dead")


if __name__ == "__main__":
    main(*sys.argv[1:])
