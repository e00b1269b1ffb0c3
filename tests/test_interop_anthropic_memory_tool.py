"""The commands of Anthropic's memory tool, on real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.interop.anthropic_memory_tool import MemoryTool


class Model:
    """A model that calls the tool by name."""

    def __init__(self, workspace: Workspace) -> None:
        self.tool = MemoryTool(workspace)

    def __call__(self, command: str, **given: Any) -> str:
        return self.tool({"command": command, **given})


@pytest.fixture
def model(ws: Workspace) -> Model:
    return Model(ws)


@pytest.fixture
def top(ws: Workspace) -> Path:
    return ws.layout.loki / "memories"


def written(model: Model, path: str, text: str) -> None:
    assert model("create", path=path, file_text=text) == f"File created successfully at: {path}"


# -- what is documented ----------------------------------------------------------------------------


def test_an_empty_memory_lists_only_what_the_project_knows(model: Model, ws: Workspace) -> None:
    ws.remember("Contract tests need the database running")
    ws.continuity(goal="Fix the contract tests")
    lines = model("view", path="/memories").splitlines()
    assert lines[0] == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden "
        "items and node_modules:"
    )
    assert [line.split("\t")[1] for line in lines[1:]] == ["/memories", "/memories/project.md"]
    assert "Contract tests need the database" in model("view", path="/memories/project.md")


def test_a_file_is_created_listed_and_viewed(model: Model, top: Path) -> None:
    text = "Hello World\nThis is line two" + " " * 2000 + "\n"
    written(model, "/memories/notes/today.txt", text)
    assert (top / "notes" / "today.txt").read_text() == text
    listed = model("view", path="/memories")
    assert "2.0K\t/memories/notes/\n2.0K\t/memories/notes/today.txt\n" in listed
    assert model("view", path="/memories/notes/today.txt").rstrip() == (
        "Here's the content of /memories/notes/today.txt with line numbers:\n"
        "     1\tHello World\n     2\tThis is line two"
    )


def test_listing_stops_after_two_levels_and_hides_hidden_items(model: Model, top: Path) -> None:
    written(model, "/memories/a/b/c.txt", "deep")
    (top / ".hidden").write_text("x")
    (top / "node_modules").mkdir()
    listed = model("view", path="/memories")
    assert "/memories/a/b/" in listed
    assert "c.txt" not in listed
    assert "hidden\n" not in listed
    assert "/memories/node_modules" not in listed
    assert "c.txt" in model("view", path="/memories/a")


@pytest.mark.parametrize(
    ("lines", "shown"), [([2, 3], ["     2\ttwo", "     3\tthree"]), ([3, -1], ["     3\tthree"])]
)
def test_a_part_of_a_file_is_viewed(model: Model, lines: list[int], shown: list[str]) -> None:
    written(model, "/memories/a.txt", "one\ntwo\nthree\n")
    assert model("view", path="/memories/a.txt", view_range=lines).splitlines()[1:] == shown


@pytest.mark.parametrize("lines", [[0, 1], [3, 2], [1, 9], [9, -1]])
def test_a_range_outside_of_a_file_is_refused(model: Model, lines: list[int]) -> None:
    written(model, "/memories/a.txt", "one\ntwo\nthree\n")
    assert "Invalid `view_range`" in model("view", path="/memories/a.txt", view_range=lines)


def test_a_file_that_is_there_is_not_created_again(model: Model, top: Path) -> None:
    written(model, "/memories/a.txt", "first")
    answer = model("create", path="/memories/a.txt", file_text="second")
    assert answer == "Error: File /memories/a.txt already exists"
    assert (top / "a.txt").read_text() == "first"


def test_a_text_that_occurs_once_is_replaced(model: Model, top: Path) -> None:
    written(model, "/memories/a.txt", "one\nFavourite colour: blue\nthree\n")
    answer = model("str_replace", path="/memories/a.txt", old_str="blue", new_str="green\nand red")
    assert answer.startswith("The memory file has been edited.\n     1\tone\n")
    assert "     3\tand red" in answer
    assert (top / "a.txt").read_text() == "one\nFavourite colour: green\nand red\nthree\n"


def test_a_text_that_is_missing_or_not_alone_is_not_replaced(model: Model, top: Path) -> None:
    written(model, "/memories/a.txt", "aaa\nb\naa\n")
    for old in ("zz", ""):
        answer = model("str_replace", path="/memories/a.txt", old_str=old, new_str="x")
        assert answer == (
            f"No replacement was performed, old_str `{old}` did not appear verbatim in "
            "/memories/a.txt."
        )
    answer = model("str_replace", path="/memories/a.txt", old_str="aa", new_str="x")
    assert "Multiple occurrences of old_str `aa` in lines: 1, 1, 3." in answer
    assert (top / "a.txt").read_text() == "aaa\nb\naa\n"


@pytest.mark.parametrize(
    ("line", "text"), [(0, "new\none\ntwo\n"), (1, "one\nnew\ntwo\n"), (2, "one\ntwo\nnew\n")]
)
def test_text_is_inserted_below_a_line(model: Model, top: Path, line: int, text: str) -> None:
    written(model, "/memories/a.txt", "one\ntwo\n")
    answer = model("insert", path="/memories/a.txt", insert_line=line, insert_text="new\n")
    assert answer == "The file /memories/a.txt has been edited."
    assert (top / "a.txt").read_text() == text


@pytest.mark.parametrize("line", [-1, 3])
def test_a_line_that_is_not_there_is_refused(model: Model, line: int) -> None:
    written(model, "/memories/a.txt", "one\ntwo\n")
    answer = model("insert", path="/memories/a.txt", insert_line=line, insert_text="new")
    assert answer.endswith("It should be within the range of lines of the file: [0, 2]")


def test_files_and_folders_are_renamed_and_deleted(model: Model, top: Path) -> None:
    written(model, "/memories/a/one.txt", "1")
    renamed = model("rename", old_path="/memories/a", new_path="/memories/b/c")
    assert renamed == "Successfully renamed /memories/a to /memories/b/c"
    assert (top / "b" / "c" / "one.txt").read_text() == "1"
    written(model, "/memories/two.txt", "2")
    answer = model("rename", old_path="/memories/two.txt", new_path="/memories/b")
    assert answer == "Error: The destination /memories/b already exists"
    assert model("delete", path="/memories/b") == "Successfully deleted /memories/b"
    assert model("delete", path="/memories/two.txt") == "Successfully deleted /memories/two.txt"
    assert list(top.iterdir()) == []


def test_a_path_that_does_not_exist_is_said_so(model: Model) -> None:
    gone = "/memories/gone.txt"
    asked: dict[str, dict[str, Any]] = {
        "view": {"path": gone},
        "str_replace": {"path": gone, "old_str": "a", "new_str": "b"},
        "insert": {"path": gone, "insert_line": 0, "insert_text": "a"},
        "delete": {"path": gone},
        "rename": {"old_path": gone, "new_path": "/memories/new.txt"},
    }
    for command, given in asked.items():
        assert f"The path {gone} does not exist" in model(command, **given), command


# -- what must not happen --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "memories/a.txt",
        "/memoriesx/a.txt",
        "/memories/../config.toml",
        "/memories/..",
        "/memories/a/../../config.toml",
        "/memories/./a.txt",
        "/memories//a.txt",
        "/memories/.git/config",
        "/memories/a\\..\\b",
        "/memories/a\0b",
        "/memories/a\nb",
        "",
    ],
)
def test_no_path_leads_out_of_the_folder(model: Model, ws: Workspace, path: str) -> None:
    before = sorted(ws.layout.loki.rglob("*"))
    for command, given in {
        "view": {"path": path},
        "create": {"path": path, "file_text": "x"},
        "delete": {"path": path},
        "rename": {"old_path": path, "new_path": "/memories/new.txt"},
    }.items():
        assert "is not a path of plain names" in model(command, **given)
    assert sorted(ws.layout.loki.rglob("*")) == before


def test_links_are_not_followed(model: Model, top: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text("key")
    top.mkdir()
    (top / "link").symlink_to(tmp_path / "secret")
    (top / "file.txt").symlink_to(tmp_path / "secret" / "key.txt")
    for path in ("/memories/link", "/memories/link/key.txt", "/memories/file.txt"):
        assert "symbolic link" in model("view", path=path)
        assert "symbolic link" in model("delete", path=path)
        assert "symbolic link" in model("create", path=path, file_text="x")
    assert "link" not in model("view", path="/memories")
    assert (tmp_path / "secret" / "key.txt").read_text() == "key"


def test_a_folder_that_a_clone_made_a_link_is_not_followed(
    model: Model, top: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    top.symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in model("view", path="/memories")
    assert "symbolic link" in model("create", path="/memories/a.txt", file_text="x")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_secrets_do_not_reach_the_disk(model: Model, top: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    written(model, "/memories/a.txt", f"the token is {secret}\n")
    model("str_replace", path="/memories/a.txt", old_str="the", new_str=f"{secret} the")
    model("insert", path="/memories/a.txt", insert_line=0, insert_text=secret)
    assert secret not in (top / "a.txt").read_text()


@pytest.mark.parametrize("path", ["/memories", "/memories/", "/memories/project.md"])
def test_the_folder_and_what_the_project_knows_cannot_be_changed(model: Model, path: str) -> None:
    assert model("delete", path=path) == f"Error: {path} cannot be changed"
    assert "cannot be changed" in model("rename", old_path=path, new_path="/memories/a")
    assert "cannot be changed" in model("str_replace", path=path, old_str="a", new_str="b")


@pytest.mark.parametrize(
    "command",
    [
        {},
        {"command": "format"},
        {"command": ["view"]},
        {"command": "view"},
        {"command": "view", "path": 5},
        {"command": "view", "path": "/memories", "file": "a"},
        {"command": "view", "path": "/memories/a", "view_range": [1]},
    ],
)
def test_a_command_that_makes_no_sense_is_answered(model: Model, command: dict[str, Any]) -> None:
    assert model.tool(command).startswith("Error: ")


def test_a_file_that_is_too_long_is_refused(model: Model, top: Path) -> None:
    answer = model("create", path="/memories/a.txt", file_text="x" * (1 << 20) + "y")
    assert "would be longer than" in answer
    assert not top.exists()
