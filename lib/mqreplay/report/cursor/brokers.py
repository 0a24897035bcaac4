"""Brokers over the night: whether they answered, and the settings in force, by the rules of `mqreplay at`."""

from __future__ import annotations

import polars as pl

from mqreplay.lake.row_filter import RowFilter
from mqreplay.moment.brokers import BROKER, POLLED, settings_of
from mqreplay.report.cursor.instants import Steps, first_ms, ms_between, value_steps
from mqreplay.report.pictures.night import PictureData

UP, DOWN = 1, 0  # None: nobody asked
Broker = tuple[str, int]


def broker_states(view: PictureData) -> dict[Broker, Steps]:
    """Return for each broker whether it answered the last poll (UP, DOWN), or None 90 s after the last one.

    A finding broker_down says DOWN in its time, whatever a poll says.
    """
    last = ms_between(view.night.first, view.night.last)
    stale = int(POLLED.total_seconds() * 1_000) + 1
    asked = view.rows("silver.broker_runtime", "ts").select(
        *BROKER, first_ms("ts", view.night).alias("at"), pl.col("error").is_null().alias("up")
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
    described = view.warehouse.read("silver.broker", RowFilter(view.cluster)).select(BROKER).unique().collect()
    for broker in described.rows():
        values.setdefault((broker[0], broker[1]), [])
    made = {broker: value_steps(steps, last) for broker, steps in sorted(values.items())}
    for finding in view.findings_of(("broker_down",)):
        broker = (finding["broker_name"], finding["broker_id"])
        if broker in made and finding["from_ts"] is not None:
            begin = -ms_between(finding["from_ts"], view.night.first)
            end = last + 1 if finding["to_ts"] is None else -ms_between(finding["to_ts"], view.night.first)
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
    return value_steps(sorted([*kept, (begin, DOWN), *((end, value) for value in after)], key=lambda each: each[0]), last)


def broker_settings(view: PictureData) -> dict[Broker, dict[str, str]]:
    """Return the settings in force at the end of the night that decide for readers."""
    rows = view.warehouse.read("silver.broker", RowFilter(view.cluster)).filter(pl.col("ts") <= view.night.last)
    found: dict[Broker, dict[str, str]] = {}
    last = rows.sort("ts").group_by(BROKER).last()
    for row in settings_of(last).sort(*BROKER, "name").iter_rows(named=True):
        found.setdefault((row["broker_name"], row["broker_id"]), {})[row["name"]] = row["value"]
    return found
