"""Faults of other systems that no other test of ours has as its subject, by their number.

The table in docs/reliability.md names the test of every fault; a test here compares it.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

from loki_memory import Workspace

ROOT = Path(__file__).resolve().parents[2]
RECORDS = 300
# Every file that Python itself opens, while a workspace is written, read, damaged and repaired.
OPENED = """
import sys
seen = []
sys.addaudithook(lambda event, given: seen.append(str(given[0])) if event == "open" else None)
from loki_memory import Workspace
with Workspace.init(sys.argv[1]) as workspace:
    workspace.remember("The build needs node 22")
    workspace.sync()
    workspace.recall("node")
    workspace.rebuild()
    workspace.care.doctor(deep=True)
print(sum(name.endswith(".json") for name in seen))
print([name for name in seen if name.endswith(("index.db", "-wal", "-shm", "-journal"))])
"""


def test_f09_one_bad_file_among_many_is_reported_and_all_others_are_served(ws: Workspace) -> None:
    folder = ws.layout.memory / "semantic" / "facts"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(RECORDS):
        record = {"id": f"fact-n{number}", "statement": f"Fact {number}"}
        (folder / f"fact-n{number}.json").write_text(json.dumps(record))
    assert len(ws.list(kind="fact")) == RECORDS
    assert ws.care.problems() == []
    (folder / "fact-n7.json").write_text('{"id": "fact-n7"}{"id": "fact-n8"}')
    ws.sync()
    assert len(ws.list(kind="fact")) == RECORDS - 1
    assert [problem.path for problem in ws.care.problems()] == ["semantic/facts/fact-n7.json"]


def test_f12_nobody_but_sqlite_opens_the_database(project: Path) -> None:
    """A descriptor of our own on it would, when closed, drop SQLite's locks."""
    run = subprocess.run(
        [sys.executable, "-c", OPENED, str(project)], capture_output=True, text=True, check=True
    )
    others, database = run.stdout.splitlines()
    assert int(others) > 0
    # An empty file is made before SQLite knows of it, with the rights that it shall have.
    made = [name for name in json.loads(database.replace("'", '"')) if name != "index.db"]
    assert made == []


def test_f47_what_the_command_line_writes_the_library_reads(project: Path) -> None:
    """One store, one way to find its root, whichever door is used."""
    Workspace.init(project).close()
    inside = project / "src" / "deep"
    inside.mkdir(parents=True)
    call = [sys.executable, "-m", "loki_memory", "remember", "The build needs node 22"]
    subprocess.run(call, cwd=inside, capture_output=True, check=True)
    with Workspace.open(project) as workspace:
        assert [memory.title() for memory in workspace.list()] == ["The build needs node 22"]
    assert not list(inside.iterdir())


# -- the table -------------------------------------------------------------------------------------


def _table() -> dict[str, str]:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| (F\d\d) \|(.*)$", text, re.MULTILINE))


def test_the_table_has_every_fault() -> None:
    assert list(_table()) == [f"F{number:02}" for number in range(1, 49)]


def test_each_test_that_the_table_names_exists() -> None:
    for fault, row in _table().items():
        named = re.findall(r"`(tests/\S+?\.py)::(\w+)`", row)
        assert named or "not applicable" in row or "benchmarks/" in row, fault
        for file, test in named:
            assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), (fault, test)


def test_each_defence_that_is_taken_away_stands_where_the_list_says() -> None:
    """The list is run by hand; a defence that moved would be noticed months later."""
    path = ROOT / "benchmarks" / "long" / "defences.py"
    for name, defence in runpy.run_path(str(path))["DEFENCES"].items():
        code = (ROOT / "loki_memory" / defence.file).read_text(encoding="utf-8")
        assert defence.code in code, name
        for test in defence.tests:
            file, _, function = test.partition("::")
            tests = (ROOT / file).read_text(encoding="utf-8")
            assert not function or f"def {function}(" in tests, test
