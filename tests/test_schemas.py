"""The committed schemas are those of the models, and what is written and printed obeys them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import LATE, put_into_git

from loki_memory import Workspace
from loki_memory.cli.main import COMMANDS as NAMES
from loki_memory.cli.main import cli, main
from loki_memory.files.codec import dump, read_json
from loki_memory.files.layout import kind_of, view_kind
from loki_memory.resources import resource
from loki_memory.schema import schemas
from loki_memory.schema.outputs import OUTPUTS

SCHEMAS = Path(__file__).parent.parent / "schemas"
EXAMPLE = resource("example_workspace")


def valid(name: str, value: Any) -> None:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(value)


def exactly(name: str, value: Any) -> None:
    """Validate, and refuse what the schema does not name."""
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(closed(schema)).validate(value)


def closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(part) for key, part in schema.items()}
    return {"additionalProperties": False, **found} if "properties" in schema else found


def test_committed_schemas_are_those_of_the_models() -> None:
    """Refresh them with `python -m loki_memory.schema schemas/`."""
    generated = {name: dump(schema) for name, schema in schemas().items()}
    committed = {path.name: path.read_bytes() for path in SCHEMAS.iterdir()}
    assert committed == generated


def test_every_schema_is_a_schema() -> None:
    for schema in schemas().values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_record_of_the_example_obeys_its_schema() -> None:
    memory = EXAMPLE / ".loki" / "memory"
    checked = 0
    for path in sorted(memory.rglob("*.json")):
        kind = kind_of(path.relative_to(memory).as_posix())
        if kind:
            valid(kind, read_json(path.read_bytes()))
            checked += 1
    assert checked > 50


def test_rendered_views_obey_their_schemas(example: Path) -> None:
    Workspace.open(example).sync()
    memory = example / ".loki" / "memory"
    views = [p for p in memory.rglob("*.json") if view_kind(p.relative_to(memory).as_posix())]
    assert len(views) > 5
    for path in views:
        name = "learnings" if path.parent.name == "learnings" else path.stem
        valid(f"view-{name}", json.loads(path.read_bytes()))


def test_every_command_has_an_output_schema() -> None:
    assert set(NAMES) == set(OUTPUTS) - {"error"}


COMMANDS = {
    "record": ["--goal", "Try it", "--outcome", "success"],
    "remember": ["A fact"],
    "lesson": ["the types change", "--do", "run npm run types"],
    "supersede": ["sem-001", "Handlers return void everywhere"],
    "correct": ["sem-001", "confidence=0.5"],
    "reject": ["fact-tprcm6wrzp", "--why", "no"],
    "forget": ["ep-2026-01-06-001"],
    "purge": ["anti-ns66z0vk7n"],
    "taint": ["ep-2026-01-06-001"],
    "restore": ["tomb-zkfr79ncf1"],
    "archive": ["ep-2026-01-06-001"],
    "pin": ["sem-001"],
    "link": ["sem-001", "related_to", "sem-qn3nbpznby"],
    "recall": ["return type", "--explain"],
    "context": ["Add an endpoint"],
    "explore": ["sem-001"],
    "traverse": ["sem-001", "associations"],
    "show": ["sem-001"],
    "handoff": ["list"],
    "completion": ["bash"],
    "hook": ["SessionStart"],
    "graph": ["sem-001", "--depth", "2"],
    "feedback": ["sem-001", "--helpful"],
    "verify": ["--adopt"],
    "replay": ["ep-2026-01-06-001"],
    "watch": ["--once"],
    "blame": ["sem-001"],
    "bisect": ["--query", "logs of staging", "--reject", "fact-2f61dyj12e"],
    "revert": ["HEAD"],
    "merge-driver": [str(EXAMPLE / LATE)] * 4,
    "export": ["--local", "mine.jsonl"],
    "clear": ["--yes"],
    "copy": ["sem-001", "--scope", "user"],
    "move": ["sem-001", "--scope", "local"],
    "import": ["claude-memory", str(EXAMPLE / "README.md"), "--write-back", "--plan"],
    "install": ["git"],
    "uninstall": ["git"],
    "remote": ["list"],
    "version": [],
}


# Commands that print something else with other arguments.
OTHERS = [
    ["recall", "return type"],
    ["skills", "api-endpoint-implementation"],
    ["skills", "--add", str(EXAMPLE / ".loki/memory/skills/api-endpoint-implementation.md")],
    ["skills", "--publish", "agents"],
    ["stats", "--economics"],
    ["ingest", "--plan"],
    ["ledger", "eng-001-backend"],
    ["ledger", "eng-001-backend", "--resume"],
    ["ledger", "eng-001-backend", "--task", "task-9"],
    ["ledger", "eng-001-backend", "--task", "task-9", "--resume"],
    ["handoff", "create", "eng-001-backend", "qa", "Added search"],
    ["handoff", "create", "eng-001-backend", "qa", "Added search", "--plan"],
    ["handoff", "accept", "handoff-pntnsg6v73"],
    ["mcp", "--http", "8123"],
    ["daemon", "logs"],
    ["export", "memory.jsonl"],
    ["export", "--html", "memory.html"],
]
# These serve until they are stopped, or ask a database: tests/test_ui_cli.py, test_server_cli.py
ENDING = sorted(set(OUTPUTS) - {"error", "ui", "serve", "token"})
ALL = [[name, *COMMANDS.get(name, [])] for name in ENDING] + OTHERS


@pytest.mark.parametrize("arguments", ALL, ids=lambda arguments: " ".join(arguments)[:40])
def test_what_a_command_prints_obeys_its_schema(
    arguments: list[str],
    example: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_into_git(example)
    name = arguments[0]
    monkeypatch.chdir(example.parent)
    if name in {"pull", "push"}:
        monkeypatch.setenv("LOKI_GIT_MODE", "branch")
    given = ["-C", str(example), *arguments, "--json"]
    cli.main(given, prog_name="loki-mem", standalone_mode=False)
    exactly(f"output-{name}", json.loads(capsys.readouterr().out))


def test_an_error_is_an_object_too(
    example: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["loki-mem", "-C", str(example), "show", "sem-no", "--json"])
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr()
    assert stopped.value.code == 5
    assert printed.out == ""
    exactly("output-error", json.loads(printed.err))
