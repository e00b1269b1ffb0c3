"""What an agent noted under its own headings, in the many ways in which agents write."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki_memory.continuity.block import Now, place, render
from loki_memory.continuity.harvest import LONGEST, Noted, harvest
from loki_memory.injection.line import BulletLine


def notes(body: str, heading: str = "## Mistakes & Learnings") -> list[str]:
    return [note.text for note in harvest(f"# Session\n\n{heading}\n{body}".encode())]


def test_learnings_and_facts_are_taken_with_the_section_they_stand_in() -> None:
    text = b"""\
# Session

## Current State
- Working on the export of invoices

## Mistakes & Learnings
- Restart the worker after a migration

## Key Decisions This Week
- Money is stored in cents, never as a float

## Next Up
- Write the release notes
"""
    assert harvest(text) == [
        Noted("Mistakes & Learnings", "Restart the worker after a migration", "learning"),
        Noted("Key Decisions This Week", "Money is stored in cents, never as a float", "fact"),
    ]


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("# Mistakes & Learnings", "learning"),
        ("###### mistakes and learnings ######", "learning"),
        ("## 4. Mistakes", "learning"),
        ("## 🧠 **Lessons Learned**", "learning"),
        ("## Lessons learnt: sprint 3", "learning"),
        ("## Key Learnings (newest first)", "learning"),
        ("## Learnings / Mistakes", "learning"),
        ("Lessons\n=======", "learning"),
        ("Learnings\n---", "learning"),
        ("**Mistakes & Learnings:**", "learning"),
        ("## Key Decisions", "fact"),
        ("## Decisions Made", "fact"),
        ("## 2) ✅ Decisions", "fact"),
        ("## Architecture Decisions", "fact"),
        ("## Decision Log", "fact"),
        ("**Key Decisions**", "fact"),
    ],
)
def test_a_heading_is_known_in_all_its_dresses(heading: str, kind: str) -> None:
    found = harvest(f"intro\n\n{heading}\n- Pin the compiler version\n".encode())
    assert [(note.kind, note.text) for note in found] == [(kind, "Pin the compiler version")]


@pytest.mark.parametrize(
    "heading",
    [
        "## Mistakes to Avoid (From Learnings)",
        "## Relevant Memories (Auto-Retrieved)",
        "## Learning Rate Schedule",
        "## Decision Tree Model",
        "## Pending Decisions",
        "## Decisions Needed",
        "## Lesson-Plan Import",
        "## Errors",
        "Mistakes & Learnings",
        "    ## Mistakes & Learnings",
    ],
)
def test_other_headings_are_not_harvested(heading: str) -> None:
    assert harvest(f"intro\n\n{heading}\n- Pin the compiler version\n".encode()) == []


def test_a_section_ends_at_the_next_heading_of_its_level() -> None:
    body = "- Pin the compiler\n### Iteration 2\n- Read the log first\n## Next\n- Deploy to staging"
    assert notes(body) == ["Pin the compiler", "Read the log first"]


def test_bullets_of_all_kinds_are_notes() -> None:
    body = """\
- Restart the worker
* Read the whole trace
+ Pin the compiler
1. Count before deleting
2) Ask before renaming
- [x] Write the test first
• Look at the exit code
"""
    assert notes(body) == [
        "Restart the worker",
        "Read the whole trace",
        "Pin the compiler",
        "Count before deleting",
        "Ask before renaming",
        "Write the test first",
        "Look at the exit code",
    ]


def test_what_is_indented_below_a_bullet_belongs_to_it() -> None:
    body = """\
- Two bugs in the parser:
  1. it drops the last line
  2. it reads CRLF as two lines
- The cache key
  must hold the version.

  Otherwise old entries come back.
- [ ] Third note here
"""
    assert notes(body) == [
        "Two bugs in the parser: it drops the last line; it reads CRLF as two lines",
        "The cache key must hold the version. Otherwise old entries come back.",
        "Third note here",
    ]


def test_the_parts_of_one_mistake_are_one_note() -> None:
    body = """\
### Broken deploy
- **What went wrong:** a dirty tree
- **Root cause**: no git status
- Prevention: tags

### Slow tests
What happened: every test opened a browser.

**Fix:** share one browser.

- **Mistake:** deleted the lock file
- **Lesson:** read before deleting
- **Mistake:** pushed to main
- **Lesson:** protect the branch
"""
    assert notes(body) == [
        "Broken deploy: What went wrong: a dirty tree; Root cause: no git status; Prevention: tags",
        "Slow tests: What happened: every test opened a browser. Fix: share one browser.",
        "Mistake: deleted the lock file; Lesson: read before deleting",
        "Mistake: pushed to main; Lesson: protect the branch",
    ]


def test_a_fix_belongs_to_the_mistake_above_it() -> None:
    body = "- The port was taken\n- Fix: let the system choose one\n- Another thing learned"
    assert notes(body) == [
        "The port was taken; Fix: let the system choose one",
        "Another thing learned",
    ]


def test_a_paragraph_is_a_note_and_a_lead_in_is_not() -> None:
    body = """\
The linter and the formatter
disagree about quotes.

What this week taught:
- Run both before committing

**Second week:**
- Tokens expire at midnight

