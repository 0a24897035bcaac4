"""Client ids that several processes of one group use."""

from __future__ import annotations

import polars as pl

from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import EVIDENCE, evidence_row, finding, none, row_key, seconds


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the client ids that several processes of one group use."""
    duplicates = evidence.polled.duplicates
    if duplicates is None:
        return none()
    return duplicate_id_findings(duplicates, evidence.unshared_groups, evidence.cluster, limits.dispute_s)


DUPLICATE_CLIENT_ID = FindingKind(
    name="duplicate_client_id",
    find=find,
    confidence=0.9,
    thresholds=("findings.dispute_s",),
)
ONCE = 0.6  # a client that moved to another host leaves such a connection, for up to two minutes
BY_DUPLICATE = Cause("duplicate_client_id", same=("consumer_group",), before_s=70)  # lists are written once a minute


def duplicate_id_findings(
    duplicates: pl.DataFrame, unshared: pl.DataFrame, cluster: str, dispute_s: int
) -> pl.DataFrame:
    """Return DUPLICATE_CLIENT_ID, of the frame of duplicate_clients.py.

    One list with an id at several hosts is info: a second list would show whether both connections stay.
    ``unshared`` is the frame of unshared_groups: broadcasting processes may have one id. Shorter than ``dispute_s``
    seconds is normal while a client connects again, and so is a dead connection that is still listed.
    """
    shared = duplicates.filter("certain").join(unshared, "consumer_group", how="anti")
    once = duplicates.filter("unconfirmed").join(unshared, "consumer_group", how="anti")
    long = shared.filter(seconds("from_ts", "to_ts") > dispute_s)
    key = row_key("consumer_group")
    shown = pl.concat_list(
        pl.when(pl.col("tables").list.contains(table))
        .then(pl.concat_list(evidence_row(pl.lit(table), pl.col("key"))))
        .otherwise(pl.lit([], EVIDENCE))
        for table in ("silver.consumer_connection", "silver.consumer_list", "silver.rebalance", "silver.assignment")
    ).alias("evidence")
    long, once = (rows.with_columns(key).with_columns(shown) for rows in (long, once))
    return pl.concat(
        [
            finding(long, DUPLICATE_CLIENT_ID, cluster, severity="warning"),
            finding(
                once, DUPLICATE_CLIENT_ID, cluster, severity="info", form="once", advice_form="once", confidence=ONCE
            ),
        ]
    )
