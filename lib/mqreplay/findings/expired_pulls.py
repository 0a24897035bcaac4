"""Queues that a client holds and has not pulled for so long that its rebalance should have dropped them."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, one_or_none, places, places_text

POLLED_S = 90  # running info that does not change is written once a minute


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the clients that hold queues without pulling them."""
    return expired_pulls(evidence.expired_pulls, evidence.cluster)


PULL_EXPIRED = FindingKind(
    name="pull_expired",
    find=find,
    meaning="A client holds queues and does not pull them, so their messages wait. Its rebalances, which drop such"
    " queues and take them again after two minutes, did not run either: the client hangs.",
    rule="A client showed a queue that it had not dropped, and whose lastPullTimestamp was older than 120 s and a"
    " rebalance interval, by the client's own clock.",
    follows="ProcessQueue#isPullExpired, RebalanceImpl#updateProcessQueueTableInRebalance",
    advice="Take a thread dump of the client: `jstack PID`, or `mqadmin consumerStatus -g GROUP -i CLIENT_ID -s -n"
    " NAMESRV`. See what its threads RebalanceService and PullMessageService wait for, and restart it. Its log has"
    " `BUG. doRebalance` each time it drops such a queue.",
    confidence=0.9,
    needs=(Need("assignments"),),
    thresholds=("findings.rebalance_interval_s",),
    example="Client 10.0.0.7@4228#1956465375449 of group courier did not pull 2 queues of orders (broker-a/2,"
    " broker-a/3), and had not dropped them.",
    ends_after="findings.lost_s",
)


def expired_pulls(expired: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return PULL_EXPIRED, of the rows of gold.rebalance_step with expired queues: one a client, topic and time."""
    by = ("consumer_group", "client_id", "topic")
    each = with_session(expired.explode("expired").unnest("expired"), by, "ts", "ts", POLLED_S)
    rows = each.group_by(*by, "session").agg(
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        pl.struct("broker_name", "queue_id").n_unique().alias("queues"),
        places(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("silver.assignment", "record_id"),
    )
    summary = pl.format(
        "Client {} of group {} did not pull {} of {}{}, and had not dropped them.",
        "client_id",
        "consumer_group",
        counted("queues", "queue"),
        "topic",
        places_text(),
    )
    return finding(rows, PULL_EXPIRED, cluster, severity="warning", summary=summary)
