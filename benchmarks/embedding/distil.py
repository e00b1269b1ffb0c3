"""Distil a static model on the bundled vocabulary from MiniLM and documentation.

    python benchmarks/embedding/distil.py --sdists FOLDER --out FOLDER [--texts N] [--share S]

MiniLM (the extra `minilm`) embeds every token and a sample of texts. The token vectors, turned
into the space of the texts, and the bundled ones, turned likewise, give the start; least squares
then moves the rows so that the mean of a text's tokens meets the teacher's vector of the text.
Tokens that no text has stay where they began. The result is a weighted mean of these rows and the
bundled ones.

`LOKI_EMBEDDING_MODEL=FOLDER` has recall read the result. docs/models.md says what was measured.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from documentation import packages, sample
from numpy.typing import NDArray
from safetensors.numpy import save_file
from scipy.sparse import csr_matrix

from loki_memory.embedding.minilm import MiniLM
from loki_memory.embedding.static_model import FOLDER, StaticModel

Floats = NDArray[np.float32]
_PULL = 0.3  # towards the start; .1 and 1 gave the same within the noise
_STEPS = 30  # of conjugate gradients
_FREQUENT = 1e-3  # share of all tokens from which on a token counts for half


def bags(texts: Sequence[Sequence[int]], tokens: int) -> Any:
    """The mean of token rows as a matrix: [texts, tokens]."""
    ends = np.cumsum([0, *map(len, texts)])
    shares = np.concatenate([np.full(len(text), 1 / len(text), np.float32) for text in texts])
    return csr_matrix((shares, np.concatenate(texts), ends), (len(texts), tokens))


def principal(vectors: Floats, size: int) -> tuple[Floats, Floats]:
    """The mean of vectors, and their principal directions."""
    mean = vectors.mean(axis=0)
    values, directions = np.linalg.eigh(np.cov((vectors - mean).T))
    order = np.argsort(-values)[:size]
    return mean, directions[:, order].astype(np.float32)


def turned(rows: Floats, bag: Any, wanted: Floats, *, centred: bool) -> Floats:
    """Rows turned and scaled, so that the means of texts come near to what is wanted."""
    means = bag @ rows
    middle = means.mean(axis=0) if centred else np.zeros_like(rows[0])
    left, found, right = np.linalg.svd((means - middle).T @ wanted)
    scale = found.sum() / ((means - middle) ** 2).sum()
    found_rows: Floats = ((rows - middle) @ (left @ right) * scale).astype(np.float32)
    return found_rows


def fitted(start: Floats, bag: Any, wanted: Floats) -> Floats:
    """Least squares with a pull towards the start, by conjugate gradients."""
    moved = np.zeros_like(start)
    rest = bag.T @ (wanted - bag @ start)
    way, left = rest.copy(), (rest**2).sum(axis=0)
    for _ in range(_STEPS):
        change = bag.T @ (bag @ way) + _PULL * way
        step = left / np.maximum((way * change).sum(axis=0), 1e-20)
        moved += step * way
        rest -= step * change
        new = (rest**2).sum(axis=0)
        way = rest + new / np.maximum(left, 1e-20) * way
        left = new
    return start + moved


def distilled(texts: Sequence[str], share: float) -> Floats:
    """The rows of the new model; `share` is that of the fitted rows in the mean."""
    bundled, teacher = StaticModel(), MiniLM()
    own = bundled.rows(np.arange(bundled.vocabulary))
    numbers = [(text, bundled.tokens(text)) for text in texts]
    known = [(text, tokens) for text, tokens in numbers if tokens]
    bag = bags([tokens for _, tokens in known], bundled.vocabulary)
    taught = teacher.encode([text for text, _ in known])
    mean, directions = principal(taught, bundled.size)
    wanted = (taught - mean) @ directions
    words = Path(FOLDER, "vocab.txt").read_text(encoding="utf-8").split("\n")
    vectors = teacher.encode([word.removeprefix("##") for word in words[: bundled.vocabulary]])
    counts = np.bincount(np.concatenate([tokens for _, tokens in known]), None, len(vectors)) + 1
    rare = (_FREQUENT / (_FREQUENT + counts / counts.sum())).astype(np.float32)[:, None]
    words_turned = turned(
        (vectors - vectors.mean(0)) @ directions * rare, bag, wanted, centred=False
    )
    start = (turned(own, bag, wanted, centred=True) + words_turned) / 2
    found, kept = fitted(start, bag, wanted), turned(own, bag, wanted, centred=False)
    return (1 - share) * _even(kept, bag) + share * _even(found, bag)


def _even(rows: Floats, bag: Any) -> Floats:
    """Rows on the scale on which texts have the length 1 on average."""
    even: Floats = rows / np.linalg.norm(bag @ rows, axis=1).mean()
    return even


def write(rows: Floats, folder: Path) -> None:
    """Write the model as the bundled one is written: int8, with one scale per row."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("README.md"))
    scale = np.maximum(np.abs(rows).max(axis=1), 1e-9) / 127
    numbers = np.round(rows / scale[:, None]).astype(np.int8)
    tensors = {"embeddings": numbers, "weights": scale.astype(np.float32)}
    save_file(tensors, str(folder / "model.safetensors"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Distil a static model from MiniLM.")
    parser.add_argument("--sdists", type=Path, required=True, help="folder of .tar.gz files")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    parser.add_argument("--texts", type=int, default=26_500, help="how many texts are embedded")
    parser.add_argument("--share", type=float, default=0.3, help="of the fitted rows, 0 to 1")
    parser.add_argument("--seed", type=int, default=22)
    options = parser.parse_args()
    found = list(packages(options.sdists))
    texts = sample(found, options.texts, options.seed)
    write(distilled(texts, options.share), options.out)
    sources = "".join(f"{package.name}: {package.licence}\n" for package in found)
    (options.out / "SOURCES").write_text(sources, encoding="utf-8")
    print(
        f"{len(texts):,} texts of {len(found)} packages; {options.out}/SOURCES names their licences"
    )


if __name__ == "__main__":
    main()
