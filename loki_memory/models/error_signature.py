"""Error signatures: the part of an error that stays the same when it occurs again.

The line that states the fault is found among the lines around it, and its variable parts (numbers,
addresses, paths, times) are masked. A quoted name is the thing that failed: the signature keeps it,
the broader class masks it too. The key of an error adds the command that met it; consolidation
identifies an error by its key, recall by its signature. Instructions to a reader in an output are
no part of either (`prompt_injection`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from loki_memory.models.prompt_injection import without_instructions

_LONGEST = 240  # characters; the rest of a longer line is data
_LINES = 400  # of a log: the first and the last lines say what failed
_PARAM = 40  # a longer value is data, not a name
_TRACEBACK = "Traceback (most recent call last):"
_NOISE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|</?tool_use_error>")  # colours; an agent's envelope
# In front of a line's text: pytest's margin, the name of the task that a runner prints.
_MARGIN = re.compile(r"^(?:E\s{2,}|\[[a-z][\w:-]*\] +(?=\S))")
# What Python reports of a broken .pth file each time that it starts, whatever it then does.
_STARTUP = re.compile(
    r"^Error processing line \d+ of .*?(?:^Remainder of file ignored[ \t]*\n?|(?=^…$)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_DATA = re.compile(r"^String: ", re.MULTILINE)  # from here on an editor repeats its input
# A compiler's position: `src/a.ts:12:5 - `, `a.ts(12,5): `, `./main.go:10:2: `.
_WHERE = re.compile(r"^(?:[A-Za-z]:)?[\w./\\@+-]+\.\w+(?::\d+(?::\d+)?|\(\d+,\d+\))\s*[:-]\s+")
# Dotted names whose last part matters: `T1.name` is `name`. Not so a table: the part before it is
# a database, and two databases have two tables.
_DOTTED = re.compile(r"\b(?:module|package|import|class|column|field|attribute)\b", re.IGNORECASE)
# No errors of the work: calls that stopped because of another one, and a person's refusal.
_NO_ERROR = re.compile(
    r"^\W*(?:sibling tool call errored|cancelled: parallel tool call"
    r"|\[?request interrupted by user|the user (?:doesn't|does not|didn't) want to"
    r"|user (?:rejected|declined|cancelled)|tool use was rejected)",
    re.IGNORECASE,
)
# An exception with its message on the next line.
_FOLDED = re.compile(r"^(\s*[\w.:]*(?:Error|Exception)):[ \t]*\n\s+(?=\S)", re.MULTILINE)
_THREAD = re.compile(r"\bthread (?:'[^']*'|\"[^\"]*\")")  # names the thread, not the fault
# Errors of many lines, of which an output may have lost the first: any of them identifies it.
_KNOWN = (
    (
        re.compile(r"externally-managed-environment|\bSee PEP 668\b"),
        "error: externally-managed-environment",
    ),
)
_EXCEPTION = re.compile(r"^[\w.]*(?:Error|Exception|Interrupt|Exit)\b\s*(?::|$|\[)")

# Salience: how well a line states the fault. The first rule that matches decides; the best line is
# taken, the first of equals. Starting point: section 2.5 of the study of consolidation; tuned by
# the golden outputs of `tests/errors`.
_SALIENCE = tuple(
    (score, re.compile(pattern))
    for score, pattern in (
        # The line only says that something failed above or below.
        (0, r"(?i)^\W*(?:exit (?:code|status)|command (?:failed|exited)|process exited)\W*\d*\W*$"),
        (0, r"(?i)\b(?:task failed|returned (?:a )?non-zero|ld returned \d+ exit status)\b"),
        (0, r"^(?:npm ERR! (?:code|errno|path|command|A complete log)|\$ |> |=== |ok\s)"),
        (0, r"^(?:PASS|FAIL|ok)\b\s*$|\[no test files\]|^--- PASS"),
        (0, r"(?i)^(?:error: )?(?:aborting due to|could not compile|build failed|recipe for)\b"),
        (0, r"(?i)^\W*\d+ (?:errors?|problems?|issues?|warnings?|passed|failed)\b.*$"),
        (0, r"^Traceback \(most|^During handling of|^The above exception"),
        (1, r"^make(?:\[\d+\])?: \*\*\*|^npm ERR! Lifecycle|^ELIFECYCLE|^FAIL\s"),
        (0.3, r"(?i)^\W*(?:hint|note|help|info|debug)\b|:\d+: note: "),
        (2, r"(?i)^\W*warn(?:ing)?\b|:\d+: warning: "),
        # The line names the exception, or is a compiler's complaint.
        (6, r"^(?:Uncaught )?[\w.]*(?:Error|Exception|Interrupt)\b(?: \[\w+\])?\s*(?::|$)"),
        (6, r"^(?:Exception in thread|Caused by: |panic: |fatal error: |called `)"),
        (6, r"\berror(?: TS\d+|\[E\d+\]| CS\d+)?: "),
        (
            6,
            r"\b(?:undefined(?:: | reference)|cannot (?:use |find symbol)|declared and not used)",
        ),
        (6, r"\bimported and not used|has no field or method|\bis not used\b"),
        # The line names the thing that is missing, closed or taken.
        (5, r"(?i)(?:not found|no such|permission denied|does not exist|doesn't exist)\b"),
        (5, r"(?i)\b(?:cannot|can't|unable to|could not|couldn't|conflict|already in use)\b"),
        (5, r"(?i)(?:^|\s)(?:error|fatal|ERR!)(?:\W|$)"),
        (5, r"^[\w./\\@+-]+\.\w+:\d+:\d+:? "),  # a linter's position
        (
            4,
            r"--- FAIL|^thread '.*' panicked|^FAILED |^\s*[\u2715\u25cf] |^not ok \d|^assert\b",
        ),
        (
            3,
            r"(?i)\b(?:exception|fail(?:ed|ure|s|ing)?|panicked|abort(?:ed)?|denied|refused)\b",
        ),
        (3, r"(?i)\b(?:unknown|undefined|unresolved|invalid|illegal|missing|unexpected)\b"),
        (3, r"(?i)\b(?:unsupported|ambiguous|duplicate|conflicts|timed? ?out|expected|mismatch)\b"),
        (
            3,
            r"(?i)\b(?:overflow|violat(?:es|ion)|already exists|does not|doesn't|rejected)\b",
        ),
        (3, r"(?i)\bnot (?:allowed|permitted|supported|defined|installed|recognized)|\bkilled\b"),
    )
)
_FAULT = 6  # a line that names the fault itself
_PLAIN = 0.5  # an unknown line is better than one that is known to say nothing

_QUOTED = re.compile(
    r"(?<!\w)'[^'\n]{0,120}'|\"[^\"\n]{0,120}\"|`[^`\n]{0,120}`"
    "|\u2018[^\u2019\n]{0,120}\u2019"
)
# Messages that name the thing without quotes.
_NAMED = re.compile(
    r"(?:satisfies the requirement|distribution found for|locate package|no such table:"
    r"|no such column:|not resolve host:|undefined:|undefined reference to"
    r"|No module named|no required module provides package)\s+([\w./@-]+)",
    re.IGNORECASE,
)
_MASKS = (
    (re.compile(r"https?://\S+"), "<url>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?Z?\b"), "<time>"),
    (re.compile(r"\b(?=[0-9a-f-]*\d)[0-9a-f]{7,}(?:-[0-9a-f]{4,})*\b", re.IGNORECASE), "<hex>"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\w.@~+-]*[/\\])+([\w.@+-]*)"), r"<path>\1"),
    (re.compile(r"0x[0-9a-f]+", re.IGNORECASE), "<hex>"),
    # The number of a diagnosis (TS7030, E0382, ORA-00942) or of a status is kept; so is that of a
    # name such as `sqlite3.Error`.
    (
        re.compile(
            r"(\b[A-Z]{1,6}-?\d{3,5}\b|\b[a-z]+\d(?=\.[A-Za-z])"
            r"|\b(?:HTTP|status|code) [45]\d\d\b)|\d+"
        ),
        "",
    ),
)
_MASK = re.compile(r"<(?:url|time|hex|path|n|name)>")
# The command in an anti-pattern's text; no part of the error.
_RUNNING = re.compile(r" \(running [^()]*\)$")


class Signature(NamedTuple):
    """An error at two levels of detail."""

    exact: str  # with the names that it complains about
    broad: str  # without them


class Key(NamedTuple):
    """The identity of an error: the command, the message, and the thing it is about."""

    head: str  # the command, or the tool
    template: str  # the salient line, masked
    param: str  # the name of the thing; empty if there is none


def signature(error: str) -> Signature | None:
    """The signature of an error message or of the output that holds one; None if there is none."""
    line = complaint(without_instructions(error))
    if not line:
        return None
    broad, names = _split(line)
    exact = broad
    for name in names:
        exact = exact.replace("<name>", name, 1)
    return Signature(exact, broad)


def key(error: str, action: str = "", target: str = "") -> Key | None:
    """The key of an error that an action met; None if the text is no error, or only says that
    there was one.
    """
    line = complaint(without_instructions(error))
    template = _template(line) if line else ""
    return Key(head(action, target, line), template, param(line)) if template else None


@lru_cache(maxsize=4096)  # the same errors occur again: that is why they are kept
def _template(line: str) -> str:
    """A line with masks for its variable words; empty if nothing else is left."""
    if not _salience(line):
        return ""
    broad, _ = _split(line)
    words = ["<*>" if _MASK.search(word) else word for word in broad.split()]
    kept = [word for at, word in enumerate(words) if word != "<*>" or words[at - 1 : at] != ["<*>"]]
    return " ".join(kept)


def complaint(error: str) -> str:
    """The salient line without its position; empty if the text is no error."""
    line = _WHERE.sub("", _RUNNING.sub("", salient(error)))
    return "" if _NO_ERROR.match(line) else line


def with_command(line: str, command: str) -> str:
    """An error with the command that met it, in a form that has the error's signature."""
    return f"{line} (running {command})" if command else line


