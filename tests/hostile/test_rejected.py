"""A value that a person rejected does not come back: in no spelling, and at no other place."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from loki_memory import Workspace
from loki_memory.errors import RejectedValue
from loki_memory.injection.at_error import lesson
from loki_memory.models import AntiPattern, Fact, Learning, Memory, Pattern, Skill, parse
from loki_memory.models.rejected import rejected_form

VALUE = "Deploy with ansible on Fridays"
SPELLINGS = {
    "same": VALUE,
    "capitals": VALUE.upper(),
    "small": VALUE.lower(),
    "stop": f"{VALUE}.",
    "exclamation": f"{VALUE}!!!",
    "double quotes": f'"{VALUE}"',
    "single quotes": f"'{VALUE}'",
    "curly quotes": f"\u201c{VALUE}\u201d",
    "guillemets": f"\u00ab{VALUE}\u00bb",
    "bullet": f"- {VALUE}",
    "star": f"* {VALUE}",
    "dot": f"\u2022 {VALUE}",
    "number": f"{VALUE})",
    "bold": f"**{VALUE}**",
    "italic": f"_{VALUE}_",
    "code": f"`{VALUE}`",
    "struck": f"~~{VALUE}~~",
    "heading": f"## {VALUE}",
    "quotation": f"> {VALUE}",
    "link": f"[{VALUE}]()",
    "inner code": "Deploy with `ansible` on Fridays",
    "inner bold": "Deploy with **ansible** on Fridays",
    "commas": "Deploy, with ansible, on Fridays",
    "dashes": "Deploy-with-ansible-on-Fridays",
    "slashes": "Deploy/with/ansible/on/Fridays",
    "spaces": "Deploy   with ansible  on Fridays",
    "inserted spaces": "De ploy with an sible on Fri days",
    "no spaces": "DeploywithansibleonFridays",
    "tabs": "Deploy\twith\tansible on Fridays",
    "lines": "Deploy with\nansible on\nFridays",
    "zero width": "De\u200bploy with ansi\u200dble on Fridays",
    "soft hyphen": "De\u00adploy with ansible on Fridays",
    "filler": "Deploy\u3164with ansible on\u3164Fridays",
    "half-width filler": "Deploy\uffa0with ansible on Fridays",
    "Braille blank": "Deploy\u2800with ansible on\u2800Fridays",
    "no-break": "Deploy\u00a0with\u202fansible on Fridays",
    "full width": "".join(chr(ord(c) + 0xFEE0) if c.isalpha() else c for c in VALUE),
    "mathematical": unicodedata.normalize("NFC", "\U0001d403eploy with ansible on Fridays"),
    "Cyrillic": "Depl\u043ey with \u0430nsible on Fridays",
    "Greek": "Depl\u03bfy with ansible on Fridays",
    "direction": f"\u202e{VALUE}\u202c",
    "variation": "Deploy\ufe0f with ansible on Fridays",
}
JOINED = {
    "after a semicolon": f"Run the tests; {VALUE}",
    "before a semicolon": f"{VALUE}; run the tests",
    "arrow": f"The release waits -> {VALUE}",
    "long arrow": f"The release waits \u2192 {VALUE}",
    "sentence": f"The release waits. {VALUE}.",
    "label": f"Decision: {VALUE}",
    "list": f"Rules\n- {VALUE}\n- run the tests",
    "bullets": f"Rules \u2022 {VALUE} \u2022 run the tests",
    "cell": f"when | {VALUE} | done",
}
EP = "ep-2026-01-01-aaaaaaaaaa"


def _resolved(text: str) -> Memory:
    remedies = [{"do": text, "for": [EP], "against": []}]
    return parse(AntiPattern, {"what_fails": "The release hangs", "resolutions": remedies})


PLACES = {
    "fact": lambda text: parse(Fact, {"statement": text}),
    "pattern": lambda text: parse(Pattern, {"pattern": text}),
    "approach": lambda text: parse(Pattern, {"pattern": "Release", "correct_approach": text}),
    "condition": lambda text: parse(Pattern, {"pattern": "Release", "conditions": [text]}),
    "anti-pattern": lambda text: parse(AntiPattern, {"what_fails": text}),
    "prevention": lambda text: parse(AntiPattern, {"what_fails": "It hangs", "prevention": text}),
    "resolution": _resolved,
    "learning": lambda text: parse(Learning, {"lesson": text, "timestamp": "2026-01-01"}),
    "skill": lambda text: parse(Skill, {"name": "release", "description": text}),
}


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("rejected")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOKI_HOME", str(folder / "home"))
        with Workspace.init(folder / "project") as workspace:
            fact = workspace.remember(VALUE)
            workspace.reject(fact.id, "nobody deploys on Fridays")
            yield workspace


def _is_refused(ws: Workspace, text: str, kind: str) -> bool:
    try:
        ws.remember(text, kind)
    except RejectedValue:
        return True
    return False


def test_a_rejected_value_is_refused_in_every_spelling(ws: Workspace) -> None:
    asked = itertools.product(SPELLINGS.values(), ("fact", "pattern"))
    assert [(text, kind) for text, kind in asked if not _is_refused(ws, text, kind)] == []


def test_a_rejected_value_is_refused_as_a_part(ws: Workspace) -> None:
    assert [text for text in JOINED.values() if not _is_refused(ws, text, "pattern")] == []


@pytest.mark.parametrize("place", PLACES)
def test_a_rejected_value_is_refused_in_every_field(ws: Workspace, place: str) -> None:
    with pytest.raises(RejectedValue):
        ws.store.write(PLACES[place](f"**{VALUE}**"))


@pytest.mark.parametrize(
    "text",
    [
        "Deploy with ansible on Mondays",
        "Never deploy with ansible on Fridays",
        "Deploy with ansible on Fridays, unless it is a holiday",
        "Deploy with ansible",
    ],
)
def test_another_value_is_stored(ws: Workspace, text: str) -> None:
    assert ws.remember(text).title() == text


@pytest.mark.parametrize(
    ("text", "other"),
    [("Use C++", "Use C"), ("Use C#", "Use C"), ("Python >= 3", "Python <= 3"), ("by -1", "by 1")],
)
def test_signs_that_matter_make_another_value(text: str, other: str) -> None:
    assert rejected_form(text) != rejected_form(other)


def test_a_file_that_a_merge_brings_does_not_speak(project_ws: Workspace) -> None:
    for number, text in enumerate(["- **Deploy** with ansible on Fridays!", *JOINED.values()]):
        for kind in ("patterns/sem", "anti-patterns/anti"):
            _bring(project_ws, f"semantic/{kind}-m{number}", pattern=text, what_fails=text)
    assert "Fridays" not in project_ws.browse.continuity_block("deploy with ansible")
    for form in ("compact", "detailed", "system", "preamble"):
        assert "Fridays" not in project_ws.context("deploy with ansible").text(form)


def test_a_context_leaves_a_rejected_remedy_out_and_tells_the_rest(project_ws: Workspace) -> None:
    remedies = [{"do": VALUE, "for": [EP], "against": []}]
    fields = {"what_fails": "The deploy with ansible hangs", "prevention": f"{VALUE}."}
    _bring(project_ws, "semantic/anti-patterns/anti-m", **fields, resolutions=remedies)
    said = project_ws.context("deploy with ansible").text("detailed")
    assert "The deploy with ansible hangs" in said
    assert "Fridays" not in said


def _bring(ws: Workspace, name: str, **fields: Any) -> None:
    """A record that a merge brings: nobody asked the store."""
    path = ws.layout.memory / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"id": path.stem, "status": "active", "origin": "agent", **fields}
    path.write_bytes(orjson.dumps(record))
    ws.sync()


def test_a_rejected_remedy_is_not_told_again(project_ws: Workspace) -> None:
    error = {"type": "make release", "message": "error: the release hangs", "resolution": VALUE}
    for number in range(3):
        goal = f"Release the shop, part {number}"
        project_ws.record(
            {
                "goal": goal,
                "outcome": "success",
                "session": f"s{number}",
                "timestamp": f"2026-01-0{number + 1}T09:00:00Z",
                "errors_encountered": [error],
            }
        )
    project_ws.consolidate()
    message = error["message"]
    said = lesson(project_ws, message, "Bash", "make release", "s", "hook:PostToolUseFailure")
    assert "ansible" not in said
    assert "ansible" not in project_ws.browse.continuity_block("release the shop")


@pytest.fixture
def project_ws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.init(tmp_path_factory.mktemp("merged")) as workspace:
        fact = workspace.remember(VALUE)
        workspace.reject(fact.id, "nobody deploys on Fridays")
        yield workspace
