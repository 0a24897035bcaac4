"""What became of messages that groups sent back, by the requests and by the pulls of their retry topics."""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from mqreplay.evidence.messages.audit_scope import GROUP_QUEUE
from mqreplay.evidence.messages.pulled_messages import PulledMessages

MESSAGE: Final = ("consumer_group", "topic", "msg_id")
GROUP: Final = "consumer_group"


def retry_fates(retried: pl.DataFrame, pulled: PulledMessages) -> pl.DataFrame:
    """Return consumer_group, topic, msg_id and is_dead of each message that was sent back.

    ``retried`` are rows of gold.retried_message. ``is_dead``: the last request made it a dead letter; null: not known.
    A message is known to be consumed by a retry if the group received as many messages of its retry topic as went
    there, and committed past all of them: a retry that failed would have been sent back, too.
    """
    target = pl.col("expected_topic")
    last = retried.sort("sent_ts", "record_id").group_by(MESSAGE).agg(target.last())
    went = (
        retried.filter(target.str.starts_with(RETRY_GROUP_TOPIC_PREFIX)).group_by(GROUP).agg(pl.len().alias("retries"))
    )
    of_retries = pulled.received.filter(pl.col("topic") == RETRY_GROUP_TOPIC_PREFIX + pl.col(GROUP))
    width = pl.col("to_offset") - pl.col("from_offset")
    is_passed = pl.col("to_offset") <= pl.max_horizontal("committed", "furthest")
    got = (
        of_retries.join(pulled.queues, GROUP_QUEUE)
        .group_by(GROUP)
        .agg(width.sum().alias("received"), is_passed.fill_null(value=False).all().alias("is_passed"))
    )
    known = last.join(went, GROUP, how="left").join(got, GROUP, how="left")
    is_done = pl.col("is_passed") & (pl.col("received") >= pl.col("retries"))
    is_dead = (
        pl.when(target.str.starts_with(DLQ_GROUP_TOPIC_PREFIX))
        .then(pl.lit(value=True))
        .when(target.is_not_null() & is_done)
        .then(pl.lit(value=False))
    )
    return known.select(*MESSAGE, is_dead.alias("is_dead"))
