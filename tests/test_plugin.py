"""The plugin obeys the documented rules of `claude plugin validate` and of agentskills.io."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from loki_memory import __version__
from loki_memory.cli.main import cli
from loki_memory.hooks.response import COMMAND_TOOLS, FILE_TOOLS
from loki_memory.resources import resource

PLUGIN = resource("plugin")
TOP = Path(__file__).parent.parent
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
COMMANDS = sorted((PLUGIN / "commands").glob("*.md"))
SKILLS = sorted((PLUGIN / "skills").iterdir())
MANIFEST_FIELDS = {
    "name",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
}
# As the hooks reference of Claude Code lists them.
EVENTS = re.compile(
    "SessionStart|Setup|UserPromptSubmit|UserPromptExpansion|PreToolUse|PermissionRequest|"
    "PermissionDenied|PostToolUse|PostToolUseFailure|PostToolBatch|Notification|MessageDisplay|"
    "SubagentStart|SubagentStop|TaskCreated|TaskCompleted|Stop|StopFailure|TeammateIdle|"
    "InstructionsLoaded|ConfigChange|CwdChanged|DirectoryAdded|FileChanged|WorktreeCreate|"
    "WorktreeRemove|PreCompact|PostCompact|Elicitation|ElicitationResult|SessionEnd"
)
OF_OTHERS = {"run_shell_command", "shell", "local_shell", "exec_command", "apply_patch"}
OURS = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUseFailure",
    "Stop",
    "PreCompact",
    "SubagentStart",
    "SubagentStop",
    "TaskCompleted",
    "SessionEnd",
]
COMMAND_FIELDS = {"description", "argument-hint", "allowed-tools"}
SKILL_FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def parts(path: Path) -> tuple[dict[str, Any], str]:
    """Front matter and body."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("---\n"), path
    front, _, body = text[4:].partition("\n---\n")
    return yaml.safe_load(front), body


# -- manifest and marketplace --------------------------------------------------------------------


def test_the_manifest_says_what_it_must_and_nothing_unknown() -> None:
    manifest = read(PLUGIN / ".claude-plugin" / "plugin.json")
    assert NAME.fullmatch(manifest["name"])
    assert set(manifest) <= MANIFEST_FIELDS
    assert manifest["version"] == __version__
    assert manifest["author"]["name"]
    assert manifest["license"] == "Apache-2.0"
    assert all(isinstance(word, str) for word in manifest["keywords"])


def test_only_the_manifest_lies_beside_the_manifest() -> None:
    assert [path.name for path in (PLUGIN / ".claude-plugin").iterdir()] == ["plugin.json"]
    top = {path.name for path in PLUGIN.iterdir()}
    assert top == {".claude-plugin", ".mcp.json", "commands", "hooks", "skills"}


def test_the_marketplace_leads_to_the_plugin() -> None:
    market = read(TOP / ".claude-plugin" / "marketplace.json")
    assert NAME.fullmatch(market["name"])
    assert market["owner"]["name"]
    (entry,) = market["plugins"]
    manifest = read(TOP / entry["source"] / ".claude-plugin" / "plugin.json")
    assert entry["source"].startswith("./")
    assert (entry["name"], entry["description"]) == (manifest["name"], manifest["description"])
    assert "version" not in entry  # it stands in the manifest, once


# -- hooks and server ----------------------------------------------------------------------------


def test_every_hook_is_for_a_known_event_and_has_the_documented_shape() -> None:
    document = read(PLUGIN / "hooks" / "hooks.json")
    assert set(document) <= {"description", "hooks"}
    assert all(map(EVENTS.fullmatch, document["hooks"]))
    for event, groups in document["hooks"].items():
        for group in groups:
            assert set(group) <= {"matcher", "hooks"}
            for handler in group["hooks"]:
                assert set(handler) <= {"type", "command", "timeout", "async"}
                assert handler["type"] == "command"
                assert handler["command"] == (
                    "command -v loki-mem >/dev/null 2>&1 || exit 0; exec loki-mem hook " + event
                )
                assert 0 < handler["timeout"] <= 30


