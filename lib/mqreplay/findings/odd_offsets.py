"""Saved offsets that no queue has: negative, or past the end by other evidence than copies of brokers' files."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.offsets.odd_offsets import ENTRY, NEGATIVE, PAST_END, UNSURE
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.offsets import OFFSET_BEYOND_MAX, group_text
from mqreplay.findings.shape import counted, evidence_row, finding, key_of, none, one_or_none


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return negative offsets, and offset_beyond_max by other evidence than copies of brokers' files."""
    return odd_offset_findings(evidence.odd_offsets, evidence.offset_continuity, evidence.cluster)


NEGATIVE_OFFSET = FindingKind(
    name="negative_offset",
    find=find,
    meaning=(
        "The saved offset of a queue is negative. The broker answers a client that asks for it as if there were none,"
        " and a pull at it with the begin of the queue: the group skips messages, or consumes old ones again. Its lag"
        " is not known."
    ),
    rule="A copy of an offset file, or an answer of the master, has an offset below 0.",
    follows="ConsumerManageProcessor#queryConsumerOffset; DefaultMessageStore#getMessage: OFFSET_TOO_SMALL",
    advice=(
        "Find who set it: `mqreplay explain FINDING` shows when it appeared. Set a valid offset: `mqadmin"
        " resetOffsetByTime -g GROUP -t TOPIC -s TIME`."
    ),
    confidence=0.9,
    example=(
        "Group parcel-archive on parcel-in: the saved offset of 1 queue (sorter-s/1: -3) is negative. A pull at it gets"
        " the begin of the queue; its lag is not known."
    ),
)
OF_CLIENT = (
    "The client keeps its offsets in a file: ~/.rocketmq_offsets/CLIENT_ID/GROUP/offsets.json on its host. Stop the"
    " client, and correct or remove this file and offsets.json.bak. Compare it with the ends of the queues: `mqadmin"
    " topicStatus -t TOPIC`."
)
ONCE_MORE = (
    "Ask twice, some seconds apart: `mqadmin consumerProgress -g GROUP`. If the offset stays past the end, find who set"
    " it; if messages were skipped: `mqadmin resetOffsetByTime -g GROUP -t TOPIC -s TIME`."
)


def odd_offset_findings(odd: pl.DataFrame, continuity: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return NEGATIVE_OFFSET, and OFFSET_BEYOND_MAX of clients' files and of answers.

    ``odd`` are rows of odd_offsets.py, ``continuity`` is gold.offset_continuity: what copies of brokers' files
    show past the end is not reported twice.
    """
    if odd.is_empty():
        return none()
    by_copies = continuity.filter(pl.col("kind") == "beyond_max").select(ENTRY).unique()
    is_client = pl.col("client_id").is_not_null()
    negative, of_client = pl.col("odd") == NEGATIVE, is_client & (pl.col("odd") != NEGATIVE)
    others = odd.filter(~negative & ~is_client).join(by_copies, ENTRY, how="anti", nulls_equal=True)
    return pl.concat(
        [
            _negative(_merged(odd.filter(negative), pl.col("offset")), cluster),
            _past_end(_merged(odd.filter(of_client), -pl.col("offset")), cluster),
            _past_end(_merged(others.filter(pl.col("odd") == PAST_END), -pl.col("offset")), cluster),
            _unsure(_merged(others.filter(pl.col("odd") == UNSURE), -pl.col("offset")), cluster),
        ]
    )


def _merged(odd: pl.DataFrame, order: pl.Expr) -> pl.DataFrame:
    """Return one row for each group, topic and client: ``worst`` is its first row in order, as text."""
    of_file = pl.col("record_id").is_null()
    columns = {name: pl.when(of_file).then(name) for name in ("source_name", *ENTRY, "to_ts")}
    row = evidence_row(pl.col("table_name"), key_of({**columns, "record_id": pl.col("record_id")}))
    shown = odd.with_columns(row.alias("shown"))
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    return shown.group_by("consumer_group", "topic", "client_id").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.struct("broker_name", "queue_id").n_unique().alias("queues"),
        pl.format("{}: {}", place, "offset").sort_by(order, place).first().alias("worst"),
        pl.col("queue_max_offset").sort_by(order, place).first(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        pl.col("shown").unique().sort().implode().alias("evidence"),
    )


def _offset_is() -> pl.Expr:
    """Return the begin of a summary: the group, its topic, the queues, and the client if the file is its own."""
    file = pl.when(pl.col("client_id").is_not_null()).then(pl.format(" in the file of client {}", "client_id"))
    saved = pl.concat_str(pl.lit("the saved offset of "), counted("queues", "queue"), file.otherwise(pl.lit("")))
    return pl.concat_str(group_text(), saved, pl.format(" ({}) is ", "worst"))


def _past_text() -> pl.Expr:
    end = pl.col("queue_max_offset").cast(pl.String)
    return pl.coalesce(pl.lit("past the end of the queue at ") + end, pl.lit("past the end of any queue"))


def _negative(rows: pl.DataFrame, cluster: str) -> pl.DataFrame:
    effect = " A pull at it gets the begin of the queue; its lag is not known."
    return finding(
        rows,
        NEGATIVE_OFFSET,
        cluster,
        severity="warning",
        summary=pl.concat_str(_offset_is(), pl.lit("negative."), pl.lit(effect)),
    )


def _past_end(rows: pl.DataFrame, cluster: str) -> pl.DataFrame:
    is_client = pl.col("client_id").is_not_null()
    return finding(
        rows,
        OFFSET_BEYOND_MAX,
        cluster,
        severity="warning",
        advice=pl.when(is_client).then(pl.lit(OF_CLIENT)).otherwise(pl.lit(OFFSET_BEYOND_MAX.advice)),
        summary=pl.concat_str(_offset_is(), _past_text(), pl.lit(".")),
    )


def _unsure(rows: pl.DataFrame, cluster: str) -> pl.DataFrame:
    doubt = ": one answer of the broker, which may have received messages between its two numbers."
    return finding(
        rows,
        OFFSET_BEYOND_MAX,
        cluster,
        severity="info",
        confidence=0.5,
        advice=ONCE_MORE,
        summary=pl.concat_str(_offset_is(), _past_text(), pl.lit(doubt)),
    )
