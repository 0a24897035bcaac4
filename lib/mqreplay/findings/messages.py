"""Messages that a group sent back, gave up, or received more than once."""

from __future__ import annotations

import polars as pl

from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.ownership import RETRY
from mqreplay.findings.shape import (
    counted,
    evidence,
    evidence_row,
    evidence_rows,
    finding,
    key_text,
    one_or_none,
)
from mqreplay.judge.deliveries import MESSAGE
from mqreplay.judge.offset_continuity import pulled_ends
from mqreplay.judge.queue_events import QUEUE
from mqreplay.judge.saturating import less, total
from mqreplay.judge.time_spans import with_session

RETRY_GROWTH = FindingKind(
    name="retry_growth",
    rule="Consumers answered RECONSUME_LATER: the messages went to the group's retry topic.",
    follows="ConsumeMessageConcurrentlyService#processConsumeResult",
    advice="See why the listener fails on them; each try waits longer, and the last ends as a dead letter.",
    confidence=1.0,
    needs=("consume_log",),
    # Tries end as a dead letter.
    causes=(Cause("dead_letter", same=("consumer_group",), after_s=600, before_s=3600),),
)
DEAD_LETTER = FindingKind(
    name="dead_letter",
    rule="The group's dead letter topic came to be or grew, or a message failed at its last try.",
    follows="SendMessageProcessor#consumerSendMsgBack",
    advice="Read them there, mend what failed, and send them again; nothing does so by itself.",
    confidence=0.95,
    needs=("topics",),
)
DUPLICATE_DELIVERY = FindingKind(
    name="duplicate_delivery",
    rule="One place of a queue was consumed successfully more than once by the group.",
    follows="RocketMQ delivers at least once",
    advice="RocketMQ delivers at least once: consumers must bear a message twice, by its key.",
    confidence=1.0,
    needs=("consume_log",),
    causes=(
        Cause("strategy_conflict", same=("consumer_group",)),
        Cause("subscription_conflict", same=("consumer_group",)),
        Cause("consumer_lost", same=("consumer_group",), after_s=150),
        # A queue lost with its broker changes hands: the finding may span brokers.
        Cause("broker_down", same=(), after_s=180),
        Cause("double_owned_queue", same=("consumer_group",)),
        # The rewind first: a reset ahead delivers nothing again, and one that goes back shows as a rewind.
        Cause("offset_rewind", same=("consumer_group",), after_s=180),
        Cause("offset_reset", same=("consumer_group",), after_s=180),
        Cause("offset_beyond_max", same=("consumer_group",), after_s=180),
    ),
)
DLQ = "%DLQ%"  # MixAll.DLQ_GROUP_TOPIC_PREFIX
MAX_RECONSUME = 16  # SubscriptionGroupConfig.retryMaxTimes
GROUP = ("consumer_group",)


