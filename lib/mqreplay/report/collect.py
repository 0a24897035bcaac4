"""What the page needs of a cluster's tables: small frames, each capped, with the count of all rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.lake.sql import of_last_day
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.data import CAP, Listing, ReportData, Row

READERS = 4  # tables read at once: most of a small read is planning and waiting
MOST = 5_000  # findings and failures that are read at all: they are counted by severity, and one page shows CAP


def collect(warehouse: Warehouse, cluster: str) -> ReportData:
    """Reads it; the reads wait side by side."""

    def here(name: str) -> DataFrame:
        return warehouse.read(name).where(F.col("cluster") == cluster)

    with ThreadPoolExecutor(READERS) as pool:
        judgements = pool.submit(_judgements, here("gold.judgement"))
        files = pool.submit(_files, here("bronze.source_file"))
        findings = pool.submit(_findings, here("gold.finding"))
        breaks = pool.submit(_breaks, here("gold.offset_continuity"))
        gaps = pool.submit(_gaps, here("gold.replay_gap"))
        quarantine = pool.submit(_quarantine, here("bronze.quarantine"))
        expectations = pool.submit(_expectations, here("gold.validation_result"))
    first = [row["first_ts"] for row in files.result() if row["first_ts"] is not None]
    last = [row["last_ts"] for row in files.result() if row["last_ts"] is not None]
    return ReportData(
        cluster=cluster,
        first_ts=min(first, default=None),
        last_ts=max(last, default=None),
        findings=findings.result(),
        judgements=judgements.result(),
        breaks=breaks.result(),
        gaps=gaps.result(),
        quarantine=quarantine.result(),
        expectations=expectations.result(),
        files=files.result(),
    )


def _findings(findings: DataFrame) -> list[Row]:
    worst = F.array_position(F.array(F.lit("critical"), F.lit("warning"), F.lit("info")), F.col("severity"))
    return _rows(of_last_day(findings, "finding_id").orderBy(worst, "from_ts", "kind", "finding_id").limit(MOST))


def _expectations(results: DataFrame) -> list[Row]:
    """Those that fail, day by day; then each of those that hold on every day, once."""
    of_rule = ("table_name", "expectation", "arguments")
    failed = results.where(~F.col("passed")).orderBy("day", *of_rule).limit(MOST)
    rules = results.groupBy(*of_rule).agg(
        F.bool_and("passed").alias("passed"), F.max("description").alias("description")
    )
    return _rows(failed) + _rows(rules.where("passed").orderBy(*of_rule))


def _breaks(breaks: DataFrame) -> Listing:
    order = ("to_ts", "broker_name", "broker_id", "consumer_group", "topic", "queue_id", "kind")
    return _listing(breaks.drop("cluster", "day", "source_digest"), *order)


def _gaps(gaps: DataFrame) -> Listing:
    return _listing(gaps.drop("cluster"), F.col("decisions").desc(), "decision", "evidence", "day", "gap_id")


def _quarantine(refused: DataFrame) -> Listing:
    shown = refused.select("path", "line_number", "detail_key", "code", "reason", "advice")
    return _listing(shown, "path", "line_number", "detail_key", "code")


def _files(files: DataFrame) -> list[Row]:
    counted = files.groupBy("kind", "status").agg(
        F.count(F.lit(1)).alias("files"),
        *[F.sum(n).alias(n) for n in ("rows_in", "rows_out", "rows_quarantined", "rows_duplicate")],
        F.min("first_ts").alias("first_ts"),
        F.max("last_ts").alias("last_ts"),
    )
    return _rows(counted.orderBy("kind", "status"))


def _judgements(counted: DataFrame) -> list[Row]:
    of_all_days = counted.groupBy(F.col("decision").alias("table_name"), "judgement", "reason").agg(
        F.sum("decisions").alias("decisions")
    )
    rank = F.array_position(F.array(F.lit("differ"), F.lit("undetermined"), F.lit("agree")), F.col("judgement"))
    return _rows(of_all_days.orderBy("table_name", rank, F.col("decisions").desc(), "reason"))


def _listing(frame: DataFrame, *order: str | F.Column) -> Listing:
    rows = _rows(frame.orderBy(*order).limit(CAP + 1))
    return Listing(rows[:CAP], frame.count()) if len(rows) > CAP else Listing.of(rows)


def _rows(frame: DataFrame) -> list[Row]:
    # By way of Arrow: collect() would turn instants into the machine's own time zone.
    return frame.toArrow().to_pylist()
