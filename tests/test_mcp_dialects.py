"""The tools of other memory systems, under their own names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import git, put_into_git
from test_mcp_tools import LIMIT, Agent

from loki_memory import Workspace
from loki_memory.cli.serve import TOOL_SETS
from loki_memory.mcp.server import tools_of

NAMES = {
    "core": "memory_recall memory_get memory_context memory_remember memory_lesson memory_correct "
    "memory_record_episode memory_blame memory_feedback memory_verify handoff_create "
    "handoff_accept memory_status",
    "lore": "search read list_roots store update delete query_memory explore_memory "
    "traverse_memory store_memory list_topics",
    "lynkr": "memory_search memory_add memory_forget memory_stats",
    "claude-flow": "memory_store memory_search memory_retrieve memory_delete memory_list "
    "hooks_intelligence_pattern_store hooks_intelligence_pattern_search",
    "loki": "loki_memory_retrieve loki_memory_store_pattern loki_memory_capture_session_summary "
    "loki_consolidate_memory loki_learnings loki_memory_redact",
}
REMOVING = {"delete", "memory_forget", "memory_delete", "loki_memory_redact"}


def speaker(tool_set: str) -> Any:
    @pytest.fixture
    def agent(ws: Workspace, project: Path) -> Agent:
        return Agent(project, tool_set)

    return agent


lore, lynkr, loki = speaker("lore"), speaker("lynkr"), speaker("loki")
flow = speaker("claude-flow")


# -- every set -------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool_set", TOOL_SETS)
def test_a_set_has_its_names_and_every_tool_is_fully_described(tool_set: str) -> None:
    tools = Agent(None, tool_set).tools()
    assert [tool.name for tool in tools] == NAMES[tool_set].split()
    for tool in tools:
        hints = tool.annotations
        assert hints.title
        assert hints.open_world_hint is False
        assert hints.destructive_hint is (tool.name in REMOVING)
        assert isinstance(hints.read_only_hint, bool)
        assert isinstance(hints.idempotent_hint, bool)
        assert 0 < len(tool.description.encode()) < 2048
        assert "project" in tool.input_schema["properties"]
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema["type"] == "object"
        assert "notices" in tool.output_schema["properties"]


def test_instructions_are_short_enough_to_be_read() -> None:
    server = Agent(None).server
    assert server.instructions is not None
    assert 0 < len(server.instructions.encode()) < 2048


def test_tools_that_only_read_change_no_file(example: Path) -> None:
    def memory() -> dict[Path, bytes]:
        top = example / ".loki" / "memory"
        return {path: path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}

    Workspace.open(example).sync()
    before = memory()
    known = {
        "query": "return types",
        "topic": "storage",
        "goal": "Add an endpoint",
        "memory_id": "sem-001",
        "id": "sem-001",
        "fragment_id": "sem-001",
        "direction": "children",
        "key": "sem-001",
    }
    for tool_set in TOOL_SETS:
        agent = Agent(example, tool_set)
        for tool in agent.tools():
            if tool.annotations.read_only_hint:
                needed = tool.input_schema.get("required", [])
                agent.call(tool.name, **{name: known[name] for name in needed})
    assert memory() == before


@pytest.mark.parametrize("tool_set", TOOL_SETS)
def test_no_tool_takes_an_argument_that_it_does_not_have(example: Path, tool_set: str) -> None:
    agent = Agent(example, tool_set)
    for tool in agent.tools():
        said = agent.refusal(tool.name, surplus=1)
        assert said.startswith(f"{tool.name} has no argument 'surplus'; it takes ")
        assert all(name in said for name in tool.input_schema["properties"])


@pytest.mark.parametrize("tool_set", TOOL_SETS)
def test_a_value_of_a_wrong_type_is_refused_in_our_words(example: Path, tool_set: str) -> None:
    agent = Agent(example, tool_set)
    for tool in agent.tools():
        for wrong in ([[]], {"a": {}}):
            said = agent.refusal(tool.name, **dict.fromkeys(tool.input_schema["properties"], wrong))
            assert said.startswith(f"{tool.name}: ")
            assert "pydantic" not in said
            assert "Input should" not in said
            assert "schema" not in said  # what is said where we know no better


WEIRD = ["", "../../etc/passwd", "\x00\u202e😀", '"; DROP TABLE memories;-- NEAR(*']


def value(schema: dict[str, Any], text: str) -> Any:
    """An argument that fits a schema, with a text wherever there can be one."""
    if "anyOf" in schema:
        return value(schema["anyOf"][0], text)
    if "enum" in schema:
        return schema["enum"][0]
    items = schema.get("items", {})
    return {
        "string": text,
        "array": [{} if "$ref" in items else value(items, text) if items else text],
        "integer": 1,
        "number": 0.5,
        "boolean": True,
        "object": {text: text},
    }[schema["type"]]


@pytest.mark.parametrize("tool_set", TOOL_SETS)
def test_no_text_makes_a_tool_crash(example: Path, tool_set: str) -> None:
    """What is refused is refused in words; a crash has only the tool's name to tell."""
    agent = Agent(example, tool_set)
    for tool in agent.tools():
        for text in WEIRD:
            given = {
                name: value(schema, text)
                for name, schema in tool.input_schema["properties"].items()
                if name not in {"project", "cursor"}
            }
            said = agent.call(tool.name, **given).content[0].text
            assert not said.startswith("Error executing tool"), text
            assert len(said.encode()) <= LIMIT


