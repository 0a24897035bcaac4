"""gold.pull_route: each pull against PullAPIWrapper's and MQClientInstance's rules.

A client asks the broker id last suggested for the queue (the master before any suggestion), at the address its route
then gives for it. Both are known from what the same client was told before: the answers of its earlier pulls of that
queue, and the answers of name servers. A client older than the recording may remember a suggestion that nobody saw;
its first pull of a queue is then undetermined, never taken for the default.
"""

from __future__ import annotations

import datetime as dt

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.bind import functions as rocketmq
from mqreplay.core.version import CLIENT_4
from mqreplay.replay.as_of import as_of

QUEUE = ["epoch", "client_id", "consumer_group", "topic", "broker_name", "queue_id"]
NAME = ["epoch", "client_id", "broker_name"]
NEEDED = [
    *("cluster", "day", "client_id", "consumer_group", "topic", "broker_name", "queue_id", "broker_id", "record_id"),
    *("request_ts", "response_ts", "opaque", "sub_version", "suggest_which_broker_id", "error"),
]
UNKNOWN = -1  # stands for an answer that came, or may have come, unseen; no broker id is negative


def pull_route(pull: DataFrame, route: DataFrame, starts: list[dt.datetime], route_slack_ms: int) -> DataFrame:
    """One row a row of silver.pull.

    ``starts`` are the instants from which the recording has no gap before; ``route_slack_ms`` is how long after a name
    server's answer the client may still go by the route it had.
    """
    asked = with_suggestion(with_epoch(pull.select(*NEEDED), "request_ts", starts))
    known = route_changes(with_epoch(route, "ts", starts))
    asked = as_of(
        asked.withColumn("at", F.col("request_ts")),
        known.withColumn("at", F.col("known_ts")),
        NAME,
        "at",
        F.struct("broker_addrs", "before", F.col("known_ts").alias("since")),
        "route",
    )
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


def with_epoch(frame: DataFrame, ts: str, starts: list[dt.datetime]) -> DataFrame:
    """Adds ``epoch``, the last start at or before ``ts``: what a client was told in another epoch says nothing."""
    epoch = F.lit(None).cast("timestamp")
    for start in sorted(starts):
        epoch = F.when(F.col(ts) >= F.lit(start), F.lit(start)).otherwise(epoch)
    return frame.withColumn("epoch", F.coalesce(epoch, F.lit(min(starts)) if starts else epoch))


def with_suggestion(pull: DataFrame) -> DataFrame:
    """Adds ``pull_from_which_node``: the suggestion the client then kept, 0 if none, null if not known."""
    unseen = F.col("response_ts").isNull() & F.col("error").isNull()
    told = F.when(unseen, F.lit(UNKNOWN).cast("bigint")).otherwise(F.col("suggest_which_broker_id"))
    # Request ids rise within a client, so they order what happened in one and the same millisecond.
    turn = F.coalesce("opaque", F.lit(0))
    questions = pull.withColumns({"at": F.col("request_ts"), "turn": turn, "step": F.lit(0)})
    answers = pull.select(
        *QUEUE,
        F.coalesce("response_ts", "request_ts").alias("at"),
        turn.alias("turn"),
        F.lit(1).alias("step"),
        told.alias("told"),
    ).where(F.col("told").isNotNull())
    order = Window.partitionBy(*QUEUE).orderBy("at", "turn", "step").rowsBetween(Window.unboundedPreceding, -1)
    both = questions.unionByName(answers, allowMissingColumns=True)
    last = both.withColumn("kept", F.last("told", ignorenulls=True).over(order)).where(F.col("step") == 0)
    life = Window.partitionBy("epoch", "client_id")
    # subVersion is the moment the client subscribed: a client that did so in this recording began with an empty table.
    born = F.timestamp_millis(F.min("sub_version").over(life)) >= F.col("epoch")
    node = (
        F.when(F.col("kept") == UNKNOWN, None)
        .when(F.col("kept").isNotNull(), F.col("kept"))
        .when(born, F.lit(0).cast("bigint"))
    )
    return last.withColumn("pull_from_which_node", node).drop("at", "turn", "step", "told", "kept")


def route_changes(route: DataFrame) -> DataFrame:
    """What each client's brokerAddrTable was given, and when: NAME, broker_addrs, the addresses before, known_ts.

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
    return changed.withColumn("before", F.lag("broker_addrs").over(name))


def _sorted_brokers() -> Column:
    return F.array_sort(
        F.transform(
            "broker_datas",
            lambda b: F.struct(b.broker_name, F.array_sort(F.map_entries(b.broker_addrs)).alias("addrs")),
        )
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