### Use SQLite
It needs no server.
"""
    assert notes(body) == [
        "The linter and the formatter disagree about quotes.",
        "Run both before committing",
        "Tokens expire at midnight",
        "Use SQLite: It needs no server.",
    ]


def test_a_sentence_in_bold_is_a_note() -> None:
    assert notes("**Never edit generated files.**\n\n**Always pin versions**\n") == [
        "Never edit generated files.",
        "Always pin versions",
    ]


def test_rows_of_a_decision_table_are_notes_without_its_head() -> None:
    body = """\
| Decision | Why |
|----------|:---:|
| Use SQLite | one file, no server |
| Use a \\| as separator | |
| TBD | |
"""
    assert notes(body, "## Key Decisions") == [
        "Use SQLite | one file, no server",
        "Use a | as separator",
    ]


def test_code_and_comments_are_quoted_and_not_said() -> None:
    body = """\
<!-- Write what went wrong here
- like this one example -->
- Quote the path:
  ```sh
  - rm -rf "$DIR"
  ```
  spaces are common
~~~
## Key Decisions
- not a decision at all
~~~
- After the fence comes a note
"""
    assert notes(body) == ["Quote the path: spaces are common", "After the fence comes a note"]


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    assert notes("```\n- Close what you open\n") == ["Close what you open"]


@pytest.mark.parametrize(
    "placeholder",
    [
        "None",
        "- None yet",
        "(none yet)",
        "- (None yet, this is day one)",
        "_No mistakes recorded so far._",
        "**Fresh start, no mistakes yet**",
        "- None this week",
        "- N/A",
        "TBD",
        "- [Fill in]",
        "- [Decision]: [Rationale]",
        "- {lesson}",
        "-",
        "---",
        "- short one",
        "- ~~Always use tabs everywhere~~",
        "**Please** update this section whenever a build breaks.",
        "(No errors logged yet: we only began)",
    ],
)
def test_placeholders_are_not_notes(placeholder: str) -> None:
    assert notes(f"{placeholder}\n\n- A note that is one\n") == ["A note that is one"]


@pytest.mark.parametrize(
    "note",
    [
        "None of the handlers checks the token",
        "Nothing in the build is cached",
        "No tables for refunds: use the ledger",
        "[Deploy]: from tags only",
        "Use Array<string> here",
    ],
)
def test_notes_that_look_like_placeholders_are_notes(note: str) -> None:
    assert notes(f"- {note}\n") == [note]


def test_layout_makes_no_difference_to_the_text() -> None:
    one = "- **Use** `__init__` and `a*b*c`,   not *magic*\n"
    other = "1. Use `__init__` and `a*b*c`, not\n   _magic_\n"
    assert notes(one) == notes(other) == ["Use `__init__` and `a*b*c`, not magic"]
    assert notes(one) == notes(one.replace("\n", "\r\n")) == notes(one.replace("\n", "\r"))


def test_globs_and_powers_are_not_emphasis() -> None:
    for note in (
        "look in src/**/*.ts and lib/**",
        "it grows like 2**n and n**3",
        "it matches **/*.md",
    ):
        assert notes(f"- {note}\n") == [note]


def test_a_very_long_note_is_cut_at_a_sentence() -> None:
    (note,) = notes("- " + "This is one sentence. " * 200)
    assert LONGEST - 30 < len(note) <= LONGEST
    assert note.endswith("one sentence.")


def test_a_note_that_is_not_utf8_is_skipped_and_its_neighbours_are_not() -> None:
    text = b"## Lessons\n- caf\xe9 is written in Latin-1\n- this one is written in ASCII\n"
    assert [note.text for note in harvest(text)] == ["this one is written in ASCII"]


def test_our_own_block_is_never_harvested() -> None:
    line = BulletLine("anti-001", "anti-pattern", "Do not ship on Friday")
    block = render(Now("## Key Decisions", [line], [line]), 1000)
    own = b"## Mistakes & Learnings\n- Restart the worker\n"
    found = harvest(place(own, block))
    assert [note.text for note in found] == ["Restart the worker"]
    damaged = place(own, block).replace(b"<!-- loki-memory:end -->\n", b"")
    assert harvest(damaged) == found


def test_a_new_file_has_nothing_to_harvest() -> None:
    assert harvest(place(None, render(Now("", [], []), 1000))) == []
    assert harvest(b"") == []


def test_a_file_with_a_byte_order_mark_and_a_heading_on_its_first_line_is_read() -> None:
    assert len(harvest(b"\xef\xbb\xbf## Lessons\n- Restart the worker\n")) == 1


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_any_bytes_can_be_read(text: bytes) -> None:
    for note in harvest(b"## Decisions\n" + text):
        assert note.text == " ".join(note.text.split())
        assert 12 <= len(note.text.encode()) <= 4 * LONGEST


@pytest.mark.parametrize("line", ["```x", "~~~~", "<!--", "- a", "**a", "|a|", "word", "*", "_a "])
def test_a_quarter_megabyte_of_one_thing_is_read_in_one_go(line: str) -> None:
    text = "## Lessons\n" + f"{line}\n" * (250_000 // len(line)) + "\n- The last note of all\n"
    assert harvest(text.encode())[-1].text == "The last note of all"