def test_every_function_of_a_set_is_offered_once() -> None:
    for tool_set in TOOL_SETS:
        functions = [tool.function for tool in tools_of(tool_set)]
        assert len(set(functions)) == len(functions)


# -- Lore ------------------------------------------------------------------------------------------


def test_lore_goes_from_a_search_to_a_fragment_and_below_it(lore: Agent, ws: Workspace) -> None:
    topic = lore("store", content="Storage of the todo service", depth=0)
    fact = lore("store", content="The todo service keeps data in SQLite", parent_id=topic["id"])
    lore("store", content="SQLite is also used by the game", depth=0)
    hits = lore("search", query="where does the todo service keep its data")["hits"]
    assert fact["id"] in [hit["id"] for hit in hits]
    assert all(set(hit) == {"id", "score"} for hit in hits)
    below = lore("search", query="SQLite", parent_id=topic["id"])["hits"]
    assert [hit["id"] for hit in below] == [fact["id"]]
    fragment = lore("read", id=topic["id"])
    assert [child["id"] for child in fragment["children"]] == [fact["id"]]
    assert lore("read", id=fact["id"])["parent"] == topic["id"]
    assert fragment["content"].startswith("Storage of the todo service")


def test_lore_reading_reinforces(lore: Agent, ws: Workspace) -> None:
    memory = ws.remember("We deploy on Mondays")
    first = lore("read", id=memory.id)["relevance"]
    assert ws.browse.uses(memory.id).times == 1
    assert lore("read", id=memory.id)["relevance"] >= first > 0


def test_lore_puts_what_it_stores_below_the_nearest_topic(lore: Agent, ws: Workspace) -> None:
    topic = lore("store", content="Deployment of the todo service", depth=0)
    stored = lore("store", content="Deployment of the todo service takes ten minutes")
    assert ws.get(stored["id"]).document()["parent"] == topic["id"]
    alone = lore("store", content="Guinea pigs sleep with open eyes", depth=0)
    assert "parent" not in ws.get(alone["id"]).document()
    roots = [one["id"] for one in lore("list_roots")["topics"]]
    assert set(roots) == {topic["id"], alone["id"]}
    assert len(lore("list_roots", limit=1)["topics"]) == 1
    assert lore("list_roots", limit=1)["more"] == 1


def test_lore_updates_and_deletes(lore: Agent, ws: Workspace) -> None:
    memory = ws.remember("We deploy on Fridays")
    lore("update", fragment_id=memory.id, content="We deploy on Mondays")
    assert ws.get(memory.id).title() == "We deploy on Mondays"
    assert lore("search", query="deploy on Mondays")["hits"][0]["id"] == memory.id
    assert lore("delete", fragment_id=memory.id)["removed"] == [memory.id]
    assert "no memory" in lore.refusal("read", id=memory.id)
    episode = ws.record({"goal": "Deploy"})
    assert "is not one statement" in lore.refusal("update", fragment_id=episode.id, content="x")


