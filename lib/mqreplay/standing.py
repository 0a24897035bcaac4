"""The consumer offsets that stood when a day began, kept once, so that no night asks what all nights before it changed.

silver.offset_change holds changes alone: what stood is the last change of each offset, however long ago. For each day
that has days before it, silver.standing_offset keeps those last changes, made from the day before it and what stood
then. It may lack a day: then it is found from the last one that is there, and what changed since.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.lake.sql import among, quoted
from mqreplay.lake.warehouse import Warehouse

TABLE, CHANGES = "silver.standing_offset", "silver.offset_change"
DAY = dt.timedelta(days=1)
CHAIN = ["source_name", "topic", "consumer_group", "broker_name", "queue_id"]
PLACE = ["cluster", "broker_id", "client_id"]  # a source's own


class Standing:
    """Of one cluster. Use it under the warehouse's lock; days are UTC's."""

    def __init__(self, warehouse: Warehouse, cluster: str) -> None:
        """Asks which days are kept."""
        self._warehouse, self._cluster = warehouse, cluster
        kept = self._rows(TABLE).select("day").distinct().collect() if warehouse.exists(TABLE) else []
        self._days: set[dt.date] = {row.day for row in kept}

    def keep(self, day: dt.date) -> None:
        """Keeps what stood when the day began, unless it is kept, or nothing did."""
        if day in self._days or (not any(kept < day for kept in self._days) and self._before(day).isEmpty()):
            return
        stood = self.last_before(day).withColumn("day", F.lit(day))
        self._warehouse.replace(TABLE, stood, self._of(f"day = {quoted(str(day))}"), nothing_there=True)
        self._days.add(day)

    def forget(self, after: dt.date, until: dt.date) -> None:
        """Forgets what stood when days began after the one and until the other: changes before them will be others."""
        wrong = sorted(str(kept) for kept in self._days if after < kept <= until)
        if wrong:
            self._warehouse.replace(TABLE, self._warehouse.frame(TABLE, []), self._of(among("day", wrong)))
            self._days -= {dt.date.fromisoformat(day) for day in wrong}

    def last_before(self, day: dt.date) -> DataFrame:
        """Of each offset the last row of silver.offset_change before the day, but for its day and its file."""
        return _end(self._before(day), F.max, F.max_by)

    def from_day(self, day: dt.date) -> DataFrame:
        """Rows of silver.offset_change: those of the day and after it, and of those before each offset's last."""
        kept = max((kept for kept in self._days if kept <= day), default=None)
        changes = self._rows(CHANGES)
        if kept is None:
            return changes
        later = changes.where(F.col("day") >= F.lit(kept))
        return later.unionByName(self._kept(kept).withColumn("day", F.to_date("to_ts")), allowMissingColumns=True)

    def at(self, instant: dt.datetime) -> DataFrame:
        """Rows as of silver.offset_change: each offset that stood at the instant (UTC) is its last one's new_offset."""
        next_day = instant.date() + DAY
        if next_day not in self._days:
            return self.from_day(instant.date()).where(F.col("to_ts") < F.lit(instant))
        # What changed between then and midnight is undone: the day before is not read for it.
        of_day = self._rows(CHANGES).where(F.col("day") == F.lit(instant.date()))
        first = _end(of_day.where(F.col("to_ts") >= F.lit(instant)), F.min, F.min_by)
        undone = first.withColumns({"new_offset": F.col("previous_offset"), "to_ts": F.coalesce("from_ts", "to_ts")})
        return self._kept(next_day).where(F.col("to_ts") < F.lit(instant)).unionByName(undone)

    def _before(self, day: dt.date) -> DataFrame:
        return self.from_day(day).where(F.col("day") < F.lit(day))

    def _kept(self, day: dt.date) -> DataFrame:
        return self._rows(TABLE).where(F.col("day") == F.lit(day)).drop("day")

    def _rows(self, name: str) -> DataFrame:
        return self._warehouse.read(name).where(F.col("cluster") == self._cluster)

    def _of(self, condition: str) -> str:
        return f"cluster = {quoted(self._cluster)} AND {condition}"


def _end(changes: DataFrame, end: Callable[[str], Column], by_end: Callable[[str, str], Column]) -> DataFrame:
    """Of each offset the row of the first, or last, to_ts, but for its day and its file."""
    # Numbers alone: Spark would sort all rows to keep a text of one, which takes three times as long.
    told = [by_end(name, "to_ts").alias(name) for name in ("previous_offset", "new_offset", "from_ts")]
    return changes.groupBy(*CHAIN, *PLACE).agg(*told, end("to_ts").alias("to_ts"))
