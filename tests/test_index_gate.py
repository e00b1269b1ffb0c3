"""The gate: what an agent is told that has not asked. One test for each rule of `index.gate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from loki_memory import Workspace
from loki_memory.injection.at_error import lesson
from loki_memory.injection.before_prompt import reminder

GOAL = "deploy the payment service"
ERROR = "fatal: the payment service has no rule to make target 'deploy'"
REMEDY = "Name the deploy target in the Makefile"
EPISODES = ["ep-2026-01-01-aaaaaaaaaa", "ep-2026-01-02-bbbbbbbbbb"]
MENDED = [{"do": REMEDY, "for": EPISODES[:1], "against": []}]
PRODUCED = {"key": {"head": "make", "template": "fatal: <*>", "param": ""}}

BELIEFS: dict[str, dict[str, Any]] = {
    "patterns/sem-0000000001": {
        "pattern": "Tag the payment service before the deploy",
        "correct_approach": "Use git tag",
        "source_episodes": EPISODES,
    },
    "anti-patterns/anti-0000000001": {"what_fails": ERROR, "resolutions": MENDED},
    "facts/fact-0000000001": {"statement": "The payment service is deployed on Fridays"},
}


def write(ws: Workspace, place: str, **fields: Any) -> None:
    path = Path(ws.layout.memory, f"{place}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps({"id": path.stem, "origin": "agent", **fields}))
    ws.sync()


def brief(ws: Workspace) -> str:
    """CONTINUITY.md, and what a session is told when it begins: for a goal, and without one."""
    ws.continuity(GOAL)
    file = (ws.layout.loki / "CONTINUITY.md").read_text("utf-8")
    return file + ws.browse.continuity_block(GOAL) + ws.browse.continuity_block("")


def prompt(ws: Workspace) -> str:
    return reminder(ws, GOAL, "session", "hook:UserPromptSubmit")


def at_error(ws: Workspace) -> str:
    return lesson(ws, ERROR, "Bash", "make deploy", "session", "hook:PostToolUseFailure")


UNASKED = pytest.mark.parametrize("surface", [brief, prompt])
EVERY = pytest.mark.parametrize("place", BELIEFS)
Surface = Callable[[Workspace], str]


@UNASKED
@EVERY
@pytest.mark.parametrize("made", [PRODUCED, {}], ids=["consolidated", "written"])
def test_a_candidate_is_not_told_unasked(
    ws: Workspace, surface: Surface, place: str, made: dict[str, Any]
) -> None:
    write(ws, f"semantic/{place}", **BELIEFS[place], **made, status="candidate")
    assert Path(place).name not in surface(ws)


@UNASKED
@EVERY
def test_what_evidence_made_active_is_told(ws: Workspace, surface: Surface, place: str) -> None:
    write(ws, f"semantic/{place}", **BELIEFS[place], **PRODUCED, status="active")
    assert Path(place).name in surface(ws)


@UNASKED
@EVERY
def test_what_somebody_put_into_words_is_told(ws: Workspace, surface: Surface, place: str) -> None:
    write(ws, f"semantic/{place}", **BELIEFS[place])
    ws.consolidate()
    assert Path(place).name in surface(ws)


@UNASKED
@pytest.mark.parametrize("kind", ["fact", "pattern", "anti-pattern", "learning"])
def test_what_was_remembered_is_told(ws: Workspace, surface: Surface, kind: Any) -> None:
    said = ws.remember("The payment service is deployed with make ship", kind=kind)
    ws.consolidate()
    assert said.id in surface(ws)


@UNASKED
def test_a_candidate_that_its_owner_accepted_is_told(project: Path, surface: Surface) -> None:
    from loki_memory.history.review import accept

    with Workspace.init(project, origin="owner") as ws:
        place = "anti-patterns/anti-0000000001"
        write(ws, f"semantic/{place}", **BELIEFS[place], **PRODUCED, status="candidate")
        assert "anti-0000000001" not in surface(ws)
        accept(ws, "anti-0000000001")
        assert "anti-0000000001" in surface(ws)


@UNASKED
def test_a_candidate_that_an_agent_accepted_is_still_one(ws: Workspace, surface: Surface) -> None:
    from loki_memory.history.review import accept

    place = "anti-patterns/anti-0000000001"
    write(ws, f"semantic/{place}", **BELIEFS[place], **PRODUCED, status="candidate")
    accept(ws, "anti-0000000001")
    assert "anti-0000000001" not in surface(ws)


@UNASKED
def test_what_one_session_taught_is_not_told_in_any_form(ws: Workspace, surface: Surface) -> None:
    error = {"type": "make deploy", "message": ERROR, "resolution": REMEDY}
    ws.record({"goal": "Ship it", "outcome": "success", "errors_encountered": [error]})
    told = [line for line in surface(ws).splitlines() if "no rule to make" in line]
    assert all(line.startswith("- [ep-") for line in told), "only the episode itself says it"


@UNASKED
def test_a_topic_that_quotes_candidates_is_not_told(ws: Workspace, surface: Surface) -> None:
    statement = "Deploy: the payment service has no rule; and 3 more"
    write(ws, "semantic/facts/fact-topic", statement=statement, key={"topic": "deploy"}, depth=0)
    assert "fact-topic" not in surface(ws)


@UNASKED
@pytest.mark.parametrize("status", ["candidate", "active"])
def test_a_skill_is_told_once_it_is_more_than_a_candidate(
    ws: Workspace, surface: Surface, status: str
) -> None:
    folder = ws.layout.memory / "skills"
    folder.mkdir(exist_ok=True)
    front = (
        f"name: ship\ndescription: Deploy the payment service\nmetadata:\n  loki-status: {status}"
    )
    (folder / "ship.md").write_text(f"---\n{front}\n---\n\n1. make ship\n", "utf-8")
    ws.sync()
    assert ("skill: ship" in surface(ws)) is (status == "active")


@UNASKED
def test_candidates_take_no_room_from_what_is_told(ws: Workspace, surface: Surface) -> None:
    for number in range(60):
        text = f"Deploy the payment service in region {number}"
        place = f"semantic/patterns/sem-{number:010}"
        write(ws, place, pattern=text, correct_approach="x", **PRODUCED, status="candidate")
    said = ws.remember("Ask the payments team before a deploy of their service")
    assert said.id in surface(ws)


@UNASKED
@pytest.mark.parametrize("origin", ["import", "external"])
@EVERY
def test_what_comes_from_outside_is_not_told(
    ws: Workspace, surface: Surface, place: str, origin: str
) -> None:
    write(ws, f"semantic/{place}", **{**BELIEFS[place], "origin": origin}, status="active")
    assert Path(place).name not in surface(ws)


# -- at an error ---------------------------------------------------------------------------------


def test_a_candidate_that_mended_this_very_error_is_told_at_it(ws: Workspace) -> None:
    place = "anti-patterns/anti-0000000001"
    write(ws, f"semantic/{place}", **BELIEFS[place], **PRODUCED, status="candidate")
    assert REMEDY in at_error(ws)
    assert "(not confirmed" in at_error(ws)


@pytest.mark.parametrize(
    "fields",
    [
        {"what_fails": ERROR, "resolutions": []},
        {"what_fails": ERROR, "prevention": REMEDY},
        {"what_fails": ERROR, "resolutions": [{**MENDED[0], "for": [], "against": EPISODES}]},
        {"what_fails": "fatal: no such remote", "resolutions": MENDED},
        {"what_fails": ERROR, "resolutions": MENDED, "origin": "external"},
    ],
    ids=["no remedy", "advice that nobody tried", "it did not help", "other error", "external"],
)
def test_other_candidates_are_not_told_at_an_error(ws: Workspace, fields: dict[str, Any]) -> None:
    write(ws, "semantic/anti-patterns/anti-0000000001", **fields, **PRODUCED, status="candidate")
    assert at_error(ws) == ""


def test_advice_that_somebody_put_into_words_is_told_at_its_error(ws: Workspace) -> None:
    place = "semantic/anti-patterns/anti-0000000001"
    write(ws, place, what_fails=ERROR, prevention=REMEDY)
    assert REMEDY in at_error(ws)


# -- who asks ------------------------------------------------------------------------------------


@EVERY
def test_who_asks_is_shown_candidates_as_such(ws: Workspace, place: str) -> None:
    write(ws, f"semantic/{place}", **BELIEFS[place], **PRODUCED, status="candidate")
    name = Path(place).name
    assert (name, "candidate") in [(hit.id, hit.status) for hit in ws.recall(GOAL)]
    shown = [line for line in ws.context(GOAL).text("detailed").splitlines() if name in line]
    assert len(shown) == 1
    assert "(not confirmed" in shown[0]


# -- ledgers and handoffs ------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["import", "external"])
def test_a_ledger_from_outside_is_not_told(ws: Workspace, origin: str) -> None:
    from loki_memory.errors import NoLedger

    ledger = {"agent_id": "qa-001", "current_task": "Push to the mirror", "origin": origin}
    write(ws, "ledgers/ledger-qa-001", **ledger)
    told = brief(ws) + ws.browse.continuity_block(agent="qa-001")
    assert "mirror" not in told
    with pytest.raises(NoLedger):
        ws.team.resume_brief("qa-001")
    assert "mirror" not in ws.team.draft_handoff("qa-001", "eng-001", "It").model_dump_json()


@pytest.mark.parametrize("origin", ["import", "external"])
def test_a_ledger_from_outside_is_not_told_for_what_was_added(ws: Workspace, origin: str) -> None:
    ledger = {"agent_id": "qa-001", "current_task": "Push to the mirror", "origin": origin}
    write(ws, "ledgers/ledger-qa-001", **ledger)
    ws.team.note_checkpoint("qa-001", tasks_completed=3, blocked_by="the review")
    assert "the review" in brief(ws), "what waits on this machine is this machine's"
    assert "mirror" not in brief(ws)
    ws.team.take_over_checkpoints()
    assert "mirror" not in brief(ws)


@pytest.mark.parametrize("origin", ["import", "external"])
def test_a_handoff_from_outside_is_not_told(ws: Workspace, origin: str) -> None:
    handoff = ws.team.hand_off("eng-001", "qa-001", "Rewrote the payment parser")
    assert "payment parser" in brief(ws)
    assert "payment parser" in ws.team.resume_brief("qa-001").text()
    [path] = ws.layout.memory.glob("handoffs/*.json")
    document = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps({**document, "origin": origin}))
    ws.sync()
    assert "payment parser" not in brief(ws)
    assert handoff.id not in ws.browse.continuity_block(agent="qa-001")


def test_who_asks_is_shown_every_ledger(ws: Workspace) -> None:
    from loki_memory.team.ledgers import ledgers

    write(ws, "ledgers/ledger-qa-001", agent_id="qa-001", current_task="t", origin="external")
    assert [one.agent_id for one in ledgers(ws)] == ["qa-001"]


@UNASKED
def test_an_episode_that_was_made_from_a_transcript_is_not_told(
    ws: Workspace, surface: Surface
) -> None:
    """Its goal is a prompt, word for word."""
    ws.record({"goal": "yes, deploy the payment service", "captured": True})
    (episode,) = ws.list(kind="episode")
    assert episode.id not in surface(ws)
