"""Clients with JSON settings get the MCP server and hooks; what others wrote stays as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from loki_memory import Workspace
from loki_memory.cli.install import install_command, uninstall_command
from loki_memory.errors import InvalidConfig
from loki_memory.hooks.response import EVENTS
from loki_memory.install.edits import InstallOptions, InstallStep
from loki_memory.install.targets import TARGETS

# Where a client keeps its servers: the project's file, the user's (if it has one), the member.
FILES = {
    "copilot": (".github/mcp.json", ".copilot/mcp-config.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json", "mcpServers"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json", "mcpServers"),
    "opencode": ("opencode.json", ".config/opencode/opencode.json", "mcp"),
    "qwen": (".qwen/settings.json", ".qwen/settings.json", "mcpServers"),
    "vscode": (".vscode/mcp.json", "", "servers"),
}
SCOPES = [(name, user) for name in FILES for user in (False, True) if FILES[name][1] or not user]
each_client = pytest.mark.parametrize("name", FILES)
each_scope = pytest.mark.parametrize(("name", "user"), SCOPES)
PLAIN = {"command": "loki-mem", "args": ["mcp"]}


@pytest.fixture(autouse=True)
def _no_client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which no client is: neither by its program nor by a variable."""
    for name in (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "COPILOT_HOME",
        "CURSOR_CONFIG_DIR",
        "GEMINI_CLI_HOME",
        "QWEN_HOME",
        "XDG_CONFIG_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    program(tmp_path, "loki-mem")


def program(tmp_path: Path, name: str) -> None:
    path = tmp_path / "bin" / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def tree(*folders: Path) -> dict[str, bytes]:
    """Every file that does not belong to memory."""
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".loki" not in path.relative_to(folder).parts
    }


def install(ws: Workspace, name: str, **options: Any) -> list[InstallStep]:
    return TARGETS[name].install(ws, InstallOptions(**options))


def uninstall(ws: Workspace, name: str, **options: Any) -> list[InstallStep]:
    return TARGETS[name].uninstall(ws, InstallOptions(**options))


def settings_of(project: Path, name: str, *, user: bool) -> Path:
    return Path.home() / FILES[name][1] if user else project / FILES[name][0]


def entry(project: Path, name: str, *, user: bool = False) -> Any:
    found = json.loads(settings_of(project, name, user=user).read_text())
    return found[FILES[name][2]]["loki"]


def run(command: Any, project: Path, *arguments: str) -> Result:
    given = {"directory": str(project), "json": False}
    return CliRunner().invoke(command, list(arguments), obj=given)


# -- what every client has in common --------------------------------------------------------------


@each_scope
def test_uninstalling_leaves_no_trace(ws: Workspace, project: Path, name: str, user: bool) -> None:
    before = tree(project, Path.home())
    assert all(step.did for step in install(ws, name, user=user))
    assert settings_of(project, name, user=user).exists()
    assert all(step.did for step in uninstall(ws, name, user=user))
    assert tree(project, Path.home()) == before
    assert sorted(path.name for path in project.iterdir()) == [".loki"]
    assert not any(step.did for step in uninstall(ws, name, user=user))


@each_scope
def test_what_others_wrote_stays_byte_for_byte(
    ws: Workspace, project: Path, name: str, user: bool
) -> None:
    path = settings_of(project, name, user=user)
    path.parent.mkdir(parents=True, exist_ok=True)
    member = FILES[name][2]
    before = f'{{"theme":  "dark",\n\t"{member}": {{ "other": {{"command": "x"}} }}\n}}'
    path.write_text(before)
    install(ws, name, user=user)
    found = json.loads(path.read_text())
    assert (found["theme"], found[member]["other"]) == ("dark", {"command": "x"})
    assert "loki" in found[member]
    uninstall(ws, name, user=user)
    assert path.read_text() == before


@each_client
def test_installing_again_changes_nothing(ws: Workspace, project: Path, name: str) -> None:
    install(ws, name)
    before = tree(project, Path.home())
    assert not any(step.did for step in install(ws, name))
    assert tree(project, Path.home()) == before


