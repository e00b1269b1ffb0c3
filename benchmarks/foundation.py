"""How fast the foundation is: sync, rebuild, durable writes, bulk recording, and cold commands.

    python benchmarks/foundation.py [--sizes 1000,10000,100000] [--only NAME] [--json FILE]

Each thing is measured in turns with its floor: the least that any program must do for it. See
README.md beside this file for what each row means.
"""

from __future__ import annotations

import argparse
import compileall
import gc
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from bisect import bisect
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from itertools import accumulate, count, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from table import Row, Spread, compared, in_turns, limited, machine, print_table, say, write_json

import loki_memory
from loki_memory import Workspace
from loki_memory.editing.edits import statement
from loki_memory.files.codec import encode
from loki_memory.files.layout import kind_of, place
from loki_memory.index.index import Index
from loki_memory.models import MODELS, Fact, parse
from loki_memory.models.kinds import Kind
from loki_memory.sync import rebuild, sync

HERE = Path(__file__).resolve().parent
SIZES = (1_000, 10_000, 100_000)
SEED = 42
PAIRS, WARM = 240, 5  # of a durable write and its floor
BULK = 10_000
REBUILD_SECONDS = 60  # no further round after this, so that slow machines come to an end too
LARGE = 10_000  # ratios are held to their bars from here on: below, constants decide

# -- records like those of a real store ------------------------------------------------------------

_MIX: dict[Kind, int] = {
    "episode": 55,
    "fact": 25,
    "pattern": 12,
    "anti-pattern": 5,
    "learning": 3,
}
_FIRST_DAY, _DAYS = date(2025, 3, 1), 250


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


_AREAS = _listed(
    "auth, billing, cache, catalog, checkout, config, consent, crawler, dashboard, deploy, digest, "
    "docs, email, events, export, feature-flags, gateway, geocoding, graph, health, import, "
    "inventory, invoices, jobs, ledger, limits, locale, logging, mailer, media, menu, metrics, "
    "migration, notifications, onboarding, orders, pagination, parser, payments, permissions, "
    "pricing, profile, queue, ratelimit, reports, router, scheduler, schema, search, session, "
    "settings, shipping, storage, sync, telemetry, tenants, themes, todos, tracing, uploads, "
    "users, webhooks, widgets, workflow"
)
_PARTS = _listed(
    "adapter, builder, client, controller, decoder, encoder, factory, filter, form, handler, "
    "helper, hook, index, job, layout, listener, loader, mapper, middleware, migration, model, "
    "parser, policy, provider, reader, reducer, repository, resolver, route, schema, serializer, "
    "service, store, table, test, template, transport, validator, view, worker, writer"
)
_VERBS = _listed(
    "Add, Allow, Batch, Cache, Check, Clean, Close, Cover, Debounce, Decouple, Document, Drop, "
    "Expose, Extract, Fix, Guard, Handle, Harden, Index, Inline, Limit, Log, Make, Merge, Move, "
    "Paginate, Pin, Port, Profile, Refactor, Remove, Rename, Replace, Retry, Return, Reuse, "
    "Rewrite, Split, Stop, Stream, Support, Test, Trim, Upgrade, Validate, Wire"
)
_AIMS = _listed(
    "before it reaches the database, when the queue is empty, for tenants without a plan, "
    "so that the build is reproducible, under concurrent requests, without breaking old clients, "
    "when the user is offline, behind a flag, in one transaction, for right-to-left languages, "
    "after the session has expired, for requests larger than a page, on the second attempt, "
    "as the API reference says, instead of polling, with the new token format, "
    "if no cache is there, in the nightly run, for names with accents such as Zoë, "
    "when two workers start at once"
)
_WHYS = _listed(
    "it is created twice in tests, the two clocks differ, the driver pools connections, "
    "order is not guaranteed, the cache is shared between tenants, CI has one core, "
    "the lock is not reentrant, the header is dropped by the proxy, "
    "types are erased at run time, the file is read before it is closed"
)
_TOOLS = _listed(
    "npm test, npx tsc --noEmit, pytest -q, ruff check ., go test ./..., cargo clippy, make"
)
_AGENTS = _listed("eng-001-backend, eng-002-frontend, qa-001-testing, ops-001-devops, arch-001")
_TOPICS = _listed("testing, build, api, database, performance, security, style, ci, tooling, types")
_STARTS = _listed("b, c, d, f, g, k, l, m, n, p, r, s, t, v, tr, pl, st")
_ENDS = _listed("a, e, i, o, u, an, er, ix, on")
_ERRORS = (
    ("TypeError", "Cannot read properties of undefined (reading '{0}')", "Checked {0} for null"),
    ("tsc", "error TS2345: Argument of type '{0}' is not assignable", "Narrowed the type of {0}"),
    ("ImportError", "cannot import name '{0}' from '{1}'", "Broke the cycle between {0} and {1}"),
    ("Timeout", "{0} did not answer within {2} ms", "Awaited {0} before the assertion"),
    ("AssertionError", "expected {2} but got {3} in {0}", "Corrected the fixture of {1}"),
    ("sqlite", "SQLITE_BUSY: database is locked while {0} writes", "Gave each worker a database"),
    ("npm", "code ERESOLVE: could not resolve {0}@{2}", "Pinned {0} to the version {1} needs"),
    ("lint", "'{0}' is assigned a value but never used", "Removed {0}"),
    ("KeyError", "'{0}'", "Gave {0} a default → {1} can do without it"),
    ("HTTP 409", "{0} was changed by another request", "Sent the etag of {0} along"),
)


