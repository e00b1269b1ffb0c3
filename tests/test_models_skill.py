"""Skills: the agentskills format in both directions, and nothing that somebody wrote is lost."""

from __future__ import annotations

import re

import pytest
import yaml

from loki_memory import Skill, Workspace
from loki_memory.errors import InvalidRecord
from loki_memory.files import codec
from loki_memory.models import parse

PATH = "skills/api-implementation.md"
REFERENCE = """\
# Skill: API Endpoint Implementation

## Prerequisites
- OpenAPI spec exists at .loki/specs/openapi.yaml
- Database schema defined

## Steps
1. Read endpoint spec from openapi.yaml
2. Create route handler in src/routes/{resource}.ts
3. Implement request validation using spec schema
4. Implement business logic
5. Add database operations if needed
6. Return response matching spec schema
7. Write contract tests
8. Run tests, verify passing

## Common Errors & Fixes
- Missing return type: Add `: void` to handler
- Schema mismatch: Regenerate types from spec

## Exit Criteria
- All contract tests pass
- Response matches OpenAPI spec
- No TypeScript errors
"""


def read(text: str, path: str = PATH) -> Skill:
    record = codec.decode(path, text.encode())
    assert isinstance(record, Skill)
    return record


def front(skill: Skill) -> dict[str, object]:
    """The front matter as other tools read it: with YAML's own types."""
    written = codec.encode(skill).decode()
    found = re.match(r"\A---\n(.*?)\n---\n\n", written, re.DOTALL)
    assert found
    loaded: dict[str, object] = yaml.safe_load(found[1])
    return loaded


# -- the skill of Loki Mode's documents ---------------------------------------------------------


def test_loki_modes_skill_is_read_with_all_its_sections() -> None:
    skill = read(REFERENCE)
    assert skill.name == "api-implementation"
    assert skill.id == "skill-api-implementation"
    assert skill.title() == "API Endpoint Implementation"
    assert skill.prerequisites[1] == "Database schema defined"
    assert len(skill.steps) == 8
    assert skill.steps[1] == "Create route handler in src/routes/{resource}.ts"
    assert skill.common_errors[0] == ("Missing return type", "Add `: void` to handler")
    assert skill.exit_criteria == [
        "All contract tests pass",
        "Response matches OpenAPI spec",
        "No TypeScript errors",
    ]


def test_loki_modes_skill_keeps_its_body() -> None:
    assert read(REFERENCE).body == REFERENCE
    assert read(codec.encode(read(REFERENCE)).decode()).body == REFERENCE


def test_a_skill_folder_gives_its_name() -> None:
    assert read("# Deploy\n", "skills/deploy-it/SKILL.md").name == "deploy-it"


def test_windows_line_ends_and_a_byte_order_mark_make_no_other_skill() -> None:
    plain = read("---\nname: x\ndescription: D\n---\n\n" + REFERENCE)
    other = "\ufeff---\nname: x\ndescription: D\n---\n\n" + REFERENCE
    assert read(other.replace("\n", "\r\n")) == plain


# -- what we write is a valid SKILL.md -----------------------------------------------------------


def test_what_we_write_follows_the_agentskills_rules() -> None:
    skill = Skill.from_sections(
        "run-tests",
        "Run the tests. Use when code changed.",
        steps=["pytest -q"],
        metadata={"loki-evidence": "ep-1, ep-2"},
    )
    assert front(skill) == {
        "name": "run-tests",
        "description": "Run the tests. Use when code changed.",
        "metadata": {"loki-evidence": "ep-1, ep-2"},
    }


@pytest.mark.parametrize(
    "text", [REFERENCE, "# Deploy\n", "Just text.\n", "# Skill: " + "long " * 300, "一二三\n"]
)
def test_a_skill_that_is_added_has_a_name_and_a_description(ws: Workspace, text: str) -> None:
    skill = ws.skills.add(text if text.isascii() else "---\nname: counting\n---\n" + text)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", skill.name)
    assert len(skill.name) <= 64
    assert 1 <= len(skill.description) <= 1024


@pytest.mark.parametrize("name", ["a", "a-b", "x9", "a" * 64])
def test_names_that_agentskills_allows_are_allowed(name: str) -> None:
    assert parse(Skill, {"name": name}).name == name


@pytest.mark.parametrize(
    "name",
    ["", "-a", "a-", "a--b", "A", "a b", "a_b", "a.b", "a/b", "../a", "é", "a" * 65, "a\n", "ａ"],  # noqa: RUF001
)
def test_names_that_agentskills_forbids_are_refused(name: str) -> None:
    with pytest.raises(InvalidRecord, match="skill name"):
        parse(Skill, {"name": name})


def test_a_description_may_have_1024_characters_and_no_more() -> None:
    assert parse(Skill, {"name": "a", "description": "x" * 1024})
    with pytest.raises(InvalidRecord, match="description"):
        parse(Skill, {"name": "a", "description": "x" * 1025})


def test_a_compatibility_may_have_500_characters_and_no_more() -> None:
    assert parse(Skill, {"name": "a", "compatibility": "x" * 500})
    with pytest.raises(InvalidRecord, match="compatibility"):
        parse(Skill, {"name": "a", "compatibility": "x" * 501})


@pytest.mark.parametrize("value", ["no", "012", "2026-01-06", "1.10", "null", "~", "yes: no", "#x"])
def test_text_that_yaml_would_take_for_something_else_is_written_as_text(value: str) -> None:
    given = {"name": "a", "description": value, "metadata": {"loki-x": value}, "body": "# A\n"}
    skill = parse(Skill, given)
    assert front(skill)["description"] == value
    assert front(skill)["metadata"] == {"loki-x": value}
    assert codec.decode("skills/a.md", codec.encode(skill)) == skill


