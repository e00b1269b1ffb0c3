"""Take our defences away, one at a time, and see that a test notices.

    python benchmarks/long/defences.py [NAME...]

Each defence is a piece of the code that a copy of the package does without. The tests beside it run
against that copy and must fail; against the package as it is, they pass. Exits with 1 if a defence
could be removed without a test that turns red.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_PYTEST = (
    *(sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"),
    *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
)
_BESIDE = ("templates", "schemas", "example_workspace", "plugin", "docs", "README.md")


class Defence(NamedTuple):
    """Code that guards something, what stands in its place without it, and tests that notice."""

    file: str
    code: str
    instead: str
    tests: tuple[str, ...]


_FLUSHED = (
    "tests/faults/test_file_system.py"
    "::test_bytes_are_flushed_before_they_get_their_name_and_the_folder_after"
)
DEFENCES = {
    "fsync of a file": Defence("files/disk.py", "os.fsync(fd)", "pass", (_FLUSHED,)),
    "fsync of a folder": Defence(
        "files/disk.py",
        "        inside.flush()\n        if linked",
        "        if linked",
        (_FLUSHED,),
    ),
    "lock": Defence(
        "files/lock.py",
        "fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(fd, fcntl.LOCK_UN)",
        ("tests/faults/test_writers.py::test_f28_a_lock_that_is_only_tried_says_that_it_is_held",),
    ),
    "etag": Defence(
        "files/store.py",
        "        if if_match is None:\n            return",
        "        if True:\n            return",
        ("tests/test_files_store.py::test_a_writer_that_saw_an_older_version_is_refused",),
    ),
    "a look at the renamed file": Defence(
        "files/disk.py",
        "        _check_arrived(inside, name, inode)\n",
        "",
        ("tests/faults/test_file_system.py::test_a_rename_that_did_not_happen_is_noticed",),
    ),
    "links": Defence(
        "files/disk.py",
        '_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)',
        "_NOFOLLOW = 0",
        ("tests/test_files_store.py::test_a_linked_record_is_neither_read_nor_written",),
    ),
    "redaction": Defence(
        "files/store.py",
        "if may_hold_secret(data):",
        "if False:",
        ("tests/test_files_store.py::test_an_id_is_not_derived_from_a_secret",),
    ),
    "trust gate": Defence(
        "injection/gate.py",
        "    return bool(why)",
        "    return False",
        ("tests/test_injection_gate.py::test_only_a_trusted_workspace_is_told",),
    ),
    "fence": Defence(
        "hooks/response.py",
        '_MARK.sub("< ", text).splitlines',
        "text.splitlines",
        ("tests/test_hooks.py::test_a_memory_cannot_end_the_marks_around_it",),
    ),
    "seal of the index": Defence(
        "index/seal.py",
        "        return disk.read_derived(beside(paths[0])) == _state(paths)",
        "        return True",
        (
            "tests/faults/test_index_damage.py::test_f16_damage_is_found_at_the_next_opening_and_mended_once",
        ),
    ),
    "digests of the index": Defence(
        "index/digests.py",
        "        if counted(database, table) != known.get(table, (0, 0)):",
        "        if False:",
        (
            "tests/faults/test_index_damage.py::test_f16_damage_is_found_at_the_next_opening_and_mended_once",
        ),
    ),
    "ids by case": Defence(
        "files/store.py",
        "        if twin != name:",
        "        if False:",
        ("tests/faults/test_writers.py::test_f43_an_id_that_differs_only_by_case_is_refused",),
    ),
}


def without(defence: Defence, folder: Path) -> None:
    """Copy the package to a folder, and leave one defence out."""
    shutil.copytree(ROOT / "loki_memory", folder / "loki_memory")
    for name in _BESIDE:
        (folder / name).symlink_to(ROOT / name)
    path = folder / "loki_memory" / defence.file
    text = path.read_text(encoding="utf-8")
    if defence.code not in text:
        raise SystemExit(f"{defence.file} has no {defence.code!r}; name the defence anew")
    path.write_text(text.replace(defence.code, defence.instead, 1), encoding="utf-8")


def are_red(defence: Defence, folder: Path) -> bool:
    """Check if the tests fail against a copy of the package."""
    run = subprocess.run(
        [*_PYTEST, *(str(ROOT / test) for test in defence.tests)],
        cwd=folder,  # from which Python imports first
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode not in {0, 1} or "skipped" in run.stdout:
        print(run.stdout[-2000:], file=sys.stderr)
    return run.returncode == 1


def main(names: list[str]) -> int:
    left = 0
    print("| without | tests |\n| --- | --- |")
    for name, defence in DEFENCES.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            without(defence, Path(folder))
            red = are_red(defence, Path(folder))
        left += not red
        print(f"| {name} | {'red, as they must be' if red else 'STILL GREEN'} |", flush=True)
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
