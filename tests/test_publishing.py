"""Published skills follow memory, and a copy that somebody changed is theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from loki_memory import Workspace
from loki_memory.errors import InvalidRecord
from loki_memory.models import Skill
from loki_memory.writing.publishing import FOLDERS, keep_in_step, publish, withdraw

SKILL = """\
---
name: run-tests
description: Runs the tests. Use before a commit.
metadata:
  loki-origin: owner
---

# Skill: Run tests

## Steps

1. npm test
"""


@pytest.fixture
def skilled(ws: Workspace) -> Workspace:
    ws.add_skill(SKILL)
    return ws


def copy_of(project: Path, name: str = "run-tests", target: str = "claude") -> Path:
    return project / FOLDERS[target] / name / "SKILL.md"


@pytest.mark.parametrize("target", FOLDERS)
def test_a_skill_is_copied_in_the_agentskills_format(
    skilled: Workspace, project: Path, target: str
) -> None:
    (deed,) = publish(skilled, target)
    assert deed.did
    text = copy_of(project, target=target).read_text()
    front, _, body = text.removeprefix("---\n").partition("---\n")
    assert yaml.safe_load(front)["name"] == "run-tests"
    assert yaml.safe_load(front)["description"] == "Runs the tests. Use before a commit."
    assert "1. npm test" in body
    assert not any(deed.did for deed in publish(skilled, target))


def test_a_skill_without_a_description_gets_its_title(ws: Workspace, project: Path) -> None:
    folder = project / ".loki/memory/skills"
    (folder / "deploy.md").write_text("# Skill: Deploy the service\n\n## Steps\n\n1. make deploy\n")
    publish(ws, "claude")
    assert "description: Deploy the service\n" in copy_of(project, "deploy").read_text()


def test_a_copy_follows_its_skill(skilled: Workspace, project: Path) -> None:
    publish(skilled, "agents")
    skilled.add_skill(SKILL.replace("npm test", "npm run check"))
    assert [deed.where for deed in keep_in_step(skilled)] == [".agents/skills/run-tests/SKILL.md"]
    assert "npm run check" in copy_of(project, target="agents").read_text()
    assert not (project / ".claude").exists()  # nobody asked for it there


def test_a_new_skill_joins_those_that_are_published(skilled: Workspace, project: Path) -> None:
    publish(skilled, "claude")
    skilled.add_skill(SKILL.replace("run-tests", "lint-code"))
    keep_in_step(skilled)
    assert copy_of(project, "lint-code").is_file()


def test_nothing_is_published_unasked(skilled: Workspace, project: Path) -> None:
    assert keep_in_step(skilled) == []
    assert [path.name for path in project.iterdir()] == [".loki"]


def test_a_retired_skill_is_taken_away(skilled: Workspace, project: Path) -> None:
    skilled.add_skill(SKILL.replace("run-tests", "lint-code"))
    publish(skilled, "claude")
    skilled.archive("skill-run-tests")
    (deed,) = keep_in_step(skilled)
    assert (deed.what, deed.did) == ("no skill run-tests", True)
    assert not copy_of(project).parent.exists()
    assert copy_of(project, "lint-code").is_file()


def test_a_copy_that_somebody_changed_is_neither_overwritten_nor_removed(
    skilled: Workspace, project: Path
) -> None:
    publish(skilled, "claude")
    path = copy_of(project)
    path.write_text(path.read_text().replace("npm test", "npm test -- --watch"))
    mine = path.read_text()
    skilled.add_skill(SKILL.replace("npm test", "npm run check"))
    (deed,) = publish(skilled, "claude")
    assert deed.what.startswith("kept")
    skilled.archive("skill-run-tests")
    publish(skilled, "claude")
    withdraw(skilled, "claude")
    assert path.read_text() == mine


def test_a_skill_that_somebody_wrote_there_is_left_alone(skilled: Workspace, project: Path) -> None:
    path = copy_of(project)
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: run-tests\ndescription: Mine.\n---\nMine.\n")
    (deed,) = publish(skilled, "claude")
    assert (deed.what, deed.did) == ("kept, for it was written or changed by hand", False)
    assert withdraw(skilled, "claude") == []
    assert "Mine." in path.read_text()


@pytest.mark.parametrize(
    "metadata",
    [{"loki-origin": "import"}, {"loki-origin": "external"}, {"loki-status": "candidate"}],
)
def test_what_nobody_vouches_for_is_not_published(
    ws: Workspace, project: Path, metadata: dict[str, str]
) -> None:
    from loki_memory.files.codec import encode

    skill = Skill.from_sections("guess", "A guess.", steps=["rm -r build"], metadata=metadata)
    (project / ".loki/memory/skills/guess.md").write_bytes(encode(skill))
    assert publish(ws, "claude") == []
    assert not (project / ".claude").exists()


def test_skills_of_this_machine_and_of_the_user_stay_private(ws: Workspace, project: Path) -> None:
    private = ws.layout.local / "memory" / "skills"
    private.mkdir(parents=True)
    (private / "run-tests.md").write_text(SKILL)
    mine = Path.home() / ".loki/memory/skills"
    mine.mkdir(parents=True)
    (mine / "mine.md").write_text(SKILL.replace("run-tests", "mine"))
    assert {one.id for one in ws.list(kind="skill")} == {"skill-run-tests", "skill-mine"}
    assert publish(ws, "claude") == []


def test_the_skill_that_install_puts_there_is_no_published_one(
    skilled: Workspace, project: Path
) -> None:
    from loki_memory.installing.claude_code import install
    from loki_memory.installing.edits import Wish

    install(skilled, Wish())
    publish(skilled, "claude")
    withdraw(skilled, "claude")
    assert copy_of(project, "loki-memory").is_file()
    assert not copy_of(project).exists()


def test_skills_that_are_links_are_somebodys_own(
    skilled: Workspace, project: Path, tmp_path: Path
) -> None:
    publish(skilled, "claude")
    elsewhere = tmp_path / "shared"
    copy_of(project).parent.rename(elsewhere)
    copy_of(project).parent.symlink_to(elsewhere)
    assert withdraw(skilled, "claude") == []
    assert (elsewhere / "SKILL.md").is_file()


def test_what_is_no_text_is_no_copy_of_ours(skilled: Workspace, project: Path) -> None:
    other = copy_of(project, "other")
    other.parent.mkdir(parents=True)
    other.write_bytes(b"\xff")
    assert [deed.did for deed in publish(skilled, "claude")] == [True]
    assert other.read_bytes() == b"\xff"


def test_trouble_there_does_not_stop_consolidation(
    skilled: Workspace, project: Path, tmp_path: Path
) -> None:
    publish(skilled, "claude")
    (project / ".claude").rename(tmp_path / "elsewhere")
    (project / ".claude").symlink_to(tmp_path / "elsewhere")
    assert keep_in_step(skilled) == []
    assert any("not in step" in notice for notice in skilled.notices)


def test_a_plan_writes_nothing(skilled: Workspace, project: Path) -> None:
    (deed,) = publish(skilled, "claude", plan_only=True)
    assert "+1. npm test" in deed.diff
    assert not (project / ".claude").exists()


def test_an_unknown_target_is_refused(ws: Workspace) -> None:
    with pytest.raises(InvalidRecord, match=r"'emacs'.*claude, agents"):
        publish(ws, "emacs")
