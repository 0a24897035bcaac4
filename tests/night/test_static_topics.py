"""A recorded night with its topics made static: clients then name logical queues, and brokers their own."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from night.made_nights import DATA, JudgedNight, judge_folder, judged_night
from tests_shared import unpack

MOCK = "__syslo__global__"
FIRST_ID = {"ba": 0, "bb": 4}  # each broker has four queues of a topic
QUEUE = re.compile(r'\{"brokerName":"(ba|bb)","queueId":(\d+),"topic":"(t-[ab])"\}')
OWNERSHIP = ("orphan_queue", "double_owned_queue", "idle_consumer", "duplicate_client_id", "consumer_lost")
LAG = ("stuck_queue", "lag_grows")


def logical(queue: re.Match[str]) -> str:
    broker, queue_id, topic = queue.groups()
    return f'{{"brokerName":"{MOCK}","queueId":{FIRST_ID[broker] + int(queue_id)},"topic":"{topic}"}}'


def mapped(record: dict[str, Any]) -> dict[str, Any]:
    """Return an answer to GET_ROUTEINFO_BY_TOPIC with the mapping of eight logical queues to those of two brokers."""
    if record["topic"] not in ("t-a", "t-b"):
        return record
    infos = {
        broker: {"bname": broker, "currIdMap": {str(first + n): n for n in range(4)}, "dirty": False, "epoch": 7}
        | {"scope": "__global__", "topic": record["topic"], "totalQueues": 8}
        for broker, first in FIRST_ID.items()
    }
    body = json.loads(record["body"]) | {"topicQueueMappingByBroker": infos}
    return record | {"body": json.dumps(body)}


def make_static(recording: Path) -> None:
    """Make the topics t-a and t-b static in routes and in answers of clients."""
    for path in recording.rglob("*.jsonl.gz"):
        if not path.name.startswith(("routes.", "assignments.")):
            continue
        records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        if path.name.startswith("routes."):
            records = [mapped(record) for record in records]
        else:
            changed = [QUEUE.sub(logical, record.get("body") or "") for record in records]
            records = [record | {"body": text or None} for record, text in zip(records, changed, strict=True)]
        path.write_bytes(gzip.compress("".join(json.dumps(record) + "\n" for record in records).encode()))


@pytest.fixture(scope="module")
def plain() -> JudgedNight:
    return judged_night("kinds550")


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> JudgedNight:
    folder = tmp_path_factory.mktemp("static")
    with tarfile.open(DATA / "kinds550.tar.xz") as archive:
        unpack(archive, folder / "recording", archive.getmembers())
    make_static(folder / "recording")
    return judge_folder(folder)


def found(night: JudgedNight, kinds: tuple[str, ...]) -> list[tuple[Any, ...]]:
    names = ("consumer_group", "topic", "client_id", "severity")
    return sorted(str((f["kind"], *(f[name] for name in names))) for f in night.findings if f["kind"] in kinds)


def test_clients_name_logical_queues(static):
    brokers = static.table("gold.queue_owner").filter(pl.col("topic").is_in(["t-a", "t-b"]))["broker_name"]
    assert set(brokers) == {MOCK}


def test_ownership_has_the_findings_of_the_same_night_with_plain_topics(plain, static):
    assert found(static, OWNERSHIP) == found(plain, OWNERSHIP)


def test_allocations_are_judged_by_logical_queues(plain, static):
    def judgements(night: JudgedNight) -> list[tuple[Any, ...]]:
        columns = ("consumer_group", "topic", "judgement")
        return night.table("gold.allocation").select(columns).sort(columns).rows()

    assert judgements(static) == judgements(plain)
    assert {judgement for *_, judgement in judgements(static)} <= {"agree", "undetermined"}


def test_no_offset_of_a_static_topic_is_an_orphan_and_each_lag_is_found(plain, static):
    def groups(night: JudgedNight) -> set[tuple[str, str]]:
        return {(f["consumer_group"], f["topic"]) for f in night.findings if f["kind"] in LAG}

    assert groups(static) == groups(plain)
    assert found(static, ("orphan_offset_key",)) == found(plain, ("orphan_offset_key",))
