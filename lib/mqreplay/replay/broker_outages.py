"""When a broker did not answer: between two answers, a silence in which somebody asked and got an error instead."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

BROKER = ["cluster", "broker_name", "broker_id"]
KEPT = 30  # errors kept as evidence, the first
_LONG_POLL_S = 35  # a pull waits 15-30 s at the broker: it may have been asked before the last answer to another


def broker_outages(
    broker_runtime: DataFrame,
    heartbeat: DataFrame,
    pull: DataFrame,
    failovers: DataFrame,
    down_s: int,
    unseen_down_s: int,
) -> DataFrame:
    """BROKER, from_ts, to_ts, errors, asked (polled: somebody polled the broker all the while).

    A silence of ``down_s`` seconds counts where the runtime table was polled, of ``unseen_down_s`` where only clients
    asked: they may have had nothing to ask. ``failovers`` are pulls that went to a slave since the master was gone.
    Without a later answer the outage goes on to the last error.
    """
    answers, errors = _answers(broker_runtime, heartbeat, pull), _errors(broker_runtime, heartbeat, pull, failovers)
    order = Window.partitionBy(*BROKER).orderBy("ts")
    silences = (
        answers.withColumn("until_ts", F.lead("ts").over(order))
        .withColumnRenamed("ts", "since_ts")
        .where(F.col("until_ts").isNull() | (_seconds("since_ts", "until_ts") >= down_s))
    )
    long_poll = F.make_dt_interval(secs=F.lit(_LONG_POLL_S))
    after = F.when(F.col("waited"), F.col("since_ts") - long_poll).otherwise(F.col("since_ts"))
    within = (F.col("ts") > after) & (F.col("until_ts").isNull() | (F.col("ts") < F.col("until_ts")))
    met = silences.join(errors, BROKER).where(within)
    outages = met.groupBy(*BROKER, "since_ts", "until_ts").agg(
        F.count(F.lit(1)).alias("errors"),
        F.max("polled").alias("polled"),
        F.max("direct").alias("direct"),
        F.min(F.when(F.col("ts") > F.col("since_ts"), F.col("ts"))).alias("first_ts"),
        F.max("ts").alias("last_ts"),
        F.transform(F.slice(F.array_sort(F.collect_set(F.struct("ts", "key"))), 1, KEPT), lambda e: e.key).alias(
            "keys"
        ),
    )
    long = _seconds("since_ts", F.coalesce("until_ts", "last_ts")) >= F.when(F.col("polled"), down_s).otherwise(
        unseen_down_s
    )
    # Polled each second, the first error is the moment; else the last answer is the nearest that is known.
    began = F.when(F.col("polled"), F.coalesce("first_ts", "since_ts")).otherwise(F.col("since_ts"))
    # A route without the master proves nothing by itself: a name server may have lost a broker that answers.
    return outages.where(long & F.col("direct")).select(
        *BROKER,
        began.alias("from_ts"),
        F.coalesce("until_ts", "last_ts").alias("to_ts"),
        "errors",
        "polled",
        "keys",
    )


def _answers(broker_runtime: DataFrame, heartbeat: DataFrame, pull: DataFrame) -> DataFrame:
    """BROKER, ts: once a second at most, that the broker answered."""
    told = [
        broker_runtime.where(F.col("error").isNull()).select(*BROKER, "ts"),
        heartbeat.where(F.col("response_code").isNotNull()).select(
            *BROKER, F.coalesce("response_ts", "ts").alias("ts")
        ),
        pull.where(F.col("response_code").isNotNull()).select(
            *BROKER, F.date_trunc("second", F.coalesce("response_ts", "request_ts")).alias("ts")
        ),
    ]
    return reduce(DataFrame.unionByName, told).where(F.col("broker_id").isNotNull()).distinct()


def _errors(broker_runtime: DataFrame, heartbeat: DataFrame, pull: DataFrame, failovers: DataFrame) -> DataFrame:
    """BROKER, ts, polled, waited (asked up to a long poll before it failed), key (of the row that tells of it)."""

    def key(table: str) -> Column:
        return F.struct(
            F.lit(table).alias("table_name"), F.concat(F.lit("record_id="), F.col("record_id")).alias("key")
        ).alias("key")

    def told(
        frame: DataFrame, ts: str, table: str, *, polled: bool = False, waited: bool = False, direct: bool = True
    ) -> DataFrame:
        flags = (F.lit(polled).alias("polled"), F.lit(waited).alias("waited"), F.lit(direct).alias("direct"))
        return frame.select(*BROKER, F.col(ts).alias("ts"), *flags, key(table))

    # Where a pull failed over, the master is what had gone.
    gone = failovers.withColumn("broker_id", F.lit(0).cast("bigint"))
    return reduce(
        DataFrame.unionByName,
        [
            told(broker_runtime.where(F.col("error").isNotNull()), "ts", "silver.broker_runtime", polled=True),
            told(heartbeat.where(F.col("error").isNotNull()), "ts", "silver.heartbeat"),
            told(pull.where(F.col("error").isNotNull()), "request_ts", "silver.pull", waited=True),
            told(gone, "request_ts", "gold.pull_route", direct=False),
        ],
    )


def _seconds(since: str, until: Column | str) -> Column:
    return (F.unix_millis(until) - F.unix_millis(since)) / 1000
