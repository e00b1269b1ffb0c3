"""Summaries of episodes: what is left of one when its details no longer matter.

A summary keeps the goal, the outcome, every error with its repair, and the moves that were made,
so that everything that is learned from an episode can be learned from its summary too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from loki_memory.consolidation.step_sequences import move, runs
from loki_memory.consolidation.work_context import step_kind
from loki_memory.models import Action, Episode

SUMMARY = "summary"
_REPAIR = 25  # actions after a failure among which its repair is looked for
_FAILED = frozenset({"fail", "failed", "failure", "error", "errored"})
_LONG = 200  # characters of a target that a summary keeps


def is_terse(episode: Episode) -> bool:
    """Check whether an episode is a summary already, or a summary would not be shorter."""
    return (episode.model_extra or {}).get("detail") == SUMMARY or summary(episode) is None


def summary(episode: Episode) -> Episode | None:
    """The episode with a log that has each move once, whole where it failed or was repaired.

    None if that says as much in as many words.
    """
    essence = _essence(episode.action_log)
    if essence == episode.action_log:
        return None
    kept = [action.model_dump(mode="json", exclude_unset=True) for action in essence]
    counts = Counter(move(action).head for action in episode.action_log if action.action)
    repeated = {name: n for name, n in sorted(counts.items()) if n > 1}
    short = episode.changed(
        action_log=kept, detail=SUMMARY, **({"action_counts": repeated} if repeated else {})
    )
    return short if _size(short) < _size(episode) else None


def _size(episode: Episode) -> int:
    return len(episode.model_dump_json(exclude_unset=True))


def _essence(actions: Sequence[Action]) -> list[Action]:
    """The first action of each stretch and kind, slim; the first, the last, failures and repairs
    whole; and every step after a failure: how many there were says what belongs to its repair.
    """
    whole = {0, len(actions) - 1, *_failures(actions), *_repairs(actions)}
    whole |= {at for at, action in enumerate(actions) if not action.action}  # who knows what it was
    after = {at for failed in _failures(actions) for at in _soon(actions, failed)}
    numbers = {id(action): at for at, action in enumerate(actions)}
    first = {numbers[id(stretch[0])] for _, stretch in runs(actions)}
    first |= _first_of_kind(actions)
    return [
        action if at in whole else _slim(action, is_short=at not in after)
        for at, action in enumerate(actions)
        if at in whole or at in after or at in first
    ]


def _first_of_kind(actions: Sequence[Action]) -> set[int]:
    """Return where each kind of step, by which episodes are found to be alike, is taken first."""
    return set({step_kind(action): at for at, action in reversed([*enumerate(actions)])}.values())


def _failures(actions: Sequence[Action]) -> Iterator[int]:
    for at, action in enumerate(actions):
        if action.error or (action.result or "").lower() in _FAILED:
            yield at


def _soon(actions: Sequence[Action], failed: int) -> range:
    return range(failed + 1, min(failed + 1 + _REPAIR, len(actions)))


def _repairs(actions: Sequence[Action]) -> Iterator[int]:
    """From each failure to the last time soon after that the same was tried.

    What was done in between is the remedy.
    """
    made = [move(action) for action in actions]
    for failed in _failures(actions):
        again = [at for at in _soon(actions, failed) if made[at] == made[failed]]
        yield from range(failed + 1, again[-1] + 1 if again else failed + 1)


def _slim(action: Action, *, is_short: bool) -> Action:
    """An action without its payload, and with a long target cut."""
    target = action.target
    if target and is_short and len(target) > _LONG:
        cut = Action(action=action.action, target=target[:_LONG])
        is_same = (move(cut), step_kind(cut)) == (move(action), step_kind(action))
        target = cut.target if is_same else target
    return Action(action=action.action, **({"target": target} if target else {}))
