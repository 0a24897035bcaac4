"""Topics that members of a group subscribed to before, and none of them any more."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.members.conflicts import stated_subscriptions
from mqreplay.evidence.members.membership import MEMBER
from mqreplay.evidence.members.ownership import GROUP_TOPIC, counted_spans, merged_spans


def unsubscribed_topics(heartbeat: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which all members of a group had stated lists without a topic that one had listed before.

    Columns: consumer_group, topic, from_ts, to_ts, record_ids (of the lists without it).

    A list is valid from one statement of the client to the next; a member without a statement may subscribe.
    ``members`` is the frame of `membership`.
    """
    lists = stated_subscriptions(heartbeat).filter(pl.col("topics").list.len() > 0)
    changes = lists.filter(pl.col("subscribed").ne_missing(pl.col("subscribed").shift().over(MEMBER)))
    topic = pl.col("topics").alias("topic")
    first = changes.explode("topics").group_by("consumer_group", topic).agg(pl.col("ts").min().alias("first_ts"))
    until = changes.with_columns(pl.col("ts").shift(-1).over(MEMBER).alias("until"))
    without = first.join(until, "consumer_group").filter(
        ~pl.col("topics").list.contains(pl.col("topic")) & (pl.col("ts") > pl.col("first_ts"))
    )
    sessions = members.select(*MEMBER, "from_ts", "to_ts")
    dropped = (
        without.join(sessions, MEMBER)
        .select(
            *GROUP_TOPIC,
            pl.max_horizontal("ts", "from_ts").alias("from_ts"),
            pl.min_horizontal("until", "to_ts").alias("to_ts"),
            "record_id",
        )
        .filter(pl.col("to_ts") > pl.col("from_ts"))
    )
    present = dropped.select(GROUP_TOPIC).unique().join(sessions, "consumer_group")
    counted = counted_spans({"present": present, "dropped": dropped}, GROUP_TOPIC)
    by_all = counted.filter((pl.col("dropped") > 0) & (pl.col("dropped") == pl.col("present")))
    spans = merged_spans(by_all, GROUP_TOPIC)
    stated = spans.join(dropped.select(*GROUP_TOPIC, "record_id", since="from_ts", until="to_ts"), GROUP_TOPIC)
    during = stated.filter((pl.col("since") < pl.col("to_ts")) & (pl.col("until") > pl.col("from_ts")))
    return during.group_by(*GROUP_TOPIC, "from_ts", "to_ts").agg(
        pl.col("record_id").unique().sort().alias("record_ids")
    )
