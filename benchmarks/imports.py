"""Imports of real memories of other tools: what goes in is what comes out, counted twice.

    python benchmarks/imports.py --data FOLDER

For each folder of `peer_memories` and each `.loki` folder of `loki_real`: the entries that a plain
counter of this file finds, which shares no code with the importers, beside those that `import`
took, knew and refused; then what a second import adds. Lines of JSON are counted as they are. Of
Markdown the counter takes each outermost bullet, row of a table, paragraph and block of code. It
leaves out what docs/migrating.md does: lines in bold, paragraphs that end with a colon, and
fragments. A bullet such as `Fix: …` that goes on with the bullet above is counted here and has no
record of its own: that is the difference.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "recall"))

from data import add_option, folder

from loki_memory import Workspace

_BULLET = re.compile(r"( *)(?:[-*+]|\d+[.)])\s")
_DELIMITER = re.compile(r"\|?[\s:|-]+\|[\s:|-]*")
_LEAST = 12  # bytes: what is shorter is documented as a heading


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_option(parser)
    data = folder(parser.parse_args())
    print("| memory | system | counted | new | known | refused | difference | notes | again |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, source, path in sources(data):
        print("|", " | ".join([name, source, *map(str, counted(path, source))]), "|", flush=True)


def sources(data: Path) -> Iterator[tuple[str, str, Path]]:
    for project in sorted((data / "peer_memories").iterdir()):
        for mark, source in (
            (".serena", "serena"),
            (".beads", "beads"),
            (".claude", "claude-memory"),
            ("memory.jsonl", "mcp-memory"),
        ):
            if (project / mark).exists():
                yield project.name, source, project
    for project in sorted((data / "loki_real").iterdir()):
        if (project / "final" / ".loki").is_dir():
            yield project.name, "loki", project / "final"


def counted(path: Path, source: str) -> list[int]:
    """The counts of one import: counted here, new, known, refused, the difference; notes; again.

    Notes are those of the agent in CONTINUITY.md, which nothing but our own rules can count.
    """
    with tempfile.TemporaryDirectory() as top, Workspace.init(Path(top)) as ws:
        found = ws.interop.import_memory(source, path)
        again = ws.interop.import_memory(source, path)
    refused = sum(part.entries for part in found.refused)
    here = COUNTERS[source](path)
    notes = sum("imported" in record.document() for record in found.records if source == "loki")
    new = len(found.records) - notes
    difference = here - new - found.known - refused
    return [here, new, found.known, refused, difference, notes, len(again.records)]


# -- a counter of its own ------------------------------------------------------------------------


def _json_lines(path: Path) -> int:
    return sum(1 for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def _beads(path: Path) -> int:
    return sum(_json_lines(file) for file in (path / ".beads").glob("i*.jsonl"))


def _graph(path: Path) -> int:
    """An entry for each relation and each observation; one for an entity without any."""
    lines = (path / "memory.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines if line.strip()]
    return sum(max(1, len(entry.get("observations", []))) for entry in entries)


def _serena(path: Path) -> int:
    return sum(map(_blocks, (path / ".serena" / "memories").rglob("*.md")))


def _claude(path: Path) -> int:
    files = sorted((path / ".claude" / "memory").glob("*.md"))
    described = sum(
        bool(re.search(r"^description: \S", _text(file), re.MULTILINE)) for file in files
    )
    pointers = re.compile(r"^\s*[-*] \[[^\]]*\]\(([^)]+\.md)\)", re.MULTILINE)
    listed = sum(
        (file.parent / name).is_file() for file in files for name in pointers.findall(_text(file))
    )
    return sum(map(_blocks, files)) + described - listed


def _loki(path: Path) -> int:
    """Records by their files and lists; other files of the folder are an entry each, refused."""
    found = 0
    for file in (path / ".loki" / "memory").rglob("*"):
        if file.is_file() and file.suffix in {".json", ".md", ".jsonl"}:
            found += _entries(file)
    return found


def _entries(file: Path) -> int:
    if file.name in {"patterns.json", "anti-patterns.json", "facts.json", "links.json"}:
        value = json.loads(_text(file) or "{}")
        lists = value.values() if isinstance(value, dict) else [value]
        return sum(len(part) for part in lists if isinstance(part, list | dict))
    return 1


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _blocks(file: Path) -> int:
    """The outermost bullets, rows, paragraphs and blocks of code of a Markdown file."""
    text = re.sub(r"\A---\n.*?\n---\n", "", _text(file), flags=re.DOTALL)
    return sum(1 for _ in _each_block(text.splitlines()))


def _is_note(text: str) -> bool:
    """Check that a paragraph is no fragment, no heading in bold, and introduces nothing."""
    is_bold = text.startswith("**") and text.rstrip(":").endswith("**") and text.count("**") == 2
    return len(text.encode()) >= _LEAST and not is_bold and not text.rstrip("*_ ").endswith(":")


def _each_block(lines: list[str]) -> Iterator[str]:  # noqa: C901 - a counter in one piece
    kind, depth, fence, code, paragraph = "", 0, "", 0, ""
    for number, line in enumerate([*lines, ""]):
        bullet, text = _BULLET.match(line), line.strip()
        is_after_gap = number > 0 and not lines[number - 1].strip()
        goes_on = (
            kind == "paragraph" and text and not bullet and not text.startswith(("#", "|", "```"))
        )
        if paragraph and not goes_on:
            yield from [paragraph] if _is_note(paragraph) else []
            paragraph = ""
        if fence:
            code += bool(text) and not text.startswith(fence)
            if text.startswith(fence):
                yield from ["code"] if code else []
                fence = ""
        elif text[:3] in {"```", "~~~"}:
            fence, code = text[:3], 0
            kind = kind if line.startswith(" ") else ""
        elif not text or text.startswith("#") or re.fullmatch(r"[-*_ ]{3,}", text):
            kind = "bullet" if kind == "bullet" and not text else ""
        elif text.startswith("|"):
            following = lines[number + 1].strip() if number + 1 < len(lines) else ""
            if not _DELIMITER.fullmatch(text) and not _DELIMITER.fullmatch(following):
                yield text
            kind = ""
        elif bullet and not (kind == "bullet" and len(bullet[1]) > depth):
            kind, depth = "bullet", len(bullet[1])
            if len(_BULLET.sub("", line).strip().encode()) >= _LEAST:
                yield text
        elif kind != "bullet" or (is_after_gap and not line.startswith(" ")):
            kind, paragraph = "paragraph", f"{paragraph} {text}".strip()


COUNTERS = {
    "serena": _serena,
    "beads": _beads,
    "claude-memory": _claude,
    "mcp-memory": _graph,
    "loki": _loki,
}

if __name__ == "__main__":
    main()
