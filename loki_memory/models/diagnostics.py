"""Findings of linters and compilers in a command's output: where, which rule, what it says.

The rule is the class of such an error: a project meets `errcheck` in many files with many messages,
and one lesson serves them all.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_MOST = 40  # findings of one output
_PLACE = r"(?P<path>(?:[A-Za-z]:)?[\w@./\\+-]+\.\w+)"
_FORMS = tuple(
    re.compile(form, re.MULTILINE)
    for form in (
        # golangci-lint, pylint: `cmd/clean.go:12:5: Error return value is not checked (errcheck)`
        rf"^\s*{_PLACE}:(?P<line>\d+)(?::\d+)?:\s+(?P<message>.*?\S)\s+\((?P<rule>[a-z][\w-]*)\)\s*$",
        # ruff, flake8, pycodestyle: `src/a.py:3:80: E501 Line too long`
        rf"^\s*{_PLACE}:(?P<line>\d+):\d+:\s+(?P<rule>[A-Z]{{1,4}}\d{{2,5}})(?::|\b)\s*(?:\[\*\]\s*)?(?P<message>\S.*)$",
        # mypy: `src/a.py:3: error: Incompatible return value  [return-value]`
        rf"^\s*{_PLACE}:(?P<line>\d+)(?::\d+)?:\s+error:\s+(?P<message>.*?\S)\s+\[(?P<rule>[a-z][a-z-]+)\]\s*$",
        # tsc: `src/a.ts(3,5): error TS7030: Not all code paths return a value.`
        rf"^\s*{_PLACE}(?:\((?P<line>\d+),\d+\)|:(?P<other>\d+):\d+)\s*[:-]\s+error\s+(?P<rule>TS\d+):\s+(?P<message>\S.*)$",
        # rustc: `error[E0382]: borrow of moved value`
        r"^error\[(?P<rule>E\d{4})\]:\s+(?P<message>\S.*)(?:\n\s*-->\s+(?P<path>[^\s:]+):(?P<line>\d+))?",
        # shellcheck, gcc format: `run.sh:3:5: warning: Double quote this. [SC2086]`
        rf"^\s*{_PLACE}:(?P<line>\d+):\d+:\s+\w+:\s+(?P<message>.*?\S)\s+\[(?P<rule>SC\d+)\]\s*$",
    )
)
# eslint names the file once, above: `  3:5  error  'a' is never used  no-unused-vars`
_ESLINT = re.compile(
    r"^\s+(?P<line>\d+):\d+\s+(?:error|warning)\s+(?P<message>.*?\S)\s{2,}"
    r"(?P<rule>@?[a-z][\w@/-]*)\s*$",
    re.MULTILINE,
)
_FILE = re.compile(r"^(\S*[/\\.]\S+)\s*$", re.MULTILINE)
_NO_RULE = frozenset({"error", "warning", "note", "info", "fatal", "cached"})


class Finding(NamedTuple):
    """One complaint of a linter or compiler."""

    rule: str
    message: str
    path: str = ""
    line: int = 0

    def text(self) -> str:
        """The finding as golangci-lint writes it, so that its class can be read again."""
        return f"{self.path}:{self.line}: {self.message} ({self.rule})"


def findings(output: str) -> list[Finding]:
    """Findings of all known tools; each pair of rule and message once."""
    found: dict[tuple[str, str], Finding] = {}
    for form in _FORMS:
        for match in form.finditer(output):
            finding = _finding(match)
            found.setdefault((finding.rule, finding.message), finding)
    for finding in _of_eslint(output):
        found.setdefault((finding.rule, finding.message), finding)
    return [finding for finding in found.values() if finding.rule not in _NO_RULE][:_MOST]


def rule(line: str) -> str:
    """The rule that a single line of output names; empty if it is no finding."""
    found = findings(line)
    return found[0].rule if found else ""


def _finding(match: re.Match[str]) -> Finding:
    groups = match.groupdict()
    line = groups.get("line") or groups.get("other") or "0"
    return Finding(groups["rule"], groups["message"], groups.get("path") or "", int(line))


def _of_eslint(output: str) -> list[Finding]:
    found = []
    for match in _ESLINT.finditer(output):
        files = _FILE.findall(output, 0, match.start())
        path = files[-1] if files else ""
        found.append(Finding(match["rule"], match["message"], path, int(match["line"])))
    return found
