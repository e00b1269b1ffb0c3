"""The settings of a workspace that consolidation follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki_memory.consolidation.snapshot import Thresholds

if TYPE_CHECKING:
    from loki_memory.config import Config


def thresholds(config: Config) -> Thresholds:
    """The thresholds of a workspace, from its settings."""
    return Thresholds(
        cluster=config.get("consolidation.cluster") / 100,
        merge=config.get("consolidation.merge") / 100,
        surprise=config.get("consolidation.surprise") / 100,
        confident=config.get("consolidation.confident") / 100,
        support=config.get("consolidation.support"),
        pattern_episodes=config.get("consolidation.pattern_episodes"),
        skill_successes=config.get("consolidation.skill_successes"),
        resolutions=config.get("consolidation.resolutions"),
        error_names=config.get("consolidation.error_names"),
        topic_members=config.get("consolidation.topic_members"),
        links=config.get("consolidation.links"),
        link_half_life_days=config.get("consolidation.link_half_life_days"),
        summarise_days=config.get("consolidation.summarise_days"),
        archive_days=config.get("consolidation.archive_days"),
        superseded_days=config.get("consolidation.superseded_days"),
    )