def test_lore_queries_one_depth_at_a_time(lore: Agent, ws: Workspace) -> None:
    pattern = ws.remember("Deploy in the morning", kind="pattern")
    fact = ws.remember("The last deploy in the morning took an hour")
    episode = ws.record({"goal": "Deploy in the morning by hand"})
    for depth, memory in ((1, pattern), (2, fact), (3, episode), (5, episode)):
        found = lore("query_memory", topic="deploy in the morning", depth=depth)["fragments"]
        assert [one["id"] for one in found] == [memory.id]


def test_lore_explores_and_traverses_a_tree(lore: Agent, ws: Workspace) -> None:
    topic = lore("store_memory", content="Everything on storage", summary="Storage", depth=0)
    child = lore(
        "store_memory", content="rows are never deleted", summary="Rows", parent_id=topic["id"]
    )
    assert ws.get(child["id"]).title() == "Rows: rows are never deleted"
    drawn = lore("explore_memory", topic="are rows deleted?")
    assert drawn["root"] == topic["id"]
    assert drawn["lines"][0].startswith(f"[{topic['id']}] Storage")
    assert drawn["lines"][1].startswith(f"  [{child['id']}] Rows")
    up = lore("traverse_memory", fragment_id=child["id"], direction="parent")["fragments"]
    assert [one["id"] for one in up] == [topic["id"]]
    assert [one["id"] for one in lore("list_topics")["topics"]] == [topic["id"]]


def test_lore_explores_nothing_where_nothing_is_known(lore: Agent) -> None:
    assert lore("explore_memory", topic="storage") == {"root": None, "lines": [], "notices": []}


# -- Lynkr -----------------------------------------------------------------------------------------


def test_lynkr_adds_and_searches_by_type(lynkr: Agent, ws: Workspace) -> None:
    lynkr("memory_add", content="I prefer Python for scripts", type="preference", category="user")
    lynkr("memory_add", content="Scripts are kept in the folder tools", importance=0.4)
    found = lynkr("memory_search", query="scripts")["memories"]
    assert {one["type"] for one in found} == {"preference", "fact"}
    [one] = lynkr("memory_search", query="scripts", type="preference")["memories"]
    assert one["content"] == "I prefer Python for scripts"
    assert ws.get(one["id"]).document()["scope"] == "user"
    assert "at least 10 characters" in lynkr.refusal("memory_add", content="short")


def test_lynkr_categories_filter(lynkr: Agent, ws: Workspace) -> None:
    ws.remember("Authentication is the work of the gateway")
    lynkr("memory_add", content="Authentication middleware is in src/auth.ts", category="code")
    lynkr("memory_add", content="Authentication is hard to explain", category="general")

    def found(category: str) -> list[str]:
        hits = lynkr("memory_search", query="authentication", category=category)["memories"]
        return sorted(hit["content"] for hit in hits)

    assert found("code") == ["Authentication middleware is in src/auth.ts"]
    assert found("general") == ["Authentication is hard to explain"]
    assert found("project") == ["Authentication is the work of the gateway"]
    assert found("user") == []


def test_lynkr_forgets_only_what_has_every_word_and_only_when_told(
    lynkr: Agent, ws: Workspace
) -> None:
    gone = ws.remember("We use MongoDB for the events")
    kept = ws.remember("We use PostgreSQL for the events")
    preview = lynkr("memory_forget", query="mongodb events")
    assert [one["id"] for one in preview["preview"]] == [gone.id]
    assert preview["forgotten"] == []
    assert ws.get(gone.id)
    assert lynkr("memory_forget", query="mongodb events", confirm=True)["forgotten"] == [gone.id]
    assert [memory.id for memory in ws.list()] == [kept.id]


