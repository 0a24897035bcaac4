"""Members that do not agree with each other, or that went without a word."""

from __future__ import annotations

import datetime as dt

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.findings.shape import counted, evidence, evidence_of, finding, seconds, text_of
from mqreplay.replay.membership import MEMBER
from mqreplay.replay.queue_owner import QUEUE


def conflict_findings(strategies: DataFrame, subscriptions: DataFrame, dispute_s: int) -> DataFrame:
    """strategy_conflict and subscription_conflict, of conflicts' frames, if longer than ``dispute_s``."""
    long = seconds("from_ts", "to_ts") > dispute_s
    own_topics = F.filter("topics", lambda t: ~t.startswith("%RETRY%"))
    by_strategy = finding(
        strategies.where(long).withColumn("evidence", evidence_of("gold.allocation", "record_ids")),
        kind="strategy_conflict",
        severity=F.lit("warning"),
        summary=text_of(
            "Members of group ",
            "{consumer_group}",
            " shared out ",
            F.array_join(own_topics, ", "),
            " by different strategies: ",
            _sides(),
            ".",
        ),
        advice="Give all members of the group the same AllocateMessageQueueStrategy; roll it out to all at once.",
        confidence=1.0,
    )
    by_subscription = finding(
        subscriptions.where(long).withColumn("evidence", evidence_of("silver.heartbeat", "record_ids")),
        kind="subscription_conflict",
        severity=F.lit("warning"),
        summary=text_of("Members of group ", "{consumer_group}", " subscribed to different things: ", _sides(), "."),
        advice="Give all members of the group the same subscriptions, or give them groups of their own.",
        confidence=1.0,
    )
    return by_strategy.unionByName(by_subscription)


def _sides() -> Column:
    return F.array_join("sides", " against ")


def heard_until(members: DataFrame, recorded_until: dt.datetime | None) -> DataFrame:
    """One row, until_ts: until when clients were recorded.

    One client alone does not make the night last longer than what the recorder told by its own clock, until
    ``recorded_until`` (None: nothing). The clock of that client may be ahead; all others would seem to have gone.
    """
    each = members.groupBy("client_id").agg(F.max("to_ts").alias("ts"))
    last = each.agg(F.slice(F.sort_array(F.collect_list("ts"), asc=False), 1, 2).alias("two"))
    longest, next_ = (F.get("two", F.lit(n)) for n in range(2))
    if recorded_until is None:
        return last.select(longest.alias("until_ts"))
    return last.select(F.least(longest, F.greatest(next_, F.lit(recorded_until))).alias("until_ts"))


def lost_consumers(members: DataFrame, owners: DataFrame, ended: DataFrame, lost_s: int) -> DataFrame:
    """MEMBER, from_ts (last sign of life), to_ts (its queues had new owners; else the end), queues.

    ``members`` is membership's frame; ``ended`` has one row: until when clients were recorded (column until_ts). A
    client that says nothing for ``lost_s`` seconds and never unregistered is lost; one whose silence the recording does
    not outlast by as much is not told. Nor is one without heartbeats: whether it unregistered would not be known.
    """
    gone = members.where("NOT left AND beat").crossJoin(F.broadcast(ended)).where(seconds("to_ts", "until_ts") > lost_s)
    held = owners.select(*MEMBER, *QUEUE, F.col("to_ts").alias("_held_to"))
    after = owners.select(
        "cluster", "consumer_group", *QUEUE, F.col("client_id").alias("_next"), F.col("from_ts").alias("_since")
    )
    last_held = gone.join(held, MEMBER, "left").where(
        F.col("_held_to").isNull() | (F.abs(seconds("_held_to", "to_ts")) <= lost_s)
    )
    new = last_held.join(after, ["cluster", "consumer_group", *QUEUE], "left").withColumn(
        "_since", F.when((F.col("_next") != F.col("client_id")) & (F.col("_since") >= F.col("to_ts")), F.col("_since"))
    )
    taken = new.groupBy(*MEMBER, "session", "to_ts", "until_ts", *QUEUE).agg(F.min("_since").alias("_taken"))
    return taken.groupBy(*MEMBER, "session").agg(
        F.first("to_ts").alias("from_ts"),
        F.coalesce(F.max("_taken"), F.first("until_ts")).alias("to_ts"),
        F.count("broker_name").alias("queues"),
    )


def lost_findings(lost: DataFrame) -> DataFrame:
    """consumer_lost, of lost_consumers' frame."""
    rows = lost.groupBy(*MEMBER, "from_ts", "to_ts", "queues").agg(
        evidence("silver.heartbeat", "client_id").alias("beats"),
        evidence("gold.queue_owner", "consumer_group", "client_id").alias("held"),
    )
    rows = rows.withColumn("evidence", F.when(F.col("queues") > 0, F.concat("beats", "held")).otherwise(F.col("beats")))
    return finding(
        rows,
        kind="consumer_lost",
        severity=F.when(F.col("queues") > 0, "warning").otherwise("info"),
        summary=text_of(
            "Consumer ",
            "{client_id}",
            " of group ",
            "{consumer_group}",
            " went without a word while it held ",
            counted("queues", "queue"),
            ": killed, crashed or cut off.",
        ),
        advice="See why it died; what it had not committed is delivered again to whoever took its queues.",
        confidence=0.9,
    )
