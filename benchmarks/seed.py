"""What `loki-mem seed` proposes for projects, and whether each command that it shows exists there.

    python benchmarks/seed.py FOLDER [--lines 10]

FOLDER holds unpacked projects: source distributions, packed npm modules, clones. Whether a command
exists is asked of the project's files without the code of `seed`. A reader judges whether the
lines are right; docs/seed.md has the verdicts.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

from loki_memory.interop import seed_plan
from loki_memory.seed.proposal import COMMANDS

_QUOTED = re.compile(r"`([^`]+)`")
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES = ("justfile", "Justfile", ".justfile")
_MANIFESTS = {
    "cargo": ("Cargo.toml",),
    "go": ("go.mod",),
    "mvn": ("pom.xml",),
    "./mvnw": ("mvnw",),
    "./gradlew": ("gradlew",),
    "gradle": ("build.gradle", "build.gradle.kts"),
    "cmake": ("CMakeLists.txt",),
    "ctest": ("CMakeLists.txt",),
    "bundle": ("Gemfile",),
    "composer": ("composer.json",),
}
_RUNNERS = {"uv", "run", "poetry", "pdm", "hatch", "npx", "python", "python3", "-m", "exec"}
_LARGEST = 400_000  # bytes of a file in which a tool is looked for


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=10)
    options = parser.parse_args()
    shown = missing = 0
    for project in sorted(path for path in options.folder.iterdir() if path.is_dir()):
        begin = time.process_time()
        found = seed_plan(project)
        spent = time.process_time() - begin
        print(f"\n{project.name}: {len(found.lines)} lines, {spent:.1f} s of CPU")
        for line in found.lines[: options.lines]:
            absent = [command for command in commands(line) if not exists(project, command)]
            shown += 1
            missing += bool(absent)
            print(f"  {'MISSING ' if absent else ''}{line.text} ({', '.join(line.sources)})")
    print(f"\n{shown} lines, {missing} with a command that the project does not have")


def commands(line: object) -> Iterator[str]:
    """The commands of a line of the plan: what stands in backticks, if it is about commands."""
    if getattr(line, "group", "") == COMMANDS:
        yield from _QUOTED.findall(getattr(line, "text", "").partition(", which runs ")[0])


def exists(project: Path, command: str) -> bool:
    """Check that a project defines a command, or names the tool that it calls."""
    first, *rest = command.split()
    if first == "make":
        return _defines(project, _MAKEFILES, rest[0])
    if first == "just":
        return _defines(project, _JUSTFILES, rest[0])
    if first in {"npm", "pnpm", "yarn", "bun"}:
        return rest[:1] == ["install"] or rest[-1] in _scripts(project)
    if first in _MANIFESTS:
        return any((project / name).is_file() for name in _MANIFESTS[first])
    tool = next((word for word in (first, *rest) if word not in _RUNNERS), first)
    return (project / tool).exists() or _mentions(project, tool)


def _defines(project: Path, names: tuple[str, ...], target: str) -> bool:
    pattern = re.compile(rf"^@?(?:[\w. -]+ )?{re.escape(target)}\b[^=\n]*:(?!=)", re.MULTILINE)
    files = (project / name for name in names)
    return any(file.is_file() and pattern.search(file.read_text("utf-8")) for file in files)


def _scripts(project: Path) -> dict[str, str]:
    manifest = json.loads((project / "package.json").read_text("utf-8"))
    return dict(manifest.get("scripts", {}))


def _mentions(project: Path, tool: str) -> bool:
    """Check that a manifest, CI file or settings file names a tool."""
    files = [path for path in project.iterdir() if path.is_file()]
    files += (project / ".github").rglob("*.y*ml")
    small = (path for path in files if path.stat().st_size < _LARGEST)
    return any(tool in path.read_text("utf-8", "replace") for path in small)


if __name__ == "__main__":
    main()
