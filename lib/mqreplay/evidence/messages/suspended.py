"""Messages that orderly listeners did not finish at once: their queue was suspended, and they were retried there."""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.evidence.messages.deliveries import once

SUSPENDED: Final = "SUSPEND_CURRENT_QUEUE_A_MOMENT"  # ConsumeOrderlyStatus
QUEUE: Final = ("consumer_group", "broker_name", "queue_topic", "queue_id")
PLACE: Final = (*QUEUE, "queue_offset")


def suspended_deliveries(consume: pl.DataFrame) -> pl.DataFrame:
    """Return all deliveries of the messages for which a listener suspended their queue: rows of silver.consume.

    ``consume`` is one shard, with queue_topic.
    """
    orderly = consume.filter(pl.col("orderly").fill_null(value=False) & pl.col("queue_offset").is_not_null())
    failed = orderly.filter(pl.col("status") == SUSPENDED).select(PLACE).unique()
    return once(orderly.join(failed, PLACE, how="semi")).select(
        *PLACE, "topic", "client_id", "msg_id", "ts", "reconsume_times", "status", "record_id"
    )
