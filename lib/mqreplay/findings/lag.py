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
    """Return the groups whose lag grew on queues without a known holder."""
    lags = growing_lag(
        evidence.standstills,
        evidence.held_standstills,
        evidence.advances,
        evidence.members,
        evidence.heartbeat,
        evidence.outages,
        limits.stuck_s,
    )
    return lag_findings(lags, evidence.members, evidence.cluster, limits.same_cause_gap_s)


LAG_GROWS = FindingKind(
    name="lag_grows",
    find=find,
    meaning=(
        "Messages arrive in a topic, and the group does not advance: its consumers hang or refuse every message, its"
        " last member left, or nobody reads these queues. stuck_queue says the same of queues whose holder is known;"
        " this kind covers all others: POP and gRPC clients, pull consumers that report no queues, groups without"
        " members. With POP an offset advances when messages are handed out, so it also stands still where consumers"
        " keep all that they got."
    ),
    rule="No commit and no copy of the master's file advanced the offset of a queue for longer than stuck_s seconds,"
    " while messages arrived and its broker answered. The group advanced on the topic before or after, or had a member."
    " Offsets of groups that nobody uses any more do not count, nor do those of broadcasting groups.",
    advice=(
        "Check who is connected: `mqadmin consumerConnection -g GROUP -n NAMESRV` (clients behind a proxy: ask the"
        " proxy). If members are connected, look for a listener that hangs or fails: `jstack PID` on their machines. If"
        " nobody is, start the application, or remove a group that is no longer used: `mqadmin deleteSubGroup`."
        " Progress: `mqadmin consumerProgress -g GROUP -n NAMESRV`."
    ),
    confidence=0.9,
    thresholds=("findings.stuck_s", "findings.same_cause_gap_s"),
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
        Cause("duplicate_client_id", same=("consumer_group",), after_s=150),
        # A slave that lacks the topic or the group serves nobody while the master is down.
        Cause("slave_config_drift", same=("broker_name", "topic"), after_s=120, critical=True),
        Cause("slave_config_drift", same=("broker_name", "consumer_group"), after_s=120, critical=True),
        Cause("pop_order_blocked", same=("consumer_group", "topic"), after_s=120),
        Cause("broker_down", same=("broker_name",), after_s=120),
        Cause("slow_broker", same=("consumer_group", "topic"), before_s=90),
        Cause("slave_pull", same=("broker_name",), after_s=120, critical=True),
    ),
)
QUEUES_NAMED = 16  # queues in a summary; more are counted


def lag_findings(lags: pl.DataFrame, members: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return LAG_GROWS, of growing_lag.py's frame; ``members`` is the frame of membership.py.

    Spans of one group and topic that are ``gap_s`` seconds apart or less are one finding.
    """
    by = ["consumer_group", "topic"]
    sessions = with_session(lags, by, "from_ts", "to_ts", gap_s)
    of_queue = sessions.group_by(*by, "session", "broker_name", "queue_id").agg(
        pl.col("from_ts").min(), pl.col("to_ts").max(), pl.col("waiting").max()
    )
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    merged = of_queue.group_by(*by, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        place.sort().implode().list.head(QUEUES_NAMED).list.join(", ").alias("places"),
        (pl.len().cast(pl.Int64) - QUEUES_NAMED).alias("unnamed"),
        # The sum may not fit 64 bits: a file may hold any offset.
        pl.col("waiting").cast(pl.Int128).sum().alias("waiting"),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("silver.offset_change", *KEY),
    )
    known = merged.with_columns(_members_of(merged, members))
    more = pl.when(pl.col("unnamed") > 0).then(pl.lit(" and ") + counted("unnamed", "more queue"))
    summary = pl.concat_str(
        pl.format("Group {} did not advance on {} in {}", "consumer_group", "topic", "places"),
        more.fill_null(""),
        pl.lit(" for "),
        whole_seconds("from_ts", "to_ts"),
        pl.lit(" while messages arrived; "),
        counted("waiting", "message"),
        pl.lit(" waited. "),
        _who(),
    )
    return finding(known, LAG_GROWS, cluster, severity="warning", summary=summary)


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
