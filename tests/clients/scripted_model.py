"""A model that says what a script says, as the APIs of Anthropic and OpenAI would send it.

    python scripted_model.py PORT SCRIPT FOLDER

SCRIPT is a JSON list of replies. The n-th request with tools gets the n-th reply; a reply has a
text ("say"), a call ("call": [tool, input]), or both. After the last one, the reply is "Done.".
Requests without tools, such as for a title, get a word, or the text of the reply that has "plain".
Every other request is written to FOLDER as NN.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

Events = Iterator[dict[str, Any]]


class Script:
    """The replies that are left, and the requests so far."""

    def __init__(self, path: Path, folder: Path) -> None:
        replies = json.loads(path.read_text(encoding="utf-8"))
        self._replies = [reply for reply in replies if "plain" not in reply]
        self._plain = [reply["plain"] for reply in replies if "plain" in reply]
        self._folder, self._count, self._lock = folder, 0, Lock()

    def reply(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The number of a request and the reply to it."""
        is_plain = not request.get("tools")
        if is_plain and not self._plain:
            return 0, {"say": "ok"}
        with self._lock:
            number, self._count = self._count, self._count + 1
        text = json.dumps(request, indent=1)
        (self._folder / f"{number:02}.json").write_text(text, encoding="utf-8")
        if is_plain:
            return number, {"say": self._plain[0]}
        return number, self._replies[number] if number < len(self._replies) else {"say": "Done."}


def anthropic(request: dict[str, Any], number: int, reply: dict[str, Any]) -> Events:
    """A reply as events of the Messages API."""
    usage = {"input_tokens": 10, "output_tokens": 10}
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [],
        "stop_reason": None,
        "usage": usage,
    }
    yield {"type": "message_start", "message": message}
    for index, (block, delta) in enumerate(_blocks(number, reply)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if "call" in reply else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    yield {"type": "message_stop"}


def _blocks(number: int, reply: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    if "say" in reply:
        yield {"type": "text", "text": ""}, {"type": "text_delta", "text": reply["say"]}
    if "call" in reply:
        tool, given = reply["call"]
        use = {"type": "tool_use", "id": f"toolu_{number:04}", "name": tool, "input": {}}
        yield use, {"type": "input_json_delta", "partial_json": json.dumps(given)}


def openai(request: dict[str, Any], number: int, reply: dict[str, Any]) -> Events:
    """A reply as events of the Responses API."""
    response = {"id": f"resp_{number}", "object": "response", "model": request["model"]}
    yield {"type": "response.created", "response": {**response, "output": []}}
    items = list(_items(number, reply))
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}
    done = {**response, "status": "completed", "output": items, "usage": usage}
    yield {"type": "response.completed", "response": done}


def _items(number: int, reply: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "say" in reply:
        text = {"type": "output_text", "text": reply["say"], "annotations": []}
        message = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        yield {**message, "status": "completed", "content": [text]}
    if "call" in reply:
        tool, given = reply["call"]
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
        yield {**call, "status": "completed", "name": tool, "arguments": json.dumps(given)}


DIALECTS = {"/v1/messages": anthropic, "/v1/responses": openai}


class Handler(BaseHTTPRequestHandler):
    """Answers one request of a client."""

    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        dialect = DIALECTS.get(self.path.partition("?")[0])
        if dialect is None:
            self._send("application/json", b'{"input_tokens": 10}')
            return
        events = list(dialect(request, *self.script.reply(request)))
        lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self._send("text/event-stream", "".join(lines).encode())

    def do_GET(self) -> None:
        self._send("application/json", b'{"data": [], "models": []}')

    do_HEAD = do_GET  # noqa: N815 - named by the base class

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing: the requests are in the folder."""


def main() -> None:
    port, script, folder = sys.argv[1:]
    Handler.script = Script(Path(script), Path(folder))
    with ThreadingHTTPServer(("127.0.0.1", int(port)), Handler) as server:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main()
