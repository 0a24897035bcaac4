"""What tasks tell the driver beside the rows they give: the counts of a file, and what was refused of it.

Told by an accumulator, so that rows are decoded once and written at once: kept for a second look, they would be stored
as often as they are read. A task that is run again tells the same again, under the same key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from mqreplay.ingest.lines import Refused

Told = dict[Any, Any]


class _ByKey(AccumulatorParam[Told]):
    def zero(self, value: Told) -> Told:
        return {}

    def addInPlace(self, value1: Told, value2: Told) -> Told:
        value1.update(value2)
        return value1


def told_by(spark: SparkSession) -> Accumulator[Told]:
    """An empty accumulator, for the tasks of one action; its value is whole once that is over."""
    return spark.sparkContext.accumulator({}, _ByKey())


@dataclass
class FileTold:
    """Of one file of lines: how many lines and rows, the first and last instant (epoch microseconds), what it lacks.

    ``refused`` holds the first refused lines and, if there are more, a row about them; ``quarantined`` counts them all.
    ``reason`` says why the file was not read, or not to its end.
    """

    lines: int = 0
    rows: int = 0
    first_us: int | None = None
    last_us: int | None = None
    refused: list[Refused] = field(default_factory=list)
    quarantined: int = 0
    reason: str | None = None

    def saw(self, rows: int, first_us: int | None, last_us: int | None) -> None:
        """More rows, between two instants."""
        self.rows += rows
        if first_us is not None and last_us is not None:
            self.first_us = first_us if self.first_us is None else min(self.first_us, first_us)
            self.last_us = last_us if self.last_us is None else max(self.last_us, last_us)
