"""Queues that nobody held, or several clients at once; consumers that held none."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.members.ownership import disputes, due_queues, idle_members, subscribers
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.duplicate_ids import BY_DUPLICATE
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.messages import known_ends, retried_topics
from mqreplay.findings.shape import (
    EVIDENCE,
    counted,
    evidence,
    evidence_row,
    finding,
    one_or_none,
    places,
    places_text,
    row_key,
)

# Rebalances and pulls of clients show owners, too.
OWNERS = (Need("assignments", or_recorded=("rebalance_log", "pull_log")),)


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return queues without an owner or with several, and members without a queue."""
    rebalance, owners, unshared = evidence.rebalance, evidence.queue_owner, evidence.unshared_groups
    polled = evidence.polled
    subscribed = subscribers(evidence.members, evidence.heartbeat, rebalance, owners)
    due = due_queues(
        rebalance,
        evidence.pulled_queues,
        subscribed,
        owners,
        unshared,
        limits.rebalance_interval_s,
        polled.queues,
        polled.unwatched,
    )
    rebalanced = rebalance.select("consumer_group", pl.lit(REBALANCE).alias("table_name")).unique()
    return ownership_findings(
        disputes(owners, due, polled.duplicates),
        idle_members(subscribed, owners, unshared, rebalance, limits.rebalance_interval_s, polled.unwatched),
        rebalanced if polled.shown is None else pl.concat([rebalanced, polled.shown]),
        evidence.cluster,
        limits.dispute_s,
        limits.idle_s,
        limits.idle_rebalances,
        limits.rebalance_interval_s,
        limits.same_cause_gap_s,
        retried_topics(evidence.redelivered_messages, known_ends(evidence)),
    )


ORPHAN_QUEUE = FindingKind(
    name="orphan_queue",
    find=find,
    meaning="No member of the group held the queue: its messages waited.",
    rule="A queue that the group's members saw was held by none of them, longer than lists take to spread.",
    follows="RebalanceImpl#rebalanceByTopic: each member computes for itself",
    advice=(
        "Give all members the same subscription and strategy, and let them reach the same brokers and name servers:"
        " compare them with `mqadmin consumerConnection -g GROUP`. What each member saw: `mqreplay explain FINDING`."
    ),
    confidence=0.95,
    needs=OWNERS,
    thresholds=("findings.dispute_s", "findings.rebalance_interval_s", "findings.same_cause_gap_s"),
    example=(
        "Group mixalg-group left 2 queues of pay-topic (broker-b/0, broker-b/2) to nobody: 160 queue-seconds in which"
        " nobody consumed them."
    ),
    causes=(
        BY_DUPLICATE,
        Cause("strategy_conflict", same=("consumer_group",)),
        Cause("subscription_conflict", same=("consumer_group",)),
        Cause("topic_unsubscribed", same=("consumer_group", "topic"), before_s=90),  # polls are a minute apart
        Cause("consumer_lost", same=("consumer_group",), after_s=150),
        # A queue lost with its broker is fought for wherever its group is: the finding may span brokers.
        Cause("broker_down", same=(), after_s=120),
    ),
)
DOUBLE_OWNED_QUEUE = FindingKind(
    name="double_owned_queue",
    find=find,
    meaning="Several members consumed the same queue. Each got its messages, and each overwrote the others' offsets.",
    rule="Several clients of a group held one queue at once, longer than lists take to spread.",
    follows="RebalanceImpl#rebalanceByTopic: each member computes for itself",
    advice=(
        "Give all members the same strategy, and let them reach the same brokers: compare them with `mqadmin"
        " consumerConnection -g GROUP`. What each member saw: `mqreplay explain FINDING`."
    ),
    confidence=0.9,
    needs=OWNERS,
    thresholds=("findings.dispute_s", "findings.rebalance_interval_s", "findings.same_cause_gap_s"),
    example=(
        "Group mixalg-group: 2 queues of pay-topic (broker-a/0, broker-a/2) were held by up to 2 clients at once, for"
        " 159 queue-seconds; messages of them were consumed more than once."
    ),
    causes=(
        BY_DUPLICATE,
        Cause("strategy_conflict", same=("consumer_group",)),
        Cause("subscription_conflict", same=("consumer_group",)),
        Cause("broker_down", same=(), after_s=120),  # as of ORPHAN_QUEUE
    ),
)
IDLE_CONSUMER = FindingKind(
    name="idle_consumer",
    find=find,
    meaning="A running consumer did no work, since the strategy gave it no queue. Retry topics do not count.",
    rule=(
        "A member held no queue of its topics for longer than two rebalance intervals, or got none in two rebalances"
        " over more than one interval."
    ),
    follows="AllocateMessageQueueStrategy#allocate",
    advice=(
        "A group needs no more members than its topics have queues. Stop the member, or add queues: `mqadmin"
        " updateTopic -c CLUSTER -t TOPIC -r N -w N`. What it saw: `mqreplay explain FINDING`."
    ),
    confidence=0.9,
    needs=OWNERS,
    thresholds=("findings.idle_s", "findings.idle_rebalances", "findings.rebalance_interval_s"),
    example="Consumer 10.42.3.5@4228#1956465375449 of group courier held no queue for 39 s, in 2 rebalances.",
    causes=(
        Cause("strategy_conflict", same=("consumer_group",)),
        Cause("subscription_conflict", same=("consumer_group",)),
    ),
)

REBALANCE = "silver.rebalance"
SPREAD_S = 5  # until all members see a change
# Columns that name rows of tables with what members saw and held; a list that the recorder asked for has no client.
KEY_OF_TABLE = {
    REBALANCE: ("consumer_group", "topic", "client_id"),
    "silver.assignment": ("consumer_group", "client_id"),
    "silver.consumer_list": ("consumer_group",),
}


