"""Queues of groups that consume by POP in order, where one message without acknowledgement holds back all others."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.core.pop_order import OrderInfo, check_block, next_offset
from mqreplay.evidence.frames import columns, instant_of, typed
from mqreplay.evidence.intervals import INSTANT
from mqreplay.words.keys import GROUP_QUEUE

ORDER_FILE = "consumerOrderInfo.json"
RECORD = ["source_name", *GROUP_QUEUE]
HEADS = columns("offset", "unacknowledged", "visible_ms")
BLOCKED: dict[str, pl.DataType] = {
    **columns("consumer_group", "topic", "broker_name", "queue_id", "from_ts", "to_ts"),
    "offset": pl.Int64(),  # of the first message without acknowledgement
    "unacknowledged": pl.Int64(),  # messages of the last record
    "source_name": pl.String(),  # key of the last record of silver.pop_order
    "ts": INSTANT,
}


def blocked_orders(pop_order: pl.DataFrame, snapshot: pl.DataFrame, stuck_s: int) -> pl.DataFrame:
    """Return the spans longer than ``stuck_s`` s in which the first unacknowledged message stayed the same.

    Columns: consumer_group, topic, broker_name, queue_id, from_ts, to_ts, offset, unacknowledged, source_name, ts.

    The arguments are silver tables. Only a master's copies count. A span begins with the first copy that shows the
    message, and ends with the last one that does. After the last record, it ends also when all messages are visible
    again: from then on nobody asks for them, so the queue is free. Between two copies with different first messages
    nothing is known. Follows ConsumerOrderInfoManager#checkBlock, OrderInfo#getNextOffset.
    """
    of_master = pop_order.filter(pl.col("broker_id") == 0).sort(*RECORD, "ts")
    heads = pl.DataFrame([_head(row) for row in of_master.iter_rows(named=True)], HEADS, orient="row")
    rows = pl.concat([of_master.select(*RECORD, pl.col("ts").cast(INSTANT)), heads], how="horizontal")
    is_new = pl.col("offset").ne_missing(pl.col("offset").shift(1)).over(RECORD)
    next_ts = pl.col("ts").shift(-1).over(RECORD)
    runs = (
        rows.with_columns(is_new.cum_sum().over(RECORD).alias("run"), next_ts.alias("next_ts"))
        .filter(pl.col("offset").is_not_null())
        .group_by(*RECORD, "run", maintain_order=True)
        .agg(
            pl.col("ts").first().alias("from_ts"),
            pl.col("ts", "next_ts", "visible_ms", "unacknowledged").last(),
            pl.col("offset").first(),
        )
    )
    is_order = pl.col("file_name").str.starts_with(ORDER_FILE)
    copies = snapshot.filter(is_order).select("source_name", pl.col("ts").cast(INSTANT).alias("copy_ts"))
    before_next = (pl.col("copy_ts") < pl.col("next_ts")).fill_null(True)
    last = runs.join(copies, "source_name").filter((pl.col("copy_ts") >= pl.col("ts")) & before_next)
    shown = last.group_by(*RECORD, "run").agg(pl.col("copy_ts").max())
    visible = instant_of("visible_ms")
    until = pl.max_horizontal("ts", pl.min_horizontal(pl.col("copy_ts").fill_null(pl.col("ts")), visible))
    spans = runs.join(shown, [*RECORD, "run"], how="left").with_columns(until.alias("to_ts"))
    long = spans.filter(pl.col("to_ts") - pl.col("from_ts") > pl.duration(seconds=stuck_s))
    return typed(long, BLOCKED).sort(*GROUP_QUEUE, "from_ts")


def _head(row: dict[str, Any]) -> tuple[int | None, int | None, int | None]:
    """Return offset, unacknowledged and visible_ms of a row of silver.pop_order; null if no message waits."""
    if not row["offset_list"] or row["commit_offset_bit"] is None:
        return None, None, None
    fields = {name: row[name] for name in OrderInfo._fields}
    changed = {pair["offset"]: pair["time"] for pair in row["offset_next_visible_time"] or ()}
    fields |= {"offset_list": tuple(row["offset_list"]), "offset_next_visible_time": changed}
    info = OrderInfo(**fields)
    waiting = [info.queue_offset(index) for index in range(len(row["offset_list"])) if info.is_not_ack(index)]
    if not waiting:
        return None, None, None
    times = sorted({info.pop_time + (info.invisible_time or 0), *changed.values()})
    visible = next((time for time in times if not check_block(info, None, 0, time)), times[-1])
    return next_offset(info), len(waiting), min(max(visible, 0), 2**52)  # any long may be in a file
