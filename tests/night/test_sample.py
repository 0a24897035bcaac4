"""The sample recordings, judged: the figures that a replay of these nights must give."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import functions as F

from tests_shared import rows_of

ORDERS, BULK = "DefaultCluster", "grid-cluster"


def test_every_rebalance_of_every_strategy_agrees(night):
    found = night.table("gold.allocation", ORDERS).groupBy("strategy", "judgement").count()
    counts = {(r.strategy, r.judgement): r["count"] for r in found.collect()}
    assert counts == {
        ("AVG", "agree"): 1887,
        ("AVG_BY_CIRCLE", "agree"): 444,
        ("CONSISTENT_HASH", "agree"): 153,
        ("MACHINE_ROOM_NEARBY-AVG", "agree"): 61,
        ("CONFIG", "agree"): 50,
    }


def test_every_pull_goes_where_the_rule_says(night):
    pulls = night.table("gold.pull_route", ORDERS)
    assert Counter(r.judgement for r in pulls.collect()) == {"agree": 23671}
    elsewhere = pulls.where("actual_broker_id <> pull_from_which_node")
    assert elsewhere.count() == 225
    assert {r.cause for r in elsewhere.select("cause").distinct().collect()} == {"master_gone"}
    bulk = night.table("gold.pull_route", BULK)
    assert Counter(r.judgement for r in bulk.collect()) == {"agree": 6875}


@pytest.mark.parametrize(("cluster", "most"), [(ORDERS, 30), (BULK, 30)])
def test_no_determined_suggestion_differs(night, cluster, most):
    found = night.table("gold.slave_suggestion", cluster)
    counts = Counter(r.judgement for r in found.collect())
    assert counts["differ"] == 0
    assert counts["undetermined"] <= most
    assert counts["agree"] > 6000
    open_ones = found.where("judgement = 'undetermined'")
    assert open_ones.where("diff_min IS NULL OR diff_max IS NULL OR memory IS NULL").count() == 0
    assert open_ones.where("diff_min <= memory AND diff_max > memory").count() == counts["undetermined"]


def test_a_slave_of_5x_works_with_another_ratio_than_configured(night):
    brokers = night.table("silver.broker", BULK).where("broker_name = 'rmq-north'")
    configured = {r.broker_id: r.access_message_in_memory_max_ratio for r in brokers.collect()}
    assert configured == {0: 1, 1: 11}
    used = night.table("gold.slave_suggestion", BULK).where("broker_name = 'rmq-north'")
    assert {r.effective_ratio for r in used.where("broker_id = 1").collect()} == {1}


def test_offsets_break_where_they_were_moved(night):
    breaks = night.table("gold.offset_continuity", ORDERS)
    rewinds = breaks.where("kind = 'rewind'").groupBy("broker_name", "broker_id").count().collect()
    assert {(r.broker_name, r.broker_id): r["count"] for r in rewinds} == {
        ("broker-a", 0): 5,
        ("broker-a", 1): 5,
        ("broker-b", 0): 5,
        ("broker-b", 1): 4,
    }
    beyond = breaks.where("kind = 'beyond_max'").collect()
    assert {(r.broker_name, r.broker_id, r.queue_id, r.new_offset) for r in beyond} == {
        ("broker-a", 0, 0, 999999),
        ("broker-a", 1, 0, 999999),
    }
    assert {r.queue_max_offset for r in beyond} == {178}
    jumps = breaks.where("kind = 'jump' AND broker_id = 0").collect()
    assert {r.consumer_group for r in jumps} == {"reset-group"}
    assert len(jumps) == 8
    assert all(80 <= r.size <= 82 for r in jumps)
    assert night.table("gold.offset_continuity", BULK).count() == 0


def test_findings_are_those_that_happened(night):
    told = "kind IN ('offset_rewind', 'offset_jump', 'offset_beyond_max', 'failover_pull')"
    slow = "kind = 'slave_pull' AND severity <> 'info'"
    found = night.table("gold.finding", ORDERS).where(f"{told} OR {slow}").collect()
    kinds = Counter((r.kind, r.consumer_group, r.broker_name) for r in found)
    assert kinds == {
        ("offset_rewind", "reset-group", None): 1,
        ("offset_rewind", "reset-group", "broker-b"): 1,
        ("offset_jump", "reset-group", None): 1,
        ("offset_beyond_max", "reset-group", "broker-a"): 1,
        ("slave_pull", "bulk-group", "broker-a"): 1,
        ("failover_pull", None, "broker-a"): 1,
        ("failover_pull", None, "broker-b"): 1,
    }
    assert all(r.evidence for r in found)


def test_all_expectations_hold_and_no_row_is_lost(night):
    for cluster in (ORDERS, BULK):
        assert night.outcomes[cluster].failed_expectations == []
        assert night.outcomes[cluster].expectations > 200
        files = night.table("bronze.source_file", cluster)
        lost = files.where("rows_in <> rows_out + rows_quarantined + rows_duplicate")
        assert lost.count() == 0
        assert night.table("bronze.quarantine", cluster).count() == 0


def test_every_line_became_a_row(night):
    lines = rows_of("orders-4.9.7")
    files = night.table("bronze.source_file", ORDERS)
    found = {r.path: r.rows_out for r in files.where(F.col("path").endswith(".jsonl.gz")).collect()}
    known = {path: n for path, n in lines.items() if found.get(path)}
    # The recorder looked twice in one millisecond nowhere but where these counts say so.
    assert {path: n for path, n in known.items() if found[path] != n} == {}
    assert sum(known.values()) > 90_000
