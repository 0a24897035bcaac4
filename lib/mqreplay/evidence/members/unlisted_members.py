"""Groups that consume although no broker lists a member: their members are behind a proxy in cluster mode.

A proxy that answers lists them. Without it, each such group is a row of gold.replay_gap.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqreplay.core.system_names import PROXY_GROUP
from mqreplay.evidence.gap_rows import gap_rows

SYSTEM_GROUP = "CID_RMQ_SYS_"
DECISION = "gold.queue_owner"
EVIDENCE = "proxy_connections"
ASK = "give `mqreplay record --proxy HOST:PORT` the proxies' remoting port"
BEHIND = f"no broker lists a member of this group, and no proxy answered: {ASK}"
PERHAPS = f"no broker lists a member of this group, although its offsets advance: if it uses a proxy, {ASK}"
NOWHERE = "neither a broker nor a proxy lists a member of this group, although its offsets advance"


def unlisted_member_gaps(
    group_status: pl.DataFrame,
    consumer_list: pl.DataFrame,
    proxy_connection: pl.DataFrame,
    with_members: Sequence[pl.DataFrame],
) -> pl.DataFrame:
    """Return the gaps of groups whose offsets advanced and whose members are unknown.

    ``group_status`` are rows of gold.group_status; the others are of silver tables. Each frame of ``with_members`` has
    a column consumer_group: a group in it has a known member. Only groups whose lists the recorder polled have rows.
    """
    first = pl.col("queues").max()  # the first offset of each queue counts as a commit
    advanced = (
        group_status.filter(~pl.col("consumer_group").str.starts_with(SYSTEM_GROUP))
        .group_by("day", "consumer_group", "topic")
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            (pl.col("commits").sum() - first).alias("commits"),
            pl.col("queues").max(),
        )
        .filter(pl.col("commits") > 0)
    )
    listed = pl.col("connections").list.len().fill_null(0) > 0
    known = [
        proxy_connection.filter(listed).select("consumer_group"),
        *(frame.select("consumer_group") for frame in with_members),
    ]
    polled = consumer_list.filter(pl.col("response_ts").is_not_null()).select("consumer_group").unique()
    unknown = advanced.join(polled, on="consumer_group", how="semi").join(
        pl.concat(known).unique(), on="consumer_group", how="anti"
    )
    answered = proxy_connection.filter(pl.col("error").is_null())["consumer_group"].unique()
    has_proxy = PROXY_GROUP in set(pl.concat(known)["consumer_group"]) or len(proxy_connection) > 0
    named = unknown.group_by("day", "consumer_group").agg(
        pl.col("from_ts").min(), pl.col("to_ts").max(), pl.col("queues").sum().cast(pl.Int64).alias("decisions")
    )
    gaps = named.with_columns(
        pl.lit(DECISION).alias("decision"),
        pl.lit(EVIDENCE).alias("evidence"),
        pl.when(pl.col("consumer_group").is_in(answered.implode()))
        .then(pl.lit(NOWHERE))
        .otherwise(pl.lit(BEHIND if has_proxy else PERHAPS))
        .alias("reason"),
    )
    return gap_rows(gaps)
