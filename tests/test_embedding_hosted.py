"""Embeddings from a server: a real one on loopback, which answers well and badly."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from test_files_redaction import TOKENS

from loki_memory import Workspace
from loki_memory.cli.main import cli
from loki_memory.embedding.hosted import HostedModel
from loki_memory.embedding.sentence_model import ModelChoice, hosted_name
from loki_memory.errors import ModelUnavailable

Answer = Callable[[list[str]], tuple[int, bytes]]


def _well(texts: list[str]) -> tuple[int, bytes]:
    """A vector for each text: whether it speaks of performance, and its length."""
    entries = [
        {"index": n, "embedding": [5.0 * any(w in t for w in ("slow", "fast")), 1.0, len(t) / 99]}
        for n, t in enumerate(texts)
    ]
    return 200, json.dumps({"data": entries[::-1]}).encode()


class Server(ThreadingHTTPServer):
    """A server whose answers a test chooses, and which keeps what it was asked."""

    answer: Answer = staticmethod(_well)

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append({"path": self.path, **asked})
        self.server.keys.append(self.headers["Authorization"])
        code, body = self.server.answer(asked["input"])
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        if code == 307:
            self.send_header("Location", f"{self.server.url}/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        yield listening
        listening.shutdown()
        thread.join()


def test_vectors_come_in_the_order_of_the_texts_with_length_1(server: Server) -> None:
    found = HostedModel(server.url, "small", "k-1").encode(["fast", "a", "slow" * 70])
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    assert found[0, 0] > 0.9 > found[1, 0] == 0
    assert server.asked[0]["path"] == "/v1/embeddings"
    assert server.asked[0]["model"] == "small"
    assert server.keys == ["Bearer k-1"]


def test_a_proxy_gets_nothing_that_is_meant_for_this_machine(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # where nobody answers
    HostedModel(server.url, "small", "k-1").encode(["fast"])
    assert server.keys == ["Bearer k-1"]


def test_many_texts_are_asked_for_in_several_requests(server: Server) -> None:
    assert len(HostedModel(server.url, "small").encode(["x"] * 130)) == 130
    assert [len(request["input"]) for request in server.asked] == [64, 64, 2]
    assert server.keys == [None] * 3


@pytest.mark.parametrize(
    ("code", "body", "reason"),
    [
        (429, b"{}", "429 Too Many Requests"),
        (500, b"oops", "500 Internal Server Error"),
        (307, b"", "307 Temporary Redirect"),
        (200, b"<html>", "something else than embeddings"),
        (200, b"[]", "something else than embeddings"),
        (200, b'{"data": []}', "something else than embeddings"),
        (200, b'{"data": [{"index": 0, "embedding": []}]}', "something else than embeddings"),
        (200, b'{"data": [{"index": 0, "embedding": [NaN]}]}', "something else than embeddings"),
        (200, b'{"data": [{"index": 0, "embedding": "x"}]}', "something else than embeddings"),
    ],
)
def test_an_answer_that_is_no_vector_is_named(
    server: Server, code: int, body: bytes, reason: str
) -> None:
    server.answer = lambda _: (code, body)
    with pytest.raises(ModelUnavailable, match=reason):
        HostedModel(server.url, "small", "k-1").encode(["text"])
    assert len(server.asked) == 1  # a redirect is not followed: it would take the key along


def test_nobody_at_the_address_is_named(server: Server) -> None:
    with pytest.raises(ModelUnavailable, match="not available"):
        HostedModel("http://127.0.0.1:9/v1", "small").encode(["text"])


def test_a_key_is_not_sent_without_https() -> None:
    with pytest.raises(ModelUnavailable, match="not sent without https"):
        HostedModel("http://models.example.org/v1", "small", "k-1").encode(["text"])


def test_vectors_of_another_size_damage_no_index(
    ws: Workspace, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_EMBEDDING_MODEL", server.url)
    monkeypatch.setenv("LOKI_EMBEDDING_HOSTED_MODEL", "small")
    ws.remember("Pages load slowly without the cache")
    with Workspace.open(ws.layout.root) as workspace:
        workspace.sync()
        assert workspace.home.embed()
        body = json.dumps({"data": [{"index": 0, "embedding": [1.0, 2.0]}]}).encode()
        server.answer = lambda _: (200, body)
        hits = workspace.recall("why do pages load slowly?")
        notices = " ".join(workspace.home.notices)
        assert [hit.title for hit in hits] == ["Pages load slowly without the cache"]
        assert "vectors have 2 numbers now and had 3" in notices
        assert "damaged" not in notices


def test_recall_uses_it_and_falls_back_when_it_fails(
    ws: Workspace, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_EMBEDDING_MODEL", server.url)
    monkeypatch.setenv("LOKI_EMBEDDING_HOSTED_MODEL", "small")
    monkeypatch.setenv("LOKI_RECALL_FLOOR", "0")
    for statement in ("Deploys happen on Fridays", "Pages load slowly without the cache"):
        ws.remember(statement)
    name = hosted_name(server.url, "small")
    with Workspace.open(ws.layout.root) as workspace:
        workspace.sync()
        assert workspace.home.embed()
        assert workspace.index.scalar("SELECT count(*) FROM vectors WHERE model = ?", name) == 2
        assert workspace.recall("make it fast")[0].title.startswith("Pages")
        server.answer = lambda _: (500, b"")
        assert workspace.recall("deploys on Fridays")[0].title.startswith("Deploys")
        said = [notice for notice in workspace.notices if "not available" in notice]
        asked = len(server.asked)
        workspace.recall("deploys on Fridays")
    assert len(said) == 1
    assert "127.0.0.1" in said[0]
    assert len(server.asked) == asked  # for some minutes it is left alone


def test_no_secret_and_no_name_is_sent(
    ws: Workspace, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of a memory, nor of a question, which no store has cleaned."""
    monkeypatch.setenv("LOKI_EMBEDDING_MODEL", server.url)
    token, person = dict(TOKENS)["github_pat"], "ana.b@corp-mail.de"
    ws.remember(f"Ask {person} why /home/ana/shop is slow", scope="local")
    with Workspace.open(ws.layout.root) as workspace:
        workspace.sync()
        workspace.home.embed()
        workspace.recall(f"why is {token} of {person} in /home/ana/shop slow")
    texts = [text for asked in server.asked for text in asked["input"]]
    assert len(texts) == 2
    sent = json.dumps(server.asked)
    assert [word for word in (token, person, "/home/ana") if word in sent] == []


