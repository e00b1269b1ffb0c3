"""Merging memory in real repositories: with the driver, and mended after the fact without it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loki_memory import Workspace
from loki_memory.files.codec import decode, encode
from loki_memory.files.layout import place
from loki_memory.history.resolve import merge_files, resolve
from loki_memory.install.git import install_git
from loki_memory.models import AntiPattern, Belief, Episode, Fact, Memory, Skill, parse

PROGRAM = str(Path(sys.executable).with_name("loki-mem"))


class Clone:
    """A clone with a workspace, and git with an identity."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ws = Workspace.init(folder)

    def git(self, *args: str, fails: bool = False) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        command = ["git", *identity, "-c", "core.editor=true", *args]
        done = subprocess.run(command, cwd=self.folder, check=False, capture_output=True, text=True)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout.strip()

    def path(self, record: Memory) -> Path:
        return self.folder / ".loki/memory" / place(record)

    def put(self, record: Memory, path: str = "") -> None:
        self.ws.store.write(record, path)

    def commit(self, message: str = "x") -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def record(self, like: Memory) -> Any:
        return decode(place(like), self.path(like).read_bytes())

    def unmerged(self) -> str:
        return self.git("ls-files", "-u")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    folder = tmp_path / "clone"
    folder.mkdir()
    clone = Clone(folder)
    clone.git("init", "-q", "-b", "main")
    clone.put(FACT)
    clone.commit("begin")
    return clone


FACT = parse(Fact, {"id": "fact-001", "statement": "Use pnpm", "tags": ["build"]})
OURS = FACT.changed(tags=["build", "ours"], category="build", pinned=True)
THEIRS = FACT.changed(tags=["build", "theirs"], importance=0.9)


def diverge(clone: Clone, ours: Memory, theirs: Memory) -> None:
    """Two branches from here, `main` and `other`, that each wrote a record; `main` is out."""
    clone.git("switch", "-qc", "other")
    clone.put(theirs)
    clone.commit("theirs")
    clone.git("switch", "-q", "main")
    clone.put(ours)
    clone.commit("ours")


def both_are_in(fact: Fact) -> bool:
    return (fact.tags, fact.category, fact.importance) == (
        ["build", "ours", "theirs"],
        "build",
        0.9,
    )


# -- with the driver -------------------------------------------------------------------------------


def merged(clone: Clone) -> None:
    clone.git("merge", "-q", "--no-edit", "other")


def rebased(clone: Clone) -> None:
    clone.git("rebase", "-q", "other")


def picked(clone: Clone) -> None:
    clone.git("cherry-pick", "other")


def squashed(clone: Clone) -> None:
    clone.git("merge", "-q", "--squash", "other")
    clone.git("commit", "-qm", "squashed")


@pytest.mark.parametrize("act", [merged, rebased, picked, squashed])
def test_git_merges_records_that_both_sides_changed(
    clone: Clone, act: Callable[[Clone], None]
) -> None:
    install_git(clone.ws)
    clone.commit("attributes")
    diverge(clone, OURS, THEIRS)
    act(clone)
    assert both_are_in(clone.record(FACT))
    assert clone.git("status", "--porcelain") == ""
    assert clone.path(FACT).read_bytes() == encode(clone.record(FACT))


def test_git_pops_a_stash_over_a_record_that_changed_meanwhile(clone: Clone) -> None:
    install_git(clone.ws)
    clone.commit("attributes")
    clone.put(THEIRS)
    clone.git("stash", "-q")
    clone.put(OURS)
    clone.commit("ours")
    clone.git("stash", "pop")
    assert both_are_in(clone.record(FACT))


def test_two_clones_of_one_remote_pull_each_other(clone: Clone, tmp_path: Path) -> None:
    install_git(clone.ws)
    clone.commit("attributes")
    clone.git("clone", "-q", "--depth", "1", f"file://{clone.folder}", str(tmp_path / "second"))
    second = Clone(tmp_path / "second")
    install_git(second.ws)
    second.put(THEIRS)
    second.commit("theirs")
    clone.put(OURS)
    clone.commit("ours")
    second.git("fetch", "-q", "--depth", "2", "origin")
    second.git("merge", "-q", "--no-edit", "origin/main")
    assert both_are_in(second.record(FACT))


def test_skills_are_merged_by_the_driver(clone: Clone) -> None:
    skill = Skill.from_sections("release", "Release it.", steps=["build", "push"])
    clone.put(skill)
    install_git(clone.ws)
    clone.commit("skill")
    diverge(
        clone,
        skill.changed(body=skill.body.replace("1. build", "1. test\n2. build")),
        skill.changed(body=skill.body.replace("2. push", "2. push\n3. tell")),
    )
    merged(clone)
    assert clone.record(skill).steps == ["test", "build", "push", "tell"]


