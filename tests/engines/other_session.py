"""Run the pass of toy_pass.py in a session of its own: `other_session.py MASTER WAREHOUSE`. Prints the tasks.

The master is a Spark Connect server (sc://...), or local-cluster[...], on which the first task kills its executor.
"""

from __future__ import annotations

import sys

import polars as pl

from engines.test_spark_passes import CLUSTER, DAYS
from engines.toy_pass import COUNT_PASS, DAY, KILLS, ONCE_KILLED, QUEUE_COLUMNS
from mqreplay.engines import spark_passes
from mqreplay.engines.shards import count_buckets, deal
from mqreplay.engines.spark_passes import SparkPassRunner
from mqreplay.engines.spark_tables import SparkTables
from mqreplay.lake.buckets import buckets, key_of
from mqreplay.lake.row_filter import Days, RowFilter
from mqreplay.lake.session import build_session, connected_session, fit_plans
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import SparkSettings


def main(master: str, root: str) -> None:
    """Run the pass over many shards, as in a large night, and commit."""
    spark_passes.FEW_ROWS = 0
    if master.startswith("sc://"):
        session, step = connected_session(master), COUNT_PASS
    else:
        session, step = build_session("killed", SparkSettings(master, extra=extra()), small=True), ONCE_KILLED
        fit_plans(session, small=False)
        assert session.conf.get("spark.sql.adaptive.enabled") == "true"
    runner = SparkPassRunner(SparkTables(session, Warehouse(root)), CLUSTER, DAY, DAYS)
    pulls = runner.source.read("silver.pull", Days(DAY, DAY), pl.lit(True))
    found = list(runner.run(step, deal(count_buckets(buckets(pulls, key_of(QUEUE_COLUMNS))), 100), 10))
    runner.commit(RowFilter(CLUSTER, days=frozenset({DAY})))
    print(len(found), sum(len(each.queues) for each in found))
    session.stop()


def extra() -> dict[str, str]:
    """Return the settings of executors: the tests' modules, and who kills."""
    import os

    named = {f"spark.executorEnv.{name}": os.environ[name] for name in ("PYTHONPATH", KILLS)}
    return named | {"spark.executor.memory": "512m"}


if __name__ == "__main__":
    main(*sys.argv[1:])
