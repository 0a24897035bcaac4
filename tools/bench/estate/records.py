"""What clients and pollers recorded beside pulls: heartbeats, routes, rebalances, the brokers' runtime tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from .files import HourlyLines
from .flow import Events, log_end
from .shape import CLUSTER, Broker, Client, Key, Shape, share_of
from .sizes import DAY_MS, START_MS

HEARTBEAT_MS = 60_000  # one a minute of each client is kept: enough for a silence of 120 s to show
REBALANCE_MS = 600_000
ROUTE_MS = 3_600_000
POLL_MS = 60_000
ANSWER_MS = 8


def began_ms(client: Client) -> int:
    """When a client's first record stands (epoch ms)."""
    return START_MS + (client.since_ms if client.since_ms > 0 else 5_000)


def rebalance_ms(client: Client, nth: int) -> int:
    """When a client computed its share for the nth time (epoch ms)."""
    return began_ms(client) + 2_000 + nth * REBALANCE_MS


def write_records(
    shape: Shape, events: Events, folder: Path, more: Mapping[str, Iterable[tuple[int, str]]] | None = None
) -> dict[str, object]:
    """Write all of them, and ``more`` lines by file; return counts, and what a replay must say of the rebalances."""
    answers: dict[str, object] = {}
    kinds: dict[str, Iterable[tuple[int, str]]] = {
        "heartbeats": client_heartbeats(shape),
        "routes": routes_of(shape, events),
        "rebalance_log": _rebalances(shape, events, answers),
        "broker_runtime": _runtime(shape),
    }
    more = more or {}
    for stem in [*kinds, *sorted(set(more) - set(kinds))]:
        out = HourlyLines(folder, stem)
        for ts, line in sorted([*kinds.get(stem, ()), *more.get(stem, ())]):
            out.write(ts, line, 1)
        out.close()
        answers[stem] = out.lines
    return answers


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def _clients(shape: Shape) -> Iterator[Client]:
    for members in shape.members.values():
        yield from members


def client_heartbeats(shape: Shape) -> Iterator[tuple[int, str]]:
    """One a minute of each client, to each broker in turn."""
    for client in _clients(shape):
        topics = [key.topic for key in shape.topics_of(client.group)]
        group = shape.groups[client.group]
        texts = [heartbeat_template(client, group, topics, client.since_ms, broker) for broker in shape.brokers]
        for n, ts in enumerate(range(began_ms(client), START_MS + DAY_MS - 1_000, HEARTBEAT_MS)):
            yield ts, texts[n % len(texts)] % (ts, ts + ANSWER_MS)


def heartbeat_template(client: Client, group: str, topics: Sequence[str], since_ms: int, broker: Broker) -> str:
    """A HEART_BEAT, still without its two times."""
    subscription = [
        {
            "classFilterMode": False,
            "codeSet": [],
            "expressionType": "TAG",
            "subString": "*",
            "subVersion": START_MS + since_ms,
            "tagsSet": [],
            "topic": topic,
        }
        for topic in sorted({*topics, f"%RETRY%{group}"})
    ]
    consumer = {
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": subscription,
        "unitMode": False,
    }
    producers = [{"groupName": "CLIENT_INNER_PRODUCER"}]
    body = {"clientID": client.client_id, "consumerDataSet": [consumer], "producerDataSet": producers}
    rest = {
        "kind": "HEART_BEAT",
        "client_id": client.client_id,
        "broker_name": broker.name,
        "broker_addr": broker.addrs[0],
        "broker_id": 0,
        "mode": "sync",
        "response_code": 0,
        "error": None,
        "ext": None,
        "body": body,
    }
    return '{"ts":%d,"response_ts":%d,' + _line(rest)[1:].replace("%", "%%")


def _route_body(shape: Shape, key: Key, without_master: int | None) -> str:
    brokers = [
        {
            "brokerAddrs": {str(i): addr for i, addr in enumerate(broker.addrs) if i or b != without_master},
            "brokerName": broker.name,
            "cluster": CLUSTER,
        }
        for b, broker in enumerate(shape.brokers)
    ]
    queues = [
        {
            "brokerName": broker.name,
            "perm": 6,
            "readQueueNums": key.queues,
            "topicSysFlag": 0,
            "writeQueueNums": key.queues,
        }
        for broker in shape.brokers
    ]
    return json.dumps({"brokerDatas": brokers, "filterServerTable": {}, "queueDatas": queues}, separators=(",", ":"))


