"""Our server in Codex's configuration comes and goes, whatever Codex did to the file meanwhile."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory.install.codex import has_foreign_server, with_server, without_server
from loki_memory.install.edits import HASH, with_block

HERE = Path("config.toml")
SERVER = {"command": "loki-mem", "args": ["mcp"]}
TABLE = '[mcp_servers.loki]\ncommand = "loki-mem"\nargs = ["mcp"]\n'
OTHERS = 'model = "o9"  # the good one\n\n# mine\n[mcp_servers.other]\ncommand = "other"\n'
# As Codex leaves it after the folder and the hooks were trusted.
CODEX = '[projects."/work/shop"]\ntrust_level = "trusted"\n\n[tui]\ntheme = "dark"\n'
MARKED = (
    f"# loki-mem:begin\n{TABLE}\n{CODEX}\n# loki-mem:written 40b03e468f2cd3b3\n# loki-mem:end\n"
)
LINES = st.lists(st.sampled_from(["", "# remark", "\t", "#"]), max_size=4)


@given(LINES, st.booleans(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_the_server_comes_and_goes_without_a_trace(
    lines: list[str], others: bool, line: str, ended: bool
) -> None:
    text = (OTHERS * others + "\n".join(lines) + "\n" * ended).replace("\n", line)
    longer = with_server(text, SERVER, HERE)
    assert longer.startswith(text)
    assert tomllib.loads(longer)["mcp_servers"]["loki"] == SERVER
    assert with_server(longer, SERVER, HERE) == longer
    assert (without_server(longer, HERE) or "") == text


@given(LINES, st.booleans(), st.booleans())
def test_a_block_of_an_earlier_version_goes_without_a_trace(
    lines: list[str], others: bool, ended: bool
) -> None:
    text = OTHERS * others + "\n".join(lines) + "\n" * ended
    marked = with_block(text, TABLE, HASH, "config.toml")
    assert (without_server(marked, HERE) or "") == text
    assert with_server(marked, SERVER, HERE) == with_server(text, SERVER, HERE)


def test_tables_that_codex_put_into_our_block_stay() -> None:
    assert without_server(MARKED, HERE) == CODEX
    assert without_server(f"{OTHERS}\n{MARKED}", HERE) == f"{OTHERS}\n{CODEX}"


def test_a_block_that_codex_wrote_into_is_renewed_without_its_marks() -> None:
    assert with_server(MARKED, SERVER, HERE) == f"{TABLE}\n{CODEX}"


def test_what_codex_adds_after_our_table_stays() -> None:
    text = f"{with_server(OTHERS, SERVER, HERE)}\n{CODEX}"
    assert with_server(text, SERVER, HERE) == text
    assert without_server(text, HERE) == f"{OTHERS}\n{CODEX}"


def test_a_server_that_lies_elsewhere_now_is_renewed_in_its_place() -> None:
    text = f"{with_server(OTHERS, {**SERVER, 'command': '/opt/a #1/loki-mem'}, HERE)}\n{CODEX}"
    assert with_server(text, SERVER, HERE) == f"{OTHERS}\n{TABLE}\n{CODEX}"


@pytest.mark.parametrize(
    "table",
    [
        '[mcp_servers.loki]\ncommand = "loki-mem"\nargs = ["mcp", "--tools", "lore"]\n',
        '[mcp_servers.loki]\ncommand = "uvx"\n',
        f"{TABLE}enabled = false\n",
        f'{TABLE}\n[mcp_servers.loki.tools.memory_recall]\napproval_mode = "approve"\n',
        '[mcp_servers]\nloki = {command = "other"}\n',
    ],
)
def test_a_server_that_somebody_changed_stays(table: str) -> None:
    for text in (table, f"# loki-mem:begin\n{table}\n# loki-mem:written 0\n# loki-mem:end\n"):
        assert has_foreign_server(text, HERE)
        assert with_server(text, SERVER, HERE) == text
        assert without_server(text, HERE) == text


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers.loki]\n# why we have it\ncommand = "loki-mem"\nargs = ["mcp"]\n',
        '[mcp_servers.loki]\ncommand = "loki-mem"  # on PATH\nargs = ["mcp"]\n',
        '[mcp_servers]\nloki = {command = "loki-mem", args = ["mcp"]}\n',
    ],
)
def test_a_table_in_another_layout_is_not_cut_apart(text: str) -> None:
    assert has_foreign_server(text, HERE)
    assert with_server(text, SERVER, HERE) == text
    assert without_server(text, HERE) == text


def test_a_table_inside_a_text_is_a_text() -> None:
    text = f"notes = '''\n{TABLE}'''\n"
    assert tomllib.loads(with_server(text, SERVER, HERE))["notes"] == TABLE
    assert without_server(text, HERE) == text
    longer = with_server(text, SERVER, HERE)
    assert without_server(longer, HERE) == text
