"""Agents get our hooks, server, commands and skill; what others wrote stays, byte for byte."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from loki_memory import Workspace
from loki_memory.cli.install import install_command, uninstall_command
from loki_memory.cli.maintain import doctor_command
from loki_memory.errors import FileChanged, InvalidConfig, StoreFailed, SymlinkedRoot
from loki_memory.install import edits
from loki_memory.install.agents_md import lesson
from loki_memory.install.edits import InstallOptions
from loki_memory.install.targets import TARGETS
from loki_memory.mcp.server import tools_of
from loki_memory.resources import resource

AGENTS = ["claude-code", "codex", "agents-md"]
SETTINGS = """\
{
\t"permissions": {"allow": ["Bash(npm test:*)",   "Read"]},
\t"hooks": {
\t\t"Stop": [ {"matcher": "", "hooks": [{"type": "command", "command": "say done"}]} ],
\t\t"Notification": []
\t},
\t"model": "opus"
}"""
TOML = 'model = "o9"  # the good one\n\n[mcp_servers.other]\ncommand = "other"\n'


@pytest.fixture(autouse=True)
def _agents_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)


def tree(*folders: Path) -> dict[str, bytes]:
    """Every file that does not belong to memory."""
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".loki" not in path.relative_to(folder).parts
    }


def install(ws: Workspace, name: str, **wish: Any) -> list[edits.InstallStep]:
    return TARGETS[name].install(ws, InstallOptions(**wish))


def uninstall(ws: Workspace, name: str, **wish: Any) -> list[edits.InstallStep]:
    return TARGETS[name].uninstall(ws, InstallOptions(**wish))


def step(steps: list[edits.InstallStep], name: str) -> edits.InstallStep:
    (found,) = [step for step in steps if step.where.endswith(name)]
    return found


def hooks_in(path: Path) -> dict[str, list[dict[str, Any]]]:
    hooks: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())["hooks"]
    return hooks


# -- what every agent has in common --------------------------------------------------------------


@pytest.mark.parametrize("user", [False, True])
@pytest.mark.parametrize("name", AGENTS)
def test_uninstalling_leaves_no_trace(ws: Workspace, project: Path, name: str, user: bool) -> None:
    (project / "AGENTS.md").write_text("# Rules\n\nBe kind.")
    before = tree(project, Path.home())
    assert any(deed.did for deed in install(ws, name, user=user))
    assert tree(project, Path.home()) != before
    assert all(deed.did for deed in uninstall(ws, name, user=user))
    assert tree(project, Path.home()) == before
    assert sorted(path.name for path in project.iterdir()) == [".loki", "AGENTS.md"]
    assert not any(deed.did for deed in uninstall(ws, name, user=user))


@pytest.mark.parametrize("name", AGENTS)
def test_installing_again_changes_nothing(ws: Workspace, project: Path, name: str) -> None:
    install(ws, name)
    before = tree(project, Path.home())
    assert not any(deed.did for deed in install(ws, name))
    assert tree(project, Path.home()) == before


@pytest.mark.parametrize("name", AGENTS)
def test_a_plan_shows_the_diff_and_writes_nothing(ws: Workspace, project: Path, name: str) -> None:
    before = tree(project, Path.home())
    planned = install(ws, name, plan_only=True)
    assert tree(project, Path.home()) == before
    assert all(deed.did and "+++ " in deed.diff for deed in planned)
    assert [deed[:3] for deed in planned] == [deed[:3] for deed in install(ws, name)]


# -- Claude Code ---------------------------------------------------------------------------------


def test_hooks_join_those_that_are_there(ws: Workspace, project: Path) -> None:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(SETTINGS)
    install(ws, "claude-code")
    hooks = hooks_in(path)
    assert hooks["Stop"][0]["hooks"][0]["command"] == "say done"
    assert hooks["Stop"][1]["hooks"][0]["command"].endswith("; exec loki-mem hook Stop")
    shipped = json.loads((resource("plugin") / "hooks" / "hooks.json").read_text())["hooks"]
    assert {event: groups[-1] for event, groups in hooks.items() if event in shipped} == {
        event: groups[0] for event, groups in shipped.items()
    }
    lines = path.read_text().splitlines()
    assert [line for line in SETTINGS.splitlines() if line not in lines] == [
        '\t\t"Stop": [ {"matcher": "", "hooks": [{"type": "command", "command": "say done"}]} ],',
        '\t\t"Notification": []',  # a comma follows
    ]
    uninstall(ws, "claude-code")
    assert path.read_text() == SETTINGS


@pytest.mark.parametrize(
    "older",
    [
        "loki-mem hook Stop",
        "/opt/venv/bin/loki-mem hook Stop",
        "'/opt/my venv/loki-mem' hook Stop",
        "command -v /opt/loki-mem >/dev/null 2>&1 || exit 0; exec /opt/loki-mem hook Stop",
    ],
)
def test_an_older_hook_of_ours_is_replaced(ws: Workspace, project: Path, older: str) -> None:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    old = {"type": "command", "command": older, "timeout": 9}
    theirs = {"type": "command", "command": "echo loki-mem hook Stop"}
    path.write_text(json.dumps({"hooks": {"Stop": [{"matcher": "*", "hooks": [theirs, old]}]}}))
    install(ws, "claude-code")
    stop = hooks_in(path)["Stop"]
    assert stop[0] == {"matcher": "*", "hooks": [theirs]}
    (new,) = stop[1]["hooks"]
    assert new["command"] == (
        "command -v loki-mem >/dev/null 2>&1 || exit 0; exec loki-mem hook Stop"
    )
    path.write_text(json.dumps({"hooks": {"Stop": [{"matcher": "*", "hooks": [theirs, old]}]}}))
    uninstall(ws, "claude-code")
    assert hooks_in(path) == {"Stop": [{"matcher": "*", "hooks": [theirs]}]}


def older_settings(theirs: dict[str, Any]) -> dict[str, Any]:
    """Hooks as an older version wrote them, among those of somebody else."""
    ours = {"type": "command", "command": "loki-mem hook PostCompact", "timeout": 10}
    removal = {"type": "command", "command": "loki-mem hook WorktreeRemove", "timeout": 30}
    return {
        "hooks": {
            "PostCompact": [{"hooks": [theirs]}, {"hooks": [ours]}],
            "WorktreeRemove": [{"hooks": [removal]}],
        }
    }


@pytest.mark.parametrize(
    ("name", "file"), [("claude-code", ".claude/settings.json"), ("codex", ".codex/hooks.json")]
)
def test_events_that_are_not_registered_any_more_are_taken_out(
    ws: Workspace, project: Path, name: str, file: str
) -> None:
    theirs = {"type": "command", "command": "say compacted"}
    (project / file).parent.mkdir()
    for do in (install, uninstall):
        (project / file).write_text(json.dumps(older_settings(theirs), indent=2))
        do(ws, name, user=False)
        hooks = hooks_in(project / file)
        assert hooks["PostCompact"] == [{"hooks": [theirs]}]
        assert "WorktreeRemove" not in hooks
    assert list(hooks) == ["PostCompact"]


READING = [f"mcp__loki__{tool.name}" for tool in tools_of("core") if tool.effect.reads_only]


def test_tools_that_only_read_are_allowed_when_asked_for(ws: Workspace, project: Path) -> None:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(SETTINGS)
    done = step(install(ws, "claude-code", allow=True), "settings.json")
    assert done.what == f"hooks for 10 events, {len(READING)} tools that only read are allowed"
    allowed = json.loads(path.read_text())["permissions"]["allow"]
    assert allowed == ["Bash(npm test:*)", "Read", *READING]
    assert not any(deed.did for deed in install(ws, "claude-code", allow=True))
    assert not any(deed.did for deed in install(ws, "claude-code"))
    uninstall(ws, "claude-code")
    assert path.read_text() == SETTINGS


def test_a_tool_that_somebody_else_allowed_stays(ws: Workspace, project: Path) -> None:
    path = project / ".claude" / "settings.json"
    theirs = ["mcp__loki__memory_remember", "mcp__other__memory_recall"]
    path.parent.mkdir()
    path.write_text(json.dumps({"permissions": {"allow": theirs}}))
    install(ws, "claude-code", allow=True)
    uninstall(ws, "claude-code")
    assert json.loads(path.read_text()) == {"permissions": {"allow": theirs}}


def test_allowed_tools_leave_no_trace(ws: Workspace, project: Path) -> None:
    before = tree(project, Path.home())
    install(ws, "claude-code", user=True, allow=True)
    uninstall(ws, "claude-code", user=True)
    assert tree(project, Path.home()) == before


def test_tools_of_another_server_of_our_name_are_not_allowed(ws: Workspace, project: Path) -> None:
    other = {"mcpServers": {"loki": {"command": "other"}}}
    (project / ".mcp.json").write_text(json.dumps(other))
    done = step(install(ws, "claude-code", allow=True), "settings.json")
    assert done.what == "hooks for 10 events"
    assert "permissions" not in json.loads((project / ".claude" / "settings.json").read_text())


def test_permissions_that_are_no_list_are_named_or_left_alone(ws: Workspace, project: Path) -> None:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"permissions": {"allow": "all"}}')
    with pytest.raises(InvalidConfig, match=r"`permissions\.allow` is not a list"):
        install(ws, "claude-code", allow=True)
    install(ws, "claude-code")
    uninstall(ws, "claude-code")
    assert path.read_text() == '{"permissions": {"allow": "all"}}'


def test_that_tools_can_be_allowed_is_said_until_they_are(ws: Workspace, project: Path) -> None:
    said = "`loki-mem install claude-code --allow` allows those that only read"
    assert said in run(install_command, project, "claude-code").output
    planned = run(install_command, project, "claude-code", "--allow", "--plan").output
    assert '+      "mcp__loki__memory_recall"' in planned
    assert said not in planned
    assert said not in run(install_command, project, "claude-code", "--allow").output
    assert said not in run(install_command, project, "claude-code").output


def test_an_event_of_others_that_is_no_list_is_left_alone(ws: Workspace, project: Path) -> None:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"hooks": {"Unheard": {"of": 1}}}')
    install(ws, "claude-code")
    assert json.loads(path.read_text())["hooks"]["Unheard"] == {"of": 1}


def test_the_server_joins_others(ws: Workspace, project: Path) -> None:
    path = project / ".mcp.json"
    path.write_text('{"mcpServers":{"github":{"type":"http","url":"https://x"}}}')
    install(ws, "claude-code")
    servers = json.loads(path.read_text())["mcpServers"]
    assert list(servers) == ["github", "loki"]
    assert servers["loki"] == {"command": "loki-mem", "args": ["mcp"]}
    uninstall(ws, "claude-code")
    assert path.read_text() == '{"mcpServers":{"github":{"type":"http","url":"https://x"}}}'


def test_a_server_that_somebody_described_is_kept_and_named(ws: Workspace, project: Path) -> None:
    path = project / ".mcp.json"
    text = '{"mcpServers": {"loki": {"command": "loki-mem", "args": ["mcp"], "env": {"A": "1"}}}}'
    path.write_text(text)
    for deeds in (install(ws, "claude-code"), uninstall(ws, "claude-code")):
        (deed,) = [deed for deed in deeds if deed.where == ".mcp.json"]
        assert deed.what.startswith("kept")
        assert not deed.did
        assert path.read_text() == text


def test_files_that_were_changed_by_hand_are_kept_and_named(ws: Workspace, project: Path) -> None:
    install(ws, "claude-code")
    path = project / ".claude" / "commands" / "recall.md"
    path.write_text(path.read_text().replace("Search", "Look through"))
    mine = path.read_text()
    for deeds in (install(ws, "claude-code"), uninstall(ws, "claude-code")):
        (deed,) = [deed for deed in deeds if deed.where == ".claude/commands/recall.md"]
        assert deed.what.startswith("kept")
        assert path.read_text() == mine
    assert [path.name for path in path.parent.iterdir()] == ["recall.md"]


def test_a_file_of_an_earlier_version_is_renewed(ws: Workspace, project: Path) -> None:
    from loki_memory.install.edits import sealed

    path = project / ".claude" / "commands" / "recall.md"
    path.parent.mkdir(parents=True)
    path.write_text(sealed("---\ndescription: Recall\n---\n\nAs it was once.\n"))
    install(ws, "claude-code")
    assert "Search this project's memory" in path.read_text()


def test_the_users_settings_are_for_every_project(ws: Workspace, project: Path) -> None:
    install(ws, "claude-code", user=True)
    home = Path.home()
    assert not (project / ".claude").exists()
    assert "SessionStart" in hooks_in(home / ".claude" / "settings.json")
    assert (home / ".claude" / "skills" / "loki-memory" / "SKILL.md").is_file()
    server = json.loads((home / ".claude.json").read_text())["mcpServers"]["loki"]
    assert server["args"] == ["mcp"]


def test_the_users_settings_stay_readable_by_their_owner_only(ws: Workspace) -> None:
    path = Path.home() / ".claude.json"
    path.write_text('{"oauth": "secret"}\n')
    path.chmod(0o600)
    install(ws, "claude-code", user=True)
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())["oauth"] == "secret"


def test_a_program_with_no_name_is_called_by_its_place(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "my tools" / "loki-mem"
    place.parent.mkdir()
    place.touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(place.with_name("python")))
    install(ws, "claude-code", user=True)
    path = Path.home() / ".claude" / "settings.json"
    assert hooks_in(path)["Stop"][0]["hooks"][0]["command"] == (
        f"command -v '{place}' >/dev/null 2>&1 || exit 0; exec '{place}' hook Stop"
    )
    assert not any(deed.did for deed in install(ws, "claude-code", user=True))
    server = json.loads((Path.home() / ".claude.json").read_text())["mcpServers"]["loki"]
    assert server["command"] == str(place)
    uninstall(ws, "claude-code", user=True)
    assert not path.exists()


def program_in(folder: Path) -> Path:
    """Make a program of our name in a folder."""
    folder.mkdir(parents=True)
    program = folder / "loki-mem"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("cache", ["uv/archive-v0/x1y2/bin", "uv/environments-v2/x/bin", "own/bin"])
@pytest.mark.parametrize("on_path", [True, False])
@pytest.mark.parametrize("name", ["git", "claude-code", "codex"])
def test_a_program_of_uvx_will_be_gone_and_that_is_said(
    ws: Workspace,
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cache: str,
    on_path: bool,
    name: str,
) -> None:
    program = program_in(tmp_path / cache)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    paths = [str(program.parent)] * on_path + ["/usr/bin"]
    monkeypatch.setenv("PATH", os.pathsep.join(paths))
    told = run(install_command, project, name).output
    assert "note: this loki-mem runs in a temporary environment of uvx" in told
    assert "`uv tool install loki-memory`" in told
    assert "not on PATH" not in told
    written = tree(project, Path.home()).values()
    assert not any(str(program).encode() in data for data in written)
    assert "temporary" not in run(uninstall_command, project, name).output


def test_a_program_that_stays_is_enough_beside_that_of_uvx(
    ws: Workspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing = program_in(tmp_path / "uv" / "archive-v0" / "x" / "bin")
    lasting = program_in(tmp_path / "share" / "uv" / "tools" / "loki-memory" / "bin")
    monkeypatch.setattr(sys, "executable", str(passing.with_name("python")))
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, (passing.parent, lasting.parent))))
    assert "temporary" not in run(install_command, project, "claude-code").output


# -- what is broken ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            ".claude/settings.json",
            '{\n  "hooks": {,}\n}',
            r"settings\.json:2:13: is not valid JSON",
        ),
        (".claude/settings.json", "[]", "is not an object"),
        (".claude/settings.json", '{"hooks": []}', "`hooks` is not an object"),
        (".claude/settings.json", '{"hooks": {"Stop": {}}}', r"`hooks\.Stop` is not a list"),
        (".mcp.json", '{"mcpServers": 1}', "`mcpServers` is not an object"),
        (".mcp.json", "[" * 100_000, "JSON|nested"),
        (".mcp.json", f'{{"a": 1{"0" * 5000}}}', "too many digits"),
    ],
)
def test_settings_that_are_broken_are_named_and_nothing_is_written(
    ws: Workspace, project: Path, name: str, text: str, told: str
) -> None:
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    before = tree(project)
    for do in (install, uninstall):
        with pytest.raises(InvalidConfig, match=told):
            do(ws, "claude-code")
        assert tree(project) == before


def test_settings_that_are_not_text_are_named(ws: Workspace, project: Path) -> None:
    (project / ".mcp.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InvalidConfig, match=r"\.mcp\.json: byte 7 is not UTF-8"):
        install(ws, "claude-code")


def test_a_link_out_of_the_project_is_not_followed(
    ws: Workspace, project: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / ".claude").symlink_to(elsewhere)
    with pytest.raises(SymlinkedRoot):
        install(ws, "claude-code")
    assert not list(elsewhere.iterdir())


def test_a_link_inside_the_project_is_followed(ws: Workspace, project: Path) -> None:
    (project / "RULES.md").write_text("# Rules\n")
    (project / "AGENTS.md").symlink_to("RULES.md")
    install(ws, "agents-md")
    assert (project / "AGENTS.md").is_symlink()
    assert "loki-mem:begin" in (project / "RULES.md").read_text()


def test_a_file_that_changes_meanwhile_is_not_overwritten(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project / ".mcp.json"
    original = edits._make

    def late(planned: Any) -> None:
        path.write_text('{"theirs": 1}')
        original(planned)

    monkeypatch.setattr(edits, "_make", late)
    with pytest.raises(FileChanged):
        install(ws, "claude-code")
    assert tree(project) == {str(path): b'{"theirs": 1}'}


def test_where_the_file_system_says_no_nothing_is_left_half_done(
    ws: Workspace, project: Path
) -> None:
    (project / ".claude").mkdir()
    (project / ".claude" / "skills").write_text("a file where a folder should be")
    before = tree(project)
    with pytest.raises(StoreFailed):
        install(ws, "claude-code")
    assert tree(project) == before


# -- Codex and AGENTS.md -------------------------------------------------------------------------


def test_codex_gets_hooks_server_skill_and_lesson(ws: Workspace, project: Path) -> None:
    config = Path.home() / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(TOML)
    install(ws, "codex")
    assert config.read_text().startswith(TOML)
    servers = tomllib.loads(config.read_text())["mcp_servers"]
    assert list(servers) == ["other", "loki"]
    assert servers["loki"]["args"] == ["mcp"]
    document = json.loads((Path.home() / ".codex" / "hooks.json").read_text())
    assert list(document) == ["hooks"]  # Codex refuses a file with other names
    handlers = [h for groups in document["hooks"].values() for g in groups for h in g["hooks"]]
    assert all(set(handler) == {"type", "command", "timeout"} for handler in handlers)
    assert "PostToolUseFailure" not in document["hooks"]
    assert (project / ".agents" / "skills" / "loki-memory" / "SKILL.md").is_file()
    assert "loki-mem:begin" in (project / "AGENTS.md").read_text()
    uninstall(ws, "codex")
    assert config.read_text() == TOML


def test_what_codex_writes_into_its_configuration_is_not_in_the_way(ws: Workspace) -> None:
    config = Path.home() / ".codex" / "config.toml"
    own = '[projects."/work/shop"]\ntrust_level = "trusted"\n'
    install(ws, "codex")
    table = config.read_text()
    marks = "# loki-mem:begin\n", "\n# loki-mem:written 40b03e468f2cd3b3\n# loki-mem:end\n"
    config.write_text(f"{marks[0]}{table}\n{own}{marks[1]}")  # from an earlier version
    assert step(install(ws, "codex"), "config.toml").did
    assert config.read_text() == f"{table}\n{own}"
    assert not step(install(ws, "codex"), "config.toml").did
    assert step(uninstall(ws, "codex"), "config.toml").did
    assert config.read_text() == own


def test_a_codex_server_that_somebody_changed_is_kept_and_named(ws: Workspace) -> None:
    config = Path.home() / ".codex" / "config.toml"
    install(ws, "codex")
    config.write_text(config.read_text().replace('["mcp"]', '["mcp", "--tools", "lore"]'))
    kept = step(uninstall(ws, "codex"), "config.toml")
    assert not kept.did
    assert kept.what == "kept: the server loki was changed by hand"
    assert "lore" in config.read_text()


def trust(hooks: Path) -> None:
    """Do as Codex does when its user trusts all hooks of a file."""
    config = Path.home() / ".codex" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    with config.open("a") as file:
        for event in hooks_in(hooks):
            snake = re.sub("(?<!^)(?=[A-Z])", "_", event).lower()
            file.write(f'\n[hooks.state."{hooks}:{snake}:0:0"]\ntrusted_hash = "sha256:1b97"\n')


def test_hooks_of_codex_have_to_be_trusted_and_that_is_said(ws: Workspace, project: Path) -> None:
    said = "note: Codex runs no hook that is new or changed until you trust it: start `codex`"
    path = Path.home() / ".codex" / "hooks.json"
    assert said not in run(install_command, project, "codex", "--plan").output
    assert said in run(install_command, project, "codex").output
    assert said in run(install_command, project, "codex").output
    trust(path)
    assert said not in run(install_command, project, "codex").output
    older = re.sub(r"command -v .* exec ", "", path.read_text())  # as older versions wrote them
    path.write_text(older)
    assert said in run(install_command, project, "codex").output
    assert said not in run(uninstall_command, project, "codex").output


@pytest.mark.parametrize("user", [True, False])
def test_the_doctor_says_which_hooks_codex_does_not_run(
    ws: Workspace, project: Path, user: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = str(Path(sys.executable).parent)  # where agents find the program
    monkeypatch.setenv("PATH", f"{beside}{os.pathsep}{os.environ['PATH']}")
    assert "Codex" not in run(doctor_command, project).output
    install(ws, "codex", user=user)
    where = "~/.codex/hooks.json" if user else ".codex/hooks.json"
    told = run(doctor_command, project)
    assert f"Codex does not run 9 of our hooks in {where}, for they are not trusted" in told.output
    assert told.exit_code == 0, told.output
    trust((Path.home() if user else project) / ".codex" / "hooks.json")
    assert "Codex does not run" not in run(doctor_command, project).output


def test_the_doctor_names_settings_of_codex_that_are_broken(ws: Workspace, project: Path) -> None:
    install(ws, "codex")
    (Path.home() / ".codex" / "config.toml").write_text("model = \n")
    told = run(doctor_command, project)
    assert "config.toml: is not valid TOML" in told.output
    assert told.exit_code == 0


def test_codex_can_be_told_in_the_project(ws: Workspace, project: Path) -> None:
    install(ws, "codex", user=False)
    assert not (Path.home() / ".codex").exists()
    assert (project / ".codex" / "hooks.json").is_file()
    assert "mcp_servers" in tomllib.loads((project / ".codex" / "config.toml").read_text())


def test_a_codex_server_that_somebody_named_is_kept(ws: Workspace) -> None:
    config = Path.home() / ".codex" / "config.toml"
    config.parent.mkdir()
    text = '[mcp_servers.loki]\ncommand = "uvx"\n'
    config.write_text(text)
    (deed,) = [d for d in install(ws, "codex") if d.where == "~/.codex/config.toml"]
    assert deed.what.startswith("kept")
    uninstall(ws, "codex")
    assert config.read_text() == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model = \n", "is not valid TOML .*line 1"),
        (f"model = {'[' * 3000}{']' * 3000}\n", "is not valid TOML .*recursion"),
        (f"model = 1{'0' * 5000}\n", "is not valid TOML .*digits"),
    ],
    ids=["no value", "nested", "digits"],
)
def test_a_broken_codex_configuration_is_named(
    ws: Workspace, project: Path, text: str, told: str
) -> None:
    config = Path.home() / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(text)
    before = tree(project, Path.home())
    with pytest.raises(InvalidConfig, match=rf"config\.toml: {told}"):
        install(ws, "codex")
    assert tree(project, Path.home()) == before


def test_the_episode_that_agents_md_shows_is_taken_over(ws: Workspace, project: Path) -> None:
    install(ws, "agents-md")
    text = (project / "AGENTS.md").read_text()
    assert len(text.encode()) < 4096  # Codex reads 32 KiB of all AGENTS.md together
    example = text.partition("```json\n")[2].partition("```")[0]
    written = json.loads(example)
    path = project / ".loki/memory/episodic/2026-01-06/search.json"
    path.parent.mkdir(parents=True)
    path.write_text(example)
    fact = text.rpartition("`.loki/memory/semantic/facts/`:\n`")[2].partition("`")[0]
    (project / ".loki/memory/semantic/facts/db.json").write_text(fact)
    ws.sync()
    assert ws.care.problems() == []
    (episode,) = ws.list(kind="episode")
    assert episode.title() == "Add a search endpoint"
    assert {name: episode.document()[name] for name in written} == written
    assert [one.title() for one in ws.list(kind="fact")] == [
        "Contract tests need the database running"
    ]


def test_what_agents_md_calls_required_is_all_that_is(ws: Workspace, project: Path) -> None:
    assert "`context.goal` must be there; everything else may be left out" in lesson()
    folder = project / ".loki/memory/episodic/2026-01-06"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(json.dumps({"context": {"goal": "Try"}}))
    (folder / "b.json").write_text(json.dumps({"timestamp": "2026-01-06T10:00:00Z"}))
    ws.sync()
    assert [one.title() for one in ws.list(kind="episode")] == ["Try"]


# -- the commands --------------------------------------------------------------------------------


def run(command: Any, folder: Path, *arguments: str) -> Result:
    given = {"directory": str(folder), "json": False}
    return CliRunner().invoke(command, list(arguments), obj=given)


def test_the_commands_say_what_they_did(ws: Workspace, project: Path) -> None:
    planned = run(install_command, project, "claude-code", "--plan")
    assert "would do  .mcp.json: MCP server" in planned.output
    assert '  +    "loki": {' in planned.output
    assert not (project / ".mcp.json").exists()
    assert "done  .mcp.json: MCP server" in run(install_command, project, "claude-code").output
    again = run(install_command, project, "claude-code").output
    assert "as it was  .mcp.json" in again
    assert "done" not in again
    printed = run(uninstall_command, project, "claude-code", "--json").stdout
    assert all(deed["did"] for deed in json.loads(printed)["deeds"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["emacs"],
        ["git", "--user"],
        ["agents-md", "--project"],
        ["codex", "--workflow"],
        ["codex", "--allow"],
    ],
)
def test_what_a_target_does_not_have_is_refused(
    ws: Workspace, project: Path, arguments: list[str]
) -> None:
    assert run(install_command, project, *arguments).exit_code == 2


@pytest.mark.parametrize(("answer", "is_there"), [(b"n\n", False), (b"y\n", True)])
def test_on_a_terminal_the_changes_are_shown_and_asked_about(
    ws: Workspace, project: Path, answer: bytes, is_there: bool
) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "loki_memory", "-C", str(project), "install", "agents-md"]
    child = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(theirs)
    os.write(ours, answer)
    said, asked = child.communicate()
    os.close(ours)
    assert b"+## Project memory" in said
    assert b"Do this?" in asked
    assert (project / "AGENTS.md").exists() is is_there
    assert (child.returncode == 0) is is_there


def test_the_workflow_comes_with_git_when_asked_for(ws: Workspace, project: Path) -> None:
    path = project / ".github" / "workflows" / "memory.yml"
    install(ws, "git")
    assert not path.exists()
    install(ws, "git", workflow=True)
    assert path.read_text().startswith(resource("docs/workflows/memory.yml").read_text().rstrip())
    uninstall(ws, "git")
    assert not (project / ".github").exists()


def test_a_workflow_that_somebody_changed_stays(ws: Workspace, project: Path) -> None:
    path = project / ".github" / "workflows" / "memory.yml"
    install(ws, "git", workflow=True)
    path.write_text(path.read_text().replace("ubuntu-latest", "ubuntu-24.04"))
    assert any(deed.what.startswith("kept") for deed in uninstall(ws, "git"))
    assert path.exists()


def test_a_plan_for_git_writes_nothing(ws: Workspace, project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    config = (project / ".git" / "config").read_bytes()
    assert all(deed.did for deed in install(ws, "git", plan_only=True))
    assert (project / ".git" / "config").read_bytes() == config
    assert not (project / ".loki" / ".gitattributes").exists()