def test_lynkr_counts(lynkr: Agent, ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKI_NOW", "2026-01-01T00:00:00Z")
    ws.remember("We decided to use Redux", category="decision", importance=0.5)
    ws.remember("For this session only", scope="session", importance=1.0)
    monkeypatch.setenv("LOKI_NOW", "2026-01-24T00:00:00Z")
    found = lynkr("memory_stats")
    assert found["total"] == 2
    assert found["session"] == 1
    assert found["types"] == {"decision": 1, "fact": 1}
    assert found["average_importance"] == 0.75
    assert found["oldest_days"] == 23


# -- claude-flow -----------------------------------------------------------------------------------


def test_claude_flow_entries_have_tags(flow: Agent, ws: Workspace) -> None:
    stored = flow("memory_store", key="deploy-day", value="Friday", tags=["ops", "release"])
    assert ws.get(stored["id"]).document()["tags"] == ["ops", "release"]
    assert [hit.id for hit in ws.recall("tag:release")] == [stored["id"]]


def test_claude_flow_keeps_values_under_keys(flow: Agent, ws: Workspace) -> None:
    first = flow("memory_store", key="deploy-day", value="Friday", namespace="ops")
    again = flow("memory_store", key="deploy-day", value="Monday", namespace="ops")
    other = flow("memory_store", key="deploy-day", value="never", namespace="games")
    assert first["id"] == again["id"] != other["id"]
    found = flow("memory_retrieve", key="deploy-day", namespace="ops")
    assert found["record"]["statement"] == "deploy-day: Monday"
    listed = flow("memory_list", namespace="ops")["entries"]
    assert [(one["key"], one["value"]) for one in listed] == [("deploy-day", "Monday")]
    hits = flow("memory_search", query="deploy day", namespace="games")["entries"]
    assert [one["value"] for one in hits] == ["never"]
    assert flow("memory_delete", key="deploy-day", namespace="games")["removed"] == [other["id"]]
    assert "no memory" in flow.refusal("memory_retrieve", key="deploy-day", namespace="games")


def test_claude_flow_refuses_a_key_that_could_be_taken_for_another(
    flow: Agent, ws: Workspace
) -> None:
    assert "key: has a colon" in flow.refusal("memory_store", key="a: b", value="c")
    flow("memory_store", key="a", value="b: c")
    assert flow("memory_retrieve", key="a")["record"]["statement"] == "a: b: c"
    assert flow("memory_list")["entries"][0]["value"] == "b: c"


def test_claude_flow_retrieving_what_a_search_found_is_feedback(flow: Agent, ws: Workspace) -> None:
    stored = flow("memory_store", key="deploy-day", value="Monday")
    flow("memory_search", query="deploy day")
    assert ws.browse.uses(stored["id"]).times == 0
    flow("memory_retrieve", key="deploy-day")
    assert ws.browse.uses(stored["id"]).times == 1


def test_claude_flow_distils_a_lesson_from_a_trajectory(flow: Agent, ws: Workspace) -> None:
    steps = [
        {"action": "run", "target": "npm test", "error": "SqliteError: database is locked"},
        {"action": "edit", "target": "vitest.config.ts to one file per worker"},
        {"action": "run", "target": "npm test", "result": "passed"},
    ]
    told = {"pattern": "Run the tests in parallel", "type": "testing"}
    made = flow("hooks_intelligence_pattern_store", trajectory=steps, **told)
    episode = ws.get(made["episode"]).document()
    assert len(episode["action_log"]) == 3
    [lesson] = made["patterns"]
    assert "one file per worker" in json.dumps(ws.get(lesson["id"]).document())
    found = flow("hooks_intelligence_pattern_search", query="database is locked")["patterns"]
    assert found[0]["id"] == lesson["id"]
    assert found[0]["success_rate"] > 0.5


def test_claude_flow_keeps_the_callers_wording_where_nothing_is_distilled_yet(
    flow: Agent, ws: Workspace
) -> None:
    made = flow("hooks_intelligence_pattern_store", pattern="Write the test first", confidence=0.7)
    [pattern] = made["patterns"]
    document = ws.get(pattern["id"]).document()
    assert document["pattern"] == "Write the test first"
    assert document["confidence"] == 0.7
    assert document["source_episodes"] == [made["episode"]]
    failed = flow(
        "hooks_intelligence_pattern_store", pattern="Skip all of the tests", outcome="failure"
    )
    assert failed["patterns"] == []


def test_claude_flow_ranks_what_was_right_above_what_was_wrong(flow: Agent, ws: Workspace) -> None:
    good = ws.remember("Retry the flaky upload test once", kind="pattern")
    bad = ws.remember("Retry the flaky upload test always", kind="pattern")
    ids = [ws.record({"goal": f"Upload {n}", "task_id": str(n)}).id for n in range(4)]
    ws.correct(good.id, evidence={"for": ids, "against": []})
    ws.correct(bad.id, evidence={"for": [], "against": ids})
    found = flow("hooks_intelligence_pattern_search", query="retry the flaky upload test")
    rates = {one["id"]: one["success_rate"] for one in found["patterns"]}
    assert rates[good.id] == round(5 / 6, 3)
    assert rates.get(bad.id, 0) <= round(1 / 6, 3)
    assert found["patterns"][0]["id"] == good.id


# -- Loki ------------------------------------------------------------------------------------------


def test_loki_stores_and_retrieves_patterns(loki: Agent, ws: Workspace) -> None:
    stored = loki(
        "loki_memory_store_pattern",
        pattern="Handlers declare what they return",
        category="typescript",
        correct_approach="(req, res): void =>",
        incorrect_approach="(req, res) =>",
    )
    document = ws.get(stored["id"]).document()
    assert document["correct_approach"] == "(req, res): void =>"
    assert document["confidence"] == 0.8
    found = loki("loki_memory_retrieve", query="what do handlers return", task_type="debugging")
    assert found["hits"][0]["id"] == stored["id"]
    assert found["task"] == "debugging"


def test_loki_captures_sessions_and_consolidates_them(loki: Agent, ws: Workspace) -> None:
    for day in ("06", "07", "08"):
        ws.record({
            "goal": "Add an endpoint with validation",
            "timestamp": f"2026-01-{day}T10:00:00Z",
            "outcome": "success",
        })  # fmt: skip
    stored = loki(
        "loki_memory_capture_session_summary",
        goal="Fix the build",
        outcome="success",
        files_modified=["a.ts"],
        tool_calls_summary="ran tests",
        duration_seconds=60,
    )
    episode = ws.get(stored["id"]).document()
    assert episode["files_modified"] == ["a.ts"]
    assert episode["action_log"] == [{"action": "ran tests"}]
    done = loki("loki_consolidate_memory", since_hours=24)
    assert done["episodes"] == 4
    assert loki("loki_consolidate_memory", since_hours=24)["steps"] == []


@pytest.mark.parametrize("how", ["ask", "auto"])
def test_loki_commits_what_it_consolidated_if_a_setting_says_so(
    example: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("LOKI_GIT_COMMIT", how)
    put_into_git(example)
    done = Agent(example, "loki")("loki_consolidate_memory", since_hours=24 * 365)
    assert done["steps"]
    is_committed = git(example, "log", "-1", "--format=%h").strip() in "".join(done["notices"])
    assert is_committed == (how == "auto")
    assert (git(example, "status", "--porcelain", ".loki/memory") == "") == is_committed


def test_loki_lists_learnings(loki: Agent, ws: Workspace) -> None:
    ws.remember("Lock files belong into the commit", kind="learning")
    [one] = loki("loki_learnings")["learnings"]
    assert one["lesson"] == "Lock files belong into the commit"


def test_loki_removes_what_must_not_stay(loki: Agent, ws: Workspace) -> None:
    gone = ws.remember('Ask "Ana Müller" for the key')
    deep = ws.record({"goal": "Call", "action_log": [{"action": "ask", "target": "Ana Müller"}]})
    kept = ws.remember("Ask the team for the key")
    removed = loki("loki_memory_redact", pattern="Ana Müller")["removed"]
    assert sorted(removed) == sorted([gone.id, deep.id])
    assert [memory.id for memory in ws.list()] == [kept.id]
    assert b"Ana" not in b"".join(p.read_bytes() for p in ws.layout.memory.rglob("*.json"))
