"""What else silver.offset_change could be: `python tools/bench/folds.py --warehouse DIR` (mqreplay's or a peer's).

Rows, bytes and seconds of the table as it is; with numbers for names; folded to hours; and as straight lines over time
that keep each offset to within some messages, and every fall exactly. One core, zstd as in the table.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

CHAIN = ("source_name", "topic", "consumer_group", "queue_id")
NAMES = ("source_name", "broker_name", "topic", "consumer_group")
WITHIN = (0, 10, 100)  # messages


def by_hour(changes: pl.DataFrame) -> pl.DataFrame:
    """One row a queue and hour: what a progress or a lag by the hour needs, and no more."""
    new = pl.col("new_offset")
    return changes.group_by(*CHAIN, pl.col("to_ts").dt.truncate("1h").alias("hour")).agg(
        pl.col("previous_offset").first().alias("first"),
        new.last().alias("last"),
        new.min().alias("least"),
        new.max().alias("most"),
        (new < pl.col("previous_offset")).any().alias("fell"),
    )


def by_number(changes: pl.DataFrame) -> pl.DataFrame:
    """The same rows, a queue named by one number; the names are a table of their own, small beside it."""
    number = pl.struct(CHAIN).rank("dense").cast(pl.Int32).alias("queue")
    return changes.select(number, "previous_offset", "new_offset", "from_ts", "to_ts")


def segments(changes: pl.DataFrame, within: int) -> pl.DataFrame:
    """The ends of straight lines: of each queue, offset by time, a line goes on while all its offsets fit into it."""
    chain = changes.select(pl.struct(CHAIN).rank("dense")).to_series().to_numpy()
    ts = changes["to_ts"].dt.timestamp("ms").to_numpy()
    offset = changes["new_offset"].fill_null(-1).to_numpy()
    kept = np.fromiter(_kept(chain.tolist(), ts.tolist(), offset.tolist(), within), np.int64)
    return pl.DataFrame({"queue": chain[kept].astype(np.int32), "ts": ts[kept], "offset": offset[kept]})


def _kept(chain: list[int], ts: list[int], offset: list[int], within: int):  # type: ignore[no-untyped-def]
    """Rows at which a line begins or ends: slopes that fit all offsets so far, narrowed by each."""
    begin, low, high = -1, 0.0, 0.0
    for row in range(len(chain)):
        if begin < 0 or chain[row] != chain[begin] or offset[row] < offset[row - 1]:
            if begin >= 0 and begin != row - 1:
                yield row - 1
            yield row
            begin, low, high = row, float("-inf"), float("inf")
            continue
        span, rise = ts[row] - ts[begin], offset[row] - offset[begin]
        slope = rise / span
        if not low <= slope <= high:
            # A line ends in an offset that was seen, so that what is kept is true.
            yield row - 1
            begin, low, high = row - 1, float("-inf"), float("inf")
            span, rise = ts[row] - ts[begin], offset[row] - offset[begin]
        low, high = max(low, (rise - within) / span), min(high, (rise + within) / span)
    if begin >= 0:
        yield len(chain) - 1


def main() -> None:
    """The command line."""
    from peers.equal import files_of  # a neighbour of the command, not of a test that imports the folds

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warehouse", type=Path, required=True, metavar="DIR")
    given = parser.parse_args()
    columns = [*NAMES, "queue_id", "previous_offset", "new_offset", "from_ts", "to_ts"]
    whole = pl.read_parquet(files_of(given.warehouse, "silver.offset_change"), columns=columns).sort(*CHAIN, "to_ts")
    print(f"{'silver.offset_change':34}{'rows':>12}{'of all':>9}{'MB':>8}{'of all':>9}{'seconds':>9}")
    ways: dict[str, Callable[[], pl.DataFrame]] = {
        "as it is": lambda: whole,
        "queues by number": lambda: by_number(whole),
        "hours": lambda: by_hour(whole),
    }
    ways |= {f"lines, to within {n} messages": lambda n=n: segments(whole, n) for n in WITHIN}
    first = 0
    for name, made in ways.items():
        began = time.perf_counter()
        frame = made()
        took = time.perf_counter() - began
        size = _bytes(frame)
        first = first or size
        shares = f"{len(frame) / len(whole):8.1%}", f"{size / first:8.1%}"
        print(f"{name:34}{len(frame):12,} {shares[0]}{size / 1e6:8.1f} {shares[1]}{took:9.1f}")


def _bytes(frame: pl.DataFrame) -> int:
    into = io.BytesIO()
    frame.write_parquet(into, compression="zstd")
    return len(into.getvalue())


if __name__ == "__main__":
    main()
