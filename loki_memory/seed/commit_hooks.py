"""Checks before a commit: the hooks that pre-commit is configured to run."""

from __future__ import annotations

from collections.abc import Iterator

from loki_memory.seed.project_files import ProjectFiles, strings
from loki_memory.seed.proposal import HOOKS, Proposal, Task, convention, plain, quoted

_FILES = (".pre-commit-config.yaml", ".pre-commit-config.yml")
_SHOWN = 4
_CHECKERS = frozenset({"mypy", "pyright", "basedpyright"})  # of types
# Hooks that only look after the state of files; the others say more about a project.
_TIDY = frozenset(
    [
        "trailing-whitespace",
        "end-of-file-fixer",
        "check-yaml",
        "check-toml",
        "check-json",
        "check-added-large-files",
        "check-merge-conflict",
        "check-case-conflict",
        "debug-statements",
        "mixed-line-ending",
        "check-ast",
        "check-docstring-first",
        "fix-byte-order-marker",
        "check-executables-have-shebangs",
        "check-shebang-scripts-are-executable",
        "check-symlinks",
        "check-xml",
        "detect-private-key",
        "requirements-txt-fixer",
        "check-vcs-permalinks",
        "check-builtin-literals",
        "file-contents-sorter",
    ]
)


def tasks(files: ProjectFiles) -> Iterator[Task]:
    """The call that runs all hooks, and the one that checks types."""
    path = files.first(*_FILES)
    hooks = _hooks(files, path) if path else []
    if hooks:
        yield Task("lint", "pre-commit run --all-files", path, HOOKS)
    for name in (name for name in hooks if name in _CHECKERS):
        yield Task("types", f"pre-commit run {name} --all-files", path, HOOKS)


def facts(files: ProjectFiles) -> Iterator[Proposal]:
    """The hooks that run before each commit."""
    path = files.first(*_FILES)
    hooks = [name for name in _hooks(files, path) if name not in _TIDY] if path else []
    if hooks:
        rest = " and others" if len(hooks) > _SHOWN else ""
        listed = (
            quoted(*hooks[:_SHOWN]) if not rest else ", ".join(f"`{h}`" for h in hooks[:_SHOWN])
        )
        yield convention(f"pre-commit runs {listed}{rest} before each commit.", path, 77)


def _hooks(files: ProjectFiles, path: str) -> list[str]:
    found = strings(files.yaml(path).get("repos"), frozenset({"id"}))
    return list(dict.fromkeys(plain(found, 40)))
