"""Findings compared with the faults of the recorded clusters: none missed, none invented, times within seconds."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

DATA = Path(__file__).parents[1] / "data"
ORDERS, BULK = "DefaultCluster", "grid-cluster"
NEAR_S = 30


class Truth:
    """What was done, and when (seconds since the epoch)."""

    def __init__(self, name: str) -> None:
        self.told = json.loads((DATA / f"{name}.truth.json").read_text(encoding="utf-8"))

    def at(self, action: str, scenario: str | None = None, nth: int = 0, **detail: object) -> float:
        hits = [
            e["ts"] / 1000
            for e in self.told["events"]
            if e["action"] == action
            and (scenario is None or e["scenario"] == scenario)
            and all((e["detail"] or {}).get(k) == v for k, v in detail.items())
        ]
        return hits[nth]

    def client(self, name: str, nth: int = 0) -> dict:
        return [c for c in self.told["clients"] if c["id"] == name][nth]


@pytest.fixture(scope="module")
def orders() -> Truth:
    return Truth("orders-4.9.7")


@pytest.fixture(scope="module")
def found(night) -> list[dict]:
    return night.table("gold.finding", ORDERS).sort("from_ts", "finding_id").to_dicts()


def of(found: list[dict], kind: str, group: str | None = None, **place: object) -> list[dict]:
    return [
        f
        for f in found
        if f["kind"] == kind
        and (group is None or f["consumer_group"] == group)
        and all(f[k] == v for k, v in place.items())
    ]


def near(instant: dt.datetime, seconds: float, within: float = NEAR_S) -> bool:
    return abs(instant.replace(tzinfo=dt.UTC).timestamp() - seconds) <= within


def test_the_killed_master_and_the_stopped_one(found, orders):
    killed, stopped = of(found, "broker_down")
    assert (killed["broker_name"], killed["broker_id"], killed["severity"]) == ("broker-a", 0, "critical")
    assert near(killed["from_ts"], orders.at("kill_9", "S4"))
    assert near(killed["to_ts"], orders.at("broker_port_open", "S4"))
    assert (stopped["broker_name"], stopped["broker_id"], stopped["severity"]) == ("broker-b", 0, "critical")
    assert near(stopped["from_ts"], orders.at("SIGSTOP"))
    assert near(stopped["to_ts"], orders.at("SIGCONT"))
    assert of(found, "failover_pull") == [], "an outage states its pulls itself"
    assert "; 132 pulls of 11 groups went to a slave instead. 3 messages were delivered again." in killed["summary"]
    assert stopped["summary"].endswith("; 93 pulls of 10 groups went to a slave instead."), "and nothing came twice"


def test_sends_that_waited_for_the_stopped_master(found):
    _, stopped = of(found, "broker_down")
    (failed,) = of(found, "send_failed")
    assert (failed["broker_name"], failed["follows_from"]) == ("broker-b", stopped["finding_id"])
    assert "143 sends to several topics failed on the master of broker-b within 100 s" in failed["summary"]


def test_resets_back_and_forward_and_the_offset_past_the_end(found, orders):
    back, forward, set_by_hand = of(found, "offset_reset", "reset-group", topic="pay-topic")
    assert near(back["from_ts"], orders.at("reset_back_online"))
    assert "back by up to 35" in back["summary"]
    assert near(forward["from_ts"], orders.at("mqadmin", "S5"))
    assert "ahead by up to 82" in forward["summary"]
    rewind, by_hand = of(found, "offset_rewind", "reset-group")
    assert rewind["follows_from"] == back["finding_id"]
    (jump,) = of(found, "offset_jump", "reset-group")
    assert jump["follows_from"] == forward["finding_id"]
    written = orders.at("update_consume_offset_offline", broker="broker-b")
    assert (by_hand["broker_name"], by_hand["queue_id"]) == ("broker-b", 1)
    assert (by_hand["follows_from"], set_by_hand["severity"]) == (set_by_hand["finding_id"], "warning")
    assert near(by_hand["to_ts"], written)
    assert near(set_by_hand["from_ts"], written)
    assert "(broker-b/1: from 175 to 0)" in set_by_hand["summary"]
    (again,) = of(found, "duplicate_delivery", "reset-group", broker_name="broker-b")
    assert again["follows_from"] == set_by_hand["finding_id"], "and not from a reset ahead a minute before"
    (beyond,) = of(found, "offset_beyond_max")
    assert (beyond["broker_name"], beyond["queue_id"], beyond["severity"]) == ("broker-a", 0, "warning")
    assert near(beyond["from_ts"], written)
    assert "999999" in beyond["summary"]


def test_the_stuck_queue(found, orders):
    (stuck,) = of(found, "stuck_queue", "stuck-group")
    assert (stuck["topic"], stuck["broker_name"], stuck["queue_id"]) == ("stuck-topic", "broker-a", 0)
    assert " at 30 for 9" in stuck["summary"]
    assert near(stuck["from_ts"], orders.at("sent_stuck"))
    assert near(stuck["to_ts"], orders.at("released"))
    (slow,) = of(found, "slow_listener")
    assert (slow["consumer_group"], slow["severity"]) == ("stuck-group", "warning")
    assert stuck["follows_from"] == slow["finding_id"]
    assert "did not finish the message at offset 30 of stuck-topic in broker-a/0" in slow["summary"]


def test_the_killed_consumer_and_its_duplicates(found, orders):
    (lost,) = of(found, "consumer_lost")
    assert lost["client_id"] == orders.client("x3")["client_id"]
    assert near(lost["from_ts"], orders.at("kill_9", "S6"))
    again = [f for f in of(found, "duplicate_delivery", "crash-group") if f["follows_from"] == lost["finding_id"]]
    assert len(again) == 1


def test_retries_and_dead_letters(found, orders):
    (dead,) = of(found, "dead_letter")
    assert (dead["consumer_group"], dead["topic"], dead["severity"]) == ("refund-group", "%DLQ%refund-group", "warning")
    (retry,) = of(found, "retry_growth")
    assert retry["follows_from"] == dead["finding_id"]
    assert near(retry["from_ts"], orders.at("sent_failing"))
    assert near(dead["from_ts"], orders.at("sent_failing") + 40)


def test_queues_added_and_taken_away(found, orders):
    changed = of(found, "queue_count_changed", topic="grow-topic")
    assert {f["severity"] for f in changed} == {"info"}
    for i, finding in enumerate(changed):
        assert near(finding["from_ts"], orders.at("topic_config", "S8", nth=i))
    assert [f["summary"].split(" queues to ")[1].split(" on ")[0] for f in changed] == ["4 and 4", "4 and 2", "2 and 2"]


def seconds(findings: list[dict]) -> int:
    return sum(int(f["summary"].split(" queue-seconds")[0].rsplit(" ", 1)[1]) for f in findings)


def test_two_subscriptions_in_one_group(found, orders):
    (conflict,) = of(found, "subscription_conflict")
    assert (conflict["consumer_group"], conflict["severity"]) == ("mixsub-group", "warning")
    assert near(conflict["from_ts"], orders.at("bug_begin", "S12A"))
    assert near(conflict["to_ts"], orders.at("bug_end", "S12A"))
    orphans = of(found, "orphan_queue", "mixsub-group")
    assert {f["follows_from"] for f in orphans} == {conflict["finding_id"]}
    assert seconds(orphans) == pytest.approx(512, rel=0.03)


def test_two_strategies_in_one_group(found, orders):
    (conflict,) = of(found, "strategy_conflict")
    assert (conflict["consumer_group"], conflict["severity"]) == ("mixalg-group", "warning")
    assert near(conflict["from_ts"], orders.at("bug_begin", "S12B"))
    assert near(conflict["to_ts"], orders.at("bug_end", "S12B"))
    doubles, orphans = of(found, "double_owned_queue"), of(found, "orphan_queue", "mixalg-group")
    assert {f["follows_from"] for f in doubles + orphans} == {conflict["finding_id"]}
    assert seconds(doubles) == pytest.approx(158, rel=0.03)
    assert seconds(orphans) == pytest.approx(162, rel=0.03)


def test_the_slow_consumer_sent_to_the_slave_and_back(found, orders):
    (slow,) = of(found, "slave_pull", "bulk-group")
    assert slow["severity"] == "warning"
    started = orders.client("b1")["start_called"] / 1000
    assert 0 <= slow["from_ts"].replace(tzinfo=dt.UTC).timestamp() - started <= 60
    assert 55 <= (slow["to_ts"] - slow["from_ts"]).total_seconds() <= 65


def test_the_idle_consumer(found, orders):
    (idle,) = of(found, "idle_consumer", "order-group")
    o5 = orders.client("o5")
    assert (idle["client_id"], idle["severity"]) == (o5["client_id"], "info")
    assert near(idle["from_ts"], o5["started"] / 1000)
    assert near(idle["to_ts"], o5["stop_called"] / 1000)


def test_nothing_else_is_a_warning(found):
    told = sorted((f["kind"], f["consumer_group"] or f["broker_name"]) for f in found if f["severity"] != "info")
    assert told == [
        ("broker_down", "broker-a"),
        ("broker_down", "broker-b"),
        ("consumer_lost", "crash-group"),
        ("dead_letter", "refund-group"),
        ("lag_grows", "pay-config-group"),
        ("lag_grows", "pay-room-group"),
        ("offset_beyond_max", "reset-group"),
        ("offset_reset", "reset-group"),
        ("offset_reset", "reset-group"),
        ("offset_reset", "reset-group"),
        ("slave_pull", "bulk-group"),
        ("slow_listener", "stuck-group"),
        ("strategy_conflict", "mixalg-group"),
        ("subscription_conflict", "mixsub-group"),
    ]


def test_the_slave_that_may_not_be_read_and_the_queues_stuck_on_it(night):
    rows = night.table("gold.finding", BULK).to_dicts()
    (refusing,) = [f for f in of(rows, "slave_pull") if f["severity"] == "critical"]
    assert (refusing["broker_name"], refusing["broker_id"]) == ("rmq-south", 1)
    assert "351 pulls" in refusing["summary"]
    (stuck,) = of(rows, "stuck_queue")
    assert stuck["follows_from"] == refusing["finding_id"]
    assert (stuck["consumer_group"], stuck["broker_name"]) == ("meter-billing", "rmq-south")
    assert near(refusing["from_ts"], Truth("bulk-5.3.3").client("mb1")["started"] / 1000 + 60, 60)
    told = sorted((f["kind"], f["severity"], f["broker_name"]) for f in rows if f["severity"] != "info")
    assert told == [("slave_pull", "critical", "rmq-south"), ("slave_pull", "warning", "rmq-north")]


def test_what_follows_from_another_finding_is_no_alarm(night):
    for cluster in (ORDERS, BULK):
        rows = {r["finding_id"]: r for r in night.table("gold.finding", cluster).to_dicts()}
        for row in rows.values():
            if row["follows_from"] is not None:
                assert row["severity"] == "info"
                assert rows[row["follows_from"]]["follows_from"] is None, "the first cause, not a link of the chain"


def test_a_cause_says_as_many_messages_as_its_effects(night):
    for cluster in (ORDERS, BULK):
        found = night.table("gold.finding", cluster).to_dicts()
        sums: Counter[str] = Counter()
        for row in of(found, "duplicate_delivery"):
            if row["follows_from"] is not None:
                sums[row["follows_from"]] += int(row["summary"].split(" received ")[1].split(" ")[0])
        said = {f["finding_id"]: f["summary"].split(". ")[-1].split(" ")[0] for f in found if f["finding_id"] in sums}
        assert said == {name: str(number) for name, number in sums.items()}
        by_id = {f["finding_id"]: f for f in found}
        for row in found:
            cause = by_id.get(row["follows_from"] or "")
            if cause is not None and row["kind"] == "duplicate_delivery" and cause["broker_name"] is not None:
                assert row["broker_name"] == cause["broker_name"]


def test_the_notes_are_these_and_no_more(found):
    """What is told as info and follows from nothing: each is so, and nobody need act on it."""
    notes = Counter((f["kind"], f["consumer_group"] or f["topic"]) for f in found if is_note(f))
    assert notes == {
        ("idle_consumer", "order-group"): 1,
        ("idle_consumer", "ship-circle-group"): 1,  # six members for five queues
        ("queue_count_changed", "grow-topic"): 3,
        ("orphan_offset_key", "grow-group"): 2,
        ("start_from_oldest", "mixalg-group"): 1,  # new groups with CONSUME_FROM_FIRST_OFFSET on full topics
        ("start_from_oldest", "mixsub-group"): 1,
        ("slave_pull", "grow-group"): 1,  # groups new to an old topic read its start from the slave for a second
        ("slave_pull", "reset-group"): 1,
    }


def is_note(finding: dict) -> bool:
    return finding["severity"] == "info" and finding["follows_from"] is None


def test_no_message_was_lost(night):
    audit = night.table("gold.delivery_audit", ORDERS)
    assert set(audit["lost"]) == {0}
    assert audit["delivered"].sum() > 15_000
    assert audit.filter(consumer_group="reset-group")["skipped"][0] > 200


def test_groups_that_stopped_and_groups_that_kept_up(night):
    status = night.table("gold.group_status", ORDERS).filter(~pl.col("topic").str.starts_with("%RETRY"))
    stopped = set(status.filter(status="STOP")["consumer_group"])
    assert stopped == {"mixalg-group", "mixsub-group", "pay-config-group", "pay-room-group"}
    assert set(status["status"]) <= {"OK", "STOP"}


def test_what_losing_a_master_would_have_cost(night):
    rows = night.table("gold.failover_exposure", ORDERS)
    down = rows.filter(broker_name="broker-b", master_up=False)
    assert [ts.minute for ts in down["minute_ts"]] == [55], "the one whole minute of the stop"
    assert rows["bytes_behind"].max() > 1_000_000
    known = rows.filter(pl.col("redelivered").is_not_null()).select("redelivered", "redelivered_by_group").rows()
    assert known
    assert all(redelivered == sum(by_group.values()) for redelivered, by_group in known)
