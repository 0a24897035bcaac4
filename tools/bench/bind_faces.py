"""How fast each face of the bound functions is: `python tools/bench/bind_faces.py [--rows N]`.

Two inputs a function: repeated, as a night has it (few distinct inputs among many rows), and unrepeated, the
worst case, where each row is another. `no memo` is the Arrow face asked for every row: what looking for equal
rows costs and saves. Prints thousands of rows a second, best of --runs, and the ratio to the pickled UDF.
Last, without Spark: the CPU seconds of status_windows for --queues queues, by the law and by its twin on arrays.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type

from mqreplay.bind import functions
from mqreplay.bind.faces import answers_column, law_values
from mqreplay.bind.function import BoundFunction
from mqreplay.bind.register import register
from mqreplay.core.status_windows import status_windows
from mqreplay.decisions.status_windows import status_windows_arrow

DISTINCT = 50
TITLES = ("udf", "pandas", "no memo", "arrow", "sql")


def inputs(spark: SparkSession, rows: int, repeated: bool) -> DataFrame:
    """Columns for all functions; `n` is which of the distinct inputs a row has."""
    n = F.col("id") % DISTINCT if repeated else F.col("id")
    queue = "transform(sequence(0, 15), i -> named_struct('topic', 'T', 'broker_name', 'b', 'queue_id', i))"
    return (
        spark.range(0, rows, 1, 2)
        .withColumn("n", n)
        .withColumn("g", F.lit("orders"))
        .withColumn("cid", F.concat(F.lit("10.0.0.1@"), F.col("n") % 4))
        .withColumn("mq_all", F.expr(queue))
        .withColumn("cid_all", F.expr("transform(sequence(0, 3), i -> concat('10.0.0.1@', i))"))
        .withColumn("topic", F.concat(F.lit("T"), F.col("n")))
        .withColumn("table", F.expr("map('b', map(0L, '10.0.0.1:10911', 1L, concat('10.0.0.', n)))"))
        .withColumn("cids", F.expr("concat(cid_all, array(concat('x', n)))"))
        .withColumn("max_offset_py", F.lit(10**12))
        .withColumn("at", F.col("n") * 4096)
        .withColumn("memory", F.lit(16 * 10**9))
        .withColumn("ratio", F.lit(40).cast("bigint"))
        .withColumn("yes", F.lit(True))
        .withColumn("version", F.lit("5.3.3"))
        .withColumn("zero", F.lit(0).cast("bigint"))
    )


ASKED: dict[str, list[str]] = {
    "allocate_averagely": ["g", "cid", "mq_all", "cids"],
    "find_broker_address_in_subscribe": ["table", "g", "n", "yes"],
    "recalculate_pull_from_which_node": ["n"],
    "slave_suggestion": ["max_offset_py", "at", "memory", "ratio"],
    "memory_threshold": ["at", "ratio"],
    "suggest_which_broker_id": ["yes", "yes", "n", "n", "zero", "zero", "yes", "version"],
    "compare_and_increase_only": ["at", "n"],
}


def without_memo(bound: BoundFunction) -> Callable[..., Column]:
    """The Arrow face with every row taken for distinct."""
    answer, kind = bound.answering, to_arrow_type(bound.answer_type)

    def face(*batch: pa.Array) -> pa.Array:
        rows = zip(*map(law_values, batch), strict=True)
        return answers_column([answer(row) for row in rows], kind)

    return F.arrow_udf(face, bound.answer_type)


def ways(bound: BoundFunction) -> dict[str, Callable[[DataFrame], DataFrame]]:
    """Each way to ask the function, by the title of its column in the table."""
    names = ASKED[bound.name]
    return {
        "udf": lambda data: data.select(bound.udf(*names)),
        "pandas": lambda data: data.select(bound.pandas_udf(*names)),
        "no memo": lambda data: data.select(without_memo(bound)(*names)),
        "arrow": lambda data: data.select(bound.arrow_udf(*names)),
        "sql": lambda data: data.selectExpr(f"{bound.name}({', '.join(f'`{n}`' for n in names)})"),
    }


def seconds(ask: Callable[[DataFrame], DataFrame], data: DataFrame, runs: int) -> float:
    """The best of some runs, the result computed and thrown away."""
    taken = []
    for _ in range(runs):
        started = time.perf_counter()
        ask(data).write.format("noop").mode("overwrite").save()
        taken.append(time.perf_counter() - started)
    return min(taken)


def night_of_queues(queues: int, seed: int) -> list[pa.Array]:
    """The arguments of status_windows: ends every 15 s and windows of 300 s of a day, commits of 70 minutes."""
    chance = np.random.default_rng(seed)
    start, day, busy = 1_760_000_000_000, 86_400_000, 4_200_000
    beat = np.arange(0, day, 15_000)
    rows = []
    for _ in range(queues):
        head_ts = start + beat + chance.integers(0, 10_000, len(beat))
        head_offset = chance.integers(10**9) + chance.integers(0, chance.choice([1, 2, 40, 900]), len(beat)).cumsum()
        head_offset[chance.random(len(beat)) < 0.001] -= 50  # a broker that lost messages
        commit_ts = start + chance.integers(day - busy) + np.arange(0, busy, 60_000)
        commit_ts += chance.integers(0, 50_000, len(commit_ts))
        at = head_offset[(commit_ts - start) // 15_000 - 1]
        # Keeps up, falls back, or stands still.
        commit_offset = at - chance.choice([0, 0, 5, 30_000])
        commit_offset -= ((at - at[0]) * chance.choice([0.0, 0.001, 1.0])).astype(np.int64)
        if chance.random() < 0.1:
            commit_offset[40:] -= 1_000
        rows.append((commit_ts, commit_offset, head_ts, head_offset, 300_000, start + day))
    kinds = [pa.list_(pa.int64())] * 4 + [pa.int64()] * 2
    return [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]


def windows_of_a_night(queues: int) -> None:
    """Print what the law takes of a processor and what its twin does."""
    night = night_of_queues(queues, 1)
    started = time.process_time()
    windows = sum(len(status_windows(*row)) for row in zip(*map(law_values, night), strict=True))
    between = time.process_time()
    status_windows_arrow(*night)
    law, twin = between - started, time.process_time() - between
    print(f"status_windows, {windows} windows: law {law:.2f} s, twin {twin:.2f} s ({law / twin:.0f})")


def session() -> SparkSession:
    """Two cores, the inputs in memory."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", help="a function's name")
    parser.add_argument("--queues", type=int, default=500)
    options = parser.parse_args()
    spark = session()
    print(f"{options.rows} rows; thousands of rows a second (times the pickled UDF)")
    print(f"{'function':34}{'input':12}" + "".join(f"{title:>16}" for title in TITLES))
    for repeated in (True, False):
        data = inputs(spark, options.rows, repeated).cache()
        data.count()
        for name in ASKED if options.only is None else [options.only]:
            taken = {title: seconds(ask, data, options.runs) for title, ask in ways(functions.FUNCTIONS[name]).items()}
            cells = [
                f"{options.rows / taken[title] / 1000:9.0f} ({taken['udf'] / taken[title]:4.1f})"
                if title in taken
                else ""
                for title in TITLES
            ]
            kind = "repeated" if repeated else "unrepeated"
            print(f"{name:34}{kind:12}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
        data.unpersist()
    windows_of_a_night(options.queues)


if __name__ == "__main__":
    main()