class Author:
    """Makes up records, always the same ones for a seed.

    Words are drawn as in real text: few of them often, new ones ever more rarely (Zipf).
    """

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._names = self._coined(20_000)
        self._often = list(accumulate(1 / rank for rank in range(1, len(self._names) + 1)))
        self._episodes: deque[str] = deque(maxlen=500)

    def records(self) -> Iterator[tuple[Kind, dict[str, Any]]]:
        """Records without end, as JSON values."""
        kinds, weights = list(_MIX), list(accumulate(_MIX.values()))
        while True:
            kind = self._draw.choices(kinds, cum_weights=weights)[0]
            yield kind, getattr(self, kind.replace("-", "_"))()

    def episodes(self) -> Iterator[dict[str, Any]]:
        while True:
            yield self.episode()

    def met(self, episode: str) -> None:
        """An episode that later beliefs may rest on."""
        self._episodes.append(episode)

    def episode(self) -> dict[str, Any]:
        files = [self._file() for _ in range(self._draw.randint(1, 3))]
        document = {
            "task_id": f"task-{self._draw.randint(1, 9999):04}",
            "timestamp": self._moment(),
            "duration_seconds": self._draw.randint(60, 3600),
            "agent": self._one(_AGENTS),
            "context": {"phase": "development", "goal": self.goal(), "files_involved": files[:1]},
            "action_log": self._log(files),
            "outcome": self._one(("success", "success", "success", "partial", "failure")),
            "files_modified": files,
        }
        if self._draw.random() < 0.4:
            kind, message, resolution = self._error()
            met = {"type": kind, "message": message, "resolution": resolution}
            document["errors_encountered"] = [met]
        return document

    def fact(self) -> dict[str, Any]:
        said = (
            f"{self._symbol()} keeps {self._name()} for {self._number()} seconds, because "
            f"{self._one(_WHYS)}"
        )
        return {
            "statement": said,
            **self._belief(),
            "subject": self._symbol(),
            "by": self._one(_AGENTS),
        }

    def pattern(self) -> dict[str, Any]:
        return {
            "pattern": f"{self.goal()} by way of {self._name()} in the {self._one(_PARTS)}",
            "conditions": [f"{self._one(_AREAS)} {self._one(_AIMS)}"],
            "correct_approach": f"Call {self._symbol()}() first, since {self._one(_WHYS)}",
            "incorrect_approach": f"{self._symbol()}() at the end",
            **self._belief(),
        }

    def anti_pattern(self) -> dict[str, Any]:
        kind, message, resolution = self._error()
        return {
            "what_fails": f"{kind}: {message}",
            "why": f"{self._symbol()} is used {self._one(_AIMS)}, and {self._one(_WHYS)}",
            "prevention": resolution,
            **self._belief(),
        }

    def learning(self) -> dict[str, Any]:
        kind, message, resolution = self._error()
        return {
            "timestamp": self._moment(),
            "lesson": f"{resolution}: {self._one(_WHYS)}",
            "error": f"{kind}: {message}",
            "agent": self._one(_AGENTS),
            "category": self._one(_TOPICS),
        }

    def goal(self) -> str:
        what = f"{self._one(_AREAS)} {self._one(_PARTS)}"
        return f"{self._one(_VERBS)} {self._name()} in the {what} {self._one(_AIMS)}"

    def _belief(self) -> dict[str, Any]:
        rests_on = self._draw.sample(self._episodes, min(2, len(self._episodes)))
        return {
            "category": self._one(_TOPICS),
            "confidence": self._draw.randint(50, 99) / 100,
            "source_episodes": rests_on[: self._draw.randint(0, 2)],
            "valid_from": self._moment()[:10],
        }

    def _log(self, files: Sequence[str]) -> list[dict[str, Any]]:
        log: list[dict[str, Any]] = [
            {"t": 20 * step, "action": "edit_file", "target": file}
            for step, file in enumerate(files)
        ]
        result = self._one(("pass", "pass", "fail"))
        return [*log, {"t": 90, "action": "run", "target": self._one(_TOOLS), "result": result}]

    def _error(self) -> tuple[str, str, str]:
        kind, message, resolution = self._one(_ERRORS)
        names = (self._symbol(), self._name(), self._number(), self._number())
        return kind, message.format(*names), resolution.format(*names)

    def _moment(self) -> str:
        day = _FIRST_DAY + timedelta(days=self._draw.randrange(_DAYS))
        second = self._draw.randrange(86_400)
        return f"{day}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"

    def _file(self) -> str:
        return f"src/{self._one(_AREAS)}/{self._name()}_{self._one(_PARTS)}.ts"

    def _symbol(self) -> str:
        return f"{self._name()}{self._one(_PARTS).title()}"

    def _name(self) -> str:
        return self._names[bisect(self._often, self._draw.random() * self._often[-1])]

    def _number(self) -> int:
        return self._draw.choice((10, 30, 60, 100, 250, 500, 1000)) + self._draw.randrange(10)

    def _one(self, choices: Sequence[Any]) -> Any:
        return choices[int(self._draw.random() * len(choices))]

    def _coined(self, many: int) -> list[str]:
        """Words that nobody uses, pronounceable like the names in any code base."""
        coined: dict[str, None] = {}
        while len(coined) < many:
            length = self._draw.randint(2, 4)
            coined["".join(self._one(_STARTS) + self._one(_ENDS) for _ in range(length))] = None
        return list(coined)


