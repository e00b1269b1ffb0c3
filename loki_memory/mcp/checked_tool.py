"""The SDK's tool, which refuses arguments that the tool does not have, and in our words.

The SDK drops them: an agent that calls `errors` what is called `errors_encountered` would be
told that all is well, and its errors would be lost. Names that agents guess are understood; the
schema has the real names only.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool as SdkTool
from pydantic import ValidationError

from loki_memory.mcp.argument_errors import misfits, unknown_argument

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

# Every answer of ours says `id`, and a record says `statement`.
_GUESSED = (
    ("id", "memory_id"),
    ("id", "handoff_id"),
    ("statement", "text"),
    ("errors", "errors_encountered"),
)


class CheckedTool(SdkTool):
    """A tool with checked arguments."""

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> Any:
        names = self.parameters["properties"]
        given = with_real_names(arguments, names)
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ToolError(unknown_argument(self.name, unknown[0], names))
        try:
            return await super().run(given, context, convert_result)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                wrong = error.__cause__.errors(include_url=False, include_input=False)
                raise ToolError(misfits(self.name, self.parameters, wrong)) from error.__cause__
            raise


def with_real_names(given: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    """Return the arguments with the real name in place of a guessed one, if it is still free."""
    found = dict(given)
    for guess, name in _GUESSED:
        if guess in found and guess not in names and name in names and name not in found:
            found[name] = found.pop(guess)
    return found
