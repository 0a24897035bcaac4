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
    meaning=(
        "Processes with one client id take the same queues: each message of these is consumed several times, and other"
        " queues have no owner."
    ),
    rule=(
        "A broker listed a client id more than once in a group that shares queues, or knew it at several addresses,"
        " longer than lists take to spread, and it cannot be a connection that the broker has not closed yet: it lasted"
        " for more than 135 s, clients with this id named two start times, or a client with this id answered all polls"
        " from before the second connection until 60 s after it, so that it never had to connect again. Repeats that"
        " one broker alone lists within 135 s of its own outage, and no longer than 270 s after it, are old"
        " connections, unless clients named two start times."
    ),
    follows="ConsumerGroupInfo#getAllClientId, ClientConfig#buildMQClientId",
    advice=(
        "Give each process a client id of its own: leave out instanceName and clientIP, or add the process id to"
        " instanceName, and restart them. Which addresses use the id: `mqadmin consumerConnection -g GROUP`."
    ),
    confidence=0.9,
    thresholds=("findings.dispute_s",),
    example=(
        "2 processes used client id 10.9.9.9@worker of group billing (127.0.0.1:43858, 127.0.0.1:45684): they take the"
        " same queues."
    ),
)
BY_DUPLICATE = Cause("duplicate_client_id", same=("consumer_group",), before_s=70)  # lists are written once a minute


def duplicate_id_findings(
    duplicates: pl.DataFrame, unshared: pl.DataFrame, cluster: str, dispute_s: int
) -> pl.DataFrame:
    """Return DUPLICATE_CLIENT_ID, of the frame of duplicate_clients.py.

    ``unshared`` is the frame of unshared_groups: broadcasting processes may have one id. Shorter than ``dispute_s``
    seconds is normal while a client connects again, and so is a dead connection that is still listed.
    """
    shared = duplicates.filter("certain").join(unshared, "consumer_group", how="anti")
    long = shared.filter(seconds("from_ts", "to_ts") > dispute_s)
    key = row_key("consumer_group")
    rows = long.with_columns(key).with_columns(
        pl.concat_list(
            pl.when(pl.col("tables").list.contains(table))
            .then(pl.concat_list(evidence_row(pl.lit(table), pl.col("key"))))
            .otherwise(pl.lit([], EVIDENCE))
            for table in ("silver.consumer_connection", "silver.consumer_list", "silver.rebalance")
        ).alias("evidence")
    )
    addresses = pl.col("addresses").list.join(", ")
    places = pl.when(pl.col("addresses").list.len() > 0).then(pl.format(" ({})", addresses)).otherwise(pl.lit(""))
    summary = pl.format(
        "{} processes used client id {} of group {}{}: they take the same queues.",
        "processes",
        "client_id",
        "consumer_group",
        places,
    )
    return finding(rows, DUPLICATE_CLIENT_ID, cluster, severity="warning", summary=summary)