def without_startup(output: str) -> str:
    """An output without what an interpreter complains of at every start."""
    return _STARTUP.sub("", output) if "Error processing line" in output else output


def states_fault(output: str) -> bool:
    """Tell whether a line of an output names an exception, or is a compiler's complaint."""
    lines = without_startup(output).splitlines()
    return any(_salience(line.strip()[:_LONGEST]) >= _FAULT for line in lines)


def salient(error: str) -> str:
    """The line that states the fault: see the table of salience; else the first line."""
    error = without_startup(error)
    known = next((line for pattern, line in _KNOWN if pattern.search(error)), "")
    if known:
        return known
    text = _DATA.split(_FOLDED.sub(r"\1: ", _NOISE.sub("", error)), maxsplit=1)
    lines = [line for line in (text[0].strip() or error).splitlines() if line.strip()]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES // 2], *lines[-_LINES // 2 :]]
    raised = _raised(lines)
    lines = [_MARGIN.sub("", line.strip()[:_LONGEST]) for line in lines]
    raised += [line for line in lines if _EXCEPTION.match(line)]
    if raised:
        return raised[-1].strip()[:_LONGEST]
    return lines[0] if len(lines) == 1 else max(lines, key=_salience, default="")


@lru_cache(maxsize=4096)
def param(line: str) -> str:
    """The name of the thing that failed: the first quoted one, without its folders."""
    quoted = _QUOTED.search(_THREAD.sub("thread", line))
    named = _NAMED.search(line)
    value = quoted.group()[1:-1] if quoted else named.group(1) if named else ""
    if len(value) > _PARAM or not value.strip() or any(map(str.isspace, value.strip())):
        return ""
    last = _last(value.strip().lower().rstrip(".,;:/\\"), line)
    return "" if re.fullmatch(r"(?:<(?:url|time|hex|n)>|\W)*", _masked(last)) else last


