"""The gate for memory: faults that should not be merged, each kind with its own exit code.

With a span (`A..B`), only its changes are checked: nobody is held up by the faults of
others. Without one, and without git, the whole store is. Nothing is written and no index is
needed, so that it runs in a fresh checkout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.continuity.file import block_text
from loki_memory.errors import InvalidRecord
from loki_memory.files import disk
from loki_memory.files.codec import decode_with_document
from loki_memory.files.problem import secret_problems
from loki_memory.files.redaction import find_secrets, may_hold_secret, redact_value
from loki_memory.git_repository import repository, repository_if_any
from loki_memory.history.belief_diff import DEAD, contradicted, status
from loki_memory.history.file_changes import record_changes
from loki_memory.history.review import (
    Comparison,
    compare,
    editions,
    other_files,
    present_tree,
    zone_problems,
)
from loki_memory.history.review_faults import (
    Commits,
    doubts_about_claims,
    doubts_about_commands,
    doubts_about_files,
    doubts_about_stones,
    doubts_about_text,
)
from loki_memory.history.tree import MemoryTree, Records, of_folder, original
from loki_memory.integrity.citations import has_changed
from loki_memory.models import RELATIONS, Belief, Citation, Link, Memory, tombstone_id
from loki_memory.models.field_slips import slips
from loki_memory.models.text import tokens

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.homes import OpenWorkspace

# The gravest first: it decides the exit code.
EXIT_CODES = {
    "secret": 20,
    "zone": 27,
    "review": 28,
    "invalid": 21,
    "lost": 22,
    "dangling": 23,
    "contradiction": 24,
    "citation": 25,
    "continuity": 26,
}
CHECKS = tuple(EXIT_CODES)
_BELIEFS = ("pattern", "anti-pattern", "fact", "skill", "learning")
_LOGGED = re.compile(rb'"path": ?"([^"]+)"')
_RESTS_ON = frozenset({"derived_from", "contradicted_by", "part_of", *RELATIONS})


class Fault(NamedTuple):
    """A fault, where it is, and what to do about it."""

    check: str
    path: str  # of the file in memory
    id: str
    said: str
    advice: str


def exit_code(findings: Iterable[Fault]) -> int:
    """The exit code of the gravest finding; 0 if there is none."""
    found = {fault.check for fault in findings}
    return next((code for check, code in EXIT_CODES.items() if check in found), 0)


def check(
    workspace: OpenWorkspace, spec: str | None = None, *, continuity_budget: int | None = None
) -> list[Fault]:
    """Find all faults, the gravest first."""
    case = _case(workspace, spec)
    found = [*_invalid(case), *_zones(case), *_secrets(case), *_lost(case), *_dangling(case)]
    found += [*_contradictions(case), *_citations(case)]
    found += _review_faults(case, spec) if case.compared is not None else ()
    if continuity_budget is not None:
        found += _continuity(workspace, continuity_budget)
    return sorted(
        found, key=lambda fault: (CHECKS.index(fault.check), fault.path, fault.id, fault.said)
    )


class CheckScope(NamedTuple):
    """The records to check, and their earlier versions, where those are known."""

    workspace: OpenWorkspace
    edition: MemoryTree
    records: Records
    compared: Comparison | None
    is_whole: bool  # True if these are all records

    def find(self, ids: Iterable[str]) -> dict[str, Memory]:
        """Find the memories with these ids, wherever they are kept."""
        known, wanted = self.records.all(), set(ids)
        found = {name: known[name] for name in wanted & known.keys()}
        rest = set() if self.is_whole else wanted - known.keys()
        return {**found, **self.edition.find(rest)}

    def finding(self, kind: str, record: Memory, said: str, advice: str) -> Fault:
        return Fault(kind, self.records.paths.get(record.id, ""), record.id, said, advice)


def _case(workspace: OpenWorkspace, spec: str | None) -> CheckScope:
    repo = repository_if_any(workspace.layout, workspace.config)
    if repo is None:
        return _all_of(workspace, of_folder(workspace.layout))
    if spec and _is_too_shallow(repo, spec):
        workspace.notices.append(
            f"the history here does not reach back to where {spec} parted (a shallow clone?): all "
            "of memory was looked at, and nothing can be said about beliefs that were lost"
        )
        return _all_of(workspace, present_tree(repo, workspace))
    compared = compare(*editions(workspace, spec))
    if spec:
        return CheckScope(workspace, compared.after, compared.new, compared, is_whole=False)
    return _all_of(workspace, compared.after, compared)


def _all_of(
    workspace: OpenWorkspace, edition: MemoryTree, compared: Comparison | None = None
) -> CheckScope:
    return CheckScope(workspace, edition, edition.everything(), compared, is_whole=True)


def _is_too_shallow(repo: Repository, spec: str) -> bool:
    old, dots, new = spec.partition("...")
    return bool(dots) and not repo.base(*map(repo.commit_of, (old or "HEAD", new or "HEAD")))


# -- files ---------------------------------------------------------------------------------------


def _invalid(case: CheckScope) -> Iterator[Fault]:
    for path, reason in case.records.invalid.items():
        advice = "Mend the file; docs/format.md has the format."
        yield Fault("invalid", path, "", reason, advice)
    for record in case.records.all().values():
        for slip in slips(record):
            said = f"{slip.field}: {slip.reason}" if slip.field else slip.reason
            yield case.finding("invalid", record, said, slip.advice)


def _zones(case: CheckScope) -> Iterator[Fault]:
    for problem in zone_problems(case.workspace, case.edition.commit):
        yield Fault("zone", problem.path, "", problem.reason, problem.advice)


def _secrets(case: CheckScope) -> Iterator[Fault]:
    looked_at = {*case.records.paths.values(), *case.records.invalid}
    for path, data in case.edition.read(sorted(looked_at)):
        if may_hold_secret(data) and _holds_secret(path, data):
            for problem in secret_problems(path, data):
                place = f"line {problem.line} " if problem.line else ""
                advice = "Take it out, rotate it, and rewrite the commits that hold it."
                yield Fault("secret", path, "", place + problem.reason, advice)


def _holds_secret(path: str, data: bytes) -> bool:
    try:
        _, document = decode_with_document(original(path), data)
    except InvalidRecord:
        return bool(find_secrets(data.decode(errors="replace")))
    return redact_value(document) is not document


# -- what a person has to look at ----------------------------------------------------------------


def _review_faults(case: CheckScope, spec: str | None) -> Iterator[Fault]:
    """Find changes about which no program can decide.

    Without a span, what is not committed is this machine's own work: only what no honest work
    brings with it counts.
    """
    compared = case.compared
    if compared is None:
        return
    changes = record_changes(compared.old, compared.new)
    found = [*doubts_about_text(changes), *doubts_about_stones(_stones_gone(compared))]
    if spec:
        found += doubts_about_commands(changes)
        found += doubts_about_claims(_new_versions(compared), _commits(case, compared))
        found += doubts_about_files(other_files(case.workspace, compared))
    advice = (
        "Read it (`loki-mem diff` shows all of it); if it is right, `--skip review` lets it pass."
    )
    yield from (Fault("review", doubt.path, doubt.id, doubt.said, advice) for doubt in found)


def _stones_gone(compared: Comparison) -> list[tuple[str, Memory]]:
    gone = (record for record in compared.gone().values() if record.kind == "tombstone")
    return [(compared.old.paths[stone.id], stone) for stone in gone]


def _new_versions(compared: Comparison) -> Iterator[tuple[str, Memory | None, Memory]]:
    before = compared.old.all()
    for name, record in compared.new.all().items():
        if before.get(name) != record:
            yield compared.new.paths[name], before.get(name), record


def _commits(case: CheckScope, compared: Comparison) -> Commits:
    """The authors and days of the commits that were compared, and what the write log knows."""
    repo = repository(case.workspace.layout, case.workspace.config)
    after, before = compared.after.commit or "HEAD", compared.before.commit
    found = repo.commits(f"{before}..{after}" if before else after)
    authors = {commit.author for commit in found}
    if not compared.after.commit:
        authors.add(repo.settings.get("user.name", ""))
    days = [commit.at[:10] for commit in found]
    logged = frozenset(_logged(compared.after))
    return Commits(frozenset(authors), max(days) if compared.after.commit and days else "", logged)


def _logged(tree: MemoryTree) -> Iterator[str]:
    """The paths that the published files of the write log name."""
    for _, data in tree.read(path for path in tree.files if path.startswith("witness/")):
        yield from (name.decode(errors="replace") for name in _LOGGED.findall(data))


# -- beliefs -------------------------------------------------------------------------------------


def _lost(case: CheckScope) -> Iterator[Fault]:
    """Find beliefs that are gone although nothing superseded them."""
    if case.compared is None:
        return
    gone = [record for record in case.compared.gone().values() if record.kind in _BELIEFS]
    replaced = _replaced(case.edition, gone)
    for record in gone:
        if record.id not in replaced:
            said = f"is gone, and nothing supersedes it: {record.title()}"
            advice = "Archive, reject or supersede it instead of deleting its file."
            path = case.compared.old.paths[record.id]
            yield Fault("lost", path, record.id, said, advice)


def _replaced(edition: MemoryTree, gone: Sequence[Memory]) -> set[str]:
    """The ids that another record replaces: a successor, or a tombstone."""
    if not gone:
        return set()
    stands_for = {
        record.id: {_stone(record), *_targets(record, "superseded_by")} for record in gone
    }
    there = edition.find(name for names in stands_for.values() for name in names)
    naming = edition.records(edition.naming(stands_for)).all().values()
    heirs = {name for record in naming for name in _targets(record, "supersedes")}
    return heirs | {name for name, names in stands_for.items() if not names.isdisjoint(there)}


def _stone(record: Memory) -> str:
    """The id of the tombstone for a record's value, whether or not there is one."""
    return tombstone_id(record.value())


