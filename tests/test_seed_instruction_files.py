"""Rules that instruction files of agents state."""

from __future__ import annotations

from pathlib import Path

from loki_memory.install.edits import MARKDOWN, with_block
from loki_memory.seed.instruction_files import facts, rules
from loki_memory.seed.project_files import ProjectFiles

TEXT = """\
---
globs: "*.py"
---
# Our shop

This repository holds the shop.

## Style
- **Always** use `Decimal` for prices.
- Prices are shown in euros
- `make all` - Always runs everything
- Never log a card number, because
  logs are kept for a year.

```sh
- Always run this block
```

## Do not
- use floats for prices
- Always trust the client

Run `make lint` before each commit. It is quick.
"""


def test_bullets_and_sentences_that_state_a_rule_are_found() -> None:
    assert rules(TEXT) == [
        "Always use `Decimal` for prices.",
        "Never log a card number, because logs are kept for a year.",
        "Run `make lint` before each commit.",
    ]


def test_our_own_block_and_comments_are_left_out() -> None:
    text = with_block("- Never commit to main.\n", "Always recall first.\n", MARKDOWN, "AGENTS.md")
    assert rules(text + "<!-- Always hide this comment -->\n") == ["Never commit to main."]


def test_a_rule_of_two_files_cites_both(project: Path) -> None:
    for name in ("CLAUDE.md", "AGENTS.md"):
        (project / name).write_text("- Never commit to main.\n")
    (found,) = facts(ProjectFiles(project))
    assert (found.type, found.sources) == ("rule", ("AGENTS.md", "CLAUDE.md"))


def test_rules_of_cursor_and_copilot_are_read(project: Path) -> None:
    for name in (".cursor/rules/style.mdc", ".github/copilot-instructions.md"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"- Always name {name.count('/')} tests after behaviour.\n")
    assert len(facts(ProjectFiles(project))) == 2


def test_marks_that_are_never_closed_cost_nothing() -> None:
    assert rules("<!-- loki-mem:begin -->\n" * 10_000 + "<!--" * 50_000 + "**[" * 50_000) == []
