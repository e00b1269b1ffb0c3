"""False alarms of redaction on real memories, and its speed on real sessions.

    python benchmarks/redaction.py --data DIR [--lines 500] [--megabytes 5]

DIR holds `peer_memories/` and `loki_real/` (memories of other projects, which publish no secrets)
and `claude_transcripts/`. Every line that redaction would change is printed. `sampled` counts lines
taken at even distances from all of them, so that no project weighs more than its share. The program
exits with 1 if more than 0.2 % of the sampled lines, or of all lines, are changed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from loki_memory.files.redaction import redact

FOLDERS = ("peer_memories", "loki_real")
BAR = 0.002
SHORTEST = 20  # characters of a line worth counting
ENDINGS = {".md", ".json", ".jsonl", ".txt", ".yml", ".yaml"}
ROUNDS = 3


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)


def texts(path: Path) -> Iterator[str]:
    """The texts of a file: those within JSON, else all of it."""
    data = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix not in {".json", ".jsonl"}:
        yield data
        return
    for part in [data] if path.suffix == ".json" else data.splitlines():
        try:
            yield from strings(json.loads(part))
        except ValueError:
            yield part


def memory_lines(data: Path) -> list[str]:
    """Every distinct line of real memories, in the order of their files."""
    files = (path for name in FOLDERS for path in sorted((data / name).rglob("*")))
    read = (path for path in files if path.is_file() and path.suffix in ENDINGS)
    lines = (line.strip() for path in read for text in texts(path) for line in text.splitlines())
    return list(dict.fromkeys(line for line in lines if len(line) >= SHORTEST))


def prose(data: Path, size: int) -> list[str]:
    """Texts of real sessions, up to a size."""
    found: list[str] = []
    for path in sorted((data / "claude_transcripts" / "claude").rglob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                found += strings(json.loads(line))
        if sum(map(len, found)) > size:
            break
    return found


def speed(sample: list[str]) -> float:
    """Megabytes a second, the best of some rounds."""
    best = min(_seconds(sample) for _ in range(ROUNDS))
    return sum(len(text.encode("utf-8", "replace")) for text in sample) / 1e6 / best


def _seconds(sample: list[str]) -> float:
    begun = time.process_time()
    for text in sample:
        redact(text)
    return time.process_time() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with real data")
    parser.add_argument("--lines", type=int, default=500, help="lines of the sample")
    parser.add_argument("--megabytes", type=float, default=5, help="of sessions for the speed")
    given = parser.parse_args()
    lines = memory_lines(given.data)
    sample = lines[:: max(1, len(lines) // given.lines)][: given.lines]
    shares = []
    for name, chosen in (("sampled", sample), ("all", lines)):
        alarms = [line for line in chosen if redact(line) != line]
        shares.append(len(alarms) / max(1, len(chosen)))
        print(f"{name}: {len(alarms)} of {len(chosen)} lines changed ({shares[-1]:.4%})")
    for line in alarms:
        print(f"  {redact(line)[:160]}")
    rate = speed(prose(given.data, int(given.megabytes * 1e6)))
    print(f"speed: {rate:.1f} MB/s on {given.megabytes} MB of sessions")
    return 1 if max(shares) > BAR else 0


if __name__ == "__main__":
    sys.exit(main())