def _last(value: str, line: str) -> str:
    """`T1.name` is `name`, `/app/config.yml` is `config.yml`."""
    if "/" in value or "\\" in value:
        return re.split(r"[/\\]", value)[-1]
    return value.rpartition(".")[2] if _DOTTED.search(line) else value


@lru_cache(maxsize=4096)
def _split(line: str) -> tuple[str, tuple[str, ...]]:
    """A line with its quoted values masked, and those values as the exact grain writes them."""
    is_dotted = _DOTTED.search(line) is not None
    names = []
    for text in _QUOTED.findall(line):
        name = _masked(text[1:-1])
        last = name.rpartition(".")[2] if is_dotted and "<path>" not in name else ""
        names.append(last or name)
    return _masked(_QUOTED.sub("<name>", line)), tuple(names)


def _salience(line: str) -> float:
    return next((score for score, pattern in _SALIENCE if pattern.search(line)), _PLAIN)


def _raised(lines: list[str]) -> list[str]:
    """The last line of each traceback, whatever the exception's name."""
    found: list[str] = []
    inside = False
    for line in lines:
        if line.strip() == _TRACEBACK:
            inside = True
        elif inside and not line[0].isspace():
            found.append(line)
            inside = False
    return found


def _masked(text: str) -> str:
    for pattern, mask in _MASKS:
        text = pattern.sub(mask or (lambda found: found.group(1) or "<n>"), text)
    return " ".join(text.lower().split())


