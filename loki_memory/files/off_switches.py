"""Switches by which other systems turn memory off, honoured here too.

Whoever turned off the memory of Loki Mode or of Lynkr does not want that of this program either. A
switch whose value makes no sense counts as off: who asked not to be recorded is not recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "config.json"  # in `.loki`, of Loki Mode
# Of Loki Mode.
_DISABLING = ("LOKI_MEMORY_CAPTURE_DISABLED", "LOKI_MEMORY_HOOK_DISABLED", "LOKI_SKIP_MEMORY")
_ENABLING = "MEMORY_ENABLED"  # of Lynkr
_NO = {"", "0", "false", "no", "off"}
_YES = {"1", "true", "yes", "on"}
_MOST = 1_000_000  # bytes: settings have some thousand


def switched_off(loki: Path, environment: Mapping[str, str]) -> str:
    """The switch of another system that is off here, in words; empty if there is none."""
    for name in _DISABLING:
        if environment.get(name, "").strip().lower() not in _NO:
            return f"{name} is set"
    enabled = environment.get(_ENABLING, "").strip().lower()
    if enabled and enabled not in _YES:
        return f"{_ENABLING} is {enabled}"
    return _by_file(loki / FILE)


def _by_file(path: Path) -> str:
    from loki_memory.files import disk

    try:
        data = disk.read_bytes(str(path))
    except OSError as error:
        return f".loki/{FILE} cannot be read ({error.strerror})"
    if data is None:
        return ""
    return _by_settings(data)


def _by_settings(data: bytes) -> str:
    import json

    try:
        settings = json.loads(data) if len(data) <= _MOST else None
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        return f".loki/{FILE} cannot be understood, and may turn memory off"
    memory = settings.get("memory", {})
    disabled = memory.get("disabled") if isinstance(memory, dict) else not _is_yes(memory)
    return f".loki/{FILE} says memory.disabled" if _is_disabled(disabled) else ""


def _is_yes(value: Any) -> bool:
    return value is None or str(value).strip().lower() in _YES


def _is_disabled(value: Any) -> bool:
    return value is not None and str(value).strip().lower() not in _NO
