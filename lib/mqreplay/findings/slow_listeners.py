"""Queues whose messages the client holds and does not finish, and queues whose pulls the broker answers too slowly."""

from __future__ import annotations

import polars as pl

from mqreplay.decisions.flow_control import PULL_SOURCE, STALLED_BY_BROKER, STALLED_BY_LISTENER
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence_rows, finding, one_or_none, places, row_key
from mqreplay.words.keys import GROUP_QUEUE

FLOW_CONTROL_TABLE = "gold.flow_control"
FRAMES_NAMED = 3
STALL = ("consumer_group", "topic", "broker_name", "queue_id", "client_id", "stalled_by", "stalled_since_ts")


def stalls(flow: pl.DataFrame, listener_frames: pl.DataFrame) -> pl.DataFrame:
    """Return the stalls in rows of gold.flow_control: one row for each queue and client, from first to last sight.

    Columns: STALL, from_ts, to_ts, cached, waiting, control, is_blocked, head_offset, keys, frames.
    ``listener_frames``: the frames of each client. A queue that one client
    holds messages of is not the broker's fault meanwhile.
    """
    found = flow.filter(pl.col("stalled_by").is_not_null()).sort("ts")
    each = found.group_by(STALL, maintain_order=True).agg(
        # A pull shows the stall until the end of the standstill.
        pl.when(pl.col("source") == PULL_SOURCE).then("next_ts").otherwise("ts").max().alias("to_ts"),
        pl.col("last_offset").max(),
        pl.col("cached_msgs").max().alias("cached"),
        pl.col("waiting").max(),
        pl.col("flow_control").drop_nulls().first().alias("control"),
        # One observation of a full cache shows no head that stays; a pull that is past a message does.
        (
            (pl.col("head_offset").n_unique() == 1)
            & ((pl.len() > 1) | (pl.col("source") == PULL_SOURCE).any() | _is_by_one_answer().any())
        ).alias("is_blocked"),
        one_or_none("head_offset"),
        row_key("client_id", *GROUP_QUEUE, "ts").alias("keys"),
    )
    spans = each.with_columns(pl.col("stalled_since_ts").alias("from_ts")).with_row_index("number")
    by_listener = spans.filter(pl.col("stalled_by") == STALLED_BY_LISTENER).select(*GROUP_QUEUE, "from_ts", "to_ts")
    both = spans.filter(pl.col("stalled_by") == STALLED_BY_BROKER).join(by_listener, GROUP_QUEUE, suffix="_held")
    held = both.filter((pl.col("from_ts") <= pl.col("to_ts_held")) & (pl.col("from_ts_held") <= pl.col("to_ts")))
    known = spans.join(held, "number", how="anti").drop("number")
    return known.join(listener_frames, ["consumer_group", "client_id"], how="left")


def _is_by_one_answer() -> pl.Expr:
    """Return whether one answer of the client shows the stall: it has the time of the last finished message."""
    return pl.col("stalled_since_ts") == pl.col("last_consume_ts")


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the listeners and the brokers that stalled a queue."""
    found = stalls(evidence.stalled_flow, evidence.listener_frames)
    cluster, gap_s = evidence.cluster, limits.same_cause_gap_s
    return pl.concat([slow_listeners(found, cluster, gap_s), slow_brokers(found, cluster, gap_s)])


SLOW_LISTENER = FindingKind(
    name="slow_listener",
    find=find,
    confidence=0.95,
    needs=(Need("assignments"),),
    thresholds=("findings.stuck_s", "findings.same_cause_gap_s"),
)
SLOW_BROKER = FindingKind(
    name="slow_broker",
    find=find,
    confidence=0.8,
    needs=(Need("assignments"), Need("topic_stats", or_polled=("consume_stats",))),
    thresholds=("findings.stuck_s", "findings.same_cause_gap_s"),
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=120),
        Cause("pull_refused", same=("broker_name",)),
        Cause("slave_pull", same=("broker_name",), after_s=120),
    ),
)


def _merged(found: pl.DataFrame, by: str, gap_s: int) -> pl.DataFrame:
    """Return the stalls of a group and topic with at most ``gap_s`` seconds between them as one."""
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    group_topic = ["consumer_group", "topic"]
    sessions = with_session(found.filter(pl.col("stalled_by") == by), group_topic, "from_ts", "to_ts", gap_s)
    return sessions.group_by(*group_topic, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        *places(None, text="{}/{}"),
        place.n_unique().alias("queues"),
        pl.col("cached").max(),
        pl.col("last_offset").max(),
        pl.col("waiting").max(),
        pl.col("control").drop_nulls().unique().sort().implode().alias("controls"),
        pl.col("is_blocked").any(),
        pl.col("frames").explode().drop_nulls().unique().sort().head(FRAMES_NAMED).implode(),
        *(one_or_none(name) for name in ("broker_name", "queue_id", "client_id", "head_offset")),
        evidence_rows(FLOW_CONTROL_TABLE, pl.col("keys").explode().unique().sort().implode()),
    )


def slow_listeners(found: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return SLOW_LISTENER, of the frame of `stalls`."""
    merged = _merged(found, STALLED_BY_LISTENER, gap_s)
    valued = merged.with_columns(
        pl.when(pl.col("queues") == 1).then("head_offset").alias("stuck_offset"), has_several=pl.col("queues") > 1
    )
    return finding(valued, SLOW_LISTENER, cluster, severity="warning")


def slow_brokers(found: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return SLOW_BROKER, of the frame of `stalls`."""
    return finding(_merged(found, STALLED_BY_BROKER, gap_s), SLOW_BROKER, cluster, severity="warning")
