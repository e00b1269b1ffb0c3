"""Verify: what was changed outside the tool is found and named until somebody adopts it."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from loki_memory import Memory, Workspace
from loki_memory.cli.main import cli
from loki_memory.errors import NotFound
from loki_memory.files.layout import place
from loki_memory.git_repository import Repository
from loki_memory.integrity import write_log
from loki_memory.integrity.citations import blob_id, is_stale, still_stands
from loki_memory.integrity.findings import AnchoredPast, IntegrityFinding, examine
from loki_memory.integrity.reviewed import doubts
from loki_memory.integrity.verify import Verified, verify
from loki_memory.integrity.write_log import PUBLISHED
from loki_memory.models import Belief


def git(folder: Path, *args: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *args], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(ws: Workspace, subject: str = "memory", *, anchored: bool = True) -> str:
    """Commit all that is tracked, as `loki-mem commit` does: with the chain's head."""
    head = ws.store.publish_writes() if anchored else ""
    git(ws.layout.root, "add", "-A")
    trailer = ["--trailer", f"Loki-Head: {head}"] if head else []
    git(ws.layout.root, "commit", "-q", "-m", subject, *trailer)
    return head


@pytest.fixture
def repo(project: Path) -> Workspace:
    """A workspace in a repository, with two facts that are committed."""
    git(project, "init", "-q", "-b", "main")
    ws = Workspace.init(project)
    ws.remember("We deploy on Fridays")
    ws.remember("The tests need a database")
    commit(ws)
    return ws


def edit(ws: Workspace, memory: Memory, old: str, new: str) -> Path:
    """Change a record by hand."""
    path = ws.layout.resolve(place(memory))
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def found(result: Verified) -> list[tuple[str, str]]:
    return [(one.what, one.path) for one in result.findings]


def named(ws: Workspace, title: str) -> Memory:
    return next(memory for memory in ws.list() if memory.title() == title)


# -- records -------------------------------------------------------------------------------------


def test_what_the_tool_wrote_is_well(ws: Workspace) -> None:
    one = ws.remember("We deploy on Fridays")
    two = ws.remember("The tests need a database")
    ws.correct(one.id, category="process")
    ws.archive(two.id)
    ws.restore(two.id)
    ws.forget(one.id)
    ws.record({"goal": "Fix the build", "outcome": "success"})
    ws.sync()
    result = verify(ws)
    assert result.findings == []
    assert result.well
    assert result.records == len(ws.list())
    assert result.writers == 1


def test_a_record_that_was_edited_is_found_and_its_last_good_version_named(ws: Workspace) -> None:
    one = ws.remember("We deploy on Fridays")
    ws.correct(one.id, category="process")
    edit(ws, one, "Fridays", "Mondays")
    (finding,) = verify(ws).findings
    assert (finding.what, finding.id, finding.seq) == ("changed", one.id, 2)
    assert finding.said == "was edited by hand"
    assert finding.writer.startswith("w-")


def test_a_record_that_was_written_by_hand_is_not_witnessed(ws: Workspace) -> None:
    ws.remember("We deploy on Fridays")
    path = ws.layout.resolve("semantic/facts/fact-mine.json")
    path.write_text('{"id": "fact-mine", "statement": "The moon is far"}', encoding="utf-8")
    (finding,) = verify(ws).findings
    assert (finding.what, finding.id) == ("unwitnessed", "fact-mine")


def test_a_record_that_was_deleted_is_missing(ws: Workspace) -> None:
    one = ws.remember("We deploy on Fridays")
    ws.remember("The tests need a database")
    ws.layout.resolve(place(one)).unlink()
    (finding,) = verify(ws).findings
    assert (finding.what, finding.id, finding.seq) == ("missing", one.id, 1)


def test_a_record_that_cannot_be_read_is_damaged_and_cannot_be_adopted(ws: Workspace) -> None:
    one = ws.remember("We deploy on Fridays")
    path = edit(ws, one, "{", "")
    assert found(verify(ws)) == [("damaged", place(one))]
    assert found(verify(ws, adopt=[])) == [("damaged", place(one))]
    os.unlink(path)
    os.symlink("/dev/null", path)
    (finding,) = verify(ws).findings
    assert (finding.what, finding.said) == ("damaged", "cannot be read as a file")


