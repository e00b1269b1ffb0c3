"""MiniLM from the packages of the extra: numbers of its tokens, vectors, and recall with it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from loki_memory import Workspace
from loki_memory.embedding import load_sentence_model
from loki_memory.embedding.sentence_model import ModelChoice, minilm_name

pytestmark = pytest.mark.skipif(not minilm_name(), reason="loki-memory[minilm] is not installed")
STATEMENTS = ("Deploys happen on Fridays", "Pages load slowly without the cache", "Tea is served")


def _encode(*texts: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return load_sentence_model(ModelChoice("minilm")).encode(texts)


def test_tokens_have_the_numbers_of_bert() -> None:
    from loki_memory.embedding.minilm import MiniLM

    # As the tokeniser of the model's authors numbers them.
    assert MiniLM().tokens("Hello, world!") == [101, 7592, 1010, 2088, 999, 102]


def test_vectors_have_length_1_and_do_not_depend_on_other_texts() -> None:
    alone, beside = _encode("a short text"), _encode("a short text", "a much longer one " * 30)
    assert np.allclose(np.linalg.norm(beside, axis=1), 1, atol=1e-5)
    assert (alone[0] == beside[0]).all()


def test_a_text_in_other_words_is_nearer_than_one_about_something_else() -> None:
    question, *texts = _encode("make it faster", "reduce the latency", "the colour of the logo")
    assert question @ texts[0] > question @ texts[1]


def test_recall_uses_the_vectors_that_embedding_made(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_EMBEDDING_MODEL", "minilm")
    monkeypatch.setenv("LOKI_RECALL_FLOOR", "0")
    for statement in STATEMENTS:
        ws.remember(statement)
    with Workspace.open(ws.layout.root) as workspace:
        workspace.sync()
        assert workspace.home.embed()
        found = workspace.home.retriever
        vectors = workspace.index.ask("SELECT DISTINCT model FROM vectors ORDER BY model")
        assert [model for (model,) in vectors] == sorted([found.embedding.name, minilm_name()])
        assert workspace.recall("performance of the web site")[0].title == STATEMENTS[1]


def test_a_process_that_stays_embeds_some_at_a_time(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKI_EMBEDDING_MODEL", "auto")
    for number in range(70):
        ws.remember(f"Service {number} listens on port {8000 + number}")
    with Workspace.open(ws.layout.root) as workspace:
        workspace.home.is_long_lived = True
        workspace.sync()
        assert not workspace.home.embed()
        assert workspace.home.embed()
        count = "SELECT count(*) FROM vectors WHERE model = ?"
        assert workspace.index.scalar(count, minilm_name()) == 70


def test_a_single_question_does_not_load_it_unless_it_was_asked_for(ws: Workspace) -> None:
    ws.remember(STATEMENTS[0])
    program = (
        "import sys; from loki_memory import Workspace; w = Workspace.open(sys.argv[1]);"
        "w.sync(); w.recall('when do we deploy'); print('onnxruntime' in sys.modules)"
    )
    said = {}
    for model in ("auto", "minilm"):
        command = [sys.executable, "-c", program, str(ws.layout.root)]
        environment = {**os.environ, "LOKI_EMBEDDING_MODEL": model}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        said[model] = done.stdout.strip()
    assert said == {"auto": "False", "minilm": "True"}