def ownership_findings(
    disputes: pl.DataFrame,
    idle: pl.DataFrame,
    shown: pl.DataFrame,
    cluster: str,
    dispute_s: int,
    idle_s: int,
    idle_rebalances: int,
    interval_s: int,
    gap_s: int,
    retried: Collection[str] = (),
) -> pl.DataFrame:
    """Return ORPHAN_QUEUE, DOUBLE_OWNED_QUEUE and IDLE_CONSUMER, of ownership.py's frames.

    Seconds of disagreement are normal while lists spread: a dispute counts if it lasts longer than ``dispute_s``
    seconds. A member is idle if it held no queue for longer than ``idle_s``, or got none in ``idle_rebalances``
    rebalances over more than one interval of ``interval_s`` seconds. Disputes of one group and topic that are ``gap_s``
    seconds apart or less are one finding. A retry topic counts only if messages were sent to it: ``retried`` has the
    names of these.
    ``shown``: consumer_group and table_name, one of KEY_OF_TABLE, where the group has rows.
    """
    matters = ~pl.col("topic").str.starts_with(RETRY) | pl.col("topic").is_in(list(retried))
    of_dispute = disputes.filter(matters).with_columns(_ms().alias("ms"), orphan=pl.col("owners") == 0)
    by = ["consumer_group", "topic", "orphan"]
    sessions = with_session(of_dispute.filter(pl.col("ms") > dispute_s * 1000), by, "from_ts", "to_ts", gap_s)
    merged = sessions.group_by(*by, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.struct("broker_name", "queue_id").n_unique().alias("queues"),
        places(),
        _seconds_text(pl.col("ms").sum()).alias("seconds"),
        pl.col("owners").max(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("gold.queue_owner", *KEY),
    )
    rebalanced = (pl.col("rebalances") >= idle_rebalances) & (_ms() > (interval_s + SPREAD_S) * 1000)
    long = idle.filter((_ms() > idle_s * 1000) | rebalanced)
    found = [_orphans(merged, shown, cluster), _doubles(merged, shown, cluster), _idle(long, shown, cluster)]
    return pl.concat(found)


def _seen(rows: pl.DataFrame, shown: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with ``seen``, evidence: the rows of the tables that show what members saw, took and held."""
    numbered = rows.with_row_index("row")
    each = numbered.join(shown, "consumer_group")
    by_table = [
        each.filter(pl.col("table_name") == table).select(
            "row", evidence_row(pl.col("table_name"), row_key(*(n for n in names if n in rows.columns))).alias("seen")
        )
        for table, names in sorted(KEY_OF_TABLE.items())
    ]
    seen = pl.concat(by_table).group_by("row", maintain_order=True).agg("seen")
    none = pl.lit([], EVIDENCE)
    return numbered.join(seen, "row", how="left").with_columns(pl.col("seen").fill_null(none)).drop("row")


def _ms() -> pl.Expr:
    return pl.col("to_ts").dt.epoch("ms") - pl.col("from_ts").dt.epoch("ms")


def _seconds_text(ms: pl.Expr) -> pl.Expr:
    """Return milliseconds as whole seconds, rounded, as text."""
    return ((ms + 500) // 1000).cast(pl.String)


def _them() -> pl.Expr:
    return pl.when(pl.col("queues") == 1).then(pl.lit("it")).otherwise(pl.lit("them"))


def _orphans(merged: pl.DataFrame, shown: pl.DataFrame, cluster: str) -> pl.DataFrame:
    summary = pl.format(
        "Group {} left {} of {}{} to nobody: {} queue-seconds in which nobody consumed {}.",
        "consumer_group",
        counted("queues", "queue"),
        "topic",
        places_text(),
        "seconds",
        _them(),
    )
    # A queue that nobody holds is in no row of queue_owner.
    rows = _seen(merged.filter("orphan"), shown).with_columns(evidence="seen")
    return finding(rows, ORPHAN_QUEUE, cluster, severity="warning", summary=summary)


def _doubles(merged: pl.DataFrame, shown: pl.DataFrame, cluster: str) -> pl.DataFrame:
    summary = pl.format(
        "Group {}: {} of {}{} {} held by up to {} at once, for {} queue-seconds; messages of {} were consumed more than"
        " once.",
        "consumer_group",
        counted("queues", "queue"),
        "topic",
        places_text(),
        pl.when(pl.col("queues") == 1).then(pl.lit("was")).otherwise(pl.lit("were")),
        counted("owners", "client"),
        "seconds",
        _them(),
    )
    polled = shown.filter(pl.col("table_name") != REBALANCE)
    rows = _seen(merged.filter(~pl.col("orphan")), polled).with_columns(pl.col("evidence").list.concat("seen"))
    return finding(rows, DOUBLE_OWNED_QUEUE, cluster, severity="warning", summary=summary)


def _idle(idle: pl.DataFrame, shown: pl.DataFrame, cluster: str) -> pl.DataFrame:
    rows = _seen(idle.unique(), shown).with_columns(evidence="seen")
    rebalances = pl.lit(", in ") + counted("rebalances", "rebalance")
    summary = pl.concat_str(
        pl.format("Consumer {} of group {} held no queue for ", "client_id", "consumer_group"),
        _seconds_text(_ms()),
        pl.lit(" s"),
        pl.when(pl.col("rebalances") > 1).then(rebalances).otherwise(pl.lit("")),
        pl.lit("."),
    )
    return finding(rows, IDLE_CONSUMER, cluster, severity="info", summary=summary)
