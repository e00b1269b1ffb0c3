"""The navigation: the pages that the frame around every page leads to, in their order."""

from __future__ import annotations

from typing import NamedTuple


class NavigationEntry(NamedTuple):
    """An entry of the navigation; `key` follows `g` on the keyboard."""

    name: str
    title: str
    key: str

    @property
    def path(self) -> str:
        return f"/{self.name}"


NAVIGATION = (
    NavigationEntry("now", "Now", "n"),
    NavigationEntry("beliefs", "Beliefs", "b"),
    NavigationEntry("review", "Review", "r"),
    NavigationEntry("timeline", "Timeline", "t"),
    NavigationEntry("graph", "Graph", "g"),
    NavigationEntry("files", "Files", "f"),
    NavigationEntry("handoffs", "Handoffs", "o"),
    NavigationEntry("health", "Health", "h"),
)
