"""Records of lock.log: a refused lock names the client that has it."""

from __future__ import annotations

import json

import pytest

from mqreplay.decode.lock_requests import decode_lock_request
from mqreplay.decode.logs.broker_facts import LockLine
from mqreplay.decode.logs.log_line import LOCK_LINES, read_log_line
from mqreplay.importer.logs.broker_records import lock_record

QUEUE = "MessageQueue [topic=seq-topic, brokerName=broker-b, queueId=0]"
OF_4 = f"tryLockBatch, message queue locked by other client. Group: seq OtherClientId: a@1 NewClientId: b@2 {QUEUE}"
OF_5 = (
    "RebalanceLockManager#tryLockBatch: message queue has been locked by other client, group=seq, "
    f"mq={QUEUE}, locked client id=a@1, current client id=b@2"
)


def lock_fact(message: str) -> LockLine:
    line = read_log_line(f"2026-11-21 10:40:11 WARN t - {message}")
    assert line is not None
    assert line.log == LOCK_LINES
    assert isinstance(line.fact, LockLine)
    return line.fact


@pytest.mark.parametrize("line", [OF_4, OF_5])
def test_a_refused_lock_names_its_holder(line: str) -> None:
    stem, record = lock_record(1_795_228_811_802, lock_fact(line))
    decoded = decode_lock_request(json.dumps(record).encode())
    assert stem == "lock_requests"
    assert (decoded["client_id"], decoded["other_client_id"], decoded["lock_ok_mq_set"]) == ("b@2", "a@1", [])


def test_a_release_has_no_answer() -> None:
    fact = lock_fact(f"unlockBatch, Group: seq {QUEUE} a@1")
    decoded = decode_lock_request(json.dumps(lock_record(1_795_228_811_802, fact)[1]).encode())
    assert (decoded["kind"], decoded["other_client_id"], decoded["lock_ok_mq_set"]) == ("UNLOCK_BATCH_MQ", None, None)
