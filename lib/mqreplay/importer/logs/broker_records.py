"""Records of a recording, from facts of broker.log, lock.log, namesrv.log and controller.log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mqreplay.core.pull_check import SYSTEM_ERROR
from mqreplay.decode import broker_events as events
from mqreplay.decode.client_errors import PULL_REQUEST
from mqreplay.decode.logs.broker_facts import LockLine, PullRefused
from mqreplay.decode.logs.controller_log import BrokerInactive, MasterElected
from mqreplay.decode.logs.form import Fact
from mqreplay.decode.logs.log_line import LogLine
from mqreplay.decode.logs.namesrv_log import BrokerSeen, TopicRegistered
from mqreplay.decode.logs.remoting_log import RequestFailed

SOURCE: Final = "broker_log"
FAILED_REQUESTS: Final = "requests that ended in an exception of a broker, and were no pulls refused by access rules"
Record = tuple[str, dict[str, object]]
Refusal = tuple[str | None, int]  # group (None: the line does not name it) and code of a refused pull


class Broker(NamedTuple):
    """A broker by name, id and address."""

    name: str
    broker_id: int
    addr: str | None


def broker_fields(broker: Broker) -> dict[str, object]:
    """Return the fields of a record that name a broker."""
    fields: dict[str, object] = {"broker_name": broker.name, "broker_id": broker.broker_id}
    return fields if broker.addr is None else {**fields, "broker_addr": broker.addr}


def runtime(ts: int, broker: Broker, error: str | None, source: str, table: Mapping[str, str] | None = None) -> Record:
    """Return a line of broker_runtime: the broker was up at ``ts``, or down if there is an error.

    ``table``: the figures of its runtime table that a log gives.
    """
    record: dict[str, object] = {"ts": ts, **broker_fields(broker), "full": False, "source": source}
    record |= {} if table is None else {"table": table}
    return "broker_runtime", record if error is None else {**record, "error": error}


def refused_pulls(
    lines: Iterable[tuple[int, LogLine]], broker: Broker | None, leave_out: Callable[[str, str], None]
) -> Iterator[Record]:
    """Yield the records of pulls that a broker refused by its access rules; ``leave_out`` counts the others.

    The broker answers with the exception as remark (NettyRemotingAbstract#processRequestCommand).
    """
    names = {} if broker is None else {"broker_name": broker.name, "broker_addr": broker.addr}
    for ts, line in lines:
        fact = line.fact
        if not isinstance(fact, RequestFailed):
            continue
        refused = fact.refused(line.thread)
        if refused is None:
            leave_out(FAILED_REQUESTS, fact.cause or "without its exception")
            continue
        answer = {"response_code": SYSTEM_ERROR, "remark": fact.cause, "source": "remoting_log"}
        yield "client_errors", {"ts": ts, "request": PULL_REQUEST, **names, **refused, **answer}


def refusal_record(ts: int, fact: PullRefused, names: Mapping[str, object]) -> Record:
    """Return the record of a pull that a broker refused; ``names`` are fields that name the broker."""
    what = {"consumer_group": fact.group, "topic": fact.topic}
    answer = {"response_code": fact.response_code, "remark": fact.remark, "source": SOURCE}
    return "client_errors", {"ts": ts, "request": PULL_REQUEST, **names, **what, **answer}


def refusals_of(errors: Iterable[Mapping[str, Any]]) -> set[Refusal]:
    """Return the refused pulls among records of client_errors."""
    pulls = [each for each in errors if each["request"] == PULL_REQUEST and each["response_code"] is not None]
    return {(each["consumer_group"], each["response_code"]) for each in pulls}


def event_record(ts: int, event: str, broker_name: str, fields: Mapping[str, object], source: str = SOURCE) -> Record:
    """Return a line of broker_events; fields that are None are left out."""
    known = {name: value for name, value in fields.items() if value is not None}
    return "broker_events", {"ts": ts, "event": event, "broker_name": broker_name, **known, "source": source}


def controller_record(ts: int, fact: Fact) -> Record:
    """Return the line of broker_events for a fact of controller.log."""
    match fact:
        case BrokerInactive(name, broker_id, why, addr):
            fields = {"broker_id": broker_id, "broker_addr": addr, "detail": why}
            return event_record(ts, events.INACTIVE, name, fields, "controller_log")
        case MasterElected(name, broker_id, addr, epoch):
            master = {"master_id": broker_id, "master_addr": addr, "master_epoch": epoch}
            return event_record(ts, events.ELECTED, name, master, "controller_log")
        case _:
            return event_record(ts, events.NOT_ELECTED, str(fact[0]), {}, "controller_log")


class NewTopics:
    """The topics that brokers created, by what a name server registered.

    A broker registers a new topic at once. All topics of a broker are new when the broker is: these lines come before
    the one of the broker (RouteInfoManager#registerBroker), and show no creation.
    """

    _AT_ONCE_MS: Final = 2_000

    def __init__(self) -> None:
        self._open: list[tuple[int, TopicRegistered]] = []

    def take(self, ts: int | None, fact: Fact | None = None) -> Iterator[Record]:
        """Yield the records that are sure at a fact of namesrv.log; all of them at the end of the log (None)."""
        while self._open and (ts is None or ts - self._open[0][0] > self._AT_ONCE_MS):
            at, new = self._open.pop(0)
            yield event_record(at, events.TOPIC_CREATED, new.broker_name, {"topic": new.topic}, "namesrv_log")
        if isinstance(fact, BrokerSeen) and fact.event == "registered":
            self._open.clear()
        if isinstance(fact, TopicRegistered) and ts is not None:
            self._open.append((ts, fact))


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


def connections_record(ts: int, group: str, broker: Broker, **body: object) -> Record:
    """Return the record of what a broker knew of a group, as GET_CONSUMER_CONNECTION_LIST answers, as far as shown."""
    fields = {"broker_name": broker.name, "broker_id": broker.broker_id, "source": SOURCE}
    return "consumer_connections", {"ts": ts, "consumer_group": group, **fields, "body": body}


def end_of_channel(ts: int, kind: str, client_id: str, group: str, broker: Broker) -> Record:
    """Return the record that a broker removed a client from a group: UNREGISTER_CLIENT or CHANNEL_CLOSE."""
    header = {"clientID": client_id, "consumerGroup": group}
    fields: dict[str, object] = {"ts": ts, "kind": kind, "client_id": client_id, **broker_fields(broker)}
    return "heartbeats", {**fields, "header": header, "source": SOURCE}
