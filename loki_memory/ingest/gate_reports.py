"""Reports of gates: what tests, linters and reviews found, in the formats that they write.

JUnit XML (pytest, jest, gradle, and Go by way of a converter), the JSON of ESLint and of ruff,
SARIF, and a small form of our own:

    {"gate": "review", "outcome": "failure", "goal": "Add search",
     "failures": [{"file": "src/a.ts", "line": 3, "rule": "no-any", "message": "any hides errors"}]}

A report is data that anybody may have written: XML that declares a document type is refused, since
entities in one can name files and grow without bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import InvalidRecord

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_KNOWN = (
    "JUnit XML, the JSON of ESLint or ruff, SARIF, "
    'or {"gate": …, "outcome": …, "failures": [{"message": …}]} can be read.'
)
_ESLINT_ERROR = 2  # a warning (1) does not fail the gate
_SARIF_SILENT = {"none", "note"}
_BROKEN = {"failure", "error"}  # what JUnit puts into a test that did not pass


class GateFailure(NamedTuple):
    """One thing that a gate found."""

    name: str  # of the test or the rule
    message: str
    file: str = ""
    line: int = 0


class Verdict(NamedTuple):
    """The verdict of a gate."""

    gate: str  # empty if the report does not name it
    outcome: str  # success, failure, partial or unknown
    failures: list[GateFailure]
    goal: str = ""
    at: str = ""  # when it ran; empty if the report does not say
    seconds: float | None = None
    run: str = ""  # the run's own name


def verdict_in(data: bytes) -> Verdict:
    """Return what a report says; raises InvalidRecord."""
    text = data.removeprefix(b"\xef\xbb\xbf").strip()
    if not text:
        raise InvalidRecord("is empty", advice=_KNOWN)
    if text.startswith(b"<"):
        return _junit(_xml(text))
    from loki_memory.files.codec import read_json

    found = read_json(data, max(len(data), 1))
    if isinstance(found, list):
        return _linted(found)
    if isinstance(found, dict) and isinstance(found.get("runs"), list):
        return _sarif(found["runs"])
    if isinstance(found, dict) and ("gate" in found or "outcome" in found):
        return _own(found)
    raise InvalidRecord("is no report of a gate that is known", advice=_KNOWN)


# -- our own -------------------------------------------------------------------------------------


def _own(report: Mapping[str, Any]) -> Verdict:
    listed = report.get("failures")
    if not isinstance(listed, list | None):
        raise InvalidRecord("must be a list", field="failures", advice=_KNOWN)
    failures = [_own_failure(value) for value in listed or ()]
    outcome = _text(report, "outcome", "verdict") or ("failure" if failures else "success")
    names = ("gate", "goal", "timestamp", "run_id")
    gate, goal, at, run = (_text(report, name) for name in names)
    return Verdict(gate, outcome, failures, goal, at, None, run)


def _own_failure(value: Any) -> GateFailure:
    value = {"message": value} if isinstance(value, str) else value
    name = _text(value, "test", "rule")
    message = _text(value, "message") or name
    if not message:
        raise InvalidRecord("is empty", field="failures.message", advice=_KNOWN)
    return GateFailure(name, message, _text(value, "file"), _number(value, "line"))


# -- JUnit ---------------------------------------------------------------------------------------


def _xml(data: bytes) -> Element:
    from xml.etree import ElementTree as ET

    class _Plain(ET.TreeBuilder):
        def doctype(self, *_: str | None) -> None:
            raise InvalidRecord("declares a document type", advice="Write the report without one.")

    parser = ET.XMLParser(target=_Plain())  # noqa: S314 - see `doctype`: no entities
    try:
        parser.feed(data)
        root = parser.close()
    except (ET.ParseError, ValueError, LookupError) as error:
        raise InvalidRecord(f"is not valid XML ({error})", advice=_KNOWN) from None
    if root.tag not in {"testsuites", "testsuite"}:
        raise InvalidRecord(f"is XML of {root.tag!r} and no JUnit report", advice=_KNOWN)
    return root


def _junit(root: Element) -> Verdict:
    suites = list(root.iter("testsuite"))
    failures = [failure for case in root.iter("testcase") for failure in _case(case)]
    # What broke before a test ran (a fixture of the whole suite) stands in the suite itself.
    failures += [failure for suite in suites for failure in _case(suite)]
    times = sorted(filter(None, (suite.get("timestamp", "") for suite in suites)))
    seconds = sum(_seconds(suite) for suite in suites if suite.find("testsuite") is None)
    outcome, at = "failure" if failures else "success", times[0] if times else ""
    return Verdict(_runner(root, suites), outcome, failures, "", at, round(seconds, 3) or None)


def _runner(root: Element, suites: Sequence[Element]) -> str:
    """`pytest` of `pytest tests`; a suite that is all there is may be named after its runner."""
    only = suites[0].get("name", "") if len(suites) == 1 else ""
    return (root.get("name") or only).removesuffix(" tests")


def _case(case: Element) -> Iterator[GateFailure]:
    parts = (case.get("classname", ""), case.get("name", ""))
    name = "::".join(filter(None, parts))
    for broken in case:
        if broken.tag in _BROKEN:
            said = _said(broken.get("message", ""), broken.text or "") or broken.get("type")
            line = case.get("line", "")
            yield GateFailure(name, said or broken.tag, case.get("file", ""), _whole(line))


def _said(message: str, body: str) -> str:
    """Return what a broken test says: its message, and the body unless that holds the message."""
    message, body = message.strip(), body.strip()
    return body if message in body else "\n".join(filter(None, (message, body)))


def _seconds(suite: Element) -> float:
    try:
        return float(suite.get("time", "0").replace(",", ""))
    except ValueError:
        return 0.0


# -- linters -------------------------------------------------------------------------------------


def _linted(report: list[Any]) -> Verdict:
    """ESLint lists files with their messages, ruff lists messages with their files."""
    objects = _objects(report)
    if len(objects) < len(report):
        raise InvalidRecord("lists something else than findings", advice=_KNOWN)
    if all("filePath" in finding for finding in objects):
        gate = "eslint" if objects else ""
        failures = [found for finding in objects for found in _eslint(finding)]
    elif all("filename" in finding and "message" in finding for finding in objects):
        gate, failures = "ruff", [_ruff(finding) for finding in objects]
    else:
        raise InvalidRecord("is no list of findings that is known", advice=_KNOWN)
    return Verdict(gate, "failure" if failures else "success", failures)


def _eslint(file: Mapping[str, Any]) -> Iterator[GateFailure]:
    for finding in _objects(file.get("messages")):
        if finding.get("severity") == _ESLINT_ERROR or finding.get("fatal"):
            rule = _text(finding, "ruleId")
            yield GateFailure(
                rule, _ruled(rule, finding), _text(file, "filePath"), _number(finding, "line")
            )


def _ruff(finding: Mapping[str, Any]) -> GateFailure:
    code = _text(finding, "code")
    line = _number(finding.get("location"), "row")
    return GateFailure(code, _ruled(code, finding), _text(finding, "filename"), line)


def _ruled(rule: str, finding: Mapping[str, Any]) -> str:
    return " ".join(filter(None, (rule, _text(finding, "message"))))


# -- SARIF ---------------------------------------------------------------------------------------


def _sarif(runs: list[Any]) -> Verdict:
    """Errors fail the gate; findings that are only warnings make it partial."""
    found = [(run, result) for run in runs for result in _results(run)]
    levels = {_level(run, result) for run, result in found}
    tools = dict.fromkeys(_text(_inside(run, "tool", "driver"), "name").lower() for run in runs)
    outcome = "failure" if "error" in levels else "partial" if found else "success"
    return Verdict(
        " ".join(filter(None, tools)), outcome, [_sarif_failure(result) for _, result in found]
    )


def _results(run: Any) -> Iterator[Mapping[str, Any]]:
    for finding in _objects(_inside(run).get("results")):
        is_finding = finding.get("kind", "fail") == "fail" and not finding.get("suppressions")
        if is_finding and _level(run, finding) not in _SARIF_SILENT:
            yield finding


def _level(run: Any, result: Mapping[str, Any]) -> str:
    """The result's own level, else that of its rule, else a warning, as the standard has it."""
    own = _text(result, "level")
    rules = _objects(_inside(run, "tool", "driver").get("rules"))
    named = (rule for rule in rules if rule.get("id") == result.get("ruleId"))
    usual = _inside(next(named, {}), "defaultConfiguration")
    return own or _text(usual, "level") or "warning"


def _sarif_failure(result: Mapping[str, Any]) -> GateFailure:
    rule = _text(result, "ruleId")
    places = _objects(result.get("locations"))
    place = _inside(places[0] if places else {}, "physicalLocation")
    file = _text(_inside(place, "artifactLocation"), "uri").removeprefix("file://")
    message = {"message": _text(_inside(result, "message"), "text")}
    return GateFailure(
        rule, _ruled(rule, message), file, _number(_inside(place, "region"), "startLine")
    )


# -- values --------------------------------------------------------------------------------------


def _inside(value: Any, *names: str) -> Mapping[str, Any]:
    """The object at the end of some names; an empty one if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return (
        [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []
    )


def _text(value: Any, *names: str) -> str:
    """The first of some fields that has a text."""
    inside = _inside(value)
    found = (inside.get(name) for name in names)
    return next((entry.strip() for entry in found if isinstance(entry, str) and entry.strip()), "")


def _number(value: Any, name: str) -> int:
    found = _inside(value).get(name)
    return found if isinstance(found, int) and found > 0 else 0


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() else 0
