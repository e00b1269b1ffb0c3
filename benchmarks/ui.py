"""The pages of `loki-mem ui` on 10,000 memories: server time, bytes, CPU, and the first page.

    python benchmarks/ui.py [--memories 10000] [--rounds 40]

Bars: 60 ms at the 95th percentile for each page once it is warm, 150 kB compressed for a page with
its static files, 1.2 s from the command to the first page, no CPU while idle. The wall clock counts
what else the machine does; CPU time is that of the server and of the processes that it started.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

from loki_memory import Workspace

PAGES = (
    "/now",
    "/beliefs",
    "/beliefs?q=which+port+does+service+42+use",
    "/beliefs/{id}",
    "/review",
    "/timeline",
    "/graph",
    "/graph?around={id}",
    "/files",
    "/handoffs",
    "/health",
    "/health/junk",
)
STATIC = ("/static/ui.css", "/static/ui.js", "/static/vendor/htmx.min.js", "/static/icon.svg")
SERVE = "import sys\nfrom loki_memory.cli import program\nsys.argv[0] = 'loki-mem'\nprogram()"
MS, SECOND, KILOBYTES = 60.0, 1.2, 150.0
IDLE = 10.0  # seconds


def main() -> None:
    """Fill a workspace, serve it, and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--memories", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=40)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOKI_HOME"] = f"{folder}/home/.loki"
        project = Path(folder) / "project"
        project.mkdir()
        _git(project)
        fact = _fill(project, given.memories)
        _measure(project, fact, given.rounds)


def _git(project: Path) -> None:
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "ana"],
        ["config", "user.email", "ana@example.org"],
    ):
        subprocess.run(["git", *arguments], cwd=project, check=True)


def _fill(project: Path, number: int) -> str:
    """Write so many facts, commit them, and return the id of one."""
    with Workspace.init(project) as workspace:
        facts = workspace.layout.memory / "semantic" / "facts"
        facts.mkdir(parents=True, exist_ok=True)
        for count in range(number):
            name = f"fact-{count:010}"
            record = {
                "id": name,
                "statement": f"Service {count} listens on port {20_000 + count}",
                "category": f"team {count % 40}",
                "at": f"2026-01-{count % 28 + 1:02}T09:00:00Z",
            }
            (facts / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
        workspace.sync()
        workspace.recall("which port does service 42 use")
        workspace.history.commit()
    return "fact-0000000042"


def _measure(project: Path, fact: str, rounds: int) -> None:
    command = [sys.executable, "-c", SERVE, "-C", str(project), "ui", "--no-open"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            link = process.stdout.readline().strip() if process.stdout else ""
            base = link.partition("/open")[0]
            opener = build_opener(HTTPCookieProcessor(CookieJar()))
            opener.open(link).read()
            _get(opener, f"{base}/now")
            print(f"first page after {time.perf_counter() - began:.2f} s (bar {SECOND} s)")
            _table(opener, base, fact, rounds, process.pid)
            began_idle = _cpu(process.pid)
            time.sleep(IDLE)
            print(f"idle: {_cpu(process.pid) - began_idle:.0f} ms of CPU in {IDLE:.0f} s (bar 0)")
        finally:
            process.terminate()


def _cpu(process: int) -> float:
    """The milliseconds of CPU that a process and those that it started have used."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) * 1000 / os.sysconf("SC_CLK_TCK")


def _table(opener: OpenerDirector, base: str, fact: str, rounds: int, process: int) -> None:
    static = sum(_get(opener, f"{base}{path}")[1] for path in STATIC)
    print(
        f"{'page':44} {'first ms':>8} {'p50 ms':>8} {'p95 ms':>8} {'CPU ms':>8} {'kB':>6}   "
        f"bars {MS:.0f} ms at p95, {KILOBYTES:.0f} kB"
    )
    for path in PAGES:
        address = f"{base}{path.format(id=fact)}"
        first, used = _get(opener, address)[0], _cpu(process)
        found = [_get(opener, address) for _ in range(rounds)]
        times = sorted(took for took, _ in found)
        size, used = (found[0][1] + static) / 1000, (_cpu(process) - used) / rounds
        half, most = times[len(times) // 2], times[int(len(times) * 0.95) - 1]
        print(f"{path:44} {first:8.1f} {half:8.1f} {most:8.1f} {used:8.1f} {size:6.1f}")


def _get(opener: OpenerDirector, address: str) -> tuple[float, int]:
    """The milliseconds that a request took, and the bytes of its compressed answer."""
    began = time.perf_counter()
    body = opener.open(Request(address, headers={"Accept-Encoding": "gzip"})).read()  # noqa: S310
    return (time.perf_counter() - began) * 1000, len(body)


if __name__ == "__main__":
    main()
