"""The documentation says what the program does. UPDATE_DOCS=1 rewrites docs/commands.md."""

from __future__ import annotations

import ast
import doctest
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
from test_transcripts import replay

from loki_memory import errors
from loki_memory.cli.main import ALIASES, COMMANDS, FURTHER, GROUPS, cli
from loki_memory.settings import SETTINGS

TOP = Path(__file__).parent.parent
PACKAGE = TOP / "loki_memory"
PAGE = TOP / "docs" / "commands.md"
CONFIGURATION = (TOP / "docs" / "configuration.md").read_text(encoding="utf-8")


def help_of(*names: str) -> str:
    command: click.Command | None = cli
    context = click.Context(cli, info_name="loki-mem", terminal_width=80, **cli.context_settings)
    for name in names:
        assert isinstance(command, click.Group)
        command = command.get_command(context, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=context, terminal_width=80)
    assert command is not None
    return command.get_help(context)


def page() -> str:
    parts = [
        "# Commands",
        "What `loki-mem … --help` says; a test keeps this page equal to the program.",
        block(),
    ]
    aliases = ", ".join(f"`{alias}` ({name})" for alias, name in ALIASES.items())
    parts.append(f"Other names that work: {aliases}.")
    for group, names in {**GROUPS, **FURTHER}.items():
        parts.append(f"## {group}")
        parts += [block(group)] if group in FURTHER else []
        for name in names:
            parts += [f"### {name}", block(name)]
            command = cli.get_command(click.Context(cli), name)
            if isinstance(command, click.Group):
                parts += [block(name, inner) for inner in command.commands]
    return "\n\n".join(parts) + "\n"


def block(*names: str) -> str:
    called = " ".join(["loki-mem", *names])
    return f"```text\n$ {called} --help\n{help_of(*names)}\n```"


def test_every_help_in_the_docs_is_the_programs() -> None:
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


_CONSOLE = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)
_BETWEEN = "$ # the next block\n"


@pytest.mark.parametrize("name", ["README.md", "docs/quickstart.md"])
def test_a_page_shows_what_the_program_prints(tmp_path: Path, name: str) -> None:
    """All blocks of a page are one session."""
    text = (TOP / name).read_text(encoding="utf-8")
    session = replay(_BETWEEN.join(_CONSOLE.findall(text)), tmp_path)
    printed = iter(session.split(_BETWEEN))
    actual = _CONSOLE.sub(lambda _: next(printed), text)
    if os.environ.get("UPDATE_DOCS"):
        (TOP / name).write_text(actual, encoding="utf-8")
        return
    assert actual == text


def test_the_readme_can_be_read_in_one_sitting() -> None:
    assert len((TOP / "README.md").read_text(encoding="utf-8").splitlines()) < 250


def test_every_help_has_an_example() -> None:
    for name in [*COMMANDS, *FURTHER]:
        assert "Example:" in help_of(name), name


def test_every_setting_is_documented_with_its_default_and_meaning() -> None:
    for setting in SETTINGS:
        start = f"| `{setting.name}` | {setting.default} | "
        own = f"`{setting.variable}` | {setting.meaning} |"
        shared = f"{setting.meaning} | {setting.basis} |"
        assert start + (shared if setting.shared else own) in CONFIGURATION


def test_every_exit_code_is_documented() -> None:
    documented = set(
        re.findall(r"\b(\d+) [a-z]", CONFIGURATION.split("Exit codes:")[1].split("\n\n")[0])
    )
    codes = {str(error.exit_code) for error in vars(errors).values() if is_error(error)}
    assert codes | {"0", "2"} == documented


