"""gold.pop_assignment: the queues that a broker assigned, against QueryAssignmentProcessor.

The members and queues are those on which all polled servers agreed at that time. The mode is that of the answer. The
number of shared queues (popShareQueueNum) is a setting that no answer has: any one may explain the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import polars as pl

from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.pop_assignment import BROADCASTING, POP, RequestMode, query_assignment
from mqreplay.decisions.decision import VERDICT_WORDS, Decision
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED
from mqreplay.evidence.intervals import with_state

COLUMNS: Final = (
    *("day", "consumer_group", "topic", "client_id", "ts", "broker_name", "strategy", "message_model", "mode"),
    *("cid_all", "mq_all", "actual", "pop_share_queue_num", "judgement", "reason", "record_id"),
)
CLIENT_KEEPS: Final = "the broker assigned nothing, so the client keeps what it has"


class _Verdict(NamedTuple):
    judgement: str
    reason: str
    pop_share_queue_num: int | None = None


def pop_assignments(pop_assignment: pl.DataFrame, members: pl.DataFrame, routes: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of gold.pop_assignment: one per answered QUERY_ASSIGNMENT.

    ``members`` and ``routes`` are the frames of agreed_lists: spans, which do not overlap, of one list each.
    """
    asked = pop_assignment.filter(pl.col("response_ts").is_not_null()).sort("ts")
    known = _at(_at(asked, members, "consumer_group", "cid_all"), routes, "topic", "mq_all")
    verdicts = [_verdict(row) for row in known.iter_rows(named=True)]
    named = [
        pl.Series("judgement", [one.judgement for one in verdicts], pl.String),
        pl.Series("reason", [one.reason for one in verdicts], pl.String),
        pl.Series("pop_share_queue_num", [one.pop_share_queue_num for one in verdicts], pl.Int64),
    ]
    return known.with_columns(*named, pl.col("queues").alias("actual")).select(COLUMNS)


def _at(rows: pl.DataFrame, spans: pl.DataFrame, subject: str, view: str) -> pl.DataFrame:
    """Return the rows with the list of their subject at their instant, null if none is known."""
    states = spans.select(subject, "from_ts", "to_ts", view).sort("from_ts")
    joined = with_state(rows, states, subject, "ts", "from_ts")
    return joined.with_columns(pl.when(pl.col("ts") < pl.col("to_ts")).then(pl.col(view)).alias(view)).drop(
        "from_ts", "to_ts", strict=False
    )


def _verdict(row: dict[str, object]) -> _Verdict:
    if row["response_code"] != 0:
        return _Verdict(UNDETERMINED, "the broker refused the request")
    if row["mq_all"] is None:
        return _Verdict(UNDETERMINED, "the queues of the topic are not known at that time")
    if row["cid_all"] is None and row["message_model"] != BROADCASTING:
        return _Verdict(UNDETERMINED, "the members of the group are not known at that time")
    actual = None if row["queues"] is None else _pairs(row["queues"])
    mode = row["mode"]
    if actual is None:
        return _Verdict(UNDETERMINED, CLIENT_KEEPS)
    clients = row["cid_all"] if isinstance(row["cid_all"], list) else []
    if row["client_id"] not in clients and row["message_model"] != BROADCASTING:
        return _Verdict(UNDETERMINED, "the client is not in the group's list of members at that time")
    shares = range(max(1, len(clients) - 1)) if mode == POP else range(1)
    for share in shares:
        if _expected(row, clients, RequestMode(str(mode or "PULL"), share)) == actual:
            return _Verdict(AGREE, "the broker's rule gives the same queues", share if mode == POP else None)
    return _Verdict(DIFFER, "no number of shared queues gives these queues" if mode == POP else "other queues are due")


def _expected(row: dict[str, object], clients: list[str], mode: RequestMode) -> list[tuple[str, int]] | None:
    topic, model = str(row["topic"]), str(row["message_model"])
    queues = [MessageQueue(topic, *pair) for pair in _pairs(row["mq_all"])]
    group, client, strategy = (None if row[name] is None else str(row[name]) for name in _WHO)
    found = query_assignment(topic, group, client, model, strategy, mode, queues, clients)
    return None if found is None else sorted((queue.broker_name, queue.queue_id) for queue in found)


_WHO: Final = ("consumer_group", "client_id", "strategy")


def _pairs(queues: object) -> list[tuple[str, int]]:
    items: Iterable[dict[str, object]] = queues if isinstance(queues, list) else []
    return sorted((str(item["broker_name"]), int(str(item["queue_id"]))) for item in items)


POP_ASSIGNMENT: Final = Decision(
    table="gold.pop_assignment",
    instant="ts",
    one="assignment by a broker",
    many="assignments by a broker",
    importance=21,
    phrases=("{consumer_group} {topic}", VERDICT_WORDS),
)
