"""Groups that do not consume what arrives, whoever holds their queues."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.lags.growing_lag import growing_lag
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, one_or_none, whole_seconds


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
    still = lags.select(*KEY, "from_ts", "to_ts", "waiting", never=pl.lit(False), refused_by=pl.lit(None, pl.String))
    every = pl.concat([still, evidence.never_consumed.select(still.columns)])
    members, cluster, gap_s = evidence.members, evidence.cluster, limits.same_cause_gap_s
    behind = behind_findings(evidence.falling_behind, members, cluster, gap_s, limits.behind_messages)
    return pl.concat([lag_findings(every, members, cluster, gap_s), behind])


LAG_GROWS = FindingKind(
    name="lag_grows",
    find=find,
    meaning=(
        "Messages arrive in a topic, and the group does not advance: its consumers hang or refuse every message, its"
        " last member left, nobody reads these queues, or the brokers refuse its requests. stuck_queue says the same of"
        " queues whose holder is known; this kind covers all others: POP and gRPC clients, pull consumers that report"
        " no queues, groups without members, groups that never stored an offset. It also covers groups that advance,"
        " but for minutes more slowly than messages arrive. With POP an offset advances when messages are handed out,"
        " so it also stands still where consumers keep all that they got."
    ),
    rule="No commit and no copy of the master's file advanced the offset of a queue for longer than stuck_s seconds,"
    " while messages arrived and its broker answered. The group advanced on the topic before or after, or had a member."
    " Or the lag of a queue grew steadily for behind_s seconds although the offset advanced, by behind_messages in all"
    " queues, was a minute of what arrives, and the group did not work off half of it later."
    " Offsets of groups that nobody uses any more do not count, nor do those of broadcasting groups.",
    advice=(
        "Check who is connected: `mqadmin consumerConnection -g GROUP -n NAMESRV` (clients behind a proxy: ask the"
        " proxy). If members are connected, look for a listener that hangs or fails: `jstack PID` on their machines. If"
        " nobody is, start the application, or remove a group that is no longer used: `mqadmin deleteSubGroup`."
        " If the group advances too slowly, `mqreplay advise GROUP` says how many consumers keep up. Progress: `mqadmin"
        " consumerProgress -g GROUP -n NAMESRV`."
    ),
    confidence=0.9,
    thresholds=(
        "findings.stuck_s",
        "findings.same_cause_gap_s",
        "findings.behind_s",
        "findings.behind_messages",
    ),
    example=(
        "Group pay-push did not advance on payments in broker-a/0, broker-b/0 for 262 s while messages arrived; 1132"
        " messages waited. The brokers list no member of it."
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
QUEUES_NAMED = 16  # queues in a summary; more are counted
RATES = ("arrived", "consumed")  # messages


def lag_findings(lags: pl.DataFrame, members: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return LAG_GROWS of groups that did not advance; ``members`` is the frame of membership.py.

    ``lags``: KEY, from_ts, to_ts, waiting, never (no offset was ever stored), refused_by (the brokers that refuse its
    requests, as text). Spans of one group and topic that are ``gap_s`` seconds apart or less are one finding.
    """
    known = _merged(lags, members, ["consumer_group", "topic", "never"], gap_s)
    did = pl.when("never").then(pl.lit(" never consumed ")).otherwise(pl.lit(" did not advance on "))
    refused = pl.format(" It has no stored offset: POP needs timerWheelEnable=true on {}.", "refused_by")
    summary = pl.concat_str(
        pl.format("Group {}", "consumer_group"),
        did,
        pl.format("{} in {}", "topic", "places"),
        pl.lit(" for "),
        whole_seconds("from_ts", "to_ts"),
        pl.lit(" while messages arrived; "),
        counted("waiting", "message"),
        pl.lit(" waited. "),
        _who(),
        pl.when("never").then(refused.fill_null(pl.lit(" It has no stored offset."))).otherwise(pl.lit("")),
    )
    return finding(known, LAG_GROWS, cluster, severity="warning", summary=summary)