def test_an_older_version_that_was_put_back_is_found(ws: Workspace) -> None:
    one = ws.remember("We deploy on Fridays")
    path = ws.layout.resolve(place(one))
    before = path.read_bytes()
    ws.correct(one.id, category="process")
    path.write_bytes(before)
    (finding,) = verify(ws).findings
    assert (finding.what, finding.said) == ("changed", "is an older version again")


def test_what_the_tool_writes_over_an_edit_by_hand_is_no_finding(ws: Workspace) -> None:
    one = ws.remember("We deploy on Fridays")
    edit(ws, one, "Fridays", "Mondays")
    ws.correct(one.id, category="process")
    assert verify(ws).findings == []
    assert ws.get(one.id).title() == "We deploy on Mondays"


def test_a_record_by_hand_that_consolidation_updates_is_no_finding(repo: Workspace) -> None:
    path = repo.layout.resolve("semantic/patterns/sem-cents.json")
    path.write_text('{"id": "sem-cents", "pattern": "Money is stored as integer cents"}')
    for number in (1, 2):
        helped = {"id": "sem-cents", "helpful": True}
        goal = {"goal": f"Bill {number}", "session": f"s{number}", "outcome": "success"}
        repo.record({**goal, "recalled": [helped]})
    repo.consolidate(commit=True)
    assert verify(repo).findings == []


def test_a_change_of_line_ends_alone_is_none(ws: Workspace) -> None:
    path = ws.layout.resolve(place(ws.remember("We deploy on Fridays")))
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert verify(ws).well


# -- adopting ------------------------------------------------------------------------------------


def test_a_workspace_from_before_the_chain_is_adopted_once(ws: Workspace) -> None:
    ws.remember("We deploy on Fridays")
    ws.remember("The tests need a database")
    os.unlink(write_log.chain_path(ws.layout))
    first = verify(ws)
    assert {one.what for one in first.findings} == {"unwitnessed"}
    assert doubts(ws.layout) == {}
    done = verify(ws, adopt=[])
    assert done.well
    assert len(done.adopted) == done.lines == 2
    assert verify(ws).well


def test_adopting_one_leaves_the_others_found(ws: Workspace) -> None:
    one, two = ws.remember("We deploy on Fridays"), ws.remember("The tests need a database")
    edit(ws, one, "Fridays", "Mondays")
    ws.layout.resolve(place(two)).unlink()
    done = verify(ws, adopt=[one.id])
    assert done.adopted == [place(one)]
    assert found(done) == [("missing", place(two))]
    assert verify(ws, adopt=[place(two)]).well
    assert verify(ws).well


def test_what_was_not_found_cannot_be_adopted(ws: Workspace) -> None:
    one = ws.remember("We deploy on Fridays")
    with pytest.raises(NotFound):
        verify(ws, adopt=[one.id])


def test_what_changes_after_it_was_seen_is_not_adopted_unseen(ws: Workspace) -> None:
    from loki_memory.integrity.verify import adoptions

    one = ws.remember("We deploy on Fridays")
    edit(ws, one, "Fridays", "Mondays")
    seen = examine(ws.layout, None)
    edit(ws, one, "Mondays", "Sundays")
    with ws.store.change():
        write_log.note(ws.layout, adoptions(seen.findings))
    assert found(verify(ws)) == [("changed", place(one))]


def test_records_that_nobody_vouches_for_are_kept_for_readers(ws: Workspace) -> None:
    one = ws.remember("We deploy on Fridays")
    edit(ws, one, "Fridays", "Mondays")
    verify(ws)
    ws.sync()
    etag = ws.index.scalar("SELECT etag FROM memories WHERE id = ?", one.id)
    assert doubts(ws.layout) == {place(one): etag}
    verify(ws, adopt=[])
    assert doubts(ws.layout) == {}


# -- chains and anchors --------------------------------------------------------------------------


def test_a_broken_chain_is_found_with_its_record_and_given_up_by_adopting(ws: Workspace) -> None:
    facts = [ws.remember(f"Fact number {n}") for n in range(4)]
    file = Path(write_log.chain_path(ws.layout))
    raw = write_log.split(file.read_bytes())
    file.write_bytes(b"".join(line + b"\n" for line in (*raw[:1], *raw[2:])))
    result = verify(ws)
    (broken,) = [one for one in result.findings if one.what == "chain"]
    assert broken.line == 2
    assert ("unwitnessed", place(facts[1])) in found(result)
    assert verify(ws, adopt=[]).well
    assert [path.name for path in file.parent.glob("*.broken")] == [f"{file.stem}~1.jsonl.broken"]
    assert verify(ws).well


