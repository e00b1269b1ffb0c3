"""A Problem: bad data as a value beside the good data, so that it never hides the rest."""

from __future__ import annotations

from typing import NamedTuple

from loki_memory.errors import InvalidRecord
from loki_memory.files.redaction import find_secrets, redact


class Problem(NamedTuple):
    """A file that could not be read as memory, or needs a person: where, why, what to do."""

    path: str
    reason: str
    field: str = ""
    line: int = 0
    advice: str = ""

    @classmethod
    def of(cls, error: InvalidRecord) -> Problem:
        return cls(error.path, redact(error.reason), redact(error.field), error.line, error.advice)

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        where = ": ".join(filter(None, (place, self.field)))
        return " ".join(filter(None, (f"{where}: {self.reason.rstrip('.')}.", self.advice)))


def secret_problems(path: str, data: bytes) -> list[Problem]:
    """One problem for each line of a hand-written file that holds a secret."""
    text = data.decode(errors="replace")
    lines: dict[int, str] = {}
    for secret in find_secrets(text):
        lines.setdefault(text.count("\n", 0, secret.start) + 1, secret.kind)
    return [
        Problem(
            path,
            f"holds a secret ({kind})",
            line=line,
            advice="Take it out of the file and rotate it; the index holds it redacted.",
        )
        for line, kind in (lines or {0: "in an escaped text"}).items()
    ]


def misplaced(path: str) -> Problem:
    """The problem of a JSON file that is not where records are."""
    if path.startswith("skills/"):
        advice = f"`loki-mem skills --add .loki/memory/{path}` makes a Markdown file of it."
    else:
        advice = (
            "Facts belong in semantic/facts/, patterns in semantic/patterns/, anti-patterns in "
            "semantic/anti-patterns/, episodes in episodic/<day>/."
        )
    return Problem(path, "is in no folder of records, and nothing reads it", advice=advice)


def same_id(path: str, memory_id: str, holder: str, shown: str) -> Problem:
    """The problem of two files with one id."""
    if not shown:
        return Problem(
            path, f"is the same memory as {holder} ({memory_id})", advice="Delete one of the two."
        )
    return Problem(
        path,
        f"has the id {memory_id}, which {holder} has too; it is shown as {shown}",
        field="id",
        advice="`loki-mem doctor --fix` writes that id into it.",
    )


def both_changed(path: str, elsewhere: str) -> Problem:
    """The problem of two writers that changed one record: the file's version stays."""
    return Problem(
        path,
        f"was changed in its file and in {elsewhere}",
        field="conflicts",
        advice="The file's version stays; correct it as needed, then `loki-mem correct ID "
        "conflicts=[]`.",
    )


def other_kind(view: str, memory_id: str, path: str) -> Problem:
    """The problem of a view's entry with the id of a record of another kind."""
    return Problem(
        view,
        f"has an entry {memory_id}, which is the id of {path}",
        field="id",
        advice="Give the entry another id, or leave it out and one is made.",
    )


def not_ours(view: str, memory_id: str) -> Problem:
    """The problem of an entry that git brought, and that would change a record."""
    return Problem(
        view,
        f"came with git, and its entry {memory_id} differs from the record, which stays",
        field=memory_id,
        advice=f"If the entry is right, `loki-mem correct {memory_id} FIELD=VALUE`; views are "
        "rendered, so take the file out of git with `git rm --cached`.",
    )
