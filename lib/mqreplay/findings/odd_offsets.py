"""Saved offsets that no queue has: negative, or past the end by other evidence than copies of brokers' files."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.offsets.odd_offsets import NEGATIVE, PAST_END, UNSURE
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.offsets import OFFSET_BEYOND_MAX, UNKNOWN_DELETION, with_deleted_topics
from mqreplay.findings.shape import evidence_row, finding, key_of, none, one_or_none
from mqreplay.words.keys import GROUP_QUEUE


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return negative offsets, and offset_beyond_max by other evidence than copies of brokers' files."""
    offsets = odd_offset_findings(evidence.odd_offsets, evidence.offset_continuity, evidence.cluster)
    return with_deleted_topics(offsets, evidence.broker_event)


NEGATIVE_OFFSET = FindingKind(
    name="negative_offset",
    find=find,
    confidence=0.9,
)


def odd_offset_findings(odd: pl.DataFrame, continuity: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return NEGATIVE_OFFSET, and OFFSET_BEYOND_MAX of clients' files and of answers.

    ``odd`` are rows of odd_offsets.py, ``continuity`` is gold.offset_continuity: what copies of brokers' files
    show past the end is not reported twice.
    """
    if odd.is_empty():
        return none()
    by_copies = continuity.filter(pl.col("kind") == "beyond_max").select(GROUP_QUEUE).unique()
    is_client = pl.col("client_id").is_not_null()
    negative, of_client = pl.col("odd") == NEGATIVE, is_client & (pl.col("odd") != NEGATIVE)
    others = odd.filter(~negative & ~is_client).join(by_copies, GROUP_QUEUE, how="anti", nulls_equal=True)
    return pl.concat(
        [
            _negative(_merged(odd.filter(negative), pl.col("offset")), cluster),
            _past_end(_merged(odd.filter(of_client), -pl.col("offset")), cluster),
            _past_end(_merged(others.filter(pl.col("odd") == PAST_END), -pl.col("offset")), cluster),
            _unsure(_merged(others.filter(pl.col("odd") == UNSURE), -pl.col("offset")), cluster),
        ]
    )


def _merged(odd: pl.DataFrame, order: pl.Expr) -> pl.DataFrame:
    """Return one row for each group, topic and client: ``worst`` is the place and offset of its first row in order."""
    of_file = pl.col("record_id").is_null()
    columns = {name: pl.when(of_file).then(name) for name in ("source_name", *GROUP_QUEUE, "to_ts")}
    row = evidence_row(pl.col("table_name"), key_of({**columns, "record_id": pl.col("record_id")}))
    shown = odd.with_columns(row.alias("shown"))
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    return shown.group_by("consumer_group", "topic", "client_id").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.struct("broker_name", "queue_id").n_unique().alias("queues"),
        pl.struct("broker_name", "queue_id", "offset").sort_by(order, place).first().alias("worst"),
        pl.col("queue_max_offset").sort_by(order, place).first(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        pl.col("shown").unique().sort().implode().alias("evidence"),
    )


def _negative(rows: pl.DataFrame, cluster: str) -> pl.DataFrame:
    return finding(rows, NEGATIVE_OFFSET, cluster, severity="warning")


def _past_end(rows: pl.DataFrame, cluster: str) -> pl.DataFrame:
    advice = pl.when(pl.col("client_id").is_not_null()).then(pl.lit("of_client")).otherwise(pl.lit(""))
    sure = rows.with_columns(UNKNOWN_DELETION, is_unsure=pl.lit(False))
    return finding(sure, OFFSET_BEYOND_MAX, cluster, severity="warning", form="saved", advice_form=advice)


def _unsure(rows: pl.DataFrame, cluster: str) -> pl.DataFrame:
    unsure = rows.with_columns(UNKNOWN_DELETION, is_unsure=pl.lit(True))
    kind = OFFSET_BEYOND_MAX
    return finding(unsure, kind, cluster, severity="info", confidence=0.5, form="saved", advice_form="unsure")
