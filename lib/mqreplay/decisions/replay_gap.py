"""gold.replay_gap: decisions that could not be judged, and the missing evidence."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection, Mapping

import polars as pl

from mqreplay.evidence.gap_rows import GAP, PLACE
from mqreplay.evidence_advice import EVIDENCE, MODE_KINDS, Mode, Need, all_ways, label_of, mode_of

ENDS = ("topic_stats", "consume_stats")
# What the judgement of a gold table needs.
NEEDED: Mapping[str, tuple[Need, ...]] = {
    "gold.allocation": (Need("rebalance_log", or_polled=("assignments",)),),
    "gold.pull_route": (Need("pull_log"), Need("routes")),
    "gold.slave_suggestion": (
        Need("pull_log"),
        Need("broker_runtime"),
        Need("brokers"),
        Need("subscription_groups"),
    ),
    "gold.pull_answer": (Need("pull_log"), Need("topics"), Need("subscription_groups")),
    "gold.send_attempt": (Need("sends"), Need("routes")),
    "gold.queue_start": (Need("offset_commits"), Need("pull_log")),
    "gold.flow_control": (Need("assignments"),),
    "gold.offset_continuity": (Need("consumer_offset"), Need("offset_commits"), Need("server_requests")),
    "gold.queue_owner": (Need("assignments"), Need("heartbeats", or_polled=("consumer_lists",))),
    "gold.group_status": (
        Need("offset_commits", or_polled=("consumer_offset",), easier="consumer_offset"),
        Need("pull_log", or_polled=ENDS, easier="topic_stats"),
    ),
    "gold.pull_batch": (Need("pull_log"), Need("broker_runtime"), Need("brokers")),
    "gold.replication": (Need("broker_runtime"), Need("brokers")),
    "gold.slave_copy": (Need("topics"), Need("subscription_groups"), Need("broker_runtime")),
    "gold.rebalance_step": (Need("assignments"), Need("rebalance_log", or_polled=("assignments",))),
    "gold.listed_route": (Need("routes"), Need("topics")),
    "gold.failover_exposure": (Need("consumer_offset"), Need("broker_runtime")),
    "gold.failover_step": (Need("broker_runtime"), Need("routes")),
    "gold.delivery_audit": tuple(Need(log, or_recorded=("sends",)) for log in ("consume_log", "produce_log")),
    "gold.retried_message": (Need("consume_log"),),
    "gold.committed_offset": (Need("consume_log"), Need("offset_commits")),
}
KEY = ("decision", "evidence", "day", *PLACE, "reason")


def missing_kinds(
    day: dt.date,
    missing: Collection[str],
    finding_needs: Mapping[str, Collection[Need]],
    polled: bool = False,
) -> pl.DataFrame:
    """Return the gaps (columns of GAP) for missing kinds of files in the recording of ``day``.

    ``missing`` are these kinds. If the recorder ``polled`` the cluster, its polls replace some of them.
    ``finding_needs`` maps the name of each kind of finding to what it needs.
    """
    mode = "network" if polled else mode_of({*MODE_KINDS} - set(missing))
    needed = {**NEEDED, **{f"finding {name}": needs for name, needs in finding_needs.items()}}
    rows = [
        {
            "day": day,
            "decision": decision,
            "evidence": need.kind,
            "decisions": 0,
            "reason": _not_recorded(need, mode, missing),
        }
        for decision, needs in needed.items()
        for need in needs
        if need.kind in missing and not need.is_replaced_by_other_kind(missing, polled)
    ]
    return pl.DataFrame(rows, GAP)


def lacking(missing: Collection[str], pulls: pl.DataFrame) -> set[str]:
    """Return the kinds of files that are missing, with pull_log if only answers to pulls were recorded.

    Clients' logs have some answers. ``pulls`` counts answers and requests of each shard.
    """
    counts = pulls.sum().row(0, named=True)
    only_answers = counts["answers"] > 0 and counts["requests"] == 0
    return {*missing, *(["pull_log"] if only_answers else [])}


def next_time(decision: str, kind: str, recorded: Collection[str]) -> str:
    """Return the kind to record next time, so that the gold table is no longer undetermined for lack of ``kind``.

    >>> next_time("gold.group_status", "pull_log", {"routes"}), next_time("gold.pull_route", "pull_log", set())
    ('topic_stats', 'pull_log')
    """
    return next((need.next_time(recorded) for need in NEEDED.get(decision, ()) if need.kind == kind), kind)


def _not_recorded(need: Need, mode: Mode, missing: Collection[str]) -> str:
    kind = need.next_time(EVIDENCE.keys() - set(missing))
    ways = all_ways(kind, mode)
    return f"no record of {label_of(kind)}" + (f". Next time: {ways}" if ways else "")


def undetermined_of_shard(decision: str, rows: pl.DataFrame, instant: str) -> pl.DataFrame:
    """Return the gaps (columns of GAP) of undetermined rows of the gold table ``decision``.

    A gap is for a group, topic, broker name and reason, with numbers replaced by N. ``instant`` is the column of the
    rows' instant. ``rows`` are any part of the table.
    """
    open_rows = rows.filter(pl.col("judgement") == "undetermined")
    unknown = [pl.lit(None, pl.String).alias(name) for name in PLACE if name not in rows.columns]
    open_rows = open_rows.with_columns(unknown)
    gaps = open_rows.group_by("day", *PLACE, pl.col("reason").str.replace_all("[0-9]+", "N")).agg(
        pl.col(instant).min().alias("from_ts"),
        pl.col(instant).max().alias("to_ts"),
        pl.len().alias("decisions"),
    )
    named = gaps.with_columns(pl.lit(decision).alias("decision"), pl.lit("undetermined").alias("evidence"))
    return named.select([pl.col(name).cast(kind) for name, kind in GAP.items()])


def replay_gap(gaps: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return the rows of gold.replay_gap: all gaps (columns of GAP), merged by KEY."""
    merged = gaps.group_by(KEY).agg(pl.col("from_ts").min(), pl.col("to_ts").max(), pl.col("decisions").sum())
    ids = [_gap_id(cluster, key) for key in merged.select(KEY).rows()]
    return merged.select("day", pl.Series("gap_id", ids, pl.String), *[name for name in GAP if name != "day"])


def _gap_id(cluster: str, key: tuple[object, ...]) -> str:
    """Return the id of a gap, which is the same in every replay of the night."""
    parts = [cluster, *("" if value is None else str(value) for value in key)]
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
