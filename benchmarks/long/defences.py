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
_LONGEST = 900  # seconds of the tests of a defence
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
_CLONES = "tests/hostile/test_clones.py"
_ZONES = "tests/test_files_zones.py"
_POINTER = "test_a_pointer_of_an_archive_to_the_repository_of_another_project_opens_nothing"
_IMPORTS = "tests/test_interop_sources.py"
_SCOPES = "tests/hostile/test_scopes.py"
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
        "if is_shared or may_hold_secret(data):",
        "if False:",
        ("tests/test_files_store.py::test_an_id_is_not_derived_from_a_secret",),
    ),
    "trust in a workspace": Defence(
        "files/workspace_trust.py",
        "    return _decided(_read(layout), layout, remote)",
        '    return WorkspaceTrust(True, "")',
        ("tests/test_injection_gate.py::test_only_a_trusted_workspace_is_told",),
    ),
    "silence of an untrusted workspace": Defence(
        "injection/gate.py",
        'why or ("" if workspace.home.trust().is_trusted else _UNTRUSTED)',
        'why or ""',
        ("tests/test_injection_gate.py::test_an_untrusted_workspace_is_silent_and_says_why",),
    ),
    "withholding in an untrusted workspace": Defence(
        "injection/gate.py",
        "return Withheld(is_all=True)",
        "return Withheld()",
        (f"{_CLONES}::test_no_door_of_an_untrusted_clone_tells_what_it_brought",),
    ),
    "review": Defence(
        "injection/gate.py",
        "Withheld(*_unreviewed(home), rejected=rejected)",
        "Withheld(rejected=rejected)",
        (f"{_CLONES}::test_no_door_tells_what_only_an_unmerged_branch_has",),
    ),
    "signatures": Defence(
        "injection/gate.py",
        "Withheld(_unsigned(home), rejected=rejected)",
        "Withheld(rejected=rejected)",
        (f"{_CLONES}::test_no_door_tells_what_is_not_signed_where_signatures_are_required",),
    ),
    "rejected values": Defence(
        "injection/gate.py",
        "        if not self._rejected:\n            return record",
        "        if True:\n            return record",
        ("tests/hostile/test_rejected.py",),
    ),
    "fence": Defence(
        "models/fence.py",
        "    if text.isascii() and not _MAY_HIDE.search(text):",
        "    if True:",
        ("tests/hostile/test_fence.py",),
    ),
    "words that a tool printed": Defence(
        "ingest/seen_words.py",
        "        if not _tell(hits):",
        "        if True:",
        ("tests/hostile/test_tool_output.py",),
    ),
    "projects of a server": Defence(
        "mcp/tool.py",
        "if project and not self._may_reach(workspace, project):",
        "if False:",
        (f"{_SCOPES}::test_another_project_is_out_of_reach",),
    ),
    "notes of a session": Defence(
        "mcp/records.py",
        '== "session" and (not session or session != own)',
        '== "session" and False',
        (f"{_SCOPES}::test_a_memory_of_a_session_is_opened_from_that_session_only",),
    ),
    "mark of the local zone": Defence(
        "files/layout.py",
        "    return mark == made_here(status)",
        "    return True",
        ("tests/test_files_zones.py",),
    ),
    "private files": Defence(
        "files/disk.py",
        "mode = mode & 0o600 if is_private(self.path) else mode",
        "mode = int(mode)",
        ("tests/hostile/test_secrets.py",),
    ),
    "tracked working memory": Defence(
        "continuity/file.py",
        "is_kept_out = _is_kept_out(workspace, path)",
        "is_kept_out = False",
        (f"{_CLONES}::test_a_tracked_continuity_file_holds_no_memory_of_this_machine",),
    ),
    "seal of the index": Defence(
        "index/database.py",
        "        return disk.read_derived(seal_of(paths[0])) == _state(paths)",
        "        return True",
        (
            "tests/faults/test_index_damage.py::test_f16_damage_is_found_at_the_next_opening_and_mended_once",
        ),
    ),
    "digests of the index": Defence(
        "index/database.py",
        "        if counted(database, table) != known.get(table, (0, 0)):",
        "        if False:",
        (
            "tests/faults/test_index_damage.py::test_f16_damage_is_found_at_the_next_opening_and_mended_once",
        ),
    ),
    "repositories inside memory": Defence(
        "files/layout.py",
        "        if is_repository(folder):",
        "        if False:",
        ("tests/test_files_zones.py::test_memory_in_a_repository_of_its_own_is_refused",),
    ),
    "a zone that an archive brings": Defence(
        "home/place.py",
        "or not is_made_here(beside)",
        "or not (is_made_here(beside) or (place.cache / 'index.db').is_file())",
        (f"{_ZONES}::test_a_zone_without_a_mark_is_not_ours_though_we_made_an_index_beside_it",),
    ),
    "escapes around secrets": Defence(
        "files/redaction.py",
        "    if layers and is_escaped(data):",
        "    if False:",
        ("tests/test_files_redaction.py::test_a_token_in_disguise_is_replaced",),
    ),
    "personal data": Defence(
        "files/redaction.py",
        '_PROMPT.sub("user@host", _HOME.sub("~", text))',
        "text",
        ("tests/hostile/test_secrets.py::test_what_others_read_names_no_person",),
    ),
    "flush of git's index": Defence(
        "git_repository.py",
        "loose-object,reference,index",
        "loose-object,reference",
        ("tests/test_history_commit.py::test_f39_gits_index_is_flushed_before_it_gets_its_name",),
    ),
    "a repository of another project": Defence(
        "files/layout.py",
        "    if not _is_own_worktree(top):",
        "    if False:",
        (f"{_ZONES}::{_POINTER}",),
    ),
    "texts that leave the machine": Defence(
        "recall/vector_similarity.py",
        "        if self._choice.is_hosted:\n",
        "        if False:\n",
        ("tests/test_embedding_hosted.py::test_no_secret_and_no_name_is_sent",),
    ),
    "key over http to a language model": Defence(
        "language/apis.py",
        "        if key and host not in _LOOPBACK",
        "        if False",
        ("tests/test_language_backends.py::test_a_key_is_not_sent_without_https",),
    ),
    "frames of clients": Defence(
        "models/fence.py",
        "(?:{_NAME}|{_CLIENTS})",
        "(?:{_NAME})",
        ("tests/hostile/test_fence.py::test_a_text_neither_closes_nor_imitates_the_fence",),
    ),
    "hidden characters in answers": Defence(
        "models/fence.py",
        "        return defused(revealed(value))",
        "        return defused(value)",
        ("tests/hostile/test_fields.py",),
    ),
    "days of evidence": Defence(
        "index/overview.py",
        " AND date(mark.value ->> '$.day') = mark.value ->> '$.day'",
        "",
        ("tests/hostile/test_fields.py",),
    ),
    "ids by case": Defence(
        "files/store.py",
        "        if twin != name:",
        "        if False:",
        ("tests/faults/test_writers.py::test_f43_an_id_that_differs_only_by_case_is_refused",),
    ),
    "folders that look like a git directory": Defence(
        "git_repository.py",
        '    "safe.bareRepository=explicit",',
        "   ",
        (f"{_CLONES}::test_a_folder_that_looks_like_a_git_directory_runs_nothing",),
    ),
    "size of a file": Defence(
        "files/disk.py",
        "if size <= _MOST_BYTES else []",
        "",
        (f"{_CLONES}::test_a_file_of_any_size_is_refused_and_the_rest_is_served",),
    ),
    "tables that compute": Defence(
        "interop/sources/databases.py",
        "connection.set_authorizer(_of_plain_tables)",
        "pass",
        (f"{_IMPORTS}::test_a_table_that_computes_what_it_shows_is_none",),
    ),
    "columns that compute": Defence(
        "interop/sources/databases.py",
        'names = ", ".join(map(_quoted, sorted(columns)))',
        'names = "*"',
        (f"{_IMPORTS}::test_a_column_that_is_computed_is_not_read",),
    ),
    "a proxy on the way to this machine": Defence(
        "remote/client.py",
        "ProxyHandler(proxies)",
        "ProxyHandler()",
        ("tests/test_server_remote.py::test_a_proxy_never_gets_a_token_in_the_clear",),
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
    """Check if the tests fail, or never end, against a copy of the package."""
    try:
        run = subprocess.run(
            [*_PYTEST, *(str(ROOT / test) for test in defence.tests)],
            cwd=folder,  # from which Python imports first
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST,
        )
    except subprocess.TimeoutExpired:  # what is endless without the defence
        return True
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
