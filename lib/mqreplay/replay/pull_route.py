"""gold.pull_route: each pull against PullAPIWrapper's and MQClientInstance's rules.

A client asks the broker id last suggested for the queue (the master before any suggestion), at the address its route
then gives for it. Both are known from what the same client was told before: the answers of its earlier pulls of that
queue, and the answers of name servers. A client older than the recording may remember a suggestion that nobody saw;
its first pull of a queue is then undetermined, never taken for the default.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.bind import functions as rocketmq
from mqreplay.core.version import CLIENT_4
from mqreplay.replay.client_memory import with_epoch, with_memory
from mqreplay.replay.route_changes import route_changes

NEEDED = [
    *("cluster", "day", "client_id", "consumer_group", "topic", "broker_name", "queue_id", "broker_id", "record_id"),
    *("request_ts", "response_ts", "opaque", "sub_version", "suggest_which_broker_id", "error"),
]


def pull_route(
    pull: DataFrame, route: DataFrame, starts: Mapping[dt.datetime, dt.datetime], route_slack_ms: int
) -> DataFrame:
    """One row a row of silver.pull.

    ``starts`` are the instants from which the recording has no gap before, each with the one from which on it surely
    told of every client (with_memory); ``route_slack_ms`` is how long after a name server's answer
    the client may still go by the route it had.
    """
    changes = route_changes(with_epoch(route, "ts", starts))
    known = with_memory(pull.select(*NEEDED), changes, starts)
    cases = _cases(changes, pull.select("suggest_which_broker_id"))
    same = [F.col("p.route_id") == F.col("c.route_id"), F.col("p.pull_from_which_node").eqNullSafe(F.col("c.node"))]
    asked = known.alias("p").join(F.broadcast(cases).alias("c"), same, "left")
    asked = asked.select("p.*", *[f"c.{name}" for name in ("now_id", "before_id", "route_broker_ids", "had_before")])
    return _judge(asked, route_slack_ms).select(
        "cluster",
        "day",
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
        "client_id",
        "request_ts",
        "pull_from_which_node",
        "route_broker_ids",
        "expected_broker_id",
        "actual_broker_id",
        (F.col("actual_broker_id") != 0).alias("from_slave"),
        "cause",
        "judgement",
        "reason",
        "record_id",
    )


def _cases(changes: DataFrame, suggested: DataFrame) -> DataFrame:
    """route_id, node, now_id, before_id, route_broker_ids, had_before: the law's answers for all that may have been.

    Routes are few and so are suggestions, and each is decided once, however many pulls went by it.
    """
    states = changes.groupBy("route_id").agg(
        *[F.first(name).alias(name) for name in ("broker_name", "broker_addrs", "before")]
    )
    told = suggested.select(F.col("suggest_which_broker_id").alias("node"))
    spark = changes.sparkSession
    nodes = told.unionByName(spark.createDataFrame([(0,), (None,)], "node BIGINT")).distinct()
    return states.crossJoin(F.broadcast(nodes)).select(
        "route_id",
        "node",
        _found("broker_addrs").alias("now_id"),
        _found("before").alias("before_id"),
        F.array_sort(F.map_keys("broker_addrs")).alias("route_broker_ids"),
        F.col("before").isNotNull().alias("had_before"),
    )


def _found(addrs: str) -> Column:
    """The law's answer over one broker name's addresses, as the broker id found."""
    table = F.create_map(F.col("broker_name"), F.col(addrs))
    law = rocketmq.find_broker_address_in_subscribe.arrow_udf(
        table, "broker_name", "node", F.lit(False), F.lit(CLIENT_4)
    )
    return F.when(F.col(addrs).isNotNull() & F.col("node").isNotNull(), law.value.broker_id)


def _judge(asked: DataFrame, route_slack_ms: int) -> DataFrame:
    age_ms = F.unix_millis("request_ts") - F.unix_millis("since")
    fresh = F.col("had_before") & (age_ms < route_slack_ms)
    actual, node = F.col("actual_broker_id"), F.col("pull_from_which_node")
    agrees = F.coalesce(F.col("now_id") == actual, F.lit(False))
    agreed_before = F.coalesce(fresh & (F.col("before_id") == actual), F.lit(False))
    straight = F.col("route_id").isNull() & (node == actual)
    reason = (
        F.when(actual.isNull(), "the recording does not say which broker was asked")
        .when(
            node.isNull(),
            "the client is older than the recording: what it was last told of this queue is not known",
        )
        .when(straight, _said(node, "; the client's route was not recorded"))
        .when(
            F.col("route_id").isNull(),
            "the client's route was not recorded, and it asked another broker than last suggested",
        )
        .when(F.col("now_id").isNull() & ~agreed_before, "the route that the client had names no address")
        .when(agrees & (F.col("now_id") == node), _said(node, ""))
        .when(agrees, _fell_to(node))
        .when(agreed_before, "as the route said that the client had a moment before")
        .otherwise(
            F.concat(
                F.lit("RocketMQ's rule says broker id "),
                F.col("now_id"),
                F.lit(", the client asked "),
                actual,
            )
        )
    )
    undetermined = actual.isNull() | node.isNull() | (F.col("route_id").isNull() & ~F.coalesce(straight, F.lit(False)))
    nowhere = F.col("route_id").isNotNull() & F.col("now_id").isNull() & ~agreed_before
    judgement = (
        F.when(undetermined | nowhere, "undetermined")
        .when(straight | agrees | agreed_before, "agree")
        .otherwise("differ")
    )
    expected = (
        F.when(judgement == "undetermined", None)
        .when(agreed_before & ~agrees, actual)
        .otherwise(F.when(straight, node).otherwise(F.col("now_id")))
    )
    master_there = F.array_contains("route_broker_ids", F.lit(0).cast("bigint"))
    cause = (
        F.when(actual == 0, None)
        .when(node == actual, "suggested")
        # Brokers suggest 1 whatever id their slave has (whichBrokerWhenConsumeSlowly), and clients fall to the next.
        .when((node > 0) & master_there, "suggested")
        .when(~master_there, "master_gone")
    )
    return asked.withColumnRenamed("broker_id", "actual_broker_id").withColumns(
        {"judgement": judgement, "reason": reason, "expected_broker_id": expected, "cause": cause}
    )


def _said(node: Column, more: str) -> Column:
    return F.when(node == 0, F.lit("the master, by default or as last suggested" + more)).otherwise(
        F.concat(F.lit("the broker id last suggested, "), node, F.lit(more))
    )


def _fell_to(node: Column) -> Column:
    ids = F.array_join(F.transform("route_broker_ids", lambda i: i.cast("string")), ", ")
    return F.concat(
        F.lit("broker id "),
        node,
        F.lit(" was not in the client's route (ids "),
        ids,
        F.lit("): the next it falls to"),
    )
