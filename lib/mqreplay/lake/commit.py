"""Files that tasks wrote (lake/landing.py) committed to a Delta table, by the transaction that its own writers use."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from pyspark.sql import Row, SparkSession


def commit_append(spark: SparkSession, location: str, landed: Sequence[Row]) -> None:
    """One commit that adds these files (rows of shape LANDED) to the table; none if there are none."""
    if not landed:
        return
    jvm: Any = spark.sparkContext._jvm
    delta = jvm.org.apache.spark.sql.delta
    actions = jvm.java.util.ArrayList()
    for file in landed:
        actions.add(delta.actions.Action.fromJson(_add(file)))
    transaction = delta.DeltaLog.forTable(spark._jsparkSession, location).startTransaction()  # type: ignore[attr-defined]
    transaction.commit(jvm.scala.jdk.javaapi.CollectionConverters.asScala(actions).toSeq(), _append(jvm))


def _add(file: Row) -> str:
    added = {
        "path": quote(file.name),
        "partitionValues": {},
        "size": file.bytes,
        "modificationTime": time.time_ns() // 1_000_000,
        "dataChange": True,
        "stats": file.stats,
    }
    return json.dumps({"add": added})


def _append(jvm: Any) -> Any:
    """The operation that Delta's history names: what DataFrameWriter says of itself."""
    mode = jvm.org.apache.spark.sql.SaveMode.Append
    write = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$Write")
    return write(mode, *[jvm.scala.Option.empty()] * 8)
