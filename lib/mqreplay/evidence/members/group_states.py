"""The subscriptions of each group as a broker knew them, by the heartbeats that it was sent.

A heartbeat replaces what the broker knows of the group: a topic that it lacks is dropped, another one is taken if it is
new or its version is higher (ConsumerGroupInfo#updateSubscription). Two heartbeats at the same time can both see the
older version, so the lower one may win (its check and its put are two steps). The group is there from its first
heartbeat until its last client unregisters or loses its connection (ConsumerManager), or the broker stops.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from mqreplay.core.pull_check import ConsumerGroupInfo, Subscription
from mqreplay.evidence.intervals import with_state
from mqreplay.words.keys import BROKER

MOST_POSSIBLE: Final = 8  # states of one group at one time; more races at once are not followed
Broker = tuple[str, int]
Group = tuple[str, int, str]
Known = tuple[ConsumerGroupInfo | None, ...]  # what a broker may know of a group; None: the group is not there


@dataclass(frozen=True)
class GroupState:
    """What a broker may have known of a group from some time between ``sent_ts`` and ``known_ts`` on."""

    sent_ts: dt.datetime
    known_ts: dt.datetime
    known: Known


@dataclass(frozen=True)
class GroupStates:
    """The states of all groups, in order of time."""

    states: dict[Group, list[GroupState]] = field(default_factory=dict)

    def possible(self, group: Group, begin: dt.datetime, end: dt.datetime) -> Iterator[ConsumerGroupInfo | None]:
        """Yield what the broker may have known of the group at some time from ``begin`` to ``end``.

        Before the first recorded heartbeat, the group was not there as far as the recording shows: None.
        """
        current: Known = (None,)
        for state in self.states.get(group, ()):
            if state.sent_ts > end:
                break
            if state.known_ts > begin:
                yield from current
            current = state.known
        yield from current


def group_states(heartbeat: pl.DataFrame, broker_runtime: pl.DataFrame) -> GroupStates:
    """Return the states by these silver tables.

    Heartbeats without subscriptions (useHeartbeatV2 of 5.x) change nothing.
    """
    found: dict[Group, list[GroupState]] = defaultdict(list)
    members: dict[Group, set[str]] = defaultdict(set)
    boots = _boots(broker_runtime)
    for row in _without_repeats(heartbeat.drop_nulls(BROKER).sort("ts", "record_id"), broker_runtime).iter_rows(
        named=True
    ):
        broker = (row["broker_name"], row["broker_id"])
        _stop(broker, row["ts"], boots, found, members)
        for name, info in _changes(row):
            group = (*broker, name)
            if info is None:
                members[group].discard(row["client_id"])
            else:
                members[group].add(row["client_id"])
            _add(found[group], row["ts"], row["response_ts"] or row["ts"], info, bool(members[group]))
    for broker in boots:
        _stop(broker, None, boots, found, members)
    return GroupStates(dict(found))


def _without_repeats(heartbeat: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the rows, in order of time, without those that change nothing: nearly all.

    They repeat what the client stated since it came and the broker started, in a group whose clients all state the same
    topics. Two repeats after each statement that is new in the group stay: they show which of two at the same time won.
    """
    boots = broker_runtime.select(*BROKER, pl.col("boot_ts").alias("ts")).drop_nulls().unique().sort("ts")
    since = boots.with_columns(pl.col("ts").alias("boot_ts"))
    rows = with_state(heartbeat.with_row_index(), since, BROKER, "ts")
    leaves = pl.any_horizontal(pl.col("unregistered_consumer_group", "closed_consumer_group").is_not_null())
    stated = (
        rows.with_columns(leaves.cum_sum().over(*BROKER, "client_id").alias("left"))
        .select("index", *BROKER, "client_id", "boot_ts", "left", pl.col("consumer_data_set").alias("group"))
        .explode("group")
        .drop_nulls("group")
        .with_columns(pl.col("group").struct.field("group_name", "message_model", "subscriptions"))
        .drop_nulls("subscriptions")
    )
    of_group = (*BROKER, "group_name")
    topic = pl.concat_str(pl.element().struct.field("topic", "expression_type"), separator=" ", ignore_nulls=True)
    # Hashes, since a list of structs is no key.
    stated = stated.with_columns(
        pl.struct("message_model", pl.col("subscriptions").list.eval(topic.sort()).hash()).alias("topics"),
        pl.struct("client_id", "boot_ts", "left", pl.col("group").hash()).alias("statement"),
    )
    news = pl.struct(*of_group, "statement").is_first_distinct().cum_sum().over(of_group).alias("news")
    repeats = pl.int_range(pl.len()).over(*of_group, "statement", "news")
    of_interest = stated.with_columns(news).filter((repeats <= 1) | (pl.col("topics").n_unique().over(of_group) > 1))
    kept = leaves | pl.col("index").is_in(of_interest["index"].implode())
    return rows.filter(kept).drop("index", "boot_ts")