def behind_findings(
    spans: pl.DataFrame, members: pl.DataFrame, cluster: str, gap_s: int, least_messages: int
) -> pl.DataFrame:
    """Return LAG_GROWS of groups that advance too slowly, of falling_behind.py's frame."""
    seconds = (pl.col("to_ts").dt.epoch("ms") - pl.col("from_ts").dt.epoch("ms")) / 1000
    rates = (pl.col("arrived", "consumed") / seconds).name.suffix("_rate")
    grew = pl.col("waiting") - pl.col("lag_before")
    known = _merged(spans.with_columns(rates, grew=grew), members, ["consumer_group", "topic"], gap_s)
    summary = pl.concat_str(
        pl.format("Group {} fell behind on {} in {} for ", "consumer_group", "topic", "places"),
        whole_seconds("from_ts", "to_ts"),
        pl.format(": {}/s arrived, {}/s were consumed; ", *(pl.col(f"{name}_rate").round(1) for name in RATES)),
        counted("waiting", "message"),
        pl.lit(" waited. "),
        _who(),
    )
    return finding(
        known.filter(pl.col("grew") >= least_messages), LAG_GROWS, cluster, severity="warning", summary=summary
    )


def _merged(rows: pl.DataFrame, members: pl.DataFrame, by: list[str], gap_s: int) -> pl.DataFrame:
    """Return a row for each group, topic and session, with its queues and who was connected."""
    sessions = with_session(rows, by, "from_ts", "to_ts", gap_s)
    sums = [name for name in ("grew", *(f"{name}_rate" for name in RATES)) if name in rows.columns]
    of_queue = sessions.group_by(*by, "session", "broker_name", "queue_id").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.col("waiting").max(),
        pl.col("refused_by").first() if "refused_by" in rows.columns else pl.lit(None, pl.String).alias("refused_by"),
        pl.col(sums).max(),
    )
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    merged = of_queue.group_by(*by, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        place.sort().implode().list.head(QUEUES_NAMED).list.join(", ").alias("places"),
        (pl.len().cast(pl.Int64) - QUEUES_NAMED).alias("unnamed"),
        # The sum may not fit 64 bits: a file may hold any offset.
        pl.col("waiting").cast(pl.Int128).sum().alias("waiting"),
        pl.col("refused_by").first(),
        pl.col(sums).sum(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("silver.offset_change", *KEY),
    )
    more = pl.when(pl.col("unnamed") > 0).then(pl.lit(" and ") + counted("unnamed", "more queue"))
    return merged.with_columns(pl.col("places") + more.fill_null(""), *_members_of(merged, members))


def _members_of(found: pl.DataFrame, members: pl.DataFrame) -> list[pl.Series]:
    """Return of each finding's group: ``present`` members in the second half, ``ever``, and when the last one left."""
    numbered = found.select("consumer_group", "from_ts", "to_ts").with_row_index("number")
    sessions = members.select("consumer_group", "client_id", pl.col("from_ts", "to_ts").name.suffix("_member"))
    met = numbered.join(sessions, "consumer_group")
    half = pl.col("from_ts") + (pl.col("to_ts") - pl.col("from_ts")) / 2
    present = (pl.col("from_ts_member") < pl.col("to_ts")) & (pl.col("to_ts_member") > half)
    counts = met.group_by("number").agg(
        pl.col("client_id").filter(present).n_unique().alias("present"),
        pl.len().alias("ever"),
        pl.col("to_ts_member").max().alias("left_ts"),
    )
    joined = numbered.join(counts, "number", how="left", maintain_order="left")
    return [joined["present"].fill_null(0), joined["ever"].fill_null(0), joined["left_ts"]]


def _who() -> pl.Expr:
    """Return who was connected, as a sentence."""
    stayed = counted("present", "member") + pl.lit(" stayed connected.")
    left = pl.format("Its last member left at {} UTC.", pl.col("left_ts").dt.strftime("%H:%M:%S"))
    return (
        pl.when(pl.col("present") > 0)
        .then(stayed)
        .when(pl.col("ever") > 0)
        .then(left)
        .otherwise(pl.lit("The brokers list no member of it."))
    )