# -- The head of an action: the program and subcommand, or the tool -------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS = _words(
    "bash sh zsh shell terminal cmd command run exec execute execute_bash run_command "
    "run_shell run_terminal_cmd run_shell_command run_in_terminal powershell bashtool"
)
# Commands that only set a place or a variable.
_SETTING = _words(
    "cd pushd popd export set unset source . echo printf sleep true : mkdir ls pwd which test "
    "[ if then fi for do done while { } ( )"
)
_PREFIXES = _words(
    "sudo env time timeout nohup nice stdbuf exec command npx bunx pnpx uvx xargs then do"
)
_RUNNERS = _words("uv poetry pipenv hatch pdm rye")  # `uv run pytest` is pytest
_WITH_SUBCOMMAND = _words(
    "git go npm pnpm yarn bun pip cargo docker docker-compose podman kubectl helm terraform "
    "apt apt-get apk brew dnf yum conda uv poetry mise make gh aws gcloud az dotnet gradle "
    "mvn bundle gem rails mix composer php-artisan systemctl rustup alembic django-admin"
)
_SCRIPTS = _words("run exec")  # the next word names the script: `npm run build`
_VALUED = _words("-C -u -f -p -w --prefix --cwd --filter")  # options that a value follows
_OTHER_NAMES = {"apt-get": "apt", "python3": "python", "pip3": "pip", "nodejs": "node"}
CHAIN = re.compile(r"&&|\|\||[;\n]")  # between the commands of a line, a pipe being one command
_BETWEEN = re.compile(r"&&|\|\||[;|\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_VERSION = re.compile(r"(?<=[a-z])\d+(?:\.\d+)*$")  # `python3.11`, `pip3`
_SUBCOMMAND = re.compile(r"[a-z][\w:.-]*")
_NAME = re.compile(r"[\w.+-]+")
_TOOL = re.compile(r"[\w.:-]{1,60}")
# Errors that belong to one program, whatever chain of commands they came from.
_OWNERS = ((re.compile(r"externally-managed-environment"), "pip install"),)


def head(action: str, target: str = "", error: str = "") -> str:
    """`git commit` for a shell command, the name of any other tool; empty if neither is known.

    In a chain of commands it is the one that the error names, else the first that does something.
    """
    owner = next((name for pattern, name in _OWNERS if pattern.search(error)), "")
    if owner:
        return owner
    action = action.strip()
    if action.lower() in SHELLS:
        return _of_commands(target, error)
    if _TOOL.fullmatch(action):
        return action
    first = _of_commands(action, error)
    return first if _is_command(first, action) else ""


def is_shell(action: str) -> bool:
    """Check if the action is a shell's, so that its head is a command."""
    return action.strip().lower() in SHELLS or not _TOOL.fullmatch(action.strip())


def _is_command(first: str, text: str) -> bool:
    """Check for a command line, not a sentence such as `Add the route`."""
    program = first.partition(" ")[0]
    return program in _WITH_SUBCOMMAND or (
        text[:1].islower() and re.search(r"\s--?\w|[/|&]|\.\w+\b", text) is not None
    )


def _of_commands(line: str, error: str) -> str:
    heads = [found for found in map(_of_command, _BETWEEN.split(line[:2000])) if found]
    said = set(re.findall(r"[\w.-]+", error.lower()))
    named = error.partition(":")[0].strip()
    for found in heads:
        program, *subs = found.split()
        if program == named or said.intersection(subs[:1]):
            return found
    return heads[0] if heads else ""


def _of_command(line: str) -> str:
    words = _without_values(line.replace("(", " ").split())
    while words and (
        words[0] in _PREFIXES or _ASSIGNMENT.match(words[0]) or words[0][0] in "-0123456789"
    ):
        words.pop(0)
    if words[:1] and words[0] in _RUNNERS and words[1:2] == ["run"]:
        words = [word for word in words[2:] if not word.startswith("-")]
    if len(words) > 2 and _program(words[0]) == "python" and words[1] == "-m":  # noqa: PLR2004
        words = words[2:]
    if not words or words[0] in _SETTING:
        return ""
    program = _program(words[0])
    if program not in _WITH_SUBCOMMAND:
        return program
    given = [word for word in words[1:] if not word.startswith("-")]
    named = given[: 2 if given[:1] and given[0] in _SCRIPTS else 1]
    return " ".join([program, *takewhile(_SUBCOMMAND.fullmatch, named)])


def _without_values(words: list[str]) -> list[str]:
    return [
        word
        for at, word in enumerate(words)
        if word not in _VALUED and (at == 0 or words[at - 1] not in _VALUED)
    ]


def _program(word: str) -> str:
    name = re.split(r"[/\\]", word.strip("'\"`"))[-1]
    if not _NAME.fullmatch(name):
        return ""
    bare = _VERSION.sub("", name)
    name = bare if bare in {"python", "pip"} else name
    return _OTHER_NAMES.get(name, name)


def is_other_form(wrong: str, right: str) -> bool:
    """Tell a corrected command from another subcommand of its program.

    >>> is_other_form("gh pr --stat", "gh pr --name-only")
    True
    >>> is_other_form("harness.sh start", "harness.sh stop")
    False
    """
    (program, verb), (same, other) = ((*form.split()[:2], "", "")[:2] for form in (wrong, right))
    if program != same:  # the same words by another program: `pytest x` → `uv run pytest x`
        return len({*wrong.split()} & {*right.split()}) * 2 >= len({*wrong.split()})
    is_verb = verb[:1] != "-" and other[:1] != "-" and not re.search(r"[./]", other)
    return verb == other or not is_verb
