"""gold.replay_gap: decisions that could not be judged, and the missing evidence."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection, Mapping

import polars as pl

from mqreplay.evidence.gap_rows import GAP, PLACE
from mqreplay.evidence_advice import EVIDENCE, MODE_KINDS, Mode, all_ways, easier_kind, label_of, mode_of

# A gold table, and a kind of file (decode/kinds.py) that its judgement needs.
NEEDED = (
    ("gold.allocation", "rebalance_log"),
    ("gold.pull_route", "pull_log"),
    ("gold.pull_route", "routes"),
    ("gold.slave_suggestion", "pull_log"),
    ("gold.slave_suggestion", "broker_runtime"),
    ("gold.slave_suggestion", "brokers"),
    ("gold.slave_suggestion", "subscription_groups"),
    ("gold.offset_continuity", "consumer_offset"),
    ("gold.offset_continuity", "offset_commits"),
    ("gold.offset_continuity", "server_requests"),
    ("gold.queue_owner", "assignments"),
    ("gold.queue_owner", "heartbeats"),
    ("gold.group_status", "offset_commits"),
    ("gold.group_status", "pull_log"),
    ("gold.failover_exposure", "consumer_offset"),
    ("gold.failover_exposure", "broker_runtime"),
    ("gold.delivery_audit", "consume_log"),
    ("gold.delivery_audit", "produce_log"),
)
# By decision and kind: alternatives that the recorder writes; one is enough if it polled the cluster.
ENDS = ("topic_stats", "consume_stats")
POLLED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "gold.allocation": {"rebalance_log": ("assignments",)},
    "gold.queue_owner": {"heartbeats": ("consumer_lists",)},
    "gold.group_status": {"offset_commits": ("consumer_offset",), "pull_log": ENDS},
    "finding consumer_lost": {"heartbeats": ("consumer_lists",)},
    "finding strategy_conflict": {"rebalance_log": ("assignments",)},
    "finding subscription_conflict": {"heartbeats": ("assignments", "consumer_connections")},
    "finding stuck_queue": {"pull_log": ENDS},
}
# The same for what clients recorded.
OF_CLIENTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    f"finding {name}": {"assignments": ("rebalance_log", "pull_log")}
    for name in ("orphan_queue", "double_owned_queue", "idle_consumer")
}
KEY = ("decision", "evidence", "day", *PLACE, "reason")


def missing_kinds(
    day: dt.date,
    missing: Collection[str],
    finding_needs: Mapping[str, Collection[str]],
    polled: bool = False,
) -> pl.DataFrame:
    """Return the gaps (columns of GAP) for missing kinds of files in the recording of ``day``.

    ``missing`` are these kinds. If the recorder ``polled`` the cluster, its polls replace some of them.
    ``finding_needs`` maps the name of each kind of finding to the kinds of files that it needs.
    """
    mode = "network" if polled else mode_of({*MODE_KINDS} - set(missing))
    of_findings = ((f"finding {name}", kind) for name, kinds in finding_needs.items() for kind in kinds)
    rows = [
        {
            "day": day,
            "decision": decision,
            "evidence": kind,
            "decisions": 0,
            "reason": _not_recorded(decision, kind, mode, missing),
        }
        for decision, kind in (*NEEDED, *of_findings)
        if kind in missing and not _stood_in(decision, kind, missing, polled)
    ]
    return pl.DataFrame(rows, GAP)


def lacking(missing: Collection[str], pulls: pl.DataFrame) -> set[str]:
    """Return the kinds of files that are missing, with pull_log if only answers to pulls were recorded.

    Clients' logs have some answers. ``pulls`` counts answers and requests of each shard.
    """
    counts = pulls.sum().row(0, named=True)
    only_answers = counts["answers"] > 0 and counts["requests"] == 0
    return {*missing, *(["pull_log"] if only_answers else [])}


def _stood_in(decision: str, kind: str, missing: Collection[str], polled: bool) -> bool:
    """Return whether another recorded kind replaces a kind."""
    others = OF_CLIENTS.get(decision, {}).get(kind, ())
    if polled:
        others += POLLED.get(decision, {}).get(kind, ())
    return any(other not in missing for other in others)


def _not_recorded(decision: str, kind: str, mode: Mode, missing: Collection[str]) -> str:
    kind = easier_kind(decision, kind, EVIDENCE.keys() - set(missing))
    return f"no record of {label_of(kind)}. Next time: {all_ways(kind, mode)}"


def undetermined_of_shard(decision: str, rows: pl.DataFrame, instant: str) -> pl.DataFrame:
    """Return the gaps (columns of GAP) of undetermined rows of the gold table ``decision``.

    A gap is for a group, topic, broker name and reason, with numbers replaced by N. ``instant`` is the column of the
    rows' instant. ``rows`` are any part of the table.
    """
    open_rows = rows.filter(pl.col("judgement") == "undetermined")
    if "broker_name" not in rows.columns:
        open_rows = open_rows.with_columns(pl.lit(None, pl.String).alias("broker_name"))
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
