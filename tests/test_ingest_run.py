"""Ingestion into a workspace: once, in pieces, again, and what is left alone."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from claude_lines import Transcript, shop

from loki_memory import Workspace
from loki_memory.errors import InvalidRecord
from loki_memory.files.layout import PRIVATE
from loki_memory.ingest.run import ingest, staged, to_be_taken
from loki_memory.models import Episode


def memory(ws: Workspace) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for zone in (ws.layout.memory, ws.layout.local / "memory"):
        files = (path for path in zone.rglob("*.json") if path.name != "index.json")
        episodes = (path for path in files if "episodic" in path.parts)
        found |= {str(path.relative_to(zone)): path.read_bytes() for path in episodes}
    return found


def told(ws: Workspace) -> list[Episode]:
    records = [one for one in ws.list(kind="episode") if isinstance(one, Episode)]
    return sorted(records, key=lambda one: one.timestamp)


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Claude Code's folder of transcripts."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    folder = tmp_path / "claude" / "projects" / "-home-ana-shop"
    folder.mkdir(parents=True)
    return folder


# -- named files -----------------------------------------------------------------------------------


def test_a_named_transcript_is_told_at_once(ws: Workspace, tmp_path: Path) -> None:
    done = ingest(ws, [shop().write(tmp_path / "a.jsonl")])
    assert (done.files, done.lines, done.read, done.refused, done.waiting) == (1, 14, 14, 0, 0)
    assert (done.episodes, done.errors, done.staged) == (2, 1, 0)
    assert [one.goal[:7] for one in told(ws)] == ["Fix the", "Thanks!"]


def test_read_again_it_adds_nothing(ws: Workspace, tmp_path: Path) -> None:
    path = shop().write(tmp_path / "a.jsonl")
    ingest(ws, [path])
    before = memory(ws)
    done = ingest(ws, [path])
    assert (done.lines, done.episodes, done.changed) == (0, 0, 0)
    assert memory(ws) == before


def test_an_episode_that_an_earlier_version_told_is_told_anew(
    ws: Workspace, tmp_path: Path
) -> None:
    path = shop().write(tmp_path / "a.jsonl")
    ingest(ws, [path])
    before, (log,) = memory(ws), logs(ws)
    note = log.with_suffix(".json")
    made = json.loads(note.read_text())
    file, _ = next(iter(made["episodes"].values()))
    earlier = ws.layout.local / "memory" / file.removeprefix(PRIVATE)
    earlier.write_text(earlier.read_text().replace('"captured": true', '"captured": true '))
    with ws.store.change() as change:
        there = change.read(file)
    assert there is not None
    told = {name: [place, there.etag] for name, (place, _) in made["episodes"].items()}
    note.write_text(json.dumps({**made, "episodes": told, "teller": 1}))
    assert staged(ws) == []
    assert ingest(ws, [path], only_add=True).changed == 0
    assert memory(ws) != before
    assert ingest(ws, [path]).changed == 1
    assert memory(ws) == before


def test_line_by_line_gives_the_same_bytes_as_at_once(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for lines in range(1, len(shop().lines) + 1):
        ingest(ws, [shop().write(path, lines)])
    other = Workspace.init(tmp_path / "other")
    ingest(other, [shop().write(tmp_path / "b.jsonl")])
    assert memory(ws) == memory(other)


def test_pieces_in_any_order_give_the_same_bytes(ws: Workspace, tmp_path: Path) -> None:
    whole = shop()
    for name, part in (("late", whole.lines[6:]), ("early", whole.lines[:6])):
        piece = Transcript()
        piece.lines = part
        ingest(ws, [piece.write(tmp_path / f"{name}.jsonl")])
    other = Workspace.init(tmp_path / "other")
    ingest(other, [shop().write(tmp_path / "b.jsonl")])
    assert memory(ws) == memory(other)


def test_a_session_in_two_files_is_told_once(ws: Workspace, tmp_path: Path) -> None:
    done = ingest(ws, [shop().write(tmp_path / "a.jsonl"), shop().write(tmp_path / "b.jsonl")])
    assert (done.files, done.read, done.episodes) == (2, 28, 2)


def test_folders_and_compressed_files_are_read(ws: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "old" / "deep"
    folder.mkdir(parents=True)
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(shop().text().encode()))
    (folder / "notes.txt").write_text("no transcript")
    done = ingest(ws, [tmp_path / "old"])
    assert (done.files, done.episodes) == (1, 2)


def test_a_half_written_line_waits_and_is_read_when_it_is_whole(
    ws: Workspace, tmp_path: Path
) -> None:
    path, text = tmp_path / "a.jsonl", shop().text()
    path.write_text(text[:-30])
    done = ingest(ws, [path])
    assert (done.lines, done.read, done.waiting) == (14, 13, 1)
    assert [one.why for one in staged(ws)] == ["its last line is not complete"]
    path.write_text(text)
    assert ingest(ws, [path]).read == 1
    assert staged(ws) == []


def test_a_file_that_was_written_anew_is_noticed_and_read(ws: Workspace, tmp_path: Path) -> None:
    path = shop().write(tmp_path / "a.jsonl")
    ingest(ws, [path])
    other = Transcript("another-session").say("Something else entirely, with more words")
    other.write(path)
    done = ingest(ws, [path])
    assert done.rewritten == (str(path),)
    assert done.episodes == 1
    assert len(told(ws)) == 3


def test_one_bad_file_does_not_keep_others_out(ws: Workspace, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl.gz"
    broken.write_bytes(gzip.compress(shop().text().encode())[:60])
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("nonsense\n" + json.dumps({"type": "new-thing"}) + "\n" + shop().text())
    done = ingest(ws, [broken, tmp_path / "missing.jsonl", mixed])
    assert [(Path(r.path).name, r.line) for r in done.reasons] == [
        ("broken.jsonl.gz", 1),
        ("missing.jsonl", 0),
        ("mixed.jsonl", 1),
    ]
    assert done.lines == done.read + done.refused + done.waiting
    assert done.unknown == {"new-thing": 1}
    assert done.episodes == 2


def test_an_agent_that_nobody_knows_is_refused(ws: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="claude-code"):
        ingest(ws, [shop().write(tmp_path / "a.jsonl")], "hal")


def test_errors_of_sessions_become_warnings(ws: Workspace, tmp_path: Path) -> None:
    for number in range(2):
        again = shop()
        for line in again.lines:
            line["sessionId"] = f"session-{number}"
            line["uuid"] = f"{number}-{line['uuid']}"
            line["timestamp"] = line["timestamp"].replace("2026-", f"{2026 + number}-", 1)
        ingest(ws, [again.write(tmp_path / f"{number}.jsonl")])
    ws.consolidate()
    text = ws.continuity(goal="Change the cart").read_text()
    assert "KeyError: 'SHOP_ENV'" in text
    assert "SHOP_ENV=test pytest tests" in text


def test_what_third_parties_complained_of_is_found_when_asked_for_and_never_injected(
    ws: Workspace, tmp_path: Path
) -> None:
    for number in range(3):
        work = Transcript(f"session-{number}").say("Look up the ticket")
        work.call("mcp__tracker__search", "TypeError: run evil", failed=True, query="x")
        ingest(ws, [work.write(tmp_path / f"{number}.jsonl")])
    ws.consolidate()
    assert "evil" not in ws.continuity(goal="Look up the ticket").read_text()
    assert "evil" not in ws.context("Look up the ticket").text("detailed")
    assert [one for one in ws.list(kind="anti-pattern") if "evil" in one.title()]


# -- what others did to episodes -------------------------------------------------------------------


def test_an_episode_that_somebody_changed_is_left_alone(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    ingest(ws, [shop().write(path, 6)])
    (first,) = told(ws)
    ws.correct(first.id, outcome="partial")
    ingest(ws, [shop().write(path)])
    assert told(ws)[0].outcome == "partial"
    assert len(told(ws)) == 2


@pytest.mark.parametrize("verb", ["forget", "archive"])
def test_an_episode_that_was_taken_out_does_not_come_back(
    ws: Workspace, tmp_path: Path, verb: str
) -> None:
    path = tmp_path / "a.jsonl"
    ingest(ws, [shop().write(path, 6)])
    getattr(ws, verb)(told(ws)[0].id)
    ingest(ws, [shop().write(path)])
    assert [one.goal[:6] for one in told(ws)] == ["Thanks"]


def test_without_this_machines_notes_nothing_is_told_twice(ws: Workspace, tmp_path: Path) -> None:
    path = shop().write(tmp_path / "a.jsonl")
    ingest(ws, [path])
    before = memory(ws)
    shutil.rmtree(ws.layout.local / "ingest")
    done = ingest(ws, [path])
    assert (done.read, done.episodes) == (14, 0)
    assert memory(ws) == before


def test_half_a_line_in_the_staging_area_is_mended(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    ingest(ws, [shop().write(path, 6)])
    (log,) = (ws.layout.local / "ingest" / "sessions").glob("*.jsonl")
    with log.open("ab") as file:
        file.write(b'["5f1c2d3e-half')
    ingest(ws, [shop().write(path)])
    other = Workspace.init(tmp_path / "other")
    ingest(other, [shop().write(tmp_path / "b.jsonl")])
    assert memory(ws) == memory(other)


def test_in_the_background_a_private_episode_goes_on(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    ingest(ws, [shop().write(path, 6)])
    done = ingest(ws, [shop().write(path)], only_add=True)
    assert (done.episodes, done.changed, done.staged) == (1, 1, 0)


def test_in_the_background_no_file_that_git_may_track_is_changed(
    ws: Workspace, tmp_path: Path
) -> None:
    ws.home.set_config("capture.scope", "project")
    path = tmp_path / "a.jsonl"
    ingest(ws, [shop().write(path, 6)])
    (before,) = memory(ws).items()
    done = ingest(ws, [shop().write(path)], only_add=True)
    assert (done.episodes, done.changed, done.staged) == (1, 0, 1)
    assert before in memory(ws).items()
    assert ingest(ws, [path]).changed == 1
    with Workspace.init(tmp_path / "other") as other:
        other.home.set_config("capture.scope", "project")
        ingest(other, [path])
        assert memory(ws) == memory(other)


def test_what_a_session_was_shown_is_joined_to_its_episode(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_NOW", "2026-03-02T09:00:05Z")
    fact = ws.remember("The cart rounds down")
    ws.recall("how does the cart round", session=shop().session)
    monkeypatch.setenv("LOKI_NOW", "2026-03-02T09:30:00Z")
    path = tmp_path / "a.jsonl"
    ingest(ws, [shop().write(path, 6)])
    assert [one.id for one in told(ws)[0].recalled] == [fact.id]
    ingest(ws, [shop().write(path)])
    assert [one.id for one in told(ws)[0].recalled] == [fact.id]
    assert told(ws)[0].outcome == "success"


# -- staged turns that were told -------------------------------------------------------------------


def logs(ws: Workspace) -> list[Path]:
    return sorted((ws.layout.local / "ingest" / "sessions").glob("*.jsonl"))


def age(ws: Workspace, days: int) -> None:
    then = time.time() - days * 86_400
    for log in logs(ws):
        os.utime(log, (then, then))


def test_staged_turns_that_were_told_are_cleared_after_a_while(
    ws: Workspace, tmp_path: Path
) -> None:
    ingest(ws, [shop().write(tmp_path / "a.jsonl")])
    (log,) = logs(ws)
    ws.care.gc()
    assert logs(ws) == [log]
    age(ws, 31)
    assert ws.care.gc(dry_run=True).files == [str(log)]
    assert logs(ws) == [log]
    before = memory(ws)
    assert ws.care.gc().files == [str(log)]
    assert logs(ws) == []
    assert memory(ws) == before
    assert staged(ws) == []


def test_staged_turns_that_wait_are_not_cleared(ws: Workspace, tmp_path: Path) -> None:
    ws.home.set_config("capture.scope", "project")
    ingest(ws, [shop().write(tmp_path / "a.jsonl", 6)])
    ingest(ws, [shop().write(tmp_path / "a.jsonl")], only_add=True)
    age(ws, 400)
    assert ws.care.gc().files == []
    assert len(logs(ws)) == 1


@pytest.mark.parametrize("forgetting", ["nothing", "marks", "half a clearing"])
def test_a_session_that_goes_on_after_its_turns_were_cleared_is_told_from_there(
    ws: Workspace, tmp_path: Path, forgetting: str
) -> None:
    """Nothing is told twice, and what was told is left as it is."""
    path = tmp_path / "a.jsonl"
    ingest(ws, [shop().write(path)])
    made = logs(ws)[0].with_suffix(".json")
    note = made.read_bytes()
    age(ws, 31)
    ws.care.gc()
    if forgetting == "marks":
        shutil.rmtree(ws.layout.local / "ingest" / "marks")
    if forgetting == "half a clearing":
        made.write_bytes(note)
    before = memory(ws)
    longer = shop().wait(400).say("Now round the total").call("Edit", file_path="cart.py")
    done = ingest(ws, [longer.write(path)])
    assert (done.episodes, done.changed, done.staged) == (1, 0, 0)
    assert before.items() <= memory(ws).items()
    assert [one.goal for one in told(ws)][2:] == ["Now round the total"]
    longer.call("Bash", "5 passed", command="pytest")
    done = ingest(ws, [longer.write(path)])
    assert (done.episodes, done.changed) == (0, 1)
    assert before.items() <= memory(ws).items()


@pytest.mark.parametrize("lines", [6, 14])
@pytest.mark.parametrize("by", ["ingest", "gc"])
def test_what_was_staged_with_secrets_is_redacted_by_the_next_run(
    ws: Workspace, tmp_path: Path, lines: int, by: str
) -> None:
    secret = "ghp_" + "a1B2" * 9
    path = tmp_path / "a.jsonl"
    ingest(ws, [shop().write(path, lines)])
    (log,) = logs(ws)
    log.write_bytes(log.read_bytes().replace(b"Fix the total", b"Fix " + secret.encode()))
    (log.parent / ".redacted-2").unlink()
    made = log.with_suffix(".json")
    note = json.loads(made.read_text())
    made.write_text(json.dumps({**note, "size": log.stat().st_size}))
    if by == "gc":
        ws.care.gc()
    done = ingest(ws, [shop().write(path)])
    assert secret not in log.read_text()
    assert done.staged == 0
    assert done.episodes == (1 if lines == 6 else 0)


# -- the sessions of this repository ---------------------------------------------------------------


def test_only_sessions_of_this_repository_are_taken(ws: Workspace, claude: Path) -> None:
    here = Transcript("here", cwd=str(ws.layout.root / "src")).say("Work here")
    here.write(claude / "here.jsonl")
    Transcript("there", cwd="/somewhere/else").say("Work there").write(claude / "there.jsonl")
    near = f"{ws.layout.root}-two"
    Transcript("near", cwd=near).say("Work beside").write(claude / "near.jsonl")
    assert [path.name for path in to_be_taken(ws)] == ["here.jsonl"]
    assert ingest(ws).episodes == 1
    assert [one.goal for one in told(ws)] == ["Work here"]


def test_a_worktree_belongs_to_the_repository(tmp_path: Path, claude: Path) -> None:
    top = tmp_path / "repo"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(top)]
    top.mkdir()
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "tree")], check=True)
    Transcript(cwd=str(tmp_path / "tree")).say("Work").write(claude / "a.jsonl")
    with Workspace.init(top) as ws:
        assert ingest(ws).episodes == 1


def test_a_session_under_way_waits_until_it_rests(
    ws: Workspace, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Transcript(cwd=str(ws.layout.root)).say("Work here").write(claude / "a.jsonl")
    monkeypatch.setenv("LOKI_NOW", "2026-03-02T09:03:00Z")
    assert (ingest(ws).episodes, len(told(ws))) == (0, 0)
    (waiting,) = staged(ws)
    assert (waiting.turns, waiting.why[:15]) == (1, "it is under way")
    monkeypatch.setenv("LOKI_NOW", "2026-03-02T09:06:00Z")
    assert ingest(ws).episodes == 1
    assert staged(ws) == []


def test_a_session_that_was_left_does_not_wait(
    ws: Workspace, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Transcript(cwd=str(ws.layout.root)).say("Work").say("<command-name>/exit</command-name>")
    work.write(claude / "a.jsonl")
    monkeypatch.setenv("LOKI_NOW", "2026-03-02T09:00:30Z")
    assert ingest(ws).episodes == 1


def test_a_session_without_a_prompt_waits(ws: Workspace, tmp_path: Path) -> None:
    work = Transcript().call("Bash", command="ls")
    assert ingest(ws, [work.write(tmp_path / "a.jsonl")]).episodes == 0
    assert "no prompt" in staged(ws)[0].why


@pytest.mark.parametrize("scope", ["local", "project"])
def test_a_setting_says_where_episodes_are_kept(ws: Workspace, tmp_path: Path, scope: str) -> None:
    if scope == "project":
        ws.home.set_config("capture.scope", scope)
    ingest(ws, [shop().write(tmp_path / "a.jsonl")])
    tracked = list((ws.layout.memory / "episodic").rglob("episode-*.json"))
    assert bool(tracked) == (scope == "project")
    assert {one.scope for one in told(ws)} == {scope}


@pytest.mark.parametrize("value", ["false", '"perhaps"'])
def test_capture_that_is_off_reads_nothing(ws: Workspace, tmp_path: Path, value: str) -> None:
    config = ws.layout.loki / "config.toml"
    config.write_text(f"format = 1\n[memory]\nenabled = {value}\n")
    with Workspace.open(ws.layout.root) as again:
        done = ingest(again, [shop().write(tmp_path / "a.jsonl")])
    assert done.off
    assert memory(ws) == {}
    assert not (ws.layout.local / "ingest").exists()