def test_a_clone_verifies_what_others_wrote(repo: Workspace, tmp_path: Path) -> None:
    git(repo.layout.root, "clone", "-q", str(repo.layout.root), str(tmp_path / "clone"))
    clone = Workspace.open(tmp_path / "clone")
    result = verify(clone)
    assert result.well
    assert (result.records, result.writers, result.anchors) == (2, 1, 1)
    edit(clone, named(clone, "We deploy on Fridays"), "Fridays", "Mondays")
    assert [what for what, _ in found(verify(clone))] == ["changed"]


def test_two_clones_that_merge_are_well(repo: Workspace, tmp_path: Path) -> None:
    git(repo.layout.root, "clone", "-q", str(repo.layout.root), str(tmp_path / "clone"))
    clone = Workspace.open(tmp_path / "clone")
    clone.correct(named(clone, "We deploy on Fridays").id, category="process")
    clone.remember("Known to the clone")
    commit(clone)
    repo.forget(named(repo, "The tests need a database").id)
    repo.remember("Known here")
    commit(repo)
    git(repo.layout.root, "pull", "-q", "--no-edit", "--no-rebase", str(tmp_path / "clone"), "main")
    result = verify(repo)
    assert result.findings == []
    assert (result.records, result.writers, result.anchors) == (3, 2, 3)


def test_a_branch_that_is_switched_to_is_well(repo: Workspace) -> None:
    git(repo.layout.root, "checkout", "-q", "-b", "side")
    repo.correct(named(repo, "We deploy on Fridays").id, category="process")
    repo.remember("Known on the side")
    commit(repo)
    git(repo.layout.root, "checkout", "-q", "main")
    assert verify(repo).findings == []
    git(repo.layout.root, "merge", "-q", "side")
    assert verify(repo).findings == []


def test_a_committed_record_that_was_deleted_is_missing(repo: Workspace) -> None:
    one = named(repo, "We deploy on Fridays")
    repo.layout.resolve(place(one)).unlink()
    (finding,) = verify(repo).findings
    assert (finding.what, finding.said) == ("missing", "is committed here, and gone")


def test_a_deletion_by_a_foreign_commit_is_found_with_that_commit(repo: Workspace) -> None:
    one = named(repo, "We deploy on Fridays")
    repo.layout.resolve(place(one)).unlink()
    commit(repo, "clean up", anchored=False)
    (finding,) = verify(repo).findings
    assert finding.what == "missing"
    assert git(repo.layout.root, "rev-parse", "HEAD")[:10] in finding.said
    assert verify(repo, adopt=[one.id]).well


def test_a_record_that_was_never_committed_is_missing_too(repo: Workspace) -> None:
    one = repo.remember("Not committed")
    repo.layout.resolve(place(one)).unlink()
    assert found(verify(repo)) == [("missing", place(one))]


def test_a_record_of_another_worktree_is_not_missing_here(repo: Workspace, tmp_path: Path) -> None:
    git(repo.layout.root, "worktree", "add", "-q", str(tmp_path / "other"))
    Workspace.open(tmp_path / "other").remember("Known in the other worktree")
    assert verify(repo).findings == []


def test_a_commit_adopts_an_edit_by_hand(repo: Workspace) -> None:
    one = named(repo, "We deploy on Fridays")
    edit(repo, one, "Fridays", "Mondays")
    assert found(verify(repo)) == [("changed", place(one))]
    commit(repo)
    assert found(verify(repo)) == []


def test_a_chain_that_was_written_anew_misses_its_anchor(repo: Workspace) -> None:
    """Whoever writes all chains anew, published ones too, leaves what was anchored behind."""
    one = named(repo, "We deploy on Fridays")
    edit(repo, one, "Fridays", "Mondays")
    anchored = repo.store.publish_writes()
    os.unlink(write_log.chain_path(repo.layout))
    for file in repo.layout.resolve("witness").rglob("*.jsonl"):
        file.unlink()
    (finding,) = verify(repo, adopt=[one.id]).findings
    writer, seq, _ = anchored.split(":")
    assert (finding.what, finding.writer, finding.seq) == ("anchor", writer, int(seq))
    assert verify(repo, adopt=[]).well


