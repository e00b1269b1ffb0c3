"""The manifests of a Python project, read without running anything.

`python_tasks` and `python_facts` say what follows from them.
"""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from loki_memory.seed.project_files import ProjectFiles, Table, table, texts
from loki_memory.seed.proposal import plain

PYTHON = "Python"
PROJECT, SETUP, OLD = "pyproject.toml", "setup.cfg", "setup.py"

# Folders at the top that may look like a package and are not the one that is installed.
_BESIDE = frozenset(
    [
        "tests",
        "test",
        "testing",
        "docs",
        "doc",
        "examples",
        "example",
        "scripts",
        "tools",
        "benchmarks",
    ]
)


class PythonProject(NamedTuple):
    """The manifests of a Python project, as far as there are any."""

    files: ProjectFiles
    project: Table  # pyproject.toml
    setup: Table  # setup.cfg
    call: Table  # the literal arguments of setup() in setup.py

    def tool(self, *names: str) -> Table:
        return table(self.project, "tool", *names)

    def runner(self, tool: str) -> str:
        """The prefix of a tool's call in the project's environment, if that has the tool."""
        if self.files.has("uv.lock"):
            return self._uv(tool)
        locks = {"poetry.lock": "poetry run ", "pdm.lock": "pdm run "}
        lock = next(filter(self.files.has, locks), "")
        is_there = re.search(rf"""\b{re.escape(tool)}\b(?!-)""", self.files.text(PROJECT))
        return locks[lock] if lock and is_there else ""

    def _uv(self, tool: str) -> str:
        """The call of uv, which by default installs the group `dev` only."""
        groups = table(self.project, "dependency-groups")
        required = table(self.project, "project").get("dependencies")
        listing = [name for name in groups if _names(groups[name], tool)]
        if _names(required, tool) or not _included(groups, "dev").isdisjoint(listing):
            return "uv run "
        group = next(iter(plain(listing, 40)), "")
        return f"uv run --group {group} " if group else ""

    def packages(self) -> list[str]:
        """The folders of its import packages."""
        files = self.files
        inside = [f"src/{name}" for name in files.names("src")]
        found = inside or [name for name in files.names() if name not in _BESIDE]
        return [path for path in plain(found, 60) if files.has(f"{path}/__init__.py")]


def _names(requirements: object, tool: str) -> bool:
    """Check if requirements name a tool, with whatever version."""
    return any(
        re.match(rf"{re.escape(tool)}(?![\w.-])", entry, re.IGNORECASE)
        for entry in texts(requirements)
    )


def _included(groups: Table, group: str) -> set[str]:
    """A dependency group, and all that it includes."""
    found: set[str] = set()
    waiting = [group]
    while waiting:
        name = waiting.pop()
        if name in groups and name not in found:
            found.add(name)
            listed = groups[name] if isinstance(groups[name], list) else []
            waiting += texts(
                [entry.get("include-group") for entry in listed if isinstance(entry, dict)]
            )
    return found


def read(files: ProjectFiles) -> PythonProject | None:
    """Read the manifests; None if the project is not Python's."""
    if not files.first(PROJECT, SETUP, OLD):
        return None
    call = _setup_call(files.text(OLD))
    return PythonProject(files, files.toml(PROJECT), files.ini(SETUP), call)


def pytest_source(python: PythonProject) -> str:
    """The file that shows that tests are pytest's: its settings, or a dependency on it."""
    files = python.files
    if python.tool("pytest"):
        return PROJECT
    own = files.first("pytest.ini", ".pytest.ini", "pytest.toml")
    if own or "tool:pytest" in python.setup:
        return own or SETUP
    if "pytest" in files.ini("tox.ini"):
        return "tox.ini"
    return files.first("conftest.py", "tests/conftest.py", "test/conftest.py")


def pytest_settings(python: PythonProject) -> Table:
    files = python.files
    found = python.tool("pytest", "ini_options") or python.tool("pytest")
    if found:
        return found
    for own in ("pytest.ini", ".pytest.ini", "tox.ini"):
        settings = table(files.ini(own), "pytest")
        if settings:
            return settings
    return table(python.setup, "tool:pytest")


def mypy_settings(python: PythonProject) -> Table:
    own = python.files.first("mypy.ini", ".mypy.ini")
    return python.tool("mypy") or table(python.files.ini(own) if own else python.setup, "mypy")


# -- reading code ----------------------------------------------------------------------------------


def _parsed(text: str) -> ast.Module | None:
    """Parse Python without running it; None if it is not valid."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _called(node: ast.expr) -> str:
    """The last name of what is called, or used as a decorator: `session` of `nox.session()`."""
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _setup_call(text: str) -> Table:
    """The literal arguments of the call of setup()."""
    tree = _parsed(text)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call)) if tree else ()
    for call in calls:
        if _called(call) == "setup":
            given = {word.arg: _literal(word.value) for word in call.keywords if word.arg}
            return {name: value for name, value in given.items() if value is not None}
    return {}


def nox_sessions(text: str) -> list[str]:
    """The names of nox sessions: decorated functions, or the name that the decorator gives."""
    tree = _parsed(text)
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef)) if tree else ()
    return [
        _given_name(mark) or function.name
        for function in functions
        for mark in function.decorator_list
        if _called(mark) == "session"
    ]


def _given_name(mark: ast.expr) -> str:
    given = mark.keywords if isinstance(mark, ast.Call) else []
    return next((str(_literal(word.value) or "") for word in given if word.arg == "name"), "")
