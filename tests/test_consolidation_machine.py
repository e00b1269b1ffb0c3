"""Two workspaces to which the same is done; one of them loses what its runs keep.

Whatever happens in between, each run of the one looks at what is new, each run of the other at
everything, and both hold the same memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from processes import record_files
from test_consolidation_branches import ERRORS, GOALS, SAYINGS, STEPS, THINGS, episode

from loki_memory import Fact, Workspace
from loki_memory.models import parse

ERROR_NUMBERS = st.lists(st.integers(0, len(ERRORS) - 1), max_size=2)
STEP_NUMBERS = st.lists(st.integers(0, len(STEPS) - 1), min_size=2, max_size=4)
OUTCOMES = st.sampled_from(["success", "success", "failure", "partial"])


class Twins(RuleBasedStateMachine):
    """`kept` runs with what was kept, `lost` without."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.kept = Workspace.init(self.folder / "kept")
        self.lost = Workspace.init(self.folder / "lost")
        self.number = self.day = 0

    def teardown(self) -> None:
        self.kept.close()
        self.lost.close()
        shutil.rmtree(self.folder)

    def both(self, act: Callable[[Workspace], object]) -> None:
        for one in (self.kept, self.lost):
            act(one)

    def some(self, kind: str, at: int) -> str | None:
        """The id of a memory of a kind; in `lost` it has the same."""
        found = sorted(one.id for one in self.kept.list(kind=kind))
        return found[at % len(found)] if found else None

    @rule(
        later=st.sampled_from([0, 0, 1, 9]),
        goal=st.sampled_from(GOALS),
        thing=st.sampled_from(THINGS),
        outcome=OUTCOMES,
        errors=ERROR_NUMBERS,
        steps=STEP_NUMBERS,
        at=st.integers(0, 9),
        helpful=st.none() | st.booleans(),
    )
    def record(
        self,
        later: int,
        goal: str,
        thing: str,
        outcome: str,
        errors: list[int],
        steps: list[int],
        at: int,
        helpful: bool | None,
    ) -> None:
        self.number += 1
        self.day = min(self.day + later, 300)
        told = episode(self.number, self.day, goal, thing, outcome, errors, steps).document()
        shown = self.some("anti-pattern", at)
        if shown and helpful is not None:
            told["recalled"] = [{"id": shown, "helpful": helpful}]
        self.both(lambda ws: ws.record(told))

    @rule(saying=st.sampled_from(SAYINGS))
    def tell(self, saying: dict[str, str]) -> None:
        self.both(lambda ws: ws.store.write(parse(Fact, saying)))

    @rule(kind=st.sampled_from(["episode", "anti-pattern"]), at=st.integers(0, 9))
    def forget(self, kind: str, at: int) -> None:
        if name := self.some(kind, at):
            self.both(lambda ws: ws.forget(name))

    @rule(kind=st.sampled_from(["pattern", "anti-pattern", "episode"]), at=st.integers(0, 9))
    def pin(self, kind: str, at: int) -> None:
        if name := self.some(kind, at):
            self.both(lambda ws: ws.pin(name))

    @rule(at=st.integers(0, 9))
    def archive(self, at: int) -> None:
        if name := self.some("episode", at):
            self.both(lambda ws: ws.archive(name))

    @rule()
    def consolidate(self) -> None:
        with self.lost.index.change() as change:
            change.keep_features("none", [], [])
        self.both(lambda ws: ws.consolidate())
        assert record_files(self.kept) == record_files(self.lost)


TestTwins = Twins.TestCase
TestTwins.settings = settings(max_examples=12, stateful_step_count=14, deadline=None)
