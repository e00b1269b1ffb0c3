"""One opened `.loki` folder: its parts, and how its index and views are kept up to date."""

from __future__ import annotations

from loki_memory.home.folder import parsed
from loki_memory.home.home import Fresh, Home
from loki_memory.home.place import opened_layout, user_home

__all__ = ["Fresh", "Home", "opened_layout", "parsed", "user_home"]
