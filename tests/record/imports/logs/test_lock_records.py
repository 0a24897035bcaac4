"""Records of lock.log: a refused lock names the client that has it."""

from __future__ import annotations

import json

import pytest

from mqreplay.decode.lock_requests import decode_lock_request
from mqreplay.decode.logs.lock_log import read_lock_line
from mqreplay.record.imports.logs.broker_records import lock_record

QUEUE = "MessageQueue [topic=seq-topic, brokerName=broker-b, queueId=0]"
OF_4 = f"tryLockBatch, message queue locked by other client. Group: seq OtherClientId: a@1 NewClientId: b@2 {QUEUE}"
OF_5 = (
    "RebalanceLockManager#tryLockBatch: message queue has been locked by other client, group=seq, "
    f"mq={QUEUE}, locked client id=a@1, current client id=b@2"
)


@pytest.mark.parametrize("line", [OF_4, OF_5])
def test_a_refused_lock_names_its_holder(line: str) -> None:
    fact = read_lock_line(line)
    assert fact is not None
    stem, record = lock_record(1_795_228_811_802, fact)
    decoded = decode_lock_request(json.dumps(record).encode())
    assert stem == "lock_requests"
    assert (decoded["client_id"], decoded["other_client_id"], decoded["lock_ok_mq_set"]) == ("b@2", "a@1", [])


def test_a_release_has_no_answer() -> None:
    fact = read_lock_line(f"unlockBatch, Group: seq {QUEUE} a@1")
    assert fact is not None
    decoded = decode_lock_request(json.dumps(lock_record(1_795_228_811_802, fact)[1]).encode())
    assert (decoded["kind"], decoded["other_client_id"], decoded["lock_ok_mq_set"]) == ("UNLOCK_BATCH_MQ", None, None)
