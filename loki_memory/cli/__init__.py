"""The command line: `loki-mem`."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

from loki_memory.cli.main import main


def program() -> NoReturn:
    """Run as a program of its own: leave as soon as everything is written.

    Taking numpy and all modules apart again would take 10 ms, and so would looking for garbage
    while they are loaded.
    """
    gc.set_threshold(50_000, 20, 100)
    code: object = 1
    try:
        main()
    except SystemExit as end:
        code = end.code
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):  # nobody listens any more
                continue
    os._exit(code if isinstance(code, int) else int(code is not None))


__all__ = ["main", "program"]
