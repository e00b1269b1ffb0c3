"""One memory: what it says, what it rests on, how it changed, what is linked to it; its edits.

Each edit is the same function of the workspace that the command of that name calls, and says how
it is undone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from loki_memory.errors import FileChanged, InvalidRecord, LokiMemoryError, NotFound
from loki_memory.models import AntiPattern, Episode, Memory
from loki_memory.models.error_signature import Signature, signature
from loki_memory.models.text import shorten
from loki_memory.ui.confidence_curve import ConfidenceCurve, confidence_curve
from loki_memory.ui.page import Visit, as_json, back, page, render, write, wrote
from loki_memory.ui.pages.told import Telling, tellings
from loki_memory.ui.site import derived

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_LONGEST = 20_000  # characters of one text; the file has all of it
_EPISODES = 3  # of a resolution that are looked at for the change that mended it
_STEPS = 30  # commits
_QUOTED = 80  # characters of a title in the words about a change
_NAME = 200  # characters of a name: of an agent, a category, a path
# The fields of each kind that a person may edit, with their labels.
EDITABLE = {
    "pattern": {
        "pattern": "Statement",
        "conditions": "When (one per line)",
        "correct_approach": "Do",
        "incorrect_approach": "Don't",
        "category": "Category",
    },
    "anti-pattern": {
        "what_fails": "What fails",
        "why": "Because",
        "prevention": "Do instead",
        "category": "Category",
    },
    "fact": {"statement": "Statement", "category": "Category"},
}
_INVERSE = {"supersedes": "superseded_by", "superseded_by": "supersedes"}
_PARTS = {
    "conditions": "When",
    "correct_approach": "Do",
    "prevention": "Do",
    "incorrect_approach": "Don't",
    "why": "Because",
}


class BeliefText(NamedTuple):
    """A labelled part of what a memory says."""

    label: str
    lines: list[str]


class BeliefField(NamedTuple):
    """A field that can be edited."""

    name: str
    label: str
    value: str


class MendedError(NamedTuple):
    """The change or the command that mended an error in an episode."""

    episode: str
    hunk: str
    command: str


class ShownResolution(NamedTuple):
    """A remedy of an error, and where it did and did not help."""

    do: str
    worked: int
    failed: int
    mendings: list[MendedError]


class EvidenceLine(NamedTuple):
    """An episode behind a belief."""

    id: str
    speaks: str  # for, against
    goal: str
    outcome: str
    agent: str
    session: str
    at: str
    kept: str  # live, archived, history (only in git), private (another machine), or missing


class HistoryStep(NamedTuple):
    """A commit that changed the memory, in words."""

    commit: str
    at: str
    author: str
    subject: str
    changes: list[str]
    details: list[str]


class NeighbourLine(NamedTuple):
    """A memory or file that is linked with this one."""

    relation: str
    id: str
    kind: str
    title: str
    status: str


class BeliefPage(NamedTuple):
    """The data of the page of one memory."""

    id: str
    kind: str
    title: str
    status: str
    scope: str
    origin: str
    at: str
    confidence: float | None
    type: str
    category: str
    pinned: bool
    stated_by: str
    file: str  # relative to the project
    texts: list[BeliefText]
    resolutions: list[ShownResolution]
    citations: list[str]
    evidence: list[EvidenceLine]
    steps: list[HistoryStep]
    links: list[NeighbourLine]
    dependents: list[NeighbourLine]
    tellings: list[Telling]
    uses: int
    last_used: str
    helpful: int
    unhelpful: int
    curve: ConfidenceCurve | None
    fields: list[BeliefField]
    seen: str  # the hash of what is shown, which an edit repeats
    record: str  # the file's JSON


def belief_page(workspace: Workspace, memory_id: str) -> BeliefPage:
    """Collect everything about a memory."""
    record = _record(workspace, memory_id)
    document = record.document()
    blame = derived(workspace, f"blame {record.id}", lambda: workspace.history.blame(record.id))
    evidence = [_evidence(source) for source in blame.sources]
    uses = workspace.browse.uses(record.id)
    links, dependents = _neighbours(workspace, record.id)
    return BeliefPage(
        **_description(record, document, blame),
        file=_file(workspace, record.id),
        texts=list(_texts(record, document)),
        resolutions=list(_resolutions(workspace, record)),
        citations=[
            shorten(str(cited.get("path", "")), _NAME) for cited in document.get("citations") or ()
        ],
        evidence=evidence,
        steps=[_step(step) for step in blame.steps[:_STEPS]],
        links=links,
        dependents=dependents,
        tellings=tellings(workspace, record.id),
        uses=uses.times,
        last_used=uses.last,
        helpful=uses.helpful,
        unhelpful=uses.unhelpful,
        curve=confidence_curve(
            [(line.at, line.speaks) for line in evidence if line.at], uses.last, workspace.now()
        ),
        fields=list(_fields(record.kind, document)),
        seen=shown_hash(record),
        record=shorten(as_json(document).decode(), _LONGEST),
    )


def _record(workspace: Workspace, name: str) -> Memory:
    """The memory with this id; only the beginning of one has to be looked for in all files."""
    try:
        return workspace.get(name)
    except NotFound:
        return workspace.get(workspace.resolve(name))


def _description(record: Memory, document: dict[str, Any], blame: Any) -> dict[str, Any]:
    """The fields that describe a memory in a line."""
    return {
        "id": record.id,
        "kind": record.kind,
        "title": shorten(record.title(), _LONGEST),
        "status": str(document.get("status") or "active"),
        "scope": str(document.get("scope") or "project"),
        "origin": blame.origin,
        "at": record.when(),
        "confidence": blame.confidence,
        "type": shorten(str(document.get("type") or ""), _NAME),
        "category": shorten(str(document.get("category") or ""), _NAME),
        "pinned": document.get("pinned") is True,
        "stated_by": shorten(blame.stated_by, _NAME),
    }


def shown_hash(record: Memory) -> str:
    """A hash of what a page shows of a record, by which an edit finds that it changed since."""
    return sha256(as_json(record.document())).hexdigest()[:16]


def _file(workspace: Workspace, memory_id: str) -> str:
    path = workspace.browse.where(memory_id)
    root = workspace.layout.root
    return str(path.relative_to(root)) if path.is_relative_to(root) else path.name


def _texts(record: Memory, document: dict[str, Any]) -> Iterator[BeliefText]:
    if isinstance(record, Episode):
        yield from _episode_texts(record)
        return
    for name, label in _PARTS.items():
        given = document.get(name)
        lines = [given] if isinstance(given, str) else [str(line) for line in given or ()]
        if any(lines):
            yield BeliefText(label, [shorten(line, _LONGEST) for line in lines])
    if isinstance(document.get("body"), str):  # a skill
        yield BeliefText("Steps", [shorten(document["body"], _LONGEST)])


def _episode_texts(episode: Episode) -> Iterator[BeliefText]:
    errors = [
        " → ".join(filter(None, (error.message, error.resolution or error.command or "")))
        for error in episode.errors_encountered
    ]
    said = [statement.text for statement in episode.statements]
    parts = (
        ("Summary", [episode.summary or ""]),
        ("Errors", errors),
        ("Said", said),
        ("Changed files", list(episode.files_modified)),
    )
    for label, lines in parts:
        if any(lines):
            yield BeliefText(label, [shorten(line, _LONGEST) for line in lines])


def _resolutions(workspace: Workspace, record: Memory) -> Iterator[ShownResolution]:
    if not isinstance(record, AntiPattern):
        return
    signatures = {signature(text) for text in record.errors()}
    for remedy in record.resolutions:
        mended = [
            mending
            for episode in remedy.for_[:_EPISODES]
            for mending in _mendings(workspace, episode, signatures)
        ]
        yield ShownResolution(
            shorten(remedy.do, _LONGEST), len(remedy.for_), len(remedy.against), mended
        )


def _mendings(
    workspace: Workspace, name: str, signatures: set[Signature | None]
) -> Iterator[MendedError]:
    """The changes and commands of an episode that mended an error of these."""
    with suppress(NotFound):
        episode = workspace.get(name)
        for error in episode.errors_encountered if isinstance(episode, Episode) else ():
            is_same = signature(error.message) in signatures
            if is_same and (error.hunk or error.command):
                hunk, command = error.hunk or "", error.command or ""
                yield MendedError(name, shorten(hunk, _LONGEST), shorten(command, _LONGEST))


def _evidence(source: Any) -> EvidenceLine:
    agent, session = shorten(source.agent, _NAME), shorten(source.session, _NAME)
    goal = shorten(source.goal, 300)
    parts = (source.id, source.speaks, goal, source.outcome, agent, session)
    return EvidenceLine(*parts, source.at, source.kept)


def _step(step: Any) -> HistoryStep:
    shifts = [(line, details) for line, details in step.lines()]
    return HistoryStep(
        step.commit,
        step.at,
        step.agent or step.author,
        step.subject,
        [line for line, _ in shifts],
        [shorten(detail, 600) for _, details in shifts for detail in details],
    )


def _neighbours(
    workspace: Workspace, memory_id: str
) -> tuple[list[NeighbourLine], list[NeighbourLine]]:
    """The links that leave a memory, without its evidence, and those that arrive at it."""
    try:
        graph = workspace.browse.graph(memory_id)
    except LokiMemoryError:
        return [], []
    nodes = {node.id: node for node in graph.nodes}
    out: list[NeighbourLine] = []
    back: list[NeighbourLine] = []
    for edge in graph.edges:
        node = nodes.get(edge.other(memory_id))
        if node is None or memory_id not in {edge.source, edge.target}:
            continue
        title = shorten(node.title, _NAME)
        line = NeighbourLine(edge.relation, node.id, node.kind, title, node.status)
        if edge.target == memory_id:
            back.append(line)
        elif edge.relation not in {"derived_from", "contradicted_by", "cites"}:
            out.append(line)
    known = {(_INVERSE.get(line.relation, line.relation), line.id) for line in out}
    return out, [line for line in back if (line.relation, line.id) not in known]


def _fields(kind: str, document: dict[str, Any]) -> Iterator[BeliefField]:
    for name, label in EDITABLE.get(kind, {}).items():
        given = document.get(name)
        text = "\n".join(map(str, given)) if isinstance(given, list) else str(given or "")
        if len(text) <= _LONGEST:  # a longer one is edited in its file
            yield BeliefField(name, label, text)


def belief(visit: Visit) -> Response:
    return render(visit, "belief.html", belief_page(visit.workspace, visit.parameter("id")))


# -- edits ----------------------------------------------------------------------------------------


def page_of(memory_id: str) -> str:
    return f"/beliefs/{quote(memory_id)}"


def put_back(workspace: Workspace, record: Memory) -> None:
    """Give a memory the content that it had before a change."""
    workspace.care.put_back(record)
    workspace.flush()


def _memory(visit: Visit) -> Memory:
    return visit.workspace.get(visit.workspace.resolve(visit.parameter("id")))


def quoted_title(record: Memory) -> str:
    return f"“{shorten(record.title(), _QUOTED)}”"


def edit(visit: Visit) -> Response:
    """Change the fields that differ from what is stored."""
    record, workspace = _memory(visit), visit.workspace
    if visit.form.get("seen", "") not in {"", shown_hash(record)}:
        raise FileChanged(workspace.browse.where(record.id))
    fields = _edited(record, visit.form)
    if not fields:
        return back(visit, page_of(record.id), visit.site.undo.push("Nothing was changed."))
    workspace.correct(record.id, **fields)
    undo = partial(put_back, workspace, record)
    return wrote(visit, f"Edited {quoted_title(record)}", page_of(record.id), undo)


def _edited(record: Memory, form: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a form that differ from the record, as the record has them."""
    document, found = record.document(), dict[str, Any]()
    for name in EDITABLE.get(record.kind, {}):
        if name not in form:
            continue
        text = form[name].replace("\r\n", "\n").strip()
        is_list = name == "conditions"
        value: Any = (
            [line.strip() for line in text.split("\n") if line.strip()] if is_list else text
        )
        if value != (document.get(name) or ([] if is_list else "")):
            found[name] = value
    return found


