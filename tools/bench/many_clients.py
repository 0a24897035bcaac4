"""The driver's memory for the heartbeats that packets show of very many clients.

`python tools/bench/many_clients.py [--clients 500] [--brokers 8] [--hours 24] [--routes] [--engine local]
[--folder DIR]` makes the recording, once: each client sends a heartbeat to each broker every 30 s, and each hour the
clients of one group restart. With `--routes` it asks a name server for the routes of its topics as often, too. The
command ingests it, once, and prints the seconds of a replay, and the most memory of the driver's Python and of others.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from many_files import run_mqreplay

BEGAN_MS = 1_795_305_600_000  # a midnight
HOUR_MS, EVERY_MS, ANSWER_MS = 3_600_000, 30_000, 5
MEMBERS, TOPICS, QUEUES = 10, 3, 8  # of a group


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--brokers", type=int, default=8)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--routes", action="store_true")
    parser.add_argument("--engine", default="local", choices=("spark", "local"))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), f"mqreplay-bench-{os.getuid()}"))
    given = parser.parse_args()
    recording = given.folder / f"clients-{given.clients}-{given.brokers}-{given.hours}{'-routes' * given.routes}"
    ingested, warehouse = recording.with_suffix(".ingested"), recording.with_suffix(".warehouse")
    common = ("--cluster", "clients", "--engine", given.engine)
    if not ingested.exists():
        shutil.rmtree(recording, ignore_errors=True)
        shutil.rmtree(warehouse, ignore_errors=True)
        write_recording(recording, given.clients, given.brokers, given.hours, with_routes=given.routes)
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


def write_recording(folder: Path, clients: int, brokers: int, hours: int, *, with_routes: bool) -> None:
    """Write heartbeats, and routes if they are wanted, a file of each for every hour."""
    folder.mkdir(parents=True)
    names = [f"broker-{number}" for number in range(brokers)]
    for hour in range(hours):
        begin = BEGAN_MS + hour * HOUR_MS
        with gzip.open(folder / f"heartbeats.{hour:02d}.jsonl.gz", "wt", 1) as heartbeats:
            heartbeats.writelines(_heartbeats(begin, hour, clients, names))
        if not with_routes:
            continue
        with gzip.open(folder / f"routes.{hour:02d}.jsonl.gz", "wt", 1) as routes:
            routes.writelines(_routes(begin, hour, clients, names))


def _client_id(client: int, hour: int) -> str:
    """Return the id of a client's process; in hour n, the clients of the nth group are new."""
    return f"10.0.{client // 250}.{client % 250}@7#{int(client // MEMBERS <= hour)}"


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
    for ts in range(begin, begin + HOUR_MS, EVERY_MS):
        for nth, text in enumerate(texts):
            sent = ts + nth * EVERY_MS // len(texts)
            yield text % (sent, sent + ANSWER_MS)


def _topics(group: int) -> list[str]:
    return [f"topic-{group}-{number}" for number in range(TOPICS)]


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    main()
