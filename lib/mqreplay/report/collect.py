"""What the page needs of a cluster's tables: small frames, each capped, with the count of all rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.lake.warehouse import Warehouse

CAP = 200  # rows of a table that a page shows; the rest is a query away
JUDGED = ("gold.allocation", "gold.pull_route", "gold.slave_suggestion")
Row = dict[str, object]


@dataclass(frozen=True)
class Listing:
    """Some rows of a table, and how many there are in all."""

    rows: list[Row] = field(default_factory=list)
    total: int = 0

    @property
    def more(self) -> int:
        """Rows that are not shown."""
        return self.total - len(self.rows)


@dataclass(frozen=True)
class ReportData:
    """All that the page shows of one cluster. Instants are datetimes in UTC."""

    cluster: str
    first_ts: object = None
    last_ts: object = None
    findings: list[Row] = field(default_factory=list)
    judgements: list[Row] = field(default_factory=list)
    breaks: Listing = field(default_factory=Listing)
    gaps: Listing = field(default_factory=Listing)
    quarantine: Listing = field(default_factory=Listing)
    expectations: list[Row] = field(default_factory=list)
    files: list[Row] = field(default_factory=list)


def collect(warehouse: Warehouse, cluster: str) -> ReportData:
    """Reads it; the reads wait side by side."""

    def here(name: str) -> DataFrame:
        return warehouse.read(name).where(F.col("cluster") == cluster)

    with ThreadPoolExecutor(3) as pool:
        files = pool.submit(_files, here("bronze.source_file"))
        findings = pool.submit(_rows, here("gold.finding").orderBy("from_ts", "kind", "finding_id"))
        judgements = pool.submit(_judgements, here)
        breaks = pool.submit(
            _listing,
            here("gold.offset_continuity").drop("cluster", "day", "source_digest"),
            ["to_ts", "broker_name", "broker_id", "consumer_group", "topic", "queue_id", "kind"],
        )
        gaps = pool.submit(_listing, here("gold.replay_gap").drop("cluster"), ["decision", "evidence", "day", "gap_id"])
        refused = here("bronze.quarantine").select("path", "line_number", "detail_key", "code", "reason", "advice")
        quarantine = pool.submit(_listing, refused, ["path", "line_number", "detail_key"])
        expectations = pool.submit(
            _rows, here("gold.validation_result").orderBy("passed", "table_name", "expectation", "arguments")
        )
        by_kind = files.result()
    instants = [r for r in by_kind if r["first_ts"] is not None]
    return ReportData(
        cluster,
        min((r["first_ts"] for r in instants), default=None),  # type: ignore[type-var]
        max((r["last_ts"] for r in instants), default=None),  # type: ignore[type-var]
        findings.result(),
        judgements.result(),
        breaks.result(),
        gaps.result(),
        quarantine.result(),
        expectations.result(),
        by_kind,
    )


def _files(files: DataFrame) -> list[Row]:
    counted = files.groupBy("kind", "status").agg(
        F.count(F.lit(1)).alias("files"),
        *[F.sum(n).alias(n) for n in ("rows_in", "rows_out", "rows_quarantined", "rows_duplicate")],
        F.min("first_ts").alias("first_ts"),
        F.max("last_ts").alias("last_ts"),
    )
    return _rows(counted.orderBy("kind", "status"))


def _judgements(here: object) -> list[Row]:
    frames = [
        here(name)  # type: ignore[operator]
        .withColumn("reason", F.regexp_replace("reason", r"-?\d+", "N"))
        .groupBy("judgement", "reason")
        .agg(F.count(F.lit(1)).alias("decisions"))
        .withColumn("table_name", F.lit(name))
        for name in JUDGED
    ]
    rank = F.array_position(F.array(F.lit("differ"), F.lit("undetermined"), F.lit("agree")), F.col("judgement"))
    both = frames[0].unionByName(frames[1]).unionByName(frames[2])
    return _rows(both.orderBy("table_name", rank, F.col("decisions").desc(), "reason"))


def _listing(frame: DataFrame, order: list[str]) -> Listing:
    rows = _rows(frame.orderBy(*order).limit(CAP + 1))
    return Listing(rows[:CAP], frame.count() if len(rows) > CAP else len(rows))


def _rows(frame: DataFrame) -> list[Row]:
    return [row.asDict(recursive=True) for row in frame.collect()]
