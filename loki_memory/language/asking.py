"""Ask a language model: within a budget, in a form that can be checked, with data in a fence.

    ask(task, payload, schema) -> answer | None

`None` is a normal answer: the caller has a text of its own. Why there was none is said once. What
it cost is noted by day, for the budget of a day.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from loki_memory.files import disk
from loki_memory.files.redaction import impersonal_value, redact_value
from loki_memory.language.apis import AnthropicApi, OpenAiServer
from loki_memory.language.commands import ClaudeCommand, CodexCommand
from loki_memory.language.model import (
    LanguageModel,
    ModelReply,
    ModelRequest,
    Recorded,
    Unanswered,
    recorded_lines,
)
from loki_memory.language.wordings import OFF, read_wordings
from loki_memory.models.text import tokens
from loki_memory.resources import template

if TYPE_CHECKING:
    from loki_memory.config import Config
    from loki_memory.homes import OpenWorkspace


# -- the budget of a day ---------------------------------------------------------------------------


_DAYS = 31  # that are kept
_CENTS = 100 * 1_000_000  # a price is in cents for a million tokens


class Usage(NamedTuple):
    """Questions to a language model, and what they cost."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0  # US dollars, as far as it is known

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, other: Usage) -> Usage:
        """The sum of both."""
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
        )


def price(input_tokens: int, output_tokens: int, input_price: int, output_price: int) -> float:
    """The cost in dollars, from prices in cents for a million tokens.

    >>> price(1_000_000, 100_000, 100, 500)
    1.5
    """
    return (input_tokens * input_price + output_tokens * output_price) / _CENTS


def usage_path(local: Path) -> Path:
    return local / "language" / "usage.json"


def read_usage(local: Path) -> dict[str, Usage]:
    """Read the cost of each day; a file that cannot be read counts as nothing."""
    try:
        days = json.loads(disk.read_bytes(usage_path(local)) or b"{}")
        return {day: Usage(*values) for day, values in days.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def note_usage(local: Path, day: str, new: Usage) -> None:
    """Add to the cost of a day."""
    days = read_usage(local)
    days[day] = days.get(day, Usage()).plus(new)
    kept = {name: days[name] for name in sorted(days)[-_DAYS:]}
    disk.write_bytes(usage_path(local), json.dumps(kept, indent=1).encode(), private=True)


# The language model of a workspace in a line: which it is, what it has done, what it cost.

_COMMANDS = frozenset({"claude", "codex"})


class LanguageState(NamedTuple):
    """The line of a doctor about the language model."""

    said: str
    is_ready: bool


def language_state(workspace: OpenWorkspace) -> LanguageState | None:
    """Describe the language model; None if it is off."""
    name = workspace.config.text("language.backend")
    if name == OFF:
        return None
    if name in _COMMANDS and shutil.which(name) is None:
        return LanguageState(f"{name} is chosen, and there is no such command on PATH", False)
    if name == "openai" and not workspace.config.text("language.url"):
        return LanguageState("openai is chosen, and `language.url` names no server", False)
    local = workspace.layout.local
    wordings = read_wordings(local).values()
    worded = sum(bool(wording.text) for wording in wordings)
    today = read_usage(local).get(workspace.now()[:10], Usage())
    cost = f", ${today.cost:.4f}" if today.cost else ""
    spent = f"today {today.calls} calls, {today.tokens:,} tokens{cost}"
    return LanguageState(
        f"{name}: {worded} worded, {len(wordings) - worded} refused; {spent}", True
    )


# -- asking ----------------------------------------------------------------------------------------


A = TypeVar("A", bound=BaseModel)
_ANSWER_TOKENS = 90  # for an item: a text of 300 characters and its id
_BLOCK = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)


class Prompt(NamedTuple):
    """A file of `templates/prompts/`."""

    name: str
    version: str
    text: str

    @property
    def mark(self) -> str:
        """The name and the version: an answer to another version is asked for again."""
        return f"{self.name} {self.version}"


def prompt(task: str) -> Prompt:
    """Read the prompt of a task."""
    head, _, text = template(f"prompts/{task}.md").partition("\n\n")
    return Prompt(task, head.removeprefix("version:").strip(), text)


