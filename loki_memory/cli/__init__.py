"""The command line: `loki-mem`."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

_HOOK = 3  # words of `loki-mem hook EVENT`


def program() -> NoReturn:
    """Run as a program of its own: leave as soon as everything is written.

    Taking numpy and all modules apart again would take 10 ms, and so would looking for garbage
    while they are loaded.
    """
    gc.set_threshold(50_000, 20, 100)
    code: object = 1
    try:
        _run()
    except SystemExit as end:
        code = end.code
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):  # nobody listens any more
                continue
    os._exit(code if isinstance(code, int) else int(code is not None))


def _run() -> None:
    """A hook runs before every prompt, and does without click, which takes 30 ms to load."""
    if sys.argv[1:2] == ["hook"] and len(sys.argv) == _HOOK and sys.argv[2].isalpha():
        from loki_memory.hooks.program import run

        run(sys.argv[2])
        sys.exit(0)
    from loki_memory.cli.main import main

    main()


__all__ = ["program"]
