"""Messages that a group gave up, and retries that came late."""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX as DLQ
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.decode.broker_events import TOPIC_CREATED
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.frame_arrays import total
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.messages import growth, known_ends
from mqreplay.findings.shape import evidence, evidence_row, finding, row_key
from mqreplay.words.keys import GROUP, QUEUE

RETRIED_TABLE = "gold.retried_message"
COPIED_EACH = dt.timedelta(seconds=60)  # a broker's topics; a copy is kept if they changed
MAX_RECONSUME = 16  # SubscriptionGroupConfig.retryMaxTimes
# Findings that say why a group received its retries late.
OF_GROUP = ("lag_grows", "stuck_queue", "orphan_queue", "pull_refused")


def find_dead_letters(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups that gave up messages."""
    return dead_letters(
        evidence.retried_messages,
        evidence.redelivered_messages,
        evidence.max_reconsume_times,
        evidence.topic_config,
        known_ends(evidence),
        evidence.cluster,
        limits.same_cause_gap_s,
        evidence.broker_event,
    )


def find_late_retries(evidence: FindingEvidence, limits: Limits, found: pl.DataFrame) -> pl.DataFrame:
    """Return the groups whose retries came late, without a finding among ``found`` that explains it."""
    return late_retries(
        evidence.retried_messages,
        found,
        evidence.members,
        evidence.cluster,
        limits.same_cause_gap_s,
        limits.late_retry_s,
    )


DEAD_LETTER = FindingKind(
    name="dead_letter",
    find=find_dead_letters,
    confidence=0.95,
    needs=(Need("topics"),),
    thresholds=("findings.same_cause_gap_s",),
)
LATE_RETRY = FindingKind(
    name="late_retry",
    find_in_findings=find_late_retries,
    confidence=0.9,
    needs=(Need("consume_log"),),
    thresholds=("findings.late_retry_s", "findings.same_cause_gap_s"),
    causes=(Cause("delay_offset_stuck", same=("broker_name",), after_s=120),),
)


def dead_letters(
    retried_messages: pl.DataFrame,
    redelivered_messages: pl.DataFrame,
    max_reconsume_times: pl.DataFrame,
    topic_config: pl.DataFrame,
    ends: pl.DataFrame,
    cluster: str,
    gap_s: int,
    broker_event: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return DEAD_LETTER: a message was sent back without a retry left; a dead letter topic was created, or grew.

    ``retried_messages`` has rows of gold.retried_message; ``redelivered_messages`` and ``ends`` are as in
    messages.retry_findings. ``max_reconsume_times`` has the rows of deliveries.py's max_reconsume_times_of_shard of all
    shards. Messages are counted by requests and by the log of the consumers; for a group without them, by how much its
    topic grew, and the finding begins when the first of these messages could have been sent. ``broker_event`` is the
    silver table: a broker creates the topic for its first message (AbstractSendMessageProcessor#consumerSendMsgBack).
    """
    copied = _created(topic_config).select(GROUP, "ts", _row("silver.topic_config", "source_name", "topic"))
    written = [copied] if broker_event is None else [copied, _created_by_logs(broker_event)]
    created = pl.concat(written).with_columns(pl.lit(None, pl.Int64).alias("messages"))
    begun = _first_ends(ends, _created(topic_config))
    grown = pl.concat([growth(ends, DLQ).select(_group_of(DLQ), "since", "ts", "messages"), begun])
    requested = _requested(retried_messages)
    # The rule decided about a message whose request was recorded.
    decided = retried_messages.filter(pl.col("delay_level").is_not_null())
    known = redelivered_messages.join(decided, left_on="record_id", right_on="consume_record_id", how="anti")
    logged = _last_tries(
        known,
        max_reconsume_times,
        pl.concat([frame.select(GROUP) for frame in (created, grown, requested)]),
    ).select(GROUP, "ts", _row("silver.consume", "record_id"), pl.lit(1, pl.Int64).alias("messages"))
    of_topic = grown.join(pl.concat([logged.select(GROUP), requested.select(GROUP)]), on=GROUP, how="anti")
    abandoned = pl.concat([created, of_topic, logged, requested], how="diagonal").with_columns(
        pl.coalesce("since", "ts").alias("since")
    )
    found = (
        with_session(abandoned, (GROUP,), "since", "ts", gap_s)
        .group_by(GROUP, "session")
        .agg(
            pl.col("since").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            total("messages").alias("messages"),
            pl.col("why").drop_nulls().unique().sort().implode(),
            pl.col("row").drop_nulls().unique().sort().implode().alias("evidence"),
        )
    )
    named = found.with_columns((pl.lit(DLQ) + pl.col("consumer_group")).alias("topic"))
    return finding(named, DEAD_LETTER, cluster, severity="warning")


def late_retries(
    retried_messages: pl.DataFrame, found: pl.DataFrame, members: pl.DataFrame, cluster: str, gap_s: int, late_s: int
) -> pl.DataFrame:
    """Return LATE_RETRY. ``members`` is the frame of membership.py, ``found`` has the findings of other kinds.

    Late retries of one group and broker with at most ``gap_s`` seconds between them are one finding.
    """
    never = pl.col("delivered_ts").is_null() & (pl.col("judgement") == "differ") & pl.col("due_ts").is_not_null()
    total_s = (pl.col("delivered_ts") - pl.col("due_ts")).dt.total_milliseconds() / 1000
    requested = retried_messages.filter(
        pl.col("delay_level").is_not_null() & (pl.col("stored_ts").is_not_null() | never)
    )
    until_ts = pl.col("due_ts") + pl.duration(milliseconds=(pl.col("late_s") * 1000).cast(pl.Int64))
    late = requested.with_columns(
        never.alias("never"),
        pl.when(never).then("late_s").otherwise(total_s).alias("total_s"),
        pl.when(never).then(until_ts).otherwise("delivered_ts").alias("delivered_ts"),
    ).filter(pl.col("total_s") > late_s)
    open_rows = _unexplained(late, found).join(_unattended(late, members), "record_id", how="anti")
    broker_late = pl.col("late_s") > late_s
    by = (GROUP, "broker_name", "never")
    merged = (
        with_session(open_rows.with_columns(broker_late.alias("broker_late")), by, "due_ts", "delivered_ts", gap_s)
        .group_by(*by, "session")
        .agg(
            pl.col("due_ts").min().alias("from_ts"),
            pl.col("delivered_ts").max().alias("to_ts"),
            pl.len().cast(pl.Int64).alias("messages"),
            pl.col("total_s", "late_s", "waited_s").max().round().cast(pl.Int64),
            pl.col("broker_late").any(),
            evidence(RETRIED_TABLE, "record_id"),
        )
        .with_columns((pl.lit(RETRY) + pl.col("consumer_group")).alias("topic"))
    )
    severity = pl.when(pl.col("broker_late")).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(merged, LATE_RETRY, cluster, severity=severity)


def _unexplained(late: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return the late retries without an outage of their master, and without a finding about their group's progress."""
    spans = found.select(
        "kind",
        "consumer_group",
        "broker_name",
        "broker_id",
        pl.col("from_ts").alias("began_ts"),
        pl.coalesce("to_ts", "from_ts").alias("ended_ts"),
    )
    outages = spans.filter((pl.col("kind") == "broker_down") & (pl.col("broker_id") == 0)).drop("consumer_group")
    of_group = spans.filter(pl.col("kind").is_in(OF_GROUP)).drop("broker_name")
    overlaps = (pl.col("began_ts") <= pl.col("delivered_ts")) & (pl.col("ended_ts") >= pl.col("sent_ts"))
    explained = [
        late.join(causes, name).filter(overlaps).select("record_id")
        for causes, name in ((outages, "broker_name"), (of_group, "consumer_group"))
    ]
    return late.join(pl.concat(explained), "record_id", how="anti")


def _unattended(late: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the record_id of late retries that were due when no known member of their group was there."""
    sessions = members.select("consumer_group", pl.col("from_ts", "to_ts").name.suffix("_member"))
    of_known = late.join(sessions, "consumer_group")
    present = (pl.col("from_ts_member") <= pl.col("due_ts")) & (pl.col("to_ts_member") >= pl.col("due_ts"))
    attended = of_known.filter(present).select("record_id")
    return of_known.select("record_id").unique().join(attended, "record_id", how="anti")


def _requested(retried_messages: pl.DataFrame) -> pl.DataFrame:
    """Return the dead letters by the rule: consumer_group, ts, row, messages, why."""
    is_dead = pl.col("expected_topic").str.starts_with(DLQ) & (pl.col("judgement") != "differ")
    refused = pl.col("response_code").fill_null(0) != 0
    return retried_messages.filter(is_dead & ~refused).select(
        GROUP,
        pl.col("sent_ts").alias("ts"),
        _row(RETRIED_TABLE, "record_id"),
        pl.lit(1, pl.Int64).alias("messages"),
        pl.col("reason").str.split(";").list.first().alias("why"),
    )


def _last_tries(
    redelivered_messages: pl.DataFrame, max_reconsume_times: pl.DataFrame, gave_up: pl.DataFrame
) -> pl.DataFrame:
    """Return the rows of ``redelivered_messages`` that were the last try of their message.

    No message of a group comes back more often than its consumers' maxReconsumeTimes allow. If the group gave up
    messages (``gave_up``), the highest number that was seen is this limit; otherwise only the default is known.
    """
    of_group = (
        max_reconsume_times.group_by(GROUP).agg(pl.col("max_reconsume_times").max()).join(gave_up, on=GROUP, how="semi")
    )
    known = redelivered_messages.join(of_group, on=GROUP, how="left")
    limit = pl.min_horizontal("max_reconsume_times", pl.lit(MAX_RECONSUME, pl.Int64))
    return known.filter(pl.col("reconsume_times") >= limit)


def _created(topic_config: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of dead letter topics that masters created after the first copy of their topics.json."""
    first = topic_config.group_by("source_name").agg(pl.col("ts").min().alias("first_ts"))
    of_master = (pl.col("change") == "first") & (pl.col("broker_id") == 0)
    created = topic_config.filter(pl.col("topic").str.starts_with(DLQ) & of_master).join(first, on="source_name")
    return created.filter(pl.col("ts") > pl.col("first_ts")).with_columns(_group_of(DLQ))


def _created_by_logs(broker_event: pl.DataFrame) -> pl.DataFrame:
    """Return consumer_group, ts and row of the dead letter topics whose creation a broker logged."""
    is_dead_letter = (pl.col("event") == TOPIC_CREATED) & pl.col("topic").str.starts_with(DLQ)
    return broker_event.filter(is_dead_letter).select(_group_of(DLQ), "ts", _row("silver.broker_event", "record_id"))


def _first_ends(ends: pl.DataFrame, created: pl.DataFrame) -> pl.DataFrame:
    """Return consumer_group, since, ts, messages: what queues of a created topic held at their first known end."""
    first = ends.sort("at").unique(QUEUE, keep="first", maintain_order=True)
    # The first dead letter creates the topic, up to an interval before a copy has it: the middle errs least.
    sent = pl.max_horizontal("first_ts", pl.col("ts") - COPIED_EACH / 2).alias("since")
    copied = created.select("topic", "broker_name", sent, pl.col("ts").alias("created_ts"))
    held = first.join(copied, ["topic", "broker_name"]).filter(pl.col("queue_max_offset") > 0)
    # A queue of a topic that is new begins at 0.
    ts = pl.max_horizontal("at", "created_ts").alias("ts")
    return held.select(_group_of(DLQ), "since", ts, pl.col("queue_max_offset").alias("messages"))


def _group_of(prefix: str) -> pl.Expr:
    return pl.col("topic").str.strip_prefix(prefix).alias("consumer_group")


def _row(table: str, *key: str) -> pl.Expr:
    """Return each row as evidence, ``row``."""
    return evidence_row(pl.lit(table), row_key(*key)).alias("row")
