"""What others would do with the same episodes: rows beside ours in the tables of consolidation.

Nothing here shares code with the package. Loki Mode's rules are written from what is known of how
it behaves: episodes of a day are put into buckets by a key word of their goal, an error is kept by
its type only and only where the task failed, confidence counts, and what is recalled before a task
is what came last.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

SHOWN = 5
_DRAWS = 1000  # samples of which an interval is taken
_A_DAY = 85  # tasks: the scorer puts them 17 minutes apart
_BUCKETS = {
    "exploration": ("show", "list", "find", "explore", "what", "which", "how"),
    "implementation": ("add", "build", "create", "implement", "write"),
    "debugging": ("fix", "debug", "error", "bug", "repair"),
    "review": ("review", "check", "verify"),
    "refactoring": ("refactor", "rename", "clean", "move"),
}
_WORD = re.compile(r"[a-z0-9_]+")


def data_folder(parser: Any) -> None:
    """The option that names the folder with the public sets."""
    folder = os.environ.get("LOKI_BENCH_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=not folder, help="the data")


def read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def scorer(data: Path, name: str = "lesson_transfer") -> ModuleType:
    """A program of the data folder that measures, as a module."""
    spec = importlib.util.spec_from_file_location(name, data / "score" / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(data / "score")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Systems that learn from tasks and are asked for lessons


class Frequency:
    """The errors that were met most often so far, each with the fix that came last."""

    def __init__(self) -> None:
        self._met: Counter[str] = Counter()
        self._fix: dict[str, str] = {}

    def learn(self, task: dict[str, Any], _: int) -> None:
        for error in task["errors"]:
            what = f"{task['db']} {error['message']}"
            self._met[what] += 1
            self._fix[what] = f"{what} fix: {error['fix']}"

    def ask(self, _goal: str, _db: str, _error: str | None) -> list[str]:
        return [self._fix[what] for what, _ in self._met.most_common(SHOWN)]


class LokiRules:
    """A bucket's count, `Avoid: <type>` where a task names the type, and else what failed last.

    What failed last is told whole, message and fix, which is more than those rules keep of it.
    """

    def __init__(self) -> None:
        self._day: dict[int, Counter[str]] = defaultdict(Counter)
        self._latest: list[str] = []

    def learn(self, task: dict[str, Any], number: int) -> None:
        self._day[number // _A_DAY][bucket(task["goal"])] += 1
        for error in () if task["solved"] else task["errors"]:
            what = f"{task['db']} {task['goal']} {error['action']} {error['message']}"
            self._latest.append(f"{what} fix: {error['fix']}")

    def ask(self, goal: str, _db: str, _error: str | None) -> list[str]:
        kind = bucket(goal)
        count = self._day[max(self._day)][kind] if self._day else 0
        pattern = [f"Pattern for {kind} tasks ({count} instances)"] if count > 1 else []
        avoid = ["Avoid: SQL error"] if self._latest and "sql error" in goal.lower() else []
        return [*pattern, *avoid, *reversed(self._latest)][:SHOWN]


def bucket(goal: str) -> str:
    """The type of task that the first key word names."""
    said = _WORD.findall(goal.lower())
    named = (kind for word in said for kind, words in _BUCKETS.items() if word in words)
    return next(named, "exploration")


# How sure to be of a remedy that helped s times of n

FORMULAS: dict[str, Callable[[int, int], float]] = {
    "Loki Mode: .5 + .1 n, at most .95": lambda _, n: min(0.5 + 0.1 * n, 0.95),
    "raw s / n": lambda s, n: s / n if n else 0.5,
    "Beta(1, 1)": lambda s, n: (1 + s) / (2 + n),
    "Beta(2, 1)": lambda s, n: (2 + s) / (3 + n),
    "Wilson, z = 1": lambda s, n: wilson(s, n, 1.0),
    "Wilson, z = 1.96": lambda s, n: wilson(s, n, 1.96),
}


def wilson(s: int, n: int, z: float) -> float:
    """The lower end of Wilson's interval."""
    if not n:
        return 0.0
    p, square = s / n, z * z
    spread = z * math.sqrt(p * (1 - p) / n + square / (4 * n * n))
    return (p + square / (2 * n) - spread) / (1 + square / n)


