"""Routes as name servers answered them: the brokers' addresses that clients got, and the queues that producers use."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection, Iterator
from typing import Any, Final

import polars as pl

from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.select_queue import select_one_message_queue
from mqreplay.core.topic_route import BrokerData, QueueData, TopicRouteData, topic_publish_info
from mqreplay.evidence.arrays.distinct import distinct_cases
from mqreplay.evidence.frames import columns, typed
from mqreplay.evidence.intervals import INSTANT, with_epoch

CLIENT_RUN_BROKER = ("epoch", "client_id", "broker_name")
ADDRESSES = pl.List(pl.Struct({"key": pl.Int64, "value": pl.String}))  # broker id, address
ROUTE_BROKERS = pl.List(pl.Struct({"broker_name": pl.String, "broker_addrs": ADDRESSES}))
ROUTE_SCHEMA: dict[str, pl.DataType] = {
    **columns("epoch", "client_id", "broker_name", "known_ts", "route_id"),
    "broker_addrs": ADDRESSES,
    "before": ADDRESSES,
}
ROUTE_CHANGES: Final[dict[str, pl.DataType]] = columns("topic", "known_ts", "route_id")
ROUTE_QUEUES: Final[dict[str, pl.DataType]] = {
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


def route_changes(route: pl.DataFrame, starts: Collection[dt.datetime]) -> pl.DataFrame:
    """Return one row per broker name in each changed route of a client.

    Columns: epoch, client_id, broker_name, known_ts, route_id, broker_addrs, before.

    ``known_ts`` is when the client got ``broker_addrs``, ``before`` are its addresses until then (null: none).
    ``route_id`` is equal if broker name, addresses and previous addresses are. Rows are in order of CLIENT_RUN_BROKER
    and ``known_ts``. ``starts`` are the instants before which the recording has a gap.
    A client takes over a topic's brokers only if that topic's route changed
    (MQClientInstance#updateTopicRouteInfoFromNameServer).
    """
    changed = (
        changed_answers(route, starts)
        .select("epoch", "client_id", "known_ts", "record_id", pl.col("broker_datas").cast(ROUTE_BROKERS))
        .explode("broker_datas")
        .unnest("broker_datas")
        .filter(pl.col("broker_name").is_not_null())  # no pull names such a broker
        .sort(*CLIENT_RUN_BROKER, "known_ts", "record_id", maintain_order=True)
    )
    # Of several changes at one instant the one with the greatest route id counts as the last.
    known = _with_route_id(changed.with_columns(pl.col("broker_addrs").shift().over(CLIENT_RUN_BROKER).alias("before")))
    return typed(known.sort(*CLIENT_RUN_BROKER, "known_ts", "route_id"), ROUTE_SCHEMA)


def changed_answers(route: pl.DataFrame, starts: Collection[dt.datetime]) -> pl.DataFrame:
    """Return the answers that are not the client's last one for the topic, with epoch and known_ts.

    They are all that `route_changes` needs of ``route``, which has all rows of some topics.
    """
    answered = route.filter(pl.col("broker_datas").is_not_null())
    known = pl.coalesce("response_ts", "ts").alias("known_ts")
    placed = with_epoch(answered, "ts", starts).with_columns(known, _content(answered))
    placed = placed.sort("epoch", "client_id", "topic", "known_ts", "ts", "record_id")
    last = pl.col("content").shift().over("epoch", "client_id", "topic")
    return placed.filter(pl.col("content").ne_missing(last)).drop("content")


def _content(answered: pl.DataFrame) -> pl.Series:
    """Return a number for each answer, equal if both lists have the same items in any order."""
    lists = answered.select("queue_datas", pl.col("broker_datas").cast(ROUTE_BROKERS))
    cases, place = distinct_cases(lists)
    numbers: dict[str, int] = {}
    found = [
        numbers.setdefault(repr((_sorted(queues), _sorted(brokers))), len(numbers)) for queues, brokers in cases.rows()
    ]
    return pl.Series("content", found, pl.Int64).gather(place)


def _sorted(value: object) -> object:
    """Return the value with the items of every list in one order."""
    if isinstance(value, list):
        return sorted((_sorted(item) for item in value), key=repr)
    return {name: _sorted(item) for name, item in value.items()} if isinstance(value, dict) else value


def _with_route_id(known: pl.DataFrame) -> pl.DataFrame:
    texts = known.with_columns(_text("broker_addrs"), _text("before"))
    of_route = ["broker_name", "broker_addrs_text", "before_text"]
    ids = texts.select(of_route).unique().sort(of_route).with_row_index("route_id", offset=1)
    return texts.join(ids, on=of_route, how="left", nulls_equal=True)


def _text(addresses: str) -> pl.Expr:
    """Return the addresses as JSON text, ordered by broker id; null if there are none."""
    of_entry = pl.element().struct
    value = pl.format(',"value":"{}"', of_entry.field("value")).fill_null("")
    entry = pl.format('{{"key":{}{}}}', of_entry.field("key"), value)
    in_order = pl.col(addresses).list.eval(pl.element().sort_by(of_entry.field("key")))
    return pl.format("[{}]", in_order.list.eval(entry).list.join(",")).alias(f"{addresses}_text")


def publish_routes(route: pl.DataFrame, topics: Collection[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return when the route of each topic changed (columns ROUTE_CHANGES), and the queues of each route (ROUTE_QUEUES).

    ``route`` are all rows of silver.route of some topics, ``topics`` the topics that count. Static topics are left out:
    brokers know them by other queue ids than clients do. ``route_id`` depends on the queues alone: frames of different
    topics may be appended. Follows MQClientInstance#topicRouteData2TopicPublishInfo,
    TopicPublishInfo#selectOneMessageQueue.
    """
    is_known = pl.col("queue_datas").is_not_null() & pl.col("broker_datas").is_not_null()
    is_plain = pl.col("queue_mappings").is_null() & pl.col("topic").is_in(list(topics))
    answered = route.filter(is_known & is_plain).select(
        "topic",
        pl.coalesce("response_ts", "ts").cast(INSTANT).alias("known_ts"),
        "queue_datas",
        pl.col("broker_datas").cast(ROUTE_BROKERS),
    )
    cases, place = distinct_cases(answered.select("topic", "queue_datas", "broker_datas"))
    found = [_queues(*row) for row in cases.rows()]
    numbers = {queues: _number(queues) for queues in found}
    ids = pl.Series("route_id", [numbers[queues] for queues in found], pl.Int64).gather(place)
    changes = answered.select("topic", "known_ts").with_columns(ids).sort("topic", "known_ts", "route_id")
    is_change = pl.col("route_id").ne_missing(pl.col("route_id").shift(1).over("topic"))
    rows = [(number, *row) for queues, number in numbers.items() for row in _turns(queues)]
    return typed(changes.filter(is_change), ROUTE_CHANGES), pl.DataFrame(rows, ROUTE_QUEUES, orient="row")


def _number(queues: tuple[tuple[str, int], ...]) -> int:
    return int.from_bytes(hashlib.sha256(repr(queues).encode()).digest()[:8], "big", signed=True)


def _turns(queues: tuple[tuple[str, int], ...]) -> Iterator[tuple[object, ...]]:
    """Yield the columns ROUTE_QUEUES of each queue of a route, after route_id."""
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
