"""Python projects: pyproject.toml, setup.cfg, setup.py, tox, nox, and the tools they configure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from loki_memory.seed.project_files import ProjectFiles, Table, table, texts
from loki_memory.seed.proposal import (
    COMMANDS,
    CONFIGURED,
    Proposal,
    Task,
    convention,
    gotcha,
    is_plain,
    plain,
    quoted,
)
from loki_memory.seed.purposes import of_name

PYTHON = "Python"
_PROJECT, _SETUP, _OLD = "pyproject.toml", "setup.cfg", "setup.py"
# An environment of tox that tests on one Python, or a pattern for several: py312, py{39,310}-lxml.
_FACTOR = re.compile(r"\{?(?:pypy|python|py)[\d.{},py-]*(?:[-{].*)?|3\.\d+(?:-.*)?")
_AT_LEAST = re.compile(r">=\s*3\.(\d+)(?:\.0)?")
_MOST_ENVIRONMENTS = 200
_MOST_OPTIONS = 20  # of a factor in the name of an environment
_DEVELOPERS = ("dev", "develop", "development", "all-dev")
_TESTERS = ("test", "tests", "testing")
_BACKENDS = {
    "hatchling": "Hatchling",
    "setuptools": "setuptools",
    "poetry": "Poetry",
    "flit_core": "Flit",
    "pdm": "PDM",
    "maturin": "maturin",
    "mesonpy": "meson-python",
    "scikit_build_core": "scikit-build-core",
    "uv_build": "uv",
}
_TAGGED = ("setuptools_scm", "setuptools-scm", "hatch-vcs", "versioningit", "versioneer")


class PythonProject(NamedTuple):
    """The manifests of a Python project, as far as there are any."""

    files: ProjectFiles
    project: Table  # pyproject.toml
    setup: Table  # setup.cfg
    call: Table  # the literal arguments of setup() in setup.py

    def tool(self, *names: str) -> Table:
        return table(self.project, "tool", *names)

    def runner(self) -> str:
        """The prefix of a command in the project's environment, by its lock file."""
        locks = {"uv.lock": "uv run ", "poetry.lock": "poetry run ", "pdm.lock": "pdm run "}
        return next((run for lock, run in locks.items() if self.files.has(lock)), "")

    def packages(self) -> list[str]:
        """The folders of its import packages."""
        files = self.files
        inside = [f"src/{name}" for name in files.names("src")]
        found = inside or [n for n in files.names() if n not in {"tests", "test", "docs"}]
        return [path for path in found if files.has(f"{path}/__init__.py")]


def read(files: ProjectFiles) -> PythonProject | None:
    """Read the manifests; None if the project is not Python's."""
    if not files.first(_PROJECT, _SETUP, _OLD):
        return None
    call = _setup_call(files.text(_OLD))
    return PythonProject(files, files.toml(_PROJECT), files.ini(_SETUP), call)


def tasks(python: PythonProject) -> Iterator[Task]:
    """The tasks that runners define, then those that the configuration of a tool implies."""
    yield from _nox(python.files)
    yield from _tox(python)
    yield from _runners(python)
    yield from _tools(python)


def facts(python: PythonProject) -> Iterator[Proposal]:
    """Facts beside the commands: versions, extras, and what makes tests fail."""
    yield from _versions(python)
    yield from _dependencies(python)
    yield from _test_settings(python)
    yield from _strictness(python)
    yield from _layout(python)


# -- tasks -----------------------------------------------------------------------------------------


def _tasks(names: Iterator[str], prefix: str, source: str) -> Iterator[Task]:
    for name in names:
        purpose, is_part = of_name(name)
        if purpose and is_plain(name, 40):
            yield Task(purpose, f"{prefix}{name}", source, language=PYTHON, is_part=is_part)


def _nox(files: ProjectFiles) -> Iterator[Task]:
    sessions = _sessions(files.text("noxfile.py"))
    yield from _tasks(iter(sessions), "nox -s ", "noxfile.py")


def _sessions(text: str) -> list[str]:
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
        return _SETUP, _of_ini(python.setup, "tox:tox")
    if files.has("tox.toml"):
        return "tox.toml", _of_toml(files.toml("tox.toml"))
    native = python.tool("tox")
    if native:
        return _PROJECT, _of_toml(native)
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
    before, after = name[: found.start()], name[found.end() :]
    options = [option.strip() for option in found[1].split(",")][:_MOST_OPTIONS]
    if len(before) > _MOST_OPTIONS * 4:
        return []
    return [part for option in options for part in _expanded(f"{before}{option}{after}")]


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
        yield from _tasks(iter(python.tool(*path)), prefix, _PROJECT)
    for name, settings in python.tool("hatch", "envs").items():
        if name != "default":
            scripts = table(settings, "scripts")
            yield from _tasks(iter(scripts), f"hatch run {name}:", _PROJECT)
    if python.tool("hatch", "envs", "hatch-test"):
        yield Task("test", "hatch test", _PROJECT, language=PYTHON)


