"""expect_known_brokers."""

from __future__ import annotations

import json

from quality_rows import Judge, at

ROWS = [{"record_id": name, "broker_name": name, "request_ts": at(1)} for name in ("broker-a", "broker-z")]
NAME = "expect_known_brokers"


def test_a_broker_that_was_recorded_is_known(judged: Judge) -> None:
    found = judged("silver.pull", ROWS, known_brokers=["broker-a", "broker-z"])[NAME]
    assert (found.passed, found.unexpected_count) == (True, 0)


def test_one_that_was_not_is_named(judged: Judge) -> None:
    found = judged("silver.pull", ROWS, known_brokers=["broker-a"])[NAME]
    assert (found.passed, found.unexpected_count) == (False, 1)
    assert json.loads(found.unexpected_sample or "") == [{"record_id": "broker-z", "broker_name": "broker-z"}]
    assert found.arguments == '{"column": "broker_name"}'


def test_where_nothing_is_known_nothing_is_unknown(judged: Judge) -> None:
    assert judged("silver.pull", ROWS, known_brokers=[])[NAME].passed