# -- stores ----------------------------------------------------------------------------------------


class Stores:
    """Workspaces with made-up records, built when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._built: dict[int, Workspace] = {}
        self._indexed: set[int] = set()

    def built(self, size: int) -> Workspace:
        """A workspace with so many record files, and no index yet."""
        if size not in self._built:
            say(f"building a store of {size:,} records …")
            self._built[size] = self.new(f"store-{size}")
            write_records(self._built[size], size)
        return self._built[size]

    def indexed(self, size: int) -> Workspace:
        """The same with index and views up to date, and nothing too young to be sure of."""
        workspace = self.built(size)
        if size not in self._indexed:
            say(f"indexing {size:,} records …")
            apart("index", workspace.layout.root)  # this process stays small: see `_peak`
            self.settle(workspace)
            self._indexed.add(size)
        return workspace

    def settle(self, workspace: Workspace) -> None:
        """Sync once more when the newest file is older than the clock's grain."""
        os.sync()
        time.sleep(0.1)
        workspace.sync()

    def new(self, name: str) -> Workspace:
        root = self.folder / name
        root.mkdir()
        return Workspace.init(root)


def write_records(workspace: Workspace, size: int) -> None:
    """Write record files as the store would, without its promises: this is not what we measure."""
    author, taken, folders = Author(SEED), set[str](), set[str]()
    for kind, document in author.records():
        record = parse(MODELS[kind], {**document, "origin": "agent"})
        path = workspace.layout.file(place(record))
        if path in taken:  # the author repeated itself
            continue
        taken.add(path)
        folder = os.path.dirname(path)
        if folder not in folders:
            Path(folder).mkdir(parents=True, exist_ok=True)
            folders.add(folder)
        with open(path, "wb") as file:
            file.write(encode(record))
        if kind == "episode":
            author.met(record.id)
        if len(taken) == size:
            break
    os.sync()


