"""Rotated, damaged and empty logs, their time zones, and several clients in one process."""

from __future__ import annotations

import datetime as dt
import gzip
from bisect import bisect_right
from pathlib import Path

import pytest

from importer.logs.collected_logs import BULK, MEMBER, ORDERS, by, held, imported
from mqreplay.importer.files.layout import base_name
from tests_shared import SAMPLE


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("rocketmq_client.log", "rocketmq_client.log"),
        ("rocketmq_client.log.3", "rocketmq_client.log"),
        ("other_days/rocketmq_client-2.log.gz", "rocketmq_client.log"),
        ("otherdays/broker.10.log.gz", "broker.log"),
        ("broker-2026-11-21.1.log.gz", "broker.log"),
        ("namesrv.log.2026-11-21", "namesrv.log"),
        ("orders-service.log", "orders-service.log"),
        ("20190_rocketmq-cpp.log", "20190_rocketmq-cpp.log"),
    ],
)
def test_names_of_rotated_files(name: str, base: str) -> None:
    assert base_name(f"x/{name}") == base


def plain(night: str, process: str, log: str) -> list[str]:
    with gzip.open(SAMPLE / night / "logs" / process / f"{log}.log.gz", "rt") as lines:
        return lines.readlines()


@pytest.mark.long
def test_rotated_files_are_read_as_one_log(tmp_path: Path) -> None:
    lines = plain(ORDERS, "client-h1", "rocketmq_client")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    (parts / "otherdays").mkdir(parents=True)
    whole.mkdir()
    (whole / "rocketmq_client.log").write_text("".join(lines))
    # The oldest has the highest number. A stack trace may begin in one file and end in the next.
    (parts / "otherdays" / "rocketmq_client-2.log.gz").write_bytes(gzip.compress("".join(lines[:9000]).encode()))
    (parts / "otherdays" / "rocketmq_client-1.log.gz").write_bytes(gzip.compress("".join(lines[9000:20001]).encode()))
    (parts / "rocketmq_client.log").write_text("".join(lines[20001:]))
    assert imported(parts)[0] == imported(whole)[0]


@pytest.mark.long
def test_a_log_that_begins_after_its_clients_learns_what_they_hold(tmp_path: Path) -> None:
    lines = plain(ORDERS, "client-h1", "rocketmq_client")
    start = next(place for place, line in enumerate(lines) if line.startswith("2026-11-21 02:44:30"))
    (tmp_path / "rocketmq_client.log").write_text("".join(lines[start:]))
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "rocketmq_client.log").write_text("".join(lines))
    late, whole = imported(tmp_path)[0], imported(tmp_path / "whole")[0]
    known = by(whole["assignments"], MEMBER)
    learnt = by([one for one in late["assignments"] if one["ts"] > 1795229100000], MEMBER)
    assert len(learnt) > 8
    for key, records in learnt.items():
        changes = [(one["ts"], held(one)) for one in known[key]]
        for record in records:
            place = bisect_right([ts for ts, _ in changes], record["ts"]) - 1
            assert held(record) in [queues for _, queues in changes[max(place - 1, 0) : place + 2]], (key, record["ts"])


@pytest.mark.long
def test_the_zone_of_the_host_is_found_in_the_lines(tmp_path: Path) -> None:
    lines = plain(ORDERS, "client-h2", "rocketmq_client")
    moved = [line.replace("2026-11-21 02:", "2026-11-20 23:", 1) for line in lines]
    (tmp_path / "utc").mkdir()
    (tmp_path / "rio").mkdir()
    (tmp_path / "utc" / "rocketmq_client.log").write_text("".join(lines))
    (tmp_path / "rio" / "rocketmq_client.log").write_text("".join(moved))
    utc, _ = imported(tmp_path / "utc")
    rio, report = imported(tmp_path / "rio")
    assert rio == utc
    assert "-03:00 by the times in its lines" in report.recognised[0][1]


def test_a_chosen_zone_that_the_lines_contradict_is_used_and_reported() -> None:
    logs, report = imported(SAMPLE / BULK / "logs", time_zone=dt.UTC)
    right, _ = imported(SAMPLE / BULK / "logs")
    assert logs["rebalance_log"][0]["ts"] - right["rebalance_log"][0]["ts"] == 8 * 3_600_000
    assert any("+08:00: leave --time-zone out" in note for note in report.notes)


def test_a_log_that_does_not_meet_the_other_evidence_names_the_zones_that_would(tmp_path: Path) -> None:
    (tmp_path / "rocketmq_client.log").write_text(
        "2026-11-21 02:40:08,249 INFO RocketmqClient - RebalanceService service started\n"
        "2026-11-21 02:59:08,249 INFO RocketmqClient - RebalanceService service end\n"
    )
    began = 1795228800000  # 2026-11-21 02:40:00 UTC
    assert imported(tmp_path, evidence_ms=(began, began + 600_000))[1].notes == []
    (note,) = imported(tmp_path, evidence_ms=(began - 5 * 3_600_000, began - 5 * 3_600_000 + 600_000))[1].notes
    assert "they would overlap in +05:00; give --time-zone if they are of the same hours" in note
    assert imported(tmp_path, evidence_ms=(began + 3_000_000, began + 3_600_000))[1].notes == [], "a gap of minutes"


