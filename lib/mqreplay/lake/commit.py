"""Files that tasks wrote (lake/landing.py) committed to a Delta table, by the transaction that its own writers use."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from pyspark.sql import Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from mqreplay.lake import landing
from mqreplay.lake.contract import Contract
from mqreplay.lake.first_commit import clustering, metadata

LANDED = from_arrow_schema(landing.LANDED)


def commit_append(spark: SparkSession, location: str, landed: Sequence[Row], new: Contract | None = None) -> None:
    """One commit that adds these files (rows of shape LANDED) to the table; none if there are none.

    ``new`` is the contract of a table that is not there yet: the same commit makes it, with files or without.
    """
    if not landed and new is None:
        return
    jvm: Any = spark.sparkContext._jvm
    delta = jvm.org.apache.spark.sql.delta
    transaction = delta.DeltaLog.forTable(spark._jsparkSession, location).startTransaction()  # type: ignore[attr-defined]
    if new is not None:
        transaction.updateMetadataForNewTable(delta.actions.Action.fromJson(metadata(new)))
    actions = jvm.java.util.ArrayList()
    for said in [*(clustering(new) if new is not None else []), *map(_add, landed)]:
        actions.add(delta.actions.Action.fromJson(said))
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