def routes_of(shape: Shape, events: Events) -> Iterator[tuple[int, str]]:
    """Name servers' answers to each client, and those while the failed broker's master is not registered."""
    broker, left, back = events.failover
    gone, again = shape.size.snapshot_ms(left), shape.size.snapshot_ms(back)
    bodies: dict[tuple[str, bool], str] = {}
    for client in _clients(shape):
        for key in shape.topics_of(client.group):
            rest = {"client_id": client.client_id, "topic": key.topic, "namesrv_addr": None, "response_code": 0}
            rest |= {"remark": None, "error": None}
            start = _line(rest)[1:-2]
            regular = range(began_ms(client) + 500, START_MS + DAY_MS - 1_000, ROUTE_MS)
            for ts in (*regular, gone, again):
                lacks = gone <= ts < again
                if (key.topic, lacks) not in bodies:
                    bodies[key.topic, lacks] = json.dumps(_route_body(shape, key, broker if lacks else None))
                yield ts, f'{{"ts":{ts},"response_ts":{ts + ANSWER_MS},{start},"body":{bodies[key.topic, lacks]}}}\n'


def _rebalances(shape: Shape, events: Events, answers: dict[str, object]) -> Iterator[tuple[int, str]]:
    """Every ten minutes; in some a client sees itself alone, in one it took a queue fewer than it should."""
    differ: list[dict[str, object]] = []
    answers["allocation_differ"] = differ
    calm = [g for g in shape.members if g not in events.doubles][: max(1, shape.size.events // 4)]
    for client in _clients(shape):
        cid_all = [c.client_id for c in shape.members[client.group]]
        first, last = events.doubles.get(client.group, (0, 0))
        alone = range(first, last) if client is shape.members[client.group][0] else range(0)
        wrong = 50 if client.group in calm and client is shape.members[client.group][-1] else None
        for key in shape.topics_of(client.group):
            texts = [
                rebalance_line(shape, key, client, seen, fewer)
                for seen, fewer in ((cid_all, 0), ([client.client_id], 0), (cid_all, 1))
            ]
            for n, ts in enumerate(rebalance_times(client)):
                which = 1 if n in alone else 2 if n == wrong and key.queues > 1 else 0
                if which == 2:
                    place = {"consumer_group": shape.groups[client.group], "topic": key.topic}
                    differ.append({**place, "client_id": client.client_id, "rebalance_ts": ts})
                yield ts, f'{{"ts":{ts},{texts[which]}'


def rebalance_times(client: Client) -> list[int]:
    """When a client computes its share (epoch ms)."""
    return [rebalance_ms(client, n) for n in range((DAY_MS - 30_000) // REBALANCE_MS)]


def rebalance_line(shape: Shape, key: Key, client: Client, cid_all: list[str], fewer: int) -> str:
    """The line without its time and what stands before it; the client took so many queues ``fewer`` than its share."""
    taken = share_of(shape, key, client.client_id, cid_all)
    rest = {
        "client_id": client.client_id,
        "consumer_group": shape.groups[client.group],
        "topic": key.topic,
        "strategy": shape.strategies[client.group],
        "cid_all": cid_all,
        "mq_all": shape.mq_all(key),
        "mq_divided": taken[: len(taken) - fewer],
        "error": None,
    }
    return _line(rest)[1:]


def _runtime(shape: Shape) -> Iterator[tuple[int, str]]:
    size = shape.size
    every = min(POLL_MS, size.interval_ms // 4)
    for b, broker in enumerate(shape.brokers):
        for broker_id, addr in enumerate(broker.addrs):
            for ts in range(START_MS, START_MS + DAY_MS, every):
                table = {
                    "bootTimestamp": str(START_MS - 86_400_000 - b),
                    "brokerVersionDesc": "V" + broker.version.replace(".", "_"),
                    "commitLogMaxOffset": str(log_end(size.interval_ms, ts - size.snapshot_ms(0))),
                    "commitLogMinOffset": "0",
                    "dispatchBehindBytes": "0",
                }
                row = {"ts": ts, "broker_name": broker.name, "broker_id": broker_id, "broker_addr": addr}
                yield ts, _line({**row, "full": False, "table": table, "error": None})
