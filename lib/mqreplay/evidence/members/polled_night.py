"""The evidence from the recorder's polls and clients' logs, combined for the judgement of a night.

Clients with hooks are judged by their own rows; polls of them are only compared.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import polars as pl

from mqreplay.evidence.frames import filled
from mqreplay.evidence.members.conflicts import alternating_subscriptions
from mqreplay.evidence.members.duplicate_clients import duplicate_clients
from mqreplay.evidence.members.listed_members import listed_signs, listed_spans, silences, vanished
from mqreplay.evidence.members.member_gaps import unpulled_members, unread_members
from mqreplay.evidence.members.membership import CLOSED, EXPIRED, LISTED, SIGNS
from mqreplay.evidence.members.observed_clients import (
    CLIENT_LOG,
    hooked,
    observed_heartbeats,
    polled_signs,
    strategy_sides,
    unwatched,
)
from mqreplay.evidence.members.observed_rebalances import ROUTE_S
from mqreplay.evidence.members.ownership import routed_queues
from mqreplay.evidence.recorder_holes import recorder_holes, watched, watched_until
from mqreplay.words.keys import GROUP_QUEUE, MEMBER, QUEUE

RECORDED = ("recorder_event", "broker_runtime", "topic_stats", "consumer_connection")


@dataclass(frozen=True)
class PolledNight:
    """The evidence of the recorder's polls and of clients' logs in one night.

    ``heartbeat``: recorded heartbeats, and heartbeats inferred from polls. ``until``: the recorder's last poll.

    ``broker_runtime`` are the polls of brokers without what holes hide. ``signs`` and ``vanished`` are of clients that
    only polls show; ``queues``: the queues that routes name, as routed_queues has them. ``shown``:
    consumer_group, table_name: the silver tables with what polls and logs show of a group's members. ``duplicates``:
    the frame of duplicate_clients.py, with and without hooks. ``alternations``: of conflicts.alternating_subscriptions.
    """

    holes: pl.DataFrame
    until: dt.datetime | None
    heartbeat: pl.DataFrame
    broker_runtime: pl.DataFrame
    signs: pl.DataFrame
    vanished: pl.DataFrame
    strategies: pl.DataFrame
    queues: pl.DataFrame
    shown: pl.DataFrame
    duplicates: pl.DataFrame
    alternations: pl.DataFrame

    def unwatched(
        self,
        members: pl.DataFrame,
        assignment: pl.DataFrame,
        rebalance: pl.DataFrame,
        owners: pl.DataFrame,
        unshared: pl.DataFrame,
    ) -> pl.DataFrame:
        """Return the times in which the queues of a member are unknown.

        Columns: consumer_group, client_id, from_ts, to_ts, why.

        ``members`` is the frame of `membership`, ``owners`` gold.queue_owner. ``holes`` are the times without polls.
        """
        polled = self.signs.filter(pl.col("sign") != CLIENT_LOG).select(MEMBER).unique()
        by_polls = unwatched(members.join(polled, MEMBER, how="semi"), assignment, self.holes)
        others = members.join(polled, MEMBER, how="anti")
        unread = unread_members(others, self.heartbeat, assignment, rebalance)
        others = others.join(unread, MEMBER, how="anti")
        return pl.concat([by_polls, unread, unpulled_members(others, owners, assignment, rebalance, unshared)])


def polled_night(
    small: Mapping[str, pl.DataFrame],
    heartbeat: pl.DataFrame,
    consumer_list: pl.DataFrame,
    cluster_info: pl.DataFrame,
    hook_signs: pl.DataFrame,
    routed_lists: pl.DataFrame,
    lost_s: int,
    silent_s: int,
) -> PolledNight:
    """Combine the polled evidence. ``small`` are the night's small tables by name.

    ``consumer_list`` are the lists that the recorder polled. ``hook_signs`` are the signs of clients with hooks. A
    client without an answer for ``lost_s`` seconds is silent, and after ``silent_s`` its session has ended.
    """
    assignment, runtime = small["assignment"], small["broker_runtime"]
    holes = recorder_holes(small["recorder_event"], runtime, cluster_info)
    until = watched_until([consumer_list, *(small[name] for name in RECORDED)])
    spans = listed_spans(consumer_list, runtime, holes, until)
    silent = silences(assignment, until, lost_s)
    gone = vanished(spans, silent, holes, silent_s, assignment)
    # Commits and brokers' logs also show clients without hooks.
    hooks = hook_signs.filter(~pl.col("sign").is_in(["commit", LISTED, CLOSED, EXPIRED])).select(MEMBER).unique()
    shown = polled_signs(assignment)
    of_others = pl.concat([shown, listed_signs(spans, gone, silent)]).join(hooks, MEMBER, how="anti")
    by_log = shown.filter(pl.col("sign") == CLIENT_LOG).join(hooks, MEMBER, how="semi")
    observed = observed_heartbeats(heartbeat, assignment, small["consumer_connection"])
    return PolledNight(
        holes,
        until,
        pl.concat([heartbeat, observed.join(hooks, "client_id", how="anti")]),
        watched(runtime, holes),
        pl.concat([of_others, by_log]).select(list(SIGNS)),
        gone.join(hooks, MEMBER, how="anti"),
        strategy_sides(assignment).join(hooks, MEMBER, how="anti"),
        routed_queues(routed_lists, until, ROUTE_S),
        _shown(assignment, consumer_list),
        duplicate_clients(small, consumer_list, holes, until),
        alternating_subscriptions(small["consumer_connection"]),
    )


def _shown(assignment: pl.DataFrame, consumer_list: pl.DataFrame) -> pl.DataFrame:
    named = {
        "silver.assignment": assignment.join(hooked(assignment).select("record_id"), "record_id", how="anti"),
        "silver.consumer_list": consumer_list,
    }
    return pl.concat(
        rows.select("consumer_group", pl.lit(table).alias("table_name")).unique() for table, rows in named.items()
    )


def ends_of_groups(consume_stats: pl.DataFrame, like: pl.DataFrame) -> pl.DataFrame:
    """Return the ends of queues in masters' consume_stats, in the columns of ``like``.

    ``like`` is silver.topic_stats.
    """
    of_masters = consume_stats.filter((pl.col("broker_id") == 0) & (pl.col("offsets").list.len() > 0))
    item = pl.element().struct
    kind = like.schema["offsets"]
    names = {"max_offset": "broker_offset"}
    known = {"topic", "broker_name", "queue_id", "max_offset"}
    fields = kind.inner.fields  # type: ignore[attr-defined]
    end = pl.struct(
        (item.field(names.get(f.name, f.name)) if f.name in known else pl.lit(None)).cast(f.dtype).alias(f.name)
        for f in fields
    )
    ends = of_masters.with_columns(pl.col("offsets").list.eval(end).alias("offsets"))
    return filled(ends, like.schema)


def changes_of_groups(consume_stats: pl.DataFrame, known: Collection[str], like: pl.DataFrame) -> pl.DataFrame:
    """Return the offsets in masters' consume_stats as changes between copies, in the columns of ``like``.

    ``like`` is silver.offset_change. Groups in ``known`` are left out: copies or commits show their offsets. An answer
    that repeats an offset has a row, too: it shows that the offset did not change. -1 is an entry that does not exist
    (ConsumerOffsetManager#queryOffset).
    """
    others = ~pl.col("consumer_group").is_in(sorted(known))
    asked = consume_stats.filter(others & (pl.col("broker_id") == 0) & (pl.col("offsets").list.len() > 0))
    item = pl.col("offsets").struct.field
    each = asked.explode("offsets").select(
        *("day", "consumer_group", "broker_id", "source_digest"),
        *(item(name) for name in QUEUE),
        item("consumer_offset").alias("new_offset"),
        pl.col("ts").alias("to_ts"),
    )
    in_order = each.filter(pl.col("new_offset") >= 0).unique([*GROUP_QUEUE, "to_ts"], keep="first").sort("to_ts")
    before = pl.col("new_offset", "to_ts").shift(1).over(GROUP_QUEUE)
    previous = in_order.with_columns(before.name.prefix("_"))
    values = {"previous_offset": pl.col("_new_offset"), "from_ts": pl.col("_to_ts")}
    return filled(previous, like.schema, source_name=pl.format("{}-0", "broker_name"), **values)
