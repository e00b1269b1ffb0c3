"""Settings: of the workspace, of the user, of the environment; each with its meaning.

The workspace's `config.toml` comes with a clone and is data: a setting that names a path (a command
or an address would be another) is read from the user's file or the environment only. In a matter of
privacy or trust the workspace may be stricter than its user, but not laxer. Consolidation must give
the same result in every clone: its settings are read from the workspace's file only.
"""

from __future__ import annotations

import sys
from typing import Any, Literal, NamedTuple

FORMAT = 1
GIT_MODES = ("inline", "branch", "off")
_SWITCH = {"true": 1, "1": 1, "false": 0, "0": 0}
_LONGEST = 40  # characters of a value or a name in a message
_HIDDEN = "(hidden)"


class Setting(NamedTuple):
    """A key, its default, and its meaning; the default's type is the setting's: number or text."""

    name: str
    default: int | str
    meaning: str
    basis: str  # where the default comes from: a measurement, a document, or a decision
    is_switch: bool = False  # 0 or 1, written `false` or `true`
    names_path: bool = False
    shared: bool = False  # read from the workspace only, so that all its users have the same
    least: int = 0
    most: int | None = None
    choices: tuple[str, ...] = ()  # the values that a text may have, the strictest last
    is_personal: bool = False  # the user's alone: a workspace's file cannot set it
    is_secret: bool = False  # never shown
    # In a matter of privacy or trust: the lower or the higher of two values is stricter, or every
    # other value is laxer.
    stricter: Literal["", "lower", "higher", "same"] = ""
    # Less strict than the default, a value in the workspace's file counts once its user set it in
    # this clone: another author's file may not publish what happens here.
    asks: bool = False

    @property
    def variable(self) -> str:
        """The environment variable; empty if there is none."""
        return "" if self.shared else self.spelled

    @property
    def spelled(self) -> str:
        return "LOKI_" + self.name.replace(".", "_").upper()

    @property
    def form(self) -> str:
        if self.choices:
            return f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
        if isinstance(self.default, str):
            return "a text"
        if self.is_switch:
            return "true or false"
        upwards = "or more" if self.most is None else f"to {self.most}"
        return f"a whole number, {self.least} {upwards}"

    def parsed(self, raw: Any) -> int | str | None:
        """Parse the text of a file or a person; None if it is no value."""
        if self.choices:
            return raw if raw in self.choices else None
        if isinstance(self.default, str):
            return raw if isinstance(raw, str) else None
        if self.is_switch:
            return _SWITCH.get(str(raw).lower()) if is_plain(raw) else None
        return self._within(raw)

    def widens(self, value: int | str, other: int | str) -> bool:
        """Check if a value allows more than another one, in a matter of privacy or trust."""
        if self.stricter == "same":
            return value != other
        if self.stricter == "higher":
            return self._rank(value) < self._rank(other)
        return self.stricter == "lower" and self._rank(value) > self._rank(other)

    def _rank(self, value: int | str) -> int:
        return self.choices.index(value) if isinstance(value, str) else value

    def written(self, value: int | str) -> str:
        """A value as a person writes it."""
        if self.is_secret:
            return _HIDDEN if value else ""
        return str(bool(value)).lower() if self.is_switch else str(value)

    def _within(self, raw: Any) -> int | None:
        is_whole = isinstance(raw, int) and not isinstance(raw, bool)
        if not is_plain(raw) or not (is_whole or (isinstance(raw, str) and raw.isdecimal())):
            return None
        return int(raw) if self.least <= int(raw) <= (self.most or sys.maxsize) else None


def is_plain(raw: Any) -> bool:
    """Check for a text or a number that is short enough to convert and to show."""
    if isinstance(raw, str):
        return len(raw) <= _LONGEST
    return isinstance(raw, float) or (isinstance(raw, int) and abs(raw) <= sys.maxsize)


def shown(raw: Any) -> str:
    """A value for a message."""
    if isinstance(raw, str):
        return repr(cut(raw))
    return repr(raw) if is_plain(raw) else f"of type {type(raw).__name__}"


def cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def _consolidation(
    name: str, default: int, meaning: str, basis: str, *, least: int = 1, most: int | None = None
) -> Setting:
    return Setting(
        f"consolidation.{name}", default, meaning, basis, shared=True, least=least, most=most
    )


