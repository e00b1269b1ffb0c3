"""Failures: every error that an episode met, and what was done about it.

An error is either listed by the episode (`errors_encountered`) or belongs to an action that failed.
Its remedy is what the episode states, else the first later success of the same command in another
form; of a query, the names that were exchanged. Errors that teach nothing are left out
(`models/error_noise.py`). Instructions to the reader in a command's output are ignored, and a
download piped into a shell is never a remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from loki_memory.models import Action, Episode, error_signature
from loki_memory.models.diagnostics import rule
from loki_memory.models.error_noise import destroys, is_of_own_script, teaches
from loki_memory.models.error_signature import (
    CHAIN,
    Key,
    head,
    is_other_form,
    is_shell,
    salient,
    with_command,
)
from loki_memory.models.ids import digest
from loki_memory.models.prompt_injection import (
    dictates,
    pipes_download,
    without_advice,
    without_instructions,
)
from loki_memory.models.text import normal, shorten, without_home


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WITHIN = 25  # steps: a success that comes later belongs to something else
_SHOWN = 200  # characters of a command that worked
_SAID = 400  # characters of what somebody wrote
_NAMES = 4  # of the names that a repair brought in
_COMMON = 0.3  # of the words of a failed command that its corrected form still has
_ALIKE = 0.6  # of the letters of two names, where one is a correction of the other
_SAME = 0.6  # of the words of the shorter of two messages
_TERM = re.compile(r"\w{3,}")
_FAILED = frozenset({"fail", "failed", "failure", "error", "errored"})
_OUTPUT = re.compile(r"\s*(?:2>&1|>|\|)")
_NAMES_OF_PLACE = re.compile(r"`[^`]+`|\"[^\"]+\"|(?<!\w)'[^']+'(?!\w)")
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_LINES_OF_PLACE = re.compile(r"^\d+-\d+ | \(lines? \d+\)")
# A remedy that explains nothing.
BARE = re.compile(r"(?:Run|Change|Add|Remove) `|Mended before, ")
SILENCE = "Where the code is meant so, silence the rule and say why"
RULE = "rule "  # before the rule of a linter, in the key of its error
_EXAMPLE = ", e.g. "
EXAMPLE = " E.g. "  # before the example of a remedy in words
_ARROW = " -> "
_WITH = "with "
_LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")
_LOOKS_LIKE_CODE = re.compile(r"[=;_*/<>|()]|\s-")
_NAME = re.compile(r"--[a-z][\w-]+|[A-Za-z_]\w*")
_KEYWORDS = _words(
    "select from where group by order having join on as and or not in is null count sum avg "
    "min max distinct limit desc asc between like inner left right outer union intersect "
    "except exists case when then else end show tables describe columns t1 t2 t3 t4 the a an "
    "to of"
)


class Failure(NamedTuple):
    """One error in one episode."""

    id: str  # of the anti-pattern that it belongs to
    key: Key
    line: str  # what went wrong, in a sentence
    do: str  # what was done about it; empty if nothing is known
    names: frozenset[str]  # that this brought in, also those that `do` does not show
    worked: bool  # and it did not come again, and the episode did not fail
    command: str = ""  # that met it; of a linter's rule the key does not say
    is_own: bool = False  # an exception of a script that was run to see what the code does


class _Met(NamedTuple):
    """An error as it was written down; `step` is the action that met it, -1 if unknown."""

    line: str
    step: int
    resolution: str
    type: str = ""
    is_proven: bool = False  # the command that its remedy names has worked


class _Known(NamedTuple):
    """An error that was met, and the anti-pattern that it belongs to."""

    id: str
    key: Key
    met: _Met


class _Remedy(NamedTuple):
    """The remedy of an error, and the names that it brought in."""

    do: str = ""
    names: frozenset[str] = frozenset()


@lru_cache(maxsize=16384)
def group(do: str) -> str:
    """The key of a resolution: the exchange of names, or the advice, not its example."""
    return normal(do.partition(_EXAMPLE)[0].partition(EXAMPLE)[0])


def brought_in(do: str) -> frozenset[str]:
    """The names that an exchange says to use; none where it is told in other words.

    >>> sorted(brought_in("carts -> cart, item, e.g. SELECT name FROM cart JOIN item"))
    ['cart', 'item']
    """
    exchange, example, _ = do.partition(_EXAMPLE)
    _, arrow, new = exchange.partition(_ARROW)
    if not arrow and exchange.startswith(_WITH):
        new = exchange.removeprefix(_WITH)
    return _names(new) if example else frozenset()


def mishaps(episode: Episode) -> list[Failure]:
    """All errors of an episode that have a key, in its order."""
    known = (_recognised(episode, met) for met in _met(episode))
    found = [_mishap(episode, entry) for entry in known if entry]
    found = [failure for failure in found if failure.do or not failure.is_own]
    last = {failure.id: at for at, failure in enumerate(found)}
    final = {(failure.id, group(found[last[failure.id]].do)) for failure in found}
    return [
        failure._replace(worked=failure.worked and (failure.id, group(failure.do)) in final)
        for failure in found
    ]


def _met(episode: Episode) -> Iterator[_Met]:
    """Yield what the episode tells, then what only its actions tell."""
    log = episode.action_log
    failing = [at for at, action in enumerate(log) if action.error]
    told: set[int] = set()
    for error in episode.errors_encountered:
        whole = error.message or error.type
        steps = [at for at in failing if at not in told and _is_same(whole, log[at].error or "")]
        told.update(steps[:1])
        resolution = (error.resolution or "").strip()
        step, has_worked = steps[0] if steps else -1, bool(error.command)
        yield _Met(complaint(whole), step, resolution, error.type, has_worked)
    for at in failing:
        if at not in told:
            yield _Met(complaint(log[at].error or ""), at, "")


def _is_same(told: str, logged: str) -> bool:
    """Check that a log mentions an error: most words of the shorter text are common.

    A log often has only the first words of it, or its code.
    """
    entry, other = _terms(told), _terms(logged)
    least = min(len(entry), len(other))
    return least > 0 and len(entry & other) >= _SAME * least


# The same errors come again, in the same words: that is why they are kept.
@lru_cache(maxsize=16384)
def _terms(text: str) -> frozenset[str]:
    return frozenset(_TERM.findall(text.lower()))


@lru_cache(maxsize=16384)
def complaint(error: str) -> str:
    """The line of an error that says what went wrong."""
    return error_signature.complaint(without_instructions(error))


def key(error: str, action: str, target: str) -> Key | None:
    """The key of an error that an action met: of a linter's finding, its rule."""
    named = rule(error)
    if named:
        return Key("", f"{RULE}{named}", "")
    found = _key(error)
    return found and found._replace(head=head(action, target, complaint(error)))


