"""Offsets that clients commit past messages that they have not finished."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, one_or_none

TABLE = "gold.committed_offset"
QUEUE = ("consumer_group", "topic", "broker_name", "queue_id")
KEY = (*QUEUE, "client_id", "ts", "record_id")


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups whose clients commit offsets past unfinished messages."""
    return unfinished_commits(evidence.passed_commits, evidence.cluster, limits.same_cause_gap_s)


UNFINISHED_COMMIT = FindingKind(
    name="unfinished_commit",
    find=find,
    meaning="A client committed an offset past a message that its listener had not finished. If the client stops before"
    " the message is finished, no client receives it again: the group does not process each message at least once.",
    rule="By the log of deliveries, a push client finished a message more than 1 s after it committed a higher offset;"
    " the log begins before the message was stored and lacks none up to the offset. The message was stored less than"
    " 1 minute before, so the client cannot have sent it back (consumeTimeout). Or, by running info, the offset"
    " in the client's memory is above the lowest one in its cache.",
    follows="ProcessQueue#removeMessage; RemoteBrokerOffsetStore#updateOffset",
    advice="`mqadmin consumerConnection -g GROUP -n NAMESRV` shows language and version of the client: compare them"
    " with the fixed bugs of its library. Find code that sets offsets itself (updateConsumeOffset, seek), and let"
    " the client commit what its listener returned.",
    confidence=0.9,
    needs=(Need("consume_log"), Need("offset_commits")),
    thresholds=("findings.same_cause_gap_s",),
    example="Group pay-group committed pay-topic past 3 messages that client 10.0.0.5@77 had not finished: up to 12 s"
    " before.",
)


def unfinished_commits(passed: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return UNFINISHED_COMMIT: one for each group, topic and client. ``passed`` are rows of gold.committed_offset."""
    differs = passed.filter(pl.col("judgement") == "differ")
    by = ["consumer_group", "topic", "client_id"]
    early_s = ((pl.col("finished_ts") - pl.col("ts")).dt.total_milliseconds() / 1000).max().round().cast(pl.Int64)
    message = pl.struct("broker_name", "queue_id", "unfinished_offset")
    found = (
        with_session(differs, by, "ts", "ts", gap_s)
        .group_by(*by, "session")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.max_horizontal(pl.col("ts").max(), pl.col("finished_ts").max()).alias("to_ts"),
            message.n_unique().cast(pl.Int64).alias("messages"),
            early_s.alias("early_s"),
            *(one_or_none(name) for name in ("broker_name", "queue_id")),
            evidence(TABLE, *KEY),
        )
    )
    summary = pl.concat_str(
        pl.format("Group {} committed {} past ", "consumer_group", "topic"),
        counted("messages", "message"),
        pl.format(" that client {} had not finished", "client_id"),
        pl.format(": up to {} s before.", "early_s").fill_null("."),
    )
    return finding(found, UNFINISHED_COMMIT, cluster, severity="warning", summary=summary)
