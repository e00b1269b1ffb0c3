"""The contents of memory that a signed or reviewed commit stands for, looked up once per commit."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loki_memory.files import disk
from loki_memory.files.etag import etag
from loki_memory.versioning.versioned import repository_if_any

if TYPE_CHECKING:
    from loki_memory.history.repository import Repository
    from loki_memory.parts import Parts

_NAME = "vouched.json"


def vouched(workspace: Parts) -> dict[str, str]:
    """Path -> etag of the content that somebody stands for; nothing where there is no git."""
    repository = repository_if_any(workspace)
    if repository is None:
        return {}
    state, place = _state(repository), workspace.layout.local / _NAME
    known = _kept(place)
    if known.get("state") != state:
        known = {"state": state, "vouched": _looked_up(repository)}
        with suppress(OSError):  # the next one looks again
            disk.write_bytes(place, json.dumps(known, indent=1, sort_keys=True).encode())
    found: dict[str, str] = known["vouched"]
    return found


def _looked_up(repository: Repository) -> dict[str, str]:
    from loki_memory.history import vouching

    blobs = vouching.vouched(repository)
    etags = {blob: etag(data) for blob, data in repository.blobs(blobs.values())}
    return {path: etags[blob] for path, blob in sorted(blobs.items())}


def _state(repository: Repository) -> str:
    """What it depends on: the last commit, and whose signatures are allowed."""
    allowed = repository.settings.get("gpg.ssh.allowedsignersfile", "")
    signers = b""
    with suppress(OSError):
        signers = (repository.root / Path(allowed).expanduser()).read_bytes() if allowed else b""
    return f"{repository.tip()} {hashlib.sha256(signers).hexdigest()}"


def _kept(place: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(place.read_bytes())
        if isinstance(found, dict) and isinstance(found.get("vouched"), dict):
            return found
    return {}
