"""Files that name tasks: Makefile, justfile, Taskfile, mise, Rakefile, and pre-commit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from loki_memory.seed.project_files import ProjectFiles, strings, table
from loki_memory.seed.proposal import (
    HOOKS,
    Proposal,
    Task,
    convention,
    is_plain,
    of_script,
    plain,
    quoted,
)

_TARGET = re.compile(
    r"^([A-Za-z0-9][\w./-]*(?:[ \t]+[A-Za-z0-9][\w./-]*)*)[ \t]*::?(?![=:])[^\n]*\n?"
    r"((?:\t[^\n]*(?:\n|$))*)",
    re.MULTILINE,
)
# A recipe of just, whose parameters may have defaults; `name := value` is no recipe.
_RECIPE = re.compile(r"^@?([A-Za-z_][\w-]*)(?:[ \t]+(?:(?!:=)[^:\n])*)?:(?!=)", re.MULTILINE)
_RAKE = re.compile(r"^\s*task[ (]+:?[\"']?([a-z]\w*)", re.MULTILINE)
_RAKE_CLASS = re.compile(
    r"^\s*(?:Rake::TestTask|RSpec::Core::RakeTask|RuboCop::RakeTask|Minitest::TestTask)"
    r"\.(?:new|create)(?:[ (]+:[\"']?([a-z]\w*))?",
    re.MULTILINE,
)
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")  # in the order in which make looks
_JUSTFILES = ("justfile", "Justfile", ".justfile")
_TASKFILES = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml")


def tasks(files: ProjectFiles) -> Iterator[Task]:
    """The tasks that these files define, those of a recorded purpose."""
    for path, prefix, recipes in defined(files):
        for name, recipe in recipes.items():
            purpose, is_part = of_script(name, recipe)
            if purpose and is_plain(name, 40):
                yield Task(purpose, f"{prefix}{name}", path, is_part=is_part)


def defined(files: ProjectFiles) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """Each file, how its tasks are run, and their names with what they run, where that is known."""
    just = files.first(*_JUSTFILES)
    yield just, "just ", dict.fromkeys(_RECIPE.findall(files.text(just)))
    make = _makefile(files)
    yield make, "make ", targets(files.text(make))
    task = files.first(*_TASKFILES)
    yield task, "task ", table(files.yaml(task), "tasks")
    mise = files.first("mise.toml", ".mise.toml")
    yield mise, "mise run ", table(files.toml(mise), "tasks")
    rake = files.first("Rakefile")
    yield rake, "rake ", dict.fromkeys(_rake(files.text(rake)))


def _makefile(files: ProjectFiles) -> str:
    """The makefile as it is spelled here; some file systems take any spelling for it."""
    there = set(files.names())
    return files.first(*(name for name in _MAKEFILES if name in there))


def targets(text: str) -> dict[str, str]:
    """The explicit targets of a makefile, with their recipes.

    >>> targets("VERSION := 1\\n.PHONY: test\\ntest lint: deps\\n\\tpytest\\n%.o: %.c\\n")
    {'test': '\\tpytest\\n', 'lint': '\\tpytest\\n'}
    """
    found: dict[str, str] = {}
    for names, recipe in _TARGET.findall(text):
        for name in names.split():
            found[name] = found.get(name, "") + recipe
    return found


def _rake(text: str) -> list[str]:
    default = {"RSpec": "spec", "RuboCop": "rubocop"}
    found = list(_RAKE.findall(text))
    for match in _RAKE_CLASS.finditer(text):
        kind = match[0].strip().partition("::")[0]
        found.append(match[1] or default.get(kind, "test"))
    return found


_FILES = (".pre-commit-config.yaml", ".pre-commit-config.yml")
_SHOWN = 4  # hooks
_CHECKERS = frozenset({"mypy", "pyright", "basedpyright"})  # of types
# Hooks that only look after the state of files; the others say more about a project.
_TIDY = frozenset(
    {"trailing-whitespace", "end-of-file-fixer", "debug-statements", "mixed-line-ending"}
    | {"fix-byte-order-marker", "detect-private-key", "requirements-txt-fixer"}
    | {"file-contents-sorter"}
)


def hook_tasks(files: ProjectFiles) -> Iterator[Task]:
    """The call that runs all hooks, and the one that checks types."""
    path = files.first(*_FILES)
    hooks = _hooks(files, path) if path else []
    if hooks:
        yield Task("lint", "pre-commit run --all-files", path, HOOKS)
    for name in (name for name in hooks if name in _CHECKERS):
        yield Task("types", f"pre-commit run {name} --all-files", path, HOOKS)


def hook_facts(files: ProjectFiles) -> Iterator[Proposal]:
    """The hooks that run before each commit."""
    path = files.first(*_FILES)
    hooks = [name for name in _hooks(files, path) if not _is_tidying(name)] if path else []
    if hooks:
        rest = " and others" if len(hooks) > _SHOWN else ""
        listed = (
            quoted(*hooks[:_SHOWN]) if not rest else ", ".join(f"`{h}`" for h in hooks[:_SHOWN])
        )
        yield convention(f"pre-commit runs {listed}{rest} before each commit.", path, 77)


def _is_tidying(hook: str) -> bool:
    return hook in _TIDY or hook.startswith("check-")


def _hooks(files: ProjectFiles, path: str) -> list[str]:
    found = strings(files.yaml(path).get("repos"), frozenset({"id"}))
    return list(dict.fromkeys(plain(found, 40)))
