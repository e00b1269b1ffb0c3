"""Vectors beside the index: found again, never doubled, and never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loki_memory.index.index import Index
from loki_memory.index.revision import COLUMNS
from loki_memory.index.vectors import Vectors, packed, unpacked

SIZE = 4
MODEL = "tiny-model/1.0"


class Opened(Vectors):
    """The vectors of an index in the folder above theirs."""

    def __init__(self, folder: Path | None, model: str = MODEL, index: Index | None = None) -> None:
        self.index = index or Index(folder.parent / "index.db" if folder else None)
        super().__init__(folder, model, SIZE)
        self.refresh(self.index)


def opened(folder: Path | None, model: str = MODEL) -> Opened:
    return Opened(folder, model)


def filled(folder: Path | None, keys: range = range(1, 6), model: str = MODEL) -> Opened:
    vectors = opened(folder, model)
    add(vectors, keys)
    return vectors


def add(vectors: Opened, keys: range) -> None:
    rows = np.array([[key, 0, 0, 1] for key in keys], np.float32).reshape(-1, SIZE)
    vectors.add(vectors.index, list(keys), rows, [tokens_of(key) for key in keys])


def tokens_of(key: int) -> list[int]:
    """Some tokens, one of them twice; every third text has none."""
    return [] if key % 3 == 0 else [key + 10, key, key]


def found(vectors: Vectors, *keys: int) -> list[int]:
    return [int(place) for place in vectors.find(np.array(keys, np.uint64))]


def assert_holds(vectors: Vectors, keys: range) -> None:
    """Each key has its own vector, its own tokens and its own length."""
    entries = vectors.find(np.array(keys, np.uint64))
    assert (entries >= 0).all()
    starts, ends = vectors.spans(entries)
    for key, entry, start, end in zip(keys, entries, starts, ends, strict=True):
        assert vectors.matrix[entry] == pytest.approx([key, 0, 0, 1], abs=key / 127)
        assert vectors.tokens[start:end].tolist() == sorted(set(tokens_of(key)))
    assert vectors.lengths(entries).tolist() == [len(tokens_of(key)) for key in keys]


def files(folder: Path) -> dict[str, Path]:
    return {path.suffix: path for path in sorted(folder.iterdir())}


def in_use(vectors: Opened, keys: range) -> None:
    """Make these the texts of passages."""
    empty = dict.fromkeys(COLUMNS.split(", "), "")
    row = {**empty, "id": "a", "confidence": None, "importance": None, "pinned": 0, "size": 0}
    marks = ", ".join("?" * len(row))
    with vectors.index.change():
        writer = vectors.index.writer()
        writer.execute(f"INSERT INTO memories ({COLUMNS}) VALUES ({marks})", list(row.values()))  # noqa: S608
        values = [(key,) for key in keys]
        writer.executemany("INSERT INTO passages (memory, key, text) VALUES (1, ?, '')", values)


def drop_all_but(vectors: Opened, keys: range) -> None:
    in_use(vectors, keys)
    vectors.drop_unused(vectors.index, np.array(keys, np.uint64))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "vectors"


# -- adding and finding --------------------------------------------------------------------------


def test_what_was_added_is_found_also_after_opening_again(folder: Path) -> None:
    vectors = filled(folder)
    assert_holds(vectors, range(1, 6))
    assert_holds(opened(folder), range(1, 6))


def test_what_was_never_added_is_not_found(folder: Path) -> None:
    vectors = filled(folder)
    assert found(vectors, 0, 6, 2**63 - 1, 3) == [-1, -1, -1, 2]


def test_more_is_added_at_the_end(folder: Path) -> None:
    vectors = filled(folder)
    before = vectors.state
    add(vectors, range(6, 10))
    assert vectors.state != before
    assert_holds(vectors, range(1, 10))
    assert_holds(opened(folder), range(1, 10))


def test_an_empty_folder_has_nothing(folder: Path) -> None:
    vectors = opened(folder)
    assert len(vectors) == 0
    assert found(vectors, 1, 2) == [-1, -1]
    assert vectors.matrix.shape == (0, SIZE)
    assert not folder.exists()


def test_adding_nothing_changes_nothing(folder: Path) -> None:
    vectors = filled(folder)
    add(vectors, range(0))
    assert_holds(opened(folder), range(1, 6))
    assert len(vectors) == 5


def test_a_text_without_tokens_has_an_entry(folder: Path) -> None:
    vectors = filled(folder, range(3, 4))
    assert_holds(opened(folder), range(3, 4))
    assert len(vectors.tokens) == 0


def test_without_a_folder_they_are_kept_in_memory() -> None:
    vectors = filled(None)
    add(vectors, range(6, 8))
    vectors.open()
    assert_holds(vectors, range(1, 8))


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    blocked = tmp_path / "vectors"
    blocked.write_text("a file where the folder should be", encoding="utf-8")
    vectors = filled(blocked)
    add(vectors, range(6, 8))
    assert_holds(vectors, range(1, 8))
    assert blocked.is_file()


def test_what_was_read_stays_when_writing_fails(folder: Path) -> None:
    """The folder vanishes, and a file takes its place."""
    vectors = filled(folder)
    shutil.rmtree(folder)
    folder.write_text("", encoding="utf-8")
    add(vectors, range(6, 8))
    assert_holds(vectors, range(1, 8))


# -- files that are gone or damaged --------------------------------------------------------------


@pytest.mark.parametrize("lost", [1, 17, 47, 48, 49, 96, 235])
def test_a_table_that_was_cut_short_is_filled_from_the_rows(folder: Path, lost: int) -> None:
    filled(folder)
    table = files(folder)[".vectors"]
    os.truncate(table, table.stat().st_size - lost)
    vectors = opened(folder)
    assert_holds(vectors, range(1, 6))
    add(vectors, range(6, 8))
    assert_holds(opened(folder), range(1, 8))


def test_tokens_without_entries_are_written_over(folder: Path) -> None:
    """A writer was killed after it wrote the tokens and before it wrote the table."""
    filled(folder)
    with files(folder)[".tokens"].open("ab") as file:
        file.write(b"\x07" * 33)
    vectors = opened(folder)
    add(vectors, range(6, 9))
    assert_holds(opened(folder), range(1, 9))


@pytest.mark.parametrize("kept", [0, 3, 4, 10, 20])
def test_entries_without_their_tokens_are_copied_again(folder: Path, kept: int) -> None:
    filled(folder)
    os.truncate(files(folder)[".tokens"], kept)
    vectors = opened(folder)
    assert_holds(vectors, range(1, 6))
    add(vectors, range(6, 8))
    assert_holds(opened(folder), range(1, 8))


@pytest.mark.parametrize("suffix", [".vectors", ".tokens"])
def test_a_file_that_is_gone_is_written_again_from_the_rows(folder: Path, suffix: str) -> None:
    filled(folder)
    files(folder)[suffix].unlink()
    vectors = opened(folder)
    assert_holds(vectors, range(1, 6))
    add(vectors, range(6, 8))
    assert_holds(opened(folder), range(1, 8))


GARBAGE: dict[str, Any] = {
    "nothing": lambda data: b"",
    "one byte": lambda data: b"x",
    "zeros": lambda data: bytes(len(data)),
    "ones": lambda data: b"\xff" * len(data),
    "text": lambda data: (b"this is no table. " * len(data))[: len(data)],
    "longer": lambda data: data + b"\xff" * 1000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_table_of_garbage_is_written_again_from_the_rows(folder: Path, name: str) -> None:
    filled(folder)
    table = files(folder)[".vectors"]
    table.write_bytes(GARBAGE[name](table.read_bytes()))
    vectors = opened(folder)
    assert_holds(vectors, range(1, 6))
    add(vectors, range(6, 8))
    assert_holds(opened(folder), range(1, 8))


def test_entries_behind_a_hole_of_zeros_are_copied_again(folder: Path) -> None:
    """After a loss of power a file may have its length and not yet all of its content."""
    filled(folder)
    table = files(folder)[".vectors"]
    data = table.read_bytes()
    table.write_bytes(data[: len(data) * 2 // 5] + bytes(len(data) * 3 // 5))
    assert_holds(opened(folder), range(1, 6))


def test_entries_of_an_index_that_is_gone_are_not_believed(folder: Path) -> None:
    filled(folder).index.close()
    (folder.parent / "index.db").unlink()
    vectors = opened(folder)
    assert len(vectors) == 0
    add(vectors, range(3, 7))
    assert found(vectors, 1, 2) == [-1, -1]
    assert_holds(opened(folder), range(3, 7))


def test_entries_that_were_never_committed_are_not_believed(folder: Path) -> None:
    """A process copied its rows to the files and was killed before it committed them."""
    vectors = filled(folder)
    with suppress(KeyboardInterrupt), vectors.index.change() as revision:
        revision.put_vectors([(MODEL, 9, 0, b"", bytes(4 + SIZE))])
        vectors._catch_up(vectors.index)
        raise KeyboardInterrupt
    again = opened(folder)
    assert found(again, 9) == [-1]
    assert_holds(again, range(1, 6))


def test_while_another_process_writes_rows_are_kept_in_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loki_memory.index.index._BUSY_MS", 1)
    vectors = filled(folder)
    other = Index(folder.parent / "index.db").writer()
    other.execute("BEGIN IMMEDIATE")
    add(vectors, range(6, 8))
    assert_holds(vectors, range(1, 8))
    other.execute("ROLLBACK")
    assert_holds(opened(folder), range(1, 6))


# -- others at the same files --------------------------------------------------------------------


def test_a_reader_goes_on_while_another_adds(folder: Path) -> None:
    filled(folder)
    reader, writer = opened(folder), opened(folder)
    add(writer, range(6, 9))
    assert len(reader) == 5
    assert_holds(reader, range(1, 6))
    reader.refresh(reader.index)
    assert_holds(reader, range(1, 9))


def test_another_process_finds_what_was_added_and_adds_its_own(folder: Path) -> None:
    filled(folder)
    program = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from test_index_vectors import add, assert_holds, opened\n"
        "vectors = opened(Path(sys.argv[1]))\n"
        "assert_holds(vectors, range(1, 6))\n"
        "add(vectors, range(6, 8))\n"
    )
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", program, folder, here], check=True)
    assert_holds(opened(folder), range(1, 8))


# -- another generation --------------------------------------------------------------------------


def crowded(folder: Path) -> Opened:
    """Few in use among more than a thousand that are not."""
    return filled(folder, range(1, 1202))


def test_rows_that_nobody_uses_go_once_they_are_most(folder: Path) -> None:
    vectors = crowded(folder)
    drop_all_but(vectors, range(600, 650))
    assert len(vectors) == 50 == vectors.index.scalar("SELECT count(*) FROM vectors")
    assert_holds(vectors, range(600, 650))
    assert_holds(opened(folder), range(600, 650))
    assert sorted(path.name for path in folder.iterdir()) == [
        "tiny_model_1.0-1.tokens",
        "tiny_model_1.0-1.vectors",
        "tiny_model_1.0-1.vectors.seal",
    ]


def test_few_rows_that_nobody_uses_stay(folder: Path) -> None:
    vectors = filled(folder, range(1, 900))
    drop_all_but(vectors, range(5, 6))
    assert len(vectors) == 899


def test_none_in_use_at_all_is_no_obstacle(folder: Path) -> None:
    vectors = crowded(folder)
    drop_all_but(vectors, range(0))
    add(vectors, range(1, 6))
    assert_holds(opened(folder), range(1, 6))


def test_who_has_the_old_generation_open_goes_on_with_it(folder: Path) -> None:
    vectors = crowded(folder)
    reader = opened(folder)
    drop_all_but(vectors, range(600, 650))
    assert_holds(reader, range(1, 1202))
    reader.refresh(reader.index)
    reader.open()
    assert_holds(reader, range(600, 650))
    assert found(reader, 1) == [-1]


def test_a_generation_that_was_never_finished_is_made_again(folder: Path) -> None:
    """Killed in the middle of copying: the new tokens are there, the new table is not."""
    vectors = crowded(folder)
    (folder / "tiny_model_1.0-1.tokens").write_bytes(b"\x01\x02\x03\x04" * 7)
    vectors.open()
    assert_holds(vectors, range(1, 1202))
    drop_all_but(vectors, range(600, 650))
    assert_holds(opened(folder), range(600, 650))


def test_files_that_cannot_be_written_are_done_without(folder: Path) -> None:
    """Something stands in the way of the new files: a full disk would be the same."""
    vectors = crowded(folder)
    (folder / "tiny_model_1.0-1.tokens").mkdir()
    drop_all_but(vectors, range(600, 650))
    assert_holds(vectors, range(600, 650))
    assert_holds(opened(folder), range(600, 650))


# -- another model -------------------------------------------------------------------------------


def test_each_model_has_rows_and_files_of_its_own(folder: Path) -> None:
    first = filled(folder)
    other = Opened(folder, "another", first.index)
    assert len(other) == 0
    add(other, range(1, 3))
    first.refresh(first.index)
    assert len(first) == 5
    assert_holds(opened(folder), range(1, 6))
    assert_holds(opened(folder, "another"), range(1, 3))


def test_the_vectors_of_other_models_can_be_deleted(folder: Path) -> None:
    filled(folder)
    filled(folder, model="tiny-model")
    other = filled(folder, model="another")
    (folder / "catalogue").write_text("not a vector", encoding="utf-8")
    assert other.drop_other_models(other.index)
    assert not other.drop_other_models(other.index)
    assert sorted(path.name for path in folder.iterdir()) == [
        "another-0.tokens",
        "another-0.vectors",
        "another-0.vectors.seal",
        "catalogue",
    ]
    assert_holds(opened(folder, "another"), range(1, 6))
    assert len(opened(folder)) == 0


def test_the_name_of_a_model_is_no_way_out_of_the_folder(folder: Path) -> None:
    filled(folder, model="../../elsewhere/..")
    assert [path.parent for path in folder.iterdir()] == [folder] * 3
    assert_holds(opened(folder, "../../elsewhere/.."), range(1, 6))


def test_a_vector_that_is_kept_as_bytes_points_where_it_did() -> None:
    drawn = np.random.default_rng(7).normal(size=(200, 256)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    kept = unpacked(packed(drawn))
    assert np.abs(kept @ drawn.T - drawn @ drawn.T).max() < 0.002
    assert len(packed(drawn)[0]) == 4 + 256


def test_a_vector_of_zeros_stays_one() -> None:
    assert not unpacked(packed(np.zeros((2, SIZE), np.float32))).any()


def test_an_index_of_which_most_was_deleted_becomes_smaller(tmp_path: Path) -> None:
    index = Index(tmp_path / "index.db")
    vectors = Opened(tmp_path / "vectors", index=index)
    add(vectors, range(1, 3000))
    drop_all_but(vectors, range(1, 5))
    before = (tmp_path / "index.db").stat().st_size
    assert index.vacuum() > 0
    assert (tmp_path / "index.db").stat().st_size < before
    assert index.vacuum() == 0
    assert_holds(opened(tmp_path / "vectors"), range(1, 5))
