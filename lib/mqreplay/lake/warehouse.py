"""Delta tables of one warehouse folder, as the contracts say."""

from __future__ import annotations

import threading
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqreplay.lake.contract import load_contracts


class Warehouse:
    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark, self.root = spark, str(Path(root).resolve())
        self.contracts = load_contracts()

    def location(self, name: str) -> str:
        return f"{self.root}/{name.replace('.', '/')}"

    def exists(self, name: str) -> bool:
        return Path(self.location(name), "_delta_log").is_dir()

    def frame(self, name: str, rows) -> DataFrame:
        return self.spark.createDataFrame(rows, self.contracts[name].struct_type(), verifySchema=False)

    def read(self, name: str) -> DataFrame:
        if not self.exists(name):
            return self.frame(name, [])
        return (
            self.spark.read.format("delta")
            .load(self.location(name))
            .select([c.name for c in self.contracts[name].columns])
        )

    def ensure(self, name: str) -> None:
        if not self.exists(name):
            c = self.contracts[name]
            self.spark.sql(c.ddl(self.location(name)))
            for k, v in c.checks.items():
                self.spark.sql(f"ALTER TABLE delta.`{self.location(name)}` ADD CONSTRAINT {k} CHECK ({v})")

    def replace(self, name: str, df: DataFrame, predicate: str) -> None:
        self.ensure(name)
        c = self.contracts[name]
        df = df.select([F.col(x.name).cast(x.type).alias(x.name) for x in c.columns])
        df.write.format("delta").mode("overwrite").option("replaceWhere", predicate).save(self.location(name))

    def register(self, names=None) -> None:
        for l in ("bronze", "silver", "gold"):
            self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {l}")
        for n in names or self.contracts:
            if self.exists(n):
                self.spark.sql(f"CREATE TABLE IF NOT EXISTS {n} USING delta LOCATION '{self.location(n)}'")

    def register_for(self, text: str) -> None:
        """Makes the tables that ``text`` names, or all if it asks about the catalog, known to SQL as layer.table."""
        lower = text.lower()
        named = [n for n in self.contracts if n in lower]
        asks = any(w in lower for w in ("show ", "describe ", "information_schema"))
        self.register(list(self.contracts) if asks else named)

    def maintain(self) -> None:
        for n in self.contracts:
            if self.exists(n):
                self.spark.sql(f"OPTIMIZE delta.`{self.location(n)}`")
                self.spark.sql(f"VACUUM delta.`{self.location(n)}`")
