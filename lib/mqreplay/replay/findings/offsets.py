"""Offsets that went back, were moved ahead, or point past the end of their queue."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.findings.shape import EVIDENCE_ROWS, counted, evidence, finding, one_or_none, text_of
from mqreplay.replay.sessions import with_session

HANDED = "handover"
WHO = {
    "reset": "an offset reset",
    HANDED: "commits of the clients between which queues changed hands",
    "client_commit": "a commit by a client",
    "set_from_outside": "a change from outside: no client committed it",
    "unknown": "an unknown cause: no commits or resets were recorded",
}
QUEUE_OF_GROUP = ("cluster", "consumer_group", "topic", "broker_name", "queue_id")
KEY = ("broker_name", "broker_id", "topic", "consumer_group", "queue_id", "kind", "to_ts")


def offset_findings(continuity: DataFrame, owners: DataFrame, gap_s: int, handover_s: int) -> DataFrame:
    """Findings of gold.offset_continuity: one for each group, topic, kind and cause, of breaks ``gap_s`` apart or less.

    A slave's file shows what its master's showed before, and later: it is evidence, not another finding. ``owners`` is
    gold.queue_owner: while a queue goes from one client to another, for up to ``handover_s`` seconds, both commit.
    """
    # An offset put back from past the end is the end of the finding that it was there.
    effect = F.when((F.col("kind") == "rewind") & (F.col("cause") == "corrected"), "beyond_max").otherwise(
        F.col("kind")
    )
    breaks = continuity.withColumn("effect", effect).where(F.col("effect").isin("rewind", "jump", "beyond_max"))
    by = ["cluster", "consumer_group", "topic", "effect"]
    # By the time that it is put right the queue has grown.
    breaks = breaks.withColumn("end_when_set", F.when(F.col("kind") == "beyond_max", F.col("queue_max_offset")))
    together = with_session(_with_handovers(breaks, owners, handover_s), by, "to_ts", "to_ts", gap_s)
    # A slave's copy skips what its master held in between, so only the master's row tells the cause.
    causes = [
        F.array_sort(F.collect_set(F.when((F.col("cause") != "corrected") & of, F.col("cause"))))
        for of in (_of_master(), F.lit(True))
    ]
    cause = F.array_join(F.when(F.size(causes[0]) > 0, causes[0]).otherwise(causes[1]), " and ")
    found = together.groupBy(*by, "session").agg(
        _by_masters(F.min, "from_ts"),
        _by_masters(F.max, "to_ts"),
        F.count_distinct("broker_name", "queue_id").alias("queues"),
        _by_masters(F.max, "size").alias("most"),
        F.try_sum(F.when(_of_master(), F.col("redelivered_max"))).alias("again"),
        F.max("new_offset").alias("highest"),
        F.coalesce(*[_by_masters(F.max, name) for name in ("end_when_set", "queue_max_offset")]).alias("end"),
        cause.alias("cause"),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("gold.offset_continuity", *KEY),
    )
    return _rewinds(found).unionByName(_jumps(found)).unionByName(_beyond(found))


def _of_master() -> Column:
    return F.col("broker_id") == 0


def _by_masters(over: Callable[[Column], Column], name: str) -> Column:
    """By the masters' rows, where there are any."""
    return F.coalesce(over(F.when(_of_master(), F.col(name))), over(F.col(name))).alias(name)


def _with_handovers(breaks: DataFrame, owners: DataFrame, handover_s: int) -> DataFrame:
    """The breaks, with the cause HANDED where a client committed while another had just held the queue, or still did.

    Both commit what they have consumed (RebalanceImpl#updateProcessQueueTableInRebalance persists on removal), and
    ConsumerOffsetManager takes what comes last.
    """
    mine = F.col("cause") == "client_commit"
    near = F.make_dt_interval(secs=F.lit(handover_s))
    here = breaks.where(mine & (F.col("effect") == "rewind")).select(*QUEUE_OF_GROUP, "from_ts", "to_ts").distinct()
    met = [F.col(f"b.{name}") == F.col(f"o.{name}") for name in QUEUE_OF_GROUP]
    met += [F.col("o.from_ts") <= F.col("b.to_ts")]
    met += [F.coalesce("o.to_ts", "b.to_ts") >= F.col("b.from_ts") - near]
    handed = (
        here.alias("b")
        .join(owners.alias("o"), met)
        .groupBy(*[F.col(f"b.{name}") for name in (*QUEUE_OF_GROUP, "from_ts", "to_ts")])
        .agg(F.count_distinct("o.client_id").alias("_clients"))
        .where(F.col("_clients") > 1)
    )
    told = breaks.join(F.broadcast(handed), [*QUEUE_OF_GROUP, "from_ts", "to_ts"], "left")
    by_two = mine & (F.col("effect") == "rewind") & F.col("_clients").isNotNull()
    return told.withColumn("cause", F.when(by_two, HANDED).otherwise(F.col("cause"))).select(*breaks.columns)


