"""A language model by its API: Anthropic's through its SDK, or any server that speaks OpenAI's.

The second is read with Python's own client: Ollama, vLLM and llama.cpp answer in it too.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from loki_memory.files.redaction import redact
from loki_memory.language.model import (
    ModelReply,
    ModelRequest,
    Unanswered,
    count,
    fields,
    first,
)

# -- Anthropic -------------------------------------------------------------------------------------


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
        return _anthropic_reply(message)

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


def _anthropic_reply(message: Any) -> ModelReply:
    found = [block.input for block in message.content if block.type == "tool_use"]
    if not found:
        raise Unanswered("the model refused to answer", is_over=False)
    usage = message.usage
    return ModelReply(found[0], usage.input_tokens, usage.output_tokens, model=str(message.model))


# -- a server with OpenAI's API --------------------------------------------------------------------


KEY = "LOKI_LANGUAGE_KEY"  # the environment variable with the key
_OPENAI, _OPENAI_KEY = "api.openai.com", "OPENAI_API_KEY"  # a key that is sent to its owner only
_NO_ADDRESS = (
    "`language.url` must be an address such as http://localhost:11434/v1: "
    "set it in your own config or as LOKI_LANGUAGE_URL"
)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MOST_BYTES = 1_000_000  # of an answer
_LONGEST_WAIT = 30.0  # seconds: whom a server tells to wait longer goes on without it
_BUSY = frozenset({429, 503})
_BAD_REQUEST, _OK, _SERVER_FAULT = 400, 200, 500


class OpenAiServer(NamedTuple):
    """A server by its URL, such as http://localhost:11434/v1."""

    url: str
    model: str
    timeout: int
    environment: Mapping[str, str]

    def ask(self, request: ModelRequest) -> ModelReply:
        """Answer a request; a server that does not know schemas is asked without one."""
        messages = [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.prompt},
        ]
        schema = {"name": request.task, "schema": request.schema, "strict": True}
        body = {"model": self.model, "messages": messages}
        form = {"response_format": {"type": "json_schema", "json_schema": schema}}
        status, found = self._posted({**body, **form})
        if status == _BAD_REQUEST:
            status, found = self._posted(body)
        if status != _OK:
            raise Unanswered(_complaint(status, found))
        return _reply(found, self.model)

    def _posted(self, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Post once, and once more if the server is busy or stumbled."""
        status, wait, found = self._post(body)
        if status in _BUSY or status >= _SERVER_FAULT:
            if wait > _LONGEST_WAIT:
                raise Unanswered(f"the server asks to wait {wait:.0f} seconds")
            time.sleep(wait)
            status, _, found = self._post(body)
        return status, found

    def _post(self, body: Mapping[str, Any]) -> tuple[int, float, dict[str, Any]]:
        address, port = self._address()
        connection = self._connection(address.scheme, address.hostname or "", port)
        path = f"{quote(address.path.rstrip('/'), safe='/%')}/chat/completions"
        try:
            data = json.dumps(body).encode()
            connection.request("POST", path, data, self._headers(address.hostname or ""))
            answer = connection.getresponse()
            raw = answer.read(_MOST_BYTES + 1)
        except (OSError, http.client.HTTPException, UnicodeError) as error:  # of a host's name
            raise Unanswered(f"{redact(self.url)} does not answer ({_named(error)})") from error
        finally:
            connection.close()
        if len(raw) > _MOST_BYTES:
            raise Unanswered("the answer is larger than 1 MB", is_over=False)
        is_stream = "event-stream" in (answer.getheader("Content-Type") or "")
        return answer.status, _seconds(answer.getheader("Retry-After")), _parsed(raw, is_stream)

    def _address(self) -> tuple[SplitResult, int | None]:
        try:
            address = urlsplit(self.url)
            port = address.port
        except ValueError:
            raise Unanswered(_NO_ADDRESS) from None
        if address.scheme not in {"http", "https"} or not address.hostname:
            raise Unanswered(_NO_ADDRESS)
        return address, port

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
        try:
            return kind(host, port, timeout=self.timeout)
        except http.client.HTTPException:
            raise Unanswered(_NO_ADDRESS) from None

    def _headers(self, host: str) -> dict[str, str]:
        key = self.environment.get(KEY, "")
        if not key and host == _OPENAI:
            key = self.environment.get(_OPENAI_KEY, "")
        if key and host not in _LOOPBACK and not self.url.lower().startswith("https:"):
            raise Unanswered("a key is not sent without https")
        known = {"Content-Type": "application/json"}
        return known | ({"Authorization": f"Bearer {key}"} if key else {})


def _named(error: Exception) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error) or "closed"


def _seconds(header: str | None) -> float:
    """The seconds to wait; a date in place of a number counts as one."""
    try:
        return max(0.0, float(header or 1))
    except ValueError:
        return 1.0


def _parsed(raw: bytes, is_stream: bool) -> dict[str, Any]:
    """The answer as one object; empty if it is none."""
    text = raw.decode("utf-8", "replace")
    if is_stream:
        return _joined(_events(text))
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return fields(found)


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data != "[DONE]":
            yield _parsed(data.encode(), is_stream=False)


def _joined(events: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """The pieces of a stream as the whole that a server sends otherwise."""
    text = ""
    usage: dict[str, Any] = {}
    for event in events:
        piece = fields(fields(first(event.get("choices"))).get("delta")).get("content")
        text += piece if isinstance(piece, str) else ""
        usage = event.get("usage") or usage
    return {"choices": [{"message": {"content": text}}], "usage": usage}


def _reply(found: Mapping[str, Any], model: str) -> ModelReply:
    message = fields(first(found.get("choices"))).get("message")
    if not isinstance(message, dict):
        raise Unanswered("the answer is not a chat completion", is_over=False)
    refused, text, usage = (
        message.get("refusal"),
        message.get("content"),
        fields(found.get("usage")),
    )
    counts = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    if refused or not isinstance(text, str):
        raise Unanswered("the model refused to answer", is_over=False)
    return ModelReply(text, *counts, model=str(found.get("model") or model))


def _complaint(status: int, found: Mapping[str, Any]) -> str:
    error = found.get("error")
    said = error.get("message") if isinstance(error, dict) else error
    return f"the server answers {status}" + (f": {str(said)[:200]}" if said else "")
