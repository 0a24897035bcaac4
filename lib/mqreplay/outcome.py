"""What a run left, for whoever started it: findings, judgements, expectations, quarantine. From the tables alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from mqreplay.lake.remembered import read_kept
from mqreplay.lake.sql import of_last_day
from mqreplay.lake.warehouse import Warehouse

SEVERITIES = ("info", "warning", "critical")


@dataclass
class Outcome:
    """One cluster's. Findings and failed expectations are rows of their tables, worst first; ``report`` is a path."""

    cluster: str
    findings: list[dict[str, object]] = field(default_factory=list)
    judgements: dict[str, dict[str, int]] = field(default_factory=dict)
    expectations: int = 0
    failed_expectations: list[dict[str, object]] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    quarantined: int = 0
    report: str | None = None

    def as_dict(self) -> dict[str, object]:
        """The same, as plain values."""
        return asdict(self)

    def reaches(self, severity: str | None) -> bool:
        """Whether a finding is at least as severe."""
        if severity is None:
            return False
        return any(SEVERITIES.index(str(f["severity"])) >= SEVERITIES.index(severity) for f in self.findings)


def outcome_of(warehouse: Warehouse, cluster: str) -> Outcome:
    """Reads it. Instants are given as ISO 8601 text in UTC."""
    here = F.col("cluster") == cluster
    outcome = Outcome(cluster)
    for row in _counts(warehouse, cluster):
        if row.table_name == "bronze.source_file":
            outcome.files[row.word] = row.rows
        elif row.table_name == "bronze.quarantine":
            outcome.quarantined += row.rows
        elif row.table_name == "gold.validation_result":
            outcome.expectations += row.rows
        else:
            outcome.judgements.setdefault(row.table_name, {})[row.word] = row.rows
    if warehouse.exists("gold.finding"):
        findings = of_last_day(warehouse.read("gold.finding").where(here), "finding_id").drop("cluster", "day")
        rank = F.array_position(F.array(*[F.lit(s) for s in reversed(SEVERITIES)]), F.col("severity"))
        outcome.findings = _listed(findings.orderBy(rank, "from_ts", "kind", "finding_id"))
    if warehouse.exists("gold.validation_result"):
        failed = warehouse.read("gold.validation_result").where(here & ~F.col("passed"))
        failed = failed.withColumn("day", F.col("day").cast("string"))
        outcome.failed_expectations = _listed(failed.orderBy("day", "table_name", "expectation", "arguments"))
    return outcome


def _listed(rows: DataFrame) -> list[dict[str, object]]:
    return [{k: _plain(v) for k, v in row.asDict(recursive=True).items()} for row in rows.collect()]


def kept_outcome(path: Path, state: str) -> Outcome | None:
    """The outcome that was kept there (lake/remembered.py), if the tables are still as they were."""
    try:
        return Outcome(**read_kept(path, state))
    except TypeError:  # nothing was kept, or what another version calls an outcome
        return None


def _counts(warehouse: Warehouse, cluster: str) -> list[Row]:
    """Rows of each table by a word of theirs; tables that were never made cost a plan each, and have none."""
    rows = F.count(F.lit(1))
    asked = {
        "bronze.source_file": (F.lit("bronze.source_file"), "status", rows),
        "bronze.quarantine": (F.lit("bronze.quarantine"), "code", rows),
        "gold.validation_result": (F.lit("gold.validation_result"), "passed", rows),
        "gold.judgement": (F.col("decision"), "judgement", F.sum("decisions")),
    }
    frames = [
        warehouse.read(table)
        .where(F.col("cluster") == cluster)
        .groupBy(of.alias("table_name"), F.col(word).cast("string").alias("word"))
        .agg(count.alias("rows"))
        for table, (of, word, count) in asked.items()
        if warehouse.exists(table)
    ]
    return reduce(DataFrame.unionByName, frames).collect() if frames else []


def _plain(value: object) -> object:
    return value.isoformat(timespec="milliseconds") + "Z" if hasattr(value, "isoformat") else value
