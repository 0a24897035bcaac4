"""Clients with a wrong clock: the times of their records differ from those of the brokers' files.

A commit is in the master's consumerOffset.json after its next write (every 5 s), and in the next copy of it. If a
client's commits are in copies from long before, or only in copies from long after, its clock is wrong. Times of brokers
and name servers are by the recorder's clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from mqreplay.core.clock_span import USUAL_MS, WRITE_MS, ClockSample, ClockSpan, clock_spans
from mqreplay.evidence.arrays.frame_arrays import NOWHERE, Mask, Numbers, lasts, one_later, ranks, starts
from mqreplay.evidence.arrays.nearest import nearest
from mqreplay.evidence.offsets.queue_events import COMMIT_ROW, PULL_ROW, QueueEvents

# The fields of core's ClockSample and ClockSpan.
SAMPLES: dict[str, pl.DataType] = {"client_id": pl.String(), **dict.fromkeys(ClockSample._fields, pl.Int64())}
CLOCK_SCHEMA: dict[str, pl.DataType] = {"client_id": pl.String(), **dict.fromkeys(ClockSpan._fields, pl.Int64())}


def client_clocks(samples: Sequence[pl.DataFrame], skew_s: int) -> pl.DataFrame:
    """Return all time spans, in order, of each client whose clock was ever wrong by more than ``skew_s`` seconds.

    Columns: client_id and the fields of core's ClockSpan. ``samples`` are the rows of `clock_samples`, one frame per
    shard.
    """
    most_ms = skew_s * 1000
    suspects = SuspectSamples(skew_s)
    for part in samples:
        suspects.add(part)
    of_clients = suspects.rows().sort("client_id").partition_by("client_id")  # most clients are right and not in it
    rows = [
        (of_client["client_id"][0], *span)
        for of_client in of_clients
        for span in clock_spans([ClockSample(*row) for row in of_client.drop("client_id").rows()], most_ms)
    ]
    return pl.DataFrame(rows, CLOCK_SCHEMA, orient="row")


class SuspectSamples:
    """The samples of clients whose clock may be wrong, of all shards.

    Any sample of a client may show that it is one, and then all of them count. So those of every client are kept, in a
    tenth of their size.
    """

    def __init__(self, skew_s: int) -> None:
        """Take no samples yet; ``skew_s`` is that of `client_clocks`."""
        self._most_ms = skew_s * 1000
        self._packed: list[bytes] = []
        self._suspects = pl.DataFrame(schema={"client_id": pl.String})

    def add(self, samples: pl.DataFrame) -> None:
        """Add the rows of `clock_samples` of one shard."""
        if samples.is_empty():
            return
        self._suspects = pl.concat([self._suspects, _surely_off(samples, self._most_ms)]).unique()
        self._packed.append(samples.write_ipc(None, compression="zstd").getvalue())

    def rows(self) -> pl.DataFrame:
        """Return the samples of the suspects; no rows if no clock can be wrong."""
        packed = self._packed if len(self._suspects) else []
        theirs = [pl.read_ipc(each).join(self._suspects, on="client_id", how="semi") for each in packed]
        return pl.concat([pl.DataFrame(schema=SAMPLES), *theirs])


def by_recorders_clock(frame: pl.DataFrame, skewed: pl.DataFrame, *instants: str) -> pl.DataFrame:
    """Return the frame with these instants by the recorder's clock, in ms. ``skewed`` is client_clocks' frame.

    The first instant of a row decides to which time span of its client it belongs.
    """
    stated = pl.col(instants[0]).dt.epoch("ms")
    numbered = skewed.select(
        "client_id",
        pl.col("stated_until_ms").alias("_until_ms"),
        pl.col("skew_ms").alias("_skew_ms"),
        pl.int_range(pl.len()).over("client_id").alias("_number"),
    )
    off = frame.with_columns(pl.lit(None, pl.Int64).alias("_off_ms"))
    for _, span in sorted(numbered.partition_by("_number", as_dict=True, include_key=False).items()):
        holds = pl.col("_until_ms").is_null() | (stated < pl.col("_until_ms"))
        off = (
            off.join(span, on="client_id", how="left", maintain_order="left")
            .with_columns(pl.coalesce("_off_ms", pl.when(holds).then("_skew_ms")))
            .drop("_until_ms", "_skew_ms")
        )
    right = [
        ((pl.col(name).dt.epoch("ms") - pl.col("_off_ms").fill_null(0)) * 1000).cast(frame.schema[name]).alias(name)
        for name in instants
    ]
    return off.with_columns(right).drop("_off_ms")


def _surely_off(samples: pl.DataFrame, most_ms: int) -> pl.DataFrame:
    """Return client_id of clients with a sample that is wrong by more than ``most_ms`` and its own uncertainty.

    clock_spans compares medians of a client's samples, and no median of differences is above all of them: half of the
    samples are off as much as the median or more, half are as sure as the median or more, and one is both. For an even
    number, the two samples in the middle of each show the same. The median is rounded, so a millisecond is allowed.
    """
    off = (pl.col("off_ms") + WRITE_MS).abs() - pl.col("unsure_ms") > most_ms - 1
    return samples.filter(off).select("client_id").unique()


def clock_samples(events: QueueEvents) -> pa.Table:
    """Return a ClockSample for each rise of an offset that contains an offset of the client, of a shard.

    Columns: client_id and the fields of core's ClockSample. A client is judged by all its samples, so no prefilter can
    leave some out. Measured over 4 hours of a made-up estate: the rule row by row (tests/oracles/client_clock.py) takes
    1.6 s of processor time for a shard with 359,000 events, this 0.06 s.
    """
    risen, low = _rises(events)
    stated, since = _first_statements(events)
    of, offset = events.key[stated], events.known("committed", stated)
    rise = nearest(of, offset, events.key[risen], events.known("committed", risen), side="after")
    met = np.flatnonzero(rise != NOWHERE)
    met = met[low[rise[met]] < offset[met]] if len(risen) else met
    met = met[np.lexsort((offset[met], rise[met], events.by_client[stated[met]]))]
    met = met[lasts(starts(events.by_client[stated[met]], rise[met]), len(met))]
    stated, since, shown = stated[met], since[met], risen[rise[met]] if len(risen) else risen
    at, copied = events.known("at", stated) // 1000, events.known("at", shown) // 1000
    before, there = events.numbers("also_at", shown)
    of_copy = _half_of_more(np.where(there, copied - before // 1000, 0))
    of_client = _half_of_more(at - since // 1000)
    off, unsure = (at - of_client) - (copied - of_copy), of_copy + of_client
    return events.table(stated, ("client_id",), stated_ms=at, shown_ms=copied, off_ms=off, unsure_ms=unsure)


def _half_of_more(ms: Numbers) -> Numbers:
    return np.maximum(ms - USUAL_MS, 0) // 2


def _rises(events: QueueEvents) -> tuple[Numbers, Numbers]:
    """Return the rises of offsets in masters' files through ranges that each offset passed only once."""
    rows = events.changes
    new, has_new = events.numbers("committed", rows)
    old, has_old = events.numbers("previous_offset", rows)
    _, has_before = events.numbers("also_at", rows)
    known = np.flatnonzero(events.of_master[rows] & has_new & (has_old | has_before))
    rows, new, old = rows[known], new[known], old[known]  # a missing entry counts as 0
    low, high = np.where(new > old, old, new - 1), np.maximum(new, old)
    alone = _alone(events.key[rows], low, high) & (new > old)
    return rows[alone], old[alone]


