"""A Python project: its manifests, read without running anything, and the tasks in them.

`python_facts` says what else follows from them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from loki_memory.seed.project_files import ProjectFiles, Table, table, texts
from loki_memory.seed.proposal import CONFIGURED, Task, is_plain, of_name, of_script, plain

PYTHON = "Python"
PROJECT, SETUP, OLD = "pyproject.toml", "setup.cfg", "setup.py"

# Folders at the top that may look like a package and are not the one that is installed.
_BESIDE = frozenset(
    {"tests", "test", "testing", "docs", "doc", "examples", "example", "scripts", "tools"}
    | {"benchmarks"}
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


# Tasks of a Python project: those of nox, tox and other runners, and the tools it configures.

# An environment of tox that tests on one Python, or a pattern for several: py312, py{39,310}-lxml.
_FACTOR = re.compile(r"\{?(?:pypy|python|py)[\d.{},py-]*(?:[-{].*)?|3\.\d+(?:-.*)?")
_MOST_ENVIRONMENTS = 200
_MOST_FACTORS, _MOST_OPTIONS = 3, 20  # in the name of an environment


def tasks(python: PythonProject) -> Iterator[Task]:
    """The tasks that runners define, then those that the configuration of a tool implies."""
    yield from _nox(python.files)
    yield from _tox(python)
    yield from _runners(python)
    yield from _tools(python)


def _tasks(names: Iterator[str], prefix: str, source: str) -> Iterator[Task]:
    for name in names:
        purpose, is_part = of_name(name)
        if purpose and is_plain(name, 40):
            yield Task(purpose, f"{prefix}{name}", source, language=PYTHON, is_part=is_part)


def _nox(files: ProjectFiles) -> Iterator[Task]:
    sessions = nox_sessions(files.text("noxfile.py"))
    yield from _tasks(iter(sessions), "nox -s ", "noxfile.py")


def _tox(python: PythonProject) -> Iterator[Task]:
    source, environments = _environments(python)
    if not source:
        return
    names = list(dict.fromkeys(environments))[:_MOST_ENVIRONMENTS]
    if not names or any(_FACTOR.fullmatch(name) for name in names):
        yield Task("test", "tox", source, language=PYTHON)
    others = (name for name in names if not _FACTOR.fullmatch(name))
    yield from _tasks(others, "tox -e ", source)


def _environments(python: PythonProject) -> tuple[str, list[str]]:
    """The file that configures tox, and the environments that it names."""
    files = python.files
    if files.has("tox.ini"):
        return "tox.ini", _of_ini(files.ini("tox.ini"), "tox")
    if "tox:tox" in python.setup:
        return SETUP, _of_ini(python.setup, "tox:tox")
    if files.has("tox.toml"):
        return "tox.toml", _of_toml(files.toml("tox.toml"))
    native = python.tool("tox")
    if native:
        return PROJECT, _of_toml(native)
    return "", []


def _of_ini(sections: Table, main: str) -> list[str]:
    listed = str(table(sections, main).get("envlist") or table(sections, main).get("env_list", ""))
    flat = re.sub(r"#.*", "", listed)
    names = [name for name in re.split(r"[,\s]+(?![^{]*\})", flat) if name]
    names += [name.removeprefix("testenv:") for name in sections if name.startswith("testenv:")]
    return [part for name in names for part in _expanded(name)]


def _of_toml(settings: Table) -> list[str]:
    return [*texts(settings.get("env_list")), *table(settings, "env")]


def _expanded(name: str) -> list[str]:
    """The environments that a pattern of tox stands for.

    >>> _expanded("docs-{build,links}")
    ['docs-build', 'docs-links']
    """
    found = re.search(r"\{([^{}]*)\}", name)
    if found is None:
        return [name] if is_plain(name, 40) else []
    if name.count("{") > _MOST_FACTORS:
        return []
    before, after = name[: found.start()], name[found.end() :]
    options = [part for option in found[1].split(",") for part in _range(option.strip())]
    return [
        part for option in options[:_MOST_OPTIONS] for part in _expanded(f"{before}{option}{after}")
    ]


def _range(option: str) -> list[str]:
    """The numbers of a range such as `0-4`; any other option as it is."""
    ends = re.fullmatch(r"(\d{1,3})-(\d{1,3})", option)
    return [str(n) for n in range(int(ends[1]), int(ends[2]) + 1)] if ends else [option]


def _runners(python: PythonProject) -> Iterator[Task]:
    """Scripts that a project's task runner or environment manager defines in pyproject.toml."""
    for path, prefix in (
        (("poe", "tasks"), "poe "),
        (("pdm", "scripts"), "pdm run "),
        (("taskipy", "tasks"), "task "),
        (("rye", "scripts"), "rye run "),
        (("pixi", "tasks"), "pixi run "),
        (("hatch", "envs", "default", "scripts"), "hatch run "),
    ):
        yield from _scripts(python.tool(*path), prefix)
    for name, settings in python.tool("hatch", "envs").items():
        if name != "default" and is_plain(name, 40):
            yield from _scripts(table(settings, "scripts"), f"hatch run {name}:", name)
    if python.tool("hatch", "envs", "hatch-test"):
        yield Task("test", "hatch test", PROJECT, language=PYTHON)


def _scripts(scripts: Table, prefix: str, environment: str = "") -> Iterator[Task]:
    for name, body in scripts.items():
        purpose, is_part = of_script(name, body, environment)
        if purpose and is_plain(name, 40):
            yield Task(purpose, f"{prefix}{name}", PROJECT, language=PYTHON, is_part=is_part)


def _tools(python: PythonProject) -> Iterator[Task]:
    """The calls of tools that the project configures."""
    for purpose, command, source in _configured(python, python.packages()):
        if source:
            run = python.runner(command.partition(" ")[0])
            yield Task(purpose, run + command, source, CONFIGURED, PYTHON)


def _configured(python: PythonProject, packages: list[str]) -> Iterator[tuple[str, str, str]]:
    files, setup = python.files, python.setup

    def where(tool: str, *own: str) -> str:
        if tool in python.tool():
            return PROJECT
        return files.first(*own) or (SETUP if tool in setup else "")

    yield "test", "pytest", pytest_source(python)
    yield "lint", "ruff check", where("ruff", "ruff.toml", ".ruff.toml")
    if python.tool("ruff", "format"):
        yield "format", "ruff format", PROJECT
    yield "format", "black .", where("black")
    yield "lint", "flake8", where("flake8", ".flake8") or _in_tox(files, "flake8")
    checked = mypy_settings(python)
    if checked.keys() & {"files", "packages", "modules"}:
        yield "types", "mypy", where("mypy", "mypy.ini", ".mypy.ini")
    elif len(packages) == 1:
        yield "types", f"mypy {packages[0]}", where("mypy", "mypy.ini", ".mypy.ini")
    yield "types", "pyright", where("pyright", "pyrightconfig.json")


def _in_tox(files: ProjectFiles, section: str) -> str:
    return "tox.ini" if section in files.ini("tox.ini") else ""
