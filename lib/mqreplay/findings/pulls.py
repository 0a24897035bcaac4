"""Pulls that went to a slave: because the master suggested it, or because the master had left the route."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.pull_runs import joined_runs, pull_runs
from mqreplay.findings.shape import counted, finding, one_or_none

SLAVE_PULL = FindingKind(
    name="slave_pull",
    rule="Pulls went to a slave, since the master's answer before had suggested it: what was read lay further back than"
    " the memory that the broker may use.",
    follows="DefaultMessageStore#getMessage, PullMessageProcessor#processRequest",
    advice="Make the consumer faster or add members; while it lags, the slave carries its reads, so keep it healthy.",
    confidence=1.0,
    needs=("pull_log",),
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=120),
        # A slave that refuses reads explains the pulls that were sent to it.
        Cause("slave_pull", same=("broker_name",), critical=True),
    ),
)
FAILOVER_PULL = FindingKind(
    name="failover_pull",
    rule="Pulls went to a slave, since the client's route no longer had the master.",
    follows="MQClientInstance#findBrokerAddressInSubscribe",
    advice="See why the master went; offsets kept by the slave are older, so expect messages delivered twice.",
    confidence=1.0,
    needs=("pull_log",),
    causes=(Cause("broker_down", same=("broker_name",), after_s=120),),
)
SUGGESTED, MASTER_GONE = "suggested", "master_gone"  # causes of gold.pull_route
RUN_OF = ("cause", "broker_name", "consumer_group", "topic")
# Columns of gold.pull_route, by what a finding calls them: it names each that all its pulls share.
PLACE_COLUMNS = {"queue_id": "queue_id", "client_id": "client_id", "actual_broker_id": "broker_id"}


def exceptional_pulls_of_shard(pull_route: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return runs of a shard's pulls to slaves: of one RUN_OF, each at most ``gap_s`` seconds after the one before.

    Columns: RUN_OF and those of `pull_runs`, of PLACE_COLUMNS.
    """
    # Without a master in its route a client may also be told to stay at the slave: the failover explains such a pull.
    has_master = pl.col("route_broker_ids").list.contains(0)
    slow = (pl.col("cause") == SUGGESTED) & has_master
    pulls = pull_route.filter(slow | (pl.col("cause") == MASTER_GONE))
    return pull_runs(pulls, RUN_OF, PLACE_COLUMNS, gap_s)


def pull_findings(exceptional: pl.DataFrame, cluster: str, gap_s: int, warn_s: int) -> pl.DataFrame:
    """Return slave_pull and failover_pull; pulls of one cause at most ``gap_s`` seconds apart are one finding.

    ``exceptional`` has the rows of `exceptional_pulls_of_shard` of all shards. Reads from a slave for less than
    ``warn_s`` seconds are info, not a warning.
    """
    slow, gone = (exceptional.filter(pl.col("cause") == cause) for cause in (SUGGESTED, MASTER_GONE))
    return pl.concat([_slave_pulls(slow, cluster, gap_s, warn_s), _failover_pulls(gone, cluster, gap_s)])


def _slave_pulls(runs: pl.DataFrame, cluster: str, gap_s: int, warn_s: int) -> pl.DataFrame:
    found = _sessions(runs, ["broker_name", "consumer_group", "topic"], gap_s)
    summary = pl.format(
        "Group {} read {} of {} from a slave in {}: it lagged further behind than the master keeps in memory.",
        "consumer_group",
        "topic",
        "broker_name",
        counted("pulls", "pull"),
    )
    lasted_ms = pl.col("to_ts").dt.epoch("ms") - pl.col("from_ts").dt.epoch("ms")
    severity = pl.when(lasted_ms >= warn_s * 1000).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(found, SLAVE_PULL, cluster, severity=severity, summary=summary)


def _failover_pulls(runs: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    found = _sessions(runs, ["broker_name"], gap_s)
    summary = pl.format(
        "The master of {} had left the route: {} of {} went to a slave instead.",
        "broker_name",
        counted("pulls", "pull"),
        counted("groups", "group"),
    )
    return finding(found, FAILOVER_PULL, cluster, severity="critical", summary=summary)


def _sessions(runs: pl.DataFrame, by: Sequence[str], gap_s: int) -> pl.DataFrame:
    """Join the runs of all shards; a column of the place has a value where all pulls share it."""
    groups = pl.col("consumer_group").drop_nulls().n_unique().cast(pl.Int64).alias("groups")
    shared = [one_or_none(name) for name in ("consumer_group", "topic") if name not in by]
    names = list(PLACE_COLUMNS.values())
    return joined_runs(runs, by, names, gap_s, "gold.pull_route", groups, *shared)