@lru_cache(maxsize=16384)
def _key(error: str) -> Key | None:
    """The same, whoever met it."""
    return error_signature.key(error)


@lru_cache(maxsize=16384)
def _id(scope: str, found: Key) -> str:
    return f"anti-{digest('anti-pattern', scope, *found)}"


def _recognised(episode: Episode, met: _Met) -> _Known | None:
    action = episode.action_log[met.step] if met.step >= 0 else Action()
    if not teaches(met.line, action.action, action.target or ""):
        return None
    found = key(met.line, action.action, action.target or "")
    return found and _Known(_id(episode.scope, found), found, met)


def _mishap(episode: Episode, known: _Known) -> Failure:
    id_, found, met = known
    remedy = _remedy(episode, met, found)
    line = _general(met.line) if rule(met.line) else with_command(_public(met.line), found.head)
    worked = met.is_proven or episode.outcome != "failure"
    target = (episode.action_log[met.step].target or "") if met.step >= 0 else ""
    is_own = is_of_own_script(met.line, target)
    command = _reported_by(episode, met)
    return Failure(id_, found, line, *remedy, worked=worked, command=command, is_own=is_own)


def _reported_by(episode: Episode, met: _Met) -> str:
    """The command in whose output an error stood; empty for a chain, of which any may have it."""
    if met.step < 0:
        return _only_head("shell", met.type)
    action = episode.action_log[met.step]
    return _only_head(action.action, action.target or "")


def _only_head(action: str, target: str) -> str:
    parts = CHAIN.split(target) if is_shell(action) else [target]
    heads = {head(action, part) for part in parts} - {""}
    return heads.pop() if len(heads) == 1 else ""


def _public(line: str) -> str:
    """An error without what only one machine or one moment has: a home folder, a hash."""
    return _HASH.sub("<hash>", without_home(line))


def _general(line: str) -> str:
    """Return what a linter complains of, without the names of one place."""
    return _LINES_OF_PLACE.sub("", _NAMES_OF_PLACE.sub("`…`", line))


def _remedy(episode: Episode, met: _Met, found: Key) -> _Remedy:
    log = episode.action_log
    failed = (log[met.step].target or "") if met.step >= 0 else ""
    if pipes_download(met.resolution):
        return _Remedy()
    if met.resolution:
        is_command = met.step >= 0 and is_shell(log[met.step].action)
        if failed and not is_command and _is_corrected(failed, met.resolution):
            return _exchange(failed, met.resolution, found.param)
        return _Remedy(_cut(met.resolution, _SAID), brought_in(met.resolution))
    if met.step < 0 or episode.captured:
        return _Remedy()  # of a captured session `ingest` has judged what mended the error
    return _later(log[met.step : met.step + 1 + _WITHIN], found)


