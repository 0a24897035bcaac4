"""Two days of a cluster side by side: findings that are new, gone or recur; lag, owners and settings that changed."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from mqreplay.answers.state import BY_SEVERITY
from mqreplay.lake.row_filter import RowFilter, plain_rows
from mqreplay.moment.brokers import settings_of
from mqreplay.moment.instant import Recorded
from mqreplay.words.errors import InputError
from mqreplay.words.keys import BROKER, GROUP
from mqreplay.words.time_span import ONE_DAY, day_span

# What makes two findings of different days the same trouble.
SAME: Final = ("kind", "consumer_group", "topic", "broker_name", "broker_id")
NEW, GONE, RECURS = "new", "gone", "recurs"
OF_GROUP: Final = ("members", "queues", "most_lag", "rounds")


@dataclass(frozen=True)
class Comparison:
    """Frames of two days.

    ``findings``: SAME, severity, change (NEW, GONE or RECURS), before and after (how many on each day), finding_id (the
    last one). ``groups``: consumer_group, and each of OF_GROUP before and after, where one of them changed.
    ``settings``: broker_name, broker_id, name, before and after.
    """

    cluster: str
    before: dt.date
    after: dt.date
    findings: pl.DataFrame
    groups: pl.DataFrame
    settings: pl.DataFrame

    def as_plain(self) -> dict[str, Any]:
        """Return the comparison as plain values, for JSON."""
        rows = {name: plain_rows(getattr(self, name)) for name in ("findings", "groups", "settings")}
        head = {"cluster": self.cluster, "before": self.before, "after": self.after}
        return {**head, "counts": self.counts, **rows}

    @property
    def counts(self) -> dict[str, int]:
        """Return how many findings are NEW, GONE and recur, by what makes two of them the same (SAME)."""
        return {change: self.findings.filter(pl.col("change") == change).height for change in (NEW, GONE, RECURS)}


def compare_days(recorded: Recorded, before: str, after: str) -> Comparison:
    """Return what changed from one day to another, written as 2026-11-21. Raises InputError for a day not judged."""
    judged = recorded.judged_days()
    return compare(recorded, _day(before, judged), _day(after, judged))


def _day(text: str, judged: list[dt.date]) -> dt.date:
    """Return the day of a text. Raises InputError if it is none, or was not judged."""
    try:
        day = dt.date.fromisoformat(str(text))  # notebooks have days of Python, too
    except ValueError:
        raise InputError(f"{text!r} is no day; write it as 2026-11-21") from None
    if day not in judged:
        raise InputError(f"{day} has not been judged; judged days: {day_span(judged)}")
    return day


def compare(recorded: Recorded, before: dt.date, after: dt.date) -> Comparison:
    """Return what changed from one day to another (UTC)."""
    both = [_findings(recorded, day) for day in (before, after)]
    groups = [_groups(recorded, day) for day in (before, after)]
    settings = [_settings(recorded, day) for day in (before, after)]
    return Comparison(recorded.cluster, before, after, _changed(*both), _other(*groups), _different(*settings))


def _of_day(recorded: Recorded, name: str, day: dt.date) -> pl.LazyFrame:
    return recorded.warehouse.read(name, RowFilter(recorded.cluster, days=frozenset({day})))


def _findings(recorded: Recorded, day: dt.date) -> pl.DataFrame:
    found = _of_day(recorded, "gold.finding", day).sort("from_ts", "finding_id")
    return (
        found.group_by(SAME)
        .agg(pl.len().cast(pl.Int64).alias("number"), pl.col("severity", "finding_id").last())
        .collect()
    )


def _changed(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    joined = before.join(after, SAME, how="full", nulls_equal=True, coalesce=True, suffix="_after")
    change = (
        pl.when(pl.col("number").is_null())
        .then(pl.lit(NEW))
        .when(pl.col("number_after").is_null())
        .then(pl.lit(GONE))
        .otherwise(pl.lit(RECURS))
    )
    named = joined.select(
        change.alias("change"),
        pl.coalesce("severity_after", "severity").alias("severity"),
        *SAME,
        pl.col("number").fill_null(0).alias("before"),
        pl.col("number_after").fill_null(0).alias("after"),
        pl.coalesce("finding_id_after", "finding_id").alias("finding_id"),
    )
    order = pl.col("change").replace_strict({NEW: 0, GONE: 1, RECURS: 2}, return_dtype=pl.Int64)
    return named.sort(BY_SEVERITY, order, *SAME)


def _groups(recorded: Recorded, day: dt.date) -> pl.DataFrame:
    """Return of each group the numbers OF_GROUP of a day."""
    members = _of_day(recorded, "gold.member", day).group_by(GROUP).agg(pl.col("client_id").n_unique().alias("members"))
    queue = pl.struct("topic", "broker_name", "queue_id")
    queues = _of_day(recorded, "gold.queue_owner", day).group_by(GROUP).agg(queue.n_unique().alias("queues"))
    lag = _of_day(recorded, "gold.group_status", day).group_by(GROUP).agg(pl.col("lag").max().alias("most_lag"))
    rounds = _of_day(recorded, "gold.rebalance_round", day).group_by(GROUP).agg(pl.len().alias("rounds"))
    found = members
    for each in (queues, lag, rounds):
        found = found.join(each, GROUP, how="full", coalesce=True)
    return found.select(GROUP, pl.col(OF_GROUP).cast(pl.Int64)).collect()


def _other(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    joined = before.join(after, GROUP, how="full", coalesce=True, suffix="_after")
    differs = [pl.col(name).ne_missing(pl.col(f"{name}_after")) for name in OF_GROUP]
    columns = [column for name in OF_GROUP for column in (pl.col(name).alias(f"{name}_before"), f"{name}_after")]
    return joined.filter(pl.any_horizontal(differs)).select(GROUP, *columns).sort(GROUP)


def _settings(recorded: Recorded, day: dt.date) -> pl.DataFrame:
    end = dt.datetime.combine(day, dt.time(), dt.UTC) + ONE_DAY
    each = settings_of(recorded.before("silver.broker", "ts", end))
    return each.sort("ts").group_by(*BROKER, "name").last().drop("ts")


def _different(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    joined = before.join(after, [*BROKER, "name"], how="full", coalesce=True, suffix="_after")
    named = joined.rename({"value": "before", "value_after": "after"})
    return named.filter(pl.col("before").ne_missing(pl.col("after"))).sort(*BROKER, "name")
