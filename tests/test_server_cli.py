"""`loki-mem serve` and `loki-mem token`, as processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import jsonschema
import psycopg
import pytest
from team_server import make_repository, new_database

SERVE = (sys.executable, "-m", "loki_memory", "serve", "--port", "0")


@pytest.fixture
def url() -> str:
    return new_database()


def loki(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "loki_memory", *words],
        env={**os.environ, "LOKI_DATABASE": url},
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def serving(url: str, state: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server on a free port; its address and process."""
    process = subprocess.Popen(
        [*SERVE, "--json", "--state", str(state), *words],
        env={**os.environ, "LOKI_DATABASE": url},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        printed = ""
        while not printed.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, "the server ended"
            printed += line
        yield json.loads(printed)["url"], process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        if process.stdout:
            process.stdout.close()


def ask(url: str, secret: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Authorization": f"Bearer {secret}"})  # noqa: S310 - loopback
    with urlopen(request) as answer:  # noqa: S310
        return json.load(answer)


def token(url: str, *words: str) -> str:
    made = loki(url, "token", "add", *words, "--json")
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["secret"])


def test_a_repository_is_served_to_a_token_that_was_made_before(url: str, tmp_path: Path) -> None:
    make_repository(tmp_path / "app", "Deploys run on Fridays with the blue script")
    secret = token(url, "ana", "--scope", "read", "--scope", "push", "--repo", "app")
    with serving(url, tmp_path / "state", "--repo", str(tmp_path / "app")) as (address, _):
        (app,) = ask(f"{address}/status", secret)["repositories"]
        assert (app["name"], app["records"]) == ("app", 1)
        pulled = ask(f"{address}/pull?project=app", secret)
        assert "blue script" in pulled["records"][0]["content"]
        with pytest.raises(HTTPError, match="401"):
            ask(f"{address}/status", "wrong")


def test_what_was_acknowledged_survives_a_killed_server_once(url: str, tmp_path: Path) -> None:
    """Kill -9 between pushes and during one; the client repeats what was not acknowledged."""
    secret = token(url, "ana", "--scope", "read", "--scope", "push", "--repo", "app")
    bodies = [
        {"project": "app", "records": [{"kind": "fact", "record": {"statement": said}}]}
        for said in (f"Port {port} belongs to the proxy of service {port}" for port in range(30))
    ]
    acknowledged: list[str] = []
    waiting = list(bodies)
    while waiting:
        with serving(url, tmp_path / "state") as (address, process):
            for _ in range(10):
                acknowledged += ask(f"{address}/push", secret, waiting.pop(0))["ids"]
            if waiting:  # this one is cut off, and repeated to the next server
                killed_in_a_push(address, secret, waiting[0], process)
    with serving(url, tmp_path / "state") as (address, _):
        found = ask(f"{address}/pull?project=app", secret)["records"]
    assert sorted(record["id"] for record in found) == sorted(acknowledged)
    assert len(set(acknowledged)) == 30


def killed_in_a_push(address: str, secret: str, body: Any, process: subprocess.Popen[str]) -> None:
    import http.client
    from urllib.parse import urlsplit

    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    headers = {"Authorization": f"Bearer {secret}"}
    connection.request("POST", "/push", json.dumps(body), headers)
    process.kill()
    connection.close()


def test_a_server_that_is_killed_while_it_fetches_stands_at_a_commit_or_at_none(
    url: str, tmp_path: Path
) -> None:
    statements = [f"Port {port} belongs to the proxy of service {port}" for port in range(40)]
    make_repository(tmp_path / "app", *statements)
    secret = token(url, "ana", "--repo", "app")
    process = subprocess.Popen(
        [*SERVE, "--state", str(tmp_path / "state"), "--repo", str(tmp_path / "app")],
        env={**os.environ, "LOKI_DATABASE": url},
        stdout=subprocess.DEVNULL,
    )
    with psycopg.connect(url, autocommit=True) as connection:
        rows = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 6710644"
        while connection.execute(rows).fetchone() == (0,) and process.poll() is None:
            pass  # it has not begun to fetch
        process.kill()
        process.wait()
        counts = "SELECT r.commit <> '', count(f.path) FROM loki.repositories AS r "
        counts += "LEFT JOIN loki.records AS f ON f.repository = r.id GROUP BY r.id"
        found = connection.execute(counts.encode()).fetchone()
        assert found in {(False, 0), (True, 40)}
    with serving(url, tmp_path / "state", "--repo", str(tmp_path / "app")) as (address, _):
        assert len(ask(f"{address}/pull?project=app", secret)["records"]) == 40


def test_what_the_commands_print_obeys_their_schemas(url: str, tmp_path: Path) -> None:
    made = loki(url, "token", "add", "ana", "--repo", "app", "--json")
    listed = loki(url, "token", "list", "--json")
    for printed in (made, listed):
        obeys("token", json.loads(printed.stdout))
    with serving(url, tmp_path / "state") as (address, _):
        obeys("serve", {"url": address, "repositories": []})


def obeys(name: str, printed: Any) -> None:
    schemas = Path(__file__).parent.parent / "schemas"
    schema = json.loads((schemas / f"output-{name}.schema.json").read_text())
    jsonschema.validate(printed, schema)


def test_tokens_are_listed_rotated_and_revoked(url: str) -> None:
    secret = token(url, "ana", "--repo", "app", "--days", "7")
    listed = loki(url, "token", "list")
    assert re.fullmatch(r"ana  read  app  until \d{4}-\d\d-\d\d \d\d:\d\d\n", listed.stdout)
    assert secret not in listed.stdout
    granted = loki(url, "token", "grant", "ana", "--repo", "ap")
    assert "nothing of ap was fetched yet" in granted.stderr, "it may be misspelt"
    assert re.fullmatch(r"loki_\S+\n", loki(url, "token", "rotate", "ana").stdout)
    assert "revoked" in loki(url, "token", "revoke", "ana").stdout
    assert len(json.loads(loki(url, "token", "list", "--json").stdout)["tokens"]) == 2
    again = loki(url, "token", "revoke", "ana")
    assert again.returncode == 5
    assert loki(url, "token", "add").returncode == 2


def test_a_database_that_cannot_be_used_is_one_sentence() -> None:
    for words in (("token", "list"), ("serve", "--port", "0")):
        said = loki("postgresql://nobody@127.0.0.1:1/none", *words)
        assert (said.returncode, said.stdout) == (15, ""), "no address before there is a database"
        assert "the database cannot be used" in said.stderr
        assert "Traceback" not in said.stderr


def test_a_port_that_is_taken_is_a_mistake_in_the_command_line(url: str, tmp_path: Path) -> None:
    with serving(url, tmp_path / "state") as (address, _):
        port = address.rpartition(":")[2]
        said = loki(url, "serve", "--port", port)
        assert said.returncode == 2
        assert "cannot be used" in said.stderr
