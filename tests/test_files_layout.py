"""Where everything lies: every record has one place, and no name leads out of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from test_models import HOSTILE_IDS, SMALLEST, made

from loki_memory import Workspace
from loki_memory.errors import InvalidRecord, NotAWorkspace, SymlinkedRoot
from loki_memory.files.git_files import git_home
from loki_memory.files.layout import FOLDERS, date_in, kind_of, layout, local_zone, place, view_kind
from loki_memory.models import MODELS

RESERVED = {"con", "prn", "aux", "nul"} | {
    f"{port}{n}" for port in ("com", "lpt") for n in range(10)
}
HOSTILE_NAMES = [
    *HOSTILE_IDS,
    *(name.upper() for name in sorted(RESERVED)),
    *sorted(RESERVED),
    *(f"{name}.txt" for name in sorted(RESERVED)),
    "CONIN$",
    "COM\u00b9",
    "skill.",
    "trailing ",
]


def git(*arguments: str, at: Path) -> None:
    subprocess.run(["git", "-C", at, *arguments], check=True, capture_output=True)


def assert_is_safe(path: str) -> None:
    """Plain ASCII names inside memory/, good on every file system."""
    for part in PurePosixPath(path).parts:
        assert re.fullmatch(r"[a-z0-9][A-Za-z0-9_-]*(\.json|\.md)?", part), path
        assert part.partition(".")[0].lower() not in RESERVED, path
        assert len(part) <= 200, path


# -- the place of a record -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "fields", "path"),
    [
        ("episode", {"task_id": "task-042"}, "episodic/2026-01-06/task-042-{tail}.json"),
        ("episode", {}, "episodic/2026-01-06/episode-{tail}.json"),
        ("pattern", {}, "semantic/patterns/{id}.json"),
        ("anti-pattern", {}, "semantic/anti-patterns/{id}.json"),
        ("fact", {}, "semantic/facts/{id}.json"),
        ("fact", {"scope": "local"}, "local/semantic/facts/{id}.json"),
        ("fact", {"scope": "session"}, "local/semantic/facts/{id}.json"),
        ("fact", {"scope": "user"}, "semantic/facts/{id}.json"),
        ("episode", {"scope": "local"}, "local/episodic/2026-01-06/episode-{tail}.json"),
        ("link", {}, "semantic/links/{id}.json"),
        ("handoff", {}, "handoffs/{id}.json"),
        ("learning", {}, "learnings/2026-01-06/{id}.json"),
    ],
)
def test_each_record_has_its_place(kind: str, fields: dict[str, Any], path: str) -> None:
    record = made(kind, {**SMALLEST[kind], **fields})
    assert place(record) == path.format(id=record.id, tail=record.id[-10:])


def test_what_is_named_by_its_file_has_its_place() -> None:
    assert place(made("ledger", {"agent_id": "qa-001"})) == "ledgers/qa-001.json"
    assert place(made("skill", {"name": "run-tests"})) == "skills/run-tests.md"
    stone = made("tombstone", {"value": "x"})
    assert place(stone) == f"semantic/rejected/{stone.id}.json"


def test_an_episode_with_an_id_of_its_own_keeps_it_in_the_name() -> None:
    own = {"id": "ep-2026-01-06-001", "task_id": "task-042"}
    record = made("episode", {**SMALLEST["episode"], **own})
    assert place(record) == "episodic/2026-01-06/task-042-ep-2026-01-06-001.json"


@pytest.mark.parametrize("kind", SMALLEST)
def test_the_kind_of_a_record_is_read_from_its_place(kind: str) -> None:
    record = made(kind, SMALLEST[kind])
    assert kind_of(place(record)) == kind
    assert view_kind(place(record)) is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("episodic/2026-01-06/task-001.json", "episode"),
        ("episodic/task-001.json", "episode"),
        ("skills/debugging.md", "skill"),
        ("skills/release/SKILL.md", "skill"),
        ("skills/release/rollback.md", None),
        ("skills/README.md", None),
        ("skills/release/scripts/SKILL.md", None),
        ("semantic/patterns.json", None),
        ("semantic/other/x.json", None),
        ("semantic/facts/x.txt", None),
        ("semantic/facts/.tmp-1-2", None),
        ("semantic/facts/.hidden.json", None),
        ("handoffs/20260321.md", None),
        ("learnings/2026-01-06.json", None),
        ("index.json", None),
        ("timeline.json", None),
    ],
)
def test_only_records_are_read_as_records(path: str, kind: str | None) -> None:
    assert kind_of(path) == kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("semantic/patterns.json", "pattern"),
        ("semantic/anti-patterns.json", "anti-pattern"),
        ("semantic/facts.json", "fact"),
        ("semantic/links.json", "link"),
        ("episodic/index.json", "episode"),
        ("learnings/2026-01-06.json", "learning"),
        ("learnings/notes.json", None),
        ("learnings/2026-01-06/learn-1.json", None),
    ],
)
def test_views_are_known(path: str, kind: str | None) -> None:
    assert view_kind(path) == kind


def test_a_path_dates_what_does_not_say_when() -> None:
    assert date_in("episodic/2026-01-06/task-001.json") == "2026-01-06"
    assert date_in("semantic/facts/x.json") == ""


# -- hostile names -------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["task_id", "agent", "session"])
def test_no_name_in_an_episode_leads_out(field: str) -> None:
    for name in HOSTILE_NAMES:
        record = made("episode", {**SMALLEST["episode"], field: name})
        assert_is_safe(place(record))


def test_no_agent_leads_out_and_no_two_share_a_ledger() -> None:
    names = [name for name in HOSTILE_NAMES if name]
    paths = [place(made("ledger", {"agent_id": name})) for name in names]
    for path in paths:
        assert_is_safe(path)
    assert len({path.lower() for path in paths}) == len(set(names))


@pytest.mark.parametrize("field", ["session", "by", "category", "subject"])
def test_no_name_in_a_fact_leads_out(field: str) -> None:
    for name in HOSTILE_NAMES:
        assert_is_safe(place(made("fact", {**SMALLEST["fact"], field: name})))


def test_no_agent_in_a_handoff_leads_out() -> None:
    for name in HOSTILE_NAMES:
        fields = {**SMALLEST["handoff"], "from_agent": name, "to_agent": name}
        assert_is_safe(place(made("handoff", fields)))


def test_a_skill_name_is_refused_or_safe() -> None:
    safe = 0
    for name in HOSTILE_NAMES:
        try:
            skill = made("skill", {"name": name})
        except InvalidRecord:
            continue
        assert_is_safe(place(skill))
        safe += 1
    assert safe >= len(RESERVED)  # device names are good names of skills and bad ones of files


def test_every_kind_but_the_dated_ones_has_a_folder() -> None:
    dated = {"episode", "learning", "skill"}
    assert set(FOLDERS.values()) == set(MODELS) - dated


# -- finding the workspace -----------------------------------------------------------------------


def test_the_nearest_loki_folder_upwards_wins(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    (inner / "src" / "deep").mkdir(parents=True)
    (inner / ".loki").mkdir()
    (tmp_path / "outer" / ".loki").mkdir()
    assert Workspace.open(inner / "src" / "deep").layout.root == inner
    assert Workspace.open(tmp_path / "outer").layout.root == tmp_path / "outer"


def test_the_search_stops_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOKI_HOME", str(home / ".loki"))
    (home / "project").mkdir(parents=True)
    (home / ".loki").mkdir()
    (tmp_path / ".loki").mkdir()
    for start in (home / "project", home):
        with pytest.raises(NotAWorkspace):
            Workspace.open(start)


def test_a_symlinked_loki_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".loki").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SymlinkedRoot, match="elsewhere"):
        layout(tmp_path)


# -- the local zone ------------------------------------------------------------------------------


def test_without_git_the_local_zone_lies_beside(tmp_path: Path) -> None:
    assert layout(tmp_path).local == tmp_path / ".loki" / "local"


def test_with_git_the_local_zone_lies_in_the_git_folder(tmp_path: Path) -> None:
    git("init", "-q", at=tmp_path)
    assert layout(tmp_path).local.is_relative_to(tmp_path / ".git")


def test_workspaces_of_one_repository_have_local_zones_of_their_own(tmp_path: Path) -> None:
    git("init", "-q", at=tmp_path)
    roots = [tmp_path, tmp_path / "a", tmp_path / "b"]
    zones = {local_zone(root, root / ".loki") for root in roots}
    assert len(zones) == 3


def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n", encoding="utf-8")
    assert git_home(tmp_path) is None
    assert layout(tmp_path).local == tmp_path / ".loki" / "local"


def test_a_submodule_has_its_zone_in_its_own_git_folder(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        folder.mkdir()
        git("init", "-q", at=folder)
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        git(*who, "commit", "-q", "--allow-empty", "-m", "x", at=folder)
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub", at=outer)
    assert layout(outer / "sub").local.is_relative_to(outer / ".git" / "modules" / "sub")
