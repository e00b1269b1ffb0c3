"""A desk: a project, a home folder, and real clients that work there against a scripted model.

Clients run in a network namespace that has only loopback, where the model listens.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PORT = "8765"
MODEL = Path(__file__).with_name("scripted_model.py")
# Starts the model in the namespace, then the client, and ends the model with it.
IN_NAMESPACE = """
ip link set lo up || exit 97
exec 3< <(exec {python} {model} {port} "$1" "$2"); model=$!
read -r ready <&3; shift 2
"$@"; code=$?
kill $model; exit $code
"""
CHECK = """
const fs = require('fs'); let bad = 0;
for (const file of fs.readdirSync('src')) {
  const text = fs.readFileSync('src/' + file, 'utf8');
  if (!text.includes('return undefined')) {
    console.error(`src/${file}(1,17): error TS7030: Not all code paths return a value.`); bad++;
  }
}
if (bad) { console.error(`Found ${bad} errors.`); process.exit(2); }
console.log('ok: all tests passed');
"""
LOGIN = "export function login(user) {\n  if (user) {\n    return { user };\n  }\n}\n"


@cache
def namespace() -> tuple[str, ...]:
    """The command that enters a network namespace of its own; empty if there is none."""
    for command in (("unshare", "-n"), ("unshare", "-rn")):
        if shutil.which("unshare") and shutil.which("ip"):
            probe = [*command, "ip", "link", "set", "lo", "up"]
            if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
                return command
    return ()


class Outcome(NamedTuple):
    """A session of a client: its output, and the requests that it sent to the model."""

    out: str
    requests: list[dict[str, Any]]
    debug: str = ""

    def received(self, words: str) -> list[str]:
        """The texts with these words that the model received, each once."""
        found = (text for request in self.requests for text in texts(request) if words in text)
        return list(dict.fromkeys(found))


def texts(value: Any) -> list[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in texts(each)]


class Desk:
    """A project, a home folder, and the clients that work there."""

    def __init__(self, folder: Path) -> None:
        self.project, self.home = folder / "demo", folder / "home"
        self._folder, self._sessions = folder, 0
        self.home.mkdir()
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "USER": "dev",
            "LOKI_DAEMON_AUTOSTART": "false",
            "IS_SANDBOX": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{PORT}",
            "ANTHROPIC_API_KEY": "none",
            "SCRIPTED_KEY": "none",
        }

    def make_project(self) -> None:
        """A repository whose `npm test` fails until every file in src/ returns on all paths."""
        (self.project / "src").mkdir(parents=True)
        package = {"name": "demo", "version": "1.0.0", "scripts": {"test": "node check.js"}}
        (self.project / "package.json").write_text(json.dumps(package))
        (self.project / "check.js").write_text(CHECK)
        (self.project / "src/login.ts").write_text(LOGIN)
        for name, value in (("user.email", "dev@example.org"), ("user.name", "Dev")):
            self.run("git", "config", "--global", name, value)
        self.run("git", "init", "-q", "-b", "main")
        self.run("git", "add", ".")
        self.run("git", "commit", "-qm", "init")
        self.run("loki-mem", "init")

    def configure_codex(self) -> None:
        """Have Codex ask the scripted model."""
        settings = self.home / ".codex" / "config.toml"
        settings.parent.mkdir()
        settings.write_text(
            'model = "scripted"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\n'
            f'name = "scripted"\nbase_url = "http://127.0.0.1:{PORT}/v1"\n'
            'wire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n'
        )

    def run(self, *command: str) -> str:
        """Run a command in the project and return its output."""
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def memory(self, *words: str) -> Any:
        return json.loads(self.run("loki-mem", "--json", *words))

    def claude(self, prompt: str, replies: Sequence[Any], *options: str) -> Outcome:
        """A session of Claude Code, without a terminal."""
        debug = self._folder / "debug.log"
        debug.unlink(missing_ok=True)
        tools = "Bash,Edit,Read,Write"
        command = ["claude", "-p", prompt, "--allowedTools", tools, "--debug-file", str(debug)]
        done = self._session([*command, *options], replies)
        return done._replace(debug=debug.read_text(encoding="utf-8", errors="replace"))

    def codex(self, prompt: str, replies: Sequence[Any]) -> Outcome:
        """A session of Codex, without a terminal; hooks run though nobody has trusted them."""
        trust = ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"]
        return self._session(["codex", "exec", *trust, prompt], replies)

    def memory_session(self, words: Sequence[str], replies: Sequence[Any]) -> Outcome:
        """A command of ours that itself starts a client."""
        return self._session(["loki-mem", *words], replies)

    def _session(self, command: Sequence[str], replies: Sequence[Any]) -> Outcome:
        self._sessions += 1
        requests = self._folder / f"requests-{self._sessions}"
        requests.mkdir()
        script = self._folder / f"script-{self._sessions}.json"
        script.write_text(json.dumps(replies))
        shell = IN_NAMESPACE.format(python=sys.executable, model=MODEL, port=PORT)
        started = [*namespace(), "bash", "-c", shell, "model", str(script), str(requests)]
        done = subprocess.run(
            [*started, *command],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        sent = [json.loads(path.read_text()) for path in sorted(requests.glob("*.json"))]
        return Outcome(done.stdout, sent)


def open_desk(request: pytest.FixtureRequest, folder: Path) -> Desk:
    """A desk with a project, if real clients were asked for: `pytest -m clients tests/clients`."""
    if "clients" not in str(request.config.option.markexpr):
        pytest.skip("real clients run only when they are asked for: pytest -m clients")
    if not namespace():
        pytest.skip("no network namespace can be made here (unshare, ip)")
    desk = Desk(folder)
    desk.make_project()
    return desk
