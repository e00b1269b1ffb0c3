"""Ask a workspace: `ask.py ROOT EXPRESSION …`; `ws` is the workspace.

Says a JSON list: for each expression its value, or the class and sentence of the error it raised.
"""

from __future__ import annotations

import json
import sys

from loki_memory import LokiMemoryError, Workspace


def main(root: str, *expressions: str) -> None:
    workspace = Workspace.open(root)
    print(json.dumps([_answer(workspace, text) for text in expressions], default=str))


def _answer(workspace: Workspace, text: str) -> object:
    try:
        return eval(text, {"ws": workspace})  # noqa: S307 - a test wrote it
    except (LokiMemoryError, OSError) as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(*sys.argv[1:])
