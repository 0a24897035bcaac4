"""Messages that consumers sent back, as rows of the silver tables, and the verdicts on them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl

from mqreplay.decisions.retried_message import retried_message
from mqreplay.evidence.messages.counted_retries import first_places
from mqreplay.evidence.messages.sent_back import lock_requests_of_shard, retry_deliveries, second_tries
from mqreplay.evidence.offsets.queue_ends import polled_ends
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
FIRST = "retry 1, delay level 3"
SENT = {"consumer_group": "g", "topic": "t", "broker_name": "b", "client_id": "c1", "msg_id": "m", "response_code": 0}
SENT |= {"ts": at(10), "commitlog_offset": 500, "delay_level": 0, "max_reconsume_times": 2, "record_id": "sent"}
TRY = {"consumer_group": "g", "topic": "t", "queue_topic": "t", "broker_name": "b", "client_id": "c1", "msg_id": "m"}
TRY |= {"ts": at(9.9), "store_ts": at(1), "queue_id": 0, "queue_offset": 6, "commitlog_offset": 500}
TRY |= {"reconsume_times": 0, "status": "RECONSUME_LATER", "orderly": False, "record_id": "try"}
BACK = TRY | {"queue_topic": "%RETRY%g", "queue_offset": 0, "commitlog_offset": 900, "ts": at(20.1)}
BACK |= {"store_ts": at(20.05), "reconsume_times": 1, "status": "CONSUME_SUCCESS", "record_id": "back"}
GROUP = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "ts": at(0), "change": "first"}
GROUP |= {"consumer_group": "g", "retry_queue_nums": 1, "retry_max_times": 16}
DLQ = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "ts": at(30), "change": "first", "topic": "%DLQ%g"}

# The answer to the first send: the message lies at place 500 (hexadecimal 1F4) of its broker.
FIRST_SEND = {"ts": at(9), "broker_name": "b", "topic": "t", "msg_id": "m", "response_code": 0}
FIRST_SEND |= {"offset_msg_id": "7F00000100002A9F00000000000001F4"}


COPY = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "ts": at(5), "file_name": "topics.json"}
POLL = {"broker_name": "b", "broker_id": 0, "topic": "%DLQ%g"}
LOCK = {"consumer_group": "g", "client_id": "c2", "broker_name": "b", "broker_id": 0, "kind": "LOCK_BATCH_MQ"}


def end_at(seconds: float, offset: int) -> Row:
    """A poll of the end of the dead letter queue."""
    place = {"topic": "%DLQ%g", "broker_name": "b", "queue_id": 0, "min_offset": 0, "max_offset": offset}
    return {"ts": at(seconds), "offsets": [place]}


def judged(
    sent: list[Row],
    consumed: list[Row],
    configs: list[Row] | None = None,
    letters: list[Row] | None = None,
    brokers: list[Row] | None = None,
    silent: tuple[str, ...] = (),
    until: dt.datetime | None = None,
    sends: list[Row] | None = None,
    copies: list[Row] | None = None,
    locks: list[Row] | None = None,
    ends: list[Row] | None = None,
) -> list[Row]:
    requests = rows("silver.send_back", {}, sent)
    return retried_message(
        requests,
        retry_deliveries(rows("silver.consume", {}, consumed)),
        first_places(rows("silver.send", FIRST_SEND, sends or []), requests),
        second_tries(rows("silver.send", FIRST_SEND, sends or []), requests),
        rows("silver.subscription_group", GROUP, [{}] if configs is None else configs),
        rows("silver.topic_config", DLQ, letters or []),
        rows("silver.broker", {"broker_name": "b", "broker_id": 0, "ts": at(0)}, brokers or []),
        rows("silver.snapshot", COPY, copies or []),
        lock_requests_of_shard(rows("silver.lock", LOCK, locks or [])),
        polled_ends(rows("silver.topic_stats", POLL, ends or [])),
        pl.DataFrame({"consumer_group": silent}, {"consumer_group": pl.String}),
        until,
    ).rows(named=True)


def verdict(row: Row) -> tuple[str, str]:
    return row["judgement"], row["reason"]


def one(sent: Row | None = None, back: Row | None = None, **more: Any) -> Row:
    """The verdict on a message: its request and its try with these differences; ``back``: it came back so."""
    times = (sent or {}).pop("times", 0)
    consumed = [TRY | {"reconsume_times": times}]
    if back is not None:
        consumed.append(BACK | {"reconsume_times": times + 1} | back)
    (row,) = judged([SENT | (sent or {})], consumed, **more)
    return row