# -- what others write is kept -------------------------------------------------------------------


def test_unknown_front_matter_survives() -> None:
    text = """\
---
name: deploy
description: Deploy it.
allowed-tools: Bash(git:*) Read
license: MIT
paths: ["src/**", docs]
context: fork
hooks:
  before:
    - run: make
---

# Deploy
"""
    document = read(codec.encode(read(text)).decode()).document()
    assert document["allowed-tools"] == "Bash(git:*) Read"
    assert document["license"] == "MIT"
    assert document["paths"] == ["src/**", "docs"]
    assert document["context"] == "fork"
    assert document["hooks"] == {"before": [{"run": "make"}]}


def test_scalars_stay_the_text_that_they_are() -> None:
    text = "---\nname: a\nversion: 1.10\nenabled: no\nsince: 2026-01-06\nmode: 012\nnone: ~\n---\n"
    document = read(text + "# A\n").document()
    assert [document[n] for n in ("version", "enabled", "since", "mode", "none")] == [
        "1.10",
        "no",
        "2026-01-06",
        "012",
        "~",
    ]


def test_unknown_sections_stay_in_the_body() -> None:
    body = "# Deploy\n\nSome words.\n\n## Rollback\n\n- undo\n\n## Steps\n\n1. do\n"
    skill = read(body)
    assert skill.body == body
    assert skill.steps == ["do"]
    assert skill.section("rollback") == "- undo"


def test_headings_in_code_are_no_headings() -> None:
    body = """\
# Deploy

```sh
# Steps
## Steps
1. not this
```

## Steps
1. this:
   ```sh
   # a comment
   make deploy
   ```
2. that
~~~
## Exit Criteria
- not this either
~~~

## Exit Criteria
- deployed
"""
    skill = read(body)
    assert skill.title() == "Deploy"
    assert skill.steps[0].startswith("this:")
    assert "# a comment" in skill.steps[0]
    assert skill.steps[1].startswith("that")
    assert skill.exit_criteria == ["deployed"]


def test_a_list_of_ids_in_metadata_is_written_with_commas() -> None:
    skill = read("---\nname: a\nmetadata:\n  loki-evidence: [ep-1, ep-2]\n---\n# A\n")
    assert skill.metadata == {"loki-evidence": "ep-1, ep-2"}
    assert [edge.target for edge in skill.edges()] == ["ep-1", "ep-2"]


def test_a_line_of_dashes_inside_the_body_ends_nothing() -> None:
    body = "# A\n\nbefore\n\n---\n\nafter\n"
    assert read("---\nname: a\n---\n" + body).body == body
    assert read(body).body == body


def test_code_at_the_very_start_of_the_body_keeps_its_indent() -> None:
    body = "    make deploy\n\n# Deploy\n"
    text = "---\nname: a\n---\n\n" + body
    assert read(codec.encode(read(text)).decode()).body == body


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matter", "reason"),
    [
        ("a: &x 1\nb: *x", "alias or anchor"),
        ("a: &x [1]", "alias or anchor"),
        ("a: !!python/object:os.system x", "tag"),
        ("a: !secret x", "tag"),
        ("a: !!binary aGk=", "tag"),
        ("a: [1", "not valid YAML"),
        ("a: b: c", "not valid YAML"),
        ("\ta: b", "not valid YAML"),
        ("- a\n- b", "key: value"),
        ("just words", "key: value"),
        ('description: "\\ud800"', "(?i)unicode"),
        ('description: "\\U00110000"', "not valid YAML"),
        ("name: a\nname: b", "twice"),
        ("body: the body has a place of its own", "body"),
        ("x: " + "[" * 100 + "]" * 100, "nested"),
        ("x:\n " + "- " * 100 + "x", "nested"),
        ("x:\n " + "- " * 300 + "x", "nested"),
        ("".join(f"key{n}: {'x' * 1000}\n" for n in range(100)), "bytes"),
    ],
    ids=lambda text: text[:20],
)
def test_dangerous_or_broken_front_matter_is_refused_in_words(matter: str, reason: str) -> None:
    with pytest.raises(InvalidRecord, match=reason) as refused:
        read(f"---\n{matter}\n---\n# A\n")
    assert refused.value.path == PATH
    assert refused.value.advice


def test_the_line_of_broken_front_matter_is_named() -> None:
    with pytest.raises(InvalidRecord) as refused:
        read("---\nname: a\nx: *y\n---\n# A\n")
    assert refused.value.line == 3


@pytest.mark.parametrize("data", [b"", b"  \n", b"\xff\xfe", b"# A\0", b"<<<<<<< ours\n# A\n"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRecord):
        codec.decode(PATH, data)


@pytest.mark.parametrize("body", ["x" * (1 << 20), "a\0b"], ids=["too large", "NUL"])
def test_a_skill_that_could_not_be_read_again_is_not_written(ws: Workspace, body: str) -> None:
    with pytest.raises(InvalidRecord):
        ws.skills.add(parse(Skill, {"name": "big", "description": "D", "body": body}))
    assert list((ws.layout.memory / "skills").iterdir()) == []


def test_a_skill_with_half_a_character_is_refused_in_words(ws: Workspace) -> None:
    with pytest.raises(InvalidRecord):
        ws.skills.add("# A\n\ud800\n")


def test_a_bad_skill_hides_no_good_one(ws: Workspace) -> None:
    skills = ws.layout.memory / "skills"
    (skills / "good.md").write_text("# Good\n", encoding="utf-8")
    (skills / "bad.md").write_text('---\nname: "\\U00110000"\n---\n# Bad\n', encoding="utf-8")
    assert [skill.id for skill in ws.list(kind="skill")] == ["skill-good"]
    assert [problem.path for problem in ws.care.problems()] == ["skills/bad.md"]
