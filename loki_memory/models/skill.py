"""Skills: how to do something, as Markdown that any agent can follow.

A skill is a SKILL.md of the agentskills format: front matter with `name` and `description`, then
a body. The body is kept as it was written; its sections are parsed, never rebuilt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from loki_memory.models.base import Edge, Memory, Passage, Text
from loki_memory.models.ids import slug
from loki_memory.models.kinds import Kind

PREREQUISITES, STEPS = "Prerequisites", "Steps"
COMMON_ERRORS, EXIT_CRITERIA = "Common Errors & Fixes", "Exit Criteria"

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^(?:[-*+]|\d+[.)])\s+(.*)$")


def _skill_name(value: str) -> str:
    """The agentskills rule: 1-64 of a-z, 0-9 and single hyphens inside."""
    if value != slug(value, 64) or not value:
        raise ValueError("is not a skill name: small letters, digits and single hyphens, up to 64")
    return value


def _body(text: str) -> str:
    """Normalise a body: LF, no empty lines around it, one newline at its end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n").rstrip() + "\n"


def _texts(value: Any) -> Any:
    """Turn values into text, as front matter needs: a list of ids is joined with commas."""
    if not isinstance(value, dict):
        return value
    return {k: ", ".join(map(str, v)) if isinstance(v, list) else v for k, v in value.items()}


class CommonError(NamedTuple):
    """An error on the way, and its fix."""

    error: str
    fix: str


class Skill(Memory):
    """A procedure for a task, in steps."""

    kind: ClassVar[Kind] = "skill"
    prefix: ClassVar[str] = "skill"
    keeps_id: ClassVar[bool] = False

    name: Annotated[Text, AfterValidator(_skill_name)]
    description: Text = Field("", max_length=1024)
    license: Text | None = None
    compatibility: Text | None = Field(None, max_length=500)
    allowed_tools: Text | None = Field(None, alias="allowed-tools")
    metadata: Annotated[dict[str, Text], BeforeValidator(_texts)] = Field(default_factory=dict)
    body: Annotated[Text, AfterValidator(_body)] = ""

    @classmethod
    def from_sections(
        cls,
        name: str,
        description: str,
        *,
        title: str = "",
        prerequisites: Iterable[str] = (),
        steps: Iterable[str] = (),
        common_errors: Iterable[tuple[str, str]] = (),
        exit_criteria: Iterable[str] = (),
        metadata: dict[str, str] | None = None,
    ) -> Skill:
        """Build a skill with the sections of Loki Mode's format.

        >>> Skill.from_sections("run-tests", "Run the tests.", steps=["pytest -q"]).steps
        ['pytest -q']
        """
        sections = {
            PREREQUISITES: [f"- {line}" for line in prerequisites],
            STEPS: [f"{n}. {line}" for n, line in enumerate(steps, 1)],
            COMMON_ERRORS: [f"- {error}: {fix}" for error, fix in common_errors],
            EXIT_CRITERIA: [f"- {line}" for line in exit_criteria],
        }
        parts = [f"# Skill: {title or name.replace('-', ' ').capitalize()}"]
        parts += [f"## {head}\n" + "\n".join(lines) for head, lines in sections.items() if lines]
        extra = {"metadata": metadata} if metadata else {}
        body = "\n\n".join(parts) + "\n"
        return cls(name=name, description=description, body=body, **extra)

    @property
    def prerequisites(self) -> list[str]:
        return list(self._items(PREREQUISITES))

    @property
    def steps(self) -> list[str]:
        return list(self._items(STEPS))

    @property
    def common_errors(self) -> list[CommonError]:
        pairs = (item.partition(": ") for item in self._items(COMMON_ERRORS))
        return [CommonError(error, fix) for error, _, fix in pairs]

    @property
    def exit_criteria(self) -> list[str]:
        return list(self._items(EXIT_CRITERIA))

    def _items(self, heading: str) -> Iterator[str]:
        """The list items of a section; indented and lazy lines belong to the item above."""
        item: list[str] = []
        for line in self.section(heading).splitlines():
            start = _ITEM.match(line)
            if start or not line.strip():
                if item:
                    yield "\n".join(item)
                item = [start[1]] if start else []
            elif item:
                item.append(line.strip())
        if item:
            yield "\n".join(item)

    def section(self, heading: str) -> str:
        """The text below a heading, down to the next one of the same or a higher level."""
        wanted, found, depth = heading.casefold(), [], 0
        for line, level, head in headings(self.body):
            if depth and level and level <= depth:
                break
            if depth:
                found.append(line)
            elif head.casefold() == wanted:
                depth = level
        return "\n".join(found).strip("\n")

    def key(self) -> tuple[str, ...]:
        return (self.name,)

    def mint(self) -> str:
        return self.name

    def title(self) -> str:
        heads = (head for _, level, head in headings(self.body) if level == 1)
        first = next(heads, "")
        return first.removeprefix("Skill:").strip() or self.description or self.name

    def value(self) -> str:
        return self.name

    def passage(self) -> Passage:
        return Passage(f"{self.title()}: {self.description}".strip(": "), self.body, "")

    def edges(self) -> Iterator[Edge]:
        """Edges to the episodes in `metadata.loki-evidence`, which a learned skill came from."""
        episodes = self.metadata.get("loki-evidence", "").replace(",", " ").split()
        yield from (Edge(episode, "derived_from") for episode in episodes)

    def when(self) -> str:
        return self.metadata.get("loki-date", "")


def headings(body: str) -> Iterator[tuple[str, int, str]]:
    """Each line with its heading level (0 for none) and heading text; code blocks have none."""
    fenced = False
    for line in body.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        match = None if fenced else _HEADING.match(line)
        yield (line, len(match[1]), match[2]) if match else (line, 0, "")