def _alone(key: Numbers, low: Numbers, high: Numbers) -> Mask:
    """Return whether each range, without its low end, overlaps no other of its key."""
    low_rank, high_rank = np.split(ranks(np.tile(key, 2), np.concatenate([low, high])), 2)
    order = np.argsort(low_rank, kind="stable")
    begin, end = low_rank[order], np.maximum.accumulate(high_rank[order])
    found = np.ones(len(key), bool)
    meets = np.flatnonzero(begin[1:] < end[:-1])
    found[order[meets + 1]] = False
    found[order[meets[begin[meets + 1] < high_rank[order][meets]]]] = False
    return found


def _first_statements(events: QueueEvents) -> tuple[Numbers, Numbers]:
    """Return, for each client, queue, group and offset, its first row, and since when the offset may be valid.

    A commit has its own time; a pull repeats a commit that the client made at some time since its previous row.
    """
    offset, known = events.numbers("committed")
    rows = np.flatnonzero(((events.what == COMMIT_ROW) | (events.what == PULL_ROW)) & known & (offset > 0))
    rows = rows[np.lexsort((events.what[rows], events.known("at", rows), events.by_client[rows]))]
    at, client, is_commit = events.known("at", rows), events.by_client[rows], events.what[rows] == COMMIT_ROW
    goes_on = one_later(client, NOWHERE) == client
    since = np.where(is_commit | ~goes_on, at, one_later(at))
    order = np.lexsort((np.arange(len(rows)), offset[rows], client))
    first = order[starts(client[order], offset[rows][order])]
    first = first[goes_on[first]]  # a client's first row may repeat an old commit
    return rows[first], since[first]