@pytest.mark.parametrize("url", ["http://[::1", "http://x:abc", "http://\udcff", "http://a b/v1"])
def test_what_is_no_address_is_named(url: str) -> None:
    with pytest.raises(ModelUnavailable):
        HostedModel(url, "small").encode(["text"])


def test_a_clone_can_name_neither_server_nor_key(ws: Workspace) -> None:
    path = ws.layout.loki / "config.toml"
    path.write_text('[embedding]\nmodel = "http://evil.example/v1"\nkey = "x"\n')
    with Workspace.open(ws.layout.root) as workspace:
        assert workspace.home.model_choice == ModelChoice("bundled", "text-embedding-3-small", "")
        said = workspace.home.notices
    assert sum("is ignored: only the user's config" in notice for notice in said) == 2


def test_a_key_is_never_shown(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKI_EMBEDDING_KEY", "k-secret")
    for words in (["config"], ["config", "embedding.key", "--json"]):
        said = CliRunner().invoke(cli, ["-C", str(ws.layout.root), *words]).output
        assert "(hidden)" in said
        assert "k-secret" not in said


def test_the_user_may_name_both(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOKI_EMBEDDING_MODEL")
    user = Path(os.environ["LOKI_HOME"]) / "config.toml"
    user.parent.mkdir(exist_ok=True)
    user.write_text('[embedding]\nmodel = "https://models.example/v1"\nkey = "x"\n')
    with Workspace.open(ws.layout.root) as workspace:
        choice = workspace.home.model_choice
    assert (choice.model, choice.key, choice.folder) == ("https://models.example/v1", "x", "")
