"""The curve of a belief: its confidence after each piece of evidence, and how its use fades."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from loki_memory.models.confidence import confidence

_WIDTH, _HEIGHT, _EDGE = 640.0, 120.0, 8.0
_HALF_LIFE_DAYS = 30.0  # of a use, as the journal weighs it
_FADE_STEPS = 24
_DAY = 86_400.0


class CurvePoint(NamedTuple):
    """A piece of evidence on the curve."""

    x: float
    y: float
    speaks: str  # for, against
    at: str
    confidence: float


class ConfidenceCurve(NamedTuple):
    """The lines of an SVG of 640 by 120."""

    line: str  # the points of the confidence
    fade: str  # the points of the last use; empty if there was none
    points: list[CurvePoint]
    first: str
    last: str


def confidence_curve(
    evidence: Iterable[tuple[str, str]], last_used: str, now: str
) -> ConfidenceCurve | None:
    """Draw evidence, given as (moment, for or against); None if none of it has a moment."""
    ordered = sorted((_seconds(at), at, speaks) for at, speaks in evidence)
    if not ordered:
        return None
    end = max(_seconds(now), ordered[-1][0] + _DAY)
    scale = _Scale(ordered[0][0], end)
    points: list[CurvePoint] = []
    support = against = 0
    for seconds, at, speaks in ordered:
        support, against = support + (speaks == "for"), against + (speaks == "against")
        value = confidence(support, against)
        points.append(CurvePoint(scale.x(seconds), scale.y(value), speaks, at, round(value, 2)))
    return ConfidenceCurve(
        _steps(points, scale.x(end)), _fade(scale, last_used, end), points, ordered[0][1], now
    )


class _Scale(NamedTuple):
    start: float
    end: float

    def x(self, seconds: float) -> float:
        share = (seconds - self.start) / max(self.end - self.start, 1.0)
        return round(_EDGE + share * (_WIDTH - 2 * _EDGE), 1)

    def y(self, value: float) -> float:
        return round(_HEIGHT - _EDGE - value * (_HEIGHT - 2 * _EDGE), 1)


def _steps(points: list[CurvePoint], end: float) -> str:
    """A line that keeps its height until the next point."""
    corners = [f"{points[0].x},{points[0].y}"]
    for before, point in pairwise(points):
        corners += [f"{point.x},{before.y}", f"{point.x},{point.y}"]
    return " ".join([*corners, f"{end},{points[-1].y}"])


def _fade(scale: _Scale, last_used: str, end: float) -> str:
    if not last_used:
        return ""
    begin = max(_seconds(last_used), scale.start)
    moments = (begin + (end - begin) * step / _FADE_STEPS for step in range(_FADE_STEPS + 1))
    return " ".join(
        f"{scale.x(at)},{scale.y(2 ** (-(at - _seconds(last_used)) / _DAY / _HALF_LIFE_DAYS))}"
        for at in moments
    )


def _seconds(at: str) -> float:
    found = datetime.fromisoformat(at)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