class Asker:
    """One run's questions to a language model."""

    def __init__(self, model: LanguageModel, config: Config, local: Path, day: str) -> None:
        self._model, self._config, self._local, self._day = model, config, local, day
        self.used = Usage()
        self.failed = ""  # why there was no answer, the first time
        self.by = config.text("language.backend")
        self.chosen = chosen_model(config)
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more can be asked in this run."""
        return self._is_over

    def ask(self, task: str, payload: Sequence[Mapping[str, Any]], schema: type[A]) -> A | None:
        """Ask about items; None if the budget is spent, or no answer has the form of the schema."""
        items = tuple(clean(item) for item in payload)
        request = _request(prompt(task), items, schema)
        if self._is_over or self._is_spent(request):
            return None
        try:
            reply = self._model.ask(request)
            self._note(reply)
            answer = _checked(reply.answer, schema)
        except Unanswered as error:
            self._give_up(str(error), is_over=error.is_over)
            return None
        self._record(task, items, answer)
        return answer

    def _give_up(self, why: str, *, is_over: bool) -> None:
        self.failed = self.failed or why
        self._is_over = self._is_over or is_over

    def _is_spent(self, request: ModelRequest) -> bool:
        """Check the budgets of the run and of the day before anything is sent."""
        calls, most = self.used.calls, self._config.get("language.calls_per_run")
        today = read_usage(self._local).get(self._day, Usage()).tokens
        room = self._config.get("language.tokens_per_day") - today
        if calls >= most:
            self._give_up(f"{most} calls are the budget of a run", is_over=True)
        elif estimate(request) > room:
            self._give_up("the budget of tokens for today is spent", is_over=True)
        return self._is_over

    def _note(self, reply: ModelReply) -> None:
        """Count what an answer cost; a replayed one costs nothing."""
        if isinstance(self._model, Recorded):
            self.used = self.used.plus(Usage(calls=1))
            return
        counts, config = (reply.input_tokens, reply.output_tokens), self._config
        prices = config.get("language.input_price"), config.get("language.output_price")
        computed = price(*counts, *prices)
        new = Usage(1, *counts, computed if reply.cost is None else reply.cost)
        self.used = self.used.plus(new)
        self.by = ", ".join(filter(None, (self._config.text("language.backend"), reply.model)))
        note_usage(self._local, self._day, new)

    def _record(self, task: str, items: Sequence[Mapping[str, Any]], answer: BaseModel) -> None:
        """Append answers to the recording that the user's config names."""
        path = self._config.text("language.recording")
        if not path or isinstance(self._model, Recorded):
            return
        answers = {entry["id"]: entry for entry in answer.model_dump()["items"]}
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(recorded_lines(task, items, answers))


def chosen_model(config: Config) -> str:
    """The backend and the model as the settings name them."""
    return " ".join((config.text("language.backend"), config.text("language.model"))).rstrip()


def clean(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item without secrets and without personal data: it may leave this machine."""
    found: Any = impersonal_value(redact_value(dict(item)))
    return dict(found)


def estimate(request: ModelRequest) -> int:
    """The tokens that a question and its answer may take."""
    asked = tokens(request.system + request.prompt)
    return asked + _ANSWER_TOKENS * len(request.items)


def request_for(task: str, payload: Sequence[Mapping[str, Any]], schema: type[A]) -> ModelRequest:
    """The question as it would be sent."""
    return _request(prompt(task), tuple(clean(item) for item in payload), schema)


def _request(asked: Prompt, items: tuple[dict[str, Any], ...], schema: type[A]) -> ModelRequest:
    form = schema.model_json_schema()
    data = json.dumps(items, ensure_ascii=False, indent=1)
    nonce = secrets.token_hex(8)  # nobody who wrote the data can have known it: no early end
    fenced = (
        f"Answer with JSON that follows this schema, and with nothing else:\n{json.dumps(form)}\n\n"
        f"The items stand between two lines with the mark {nonce}.\n"
        f"<data {nonce}>\n{data}\n</data {nonce}>"
    )
    return ModelRequest(asked.name, asked.text, fenced, form, items)


def _checked(answer: str | dict[str, Any], schema: type[A]) -> A:
    """The answer in its form; raises Unanswered."""
    try:
        if isinstance(answer, dict):
            return schema.model_validate(answer)
        block = _BLOCK.fullmatch(answer)
        return schema.model_validate_json(block[1] if block else answer)
    except ValidationError as error:
        raise Unanswered("an answer does not follow its schema", is_over=False) from error


def write_private(path: Path, value: object) -> None:
    """Write JSON that only its user may read."""
    data = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
    disk.write_bytes(path, data.encode("utf-8", "surrogatepass"), private=True)


# Choose the backend that the user's config or environment names.


def backend(config: Config, environment: Mapping[str, str]) -> LanguageModel | None:
    """The language model of a user; None if it is off."""
    name, model = config.text("language.backend"), config.text("language.model")
    url, timeout = config.text("language.url"), config.get("language.timeout_seconds")
    models: dict[str, LanguageModel] = {
        "claude": ClaudeCommand(model, timeout),
        "codex": CodexCommand(model, timeout),
        "anthropic": AnthropicApi(model, timeout, url),
        "openai": OpenAiServer(url, model, timeout, environment),
        "recorded": Recorded(config.text("language.recording")),
    }
    return models.get(name)
