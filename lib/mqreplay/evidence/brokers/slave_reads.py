"""Why clients read from a slave that was suggested to them: they lagged, or the slave's own setting kept them.

A master suggests its slave to a client that reads further back than the master's memory. The slave's answers then
decide: its ratio is smaller, since 5.x subtracts 10 on slaves. With an effective ratio below 1, a slave suggests itself
whenever it finds messages, however recent they are (DefaultMessageStore#getMessage).
"""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.brokers.broker_descriptions import described_brokers
from mqreplay.evidence.frames import first_of
from mqreplay.evidence.intervals import with_state
from mqreplay.words.keys import CLIENT_QUEUE

MASTER_ID = 0
# Values of ``why``.
LAGGED = "lagged"  # the broker compared, and the client read further back than its memory
KEPT_BY_RATIO = "kept"  # a broker whose effective ratio is below 1 suggested itself
BY_GROUP = "by_group"  # the subscription group's brokerId, not the lag
UNKNOWN_RATIO = "unknown"  # memory or ratio of the broker that answered are not known
KEEPER = ("keeper_id", "keeper_ratio", "keeper_configured", "keeper_addr")


def slave_reads(
    pull_route: pl.DataFrame, suggestions: pl.DataFrame, pull: pl.DataFrame, broker: pl.DataFrame
) -> pl.DataFrame:
    """Return the pulls that a suggestion sent to a slave, with what the answer before says about the reason.

    Columns: those of ``pull_route``; ``why``; ``behind``, whether the answer before left messages in the queue; KEEPER,
    the broker whose setting kept the client, null unless ``why`` is KEPT_BY_RATIO. ``pull_route``, ``suggestions``
    (gold.slave_suggestion) and ``pull`` are one shard, ``broker`` is silver.broker. Without a master in its route, a
    client that keeps to the slave follows the failover: such pulls are left out.
    """
    has_master = pl.col("route_broker_ids").list.contains(MASTER_ID)
    sent = pull_route.filter((pl.col("cause") == "suggested") & has_master)
    answers = _judged_answers(suggestions, pull, described_brokers(broker))
    known = with_state(sent, answers, CLIENT_QUEUE, "request_ts", "answered_ts", exact=False)
    # The answer before a client's first pull may lie before the rows that are read.
    reader = [pl.col(name) for name in CLIENT_QUEUE]
    near = pl.col("why").backward_fill().forward_fill().over(reader, order_by="request_ts")
    filled = known.with_columns(near.fill_null(UNKNOWN_RATIO).alias("why"), pl.col("behind").fill_null(value=False))
    was_kept = pl.col("why") == KEPT_BY_RATIO
    last = [pl.col(name).backward_fill().forward_fill().over(reader, order_by="request_ts") for name in KEEPER]
    return filled.with_columns(pl.when(was_kept).then(each).name.keep() for each in last).select(
        *pull_route.columns, "why", "behind", *KEEPER
    )


def _judged_answers(suggestions: pl.DataFrame, pull: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """Return the answers that suggested a slave, with the reason.

    Columns: consumer_group, topic, broker_name, queue_id, client_id, answered_ts, why, behind, keeper_id, keeper_ratio,
    keeper_configured, keeper_addr.
    """
    described = brokers.sort("ts").group_by("broker_name", "broker_id").last()
    masters = described.filter((pl.col("broker_id") == MASTER_ID) & (pl.col("effective_ratio") >= 1))
    own = described.select("broker_name", "broker_id", "configured_ratio", "broker_addr")
    left = pull.select("record_id", (pl.col("max_offset") > pl.col("next_begin_offset")).alias("behind"))
    suggested = (
        suggestions.filter(pl.col("recorded_suggest") > MASTER_ID)
        .join(masters.select("broker_name", pl.col("memory").alias("master_memory")), on="broker_name", how="left")
        .join(own, on=["broker_name", "broker_id"], how="left")
        .join(left.unique("record_id"), on="record_id", how="left")
    )
    keeps = (pl.col("effective_ratio") < 1).fill_null(value=False)
    return suggested.with_columns(_why(keeps).alias("why")).select(
        *CLIENT_QUEUE,
        pl.col("request_ts").alias("answered_ts"),
        "why",
        "behind",
        *[
            pl.when(pl.col("why") == KEPT_BY_RATIO).then(pl.col(name)).alias(keeper)
            for keeper, name in zip(
                KEEPER, ("broker_id", "effective_ratio", "configured_ratio", "broker_addr"), strict=True
            )
        ],
    )


def _why(keeps: pl.Expr) -> pl.Expr:
    """Return the reason of a suggestion. ``keeps``: the effective ratio of the broker that made it is below 1."""
    memory = pl.col("memory")
    behind_master = pl.col("diff_min") > pl.col("master_memory")
    not_slow = pl.col("diff_max") <= memory
    as_expected = pl.col("expected_suggest") == pl.col("recorded_suggest")
    # Where the bounds of the distance do not decide, the broker did: it suggests a slave to those that are slow.
    broker_decided = pl.col("expected_suggest").is_null() & ~not_slow.fill_null(value=False)
    is_slow = (pl.col("diff_min") > memory).fill_null(value=False) | broker_decided
    return first_of(
        (behind_master, LAGGED),
        (keeps, KEPT_BY_RATIO),
        (memory.is_null(), UNKNOWN_RATIO),
        (is_slow, LAGGED),
        (as_expected, BY_GROUP),
        otherwise=UNKNOWN_RATIO,
    )
