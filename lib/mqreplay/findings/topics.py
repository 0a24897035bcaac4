"""Topics whose number of queues changed, and offsets that outlived their queues."""

from __future__ import annotations

import polars as pl

from mqreplay.findings.kind import FindingKind
from mqreplay.findings.shape import (
    counted,
    evidence,
    evidence_rows,
    finding,
    key_text,
    one_or_none,
)
from mqreplay.judge.time_spans import with_session

QUEUE_COUNT_CHANGED = FindingKind(
    name="queue_count_changed",
    rule="A master's topics.json holds another number of queues than the copy before.",
    advice="Shrink write queues first and read queues once they are consumed, or what is left in them is stranded.",
    confidence=1.0,
    needs=("topics",),
)
ORPHAN_OFFSET_KEY = FindingKind(
    name="orphan_offset_key",
    rule="The master's file keeps an offset of a queue that its topics.json no longer has.",
    follows="ConsumerOffsetManager never drops entries of removed queues",
    advice="Harmless until queues of these numbers come back: consumers would then start from the old offsets.",
    confidence=0.9,
    needs=("topics",),
)
ONE_CHANGE_S = 120  # a change of a topic reaches all masters within
ONE_STEP_S = 40  # one change of a master may take several commands: they are this close to each other
SOURCE_TOPIC = ("source_name", "topic")
COUNTS = ("read_queue_nums", "write_queue_nums")
COUNTS_BEFORE = ("was_read", "was_write")
GROWTH_ADVICE = (
    "Nothing needs to be done: consumers take the new queues with their next rebalance, and they start by"
    " consumeFromWhere. Messages of one key may now go to another queue."
)


def changed_counts(topic_config: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return QUEUE_COUNT_CHANGED, of masters' topics: read or write queues became more or fewer.

    Changes of one topic at about the same time are one finding: of read and of write queues, and on several masters if
    all changed alike.
    """
    before = {was: pl.col(now).shift(1).over(SOURCE_TOPIC) for was, now in zip(COUNTS_BEFORE, COUNTS, strict=True)}
    configs = topic_config.filter(pl.col("broker_id") == 0).sort("ts").with_columns(**before)
    differs = pl.any_horizontal(pl.col(was) != pl.col(now) for was, now in zip(COUNTS_BEFORE, COUNTS, strict=True))
    steps = configs.filter(differs).with_columns(key_text(*SOURCE_TOPIC, "ts"))
    of_master = (
        with_session(steps, SOURCE_TOPIC, "ts", "ts", ONE_STEP_S)
        .group_by(*SOURCE_TOPIC, "broker_name", "session", maintain_order=True)
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            pl.col(COUNTS_BEFORE).first(),
            pl.col(COUNTS).last(),
            "key",
        )
        .drop("session")
        .sort("from_ts")
    )
    by = ["topic", *COUNTS_BEFORE, *COUNTS]
    keys = pl.col("key").explode().unique().sort().implode()
    merged = (
        with_session(of_master, by, "from_ts", "to_ts", ONE_CHANGE_S)
        .group_by(*by, "session")
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col("broker_name").drop_nulls().unique().sort().implode().list.join(", ").alias("brokers"),
            one_or_none("broker_name"),
            evidence_rows("silver.topic_config", keys),
        )
    )
    queues = [pl.col(name).cast(pl.String).fill_null("") for name in by[1:]]
    summary = pl.format(
        "Topic {} went from {} read and {} write queues to {} and {} on {}.", "topic", *queues, "brokers"
    )
    grew = pl.all_horizontal(pl.col(was) <= pl.col(now) for was, now in zip(COUNTS_BEFORE, COUNTS, strict=True))
    # A count that is not known may have become smaller.
    advice = pl.when(grew.fill_null(False)).then(pl.lit(GROWTH_ADVICE)).otherwise(pl.lit(QUEUE_COUNT_CHANGED.advice))
    return finding(merged, QUEUE_COUNT_CHANGED, cluster, severity="info", summary=summary, advice=advice)


def orphans_of_shard(offset_change: pl.DataFrame, topic_config: pl.DataFrame) -> pl.DataFrame:
    """Return the entries of masters' offset files, as last copied, whose queue or topic the master no longer has.

    SOURCE_TOPIC, broker_name, broker_id, consumer_group, queue_id and ``to_ts``: since when the entry is an orphan.
    Nothing of a master whose topics.json was never copied. ConsumerOffsetManager never drops the entries of removed
    queues.
    """
    topics = _last_configs(topic_config)
    gone = pl.col("last_change").is_null() | (pl.col("last_change") == "removed")
    left = (
        offset_change.filter(pl.col("broker_id") == 0)
        .join(topics, "source_name", how="semi")
        .join(topics, SOURCE_TOPIC, how="left")
        .filter(gone | (pl.col("queue_id") >= pl.col("read_queue_nums")))
    )
    entry = (*SOURCE_TOPIC, "broker_name", "broker_id", "consumer_group", "queue_id")
    last = left.group_by(entry).agg(
        pl.col("new_offset").sort_by("to_ts").last(), pl.col("to_ts").max(), pl.col("counted_since").first()
    )
    # An orphan since the queue was gone and the offset set, whichever came later.
    since = pl.max_horizontal("to_ts", "counted_since").alias("to_ts")
    return last.filter(pl.col("new_offset").is_not_null()).select(*entry, since)


def _last_configs(topic_config: pl.DataFrame) -> pl.DataFrame:
    """Return for each master and topic the last change and number of read queues, and since when it is this number."""
    order = topic_config.filter(pl.col("broker_id") == 0).sort("ts")
    differs = pl.col("read_queue_nums").ne_missing(pl.col("read_queue_nums").shift(1).over(SOURCE_TOPIC))
    return (
        order.with_columns(since=pl.when(differs).then("ts"))
        .group_by(SOURCE_TOPIC)
        .agg(
            pl.col("change").last().alias("last_change"),
            pl.col("read_queue_nums").last(),
            pl.col("since").max().alias("counted_since"),
        )
    )


def orphan_offset_keys(orphans: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return ORPHAN_OFFSET_KEY, one for each broker and topic, of the rows of `orphans_of_shard` of all shards."""
    merged = orphans.group_by("topic", "broker_name", "broker_id").agg(
        pl.col("to_ts").min().alias("from_ts"),
        pl.col("to_ts").max(),
        pl.len().alias("entries"),
        pl.col("consumer_group").n_unique().alias("groups"),
        one_or_none("consumer_group"),
        evidence("silver.offset_change", *SOURCE_TOPIC, "consumer_group", "queue_id"),
    )
    offsets, groups = counted("entries", "offset"), counted("groups", "group")
    summary = pl.format(
        "{} keeps {} of {} on queues of {} that it no longer has.", "broker_name", offsets, groups, "topic"
    )
    return finding(merged, ORPHAN_OFFSET_KEY, cluster, severity="info", summary=summary)
