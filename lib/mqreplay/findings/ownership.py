"""Queues that nobody held, or several clients at once; consumers that held none."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.evidence.members.ownership import disputes, due_queues, idle_members, subscribers
from mqreplay.findings.duplicate_ids import BY_DUPLICATE
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.messages import known_ends, retried_topics
from mqreplay.findings.shape import EVIDENCE, evidence, evidence_row, finding, one_or_none, places, row_key, seconds
from mqreplay.words.keys import GROUP, GROUP_QUEUE, GROUP_TOPIC, QUEUE

DISPUTE_SETTINGS = ("findings.dispute_s", "findings.rebalance_interval_s", "findings.same_cause_gap_s")
CONFLICTS = tuple(Cause(kind, same=(GROUP,)) for kind in ("strategy_conflict", "subscription_conflict"))
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
    held = ownership_findings(
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
    if evidence.consume_stats is None:
        return held
    stated = unheld_findings(evidence.consume_stats, evidence.cluster, limits.dispute_s)
    known = held.filter(pl.col("kind") == ORPHAN_QUEUE.name).select(GROUP_TOPIC)
    return pl.concat([held, stated.join(known, GROUP_TOPIC, how="anti", nulls_equal=True)])


ORPHAN_QUEUE = FindingKind(
    name="orphan_queue",
    find=find,
    confidence=0.95,
    needs=OWNERS,
    thresholds=DISPUTE_SETTINGS,
    causes=(
        BY_DUPLICATE,
        *CONFLICTS,
        Cause("topic_unsubscribed", same=("consumer_group", "topic"), before_s=90),  # polls are a minute apart
        Cause("consumer_lost", same=("consumer_group",), after_s=150),
        # A queue lost with its broker is fought for wherever its group is: the finding may span brokers.
        Cause("broker_down", same=(), after_s=120),
    ),
)
DOUBLE_OWNED_QUEUE = FindingKind(
    name="double_owned_queue",
    find=find,
    confidence=0.9,
    needs=OWNERS,
    thresholds=DISPUTE_SETTINGS,
    causes=(BY_DUPLICATE, *CONFLICTS, Cause("broker_down", same=(), after_s=120)),  # as of ORPHAN_QUEUE
)
IDLE_CONSUMER = FindingKind(
    name="idle_consumer",
    find=find,
    confidence=0.9,
    needs=OWNERS,
    thresholds=("findings.idle_s", "findings.idle_rebalances", "findings.rebalance_interval_s"),
    causes=CONFLICTS,
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
        *places(),
        ((pl.col("ms").sum() + 500) // 1000).alias("queue_s"),
        pl.col("owners").max(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("gold.queue_owner", *GROUP_QUEUE),
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


def _orphans(merged: pl.DataFrame, shown: pl.DataFrame, cluster: str) -> pl.DataFrame:
    # A queue that nobody holds is in no row of queue_owner.
    rows = _seen(merged.filter("orphan"), shown).with_columns(evidence="seen")
    return finding(rows, ORPHAN_QUEUE, cluster, severity="warning")


def unheld_findings(consume_stats: pl.DataFrame, cluster: str, dispute_s: int) -> pl.DataFrame:
    """Return ORPHAN_QUEUE of queues with waiting messages for which mqadmin found no client, but for others it did.

    It is a warning if two outputs or more, over more than ``dispute_s`` seconds, agree; one output is a note. mqadmin
    ends its search at the first client that does not answer, so the finding is not certain.
    ``consume_stats`` is the silver table.
    """
    asked = consume_stats.filter(pl.col("unheld").is_not_null() & (pl.col("offsets").list.len() > 0))
    each = asked.explode("offsets", empty_as_null=True).with_columns(pl.col("offsets").struct.field("*"))
    queue = pl.struct("topic", "broker_name", "queue_id")
    seen = (
        each.select(
            "consumer_group",
            *QUEUE,
            "ts",
            "record_id",
            queue.is_in(pl.col("unheld")).alias("is_unheld"),
            (pl.col("broker_offset") - pl.col("consumer_offset")).alias("waiting"),
        )
        .sort("ts")
        .with_columns(pl.col("is_unheld").rle_id().over(GROUP_QUEUE).alias("run"))
    )
    runs = (
        seen.filter("is_unheld")
        .group_by(*GROUP_QUEUE, "run")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            pl.len().alias("outputs"),
            pl.col("waiting").last(),
            evidence("silver.consume_stats", "record_id"),
        )
        .filter(pl.col("waiting") > 0)
    )
    merged = runs.group_by(*GROUP_TOPIC, "from_ts", "to_ts", "outputs").agg(
        pl.len().alias("queues"),
        *places(),
        pl.col("waiting").sum(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        pl.col("evidence").explode().unique().implode(),
    )
    is_lasting = seconds("from_ts", "to_ts") > dispute_s
    severity = pl.when(is_lasting).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(
        merged, ORPHAN_QUEUE, cluster, severity=severity, confidence=0.7, form="stated", advice_form="stated"
    )


def _doubles(merged: pl.DataFrame, shown: pl.DataFrame, cluster: str) -> pl.DataFrame:
    polled = shown.filter(pl.col("table_name") != REBALANCE)
    rows = _seen(merged.filter(~pl.col("orphan")), polled).with_columns(pl.col("evidence").list.concat("seen"))
    return finding(rows, DOUBLE_OWNED_QUEUE, cluster, severity="warning")


def _idle(idle: pl.DataFrame, shown: pl.DataFrame, cluster: str) -> pl.DataFrame:
    rows = _seen(idle.unique(), shown).with_columns(evidence="seen")
    several = pl.when(pl.col("rebalances") > 1).then("rebalances").alias("rebalances")
    return finding(rows.with_columns(several), IDLE_CONSUMER, cluster, severity="info")