# How alike two texts are, and what is taken for a duplicate


def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def trigrams(text: str) -> frozenset[str]:
    """Of three letters each, inside words with their ends marked."""
    padded = (f"^{word}$" for word in words(text))
    return frozenset(one[at : at + 3] for one in padded for at in range(len(one) - 2))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    both = len(one & other)
    return both / (len(one) + len(other) - both) if both else 0.0


Vector = dict[str, float]


def tf_idf(texts: Sequence[str]) -> list[Vector]:
    """Sublinear TF-IDF vectors of words, of length 1."""
    counts = [Counter(re.findall(r"\w\w+", text.lower())) for text in texts]
    held_by = Counter(word for one in counts for word in one)
    idf = {word: 1 + math.log((1 + len(texts)) / (1 + n)) for word, n in held_by.items()}
    weighted = [{word: (1 + math.log(n)) * idf[word] for word, n in one.items()} for one in counts]
    return [_normed(one) for one in weighted]


def _normed(vector: Vector) -> Vector:
    norm = math.hypot(*vector.values())
    return {word: value / norm for word, value in vector.items()}


def cosine(one: Vector, other: Vector) -> float:
    return sum(one[word] * other[word] for word in one.keys() & other.keys())


Likeness = Callable[[int, int], float]


def likenesses(texts: Sequence[str]) -> dict[str, Likeness]:
    """Plain measures of likeness between texts, by name."""
    spoken, parts, vectors = list(map(words, texts)), list(map(trigrams, texts)), tf_idf(texts)
    return {
        "words": lambda i, j: jaccard(spoken[i], spoken[j]),
        "trigrams": lambda i, j: jaccard(parts[i], parts[j]),
        "TF-IDF": lambda i, j: cosine(vectors[i], vectors[j]),
    }


def merged(count: int, likeness: Likeness, threshold: float) -> list[tuple[int, int]]:
    """In the order of a stream: each item into the most alike of those that were kept."""
    kept: list[int] = []
    pairs: list[tuple[int, int]] = []
    for item in range(count):
        nearest = max(kept, key=lambda one: (likeness(item, one), -one), default=None)
        if nearest is not None and likeness(item, nearest) >= threshold:
            pairs.append((item, nearest))
        else:
            kept.append(item)
    return pairs


# Measures


def in_tenths(
    predicted: Sequence[float], came_true: Sequence[bool]
) -> dict[int, list[tuple[float, bool]]]:
    """Predictions with their outcomes, by the tenth of the scale that they lie in."""
    tenths: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for chance, outcome in zip(predicted, came_true, strict=True):
        tenths[min(9, int(chance * 10))].append((chance, outcome))
    return tenths


def calibration_error(predicted: Sequence[float], came_true: Sequence[bool]) -> float:
    """How far the predictions of each tenth lie from what came true, on average."""
    tenths = in_tenths(predicted, came_true).values()
    gaps = (abs(sum(p for p, _ in one) - sum(o for _, o in one)) for one in tenths)
    return sum(gaps) / max(1, len(predicted))


def by_luck(predicted: Sequence[float]) -> float:
    """The calibration error to expect where every prediction is exactly right."""
    dice = random.Random(0)
    drawn = ([dice.random() < chance for chance in predicted] for _ in range(_DRAWS))
    return sum(calibration_error(predicted, outcomes) for outcomes in drawn) / _DRAWS


def interval(
    units: Sequence[Any], measure: Callable[[Sequence[Any]], float]
) -> tuple[float, float]:
    """What a measure gives for 95 of 100 samples of as many units, drawn with replacement."""
    dice = random.Random(0)
    found = sorted(measure(dice.choices(units, k=len(units))) for _ in range(_DRAWS))
    return found[round(0.025 * _DRAWS)], found[round(0.975 * _DRAWS) - 1]


def area_under_curve(predicted: Sequence[float], came_true: Sequence[bool]) -> float:
    """How often what came true was predicted higher than what did not."""
    pairs = list(zip(predicted, came_true, strict=True))
    right = [chance for chance, outcome in pairs if outcome]
    wrong = [chance for chance, outcome in pairs if not outcome]
    higher = sum((one > other) + 0.5 * (one == other) for one in right for other in wrong)
    return higher / max(1, len(right) * len(wrong))