def test_a_published_file_that_was_damaged_is_found_and_can_be_adopted(
    repo: Workspace, tmp_path: Path
) -> None:
    git(repo.layout.root, "clone", "-q", str(repo.layout.root), str(tmp_path / "clone"))
    clone = Workspace.open(tmp_path / "clone")
    (file,) = clone.layout.resolve("witness").rglob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b'"put"', b'"adopt"', 1))
    broken = [one for one in verify(clone).findings if one.what == "chain"]
    assert [(one.path.startswith(PUBLISHED), one.line) for one in broken] == [(True, 2)]
    assert verify(clone, adopt=[]).well
    git(clone.layout.root, "checkout", "-q", "--", ".")
    assert verify(clone).well


# -- a thousand mutations ------------------------------------------------------------------------


class Store(NamedTuple):
    """A store of some fifty records, half of its chain anchored, and all its files by path."""

    ws: Workspace
    past: AnchoredPast
    files: dict[Path, bytes]
    chain: Path
    anchored: int  # lines
    states: list[dict[Path, bytes]]  # the records after each line


@pytest.fixture
def stored(project: Path) -> Store:
    git(project, "init", "-q", "-b", "main")
    ws = Workspace.init(project)
    states: list[dict[Path, bytes]] = []

    def keep(_: object) -> None:
        states.append({p: p.read_bytes() for p in sorted(ws.layout.memory.rglob("fact-*.json"))})

    facts = []
    for n in range(25):
        facts.append(ws.remember(f"The service number {n} listens on port {8000 + n}"))
        keep(facts)
    keep(ws.correct(facts[3].id, category="ports"))
    keep(ws.forget(facts[4].id))
    commit(ws)
    for n in range(25, 50):
        facts.append(ws.remember(f"The service number {n} listens on port {8000 + n}"))
        keep(facts)
    keep(ws.correct(facts[30].id, category="ports"))
    keep(ws.forget(facts[31].id))
    file = Path(write_log.chain_path(ws.layout))
    lines = len(write_log.split(file.read_bytes()))
    assert lines == len(states)
    repository = Repository.find(project)
    assert repository is not None
    published = list(ws.layout.resolve("witness").rglob("*.jsonl"))
    files = {p: p.read_bytes() for p in (*states[-1], *published, file)}
    return Store(ws, AnchoredPast(repository), files, file, 27, states)


def records(store: Store) -> list[Path]:
    return sorted(store.states[-1])


def chains(store: Store) -> list[Path]:
    return sorted(path for path in store.files if path.suffix == ".jsonl")


def path_of(store: Store, file: Path) -> str:
    return file.relative_to(store.ws.layout.memory).as_posix()


Blamed = Callable[[list[IntegrityFinding]], bool]
Mutated = tuple[Path, Blamed]  # the file, and whether findings tell of what happened to it


def blames(path: str) -> Blamed:
    """Some finding is about this record, as its subject or by name."""
    return lambda findings: any(one.path == path or path in one.said for one in findings)


def flip_in_record(store: Store, dice: random.Random) -> Mutated:
    file = dice.choice(records(store))
    data = bytearray(store.files[file])
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    file.write_bytes(bytes(data))
    return file, blames(path_of(store, file))


def edit_record(store: Store, dice: random.Random) -> Mutated:
    file = dice.choice(records(store))
    document = json.loads(store.files[file])
    document["statement"] += f" or {dice.randrange(1000)}"
    file.write_bytes(json.dumps(document, indent=2).encode() + b"\n")
    return file, blames(path_of(store, file))


def delete_record(store: Store, dice: random.Random) -> Mutated:
    file = dice.choice(records(store))
    file.unlink()
    return file, blames(path_of(store, file))


def raw_lines(store: Store, file: Path) -> list[bytes]:
    return write_log.split(store.files[file])


def rewrite(file: Path, raw: list[bytes]) -> None:
    file.write_bytes(b"".join(line + b"\n" for line in raw))


def about_line(store: Store, file: Path, *numbers: int) -> Blamed:
    """The chain's file is named, and the record that one of its lines speaks of."""
    raw = raw_lines(store, file)
    paths = [json.loads(raw[number])["path"] for number in numbers]

    def check(findings: list[IntegrityFinding]) -> bool:
        broken = [one for one in findings if one.what == "chain"]
        return any(Path(one.path).name == file.name for one in broken) and any(
            blames(path)(findings) for path in paths
        )

    return check


