"""Memory as one HTML file that needs no server: for a pull request, or for a client of MCP.

Style and script stand inside and are named by their hashes in the content security policy, which
forbids everything else, the network above all. A file that would grow too large leaves out the
beliefs at the end, and says how many.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from math import cos, pi, sin
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from loki_memory.resources import resource
from loki_memory.ui.templates import environment

if TYPE_CHECKING:
    from loki_memory.interop.shared_memory import SharedBelief, SharedLink
    from loki_memory.workspace import Workspace

LARGEST = 5_000_000  # bytes
_FRAME = 400_000  # of them for everything but the beliefs
_DRAWN = 8  # links in a drawing; the list has all
_STYLES = ("ui.css", "export.css")


class LinkPoint(NamedTuple):
    """A linked belief, and where its dot is drawn around the middle."""

    link: SharedLink
    x: int
    y: int


class ExportedPage(NamedTuple):
    """The file, and the number of beliefs that did and did not fit."""

    html: bytes
    beliefs: int
    left_out: int
    unread: list[str]


def export_page(workspace: Workspace, largest: int = LARGEST) -> ExportedPage:
    """Render the shared memory of a workspace in at most so many bytes."""
    found = workspace.interop.shared_memory()
    articles = list(_fitting(found.beliefs, workspace.now(), largest - _FRAME))
    left_out = len(found.beliefs) - len(articles)
    style, script = _style(), _static("export.js")
    text = (
        environment()
        .get_template("export.html")
        .render(
            project=found.project,
            now=workspace.now(),
            beliefs=found.beliefs[: len(articles)],
            articles=articles,
            left_out=left_out,
            policy=_policy(style, script),
            style=Markup("<style>{}</style>").format(Markup(style)),  # noqa: S704 - our own file
            script=Markup("<script>{}</script>").format(Markup(script)),  # noqa: S704 - our own file
        )
    )
    return ExportedPage(text.encode(), len(articles), left_out, found.unread)


def _fitting(beliefs: Sequence[SharedBelief], now: str, room: int) -> Iterator[Markup]:
    """The beliefs as HTML, as many as there is room for."""
    template = environment().get_template("export_belief.html")
    for belief in beliefs:
        article = template.render(belief=belief, points=link_points(belief.links), now=now)
        room -= len(article.encode())
        if room < 0:
            return
        yield Markup(article)  # noqa: S704 - rendered with everything escaped


def link_points(links: Sequence[SharedLink]) -> list[LinkPoint]:
    """Positions of the first links on an ellipse around the middle of the drawing."""
    shown = links[:_DRAWN]
    angles = [2 * pi * at / len(shown) - pi / 2 for at in range(len(shown))]
    return [
        LinkPoint(link, round(160 + 110 * cos(angle)), round(80 + 60 * sin(angle)))
        for link, angle in zip(shown, angles, strict=True)
    ]


def _style() -> str:
    return "\n".join(_static(name) for name in _STYLES)


def _static(name: str) -> str:
    return (resource("templates") / "ui" / "static" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
