"""Groups and topics that gold.delivery_audit has no row of although sends were recorded: rows of gold.replay_gap."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import Final

import polars as pl

from mqreplay.evidence.gap_rows import GAP, gap_rows
from mqreplay.evidence.messages.audit_scope import GROUP_TOPIC

LOGS: Final = ("consume_log", "produce_log")
BY_POP: Final = "the group receives messages by POP: packets are audited for groups that pull"
NO_ANSWERS: Final = (
    "recorded sends have no answer with an offset, or no pulls of their topics were recorded. Next time: capture the"
    " packets of all brokers' ports"
)


def audit_gaps(
    day: dt.date, sent: pl.DataFrame, popped: pl.DataFrame, audit: pl.DataFrame, missing: Collection[str]
) -> pl.DataFrame:
    """Return the gaps (columns of GAP) of the day.

    ``sent`` has the topic of each recorded send, ``popped`` consumer_group and topic of requests of POP. ``audit`` are
    the rows of gold.delivery_audit; the recording lacks the kinds of files ``missing``.
    """
    if sent.is_empty():  # that no sends were recorded is a gap of missing kinds
        return pl.DataFrame(schema=GAP)
    by_pop = (
        popped.select(GROUP_TOPIC)
        .unique()
        .join(sent.select("topic").unique(), "topic", how="semi")
        .join(audit, GROUP_TOPIC, how="anti")
        .with_columns(pl.lit(BY_POP).alias("reason"), pl.lit("undetermined").alias("evidence"))
    )
    parts = [by_pop]
    if audit.is_empty() and by_pop.is_empty() and not set(LOGS).isdisjoint(missing):
        parts.append(pl.DataFrame({"reason": [NO_ANSWERS], "evidence": ["sends"]}))
    named = pl.concat(parts, how="diagonal").with_columns(
        pl.lit(day).alias("day"),
        pl.lit("gold.delivery_audit").alias("decision"),
        pl.lit(0, pl.Int64).alias("decisions"),
    )
    return gap_rows(named)
