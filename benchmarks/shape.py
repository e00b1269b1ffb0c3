"""Print the shape of the package beside its bars: sizes, function lengths, cycles, modules touched.

    python benchmarks/shape.py

The bars for modules and lines were set for the core, before the package had pages, a team server
and its client, proposals from a project's files, a language model, readers of other systems' memory
and of more clients' sessions. Both are printed: the whole, and without these (`ADDED`).

The modules that a command touches are those with a function that runs, found by a profiler hook in
a process of its own over a copy of the example workspace. In the copy nothing is indexed yet, so
the command reads every record too; what it touches with an up-to-date index is printed beside.
"""

from __future__ import annotations

import ast
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent
PACKAGE = TOP / "loki_memory"
LONG_BODY, LONG_MODULE = 40, 450
# Folders and modules that came after the bars for the core were set.
ADDED = (
    "ui",
    "server",
    "remote",
    "seed",
    "language",
    "interop/sources",
    "interop/export_memory.py",
    "interop/shared_memory.py",
    "interop/transfer.py",
    "ingest/copilot.py",
    "ingest/gemini.py",
    "ingest/opencode.py",
    "ingest/qwen.py",
    "install/json_clients.py",
    "install/json_text.py",
)
COMMANDS = {
    "record": (["record", "--goal", "Add search", "--outcome", "success"], 40),
    "recall": (["recall", "return type"], 32),
    "consolidate": (["consolidate"], 60),
}
_TRACED = """
import json, sys
touched = set()
def hook(frame, event, argument):
    name = frame.f_globals.get("__name__", "")
    is_function = frame.f_code.co_flags & 1  # CO_OPTIMIZED: bodies of modules and classes are not
    if event == "call" and name.startswith("loki_memory") and is_function:
        touched.add(name)
from loki_memory.cli.main import main
sys.argv = ["loki-mem", *sys.argv[2:]]
sys.setprofile(hook)
try:
    main()
finally:
    sys.setprofile(None)
    open(OUT, "w").write(json.dumps(sorted(touched)))
"""


class Row(NamedTuple):
    """One measure, its value and its bar."""

    what: str
    value: float
    most: float


def bodies(tree: ast.AST) -> Iterator[int]:
    """The length of each function's body in lines, its docstring left out."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            yield (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def imports(path: Path, modules: set[str], *, deferred: bool, annotations: bool) -> set[str]:
    """The modules of the package that one of them imports."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update(name if name in modules else node.module for name in names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.body if annotations else []
        elif deferred or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += ast.iter_child_nodes(node)
    return found & modules


def in_cycles(below: dict[str, set[str]]) -> int:
    """How many modules can reach themselves."""
    return sum(module in _reached(below, below[module] - {module}) for module in below)


def _reached(below: dict[str, set[str]], start: set[str]) -> set[str]:
    found, waiting = set[str](), list(start)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += below[module]
    return found


def touched(arguments: list[str], *, is_indexed: bool = False) -> int:
    """How many modules a command touches."""
    with tempfile.TemporaryDirectory() as folder:
        project, out = Path(folder, "project"), Path(folder, "touched.json")
        shutil.copytree(TOP / "example_workspace", project)
        code = f"OUT = {str(out)!r}\n{_TRACED}"
        environment = {"PATH": "/usr/bin:/bin", "LOKI_HOME": f"{folder}/home/.loki"}
        environment["PYTHONPATH"] = str(TOP)
        if is_indexed:
            run = [sys.executable, "-m", "loki_memory", "sync"]
            subprocess.run(run, cwd=project, env=environment, check=True, capture_output=True)
        command = [sys.executable, "-c", code, "--", *arguments]
        subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)
        return len(json.loads(out.read_text(encoding="utf-8")))


def rows() -> Iterator[Row]:
    paths = sorted(PACKAGE.rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    lengths = sorted(length for text in texts for length in bodies(ast.parse(text)))
    sizes = [text.count("\n") for text in texts]
    core = [size for path, size in zip(paths, sizes, strict=True) if not _is_added(path)]
    yield Row("modules of the core", len(core), 240)
    yield Row("lines of the core", sum(core), 43_500)
    yield Row("modules of the whole package", len(paths), 240)
    yield Row("lines of the whole package", sum(sizes), 43_500)
    yield Row("body, median", statistics.median(lengths), 5)
    yield Row("body, 95th percentile", lengths[int(0.95 * (len(lengths) - 1))], 18)
    yield Row(f"bodies over {LONG_BODY} lines", sum(n > LONG_BODY for n in lengths), 0)
    yield Row(f"modules over {LONG_MODULE} lines", sum(n > LONG_MODULE for n in sizes), 0)
    names = [
        ".".join(path.relative_to(TOP).with_suffix("").parts).removesuffix(".__init__")
        for path in paths
    ]
    for what, deferred, typed in (
        ("modules in cycles, at load", False, False),
        ("… deferred imports too", True, False),
        ("… annotations too", True, True),
    ):
        below = {
            name: imports(path, set(names), deferred=deferred, annotations=typed)
            for name, path in zip(names, paths, strict=True)
        }
        yield Row(what, in_cycles(below), 0)
    for name, (arguments, most) in COMMANDS.items():
        yield Row(f"modules touched by {name}", touched(arguments), most)
        yield Row("… with an up-to-date index", touched(arguments, is_indexed=True), most)


def _is_added(path: Path) -> bool:
    name = path.relative_to(PACKAGE).as_posix()
    return any(name == part or name.startswith(f"{part}/") for part in ADDED)


def main() -> None:
    for row in rows():
        verdict = "" if row.value <= row.most else "  MISSED"
        print(f"{row.what:34} {row.value:>8,g}   bar {row.most:>6,g}{verdict}")


if __name__ == "__main__":
    main()
