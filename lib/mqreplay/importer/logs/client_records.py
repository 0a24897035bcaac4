"""Records of a recording, from facts of rocketmq_client.log whose client is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.decode.client_errors import LISTENER_CALL
from mqreplay.decode.logs import client_facts as log
from mqreplay.decode.logs.exceptions import Thrown
from mqreplay.decode.message_queue import MessageQueue
from mqreplay.importer.logs.held_queues import SOURCE, Record

PULL_OFFSET_MOVED: Final = 21
MOST_ERROR: Final = 500  # characters of an exception; a listener's may be long
RESET_CONSUMER_CLIENT_OFFSET: Final = 220


def rebalance_record(ts: int, fact: log.Rebalanced) -> Record:
    """Return the record of a rebalance; the log has only the numbers of queues and clients, not their names."""
    return "rebalance_log", {
        "ts": ts,
        "client_id": fact.client_id,
        "consumer_group": fact.group,
        "topic": fact.topic,
        "strategy": fact.strategy,
        "mq_divided": sorted([queue.broker_name, queue.queue_id] for queue in fact.queues),
        "mq_all_size": fact.mq_all_size,
        "cid_all_size": fact.cid_all_size,
        "source": SOURCE,
    }


def commit_record(ts: int, fact: log.Committed) -> Record:
    """Return the record of a commit. The line is written shortly after it, with the offset of that moment."""
    named = _of_queue(ts, fact.client_id, fact.group, fact.queue)
    return "offset_commits", {**named, "kind": "UPDATE", "commit_offset": fact.offset}


def illegal_pull_record(ts: int, client_id: str, fact: log.OffsetIllegal) -> Record:
    """Return the record of a pull that was answered with another offset.

    The log has only such pulls, and only their answers.
    """
    record = _of_queue(ts, client_id, fact.group, fact.queue)
    times = {"request_ts": record.pop("ts"), "response_ts": ts}
    answer = {"response_code": PULL_OFFSET_MOVED, "response_name": "PULL_OFFSET_MOVED"}
    return "pull_log", {**times, **record, **_rest(fact), **answer}


def flow_record(ts: int, client_id: str, fact: log.FlowControlled) -> Record:
    """Return the record of a pull that flow control held back."""
    return "flow_controls", {**_of_queue(ts, client_id, fact.group, fact.queue), **_rest(fact)}


def _of_queue(ts: int, client_id: str | None, group: str | None, queue: MessageQueue) -> dict[str, object]:
    """Return the fields of a record about a queue."""
    names: dict[str, object] = {"ts": ts, "client_id": client_id, "consumer_group": group, "topic": queue.topic}
    return {**names, "queue_id": queue.queue_id, "broker_name": queue.broker_name, "source": SOURCE}


def _rest(fact: log.OffsetIllegal | log.FlowControlled) -> dict[str, object]:
    """Return the values of a fact but its group and queue, which records have under other names."""
    return {name: value for name, value in fact._asdict().items() if name not in ("group", "queue")}


def reset_record(ts: int, client_id: str, invoked: log.ResetInvoked, offsets: Mapping[MessageQueue, int]) -> Record:
    """Return the record of a reset by a broker, with the offsets that the client set for the queues of this broker."""
    table = ",".join(
        f'{{"brokerName":"{queue.broker_name}","queueId":{queue.queue_id},"topic":"{queue.topic}"}}:{offset}'
        for queue, offset in sorted(offsets.items())
    )
    return "server_requests", {
        "ts": ts,
        "client_id": client_id,
        "broker_name": next(iter(offsets)).broker_name,
        "broker_addr": invoked.broker_addr,
        "request_code": RESET_CONSUMER_CLIENT_OFFSET,
        "name": "RESET_CONSUMER_CLIENT_OFFSET",
        "ext": {"topic": invoked.topic, "group": invoked.group, "timestamp": str(invoked.timestamp)},
        "body": f'{{"offsetTable":{{{table}}}}}',
        "source": SOURCE,
    }


def route_record(ts: int, fact: log.RouteTaken) -> Record:
    """Return the record of a new route; the log names neither the name server nor the client."""
    record: dict[str, object] = {"ts": ts, "topic": fact.topic, "response_code": 0, "body": fact.body}
    return "routes", {**record, "source": SOURCE}


def heartbeat_record(ts: int, sent: log.HeartbeatSent | None, fact: log.HeartbeatContent) -> Record:
    """Return the record of a heartbeat; ``sent`` names the broker that answered it."""
    body = {"clientID": fact.client_id, "consumerDataSet": fact.consumers}
    record: dict[str, object] = {"ts": ts, "kind": "HEART_BEAT", "client_id": fact.client_id, "body": body}
    if sent is not None:
        record |= {"broker_name": sent.broker_name, "broker_id": sent.broker_id, "broker_addr": sent.broker_addr}
        record["response_code"] = 0
    return "heartbeats", {**record, "source": SOURCE}


def send_record(ts: int, client_id: str | None, fact: log.SendFailed) -> Record:
    """Return the record of a failed try of a send, written when it had failed."""
    thrown = fact.thrown
    if fact.interrupted:
        error: str | None = "InterruptedException"
    elif thrown is None:
        error = "an exception, in the next lines of the log"
    else:
        error = _error(thrown) if thrown.code is None else None
    answer: dict[str, object] = dict.fromkeys(("response_code", "remark", "broker_addr"))
    if thrown is not None:
        answer = {"response_code": thrown.code, "remark": thrown.remark, "broker_addr": thrown.broker_addr}
    record = _of_queue(ts, client_id, None, fact.queue) | {"invoke_id": fact.invoke_id, "cost_ms": fact.cost_ms}
    record.pop("consumer_group")
    return "sends", {**record, **answer, "error": error}


def threw_record(ts: int, fact: log.ClientThrew, thrown: Thrown) -> Record:
    """Return the record of a request that ended in an exception; the log completes client, group and broker."""
    queue = fact.queue
    names = {} if queue is None else {"broker_name": queue.broker_name, "queue_id": queue.queue_id}
    last = {"broker_name": thrown.brokers[-1]} if thrown.brokers else {}
    return "client_errors", {
        "ts": ts,
        "request": fact.request,
        "consumer_group": fact.group,
        "topic": (queue and queue.topic) or fact.topic or thrown.topic,
        "broker_addr": thrown.broker_addr,
        **last,
        **names,
        "response_code": thrown.code,
        "remark": thrown.remark,
        "error": None if thrown.code is not None else _error(thrown),
        "source": SOURCE,
    }


def listener_record(ts: int, fact: log.ListenerFailed) -> Record:
    """Return the record of a listener that did not consume messages; the offset is that of the first."""
    first = fact.messages[0]
    message = {"queue_offset": first.queue_offset, "msg_id": first.msg_id, "reconsume_times": first.reconsume_times}
    error = None if fact.error is None else fact.error[:MOST_ERROR]
    record = _of_queue(ts, None, fact.group, fact.queue) | message
    return "client_errors", {**record, "request": LISTENER_CALL, "is_orderly": fact.orderly or None, "error": error}


def listener_threw_record(ts: int, fact: log.ListenerThrew) -> Record:
    """Return the record of a listener that threw; the line names neither the group nor the queue."""
    names = dict.fromkeys(("consumer_group", "broker_name", "broker_addr"))
    message = {"topic": fact.topic, "msg_id": fact.msg_id, "reconsume_times": fact.reconsume_times}
    error = None if fact.cause is None else fact.cause[:MOST_ERROR]
    return "client_errors", {"ts": ts, "request": LISTENER_CALL, **names, **message, "error": error, "source": SOURCE}


def _error(thrown: Thrown) -> str:
    return f"{thrown.java_class}: {thrown.text}"[:MOST_ERROR]


def unregister_record(ts: int, client_id: str, fact: log.Unregistered) -> Record:
    """Return the record of a client that left its group at a broker."""
    return "heartbeats", {
        "ts": ts,
        "kind": "UNREGISTER_CLIENT",
        "client_id": client_id,
        "broker_name": fact.broker_name,
        "broker_addr": fact.broker_addr,
        "broker_id": fact.broker_id,
        "response_code": 0,
        "header": {"clientID": client_id, "consumerGroup": fact.group},
        "source": SOURCE,
    }
