"""A language model on loopback that speaks the Messages API and OpenAI's chat completions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, NamedTuple

Items = list[dict[str, Any]]
FENCE = re.compile(r"<data (\w{16})>\n(.*)\n</data \1>", re.DOTALL)


class Fault(NamedTuple):
    """A reply that is no answer: a status, and what else goes wrong."""

    status: int = 200
    retry_after: str = ""
    body: str = ""  # in place of an answer
    text: str = ""  # what the model says in place of an answer
    is_silent: bool = False  # the server accepts the question and does not answer


class ModelServer:
    """Answers with `word`, item by item, after the faults that it was given."""

    def __init__(self, port: int, word: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        self.port, self.word = port, word
        self.faults: list[Fault] = []
        self.streams = False
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.ended = Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def prompts(self) -> list[str]:
        """What each request asked."""
        return [request["messages"][-1]["content"] for request in self.requests]

    def items(self) -> Items:
        """All items that were sent, in the order of the requests."""
        return [item for prompt in self.prompts() for item in items_of(prompt)]

    def answer(self, prompt: str) -> dict[str, Any]:
        answers = ((item["id"], self.word(item)) for item in items_of(prompt))
        return {"items": [{"id": name, **given} for name, given in answers if given is not None]}


def items_of(prompt: str) -> Items:
    found = FENCE.search(prompt)
    assert found, prompt
    items: Items = json.loads(found[2])
    return items


@contextmanager
def model_server(
    word: Callable[[dict[str, Any]], dict[str, Any] | None],
) -> Iterator[ModelServer]:
    """Serve until the block ends."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Requests)
    model = ModelServer(http.server_address[1], word)
    http.model = model  # type: ignore[attr-defined]
    thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield model
    finally:
        model.ended.set()
        http.shutdown()
        http.server_close()
        thread.join()


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        model: ModelServer = self.server.model  # type: ignore[attr-defined]
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model.requests.append(request)
        model.keys.append(self.headers.get("Authorization") or self.headers.get("x-api-key") or "")
        fault = model.faults.pop(0) if model.faults else Fault()
        if fault.is_silent:
            model.ended.wait()
            self.close_connection = True
            return
        is_anthropic = self.path.endswith("/messages")
        answer = model.answer(request["messages"][-1]["content"])
        made = _message(request, answer, fault) if is_anthropic else _completion(answer, fault)
        is_stream = model.streams and fault.status == 200
        text = fault.body or (_stream(answer) if is_stream else json.dumps(made))
        self._send(fault, text, "text/event-stream" if is_stream else "application/json")

    def _send(self, fault: Fault, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(fault.status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if fault.retry_after:
            self.send_header("Retry-After", fault.retry_after)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _message(request: dict[str, Any], answer: dict[str, Any], fault: Fault) -> dict[str, Any]:
    if fault.status != 200:
        return {"type": "error", "error": {"type": "api_error", "message": "a fault"}}
    tool = {"type": "tool_use", "id": "toolu_1", "name": "answer", "input": answer}
    said = {"type": "text", "text": fault.text}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [said if fault.text else tool],
        "stop_reason": "refusal" if fault.text else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 700, "output_tokens": 50},
    }


def _completion(answer: dict[str, Any], fault: Fault) -> dict[str, Any]:
    if fault.status != 200:
        return {"error": {"message": "a fault"}}
    message = {"role": "assistant", "content": fault.text or json.dumps(answer)}
    usage = {"prompt_tokens": 700, "completion_tokens": 50}
    return {"model": "tiny", "choices": [{"index": 0, "message": message}], "usage": usage}


def _stream(answer: dict[str, Any]) -> str:
    text = json.dumps(answer)
    events = [{"choices": [{"delta": {"content": part}}]} for part in (text[:20], text[20:])]
    usage = {"choices": [], "usage": {"prompt_tokens": 700, "completion_tokens": 50}}
    lines = [json.dumps(event) for event in (*events, usage)] + ["[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines)
