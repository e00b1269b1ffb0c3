"""Hooks and servers come and go among those of others, whatever these look like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from loki_memory.install.settings import (
    is_our_server,
    shipped_hooks,
    shipped_server,
    with_hooks,
    with_server,
    without_hooks,
    without_server,
)

PATH = Path("settings.json")
HOOKS = shipped_hooks("loki-mem")
handlers = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(["make", "say loki-mem hook Stop"])}
)
groups = st.fixed_dictionaries(
    {"hooks": st.lists(handlers, min_size=1, max_size=2)}, optional={"matcher": st.just("Bash")}
)
events = st.dictionaries(
    st.sampled_from([*HOOKS, "Notification"]), st.lists(groups, min_size=1, max_size=2), min_size=1
)
settings = st.fixed_dictionaries(
    {"model": st.text(max_size=5)},
    optional={
        "hooks": events,
        "mcpServers": st.dictionaries(
            st.sampled_from(["a", "b"]), st.just({"command": "x"}), min_size=1
        ),
    },
)
layouts = st.sampled_from([{"indent": 2}, {"indent": 4}, {"separators": (",", ":")}, {}])


@given(settings, layouts)
def test_hooks_come_and_go_without_a_trace(
    document: dict[str, Any], layout: dict[str, Any]
) -> None:
    text = json.dumps(document, **layout) + "\n"
    longer = with_hooks(text, HOOKS, PATH)
    found, before = json.loads(longer), document.get("hooks", {})
    assert found["model"] == document["model"]
    for event in {**before, **HOOKS}:
        assert found["hooks"][event] == [*before.get(event, []), *HOOKS.get(event, [])]
    assert with_hooks(longer, HOOKS, PATH) == longer
    assert without_hooks(longer, PATH) == text


@given(settings, layouts)
def test_the_server_comes_and_goes_without_a_trace(
    document: dict[str, Any], layout: dict[str, Any]
) -> None:
    text = json.dumps(document, **layout) + "\n"
    longer = with_server(text, shipped_server("loki-mem"), PATH)
    assert is_our_server(json.loads(longer)["mcpServers"]["loki"])
    assert without_server(longer, PATH) == text


def test_where_nothing_else_stands_nothing_is_left() -> None:
    assert without_hooks(with_hooks(None, HOOKS, PATH), PATH) is None
    assert without_server(with_server(None, shipped_server("loki-mem"), PATH), PATH) is None
    assert without_hooks(None, PATH) is None


def test_a_server_that_lies_elsewhere_now_is_renewed() -> None:
    old = with_server(None, shipped_server("/old/bin/loki-mem"), PATH)
    new = with_server(old, shipped_server("loki-mem"), PATH)
    assert json.loads(new)["mcpServers"]["loki"]["command"] == "loki-mem"
