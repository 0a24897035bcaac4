"""How many consumers and queues would have kept up with the backlog of a finding, by the rates of the night."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from mqreplay.decisions.keeping_up import Needed, needed
from mqreplay.decisions.strategies import GroupSettings
from mqreplay.decisions.suppositions import GroupConsumers, Supposition, TopicQueues, counted_consumers, text_of
from mqreplay.suppose.backlog import BacklogRates, Progress, all_advanced, backlog_rates

STANDSTILLS: Final = ("lag_grows", "stuck_queue", "slow_listener")  # at least one queue did not advance
BACKLOGS: Final = (*STANDSTILLS, "disk_bound_catchup")
RESETS: Final = ("offset_jump", "offset_reset", "offset_rewind", "offset_beyond_max")
STILL: Final = "a queue stood still"
ASSUMPTION: Final = (
    "a member finishes at least what the slowest one finished during the finding, and at most what one finished in its "
    "fastest minute of the night; messages arrive as they did on average, and evenly if the queues are others"
)


@dataclass(frozen=True)
class Backlog:
    """What would have kept up with the backlog of a finding.

    ``least`` and ``most``: what is needed at the fastest rate of a member, and at its rate during the finding; or why
    that is not known. ``lasted_s``: how long the finding lasted. ``suppositions``: the setting that removes the finding
    under ASSUMPTION, and ``setting``, its text; both empty if the rates show none.
    """

    topic: str
    middle: dt.datetime
    rates: BacklogRates
    least: Needed | str
    most: Needed | str
    lasted_s: float
    had_members: bool
    suppositions: tuple[Supposition, ...]
    setting: str

    def as_plain(self) -> dict[str, Any]:
        """Return the numbers as plain values, for JSON: rates in messages per second."""
        return {
            "arrived": self.rates.total,
            "arrived_in_one_queue": self.rates.hottest,
            "finished_by_a_member": self.rates.meanwhile,
            "fastest_minute_of_a_member": self.rates.fastest,
            "members": self.rates.members,
            "seconds_without_members": self.rates.without_s,
            "least": self.least._asdict() if isinstance(self.least, Needed) else self.least,
            "most": self.most._asdict() if isinstance(self.most, Needed) else self.most,
        }


def backlog_of(
    known: Progress,
    row: dict[str, Any],
    lists: pl.DataFrame,
    stuck_s: int,
    groups: Mapping[str, GroupSettings],
    nodes: int,
) -> Backlog:
    """Return what would have kept up with the backlog of ``row`` of gold.finding; ``lists`` as in `needed`."""
    topic, since = row["topic"], row["from_ts"]
    until = row["to_ts"] or known.recorded.last
    rates = backlog_rates(known, topic, since, until)
    of_topic = lists.filter(pl.col("topic") == topic)
    least = needed(of_topic, rates.arrived, rates.fastest, groups, nodes)
    # One queue at least finished nothing: no rate of a whole member bounds what that queue needs.
    still = row["kind"] in STANDSTILLS and not (row["kind"] == "lag_grows" and all_advanced(known, topic, since, until))
    most = STILL if still else needed(of_topic, rates.arrived, rates.meanwhile, groups, nodes)
    lasted_s = (until - since).total_seconds()
    had_members = _had_members(rates, lasted_s, stuck_s)
    suppositions: tuple[Supposition, ...] = ()
    setting = ""
    if isinstance(least, Needed):
        group, listed = row["consumer_group"], of_topic["cid_all"].list.n_unique().item()
        if not had_members:
            suppositions = _supposed(group, topic, least, listed)
            queues = "" if least.queues is None else f", {text_of(TopicQueues(topic, least.queues))}"
            setting = f"{counted_consumers(least.members)} connected in {group}{queues}"
        elif not still and _is_more(least, rates):
            wanted = most if isinstance(most, Needed) else least
            suppositions = _supposed(group, topic, wanted, listed)
            setting = ", ".join(text_of(each) for each in suppositions)
    return Backlog(topic, middle_of(since, until), rates, least, most, lasted_s, had_members, suppositions, setting)


def _had_members(rates: BacklogRates, lasted_s: float, stuck_s: int) -> bool:
    """Return False if it is known that nobody was there; a member's last ``stuck_s`` seconds do not count."""
    if rates.members != 0 or rates.without_s is None or rates.meanwhile is not None:
        return True
    return rates.without_s < max(lasted_s - stuck_s, lasted_s / 2)


def middle_of(since: dt.datetime, until: dt.datetime) -> dt.datetime:
    """Return the instant between two others."""
    return since + (until - since) / 2


def _is_more(least: Needed, rates: BacklogRates) -> bool:
    """Return whether even the fastest rate of the night was not enough for the members that were connected."""
    if rates.members is None:
        return False
    return least.members > rates.members or least.queues is not None


def _supposed(group: str, topic: str, wanted: Needed, had: int) -> tuple[Supposition, ...]:
    queues = () if wanted.queues is None else (TopicQueues(topic, wanted.queues),)
    return (GroupConsumers(group, wanted.members - had), *queues) if wanted.members != had else queues


def text_of_backlog(found: Backlog) -> list[str]:
    """Return one line with the members that would have kept up, and one with the rates."""
    least, rates = found.least, found.rates
    if isinstance(least, str):
        line = f"how many consumers it needs is not known: {least}"
    elif not found.had_members:
        line = f"{_named(least, found.topic)} would have kept up; none was connected"
    else:
        line = f"needs {_bounds(least, found.most, found.topic)}; {_connected(found)}"
        line += "" if _is_more(least, rates) else ": their number is not shown to be the cause"
    if rates.total is None:
        return [line]
    parts = [f"{rates.total:,.1f}/s arrived, {rates.hottest:,.1f}/s of it in one queue"]
    parts += [f"a member finished {rates.meanwhile:,.1f}/s"] if rates.meanwhile is not None else []
    parts += [f"the fastest minute of one: {rates.fastest:,.1f}/s"] if rates.fastest is not None else []
    return [line, "; ".join(parts)]


def _bounds(least: Needed, most: Needed | str, topic: str) -> str:
    if isinstance(most, str):
        return f"{_named(least, topic)} or more"
    if least == most:
        return _named(least, topic)
    if least.queues is None and most.queues is None:
        return f"{least.members} to {counted_consumers(most.members)}"
    if least.queues is None:
        return f"{_named(least, topic)}, to {_named(most, topic)}"
    low = "" if least.members == most.members else f"{least.members} to "
    fewest = "" if least.queues == most.queues else f"{least.queues} to "
    return f"{low}{counted_consumers(most.members)} with {fewest}{text_of(TopicQueues(topic, most.queues or 0))}"


def _connected(found: Backlog) -> str:
    there, without_s = found.rates.members, found.rates.without_s
    if there is None or without_s is None:
        text = "how many were connected is not known"
    elif without_s >= 1:
        text = f"members were connected for {found.lasted_s - without_s:,.0f} of {found.lasted_s:,.0f} s"
    else:
        text = f"{there} {'was' if there == 1 else 'were'} connected"
    return f"{text}, and {STILL}" if found.most == STILL else text


def _named(wanted: Needed, topic: str) -> str:
    queues = "" if wanted.queues is None else f" with {text_of(TopicQueues(topic, wanted.queues))}"
    return f"{counted_consumers(wanted.members)}{queues}"
