"""gold.pull_route: each pull against PullAPIWrapper's and MQClientInstance's rules.

A client asks the broker id last suggested for the queue (the master before any suggestion), at the address its route
then gives for it. Both are known from what the same client was told before: the answers of its earlier pulls of that
queue, and the answers of name servers. A client older than the recording may remember a suggestion that nobody saw;
its first pull of a queue is then undetermined, never taken for the default.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.bind import functions as rocketmq
from mqreplay.core.version import CLIENT_4


def pull_route(known: DataFrame, route_slack_ms: int) -> DataFrame:
    """One row a row of silver.pull. ``known`` is the frame of pull_context's with_context.

    ``route_slack_ms`` is how long after a name server's answer the client may still go by the route it had.
    """
    return _judge(known, route_slack_ms).select(
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


def _judge(asked: DataFrame, route_slack_ms: int) -> DataFrame:
    now, before = _found("route.broker_addrs"), _found("route.before")
    age_ms = F.unix_millis("request_ts") - F.unix_millis("route.since")
    fresh = F.col("route.before").isNotNull() & (age_ms < route_slack_ms)
    actual, node = F.col("actual_broker_id"), F.col("pull_from_which_node")
    agrees = F.coalesce(F.col("now_id") == actual, F.lit(False))
    agreed_before = F.coalesce(fresh & (F.col("before_id") == actual), F.lit(False))
    straight = F.col("route").isNull() & (node == actual)
    reason = (
        F.when(actual.isNull(), "the recording does not say which broker was asked")
        .when(
            node.isNull(),
            "the client is older than the recording: what it was last told of this queue is not known",
        )
        .when(straight, _said(node, "; the client's route was not recorded"))
        .when(
            F.col("route").isNull(),
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
    undetermined = actual.isNull() | node.isNull() | (F.col("route").isNull() & ~F.coalesce(straight, F.lit(False)))
    nowhere = F.col("route").isNotNull() & F.col("now_id").isNull() & ~agreed_before
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
    cause = (
        F.when(actual == 0, None)
        .when(node == actual, "suggested")
        .when(~F.array_contains("route_broker_ids", F.lit(0).cast("bigint")), "master_gone")
    )
    return asked.withColumns(
        {
            "now_id": now,
            "before_id": before,
            "actual_broker_id": F.col("broker_id"),
            "route_broker_ids": F.array_sort(F.map_keys("route.broker_addrs")),
        }
    ).withColumns({"judgement": judgement, "reason": reason, "expected_broker_id": expected, "cause": cause})


def _found(addrs: str) -> Column:
    """The law's answer over one broker name's addresses, as the broker id found."""
    table = F.create_map(F.col("broker_name"), F.col(addrs))
    law = rocketmq.find_broker_address_in_subscribe.arrow_udf(
        table, "broker_name", "pull_from_which_node", F.lit(False), F.lit(CLIENT_4)
    )
    return F.when(F.col(addrs).isNotNull() & F.col("pull_from_which_node").isNotNull(), law.value.broker_id)


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
