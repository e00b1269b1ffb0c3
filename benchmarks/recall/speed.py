"""How fast recall is, warm and cold, from 1,000 to 100,000 memories, beside other memories.

    python benchmarks/recall/speed.py [--sizes 1000,10000] [--peers PYTHON] [--quick] [--out FILE]

PYTHON is an interpreter that has chromadb and mem0ai installed; without it there are no rows of
them. All of them get the same texts, and the peers get our vectors, so that nobody computes any.
Whatever is compared is measured in turns. Every process is held to one BLAS thread.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import peers
from report import (
    Bar,
    Row,
    Spread,
    add_options,
    at_most,
    compared,
    finish,
    in_turns,
    print_lines,
    print_table,
    say,
    workplace,
)

import loki_memory
from loki_memory.resources import resource

SIZES = (1_000, 10_000, 100_000)
SEED = 42
QUERIES, WARM = 100, 5
SESSION = 30  # memories
SHOWN = 5
MEM0_AT_MOST = 1_000  # adding to it takes 15 ms each
COLD_ROUNDS = 11
HERE = Path(__file__).resolve()

# -- texts -----------------------------------------------------------------------------------------


class Author:
    """Writes texts of about 25 words, always the same ones.

    The words are those of the bundled model in its order, which is that of their use in English;
    they are drawn as in real text, few of them often and most of them hardly ever (Zipf).
    """

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._words = _vocabulary()
        self._often = list(accumulate(1 / rank for rank in range(1, len(self._words) + 1)))

    def texts(self, many: int) -> list[str]:
        return [self._text(self._draw.randint(15, 35)) for _ in range(many)]

    def _text(self, length: int) -> str:
        return " ".join(self._draw.choices(self._words, cum_weights=self._often, k=length))

    def queries(self, texts: Sequence[str], many: int) -> list[str]:
        """Eight words of some text, in their order: half of them words like `the`."""
        return [self._query(text.split()) for text in self._draw.sample(texts, many)]

    def _query(self, words: Sequence[str]) -> str:
        chosen = sorted(self._draw.sample(range(len(words)), 8))
        return " ".join(words[place] for place in chosen)


def _vocabulary() -> list[str]:
    path = resource("embedding") / "model" / "vocab.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [word for word in lines if len(word) > 1 and word.isascii() and word.isalpha()][:20_000]


# -- stores ----------------------------------------------------------------------------------------


class Built(NamedTuple):
    """What making a store took and left."""

    written: float  # seconds for files and index
    first: float  # seconds for the first recall
    index_bytes: int
    vector_bytes: int


def build(folder: Path, size: str) -> Built:
    """A workspace of so many facts, up to date; and the same texts and vectors for the peers."""
    from systems import written

    from loki_memory import Workspace

    author = Author(SEED)
    texts = author.texts(int(size))
    queries = author.queries(texts, QUERIES + WARM)
    _write_for_peers(folder, texts, queries)
    root = folder / "ours"
    root.mkdir()
    workspace = Workspace.init(root)
    start = time.perf_counter()
    written(workspace, _documents(texts))
    synced = time.perf_counter()
    workspace.recall(queries[0], k=SHOWN)
    recalled = time.perf_counter()
    _settle(workspace)
    sizes = _sizes_in(workspace.layout.cache)
    workspace.close()
    return Built(synced - start, recalled - synced, *sizes)


def _documents(texts: Sequence[str]) -> Iterator[Any]:
    from data import Document

    for number, text in enumerate(texts):
        session, place = divmod(number, SESSION)
        day = f"{2020 + session // 336}-{session // 28 % 12 + 1:02}-{session % 28 + 1:02}"
        moment = f"{day}T{place // 6 + 8:02}:{place % 6 * 10:02}:00Z"
        yield Document(str(number), text, None, f"session-{session}", moment)


def _settle(workspace: Any) -> None:
    """Sync once more when the newest file is older than the clock's grain."""
    os.sync()
    time.sleep(0.1)
    workspace.sync()


