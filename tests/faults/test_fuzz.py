"""Random bytes and values at every door: what is not taken is refused in words.

`benchmarks/long/fuzz.py` tries the same doors for as long as somebody waits.
"""

from __future__ import annotations

from typing import Any

import pytest
from fuzz import BYTES, OBJECTS, OF_BYTES, OF_OBJECTS
from hypothesis import given, settings


@pytest.mark.parametrize("door", OF_BYTES)
@given(data=BYTES)
@settings(max_examples=60)
def test_bytes_are_taken_or_refused_in_words(door: str, data: bytes) -> None:
    OF_BYTES[door](data)


@pytest.mark.parametrize("door", OF_OBJECTS)
@given(value=OBJECTS)
@settings(max_examples=60)
def test_values_are_taken_or_refused_in_words(door: str, value: dict[str, Any]) -> None:
    OF_OBJECTS[door](value)
