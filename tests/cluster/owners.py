"""Owners of queues over time, by the Java clients and by gold.queue_owner."""

from __future__ import annotations

import datetime as dt
from typing import Any

from cluster.clients import Consumer, HeldChange, Queue

# A client is asked for its queues every 20 s: a boundary is known within that, and one second.
PRECISION_MS = 21_000
STEP_MS = 500
FOREVER = 2**62
Histories = dict[str, dict[str, list[HeldChange]]]  # by group, by client id


def histories(consumers: list[Consumer]) -> Histories:
    """Return the queues that the Java clients report."""
    found: Histories = {}
    for consumer in consumers:
        found.setdefault(consumer.group, {})[consumer.client_id] = consumer.changes()
    return found


def disagreements(held: Histories, topic: str, rows: list[dict[str, Any]], from_ms: int, to_ms: int) -> list[str]:
    """Return the queues and moments, further than PRECISION_MS from a change, with other owners in gold.queue_owner."""
    wrong = []
    for group, members in held.items():
        changes = [change for history in members.values() for change in history]
        for queue in sorted({queue for change in changes for queue in change.queues if queue[0] == topic}):
            spans = {client_id: _spans(history, queue) for client_id, history in members.items()}
            edges = [edge for client_spans in spans.values() for span in client_spans for edge in span]
            owned = [row for row in rows if row["consumer_group"] == group and _queue(row) == queue]
            for now in range(from_ms, to_ms, STEP_MS):
                if any(abs(now - edge) <= PRECISION_MS for edge in edges):
                    continue
                expected = {name for name, held in spans.items() if any(begin <= now < end for begin, end in held)}
                found = {row["client_id"] for row in owned if epoch_ms(row["from_ts"]) <= now < epoch_ms(row["to_ts"])}
                if found != expected:
                    wrong.append(f"{group} {queue} at {now}: {sorted(found)}, expected {sorted(expected)}")
    return wrong


def epoch_ms(moment: dt.datetime) -> int:
    """Return a table's instant in epoch ms."""
    return round(moment.replace(tzinfo=moment.tzinfo or dt.UTC).timestamp() * 1000)


def _spans(history: list[HeldChange], queue: Queue) -> list[tuple[int, int]]:
    """Return from when to when a client held a queue, in epoch ms."""
    spans: list[tuple[int, int]] = []
    since: int | None = None
    for change in history:
        if queue in change.queues and since is None:
            since = change.ts
        elif queue not in change.queues and since is not None:
            spans.append((since, change.ts))
            since = None
    return spans if since is None else [*spans, (since, FOREVER)]


def _queue(row: dict[str, Any]) -> Queue:
    return row["topic"], row["broker_name"], row["queue_id"]
