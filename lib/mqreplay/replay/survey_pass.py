"""The first pass: facts of the whole day that the judgement of each queue needs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mqreplay.engines.passes import GoldRows, Pass, PassTable
from mqreplay.engines.rows import CountedRows
from mqreplay.engines.shards import Counts, Shard
from mqreplay.evidence.night_facts import CHANGE, COMMIT, PULL, Survey, survey
from mqreplay.lake.buckets import columns_of
from mqreplay.lake.row_filter import Days
from mqreplay.replay.day import NO_TIME, Day, DayRows, Skew
from mqreplay.replay.queue_tables import QUEUE

# The columns of each table, by its instant.
SURVEYED: Final = {
    "pull": ("request_ts", PULL),
    "offset_commit": ("ts", COMMIT),
    "offset_change": ("to_ts", CHANGE),
}


@dataclass(frozen=True)
class SurveyInput:
    """The day, and its clocks and starts as in ReplayContext."""

    day: Day
    skew: Skew | None
    starts: Mapping[dt.datetime, dt.datetime]


@dataclass(frozen=True)
class SurveyResult:
    """Facts of some rows, and the number of rows by bucket of their queue."""

    facts: Survey
    counts: Counts


def survey_files(source: CountedRows, shard: Shard, shared: SurveyInput, gold: GoldRows) -> SurveyResult:
    """Survey any part of the rows."""
    rows = DayRows(shared.day, source)
    pull, commits = (
        rows.silver(name, None, shared.skew, columns) for name, columns in (("pull", PULL), ("offset_commit", COMMIT))
    )
    # Offsets from before the lookback are carried over with the instant of a first copy, which is not the last.
    changes = rows.around("offset_change", NO_TIME, None, CHANGE)
    days = Days(shared.day.since.date(), shared.day.day)
    counts = source.counts({f"silver.{name}": QUEUE for name in SURVEYED}, days)
    return SurveyResult(survey(pull, commits, changes, shared.starts), counts)


def _needed(instant: str, columns: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*columns, *columns_of(QUEUE), "day", instant]))


SURVEY_PASS: Final = Pass(
    survey_files, tuple(PassTable(f"silver.{name}", None, _needed(*needed)) for name, needed in SURVEYED.items())
)
