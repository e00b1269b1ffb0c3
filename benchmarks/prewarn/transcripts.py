"""Are real transcripts read without loss, and do they become the right episodes?

    python benchmarks/prewarn/transcripts.py --data FOLDER [--out FILE] [--large MB]

On the sessions in `claude_transcripts/`: every line is read, refused or waits; a second run adds
nothing; successive snapshots of growing sessions give the same bytes as one pass; the files that a
session changed are those of its metadata, as far as tool inputs name them; its errors are those in
`tool_errors/`, and what resolved them is the command that worked. `--large` also makes up a
transcript of so many megabytes out of real lines and says how much memory reading it takes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "recall"))  # the scripts are no package
sys.path.append(str(Path(__file__).resolve().parents[1] / "consolidation"))
from baselines import data_folder, read
from report import add_options, at_least, at_most, finish, print_lines, say, workplace

from loki_memory import Workspace

RECALL, PRECISION, MEMORY = 0.95, 0.90, 200
_COMPARED = 120  # characters of an error: both sides keep them whole
_ENVELOPE = re.compile(r"</?tool_use_error>")


class Session(NamedTuple):
    """Sessions that share a transcript, with what the metadata says of them."""

    names: set[str]
    inputs: list[str]
    touched: set[str]


class Share(NamedTuple):
    """How much of what is true was found, and how much of what was found is true."""

    found: int
    true: int
    said: int
    right: int

    @property
    def recall(self) -> float:
        return self.found / max(1, self.true)

    @property
    def precision(self) -> float:
        return self.right / max(1, self.said)


def lines_of(path: Path) -> Iterator[bytes]:
    with gzip.open(path, "rb") as lines:
        yield from (line for line in lines if line.strip())


def values_of(path: Path) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    for line in lines_of(path):
        text = line.decode().strip()
        while text:
            value, end = decoder.raw_decode(text)
            yield value
            text = text[end:].lstrip()


def stored(ws: Workspace) -> dict[str, bytes]:
    folder = ws.layout.memory / "episodic"
    files = sorted(path for path in folder.rglob("*.json") if path.name != "index.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def by_session(ws: Workspace) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for data in stored(ws).values():
        episode = json.loads(data)
        found[episode["session"]].append(episode)
    return found


# -- nothing is lost -------------------------------------------------------------------------------


def counted(ws: Workspace, folder: Path) -> dict[str, float]:
    """What the first and the second run say, against a plain count of lines."""
    files = sorted(folder.rglob("*.jsonl.gz"))
    lines = sum(1 for path in files for _ in lines_of(path))
    first = ws.ingest([folder])
    before = stored(ws)
    again = ws.ingest([folder])
    return {
        "files": first.files,
        "lines": lines,
        "missing": abs(lines - first.read - first.refused - first.waiting),
        "refused": first.refused,
        "unknown": sum(first.unknown.values()),
        "episodes": first.episodes,
        "added by a second run": again.episodes + again.changed + again.lines,
        "bytes changed by a second run": int(stored(ws) != before),
    }


def grown(place: Path, folder: Path) -> dict[str, float]:
    """Sessions of which snapshot by snapshot, and one pass, differ by a byte."""
    differ = sessions = 0
    for snapshots in sorted(path for path in folder.iterdir() if path.is_dir()):
        parts = sorted(snapshots.glob("*.jsonl.gz"))
        growing = place / "growing" / f"{snapshots.name}.jsonl"
        growing.parent.mkdir(exist_ok=True)
        with Workspace.init(place / f"{snapshots.name}-grown") as ws:
            for part in parts:
                growing.write_bytes(gzip.decompress(part.read_bytes()))
                ws.ingest([growing])
            in_pieces = stored(ws)
        with Workspace.init(place / f"{snapshots.name}-whole") as ws:
            ws.ingest(parts[::-1])
            differ += stored(ws) != in_pieces
        sessions += 1
    return {"growing sessions": sessions, "that differ from one pass": differ}


# -- what is told is true --------------------------------------------------------------------------


def sessions_of(data: Path) -> list[Session]:
    """Metadata, joined where one session lies in two transcripts or one transcript holds two."""
    folder = data / "claude_transcripts"
    joined: list[Session] = []
    with gzip.open(folder / "sessions.jsonl.gz", "rt", encoding="utf-8") as lines:
        for about in map(json.loads, lines):
            if (about.get("file") or "").startswith("claude/") and about.get("files_touched"):
                one = _session(folder / about["file"], set(about["files_touched"]))
                known = next((other for other in joined if other.names & one.names), None)
                if known is None:
                    joined.append(one)
                else:
                    for ours, more in zip(known, one, strict=True):
                        (ours.update if isinstance(ours, set) else ours.extend)(more)
    return joined


def _session(path: Path, touched: set[str]) -> Session:
    names, inputs = set(), []
    for value in values_of(path):
        names.add(value.get("sessionId"))
        content = (value.get("message") or {}).get("content")
        if value.get("type") == "assistant" and isinstance(content, list):
            inputs += [json.dumps(b["input"]) for b in content if b.get("type") == "tool_use"]
    return Session(names - {None}, inputs, touched)


def files(sessions: Iterable[Session], episodes: dict[str, list[dict[str, Any]]]) -> Share:
    found = true = said = right = 0
    for one in sessions:
        named = "\n".join(one.inputs)
        truth = {path for path in one.touched if path in named}
        told = [e for name in sorted(one.names) for e in episodes.get(name, [])]
        ours = {path for episode in told for path in episode.get("files_modified", [])}
        found, true = found + len(truth & ours), true + len(truth)
        said, right = said + len(ours), right + len(ours & one.touched)
    return Share(found, true, said, right)


def errors(data: Path, episodes: dict[str, list[dict[str, Any]]]) -> Share:
    """Errors per session, each matched once, by how its message begins."""
    theirs: dict[str, Counter[str]] = defaultdict(Counter)
    for event in read(data / "tool_errors" / "events.jsonl"):
        theirs[_name(event["session"])][_begins(event["error"])] += 1
    ours: dict[str, Counter[str]] = defaultdict(Counter)
    for name, told in episodes.items():
        for error in (e for one in told for e in one.get("errors_encountered", [])):
            ours[name][_begins(error["message"])] += 1
    both = sum((theirs[name] & ours[name]).total() for name in theirs)
    return Share(
        both, sum(map(Counter.total, theirs.values())), sum(map(Counter.total, ours.values())), both
    )


def remedies(data: Path, episodes: dict[str, list[dict[str, Any]]]) -> tuple[int, int]:
    """Errors that were overcome by another command, and those whose remedy is that command."""
    pairs = read(data / "tool_errors" / "error_fix_pairs.jsonl")
    named = 0
    for pair in pairs:
        good = " ".join(pair["good"].split())[:_COMPARED]
        named += any(
            " ".join(error.get("resolution", "").split())[:_COMPARED] == good
            for episode in episodes.get(_name(pair["session"]), [])
            for error in episode.get("errors_encountered", [])
            if _begins(error["message"]) == _begins(pair["error"])
        )
    return named, len(pairs)


def _name(session: str) -> str:
    """Some names begin with a day."""
    return session[-36:]


def _begins(message: str) -> str:
    return " ".join(_ENVELOPE.sub("", message).split())[:_COMPARED]


# -- a large one -----------------------------------------------------------------------------------


def memory_for(place: Path, folder: Path, megabytes: int) -> dict[str, float]:
    """The most memory that a process takes which reads one large transcript."""
    path = place / "large.jsonl"
    lines = [v for one in sorted(folder.rglob("*.jsonl.gz"))[:20] for v in values_of(one)]
    _write_large(path, [value for value in lines if value.get("uuid")], megabytes << 20)
    Workspace.init(place / "large").close()
    program = (
        "import resource, sys; from loki_memory import Workspace; "
        "done = Workspace.open(sys.argv[1]).ingest([sys.argv[2]]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, done.episodes)"
    )
    start = time.perf_counter()
    told = subprocess.run(
        [sys.executable, "-c", program, str(place / "large"), str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    peak, episodes = map(int, told.stdout.split())
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    seconds = time.perf_counter() - start
    return {"megabytes": megabytes, "peak": peak / unit, "episodes": episodes, "seconds": seconds}


def _write_large(path: Path, values: list[dict[str, Any]], size: int) -> None:
    turn = written = 0
    with path.open("wb") as file:
        while written < size:
            for value in values:
                told = {**value, "uuid": f"{turn}-{value['uuid']}", "sessionId": "large"}
                text = json.dumps(told).replace("toolu_", f"toolu_{turn}_")
                written += file.write(f"{text}\n".encode())
            turn += 1


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the reading of transcripts.")
    add_options(parser)
    data_folder(parser)
    parser.add_argument("--large", type=int, default=0, metavar="MB", help="one made up so large")
    options = parser.parse_args()
    start = time.perf_counter()
    folder = options.data / "claude_transcripts"
    with workplace() as place, Workspace.init(place / "all") as ws:
        say("reading all transcripts")
        counts = counted(ws, folder / "claude")
        say("reading growing ones, piece by piece")
        counts |= grown(place, folder / "incremental")
        told = by_session(ws)
        shares = {
            "files": files(sessions_of(options.data), told),
            "errors": errors(options.data, told),
        }
        named, pairs = remedies(options.data, told)
        large = memory_for(place, folder / "claude", options.large) if options.large else {}
    print_lines(("", ""), [(name, f"{value:,.0f}") for name, value in counts.items()])
    print()
    rows = [
        (name, f"{one.recall:.3f}", f"{one.precision:.3f}", str(one.true))
        for name, one in shares.items()
    ]
    print_lines(("", "recall", "precision", "n"), rows)
    print(f"\nof {pairs} errors that another command overcame, {named} name it")
    bars = [
        at_most("lines lost", counts["missing"], 0),
        at_most("added by a second run", counts["added by a second run"], 0),
        at_most("bytes changed by a second run", counts["bytes changed by a second run"], 0),
        at_most("that differ from one pass", counts["that differ from one pass"], 0),
        at_least("files: recall", shares["files"].recall, RECALL),
        at_least("files: precision", shares["files"].precision, PRECISION),
    ]
    if large:
        print("{megabytes} MB in {seconds:.0f} s and {peak:.0f} MB of memory".format(**large))
        bars.append(at_most("MB of memory", large["peak"], MEMORY))
    results = {"counts": counts, "large": large, "remedies": [named, pairs]}
    results["shares"] = {
        name: [one.recall, one.precision, one.true] for name, one in shares.items()
    }
    finish(bars, results, options, start)


if __name__ == "__main__":
    main()