def _targets(record: Memory, relation: str) -> set[str]:
    return {edge.target for edge in record.edges() if edge.relation == relation}


def _dangling(case: CheckScope) -> Iterator[Fault]:
    """Find links and evidence that lead nowhere, not even into the archive."""
    naming = list(_naming(case))
    there = case.find(name for record, _ in naming for name in _targets_of(record))
    for record, path in naming:
        for name in sorted(_targets_of(record) - there.keys()):
            said = f"rests on or links to {name}, which is not here"
            advice = f"Bring {name} back, or take it out of the record."
            yield Fault("dangling", path, record.id, said, advice)


def _naming(case: CheckScope) -> Iterator[tuple[Memory, str]]:
    """Yield the checked records, and those that name a record that is gone; with their files."""
    yield from _placed(case.records)
    if case.compared is not None and not case.is_whole:
        gone = case.compared.gone()
        paths = set(case.edition.naming(gone)) - set(case.records.paths.values()) if gone else ()
        yield from _placed(case.edition.records(sorted(paths)))


def _placed(records: Records) -> list[tuple[Memory, str]]:
    return [(record, records.paths[name]) for name, record in records.all().items()]


def _targets_of(record: Memory) -> set[str]:
    """The ids that a record rests on or links to; an episode's recalled memories do not count.

    Neither does an episode that is private to one machine, of which the belief says what it was.
    """
    targets = {edge.target for edge in record.edges() if edge.relation in _RESTS_ON}
    if isinstance(record, Belief):
        targets -= record.evidence.episodes.keys()
    if isinstance(record, Link):
        targets.add(record.from_)
    return targets


