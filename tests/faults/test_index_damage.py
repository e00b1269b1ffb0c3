"""F16, F17: an index that lost rows, or was damaged in any way, is found and made again.

Without the check, `recall` ended in a KeyError for ever while `status` said that all was well.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loki_memory import Workspace
from loki_memory.index.database import TABLES, damage

QUESTION = "which module needs tool 3"
FLIPS = 40


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with memory, an index and vectors that agree."""
    folder = tmp_path_factory.mktemp("made") / "project"
    folder.mkdir()
    with Workspace.init(folder) as workspace:
        for number in range(40):
            workspace.remember(f"Module {number} needs tool {number % 7} and version {number}")
        workspace.remember("Call `load_config()` before `start_server()`")
        first, second = (memory.id for memory in workspace.list(kind="fact")[:2])
        workspace.link(first, "supports", second)
        workspace.sync()
        workspace.recall(QUESTION)
    return folder


@pytest.fixture
def there(made: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of it, with the index sealed in its new place."""
    folder = Path(shutil.copytree(made, tmp_path / "copy", symlinks=True))
    answers(folder)
    assert answers(folder)[2] == []
    yield folder
    shutil.rmtree(folder)


def answers(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """What memory says, what it lists, and what it remarks."""
    with Workspace.open(folder) as workspace:
        told = [hit.id for hit in workspace.recall(QUESTION)]
        listed = sorted(memory.id for memory in workspace.list())
        return told, listed, list(workspace.notices)


def index_of(folder: Path) -> Path:
    return folder / ".loki" / "cache" / "index.db"


def changed(sql: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with sqlite3.connect(path) as database:
            assert database.execute(sql).rowcount
        database.close()

    return change


DAMAGE = {
    "a memory is missing": changed("DELETE FROM memories WHERE row = 3"),
    "all memories are missing": changed("DELETE FROM memories"),
    "a passage is missing": changed("DELETE FROM passages WHERE row = 4"),
    "a passage says something else": changed("UPDATE passages SET text = 'x' WHERE row = 5"),
    "a body says something else": changed("UPDATE memories SET body = '{}' WHERE row = 6"),
    "a title says something else": changed("UPDATE memories SET title = 'x' WHERE row = 7"),
    "a vector is missing": changed("DELETE FROM vectors WHERE row = 2"),
    "a vector is damaged": changed("UPDATE vectors SET vector = zeroblob(1024) WHERE row = 8"),
    "the links are missing": changed("DELETE FROM edges WHERE relation = 'supports'"),
    "the marks are missing": changed("DELETE FROM marks"),
    "a file is forgotten": changed("DELETE FROM files WHERE path LIKE '%.json'"),
    "the full text is empty": changed("INSERT INTO words (words) VALUES ('delete-all')"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_f16_damage_is_found_at_the_next_opening_and_mended_once(there: Path, name: str) -> None:
    expected = answers(there)[:2]
    DAMAGE[name](index_of(there))
    *found, notices = answers(there)
    assert tuple(found) == expected
    assert any("moved to index.db.aside and rebuilt" in notice for notice in notices)
    assert answers(there) == (*expected, [])


def test_f16_a_sound_index_is_not_checked_again_and_not_replaced(there: Path) -> None:
    before = index_of(there).stat().st_ino
    answers(there)
    assert index_of(there).stat().st_ino == before


def test_f16_an_index_that_only_looks_touched_is_checked_and_kept(there: Path) -> None:
    before = index_of(there).stat().st_ino
    index_of(there).touch()
    assert answers(there)[2] == []
    assert index_of(there).stat().st_ino == before


def test_f16_each_table_has_a_digest_that_every_change_keeps_right(there: Path) -> None:
    with Workspace.open(there) as workspace:
        workspace.remember("Another one, which comes")
        workspace.forget(workspace.list(kind="fact")[0].id)
        workspace.sync()
        assert damage(workspace.index.writer()) == ""
        kept = workspace.index.ask("SELECT name, rows FROM digests ORDER BY name")
        assert [name for name, _ in kept] == sorted(TABLES)
        for name, rows in kept:
            assert workspace.index.scalar(f"SELECT count(*) FROM {name}") == rows  # noqa: S608


def test_f17_a_flipped_bit_anywhere_changes_no_answer(there: Path) -> None:
    expected = answers(there)[:2]
    chance = random.Random(16)  # noqa: S311
    for _ in range(FLIPS):
        flip(index_of(there), chance)
        assert answers(there)[:2] == expected


def flip(path: Path, chance: random.Random) -> None:
    place = chance.randrange(path.stat().st_size)
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0] ^ 1 << chance.randrange(8)
        file.seek(place)
        file.write(bytes([byte]))


@pytest.mark.parametrize("ending", ["vectors", "tokens"])
def test_f16_a_damaged_copy_of_the_vectors_is_made_again(there: Path, ending: str) -> None:
    expected = answers(there)
    copy = max((there / ".loki" / "cache").rglob(f"*.{ending}"))
    with copy.open("r+b") as file:
        file.write(b"\xff" * 64)
    assert answers(there) == expected
