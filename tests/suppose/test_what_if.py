"""Predictions of `mqreplay whatif` on recorded nights: the settings of the night give the night, and what was predicted
from before a change equals what came after it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.supposed_shares import lists_seen, supposed_owners
from mqreplay.decisions.suppositions import (
    RATIO,
    SLAVE_READ,
    BrokerSetting,
    GroupConsumers,
    GroupStrategy,
    Supposition,
    TopicQueues,
)
from mqreplay.engines.local import LocalEngine
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.scratch import scratch
from mqreplay.lake.warehouse import Warehouse
from mqreplay.machine.places import conf_dir
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.settings import load_settings
from mqreplay.suppose.instants import lost_master
from mqreplay.suppose.what_if import Prediction, predict

CLUSTERS = ("DefaultCluster", "grid-cluster")
SETTINGS = load_settings(str(conf_dir() / "sample.toml"))
Lists = dict[str, Any]


@pytest.fixture(scope="module", params=CLUSTERS)
def sample(request, night) -> Recorded:
    return recorded(Warehouse(night.root), request.param)


@pytest.fixture(scope="module")
def orders(night) -> Recorded:
    return recorded(Warehouse(night.root), "DefaultCluster")


def predicted(night: Recorded, *supposed: Supposition, at: dt.datetime | None = None) -> Prediction:
    (day,) = night.judged_days()
    with LocalEngine(scratch().folder, 1) as engine:
        return predict(night.warehouse, engine, night.cluster, day, SETTINGS, supposed, at)


def rows_of(night: Recorded, name: str) -> pl.DataFrame:
    return night.warehouse.read(name, RowFilter(night.cluster)).collect()


def test_the_ratios_of_the_night_give_its_suggestions(sample):
    brokers = rows_of(sample, "silver.broker")
    ratios = brokers.select("broker_name", "broker_id", "access_message_in_memory_max_ratio").unique().rows()
    assert len(ratios) == 4
    same = [BrokerSetting(RATIO, str(ratio), name, broker_id) for name, broker_id, ratio in ratios]
    pulls = predicted(sample, *same).pulls
    judged = rows_of(sample, "gold.slave_suggestion")
    assert pulls["changed"].sum() == 0
    assert pulls["unchanged"].sum() == (judged["judgement"] == "agree").sum()
    assert pulls["undetermined"].sum() == (judged["judgement"] == "undetermined").sum()
    assert pulls["to_slave"].sum() == (judged["recorded_suggest"] != 0).sum() > 0


def test_the_members_of_the_night_give_its_shares(sample):
    judged = rows_of(sample, "gold.allocation")
    groups = judged["consumer_group"].unique().to_list()
    found = predicted(sample, *(GroupConsumers(group, 0) for group in groups))
    counts = dict(found.decided.group_by("outcome").agg(pl.col("rebalances").sum()).rows())
    unknown = judged["expected"].is_null().sum()
    assert counts == {"unchanged": len(judged) - unknown} | ({"undetermined": unknown} if unknown else {})
    assert set(found.owners["change"]) <= {"kept", "unknown"}


def test_the_strategies_of_the_night_give_its_shares(sample):
    judged = rows_of(sample, "gold.allocation").filter(pl.col("strategy").is_not_null())
    each = judged.group_by("consumer_group").agg(pl.col("strategy").unique()).filter(pl.col("strategy").list.len() == 1)
    found = predicted(sample, *(GroupStrategy(group, names[0]) for group, names in each.sort("consumer_group").rows()))
    assert found.decided.filter(pl.col("outcome") == "changed").is_empty()
    assert found.decided.filter(pl.col("outcome") == "unchanged")["rebalances"].sum() > 0


def test_the_queues_of_the_night_give_its_shares(sample):
    numbers = rows_of(sample, "gold.allocation").filter(~pl.col("topic").str.starts_with("%"))
    ids = pl.col("mq_all").list.eval(pl.element().struct.field("queue_id"))
    brokers = pl.col("mq_all").list.eval(pl.element().struct.field("broker_name")).list.n_unique()
    each = numbers.select("topic", (ids.list.max() + 1).alias("queues"), brokers.alias("brokers"), "mq_all").unique()
    alike = pl.col("mq_all").list.len() == pl.col("queues") * pl.col("brokers")
    constant = each.group_by("topic").agg(alike.all(), pl.col("queues").unique())
    same = [
        TopicQueues(topic, queues[0])
        for topic, uniform, queues in constant.sort("topic").rows()
        if uniform and len(queues) == 1
    ]
    assert same
    decided = predicted(sample, *same).decided
    assert decided.filter(pl.col("outcome") == "changed").is_empty()
    assert decided.filter(pl.col("outcome") == "unchanged")["rebalances"].sum() > 0


def test_reads_from_slaves_disabled_keep_all_readers_on_the_master(orders):
    pulls = predicted(orders, BrokerSetting(SLAVE_READ, "false")).pulls
    assert pulls["to_slave"].sum() > 0
    assert pulls["to_slave_max"].sum() == 0


# Backtests: lists that a group saw later, predicted from those that it saw before.


def seen(night: Recorded) -> list[Lists]:
    """Return the lists of each group and topic, with the shares that members took for them."""
    rebalances = rows_of(night, "silver.rebalance")
    lists = lists_seen(rebalances).to_dicts()
    known = rebalances.filter(pl.col("mq_divided").is_not_null() & pl.col("error").is_null()).sort("ts").to_dicts()
    taken: dict[Any, dict[Any, Any]] = {}
    for row in known:
        if row["cid_all"] is not None and row["mq_all"] is not None:
            taken.setdefault(_key(row), {})[row["client_id"], row["strategy"]] = _queues(row["mq_divided"])
    return [each | {"taken": taken.get(_key(each), {})} for each in lists]


def _queues(queues: list[dict[str, Any]]) -> set[tuple[str, int]]:
    return {(queue["broker_name"], queue["queue_id"]) for queue in queues}


def _key(row: Lists) -> tuple[Any, ...]:
    queues = tuple(sorted(_queues(row["mq_all"])))
    return row["consumer_group"], row["topic"], tuple(sorted(row["cid_all"])), queues


def changes(night: Recorded) -> Iterator[tuple[Lists, Lists]]:
    lists = seen(night)
    for before in lists:
        for after in lists:
            same = all(before[name] == after[name] for name in ("consumer_group", "topic"))
            if same and before["from_ts"] < after["from_ts"]:
                yield before, after


def shares(before: Lists, supposed: Supposition, column: str) -> dict[str, set[tuple[str, int]]]:
    """Return the queues that each member would hold, by client id."""
    frame = pl.DataFrame([before], schema=LISTS)
    strategies = SETTINGS.strategies
    rows = supposed_owners(frame, [supposed], strategies.groups, strategies.virtual_node_cnt)
    found: dict[str, set[tuple[str, int]]] = {}
    for row in rows.filter(pl.col(column).is_not_null()).iter_rows(named=True):
        for client in row[column]:
            found.setdefault(client, set()).add((row["broker_name"], row["queue_id"]))
    return found


LISTS = lists_seen(
    pl.DataFrame(
        schema={
            **dict.fromkeys(("consumer_group", "topic", "client_id", "strategy", "source"), pl.String),
            "cid_all": pl.List(pl.String),
            "mq_all": pl.List(pl.Struct({"broker_name": pl.String, "queue_id": pl.Int32})),
            "ts": pl.Datetime("us", "UTC"),
        }
    )
).schema


def members_changed(before: Lists, after: Lists) -> tuple[int, str, dict[str, str]] | None:
    """Return how many members came or left, at which end of the list, and the names of those that came."""
    old, new = before["cid_all"], after["cid_all"]
    added = len(new) - len(old)
    if not added or before["mq_all"] != after["mq_all"]:
        return None
    if len(set(old)) < len(old) or len(set(new)) < len(new):
        return None  # a client with two channels to the broker did not come
    longer, shorter = (new, old) if added > 0 else (old, new)
    if longer[: len(shorter)] == shorter:
        return added, "after_last", {f"~{n}": name for n, name in enumerate(longer[len(shorter) :], 1)}
    if longer[abs(added) :] == shorter:
        return added, "after_first", {f"!{n}": name for n, name in enumerate(longer[: abs(added)], 1)}
    return None


def compared(after: Lists, predicted: dict[str, set[tuple[str, int]]], strategies: set[str]) -> int:
    """Compare each share that a member took with the predicted one; return how many."""
    number = 0
    for (client, strategy), queues in after["taken"].items():
        if strategy in strategies:
            assert predicted.get(client, set()) == queues, (after["consumer_group"], client)
            number += 1
    return number


def strategies_of(lists: Lists) -> set[str]:
    return {member["strategy"] for member in lists["members"]} - {None}


def test_members_that_came_or_left_took_the_predicted_queues(orders):
    came = left = 0
    for before, after in changes(orders):
        changed = members_changed(before, after)
        # CONFIG has a list for each client, so that of an unknown one is not known.
        if changed is None or len(strategies_of(before)) != 1 or "CONFIG" in strategies_of(before):
            continue
        added, column, names = changed
        if any("ROOM" in strategy for strategy in strategies_of(before)) and added > 0:
            continue  # the room of an unknown client is not known
        supposed = shares(before, GroupConsumers(before["consumer_group"], added), column)
        if "CONSISTENT_HASH" in strategies_of(before) and added > 0:
            continue  # places on the ring are those of the ids
        number = compared(after, {names.get(c, c): q for c, q in supposed.items()}, strategies_of(before))
        came, left = (came + number, left) if added > 0 else (came, left + number)
    assert min(came - 150, left - 20) > 0, (came, left)


def test_a_group_took_the_predicted_queues_after_a_topic_grew_and_shrank(orders):
    number = 0
    for before, after in changes(orders):
        if before["topic"] != "grow-topic" or before["cid_all"] != after["cid_all"]:
            continue
        if len(before["mq_all"]) == len(after["mq_all"]):
            continue
        supposed = TopicQueues("grow-topic", len(after["mq_all"]) // 2)
        number += compared(after, shares(before, supposed, "after_last"), strategies_of(before))
    assert number >= 3


def test_a_member_with_another_strategy_took_the_predicted_queues(orders):
    number = 0
    for each in seen(orders):
        for strategy in strategies_of(each) if len(strategies_of(each)) > 1 else ():
            supposed = shares(each, GroupStrategy(each["consumer_group"], strategy), "after_last")
            number += compared(each, supposed, {strategy})
    assert number >= 10


@pytest.mark.parametrize("broker", ["broker-a", "broker-b"])
def test_no_more_was_delivered_again_than_a_lost_master_was_predicted_to_cost(broker, orders):
    findings = rows_of(orders, "gold.finding")
    (down,) = findings.filter((pl.col("kind") == "broker_down") & (pl.col("broker_name") == broker)).to_dicts()
    lost = lost_master(orders, broker, down["from_ts"] - dt.timedelta(seconds=1))
    assert lost.redelivered is not None
    assert lost.redelivered_max is not None
    assert lost.slaves == [1]
    again = findings.filter(
        (pl.col("kind") == "duplicate_delivery")
        & (pl.col("broker_name") == broker)
        & pl.col("from_ts").is_between(down["from_ts"], down["from_ts"] + dt.timedelta(minutes=3))
    )
    for row in again.to_dicts():
        assert lost.redelivered_max.get(row["consumer_group"], 0) >= _delivered_again(row)
    assert len(again) == (broker == "broker-a")


def _delivered_again(finding: dict[str, Any]) -> int:
    return int(re.search(r"received (\d+) messages", finding["summary"])[1])


def test_the_lists_of_an_instant_are_the_last_ones_before_it(orders):
    at = orders.instant("02:42:00", "--at")
    found = predicted(orders, GroupConsumers("order-group", 0), at=at).owners
    topic = found.filter(pl.col("topic") == "order-topic")
    later = predicted(orders, GroupConsumers("order-group", 0)).owners.filter(pl.col("topic") == "order-topic")
    assert topic["before"].list.first().n_unique() == 4
    assert later["before"].list.first().n_unique() == 2
