"""The first pass: facts of the whole day that the judgement of each queue needs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.decisions.decision import by_name
from mqreplay.engines.passes import GoldRows, Pass, PassRunner, PassTable
from mqreplay.engines.rows import CountedRows
from mqreplay.engines.shards import Counts, Shard, deal, total
from mqreplay.evidence.night_facts import CHANGE, COMMIT_COLUMNS, PULL_COLUMNS, NightFacts, Survey, night_facts, survey
from mqreplay.lake.buckets import columns_of
from mqreplay.lake.row_filter import Days
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import NO_TIME, Day, DayRows, Skew
from mqreplay.replay.frames import Steps
from mqreplay.replay.queue_tables import QUEUE_BUCKET

# The columns of each table, by its instant.
SURVEYED: Final = {
    "pull": ("request_ts", PULL_COLUMNS),
    "offset_commit": ("ts", COMMIT_COLUMNS),
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
        rows.silver(name, None, shared.skew, columns)
        for name, columns in (("pull", PULL_COLUMNS), ("offset_commit", COMMIT_COLUMNS))
    )
    # Offsets from before the lookback are carried over with the instant of a first copy, which is not the last.
    changes = rows.around("offset_change", NO_TIME, None, CHANGE)
    days = Days(shared.day.since.date(), shared.day.day)
    counts = source.counts({f"silver.{name}": QUEUE_BUCKET for name in SURVEYED}, days)
    return SurveyResult(survey(pull, commits, changes, shared.starts), counts)


def _needed(instant: str, columns: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*columns, *columns_of(QUEUE_BUCKET), "day", instant]))


SURVEY_PASS: Final = Pass(
    survey_files, tuple(PassTable(f"silver.{name}", None, _needed(*needed)) for name, needed in SURVEYED.items())
)


@dataclass(frozen=True)
class Surveyed:
    """Facts of the whole day, and the shards of its queues."""

    facts: NightFacts
    shards: Sequence[Shard]


def run_survey(runner: PassRunner, context: ReplayContext, topic_stats: pl.DataFrame) -> Surveyed:
    """Survey all rows of the day."""
    parts = list(runner.run(SURVEY_PASS, [], SurveyInput(context.day, context.skew, context.starts)))
    facts = night_facts([each.facts for each in parts], topic_stats, context.starts)
    return Surveyed(facts, deal(total([each.counts for each in parts])))


STEPS: Final[Steps] = {
    "surveyed": by_name(run_survey),
    "facts": "surveyed.facts",
    "shards": "surveyed.shards",
    "groups_with_commits": "facts.groups_with_commits",
}