def returned_ends_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return pulled_ends' rows of retry and dead letter topics that the answers to a shard's pulls state."""
    topic = pl.col("topic").str
    return pulled_ends(pull.filter(topic.starts_with(RETRY) | topic.starts_with(DLQ)))


def retried_topics(came_back: pl.DataFrame, ends: pl.DataFrame) -> set[str]:
    """Return the retry topics that hold messages; the frames are as in `retry_findings`."""
    with_messages = ends.filter(pl.col("topic").str.starts_with(RETRY) & (pl.col("queue_max_offset") > 0))["topic"]
    return {*with_messages, *(RETRY + group for group in came_back["consumer_group"].drop_nulls())}


def retry_findings(
    came_back: pl.DataFrame, ends: pl.DataFrame, cluster: str, warn_messages: int, gap_s: int
) -> pl.DataFrame:
    """Return RETRY_GROWTH: messages sent back, by the consumers' logs; for a group without one, by its topic's end.

    ``came_back`` has the rows of judge/deliveries.py's came_back of all shards. ``ends`` has the rows of
    `returned_ends_of_shard` of all shards and those of topic statistics. Fewer than ``warn_messages`` are info.
    """
    logged = came_back.select(*GROUP, "ts", pl.lit(1, pl.Int64).alias("messages"), "record_id")
    grown = _growth(ends, RETRY).join(logged, on=GROUP, how="anti")
    together = with_session(pl.concat([logged, grown], how="diagonal"), GROUP, "ts", "ts", gap_s)
    keys = key_text("record_id").filter(pl.col("record_id").is_not_null())
    found = together.group_by(*GROUP, "session").agg(
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        total("messages").alias("messages"),
        evidence_rows("silver.consume", keys.unique().sort().implode()),
    )
    summary = pl.format(
        "Group {} sent messages back to be consumed later, {}.", "consumer_group", counted("messages", "time")
    )
    many = pl.col("messages") >= warn_messages
    severity = pl.when(many).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(_with_topic(found, RETRY), RETRY_GROWTH, cluster, severity=severity, summary=summary)


def dead_letters(
    came_back: pl.DataFrame, topic_config: pl.DataFrame, ends: pl.DataFrame, cluster: str, gap_s: int
) -> pl.DataFrame:
    """Return DEAD_LETTER: a group's dead letter topic was created, or grew, or a last try failed.

    ``came_back`` and ``ends`` are as in `retry_findings`.
    """
    created = _created(topic_config).select(
        *GROUP, "ts", _row("silver.topic_config", "source_name", "topic"), pl.lit(None, pl.Int64).alias("messages")
    )
    grown = _growth(ends, DLQ)
    last_try = came_back.filter(pl.col("reconsume_times") >= MAX_RECONSUME).select(
        *GROUP, "ts", _row("silver.consume", "record_id"), pl.lit(1, pl.Int64).alias("messages")
    )
    given_up = pl.concat([created, grown, last_try], how="diagonal")
    found = (
        with_session(given_up, GROUP, "ts", "ts", gap_s)
        .group_by(*GROUP, "session")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            total("messages").alias("messages"),
            pl.col("row").drop_nulls().unique().sort().implode().alias("evidence"),
        )
    )
    summary = pl.format(
        "Group {} gave up {}, now in topic {}.",
        "consumer_group",
        counted("messages", "message").fill_null("messages"),
        "topic",
    )
    return finding(_with_topic(found, DLQ), DEAD_LETTER, cluster, severity="warning", summary=summary)


def duplicate_findings(repeated: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return DUPLICATE_DELIVERY, of the rows of judge/deliveries.py's repeated_deliveries of all shards.

    A queue that changes hands takes along some messages that its last owner had not committed: normal, so info. The
    same client receiving a message again, with nothing else to explain it, is not.
    """
    together = with_session(repeated, GROUP, "ts", "ts", gap_s)
    found = together.group_by(*GROUP, "session").agg(
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        pl.struct(MESSAGE).n_unique().alias("messages"),
        (pl.col("client_id") == pl.col("first_client_id")).any().alias("same_client"),
        one_or_none("topic"),
        one_or_none("broker_name"),
        evidence("silver.consume", "record_id"),
    )
    to_same, moved = pl.lit("to a client that had had them"), pl.lit("when their queues changed hands")
    summary = pl.format(
        "Group {} was given {} more than once, {}.",
        "consumer_group",
        counted("messages", "message"),
        pl.when("same_client").then(to_same).otherwise(moved),
    )
    severity = pl.when("same_client").then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(found, DUPLICATE_DELIVERY, cluster, severity=severity, summary=summary)


def _created(topic_config: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of dead letter topics that masters created after the first copy of their topics.json."""
    first = topic_config.group_by("source_name").agg(pl.col("ts").min().alias("first_ts"))
    of_master = (pl.col("change") == "first") & (pl.col("broker_id") == 0)
    created = topic_config.filter(pl.col("topic").str.starts_with(DLQ) & of_master).join(first, on="source_name")
    return created.filter(pl.col("ts") > pl.col("first_ts")).with_columns(_group_of(DLQ))


def _growth(ends: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """Return GROUP, ts, messages: by how much a queue of such a topic grew, each time a master stated a later end."""
    of_topics = ends.filter(pl.col("topic").str.starts_with(prefix)).sort("at", "queue_max_offset")
    before = of_topics.with_columns(pl.col("queue_max_offset").shift(1).over(QUEUE).alias("before"))
    return before.filter(pl.col("queue_max_offset") > pl.col("before")).select(
        _group_of(prefix), pl.col("at").alias("ts"), less("queue_max_offset", "before").alias("messages")
    )


def _group_of(prefix: str) -> pl.Expr:
    return pl.col("topic").str.strip_prefix(prefix).alias("consumer_group")


def _with_topic(found: pl.DataFrame, prefix: str) -> pl.DataFrame:
    return found.with_columns((pl.lit(prefix) + pl.col("consumer_group")).alias("topic"))


def _row(table: str, *key: str) -> pl.Expr:
    """Return each row as evidence, ``row``."""
    return evidence_row(pl.lit(table), key_text(*key)).alias("row")