def test_a_path_with_spaces_and_quotes_reaches_the_driver_whole(clone: Clone) -> None:
    install_git(clone.ws)
    path = "semantic/facts/it's a fact.json"
    clone.put(FACT.changed(id="fact-002"), path)
    clone.commit("odd name")
    clone.git("switch", "-qc", "other")
    clone.put(THEIRS.changed(id="fact-002"), path)
    clone.commit()
    clone.git("switch", "-q", "main")
    clone.put(OURS.changed(id="fact-002"), path)
    clone.commit()
    merged(clone)
    data = (clone.folder / ".loki/memory" / path).read_bytes()
    assert both_are_in(decode(path, data))  # type: ignore[arg-type]


def test_what_cannot_be_read_is_left_with_markers(clone: Clone) -> None:
    install_git(clone.ws)
    clone.commit("attributes")
    diverge(clone, OURS, THEIRS)
    clone.path(FACT).write_text('{"id": "fact-001", "statement": \n')
    clone.commit("broken")
    clone.git("merge", "-q", "other", fails=True)
    assert "<<<<<<< " in clone.path(FACT).read_text()
    assert clone.unmerged()


def test_the_driver_merges_bytes_to_canonical_bytes_and_refuses_what_is_no_record() -> None:
    sides = encode(FACT), encode(OURS), encode(THEIRS)
    crlf = (side.replace(b"\n", b"\r\n") for side in sides)
    path = "sub/.loki/memory/semantic/facts/fact-001.json"
    data = merge_files(*sides, path)
    assert data == encode(decode("semantic/facts/fact-001.json", data or b""))
    assert merge_files(*crlf, path) == data
    assert merge_files(*sides, path.replace("memory/", "memory/archive/")) == data
    assert merge_files(*sides, "package.json") is None
    assert merge_files(*sides, ".loki/memory/semantic/facts.json") is None
    assert merge_files(sides[0], b"{", sides[2], path) is None


def test_a_secret_that_one_side_wrote_by_hand_is_not_merged_in() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    theirs = THEIRS.changed(statement=f"The token is {token}")
    path = ".loki/memory/semantic/facts/fact-001.json"
    data = merge_files(encode(FACT), encode(OURS), encode(theirs), path)
    assert data is not None
    assert token.encode() not in data


# -- resolve ---------------------------------------------------------------------------------------


def conflicted(clone: Clone, *act: str) -> None:
    diverge(clone, OURS, THEIRS)
    clone.git(*act, fails=True)
    assert clone.unmerged()


@pytest.mark.parametrize(
    "act",
    [
        ("merge", "other"),
        ("-c", "merge.conflictStyle=diff3", "merge", "other"),
        ("-c", "merge.conflictStyle=zdiff3", "merge", "other"),
        ("rebase", "other"),
        ("cherry-pick", "other"),
        ("merge", "--squash", "other"),
    ],
    ids=" ".join,
)
def test_resolve_mends_what_git_could_not_merge(clone: Clone, act: tuple[str, ...]) -> None:
    conflicted(clone, *act)
    [done] = resolve(clone.ws)
    assert (done.path, done.how, done.staged) == (place(FACT), "merged", True)
    assert both_are_in(clone.record(FACT))
    assert not clone.unmerged()


def test_resolve_mends_a_stash_that_did_not_fit(clone: Clone) -> None:
    clone.put(THEIRS)
    clone.git("stash", "-q")
    clone.put(OURS)
    clone.commit("ours")
    clone.git("stash", "pop", fails=True)
    assert [one.how for one in resolve(clone.ws)] == ["merged"]
    assert both_are_in(clone.record(FACT))


@pytest.mark.parametrize("style", ["merge", "diff3", "zdiff3"])
def test_resolve_mends_markers_that_somebody_committed(clone: Clone, style: str) -> None:
    diverge(clone, OURS, THEIRS)
    clone.git("-c", f"merge.conflictStyle={style}", "merge", "other", fails=True)
    clone.commit("with markers")
    before = clone.git("diff", "--cached")
    [done] = resolve(clone.ws)
    assert (done.how, done.staged) == ("merged", False)
    assert both_are_in(clone.record(FACT))
    assert clone.git("diff", "--cached") == before


def test_a_plan_changes_nothing(clone: Clone) -> None:
    conflicted(clone, "merge", "other")
    before = clone.path(FACT).read_bytes(), clone.unmerged()
    assert [one.how for one in resolve(clone.ws, plan_only=True)] == ["merged"]
    assert (clone.path(FACT).read_bytes(), clone.unmerged()) == before


