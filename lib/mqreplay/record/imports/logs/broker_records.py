"""Records of a recording, from facts of broker.log and lock.log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from mqreplay.decode.logs.lock_log import LockLine

SOURCE: Final = "broker_log"
Record = tuple[str, dict[str, object]]


class Broker(NamedTuple):
    """A broker by name, id and address."""

    name: str
    broker_id: int
    addr: str | None


def broker_fields(broker: Broker) -> dict[str, object]:
    """Return the fields of a record that name a broker."""
    fields: dict[str, object] = {"broker_name": broker.name, "broker_id": broker.broker_id}
    return fields if broker.addr is None else {**fields, "broker_addr": broker.addr}


def runtime(ts: int, broker: Broker, error: str | None, source: str) -> Record:
    """Return a line of broker_runtime without figures: the broker was up at ``ts``, or down if there is an error."""
    record: dict[str, object] = {"ts": ts, **broker_fields(broker), "full": False, "source": source}
    return "broker_runtime", record if error is None else {**record, "error": error}


def lock_record(ts: int, lock: LockLine) -> Record:
    """Return the record of a refused lock or of an unlock."""
    queue = {"brokerName": lock.queue.broker_name, "queueId": lock.queue.queue_id, "topic": lock.queue.topic}
    record: dict[str, object] = {
        "ts": ts,
        "kind": "UNLOCK_BATCH_MQ" if lock.kind == "unlocked" else "LOCK_BATCH_MQ",
        "client_id": lock.client_id,
        "broker_name": lock.queue.broker_name,
        "request": {"clientId": lock.client_id, "consumerGroup": lock.group, "mqSet": [queue]},
        "source": "lock_log",
    }
    if lock.kind == "unlocked":
        return "lock_requests", record
    return "lock_requests", {**record, "other_client_id": lock.other, "response": {"lockOKMQSet": []}}


def heartbeat_record(ts: int, client_id: str, consumer: Mapping[str, object], broker: Broker | None) -> Record:
    """Return the record of a heartbeat. A ``consumer`` without subscriptionDataSet does not list its subscriptions."""
    body: dict[str, object] = {"clientID": client_id, "consumerDataSet": [consumer]}
    if "subscriptionDataSet" not in consumer:
        body["withoutSub"] = True
    record: dict[str, object] = {"ts": ts, "kind": "HEART_BEAT", "client_id": client_id, "body": body}
    return "heartbeats", {**record, **(broker_fields(broker) if broker else {}), "source": SOURCE}


def end_of_channel(ts: int, kind: str, client_id: str, group: str, broker: Broker) -> Record:
    """Return the record that a broker removed a client from a group: UNREGISTER_CLIENT or CHANNEL_CLOSE."""
    header = {"clientID": client_id, "consumerGroup": group}
    fields: dict[str, object] = {"ts": ts, "kind": kind, "client_id": client_id, **broker_fields(broker)}
    return "heartbeats", {**fields, "header": header, "source": SOURCE}
