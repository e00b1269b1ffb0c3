"""Try random input at every door through which foreign bytes come in, for as long as one waits.

    python benchmarks/long/fuzz.py [--seconds 60] [--seed 1] [DOOR...]

    python benchmarks/long/fuzz.py --atheris DOOR [--runs 1000000] [--seed 1]

The doors and their input are those of `tests/faults/fuzz.py`. Without atheris, bytes are chosen at
random and by mutation. Where atheris is installed (it is no dependency), it chooses them by the
code of ours that they reach, from samples of the same kind on; one door for each process. Prints
the number of executions, the slowest one and the growth of memory. A failure is printed with its
input and ends the run with 1.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "faults"))


def _watched() -> Any:
    """Let atheris see which code of ours runs; it changes modules while they are imported."""
    if "--atheris" not in sys.argv:
        return nullcontext()
    import atheris  # type: ignore[import-not-found]

    return atheris.instrument_imports(include=["loki_memory"])


with _watched():
    from fuzz import OF_BYTES, OF_OBJECTS, WORDS

_ODD = [
    '"',
    "{",
    "}",
    "[",
    "]",
    "\\ud800",
    "\x00",
    "---",
    "\n",
    "1e400",
    "9" * 400,
    ":",
    "&a",
    "*a",
]


_SAMPLES = 500  # from which atheris starts


def doors() -> dict[str, Callable[[bytes], None]]:
    """Every door as a function of bytes."""
    return {**OF_BYTES, **{name: _of_bytes(door) for name, door in OF_OBJECTS.items()}}


def _of_bytes(door: Callable[[dict[str, Any]], None]) -> Callable[[bytes], None]:
    def take(data: bytes) -> None:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            door(value)

    return take


def value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(9 if depth < 4 else 6)
    if kind < 3:
        return chance.choice(WORDS)
    if kind < 6:
        return chance.choice([None, True, -1, 1e300, 10**20, "", "\ud800", chance.random(), "\0"])
    if kind == 6:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(WORDS): value(chance, depth + 1) for _ in range(chance.randrange(8))}


def sample(chance: random.Random) -> bytes:
    """Random bytes, a random object, or such an object with a piece of it changed."""
    kind = chance.randrange(4)
    if kind == 0:
        return chance.randbytes(chance.randrange(200))
    found = {chance.choice(WORDS): value(chance, 1) for _ in range(chance.randrange(12))}
    text = json.dumps(found, ensure_ascii=chance.random() < 0.8)
    if kind == 1:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(_ODD) + text[at + chance.randrange(4) :]
    return text.encode("utf-8", "surrogatepass")


def run(name: str, door: Callable[[bytes], None], seconds: float, chance: random.Random) -> bool:
    """Try a door for some seconds; returns whether it held."""
    count, slowest, before = 0, 0.0, _megabytes()
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        data = sample(chance)
        try:
            door(data)
        except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
            print(f"{name}: {data!r}\n{traceback.format_exc()}")
            return False
        count += 1
        slowest = max(slowest, time.monotonic() - began)
    grown = _megabytes() - before
    print(
        f"{name}: {count:,} executions, slowest {slowest * 1000:.0f} ms, grew by {grown} MB",
        flush=True,
    )
    return True


def _megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def guided(door: Callable[[bytes], None], runs: int, seed: int) -> None:
    """Let atheris choose the input; it prints what it did, and ends the process by itself."""
    import atheris

    chance = random.Random(seed)
    with TemporaryDirectory() as folder:
        for number in range(_SAMPLES):
            Path(folder, f"sample-{number}").write_bytes(sample(chance))
        limits = ("-timeout=10", "-rss_limit_mb=1024", "-max_len=4096", "-print_final_stats=1")
        call = [sys.argv[0], f"-runs={runs}", f"-seed={seed}", *limits, folder]
        atheris.Setup(call, door)
        atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("doors", nargs="*", metavar="DOOR")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--atheris", metavar="DOOR")
    parser.add_argument("--runs", type=int, default=1_000_000, help="executions by atheris")
    options = parser.parse_args()
    found = doors()
    if options.atheris:
        guided(found[options.atheris], options.runs, options.seed)
    chosen = {name: found[name] for name in options.doors or found}
    chance = random.Random(options.seed)
    held = [run(name, door, options.seconds, chance) for name, door in chosen.items()]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
