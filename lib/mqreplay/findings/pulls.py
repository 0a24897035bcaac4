"""Pulls that a suggestion sent to a slave: from clients that lagged, and from clients that a slave's setting kept."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.brokers.slave_reads import BY_GROUP, KEEPER, KEPT_BY_RATIO, LAGGED, MASTER_ID
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.pull_runs import joined_runs, pull_runs
from mqreplay.findings.shape import evidence_rows, finding, none, record_key


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the reads from slaves to which a suggestion led."""
    return pull_findings(
        evidence.exceptional_pulls, evidence.cluster, limits.same_cause_gap_s, limits.slave_pull_warn_s
    )


SLAVE_PULL = FindingKind(
    name="slave_pull",
    find=find,
    confidence=1.0,
    needs=(Need("pull_log"),),
    thresholds=("findings.slave_pull_warn_s", "findings.same_cause_gap_s"),
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=120, of_master=True),
        # A slave that refuses reads explains the pulls that were sent to it.
        Cause("slave_pull", same=("broker_name",), critical=True),
        Cause("start_from_oldest", same=("consumer_group", "topic"), after_s=600),
    ),
)
READ = ("why", "broker_name", "consumer_group", "topic", *KEEPER)
BROKER_OF = ("broker_name", *KEEPER)
# Columns of gold.pull_route, by what a finding calls them: it names each that all its pulls share.
PLACE_COLUMNS = {"queue_id": "queue_id", "client_id": "client_id", "actual_broker_id": "broker_id"}
MESSAGES_BEHIND = pl.col("behind").sum().cast(pl.Int64)


