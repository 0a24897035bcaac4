"""Groups that began a queue without a stored offset, and skipped or repeated what was in it."""

from __future__ import annotations

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, one_or_none

GROUP_TOPIC = ["consumer_group", "topic"]
NEEDS = (Need("offset_commits"), Need("pull_log"))


def new_starts_of_shard(starts: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of gold.queue_start that began without a stored offset.

    Columns: those of gold.queue_start that the findings need.
    """
    # A retry topic is made with its group, and is always read from 0.
    is_retry = pl.col("topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX)
    return starts.filter(~pl.col("had_offset") & ~is_retry).select(
        *GROUP_TOPIC,
        *("broker_name", "queue_id", "client_id", "request_ts", "consume_from_where"),
        *("actual_offset", "max_offset", "skipped", "record_id"),
    )


def first_uses_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return the first pull of each group from each topic of a shard. Columns: consumer_group, topic, used_ts."""
    return pull.group_by(GROUP_TOPIC).agg(pl.col("request_ts").min().alias("used_ts"))


def find_skipped(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups that skipped messages in queues of which they had no offset."""
    return skipped_starts(evidence.new_starts, evidence.first_uses, evidence.cluster, limits.same_cause_gap_s)


def find_from_oldest(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups that began with the oldest messages of queues of which they had no offset."""
    return oldest_starts(
        evidence.new_starts, evidence.first_uses, evidence.cluster, limits.same_cause_gap_s, limits.start_messages
    )


START_SKIPPED = FindingKind(
    name="start_skipped",
    find=find_skipped,
    meaning="A group began a queue behind messages that were already in it, and never gets them. If the group is new,"
    " that is what CONSUME_FROM_LAST_OFFSET is for. If it already consumed the topic, they are lost to it: they arrived"
    " in a new queue, or in one without a stored offset, before a consumer asked for its end.",
    rule="The broker had no stored offset of the group for the queue (QUERY_NOT_FOUND), and the first pull began above"
    " the smallest offset of the queue. It is critical if the group had consumed the topic before.",
    follows="RebalancePushImpl#computePullFromWhere",
    advice="If the group needs these messages, set its offsets back: `mqadmin resetOffsetByTime -g GROUP -t TOPIC -s"
    " TIME -n NAMESRV`; it then gets all messages since this time again. Before you add queues to a topic, set"
    " consumeFromWhere of its groups to CONSUME_FROM_FIRST_OFFSET: it counts only for queues without a stored offset.",
    confidence=0.9,
    needs=NEEDS,
    thresholds=("findings.same_cause_gap_s",),
    example="Group pay-group skipped 51 messages of pay-topic in 2 queues (broker-a/4, broker-b/4): no stored offset,"
    " and CONSUME_FROM_LAST_OFFSET. It had consumed the topic before: these messages are lost to it.",
    causes=(Cause("queue_count_changed", same=("topic",), after_s=3600),),
    ends_after=None,
)
START_FROM_OLDEST = FindingKind(
    name="start_from_oldest",
    find=find_from_oldest,
    meaning="A group without stored offsets began with the oldest messages of a topic, and works through all of them"
    " before it sees new ones. That is what CONSUME_FROM_FIRST_OFFSET is for; a broker also does so whatever"
    " consumeFromWhere says, while a queue still has its first message in memory. If the group had consumed the topic"
    " before, its stored offsets were lost, and it gets everything again.",
    rule="The broker had no stored offset of the group, the first pulls began at the smallest offsets of the queues,"
    " and at least start_messages messages were waiting. It is a warning if the group had consumed the topic before, or"
    " has CONSUME_FROM_LAST_OFFSET.",
    follows="RebalancePushImpl#computePullFromWhere; ConsumerManageProcessor#queryConsumerOffset",
    advice="If the group does not need them, skip them: `mqadmin skipAccumulatedMessage -g GROUP -t TOPIC -n NAMESRV`."
    " If stored offsets were lost, find out why: `mqadmin consumerProgress -g GROUP -n NAMESRV`, and the files"
    " consumerOffset.json and consumerOffset.json.bak of the broker.",
    confidence=0.9,
    needs=NEEDS,
    thresholds=("findings.same_cause_gap_s", "findings.start_messages"),
    example="Group audit-group began with the oldest messages of pay-topic in 9 queues; 90210 messages waited. It has"
    " CONSUME_FROM_FIRST_OFFSET.",
    ends_after=None,
)
QUEUES_NAMED = 8  # queues in a summary; more are counted


def skipped_starts(starts: pl.DataFrame, uses: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return START_SKIPPED. ``starts`` and ``uses`` are rows of new_starts_of_shard and first_uses_of_shard.

    Starts of one group and topic that are ``gap_s`` seconds apart or less are one finding.
    """
    merged = _merged(starts.filter(pl.col("skipped") > 0), uses, gap_s, pl.col("skipped"))
    existed = pl.col("existed")
    after = pl.when(existed).then(pl.lit(" It had consumed the topic before: these messages are lost to it."))
    summary = pl.concat_str(
        pl.format("Group {} skipped ", "consumer_group"),
        counted("messages", "message"),
        pl.format(" of {} in ", "topic"),
        _queues(),
        pl.format(": no stored offset, and {}.", pl.col("where").fill_null("an unknown consumeFromWhere")),
        after.otherwise(pl.lit(" No earlier pull of the group from the topic was recorded.")),
    )
    severity = pl.when(existed).then(pl.lit("critical")).otherwise(pl.lit("info"))
    return finding(merged, START_SKIPPED, cluster, severity=severity, summary=summary)


def oldest_starts(
    starts: pl.DataFrame, uses: pl.DataFrame, cluster: str, gap_s: int, start_messages: int
) -> pl.DataFrame:
    """Return START_FROM_OLDEST; the arguments as above. With fewer messages than ``start_messages`` there is none."""
    waiting = pl.col("max_offset") - pl.col("actual_offset")
    merged = _merged(starts.filter(pl.col("skipped") == 0), uses, gap_s, waiting)
    surprising = pl.col("where") == "CONSUME_FROM_LAST_OFFSET"
    who = (
        pl.when(pl.col("existed"))
        .then(pl.lit(" It had consumed the topic before, and had no stored offset any more."))
        .when(surprising)
        .then(pl.lit(" It has CONSUME_FROM_LAST_OFFSET, which does not count in queues that still have all messages."))
        .otherwise(pl.format(" It has {}.", pl.col("where").fill_null("an unknown consumeFromWhere")))
    )
    summary = pl.concat_str(
        pl.format("Group {} began with the oldest messages of {} in ", "consumer_group", "topic"),
        _queues(),
        pl.lit("; "),
        counted("messages", "message"),
        pl.lit(" waited."),
        who,
    )
    severity = pl.when(pl.col("existed") | surprising.fill_null(value=False)).then(pl.lit("warning"))
    many = merged.filter(pl.col("messages") >= start_messages)
    return finding(many, START_FROM_OLDEST, cluster, severity=severity.otherwise(pl.lit("info")), summary=summary)


def _merged(starts: pl.DataFrame, uses: pl.DataFrame, gap_s: int, messages: pl.Expr) -> pl.DataFrame:
    """Return the starts of a group and topic as one row. existed: the group had pulled from the topic long before."""
    sessions = with_session(
        starts.with_columns(pl.col("request_ts").alias("from_ts"), pl.col("request_ts").alias("to_ts")),
        GROUP_TOPIC,
        "from_ts",
        "to_ts",
        gap_s,
    )
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    merged = sessions.group_by(*GROUP_TOPIC, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        place.unique().sort().implode().alias("places"),
        # The sum may not fit 64 bits: a broker may answer any offset.
        messages.cast(pl.Int128).sum().alias("messages"),
        one_or_none("consume_from_where").alias("where"),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        one_or_none("client_id"),
        evidence("gold.queue_start", "record_id"),
    )
    first = uses.group_by(GROUP_TOPIC).agg(pl.col("used_ts").min())
    # The queues of a new group start at its first rebalances.
    existed = pl.col("used_ts") < pl.col("from_ts") - pl.duration(seconds=gap_s)
    return merged.join(first, GROUP_TOPIC, how="left").with_columns(existed.fill_null(value=False).alias("existed"))


def _queues() -> pl.Expr:
    """Return the queues in words: '2 queues (broker-a/4, broker-b/4)'."""
    number, places = pl.col("places").list.len(), pl.col("places")
    named = pl.when(number <= QUEUES_NAMED).then(pl.format(" ({})", places.list.join(", "))).otherwise(pl.lit(""))
    return counted(number.cast(pl.Int64), "queue") + named