def pin(visit: Visit) -> Response:
    record, workspace = _memory(visit), visit.workspace
    pinned = visit.form.get("pinned") == "yes"
    workspace.pin(record.id, pinned)
    undo = partial(workspace.pin, record.id, not pinned)
    word = "Pinned" if pinned else "Unpinned"
    return wrote(visit, f"{word} {quoted_title(record)}", page_of(record.id), undo)


def reject(visit: Visit) -> Response:
    record, workspace = _memory(visit), visit.workspace
    workspace.reject(record.id, visit.form.get("why", "").strip())
    undo = partial(workspace.restore, record.id)
    return wrote(visit, f"Rejected {quoted_title(record)}", page_of(record.id), undo)


def supersede(visit: Visit) -> Response:
    """Let another belief stand in its place: an id, or a statement in words."""
    record, workspace = _memory(visit), visit.workspace
    new = visit.form.get("new", "").strip()
    if not new:
        raise InvalidRecord("nothing takes its place", advice="Give an id, or a statement.")
    heir = workspace.supersede(record.id, new)
    undo = partial(put_back, workspace, record)
    return wrote(visit, f"Superseded {quoted_title(record)}", page_of(heir.id), undo)


def archive(visit: Visit) -> Response:
    record, workspace = _memory(visit), visit.workspace
    workspace.archive(record.id)
    undo = partial(workspace.restore, record.id)
    return wrote(visit, f"Archived {quoted_title(record)}", "/beliefs", undo)


routes = [
    *write("/beliefs/{id}/edit", edit),
    *write("/beliefs/{id}/pin", pin),
    *write("/beliefs/{id}/reject", reject),
    *write("/beliefs/{id}/supersede", supersede),
    *write("/beliefs/{id}/archive", archive),
    *page("/beliefs/{id}", belief),
]
shapes: dict[str, Any] = {"belief": BeliefPage}