def _contradictions(case: CheckScope) -> Iterator[Fault]:
    """Find beliefs that contradict each other and both hold; and merge conflicts that are open."""
    live = [record for record in case.records.live.values() if _is_open(record)]
    pairs = {pair: record for record in live for pair in _pairs(record)}
    ends = case.find(name for pair in pairs for name in pair)
    unsettled = {
        pair: record for pair, record in pairs.items() if all(_holds(ends, n) for n in pair)
    }
    for (first, second), record in unsettled.items():
        said = f"{first} and {second} contradict each other, and both hold"
        yield case.finding("contradiction", record, said, _settle(second))
    in_pairs = {name for pair in unsettled for name in pair}
    for record in live:
        if status(record) == "disputed" and record.id not in in_pairs:
            said = f"is disputed: {record.title()}"
            yield case.finding("contradiction", record, said, _settle(record.id))
        if getattr(record, "conflicts", None):
            said = "was changed in two places; the other version is in its `conflicts`"
            advice = f"Choose, then `loki-mem correct {record.id} conflicts=[]`."
            yield case.finding("contradiction", record, said, advice)


def _settle(memory_id: str) -> str:
    return f"Reject or supersede one of them: `loki-mem reject {memory_id} --why …`."


def _pairs(record: Memory) -> set[tuple[str, str]]:
    source = record.from_ if isinstance(record, Link) else record.id
    return {(min(source, other), max(source, other)) for other in contradicted(record)}


