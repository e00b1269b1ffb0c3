"""The command that worked in the end: in another form, by another program, or after another one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loki_memory.files.redaction import clip
from loki_memory.ingest.steps import Step
from loki_memory.models.error_noise import (
    INLINE,
    destroys,
    is_environment,
    is_self_explaining,
    is_usage,
)
from loki_memory.models.error_signature import CHAIN, head, is_other_form
from loki_memory.models.text import without_home

_SHOWN = 200  # characters of a command
_PROGRAM = 40  # characters of a program with its first words
_SHARED = 2  # parts of names that tell that two commands are about the same
_PART = 4  # letters of a part that tells
# Programs that change nothing that an error could have been about.
_READS = frozenset(
    re.findall(
        r"\w+",
        "cat ls head tail grep rg find wc echo pwd which stat file diff tree less more sed awk jq "
        "sort uniq ps env printenv date sleep true test cd",
    )
)
_ASKING = re.compile(
    r"(?:git (?:status|log|diff|show|branch|blame|ls-files|rev-parse|grep|remote|reflog)"
    r"|gh (?:pr|issue|run) (?:view|list|diff|checks|status)|gh api)\b"
)
_PREPARES = re.compile(  # what is run once so that a command works
    r"\b(?:install|add|generate|gen|sync|fetch|pull|init|login|start|up|migrate|build|fmt|format"
    r"|fix|tidy|read-tree|update|download|restore-deps|bootstrap|setup|types)\b",
    re.IGNORECASE,
)
_NOT_THERE = re.compile(
    r"command not found|not installed|executable file not found|is not recognized as",
    re.IGNORECASE,
)
_NO_MODULE = re.compile(r"No module named '?([\w.]+)")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
_PART_OF_COMMAND = re.compile(r"--?[a-z][\w-]*|[A-Za-z][\w-]+")
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")
_CONTINUED = re.compile(r"\\\n\s*")
_OUTPUT = re.compile(r"\s+2?>&?1?\s|\s*\||\s2>&1")
_SHORTENED = re.compile(r"(?:\s+2>&1|\s*\|\s*(?:head|tail|grep|cat|less|tee)\b[^|]*)+$")
_ASKS = re.compile(r"\s(?:--version|-V|--help|-h|help|version)\s*$")  # nothing was done
_INTERPRETERS = frozenset({"python", "node", "bash", "sh", "zsh", "ruby", "perl", "deno", "php"})
_FILE = re.compile(r"\.\w+$")
_MANNER = frozenset({"-q", "-v", "-vv", "-s", "-x", "-xvs", "--quiet", "--verbose", "--silent"})
_ASSIGNED = re.compile(r"^(?:[A-Za-z_]\w*=\S*\s+)+")


class Exchange(NamedTuple):
    """The program that failed, and the one that worked in its place."""

    wrong: str
    right: str


class Form(NamedTuple):
    """A command that worked."""

    command: str
    exchange: Exchange | None = None


def working_form(failed: Step, between: Sequence[Step], later: Step, error: str) -> Form | None:
    """The form of a command that worked; where it is the same, what was run before it."""
    wrong, form = _met_by(failed, error), ""
    if wrong:
        form = _most_like(wrong, _parts(later), head(failed.tool, wrong))
    if not wrong or not form:
        return None
    has_edited = any(step.worked and (step.hunks or step.tool == "Write") for step in between)
    if _gist(form) == _gist(wrong):
        found = _prepared(between, later, form)
        return found if found and (not has_edited or _brings_module(found, error)) else None
    found = _other_form(wrong, form, error)
    is_told = is_usage(error) or (found and found.exchange) or _brings_named(wrong, form, error)
    return found if is_told or not has_edited else None  # a change of a file may have mended it


def substitute(failed: Step, later: Iterable[Step], error: str) -> Form | None:
    """The command that did the work of one whose program is not there."""
    wrong = _met_by(failed, error)
    if not wrong or not _is_not_there(wrong, error):
        return None
    for step in later:
        for part in _parts(step) if step.is_shell else ():
            if not _only_reads(part) and len(_names(part) & _names(wrong)) >= _SHARED:
                shown = _told(part)
                exchange = Exchange(_program(wrong, part), _program(part, wrong))
                is_other = all(exchange) and exchange.wrong != exchange.right
                return Form(shown, exchange) if shown and is_other else None
    return None


def _brings_module(form: Form, error: str) -> bool:
    """Check if a command installs the module that an error misses."""
    module = _NO_MODULE.search(error)
    return bool(module and re.search(rf"\b{re.escape(module[1])}\b", form.command))


def _brings_named(wrong: str, form: str, error: str) -> bool:
    """Check if a form has a name that the error names and the failed one has not."""
    names = {*_PART_OF_COMMAND.findall(form)} - {*_PART_OF_COMMAND.findall(wrong)}
    return not names.isdisjoint(_PART_OF_COMMAND.findall(error))


def _is_not_there(command: str, error: str) -> bool:
    """Check if an error says that the program of a command is missing."""
    module = _NO_MODULE.search(error)
    return bool(_NOT_THERE.search(error) or (module and f"-m {module[1]}" in command))


def left_out(error: str, failed: str, command: str) -> str:
    """The option that an error names, if the command that worked does without it.

    >>> left_out("unknown flag: --stat", "gh pr diff 7 --stat", "gh pr diff 7 --name-only")
    '--stat'
    """
    given = [option for option in _OPTION.findall(error) if option in failed.split()]
    return given[0] if command and given and given[0] not in command.split() else ""


def is_replaced(refused: str, failed: str, command: str) -> bool:
    """Check that a command has another option in the place of a refused one, and nothing else new.

    >>> is_replaced("--stat", "gh pr diff 7 --stat", "gh pr diff 7 --name-only")
    True
    >>> is_replaced("--no-stat", "git show --no-stat", "git show")
    False
    """
    news = {*_gist(command)} - {*failed.split()}
    return bool(news) and all(word.startswith("-") and word != refused for word in news)


# -- which part of a chain -------------------------------------------------------------------------


def _met_by(failed: Step, error: str) -> str:
    """The command of a chain that met an error; empty if several may have."""
    name = head(failed.tool, failed.target, error)
    same = [part for part in _parts(failed) if head(failed.tool, part) == name]
    return same[0] if len({*same}) == 1 else ""


def _parts(step: Step) -> list[str]:
    parts = CHAIN.split(_CONTINUED.sub(" ", step.target))
    return [part.strip() for part in parts if part.strip()]


def is_same_command(failed: Step, later: Step) -> bool:
    """Check if a step runs a command that another one ran: of a chain, its first or last.

    Of an interpreter the script is the command.
    """
    if INLINE.search(failed.target) or INLINE.search(later.target):
        return False
    heads = failed.heads
    known = {*heads[:1], *heads[-1:]}
    scripts = {script for part in _parts(failed) if (script := script_of(part))}
    return any(
        head(later.tool, part) in known and _runs_script(part, scripts) for part in _parts(later)
    )


def _runs_script(part: str, scripts: set[str]) -> bool:
    script = script_of(part)
    return not _ASKS.search(part) and (not script or not scripts or script in scripts)


def script_of(part: str) -> str:
    """The script that an interpreter runs; empty if the command runs none."""
    words = _ASSIGNED.sub("", part).split()
    if not words or head("bash", words[0]) not in _INTERPRETERS:
        return ""
    given = next((word for word in words[1:] if not word.startswith("-")), "")
    return _last(given)


def _most_like(wrong: str, parts: Iterable[str], name: str) -> str:
    """Of the same command in other forms, the one that has most words of the failed one."""
    scripts = {script} if (script := script_of(wrong)) else set()
    same = [part for part in parts if head("bash", part) == name and _runs_script(part, scripts)]
    return max(same, key=lambda part: len({*part.split()} & {*wrong.split()}), default="")


# -- what worked -----------------------------------------------------------------------------------


def _prepared(between: Sequence[Step], later: Step, form: str) -> Form | None:
    """Return what was run so that the same command works."""
    before = [step.target for step in between if step.worked and step.is_shell]
    before += [part for part in _parts(later) if _gist(part) != _gist(form)]
    changing = [text for text in before if not _only_reads(text) and _PREPARES.search(text)]
    shown = _told(changing[-1]) if changing else ""
    return Form(shown) if shown else None


def _other_form(wrong: str, form: str, error: str) -> Form | None:
    shown = _told(form)
    if not shown:
        return None
    (old, *given), (new, *others) = (_ASSIGNED.sub("", text).split() for text in (wrong, form))
    exchange = Exchange(_last(old), _last(new))
    is_whole = given == others[: len(given)] or is_environment(error)
    if exchange.wrong != exchange.right and is_whole:
        return Form(shown, exchange)
    if _asks_otherwise(form) and not (is_usage(error) or is_environment(error)):
        return None
    is_told = is_other_form(wrong, form) and _brings_news(wrong, form, error)
    return Form(shown) if is_told else None


def _asks_otherwise(form: str) -> bool:
    """Check if a form asks, or gives a script other arguments: perhaps for something else."""
    return bool(_ASKING.match(form) or _FILE.search(script_of(form)))


def _brings_news(wrong: str, form: str, error: str) -> bool:
    """Check that a form has a word that the failed one and its error lack.

    Another path is news only where the error does not say itself what is wrong.

    >>> _brings_news("pip install -e app", "pip install -e ./app -q", "app should be a path")
    False
    """
    known = {*_PART_OF_COMMAND.findall(f"{wrong} {error}")}
    words = [word for word in _gist(form) if "/" not in word or not is_self_explaining(error)]
    return any(part not in known for part in _PART_OF_COMMAND.findall(" ".join(words)))


def _last(program: str) -> str:
    return re.split(r"[/\\]", program)[-1]


def _program(command: str, other: str) -> str:
    """The words of a command before the one that has most in common with the other command."""
    words, shared = _ASSIGNED.sub("", command).split(), _names(other)
    counts = [len(_names(f"_ {word}") & shared) for word in words]
    if not words or not max(counts):
        return ""
    found = " ".join([_last(words[0]), *words[1 : max(1, counts.index(max(counts)))]])
    return found if len(found) <= _PROGRAM else ""


def _names(command: str) -> frozenset[str]:
    """The parts of names in a command's arguments."""
    words = (word for word in command.split()[1:] if not word.startswith("-"))
    parts = (part for word in words for part in re.split(r"\W+", word))
    return frozenset(part for part in parts if len(part) >= _PART)


def _only_reads(command: str) -> bool:
    plain = _QUOTED.sub("_", command)
    parts = [part.strip() for part in re.split(r"&&|\|\||[;|\n]", plain) if part.strip()]
    return all(
        part.split()[0] in _READS or _ASKING.match(part) or INLINE.search(part) for part in parts
    )


def _gist(command: str) -> list[str]:
    """The words of a command without what is done with its output, and how much it shall say."""
    return [word for word in _OUTPUT.split(command)[0].split() if word not in _MANNER]


def _told(command: str) -> str:
    """A command as it is told; empty if nothing of it can be, or if it may destroy something."""
    plain = " ".join(_CONTINUED.sub(" ", command).split())
    if destroys(plain):
        return ""
    plain = _SHORTENED.sub("", plain)
    line = _HASH.sub("<hash>", without_home(plain))
    is_private = "~/" in line or "~\\" in line
    return clip(line, _SHOWN) if re.search(r"\w\W+\w", line) and not is_private else ""