def is_error(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, errors.LokiMemoryError)


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "AGENTS.md",
        "benchmarks/README.md",
        *(path.relative_to(TOP).as_posix() for path in sorted((TOP / "docs").glob("*.md"))),
    ],
)
def test_every_link_in_a_page_leads_somewhere(name: str) -> None:
    text = (TOP / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((TOP / name).parent / target).exists(), target


def test_the_site_lists_every_page_of_the_docs() -> None:
    site = (TOP / "mkdocs.yml").read_text(encoding="utf-8")
    assert {path.name for path in (TOP / "docs").glob("*.md")} == set(
        re.findall(r"[\w-]+\.md", site)
    )


# -- the tour ------------------------------------------------------------------------------------

TOUR = TOP / "docs" / "tour.md"
_INTRODUCTION = """\
# A tour: two people, two branches

What `loki-mem demo --team` does, with what it prints; a test replays every line of it. Ids of
commits are written `<commit>`.
"""


def tour() -> str:
    """The transcript as a page: a remark begins a section."""
    told = (TOP / "tests" / "transcripts" / "tour.txt").read_text(encoding="utf-8")
    parts = [_INTRODUCTION]
    for section in told.removeprefix("$ # ").split("\n$ # "):
        remark, _, session = section.partition("\n")
        parts.append(f"{remark}\n\n````console\n{session.rstrip()}\n````\n")
    return "\n".join(parts)


def test_the_tour_in_the_docs_is_what_was_replayed() -> None:
    if os.environ.get("UPDATE_DOCS"):
        TOUR.write_text(tour(), encoding="utf-8")
    assert TOUR.read_text(encoding="utf-8") == tour()


def test_the_demo_types_what_the_tour_shows() -> None:
    told = (TOP / "tests" / "transcripts" / "tour.txt").read_text(encoding="utf-8")
    typed = [line.removeprefix("$ ") for line in told.splitlines() if line.startswith("$ ")]
    assert typed == (TOP / "templates" / "tour.txt").read_text(encoding="utf-8").splitlines()


# -- examples and citations ----------------------------------------------------------------------


def has_example(path: Path) -> bool:
    """Whether a module's docstrings show a call that can be run as it stands."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return any(re.match(r" *>>> ", line) and "+SKIP" not in line for line in lines)


EXAMPLES = [path for path in sorted(PACKAGE.rglob("*.py")) if has_example(path)]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(TOP).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("name", [module_name(path) for path in EXAMPLES])
def test_every_example_in_a_docstring_shows_what_the_call_returns(name: str) -> None:
    done = doctest.testmod(import_module(name))
    assert done.attempted > 0
    assert done.failed == 0


def test_no_page_and_no_comment_cites_a_document_that_is_not_here() -> None:
    elsewhere = re.compile("reference" + r"[ \n#]+document|\b(?:DESIGN|STYLE)\b(?!:)")
    folders = ("loki_memory", "docs", "tests", "benchmarks")
    pages = [path for name in folders for path in (TOP / name).rglob("*") if is_prose(path)]
    cited = [str(path) for path in pages if elsewhere.search(path.read_text(encoding="utf-8"))]
    assert cited == [str(Path(__file__))]


def is_prose(path: Path) -> bool:
    return path.suffix in {".py", ".md"}


# -- the pages for contributors ------------------------------------------------------------------

ARCHITECTURE = TOP / "ARCHITECTURE.md"
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md", "docs/glossary.md")
FOLDERS = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
# A part of the package in the table: its name, what it does, and what it imports.
_PART = re.compile(r"^\| `(\w+)(/|\.py)` \| (.+?) \|(.*)\|$", re.MULTILINE)
_NAMED = re.compile(r"`([\w.-]*[\w-]/[\w./-]*|\w+\.(?:py|md))`")


def arrows(architecture: str) -> str:
    """The table of parts with the imports that the code has."""
    parts = {found[1] for found in _PART.finditer(architecture)}

    def row(found: re.Match[str]) -> str:
        name, ending, does = found[1], found[2], found[3]
        told = ", ".join(sorted(imported_by(PACKAGE / f"{name}{ending}") & parts - {name}))
        return f"| `{name}{ending}` | {does} | {told or '-'} |"

    return _PART.sub(row, architecture)


def imported_by(part: Path) -> set[str]:
    """The parts of the package that a part imports, not only for annotations."""
    modules = part.rglob("*.py") if part.is_dir() else [part]
    names = (name for module in modules for name in imports(ast.parse(module.read_bytes())))
    return {name.split(".")[1] for name in names if name.startswith("loki_memory.")}


def imports(node: ast.AST) -> Iterator[str]:
    """Every module that code imports, wherever the import stands."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    for inner in ast.iter_child_nodes(node):
        yield from imports(inner)


def test_the_architecture_names_every_folder_and_what_it_imports() -> None:
    written = ARCHITECTURE.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_DOCS"):
        ARCHITECTURE.write_text(arrows(written), encoding="utf-8")
        return
    assert {found[1] for found in _PART.finditer(written) if found[2] == "/"} == FOLDERS
    assert written == arrows(written)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_folder_that_a_page_names_exists(page: str) -> None:
    text = (TOP / page).read_text(encoding="utf-8")
    beside = [PACKAGE / folder for folder in FOLDERS]
    missing = [
        name
        for name in _NAMED.findall(text)
        if not name.startswith(".loki/")
        and not any((start / name).exists() for start in (TOP, PACKAGE, *beside))
    ]
    assert missing == []


@pytest.mark.parametrize(
    "question",
    [
        "Where does an error become a lesson?",
        "What decides that this line is told to the agent?",
        "How does a commit of memory leave my staged files alone?",
    ],
)
def test_a_question_about_the_code_is_answered_by_one_folder(question: str) -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    answer = text.split(f"**{question}**")[1].split("\n- **")[0].split("\n## ")[0]
    [folder] = re.findall(r"`loki_memory/(\w+)/`", answer)
    assert folder in FOLDERS


def test_every_file_that_the_fast_tests_leave_out_exists() -> None:
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    slow = makefile.split("SLOW := ")[1].split("FAST :=")[0].replace("\\", "").split()
    assert [name for name in slow if not (TOP / "tests" / f"test_{name}.py").exists()] == []
