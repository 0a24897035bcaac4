"""Whether a dead letter queue grew when a message should have gone there, by the ends polled before and after.

A broker creates the topic with its first dead letter: until a copy of topics.json has it, its queue is empty.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX as DLQ
from mqreplay.evidence.arrays.nearest import as_of

PLACE: Final = ("stored_by", "expected_topic")
CLOCKS: Final = dt.timedelta(seconds=1)
ANSWERED: Final = dt.timedelta(seconds=11)  # the client waits 5 s for the answer, and the consume queue follows
TOPICS: Final = "topics.json"


def with_dead_letter_growth(
    rows: pl.DataFrame, ends: pl.DataFrame, snapshot: pl.DataFrame, topic_config: pl.DataFrame
) -> pl.DataFrame:
    """Add growth and letters: messages that the queue got in that time, and messages that should have gone there.

    ``rows`` are dead letters with stored_by, expected_topic and sent_ts, ``ends`` has the columns of `queue_ends`.
    growth is null if it is not known. A topic that was created in that time has grown.
    """
    of_place = {"broker_name": "stored_by", "topic": "expected_topic"}
    polled = ends.filter(pl.col("topic").str.starts_with(DLQ) & (pl.col("queue_id") == 0)).rename(of_place)
    absent = _absent(rows.select(PLACE).unique(), snapshot, topic_config.rename(of_place))
    known = pl.concat(
        [
            polled.select(*PLACE, "at", pl.col("queue_max_offset").alias("end")),
            absent.select(*PLACE, "at", pl.lit(0, pl.Int64).alias("end")),
        ]
    )
    around = rows.with_columns(began=pl.col("sent_ts") - CLOCKS, ended=pl.col("sent_ts") + ANSWERED)
    before, after = ({f"{side}_at": "at", f"{side}_end": "end"} for side in ("before", "after"))
    around = as_of(around, known, PLACE, "began", before, right_at="at")
    around = as_of(around, known, PLACE, "ended", after, right_at="at", after=True)
    last = absent.group_by(PLACE).agg(pl.col("at").max().alias("absent_to"), pl.col("first_ts").first())
    whole = around.join(last, PLACE, how="left")
    created = (pl.col("absent_to") < pl.col("ended")) & (pl.col("began") <= pl.col("first_ts"))
    letters = pl.len().over(*PLACE, "before_at", "after_at").cast(pl.Int64)
    growth = pl.coalesce(pl.col("after_end") - pl.col("before_end"), pl.when(created).then(letters))
    return whole.select(*rows.columns, growth.alias("growth"), letters.alias("letters"))


def _absent(places: pl.DataFrame, snapshot: pl.DataFrame, topic_config: pl.DataFrame) -> pl.DataFrame:
    """Return the copies of topics.json from before the first one with the topic: PLACE, at, first_ts (null: none)."""
    of_master = pl.col("broker_id") == 0
    first = topic_config.filter(of_master).group_by(PLACE).agg(pl.col("ts").min().alias("first_ts"))
    copies = snapshot.filter(of_master & (pl.col("file_name") == TOPICS)).select(
        pl.col("broker_name").alias("stored_by"), pl.col("ts").alias("at")
    )
    both = places.join(copies, "stored_by").join(first, PLACE, how="left")
    return both.filter((pl.col("at") < pl.col("first_ts")).fill_null(value=True))
