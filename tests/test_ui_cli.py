"""The command `loki-mem ui`: a real server in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import jsonschema
import pytest

from loki_memory.resources import resource

OPENER = "import sys\nfrom loki_memory.cli import program\nsys.argv[0] = 'loki-mem'\nprogram()"


@pytest.fixture
def served(example: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The process, and the address that it printed."""
    command = [sys.executable, "-c", OPENER, "-C", str(example), "ui", "--no-open", "--json"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process, _first_object(process)
        finally:
            process.kill()


def _first_object(process: subprocess.Popen[str]) -> Any:
    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "}\n":
            return json.loads("".join(lines))
    raise AssertionError(process.stderr and process.stderr.read())


def test_the_address_obeys_its_schema_and_opens_the_page(
    served: tuple[subprocess.Popen[str], dict[str, Any]],
) -> None:
    process, address = served
    schema = json.loads((resource("schemas") / "output-ui.schema.json").read_bytes())
    jsonschema.Draft202012Validator(schema).validate(address)
    opener = build_opener(HTTPCookieProcessor(CookieJar()))
    assert opener.open(address["url"]).status == 200
    base = address["url"].partition("/open")[0]
    assert "<h1>Now</h1>" in opener.open(f"{base}/now").read().decode()
    with opener.open(f"{base}/events") as events:
        assert events.readline().startswith(b":")
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0


def test_a_port_in_use_is_a_mistake_of_the_command_line(
    served: tuple[subprocess.Popen[str], dict[str, Any]], example: Path
) -> None:
    _, address = served
    command = [sys.executable, "-c", OPENER, "-C", str(example), "ui", "--no-open"]
    port = str(address["port"])
    done = subprocess.run([*command, "--port", port], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"Port {port} cannot be used" in done.stderr
