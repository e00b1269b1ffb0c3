"""Commit memory in the mode that the settings choose: with the code, or on a branch of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki_memory.errors import GitFailed, StoreBusy, StoreFailed
from loki_memory.files.redaction import redact
from loki_memory.history.branch_mode import commit_to_branch
from loki_memory.history.inline_commit import (
    OFF,
    CommitOptions,
    Committed,
    commit_inline,
    mode,
    one_at_a_time,
    opened,
)

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace


def commit(
    workspace: OpenWorkspace, agent: str = "", *, subject: str = "", dry_run: bool = False
) -> Committed:
    """Commit what changed in memory, and nothing else. Never raises because of git."""
    options, how = CommitOptions(redact(agent), redact(subject), dry_run), mode(workspace)
    if how == "off":
        return Committed(reason=OFF)
    try:
        repository = opened(workspace)
        with one_at_a_time(workspace):
            if how == "branch":
                return commit_to_branch(workspace, repository, options)
            return commit_inline(workspace, repository, options)
    except GitFailed as error:
        return Committed(reason=error.reason)
    except StoreBusy:
        return Committed(reason="another process is committing or writing")
    except StoreFailed as error:
        return Committed(reason=str(error))
