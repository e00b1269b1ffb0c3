"""Verdicts of gates: reports in several formats, as episodes that teach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import git

from loki_memory import Workspace
from loki_memory.cli.main import cli
from loki_memory.errors import InvalidRecord
from loki_memory.ingest.gate import GateOptions, failing_now, record_verdict
from loki_memory.ingest.gate_reports import GateFailure, verdict_in
from loki_memory.models import AntiPattern

# As pytest 9 writes it, shortened.
JUNIT = """\
<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" \
errors="1" failures="1" skipped="1" tests="4" time="0.088" \
timestamp="2026-01-20T13:34:51+01:00" hostname="vm">
<testcase classname="test_a" name="test_ok" time="0.001" />
<testcase classname="test_a" name="test_slow" time="0.000"><skipped message="slow"/></testcase>
<testcase classname="test_a" name="test_paging" time="0.001"><failure \
message="assert [1, 2] == [1]">def test_paging():
&gt;       assert [1,2,3][:2] == [1]
E       assert [1, 2] == [1]

test_a.py:4: AssertionError</failure></testcase>
<testcase classname="test_a" name="test_db" time="0.001"><error \
message="failed on setup with &quot;RuntimeError: no database&quot;">@pytest.fixture
&gt;   def broken(): raise RuntimeError("no database")
E   RuntimeError: no database