def test_a_log_of_no_known_broker_is_not_recognised(tmp_path: Path) -> None:
    deleted = "delete topic config OK, topic: TopicConfig [topicName=t, readQueueNums=8]"
    (tmp_path / "broker.log").write_text(f"2026-11-21 10:40:08 INFO AdminBrokerThread_1 - {deleted}\n")
    records, report = imported(tmp_path)
    assert not records
    assert report.not_recognised == [("broker.log", "nothing shows which broker wrote it; give --broker NAME-ID")]
    assert report.recognised == []


def test_an_empty_log_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "broker.log").write_text("")
    _, report = imported(tmp_path)
    assert (report.not_recognised, report.recognised) == ([("broker.log", "it is empty")], [])


def test_a_process_that_was_killed_and_started_again_in_one_log(tmp_path: Path) -> None:
    """Its clients held nothing when the new process began, though no line says that they ended."""
    created = "Created a new client Instance, InstanceIndex:0, ClientID:c, ClientConfig:x"
    made = f"2026-11-21 02:40:0{{}},000 INFO RocketmqClient - {created}"
    queue = "MessageQueue [topic=t, brokerName=b, queueId=0]"
    taken = [
        f"2026-11-21 02:40:02,000 INFO RocketmqClient - doRebalance, g, add a new mq, {queue}",
        "2026-11-21 02:40:02,001 INFO RocketmqClient - rebalanced result changed. "
        "allocateMessageQueueStrategyName=AVG, group=g, "
        f"topic=t, clientId=c, mqAllSize=1, cidAllSize=1, rebalanceResultSize=1, rebalanceResultSet=[{queue}]",
    ]
    (tmp_path / "rocketmq_client.log").write_text("\n".join([made.format(1), *taken, made.format(9)]) + "\n")
    records, _ = imported(tmp_path)
    assert [(one["ts"] % 10_000, len(one["queues"])) for one in records["assignments"]] == [(2000, 1), (9000, 0)]


def test_two_clients_of_a_group_in_one_process_are_distinguished(tmp_path: Path) -> None:
    def queue(queue_id: int) -> str:
        return f"MessageQueue [topic=t, brokerName=b, queueId={queue_id}]"

    def result(client_id: str, queue_id: int) -> str:
        return (
            "rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=g, topic=t, "
            f"clientId={client_id}, mqAllSize=2, cidAllSize=2, rebalanceResultSize=1, "
            f"rebalanceResultSet=[{queue(queue_id)}]"
        )

    messages = [
        *(f"Created a new client Instance, InstanceIndex:{n}, ClientID:c{n}, ClientConfig:x" for n in range(2)),
        f"doRebalance, g, add a new mq, {queue(1)}",
        f"doRebalance, g, add a new mq, {queue(0)}",
        result("c0", 0),
        result("c1", 1),
    ]
    lines = [f"2026-11-21 02:40:01,{n:03d} INFO RocketmqClient - {message}\n" for n, message in enumerate(messages)]
    (tmp_path / "rocketmq_client.log").write_text("".join(lines))
    records, _ = imported(tmp_path)
    assert {one["client_id"]: held(one) for one in records["assignments"]} == {
        "c0": {("t", "b", 0)},
        "c1": {("t", "b", 1)},
    }


def test_a_torn_or_damaged_file_is_reported_and_the_rest_read(tmp_path: Path) -> None:
    data = (SAMPLE / ORDERS / "logs/client-h2/rocketmq_client.log.gz").read_bytes()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "rocketmq_client.log.gz").write_bytes(data[: len(data) // 2])
    (tmp_path / "rocketmq_client.log.gz").write_bytes(b"\x1f\x8b\x08" + b"\0" * 100)
    records, report = imported(tmp_path)
    assert records["rebalance_log"]
    assert any("cut short" in note for note in report.notes)
    assert [path for path, _ in report.not_recognised] == ["rocketmq_client.log.gz"]


FAILED = (
    "sendKernelImpl exception, resend at once, InvokeID: 7, RT: 4000ms, Broker: MessageQueue [topic=t, brokerName=b"
)


def test_a_failed_send_names_its_client_if_the_process_has_one(tmp_path: Path) -> None:
    created = "Created a new client Instance, InstanceIndex:{0}, ClientID:c{0}, ClientConfig:x"
    lines = [created.format(0), f"{FAILED}, queueId=1]", created.format(1), f"{FAILED}, queueId=2]"]
    heads = [f"2026-11-21 02:40:0{second},000 INFO RocketmqClient - {line}" for second, line in enumerate(lines)]
    (tmp_path / "rocketmq_client.log").write_text("\n".join(heads) + "\n")
    records, _ = imported(tmp_path)
    shown = [
        tuple(one.get(name) for name in ("client_id", "invoke_id", "cost_ms", "queue_id")) for one in records["sends"]
    ]
    assert shown == [("c0", "7", 4000, 1), (None, "7", 4000, 2)]
    assert {one["source"] for one in records["sends"]} == {"client_log"}
