"""What each client was told of brokers' addresses by name servers, and when."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

NAME = ["epoch", "client_id", "broker_name"]


def route_changes(route: DataFrame) -> DataFrame:
    """What each client's brokerAddrTable was given, and when: NAME, broker_addrs, the addresses before, known_ts.

    ``route_id`` is the same where broker name, addresses and those before are. ``route`` has the epoch.
    A client takes a topic's brokers over only when that topic's route differs from the one it had
    (MQClientInstance#updateTopicRouteInfoFromNameServer).
    """
    seen = Window.partitionBy("epoch", "client_id", "topic").orderBy("known_ts", "ts", "record_id")
    text = F.to_json(F.struct(F.array_sort("queue_datas").alias("q"), _sorted_brokers().alias("b")))
    answered = route.where(F.col("broker_datas").isNotNull()).withColumn("known_ts", F.coalesce("response_ts", "ts"))
    changed = (
        answered.withColumn("text", text)
        .withColumn("text_before", F.lag("text").over(seen))
        .where(~F.col("text").eqNullSafe(F.col("text_before")))
        .select("epoch", "client_id", "known_ts", "record_id", F.explode("broker_datas").alias("b"))
        .select("epoch", "client_id", "known_ts", "record_id", "b.broker_name", "b.broker_addrs")
    )
    name = Window.partitionBy(*NAME).orderBy("known_ts", "record_id")
    known = changed.withColumn("before", F.lag("broker_addrs").over(name))
    told = [_sorted_addrs("broker_addrs"), _sorted_addrs("before")]
    # In one partition, since routes change seldom.
    return known.withColumn("route_id", F.dense_rank().over(Window.orderBy("broker_name", *told)).cast("bigint"))


def _sorted_addrs(addrs: str) -> Column:
    return F.to_json(F.array_sort(F.map_entries(addrs)))


def _sorted_brokers() -> Column:
    return F.array_sort(
        F.transform(
            "broker_datas",
            lambda b: F.struct(b.broker_name, F.array_sort(F.map_entries(b.broker_addrs)).alias("addrs")),
        )
    )
