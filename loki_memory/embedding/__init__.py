"""Text to vectors, with a static model: each token has a row, a text is the mean of its rows.

The model that is shipped has two readers that give the same vectors, bit by bit: ours needs numpy
alone and starts at once, for questions and for a few new memories; model2vec takes 0.3 s to start
and embeds memories where that does not matter. `embedding.model` names a folder with another model,
which model2vec reads.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy is imported below, once the number of its threads is set
    from loki_memory.embedding.sentence_model import ModelChoice, SentenceModel
    from loki_memory.embedding.static_model import Embedding

# Several threads make a search slower as soon as the machine has other work (0.35 ms with one,
# 8 ms with two), and the first import of numpy decides how many there are.
for _library in ("OPENBLAS", "OMP", "MKL", "VECLIB"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")


def load(folder: str = "") -> Embedding:
    """The model that is shipped, or the one in another folder in the format of model2vec."""
    if folder:
        return load_with_model2vec(folder)

    from loki_memory.embedding.static_model import StaticModel

    return StaticModel()


def load_with_model2vec(folder: str = "") -> Embedding:
    """The same model, read by model2vec."""
    from loki_memory.embedding.static_model import FOLDER, NAME, Model2VecModel

    return Model2VecModel(folder) if folder else Model2VecModel(FOLDER, NAME)


@cache
def load_sentence_model(choice: ModelChoice) -> SentenceModel:
    """The sentence model; a process loads each once, however many homes it opens."""
    if choice.is_hosted:
        from loki_memory.embedding.hosted import HostedModel

        return HostedModel(choice.model, choice.hosted_model, choice.key)
    from loki_memory.embedding.minilm import MiniLM

    return MiniLM()


__all__ = ["load", "load_sentence_model", "load_with_model2vec"]
