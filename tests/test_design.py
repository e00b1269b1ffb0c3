"""The shape of the package: who may import whom, what is read, and what a command pays for."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import loki_memory
from loki_memory import Workspace
from loki_memory.config import Setting
from loki_memory.home import Home
from loki_memory.settings import SETTINGS

TOP = Path(__file__).parent.parent
PACKAGE = TOP / "loki_memory"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Part (a folder, or a module at the top) -> the parts that it may import, deferred imports counted;
# a part may always import itself. Surfaces see the workspace, models and errors.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "resources": {"errors"},
    "config": {"errors"},
    "settings": {"config"},
    "config_file": {"config", "errors", "settings"},
    "git_repository": {"errors"},
    "models": {"errors"},
    "files": {"errors", "models"},
    "integrity": {"errors", "files", "git_repository", "index", "models", "sync"},
    "index": {"errors", "files", "models"},
    "embedding": {"errors"},
    "language": {"errors", "files", "models", "resources"},
    "sync": {"errors", "files", "index", "models"},
    "journal": {"errors", "files"},
    "home": {
        "config",
        "config_file",
        "embedding",
        "errors",
        "files",
        "git_repository",
        "index",
        "integrity",
        "journal",
        "models",
        "recall",
        "resources",
        "sync",
    },
    "homes": {"errors", "files", "home", "index", "models"},
    "recall": {"embedding", "errors", "files", "home", "index", "integrity", "journal", "models"},
    "injection": {
        "errors",
        "files",
        "home",
        "index",
        "integrity",
        "journal",
        "language",
        "models",
        "recall",
    },
    "team": {
        "errors",
        "files",
        "git_repository",
        "home",
        "index",
        "injection",
        "integrity",
        "models",
        "recall",
    },
    "continuity": {
        "editing",
        "errors",
        "files",
        "home",
        "index",
        "injection",
        "models",
        "recall",
        "resources",
        "team",
    },
    "editing": {"errors", "files", "home", "index", "models"},
    "history": {
        "continuity",
        "editing",
        "errors",
        "files",
        "git_repository",
        "home",
        "index",
        "integrity",
        "models",
        "recall",
        "resources",
        "sync",
        "team",
    },
    "consolidation": {
        "editing",
        "embedding",
        "errors",
        "files",
        "home",
        "index",
        "integrity",
        "journal",
        "language",
        "models",
        "team",
    },
    "ingest": {"consolidation", "errors", "files", "git_repository", "home", "index", "models"},
    "interop": {
        "consolidation",
        "continuity",
        "editing",
        "errors",
        "files",
        "history",
        "home",
        "index",
        "ingest",
        "injection",
        "install",
        "integrity",
        "models",
        "recall",
        "seed",
    },
    "browse": {
        "consolidation",
        "continuity",
        "embedding",
        "editing",
        "errors",
        "files",
        "history",
        "home",
        "index",
        "ingest",
        "injection",
        "integrity",
        "interop",
        "language",
        "models",
        "recall",
        "remote",
        "seed",
        "sync",
    },
    "seed": {
        "editing",
        "errors",
        "files",
        "git_repository",
        "index",
        "ingest",
        "install",
        "models",
    },
    "install": {"errors", "files", "git_repository", "models", "resources"},
    "schema": {
        "browse",
        "cli",
        "consolidation",
        "daemon",
        "editing",
        "errors",
        "files",
        "history",
        "ingest",
        "injection",
        "integrity",
        "interop",
        "journal",
        "models",
        "seed",
        "remote",
        "server",
        "ui",
    },
    "workspace": {
        "browse",
        "config",
        "consolidation",
        "continuity",
        "editing",
        "errors",
        "files",
        "history",
        "home",
        "homes",
        "index",
        "ingest",
        "injection",
        "install",
        "integrity",
        "interop",
        "journal",
        "models",
        "recall",
        "resources",
        "sync",
        "team",
    },
    "mcp": {"config", "errors", "models", "resources", "ui", "workspace"},
    "hooks": {"config", "daemon", "errors", "models", "remote", "resources", "workspace"},
    "daemon": {"config", "errors", "files", "models", "resources", "workspace"},
    "ui": {"config", "errors", "models", "resources", "workspace"},
    "server": {
        "consolidation",
        "embedding",
        "errors",
        "files",
        "git_repository",
        "history",
        "journal",
        "mcp",
        "models",
        "resources",
        "sync",
        "ui",
        "workspace",
    },
    "remote": {
        "errors",
        "files",
        "history",
        "home",
        "homes",
        "index",
        "injection",
        "models",
        "recall",
    },
    "cli": {
        "config",
        "daemon",
        "errors",
        "hooks",
        "install",
        "mcp",
        "models",
        "remote",
        "resources",
        "server",
        "ui",
        "workspace",
    },
    "__main__": {"cli"},
    "__init__": {"errors", "models", "workspace"},
}
SURFACES = {"cli", "daemon", "hooks", "mcp"}
# Modules with the faces of a workspace, and what belongs to them without one; surfaces see these.
FACES = {
    f"loki_memory.{part}"
    for part in ("browse", "history", "ingest", "injection", "interop", "team")
}
# Imports against that table which are still there. The list may only get shorter.
NOT_YET: dict[str, set[str]] = {
    "files": {"integrity"},
    "home": {"history"},
    "injection": {"ingest"},
    "team": {"continuity", "ingest"},
}
# Parts that are imported for annotations only, besides Workspace, Home and Homes.
FOR_TYPES: dict[str, set[str]] = {
    "browse": {"journal"},
    "cli": {
        "browse",
        "consolidation",
        "editing",
        "history",
        "index",
        "ingest",
        "injection",
        "integrity",
        "interop",
        "journal",
        "language",
        "recall",
        "seed",
        "sync",
        "team",
    },
    "consolidation": {"config"},
    "daemon": {"consolidation", "ingest"},
    "git_repository": {"config", "files"},
    "homes": {"config", "sync"},
    "hooks": {"ingest"},
    "language": {"config"},
    "mcp": {"browse", "history", "injection", "recall"},
    "ui": {"browse", "files", "integrity", "interop", "journal", "recall"},
}
FACE = 40  # public names of a workspace, sub-faces and parts among them; may only get smaller
HEAVY = {
    "git",
    "jinja2",
    "mcp",
    "model2vec",
    "numpy",
    "scipy",
    "sklearn",
    "starlette",
    "uvicorn",
    "watchdog",
}


class Import(NamedTuple):
    """One import of the package's own modules, wherever in a module it stands."""

    module: str
    name: str
    line: int
    for_types: bool


