"""Clients whose clock is off: what they say carries other instants than what the brokers' files show.

A commit is in the master's consumerOffset.json with its next write (every 5 s) and in the next copy of it. If a
client's commits are in copies taken long before, or only in copies taken long after, its clock is wrong. The instants
of brokers and name servers are by the recorder's clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqreplay.core.clock_stretch import LEAST, WRITE_MS
from mqreplay.judge.clock_stretches import Words, stretches

WORDS: dict[str, pl.DataType] = {
    "client_id": pl.String(),
    "said_ms": pl.Int64(),
    "shown_ms": pl.Int64(),
    "off_ms": pl.Int64(),
    "unsure_ms": pl.Int64(),
}
# clock_stretches.Stretch explains the columns.
SCHEMA: dict[str, pl.DataType] = {
    "client_id": pl.String(),
    "said_until_ms": pl.Int64(),
    "shown_from_ms": pl.Int64(),
    "shown_until_ms": pl.Int64(),
    "skew_ms": pl.Int64(),
    "matches": pl.Int64(),
}


def client_clocks(words: Sequence[pl.DataFrame], skew_s: int) -> pl.DataFrame:
    """Return SCHEMA: all stretches, in order, of each client whose clock was ever off by more than ``skew_s`` seconds.

    ``words`` are the rows of client_words.clocks, one frame a shard. Only words of clients that may be off are put
    together.
    """
    most_ms = skew_s * 1000
    counts = [_off(part, most_ms) for part in words]
    # A median of LEAST words or more is off only if half of them are. Most clients are right, and go no further.
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
    """Return the frame with those instants by the recorder's clock, to the millisecond. ``skewed`` is client_clocks'.

    The first of the instants decides to which of its client's stretches a row belongs.
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
    """client_id, n: how many of its words are off."""
    off = words.filter((pl.col("off_ms") + WRITE_MS).abs() > most_ms)
    return off.group_by("client_id").agg(pl.len().cast(pl.Int64).alias("n"))


def _words(of_client: pl.DataFrame) -> Words:
    said, shown, off, unsure = (of_client[name].to_numpy() for name in ("said_ms", "shown_ms", "off_ms", "unsure_ms"))
    return Words(said, shown, off, unsure)
