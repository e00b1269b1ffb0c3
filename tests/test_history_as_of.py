"""The memory of a commit answers as a checkout of that commit would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import git

from loki_memory import Workspace
from loki_memory.errors import NoHistory, ReadOnlyPast, UnknownRevision
from loki_memory.history.as_of import Past, as_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Five commits: a fact, another and code, one forgotten, a broken file, an edited belief."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    ws = Workspace.init(root)
    first = ws.remember("Contract tests need the database running", category="testing")
    _commit(root, "1")
    (root / "app.py").write_text("def handler():\n    return 1\n")
    blob = git(root, "hash-object", "app.py")
    ws.remember("Handlers return numbers")
    cited = ws.list(kind="fact")[0]
    ws.correct(cited.id, citations=[{"path": "app.py", "blob": blob}])
    _commit(root, "2")
    ws.forget(first.id)
    (root / "app.py").write_text("def handler():\n    return 2\n")
    _commit(root, "3")
    (root / ".loki/memory/semantic/facts/broken.json").write_text('{"statement": ')
    _commit(root, "4")
    ws.correct(cited.id, statement="Handlers return numbers or nothing")
    ws.remember("Only here", scope="local")
    _commit(root, "5")
    return root


def _commit(root: Path, message: str) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)
    git(root, "tag", f"v{message}")


def _checkout(root: Path, tag: str, to: Path) -> Workspace:
    git(root, "clone", "-q", "-b", tag, str(root), str(to))
    return Workspace.open(to)


@pytest.mark.parametrize("tag", ["v1", "v2", "v3", "v4", "v5"])
def test_the_index_of_a_commit_equals_one_built_in_a_checkout(
    project: Path, tmp_path: Path, tag: str
) -> None:
    there = _checkout(project, tag, tmp_path / "there")
    there.rebuild()
    past = as_of(Workspace.open(project), tag)
    assert past.index.digest() == there.index.digest()


@pytest.mark.parametrize("tag", ["v1", "v2", "v3", "v5"])
@pytest.mark.parametrize("query", ["contract tests database", "what do handlers return?"])
def test_a_commit_recalls_what_its_checkout_recalls(
    project: Path, tmp_path: Path, tag: str, query: str
) -> None:
    there = _checkout(project, tag, tmp_path / "there")
    hits = Workspace.open(project).recall(query, as_of=tag)
    assert list(hits) == list(there.recall(query))


def test_a_memory_that_was_forgotten_since_is_recalled_from_before(project: Path) -> None:
    ws = Workspace.open(project)
    assert not ws.recall("contract tests")
    assert [hit.title for hit in ws.recall("contract tests", as_of="v1")] == [
        "Contract tests need the database running"
    ]


def test_code_that_changed_later_was_not_changed_yet(project: Path) -> None:
    ws = Workspace.open(project)
    assert not any(hit.stale for hit in ws.recall("handlers", as_of="v2"))
    assert [hit.stale for hit in ws.recall("handlers", k=1, as_of="v3")] == [True]


def test_a_second_question_makes_nothing_anew(project: Path) -> None:
    ws = Workspace.open(project)
    ws.recall("handlers", as_of="v2")
    index = as_of(ws, "v2").index.path
    assert index is not None
    before = index.stat().st_ino
    ws.recall("handlers", as_of="v2")
    assert index.stat().st_ino == before


def test_a_date_means_the_last_commit_until_then(project: Path) -> None:
    today = git(project, "log", "-1", "--format=%cs")
    assert as_of(Workspace.open(project), today).commit_id == git(project, "rev-parse", "HEAD")


def test_continuity_of_a_commit_tells_what_was_known_then(project: Path) -> None:
    ws = Workspace.open(project)
    told = ws.browse.continuity_block(goal="run the contract tests", as_of="v1")
    assert "Contract tests need the database running" in told
    assert "Contract tests" not in ws.browse.continuity_block(goal="run the contract tests")


def test_the_past_is_not_written_to(project: Path) -> None:
    with pytest.raises(ReadOnlyPast, match="cannot be changed"):
        Workspace.open(project).history.as_of("v1").remember("Something new")


def test_nothing_outside_the_cache_changes(project: Path) -> None:
    Workspace.open(project).recall("handlers", as_of="v3")
    assert git(project, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("rev", "error"), [("nowhere", UnknownRevision), ("1999-01-01", UnknownRevision)]
)
def test_an_unknown_commit_is_named(project: Path, rev: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=rev):
        Workspace.open(project).recall("x", as_of=rev)


def test_a_folder_without_git_says_so(tmp_path: Path) -> None:
    ws = Workspace.init(tmp_path / "plain") if (tmp_path / "plain").mkdir() is None else None
    assert ws is not None
    with pytest.raises(NoHistory, match="git init"):
        ws.recall("x", as_of="HEAD")


def test_memory_of_a_workspace_below_the_top_of_the_repository(tmp_path: Path) -> None:
    git_root = tmp_path / "mono"
    (git_root / "part").mkdir(parents=True)
    git(git_root, "init", "-q", "-b", "main")
    ws = Workspace.init(git_root / "part")
    ws.remember("Parts are built with make")
    _commit(git_root, "1")
    assert [hit.title for hit in ws.recall("how are parts built?", as_of="HEAD")] == [
        "Parts are built with make"
    ]


def test_only_the_states_used_last_are_kept(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loki_memory.history.as_of._KEPT", 2)
    ws = Workspace.open(project)
    made: Callable[[str], Past] = lambda tag: as_of(ws, tag)  # noqa: E731
    roots = [made(f"v{number}").layout.root for number in (1, 2, 3)]
    assert [root.exists() for root in roots] == [False, True, True]
