"""Topics whose number of queues changed, and offsets that outlived their queues."""

from __future__ import annotations

import polars as pl

from mqreplay.core.pop_assignment import LMQ_PREFIX
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, evidence_rows, finding, one_or_none, row_key


def find_changed_counts(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the topics whose number of queues changed."""
    return changed_counts(evidence.topic_config, evidence.cluster)


def find_orphan_keys(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the offsets of queues that no longer exist."""
    return orphan_offset_keys(evidence.orphan_offsets, evidence.cluster)


QUEUE_COUNT_CHANGED = FindingKind(
    name="queue_count_changed",
    find=find_changed_counts,
    confidence=1.0,
    needs=(Need("topics"),),
)
ORPHAN_OFFSET_KEY = FindingKind(
    name="orphan_offset_key",
    find=find_orphan_keys,
    confidence=0.9,
    needs=(Need("topics"),),
    ends_after=None,  # the configuration of a new topic may be polled after its first offset
)
ONE_CHANGE_S = 120  # a change of a topic reaches all masters within
ONE_STEP_S = 40  # one change of a master may take several commands: they are this close to each other
SOURCE_TOPIC = ("source_name", "topic")
QUEUE_COUNTS = ("read_queue_nums", "write_queue_nums")
COUNTS_BEFORE = ("was_read", "was_write")


def changed_counts(topic_config: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return QUEUE_COUNT_CHANGED, of masters' topics: read or write queues became more or fewer.

    Changes of one topic at about the same time are one finding: of read and of write queues, and on several masters if
    all changed alike.
    """
    before = {
        was: pl.col(now).shift(1).over(SOURCE_TOPIC) for was, now in zip(COUNTS_BEFORE, QUEUE_COUNTS, strict=True)
    }
    configs = topic_config.filter(pl.col("broker_id") == 0).sort("ts").with_columns(**before)
    differs = pl.any_horizontal(
        pl.col(was) != pl.col(now) for was, now in zip(COUNTS_BEFORE, QUEUE_COUNTS, strict=True)
    )
    steps = configs.filter(differs).with_columns(row_key(*SOURCE_TOPIC, "ts"))
    once = _joined(steps.with_columns(pl.col("ts").alias("from_ts"), pl.col("ts").alias("to_ts")), ONE_STEP_S)
    # To grow is one change even if read and write counts follow each other later; to shrink needs two.
    of_master = pl.concat([_joined(once.filter(_grew()), ONE_CHANGE_S), once.filter(~_grew())]).sort("from_ts")
    of_master = of_master.filter(~_same())
    by = ["topic", *COUNTS_BEFORE, *QUEUE_COUNTS]
    keys = pl.col("key").explode().unique().sort().implode()
    merged = (
        with_session(of_master, by, "from_ts", "to_ts", ONE_CHANGE_S)
        .group_by(*by, "session")
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col("broker_name").drop_nulls().unique().sort().implode().alias("brokers"),
            one_or_none("broker_name"),
            evidence_rows("silver.topic_config", keys),
        )
    )
    advice = pl.when(_grew()).then(pl.lit("grown")).otherwise(pl.lit(""))
    return finding(merged, QUEUE_COUNT_CHANGED, cluster, severity="info", advice_form=advice)


def _joined(changes: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return changes of one master and topic that are ``gap_s`` seconds apart or less as one, with all their keys."""
    of_one = with_session(changes, SOURCE_TOPIC, "from_ts", "to_ts", gap_s)
    return (
        of_one.group_by(*SOURCE_TOPIC, "broker_name", "session", maintain_order=True)
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col(COUNTS_BEFORE).first(),
            pl.col(QUEUE_COUNTS).last(),
            pl.col("key").explode() if isinstance(changes.schema["key"], pl.List) else pl.col("key"),
        )
        .drop("session")
    )


def _grew() -> pl.Expr:
    """Return whether no count became smaller; one that is not known may have."""
    pairs = zip(COUNTS_BEFORE, QUEUE_COUNTS, strict=True)
    return pl.all_horizontal(pl.col(was) <= pl.col(now) for was, now in pairs).fill_null(value=False)


def _same() -> pl.Expr:
    """Return whether the counts are what they were: a change that was taken back at once."""
    pairs = zip(COUNTS_BEFORE, QUEUE_COUNTS, strict=True)
    return pl.all_horizontal(pl.col(was).eq_missing(pl.col(now)) for was, now in pairs)


def orphans_of_shard(offset_change: pl.DataFrame, topic_config: pl.DataFrame) -> pl.DataFrame:
    """Return the entries of masters' offset files, as last copied, whose queue or topic the master no longer has.

    SOURCE_TOPIC, broker_name, broker_id, consumer_group, queue_id and ``to_ts``: since when the entry is an orphan.
    Nothing of a master whose topics.json was never copied. An entry that is newer than the last change of topics.json
    may be of a topic that is newer too, such as a retry topic; but not if its group has the name of a topic: then both
    are swapped, as a reset does (ConsumerOffsetManagerV2#assignResetOffset of 5.4 and 5.5). ConsumerOffsetManager never
    drops the entries of removed queues.
    """
    topics = _last_configs(topic_config)
    copied = (
        topic_config.filter(pl.col("broker_id") == 0).group_by("source_name").agg(pl.col("ts").max().alias("copied"))
    )
    names = topics.select("source_name", pl.col("topic").alias("consumer_group"), pl.lit(True).alias("swapped"))
    gone = pl.col("last_change").is_null() | (pl.col("last_change") == "removed")
    left = (
        offset_change.filter(pl.col("broker_id") == 0)
        .join(topics, "source_name", how="semi")
        .join(topics, SOURCE_TOPIC, how="left")
        # A light message queue is in no topics.json (LmqTopicConfigManager#updateTopicConfig).
        .filter(~pl.col("topic").str.starts_with(LMQ_PREFIX))
        .filter(gone | (pl.col("queue_id") >= pl.col("read_queue_nums")))
    )
    entry = (*SOURCE_TOPIC, "broker_name", "broker_id", "consumer_group", "queue_id")
    last = left.group_by(entry).agg(
        pl.col("new_offset").sort_by("to_ts").last(),
        pl.col("to_ts").min().alias("entered"),
        pl.col("to_ts").max(),
        pl.col("counted_since").first(),
        pl.col("last_change").first(),
    )
    known = last.join(copied, "source_name").join(names, ["source_name", "consumer_group"], how="left")
    may_be_new = pl.col("last_change").is_null() & (pl.col("entered") > pl.col("copied")) & pl.col("swapped").is_null()
    # An orphan since the queue was gone and the offset set, whichever came later.
    since = pl.max_horizontal("to_ts", "counted_since").alias("to_ts")
    return known.filter(pl.col("new_offset").is_not_null() & ~may_be_new).select(*entry, since)


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
    return finding(merged, ORPHAN_OFFSET_KEY, cluster, severity="info")
