"""The doctor: examine a workspace, and mend what can be mended without loss."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from loki_memory.browse.status import collect_garbage
from loki_memory.errors import GitFailed, LokiMemoryError
from loki_memory.files import transaction
from loki_memory.files.layout import is_misplaced, kind_of, view_kind
from loki_memory.files.problem import Problem
from loki_memory.files.scan import scan
from loki_memory.history.pull import waiting
from loki_memory.history.refusals import would_be_refused
from loki_memory.index import graph, queries
from loki_memory.integrity.reviewed import known_unreviewed
from loki_memory.language.asking import language_state
from loki_memory.models.text import plural

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

Verdict = Literal["ok", "mended", "warning", "problem"]
_WAL_FIX = (3, 51, 3)


class Finding(NamedTuple):
    """The result of one check."""

    check: str
    verdict: Verdict
    said: str


class Diagnosis(NamedTuple):
    """All findings, and the problems of single files."""

    well: bool
    findings: list[Finding]
    problems: list[Problem]


def examine(workspace: OpenWorkspace, *, deep: bool, fix: bool) -> Diagnosis:
    findings = [_versions(), _git(), _places(workspace), _embedding(workspace)]
    if fix:
        findings += _mend(workspace)
    findings += [_unfinished(workspace), _index(workspace, deep=deep, fix=fix), _foreign(workspace)]
    findings += [_dangling(workspace), _hidden(workspace), _trust(workspace), *_pull(workspace)]
    findings += _language(workspace)
    problems = workspace.home.problems()
    told = {*map(str, problems)}
    findings += [
        Finding("note", "ok", notice)
        for notice in workspace.notices
        if notice not in told and not notice.endswith(": loki-mem doctor")
    ]
    well = not problems and all(finding.verdict in {"ok", "mended"} for finding in findings)
    return Diagnosis(well, findings, problems)


def _versions() -> Finding:
    wal = "WAL" if sqlite3.sqlite_version_info >= _WAL_FIX else "TRUNCATE (WAL is safe from 3.51.3)"
    python = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "sqlite", "ok", f"SQLite {sqlite3.sqlite_version}, journal {wal}, Python {python}"
    )


def _git() -> Finding:
    git = shutil.which("git")
    if git is None:
        return Finding("git", "ok", "not installed; everything but history works")
    said = subprocess.run([git, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    return Finding("git", "ok", said.stdout.strip() or "does not answer")


def _places(workspace: OpenWorkspace) -> Finding:
    place = workspace.layout
    return Finding("places", "ok", f"memory {place.memory}, local {place.local}")


def _language(workspace: OpenWorkspace) -> list[Finding]:
    state = language_state(workspace)
    if state is None:
        return []
    return [Finding("language", "ok" if state.is_ready else "warning", state.said)]


def _embedding(workspace: OpenWorkspace) -> Finding:
    """The models in use, how far the sentence model is, and what the extra would add."""
    from loki_memory.embedding.sentence_model import INSTALL, MISSING

    choice = workspace.home.model_choice
    if choice.is_missing:
        return Finding("models", "warning", MISSING)
    if not choice.sentence_name:
        added = "" if choice.folder else f"; {INSTALL} finds more of what is put in other words"
        return Finding("models", "ok", f"{choice.described()}{added}")
    done, passages = queries.embedded_passages(workspace.index, choice.sentence_name)
    rest = "" if done == passages else f"; {done} of {passages} texts, `loki-mem rebuild` for all"
    return Finding("models", "ok", f"{choice.described()}{rest}")


def _mend(workspace: OpenWorkspace) -> list[Finding]:
    """Mend without loss: clean up, give records that share an id their own, bring the index up to
    date.
    """
    cleared = collect_garbage(workspace, dry_run=False)
    found = (
        [Finding("litter", "mended", f"{plural(len(cleared.files), 'file')} cleared")]
        if cleared.files
        else []
    )
    rekeyed = _rekey(workspace)
    if rekeyed:
        found.append(
            Finding("ids", "mended", f"{plural(len(rekeyed), 'record')} got an id of their own")
        )
    try:
        workspace.home.settle_in()
        workspace.sync()
    except LokiMemoryError as error:
        found.append(Finding("sync", "problem", str(error)))
    return found


def _rekey(workspace: OpenWorkspace) -> list[str]:
    """Write new ids into files whose own id another file has, as the records are shown."""
    workspace.home.ensure("read")
    renamed = queries.renamed_records(workspace.index)
    if not renamed:
        return []
    with workspace.store.change() as change:
        for memory_id, path in renamed:
            record = change.record(path)
            if record is not None:
                change.put(record.changed(id=memory_id), path)
    return [record.path for record in renamed]


def _unfinished(workspace: OpenWorkspace) -> Finding:
    if transaction.waiting(workspace.layout):
        return Finding(
            "changes", "warning", "a change is decided and not carried out; any write completes it"
        )
    return Finding("changes", "ok", "none unfinished")


def _index(workspace: OpenWorkspace, *, deep: bool, fix: bool) -> Finding:
    """Compare the index with the files: quickly by stamps, deeply by content."""
    workspace.home.ensure("read")
    number = sum(workspace.index.counts().values())
    said = plural(number, "memory")
    try:
        checked = queries.quick_check(workspace.index)
        if checked != "ok":
            return Finding("index", "problem", f"SQLite says {checked}; run loki-mem rebuild")
        wrong = _differing(workspace) if deep else []
    except sqlite3.DatabaseError as error:
        return Finding("index", "problem", f"is damaged ({error}); run loki-mem rebuild")
    if not wrong:
        return Finding(
            "index", "ok", f"{said}, {'every row' if deep else 'stamps'} compared with files"
        )
    if fix:
        workspace.rebuild()
        return Finding(
            "index", "mended", f"{plural(len(wrong), 'row')} differed from files; rebuilt"
        )
    return Finding(
        "index",
        "problem",
        f"differs from files in {plural(len(wrong), 'row')}, first {wrong[0]}; loki-mem rebuild",
    )


def _differing(workspace: OpenWorkspace) -> list[str]:
    """Paths whose rows differ from their files: every file is read, every column compared."""
    from loki_memory.index.index import Index
    from loki_memory.sync import rebuild

    fresh = Index(None)
    rebuild(workspace.layout, fresh, 0)
    have, want = queries.contents(workspace.index), queries.contents(fresh)
    names = sorted(have.keys() | want.keys())
    wrong = [name for name in names if have.get(name) != want.get(name)]
    if not wrong and fresh.digest() != workspace.index.digest():
        wrong = ["the full-text index or the graph"]
    fresh.close()
    return wrong


def _foreign(workspace: OpenWorkspace) -> Finding:
    """Files in memory folders that are no records: left alone, and reported once."""
    files = [
        f"{path}/{name}"
        for path, folder in scan(workspace.layout)
        for name in folder.files
        if not kind_of(f"{path}/{name}")
        and not view_kind(f"{path}/{name}")
        and not is_misplaced(f"{path}/{name}")
        and not (path.count("/") and path.startswith("skills/"))
    ]
    if not files:
        return Finding("files", "ok", "all files under memory/ are memory")
    return Finding(
        "files", "ok", f"{plural(len(files), 'file')} not memory and left alone, such as {files[0]}"
    )


def _dangling(workspace: OpenWorkspace) -> Finding:
    """Links and evidence that name memories which are not there."""
    edges = graph.dangling(workspace.index)
    if not edges:
        return Finding("links", "ok", "every link and every piece of evidence leads somewhere")
    first = f"{edges[0].stated} names {edges[0].target}"
    return Finding(
        "links",
        "warning",
        f"{plural(len(edges), 'link')} to memories that are not here, such as: {first}",
    )


def _hidden(workspace: OpenWorkspace) -> Finding:
    """Records that say what a person rejected: they stand in files and are not shown."""
    ids = queries.rejected_again(workspace.index)
    if not ids:
        return Finding("rejected", "ok", "no record says what was rejected")
    said = f"{plural(len(ids), 'record')} that says what was rejected, and is not shown: {ids[0]}"
    return Finding("rejected", "ok", said)


def _pull(workspace: OpenWorkspace) -> Iterator[Finding]:
    """Memory that stands in the way of `git pull`, and memory that a killed pull set aside."""
    if waiting(workspace.layout.local):
        said = "a pull was interrupted and memory is set aside; `loki-mem pull` merges it back"
        yield Finding("pull", "warning", said)
    paths = would_be_refused(workspace.layout.root)
    if paths:
        advice = "`loki-mem pull` sets them aside, pulls, and merges them back"
        said = f"git pull would refuse {plural(len(paths), 'uncommitted file')}, such as {paths[0]}"
        yield Finding("pull", "warning", f"{said}; {advice}")


def _trust(workspace: OpenWorkspace) -> Finding:
    """Find out whether agents are told of this memory, and of how much of it."""
    found = workspace.home.trust()
    if not found.is_trusted:
        advice = "agents are told nothing of it: loki-mem trust"
        return Finding("trust", "warning", f"{found.why}; {advice}")
    try:
        workspace.home.renew_review()
    except GitFailed as error:
        return Finding("trust", "warning", f"what was reviewed is not known: {error}")
    number = len(known_unreviewed(workspace.home))
    if number:
        are = "memory is" if number == 1 else "memories are"
        said = f"trusted {found.why}; {number} {are} not reviewed and not told"
        return Finding("trust", "ok", said)
    return Finding("trust", "ok", f"trusted {found.why}")
