"""MiniLM: a transformer that reads a text as a whole, from the packages of the extra `minilm`.

all-MiniLM-L6-v2 with int8 weights, run by onnxruntime. It is slower than the static model by a
factor of a hundred and knows that "make it faster" and "latency" belong together. Texts go through
it one by one: the int8 arithmetic scales by all that is in a batch, so the vector of a text would
depend on its neighbours.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from loki_memory.embedding.sentence_model import minilm_name, minilm_weights
from loki_memory.embedding.static_model import FOLDER
from loki_memory.embedding.tokenizer import Vocabulary, WordPiece

if TYPE_CHECKING:
    from loki_memory.embedding.static_model import Vectors

SIZE = 384
_MOST_TOKENS = 256  # as it was trained; a passage has about 150
_THREADS = 2  # more do not pay for texts of this length

# The bundled vocabulary begins with BERT's, in its order but for the 994 rows that BERT left
# unused: 1 to 99 and 104 to 998.
_BERT_WORDS = 29_528
_CLS, _SEP = 101, 102
_UNUSED = (0, *[99] * 4)  # in front of the first five
_ALL_UNUSED = 994


class MiniLM:
    """The transformer, with its weights in memory."""

    def __init__(self) -> None:
        self.name = minilm_name()
        self._session = _session(minilm_weights())
        self._wordpiece = WordPiece(Vocabulary(os.path.join(FOLDER, "vocab.txt"), _BERT_WORDS))

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts: [texts, size]."""
        vectors = np.zeros((len(texts), SIZE), np.float32)
        for number, text in enumerate(texts):
            vectors[number] = self._mean(self.tokens(text))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True) + np.float32(1e-32)
        unit: Vectors = vectors / lengths
        return unit

    def tokens(self, text: str) -> list[int]:
        """Token ids as BERT numbers them, cut to what the model reads."""
        found = self._wordpiece.tokens(text)[: _MOST_TOKENS - 2]
        return [_CLS, *map(_in_bert, found), _SEP]

    def _mean(self, tokens: Sequence[int]) -> Any:
        """The mean of what the last layer says of each token."""
        ids = np.array([tokens], np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        return self._session.run(None, inputs)[0][0].mean(axis=0)


def _in_bert(token: int) -> int:
    return token + (_UNUSED[token] if token < len(_UNUSED) else _ALL_UNUSED)


def _session(weights: str | None) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(_THREADS, os.cpu_count() or 1)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors only
    return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
