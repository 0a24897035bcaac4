"""Clients with a wrong clock: the times of their records differ from those of the brokers' files.

A commit is in the master's consumerOffset.json after its next write (every 5 s), and in the next copy of it. If a
client's commits are in copies from long before, or only in copies from long after, its clock is wrong. Times of brokers
and name servers are by the recorder's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from mqreplay.core.client_clock import USUAL_MS
from mqreplay.core.clock_stretch import AROUND, LEAST, NEAR_MS, SURE_MS, WRITE_MS
from mqreplay.evidence.arrays.frame_arrays import NOWHERE, Mask, Numbers
from mqreplay.evidence.arrays.nearest import nearest
from mqreplay.evidence.arrays.sorted_runs import lasts, one_later, ranks, starts
from mqreplay.evidence.queue_events import COMMIT, PULL, QueueEvents

WORDS: dict[str, pl.DataType] = {
    "client_id": pl.String(),
    "said_ms": pl.Int64(),
    "shown_ms": pl.Int64(),
    "off_ms": pl.Int64(),
    "unsure_ms": pl.Int64(),
}
# Stretch explains the columns.
SCHEMA: dict[str, pl.DataType] = {
    "client_id": pl.String(),
    "said_until_ms": pl.Int64(),
    "shown_from_ms": pl.Int64(),
    "shown_until_ms": pl.Int64(),
    "skew_ms": pl.Int64(),
    "matches": pl.Int64(),
}


def client_clocks(words: Sequence[pl.DataFrame], skew_s: int) -> pl.DataFrame:
    """Return SCHEMA: all time spans in order of each client whose clock was ever wrong by more than ``skew_s`` s.

    ``words`` are the rows of `client_words`, one frame per shard. Only rows of clients with a possibly wrong clock are
    merged.
    """
    most_ms = skew_s * 1000
    counts = [_off(part, most_ms) for part in words]
    # The median of LEAST or more rows is wrong only if half of them are. Most clients are right and end here.
    off = pl.concat([pl.DataFrame(schema={"client_id": pl.String, "n": pl.Int64}), *counts])
    suspects = off.group_by("client_id").agg(pl.col("n").sum()).filter(pl.col("n") > LEAST // 2)
    theirs = [part.join(suspects, on="client_id", how="semi") for part in words]
    of_clients = pl.concat([pl.DataFrame(schema=WORDS), *theirs]).sort("client_id").partition_by("client_id")
    rows = [
        {"client_id": of_client["client_id"][0]} | vars(stretch)
        for of_client in of_clients
        for stretch in stretches(_words(of_client), most_ms)
    ]
    return pl.DataFrame(rows, SCHEMA)


def by_recorders_clock(frame: pl.DataFrame, skewed: pl.DataFrame, *instants: str) -> pl.DataFrame:
    """Return the frame with these instants by the recorder's clock, in ms. ``skewed`` is client_clocks' frame.

    The first instant of a row decides to which time span of its client it belongs.
    """
    said = pl.col(instants[0]).dt.epoch("ms")
    numbered = skewed.select(
        "client_id",
        pl.col("said_until_ms").alias("_until_ms"),
        pl.col("skew_ms").alias("_skew_ms"),
        pl.int_range(pl.len()).over("client_id").alias("_number"),
    )
    off = frame.with_columns(pl.lit(None, pl.Int64).alias("_off_ms"))
    for _, stretch in sorted(numbered.partition_by("_number", as_dict=True, include_key=False).items()):
        holds = pl.col("_until_ms").is_null() | (said < pl.col("_until_ms"))
        off = (
            off.join(stretch, on="client_id", how="left", maintain_order="left")
            .with_columns(pl.coalesce("_off_ms", pl.when(holds).then("_skew_ms")))
            .drop("_until_ms", "_skew_ms")
        )
    right = [
        ((pl.col(name).dt.epoch("ms") - pl.col("_off_ms").fill_null(0)) * 1000).cast(frame.schema[name]).alias(name)
        for name in instants
    ]
    return off.with_columns(right).drop("_off_ms")


def _off(words: pl.DataFrame, most_ms: int) -> pl.DataFrame:
    """Return client_id, n: how many of its rows have a wrong time."""
    off = words.filter((pl.col("off_ms") + WRITE_MS).abs() > most_ms)
    return off.group_by("client_id").agg(pl.len().cast(pl.Int64).alias("n"))


def _words(of_client: pl.DataFrame) -> Words:
    said, shown, off, unsure = (of_client[name].to_numpy() for name in ("said_ms", "shown_ms", "off_ms", "unsure_ms"))
    return Words(said, shown, off, unsure)


def client_words(events: QueueEvents) -> pa.Table:
    """Return, for each client and each rise of an offset in the master's file, the last commit within the rise.

    client_id, ``said_ms`` (by the client's clock), ``shown_ms`` (of the copy), ``off_ms`` (its clock less the
    recorder's, by this word), ``unsure_ms`` (how far that may be off).

    The master's file got a commit after the copy before the first one that shows its offset or a later one. A pull
    repeats a commit since the client's previous row. If these are more than USUAL_MS apart, the middle counts. Offsets
    that the file passed more than once, as after a reset, are ignored.
    """
    risen, low = _rises(events)
    said, since = _first_words(events)
    of, offset = events.key[said], events.known("committed", said)
    rise = nearest(of, offset, events.key[risen], events.known("committed", risen), side="after")
    met = np.flatnonzero(rise != NOWHERE)
    met = met[low[rise[met]] < offset[met]] if len(risen) else met
    met = met[np.lexsort((offset[met], rise[met], events.by_client[said[met]]))]
    met = met[lasts(starts(events.by_client[said[met]], rise[met]), len(met))]
    said, since, shown = said[met], since[met], risen[rise[met]] if len(risen) else risen
    at, copied = events.known("at", said) // 1000, events.known("at", shown) // 1000
    before, there = events.numbers("also_at", shown)
    of_copy = _half_of_more(np.where(there, copied - before // 1000, 0))
    of_word = _half_of_more(at - since // 1000)
    off, unsure = (at - of_word) - (copied - of_copy), of_copy + of_word
    return events.table(said, ("client_id",), said_ms=at, shown_ms=copied, off_ms=off, unsure_ms=unsure)


def _half_of_more(ms: Numbers) -> Numbers:
    return np.maximum(ms - USUAL_MS, 0) // 2


def _rises(events: QueueEvents) -> tuple[Numbers, Numbers]:
    """Return the changes of masters' files by which an offset rose through a range that it passed only once."""
    rows = events.changes
    new, has_new = events.numbers("committed", rows)
    old, has_old = events.numbers("previous_offset", rows)
    _, has_before = events.numbers("also_at", rows)
    told = np.flatnonzero(events.of_master[rows] & has_new & (has_old | has_before))
    rows, new, old = rows[told], new[told], old[told]  # an entry that was not there is as good as 0
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


def _first_words(events: QueueEvents) -> tuple[Numbers, Numbers]:
    """Return, for each client, queue, group and offset, its first row, and since when the offset may be valid.

    A commit has its own time; a pull, which repeats a commit, only shows that it was since the client's last row.
    """
    offset, told = events.numbers("committed")
    rows = np.flatnonzero(((events.what == COMMIT) | (events.what == PULL)) & told & (offset > 0))
    rows = rows[np.lexsort((events.what[rows], events.known("at", rows), events.by_client[rows]))]
    at, client, is_commit = events.known("at", rows), events.by_client[rows], events.what[rows] == COMMIT
    goes_on = one_later(client, NOWHERE) == client
    since = np.where(is_commit | ~goes_on, at, one_later(at))
    order = np.lexsort((np.arange(len(rows)), offset[rows], client))
    first = order[starts(client[order], offset[rows][order])]
    first = first[goes_on[first]]  # a client's first row may repeat an old commit
    return rows[first], since[first]


@dataclass(frozen=True)
class Words:
    """The rows of `client_words` of one client, in any order; all in ms."""

    said: Numbers
    shown: Numbers
    off: Numbers
    unsure: Numbers

    def of(self, which: npt.NDArray[Any]) -> Words:
        """Some of the words."""
        return Words(self.said[which], self.shown[which], self.off[which], self.unsure[which])


@dataclass(frozen=True)
class Stretch:
    """A time span until ``said_until_ms`` (client's clock) in which the clock was ``skew_ms`` ahead of the recorder's.

    ``shown_from_ms`` and ``shown_until_ms`` are by the recorder's clock. None: from the first row, until the last.
    """

    said_until_ms: int | None
    shown_from_ms: int | None
    shown_until_ms: int | None
    skew_ms: int
    matches: int


def stretches(words: Words, most_ms: int) -> list[Stretch]:
    """Return the time spans in order; none if the clock was never wrong by more than ``most_ms`` plus the uncertainty.

    A clock that was set back shows some instants twice; they count as the first of the two times.
    """
    words = words.of(np.lexsort((words.off, words.said, words.shown)))
    runs = _sure_runs(words) or [words]
    skews = [_skew(run, most_ms) for run in runs]
    if not any(skews):
        return []
    until = [_between(earlier, later) for earlier, later in pairwise(runs)]
    began = [int(run.shown[0]) for run in runs[1:]]
    ended = [int(run.shown[-1]) for run in runs[:-1]]
    bounds = zip([*until, None], [None, *began], [*ended, None], strict=True)
    return [Stretch(*of, skew, len(run.off)) for of, skew, run in zip(bounds, skews, runs, strict=True)]


def _skew(run: Words, most_ms: int) -> int:
    skew = round(float(np.median(run.off))) + WRITE_MS
    is_off = len(run.off) >= LEAST and abs(skew) - np.median(run.unsure) > most_ms
    return skew if is_off else 0


def _between(earlier: Words, later: Words) -> int:
    """Return the instant by the client's clock at which the later span begins."""
    end, begin = int(earlier.said.max()), int(later.said.min())
    return (end + begin) // 2 if end < begin else end + 1


def _sure_runs(words: Words) -> list[Words]:
    """Return runs of copies with about the same skew and no contradicting row; merge neighbours that agree."""
    # A pull after a jump may repeat a commit from before it, so it is ignored.
    words = words.of(words.unsure <= np.median(words.unsure) + NEAR_MS)
    first = starts(words.shown)
    off, unsure = (_medians(column, first) for column in (words.off, words.unsure))
    jump = np.abs(np.diff(_smooth(off))) > NEAR_MS + unsure[1:] + unsure[:-1]
    found: list[Words] = []
    of_words, of_copies = np.split(np.arange(len(words.off)), first[1:][jump]), np.split(off, np.flatnonzero(jump) + 1)
    for run, copies in zip(of_words, of_copies, strict=True):
        one = words.of(run)
        one = one.of(np.abs(one.off - np.median(copies)) <= NEAR_MS + one.unsure)
        if not _is_sure(one):
            continue
        if found and abs(np.median(found[-1].off) - np.median(one.off)) <= NEAR_MS:
            one = _joined(found.pop(), one)
        found.append(one)
    return found


def _is_sure(run: Words) -> bool:
    copies = len(starts(run.shown))
    return copies >= LEAST and bool(min(np.ptp(run.shown), np.ptp(run.said)) >= SURE_MS)


def _joined(one: Words, other: Words) -> Words:
    pairs = ((one.said, other.said), (one.shown, other.shown), (one.off, other.off), (one.unsure, other.unsure))
    return Words(*map(np.concatenate, pairs))


def _medians(values: Numbers, first: Numbers) -> npt.NDArray[np.float64]:
    return np.array([np.median(part) for part in np.split(values, first[1:])])


def _smooth(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the median around each value; of fewer values at both ends."""
    half = AROUND // 2
    return np.array([np.median(values[max(i - half, 0) : i + half + 1]) for i in range(len(values))])
