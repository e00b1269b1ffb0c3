"""Anthropic's Messages API through its own SDK, which the extra `anthropic` installs.

The answer is the input of a tool that the model must call: so it follows the schema. The SDK
retries what it may retry, and waits as long as the server says.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from loki_memory.language.model import ModelReply, ModelRequest, Unanswered

MODEL = "claude-haiku-4-5"  # where the user names none: rewording needs no larger one
_MOST_TOKENS = 4_096  # of an answer: twelve lessons have a third of that
_TOOL = "answer"


class AnthropicApi(NamedTuple):
    """The API, with the key of ANTHROPIC_API_KEY."""

    model: str
    timeout: int
    url: str = ""  # empty: Anthropic's, or that of ANTHROPIC_BASE_URL

    def ask(self, request: ModelRequest) -> ModelReply:
        """Answer a request."""
        try:
            import anthropic
        except ImportError:
            raise Unanswered(
                'the SDK is not installed: pip install "loki-memory[anthropic]"'
            ) from None
        try:
            client = anthropic.Anthropic(base_url=self.url or None, timeout=self.timeout)
            message = client.messages.create(**self._question(request))
        except anthropic.APITimeoutError as error:
            raise Unanswered("no answer in time") from error
        except anthropic.APIStatusError as error:
            raise Unanswered(f"the server answers {error.status_code}") from error
        except (anthropic.AnthropicError, TypeError) as error:  # without a key: TypeError
            raise Unanswered(f"the SDK says: {str(error)[:200]}") from error
        return _reply(message)

    def _question(self, request: ModelRequest) -> dict[str, Any]:
        tool = {
            "name": _TOOL,
            "description": "Give the answer.",
            "input_schema": request.schema,
        }
        return {
            "model": self.model or MODEL,
            "max_tokens": _MOST_TOKENS,
            "system": request.system,
            "messages": [{"role": "user", "content": request.prompt}],
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": _TOOL},
        }


def _reply(message: Any) -> ModelReply:
    found = [block.input for block in message.content if block.type == "tool_use"]
    if not found:
        raise Unanswered("the model refused to answer", is_over=False)
    usage = message.usage
    return ModelReply(found[0], usage.input_tokens, usage.output_tokens, model=str(message.model))
