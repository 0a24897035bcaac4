"""The driver's memory for what packets and hooks show of very many clients.

`python tools/bench/many_clients.py [--clients 500] [--brokers 8] [--hours 24] [--routes] [--locks] [--rebalances]
[--engine local] [--folder DIR]` makes the recording, once: each client sends a heartbeat to each broker every 30 s, and
each hour the clients of one group restart. With `--routes` it asks a name server for the routes of its topics as often,
too. With `--locks` the clients of each tenth group lock their queues at each broker every 20 s. With `--rebalances` a
hook writes what each client computes every 20 s. The command ingests it, once, and prints the seconds of a replay, and
the most memory of the driver's Python and of others.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from many_files import run_mqreplay

BEGAN_MS = 1_795_305_600_000  # a midnight
HOUR_MS, EVERY_MS, REBALANCE_MS, ANSWER_MS = 3_600_000, 30_000, 20_000, 5
MEMBERS, TOPICS, QUEUES = 10, 3, 8  # of a group
OPTIONS = {"routes": "routes", "locks": "lock_requests", "rebalances": "rebalance_log"}  # with their files


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--brokers", type=int, default=8)
    parser.add_argument("--hours", type=int, default=24)
    for option in OPTIONS:
        parser.add_argument(f"--{option}", action="store_true")
    parser.add_argument("--engine", default="local", choices=("spark", "local"))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), f"mqreplay-bench-{os.getuid()}"))
    given = parser.parse_args()
    also = [option for option in OPTIONS if getattr(given, option)]
    recording = given.folder / "-".join(["clients", *map(str, (given.clients, given.brokers, given.hours)), *also])
    ingested, warehouse = recording.with_suffix(".ingested"), recording.with_suffix(".warehouse")
    common = ("--cluster", "clients", "--engine", given.engine)
    if not ingested.exists():
        shutil.rmtree(recording, ignore_errors=True)
        shutil.rmtree(warehouse, ignore_errors=True)
        write_recording(recording, given.clients, given.brokers, given.hours, also)
        run_mqreplay("ingest", str(recording), "--warehouse", str(warehouse), *common)
        shutil.rmtree(recording)
        warehouse.rename(ingested)
    shutil.rmtree(warehouse, ignore_errors=True)
    shutil.copytree(ingested, warehouse)
    seconds, peaks = run_mqreplay("replay", "--warehouse", str(warehouse), *common)
    others = ", ".join(f"{name} {most / 1e9:.2f} GB" for name, most in sorted(peaks.items()) if name != "driver")
    print(
        f"{given.clients} clients, {given.brokers} brokers, {given.hours} h: {seconds:,.1f} s, the driver's Python at "
        f"the most {peaks['driver'] / 1e9:.2f} GB; largest other processes: {others or 'none'}"
    )


def write_recording(folder: Path, clients: int, brokers: int, hours: int, also: Sequence[str]) -> None:
    """Write heartbeats, and what else is wanted, a file of each for every hour."""
    folder.mkdir(parents=True)
    names = [f"broker-{number}" for number in range(brokers)]
    lines = {"heartbeats": _heartbeats, "routes": _routes, "lock_requests": _locks, "rebalance_log": _rebalances}
    for hour in range(hours):
        for stem in ("heartbeats", *(OPTIONS[option] for option in also)):
            with gzip.open(folder / f"{stem}.{hour:02d}.jsonl.gz", "wt", 1) as file:
                file.writelines(lines[stem](BEGAN_MS + hour * HOUR_MS, hour, clients, names))


def _client_id(client: int, hour: int) -> str:
    """Return the id of a client's process; in hour n, the clients of the nth group are new."""
    return f"10.{100 + client // 100}.0.{100 + client % 100}@7#{int(client // MEMBERS <= hour)}"


def _heartbeats(begin: int, hour: int, clients: int, brokers: list[str]) -> Iterator[str]:
    texts = [_heartbeat(client, hour, broker) for client in range(clients) for broker in brokers]
    left = range(hour * MEMBERS, min((hour + 1) * MEMBERS, clients))
    for client in left:
        for broker in brokers:
            yield _unregistration(begin, client, hour, broker)
    for ts in range(begin, begin + HOUR_MS, EVERY_MS):
        for nth, text in enumerate(texts):
            sent = ts + 1_000 + nth * (EVERY_MS - 2_000) // len(texts)
            yield text % (sent, sent + ANSWER_MS)


