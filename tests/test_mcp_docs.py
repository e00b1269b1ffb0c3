"""What is published about the server is what it has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from loki_memory import __version__
from loki_memory.cli.serve import TOOL_SETS
from loki_memory.mcp.server import RESOURCES, tools_of

TOP = Path(__file__).parent.parent
PAGE = (TOP / "docs" / "mcp.md").read_text(encoding="utf-8")


def named(text: str) -> list[str]:
    return re.findall(r"`([a-z_]+)`", text)


def test_the_page_lists_the_core_tools_and_what_they_change() -> None:
    rows = re.findall(r"^\| `(memory_\w+|handoff_\w+)` \|.*\| (no|adds) \|$", PAGE, re.MULTILINE)
    found = [
        (tool.name, "no" if tool.annotations().read_only_hint else "adds")
        for tool in tools_of("core")
    ]
    assert rows == found


@pytest.mark.parametrize("tool_set", TOOL_SETS[1:])
def test_the_page_lists_the_tools_of_other_systems(tool_set: str) -> None:
    [row] = re.findall(rf"^\| `{tool_set}` \| (.+) \|$", PAGE, re.MULTILINE)
    assert named(row) == [tool.name for tool in tools_of(tool_set)]


def test_the_page_names_every_tool_that_removes() -> None:
    every = [tool for tool_set in TOOL_SETS for tool in tools_of(tool_set)]
    removing = {tool.name for tool in every if tool.annotations().destructive_hint}
    [sentence] = re.findall(r"^`.+ are the tools that remove", PAGE, re.MULTILINE)
    assert set(named(sentence)) == removing


def test_the_page_lists_every_resource() -> None:
    listed = re.findall(r"^\| `((?:loki|ui)://[^`]+)` \|", PAGE, re.MULTILINE)
    assert listed == [*(one.address for one in RESOURCES), "loki://memory/{id}"]


def test_the_registry_entry_is_of_this_version_and_starts_the_server() -> None:
    entry = json.loads((TOP / "server.json").read_text(encoding="utf-8"))
    [package] = entry["packages"]
    assert entry["version"] == package["version"] == __version__
    assert len(entry["description"]) <= 100
    assert package["packageArguments"] == [{"type": "positional", "value": "mcp"}]
    assert package["transport"] == {"type": "stdio"}