def _is_open(record: Memory) -> bool:
    return status(record) not in DEAD


def _holds(records: Mapping[str, Memory], name: str) -> bool:
    return name in records and _is_open(records[name])


def _citations(case: CheckScope) -> Iterator[Fault]:
    """Find beliefs that cite code which has changed since."""
    beliefs = [
        record
        for record in case.records.live.values()
        if isinstance(record, Belief) and _is_open(record)
    ]
    cited = [(belief, place) for belief in beliefs for place in belief.citations if place.blob]
    stale = _stale(case, [place for _, place in cited])
    for record, place in cited:
        if place in stale:
            said = f"cites {place.path}, which has changed or is gone since"
            advice = "Look whether it still holds, then `loki-mem verify --fix`."
            yield case.finding("citation", record, said, advice)


def _stale(case: CheckScope, places: Sequence[Citation]) -> list[Citation]:
    """The citations whose code differs in this edition."""
    repo = (
        repository_if_any(case.workspace.layout, case.workspace.config)
        if case.edition.commit
        else None
    )
    if repo is None:
        root = case.workspace.layout.root
        return [place for place in places if has_changed(root, place.model_dump())]
    current = _blobs(repo, case.edition.commit, sorted({place.path for place in places}))
    return [place for place in places if current.get(place.path) != place.blob]


def _blobs(repo: Repository, commit: str, paths: Sequence[str]) -> dict[str, str]:
    """The blob ids of project files in a commit, of those that it has."""
    inside = repo.prefix.removesuffix(".loki")
    names = [path for path in paths if _is_plain(path)]
    asked = "".join(f"{commit}:{inside}{name}\n" for name in names)
    form = "--batch-check=%(objectname) %(objecttype)"
    answer = repo.run("cat-file", form, input=asked.encode()).decode(errors="replace").split("\n")
    pairs = zip(names, answer, strict=False)
    return {name: line.split()[0] for name, line in pairs if line.endswith(" blob")}


def _is_plain(path: str) -> bool:
    """Check if a path leads straight down: a record's citation is untrusted data."""
    return "\n" not in path and not {"", ".", ".."} & set(path.split("/"))


# -- working memory --------------------------------------------------------------------------------


def _continuity(workspace: OpenWorkspace, budget: int) -> Iterator[Fault]:
    """Check the size of CONTINUITY.md as it is or, if it was never rendered, as it would be."""
    data = disk.read_bytes(workspace.layout.loki / "CONTINUITY.md")
    text = (
        block_text(workspace, None, "", (), None) if data is None else data.decode(errors="replace")
    )
    if tokens(text) > budget:
        said = f"says about {tokens(text):,} tokens, and {budget:,} is the budget"
        advice = "Shorten its own sections, or lower continuity.budget."
        yield Fault("continuity", "../CONTINUITY.md", "", said, advice)
