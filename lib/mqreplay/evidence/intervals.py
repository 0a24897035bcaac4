"""Intervals of time and runs of rows: the verbs that all rules share. They know no rule of RocketMQ.

Spans are rows with from_ts and to_ts. ``by`` names the columns of their key: only rows of one key meet.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence

import polars as pl

INSTANT = pl.Datetime("us", "UTC")


def with_epoch(frame: pl.DataFrame, ts: str, starts: Collection[dt.datetime]) -> pl.DataFrame:
    """Return the frame with ``epoch``, the last start at or before ``ts``.

    An epoch is a part of a recording between two gaps. A client's state in one epoch is no evidence in the next,
    because answers in between may be missing. Rows before all starts belong to the first epoch. Without starts the
    epoch is null.
    """
    ordered = sorted(map(utc, starts))
    epoch = pl.lit(ordered[0] if ordered else None, INSTANT)
    for start in ordered[1:]:
        epoch = pl.when(pl.col(ts) >= start).then(pl.lit(start, INSTANT)).otherwise(epoch)
    return frame.with_columns(epoch.alias("epoch"))


def utc(instant: dt.datetime) -> dt.datetime:
    """Return the instant with a time zone; UTC if it has none."""
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=dt.UTC)


def with_session(rows: pl.DataFrame, by: Sequence[str], from_ts: str, to_ts: str, gap_s: int) -> pl.DataFrame:
    """Return the rows with ``session``: within ``by``, rows less than ``gap_s`` seconds apart share a number.

    A row's span is [from_ts, to_ts]. A session continues while the next row starts at most ``gap_s`` seconds after the
    latest end so far.
    """
    reached = pl.col(to_ts).cum_max().forward_fill().shift(1).over(by)
    gap_ms = pl.col(from_ts).dt.epoch("ms") - reached.dt.epoch("ms")
    begins = gap_ms.is_null() | (gap_ms > gap_s * 1000)
    return (
        rows.sort(from_ts, to_ts)
        .with_columns(begins.alias("_begins"))
        .with_columns(pl.col("_begins").cum_sum().over(by).alias("session"))
        .drop("_begins")
    )


def merge(
    rows: pl.DataFrame,
    by: Sequence[str],
    *more: pl.Expr,
    gap_s: int = 0,
    at: str | None = None,
    begin: str = "from_ts",
    end: str = "to_ts",
) -> pl.DataFrame:
    """Return the spans; those of a key that touch, overlap or are at most ``gap_s`` seconds apart become one.

    Columns: ``by``, from_ts, to_ts, and the aggregates ``more``. A row's span is from ``begin`` to ``end``, or the
    instant ``at``.
    """
    begin, end = at or begin, at or end
    extent = (pl.col(begin).min().alias("from_ts"), pl.col(end).max().alias("to_ts"))
    sessions = with_session(rows, by, begin, end, gap_s).group_by(*by, "session")
    return sessions.agg(*extent, *more).drop("session")


def intersect(spans: pl.DataFrame, others: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return each part of a span that is within one of ``others``, with the columns of both rows."""
    met = spans.join(others.rename({"from_ts": "_from", "to_ts": "_to"}), by)
    from_ts, to_ts = pl.max_horizontal("from_ts", "_from"), pl.min_horizontal("to_ts", "_to")
    return (
        met.with_columns(from_ts=from_ts, to_ts=to_ts).filter(pl.col("to_ts") > pl.col("from_ts")).drop("_from", "_to")
    )


def count_spans(spans: Mapping[str, pl.DataFrame], by: Sequence[str]) -> pl.DataFrame:
    """Return for each time how many spans of each named frame cover it.

    Columns: ``by``, from_ts, to_ts, and one count per name.
    """
    edges = [
        frame.select(
            *by,
            pl.col(edge).alias("from_ts"),
            *[pl.lit(step if name == column else 0, pl.Int64).alias(column) for column in spans],
        )
        for name, frame in spans.items()
        for edge, step in (("from_ts", 1), ("to_ts", -1))
    ]
    changes = pl.concat(edges).group_by(*by, "from_ts").agg(pl.col(column).sum() for column in spans)
    counted = changes.sort("from_ts").with_columns(
        pl.col("from_ts").shift(-1).over(by).alias("to_ts"),
        *[pl.col(column).cum_sum().over(by) for column in spans],
    )
    return counted.filter(pl.col("to_ts").is_not_null()).select(*by, "from_ts", "to_ts", *spans)


def subtract(spans: pl.DataFrame, cuts: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the merged spans without the times that ``cuts`` of their key cover. Columns: ``by``, from_ts, to_ts."""
    counted = count_spans({"spans": spans, "cuts": cuts}, by)
    return merge(counted.filter((pl.col("spans") > 0) & (pl.col("cuts") == 0)), by)


def with_run(rows: pl.DataFrame, begins: pl.Expr, by: Sequence[str], name: str = "run") -> pl.DataFrame:
    """Return the rows, in their order, with the number of their run: a run begins where ``begins`` is true or null."""
    marked = rows.with_columns(begins.fill_null(value=True).alias("_begins"))
    return marked.with_columns(pl.col("_begins").cum_sum().over(by).alias(name)).drop("_begins")


def with_state(
    rows: pl.DataFrame,
    states: pl.DataFrame,
    by: str | Sequence[str],
    at: str,
    since: str | None = None,
    *,
    after: bool = False,
    exact: bool = True,
    within: str | dt.timedelta | None = None,
    suffix: str = "_right",
) -> pl.DataFrame:
    """Return the rows, by ``at``, with the columns of the last of ``states`` at or before it; null if there is none.

    ``since`` is the instant of a state, and is added if it is not named as ``at``. ``after``: the first state at or
    after it counts. Not ``exact``: a state at the same instant does not count. ``within``: one further away does not.
    """
    return rows.sort(at, maintain_order=True).join_asof(
        states.sort(since or at, maintain_order=True),
        left_on=at,
        right_on=since or at,
        by=by or None,
        strategy="forward" if after else "backward",
        allow_exact_matches=exact,
        tolerance=within,
        suffix=suffix,
        check_sortedness=False,
    )


def with_nearest_row(
    left: pl.DataFrame, right: pl.DataFrame, by: Sequence[str], left_at: str, right_at: str, names: Sequence[str]
) -> pl.DataFrame:
    """Return ``left``, by its instants, with the columns ``names`` of the ``right`` row before, else of the one after.

    The rows are those of the same ``by`` nearest to ``left_at``. A value that the row before lacks is that of the row
    after. The column ``right_at``, and those of the row after, are added, too.
    """
    known = right.select(*by, right_at, *names)
    before = with_state(left, known, by, left_at, right_at)
    both = with_state(before, known, by, left_at, right_at, after=True, suffix="_forward")
    return both.with_columns(pl.coalesce(name, f"{name}_forward") for name in names)
