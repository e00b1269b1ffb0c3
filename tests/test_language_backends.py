"""Backends against a real server on loopback: answers, faults, refusals, and who gets the key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from loki_memory.language.apis import AnthropicApi, OpenAiServer, _parsed, _reply
from loki_memory.language.asking import request_for
from loki_memory.language.commands import (
    ClaudeCommand,
    CodexCommand,
    _claude_reply,
    _codex_reply,
    _events,
    _object,
)
from loki_memory.language.model import LanguageModel, ModelRequest, Recorded, Unanswered
from loki_memory.language.wording import WordedTexts
from tests.model_server import Fault, ModelServer, model_server

ITEM = {"id": "fact-1", "kind": "fact", "statement": "Tests need Redis on port 6380."}


def request() -> ModelRequest:
    return request_for("lessons", [ITEM], WordedTexts)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(lambda item: {"text": f"Worded: {item['statement']}"}) as running:
        yield running


@pytest.fixture(params=["openai", "anthropic"])
def model(
    request: pytest.FixtureRequest, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> LanguageModel:
    if request.param == "openai":
        return OpenAiServer(f"{server.url}/v1", "tiny", 5, {"LOKI_LANGUAGE_KEY": "key-of-tests"})
    pytest.importorskip("anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-tests")
    return AnthropicApi("tiny", 5, server.url)


def answered(model: LanguageModel) -> Any:
    answer = model.ask(request()).answer
    return json.loads(answer) if isinstance(answer, str) else answer


def test_an_answer_comes_with_its_tokens_and_its_model(
    model: LanguageModel, server: ModelServer
) -> None:
    reply = model.ask(request())
    assert (reply.input_tokens, reply.output_tokens, reply.model) == (700, 50, "tiny")
    assert answered(model)["items"][0]["text"] == "Worded: Tests need Redis on port 6380."
    assert all("key-of-tests" in key for key in server.keys)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_once_more(
    model: LanguageModel, server: ModelServer, status: int
) -> None:
    server.faults = [Fault(status, retry_after="0")]
    assert answered(model)["items"]
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [401, 404])
def test_a_server_that_says_no_is_not_asked_again(
    model: LanguageModel, server: ModelServer, status: int
) -> None:
    server.faults = [Fault(status)] * 4
    with pytest.raises(Unanswered, match=str(status)) as error:
        model.ask(request())
    assert error.value.is_over
    assert len(server.requests) == 1


def test_a_slow_server_is_not_waited_for(server: ModelServer) -> None:
    server.faults = [Fault(is_silent=True)] * 4
    with pytest.raises(Unanswered, match="in time"):
        OpenAiServer(f"{server.url}/v1", "tiny", 1, {}).ask(request())


def test_a_server_that_is_not_there_is_named(server: ModelServer) -> None:
    with pytest.raises(Unanswered, match="does not answer"):
        OpenAiServer("http://127.0.0.1:1/v1", "tiny", 5, {}).ask(request())
    with pytest.raises(Unanswered, match=r"language\.url"):
        OpenAiServer("", "tiny", 5, {}).ask(request())


def test_a_server_that_asks_for_a_long_wait_is_left(server: ModelServer) -> None:
    server.faults = [Fault(429, retry_after="3600")]
    with pytest.raises(Unanswered, match="3600 seconds"):
        OpenAiServer(f"{server.url}/v1", "tiny", 5, {}).ask(request())
    assert len(server.requests) == 1


def test_a_refusal_ends_one_question_and_not_the_run(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-tests")
    server.faults = [Fault(text="I cannot help with that.")]
    with pytest.raises(Unanswered, match="refused") as error:
        AnthropicApi("tiny", 5, server.url).ask(request())
    assert not error.value.is_over


def test_an_openai_refusal_and_a_foreign_answer_are_told_apart(server: ModelServer) -> None:
    refused = json.dumps({"choices": [{"message": {"refusal": "No.", "content": None}}]})
    server.faults = [Fault(body=refused), Fault(body="<html>"), Fault(body='{"choices": "no"}')]
    model = OpenAiServer(f"{server.url}/v1", "tiny", 5, {})
    with pytest.raises(Unanswered, match="refused"):
        model.ask(request())
    for _ in range(2):
        with pytest.raises(Unanswered, match="not a chat completion"):
            model.ask(request())


def test_a_server_that_streams_is_understood(server: ModelServer) -> None:
    server.streams = True
    reply = OpenAiServer(f"{server.url}/v1", "tiny", 5, {}).ask(request())
    assert isinstance(reply.answer, str)
    assert json.loads(reply.answer)["items"][0]["id"] == "fact-1"
    assert (reply.input_tokens, reply.output_tokens) == (700, 50)


def test_a_server_without_schemas_is_asked_without_one(server: ModelServer) -> None:
    server.faults = [Fault(400)]
    OpenAiServer(f"{server.url}/v1", "tiny", 5, {}).ask(request())
    assert ["response_format" in request for request in server.requests] == [True, False]


def test_openais_key_is_sent_to_openai_only(server: ModelServer) -> None:
    OpenAiServer(f"{server.url}/v1", "tiny", 5, {"OPENAI_API_KEY": "key"}).ask(request())
    assert server.keys == [""]


def test_a_key_is_not_sent_without_https() -> None:
    model = OpenAiServer("http://models.example.org/v1", "tiny", 5, {"LOKI_LANGUAGE_KEY": "key"})
    with pytest.raises(Unanswered, match="not sent without https"):
        model.ask(request())


@pytest.mark.parametrize(
    "url", ["http://x:abc/v1", "http://x:99999", "http://[::1", "http://a b/v1", "http://\udcff/v1"]
)
def test_what_is_no_address_is_named(url: str) -> None:
    with pytest.raises(Unanswered):
        OpenAiServer(url, "tiny", 5, {}).ask(request())


ODD = [None, True, 1, -7, 1.5, 1e999, "x", [], [None], [[1]], {}, {"a": 1}]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_an_answer_of_any_shape_is_taken_or_refused(server: ModelServer, odd: object) -> None:
    """A value of another type in each place that is read; what was used is never negative."""
    well = {"message": {"content": "{}"}, "delta": {"content": "{}"}}
    model = OpenAiServer(f"{server.url}/v1", "tiny", 5, {})
    for found in (
        odd,
        {"choices": odd},
        {"choices": [odd]},
        {"choices": [{"message": odd, "delta": odd}]},
        {"choices": [{"message": {"content": odd}, "delta": {"content": odd}}]},
        {"choices": [well], "usage": odd},
        {"choices": [well], "usage": {"prompt_tokens": odd, "completion_tokens": odd}},
    ):
        whole = json.dumps(found)
        for body in (whole, f"data: {whole}\n\n"):
            is_stream = body is not whole
            with suppress(Unanswered):
                reply = _reply(_parsed(body.encode(), is_stream=is_stream), "tiny")
                assert min(reply.input_tokens, reply.output_tokens) >= 0
        server.faults = [Fault(body=whole)]
        with suppress(Unanswered):
            model.ask(request())


def test_the_sdk_asks_with_a_tool_that_must_be_called(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-tests")
    AnthropicApi("", 5, server.url).ask(request())
    (sent,) = server.requests
    assert sent["tool_choice"] == {"type": "tool", "name": "answer"}
    assert sent["model"].startswith("claude-")


def test_without_a_key_the_sdk_says_so(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anthropic")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    with pytest.raises(Unanswered, match="SDK says"):
        AnthropicApi("tiny", 5, server.url).ask(request())


# -- commands --------------------------------------------------------------------------------------


def program(folder: Path, name: str, lines: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("command", [ClaudeCommand, CodexCommand])
def test_a_command_that_is_not_there_is_named(
    command: type[ClaudeCommand | CodexCommand], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unanswered, match="no command"):
        command("", 5).ask(request())


def test_a_command_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "claude", "echo 'Invalid API key' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(Unanswered, match="Invalid API key"):
        ClaudeCommand("", 5).ask(request())


def test_codex_is_asked_in_an_empty_folder_and_its_last_message_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [
        {"type": "thread.started"},
        {"type": "item.completed", "item": {"type": "agent_message", "text": '{"items": []}'}},
        {"type": "turn.completed", "usage": {"input_tokens": 30, "output_tokens": 4}},
    ]
    (tmp_path / "said").write_text("".join(f"{json.dumps(event)}\n" for event in said))
    program(
        tmp_path,
        "codex",
        f"ls > {tmp_path}/seen; echo $LOKI_SKIP_MEMORY > {tmp_path}/quiet; cat > {tmp_path}/asked;"
        f" cat {tmp_path}/said",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    reply = CodexCommand("tiny", 5).ask(request())
    assert (reply.answer, reply.input_tokens, reply.output_tokens) == ('{"items": []}', 30, 4)
    assert (tmp_path / "seen").read_text().split() == ["schema.json"]
    assert (tmp_path / "quiet").read_text() == "1\n"
    assert "Tests need Redis" in (tmp_path / "asked").read_text()


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_what_a_command_prints_may_have_any_shape(odd: object) -> None:
    usage = {"input_tokens": odd, "output_tokens": odd}
    said = {"item": {"type": "agent_message", "text": "{}"}}
    for found in (odd, {"result": odd}, {"result": "{}", "usage": odd, "modelUsage": odd}):
        with suppress(Unanswered):
            _claude_reply(_object(json.dumps(found)))
    reply = _claude_reply({"result": "{}", "usage": usage, "total_cost_usd": odd})
    assert min(reply.input_tokens, reply.output_tokens) >= 0
    assert reply.cost is None or 0 <= reply.cost < 2
    for event in (odd, {"item": odd}, {"usage": odd}, {"usage": usage}):
        printed = "\n".join(map(json.dumps, (said, event)))
        assert _codex_reply([*_events(printed)], "tiny").answer == "{}"


# -- recordings ------------------------------------------------------------------------------------


def test_a_recording_is_found_by_what_was_asked(tmp_path: Path) -> None:
    asked = {name: value for name, value in ITEM.items() if name != "id"}
    line = {"task": "lessons", "input": asked, "answer": {"text": "Start Redis on port 6380."}}
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(line) + "\n")
    reply = Recorded(str(path)).ask(request())
    assert reply.answer == {"items": [{"id": "fact-1", "text": "Start Redis on port 6380."}]}


def test_a_recording_cannot_give_an_answer_to_another_item(tmp_path: Path) -> None:
    asked = {name: value for name, value in ITEM.items() if name != "id"}
    line = {"task": "lessons", "input": asked, "answer": {"text": "Start it.", "id": "fact-2"}}
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(line) + "\n")
    reply = Recorded(str(path)).ask(request())
    assert reply.answer == {"items": [{"id": "fact-1", "text": "Start it."}]}


ODD_LINES = [
    json.dumps({"task": "lessons", "input": given, "answer": answer}) + "\n"
    for given, answer in (({}, "x"), ({}, None), ({}, 1), (None, {}), ("x", {}), ([1], {}))
]


@pytest.mark.parametrize("content", ["nothing\n", "[]\n", None, *ODD_LINES])
def test_what_is_no_recording_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "answers.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Unanswered, match="no recording"):
        Recorded(str(path)).ask(request())
