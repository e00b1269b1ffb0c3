"""Facts about a Python project beside its commands: versions, extras, and what makes tests fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loki_memory.seed.project_files import table, texts
from loki_memory.seed.proposal import (
    COMMANDS,
    Proposal,
    convention,
    gotcha,
    is_plain,
    plain,
    quoted,
    required,
)
from loki_memory.seed.python_project import (
    OLD,
    PROJECT,
    SETUP,
    PythonProject,
    mypy_settings,
    pytest_settings,
    pytest_source,
)

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


def facts(python: PythonProject) -> Iterator[Proposal]:
    """Facts beside the commands: versions, extras, and what makes tests fail."""
    yield from _versions(python)
    yield from _dependencies(python)
    yield from _test_settings(python)
    yield from _strictness(python)
    yield from _layout(python)


def _versions(python: PythonProject) -> Iterator[Proposal]:
    for spec, source in (
        (table(python.project, "project").get("requires-python"), PROJECT),
        (python.tool("poetry", "dependencies").get("python"), PROJECT),
        (table(python.setup, "options").get("python_requires"), SETUP),
        (python.call.get("python_requires"), OLD),
    ):
        if isinstance(spec, str) and is_plain(spec, 40):
            yield convention(required("Python", spec), source, 76)
            break
    yield from _build(python)


def _build(python: PythonProject) -> Iterator[Proposal]:
    backend = str(table(python.project, "build-system").get("build-backend", ""))
    named = _BACKENDS.get(backend.partition(".")[0])
    if named and is_plain(backend, 60):
        yield convention(f"The package is built by {named} (`{backend}`).", PROJECT, 64)
    requires = " ".join(texts(table(python.project, "build-system").get("requires")))
    tagged = next((name for name in _TAGGED if name in requires), "")
    if tagged:
        text = f"The version comes from git tags by {tagged}; no file states it by hand."
        yield gotcha(text, PROJECT, 66)
    path = python.tool("hatch", "version").get("path")
    if isinstance(path, str) and is_plain(path, 60) and python.files.has(path):
        yield convention(f"The version is set in `{path}`.", PROJECT, 60, path)


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
        yield _installs(f"`pip install -e . --group {group}`", PROJECT)
        return
    for extras, source in (
        (table(python.project, "project", "optional-dependencies"), PROJECT),
        (table(python.setup, "options.extras_require"), SETUP),
        (table(python.call, "extras_require"), OLD),
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
    listed = plain(_listed(settings.get("testpaths")), 60)
    paths = [path for path in listed if python.files.has_folder(path)]
    if paths:
        yield convention(f"Tests are in {quoted(*paths[:3])}.", source, 59)


def _listed(value: object) -> list[str]:
    """The entries of a list, or the lines of a text."""
    if isinstance(value, list):
        return texts(value)
    return [line.strip() for line in str(value or "").splitlines() if line.strip()]


def _strictness(python: PythonProject) -> Iterator[Proposal]:
    mypy = mypy_settings(python)
    own = python.files.first("mypy.ini", ".mypy.ini")
    if str(mypy.get("strict", "")).lower() == "true":
        source = PROJECT if python.tool("mypy") else own or SETUP
        text = "mypy is strict, so every function needs annotations."
        yield convention(text, source, 71)
    yield from _coverage(python)
    length = python.tool("ruff").get("line-length") or python.tool("black").get("line-length")
    if isinstance(length, int):
        yield convention(f"Lines are wrapped at {length} characters.", PROJECT, 56)
    if "ALL" in texts(python.tool("ruff", "lint").get("select")):
        yield convention("Ruff has all rules on, except those that are ignored.", PROJECT, 58)


def _coverage(python: PythonProject) -> Iterator[Proposal]:
    least = python.tool("coverage", "report").get("fail_under")
    source = PROJECT
    for own, section in ((".coveragerc", "report"), (SETUP, "coverage:report")):
        if least is None:
            least, source = table(python.files.ini(own), section).get("fail_under"), own
    if least is not None and re.fullmatch(r"\d+(\.\d+)?", str(least)) and float(least) > 0:
        yield gotcha(f"Coverage below {least} % fails.", source, 72)


def _layout(python: PythonProject) -> Iterator[Proposal]:
    packages = python.packages()
    if packages and len(packages) <= 3:  # noqa: PLR2004 - more are a list, not a sentence
        noun = "package is" if len(packages) == 1 else "packages are"
        source = f"{packages[0]}/__init__.py"
        yield convention(f"The import {noun} in {quoted(*packages)}.", source, 63)
    yield from _scripts(python)
    news = python.tool("towncrier")
    folder = str(news.get("directory", "") or "")
    if news and (not folder or is_plain(folder, 60)):
        where = f" in `{folder}`" if folder else ""
        text = f"Each change adds a news fragment{where} for towncrier."
        yield convention(text, PROJECT, 75)


def _scripts(python: PythonProject) -> Iterator[Proposal]:
    """The commands that the package installs."""
    scripts = table(python.project, "project", "scripts") or python.tool("poetry", "scripts")
    source = PROJECT
    if not scripts:
        listed = table(python.setup, "options.entry_points").get("console_scripts", "")
        pairs = (line.partition("=") for line in str(listed).splitlines())
        scripts = {name.strip(): target.strip() for name, _, target in pairs if target}
        source = SETUP
    for name, target in list(scripts.items())[:2]:
        if len(plain([name, target])) == 2:  # noqa: PLR2004 - both
            yield convention(f"The command `{name}` starts in `{target}`.", source, 57)