@each_client
def test_a_plan_shows_the_diff_and_writes_nothing(ws: Workspace, project: Path, name: str) -> None:
    before = tree(project, Path.home())
    step, *_ = install(ws, name, plan_only=True)
    assert tree(project, Path.home()) == before
    assert step.did
    assert '"loki"' in step.diff


@each_client
def test_another_server_of_our_name_is_kept_and_named(
    ws: Workspace, project: Path, name: str
) -> None:
    path = settings_of(project, name, user=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({FILES[name][2]: {"loki": {"command": "other-server"}}})
    path.write_text(text)
    step, *_ = install(ws, name, user=False)
    assert step.what.startswith("kept: another server has the name loki")
    assert entry(project, name) == {"command": "other-server"}
    step, *_ = uninstall(ws, name, user=False)
    assert step.what == "kept: the server loki was changed by hand"
    assert path.read_text() == text


@each_client
def test_settings_that_are_no_json_are_named_and_left_alone(
    ws: Workspace, project: Path, name: str
) -> None:
    path = settings_of(project, name, user=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{\n  // a comment\n  "theme": "dark"\n}')
    before = path.read_bytes()
    with pytest.raises(InvalidConfig, match=r":2:3: is not valid JSON"):
        install(ws, name, user=False)
    assert path.read_bytes() == before


# -- the shape that each client documents ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("copilot", {"type": "local", **PLAIN, "tools": ["*"]}),
        ("cursor", PLAIN),
        ("gemini", PLAIN),
        ("opencode", {"type": "local", "command": ["loki-mem", "mcp"], "enabled": True}),
        ("qwen", PLAIN),
        ("vscode", {"type": "stdio", **PLAIN}),
    ],
)
def test_the_server_has_the_shape_that_the_client_documents(
    ws: Workspace, project: Path, name: str, wanted: dict[str, Any]
) -> None:
    install(ws, name, user=False)
    assert entry(project, name) == wanted


def test_a_server_that_somebody_switched_off_is_theirs(ws: Workspace, project: Path) -> None:
    install(ws, "opencode")
    path = project / "opencode.json"
    text = path.read_text().replace("true", "false")
    path.write_text(text)
    (step,) = install(ws, "opencode")
    assert (step.did, path.read_text()) == (False, text)
    (step,) = uninstall(ws, "opencode")
    assert (step.what, step.did) == ("kept: the server loki was changed by hand", False)


@pytest.mark.parametrize(("name", "unit"), [("gemini", 1000), ("qwen", 1)])
def test_hooks_run_events_that_memory_answers(
    ws: Workspace, project: Path, name: str, unit: int
) -> None:
    install(ws, name)
    hooks = json.loads(settings_of(project, name, user=False).read_text())["hooks"]
    handlers = {event: group["hooks"][0] for event, (group,) in hooks.items()}
    assert {handler["command"].split()[-1] for handler in handlers.values()} <= EVENTS.keys()
    assert handlers["SessionStart"]["timeout"] == 15 * unit
    assert not any("async" in handler for handler in handlers.values())


def test_gemini_tells_prompts_by_its_own_event(ws: Workspace, project: Path) -> None:
    install(ws, "gemini")
    hooks = json.loads((project / ".gemini/settings.json").read_text())["hooks"]
    assert sorted(hooks) == ["AfterTool", "BeforeAgent", "SessionEnd", "SessionStart"]
    assert hooks["AfterTool"][0]["matcher"] == "run_shell_command"
    (group,) = hooks["BeforeAgent"]
    assert group["hooks"][0]["command"].endswith("exec loki-mem hook UserPromptSubmit")


def test_hooks_of_others_stay_beside_ours(ws: Workspace, project: Path) -> None:
    path = project / ".qwen/settings.json"
    path.parent.mkdir()
    theirs = {"hooks": [{"type": "command", "command": "say done"}]}
    before = json.dumps({"hooks": {"SessionEnd": [theirs], "Stop": []}}, indent=2)
    path.write_text(before)
    install(ws, "qwen")
    hooks = json.loads(path.read_text())["hooks"]
    assert hooks["SessionEnd"][0] == theirs
    assert len(hooks["SessionEnd"]) == len(["theirs", "ours"])
    uninstall(ws, "qwen")
    assert path.read_text() == before


def test_copilot_gets_hooks_in_a_file_of_their_own(ws: Workspace, project: Path) -> None:
    install(ws, "copilot", user=False)
    hooks = json.loads((project / ".github/hooks/loki-memory.json").read_text())["hooks"]
    assert hooks.keys() <= EVENTS.keys()
    for event, (handler,) in hooks.items():
        assert handler["bash"].endswith(f"exec loki-mem hook {event}")
        assert handler["env"] == {"LOKI_CLIENT": "copilot"}


def test_a_hooks_file_that_somebody_changed_is_kept(ws: Workspace, project: Path) -> None:
    install(ws, "copilot", user=False)
    path = project / ".github/hooks/loki-memory.json"
    text = path.read_text().replace("exec loki-mem hook Stop", "say done")
    path.write_text(text)
    for steps in (install(ws, "copilot", user=False), uninstall(ws, "copilot", user=False)):
        assert steps[1].what == "kept, for it was changed by hand"
        assert path.read_text() == text


@pytest.mark.parametrize("name", ["cursor", "vscode"])
def test_a_client_that_was_not_tried_is_called_unverified(
    project: Path, ws: Workspace, name: str
) -> None:
    install(ws, name)
    assert any("is unverified" in notice for notice in ws.notices)


# -- all of them ----------------------------------------------------------------------------------


def test_all_installs_into_what_is_there_and_nothing_else(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    (Path.home() / ".gemini").mkdir()
    program(tmp_path, "opencode")
    before = tree(project, Path.home())
    install(ws, "all")
    new = sorted(set(tree(project, Path.home())) - set(before))
    assert new == [f"{project}/.gemini/settings.json", f"{project}/opencode.json"]
    assert "found: gemini, opencode" in ws.notices
    assert len(uninstall(ws, "all")) == len(new)
    assert tree(project, Path.home()) == before


def test_all_says_that_nothing_is_there(ws: Workspace, project: Path) -> None:
    before = tree(project, Path.home())
    assert install(ws, "all") == []
    assert ws.notices == ["no agent was found that `install` knows"]
    assert tree(project, Path.home()) == before


def test_all_writes_nothing_if_one_of_the_settings_cannot_be_read(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    program(tmp_path, "gemini")
    program(tmp_path, "qwen")
    (project / ".qwen").mkdir()
    (project / ".qwen/settings.json").write_text("{")
    before = tree(project, Path.home())
    with pytest.raises(InvalidConfig):
        install(ws, "all")
    assert tree(project, Path.home()) == before


def test_all_for_the_user_leaves_the_project_alone(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    for name in ("code", "cursor-agent", "qwen"):
        program(tmp_path, name)
    before = tree(project)
    install(ws, "all", user=True)
    assert tree(project) == before
    assert (Path.home() / ".cursor/mcp.json").exists()
    assert (Path.home() / ".qwen/settings.json").exists()


def test_the_command_shows_a_plan_of_all_and_says_what_it_found(
    ws: Workspace, project: Path
) -> None:
    (Path.home() / ".copilot").mkdir()
    (Path.home() / ".cursor").mkdir()
    said = run(install_command, project, "all", "--plan")
    assert said.exit_code == 0
    assert "would do  ~/.copilot/mcp-config.json: MCP server" in said.output
    assert "would do  .cursor/mcp.json: MCP server" in said.output
    assert "note: found: copilot, cursor" in said.output
    assert "note: Cursor is unverified" in said.output
    assert not (project / ".cursor").exists()
    assert run(uninstall_command, project, "all").output == ""


@pytest.mark.parametrize(
    ("name", "variable", "place"),
    [
        ("copilot", "COPILOT_HOME", "mcp-config.json"),
        ("cursor", "CURSOR_CONFIG_DIR", "mcp.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("qwen", "QWEN_HOME", "settings.json"),
    ],
)
def test_a_folder_that_the_user_chose_is_honoured(
    ws: Workspace,
    tmp_path: Path,
    name: str,
    variable: str,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "chosen"))
    install(ws, name, user=True)
    assert (tmp_path / "chosen" / place).exists()
