"""Memories that nobody here answers for: the part of `integrity.reviewed` that hooks read.

The answer stands in the index until memory or a verdict changes.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

from loki_memory.files.layout import chain_path
from loki_memory.integrity.reviewed import is_judged, stamp, verdicts, verdicts_path, waiting

if TYPE_CHECKING:
    from loki_memory.home import Home

_NOTE = "unreviewed"  # of the index: the ids, and the state for which they were found


def unreviewed(home: Home) -> frozenset[str]:
    """The ids of memories that nobody here answers for; none where all is our own work.

    No process is started.
    """
    if not is_judged(home):
        return frozenset()
    state = " ".join(
        (
            home.index.note("changed_ns"),
            stamp(verdicts_path(home.layout)),
            stamp(chain_path(home.layout)),
        )
    )
    known, _, ids = home.index.note(_NOTE).partition("\n")
    if known != state:
        ids = " ".join(sorted(row.id for row in waiting(home, verdicts(home.layout))))
        with suppress(sqlite3.OperationalError), home.index.change(wait=False) as revision:
            revision.set_note(_NOTE, f"{state}\n{ids}")
    return frozenset(ids.split())


def known_unreviewed(home: Home) -> frozenset[str]:
    """The same for readers; none before git was asked for the first time."""
    is_known = os.path.lexists(verdicts_path(home.layout))
    return unreviewed(home) if is_known else frozenset()