def flip_in_line(store: Store, dice: random.Random) -> Mutated:
    file = dice.choice(chains(store))
    raw = raw_lines(store, file)
    number = dice.randrange(len(raw) - 1)  # the last line is the tail's
    line = bytearray(raw[number])
    line[dice.randrange(len(line))] ^= 1 << dice.randrange(8)
    rewrite(file, [*raw[:number], bytes(line), *raw[number + 1 :]])
    return file, about_line(store, file, max(0, number - 1), number, number + 1)


def delete_line(store: Store, dice: random.Random) -> Mutated:
    file = dice.choice(chains(store))
    raw = raw_lines(store, file)
    number = dice.randrange(len(raw) - 1)
    rewrite(file, [*raw[:number], *raw[number + 1 :]])
    return file, about_line(store, file, max(0, number - 1), number, number + 1)


def swap_lines(store: Store, dice: random.Random) -> Mutated:
    file = dice.choice(chains(store))
    raw = raw_lines(store, file)
    a, b = sorted(dice.sample(range(len(raw)), 2))
    raw[a], raw[b] = raw[b], raw[a]
    rewrite(file, raw)
    return file, about_line(store, file, a, b)


INTERIOR = (flip_in_record, edit_record, delete_record, flip_in_line, delete_line, swap_lines)


def test_a_thousand_random_mutations_are_found_and_attributed(stored: Store) -> None:
    assert examine(stored.ws.layout, stored.past).findings == []
    dice = random.Random(5)  # noqa: S311 - the same mutations every time
    unseen = []
    for number in range(1000):
        mutate = INTERIOR[number % len(INTERIOR)]
        file, blamed = mutate(stored, dice)
        if not blamed(examine(stored.ws.layout, stored.past).findings):
            unseen.append((number, mutate.__name__))
        file.write_bytes(stored.files[file])
    assert unseen == []
    assert examine(stored.ws.layout, stored.past).findings == []


def test_a_tail_that_was_cut_with_its_records_is_found_if_it_was_anchored(stored: Store) -> None:
    """Whoever cuts the chain and takes the files back to that moment is seen by the anchor only."""
    raw = raw_lines(stored, stored.chain)
    for file in chains(stored):
        if file != stored.chain:
            file.unlink()  # what was published would tell as well
    for kept in range(1, len(raw)):
        rewrite(stored.chain, raw[:kept])
        for file in stored.ws.layout.memory.rglob("fact-*.json"):
            file.unlink()
        for file, data in stored.states[kept - 1].items():
            file.write_bytes(data)
        kinds = {one.what for one in examine(stored.ws.layout, stored.past).findings}
        assert ("anchor" in kinds) == (kept < stored.anchored), kept
        if kept >= stored.anchored:
            assert kinds == set()


# -- citations -----------------------------------------------------------------------------------

CODE = """\
import os


def connect(port):
    if port < 0:
        raise ValueError(port)
    return os.open(port)


def close():
    pass
"""


def citing(ws: Workspace, code: str, symbol: str | None) -> Memory:
    """A belief about code.py, whose content is committed."""
    (ws.layout.root / "code.py").write_text(code, encoding="utf-8")
    cited: dict[str, Any] = {"path": "code.py", "blob": blob_id(code.encode())}
    if symbol:
        cited["symbol"] = symbol
    memory = ws.correct(ws.remember("connect refuses negative ports").id, citations=[cited])
    commit(ws)
    return memory


def test_the_id_of_a_content_is_the_one_that_git_gives(repo: Workspace) -> None:
    (repo.layout.root / "code.py").write_text(CODE, encoding="utf-8")
    assert blob_id(CODE.encode()) == git(repo.layout.root, "hash-object", "code.py")


def test_a_belief_whose_code_changed_is_stale_and_the_store_well(repo: Workspace) -> None:
    memory = citing(repo, CODE, "connect")
    assert verify(repo).stale == []
    (repo.layout.root / "code.py").write_text(CODE.replace("0", "1"), encoding="utf-8")
    result = verify(repo)
    assert [(one.id, one.cites, one.renewed) for one in result.stale] == [
        (memory.id, ["code.py"], False)
    ]
    assert result.well
    os.unlink(repo.layout.root / "code.py")
    assert [one.id for one in verify(repo).stale] == [memory.id]


