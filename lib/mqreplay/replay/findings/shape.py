"""The shape of a finding: every family fills it the same way, so that all can stand in one table."""

from __future__ import annotations

import datetime as dt

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PLACE = {
    "consumer_group": "string",
    "topic": "string",
    "broker_name": "string",
    "broker_id": "bigint",
    "queue_id": "int",
    "client_id": "string",
}
EVIDENCE_ROWS = 50  # keys kept with a finding; the summary says how many rows there are in all


def finding(
    frame: DataFrame, *, kind: str, severity: Column, summary: Column, advice: str, confidence: float
) -> DataFrame:
    """gold.finding rows, but for their day: ``frame`` has cluster, from_ts, to_ts, evidence, and what it knows."""
    place = [
        (F.col(name) if name in frame.columns else F.lit(None)).cast(kind_of).alias(name)
        for name, kind_of in PLACE.items()
    ]
    identity = [F.lit(kind), "cluster", *[F.coalesce(c.cast("string"), F.lit("")) for c in place]]
    start = F.unix_millis("from_ts").cast("string")
    return frame.select(
        "cluster",
        F.substring(F.sha2(F.concat_ws("\u001f", *identity, start), 256), 1, 16).alias("finding_id"),
        F.lit(kind).alias("kind"),
        severity.alias("severity"),
        *place,
        "from_ts",
        "to_ts",
        F.lit(confidence).alias("confidence"),
        summary.alias("summary"),
        F.lit(advice).alias("advice"),
        "evidence",
    )


def that_reach(findings: DataFrame, begin: dt.datetime, lost_s: int) -> DataFrame:
    """Findings that go on after an instant, or are known after it only: those of before were told before.

    That a consumer is lost is known when it has been silent for ``lost_s`` seconds and was not heard of once more.
    """
    known_ts = F.col("from_ts") + F.make_dt_interval(secs=F.lit(2 * lost_s))
    known_later = (F.col("kind") == "consumer_lost") & (known_ts >= F.lit(begin))
    return findings.where((F.coalesce("to_ts", "from_ts") >= F.lit(begin)) | known_later)


def evidence(table: str, *key: str) -> Column:
    """An aggregate: table and key of the rows a finding rests on, in order, at most EVIDENCE_ROWS of them."""
    text = F.concat_ws(" ", *[F.concat(F.lit(f"{k}="), F.col(k).cast("string")) for k in key])
    rows = F.array_sort(F.collect_set(F.struct(F.lit(table).alias("table_name"), text.alias("key"))))
    return F.slice(rows, 1, EVIDENCE_ROWS).alias("evidence")


def evidence_of(table: str, ids: str, key: str = "record_id") -> Column:
    """Evidence of an array of ids that are each ``key`` of a row of the table."""
    rows = F.transform(
        ids, lambda i: F.struct(F.lit(table).alias("table_name"), F.concat(F.lit(f"{key}="), i).alias("key"))
    )
    return F.slice(rows, 1, EVIDENCE_ROWS)


def seconds(from_ts: str, to_ts: str) -> Column:
    """Seconds between two instants."""
    return (F.unix_millis(to_ts) - F.unix_millis(from_ts)) / 1000


def text_of(*parts: Column | str) -> Column:
    """A sentence: columns as they are, and texts, of which those that name a column in braces give its value."""
    return F.concat(*[_part(part) for part in parts])


def _part(part: Column | str) -> Column:
    if not isinstance(part, str):
        return part
    if part.startswith("{") and part.endswith("}"):
        return F.coalesce(F.col(part[1:-1]).cast("string"), F.lit(""))
    return F.lit(part)


def one_or_none(name: str) -> Column:
    """An aggregate: the value, where all rows share it, else null."""
    return F.when(F.count_distinct(name) == 1, F.max(name)).alias(name)


def counted(n: str | Column, what: str) -> Column:
    """So many, in words: '1 queue', '8 queues'."""
    number = F.col(n) if isinstance(n, str) else n
    return F.concat(number.cast("string"), F.when(number == 1, f" {what}").otherwise(f" {what}s"))
