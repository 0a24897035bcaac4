"""Groups that rebalance again and again."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import HOUR, counted, evidence, finding, whole_seconds

GROUP = "consumer_group"


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups that rebalanced again and again."""
    return storms(evidence.rebalance_rounds, evidence.cluster, limits.storm_rebalances)


REBALANCE_STORM = FindingKind(
    name="rebalance_storm",
    find=find,
    meaning="A group rebalances again and again. Each time queues change hands: nobody consumes them for a moment, and"
    " messages that were not committed yet are delivered twice. A deployment restarts each consumer once; here the"
    " same hosts join again and again, or queues move though nobody joined or left.",
    rule="Within an hour one host joined the group storm_rebalances times for each of its processes, or queues got"
    " another owner at so many times while nobody joined or left. The group has at least storm_rebalances rounds or"
    " joins. Joins soon after the start of the recording do not count.",
    follows="RebalanceImpl#doRebalance; ConsumerManager#doChannelCloseEvent",
    advice="Find out why the clients leave: a process that is restarted (its own log, `kubectl get pods`, the memory"
    " limit), a full garbage collection longer than the channel lives, a network that closes idle connections"
    " (broker.log: `NETTY EVENT: remove channel`). If nobody leaves, compare the members that each broker lists"
    " (`mqadmin consumerConnection -g GROUP -b BROKER_ADDR -n NAMESRV`): a broker that lacks members makes clients"
    " compute other shares.",
    confidence=0.9,
    needs=(Need("heartbeats", or_polled=("consumer_lists",)),),
    thresholds=("findings.storm_rebalances",),
    example="Group pay-group rebalanced in 6 rounds within 2280 s: 7 joins, 7 leaves, 41 queue moves; queues had no"
    " owner for 212 s in total.",
    causes=(Cause("duplicate_client_id", same=(GROUP,), after_s=3600),),
    ends_after=None,
)


def storms(rounds: pl.DataFrame, cluster: str, storm_rebalances: int) -> pl.DataFrame:
    """Return REBALANCE_STORM. ``rounds`` is the frame of `rebalance_round`.

    Rounds of a group that are an hour apart or less are one finding, if one of them is a storm.
    """
    together = with_session(rounds, [GROUP], "from_ts", "to_ts", HOUR)
    total = {name: pl.col(name).sum() for name in ("joins", "leaves", "moved", "duplicates")}
    found = (
        together.group_by(GROUP, "session")
        .agg(
            pl.col("from_ts").min().alias("from_ts"),
            pl.col("to_ts").max().alias("to_ts"),
            pl.len().cast(pl.Int64).alias("rounds"),
            pl.col("cycles").max(),
            *(value.alias(name) for name, value in total.items()),
            (pl.col("idle_s").sum().round()).cast(pl.Int64).alias("idle_s"),
            pl.col("idle_s").is_not_null().any().alias("has_idle"),
            pl.col("moved").is_not_null().any().alias("has_moves"),
            evidence("gold.rebalance_round", GROUP, "to_ts"),
        )
        .filter(pl.col("cycles") >= storm_rebalances, pl.max_horizontal("rounds", "joins") >= storm_rebalances)
    )
    moves = pl.when("has_moves").then(pl.lit(", ") + counted("moved", "queue move")).otherwise(pl.lit(""))
    idle = (
        pl.when("has_idle")
        .then(pl.format("; queues had no owner for {} s in total", "idle_s"))
        .otherwise(pl.lit("; the times without an owner are not known"))
    )
    again = pl.when(pl.col("duplicates") > 0).then(
        pl.lit("; ") + counted("duplicates", "message") + pl.lit(" delivered again")
    )
    summary = pl.concat_str(
        pl.format("Group {} rebalanced in ", GROUP),
        counted("rounds", "round"),
        pl.lit(" within "),
        whole_seconds("from_ts", "to_ts"),
        pl.lit(": "),
        counted("joins", "join"),
        pl.lit(", "),
        counted("leaves", "leave"),
        moves,
        idle,
        again.fill_null(""),
        pl.lit("."),
    )
    return finding(found, REBALANCE_STORM, cluster, severity="warning", summary=summary)
