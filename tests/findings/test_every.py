"""The list of all kinds, and the findings of a day as a whole: every family is asked, and a day keeps its own."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import polars as pl
import pytest

from mqreplay.decisions.pull_batch import pull_batches
from mqreplay.decisions.replication import replication
from mqreplay.evidence import client_clocks
from mqreplay.evidence.brokers.broker_outages import failovers_of_shard
from mqreplay.evidence.brokers.full_disks import full_disks
from mqreplay.evidence.brokers.listed_brokers import CHANGES, SILENT, UNLISTED
from mqreplay.evidence.brokers.slave_configs import DRIFT
from mqreplay.evidence.brokers.slave_reads import slave_reads
from mqreplay.evidence.lags.falling_behind import falling_behind_of_shard
from mqreplay.evidence.lags.growing_lag import advances_of_shard
from mqreplay.evidence.lags.revive_lags import revive_lags_of_shard
from mqreplay.evidence.members.ownership import pulled_queues_of_shard
from mqreplay.evidence.messages.avoided_brokers import AVOIDED
from mqreplay.evidence.messages.deliveries import (
    max_reconsume_times_of_shard,
    redelivered_messages,
    repeated_deliveries,
)
from mqreplay.evidence.messages.failed_sends import SENDS, failed_messages
from mqreplay.evidence.messages.pop_orders import blocked_orders
from mqreplay.evidence.offsets.asked_resets import asked_resets
from mqreplay.evidence.offsets.odd_offsets import odd_offsets_of_answers, odd_offsets_of_shard
from mqreplay.evidence.offsets.offset_causes import offset_resets
from mqreplay.evidence.offsets.queue_ends import queue_ends
from mqreplay.evidence.offsets.standstills import held_standstills, refused_pulls_of_shard
from mqreplay.findings.brokers import refusals_of_shard
from mqreplay.findings.clocks import activity_of_shard
from mqreplay.findings.every import KINDS, all_findings, finish
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.limits import Limits
from mqreplay.findings.locks import blocked_locks
from mqreplay.findings.messages import returned_ends_of_shard
from mqreplay.findings.pulls import exceptional_pulls_of_shard
from mqreplay.findings.refused import refused_runs_of_shard
from mqreplay.findings.sends import send_runs
from mqreplay.findings.shape import HIDDEN, INSTANT, SCHEMA, finding, none, that_reach
from mqreplay.findings.shares import uneven_shares_of_shard
from mqreplay.findings.snapshots import refused_snapshots
from mqreplay.findings.starts import first_uses_of_shard, new_starts_of_shard
from mqreplay.findings.topics import orphans_of_shard
from silver_moments import at
from silver_rows import rows

LOST_S = 45
LIMITS = Limits(
    same_cause_gap_s=120,
    slave_pull_warn_s=10,
    rebalance_interval_s=20,
    heartbeat_interval_s=30,
    dispute_s=45,
    idle_s=40,
    idle_rebalances=2,
    lost_s=LOST_S,
    stuck_s=60,
    behind_messages=100,
    down_s=10,
    failed_over_s=60,
    duplicate_warn_messages=0,
    retry_warn_messages=5,
    start_messages=1000,
    refused_s=10,
    lock_blocked_s=80,
    failed_sends=5,
    storm_rebalances=5,
    retry_gap_s=7200,
    late_retry_s=60,
    stale_slave_s=150,
    replication_lag_s=30,
    unflushed_bytes=65_536,
    disk_catchup_s=60,
    reset_reach_s=60,
)
NAMES = {
    *("offset_rewind", "offset_jump", "offset_reset", "stuck_queue", "orphan_queue", "double_owned_queue"),
    *(
        "lag_grows",
        "idle_consumer",
        "uneven_allocation",
        "strategy_conflict",
        "subscription_conflict",
        "topic_unsubscribed",
        "consumer_lost",
    ),
    *(
        "broker_unlisted",
        "master_changed",
        "broker_moved",
        "name_server_down",
        "slave_config_drift",
        "revive_lag",
        "pop_order_blocked",
    ),
    *("broker_down", "failover_pull", "slave_pull", "stale_slave_offsets", "offset_beyond_max", "retry_growth"),
    *(
        "dead_letter",
        "late_retry",
        "slow_failover",
        "queue_count_changed",
        "duplicate_delivery",
        "torn_snapshot",
        "orphan_offset_key",
        "clock_skew",
    ),
    *("duplicate_client_id", "negative_offset", "start_skipped", "start_from_oldest"),
    *("lock_blocked", "rebalance_storm"),
    *("slow_listener", "slow_broker", "unfinished_commit"),
    *("pull_refused", "send_failed", "not_stored", "sends_avoid_broker"),
    *("replication_lag", "unflushed_data", "disk_bound_catchup"),
    "disk_full",
    "delay_offset_stuck",
    *("disk_full", "stale_route"),
    *("disk_full", "stale_route", "pull_expired"),
}
GROUP = {"consumer_group": pl.String}
SPAN = {"from_ts": INSTANT, "to_ts": INSTANT}
MEMBERS = GROUP | {"client_id": pl.String, "session": pl.Int64} | SPAN
MEMBERS |= {"left": pl.Boolean, "watched": pl.Boolean, "beat": pl.Boolean, "dropped": pl.String}
STANDSTILL = {"offset": pl.Int64, "since_ts": INSTANT} | SPAN | {"waiting": pl.Int64, "arrived": pl.Int64}
STANDSTILLS = GROUP | {"topic": pl.String, "broker_name": pl.String, "queue_id": pl.Int32}
STANDSTILLS |= {"spans": pl.List(pl.Struct(STANDSTILL))}
NEVER = {name: of for name, of in STANDSTILLS.items() if name != "spans"} | SPAN
NEVER |= {"waiting": pl.Int64, "never": pl.Boolean, "refused_by": pl.String}
OUTAGES = {"broker_name": pl.String, "broker_id": pl.Int64} | SPAN
OUTAGES |= {"errors": pl.Int64, "polled": pl.Boolean, "keys": SCHEMA["evidence"]}


def test_every_kind_is_described() -> None:
    assert KINDS.keys() == NAMES
    assert all(name == kind.name for name, kind in KINDS.items())
    assert all(kind.rule.endswith(".") and kind.advice.endswith(".") for kind in KINDS.values())
    assert all(0 < kind.confidence <= 1 for kind in KINDS.values())


def disk_runs_of(pull: pl.DataFrame, suggestions: pl.DataFrame, broker: pl.DataFrame) -> pl.DataFrame:
    return pull_batches(pull, suggestions, broker, pl.lit(True), LIMITS.same_cause_gap_s).disk_runs


def evidence_of(**silver: list[dict]) -> FindingEvidence:
    """FindingEvidence made of rows of silver and gold tables, by their names; nothing of all others."""

    def table(name: str, layer: str = "silver") -> pl.DataFrame:
        return rows(f"{layer}.{name}", {}, silver.get(name, []))

    unshared = pl.DataFrame(schema=GROUP)
    pull, route, consume = table("pull"), table("pull_route", "gold"), table("consume")
    clocks = pl.DataFrame(silver.get("clocks", []), client_clocks.SCHEMA)
    standstills, owners = pl.DataFrame(silver.get("standstills", []), STANDSTILLS), table("queue_owner", "gold")
    return FindingEvidence(
        cluster="c",
        recorded_until=None,
        heartbeat=table("heartbeat"),
        rebalance=table("rebalance"),
        topic_config=table("topic_config"),
        topic_stats=table("topic_stats"),
        offset_continuity=table("offset_continuity", "gold"),
        queue_owner=owners,
        members=pl.DataFrame(silver.get("members", []), MEMBERS),
        possible_owners=owners,
        unshared_groups=unshared,
        resets=offset_resets(table("server_request"), pull),
        asked_resets=asked_resets(table("server_request")),
        standstills=standstills,
        falling_behind=falling_behind_of_shard(table("offset_change"), queue_ends(pull, table("topic_stats")), 180),
        never_consumed=pl.DataFrame(schema=NEVER),
        held_standstills=held_standstills(standstills, refused_pulls_of_shard(pull), owners, LIMITS.stuck_s),
        passed_commits=table("committed_offset", "gold"),
        stalled_flow=table("flow_control", "gold"),
        outages=pl.DataFrame(silver.get("outages", []), OUTAGES),
        unlisted=pl.DataFrame(silver.get("unlisted", []), UNLISTED),
        master_changes=pl.DataFrame(silver.get("master_changes", []), CHANGES),
        name_server_outages=pl.DataFrame(silver.get("name_server_outages", []), SILENT),
        full_disks=full_disks(table("broker_runtime"), table("broker")),
        stale_routes=table("listed_route", "gold"),
        expired_pulls=table("rebalance_step", "gold"),
        failover_steps=table("failover_step", "gold"),
        config_drift=pl.DataFrame(silver.get("config_drift", []), DRIFT),
        blocked_locks=blocked_locks(table("queue_lock", "gold").with_columns(pl.lit(0, pl.Int64).alias("grants"))),
        rebalance_rounds=table("rebalance_round", "gold").with_columns(pl.lit(0, pl.Int64).alias("cycles")),
        replication=replication(table("broker_runtime"), table("broker"), table("ha_status"), LIMITS.replication_lag_s),
        delays=table("delay_progress", "gold"),
        blocked_orders=blocked_orders(table("pop_order"), table("snapshot"), 60),
        clocks=clocks,
        refused_snapshots=refused_snapshots(table("quarantine", "bronze")),
        uneven_shares=uneven_shares_of_shard(table("allocation", "gold"), 2),
        exceptional_pulls=exceptional_pulls_of_shard(
            slave_reads(route, table("slave_suggestion", "gold"), pull, table("broker")), LIMITS.same_cause_gap_s
        ),
        failovers=failovers_of_shard(route),
        disk_runs=disk_runs_of(pull, table("slave_suggestion", "gold"), table("broker")),
        refused_runs=refused_runs_of_shard(table("pull_answer", "gold"), LIMITS.same_cause_gap_s),
        new_starts=new_starts_of_shard(table("queue_start", "gold")),
        first_uses=first_uses_of_shard(pull),
        advances=advances_of_shard(table("offset_change"), table("offset_commit")),
        revive_lags=revive_lags_of_shard(table("offset_change"), table("topic_stats"), {}, 60),
        refusals=refusals_of_shard(pull, LIMITS.same_cause_gap_s),
        pulled_queues=pulled_queues_of_shard(pull),
        retried_messages=table("retried_message", "gold"),
        repeated_deliveries=repeated_deliveries(consume, unshared),
        redelivered_messages=redelivered_messages(consume),
        max_reconsume_times=max_reconsume_times_of_shard(consume),
        failed_tries=send_runs(pl.DataFrame(schema=SENDS), LIMITS.same_cause_gap_s),
        failed_messages=send_runs(failed_messages(table("produce")), LIMITS.same_cause_gap_s),
        avoided_brokers=pl.DataFrame(schema=AVOIDED),
        returned_ends=returned_ends_of_shard(pull),
        orphan_offsets=orphans_of_shard(table("offset_change"), table("topic_config")),
        odd_offsets=pl.concat(
            [
                odd_offsets_of_shard(table("offset_change"), queue_ends(pull, table("topic_stats"))),
                odd_offsets_of_answers(table("consume_stats"), table("topic_stats")),
            ]
        ),
        activity=activity_of_shard(clocks, pull, table("offset_commit")),
    )


def test_an_empty_day_has_no_findings() -> None:
    nothing = evidence_of()
    for kind in KINDS.values():
        if kind.find is not None:
            found = kind.find(nothing, LIMITS)
            assert (len(found), dict(found.schema)) == (0, SCHEMA), kind.name
    assert len(all_findings(nothing, LIMITS)) == 0


QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
SESSION = {"session": 1, "left": False, "watched": True, "beat": True, "consumer_group": "g"}
HELD = QUEUE | {"client_id": "c1", "from_ts": at(0), "to_ts": at(300), "source": "assignment"}
BREAK = QUEUE | {"broker_id": 0, "from_ts": at(0), "to_ts": at(5), "previous_offset": 90, "new_offset": 10, "size": 80}
BREAK |= {"cause": "unknown", "redelivered_max": 80}
STUCK = QUEUE | {
    "spans": [{"offset": 5, "since_ts": at(0), "from_ts": at(0), "to_ts": at(100), "waiting": 3, "arrived": 2}]
}
PULL = QUEUE | {"client_id": "c1", "queue_offset": 5, "broker_id": 1}
ROUTE = PULL | {"request_ts": at(0), "route_broker_ids": [1], "cause": "master_gone", "actual_broker_id": 1}
CONSUMED = QUEUE | {"queue_topic": "T", "queue_offset": 5, "status": "CONSUME_SUCCESS", "reconsume_times": 0}
CONFIG = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "topic": "T", "change": "changed"}
TAKEN = {"consumer_group": "g", "topic": "T", "client_id": "c1", "strategy": "AVG", "cid_all": ["c1", "c2"]}
TAKEN |= {"mq_all": [("b", q) for q in range(8)], "actual": [("b", q) for q in range(8)]}
OUTAGE = {
    "broker_name": "b",
    "broker_id": 0,
    "from_ts": at(0),
    "to_ts": at(50),
    "errors": 1,
    "polled": True,
    "keys": [],
}


def rebalanced(client: str, strategy: str) -> list[dict]:
    row = {"consumer_group": "g", "client_id": client, "topic": "T", "strategy": strategy, "mq_all": [("b", 0)]}
    return [row | {"ts": at(s), "record_id": f"{client}{s}"} for s in range(0, 100, 20)]


def beats(client: str, topic: str) -> list[dict]:
    data = ("g", "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", False, [(topic, "*", "TAG", 1)])
    row = {"client_id": client, "kind": "HEART_BEAT", "consumer_data_set": [data]}
    return [row | {"ts": at(s), "record_id": f"{client}{s}"} for s in range(0, 100, 30)]


def sessions(**until: float) -> list[dict]:
    return [SESSION | {"client_id": client, "from_ts": at(0), "to_ts": at(s)} for client, s in until.items()]


def reset(topic: str) -> dict:
    return {"ts": at(0), "consumer_group": "g", "client_id": "c1", "reset_offsets": [(topic, "b", 0, 5)]}


def ended(seconds: float, offset: int) -> dict:
    queue = {"topic": "%DLQ%g", "broker_name": "b", "queue_id": 0, "min_offset": 0, "max_offset": offset}
    return {"ts": at(seconds), "broker_name": "b", "broker_id": 0, "offsets": [queue]}


CASES: dict[str, tuple[dict[str, list[dict]], set[str]]] = {
    "offsets that moved": (
        {"offset_continuity": [BREAK | {"kind": "rewind"}], "server_request": [reset("T")]},
        {"offset_rewind", "offset_reset"},
    ),
    "a slave that stayed behind": (
        {"offset_continuity": [BREAK | {"kind": "stale", "broker_id": 1}]},
        {"stale_slave_offsets"},
    ),
    "a queue that did not advance while a member held it": (
        {"standstills": [STUCK], "queue_owner": [HELD]},
        {"stuck_queue"},
    ),
    "members that disagree": (
        {
            "rebalance": [*rebalanced("c1", "AVG"), *rebalanced("c2", "AVG_BY_CIRCLE")],
            "heartbeat": [*beats("c1", "T"), *beats("c2", "U")],
        },
        {"strategy_conflict", "subscription_conflict"},
    ),
    "a member that was lost": ({"members": sessions(c1=60, c2=300)}, {"consumer_lost"}),
    "a share that is not even": (
        {"allocation": [TAKEN | {"rebalance_ts": at(s), "record_id": f"r{s}"} for s in (0, 20, 40)]},
        {"uneven_allocation"},
    ),
    "queues without an owner": (
        {"members": sessions(c1=100), "rebalance": rebalanced("c1", "AVG")},
        {"orphan_queue", "idle_consumer"},
    ),
    "a broker that was gone": ({"outages": [OUTAGE], "pull_route": [ROUTE]}, {"broker_down"}),
    "a master that left the route": ({"pull_route": [ROUTE]}, {"failover_pull"}),
    "a group that lagged": (
        {"pull_route": [ROUTE | {"cause": "suggested", "route_broker_ids": [0, 1], "request_ts": at(1)}]},
        {"slave_pull"},
    ),
    "a slave that refuses": ({"pull": [PULL | {"request_ts": at(0), "response_code": 2}]}, {"slave_pull"}),
    "messages that came back": (
        {
            "consume": [
                CONSUMED | {"client_id": "c1", "ts": at(0)},
                CONSUMED | {"client_id": "c2", "ts": at(1)},
                CONSUMED | {"client_id": "c2", "ts": at(2), "status": "RECONSUME_LATER", "queue_offset": 6},
            ],
            "topic_stats": [ended(0, 5), ended(10, 7)],
        },
        {"duplicate_delivery", "retry_growth", "dead_letter"},
    ),
    "topics that changed": (
        {
            "topic_config": [
                CONFIG | {"ts": at(s), "read_queue_nums": n, "write_queue_nums": n} for s, n in ((0, 2), (9, 1))
            ],
            "offset_change": [
                QUEUE | {"source_name": "b-0", "broker_id": 0, "queue_id": 1, "to_ts": at(5), "new_offset": 1}
            ],
        },
        {"queue_count_changed", "orphan_offset_key"},
    ),
    "a file that was not whole": (
        {
            "quarantine": [
                {"path": "snapshots/b-0/1795228800000/topics.json", "line_number": 0, "detail_key": "", "code": "torn"}
            ]
        },
        {"torn_snapshot"},
    ),
    "a clock that is off": (
        {
            "clocks": [{"client_id": "c1", "skew_ms": 90_000, "matches": 9}],
            "offset_commit": [QUEUE | {"client_id": "c1", "ts": at(5), "kind": "UPDATE", "commit_offset": 1}],
        },
        {"clock_skew"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_function_is_called(case: str) -> None:
    silver, kinds = CASES[case]
    found = all_findings(evidence_of(**silver), LIMITS)
    assert set(found["kind"].to_list()) == kinds
    assert dict(found.schema) == SCHEMA


def test_what_a_broker_that_was_gone_cost() -> None:
    silver, _ = CASES["a broker that was gone"]
    found = all_findings(evidence_of(**silver), LIMITS).filter(kind="broker_down")
    assert "did not answer for 50 s; 1 pull of 1 group went to a slave instead." in found["summary"].item()


def test_the_recording_ends_when_the_recorder_says() -> None:
    evidence = evidence_of(members=sessions(c1=60, ahead=3_600))
    assert set(all_findings(evidence, LIMITS)["client_id"]) == {"c1"}
    assert len(all_findings(replace(evidence, recorded_until=at(90)), LIMITS)) == 0


DAY = at(0).replace(hour=0)
NEXT = DAY + dt.timedelta(days=1)


def one(kind: str, since: dt.datetime, until: dt.datetime, **place: str) -> pl.DataFrame:
    row = {"from_ts": since, "to_ts": until, "evidence": []} | place
    schema = {name: kind_of for name, kind_of in SCHEMA.items() if name in row}
    return finding(pl.DataFrame([row], schema), KINDS[kind], "c", severity="warning", summary=pl.lit("It was so."))


def hours(number: float) -> dt.timedelta:
    return dt.timedelta(hours=number)


def test_a_day_has_what_began_before_its_end_and_reaches_into_it() -> None:
    begun = pl.concat(
        [
            one("stuck_queue", DAY - hours(2), DAY - hours(1), topic="over"),
            one("stuck_queue", DAY - hours(2), DAY, topic="just reaches"),
            one("stuck_queue", NEXT - hours(1), NEXT + hours(1), topic="goes on"),
            one("stuck_queue", NEXT, NEXT + hours(1), topic="the next day's"),
        ]
    )
    found = finish(begun, DAY, NEXT, None, LOST_S)
    assert sorted(found["topic"]) == ["goes on", "just reaches"]
    assert found["day"].unique().to_list() == [DAY.date()]
    names = [name for name in SCHEMA if name not in HIDDEN]
    assert found.columns == ["day", *names[:-2], "follows_from", "evidence", "evidence_count"]


def test_a_day_knows_the_day_before_and_what_follows_from_it() -> None:
    earlier = one("strategy_conflict", DAY - hours(5), DAY - hours(0.5), consumer_group="g")
    conflict = one("strategy_conflict", DAY - hours(1), DAY + hours(1), consumer_group="g")
    orphan = one("orphan_queue", DAY, DAY + hours(1), consumer_group="g")
    found = finish(pl.concat([conflict, orphan]), DAY, NEXT, earlier, LOST_S)
    by_kind = {row["kind"]: row for row in found.to_dicts()}
    assert by_kind["strategy_conflict"]["finding_id"] == earlier["finding_id"].item()
    assert by_kind["strategy_conflict"]["from_ts"] == DAY - hours(5)
    assert by_kind["orphan_queue"]["follows_from"] == earlier["finding_id"].item()
    assert by_kind["orphan_queue"]["severity"] == "info"
    alone = finish(pl.concat([conflict, orphan]), DAY, NEXT, None, LOST_S)
    assert conflict["finding_id"].item() in alone["finding_id"].to_list()


def test_a_finding_may_follow_from_one_that_was_over_before_the_day() -> None:
    conflict = one("strategy_conflict", DAY - hours(1), DAY - dt.timedelta(seconds=10), consumer_group="g")
    orphan = one("orphan_queue", DAY, DAY + hours(1), consumer_group="g")
    (row,) = finish(pl.concat([conflict, orphan]), DAY, NEXT, none(), LOST_S).to_dicts()
    assert (row["kind"], row["follows_from"]) == ("orphan_queue", conflict["finding_id"].item())


def test_lost_before_midnight_and_known_after_it_is_a_finding_after_it() -> None:
    def is_of_day_from(seconds: float, kind: str, to: float | None) -> bool:
        row = {"finding_id": "f", "kind": kind, "from_ts": at(60), "to_ts": None if to is None else at(to)}
        return len(that_reach(pl.DataFrame([row], SCHEMA), at(seconds), LOST_S)) == 1

    assert is_of_day_from(75, "consumer_lost", 75), "it goes on"
    assert is_of_day_from(60 + LOST_S, "consumer_lost", 75), "it had not been silent for long enough before"
    assert is_of_day_from(60 + 2 * LOST_S, "consumer_lost", 75)
    assert not is_of_day_from(61 + 2 * LOST_S, "consumer_lost", 75)
    assert not is_of_day_from(60 + LOST_S, "stuck_queue", 75), "it was over"
    assert is_of_day_from(60, "stuck_queue", None)
    assert not is_of_day_from(61, "stuck_queue", None)