def _boots(broker_runtime: pl.DataFrame) -> dict[Broker, list[dt.datetime]]:
    """Return the starts of each broker, latest first."""
    known = broker_runtime.select(*BROKER, "boot_ts").drop_nulls().unique().sort("boot_ts")
    found: dict[Broker, list[dt.datetime]] = defaultdict(list)
    for name, broker_id, boot_ts in known.iter_rows():
        found[name, broker_id].insert(0, boot_ts)
    return found


def _stop(
    broker: Broker,
    until: dt.datetime | None,
    boots: dict[Broker, list[dt.datetime]],
    found: dict[Group, list[GroupState]],
    members: dict[Group, set[str]],
) -> None:
    """Remove the groups of a broker at its starts before ``until``: it keeps none of them."""
    starts = boots.get(broker, [])
    while starts and (until is None or starts[-1] <= until):
        boot = starts.pop()
        for group, states in found.items():
            if group[:2] == broker:
                members[group].clear()
                states.append(GroupState(boot, boot, (None,)))


def _changes(row: dict[str, Any]) -> Iterator[tuple[str, ConsumerGroupInfo | None]]:
    """Yield the groups that a row concerns, with what it states about them; None: the client leaves the group."""
    for left in ("unregistered_consumer_group", "closed_consumer_group"):
        if row[left] is not None:
            yield row[left], None
    for group in row["consumer_data_set"] or ():
        if group["subscriptions"] is not None:
            listed = {
                each["topic"]: Subscription(each["expression_type"], each["sub_version"] or 0)
                for each in group["subscriptions"]
            }
            yield group["group_name"], ConsumerGroupInfo(group["message_model"] or "CLUSTERING", listed)


def _add(
    states: list[GroupState],
    sent_ts: dt.datetime,
    known_ts: dt.datetime,
    info: ConsumerGroupInfo | None,
    has_members: bool,
) -> None:
    before: Known = states[-1].known if states else (None,)
    if info is None:
        known = before if has_members else (None,)
    else:
        updated: list[ConsumerGroupInfo | None] = [_updated(each, info) for each in before]
        if states and sent_ts <= states[-1].known_ts:  # at the same time: it may not have seen the other one
            updated += [*before, info]
        known = tuple(each for n, each in enumerate(updated) if each not in updated[:n])[:MOST_POSSIBLE]
    if known != before:
        states.append(GroupState(sent_ts, known_ts, known))
    elif states and known_ts > states[-1].known_ts and sent_ts <= states[-1].known_ts:
        states[-1] = GroupState(states[-1].sent_ts, known_ts, known)


def _updated(last: ConsumerGroupInfo | None, sent: ConsumerGroupInfo) -> ConsumerGroupInfo:
    known = {} if last is None else last.subscriptions
    kept = {
        topic: known[topic] if topic in known and known[topic].sub_version >= new.sub_version else new
        for topic, new in sent.subscriptions.items()
    }
    return ConsumerGroupInfo(sent.message_model, kept)
