"""Rows of a gold table with a judgement: written by the task, and counted for gold.judgement and gold.replay_gap."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mqreplay.decisions.judgement import judgements_of_shard
from mqreplay.decisions.replay_gap import undetermined_of_shard
from mqreplay.engines.passes import GoldRows

# The instant of a row by table.
JUDGED = {
    "gold.allocation": "rebalance_ts",
    "gold.pull_route": "request_ts",
    "gold.slave_suggestion": "request_ts",
    "gold.queue_start": "request_ts",
    "gold.pull_answer": "request_ts",
    "gold.failover_step": "ts",
    "gold.flow_control": "ts",
    "gold.committed_offset": "ts",
    "gold.queue_lock": "ts",
    "gold.send_attempt": "request_ts",
    "gold.retried_message": "sent_ts",
    "gold.rebalance_round": "from_ts",
    "gold.replication": "ts",
    "gold.rebalance_step": "ts",
    "gold.slave_copy": "ts",
    "gold.slave_sync": "ts",
    "gold.delay_progress": "ts",
    "gold.listed_route": "ts",
    "gold.pull_batch": "request_ts",
    "gold.pop_receipt": "pop_ts",
    "gold.pop_assignment": "ts",
}


@dataclass(frozen=True)
class JudgedRows:
    """The number of decisions by judgement and reason, and the gaps of undetermined ones."""

    judgements: pl.DataFrame
    gaps: pl.DataFrame


def add_judged(gold: GoldRows, table: str, rows: pl.DataFrame) -> JudgedRows:
    """Add the rows to a gold table, and return what they count."""
    gold.add(table, rows)
    return counted_rows(table, rows)


def counted_rows(table: str, rows: pl.DataFrame) -> JudgedRows:
    """Return what the rows of a gold table count."""
    return JudgedRows(judgements_of_shard(table, rows), undetermined_of_shard(table, rows, JUDGED[table]))