def _write_for_peers(folder: Path, texts: Sequence[str], queries: Sequence[str]) -> None:
    from loki_memory.embedding import load

    model = load()
    import numpy as np

    for name, vectors, given in (
        ("texts", "vectors", texts),
        ("queries", "query_vectors", queries),
    ):
        (folder / f"{name}.json").write_text(json.dumps(given), encoding="utf-8")
        np.save(folder / f"{vectors}.npy", model.embed([model.tokens(text) for text in given]))


def _sizes_in(cache: Path) -> tuple[int, int]:
    """Bytes of the index, and of all else: the mapped cache of vectors, and what ranking needs."""
    files = [path for path in cache.rglob("*") if path.is_file()]
    index = sum(path.stat().st_size for path in files if path.name.startswith("index.db"))
    return index, sum(path.stat().st_size for path in files) - index


# -- processes of their own ------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """One BLAS thread for all, and compiled modules are read: as an installed program runs."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def apart(work: str, *arguments: object) -> Any:
    """Do work in a process of its own; what it returned."""
    command = [sys.executable, str(HERE), "--apart", work, *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment())
    return json.loads(done.stdout)


class Server:
    """A process that answers queries by number, and says how long each took."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            text=True,
        )

    def ask(self, what: object) -> float:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError(what)
        stdin.write(f"{what}\n")
        stdin.flush()
        return float(stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def serve(folder: Path, _: str) -> None:
    from loki_memory import Workspace

    workspace = Workspace.open(folder / "ours")
    queries = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    peers.answer_lines(lambda query, _: workspace.recall(query, k=SHOWN), queries, queries)


class Peers:
    """The other memories, if there are any."""

    def __init__(self, python: str | None) -> None:
        self._python = python
        self.versions = {name: self._version(name) for name in peers.PEERS} if python else {}
        for name, version in self.versions.items():
            say(f"{name} {version}" if version else f"no rows of {name}: it is not installed")
        if not python:
            say("no rows of chromadb and mem0: --peers names an interpreter that has them")

    def names(self, size: int) -> list[str]:
        here = [name for name, version in self.versions.items() if version]
        return [name for name in here if name != "mem0" or size <= MEM0_AT_MOST]

    def command(self, verb: str, name: str, folder: Path) -> list[str]:
        return [str(self._python), str(HERE.with_name("peers.py")), verb, name, str(folder)]

    def build(self, name: str, folder: Path) -> float:
        say(f"{name}: adding the same texts …")
        return float(_output(self.command("build", name, folder)))

    def _version(self, name: str) -> str:
        try:
            return _output(self.command("version", name, HERE.parent)).strip()
        except (OSError, subprocess.CalledProcessError):
            return ""


def _output(command: Sequence[str]) -> str:
    return subprocess.run(
        command, check=True, capture_output=True, env=environment(), text=True
    ).stdout


# -- warm ------------------------------------------------------------------------------------------


class Warm(NamedTuple):
    seconds: dict[str, list[float]]  # by system
    peaks: dict[str, float]


def measure_warm(folder: Path, size: int, others: Peers) -> Warm:
    """Query by query, each system in its turn."""
    say(f"warm recall among {size:,} …")
    ours = [sys.executable, str(HERE), "--apart", "serve", str(folder), "-"]
    servers = {"ours": Server(ours)}
    servers |= {name: Server(others.command("serve", name, folder)) for name in others.names(size)}
    seconds: dict[str, list[float]] = {name: [] for name in servers}
    for number in range(QUERIES + WARM):
        order = list(servers) if number % 2 else list(reversed(servers))
        for name in order:
            seconds[name].append(servers[name].ask(number))
    peaks = {name: server.ask("peak") for name, server in servers.items()}
    for server in servers.values():
        server.close()
    return Warm({name: times[WARM:] for name, times in seconds.items()}, peaks)


# -- cold ------------------------------------------------------------------------------------------


def measure_cold(folder: Path, size: int, others: Peers) -> tuple[dict[str, list[float]], int]:
    """Whole processes in turns; and the most memory that ours took."""
    say(f"cold recall among {size:,} …")
    queries = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    program, peaks = [_program(), "-C", str(folder / "ours"), "recall"], []
    tasks: dict[str, Callable[[int], object]] = {
        "imports": lambda _: run([sys.executable, "-c", "import click, numpy, sqlite3"]),
        "ours": lambda number: peaks.append(run([*program, queries[number]])),
    }
    if "chromadb" in others.names(size):
        tasks["chromadb"] = lambda _: run(others.command("once", "chromadb", folder))
    found = in_turns(list(tasks.values()), rounds=COLD_ROUNDS, warm=1)
    return dict(zip(tasks, found, strict=True)), max(peaks)


def run(command: Sequence[str]) -> int:
    """Run to the end; the peak of its memory in bytes. Its failure is ours."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return int(usage.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


