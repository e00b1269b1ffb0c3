"""Timeline: sessions by day and agent, errors that stopped, and tokens over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.ui.page import Visit, page, render
from loki_memory.ui.pages.told import activity

if TYPE_CHECKING:
    from loki_memory.browse.activity import DayOfTokens, DayOfWork, Prevention
    from loki_memory.workspace import Workspace

_DAYS = 14  # with sessions, on one page
_BARS = 60  # days with recalls in the chart
_HEIGHT = 60  # of the chart, in its own units


class Bar(NamedTuple):
    """One day of the chart."""

    day: str
    recalls: int
    offered: int
    x: int
    height: int  # of what was offered


class TimelinePage(NamedTuple):
    """The data of the page Timeline."""

    agent: str  # the filter; empty for all
    agents: list[str]
    days: list[DayOfWork]
    older: str  # the day from which the next page goes on; empty if this is the last
    prevention: Prevention
    bars: list[Bar]
    offered: int  # tokens that memory offered, in all
    episodes: int  # that were looked at
    more: bool  # whether older episodes were left out


def timeline_page(workspace: Workspace, agent: str = "", before: str = "") -> TimelinePage:
    found = activity(workspace)
    agents = sorted({session.agent for day in found.days for session in day.sessions} - {""})
    days = [_of_agent(day, agent) for day in found.days if not before or day.day < before]
    days = [day for day in days if day.sessions]
    return TimelinePage(
        agent=agent,
        agents=agents,
        days=days[:_DAYS],
        older=days[_DAYS - 1].day if len(days) > _DAYS else "",
        prevention=found.prevention,
        bars=bars(found.tokens),
        offered=sum(day.offered for day in found.tokens),
        episodes=found.episodes,
        more=found.more,
    )


def _of_agent(day: DayOfWork, agent: str) -> DayOfWork:
    if not agent:
        return day
    return day._replace(sessions=[it for it in day.sessions if it.agent == agent])


def bars(tokens: list[DayOfTokens]) -> list[Bar]:
    """The chart of the last days: heights are parts of the day that offered most."""
    shown = tokens[-_BARS:]
    most = max((day.offered for day in shown), default=0) or 1
    return [
        Bar(*day, x=10 * at, height=max(1, round(_HEIGHT * day.offered / most)))
        for at, day in enumerate(shown)
    ]


def timeline(visit: Visit) -> Response:
    data = timeline_page(visit.workspace, visit.query("agent"), visit.query("before"))
    return render(visit, "timeline.html", data)


routes = page("/timeline", timeline)
shapes: dict[str, Any] = {"timeline": TimelinePage}
