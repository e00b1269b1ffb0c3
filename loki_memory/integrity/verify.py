"""Verify memory: find records that the tool did not write, and citations that are stale.

A finding stays until it is mended, or adopted by a user.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import NotFound
from loki_memory.files import disk
from loki_memory.files.layout import Layout
from loki_memory.files.store import Store
from loki_memory.index import queries
from loki_memory.integrity import write_log
from loki_memory.integrity.citations import blob_id, content, has_changed, is_stale, still_stands
from loki_memory.integrity.findings import Examined, IntegrityFinding, examine
from loki_memory.integrity.reviewed import note_doubts
from loki_memory.integrity.write_log import WriteNote

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.integrity.findings import AnchoredPast

_VERIFIED = "verified"  # the state of the index at which everything was


class Stale(NamedTuple):
    """A belief that cites code which has changed since."""

    id: str
    path: str
    cites: list[str]  # files that changed or are gone
    renewed: bool = False


class Verified(NamedTuple):
    """The amount that was verified, and the findings."""

    well: bool  # nothing is lost or damaged; edits by hand and stale citations do not count
    records: int
    writers: int
    lines: int
    anchors: int
    findings: list[IntegrityFinding]
    stale: list[Stale]
    adopted: list[str]  # paths


def verify(
    workspace: OpenWorkspace, *, adopt: Collection[str] | None = None, fix: bool = False
) -> Verified:
    """Verify a workspace.

    `adopt` accepts findings as they are: the records with these ids or paths, or all if it is
    empty. `fix` renews citations of code that still has the cited passage.
    """
    workspace.home.ensure("current")
    layout, past = workspace.layout, _past(workspace.layout)
    found = examine(layout, past)
    adopted = _adopt(workspace.store, past, found, adopt) if adopt is not None else []
    stale = stale_citations(workspace, past, fix=fix)
    if adopted or fix:
        found = examine(layout, past)
    note_doubts(layout, found.doubts)
    chains = found.testimony.chains
    return Verified(
        well=all(finding.is_by_hand for finding in found.findings),
        records=found.records,
        writers=len({entry.line.writer for chain in chains for entry in chain.entries}),
        lines=len(found.testimony),
        anchors=len(past.anchors) if past else 0,
        findings=found.findings,
        stale=stale,
        adopted=adopted,
    )


def verify_news(workspace: OpenWorkspace, most: int) -> Verified | None:
    """Verify if anything changed since the last time and there are at most `most` records; None
    if it was not done.
    """
    state = workspace.index.note("changed_ns")
    place = workspace.layout.local / _VERIFIED
    if state == (disk.read_bytes(place) or b"").decode("ascii", "ignore"):
        return None
    if queries.count(workspace.index) > most:
        workspace.notices.append("memory changed and was not verified; `loki-mem verify` does")
        return None
    found = verify(workspace)
    with suppress(OSError):  # then the next session verifies again
        disk.write_bytes(place, workspace.index.note("changed_ns").encode())
    return found


def _past(layout: Layout) -> AnchoredPast | None:
    from loki_memory.git_repository import Repository
    from loki_memory.integrity.findings import AnchoredPast

    repository = Repository.find(layout.root, layout.loki.name)
    return AnchoredPast(repository) if repository else None


# -- adopting ------------------------------------------------------------------------------------


def _adopt(
    store: Store, past: AnchoredPast | None, found: Examined, wanted: Collection[str]
) -> list[str]:
    """Add lines that vouch for findings; returns the paths.

    Unreadable records are mended instead. Broken chains of this machine are abandoned: records
    that only they vouched for are adopted anew.
    """
    unknown = [name for name in wanted if not any(name in {f.id, f.path} for f in found.findings)]
    if unknown:
        raise NotFound(f"{', '.join(unknown)} among what `loki-mem verify` finds")
    broken = {f.path for f in found.findings if f.what == "chain" and not f.sha256}
    with store.change():
        if broken and not wanted:
            write_log.give_up(store.layout, sorted(broken))
            found = examine(store.layout, past)
        chosen = [
            f
            for f in found.findings
            if f.what != "damaged" and (not wanted or f.id in wanted or f.path in wanted)
        ]
        write_log.note(store.layout, adoptions(chosen))
    return list(dict.fromkeys(finding.path for finding in chosen))


def adoptions(chosen: Iterable[IntegrityFinding]) -> list[WriteNote]:
    """The notes that adopt findings. For each path the last one is the content that was examined:
    a later change is not adopted unseen.
    """
    by_path: dict[str, list[IntegrityFinding]] = {}
    for finding in chosen:
        if finding.sha256 or finding.what == "missing":
            by_path.setdefault(finding.path, []).append(finding)
    notes = []
    for path, findings in by_path.items():
        notes += [WriteNote("adopt", path, finding.sha256, "") for finding in findings]
    return notes


# -- citations -----------------------------------------------------------------------------------


def stale_citations(
    workspace: OpenWorkspace, past: AnchoredPast | None, *, fix: bool = False
) -> list[Stale]:
    """Beliefs whose code has changed; with `fix`, citations whose passage is intact are renewed."""
    root, found = workspace.layout.root, []
    for name, path in queries.with_citations(workspace.index):
        cited = _citations(workspace.store, path)
        changed = [str(citation["path"]) for citation in cited if has_changed(root, citation)]
        if changed:
            renewed = fix and past is not None and _renew(workspace, past, path)
            found.append(Stale(name, path, changed, renewed))
    return found


def _citations(store: Store, path: str) -> list[dict[str, Any]]:
    record = store.record(path)
    return record.document().get("citations", []) if record else []


def _renew(workspace: OpenWorkspace, past: AnchoredPast, path: str) -> bool:
    """Renew the citations of a record; returns True if all of them fit again."""
    root = workspace.layout.root
    with workspace.store.change() as change:
        record = change.record(path)
        if record is None:
            return False
        before = record.document().get("citations", [])
        after = [_renewed(root, past, citation) for citation in before]
        if after != before:
            change.put(record.changed(citations=after), path)
    return not is_stale(root, after)


def _renewed(root: Path, past: AnchoredPast, cited: dict[str, Any]) -> dict[str, Any]:
    """The citation with the file's present id, if the cited passage is still there."""
    if not has_changed(root, cited):
        return cited
    then, now = past.blob(cited["blob"]), content(root, cited["path"])
    if then is None or now is None or not still_stands(cited.get("symbol") or "", then, now):
        return cited
    return {**cited, "blob": blob_id(now, cited["blob"])}