def _program() -> str:
    """The installed console script; the one of this Python, if it has one."""
    beside = Path(sys.executable).with_name("loki-mem")
    found = str(beside) if beside.exists() else shutil.which("loki-mem")
    if found is None:
        sys.exit("loki-mem is not installed: pip install -e .")
    return found


# -- vectors ---------------------------------------------------------------------------------------


def vectors(folder: Path, _: str) -> tuple[list[float], list[float]]:
    """Exact search over the vectors that recall uses, and reading as many bytes."""
    from loki_memory.embedding import load
    from loki_memory.index.vectors import Vectors

    model = load()
    import numpy as np

    cache = next((folder / "ours" / ".loki" / "cache").rglob("*.vectors")).parent
    matrix = Vectors(cache, model.name, model.size).matrix
    asked = np.load(folder / "query_vectors.npy")
    flat = np.ascontiguousarray(matrix).reshape(-1)
    one, other = np.split(flat[: flat.size // 2 * 2], 2)

    def search(number: int) -> Any:
        cosines = matrix @ asked[number % len(asked)]
        best = np.argpartition(cosines, -SHOWN)[-SHOWN:]
        return best[np.argsort(-cosines[best])]

    ours, floor = in_turns([search, lambda _: np.dot(one, other)], rounds=41, warm=3)
    return ours, floor


# -- one size --------------------------------------------------------------------------------------


class Measured(NamedTuple):
    size: int
    built: Built
    added: dict[str, float]  # seconds that peers took for the same texts
    warm: Warm
    cold: dict[str, list[float]]
    cold_peak: int
    search: tuple[list[float], list[float]]

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "built": self.built._asdict(), "warm": self.warm._asdict()}


def measure(folder: Path, size: int, others: Peers) -> Measured:
    folder.mkdir()
    say(f"building a store of {size:,} …")
    built = Built(*apart("build", folder, size))
    added = {name: others.build(name, folder) for name in others.names(size)}
    warm = measure_warm(folder, size, others)
    cold, peak = measure_cold(folder, size, others)
    search = apart("vectors", folder, "-")
    shutil.rmtree(folder)
    return Measured(size, built, added, warm, cold, peak, search)


def rows(one: Measured) -> Iterator[Row]:
    for name, seconds in one.warm.seconds.items():
        yield Row(f"warm, {name}", one.size, "s", Spread.of(seconds))
    cold, floor = one.cold["ours"], one.cold["imports"]
    yield compared("cold (floor: imports)", one.size, cold, floor)
    if "chromadb" in one.cold:
        yield compared("cold (floor: chromadb cold)", one.size, cold, one.cold["chromadb"])
    ours, bandwidth = one.search
    yield compared("vector search (floor: reading)", one.size, ours, bandwidth)


def bars(one: Measured) -> Iterator[Bar]:
    warm = Spread.of(one.warm.seconds["ours"])
    found = {row.what: row.ratio or 0.0 for row in rows(one)}
    if one.size == 10_000:
        yield at_most("warm recall among 10,000, median ms", warm.median * 1e3, 8)
        yield at_most("warm recall among 10,000, p95 ms", warm.p95 * 1e3, 15)
        yield at_most("cold recall among 10,000 / imports", found["cold (floor: imports)"], 1.5)
        if "chromadb" in one.cold:
            ratio = found["cold (floor: chromadb cold)"]
            yield at_most("cold recall among 10,000 / chromadb cold", ratio, 0.2)
    if one.size == 100_000:
        yield at_most("warm recall among 100,000, p95 ms", warm.p95 * 1e3, 40)
        ratio = found["vector search (floor: reading)"]
        yield at_most("vector search among 100,000 / reading", ratio, 1.5)


# -- growth ----------------------------------------------------------------------------------------


def growth(found: Sequence[Measured]) -> dict[str, list[str]]:
    """How each number changes with the size of the store."""
    warm = [Spread.of(one.warm.seconds["ours"]) for one in found]
    return {
        "warm recall, median": [_ms(one.median) for one in warm],
        "warm recall, p95": [_ms(one.p95) for one in warm],
        "cold recall, median": [_ms(Spread.of(one.cold["ours"]).median) for one in found],
        "vector search, median": [_ms(Spread.of(one.search[0]).median) for one in found],
        "first recall of all": [_ms(one.built.first) for one in found],
        "files and index written": [f"{one.built.written:.1f} s" for one in found],
        "index": [_mb(one.built.index_bytes) for one in found],
        "cache of vectors, catalogue": [_mb(one.built.vector_bytes) for one in found],
        "peak memory, warm": [_mb(one.warm.peaks["ours"]) for one in found],
        "peak memory, cold": [_mb(one.cold_peak) for one in found],
        **{
            f"peak memory, {name}": [_mb(one.warm.peaks.get(name, 0)) for one in found]
            for name in found[0].added
        },
        **{
            f"adding all, {name}": [_s(one.added.get(name)) for one in found]
            for name in found[0].added
        },
    }


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


def _mb(size: float) -> str:
    return f"{size / 2**20:.1f} MiB" if size else "-"


def _s(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


# -- the program -----------------------------------------------------------------------------------

APART: dict[str, Callable[[Path, str], Any]] = {"build": build, "serve": serve, "vectors": vectors}


def main() -> None:
    options = _options()
    if options.apart:
        work, folder, more = options.apart
        print(json.dumps(APART[work](Path(folder), more)))
        return
    start = time.perf_counter()
    # As pip leaves a package: compiled, whatever this environment says about bytecode.
    compileall.compile_dir(Path(loki_memory.__file__).parent, quiet=1)
    others = Peers(options.peers)
    sizes = options.sizes[:1] if options.quick else options.sizes
    with workplace(options.folder) as folder:
        found = [measure(folder / str(size), size, others) for size in sizes]
    print_table([row for one in found for row in rows(one)])
    print()
    lines = [(name, *cells) for name, cells in growth(found).items()]
    print_lines(("growth", *(f"{one.size:,}" for one in found)), lines)
    results = {"peers": others.versions, "sizes": [one.as_json() for one in found]}
    finish([bar for one in found for bar in bars(one)], results, options, start)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measure how fast recall is.", epilog="Exits with 1 if a bar was missed."
    )
    parser.add_argument(
        "--sizes",
        type=lambda text: sorted({int(size) for size in text.split(",")}),
        default=SIZES,
        help="memories per store (default: %(default)s)",
    )
    parser.add_argument("--peers", help="an interpreter that has chromadb and mem0ai")
    parser.add_argument("--folder", type=Path, help="where the stores are built and removed again")
    parser.add_argument("--apart", nargs=3, help=argparse.SUPPRESS)
    add_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