def part_of(module: str) -> str:
    """`loki_memory.files.codec` -> `files`; `loki_memory.home` -> `home`."""
    return (*module.split("."), "__init__")[1]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(TOP).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[Import]:
    """Every import of ours, deferred ones too."""
    syntax = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        id(inner)
        for node in ast.walk(syntax)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(syntax):
        for name in imported(node):
            if name.split(".")[0] == "loki_memory":
                yield Import(module_name(path), name, node.lineno, id(node) in guarded)  # type: ignore[attr-defined]


def imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        for alias in node.names:  # `from loki_memory.files import views` imports a module
            inner = f"{node.module}.{alias.name}"
            is_module = (TOP / (inner.replace(".", "/") + ".py")).exists()
            yield (
                inner if is_module or (TOP / inner.replace(".", "/")).is_dir() else str(node.module)
            )


ALL_IMPORTS = [found for path in MODULES for found in imports(path)]


def test_the_walk_sees_deferred_imports_and_imports_for_types() -> None:
    assert any(i.for_types for i in ALL_IMPORTS)
    deferred = [i for i in ALL_IMPORTS if i.module == "loki_memory" and not i.for_types]
    assert "loki_memory.workspace" in {i.name for i in deferred}
    assert len(ALL_IMPORTS) > 100


def arrows(*, for_types: bool) -> dict[str, set[str]]:
    """Which part imports which others, beyond what it may."""
    found: dict[str, set[str]] = {}
    for i in ALL_IMPORTS:
        part, other = part_of(i.module), part_of(i.name)
        if part in SURFACES and i.name in FACES:
            continue
        if i.for_types == for_types and other not in {part, "__init__", *MAY_IMPORT[part]}:
            found.setdefault(part, set()).add(other)
    return found


