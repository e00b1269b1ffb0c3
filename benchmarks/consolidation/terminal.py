"""Does an error that many tasks died of become one anti-pattern, and is nothing empty written?

    python benchmarks/consolidation/terminal.py --data FOLDER [--out FILE]

`terminal_bench` holds runs of an agent in fresh machines; a third of them never began, most because
pip refused to install the agent into a managed environment (PEP 668), some for other reasons. What
the log still shows of it is cut off at the beginning, each time elsewhere. The runs are recorded
and consolidated: one anti-pattern should cite all runs that died of PEP 668 and no other run.

Then every record that consolidation wrote is read, here and from the other sets: SQL tasks, coding
sessions with their tool errors, lessons in their authors' words, and memory folders of other
people's projects. None may be empty, a platitude, a mere count, or without evidence. The rules for
that are written here and share no code with the package; that they recognise what says nothing is
shown by what Loki Mode's rules (`baselines.py`) would write of the SQL tasks.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
from baselines import bucket, data_folder, read, scorer
from report import add_options, at_least, at_most, finish, print_lines, say, workplace

if TYPE_CHECKING:
    from loki_memory import Workspace
    from loki_memory.models import Memory

QUICK = 60
_CAUSE = "pep668"
_INSTALLED = "INSTALL_SUCCESS"  # printed by the installer, whatever came of it
_NOT_FOUND = re.compile(r"^bash: .*: command not found$", re.MULTILINE)
_LONG = 2000
_WORD = re.compile(r"[A-Za-z_][\w.-]{2,}")
_COUNTED = re.compile(r"pattern for .* tasks?|.*\(\d+ (?:instances?|episodes?)\)", re.IGNORECASE)
_BARE = re.compile(r"(?:avoid|beware of):? *(?:\w+ ){0,2}\w*(?:error|exception)\W*", re.IGNORECASE)
_ANYBODY = frozenset(
    _WORD.findall(
        "the and for are was with when then that this from into not all any always avoid before "
        "after bug build careful check code commit common correct error errors every file files "
        "fix fixed follow good handle issue issues make more must need new pattern problem project "
        "run same should similar step steps succeeds success sure task tasks taken test tests "
        "these thing try use used verify where work works working write our your"
    )
)

Episode = dict[str, Any]


# The sets, as episodes


def terminal(data: Path) -> Iterator[tuple[Episode, str]]:
    """Runs in a terminal, and why the agent could not be installed, if it could not."""
    with gzip.open(data / "terminal_bench" / "episodes.jsonl.gz", "rt", encoding="utf-8") as lines:
        for run in map(json.loads, lines):
            log = _installing(run) if run["install_failure_cause"] else _steps(run)
            yield (
                {
                    "task_id": run["task_id"],
                    "timestamp": run["started"],
                    "session": run["id"],
                    "context": {"goal": run["instruction"][:_LONG]},
                    "action_log": log,
                    "outcome": "success" if run["is_resolved"] else "failure",
                },
                run["install_failure_cause"] or "",
            )


def _installing(run: dict[str, Any]) -> list[dict[str, str]]:
    """What the log shows of the installation, and what starting the agent came to."""
    shown, installed, rest = run["pre_agent_tail"].partition(_INSTALLED)
    log = [{"action": "install_agent", "result": "fail", "error": shown}] if installed else []
    missing = _NOT_FOUND.search(rest or shown)
    if missing:
        started = {"action": "bash", "target": "mini", "result": "fail", "error": missing[0]}
        return [*log, started]
    return log or [{"action": "install_agent", "result": "fail", "error": shown}]


def _steps(run: dict[str, Any]) -> list[dict[str, str]]:
    return [
        {
            "action": "bash",
            "target": step["command"][:_LONG],
            **(
                {"result": "fail", "error": step["output"][-_LONG:]}
                if step["returncode"] and step["output"]
                else {"result": "ok"}
            ),
        }
        for step in run["steps"]
        if step["command"]
    ]


def sql(data: Path) -> Iterator[Episode]:
    score = scorer(data)
    for path in sorted((data / "intercode_sql").glob("*.jsonl"))[:1]:
        for number, task in enumerate(score.load(path)):
            yield score.episode(task, number)


def coding(data: Path) -> Iterator[Episode]:
    """A session for each that met tool errors, under its first prompt."""
    events: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in read(data / "tool_errors" / "events.jsonl"):
        events[event["session"]].append(event)
    with gzip.open(data / "claude_transcripts" / "sessions.jsonl.gz", "rt", encoding="utf-8") as f:
        prompts = {one["session"]: one.get("prompts") or "" for one in map(json.loads, f)}
    for session, met in sorted(events.items()):
        goal = prompts.get(session, "").split("\n\n---\n\n")[0] or f"Session {session}"
        yield {
            "task_id": session,
            "session": session,
            "timestamp": met[0]["time"],
            "context": {"goal": goal[:_LONG]},
            "action_log": [action for event in met for action in _tried(event)],
            "outcome": "unknown",
        }


def _tried(event: dict[str, Any]) -> Iterator[dict[str, str]]:
    yield {
        "action": event["tool"],
        "target": str(event["input"])[:_LONG],
        "result": "fail",
        "error": event["error"],
    }
    if event["fixed_by"]:
        target = str(event["fixed_by"])[:_LONG]
        yield {"action": event["tool"], "target": target, "result": "ok"}


# What consolidation makes of them


def produced(workspace: Workspace, given: Iterable[str]) -> list[Memory]:
    """All records that nobody told."""
    known = set(given)
    return [one for one in workspace.list() if one.kind != "episode" and one.id not in known]


def learned(place: Path, episodes: Iterable[Episode]) -> Workspace:
    from loki_memory import Workspace

    workspace = Workspace.init(place)
    for episode in episodes:
        workspace.record(episode)
    workspace.consolidate()
    return workspace


def lessons(data: Path, place: Path) -> list[Memory]:
    from loki_memory import Workspace

    workspace = Workspace.init(place)
    items = read(data / "lesson_clusters" / "items.jsonl")
    told = [workspace.remember(one["text"], kind="fact", category=one["kind"]) for one in items]
    workspace.consolidate()
    return produced(workspace, (one.id for one in told))


def folders(data: Path, place: Path) -> list[Memory]:
    """What is made of memory that other tools wrote; opening takes it over as it is."""
    from loki_memory import Workspace

    found: list[Memory] = []
    for source in sorted((data / "loki_real").glob("*/final")):
        target = place / source.parent.name
        shutil.copytree(source, target)
        workspace = Workspace.open(target)
        workspace.sync()
        given = [one.id for one in workspace.list()]
        workspace.consolidate()
        found += produced(workspace, given)
    return found


# What is wrong with a record


def faults(record: Memory) -> list[str]:
    """Why nobody could use a record; none if it says something."""
    return [*filter(None, [says_nothing(record.title())]), *_missing(record)]


def says_nothing(text: str) -> str:
    """Why a text tells nobody anything; empty if it does."""
    words = set(_WORD.findall(text.replace("<*>", " ")))
    if not words:
        return "empty"
    if _COUNTED.fullmatch(text.strip()) or _BARE.fullmatch(text.strip()):
        return "a bucket"
    return "" if {word for word in words if word.lower() not in _ANYBODY} else "a platitude"


def control(episodes: Iterable[Episode]) -> list[str]:
    """What Loki Mode's rules would write: a count for each bucket, and each type of error."""
    told = list(episodes)
    buckets = Counter(bucket(one["context"]["goal"]) for one in told)
    types = sorted({error["type"] for one in told for error in one["errors_encountered"]})
    counted = [f"Pattern for {name} tasks ({n} instances)" for name, n in sorted(buckets.items())]
    return [*counted, *(f"Avoid: {name}" for name in types)]


