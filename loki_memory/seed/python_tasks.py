"""Tasks of a Python project: those of nox, tox and other runners, and the tools it configures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loki_memory.seed.project_files import ProjectFiles, Table, table, texts
from loki_memory.seed.proposal import CONFIGURED, Task, is_plain
from loki_memory.seed.purposes import of_name, of_script
from loki_memory.seed.python_project import (
    PROJECT,
    PYTHON,
    SETUP,
    PythonProject,
    mypy_settings,
    nox_sessions,
    pytest_source,
)

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
