"""Brokers over the night: whether they answered, and the settings in force, by the rules of `mqreplay at`."""

from __future__ import annotations

import polars as pl

from mqreplay.lake.row_filter import RowFilter
from mqreplay.moment.brokers import POLLED, settings_of
from mqreplay.moment.instant import Recorded
from mqreplay.moment.steps import Steps, first_ms, ms_between, rows_of, value_steps
from mqreplay.words.keys import BROKER

UP, DOWN = 1, 0  # None: nobody asked
Broker = tuple[str, int]


def broker_states(night: Recorded) -> dict[Broker, Steps]:
    """Return for each broker whether it answered the last poll (UP, DOWN), or None 90 s after the last one.

    While a finding broker_down lasts, the broker is DOWN, even if a poll was answered.
    """
    last = ms_between(night.first, night.last)
    stale = int(POLLED.total_seconds() * 1_000) + 1
    asked = rows_of(night, "silver.broker_runtime", "ts").select(
        *BROKER, first_ms("ts", night).alias("at"), pl.col("error").is_null().alias("up")
    )
    polls = asked.sort(*BROKER, "at").with_columns(pl.col("at").shift(-1).over(BROKER).alias("next"))
    before = pl.col("up").shift(1).over(BROKER)
    gap = pl.col("next").is_null() | (pl.col("next") - pl.col("at") > stale)
    after_gap = (pl.col("at") - pl.col("at").shift(1).over(BROKER)) > stale
    # Polls that change nothing are left out.
    turns = polls.filter(gap | after_gap.fill_null(value=True) | (before != pl.col("up")).fill_null(value=True))
    values: dict[Broker, list[tuple[int, int | None]]] = {}
    for name, broker_id, at, up, following in turns.collect().iter_rows():
        steps = values.setdefault((name, broker_id), [])
        steps.append((at, UP if up else DOWN))
        if following is None or following - at > stale:
            steps.append((at + stale, None))
    described = night.warehouse.read("silver.broker", RowFilter(night.cluster)).select(BROKER).unique().collect()
    for broker in described.rows():
        values.setdefault((broker[0], broker[1]), [])
    made = {broker: value_steps(steps, last) for broker, steps in sorted(values.items())}
    found = night.before("gold.finding", "from_ts", night.last).filter(pl.col("kind") == "broker_down")
    for finding in found.sort("day").unique("finding_id", keep="last").collect().iter_rows(named=True):
        broker = (finding["broker_name"], finding["broker_id"])
        if broker in made:
            begin = -ms_between(finding["from_ts"], night.first)
            end = last + 1 if finding["to_ts"] is None else -ms_between(finding["to_ts"], night.first)
            made[broker] = _with_outage(made[broker], begin, end, last)
    return made


def _with_outage(steps: Steps, begin: int, end: int, last: int) -> Steps:
    """Return the steps with DOWN from ``begin`` to before ``end``.

    >>> _with_outage([0, 1, 5, None], 2, 9, 20)
    [0, 1, 2, 0, 9, None]
    """
    pairs = [(at or 0, value) for at, value in zip(steps[::2], steps[1::2], strict=True)]
    after = [value for at, value in pairs if at <= end][-1:]
    kept = [(at, value) for at, value in pairs if not begin <= at <= end]
    return value_steps(
        sorted([*kept, (begin, DOWN), *((end, value) for value in after)], key=lambda each: each[0]), last
    )


def broker_settings(night: Recorded) -> dict[Broker, dict[str, str]]:
    """Return the settings in force at the end of the night that decide for readers."""
    rows = night.warehouse.read("silver.broker", RowFilter(night.cluster)).filter(pl.col("ts") <= night.last)
    found: dict[Broker, dict[str, str]] = {}
    last = rows.sort("ts").group_by(BROKER).last()
    for row in settings_of(last).sort(*BROKER, "name").iter_rows(named=True):
        found.setdefault((row["broker_name"], row["broker_id"]), {})[row["name"]] = row["value"]
    return found