def _missing(record: Memory) -> list[str]:
    """What a record of its kind must have and does not."""
    told = record.document()
    must = {
        "pattern": ("correct_approach", "incorrect_approach"),
        "learning": ("resolution", "lesson"),
        "skill": ("body",),
        "anti-pattern": ("what_fails",),
    }.get(record.kind, ())
    found = [] if not must or any(told.get(name) for name in must) else ["without substance"]
    if any(not (one.get("do") or "").strip() for one in told.get("resolutions") or ()):
        found.append("an empty resolution")
    evidence = [*_names(told), *((told.get("metadata") or {}).get("loki-evidence") or "").split()]
    return found if evidence else [*found, "without evidence"]


def _names(told: dict[str, Any]) -> Iterator[str]:
    """The episodes and records that a document rests on."""
    evidence = told.get("evidence") or {}
    if isinstance(evidence, dict):
        yield from (*evidence.get("for", ()), *evidence.get("against", ()))
    else:
        yield from evidence
    yield from told.get("source_episodes") or ()
    yield from filter(None, (told.get("source"), told.get("from")))


# The tables


class Cited(NamedTuple):
    """An anti-pattern, and how many runs of each cause it cites."""

    title: str
    same: int
    others: int


def cited(workspace: Workspace, causes: dict[str, str]) -> list[Cited]:
    """The anti-patterns that rest on runs that died of PEP 668, the one with most first."""
    found = []
    for record in workspace.list(kind="anti-pattern"):
        met = [causes.get(one, "") for one in record.episodes_for()]
        same = met.count(_CAUSE)
        if same:
            found.append(Cited(record.title(), same, len(met) - same))
    return sorted(found, key=lambda one: (one.others > 0, -one.same, one.title))


