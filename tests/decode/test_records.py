"""Content of real lines of a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mqreplay.decode.kinds import KINDS

DATA = Path(__file__).parent / "data"


def rows(stem: str) -> list[dict[str, Any]]:
    return [KINDS[stem].decode(line) for line in (DATA / f"{stem}.jsonl").read_bytes().splitlines()]


def raw(stem: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / f"{stem}.jsonl").read_bytes().splitlines()]


def test_pulls_keep_every_field_of_theirs() -> None:
    for got, line in zip(rows("pull_log"), raw("pull_log"), strict=True):
        assert {name: value for name, value in got.items() if value is not None} == {
            name: value for name, value in line.items() if not name.startswith("x_")
        }


def test_a_heartbeat_announces_groups_and_subscriptions() -> None:
    beats = [row for row in rows("heartbeats") if row["consumers"]]
    assert beats
    for beat in beats:
        for group, consume_type, model, where, unit_mode, subscriptions in beat["consumers"]:
            assert (consume_type, unit_mode) == ("CONSUME_PASSIVELY", False)
            assert model in ("CLUSTERING", "BROADCASTING")
            assert where.startswith("CONSUME_FROM_")
            assert any(topic != f"%RETRY%{group}" for topic, _, _, _ in subscriptions)
    leaving = [row for row in rows("heartbeats") if row["kind"] == "UNREGISTER_CLIENT"]
    assert any(row["consumer_group"] or row["producer_group"] for row in leaving)
    assert all(row["consumers"] is None for row in leaving)


def test_a_heartbeat_body_may_be_text() -> None:
    beat = next(line for line in raw("heartbeats") if line["kind"] == "HEART_BEAT" and line["body"])
    text = beat | {"body": json.dumps(beat["body"])}
    decode = KINDS["heartbeats"].decode
    assert decode(json.dumps(text).encode()) == decode(json.dumps(beat).encode())


def test_a_master_states_its_slaves_and_a_slave_its_connection() -> None:
    near, behind, silent, alone, slave = rows("ha_status")
    assert (near["is_master"], near["master_end"], near["in_sync_slaves"]) == (True, 114_543, 1)
    assert [(one[1], one[2], one[3]) for one in near["slaves"]] == [(114_072, 471, True)]
    assert [(one[1], one[2], one[3]) for one in behind["slaves"]] == [(153_935, 29_000, False)]
    assert (silent["slaves"], silent["is_master"]) == (None, None)
    assert silent["error"].endswith("did not answer GET_BROKER_HA_STATUS in 3 s")
    assert (alone["slaves"], alone["in_sync_slaves"], alone["master_addr"]) == ([], 0, None)
    assert (slave["is_master"], slave["log_end"], slave["slaves"]) == (False, 155_689, None)
    assert (slave["last_read_ts"], slave["last_write_ts"]) == (None, 1_795_685_725_846)


def test_routes_keep_the_order_of_the_body_and_are_none_without_one() -> None:
    for got, line in zip(rows("routes"), raw("routes"), strict=True):
        if line["body"] is None:
            assert (got["queue_datas"], got["broker_datas"], got["response_code"]) == (None, None, 17)
            continue
        body = json.loads(line["body"])
        assert [queue[0] for queue in got["queue_datas"]] == [q["brokerName"] for q in body["queueDatas"]]
        assert [name for name, _ in got["broker_datas"]] == [b["brokerName"] for b in body["brokerDatas"]]
        assert all(set(addrs) <= {0, 1} for _, addrs in got["broker_datas"])


def test_a_broker_that_is_down_has_no_figures() -> None:
    down = [row for row in rows("broker_runtime") if row["error"]]
    up = [row for row in rows("broker_runtime") if not row["error"]]
    assert down
    assert all(row["table"] is None and row["commit_log_max_offset"] is None for row in down)
    assert {row["broker_version_desc"] for row in up} == {"V4_9_7", "V5_3_3"}
    assert all(row["boot_timestamp"] > 1795228700000 for row in up)


def test_locks_asked_and_granted() -> None:
    for row in rows("lock_requests"):
        assert (row["consumer_group"], row["mq_set"][0][0]) == ("seq-group", "seq-topic")
        if row["lock_ok_mq_set"] is not None:
            assert set(row["lock_ok_mq_set"]) <= set(row["mq_set"])
    assert any(row["lock_ok_mq_set"] is None for row in rows("lock_requests"))


def test_a_reset_pushed_to_a_client() -> None:
    reset = next(row for row in rows("server_requests") if row["request_code"] == 220)
    assert (reset["consumer_group"], reset["topic"]) == ("reset-group", "pay-topic")
    assert reset["reset_offsets"] == [("pay-topic", "broker-b", queue_id, 28) for queue_id in range(4)]


def test_cluster_info_has_unquoted_ids() -> None:
    assert all(addrs.keys() <= {0, 1} and addrs for row in rows("cluster_info") for _, _, addrs in row["brokers"])
    assert {name for row in rows("cluster_info") for name in row["clusters"]} == {
        "DefaultCluster",
        "grid-cluster",
    }


def test_topic_stats_have_a_row_a_queue() -> None:
    for row in rows("topic_stats"):
        assert row["offsets"]
        for topic, broker_name, queue_id, low, high, _ in row["offsets"]:
            assert (topic, broker_name) == (row["topic"], row["broker_name"])
            assert queue_id >= 0
            assert low is None or low <= high
