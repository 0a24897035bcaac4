"""The commands that concern a finding: the state then, and what another setting would have changed."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from mqreplay.report.data import Row

if TYPE_CHECKING:
    from mqreplay.moment.night_states import NightStates

BEFORE = dt.timedelta(seconds=30)  # a supposed loss is placed this long before the real one
SUPPOSED_RATIO = 60  # the least accessMessageInMemoryMaxRatio to suppose; 40 by default (MessageStoreConfig)
MORE_RATIO = 20
# Kinds that `mqreplay advise` decides again, those of decisions.removed_findings.SHOWN.
ADVISED = ("idle_consumer", "uneven_allocation", "orphan_queue", "double_owned_queue", "strategy_conflict")


def finding_commands(finding: Row, states: NightStates) -> list[str]:
    """Return the commands without cluster and warehouse: at, whatif and advise, as far as they have an answer."""
    begin, group, broker = finding["from_ts"], finding["consumer_group"], finding["broker_name"]
    if begin is None or not states.night.first <= begin <= states.night.last:
        return []
    second = dt.timedelta(seconds=1)
    at = min(begin.replace(microsecond=0) + second, states.night.last)
    known = states.groups.get(group or "")
    where = f" --group {_quoted(group)}" if known is not None else ""
    if not where and any(name == broker for name, _ in states.brokers):
        where = f" --broker {_quoted(broker)}"
    found = [f"mqreplay at {_time(at, states)}{where}", *what_if_commands(finding, states)]
    # advise decides from the lists of rebalances.
    advised = finding["kind"] in ADVISED and known is not None and known.strategies
    return [*found, f"mqreplay advise {_quoted(group)}"] if advised else found


def what_if_commands(finding: Row, states: NightStates) -> list[str]:
    """Return the commands without their warehouse; none if no supposition answers the finding."""
    begin = finding["from_ts"]
    if begin is None or not states.night.first <= begin <= states.night.last:
        return []
    made = RULES.get(finding["kind"])
    return [] if made is None else [f"mqreplay whatif {options}" for options in made(finding, states)]


def _enough_queues(finding: Row, states: NightStates) -> list[str]:
    """Suppose as many queues as the group has members."""
    group = states.groups.get(finding["consumer_group"] or "")
    if group is None:
        return []
    instants = (finding["from_ts"], finding["to_ts"] or finding["from_ts"])
    members = max(group.members_at(states.begin_ms(each)) for each in instants)
    topics = {topic for topic, _ in group.queues}
    topic = finding["topic"] or (next(iter(topics)) if len(topics) == 1 else None)
    counts = [count for (of, _), count in group.queues.items() if of == topic]
    if not counts or members <= sum(counts):
        return _fewer_consumers(finding, states)
    return [f"--queues {-(-members // len(counts))} --topic {_quoted(topic)}"]


def _fewer_consumers(finding: Row, states: NightStates) -> list[str]:
    return _of_group(finding, "--consumers -1")


def _more_consumers(finding: Row, states: NightStates) -> list[str]:
    return _of_group(finding, "--consumers +2")


def _average(finding: Row, states: NightStates) -> list[str]:
    return _of_group(finding, "--set strategy=AVG")


def _by_circle(finding: Row, states: NightStates) -> list[str]:
    return _of_group(finding, "--set strategy=AVG_BY_CIRCLE")


def _reset(finding: Row, states: NightStates) -> list[str]:
    return _of_group(finding, f"--reset-to {_time(finding['from_ts'], states)}")


def _of_group(finding: Row, options: str) -> list[str]:
    return [f"{options} --group {_quoted(finding['consumer_group'])}"] if finding["consumer_group"] else []


def _ratio(finding: Row, states: NightStates) -> list[str]:
    """Suppose a greater share of the memory: readers further behind stay on the master."""
    broker = finding["broker_name"]
    known = states.settings.get((broker or "", 0), {}).get("accessMessageInMemoryMaxRatio", "")
    ratio = min(max((int(known) if known.isdigit() else 0) + MORE_RATIO, SUPPOSED_RATIO), 100)
    return [f"--set ratio={ratio}" + (f" --broker {_quoted(broker)}" if broker else "")]


def _loss(finding: Row, states: NightStates) -> list[str]:
    if finding["broker_name"] is None:
        return []
    at = max(finding["from_ts"] - BEFORE, states.night.first + dt.timedelta(seconds=1))
    return [f"--lose-master {_quoted(finding['broker_name'])} --at {_time(at, states)}"]


def _master_loss(finding: Row, states: NightStates) -> list[str]:
    return _loss(finding, states) if finding["broker_id"] in (None, 0) else []


def _quoted(name: str | None) -> str:
    return shlex.quote(str(name))


def _time(at: dt.datetime, states: NightStates) -> str:
    one_day = states.night.first.date() == states.night.last.date()
    return f"{at:%H:%M:%S}" if one_day else f"{at:%Y-%m-%dT%H:%M:%S}"


RULES: dict[str, Callable[[Row, NightStates], list[str]]] = {
    "idle_consumer": _enough_queues,
    "uneven_allocation": _by_circle,
    "strategy_conflict": _average,
    "lag_grows": _more_consumers,
    "consumer_lost": _more_consumers,
    "slave_pull": _ratio,
    "disk_bound_catchup": _ratio,
    "broker_down": _master_loss,
    "slow_failover": _master_loss,
    "failover_pull": _loss,
    "stale_slave_offsets": _loss,
    "replication_lag": _loss,
    "offset_reset": _reset,
    "offset_rewind": _reset,
}
