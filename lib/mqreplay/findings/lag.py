"""Groups that do not consume what arrives, whoever holds their queues."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.evidence.lags.growing_lag import growing_lag
from mqreplay.evidence.offsets.queue_ends import with_age
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, one_or_none, places
from mqreplay.words.keys import GROUP_QUEUE


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups whose lag grew: without a known holder, without any offset, or while they advanced."""
    lags = growing_lag(
        evidence.standstills,
        evidence.held_standstills,
        evidence.advances,
        evidence.members,
        evidence.heartbeat,
        evidence.outages,
        limits.stuck_s,
    )
    still = lags.select(
        *GROUP_QUEUE, "from_ts", "to_ts", "waiting", never=pl.lit(False), refused_by=pl.lit(None, pl.String)
    )
    every = pl.concat([still, evidence.never_consumed.select(still.columns)])
    members, cluster, gap_s = evidence.members, evidence.cluster, limits.same_cause_gap_s
    # An operator who asks for the progress of a group alone gets none of its members.
    unknown = evidence.stated_groups.difference(members["consumer_group"])
    stated = (evidence.consume_stats, evidence.stated_groups)
    slower = with_age(evidence.falling_behind, *stated)
    behind = behind_findings(slower, members, cluster, gap_s, limits.behind_messages, unknown)
    return pl.concat([lag_findings(with_age(every, *stated), members, cluster, gap_s, unknown), behind])


LAG_GROWS = FindingKind(
    name="lag_grows",
    find=find,
    confidence=0.9,
    thresholds=(
        "findings.stuck_s",
        "findings.same_cause_gap_s",
        "findings.behind_s",
        "findings.behind_messages",
    ),
    needs=(Need("topic_stats"),),
    causes=(
        # Polls of clients are up to a minute apart.
        Cause("slow_listener", same=("consumer_group", "topic"), after_s=120, before_s=90),
        Cause("strategy_conflict", same=("consumer_group",)),
        Cause("subscription_conflict", same=("consumer_group",)),
        Cause("topic_unsubscribed", same=("consumer_group", "topic"), before_s=90),  # polls are a minute apart
        Cause("duplicate_client_id", same=("consumer_group",), after_s=150),
        # A slave that lacks the topic or the group serves nobody while the master is down.
        Cause("slave_config_drift", same=("broker_name", "topic"), after_s=120, critical=True),
        Cause("slave_config_drift", same=("broker_name", "consumer_group"), after_s=120, critical=True),
        Cause("pop_order_blocked", same=("consumer_group", "topic"), after_s=120),
        Cause("broker_down", same=("broker_name",), after_s=150),  # stale connections stay listed for 135 s
        Cause("slow_broker", same=("consumer_group", "topic"), before_s=90),
        Cause("slave_pull", same=("broker_name",), after_s=120, critical=True),
    ),
)
RATES = ("arrived", "consumed")  # messages


def lag_findings(
    lags: pl.DataFrame, members: pl.DataFrame, cluster: str, gap_s: int, unknown: Collection[str] = ()
) -> pl.DataFrame:
    """Return LAG_GROWS of groups that did not advance; ``members`` is the frame of membership.py.

    ``unknown``: groups whose members nothing shows.

    ``lags``: GROUP_QUEUE, from_ts, to_ts, waiting, never (no offset was ever stored), refused_by (the brokers that
    refuse its requests, as text). Spans of one group and topic that are ``gap_s`` seconds apart or less are one
    finding.
    """
    known = _merged(lags, members, ["consumer_group", "topic", "never"], gap_s)
    return finding(known.with_columns(_knows_members(unknown)), LAG_GROWS, cluster, severity="warning")


def behind_findings(
    spans: pl.DataFrame,
    members: pl.DataFrame,
    cluster: str,
    gap_s: int,
    least_messages: int,
    unknown: Collection[str] = (),
) -> pl.DataFrame:
    """Return LAG_GROWS of groups that advance too slowly, of growing_lag.py's frame."""
    seconds = (pl.col("to_ts").dt.epoch("ms") - pl.col("from_ts").dt.epoch("ms")) / 1000
    rates = (pl.col("arrived", "consumed") / seconds).name.suffix("_rate")
    grew = pl.col("waiting") - pl.col("lag_before")
    known = _merged(spans.with_columns(rates, grew=grew), members, ["consumer_group", "topic"], gap_s)
    valued = known.with_columns(*(pl.col(f"{name}_rate").round(1) for name in RATES), _knows_members(unknown))
    return finding(
        valued.filter(pl.col("grew") >= least_messages), LAG_GROWS, cluster, severity="warning", form="behind"
    )


def _knows_members(unknown: Collection[str]) -> pl.Expr:
    return (~pl.col("consumer_group").is_in(sorted(unknown))).alias("knows_members")


def _merged(rows: pl.DataFrame, members: pl.DataFrame, by: list[str], gap_s: int) -> pl.DataFrame:
    """Return a row for each group, topic and session, with its queues and who was connected."""
    sessions = with_session(rows, by, "from_ts", "to_ts", gap_s)
    sums = [name for name in ("grew", *(f"{name}_rate" for name in RATES)) if name in rows.columns]
    of_queue = sessions.group_by(*by, "session", "broker_name", "queue_id").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.col("waiting").max(),
        pl.col("refused_by").first() if "refused_by" in rows.columns else pl.lit(None, pl.String).alias("refused_by"),
        pl.col("age_s").max() if "age_s" in rows.columns else pl.lit(None, pl.Int64).alias("age_s"),
        pl.col(sums).max(),
    )
    merged = of_queue.group_by(*by, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        *places(text="{}/{}"),
        # The sum may not fit 64 bits: a file may hold any offset.
        pl.col("waiting").cast(pl.Int128).sum().alias("waiting"),
        pl.col("refused_by").first(),
        pl.col("age_s").max(),
        pl.col(sums).sum(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("silver.offset_change", *GROUP_QUEUE),
    )
    return merged.with_columns(_members_of(merged, members))


def _members_of(found: pl.DataFrame, members: pl.DataFrame) -> list[pl.Series]:
    """Return of each finding's group: ``present`` members in the second half, and when the last one left."""
    numbered = found.select("consumer_group", "from_ts", "to_ts").with_row_index("number")
    sessions = members.select("consumer_group", "client_id", pl.col("from_ts", "to_ts").name.suffix("_member"))
    met = numbered.join(sessions, "consumer_group")
    half = pl.col("from_ts") + (pl.col("to_ts") - pl.col("from_ts")) / 2
    present = (pl.col("from_ts_member") < pl.col("to_ts")) & (pl.col("to_ts_member") > half)
    counts = met.group_by("number").agg(
        pl.col("client_id").filter(present).n_unique().alias("present"),
        pl.col("to_ts_member").max().alias("left_ts"),
    )
    joined = numbered.join(counts, "number", how="left", maintain_order="left")
    return [joined["present"].fill_null(0), joined["left_ts"]]
