"""Proposals: tasks of the project with their commands and purposes, and facts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

COMMANDS, CONVENTIONS = "How to work here", "Conventions and surprises"
HISTORY, RULES = "Reasons from the git history", "Rules in instruction files"
GROUPS = (COMMANDS, CONVENTIONS, HISTORY, RULES)  # in the order in which a plan prints them

# How a task is known, the surest first.
SCRIPT, CI_STEP, HOOKS, CONFIGURED = 1, 2, 3, 4

_PLAIN = re.compile(r"[\w@%+=:,./'\"\[\]{}()&|<>!*?~# -]+")
_VERSION = r"v?(\d+(?:\.[1-9]\d*)*)(?:\.0)*"
_AT_LEAST = re.compile(rf">=\s*{_VERSION}(?:\s*,\s*<\s*{_VERSION})?")


class Task(NamedTuple):
    """A command that does one of the project's recurring jobs."""

    purpose: str  # test, lint, build, …
    command: str
    source: str  # the file that defines it
    rank: int = SCRIPT
    language: str = ""  # empty where it serves the whole project
    runs: str = ""  # the command behind a script
    is_part: bool = False  # `test:unit`: does a part of its job


class Proposal(NamedTuple):
    """A fact that a project's files or history state."""

    text: str
    type: str  # convention, rule, decision, gotcha
    group: str
    sources: tuple[str, ...]  # paths, or a short commit id
    worth: int
    is_quoted: bool = False  # its words are another person's, not ours
    is_foreign: bool = False  # … of a person who is not the user
    commit: str = ""


def convention(text: str, source: str, worth: int, *others: str) -> Proposal:
    return Proposal(text, "convention", CONVENTIONS, (source, *others), worth)


def gotcha(text: str, source: str, worth: int) -> Proposal:
    return Proposal(text, "gotcha", CONVENTIONS, (source,), worth)


def required(what: str, spec: str) -> str:
    """A sentence about the version that a manifest asks for.

    >>> required("Node.js", ">= 18.0.0"), required("PHP", "^8.1")
    ('Node.js 18 or newer is required.', 'The required PHP is `^8.1`.')
    >>> required("Python", ">=3.10,<4.0")
    'Python 3.10 or newer, but below 4, is required.'
    """
    found = _AT_LEAST.fullmatch(spec.strip())
    if found is None:
        return f"The required {what} is `{spec}`."
    below = f", but below {found[2]}," if found[2] else ""
    return f"{what} {found[1]} or newer{below} is required."


def quoted(*names: str) -> str:
    """Names as code in a sentence: `a`, `b` and `c`."""
    *first, last = [f"`{name}`" for name in names]
    return f"{', '.join(first)} and {last}" if first else last


def is_plain(text: str, longest: int = 80) -> bool:
    """Check if a name or command of a file can stand in a sentence as it is.

    >>> is_plain("pytest -n auto"), is_plain("echo `id`"), is_plain("a\\nb")
    (True, False, False)
    """
    return len(text) <= longest and bool(_PLAIN.fullmatch(text))


def plain(names: Iterable[object], longest: int = 80) -> list[str]:
    """The names that can stand in a sentence, of some that need not be texts."""
    return [name for name in names if isinstance(name, str) and is_plain(name, longest)]


class Purpose(NamedTuple):
    """A recurring job of a project, how a sentence tells of it, and how much that is worth."""

    sentence: str
    of_language: str  # the same for one language of several
    worth: int


PURPOSES = {
    "test": Purpose("Tests run with {}", "The {} tests run with {}", 100),
    "lint": Purpose("The code is linted with {}", "{} code is linted with {}", 96),
    "types": Purpose("Types are checked with {}", "{} types are checked with {}", 94),
    "format": Purpose("The code is formatted with {}", "{} code is formatted with {}", 92),
    "check": Purpose("The project's checks run with {}", "The {} checks run with {}", 90),
    "build": Purpose("The project is built with {}", "The {} part is built with {}", 88),
    "dev": Purpose("Development mode starts with {}", "{} development mode starts with {}", 80),
    "start": Purpose("The project is started with {}", "The {} part is started with {}", 79),
    "docs": Purpose("The documentation is built with {}", "The {} docs are built with {}", 62),
    "coverage": Purpose("Coverage is measured with {}", "{} coverage is measured with {}", 57),
    "bench": Purpose("Benchmarks run with {}", "The {} benchmarks run with {}", 55),
}

_CHECKS = re.compile(r"--(?:check|diff)\b|\bgofmt (?!.*-w).*-[ld]\b")
_TYPES = re.compile(r"tsc\b.*--noEmit\b")

_NAMES = {
    "test": "test tests unit unittest unittests pytest spec specs jest vitest mocha",
    "lint": "lint linter linters linting eslint ruff flake8 pylint clippy rubocop pre-commit "
    "precommit golangci-lint stylelint oxlint style codestyle",
    "types": "type typecheck type-check typechecking typing mypy pyright check-types "
    "types-check test-types type-checking lint-types phpstan",
    "format": "format fmt black prettier reformat formatting autoformat",
    "check": "check checks ci verify validate qa check-all",
    "build": "build compile bundle",
    "dev": "dev develop",
    "start": "start",
    "docs": "docs doc documentation build-docs docs-build",
    "coverage": "coverage cov test-cov test-coverage cover",
    "bench": "bench benchmark benchmarks perf",
}
_BY_NAME = {name: purpose for purpose, names in _NAMES.items() for name in names.split()}
_PARTS = re.compile(r"[:_./-]")
# A second word that makes another job of the first: `build:docs`, `test:watch`, `lint:fix`.
_OTHER_JOB = frozenset(
    {"watch", "fix", "release", "publish", "deploy", "clean", "update", "debug", "install"}
    | {"prepare", "pre", "post", "setup", "deps", "image", "docker"}
)
_VERBS = frozenset({"check", "run", "code", "js", "py", "python", "ci"})  # `check:lint` lints

