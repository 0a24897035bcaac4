"""Lag that grows: messages arrive in a queue, and the group's offset does not advance, whoever holds the queue.

Standstills of queues that a member held are findings of their own (standstills.py). The others are of groups whose
queues nobody is known to hold: clients of POP and gRPC, pull consumers that report no queues, groups whose last member
left.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

import polars as pl

from mqreplay.core.system_names import PROXY_GROUP
from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.gap_rows import gap_rows
from mqreplay.evidence.members.membership import (
    BROADCASTING,
    consumer_groups,
    is_of_application,
    is_own_group,
)
from mqreplay.evidence.offsets.queue_events import accepted_commits
from mqreplay.evidence.time_spans import INSTANT

LOCAL_OFFSETS = "the offsets of a broadcasting group are with its clients, and no broker knows them"
NO_OFFSETS = "no offset of the group was recorded"
GROUP_TOPIC = ["consumer_group", "topic"]


def advances_of_shard(offset_change: pl.DataFrame, offset_commit: pl.DataFrame) -> pl.DataFrame:
    """Return the last instant at which a group is known to have advanced on a topic.

    Columns: consumer_group, topic, advanced_ts.

    By copies of masters' offsets, and by accepted commits of one queue that differ.
    """
    of_master = (pl.col("broker_id") == 0) & pl.col("client_id").is_null()
    copied = offset_change.filter(of_master & (pl.col("new_offset") > pl.col("previous_offset")))
    committed = (
        accepted_commits(offset_commit)
        .group_by(KEY)
        .agg(pl.col("commit_offset").n_unique().alias("offsets"), pl.col("ts").max().alias("advanced_ts"))
    )
    moved = committed.filter(pl.col("offsets") > 1)
    by_copies = copied.select(*GROUP_TOPIC, pl.col("to_ts").alias("advanced_ts"))
    return (
        pl.concat([by_copies, moved.select(*GROUP_TOPIC, "advanced_ts")])
        .group_by(GROUP_TOPIC)
        .agg(pl.col("advanced_ts").max().cast(INSTANT))
    )


def with_stopped(advances: pl.DataFrame, stopped: Collection[tuple[str, str]]) -> pl.DataFrame:
    """Return the rows of `advances_of_shard`, and those groups and topics that advanced before the window."""
    before = pl.DataFrame([*stopped], advances.select(GROUP_TOPIC).schema, orient="row")
    new = before.join(advances, GROUP_TOPIC, how="anti")
    return pl.concat([advances, new], how="diagonal")


def growing_lag(
    still: pl.DataFrame,
    held: pl.DataFrame,
    advances: pl.DataFrame,
    members: pl.DataFrame,
    heartbeat: pl.DataFrame,
    outages: pl.DataFrame,
    stuck_s: int,
) -> pl.DataFrame:
    """Return the spans of ``stuck_s`` seconds and longer in which a lag grew.

    Columns: consumer_group, topic, broker_name, queue_id, from_ts, to_ts, offset, waiting, arrived (messages).

    ``still`` is the frame of `standstill_spans`, ``held`` that of held_standstills, whose spans are left out,
    ``advances`` the rows of `advances_of_shard` of all shards, ``members`` that of membership, ``outages`` that of
    broker_outages: while a broker is down, nobody can read from it. A group counts if it advanced on the topic in the
    recording, or has a member meanwhile: offsets of a group that nobody uses any more stay for ever. Offsets of
    broadcasting groups are with the clients.
    """
    spans = still.explode("spans").unnest("spans").filter(pl.col("arrived") > 0)
    broadcasting = consumer_groups(heartbeat).filter(pl.col("message_model") == BROADCASTING)
    own = spans.filter(is_of_application()).join(broadcasting, "consumer_group", how="anti")
    unheld = own.join(held.select(*KEY, "from_ts"), [*KEY, "from_ts"], how="anti")
    advanced = advances.select(GROUP_TOPIC).unique().with_columns(pl.lit(True).alias("advanced"))
    used = unheld.with_columns(_has_member(unheld, members)).join(advanced, GROUP_TOPIC, how="left")
    alive = used.filter(pl.col("advanced").fill_null(False) | pl.col("has_member"))
    down_ms = _down_ms(alive, outages)
    length_ms = pl.col("to_ts").dt.epoch("ms") - pl.col("from_ts").dt.epoch("ms")
    grown = alive.with_columns(down_ms).filter(length_ms - pl.col("down_ms") >= stuck_s * 1000)
    return grown.select(*KEY, "from_ts", "to_ts", "offset", "waiting", "arrived")


def lag_gaps(
    members: pl.DataFrame, heartbeat: pl.DataFrame, known: Collection[str], day: dt.date, stuck_s: int
) -> pl.DataFrame:
    """Return the gaps of groups that had members on ``day``, and whose lag is unknown.

    ``known``: the groups of which any offset was recorded; ``members`` and ``heartbeat`` as in `growing_lag`. Members
    of less than ``stuck_s`` seconds hide no finding.
    """
    begin = dt.datetime.combine(day, dt.time(), dt.UTC)
    of_day = (pl.col("to_ts") >= begin) & (pl.col("from_ts") < begin + dt.timedelta(days=1))
    long = pl.col("to_ts") - pl.col("from_ts") >= pl.duration(seconds=stuck_s)
    own = is_own_group() & (pl.col("consumer_group") != PROXY_GROUP)
    sessions = members.filter(of_day & long & own)
    broadcasting = consumer_groups(heartbeat).filter(pl.col("message_model") == BROADCASTING)["consumer_group"]
    local = pl.col("consumer_group").is_in(broadcasting.unique().to_list())
    unknown = sessions.filter(local | ~pl.col("consumer_group").is_in([*known])).with_columns(
        pl.when(local).then(pl.lit(LOCAL_OFFSETS)).otherwise(pl.lit(NO_OFFSETS)).alias("reason")
    )
    clients = pl.col("client_id").n_unique().cast(pl.Int64)
    gaps = unknown.group_by("consumer_group", "reason").agg(
        pl.col("from_ts").min(), pl.col("to_ts").max(), clients.alias("decisions")
    )
    named = gaps.with_columns(
        pl.lit(day).alias("day"),
        pl.lit("finding lag_grows").alias("decision"),
        pl.lit("undetermined").alias("evidence"),
    )
    return gap_rows(named)


def _has_member(spans: pl.DataFrame, members: pl.DataFrame) -> pl.Series:
    """Return for each span whether the group had a member meanwhile."""
    numbered = spans.select("consumer_group", "from_ts", "to_ts").with_row_index("span")
    met = numbered.join(members.select("consumer_group", "from_ts", "to_ts"), "consumer_group", suffix="_member")
    meanwhile = met.filter((pl.col("from_ts_member") < pl.col("to_ts")) & (pl.col("to_ts_member") > pl.col("from_ts")))
    return numbered["span"].is_in(meanwhile["span"].implode()).alias("has_member")


def _down_ms(spans: pl.DataFrame, outages: pl.DataFrame) -> pl.Series:
    """Return for each span how long the queue's master did not answer meanwhile, in milliseconds."""
    down = outages.filter(pl.col("broker_id") == 0).select("broker_name", "from_ts", "to_ts")
    numbered = spans.select("broker_name", "from_ts", "to_ts").with_row_index("span")
    met = numbered.join(down, "broker_name", suffix="_down")
    began, ended = pl.max_horizontal("from_ts", "from_ts_down"), pl.min_horizontal("to_ts", "to_ts_down")
    shared = (ended.dt.epoch("ms") - began.dt.epoch("ms")).clip(lower_bound=0)
    sums = met.group_by("span").agg(shared.sum().alias("down_ms"))
    return numbered.join(sums, "span", how="left", maintain_order="left")["down_ms"].fill_null(0)
