"""Choose the backend that the user's config or environment names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from loki_memory.language.anthropic_api import AnthropicApi
from loki_memory.language.commands import ClaudeCommand, CodexCommand
from loki_memory.language.model import LanguageModel
from loki_memory.language.openai_api import OpenAiServer
from loki_memory.language.recording import Recorded

if TYPE_CHECKING:
    from loki_memory.config import Config


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