_WRAPPERS = {
    **dict.fromkeys(("uv", "poetry", "pdm", "pipenv", "rye"), ("run",)),
    **dict.fromkeys(("python", "python3", "py"), ("-m",)),
    **dict.fromkeys(("pnpm", "yarn", "bundle"), ("exec",)),
    **dict.fromkeys(("npx", "bunx", "xvfb-run", "time", "sudo"), ()),
    "coverage": ("run", "-m"),
}
_TOOLS = {
    "test": "pytest py.test unittest nose2 trial jest vitest mocha ava tap ctest rspec phpunit "
    "pest busted gotestsum",
    "lint": "flake8 pylint eslint golangci-lint rubocop shellcheck yamllint stylelint xo standard "
    "oxlint bandit phpcs hadolint actionlint djlint",
    "types": "mypy pyright basedpyright pyre pyrefly dmypy vue-tsc phpstan psalm",
    "format": "black isort prettier gofmt yapf autopep8 rustfmt gofumpt php-cs-fixer",
    "docs": "sphinx-build mkdocs",
}
_BY_TOOL = {tool: purpose for purpose, tools in _TOOLS.items() for tool in tools.split()}
_CALLS = {
    "lint": "ruff check, biome check, biome lint, pre-commit run, prek run, "
    "cargo clippy, go vet, deno lint",
    "format": "ruff format, biome format, cargo fmt, hatch fmt",
    "types": "ty check, tsc --noEmit",
    "test": "cargo test, cargo nextest, go test, mvn test, ./mvnw test, ./gradlew test, "
    "hatch test, dotnet test, mix test, swift test, deno test, bun test, node --test",
    "build": "cargo build, go build, ./gradlew build, hatch build, uv build, "
    "poetry build, flit build, dotnet build",
    "bench": "cargo bench",
    "docs": "cargo doc",
    "check": "mvn verify, ./mvnw verify, ./gradlew check",
}
_BY_CALL = {
    tuple(call.split()): purpose for purpose, calls in _CALLS.items() for call in calls.split(", ")
}


def of_name(name: str) -> tuple[str, bool]:
    """The purpose of a task by its name, and whether it does a part of that job.

    >>> of_name("test"), of_name("test:unit"), of_name("release")
    (('test', False), ('test', True), ('', False))
    """
    small = name.lower()
    if small in _BY_NAME:
        return _BY_NAME[small], False
    joined = _PARTS.sub("-", small)
    if joined in _BY_NAME:
        return _BY_NAME[joined], False
    first, *rest = _PARTS.split(small)
    if first in _VERBS and len(rest) == 1 and rest[0] in _BY_NAME:
        return _BY_NAME[rest[0]], False
    if not rest or not _OTHER_JOB.isdisjoint(rest) or _names_other_job(first, rest):
        return "", False
    return _BY_NAME.get(first, ""), first in _BY_NAME


def of_script(name: str, body: object = "", environment: str = "") -> tuple[str, bool]:
    """The purpose of a script by its name, by what it runs, and by where it belongs.

    A formatter that only checks is a linter, a compiler that writes nothing checks types, and a
    build in the environment for docs makes docs.

    >>> of_script("format", "prettier --check ."), of_script("build", environment="docs")
    (('lint', True), ('docs', False))
    """
    purpose, is_part = of_name(name)
    if purpose == "format" and only_checks(str(body)):
        return "lint", True
    if not purpose and _TYPES.match(str(body)):
        return "types", is_part
    if purpose == "build" and environment:
        return of_name(environment)[0] or purpose, is_part
    return purpose, is_part


def only_checks(formatter: str) -> bool:
    """Check that a call of a formatter writes nothing."""
    return bool(_CHECKS.search(formatter))


def _names_other_job(first: str, rest: list[str]) -> bool:
    """Check for a second word with a purpose of its own: `build-docs`, `test-coverage`."""
    purposes = {_BY_NAME[word] for word in rest if word in _BY_NAME}
    return bool(purposes - {_BY_NAME.get(first)})


def of_command(command: str) -> str:
    """The purpose of a command line by the tool that it runs; empty if that is not known.

    >>> of_command("uv run python -m pytest -n auto"), of_command("pip install x")
    ('test', '')
    """
    words = command.split()
    is_module = False
    while words and words[0] in _WRAPPERS:
        wrapper = _WRAPPERS[words[0]]
        if tuple(words[1 : len(wrapper) + 1]) != wrapper:
            break
        is_module = wrapper[-1:] == ("-m",)
        words = words[len(wrapper) + 1 :]
    if not words:
        return ""
    if is_module and words[0] == "build":
        return "build"
    call = (words[0], words[1] if len(words) > 1 else "")
    return _BY_CALL.get(call) or _BY_TOOL.get(words[0], "") or _script(words)


def _script(words: list[str]) -> str:
    """The purpose of a script of the project by its name: `./scripts/test.sh`."""
    if words[0] in {"bash", "sh"} and len(words) > 1:
        words = words[1:]
    name = words[0]
    if not name.endswith(".sh") and not name.startswith(("./", "scripts/", "script/", "bin/")):
        return ""
    return of_name(name.rpartition("/")[2].removesuffix(".sh"))[0]