def _heartbeat(client: int, hour: int, broker: str) -> str:
    group = client // MEMBERS
    subscriptions = [
        {"topic": topic, "subString": "*", "expressionType": "TAG", "subVersion": BEGAN_MS + client}
        for topic in (*_topics(group), f"%%RETRY%%group-{group}")
    ]
    data = {"groupName": f"group-{group}", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    data |= {"consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": subscriptions}  # type: ignore[dict-item]
    body = {"clientID": _client_id(client, hour), "consumerDataSet": [data], "producerDataSet": []}
    return _line("HEART_BEAT", client, hour, broker) + f',"body":{_json(body)}}}\n'


def _unregistration(ts: int, client: int, hour: int, broker: str) -> str:
    header = {"clientID": _client_id(client, hour - 1), "consumerGroup": f"group-{client // MEMBERS}"}
    return _line("UNREGISTER_CLIENT", client, hour - 1, broker) % (ts, ts) + f',"header":{_json(header)}}}\n'


def _line(kind: str, client: int, hour: int, broker: str) -> str:
    asked = {"kind": kind, "client_id": _client_id(client, hour), "broker_name": broker, "broker_id": 0}
    return '{"ts":%d,"response_ts":%d,"response_code":0,' + _json(asked)[1:-1]


def _routes(begin: int, hour: int, clients: int, brokers: list[str]) -> Iterator[str]:
    counts = {"readQueueNums": QUEUES, "writeQueueNums": QUEUES, "perm": 6, "topicSysFlag": 0}
    queues = [{"brokerName": name, **counts} for name in brokers]
    addresses = [
        {"brokerName": name, "brokerAddrs": {"0": f"{name}:10911", "1": f"{name}-s:10911"}} for name in brokers
    ]
    body = _json({"queueDatas": queues, "brokerDatas": addresses})
    texts = [
        '{"ts":%d,"response_ts":%d,"response_code":0,'
        + f'"client_id":"{_client_id(client, hour)}","topic":"{topic}","body":{body}}}\n'
        for client in range(clients)
        for topic in _topics(client // MEMBERS)
    ]
    yield from _repeated(begin, texts, EVERY_MS)


def _locks(begin: int, hour: int, clients: int, brokers: list[str]) -> Iterator[str]:
    texts = []
    for client in range(clients):
        of = {"clientId": _client_id(client, hour), "consumerGroup": f"group-{client // MEMBERS}"}
        mine = _queues(client, brokers) if client // MEMBERS % 10 == 0 else []
        for broker in dict.fromkeys(name for _, name, _ in mine):
            queues = [{"topic": topic, "brokerName": name, "queueId": q} for topic, name, q in mine if name == broker]
            asked = f',"request":{_json({**of, "mqSet": queues})},"response":{_json({"lockOKMQSet": queues})}}}\n'
            texts.append(_line("LOCK_BATCH_MQ", client, hour, broker) + asked)
    yield from _repeated(begin, texts, REBALANCE_MS)


def _rebalances(begin: int, hour: int, clients: int, brokers: list[str]) -> Iterator[str]:
    texts = []
    for client in range(clients):
        group, mine = client // MEMBERS, _queues(client, brokers)
        members = sorted(_client_id(each, hour) for each in range(group * MEMBERS, (group + 1) * MEMBERS))
        of = {"client_id": _client_id(client, hour), "consumer_group": f"group-{group}", "strategy": "AVG"}
        for topic in _topics(group):
            every = [[name, queue] for name in brokers for queue in range(QUEUES)]
            share = [[name, queue] for named, name, queue in mine if named == topic]
            computed = {"topic": topic, "cid_all": members, "mq_all": every, "mq_divided": share}
            texts.append('{"ts":%d,"response_ts":%d,' + _json(of | computed)[1:] + "\n")
    yield from _repeated(begin, texts, REBALANCE_MS)


def _queues(client: int, brokers: list[str]) -> list[tuple[str, str, int]]:
    """Return topic, broker name and queue id of each queue of a client, each topic's shares by AVG."""
    every = [(name, queue) for name in brokers for queue in range(QUEUES)]
    nth, (least, rest) = client % MEMBERS, divmod(len(every), MEMBERS)
    first, count = nth * least + min(nth, rest), least + (nth < rest)
    return [(topic, *queue) for topic in _topics(client // MEMBERS) for queue in every[first : first + count]]


def _repeated(begin: int, texts: list[str], every_ms: int) -> Iterator[str]:
    """Yield each text once in ``every_ms``, with the instants of a request and its answer."""
    for ts in range(begin, begin + HOUR_MS, every_ms):
        for nth, text in enumerate(texts):
            sent = ts + nth * every_ms // len(texts)
            yield text % (sent, sent + ANSWER_MS)


def _topics(group: int) -> list[str]:
    return [f"topic-{group}-{number}" for number in range(TOPICS)]


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    main()
