"""Roles, starts and elections in logs of brokers and controllers: events, and the findings that they show."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from importer.logs.collected_logs import imported
from mqreplay.decode.kinds import KINDS
from mqreplay.evidence.brokers.elections import elections
from mqreplay.findings.broker_lists import election_findings
from mqreplay.findings.restart_loops import loop_findings
from silver_rows import rows

DLEDGER = """\
2023-04-13 02:04:53 INFO DLegerRoleChangeHandler_1 - Begin handling broker role change term=3 role=LEADER currStoreRole=SLAVE
2023-04-13 02:04:53 INFO DLegerRoleChangeHandler_1 - Begin to change to master brokerName=Node00
2023-04-13 02:05:09 INFO DLegerRoleChangeHandler_1 - Begin handling broker role change term=4 role=FOLLOWER currStoreRole=SYNC_MASTER
2023-04-13 02:05:09 INFO DLegerRoleChangeHandler_1 - Begin to change to slave brokerName=Node00 brokerId=1
2023-04-13 02:05:19 INFO DLegerRoleChangeHandler_1 - Begin handling broker role change term=5 role=LEADER currStoreRole=SLAVE
2023-04-13 02:05:19 INFO DLegerRoleChangeHandler_1 - Begin to change to master brokerName=Node00
"""  # noqa: E501
SETTINGS = """\
{at} INFO main - rocketmqHome=/opt/rocketmq
{at} INFO main - brokerIP1=10.3.0.2
{at} INFO main - brokerName=broker-a
{at} INFO main - brokerId=0
"""
NEW_MASTER = """\
2024-07-08 03:10:01 INFO ReplicasManager_2 - Begin to change to master, brokerName:broker-a, replicas:10.3.0.2:10911, new Epoch:5
2024-07-08 03:10:01 INFO ReplicasManager_2 - Change broker [id:2][address:10.3.0.2:10911] to SYNC_MASTER, newMasterBrokerId:2, newMasterAddress:10.3.0.2:10911, newMasterEpoch:5, syncStateSetEpoch:6
"""  # noqa: E501
NEW_SLAVE = """\
2024-07-08 03:11:01 INFO ReplicasManager_2 - Begin to change to slave, brokerName=broker-a, brokerId=1, newMasterBrokerId=2, newMasterAddress=10.3.0.2:10911, newMasterEpoch=5
"""  # noqa: E501
ANSWER = (
    "RemotingCommand [code=0, language=JAVA, version=475, opaque=9, flag(B)=1, remark=null, extFields={fields}, x=JSON]"
)
FIELDS = "{masterBrokerId=2, masterAddress=10.3.0.2:10911, masterEpoch=5, syncStateSetEpoch=6}"
LOST = (
    "2024-07-08 03:10:00 WARN Scan_1 - The broker channel [id: 0x1, L:/10.3.0.9:9878 - R:/10.3.0.1:52110] expired, "
    "brokerInfo BrokerIdentityInfo{clusterName='prod', brokerName='broker-a', brokerId=1}, expired 10000ms\n"
    "2024-07-08 03:10:00 INFO Event_1 - Controller Manager received broker inactive event, clusterName: prod, "
    "brokerName: broker-a, brokerId: 1\n"
)
ELECTED = "2024-07-08 03:10:00 INFO Event_2 - Elect a new master in broker-set: broker-a done, result: {answer}\n"
CAUSE = "java.io.FileNotFoundException: /store/lock (Permission denied)"
FAILED = f"{{at}} ERROR main - Failed to initialize\n{CAUSE}\n\tat java.io.RandomAccessFile.open0(Native Method)\n"
READY = "{at} INFO main - The broker[broker-a, 10.3.0.2:10911] boot success. serializeType=JSON\n"


def events_of(tmp_path: Path, files: Mapping[str, str]) -> pl.DataFrame:
    """Return silver.broker_event of logs by their paths."""
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    records, _ = imported(tmp_path, dt.UTC)
    decoded = [KINDS["broker_events"].decode(json.dumps(one).encode()) for one in records.get("broker_events", [])]
    instants = [{**one, "ts": dt.datetime.fromtimestamp(int(str(one["ts"])) / 1000, dt.UTC)} for one in decoded]
    return rows("silver.broker_event", {}, instants)


def changes(tmp_path: Path, files: Mapping[str, str]) -> list[dict[str, Any]]:
    found = election_findings(elections(events_of(tmp_path, files)), "c", 120)
    return found.sort("from_ts").to_dicts()


def test_a_leader_of_dledger_that_flaps(tmp_path: Path) -> None:
    [change] = changes(tmp_path, {"n0/logs/broker.log": DLEDGER})
    assert change["summary"] == (
        "The master of Node00 changed 3 times within 26 s, epoch 5. "
        "By their own logs, brokers became the master 2 times and slaves 1 time."
    )
    assert (change["severity"], change["broker_name"], change["evidence_count"]) == ("warning", "Node00", 3)


@pytest.mark.parametrize(
    ("fields", "addr"), [(FIELDS, " to 10.3.0.2:10911 (id 2), epoch 5"), ("null", "")]
)  # before it is sent, an answer has no fields
def test_an_election_of_a_controller(fields: str, addr: str, tmp_path: Path) -> None:
    log = LOST + ELECTED.format(answer=ANSWER.replace("{fields}", fields))
    [change] = changes(tmp_path, {"controller.log": log})
    assert change["summary"] == (
        f"The master of broker-a changed (id 1){addr}; the controller got no heartbeat of the old one in time."
    )


def test_logs_of_one_election_are_one_change(tmp_path: Path) -> None:
    log = LOST + ELECTED.format(answer=ANSWER.replace("{fields}", "null"))
    started = SETTINGS.format(at="2024-07-08 03:11:00") + NEW_SLAVE
    files = {"controller.log": log, "a/broker.log": NEW_MASTER, "b/broker.log": started}
    [change] = changes(tmp_path, files)
    assert "changed (id 1) to 10.3.0.2:10911 (id 2), epoch 5;" in change["summary"]
    assert (change["to_ts"] - change["from_ts"]).total_seconds() <= 30


def test_no_replica_may_become_the_master(tmp_path: Path) -> None:
    log = LOST + "2024-07-08 03:10:00 WARN Event_2 - Failed to elect a new master for broker broker-a\n"
    [change] = changes(tmp_path, {"controller.log": log})
    assert (change["severity"], "found no replica in sync" in change["summary"]) == ("critical", True)


def test_first_roles_and_lost_slaves_change_nothing(tmp_path: Path) -> None:
    started = SETTINGS.format(at="2024-07-08 03:10:00") + NEW_MASTER  # it is the master again, by the epoch of before
    assert changes(tmp_path / "start", {"a/broker.log": started}) == []
    assert changes(tmp_path / "first", {"a/broker.log": NEW_MASTER.replace("poch:5", "poch:1")}) == []
    assert changes(tmp_path / "slave", {"controller.log": LOST}) == []
    same = NEW_MASTER + NEW_MASTER.replace("poch:5", "poch:6").replace("03:10", "04:10")
    assert len(changes(tmp_path / "same", {"a/broker.log": same})) == 1


def starts(*texts: str) -> str:
    return "".join(f"{SETTINGS}{text}".format(at=f"2024-07-08 03:{minute:02}:00") for minute, text in enumerate(texts))


def test_a_broker_that_starts_again_and_again(tmp_path: Path) -> None:
    found = loop_findings(events_of(tmp_path, {"a/broker.log": starts(*[FAILED] * 4)}), "c")
    [loop] = found.to_dicts()
    assert loop["summary"] == (f"broker-a was started 4 times within 180 s, and was not ready in between: {CAUSE}.")
    assert (loop["severity"], loop["broker_id"], loop["evidence_count"]) == ("critical", 0, 8)


def test_starts_that_serve_or_are_few_are_no_loop(tmp_path: Path) -> None:
    assert len(loop_findings(events_of(tmp_path / "ready", {"a/broker.log": starts(*[READY] * 5)}), "c")) == 0
    assert len(loop_findings(events_of(tmp_path / "few", {"a/broker.log": starts(FAILED, FAILED, READY)}), "c")) == 0
    assert len(loop_findings(events_of(tmp_path / "two", {"a/broker.log": starts(FAILED, READY, FAILED)}), "c")) == 0


def test_a_loop_that_ended(tmp_path: Path) -> None:
    [loop] = loop_findings(events_of(tmp_path, {"a/broker.log": starts(FAILED, FAILED, FAILED, READY)}), "c").to_dicts()
    assert loop["summary"].endswith("(Permission denied); it was ready 0 s after the last start.")


def test_a_broker_that_starts_is_not_up(tmp_path: Path) -> None:
    (tmp_path / "broker.log").write_text(starts(FAILED, FAILED))
    records, _ = imported(tmp_path, dt.UTC)
    assert len(records["broker_runtime"]) == 1  # for the line before its settings


NEW_TOPIC = (
    "{at} INFO Remoting_1 - new topic registered, {topic} QueueData [brokerName=broker-a, readQueueNums=1, perm=6]\n"
)


def test_a_topic_that_a_name_server_registered(tmp_path: Path) -> None:
    new = NEW_TOPIC.format(at="2024-07-08 03:10:00", topic="%DLQ%pay")
    log = new + "2024-07-08 03:12:00 INFO main - new broker registered, 10.3.0.2:10911 HAServer: 10.3.0.2:10912\n"
    [event] = events_of(tmp_path / "new", {"namesrv.log": log}).to_dicts()
    assert (event["event"], event["topic"], event["broker_name"]) == ("topic_created", "%DLQ%pay", "broker-a")
    of_new_broker = log.replace("03:12:00", "03:10:01")
    assert events_of(tmp_path / "old", {"namesrv.log": of_new_broker}).is_empty()