SETTINGS = (
    Setting(
        "store.lock_seconds",
        10,
        "how long a writer waits for another process before it gives up",
        "decision: longer than any write takes, shorter than anybody's patience",
    ),
    Setting(
        "sync.scan_limit",
        10_000,
        "up to this many files every command compares all of them; above, folders",
        "benchmarks/foundation.py: comparing so many takes about 30 ms",
    ),
    Setting(
        "sync.full_scan_seconds",
        300,
        "above that limit, how often all files are compared nevertheless",
        "decision: an edit in place is noticed within five minutes",
    ),
    Setting(
        "gc.keep_days",
        30,
        "how long `gc` leaves what was forgotten, or read of told sessions, on this machine",
        "decision: a month to change one's mind",
        stricter="lower",
        asks=True,
    ),
    Setting(
        "prune.days",
        0,
        "after how many days without a use `gc --prune` archives a fact; 0: never",
        "decision: nothing is forgotten unless that is asked for",
    ),
    Setting(
        "prune.relevance",
        0,
        "below which relevance `gc --prune` archives a fact, in hundredths; 0: never",
        "decision: nothing is forgotten unless that is asked for",
        most=100,
    ),
    Setting(
        "prune.facts",
        0,
        "how many facts `gc --prune` leaves, the most relevant; 0: all",
        "decision: nothing is forgotten unless that is asked for",
    ),
    Setting(
        "embedding.model",
        "auto",
        "auto, bundled, minilm, a folder that model2vec reads, or the URL of an OpenAI-like server",
        "decision: no download; auto is minilm where it is installed, in programs that stay",
        names_path=True,
    ),
    Setting(
        "embedding.hosted_model",
        "text-embedding-3-small",
        "the model to ask for where embedding.model is a URL",
        "decision: the smallest that OpenAI offers",
        is_personal=True,
    ),
    Setting(
        "embedding.key",
        "",
        "the key for that URL; it is not shown",
        "decision: a key belongs to its user",
        is_personal=True,
        is_secret=True,
    ),
    Setting(
        "recall.floor",
        68,
        "how certain recall must be of its best answer to answer at all, in hundredths",
        "benchmarks/recall/silence.py: silent on a third of foreign questions, on 2 % of its own",
        stricter="higher",
        asks=True,
    ),
    Setting(
        "recall.limit",
        5,
        "how many hits `recall` shows where -k is not given",
        "decision: what fits on half a screen; Lynkr has the same number",
        least=1,
    ),
    Setting(
        "context.format",
        "detailed",
        "the format of `context` where --format is not given",
        "decision: the one that people read; Lynkr has `system` and `preamble` for a harness",
        choices=("compact", "detailed", "json", "system", "preamble"),
    ),
    Setting(
        "continuity.budget",
        1000,
        "up to how many tokens CONTINUITY.md says",
        "decision: what an agent reads at every start must be short",
        stricter="lower",
        asks=True,
    ),
    Setting(
        "memory.enabled",
        1,
        "whether sessions are captured and memories are put before agents",
        "decision: memory that does nothing unasked is of no use; one key stops it",
        is_switch=True,
        stricter="lower",
    ),
    Setting(
        "memory.include_user",
        1,
        "whether the user's own memory is seen from this project",
        "decision: what holds everywhere should be said once; Lynkr has the same switch",
        is_switch=True,
        stricter="lower",
    ),
    Setting(
        "capture.scope",
        "local",
        "where episodes of sessions are kept: `project` (with the code), `local` (this machine)",
        "decision: sessions are private, lessons are shared",
        choices=("project", "local"),
        stricter="higher",
        asks=True,
    ),
    Setting(
        "publish.sessions",
        2,
        "in how many sessions a lesson must be met before it becomes a file that git tracks",
        "decision: once may be chance",
        least=1,
        stricter="higher",
        asks=True,
    ),
    Setting(
        "local.place",
        "here",
        "where what is private to this machine lies: here (with the clone) or home (by remote)",
        "decision: what belongs to a clone goes with it, unless its user wants to keep it",
        choices=("home", "here"),
        stricter="higher",
        asks=True,
    ),
    Setting(
        "capture.idle_minutes",
        5,
        "how long a session must have rested before it is told as episodes",
        "decision: longer than most pauses to think",
    ),
    Setting(
        "capture.ask",
        "eventful",
        "whether an agent is asked to word lessons when it stops: always, eventful or never",
        "decision: the agent that did the work knows best what it taught; once a session at most",
        choices=("always", "eventful", "never"),
        stricter="higher",
        asks=True,
    ),
    Setting(
        "daemon.autostart",
        1,
        "whether a session that begins starts a daemon for its workspace, if none runs",
        "benchmarks/hooks.py: hooks that a daemon answers cost little more than a bare Python",
        is_switch=True,
        stricter="lower",
    ),
    Setting(
        "daemon.idle_minutes",
        30,
        "after how many minutes without a question a daemon that a session started ends",
        "decision: longer than most pauses, and gone after the day's work",
        least=1,
    ),
    Setting(
        "watch.debounce_ms",
        200,
        "how long files must be quiet before the watcher looks at them, in milliseconds",
        "decision: longer than a burst of writes pauses, shorter than anybody waits",
    ),
    Setting(
        "watch.scan_seconds",
        60,
        "how often the watcher compares all files even if nothing told it of a change",
        "decision: comparing 10,000 files once a minute is a twentieth of a percent of a core",
        least=1,
    ),
    Setting(
        "watch.poll",
        0,
        "whether the watcher looks at intervals only, and does not ask the kernel for changes",
        "decision: it finds out by itself where the kernel does not tell",
        is_switch=True,
    ),
    Setting(
        "watch.poll_seconds",
        5,
        "how often the watcher compares all files where the kernel does not tell of changes",
        "decision: half a percent of a core with 10,000 files",
        least=1,
    ),
    Setting(
        "watch.idle_seconds",
        300,
        "how long memory must be quiet before the watcher consolidates what is new",
        "decision: as long as a session must rest before it is told",
    ),
    Setting(
        "watch.episodes",
        20,
        "how many new episodes are enough for the watcher to consolidate at once",
        "decision: about a day of work",
        least=1,
    ),
    Setting(
        "git.mode",
        "inline",
        "how git keeps memory: inline (with the code), branch (on loki-memory) or off",
        "decision: memory that travels with the code is reviewed with it",
        choices=GIT_MODES,
        stricter="higher",
    ),
    Setting(
        "git.commit",
        "ask",
        "whether `consolidate` commits memory: ask (with --commit only) or auto",
        "decision: memory is committed with the code, by whom the commit is",
        choices=("auto", "ask"),
        stricter="higher",
        asks=True,
    ),
    Setting(
        "git.sign",
        0,
        "whether commits of memory are signed, with an SSH key that needs no prompt",
        "decision: most repositories have no such key",
        is_switch=True,
        stricter="higher",
    ),
    Setting(
        "trust.require_signature",
        0,
        "whether only what a signed or reviewed commit brought in is put before agents",
        "decision: most repositories sign nothing",
        is_switch=True,
        stricter="higher",
    ),
    Setting(
        "memory.stale",
        0,
        "whether beliefs are told unasked although code that they cite has changed since",
        "decision: what was true of the old code may mislead",
        is_switch=True,
        stricter="lower",
        asks=True,
    ),
    Setting(
        "trust.branch",
        "",
        "the branch of the remote whose memory counts as reviewed; empty: the remote's default",
        "decision: what is on the default branch went through review",
        stricter="same",
        asks=True,
    ),
    Setting(
        "trust.remotes",
        "",
        "remotes that need no `loki-mem trust`, apart by blanks, such as `example.org/shop/*`",
        "decision: for machines without a user, such as those of CI",
        is_personal=True,
    ),
    Setting(
        "continuity.track",
        0,
        "whether git tracks CONTINUITY.md",
        "decision: it changes with every task",
        is_switch=True,
        stricter="lower",
        asks=True,
    ),
    Setting(
        "language.backend",
        "off",
        "the language model that words lessons: off, claude, codex, anthropic, openai or recorded",
        "decision: nothing leaves this machine unless its user says so",
        choices=("claude", "codex", "anthropic", "openai", "recorded", "off"),
        is_personal=True,
    ),
    Setting(
        "language.model",
        "",
        "the name of that model; empty: the backend's own choice",
        "decision: names of models change faster than this program",
        is_personal=True,
    ),
    Setting(
        "language.url",
        "",
        "the address of the server for `openai`, such as http://localhost:11434/v1",
        "decision: no server is asked that its user did not name",
        is_personal=True,
    ),
    Setting(
        "language.timeout_seconds",
        60,
        "how long one answer of the language model may take",
        "decision: a small model answers in seconds, a local one may need a minute",
        least=1,
        is_personal=True,
    ),
    Setting(
        "language.calls_per_run",
        20,
        "how many questions one `consolidate` may ask; each has up to 12 memories",
        "decision: more than a day of work teaches; a first run may need several",
        is_personal=True,
    ),
    Setting(
        "language.tokens_per_day",
        200_000,
        "how many tokens a workspace may spend on the language model in a day",
        "decision: some ten times a busy day, so that a mistake costs cents",
        is_personal=True,
    ),
    Setting(
        "language.input_price",
        0,
        "what a million tokens of input cost in US cents, for the report of costs; 0: not known",
        "decision: prices are the user's to know; `claude` reports its cost by itself",
        is_personal=True,
    ),
    Setting(
        "language.output_price",
        0,
        "what a million tokens of output cost in US cents; 0: not known",
        "decision: as for the input",
        is_personal=True,
    ),
    Setting(
        "language.recording",
        "",
        "a file of answers: `recorded` replays it, any other backend appends its answers to it",
        "decision: for tests and CI, which ask nobody",
        names_path=True,
    ),
    _consolidation(
        "cluster",
        45,
        "how alike tasks must be to be of one kind, in hundredths",
        "benchmarks/consolidation/lessons.py: as good from 35 to 50; calibrate.py would choose 75",
        most=100,
    ),
    _consolidation(
        "merge",
        50,
        "how alike two statements must be to be merged, in hundredths",
        "benchmarks/consolidation/calibrate.py: precise from 20 to 80, thanks to the guards",
        most=100,
    ),
    _consolidation(
        "surprise",
        30,
        "how surprising a statement of a session must be to make a fact, in hundredths",
        "Lynkr's documents: .3; tests/golden/surprise.tsv",
        least=0,
        most=100,
    ),
    _consolidation(
        "confident",
        80,
        "the confidence from which on a belief is active, in hundredths",
        "benchmarks/consolidation/confidence.py: two clean sessions",
        most=100,
    ),
    _consolidation(
        "support",
        2,
        "how many sessions must confirm a belief before it is active",
        "decision: once is an anecdote",
    ),
    _consolidation(
        "pattern_episodes",
        2,
        "how many episodes must have had a lesson before it is a pattern",
        "decision: once is an anecdote",
    ),
    _consolidation(
        "skill_successes",
        3,
        "how many successes must share steps before these are a skill",
        "decision: two may share steps by chance",
    ),
    _consolidation(
        "resolutions",
        3,
        "how many remedies an anti-pattern keeps",
        "measured: the right one was offered in 85 % with one, in 91 % with three",
    ),
    _consolidation(
        "error_names",
        3,
        "with how many names an error must have come before it is one error with any name",
        "decision: two may be chance",
        least=2,
    ),
    _consolidation(
        "topic_members",
        5,
        "how many beliefs of one category make a topic",
        "decision: fewer are read faster than their summary",
        least=2,
    ),
    _consolidation(
        "links",
        3,
        "how many links to other memories are kept per memory",
        "decision: each is a file that somebody reviews",
        least=0,
    ),
    _consolidation(
        "link_half_life_days",
        45,
        "after how many days an association of two memories is worth half",
        "decision: met twice and never again, it is gone after three and a half months",
    ),
    _consolidation(
        "summarise_days",
        7,
        "after how many days the log of an episode is summarised",
        "Loki Mode's documents",
    ),
    _consolidation(
        "archive_days",
        30,
        "after how many days an episode that nothing rests on is archived",
        "Loki Mode's documents",
    ),
    _consolidation(
        "superseded_days",
        90,
        "after how many days a belief that was superseded, but not by its twin, is archived",
        "decision: a season to object",
    ),
)


class Value(NamedTuple):
    """A setting's present value, and its source."""

    setting: Setting
    value: int | str
    source: str  # default, user, workspace or environment


class Config(NamedTuple):
    """The present values of all settings, unknown keys, and values that are ignored and why."""

    values: dict[str, Value]
    unknown: list[str]
    ignored: list[str]

    def get(self, name: str) -> int:
        return int(self.values[name].value)

    def text(self, name: str) -> str:
        return str(self.values[name].value)
