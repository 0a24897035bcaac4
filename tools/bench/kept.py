"""What a night costs in a warehouse that holds many nights already: it must be what is new, however many there are.

`python tools/bench/kept.py --recording DIR --nights 0,1,20 --out DIR` makes a warehouse for each number, which holds so
many nights before DIR's, each with DIR's own rows of bronze and silver, moved; runs `mqreplay nightly DIR` in it;
and prints its stages, a column each. Gold of those nights is left out: no replay reads more of it than the lookback.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from multiprocessing import get_context
from pathlib import Path

from night_run import mqreplay, stages
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.lake.session import build_session
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import load_settings
from mqreplay.standing import Standing
from mqreplay.steps import Span, Steps, digests, spans
from mqreplay.validation import Validation

LEDGER = "bronze.source_file"
SHOWN = ("ingest", "replay", "validate", "report", "all", "peak MB")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, required=True, metavar="DIR")
    parser.add_argument("--nights", default="0,1,20", help="how many nights each warehouse holds, with commas between")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the warehouses, made anew")
    given = parser.parse_args()
    source = given.out / "source"
    shutil.rmtree(given.out, ignore_errors=True)
    mqreplay("ingest", given.recording, source)
    told = {}
    for nights in map(int, given.nights.split(",")):
        print(f"beside {nights} nights", file=sys.stderr)
        warehouse = given.out / f"kept-{nights}"
        if nights:
            # In a process of its own: its Java ends with it, and the night has the memory to itself.
            filling = get_context("spawn").Process(target=fill, args=(source, warehouse, nights))
            filling.start()
            filling.join()
            if filling.exitcode:
                raise SystemExit(f"filling {warehouse} ended with {filling.exitcode}")
        lines, used = mqreplay("nightly", given.recording, warehouse)
        told[nights] = stages(lines) | used
        shutil.rmtree(warehouse)
    print("| beside so many nights |" + "".join(f" {nights} |" for nights in told))
    print("|---|" + "---|" * len(told))
    for stage in SHOWN:
        print(f"| {stage} |" + "".join(f" {seconds[stage]:,.1f} |" for seconds in told.values()))


def fill(source: Path, to: Path, nights: int) -> None:
    """A warehouse of the nights before that of ``source``, and of nothing else."""
    settings = load_settings()
    spark = build_session("kept nights", settings.spark)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    one, many = Warehouse(spark, str(source)), Warehouse(spark, str(to))
    for name in [n for n in one.contracts if n.startswith("silver.") or n == LEDGER]:
        if one.exists(name):
            # A night a write, as nights come; the day's clustering would hold them apart in the end.
            for ago in range(1, nights + 1):
                many.replace(name, moved(one.read(name), ago), "true", nothing_there=True)
    (cluster,) = [row.cluster for row in many.read(LEDGER).select("cluster").distinct().collect()]
    lookback, noted = settings.replay.lookback_minutes, Steps(many, cluster)
    found = [Span(*row) for row in spans(cluster, lookback, {}).read(many)]
    by_day = digests(found, settings.digest(), lookback)
    noted.done("replay", {str(day): digest for day, digest in by_day.items()})
    noted.done("validate", Validation(many, cluster, found, settings).wanted)
    Standing(many, cluster).keep(max(by_day))  # as the last night's replay did


def moved(rows: DataFrame, days: int) -> DataFrame:
    """The rows as those of so many days earlier, of other files."""
    changed: dict[str, Column] = {}
    for field in rows.schema.fields:
        if field.dataType.typeName() == "timestamp":
            changed[field.name] = F.col(field.name) - F.expr(f"INTERVAL {days} DAYS")
    made = {
        "day": F.date_sub("day", days) if "day" in rows.columns else None,
        "recording": F.concat("recording", F.lit(f"-{days}")) if "recording" in rows.columns else None,
        "path": _path(days) if "path" in rows.columns else None,
        "source_digest": _other("source_digest", days, 32) if "source_digest" in rows.columns else None,
        "sha256": _other("sha256", days, 64) if "sha256" in rows.columns else None,
    }
    return rows.withColumns(changed | {name: column for name, column in made.items() if column is not None})


def _path(days: int) -> Column:
    """Snapshots lie in folders that are called as they are old."""
    parts = F.split("path", "/")
    moment = (F.get(parts, F.lit(2)).cast("bigint") - days * 86_400_000).cast("string")
    moved_there = F.array_join(F.array(parts[0], F.get(parts, F.lit(1)), moment, F.get(parts, F.lit(3))), "/")
    return F.when(F.size(parts) == 4, moved_there).otherwise(F.col("path"))


def _other(column: str, days: int, chars: int) -> Column:
    return F.substring(F.sha2(F.concat(column, F.lit(days)), 256), 1, chars)


if __name__ == "__main__":
    main()
