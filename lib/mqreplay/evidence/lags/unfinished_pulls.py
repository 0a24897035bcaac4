"""Messages that pulls show to be unfinished: a client pulled past the group's offset, which does not advance.

A client commits the smallest offset that its listener has not finished (ProcessQueue#removeMessage). Pulls past it
show that the message was delivered to the client. While the master is down, offsets cannot be committed.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.time_spans import INSTANT

PUSH: Final = "CONSUME_PASSIVELY"
UNFINISHED: Final[dict[str, pl.DataType]] = {
    "day": pl.Date(),
    **dict.fromkeys(("consumer_group", "topic", "broker_name", "client_id"), pl.String()),
    "queue_id": pl.Int32(),
    "head_offset": pl.Int64(),
    "last_offset": pl.Int64(),
    "ts": INSTANT,
    "last_pull_ts": INSTANT,
    "until_ts": INSTANT,
    "record_id": pl.String(),
}


def unfinished_pulls_of_shard(pull: pl.DataFrame, standstills: pl.DataFrame, consumers: pl.DataFrame) -> pl.DataFrame:
    """Return the clients that pulled past a standstill, of schema UNFINISHED: one row for each standstill and client.

    ``pull`` are rows of silver.pull, ``standstills`` the frame of standstill_spans, ``consumers`` that of
    queue_start.consumers: only push consumers commit as their listener finishes. ``ts`` and ``record_id`` are those of
    the first pull past the offset ``head_offset``, ``last_pull_ts`` that of the last one, ``until_ts`` the end of the
    standstill, ``last_offset`` the last one before the offset of a pull.
    """
    if standstills.is_empty():
        return pl.DataFrame(schema=UNFINISHED)
    spans = standstills.explode("spans").unnest("spans").select(*KEY, "offset", "since_ts", "to_ts")
    push = consumers.filter(pl.col("consume_type") == PUSH).select("consumer_group", "client_id").unique()
    columns = ("day", *KEY, "client_id", "request_ts", "queue_offset", "record_id")
    # A pull from a slave has no commit; a master that does not answer takes none.
    of_master = pull.filter((pl.col("broker_id") == 0) & pl.col("response_code").is_not_null())
    of_spans = of_master.select(columns).join(spans.select(KEY).unique(), KEY, how="semi")
    met = of_spans.join(push, ["consumer_group", "client_id"], how="semi").join(spans, KEY)
    meanwhile = pl.col("request_ts").is_between("since_ts", "to_ts")
    past = met.filter(meanwhile & (pl.col("queue_offset") > pl.col("offset").clip(lower_bound=0))).sort("request_ts")
    found = past.group_by(*KEY, "client_id", "since_ts", maintain_order=True).agg(
        pl.col("day").first(),
        pl.col("offset").first().alias("head_offset"),
        (pl.col("queue_offset").max() - 1).alias("last_offset"),
        pl.col("request_ts").first().alias("ts"),
        pl.col("request_ts").last().alias("last_pull_ts"),
        pl.col("to_ts").first().alias("until_ts"),
        pl.col("record_id").first(),
    )
    return found.select([pl.col(name).cast(kind) for name, kind in UNFINISHED.items()])


def long_unfinished(unfinished: pl.DataFrame, outages: pl.DataFrame, slow_s: int) -> pl.DataFrame:
    """Return the rows of all shards that last ``slow_s`` seconds while the master of the queue was not down."""
    lasted = unfinished.filter(pl.col("until_ts") - pl.col("ts") >= pl.duration(seconds=slow_s))
    down = outages.filter(pl.col("broker_id") == 0).select("broker_name", "from_ts", "to_ts")
    met = lasted.join(down, "broker_name").filter(
        (pl.col("from_ts") <= pl.col("until_ts")) & (pl.col("to_ts") >= pl.col("ts"))
    )
    return lasted.join(met, [*KEY, "client_id", "ts"], how="anti")
