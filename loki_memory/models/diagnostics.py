"""Findings of linters and compilers in a command's output: where, which rule, what it says.

The rule is the class of such an error: a project meets `errcheck` in many files with many messages,
and one lesson serves them all.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_MOST = 40  # findings of one output
_LONGEST = 230  # characters of a finding in one line: the line of an error is cut at 240
_SHORT = 60  # characters of its message that are kept beside the longest path
_PLACE = r"(?P<path>(?:[A-Za-z]:)?[\w@./\\+-]+\.\w+)"
_NAMED = r"[a-z][\w-]*|[A-Z]{1,4}\d{2,5}"
_FORMS = tuple(
    re.compile(form, re.MULTILINE)
    for form in (
        # golangci-lint, pylint: `cmd/clean.go:12:5: Error return value is not checked (errcheck)`,
        # and what `Diagnostic.text` makes of a finding with a code
        rf"^\s*{_PLACE}:(?P<line>\d+)(?::\d+)?:\s+(?P<message>.*?\S)\s+\((?P<rule>{_NAMED})\)\s*$",
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
    r"^\s*(?P<line>\d+):\d+\s+(?:error|warning)\s+(?P<message>.*?\S)(?:\s{2,}|\s+(?=[\w@-]+[/-]))"
    r"(?P<rule>@?[a-z][\w@/-]*)\s*$",
    re.MULTILINE,
)
_FILE = re.compile(r"^(\S*[/\\.]\S+)\s*$", re.MULTILINE)
# A finding of which the place was taken off: `Error return value is not checked (errcheck)`.
_BARE = re.compile(r"^\S.*\S \(([a-z][a-z0-9]+(?:-[a-z0-9]+)*|[A-Z]{1,4}\d{2,5})\)$")
# Its code, which says more than the linter's name: `G304: Potential file inclusion (gosec)`.
_CODE = re.compile(r"^(?:error )?(TS\d{4,5}|[A-Z]{1,3}\d{3,4}):? ")
# Its check, where one linter has many: `ifElseChain: rewrite if-else to switch (gocritic)`.
_CHECK = re.compile(r"^([a-z]+(?:-[a-z0-9]+)+|[a-z]+[A-Z]\w*): ")
# Words in parentheses that are no rule; `typecheck` is what golangci-lint calls a compile error.
_NO_RULE = frozenset(
    re.findall(
        r"\w+",
        "error warning note info fatal cached default running signal deprecated optional required "
        "typecheck compile failed fail",
    )
)


class Diagnostic(NamedTuple):
    """One complaint of a linter or compiler."""

    rule: str
    message: str
    path: str = ""
    line: int = 0

    @property
    def kind(self) -> str:
        """The class of the finding: a code or check that its message begins with, else the rule."""
        named = _CODE.match(self.message) or _CHECK.match(self.message)
        return named[1] if named else self.rule

    def text(self) -> str:
        """The finding as golangci-lint writes it, so that its class can be read again."""
        place, named = f"{self.path}:{self.line}: ", f" ({self.rule})"
        room = max(_SHORT, _LONGEST - len(place) - len(named))
        message = self.message if len(self.message) <= room else f"{self.message[:room]}…"
        return f"{place}{message}{named}"


def findings(output: str) -> list[Diagnostic]:
    """Findings of all known tools in the order of the output; each line is one at most."""
    found: dict[int, Diagnostic] = {}
    for form in _FORMS:
        for match in form.finditer(output):
            found.setdefault(output.count("\n", 0, match.start("rule")), _finding(match))
    for at, finding in _of_eslint(output):
        found.setdefault(at, finding)
    ranked = [found[at] for at in sorted(found)]
    return [finding for finding in ranked if finding.rule not in _NO_RULE][:_MOST]


def rule(line: str) -> str:
    """The rule that a single line of output names; empty if it is no finding."""
    found = findings(line)
    if found:
        return found[0].kind
    coded, bare = _CODE.match(line), _BARE.search(line)
    if coded or not bare:
        return coded[1] if coded else ""
    return "" if bare[1] in _NO_RULE else Diagnostic(bare[1], line).kind


def _finding(match: re.Match[str]) -> Diagnostic:
    groups = match.groupdict()
    line = groups.get("line") or groups.get("other") or "0"
    return Diagnostic(groups["rule"], groups["message"], groups.get("path") or "", int(line))


def _of_eslint(output: str) -> list[tuple[int, Diagnostic]]:
    found = []
    for match in _ESLINT.finditer(output):
        files = _FILE.findall(output, 0, match.start())
        path = files[-1] if files else ""
        finding = Diagnostic(match["rule"], match["message"], path, int(match["line"]))
        found.append((output.count("\n", 0, match.start("rule")), finding))
    return found