def shell(command: str, folder: Path, data: bytes) -> tuple[int, bytes, bytes]:
    """Run a command as clients run a hook, with only one folder to find programs in."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=data,
        env={"PATH": str(folder)},
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_hook_is_silent_where_the_program_is_not_installed(tmp_path: Path) -> None:
    for groups in read(PLUGIN / "hooks" / "hooks.json")["hooks"].values():
        command = groups[0]["hooks"][0]["command"]
        assert shell(command, tmp_path, b"{}") == (0, b"", b"")


def test_a_hook_hands_its_input_and_its_exit_code_through(tmp_path: Path) -> None:
    program = tmp_path / "loki-mem"
    program.write_text('#!/bin/sh\nread -r line\necho "$* $line"\nexit 3\n')
    program.chmod(0o755)
    for event, groups in read(PLUGIN / "hooks" / "hooks.json")["hooks"].items():
        command = groups[0]["hooks"][0]["command"]
        said = f'hook {event} {{"a": 1}}\n'.encode()
        assert shell(command, tmp_path, b'{"a": 1}\n') == (3, said, b"")


def test_every_event_of_ours_is_hooked_once() -> None:
    hooks = read(PLUGIN / "hooks" / "hooks.json")["hooks"]
    assert list(hooks) == OURS
    assert all(len(groups) == len(groups[0]["hooks"]) == 1 for groups in hooks.values())


def test_before_a_tool_only_commands_files_and_leaving_a_worktree_start_a_process() -> None:
    (group,) = read(PLUGIN / "hooks" / "hooks.json")["hooks"]["PreToolUse"]
    tools = {*group["matcher"].split("|")}
    assert tools == {"ExitWorktree", *COMMAND_TOOLS, *FILE_TOOLS} - OF_OTHERS


def test_nothing_runs_after_a_call_that_worked() -> None:
    assert "PostToolUse" not in read(PLUGIN / "hooks" / "hooks.json")["hooks"]


def test_what_is_answered_to_the_agent_is_waited_for() -> None:
    """What an asynchronous hook says comes a turn too late for a brief, a lesson or a request."""
    hooks = read(PLUGIN / "hooks" / "hooks.json")["hooks"]
    waited = {event for event, (group,) in hooks.items() if not group["hooks"][0].get("async")}
    answered = {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUseFailure", "Stop"}
    assert answered <= waited


def test_the_server_is_started_as_the_program_starts_it() -> None:
    servers = read(PLUGIN / ".mcp.json")["mcpServers"]
    assert servers == {"loki": {"command": "loki-mem", "args": ["mcp"]}}
    assert cli.get_command(click.Context(cli), "mcp") is not None


# -- commands and skill --------------------------------------------------------------------------


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_says_what_it_does_and_what_it_may_run(path: Path) -> None:
    front, body = parts(path)
    assert NAME.fullmatch(path.stem)
    assert set(front) == COMMAND_FIELDS
    assert 0 < len(front["description"]) <= 120
    assert "$ARGUMENTS" in body
    assert "!`" not in body  # arguments never reach a shell before somebody has read them
    allowed = re.findall(r"Bash\(loki-mem ([a-z-]+):\*\)", front["allowed-tools"])
    assert allowed
    assert set(re.findall(r"`loki-mem ([a-z-]+)", body)) - set(allowed) <= {"correct", "reject"}


def test_the_commands_are_the_four_that_are_promised() -> None:
    assert [path.stem for path in COMMANDS] == ["handoff", "memory-review", "recall", "remember"]


@pytest.mark.parametrize("folder", SKILLS, ids=lambda path: path.name)
def test_the_skill_keeps_to_the_agentskills_format(folder: Path) -> None:
    path = folder / "SKILL.md"
    front, body = parts(path)
    assert set(front) <= SKILL_FIELDS
    assert front["name"] == folder.name
    assert NAME.fullmatch(front["name"])
    assert len(front["name"]) <= 64
    assert 0 < len(front["description"]) <= 1024
    assert "Use " in front["description"]  # when, not only what
    assert len(front.get("compatibility", "")) <= 500
    assert len(body.splitlines()) < 500
    assert len(body.encode()) / 4 < 5000


@pytest.mark.parametrize("folder", SKILLS, ids=lambda path: path.name)
def test_what_the_skill_refers_to_is_there_one_level_deep(folder: Path) -> None:
    _, body = parts(folder / "SKILL.md")
    links = re.findall(r"\]\(([^)]+)\)", body)
    assert links
    for link in links:
        assert (folder / link).is_file()
        assert link.count("/") == 1


def _called() -> list[tuple[str, list[str]]]:
    """Every call of the program in the plugin's texts: the command and its options."""
    texts = [path.read_text() for path in sorted(PLUGIN.rglob("*.md"))]
    text = "\n".join(texts).replace("\\\n", " ")
    spans = re.findall(r"`(loki-mem [^`]+)`", text) + re.findall(
        r"^    (loki-mem .+)$", text, re.MULTILINE
    )
    calls = [re.sub(r'"[^"]*"', "TEXT", span).split()[1:] for span in spans]
    return [(call[0], [word for word in call if word.startswith("--")]) for call in calls]


def test_every_call_in_its_texts_is_one_that_the_program_knows() -> None:
    import click

    from loki_memory.cli.main import cli

    context = click.Context(cli)
    calls = _called()
    assert len(calls) > 10
    for name, options in calls:
        command = cli.get_command(context, name)
        assert command is not None, name
        within = list(command.commands.values()) if isinstance(command, click.Group) else [command]
        known = {option for one in within for param in one.params for option in param.opts}
        assert set(options) <= {*known, "--help"}, name
