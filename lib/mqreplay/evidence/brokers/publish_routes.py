"""The queues of a topic in the order in which producers take turns, by the routes that name servers answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.select_queue import select_one_message_queue
from mqreplay.core.topic_route import BrokerData, QueueData, TopicRouteData, topic_publish_info
from mqreplay.evidence.arrays.distinct import distinct_rows
from mqreplay.evidence.time_spans import INSTANT

ADDRESSES: Final = pl.List(pl.Struct({"key": pl.Int64, "value": pl.String}))  # broker id, address
BROKERS: Final = pl.List(pl.Struct({"broker_name": pl.String, "broker_addrs": ADDRESSES}))
CHANGES: Final[dict[str, pl.DataType]] = {"topic": pl.String(), "known_ts": INSTANT, "route_id": pl.Int64()}
QUEUES: Final[dict[str, pl.DataType]] = {
    "route_id": pl.Int64(),
    "position": pl.Int64(),
    "broker_name": pl.String(),
    "queue_id": pl.Int32(),
    "queues": pl.Int64(),  # of the topic
    "brokers": pl.Int64(),  # of the topic
    # The queue that a producer takes after this one, and the one that it takes if this one failed.
    "next_broker_name": pl.String(),
    "next_queue_id": pl.Int32(),
    "retry_broker_name": pl.String(),
    "retry_queue_id": pl.Int32(),
}


def publish_routes(route: pl.DataFrame, topics: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return when the route of each topic changed (columns CHANGES), and the queues of each route (QUEUES).

    ``route`` are rows of silver.route, ``topics`` the topics that count. Static topics are left out: brokers know them
    by other queue ids than clients do. Follows MQClientInstance#topicRouteData2TopicPublishInfo,
    TopicPublishInfo#selectOneMessageQueue.
    """
    is_known = pl.col("queue_datas").is_not_null() & pl.col("broker_datas").is_not_null()
    is_plain = pl.col("queue_mappings").is_null() & pl.col("topic").is_in(topics.unique().implode())
    answered = route.filter(is_known & is_plain).select(
        "topic",
        pl.coalesce("response_ts", "ts").cast(INSTANT).alias("known_ts"),
        "queue_datas",
        pl.col("broker_datas").cast(BROKERS),
    )
    contents = answered.select("topic", "queue_datas", "broker_datas")
    place, row_of = distinct_rows([column.to_arrow() for column in contents])
    numbers: dict[tuple[tuple[str, int], ...], int] = {}
    found = [numbers.setdefault(_queues(*row), len(numbers)) for row in contents.gather(row_of).rows()]
    ids = pl.Series("route_id", found, pl.Int64).gather(place)
    changes = answered.select("topic", "known_ts").with_columns(ids).sort("topic", "known_ts", "route_id")
    is_change = pl.col("route_id").ne_missing(pl.col("route_id").shift(1).over("topic"))
    rows = [(number, *row) for queues, number in numbers.items() for row in _turns(queues)]
    return changes.filter(is_change).select(pl.col(name).cast(kind) for name, kind in CHANGES.items()), pl.DataFrame(
        rows, QUEUES, orient="row"
    )


def _turns(queues: tuple[tuple[str, int], ...]) -> Iterator[tuple[object, ...]]:
    """Yield the columns QUEUES of each queue of a route, after route_id."""
    listed = [MessageQueue("", *queue) for queue in queues]
    brokers = len({queue.broker_name for queue in listed})
    for position, queue in enumerate(listed):
        after = select_one_message_queue(listed, position).mq
        retry = select_one_message_queue(listed, position, queue.broker_name).mq
        yield position, *queue[1:], len(listed), brokers, *after[1:], *retry[1:]


def _queues(
    topic: str, queue_datas: list[dict[str, Any]], broker_datas: list[dict[str, Any]]
) -> tuple[tuple[str, int], ...]:
    """Return broker name and queue id of each queue of a route, in the order of turns."""
    queues = [
        QueueData(data["broker_name"], data["read_queue_nums"], data["write_queue_nums"], data["perm"])
        for data in queue_datas
    ]
    brokers = [
        BrokerData("", data["broker_name"], {each["key"]: each["value"] for each in data["broker_addrs"] or ()})
        for data in broker_datas
    ]
    turns = topic_publish_info(topic, TopicRouteData(queues, brokers)).message_queue_list
    return tuple((queue.broker_name, queue.queue_id) for queue in turns)
