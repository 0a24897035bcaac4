"""Slaves whose copies of the offsets or of the configuration stayed behind: SlaveSynchronize no longer copies them."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.frame_arrays import total
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import (
    evidence,
    evidence_rows,
    finding,
    first_of,
    none,
    one_or_none,
    row_key,
    whole_seconds,
)
from mqreplay.words.keys import BROKER


def find_stale(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the slaves that no longer copy the offsets of their master."""
    return stale_slave_offsets(evidence.offset_continuity, evidence.cluster)


def find_drift(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the slaves that have another configuration than their master."""
    return config_drift(evidence.config_drift, evidence.outages, evidence.cluster, limits.same_cause_gap_s)


STALE_SLAVE_OFFSETS = FindingKind(
    name="stale_slave_offsets",
    find=find_stale,
    confidence=0.9,
    needs=(Need("consumer_offset"),),
    thresholds=("findings.stale_slave_s",),
    causes=(Cause("broker_down", same=("broker_name",), after_s=120, before_s=60),),
    ends_after="findings.stale_slave_s",
)
SLAVE_CONFIG_DRIFT = FindingKind(
    name="slave_config_drift",
    find=find_drift,
    confidence=0.9,
    needs=(Need("topics"), Need("subscription_groups")),
    thresholds=("findings.config_drift_s", "findings.same_cause_gap_s"),
    ends_after="findings.config_drift_s",
)
ITEMS_NAMED = 5  # topics and groups in a summary; more are counted
COPIED_QUEUE = (*BROKER, "topic", "consumer_group", "queue_id")


def stale_slave_offsets(continuity: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return one finding a slave that kept offsets below all that its master held.

    ``continuity`` is gold.offset_continuity.
    """
    stale = continuity.filter(pl.col("kind") == "stale").sort(pl.col("to_ts") - pl.col("from_ts"), "to_ts")
    longest = stale.group_by(BROKER).agg(pl.col("from_ts", "to_ts").last().name.prefix("longest_"))
    of_copy = stale.group_by(*COPIED_QUEUE).agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.col("size").max().alias("lacks"),
        row_key(*COPIED_QUEUE, "kind", "to_ts").unique().alias("keys"),
    )
    found = of_copy.group_by(*BROKER).agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.len().alias("queues"),
        pl.col("consumer_group").drop_nulls().n_unique().alias("groups"),
        total("lacks").alias("messages"),
        evidence_rows("gold.offset_continuity", pl.col("keys").explode().sort().implode()),
    )
    longest_s = whole_seconds("longest_from_ts", "longest_to_ts").alias("longest_s")
    rows = found.join(longest, BROKER, maintain_order="left").with_columns(longest_s)
    return finding(rows, STALE_SLAVE_OFFSETS, cluster, severity="warning")


def config_drift(drift: pl.DataFrame, outages: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return SLAVE_CONFIG_DRIFT, one finding a slave and time; drifts ``gap_s`` seconds apart are one.

    ``drift`` is the frame of slave_configs.py, ``outages`` that of broker_outages.py.
    """
    if drift.is_empty():
        return none()
    of_master = outages.filter(pl.col("broker_id") == 0).select("broker_name", pl.col("from_ts").alias("down_ts"))
    went = drift.with_row_index("number").join(of_master, "broker_name")
    meanwhile = (pl.col("down_ts") >= pl.col("from_ts")) & (pl.col("down_ts") < pl.col("until_ts")).fill_null(True)
    down = went.filter(meanwhile).group_by("number").agg(pl.col("down_ts").min())
    each = drift.with_row_index("number").join(down, "number", how="left")
    rows = (
        with_session(each, BROKER, "from_ts", "to_ts", gap_s)
        .group_by(*BROKER, "session")
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col("down_ts").min(),
            *[one_or_none(name) for name in ("topic", "consumer_group")],
            _items(pl.col("differs").is_null()).alias("lacked"),
            _items(pl.col("differs").is_not_null()).alias("others"),
            evidence("silver.topic_config", "source_name", "topic", "ts").alias("of_topics"),
            evidence("silver.subscription_group", "source_name", "consumer_group", "ts").alias("of_groups"),
        )
    )
    # A row is of one of the two tables: its key in the other one has no name.
    of_table = {"of_topics": "topic", "of_groups": "consumer_group"}
    own = [pl.col(name).list.filter(pl.element().struct.field(key).is_not_null()) for name, key in of_table.items()]
    rows = rows.with_columns(pl.concat_list(own).alias("evidence")).drop(*of_table)
    is_down = pl.col("down_ts").is_not_null()
    severity = pl.when(is_down).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    named = rows.with_columns(*first_of("lacked", ITEMS_NAMED), *first_of("others", ITEMS_NAMED))
    return finding(named, SLAVE_CONFIG_DRIFT, cluster, severity=severity)


def _items(which: pl.Expr) -> pl.Expr:
    """Return an aggregate: topics and groups, in the order of their names as the summary has them."""
    item = pl.element().struct
    name = pl.coalesce(pl.format("topic {}", item.field("topic")), pl.format("group {}", item.field("consumer_group")))
    order = pl.concat_str(name, pl.format(" ({})", item.field("differs")), ignore_nulls=True)
    items = pl.struct("topic", "consumer_group", "differs").filter(which).unique().implode()
    return items.list.eval(pl.element().sort_by(order))
