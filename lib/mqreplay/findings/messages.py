"""Messages that a group sent back; failed_messages.py finds those that it gave up."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX as DLQ
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.core.retry_topic import retry_topic_owners
from mqreplay.decode.client_errors import LISTENER_CALL
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.frame_arrays import less, total
from mqreplay.evidence.intervals import with_session
from mqreplay.evidence.offsets.queue_ends import polled_ends, pulled_ends
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence_rows, finding, one_or_none, row_key
from mqreplay.words.keys import GROUP, QUEUE


def find_retries(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups that sent messages back, and the listeners that failed by their clients' logs."""
    failed = evidence.client_error.filter(pl.col("request") == LISTENER_CALL)
    unlogged = failed.join(evidence.redelivered_messages.select(GROUP), on=GROUP, how="anti")
    listeners = failed_listeners(unlogged, evidence.cluster, limits.retry_warn_messages, limits.retry_gap_s)
    sent_back = retry_findings(
        evidence.redelivered_messages,
        known_ends(evidence),
        evidence.cluster,
        limits.retry_warn_messages,
        limits.retry_gap_s,
        evidence.groups,
        frozenset(evidence.topic_config["topic"]),
    )
    return pl.concat([sent_back, listeners])


def known_ends(evidence: FindingEvidence) -> pl.DataFrame:
    """Return the ends of retry and dead letter topics by answers to pulls, and the ends of all queues by polls."""
    return pl.concat([evidence.returned_ends, polled_ends(evidence.topic_stats)])


RETRY_GROWTH = FindingKind(
    name="retry_growth",
    find=find_retries,
    confidence=1.0,
    needs=(Need("consume_log"),),
    thresholds=("findings.retry_warn_messages", "findings.retry_gap_s"),
    # Tries end as a dead letter.
    causes=(Cause("dead_letter", same=("consumer_group",), after_s=600, before_s=3600),),
    ends_after="findings.retry_gap_s",
)


def returned_ends_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return pulled_ends' rows of retry and dead letter topics that the answers to a shard's pulls state."""
    topic = pl.col("topic").str
    return pulled_ends(pull.filter(topic.starts_with(RETRY) | topic.starts_with(DLQ)))


def retried_topics(redelivered_messages: pl.DataFrame, ends: pl.DataFrame) -> set[str]:
    """Return the retry topics that hold messages; the frames are as in `retry_findings`."""
    with_messages = ends.filter(pl.col("topic").str.starts_with(RETRY) & (pl.col("queue_max_offset") > 0))["topic"]
    return {*with_messages, *(RETRY + group for group in redelivered_messages["consumer_group"].drop_nulls())}


def retry_findings(
    redelivered_messages: pl.DataFrame,
    ends: pl.DataFrame,
    cluster: str,
    warn_messages: int,
    gap_s: int,
    groups: Collection[str] = (),
    topics: Collection[str] = (),
) -> pl.DataFrame:
    """Return RETRY_GROWTH: messages sent back, by the consumers' logs; for a group without one, by its topic's end.

    ``redelivered_messages`` has deliveries.py's rows of all shards. ``ends`` has the rows of
    `returned_ends_of_shard` of all shards and those of topic statistics. Fewer than ``warn_messages`` are info.
    ``groups`` and ``topics`` are those known: the name of a retry topic of POP has both.
    """
    own = RETRY + pl.col("consumer_group")
    logged = redelivered_messages.select(
        GROUP, own.alias("topic"), "ts", pl.lit(1, pl.Int64).alias("messages"), "record_id"
    )
    named = growth(ends, RETRY).join(_retry_owners(ends, groups, topics), on="topic")
    grown = named.join(logged, on=GROUP, how="anti")
    by = (GROUP, "topic", "pop_topic")
    together = with_session(pl.concat([logged, grown], how="diagonal"), by, "ts", "ts", gap_s)
    keys = row_key("record_id").filter(pl.col("record_id").is_not_null())
    found = together.group_by(*by, "session").agg(
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        total("messages").alias("messages"),
        evidence_rows("silver.consume", keys.unique().sort().implode()),
    )
    many = pl.col("messages") >= warn_messages
    severity = pl.when(many).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(found, RETRY_GROWTH, cluster, severity=severity)


def failed_listeners(failed: pl.DataFrame, cluster: str, warn_messages: int, gap_s: int) -> pl.DataFrame:
    """Return RETRY_GROWTH of failures that clients logged: a concurrent listener sends a message back, an orderly one
    gets it again (ConsumeMessageConcurrentlyService, ConsumeMessageOrderlyService). ``failed`` are rows of
    silver.client_error; fewer than ``warn_messages`` are info.
    """
    error = pl.col("error").drop_nulls()
    keys = row_key("record_id").unique().sort().implode()
    found = (
        with_session(failed, (GROUP,), "ts", "ts", gap_s)
        .group_by(GROUP, "session")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            pl.len().cast(pl.Int64).alias("messages"),
            error.mode().sort().first().alias("exception"),
            (error.n_unique() - 1).cast(pl.Int64).alias("others"),
            pl.col("is_orderly").fill_null(value=False).any(),
            *map(one_or_none, ("topic", "broker_name", "queue_id", "client_id")),
            one_or_none("queue_offset").alias("failed_offset"),
            evidence_rows("silver.client_error", keys),
        )
    )
    severity = pl.when(pl.col("messages") >= warn_messages).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(found, RETRY_GROWTH, cluster, severity=severity, form=LISTENER_CALL, advice_form=LISTENER_CALL)


def _retry_owners(ends: pl.DataFrame, groups: Collection[str], topics: Collection[str]) -> pl.DataFrame:
    """Return topic, consumer_group, pop_topic of each retry topic among the ends of queues.

    A name that fits several known groups has none. One that fits none of them is of a group of this name.
    """
    owned = []
    for name in ends["topic"].unique():
        if name.startswith(RETRY):
            whole = name.removeprefix(RETRY)
            readings = retry_topic_owners(name, groups, topics)
            group, topic = (readings[0].consumer_group, readings[0].topic) if readings else (whole, None)
            owned.append((name, None if len(readings) > 1 else group, None if len(readings) > 1 else topic))
    return pl.DataFrame(owned, {"topic": pl.String, "consumer_group": pl.String, "pop_topic": pl.String}, orient="row")


def growth(ends: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """Return topic, since, ts, messages: by how much a queue of such a topic grew from an end to a higher one."""
    of_topics = ends.filter(pl.col("topic").str.starts_with(prefix)).sort("at", "queue_max_offset")
    before = of_topics.with_columns(
        pl.col("queue_max_offset").cum_max().shift(1).over(QUEUE).alias("before"),
        pl.col("at").shift(1).over(QUEUE).alias("since"),
    )
    return before.filter(pl.col("queue_max_offset") > pl.col("before")).select(
        "topic", "since", pl.col("at").alias("ts"), less("queue_max_offset", "before").alias("messages")
    )
