"""The English of the package: docstrings start with a verb or a noun, variables are named after
what they hold.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import loki_memory

_PACKAGE = Path(loki_memory.__file__).parent
_RELATIVE = re.compile(
    "What|Who|Whose|Whom|Whether|Those|That|How|Where|Which|It|They|Somebody|Whoever|Whatever"
)
_VAGUE = frozenset({"one", "those"})
# Folders and modules whose English is not edited yet. The list may only shrink.
NOT_YET = frozenset[str]()


def _part(path: Path) -> str:
    return path.relative_to(_PACKAGE).parts[0].removesuffix(".py")


_MODULES = sorted(_PACKAGE.rglob("*.py"))
_DONE = [path for path in _MODULES if _part(path) not in NOT_YET]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def _variables(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _first_word(docstring: str) -> str:
    found = re.search(r"\w+", docstring)
    return found[0] if found else ""


def _bad_starts(tree: ast.Module) -> list[str]:
    return [text for text in _docstrings(tree) if _RELATIVE.fullmatch(_first_word(text))]


def _vague_variables(tree: ast.Module) -> list[str]:
    return [name for name in _variables(tree) if name in _VAGUE]


@pytest.mark.parametrize("path", _DONE, ids=lambda path: str(path.relative_to(_PACKAGE)))
def test_a_docstring_starts_with_a_verb_or_a_noun(path: Path) -> None:
    assert _bad_starts(_tree(path)) == []


@pytest.mark.parametrize("path", _DONE, ids=lambda path: str(path.relative_to(_PACKAGE)))
def test_a_variable_is_named_after_what_it_holds(path: Path) -> None:
    assert _vague_variables(_tree(path)) == []


@pytest.mark.parametrize("part", sorted(NOT_YET))
def test_a_part_that_is_clean_leaves_the_list(part: str) -> None:
    trees = [_tree(path) for path in _MODULES if _part(path) == part]
    assert trees, f"{part} is no part of the package"
    assert any(_bad_starts(tree) or _vague_variables(tree) for tree in trees)


def test_the_checks_find_what_they_look_for() -> None:
    tree = ast.parse('def f(those):\n    "Whether it is so."\n    return [one for one in those]')
    assert _bad_starts(tree) == ["Whether it is so."]
    assert sorted(_vague_variables(tree)) == ["one", "those"]