def reset_findings(resets: DataFrame, continuity: DataFrame, gap_s: int, reach_s: int) -> DataFrame:
    """offset_reset, of offset_resets' frame, for each group and topic; ``continuity`` tells how far offsets moved.

    Pushes less than ``gap_s`` seconds apart are one reset; what it did shows within ``reach_s`` seconds.
    """
    by = ["cluster", "consumer_group", "topic"]
    together = with_session(resets, by, "ts", "ts", gap_s)
    row = F.struct("table_name", F.concat(F.lit("record_id="), "record_id").alias("key"))
    told = together.groupBy(*by, "session").agg(
        F.min("ts").alias("from_ts"),
        F.max("ts").alias("to_ts"),
        F.count_distinct("broker_name", "queue_id").alias("queues"),
        F.slice(F.array_sort(F.collect_set(row)), 1, EVIDENCE_ROWS).alias("evidence"),
    )
    moved = continuity.where((F.col("cause") == "reset") & _of_master()).select(
        *by,
        F.col("to_ts").alias("_ts"),
        F.when(F.col("kind") == "rewind", -F.col("size")).otherwise(F.col("size")).alias("_by"),
    )
    after = F.col("_ts").between(F.col("from_ts"), F.col("to_ts") + F.make_dt_interval(secs=F.lit(reach_s)))
    keys = [F.col(f"t.{k}") == F.col(f"m.{k}") for k in by]
    found = told.alias("t").join(moved.alias("m"), [*keys, after], "left")
    found = found.groupBy(*[F.col(f"t.{c}") for c in told.columns if c != "session"]).agg(
        F.max_by("_by", F.abs("_by")).alias("by")
    )
    effect = (
        F.when(F.col("by") < 0, text_of(", back by up to ", counted(F.abs("by"), "message")))
        .when(F.col("by") > 0, text_of(", ahead by up to ", counted("by", "message")))
        .otherwise("")
    )
    return finding(
        found,
        kind="offset_reset",
        severity=F.when(F.col("by").isNotNull(), "warning").otherwise("info"),
        summary=text_of(
            "Group ", "{consumer_group}", " on ", "{topic}", ": ", counted("queues", "queue"), " reset", effect, "."
        ),
        advice="If nobody meant it, find who ran resetOffsetByTime; back means delivered again, ahead means skipped.",
        confidence=1.0,
    )


def _who() -> Column:
    """The cause in words; several, joined, where the rows differ."""
    text = F.col("cause")
    for cause, words in WHO.items():
        text = F.regexp_replace(text, rf"\b{cause}\b", words)
    return text


def _group() -> Column:
    return F.concat(F.lit("Group "), "consumer_group", F.lit(" on "), "topic", F.lit(": "))


def _rewinds(found: DataFrame) -> DataFrame:
    rows = found.where(F.col("effect") == "rewind")
    again = F.when(F.col("again") > 0, text_of("; at most ", counted("again", "message"), " delivered again"))
    summary = F.concat(
        _group(),
        F.lit("the offset of "),
        counted("queues", "queue"),
        F.lit(" went back by up to "),
        counted("most", "message"),
        F.lit(", by "),
        _who(),
        F.coalesce(again, F.lit("")),
        F.lit("."),
    )
    advice = "If nobody meant it, find who reset or committed it, and see that consumers bear messages delivered twice."
    meant = F.col("cause") == HANDED
    severity = F.when((F.col("again") > 0) & ~meant, "warning").otherwise("info")
    return finding(rows, kind="offset_rewind", severity=severity, summary=summary, advice=advice, confidence=1.0)


def _jumps(found: DataFrame) -> DataFrame:
    rows = found.where(F.col("effect") == "jump")
    summary = F.concat(
        _group(),
        F.lit("the offset of "),
        counted("queues", "queue"),
        F.lit(" was moved ahead by up to "),
        counted("most", "message"),
        F.lit(", by "),
        _who(),
        F.lit("; what lay between may never have been consumed."),
    )
    advice = "If nobody meant it, reset the group by time to before this moment, so that what was skipped is consumed."
    return finding(rows, kind="offset_jump", severity=F.lit("warning"), summary=summary, advice=advice, confidence=0.9)


def _beyond(found: DataFrame) -> DataFrame:
    rows = found.where(F.col("effect") == "beyond_max")
    summary = F.concat(
        _group(),
        F.lit("the offset of "),
        counted("queues", "queue"),
        F.lit(" was set to "),
        "highest",
        F.coalesce(F.concat(F.lit(", past the end of the queue at "), "end"), F.lit(", past the end of the queue")),
        F.lit(", by "),
        _who(),
        F.lit("."),
    )
    advice = (
        "See who set it; the next pull corrects it to the end of the queue, so check that nothing before was skipped."
    )
    return finding(
        rows, kind="offset_beyond_max", severity=F.lit("warning"), summary=summary, advice=advice, confidence=1.0
    )