def test_fix_renews_a_citation_whose_passage_still_stands(repo: Workspace) -> None:
    memory = citing(repo, CODE, "connect")
    moved = CODE.replace("import os\n", "import os\nimport sys\n").replace("pass", "sys.exit()")
    (repo.layout.root / "code.py").write_text(moved, encoding="utf-8")
    assert [one.renewed for one in verify(repo, fix=True).stale] == [True]
    result = verify(repo)
    assert (result.stale, result.findings) == ([], [])
    belief = repo.get(memory.id)
    assert isinstance(belief, Belief)
    assert belief.citations[0].blob == blob_id(moved.encode())


@pytest.mark.parametrize(
    ("symbol", "new"),
    [
        ("connect", CODE.replace("ValueError", "TypeError")),
        ("connect", CODE.replace("connect", "dial")),
        ("nowhere", CODE + "\n\nx = 1\n"),
        (None, CODE + "\n\nx = 1\n"),
    ],
)
def test_fix_leaves_a_citation_whose_code_says_something_else(
    repo: Workspace, symbol: str | None, new: str
) -> None:
    memory = citing(repo, CODE, symbol)
    before = repo.browse.where(memory.id).read_bytes()
    (repo.layout.root / "code.py").write_text(new, encoding="utf-8")
    assert [one.renewed for one in verify(repo, fix=True).stale] == [False]
    assert repo.browse.where(memory.id).read_bytes() == before


def test_a_passage_stands_wherever_it_moved_and_however_it_is_indented() -> None:
    then = b"def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    inside = b"class C:\n    def g():\n        return 2\n\n    def f():\n        return 1\n"
    assert still_stands("f", then, inside)
    assert still_stands("C.g", then, inside)
    assert not still_stands("f", then, b"def f():\n    return 1 + 1\n")
    assert still_stands("", then, then.replace(b"\n", b" \r\n"))
    braces = b"function f() {\n  return 1;\n}\nf();\n"
    assert still_stands("f", braces, b"// new\n" + braces)
    assert not still_stands("f", braces, braces.replace(b"}", b"  + 1}"))


def test_code_outside_the_project_is_never_read(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_bytes(b"x")
    blob = blob_id(b"x")
    assert is_stale(project, [{"path": "../secret", "blob": blob}])
    (project / "link").symlink_to(outside)
    assert is_stale(project, [{"path": "link", "blob": blob}])
    (project / "inside").write_bytes(b"x")
    assert not is_stale(project, [{"path": "inside", "blob": blob}])
    assert not is_stale(project, [{"path": "inside"}, {"blob": blob}])


# -- what readers are told -----------------------------------------------------------------------


def test_a_record_that_was_edited_by_hand_is_marked_and_stays_in_use(ws: Workspace) -> None:
    one = ws.remember("We deploy the payment service on Fridays")
    assert not ws.recall("deploy the payment service")[0].unverified
    edit(ws, one, "Fridays", "Mondays")
    ws.history.verify()
    (hit,) = ws.recall("deploy the payment service")
    assert hit.unverified
    assert ws.history.is_unverified(one.id)
    (told,) = ws.context("deploy the payment service").relevant_patterns
    assert "Mondays" in told.text
    ws.history.verify(adopt=[one.id])
    assert not ws.recall("deploy the payment service")[0].unverified


def run(*arguments: str) -> int:
    code: Any = cli.main([*arguments], prog_name="loki-mem", standalone_mode=False)
    return int(code or 0)


def test_the_command_shows_an_edit_by_hand_and_fails_on_a_loss(
    ws: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ws.remember("We deploy on Fridays")
    ws.remember("The tests need a database")
    here = ("-C", str(ws.layout.root), "verify")
    assert run(*here) == 0
    assert "every record is as it was written" in capsys.readouterr().out
    path = edit(ws, one, "Fridays", "Mondays")
    assert run(*here) == 0
    assert f"by hand  1 record ({one.id}); a commit adopts them" in capsys.readouterr().out
    assert run(*here, "--json") == 0
    assert json.loads(capsys.readouterr().out)["well"]
    path.unlink()
    assert run(*here) == 1
    assert f"missing  {one.id}" in capsys.readouterr().out


def test_the_command_says_calmly_what_is_not_witnessed_yet(
    ws: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    for n in range(5):
        ws.remember(f"Fact number {n}")
    os.unlink(write_log.chain_path(ws.layout))
    assert run("-C", str(ws.layout.root), "verify") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("by hand  5 records")]
    assert len(lines) == 2


def test_ids_without_adopt_are_refused(ws: Workspace) -> None:
    with pytest.raises(click.UsageError):
        run("-C", str(ws.layout.root), "verify", "fact-1")