def test_only_memory_that_was_unmerged_is_staged(clone: Clone) -> None:
    code = clone.folder / "app.py"
    code.write_text("a\n")
    clone.commit("code")
    conflicted(clone, "merge", "other")
    code.write_text("b\n")
    clone.put(parse(Fact, {"id": "fact-009", "statement": "Not staged"}))
    resolve(clone.ws)
    staged = clone.git("diff", "--cached", "--name-only").splitlines()
    assert staged == [f".loki/memory/{place(FACT)}"]


def test_a_file_that_was_mended_by_hand_is_left_alone(clone: Clone) -> None:
    conflicted(clone, "merge", "other")
    mended = encode(FACT.changed(statement="Use npm"))
    clone.path(FACT).write_bytes(mended)
    assert [one.how for one in resolve(clone.ws)] == ["left"]
    assert clone.path(FACT).read_bytes() == mended
    assert clone.unmerged()


def removed_and_changed(clone: Clone, remove: Callable[[], object]) -> None:
    clone.git("switch", "-qc", "other")
    remove()
    clone.commit("removed")
    clone.git("switch", "-q", "main")
    clone.put(OURS)
    clone.commit("ours")
    clone.git("merge", "other", fails=True)


def test_what_one_side_forgot_and_the_other_changed_is_kept(clone: Clone) -> None:
    removed_and_changed(clone, lambda: clone.ws.forget(FACT.id, "old"))
    [done] = resolve(clone.ws)
    assert done.how == "kept"
    assert clone.record(FACT) == OURS
    assert not clone.unmerged()


def test_what_one_side_archived_takes_the_change_along(clone: Clone) -> None:
    """Git follows a file to the archive by itself, unless it does not know it again there."""
    archived = clone.folder / ".loki/memory/archive" / place(FACT)
    marks = [f"mark-{number}" for number in range(40)]

    def archive() -> None:
        clone.ws.archive(FACT.id)
        archived.write_bytes(encode(FACT.changed(tags=["build", *marks])))

    removed_and_changed(clone, archive)
    [done] = resolve(clone.ws)
    assert done.how == "removed"
    assert not clone.path(FACT).exists()
    found = decode(place(FACT), archived.read_bytes())
    assert isinstance(found, Fact)
    assert {*found.tags} == {"build", "ours", *marks}
    assert found.pinned
    assert clone.git("status", "--porcelain", "--", ".loki/memory/archive").startswith("A ")


def test_what_one_side_rejected_is_not_brought_back(clone: Clone) -> None:
    def reject() -> None:
        clone.ws.reject(FACT.id, "wrong")
        clone.path(FACT).unlink()

    removed_and_changed(clone, reject)
    [done] = resolve(clone.ws)
    assert done.note == "it was rejected"
    assert clone.record(FACT).status == "rejected"


def episode(goal: str, **fields: Any) -> Episode:
    given = {"id": "ep-2026-01-06-001", "timestamp": "2026-01-06T10:00:00Z", "goal": goal}
    return parse(Episode, {**given, **fields})


def test_one_id_for_two_episodes_keeps_both_and_what_speaks_of_them(clone: Clone) -> None:
    build, docs = episode("Fix the build"), episode("Write the docs")
    path = "episodic/2026-01-06/one.json"
    clone.git("switch", "-qc", "other")
    clone.put(docs, path)
    clone.put(parse(Fact, {"id": "fact-docs", "statement": "D", "source_episodes": [docs.id]}))
    clone.commit("theirs")
    clone.git("switch", "-q", "main")
    clone.put(build, path)
    clone.put(parse(Fact, {"id": "fact-build", "statement": "B", "source_episodes": [build.id]}))
    clone.commit("ours")
    clone.git("merge", "other", fails=True)
    [done] = resolve(clone.ws)
    assert done.how == "told apart"
    assert any(build.id in notice for notice in clone.ws.notices)
    for fact, goal in (("fact-build", "Fix the build"), ("fact-docs", "Write the docs")):
        belief = clone.ws.get(fact)
        assert isinstance(belief, Belief)
        [source] = belief.source_episodes
        assert clone.ws.get(source).title() == goal
    assert clone.git("status", "--porcelain").count("??") == 0
    assert not clone.ws.care.problems()


