"""Suggestions by version, role and settings of the broker, and from when its description holds."""

from __future__ import annotations

import pytest

from decisions.test_slave_suggestion import BEHIND, NOTHING_FOUND, judged, one, suggested
from mqreplay.decisions.slave_suggestion import ACTING, CONTAINER
from mqreplay.evidence.brokers.broker_descriptions import STORE_PLUG_IN
from silver_moments import at


def test_a_plug_in_of_the_store_need_not_suggest_the_slave():
    assert judged(polls=BEHIND, pulls=[{"suggest_which_broker_id": 0}])[:2] == (1, "differ")
    plug_in = {"properties": {"messageStorePlugIn": "org.apache.rocketmq.tieredstore.TieredMessageStore"}}
    kept = judged(polls=BEHIND, pulls=[{"suggest_which_broker_id": 0}], brokers=[plug_in])
    assert kept == (1, "undetermined", STORE_PLUG_IN)


def test_version_decides_the_ratio_and_who_is_redirected():
    slave_5 = {"broker_id": 1, "broker_role": "SLAVE", "rocketmq_version": "5.3.3"}
    group = {"broker_id": 1, "group_broker_id": 2}

    def of_slave(**broker):
        (row,) = suggested(pulls=[{"broker_id": 1}], brokers=[slave_5 | broker], groups=[group], polls=[])
        return row["effective_ratio"], row["memory"], row["expected_suggest"]

    assert of_slave()[:2] == (30, 300)
    assert of_slave(rocketmq_version="4.9.7")[:2] == (40, 400)
    assert of_slave(effective_access_message_in_memory_max_ratio=35)[:2] == (35, 350)
    assert of_slave(rocketmq_version="a fork")[:2] == (None, None)
    assert of_slave(rocketmq_version=None)[:2] == (None, None)
    assert of_slave(access_message_in_memory_max_ratio=None)[:2] == (None, None)
    assert of_slave(physical_memory_bytes=None)[:2] == (30, None)
    outside = NOTHING_FOUND | {"broker_id": 1, "remark": "OFFSET_OVERFLOW_ONE"}
    to_master = suggested(pulls=[outside], brokers=[slave_5], groups=[group])
    as_group_says = suggested(pulls=[outside], brokers=[slave_5 | {"rocketmq_version": "4.9.7"}], groups=[group])
    assert [r["expected_suggest"] for r in to_master + as_group_says] == [0, 2]


def test_description_holds_from_its_instant_to_the_next_and_the_first_also_before():
    def ratios(*seconds):
        brokers = [{"ts": at(s), "effective_access_message_in_memory_max_ratio": s} for s in (30, 10, 20)]
        pulls = [{"request_ts": at(s), "response_ts": at(s)} for s in seconds]
        return [r["effective_ratio"] for r in suggested(pulls=pulls, brokers=brokers)]

    assert ratios(1, 10, 19, 20, 29, 30, 99) == [10, 10, 10, 20, 20, 30, 30]
    groups = [{"ts": at(s), "group_broker_id": s} for s in (10, 30)] + [{"ts": at(24), "change": "removed"}]
    assert one(groups=groups)["expected_suggest"] == 10


@pytest.mark.parametrize(
    ("settings_of_broker", "expected", "judgement"),
    [([], 0, "agree"), ([("enableSlaveActingMaster", "true")], None, "undetermined")],
)
def test_a_slave_that_may_act_as_master_suggests_by_whether_its_master_lives(settings_of_broker, expected, judgement):
    """It sends a client back to a living master; without one, to the group's broker."""
    slave = {"broker_id": 1, "broker_role": "SLAVE", "rocketmq_version": "5.3.3", "properties": settings_of_broker}
    outside = NOTHING_FOUND | {"broker_id": 1, "remark": "OFFSET_OVERFLOW_ONE"}
    group = {"broker_id": 1, "group_broker_id": 2}
    (row,) = suggested(pulls=[outside], brokers=[slave], groups=[group])
    assert (row["expected_suggest"], row["judgement"]) == (expected, judgement)
    assert (row["reason"] == ACTING) is (expected is None)
    # Both ways give the same where the group reads from the master.
    (row,) = suggested(pulls=[outside], brokers=[slave], groups=[group | {"group_broker_id": 0}])
    assert (row["expected_suggest"], row["judgement"]) == (0, "agree")


@pytest.mark.parametrize(
    ("version", "settings_of_broker", "recorded", "expected", "judgement"),
    [
        ("5.3.3", [("isInBrokerContainer", "true")], 0, 0, "agree"),
        ("5.3.3", [("isInBrokerContainer", "true")], 1, 0, "differ"),
        ("5.3.3", [("isInBrokerContainer", "false")], 0, 1, "differ"),
        ("5.0.0", [], 0, 1, "undetermined"),  # 5.0 does not report it
        ("5.0.0", [], 1, 1, "agree"),
        ("4.9.7", [], 0, 1, "differ"),  # has no containers
    ],
)
def test_a_broker_in_a_container_suggests_the_master(version, settings_of_broker, recorded, expected, judgement):
    """PullMessageProcessor#composeResponseHeader: the setting counts as slaveReadEnable=false."""
    broker = {"rocketmq_version": version, "properties": settings_of_broker}
    (row,) = suggested([{"suggest_which_broker_id": recorded}], brokers=[broker], polls=BEHIND)
    assert (row["expected_suggest"], row["judgement"]) == (expected, judgement)
    assert (row["reason"] == CONTAINER) == (judgement == "undetermined")
