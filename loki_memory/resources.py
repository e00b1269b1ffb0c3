"""Files that are shipped with the program: templates, schemas and the example workspace.

They are beside the package in a checkout and inside it once installed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path


def resource(name: str) -> Path:
    """The path of a shipped folder or file, such as `templates/config.toml`."""
    package = Path(__file__).parent
    inside = package / name
    return inside if inside.exists() else package.parent / name


@cache
def template(name: str) -> str:
    return (resource("templates") / name).read_text(encoding="utf-8")