def test_views_that_somebody_tracked_are_taken_over_from_both_sides(clone: Clone) -> None:
    view = clone.folder / ".loki/memory/semantic/patterns.json"

    def write(*patterns: str) -> None:
        rows = [{"id": f"sem-{text}", "pattern": f"Use {text}"} for text in patterns]
        view.write_text(json.dumps({"patterns": rows}, indent=2))
        clone.git("add", "-Af", ".")
        clone.git("commit", "-qm", "view")

    write("a")
    clone.git("switch", "-qc", "other")
    write("a", "b")
    clone.git("switch", "-q", "main")
    write("a", "c")
    clone.git("merge", "other", fails=True)
    assert [one.how for one in resolve(clone.ws)] == ["taken over"]
    assert {one.id for one in clone.ws.list(kind="pattern")} == {"sem-a", "sem-b", "sem-c"}
    assert not clone.unmerged()


def test_nothing_to_resolve_is_no_error(ws: Workspace) -> None:
    assert resolve(ws) == []


# -- the commands ----------------------------------------------------------------------------------


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, *args]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


def test_the_commands_install_resolve_and_say_what_they_did(clone: Clone) -> None:
    conflicted(clone, "merge", "other")
    plan = run(clone.folder, "resolve", "--plan", "--json")
    assert json.loads(plan.stdout)["resolved"][0]["how"] == "merged"
    done = run(clone.folder, "resolve")
    assert done.returncode == 0
    assert "merged" in done.stdout
    assert "marked as resolved" in done.stderr
    assert "no memory file has a conflict" in run(clone.folder, "resolve").stdout
    assert run(clone.folder, "install", "git").returncode == 0
    assert "as it was" in run(clone.folder, "install", "git").stdout
    assert run(clone.folder, "uninstall", "git").returncode == 0
    assert run(clone.folder, "install", "nowhere").returncode == 2


def test_resolve_exits_with_1_where_a_person_is_needed(clone: Clone) -> None:
    diverge(clone, OURS, THEIRS)
    clone.path(FACT).write_text('{"id": \n')
    clone.commit("broken")
    clone.git("merge", "other", fails=True)
    done = run(clone.folder, "resolve")
    assert done.returncode == 1
    assert "left" in done.stdout


# -- learning on two clones ------------------------------------------------------------------------


def met(number: int, error: str, fix: str, session: str) -> dict[str, Any]:
    return {
        "goal": f"Add endpoint {number}",
        "timestamp": f"2026-01-0{number}T10:00:00Z",
        "session": session,
        "outcome": "success",
        "files_modified": ["src/api.py"],
        "errors_encountered": [{"type": "TypeError", "message": error, "resolution": fix}],
    }


ERROR, OTHER = "TypeError: 'id' must be a string", "KeyError: 'user'"
SEEN = [
    met(1, ERROR, "Convert the id with str()", "s1"),
    met(2, ERROR, "Convert the id with str()", "s2"),
    met(3, OTHER, "Load the user first", "s3"),
    met(4, ERROR, "Convert the id with str()", "s4"),
    met(5, OTHER, "Load the user first", "s5"),
]


def live(workspace: Workspace) -> dict[str, Any]:
    found = workspace.list(status="all")
    return {
        one.id: one.document()
        for one in found
        if isinstance(one, (Belief, Skill)) and getattr(one, "status", "") != "superseded"
    }


@pytest.mark.parametrize("begun", [SEEN[:2], []], ids=["from beliefs", "from nothing"])
def test_two_clones_that_learned_apart_end_where_one_that_saw_all_does(
    tmp_path: Path, project: Path, begun: list[dict[str, Any]]
) -> None:
    first = learner(tmp_path, "first")
    first.ws.record(begun)
    first.ws.consolidate()
    first.commit("begin")
    first.git("clone", "-q", str(first.folder), str(tmp_path / "second"))
    second = Clone(tmp_path / "second")
    for one, seen in ((first, SEEN[:3]), (second, [*SEEN[:2], *SEEN[3:]])):
        install_git(one.ws)
        one.ws.record(seen)
        one.ws.consolidate()
        one.commit("learned")
    first.git("pull", "-q", "--no-rebase", "--no-edit", str(second.folder), "main")
    assert not first.ws.care.problems()
    first.ws.consolidate(day="2026-01-05")
    one = Workspace.init(project)
    one.record(SEEN)
    one.consolidate(day="2026-01-05")
    assert live(first.ws) == live(one)
    errors = [
        found for found in first.ws.list(kind="anti-pattern") if isinstance(found, AntiPattern)
    ]
    assert sorted(len(found.evidence.for_) for found in errors) == [2, 3]


def learner(tmp_path: Path, name: str) -> Clone:
    (tmp_path / name).mkdir()
    clone = Clone(tmp_path / name)
    clone.git("init", "-q", "-b", "main")
    return clone
