"""Suppositions change rows of silver, and the kernels decide on these rows."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.supposed_shares import decided_again, idle_members, lists_seen, supposed_owners
from mqreplay.decisions.suppositions import (
    FIRST,
    LAST,
    RATIO,
    SLAVE_READ,
    BrokerSetting,
    GroupConsumers,
    GroupStrategy,
    Supposition,
    TopicQueues,
    supposed_brokers,
    supposed_rebalances,
    text_of,
)

QUEUES = [{"broker_name": broker, "queue_id": queue} for broker in ("a", "b") for queue in (0, 1)]
SCHEMA = {
    **dict.fromkeys(("strategy", "consumer_group", "client_id", "topic", "source"), pl.String),
    "mq_all": pl.List(pl.Struct({"broker_name": pl.String, "queue_id": pl.Int32})),
    "cid_all": pl.List(pl.String),
    "mq_divided": pl.List(pl.Struct({"broker_name": pl.String, "queue_id": pl.Int32})),
    "error": pl.String,
    "ts": pl.Datetime("us", "UTC"),
}


def rebalances(*clients: str, strategy: str | None = "AVG", of: list[str] | None = None, at: int = 0) -> pl.DataFrame:
    ts = dt.datetime(2026, 11, 21, 2, at, tzinfo=dt.UTC)
    row = {"consumer_group": "g", "topic": "T", "source": "log", "mq_all": QUEUES, "mq_divided": [], "ts": ts}
    each = [row | {"client_id": client, "strategy": strategy, "cid_all": of or list(clients)} for client in clients]
    return pl.DataFrame(each, schema=SCHEMA)


def owners(rows: pl.DataFrame, *supposed: Supposition) -> list[dict[str, Any]]:
    return supposed_owners(lists_seen(rows), supposed, {}, 10).to_dicts()


def after(rows: pl.DataFrame, *supposed: Supposition) -> list[Any]:
    return [row["after_last"] for row in owners(rows, *supposed)]


@pytest.mark.parametrize("same", [GroupConsumers("g", 0), GroupStrategy("g", "AVG"), TopicQueues("T", 2)])
def test_the_settings_of_the_night_change_nothing(same):
    rows = rebalances("c1", "c2")
    assert {row["change"] for row in owners(rows, same)} == {"kept"}
    assert decided_again(rows, [same], {}, 10)["outcome"].to_list() == ["unchanged"]


def test_members_of_different_strategies_keep_them():
    mixed = pl.concat([rebalances("c1", of=["c1", "c2"]), rebalances("c2", of=["c1", "c2"], strategy="AVG_BY_CIRCLE")])
    found = owners(mixed, GroupConsumers("g", 0))
    assert [row["before"] for row in found] == [["c1"], ["c1", "c2"], [], ["c2"]]
    assert {row["change"] for row in found} == {"kept"}


def test_a_strategy_gives_other_queues():
    rows = rebalances("c1", "c2")
    assert after(rows, GroupStrategy("g", "AVG_BY_CIRCLE")) == [["c1"], ["c2"], ["c1"], ["c2"]]
    assert decided_again(rows, [GroupStrategy("g", "AVG_BY_CIRCLE")], {}, 10)["rebalances"].to_list() == [2]


def test_where_new_members_sort_bounds_the_queues_that_move():
    found = owners(rebalances("c1", "c2"), GroupConsumers("g", 2))
    assert [row["after_last"] for row in found] == [["c1"], ["c2"], ["~1"], ["~2"]]
    assert [row["after_first"] for row in found] == [["!1"], ["!2"], ["c1"], ["c2"]]
    assert [row["change"] for row in found] == ["may move", "moved", "moved", "may move"]


def test_which_member_leaves_bounds_the_queues_that_move():
    found = owners(rebalances("c1", "c2"), GroupConsumers("g", -1))
    assert [(row["after_first"], row["after_last"]) for row in found] == [(["c2"], ["c1"])] * 4
    assert [row["change"] for row in found] == ["may move"] * 4


def test_nobody_owns_the_queues_of_a_group_without_members():
    assert after(rebalances("c1", "c2"), GroupConsumers("g", -2)) == [[]] * 4


@pytest.mark.parametrize(("added", "idle"), [(2, 0), (3, 1), (5, 3), (-2, 0)])
def test_members_without_a_queue(added, idle):
    lists, supposed = lists_seen(rebalances("c1", "c2")), [GroupConsumers("g", added)]
    (found,) = idle_members(lists, supposed_owners(lists, supposed, {}, 10), supposed).to_dicts()
    assert (found["members_before"], found["idle_before"]) == (2, 0)
    assert (found["members_after"], found["idle_after"]) == (2 + added, idle)


def test_new_and_removed_queues():
    more = owners(rebalances("c1", "c2"), TopicQueues("T", 3))
    assert [row["change"] for row in more] == ["kept", "kept", "new"] * 2
    fewer = owners(rebalances("c1", "c2"), TopicQueues("T", 1))
    assert [row["change"] for row in fewer] == ["kept", "gone"] * 2
    assert [row["after_last"] for row in fewer] == [["c1"], None, ["c2"], None]


def test_several_suppositions_at_once():
    both = [GroupStrategy("g", "AVG_BY_CIRCLE"), GroupConsumers("g", 1), TopicQueues("T", 1)]
    assert after(rebalances("c1", "c2"), *both) == [["c1"], None, ["c2"], None]


def test_another_group_and_topic_stay():
    rows = rebalances("c1", "c2")
    others = [GroupStrategy("x", "AVG_BY_CIRCLE"), GroupConsumers("x", 1), TopicQueues("X", 1)]
    assert supposed_rebalances(rows, others).equals(rows)


def test_an_unknown_strategy_is_undetermined():
    rows = rebalances("c1", "c2")
    assert {row["change"] for row in owners(rows, GroupStrategy("g", "MINE"))} == {"unknown"}
    counted = decided_again(rows, [GroupStrategy("g", "MINE")], {}, 10).row(0, named=True)
    assert (counted["outcome"], counted["rebalances"]) == ("undetermined", 2)
    assert "'MINE' is not one of RocketMQ's own" in counted["reason"]


def test_a_strategy_without_its_settings_is_undetermined():
    counted = decided_again(rebalances("c1"), [GroupStrategy("g", "MACHINE_ROOM_NEARBY")], {}, 10)
    assert "nearby_strategy is not set" in counted["reason"][0]


def test_the_share_of_a_member_whose_strategy_is_unknown_is_unknown():
    found = owners(rebalances("c1", "c2", strategy=None), GroupConsumers("g", 1))
    assert {row["change"] for row in found} == {"unknown"}
    assert after(rebalances("c1", "c2", strategy=None), GroupStrategy("g", "AVG")) == [["c1"], ["c1"], ["c2"], ["c2"]]


def test_the_last_strategy_of_a_member_counts():
    rows = pl.concat([rebalances("c1", at=1, strategy="AVG_BY_CIRCLE", of=["c1", "c2"]), rebalances("c1", "c2")])
    (members,) = lists_seen(rows)["members"].to_list()
    assert [member["strategy"] for member in members if member["client_id"] == "c1"] == ["AVG", "AVG_BY_CIRCLE"]
    assert [row["before"] for row in owners(rows)] == [["c1"], [], ["c1", "c2"], ["c2"]]


@pytest.mark.parametrize(("sorts", "kept"), [(FIRST, ["c2"]), (LAST, ["c1"])])
def test_members_leave_at_both_ends(sorts, kept):
    rows = supposed_rebalances(rebalances("c1", "c2"), [GroupConsumers("g", -1)], sorts)
    assert rows["cid_all"].to_list() == [kept] * 2


RATIOS = ("access_message_in_memory_max_ratio", "effective_access_message_in_memory_max_ratio")
BROKERS = pl.DataFrame(
    {"broker_name": ["a", "b"], RATIOS[0]: [40, 40], RATIOS[1]: [30, 30], "slave_read_enable": [True, True]}
)


def test_a_ratio_of_one_broker():
    found = supposed_brokers(BROKERS, [BrokerSetting(RATIO, "60", "a"), GroupConsumers("g", 1)])
    assert found.select(RATIOS).rows() == [(60, None), (40, 30)]


def test_a_ratio_of_all_brokers():
    assert supposed_brokers(BROKERS, [BrokerSetting(RATIO, "60")])[RATIOS[0]].to_list() == [60, 60]


def test_reads_from_slaves_are_disabled():
    found = supposed_brokers(BROKERS, [BrokerSetting(SLAVE_READ, "False", "b")])
    assert found["slave_read_enable"].to_list() == [True, False]


def test_a_setting_that_decides_nothing():
    with pytest.raises(ValueError, match="no decision of the replay depends on flushDiskType"):
        supposed_brokers(BROKERS, [BrokerSetting("flushDiskType", "x")])


def test_texts():
    assert text_of(BrokerSetting(SLAVE_READ, "false")) == "slaveReadEnable=false on all brokers"
    assert text_of(GroupStrategy("g", "AVG")) == "strategy=AVG in g"
    assert text_of(TopicQueues("T", 8)) == "8 queues of T on each broker"