def _table(found: dict[str, list[Memory]]) -> None:
    kinds = sorted({one.kind for records in found.values() for one in records})
    lines = []
    for name, records in found.items():
        counts = Counter(one.kind for one in records)
        wrong = sum(bool(faults(one)) for one in records)
        lines.append((name, *(str(counts[kind]) for kind in kinds), str(wrong)))
    print()
    print_lines(("written from", *kinds, "of no use"), lines)
    for records in found.values():
        for one in records:
            if faults(one):
                print(f"{', '.join(faults(one))}: {one.id} {one.title()[:120]!r}")


def gathered(
    options: argparse.Namespace, place: Path
) -> tuple[list[Cited], dict[str, list[Memory]], int]:
    """What the runs in a terminal came to, and all records of all sets."""
    limit = QUICK if options.quick else None
    runs = list(terminal(options.data))[:limit]
    workspace = learned(place / "terminal", (episode for episode, _ in runs))
    names = {one.session: one.id for one in workspace.list(kind="episode")}
    causes = {names[episode["session"]]: cause for episode, cause in runs}
    found = {"terminal_bench": produced(workspace, ())}
    for name, episodes in (("intercode_sql", sql), ("tool_errors", coding)):
        say(f"{name} …")
        told: Sequence[Episode] = list(episodes(options.data))[:limit]
        found[name] = produced(learned(place / name, told), ())
    found["lesson_clusters"] = lessons(options.data, place / "lessons")
    found["loki_real"] = folders(options.data, place / "folders")
    return cited(workspace, causes), found, list(causes.values()).count(_CAUSE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what is made of one common failure.")
    add_options(parser)
    data_folder(parser)
    options = parser.parse_args()
    start = time.perf_counter()
    with workplace() as place:
        errors, found, died = gathered(options, place)
        print(f"{died} runs died of PEP 668")
        heads = ("anti-pattern", "of these", "other runs")
        print_lines(heads, [(one.title[:70], str(one.same), str(one.others)) for one in errors])
        _table(found)
        wrong = sum(bool(faults(one)) for records in found.values() for one in records)
    known = control(sql(options.data))
    recognised = sum(bool(says_nothing(text)) for text in known) / len(known)
    own = [one for one in errors if not one.others]
    share = own[0].same / max(1, died) if own else 0.0
    bars = [
        at_least("runs that died of it under one anti-pattern", share, 1.0),
        at_most("anti-patterns of these runs alone", len(own), 1),
        at_most("records of no use", wrong, 0),
        at_least("control: what says nothing is recognised", recognised, 1.0),
    ]
    told = {name: Counter(one.kind for one in records) for name, records in found.items()}
    finish(bars, {"pep668": [one._asdict() for one in errors], "written": told}, options, start)


if __name__ == "__main__":
    main()