def _tools(python: PythonProject) -> Iterator[Task]:
    """The calls of tools that the project configures."""
    run, packages = python.runner(), python.packages()
    for purpose, command, source in _configured(python, packages):
        if source:
            yield Task(purpose, run + command, source, CONFIGURED, PYTHON)


def _configured(python: PythonProject, packages: list[str]) -> Iterator[tuple[str, str, str]]:
    files, setup = python.files, python.setup

    def where(tool: str, *own: str, section: str = "") -> str:
        if tool in python.tool():
            return _PROJECT
        return files.first(*own) or (_SETUP if (section or tool) in setup else "")

    yield "test", "pytest", pytest_source(python)
    yield "lint", "ruff check", where("ruff", "ruff.toml", ".ruff.toml")
    if python.tool("ruff", "format"):
        yield "format", "ruff format", _PROJECT
    yield "format", "black .", where("black")
    yield "lint", "flake8", where("flake8", ".flake8") or _in_tox(files, "flake8")
    yield "types", "pyright", where("pyright", "pyrightconfig.json")
    checked = _mypy(python)
    if checked.keys() & {"files", "packages", "modules"}:
        yield "types", "mypy", where("mypy", "mypy.ini", ".mypy.ini")
    elif len(packages) == 1:
        yield "types", f"mypy {packages[0]}", where("mypy", "mypy.ini", ".mypy.ini")


def _in_tox(files: ProjectFiles, section: str) -> str:
    return "tox.ini" if section in files.ini("tox.ini") else ""


def _mypy(python: PythonProject) -> Table:
    own = python.files.first("mypy.ini", ".mypy.ini")
    return python.tool("mypy") or table(python.files.ini(own) if own else python.setup, "mypy")


def pytest_source(python: PythonProject) -> str:
    """The file that shows that tests are pytest's: its settings, or a dependency on it."""
    files = python.files
    if python.tool("pytest"):
        return _PROJECT
    own = files.first("pytest.ini", ".pytest.ini", "pytest.toml")
    if own or "tool:pytest" in python.setup:
        return own or _SETUP
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


# -- facts -----------------------------------------------------------------------------------------


def _versions(python: PythonProject) -> Iterator[Proposal]:
    for spec, source in (
        (table(python.project, "project").get("requires-python"), _PROJECT),
        (python.tool("poetry", "dependencies").get("python"), _PROJECT),
        (table(python.setup, "options").get("python_requires"), _SETUP),
        (python.call.get("python_requires"), _OLD),
    ):
        if isinstance(spec, str) and is_plain(spec, 40):
            least = _AT_LEAST.fullmatch(spec.strip())
            said = f"Python 3.{least[1]} or newer is required" if least else ""
            yield convention(f"{said or f'The required Python is `{spec}`'}.", source, 76)
            break
    yield from _build(python)


def _build(python: PythonProject) -> Iterator[Proposal]:
    backend = str(table(python.project, "build-system").get("build-backend", ""))
    named = _BACKENDS.get(backend.partition(".")[0])
    if named:
        yield convention(f"The package is built by {named} (`{backend}`).", _PROJECT, 64)
    requires = " ".join(texts(table(python.project, "build-system").get("requires")))
    tagged = next((name for name in _TAGGED if name in requires), "")
    if tagged:
        text = f"The version comes from git tags by {tagged}; no file states it by hand."
        yield gotcha(text, _PROJECT, 66)
    path = python.tool("hatch", "version").get("path")
    if isinstance(path, str) and python.files.has(path):
        yield convention(f"The version is set in `{path}`.", _PROJECT, 60, path)


def _dependencies(python: PythonProject) -> Iterator[Proposal]:
    """The command that installs the project with its developers' tools."""
    if python.files.has("uv.lock"):
        yield _installs("`uv sync`", "uv.lock")
    elif python.files.has("poetry.lock"):
        yield _installs("`poetry install`", "poetry.lock")
    elif python.files.has("pdm.lock"):
        yield _installs("`pdm install`", "pdm.lock")
    else:
        yield from _extras(python)


def _installs(command: str, source: str) -> Proposal:
    text = f"Dependencies are installed with {command}."
    return Proposal(text, "convention", COMMANDS, (source,), 86)


