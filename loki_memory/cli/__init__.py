"""The command line: `loki-mem`."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # a hook that the watcher answers must not pay for `typing`
if TYPE_CHECKING:
    from typing import NoReturn

_HOOK = 3  # words of `loki-mem hook EVENT`
# Seconds after which a hook gives up: clients end it a moment later (plugin/hooks/hooks.json), and
# tell their user that it failed. What it writes is written wholly or not at all.
HOOK_SECONDS = {
    "SessionStart": 14.0,
    "PreToolUse": 14.0,
    "Stop": 14.0,
    "PreCompact": 9.0,
    "SubagentStop": 9.0,
    "TaskCompleted": 9.0,
    "SessionEnd": 1.8,
}
_OTHER_HOOK_SECONDS = 4.5


def program() -> NoReturn:
    """Run as a program of its own: leave as soon as everything is written.

    A command that only reads is answered by the watcher of its workspace, if one runs; this
    process then loads nothing of the command line.
    """
    if _is_hook():
        _limit_time(_hook_seconds(sys.argv[2], os.environ.get("LOKI_HOOK_SECONDS", "")))
    code: object = None
    if sys.platform != "win32":  # no Unix sockets there, and so no watcher that could be asked
        from loki_memory.daemon import client

        code = client.run(sys.argv[1:])
    if code is None:
        code = _exit_code()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _is_hook() -> bool:
    return sys.argv[1:2] == ["hook"] and len(sys.argv) == _HOOK and sys.argv[2].isalpha()


def _hook_seconds(event: str, wished: str) -> float:
    """The limit of a hook; a user who gave hooks more time in the client may say so."""
    return float(wished) if wished.isdigit() else HOOK_SECONDS.get(event, _OTHER_HOOK_SECONDS)


def _limit_time(seconds: float) -> None:
    """End this process with 0 after some seconds, whatever it waits for."""
    import _thread
    import time

    def end() -> None:
        time.sleep(seconds)
        os._exit(0)

    _thread.start_new_thread(end, ())


def _exit_code() -> object:
    """Run the command and flush its output. The garbage collector's threshold is raised, and the
    caller ends the process without unloading modules: each saves 10 ms.
    """
    gc.set_threshold(50_000, 20, 100)
    code: object = 1
    try:
        run()
    except SystemExit as end:
        code = end.code
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):  # the reader has closed the pipe
                continue
    return code


def run() -> NoReturn:
    """Run the command that `sys.argv` names in this process; always raises SystemExit.

    A hook runs before every prompt, and does without click, which takes 30 ms to load.
    """
    if _is_hook():
        from loki_memory.hooks.response import run as answer

        sys.exit(answer(sys.argv[2]))
    from loki_memory.cli.main import main

    main()


__all__ = ["program", "run"]
