"""Slaves whose copies of the offsets or of the configuration stayed behind: SlaveSynchronize no longer copies them."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.arrays.saturating import total
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import (
    counted,
    evidence,
    evidence_rows,
    finding,
    none,
    one_or_none,
    row_key,
    whole_seconds,
)


def find_stale(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the slaves that no longer copy the offsets of their master."""
    return stale_slave_offsets(evidence.offset_continuity, evidence.cluster)


def find_drift(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the slaves that have another configuration than their master."""
    return config_drift(evidence.config_drift, evidence.outages, evidence.cluster, limits.same_cause_gap_s)


STALE_SLAVE_OFFSETS = FindingKind(
    name="stale_slave_offsets",
    find=find_stale,
    meaning="A slave no longer copied the consumer offsets of its master. If the master were lost now, consumers that"
    " read their offsets from the slave would receive old messages again.",
    rule="A slave's copy of an offset did not change for stale_slave_s seconds, and stayed below every value that its"
    " master held in them.",
    follows="SlaveSynchronize#syncConsumerOffset",
    advice="Read broker.log of the slave for `SyncConsumerOffset Exception`: it says why the copy fails. Check that the"
    " slave reaches its master: `mqadmin clusterList -n NAMESRV` and `mqadmin getBrokerConfig -b SLAVE_ADDR`.",
    confidence=0.9,
    needs=(Need("consumer_offset"),),
    thresholds=("findings.stale_slave_s",),
    example="Slave 1 of broker-a kept offsets of 8 queues of 2 groups below all that its master held, for up to 190 s."
    " If consumers read them now, they would receive up to 398 messages again.",
    causes=(Cause("broker_down", same=("broker_name",), after_s=120, before_s=60),),
    ends_after="findings.stale_slave_s",
)
SLAVE_CONFIG_DRIFT = FindingKind(
    name="slave_config_drift",
    find=find_drift,
    meaning="A slave lacks topics or groups of its master, or has other values of them. It answers pulls by its own"
    " copies: if the master is lost, consumers of these topics and groups get nothing from the slave"
    " (TOPIC_NOT_EXIST, SUBSCRIPTION_GROUP_NOT_EXIST, NO_PERMISSION), or read only some of the queues. A slave that"
    " becomes the master keeps its values.",
    rule="For longer than config_drift_s seconds a slave and its master both answered, and the slave lacked a topic or"
    " group of the master, or had another value of it. Topics that brokers create themselves are not compared: those"
    " of RocketMQ, of clusters and brokers, retry topics and dead letters. gold.slave_copy judges each copy of the"
    " slave's files by the schedule of SlaveSynchronize. The finding is critical if the master went down meanwhile.",
    follows="SlaveSynchronize#syncTopicConfig, SlaveSynchronize#syncSubscriptionGroupConfig",
    advice="Read broker.log of the slave for `SyncTopicConfig Exception` and `SyncSubscriptionGroup Exception`: they"
    " say why the copy fails. Until it works, write what is missing to the slave: `mqadmin updateTopic -b SLAVE_ADDR -t"
    " TOPIC -r READ_QUEUES -w WRITE_QUEUES -p PERM -n NAMESRV`, `mqadmin updateSubGroup -b SLAVE_ADDR -g GROUP -n"
    " NAMESRV`.",
    confidence=0.9,
    needs=(Need("topics"), Need("subscription_groups")),
    thresholds=("findings.config_drift_s", "findings.same_cause_gap_s"),
    example="Slave 1 of broker-a had another configuration than its master for 900 s: it lacked topic pay, group"
    " pay-group; it had other values of topic orders (perm 2 instead of 6).",
    ends_after="findings.config_drift_s",
)
ITEMS_NAMED = 5  # topics and groups in a summary; more are counted
SLAVE = ("broker_name", "broker_id")
COPY = (*SLAVE, "topic", "consumer_group", "queue_id")


def stale_slave_offsets(continuity: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return one finding a slave that kept offsets below all that its master held.

    ``continuity`` is gold.offset_continuity.
    """
    stale = continuity.filter(pl.col("kind") == "stale").sort(pl.col("to_ts") - pl.col("from_ts"), "to_ts")
    longest = stale.group_by(SLAVE).agg(pl.col("from_ts", "to_ts").last().name.prefix("longest_"))
    of_copy = stale.group_by(*COPY).agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.col("size").max().alias("lacks"),
        row_key(*COPY, "kind", "to_ts").unique().alias("keys"),
    )
    found = of_copy.group_by(*SLAVE).agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.len().alias("queues"),
        pl.col("consumer_group").drop_nulls().n_unique().alias("groups"),
        total("lacks").alias("messages"),
        evidence_rows("gold.offset_continuity", pl.col("keys").explode().sort().implode()),
    )
    summary = pl.format(
        "Slave {} of {} kept offsets of {} of {} below all that its master held, for up to {}. If consumers read them"
        " now, they would receive up to {} again.",
        "broker_id",
        "broker_name",
        counted("queues", "queue"),
        counted("groups", "group"),
        whole_seconds("longest_from_ts", "longest_to_ts"),
        counted("messages", "message"),
    )
    rows = found.join(longest, SLAVE, maintain_order="left")
    return finding(rows, STALE_SLAVE_OFFSETS, cluster, severity="warning", summary=summary)


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
    item = pl.coalesce(pl.format("topic {}", "topic"), pl.format("group {}", "consumer_group"))
    values = pl.concat_str(item, pl.format(" ({})", "differs"))
    each = drift.with_row_index("number").join(down, "number", how="left").with_columns(item.alias("item"))
    rows = (
        with_session(each.with_columns(values.alias("value")), SLAVE, "from_ts", "to_ts", gap_s)
        .group_by(*SLAVE, "session")
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col("down_ts").min(),
            *[one_or_none(name) for name in ("topic", "consumer_group")],
            pl.col("item").filter(pl.col("differs").is_null()).unique().sort().alias("lacked"),
            pl.col("value").drop_nulls().unique().sort().alias("other"),
            evidence("silver.topic_config", "source_name", "topic", "ts").alias("of_topics"),
            evidence("silver.subscription_group", "source_name", "consumer_group", "ts").alias("of_groups"),
        )
    )
    # A row is of one of the two tables: its key in the other one has no name.
    of_table = {"of_topics": "topic", "of_groups": "consumer_group"}
    own = [pl.col(name).list.filter(pl.element().struct.field(key).is_not_null()) for name, key in of_table.items()]
    rows = rows.with_columns(pl.concat_list(own).alias("evidence")).drop(*of_table)
    parts = [
        pl.when(pl.col(name).list.len() > 0).then(pl.format(f"{verb} {{}}", _listed(name)))
        for name, verb in (("lacked", "it lacked"), ("other", "it had other values of"))
    ]
    is_down = pl.col("down_ts").is_not_null()
    summary = pl.concat_str(
        pl.format("Slave {} of {} had another configuration than its master for ", "broker_id", "broker_name"),
        whole_seconds("from_ts", "to_ts"),
        pl.lit(": "),
        pl.concat_str(parts, separator="; ", ignore_nulls=True),
        pl.lit("."),
        pl.when(is_down)
        .then(pl.format(" The master went down meanwhile, at {} UTC.", pl.col("down_ts").dt.strftime("%H:%M:%S")))
        .otherwise(pl.lit("")),
    )
    severity = pl.when(is_down).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    return finding(rows, SLAVE_CONFIG_DRIFT, cluster, severity=severity, summary=summary)


def _listed(name: str) -> pl.Expr:
    more = pl.col(name).list.len().cast(pl.Int64) - ITEMS_NAMED
    rest = pl.when(more > 0).then(pl.format(" and {} more", more)).otherwise(pl.lit(""))
    return pl.concat_str(pl.col(name).list.head(ITEMS_NAMED).list.join(", "), rest)