def test_a_part_imports_only_what_the_design_allows() -> None:
    assert arrows(for_types=False) == NOT_YET


def test_imports_for_types_that_point_elsewhere_are_listed() -> None:
    found = {
        part: others - {"workspace", "home", "homes"} - NOT_YET.get(part, set())
        for part, others in arrows(for_types=True).items()
    }
    assert {part: others for part, others in found.items() if others} == FOR_TYPES


SQL = re.compile(
    r"\b(?:SELECT\b.+\bFROM|INSERT (?:OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM)\b", re.DOTALL
)
# Modules outside index/ that still hold SQL, and how many statements; it may only get shorter.
SQL_NOT_YET: dict[str, int] = {}
# SQL over a database of another program, which is not our index.
SQL_OF_OTHERS = {
    "ingest.opencode": 6,
    "interop.sources.databases": 2,
}


def sql_statements(path: Path) -> list[str]:
    """The texts in a module that are SQL; docstrings are not."""
    syntax = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(syntax))
    left_out = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    left_out |= {id(part) for n in nodes if isinstance(n, ast.JoinedStr) for part in n.values}
    texts = [
        ast.unparse(node)
        for node in nodes
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in left_out
    ]
    return [text for text in texts if SQL.search(text)]


def test_sql_lives_in_the_index() -> None:
    found = {
        module_name(path).removeprefix("loki_memory."): len(sql_statements(path))
        for path in MODULES
        if path.parent.name not in {"index", "server"}  # SQLite's here, PostgreSQL's there
    }
    assert {module: number for module, number in found.items() if number} == (
        SQL_NOT_YET | SQL_OF_OTHERS
    )
    assert sql_statements(PACKAGE / "index" / "queries.py")


def test_no_two_modules_import_each_other() -> None:
    """Imports inside functions count, those for annotations do not."""
    below = {module_name(path): set[str]() for path in MODULES}
    for found in ALL_IMPORTS:
        if not found.for_types and found.name in below:
            below[found.module].add(found.name)
    for module, imported_here in below.items():
        assert module not in imported_here, module
        assert module not in reached(below, imported_here), module


def reached(below: dict[str, set[str]], start: set[str]) -> set[str]:
    """All that a set of modules imports, directly or not."""
    found, waiting = set[str](), list(start)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += below[module]
    return found


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module_name(path))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_public_functions_are_named_by_what_they_do() -> None:
    vague = {"told", "said", "found", "seen", "known", "asked", "those", "one"}
    named = [
        f"{module_name(path)}.{node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower() in vague
    ]
    assert named == []


def test_every_part_of_the_table_exists() -> None:
    assert {part_of(module_name(path)) for path in MODULES} == set(MAY_IMPORT)


def test_models_know_neither_the_disk_nor_the_clock_nor_a_database() -> None:
    forbidden = {"os", "pathlib", "sqlite3", "time", "tempfile", "shutil", "subprocess", "random"}
    for path in sorted((PACKAGE / "models").glob("*.py")):
        syntax = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            name.split(".")[0]
            for node in ast.walk(syntax)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in (
                [a.name for a in node.names] if isinstance(node, ast.Import) else [str(node.module)]
            )
        }
        assert not names & forbidden, path
        assert ".now(" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_no_module_catches_everything(path: Path) -> None:
    """`except Exception` hides the error that nobody thought of; `BaseException` only to clean
    up and raise again.
    """
    syntax = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(syntax):
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = ast.unparse(node.type) if node.type else "everything"
        assert "everything" not in caught, node.lineno
        assert not re.search(r"(?<!Base)\bException\b", caught), node.lineno
        if "BaseException" in caught:
            assert any(isinstance(inner, ast.Raise) for inner in ast.walk(node)), node.lineno


# -- settings ------------------------------------------------------------------------------------


