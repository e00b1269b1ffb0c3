"""Health: what is wrong, with its fix as a button; sizes, hooks, and what verification finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.errors import NotFound
from loki_memory.ui.page import Visit, back, page, render, write
from loki_memory.ui.pages.told import door
from loki_memory.ui.site import derived, recompute

if TYPE_CHECKING:
    from loki_memory.browse.audit import Audit
    from loki_memory.browse.doctor import Finding
    from loki_memory.browse.status import Stats
    from loki_memory.files.problem import Problem
    from loki_memory.integrity.verify import Verified
    from loki_memory.workspace import Workspace

_FIXES = {  # by the name of the check, for findings that are not well
    "index": "rebuild",
    "changes": "mend",
    "sync": "mend",
    "pull": "pull",
    "trust": "trust",
}
_SHOWN = 200  # problems, and findings of a verification


class HealthFinding(NamedTuple):
    """The result of a check, and the button that helps; no name where a person must decide."""

    check: str
    verdict: str
    said: str
    fix: str


class HookSeen(NamedTuple):
    """A hook that told something lately, or another way in which memory was told unasked."""

    occasion: str
    door: str  # the occasion in words
    times: int
    last: str
    tokens: int


class VerifiedLine(NamedTuple):
    """A record that verification has something to say about."""

    path: str
    id: str
    what: str
    said: str


class HealthPage(NamedTuple):
    """The data of the page Health."""

    well: bool
    findings: list[HealthFinding]
    problems: list[Problem]
    hooks: list[HookSeen]
    watcher: str
    capture: str  # why sessions are not captured; empty if they are
    stats: Stats
    verified: str  # one line about all records
    by_hand: int  # records that were written or edited by hand, which is no alarm
    lines: list[VerifiedLine]


class JunkPage(NamedTuple):
    """The data of the page about junk."""

    audit: Audit


def health_page(workspace: Workspace, watcher: str) -> HealthPage:
    diagnosis = derived(workspace, "doctor", workspace.care.doctor)
    verified = derived(workspace, "verified", workspace.history.verify)
    findings = [_finding(found) for found in diagnosis.findings]
    return HealthPage(
        well=diagnosis.well and verified.well,
        findings=sorted(findings, key=lambda found: found.verdict == "ok"),
        problems=diagnosis.problems[:_SHOWN],
        hooks=hooks_seen(workspace),
        watcher=watcher,
        capture=workspace.status().capture,
        stats=derived(workspace, "stats", partial(workspace.browse.stats, with_junk=False)),
        verified=_verified(verified),
        by_hand=sum(line.is_by_hand for line in verified.findings),
        lines=_lines(verified)[:_SHOWN],
    )


def _finding(found: Finding) -> HealthFinding:
    is_well = found.verdict in {"ok", "mended"}
    return HealthFinding(*found, fix="" if is_well else _FIXES.get(found.check, ""))


def hooks_seen(workspace: Workspace) -> list[HookSeen]:
    """Count what was told unasked lately, by occasion."""
    told = workspace.browse.injections()
    times, tokens, last = Counter[str](), Counter[str](), dict[str, str]()
    for entry in told:
        times[entry.occasion] += 1
        tokens[entry.occasion] += entry.tokens
        last[entry.occasion] = max(entry.at, last.get(entry.occasion, ""))
    return [
        HookSeen(name, door(name), times[name], last[name], tokens[name]) for name in sorted(times)
    ]


def _verified(found: Verified) -> str:
    return (
        f"{found.records} records, {found.lines} lines of the write log by {found.writers} "
        f"{'writer' if found.writers == 1 else 'writers'}, {found.anchors} anchors in commits"
    )


def _lines(found: Verified) -> list[VerifiedLine]:
    lines = [
        VerifiedLine(line.path, line.id, line.what, line.said)
        for line in found.findings
        if not line.is_by_hand
    ]
    stale = [
        VerifiedLine("", line.id, "stale", f"cites {', '.join(line.cites)}, changed since")
        for line in found.stale
    ]
    return [*lines, *stale]


def junk_page(workspace: Workspace) -> JunkPage:
    """Examine all memories, which takes seconds where there are thousands."""
    return JunkPage(derived(workspace, "junk", workspace.care.audit))


def junk(visit: Visit) -> Response:
    return render(visit, "junk.html", junk_page(visit.workspace))


def health(visit: Visit) -> Response:
    return render(visit, "health.html", health_page(visit.workspace, visit.site.watcher_state()))


# -- fixes ---------------------------------------------------------------------------------------


def _mend(workspace: Workspace) -> str:
    findings = workspace.care.doctor(fix=True).findings
    mended = [found.said for found in findings if found.verdict == "mended"]
    return "; ".join(mended) or "Nothing was left to mend"


def _rebuild(workspace: Workspace) -> str:
    workspace.rebuild()
    return "The index was made anew from the files"


def _pull(workspace: Workspace) -> str:
    workspace.history.pull()
    return "Memory was set aside, pulled, and merged back"


def _trust(workspace: Workspace) -> str:
    workspace.home.note_trust(is_trusted=True)
    return "Agents are told of this memory from now on"


def _adopt(workspace: Workspace) -> str:
    return f"{len(workspace.history.verify(adopt=()).adopted)} records accepted as they are"


def _renew(workspace: Workspace) -> str:
    renewed = [line for line in workspace.history.verify(fix=True).stale if line.renewed]
    return f"{len(renewed)} citations renewed whose code still says the same"


FIXES: dict[str, Callable[[Workspace], str]] = {
    "mend": _mend,
    "rebuild": _rebuild,
    "pull": _pull,
    "trust": _trust,
    "adopt": _adopt,
    "renew": _renew,
}


def fix(visit: Visit) -> Response:
    """Run the fix that the path names."""
    name = visit.parameter("name")
    if name not in FIXES:
        raise NotFound(name)
    words = FIXES[name](visit.workspace)
    recompute(visit.workspace)
    visit.site.broadcast.notify()
    return back(visit, "/health", visit.site.undo.push(words))


routes = [
    *page("/health/junk", junk),
    *page("/health", health),
    *write("/health/{name}", fix),
]
shapes: dict[str, Any] = {"health": HealthPage, "junk": JunkPage}
