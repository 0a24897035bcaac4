"""All that is judged of one queue at a time, found by workers in one go over the events of queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from mqreplay.replay.as_of import SHARE, group_shares, nullable
from mqreplay.replay.by_queue import clocks, progress, slave_copies, standing, suspects, windows
from mqreplay.replay.by_queue.columns import QueueEvents
from mqreplay.replay.by_queue.events import QUEUE

Finder = Callable[[QueueEvents], pa.Table]


@dataclass(frozen=True)
class Look:
    """One thing that is looked for: its name, and its rows' columns as DDL."""

    name: str
    schema: str
    find: Finder


CLOCK = Look("clock", clocks.SCHEMA, clocks.clocks)


def looks_of_a_night(
    stuck_s: int, stale_slave_s: int, window_s: int, until_ms: int, last_copies: Iterable[Row]
) -> list[Look]:
    """Everything that gold tables and findings ask of each queue; what the arguments are is told where they go.

    ``last_copies`` are the rows of standstills.last_copies.
    """
    of_masters: dict[str, int] = {}
    of_slaves: dict[str, dict[int, int]] = {}
    for row in last_copies:
        if row.broker_id == 0:
            of_masters[row.broker_name] = row.copied_us
        else:
            of_slaves.setdefault(row.broker_name, {})[row.broker_id] = row.copied_us
    told_of_slaves = partial(slave_copies.slave_copies, slaves=of_slaves, reach_ms=stale_slave_s * 1000)
    return [
        CLOCK,
        Look("progress", progress.SCHEMA, progress.progress),
        Look("suspect", suspects.SCHEMA, suspects.suspects),
        Look("skip", suspects.SKIP_SCHEMA, suspects.skips),
        Look("still", standing.SCHEMA, partial(standing.standing, stuck_s=stuck_s, last_copies=of_masters)),
        Look("slave", slave_copies.SCHEMA, told_of_slaves),
        Look("status", windows.SCHEMA, partial(windows.windows, window_s=window_s, until_ms=until_ms)),
    ]


def looked_for(events: DataFrame, looks: Sequence[Look]) -> DataFrame:
    """A column a look, a struct of its columns; in each row one of them is not null. ``events`` is events.py's frame.

    Read several times (`of_look`), so let the caller keep it.
    """
    # At 100,000 rows a look takes a sixth of what it takes at 400,000: columns stay in the processor's cache.
    share = F.pmod(F.hash(*QUEUE), F.lit(group_shares(events))).alias(SHARE)
    shape = StructType([StructField(look.name, nullable(StructType.fromDDL(look.schema))) for look in looks])
    find = _finder([look.find for look in looks], to_arrow_schema(shape, timestamp_utc=True))
    return events.select("*", share).groupBy(SHARE).applyInArrow(find, shape)


def of_look(found: DataFrame, name: str) -> DataFrame:
    """The rows of one look."""
    return found.where(F.col(name).isNotNull()).select(f"{name}.*")


def _finder(finders: Sequence[Finder], schema: pa.Schema) -> Callable[[pa.Table], pa.Table]:
    def find(rows: pa.Table) -> pa.Table:
        events = QueueEvents(rows)
        return pa.concat_tables([_placed(finder(events), schema, place) for place, finder in enumerate(finders)])

    return find


def _placed(rows: pa.Table, schema: pa.Schema, place: int) -> pa.Table:
    fields = list(schema.field(place).type)
    columns = [rows[f.name].combine_chunks().cast(f.type) for f in fields]
    found = pa.StructArray.from_arrays(columns, fields=fields)
    arrays = [found if i == place else pa.nulls(len(rows), f.type) for i, f in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)