def _settings_read(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return re.findall(r'config\.(?:get|text)\(\s*"([^"]+)"', text)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_is_read_somewhere(setting: Setting) -> None:
    readers = [
        path
        for path in MODULES
        if path != PACKAGE / "settings.py"
        and re.search(
            rf'config\.(?:get|text)\(\s*"{re.escape(setting.name)}"',
            path.read_text(encoding="utf-8"),
        )
    ]
    assert readers


def test_no_setting_is_read_that_does_not_exist() -> None:
    read = {
        name
        for path in MODULES
        for name in re.findall(
            r'config\.(?:get|text)\(\s*"([^"]+)"', path.read_text(encoding="utf-8")
        )
    }
    assert read == {setting.name for setting in SETTINGS}


# -- what a command pays for ---------------------------------------------------------------------


def loaded_by(code: str, root: Path) -> set[str]:
    """The top-level modules that are loaded after running a piece of code in a fresh Python."""
    told = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(TOP), "PROJECT": str(root)}
    command = [sys.executable, "-c", told]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return {name.split(".")[0] for name in json.loads(done.stdout)}


STATUS = """\
import os
import loki_memory
with loki_memory.Workspace.open(os.environ["PROJECT"]) as ws:
    ws.status()
"""
LEARN = STATUS.replace(
    "ws.status()",
    "error = {'type': 'E', 'message': \"No module named 'a'\", 'resolution': 'install it'}\n"
    "    ws.record({'goal': 'Do A', 'errors_encountered': [error]})\n"
    "    ws.sync()\n"
    "    assert ws.list(kind='anti-pattern')",
)
RECALL = STATUS.replace("ws.status()", "ws.recall('what is known about A?')")
LIST = STATUS.replace("ws.status()", "ws.list(); ws.remember('B'); ws.sync()")


def test_a_status_loads_nothing_heavy(ws: Workspace, project: Path) -> None:
    ws.remember("A")
    assert not loaded_by(STATUS, project) & HEAVY


def test_reading_and_writing_load_nothing_heavy(ws: Workspace, project: Path) -> None:
    ws.remember("A")
    assert not loaded_by(LIST, project) & HEAVY


def test_a_status_does_not_load_pydantic_when_nothing_changed(ws: Workspace, project: Path) -> None:
    ws.remember("A")
    ws.sync()
    ws.close()
    assert "pydantic" in loaded_by(LIST, project)
    loaded_by(STATUS, project)  # what was written a moment ago is looked at once more
    assert "pydantic" not in loaded_by(STATUS, project)


def test_a_recall_loads_numpy_and_nothing_else_that_takes_long(
    ws: Workspace, project: Path
) -> None:
    ws.remember("A is known")
    ws.recall("A")
    ws.close()
    for _ in range(2):  # what was written a moment ago is looked at once more
        loaded = loaded_by(RECALL, project)
    assert "numpy" in loaded
    assert not loaded & (HEAVY - {"numpy"} | {"pydantic", "orjson", "tomllib", "yaml"})


def test_learning_from_a_recorded_episode_loads_nothing_heavy(ws: Workspace, project: Path) -> None:
    ws.close()
    loaded = loaded_by(LEARN, project)
    assert "loki_memory" in loaded
    assert not loaded & HEAVY


def test_scikit_learn_is_imported_where_it_works_and_only_when_it_does() -> None:
    found = {
        (module_name(path), node in syntax.body)
        for path in MODULES
        for syntax in [ast.parse(path.read_text(encoding="utf-8"))]
        for node in ast.walk(syntax)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (getattr(node, "module", None) or "", *(one.name for one in node.names))
        if name.split(".")[0] in {"scipy", "sklearn"}
    }
    assert found == {
        ("loki_memory.browse.layout", False),
        ("loki_memory.consolidation.clustering", False),
    }


def test_the_package_by_itself_loads_next_to_nothing(project: Path) -> None:
    loaded = loaded_by("import loki_memory", project)
    assert not loaded & (HEAVY | {"pydantic", "orjson", "yaml", "click", "sqlite3", "tomllib"})


def test_everything_that_the_package_promises_is_there() -> None:
    for name in loki_memory.__all__:
        assert getattr(loki_memory, name).__name__ == name
    assert set(loki_memory.__all__) <= set(dir(loki_memory))
    with pytest.raises(AttributeError):
        _ = loki_memory.Nonsense


def test_the_face_of_a_workspace_is_small_and_has_no_name_of_its_home() -> None:
    names = {name for name in vars(Workspace) if not name.startswith("_")}
    assert len(names) <= FACE
    assert not issubclass(Workspace, Home)
