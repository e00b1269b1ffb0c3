"""Repository noise: what a project's git sees of sessions that were captured and consolidated.

    python benchmarks/lessons/repository_noise.py --data DIR [--show]

Ingests the sessions of each project into a fresh repository, consolidates and commits, and prints
how many files under `.loki` git tracks, how many of them hold a home path, an e-mail address or
eight words in a row of a user's prompt, and how many lessons a clone of the repository finds. Then
seven more sessions go in one by one on a branch, each consolidated and committed: the files that
change are counted. `--show` prints the lessons of the clone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from loki_memory import Workspace
from loki_memory.ingest.json_lines import opened

_PROJECTS = ("entireio+cli", "ShamsiievDmytro+entire-bmad")
_LATER = 7  # sessions that come one by one
_QUOTED = 8  # words in a row
_PERSONAL = {
    "home path": re.compile(r"/(?:home|Users)/\w+"),
    "e-mail": re.compile(r"[\w.+-]+@[\w-]+\.[a-z]{2,}\b", re.IGNORECASE),
}
_OWN_WORDS = {"preference", "rule", "decision"}
_LESSONS = ("fact", "pattern", "anti-pattern", "skill")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("LOKI_BENCH_DATA"))
    parser.add_argument("--show", action="store_true", help="print the lessons of the clone")
    options = parser.parse_args()
    if not options.data:
        parser.error("give the data folder with --data or LOKI_BENCH_DATA")
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    folder = Path(options.data) / "claude_transcripts" / "claude"
    for project in _PROJECTS:
        sessions = sorted(one for one in (folder / project).rglob("*") if one.is_file())
        print(f"\n## {project}: {len(sessions)} sessions")
        with tempfile.TemporaryDirectory() as place:
            _measure(Path(place), sessions, show=options.show)


def _measure(place: Path, sessions: list[Path], *, show: bool) -> None:
    root = place / "repository"
    root.mkdir()
    _git(root, "init", "-q", "-b", "main")
    (root / "README.md").write_text("A project.\n")
    _git(root, "add", "-A")
    _git(root, "commit", "-qm", "Begin")
    Workspace.init(root).close()
    first, later = sessions[:-_LATER], sessions[-_LATER:]
    _take_in(root, first)
    tracked = _tracked(root)
    prompts = set(_prompts(first))
    print(f"tracked files under .loki: {len(tracked)}")
    for name, found in _leaks(root, tracked, prompts).items():
        print(f"files with {name}: {len(found)}")
        print("".join(f"  {line}\n" for line in found[:10]), end="")
    _show_clone(root, place / "clone", show=show)
    _git(root, "checkout", "-q", "-b", "feature")
    changed: set[str] = set()
    for session in later:
        before = _git(root, "rev-parse", "HEAD").strip()
        _take_in(root, [session])
        changed.update(_git(root, "diff", "--name-only", before, "HEAD").splitlines())
    print(f"files changed by {len(later)} further sessions, one by one: {len(changed)}")


def _take_in(root: Path, sessions: Iterable[Path]) -> None:
    with Workspace.open(root) as workspace:
        workspace.ingest(sessions)
        workspace.consolidate(commit=True)
    _git(root, "add", "-A")
    _git(root, "commit", "-qm", "Memory", "--allow-empty")


def _tracked(root: Path) -> list[str]:
    return _git(root, "ls-files", ".loki").splitlines()


def _leaks(root: Path, tracked: Iterable[str], prompts: set[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {**{name: [] for name in _PERSONAL}, "words of a prompt": []}
    for path in tracked:
        text = (root / path).read_text()
        for name, pattern in _PERSONAL.items():
            found[name] += [path] if pattern.search(text) else []
        record = json.loads(text) if path.endswith(".json") else {}
        quoted = prompts.intersection(_runs(text))
        if record.get("type") not in _OWN_WORDS and quoted:
            found["words of a prompt"].append(f"{path}: {min(quoted)}")
    return found


def _show_clone(root: Path, clone: Path, *, show: bool) -> None:
    _git(root, "clone", "-q", str(root), str(clone))
    with Workspace.open(clone) as workspace:
        lessons = [one for kind in _LESSONS for one in workspace.list(kind=kind)]
    print(f"lessons in a fresh clone: {len(lessons)}")
    for lesson in lessons if show else ():
        print(f"  {lesson.kind:13} {lesson.title()}")


def _prompts(sessions: Iterable[Path]) -> Iterator[str]:
    """Eight words in a row of what users wrote."""
    for path in sessions:
        with opened(path) as lines:
            for line in lines:
                yield from _said(line)


def _said(line: bytes) -> Iterator[str]:
    try:
        turn = json.loads(line)
    except ValueError:
        return
    if not isinstance(turn, dict) or turn.get("type") != "user":
        return
    if turn.get("isMeta") or turn.get("isCompactSummary"):  # a program wrote it, or the agent
        return
    content = (turn.get("message") or {}).get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    for part in parts:
        if isinstance(part, dict) and part.get("type") == "text":
            yield from _runs(part["text"])


def _runs(text: str) -> Iterator[str]:
    words = re.findall(r"\w+", text.lower())
    return (" ".join(words[at : at + _QUOTED]) for at in range(len(words) - _QUOTED + 1))


def _git(folder: Path, *command: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *identity, *command], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    main()
