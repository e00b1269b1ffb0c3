"""Findings of linters: the class of each, and its text in one line."""

from __future__ import annotations

from loki_memory.models.diagnostics import Diagnostic, findings, rule
from loki_memory.models.error_signature import complaint


def test_a_long_finding_keeps_its_rule_in_the_line_of_an_error() -> None:
    listed = ", ".join(f"session.Action{number}" for number in range(40))
    finding = Diagnostic("exhaustive", f"missing cases in switch: {listed}", "cmd/state.go", 12)
    assert rule(complaint(finding.text())) == "exhaustive"


def test_checks_of_one_linter_are_classes_of_their_own() -> None:
    output = (
        "a.go:3:2: G304: Potential file inclusion via variable (gosec)\n"
        "a.go:4:2: G204: Subprocess launched with variable (gosec)\n"
        "a.go:5:2: ifElseChain: rewrite if-else to switch statement (gocritic)\n"
        "a.go:6:2: require-error: for error assertions use require (testifylint)\n"
        "a.go:7:2: Error return value is not checked (errcheck)\n"
    )
    kinds = [finding.kind for finding in findings(output)]
    assert kinds == ["G304", "G204", "ifElseChain", "require-error", "errcheck"]
    lines = [complaint(line) for line in output.splitlines()]
    assert [rule(line) for line in lines] == kinds