test_a.py:6: RuntimeError</error></testcase></testsuite></testsuites>
"""
ESLINT: list[dict[str, Any]] = [
    {
        "filePath": "{root}/src/a.ts",
        "messages": [
            {"ruleId": "no-undef", "severity": 2, "message": "'x' is not defined.", "line": 3},
            {"ruleId": "no-console", "severity": 1, "message": "Unexpected console.", "line": 4},
            {"ruleId": None, "fatal": True, "message": "Parsing error: bad token", "line": 9},
        ],
    },
    {"filePath": "{root}/src/b.ts", "messages": []},
]
RUFF = [
    {
        "code": "F401",
        "filename": "{root}/a.py",
        "location": {"column": 8, "row": 1},
        "message": "`os` imported but unused",
    },
    {
        "code": "F401",
        "filename": "{root}/b.py",
        "location": {"column": 8, "row": 7},
        "message": "`os` imported but unused",
    },
]


def sarif(*results: dict[str, Any]) -> bytes:
    rule = {"id": "S1", "defaultConfiguration": {"level": "error"}}
    driver = {"name": "Semgrep", "rules": [rule]}
    run = {"tool": {"driver": driver}, "results": list(results)}
    return json.dumps({"version": "2.1.0", "runs": [run]}).encode()


def finding(rule: str = "S1", **fields: Any) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": "src/a.ts"}, "region": {"startLine": 5}}
    locations = [{"physicalLocation": place}]
    return {"ruleId": rule, "message": {"text": "eval is unsafe"}, "locations": locations, **fields}


def own(**fields: Any) -> bytes:
    return json.dumps({"gate": "review", **fields}).encode()


def broken(*tests: str) -> bytes:
    failures = [{"test": name, "message": f"TypeError: {name} is broken"} for name in tests]
    return own(gate="pytest", failures=failures)


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 9)


def at(monkeypatch: pytest.MonkeyPatch, hour: int) -> None:
    monkeypatch.setenv("LOKI_NOW", f"2026-01-20T{hour:02}:00:00Z")


# -- reports ---------------------------------------------------------------------------------------


def test_a_junit_report_says_what_failed_and_when() -> None:
    found = verdict_in(JUNIT.encode())
    assert (found.gate, found.outcome, found.seconds) == ("pytest", "failure", 0.088)
    assert [one.name for one in found.failures] == ["test_a::test_paging", "test_a::test_db"]
    assert "E   RuntimeError: no database" in found.failures[1].message


def test_a_suite_without_failures_passed_and_may_be_nested() -> None:
    inner = '<testsuite name="a" time="1.5"><testcase name="t"/></testsuite>'
    found = verdict_in(f'<testsuites name="jest tests">{inner * 2}</testsuites>'.encode())
    assert (found.gate, found.outcome, found.seconds) == ("jest", "success", 3.0)
    nested = verdict_in(f'<testsuite name="all" time="9">{inner}</testsuite>'.encode())
    assert nested.seconds == 1.5


def test_a_failure_of_a_whole_suite_counts() -> None:
    found = verdict_in(b'<testsuite name="go"><error message="build failed"/></testsuite>')
    assert found.failures == [GateFailure("go", "build failed")]


def test_of_eslint_only_errors_fail() -> None:
    found = verdict_in(json.dumps(ESLINT).encode())
    assert (found.gate, found.outcome) == ("eslint", "failure")
    assert found.failures == [
        GateFailure("no-undef", "no-undef 'x' is not defined.", "{root}/src/a.ts", 3),
        GateFailure("", "Parsing error: bad token", "{root}/src/a.ts", 9),
    ]


def test_a_list_without_findings_passed_and_does_not_say_who() -> None:
    assert verdict_in(b"[]")[:3] == ("", "success", [])
    assert verdict_in(b'[{"filePath": "a.ts", "messages": []}]')[:2] == ("eslint", "success")


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (finding(), "failure"),  # the level of its rule
        (finding(level="warning"), "partial"),
        (finding("S2"), "partial"),  # a warning is what the standard takes for granted
        (finding(level="note"), "success"),
        (finding(kind="pass"), "success"),
        (finding(suppressions=[{"kind": "inSource"}]), "success"),
    ],
)
def test_sarif_has_levels(result: dict[str, Any], outcome: str) -> None:
    found = verdict_in(sarif(result))
    assert (found.gate, found.outcome) == ("semgrep", outcome)
    expected = GateFailure(result["ruleId"], f"{result['ruleId']} eval is unsafe", "src/a.ts", 5)
    assert found.failures == ([] if outcome == "success" else [expected])


def test_our_own_form_needs_little() -> None:
    found = verdict_in(own(failures=["The query is not escaped"], run_id="ci-7"))
    assert (found.gate, found.outcome, found.run) == ("review", "failure", "ci-7")
    assert found.failures == [GateFailure("", "The query is not escaped")]
    assert verdict_in(own()).outcome == "success"


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (
            b'<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/passwd">]><testsuite>&a;</testsuite>',
            "document type",
        ),
        (b'<!DOCTYPE t [<!ENTITY a "b">]><testsuite name="&a;"/>', "document type"),
        (b"<testsuite", "not valid XML"),
        (b'<?xml version="1.0" encoding="nope"?><testsuite/>', "not valid XML"),
        (b"<html/>", "no JUnit report"),
        (b" \n", "is empty"),
        (b"{", "JSON"),
        (b"{}", "no report of a gate"),
        (b"[1]", "something else"),
        (b'[{"a": 1}]', "no list of findings"),
        (b'{"gate": "x", "failures": {}}', "must be a list"),
        (b'{"gate": "x", "failures": [{"line": 3}]}', "is empty"),
    ],
)
def test_what_is_no_report_is_refused_in_words(report: bytes, reason: str) -> None:
    with pytest.raises(InvalidRecord, match=reason):
        verdict_in(report)


@pytest.mark.parametrize(
    "report",
    [
        b'{"runs": [1, {"results": [null, {"ruleId": 3}], "tool": []}]}',
        b'{"runs": [{"results": {}, "tool": {"driver": {"rules": [1]}}}]}',
        b'[{"filePath": 1, "messages": [null, {"severity": 2, "line": "x"}]}]',
        b'[{"filename": null, "message": [], "location": 4, "code": {}}]',
        b'{"gate": 5, "outcome": [], "failures": null}',
    ],
)
def test_a_report_of_odd_shape_breaks_nothing(report: bytes) -> None:
    assert verdict_in(report).outcome in {"success", "failure", "partial"}


# -- episodes --------------------------------------------------------------------------------------


def test_a_verdict_is_an_episode_with_its_errors(ws: Workspace) -> None:
    text = json.dumps(RUFF).replace("{root}", str(ws.layout.root))
    episode = record_verdict(ws, text.encode(), GateOptions(agent="ci", task="task-7"))
    document = episode.document()
    assert document["context"] == {
        "phase": "review",
        "goal": "Pass ruff",
        "files_involved": ["a.py", "b.py"],
    }
    assert document["errors_encountered"] == [  # each once, where it was first found
        {"type": "F401", "message": "a.py:1: F401 `os` imported but unused"}
    ]
    assert (episode.outcome, episode.agent, episode.task_id) == ("failure", "ci", "task-7")
    assert (episode.tags, episode.origin) == (["gate:ruff"], "agent")
    [warning] = ws.list(kind="anti-pattern")
    assert warning.title() == "F401 `…` imported but unused"


def test_a_report_is_recorded_once(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    first = record_verdict(ws, JUNIT.encode())
    assert first.timestamp == "2026-01-20T12:34:51Z"
    at(monkeypatch, 15)
    assert record_verdict(ws, JUNIT.encode()) == first
    assert len(ws.list(kind="episode")) == 1


def test_runs_that_do_not_say_when_are_told_apart_by_the_clock(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = record_verdict(ws, broken("test_a"))
    at(monkeypatch, 10)
    assert record_verdict(ws, broken("test_a")).id != first.id


def test_what_is_said_besides_wins(ws: Workspace) -> None:
    told = GateOptions(gate="unit tests", goal="Release 1.0", outcome="partial")
    episode = record_verdict(ws, JUNIT.encode(), told)
    assert (episode.goal, episode.outcome) == ("Release 1.0", "partial")
    assert episode.tags == ["gate:unit tests"]


def test_the_error_of_a_test_is_the_one_that_an_agent_would_meet(ws: Workspace) -> None:
    record_verdict(ws, JUNIT.encode())
    hits = ws.recall("what now?", error="RuntimeError: no database", kinds=["anti-pattern"])
    assert "RuntimeError: no database" in hits[0].title


def test_a_long_message_keeps_the_line_that_says_what_went_wrong(ws: Workspace) -> None:
    noise = "\n".join(f"  at frame {number}" for number in range(100))
    said = f"{noise}\nTypeError: x is not a function\n{noise}"
    episode = record_verdict(ws, own(failures=[said]))
    message = episode.errors_encountered[0].message
    assert "TypeError: x is not a function" in message
    assert len(message) < 800


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (own(outcome="failed"), "shows no failure"),
        (own(outcome="partial"), "shows no failure"),
        (own(outcome="maybe"), "outcome"),
        (b"[]", "--gate"),
    ],
)
def test_a_verdict_without_evidence_or_name_is_refused(
    ws: Workspace, report: bytes, reason: str
) -> None:
    with pytest.raises(InvalidRecord, match=reason):
        record_verdict(ws, report)
    assert ws.list(kind="episode") == []


def test_a_gate_is_judged_by_its_last_verdict(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_verdict(ws, broken("test_a", "test_b"))
    record_verdict(ws, own(gate="lint", failures=["W1 bad", "W1 bad"]))
    assert failing_now(ws) == ["lint: W1 bad", "pytest: test_a", "pytest: test_b"]
    at(monkeypatch, 10)
    record_verdict(ws, broken("test_b"))
    record_verdict(ws, own(gate="lint"))
    assert failing_now(ws) == ["pytest: test_b"]


# -- what a pass tells -----------------------------------------------------------------------------


@pytest.fixture
def repo(project: Path) -> Workspace:
    git(project, "init", "-q", "-b", "main")
    commit(project, "Begin")
    return Workspace.init(project)


def commit(project: Path, subject: str) -> str:
    file = project / "code.py"
    file.write_text(f"# {subject}\n", encoding="utf-8")
    git(project, "add", "code.py")
    git(project, "commit", "-qm", subject)
    return git(project, "rev-parse", "HEAD")[:10]


def test_a_pass_tells_which_commit_resolved_the_failure(
    repo: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_verdict(repo, broken("test_a", "test_b"))
    first = commit(project, "Guard against an empty page")
    at(monkeypatch, 10)
    record_verdict(repo, broken("test_b"))
    second = commit(project, "Close the cursor")
    repo.history.commit()  # memory's own commits resolve nothing
    at(monkeypatch, 11)
    passed = record_verdict(repo, own(gate="pytest"))
    assert passed.outcome == "success"
    assert {met.type: met.resolution for met in passed.errors_encountered} == {
        "test_a": f"Guard against an empty page ({first}); Close the cursor ({second})",
        "test_b": f"Close the cursor ({second})",
    }
    warnings = [one for one in repo.list(kind="anti-pattern") if isinstance(one, AntiPattern)]
    advice = {one.what_fails: [way.do for way in one.resolutions] for one in warnings}
    assert any("Close the cursor" in way for ways in advice.values() for way in ways)


def test_of_many_commits_nobody_knows_which_one_helped(
    repo: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_verdict(repo, broken("test_a"))
    for number in range(4):
        commit(project, f"Change {number}")
    at(monkeypatch, 10)
    assert record_verdict(repo, own(gate="pytest")).errors_encountered == []


def test_a_pass_says_nothing_of_failures_before_the_last_pass_or_of_other_gates(
    repo: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_verdict(repo, broken("test_a"))
    record_verdict(repo, own(gate="lint", failures=["W1 bad"]))
    commit(project, "Fix")
    for hour, told in ((10, 1), (11, 0)):
        at(monkeypatch, hour)
        assert len(record_verdict(repo, own(gate="pytest")).errors_encountered) == told


def test_without_git_a_pass_is_a_success_and_no_more(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_verdict(ws, broken("test_a"))
    at(monkeypatch, 10)
    passed = record_verdict(ws, own(gate="pytest"))
    assert (passed.outcome, passed.errors_encountered) == ("success", [])


# -- the command -----------------------------------------------------------------------------------


def test_a_report_is_recorded_from_the_command_line(
    ws: Workspace, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "junit.xml").write_text(JUNIT, encoding="utf-8")
    given = ["record", "--from-gate", str(project / "junit.xml"), "--agent", "ci", "--json"]
    cli.main(["-C", str(project), *given], prog_name="loki-mem", standalone_mode=False)
    [stored] = json.loads(capsys.readouterr().out)["stored"]
    assert (stored["record"]["agent"], stored["record"]["outcome"]) == ("ci", "failure")


@pytest.mark.parametrize("call", ["--from-gate x.xml episode.json", "--gate review"])
def test_a_report_stands_by_itself(ws: Workspace, project: Path, call: str) -> None:
    with pytest.raises(click.UsageError):
        cli.main(["-C", str(project), "record", *call.split()], standalone_mode=False)


def test_the_message_of_a_junit_failure_is_read_beside_its_body() -> None:
    report = (
        b'<testsuite name="js"><testcase name="adds"><failure message="AssertionError: 1 is not 2">'
        b"at add.test.js:4:9</failure></testcase></testsuite>"
    )
    (failure,) = verdict_in(report).failures
    assert failure.message == "AssertionError: 1 is not 2\nat add.test.js:4:9"