def _later(log: list[Action], found: Key) -> _Remedy:
    """The way in which the first action of a log came to succeed."""
    failed = _command(log[0])
    for later in log[1:]:
        fixed = _command(later)
        if not _has_worked(later) or head(later.action, fixed) != found.head or not fixed:
            continue
        if pipes_download(later.target or "") or destroys(fixed):
            return _Remedy()
        if dictates(log[0].error or "", failed, fixed):
            return _Remedy()
        if fixed == failed:
            return _Remedy()
        if is_shell(later.action) and not is_other_form(failed, fixed):
            continue
        if is_shell(later.action):
            return _Remedy(f"Run `{_cut(fixed, _SHOWN)}`", _names(fixed) - _names(failed))
        if failed.split()[:1] == fixed.split()[:1] or _is_corrected(failed, fixed):
            return _exchange(failed, fixed, found.param)
    return _Remedy()


def _command(action: Action) -> str:
    """Return what was run; what a shell does with the output is no part of it."""
    target = action.target or ""
    return _OUTPUT.split(target)[0].strip() if is_shell(action.action) else target


def _has_worked(action: Action) -> bool:
    return not action.error and (action.result or "").lower() not in _FAILED


def _is_corrected(failed: str, fixed: str) -> bool:
    """Check whether it is what failed in another form, not a sentence about it."""
    before, after = _names(failed), _names(fixed)
    if failed.split()[:1] == fixed.split()[:1] and _LOOKS_LIKE_CODE.search(fixed):
        return True
    return bool(before) and len(before & after) >= _COMMON * max(len(before), len(after))


def _exchange(failed: str, fixed: str, param: str) -> _Remedy:
    """`conductors -> conductor, e.g. SELECT name FROM conductor`; the command alone if all names
    stay.
    """
    before, after = _names(failed), _names(fixed)
    gone, new = sorted(before - after), sorted(after - before)
    command = _cut(fixed, _SHOWN)
    if not new and not gone:
        return _Remedy(command)
    name = param.rpartition(".")[2]
    old = [entry for entry in gone if entry == name] or gone
    shown = ", ".join(_nearest(name or " ".join(old), new))
    left = ", ".join(old[:_NAMES])
    exchange = f"{left}{_ARROW}{shown}" if left else f"{_WITH}{shown}"
    if not new:
        exchange = f"without {left}"
    return _Remedy(f"{exchange}{_EXAMPLE}{command}", after - before)


def _nearest(name: str, names: list[str]) -> list[str]:
    """The one that is spelled most like the old name, if one is; else the first few."""
    likeness = {other: _spelled_alike(name, other) for other in names}
    alike = [other for other in names if likeness[other] >= _ALIKE]
    alike.sort(key=lambda other: -likeness[other])
    return alike[:1] or names[:_NAMES]


@lru_cache(maxsize=65536)
def _spelled_alike(text: str, other: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, text, other, autojunk=False).ratio()


@lru_cache(maxsize=16384)
def _names(text: str) -> frozenset[str]:
    return frozenset(map(str.lower, _NAME.findall(_LITERAL.sub(" ", text)))) - _KEYWORDS


def _cut(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "\u2026"


# -- What went wrong in an episode: errors with what resolved them, failed steps -----------------


_LONGEST = 160
# `src/a.ts(12,5): error `, `7:48  error  `: where it was, which the next one is not.
_PLACE = re.compile(
    r"^(?:\S+?\(\d+,\d+\)|\S+?:\d+(?::\d+)?|\d+:\d+)[:\s-]+(?:error[:\s]+)?", re.IGNORECASE
)
_CHECK = re.compile(r"\b(?:tests?|lint|build|check|verify|tsc|mypy|ruff|\w*test|eslint|ci)\b")
_FAILED_OUTCOMES = {"fail", "failed", "failure", "error"}

_salient = lru_cache(maxsize=16384)(salient)


def resolved(episode: Episode) -> Iterator[tuple[str, str]]:
    """The errors that an episode got over, and what resolved them."""
    for error in episode.errors_encountered:
        met = without_advice(error.message or error.type)
        if met and error.resolution and not pipes_download(error.resolution):
            yield (met, error.resolution)


def failed(episode: Episode) -> Iterator[str]:
    """The steps that failed, each on a line; a check that fails did nothing wrong."""
    for action in episode.action_log:
        is_failure = action.error or (action.result or "").lower() in _FAILED_OUTCOMES
        if is_failure and not _is_check(action):
            yield line(_described(action))


def _is_check(action: Action) -> bool:
    return bool(_CHECK.search(f"{action.action} {action.target or ''}".replace("_", " ").lower()))


def _described(action: Action) -> str:
    done = " ".join(filter(None, (action.action, action.target)))
    met = _salient(without_advice(action.error or ""))
    return f"{done}: {met}" if met else done


@lru_cache(maxsize=16384)
def line(text: str) -> str:
    """The line that tells, without the place that it points to."""
    told = salient(text) if "\n" in text else text
    told = " ".join(_PLACE.sub("", told.strip()).split()).rstrip(".")
    return shorten(told, _LONGEST)