# -- processes of their own ------------------------------------------------------------------------


def apart(work: str, root: Path) -> Any:
    """Do work in a process of its own, whose memory and garbage are its own; what it returned."""
    command = [sys.executable, __file__, "--apart", work, str(root)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def index_here(root: Path) -> tuple[()]:
    Workspace.open(root).sync()
    return ()


# -- no-change sync --------------------------------------------------------------------------------


def measure_sync(stores: Stores, sizes: Sequence[int]) -> Iterator[Row]:
    for size in sizes:
        workspace = stores.indexed(size)
        say(f"no-change sync of {size:,} files …")
        yield from _sync_rows(workspace, size)


def _sync_rows(workspace: Workspace, size: int) -> Iterator[Row]:
    layout, index, top = workspace.layout, workspace.index, str(workspace.layout.memory)
    floor, ours, whole = in_turns(
        [
            lambda _: walk(top, {}),
            lambda _: sync(layout, index, time.time_ns()),
            lambda _: workspace.sync(),
        ],
        rounds=max(9, min(41, 400_000 // size)),
        warm=2,
    )
    bar = 1.3 if size >= LARGE else None
    yield compared("no-change sync()", size, ours, floor, at_most=bar)
    yield compared("no-change Workspace.sync()", size, whole, floor, at_most=bar)


def walk(folder: str, found: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """The floor of a sync: a name and a stamp for every file."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                walk(entry.path, found)
            else:
                status = entry.stat(follow_symlinks=False)
                found[entry.path] = (status.st_mtime_ns, status.st_size)
    return found


# -- rebuild ---------------------------------------------------------------------------------------


class Rebuilt(NamedTuple):
    """What one rebuild took, in a process of its own."""

    seconds: float
    floor: float
    peak: int  # bytes of memory at most, of the process and its helpers
    peak_before: int
    index_bytes: int
    file_bytes: int


def measure_rebuild(stores: Stores, sizes: Sequence[int]) -> Iterator[Row]:
    roots = {size: stores.indexed(size).layout.root for size in sizes}
    found: dict[int, list[Rebuilt]] = {size: [] for size in sizes}
    end = time.perf_counter() + REBUILD_SECONDS
    for number in range(1, 4):
        say(f"rebuild, round {number} of at most 3 …")
        for size in sizes:
            found[size].append(Rebuilt(*apart("rebuild", roots[size])))
        if time.perf_counter() > end:
            break
    for size in sizes:
        row = _rebuild_row(size, found[size])
        yield limited(row, 15) if size == SIZES[-1] else row
    yield from _linear_rows(found)
    for size in sizes:
        yield _bytes_row(size, found[size])
    yield _memory_row(sizes[-1], found[sizes[-1]])


def _rebuild_row(size: int, found: Sequence[Rebuilt]) -> Row:
    return compared(
        "rebuild (floor: read the files)",
        size,
        [r.seconds for r in found],
        [r.floor for r in found],
    )


def _linear_rows(found: dict[int, list[Rebuilt]]) -> Iterator[Row]:
    """Time per record against that of the next smaller store, in the same round."""
    sizes = sorted(found)
    for small, large in pairwise(sizes):
        yield compared(
            f"rebuild per record (floor: of {small:,})",
            large,
            [r.seconds / large for r in found[large]],
            [r.seconds / small for r in found[small]],
            at_most=1.3 if small >= LARGE else None,
        )


def _bytes_row(size: int, found: Sequence[Rebuilt]) -> Row:
    ours, floor = [r.index_bytes / size for r in found], [r.file_bytes / size for r in found]
    return compared("index size per record (floor: file)", size, ours, floor, unit="B")


def _memory_row(size: int, found: Sequence[Rebuilt]) -> Row:
    ours, floor = [r.peak / 2**20 for r in found], [r.peak_before / 2**20 for r in found]
    return compared("rebuild peak memory (floor: before)", size, ours, floor, unit="MiB")


def rebuild_here(root: Path) -> Rebuilt:
    place = Workspace.open(root).layout
    top = f"{place.memory}/"
    files = [path for path in walk(top, {}) if kind_of(path.removeprefix(top))]
    read_all(files)
    start = time.perf_counter()
    size = read_all(files)
    floor = time.perf_counter() - start
    index, before = Index(place.cache / "index.db"), _peak()
    del files
    gc.collect()
    start = time.perf_counter()
    rebuild(place, index, time.time_ns())
    seconds = time.perf_counter() - start
    index.close()
    return Rebuilt(seconds, floor, _peak(), before, (place.cache / "index.db").stat().st_size, size)


def read_all(files: Sequence[str]) -> int:
    """The floor of a rebuild: the bytes of every file, thrown away."""
    size = 0
    for path in files:
        fd = os.open(path, os.O_RDONLY)
        size += len(os.read(fd, 1 << 20))
        os.close(fd)
    return size


def _peak() -> int:
    """Bytes; Linux lets a new process begin with the peak of the one that started it."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# -- durable writes --------------------------------------------------------------------------------

_TODAY = f"{date.today()}T12:00:00Z"  # noqa: DTZ011 - `remember` says today, so the floor does too


def measure_write(stores: Stores, sizes: Sequence[int]) -> Iterator[Row]:
    author = Author(SEED + 1)
    for size in [size for size in sizes if size <= LARGE] or sizes[:1]:
        workspace = stores.indexed(size)
        say(f"single writes into a store of {size:,} records …")
        yield _episode_row(author, size, workspace)
        yield _fact_row(author, size, workspace)
        stores.settle(workspace)


def _episode_row(author: Author, size: int, workspace: Workspace) -> Row:
    documents = [{**author.episode(), "timestamp": _TODAY} for _ in range(PAIRS + WARM)]
    return _write_row(
        "record one episode",
        size,
        workspace,
        [workspace.sessions.valid_episode(document) for document in documents],
        lambda number: workspace.record(documents[number]),
    )


def _fact_row(author: Author, size: int, workspace: Workspace) -> Row:
    texts = list(dict.fromkeys(author.fact()["statement"] for _ in range(2 * PAIRS)))
    return _write_row(
        "remember one fact",
        size,
        workspace,
        [statement(text, "fact", {}, now=_TODAY, origin=workspace.origin) for text in texts],
        lambda number: workspace.remember(texts[number]),
    )


def _write_row(
    what: str,
    size: int,
    workspace: Workspace,
    records: Sequence[Any],
    write: Callable[[int], object],
) -> Row:
    """Ours and the bare recipe in pairs: the same bytes into the same folder."""
    bare = [
        (f"{os.path.dirname(workspace.layout.file(place(record)))}/.bare-{number}", encode(record))
        for number, record in enumerate(records)
    ]
    write(0)  # the first one of a day makes the day's folder
    os.sync()
    tasks = [lambda n: bare_write(*bare[n]), write]
    floor, ours = in_turns(tasks, rounds=PAIRS, warm=WARM)
    for path, _ in bare:
        Path(path).unlink(missing_ok=True)
    return compared(what, size, ours, floor, at_most=1.5)


def bare_write(path: str, data: bytes) -> None:
    """The floor of a durable write: a new file, flushed, put in place, its folder flushed."""
    temporary = f"{path}.new"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.replace(temporary, path)
    fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


# -- bulk ------------------------------------------------------------------------------------------


def measure_bulk(stores: Stores, sizes: Sequence[int]) -> Iterator[Row]:
    many = min(BULK, max(sizes))
    say(f"recording {many:,} episodes at once …")
    episodes, names = list(islice(Author(SEED + 2).episodes(), many)), count()
    gc.freeze()  # our own ten thousand dictionaries are no part of what is measured
    seconds = []
    for _ in range(3):
        workspace = stores.new(f"bulk-{next(names)}")
        os.sync()
        start = time.perf_counter()
        workspace.record(episodes)
        seconds.append(time.perf_counter() - start)
        workspace.close()
        shutil.rmtree(workspace.layout.root)
    gc.unfreeze()
    row = Row("record many episodes at once", many, "s", Spread.of(seconds))
    yield limited(row, many / 1000)


# -- commands --------------------------------------------------------------------------------------


def measure_command(stores: Stores, sizes: Sequence[int]) -> Iterator[Row]:
    """Whole processes, from the shell's point of view."""
    size = max([size for size in sizes if size <= LARGE] or sizes[:1])
    workspace = stores.indexed(size)
    say(f"cold commands with {size:,} memories …")
    root, some = str(workspace.layout.root), workspace.browse.summaries(kind="pattern")[0].id
    workspace.close()
    all_files = {**os.environ, "LOKI_SYNC_SCAN_LIMIT": "1000000000"}
    program = [_program(), "-C", root]
    runs: dict[str, Callable[[int], object]] = {
        "floor": lambda _: run([sys.executable, "-c", "import click, sqlite3"]),
        "loki-mem status": lambda _: run([*program, "status"]),
        "loki-mem status, all files compared": lambda _: run([*program, "status"], all_files),
        "loki-mem list -n 5": lambda _: run([*program, "list", "-n", "5"]),
        "loki-mem show ID": lambda _: run([*program, "show", some]),
        "loki-mem --version": lambda _: run([*program, "--version"]),
    }
    floor, *ours = in_turns(list(runs.values()), rounds=21, warm=2)
    for what, times in zip(list(runs)[1:], ours, strict=True):
        bar = 2.5 if " status" in what and size == LARGE else None
        yield compared(what, size, times, floor, at_most=bar)
    facts = list(islice(Author(SEED + 3).records(), 400))
    texts = [document["statement"] for kind, document in facts if kind == Fact.kind]
    floor, ours_ = in_turns(
        [runs["floor"], lambda n: run([*program, "remember", texts[n]])], rounds=15, warm=1
    )
    yield compared("loki-mem remember TEXT", size, ours_, floor)
    stores.settle(workspace)


def _program() -> str:
    """The installed console script; the one of this Python, if it has one."""
    beside = Path(sys.executable).with_name("loki-mem")
    found = str(beside) if beside.exists() else shutil.which("loki-mem")
    if found is None:
        sys.exit("loki-mem is not installed: pip install -e .")
    return found


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, check=True, capture_output=True, env=environment)


# -- the program -----------------------------------------------------------------------------------

MEASURES: dict[str, Callable[[Stores, Sequence[int]], Iterator[Row]]] = {
    "rebuild": measure_rebuild,
    "sync": measure_sync,
    "command": measure_command,
    "write": measure_write,
    "bulk": measure_bulk,
}
APART: dict[str, Callable[[Path], Any]] = {"index": index_here, "rebuild": rebuild_here}


def main() -> None:
    options = _options()
    if options.apart:
        work, root = options.apart
        print(json.dumps(APART[work](Path(root))))
        return
    start = time.perf_counter()
    # As pip leaves a package: compiled, whatever this environment says about bytecode.
    compileall.compile_dir(Path(loki_memory.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory(prefix="loki-memory-", dir=options.folder) as name:
        folder = Path(name)
        _leave_the_user_alone(folder)
        where, stores = machine(folder), Stores(folder)
        measures = [options.only] if options.only else MEASURES
        rows = [row for name in measures for row in MEASURES[name](stores, options.sizes)]
        say("removing the stores …")
    seconds = round(time.perf_counter() - start)
    print_table(rows)
    print(f"\n{', '.join(f'{name} {value}' for name, value in where.items())}; {seconds} s in all")
    about = {"version": loki_memory.__version__, "machine": where, "seconds": seconds}
    write_json(options.json, rows, about)
    sys.exit(any(row.ok is False for row in rows))


def _leave_the_user_alone(folder: Path) -> None:
    for name in [name for name in os.environ if name.startswith("LOKI_")]:
        del os.environ[name]
    os.environ["LOKI_HOME"] = str(folder / "home" / ".loki")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measure the foundation against its floors.",
        epilog="Exits with 1 if a bar was missed.",
    )
    parser.add_argument(
        "--sizes", type=_sizes, default=SIZES, help="records per store (default: %(default)s)"
    )
    parser.add_argument("--only", choices=MEASURES, help="one part instead of all")
    parser.add_argument(
        "--json", type=Path, default=HERE / "results" / "foundation.json", help="results go here"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=HERE.parent.parent,
        help="where the stores are built and removed again (default: beside the checkout); not a "
        "tmpfs, whose fsync costs nothing",
    )
    parser.add_argument("--apart", nargs=2, metavar=("WORK", "ROOT"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(size) for size in text.split(",")}))


if __name__ == "__main__":
    main()