def exceptional_pulls_of_shard(slave_reads: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return runs of a shard's pulls to slaves: of one READ, each at most ``gap_s`` seconds after the one before.

    Columns: READ, those of `pull_runs`, of PLACE_COLUMNS, and behind, the pulls after an answer that left messages in
    the queue. ``slave_reads`` is the frame of slave_reads. A group whose brokerId names a slave is left out:
    it reads there by its own setting.
    """
    pulls = slave_reads.filter(pl.col("why") != BY_GROUP)
    return pull_runs(pulls, READ, PLACE_COLUMNS, gap_s, MESSAGES_BEHIND)


def pull_findings(exceptional: pl.DataFrame, cluster: str, gap_s: int, warn_s: int) -> pl.DataFrame:
    """Return slave_pull: one finding for each slave whose setting keeps readers, with its groups as effects, and one
    for each group that lagged.

    ``exceptional`` has the rows of `exceptional_pulls_of_shard` of all shards; pulls at most ``gap_s`` seconds apart
    are one finding. Reads from a slave for less than ``warn_s`` seconds are info, not a warning.
    """
    if exceptional.is_empty():
        return none()
    of_keepers = exceptional.filter(pl.col("why") == KEPT_BY_RATIO)
    settings = _settings(of_keepers, cluster, warn_s)
    groups = _sessions(exceptional.filter(pl.col("why") != KEPT_BY_RATIO), gap_s).with_columns(
        _lasts(warn_s).alias("lasts")
    )
    kept = _with_lag(_sessions(of_keepers, gap_s), groups, gap_s)
    # A short lag is part of the finding about the reads that followed from it.
    alone = groups.join(
        kept.select("lag_number").drop_nulls().unique(), left_on="number", right_on="lag_number", how="anti"
    )
    return pl.concat([settings, _kept_groups(kept, settings, cluster), _groups(alone, cluster)])


def _settings(runs: pl.DataFrame, cluster: str, warn_s: int) -> pl.DataFrame:
    """Return one finding for each slave whose effective ratio is below 1."""
    keys = record_key(pl.col("record_ids").explode())
    found = runs.group_by(BROKER_OF).agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.col("pulls").sum(),
        pl.col("consumer_group").n_unique().alias("groups"),
        evidence_rows("gold.pull_route", keys.unique().sort().implode()),
        pl.col("pulls").sum().alias("evidence_count"),
    )
    # An outage may have sent the readers there, but the setting is what keeps them.
    rows = found.rename({"keeper_id": "broker_id"}).with_columns(pl.lit("").alias("cause_id"))
    is_master = pl.col("broker_id") == MASTER_ID
    # The least ratio that works: 5.x subtracts 10 on slaves, 4.x subtracts nothing.
    subtracted = pl.col("keeper_configured") - pl.col("keeper_ratio")
    least = subtracted.fill_null(pl.when(is_master).then(0).otherwise(10)) + 1
    severity = pl.when(_lasts(warn_s)).then(pl.lit("warning")).otherwise(pl.lit("info"))
    rows = rows.with_columns(least.alias("least"))
    return finding(rows, SLAVE_PULL, cluster, severity=severity, form="setting", advice_form="setting")


def _kept_groups(kept: pl.DataFrame, settings: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return the reads of single groups that a slave's setting kept: effects of the finding about the setting."""
    causes = settings.select(
        "broker_name",
        pl.col("broker_id").alias("keeper_id"),
        pl.col("from_ts").alias("_since"),
        pl.col("to_ts").alias("_until"),
        pl.col("finding_id").alias("cause_id"),
    )
    within = pl.col("from_ts").is_between("_since", "_until")
    rows = kept.join(causes, on=["broker_name", "keeper_id"]).filter(within).unique("number", keep="first")
    # Most answers left nothing in the queue, so the group does not lag, whatever the master's memory.
    at_end = 2 * pl.col("behind") <= pl.col("pulls")
    advice = pl.when(at_end).then(pl.lit("not_lagging")).otherwise(pl.lit("perhaps_lagging"))
    return finding(rows, SLAVE_PULL, cluster, severity="info", form="kept", advice_form=advice)


def _groups(found: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return the reads of groups that lagged, or whose reason is not known."""
    lagged = pl.col("why") == LAGGED
    # A group that mostly reads the end of its queues does not lag, whatever the broker's memory.
    matters = pl.col("lasts") & (lagged | (2 * pl.col("behind") > pl.col("pulls")))
    severity = pl.when(matters).then(pl.lit("warning")).otherwise(pl.lit("info"))
    advice = pl.when(lagged).then(pl.lit("")).otherwise(pl.lit("memory_unknown"))
    return finding(found, SLAVE_PULL, cluster, severity=severity, advice_form=advice)


def _with_lag(kept: pl.DataFrame, groups: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Add lag_ts and lag_pulls, the lag of the group that these reads followed, and lag_number, set if it was short."""
    place = ["broker_name", "consumer_group", "topic"]
    lags = groups.filter(pl.col("why") == LAGGED).select(
        *place,
        pl.when(~pl.col("lasts")).then("number").alias("lag_number"),
        pl.col("from_ts").alias("lag_ts"),
        pl.col("to_ts").alias("lag_to"),
        pl.col("pulls").alias("lag_pulls"),
    )
    reach = pl.duration(seconds=gap_s)
    near = (
        kept.select("number", *place, "from_ts", "to_ts")
        .join(lags, on=place)
        .filter((pl.col("lag_ts") <= pl.col("to_ts")) & (pl.col("lag_to") + reach >= pl.col("from_ts")))
    )
    first = near.sort("lag_ts", "lag_number").unique("number", keep="first", maintain_order=True)
    return kept.join(first.select("number", "lag_ts", "lag_pulls", "lag_number"), on="number", how="left")


def _sessions(runs: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Join the runs of all shards, each with a ``number``."""
    names = list(PLACE_COLUMNS.values())
    joined = joined_runs(runs, READ, names, gap_s, "gold.pull_route", MESSAGES_BEHIND)
    return joined.sort(*READ, "from_ts", nulls_last=True).with_row_index("number")


def _lasts(warn_s: int) -> pl.Expr:
    """Return whether the reads went on for ``warn_s`` seconds."""
    return pl.col("to_ts").dt.epoch("ms") - pl.col("from_ts").dt.epoch("ms") >= warn_s * 1000