def _extras(python: PythonProject) -> Iterator[Proposal]:
    groups = table(python.project, "dependency-groups")
    group = next((name for name in (*_DEVELOPERS, *_TESTERS) if name in groups), "")
    if group:
        yield _installs(f"`pip install -e . --group {group}`", _PROJECT)
        return
    for extras, source in (
        (table(python.project, "project", "optional-dependencies"), _PROJECT),
        (table(python.setup, "options.extras_require"), _SETUP),
        (table(python.call, "extras_require"), _OLD),
    ):
        extra = next((name for name in (*_DEVELOPERS, *_TESTERS) if name in extras), "")
        if extra:
            yield _installs(f"`pip install -e '.[{extra}]'`", source)
            return
    names = ("requirements-dev.txt", "dev-requirements.txt", "requirements_dev.txt")
    listed = python.files.first(*names, "requirements/dev.txt", "requirements-test.txt")
    if listed:
        yield _installs(f"`pip install -r {listed}`", listed)


def _test_settings(python: PythonProject) -> Iterator[Proposal]:
    settings, source = pytest_settings(python), pytest_source(python)
    if not settings:
        return
    filters = _listed(settings.get("filterwarnings"))
    if "error" in filters:
        yield gotcha("pytest turns warnings into errors, so a new warning fails.", source, 79)
    options = " ".join(_listed(settings.get("addopts")))
    if "--doctest-modules" in options or "--doctest-glob" in options:
        yield gotcha("pytest runs the doctests of the project too.", source, 68)
    if "--strict-markers" in options.split():
        text = "pytest refuses a marker that its settings do not list (`--strict-markers`)."
        yield gotcha(text, source, 61)
    if settings.get("asyncio_mode") == "auto":
        yield convention("Async tests need no marker (`asyncio_mode = auto`).", source, 67)
    paths = [path for path in _listed(settings.get("testpaths")) if python.files.has_folder(path)]
    if paths:
        yield convention(f"Tests are in {quoted(*paths[:3])}.", source, 59)


def _listed(value: object) -> list[str]:
    """The entries of a list, or the lines of a text."""
    if isinstance(value, list):
        return texts(value)
    return [line.strip() for line in str(value or "").splitlines() if line.strip()]


def _strictness(python: PythonProject) -> Iterator[Proposal]:
    mypy = _mypy(python)
    own = python.files.first("mypy.ini", ".mypy.ini")
    if str(mypy.get("strict", "")).lower() == "true":
        source = _PROJECT if python.tool("mypy") else own or _SETUP
        text = "mypy is strict, so every function needs annotations."
        yield convention(text, source, 71)
    yield from _coverage(python)
    length = python.tool("ruff").get("line-length") or python.tool("black").get("line-length")
    if isinstance(length, int):
        yield convention(f"Lines are wrapped at {length} characters.", _PROJECT, 56)
    if "ALL" in texts(python.tool("ruff", "lint").get("select")):
        yield convention("Ruff has all rules on, except those that are ignored.", _PROJECT, 58)


def _coverage(python: PythonProject) -> Iterator[Proposal]:
    least = python.tool("coverage", "report").get("fail_under")
    source = _PROJECT
    for own, section in ((".coveragerc", "report"), (_SETUP, "coverage:report")):
        if least is None:
            least, source = table(python.files.ini(own), section).get("fail_under"), own
    if least is not None and re.fullmatch(r"\d+(\.\d+)?", str(least)) and float(least) > 0:
        yield gotcha(f"Coverage below {least} % fails.", source, 72)


def _layout(python: PythonProject) -> Iterator[Proposal]:
    packages = python.packages()
    source = python.files.first(_PROJECT, _SETUP, _OLD)
    if packages and len(packages) <= 3:  # noqa: PLR2004 - more are a list, not a sentence
        noun = "package is" if len(packages) == 1 else "packages are"
        yield convention(f"The import {noun} in {quoted(*packages)}.", source, 63)
    yield from _scripts(python)
    news = python.tool("towncrier")
    folder = str(news.get("directory", "") or "")
    if news and (not folder or is_plain(folder, 60)):
        where = f" in `{folder}`" if folder else ""
        text = f"Each change adds a news fragment{where} for towncrier."
        yield convention(text, _PROJECT, 75)


def _scripts(python: PythonProject) -> Iterator[Proposal]:
    """The commands that the package installs."""
    scripts = table(python.project, "project", "scripts") or python.tool("poetry", "scripts")
    source = _PROJECT
    if not scripts:
        listed = table(python.setup, "options.entry_points").get("console_scripts", "")
        pairs = (line.partition("=") for line in str(listed).splitlines())
        scripts = {name.strip(): target.strip() for name, _, target in pairs if target}
        source = _SETUP
    for name, target in list(scripts.items())[:2]:
        if len(plain([name, target])) == 2:  # noqa: PLR2004 - both
            yield convention(f"The command `{name}` starts in `{target}`.", source, 57)


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
