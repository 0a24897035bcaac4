"""Breaks in offsets that are of one event: those of one moment and cause, and those that a change of owner explains."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.offsets.explained_rewinds import HANDOVER
from mqreplay.evidence.offsets.queue_events import COPIES
from mqreplay.evidence.time_spans import with_session
from mqreplay.findings.shape import seconds

AT_ONCE_S = 30  # the copies of the masters that show one change of a group's offsets


def of_master() -> pl.Expr:
    """Return whether a break is shown by a master's file."""
    return pl.col("broker_id") == 0


def with_break_session(breaks: pl.DataFrame, by: list[str], gap_s: int) -> pl.DataFrame:
    """Return the breaks with ``session``: of one cause and moment, and those of other causes meanwhile.

    Offsets are set within seconds, but an offset past the end may stand for longer. A slave shows what its master
    showed last.
    """
    stands = pl.col("effect") == "beyond_max"
    named = breaks.with_columns(of=pl.when(stands).then(pl.lit("")).otherwise("cause")).with_row_index("_row")
    own = [*by, "of"]
    masters, slaves = named.filter(of_master()), named.filter(~of_master())
    parts = [
        with_session(masters.filter(stands), own, "to_ts", "to_ts", gap_s),
        with_session(masters.filter(~stands), own, "to_ts", "to_ts", min(gap_s, AT_ONCE_S)),
    ]
    of_masters = _together(pl.concat(parts), own)
    last = as_of(slaves, of_masters.with_columns(at="to_ts"), by, "to_ts", {"at": "at"}, right_at="from_ts")
    numbers = of_masters.select(*by, "session", at="to_ts").unique([*by, "at"], keep="any", maintain_order=True)
    met = last.join(numbers, [*by, "at"], how="left", maintain_order="left", nulls_equal=True)
    follows = (pl.col("session").is_not_null() & (seconds("at", "from_ts") <= gap_s)).fill_null(False)
    alone = with_session(met.filter(~follows).drop("at", "session"), own, "to_ts", "to_ts", gap_s)
    alone = alone.with_columns(pl.col("session").cast(pl.Int64) + (of_masters["session"].max() or 0))
    return pl.concat([of_masters, met.filter(follows).select(of_masters.columns), alone.select(of_masters.columns)])


def _together(breaks: pl.DataFrame, own: list[str]) -> pl.DataFrame:
    """Return the breaks; sessions of one effect that overlap, whatever their causes, become one."""
    span = breaks.group_by(*own, "session").agg(pl.col("from_ts").min(), pl.col("to_ts").max())
    by = own[:-1]
    merged = with_session(span.rename({"session": "part"}), by, "from_ts", "to_ts", 0)
    numbers = merged.select(*own, "part", pl.col("session").cast(pl.Int64))
    parted = breaks.rename({"session": "part"})
    return parted.join(numbers, [*own, "part"], nulls_equal=True).drop("part")


def with_retaken(breaks: pl.DataFrame, owners: pl.DataFrame, handover_s: int, few: int) -> pl.DataFrame:
    """Return the breaks with ``has_owners``; the cause is HANDOVER, too, where a client took the queue anew just then.

    Only breaks that commits show, of up to ``few`` messages: what the client had not committed when it gave the queue
    up. More than that is lost by something else. ``has_owners``: whether any owner of the queue is known.
    """
    held = as_of(breaks, owners, KEY, "to_ts", {"taken_ts": "from_ts"}, right_at="from_ts")
    since = pl.col("from_ts") - pl.duration(seconds=handover_s)
    is_commit = (pl.col("cause") == "client_commit") & (pl.col("effect") == "rewind") & (pl.col("source") != COPIES)
    is_few = pl.col("size") <= few
    cause = pl.when(is_commit & is_few & (pl.col("taken_ts") >= since)).then(pl.lit(HANDOVER)).otherwise("cause")
    known = owners.select(KEY).unique().with_columns(has_owners=pl.lit(True))
    named = held.with_columns(cause=cause).drop("taken_ts").join(known, KEY, how="left", nulls_equal=True)
    return named.with_columns(pl.col("has_owners").fill_null(False))
