"""JSON of others is changed in one place and stays as it was in all others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory.install.json_text import append, cut, put

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
LAYOUTS: list[dict[str, Any]] = [
    {"indent": 2},
    {"indent": "\t"},
    {"indent": 4},
    {"separators": (",", ":")},
    {},
]
documents = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


def laid_out(document: Any, layout: dict[str, Any], line: str) -> str:
    return json.dumps(document, ensure_ascii=False, **layout).replace("\n", line) + line


@given(documents, st.sampled_from(LAYOUTS), st.sampled_from(["\n", "\r\n"]), VALUES)
def test_what_is_put_in_and_cut_out_leaves_the_same_bytes(
    document: dict[str, Any], layout: dict[str, Any], line: str, value: Any
) -> None:
    document.pop("ours", None)
    text = laid_out(document, layout, line)
    longer = put(text, ["ours"], value)
    assert json.loads(longer) == {**document, "ours": value}
    assert cut(longer, ["ours"]) == text


@given(st.lists(VALUES, max_size=3), st.sampled_from(LAYOUTS), VALUES)
def test_an_item_is_appended_and_cut_out_again(
    items: list[Any], layout: dict[str, Any], value: Any
) -> None:
    text = laid_out({"a": 1, "hooks": items}, layout, "\n")
    longer = append(text, ["hooks"], value)
    assert json.loads(longer)["hooks"] == [*items, value]
    assert cut(longer, ["hooks", len(items)]) == text


@given(st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=5), st.data())
def test_any_member_can_be_cut_out(document: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(document)))
    left = json.loads(cut(laid_out(document, {"indent": 2}, "\n"), [name]))
    assert left == {key: value for key, value in document.items() if key != name}


def test_containers_that_are_missing_are_made() -> None:
    text = append("{}\n", ["hooks", "Stop"], {"hooks": []})
    assert text == (
        '{\n  "hooks": {\n    "Stop": [\n      {\n        "hooks": []\n      }\n    ]\n  }\n}\n'
    )


def test_a_value_is_replaced_where_it_stands() -> None:
    text = '{\n    "a": {\n        "b": 1\n    },\n    "c": [ 1,2 ]\n}'
    assert put(text, ["a", "b"], 2) == text.replace("1\n", "2\n")
    assert json.loads(put(text, ["a"], {"x": [1]})) == {"a": {"x": [1]}, "c": [1, 2]}
    assert put(text, ["a"], {"x": 1}).endswith('\n    "c": [ 1,2 ]\n}')


def test_a_name_that_stands_twice_means_the_last_one() -> None:
    text = '{"a": {"old": 1}, "a": {}}'
    assert json.loads(put(text, ["a", "new"], 1)) == {"a": {"new": 1}}


def test_what_is_not_there_cannot_be_cut_out() -> None:
    with pytest.raises(KeyError):
        cut('{"a": {}}', ["b", "c"])
