"""Three ways for Spark to say whether a key is unique: Great Expectations' own window, one by a hash first, and the
hashes alone, of which none are equal.

`python tools/bench/unique_key.py [--rows N]`: seconds of each, on rows with a key of three strings and a number.
"""

from __future__ import annotations

import argparse
import time

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from mqreplay.quality.equal_hashes import equal_hashes

NAMES = ["cluster", "topic", "broker_name", "queue_offset"]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    rows = parser.parse_args().rows
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    number = F.col("id")
    keys = spark.range(rows).select(
        F.lit("a-cluster").alias("cluster"),
        F.concat(F.lit("trade-created-topic-"), (number % 97).cast("string")).alias("topic"),
        F.concat(F.lit("broker-"), (number % 8).cast("string")).alias("broker_name"),
        number.alias("queue_offset"),
    )
    ways = {"by a struct": [F.struct(*NAMES)], "by hash first": [F.xxhash64(*NAMES), *NAMES]}
    for name, by in [*ways.items()] * 2:  # the first round compiles
        alone = F.count(F.lit(1)).over(Window.partitionBy(*by)) <= 1
        began = time.perf_counter()
        assert not keys.withColumn("alone", alone).where("NOT alone").count()
        print(f"{name:16} {time.perf_counter() - began:6.1f} s")
    for _ in range(2):
        began = time.perf_counter()
        assert not equal_hashes(keys)
        print(f"{'hashes alone':16} {time.perf_counter() - began:6.1f} s")


if __name__ == "__main__":
    main()
