"""Between which instants a client may have held a queue, where only polls show it.

A poll shows what a client holds at one instant. A queue that changed hands did so between two polls, often 20 s apart;
gold.queue_owner has their middle. A rule that asks who held a queue at one instant must allow for all of that time.
"""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.members.membership import MEMBER
from mqreplay.evidence.members.observed_clients import RUNNING_INFO, owner_views


def possible_owners(owners: pl.DataFrame, assignment: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the intervals of ``owners``, those that polls show as long as they may have been.

    Columns: those of ``owners`` (gold.queue_owner). ``assignment`` is silver.assignment, ``members`` the frame of
    membership.py. The interval of a client's last answer ends as before: with its session.
    """
    views = owner_views(assignment, members)
    begins = views.select(*MEMBER, "earliest_ts", from_ts="ts", source=pl.lit(RUNNING_INFO))
    ends = views.select(*MEMBER, "latest_ts", to_ts="until", source=pl.lit(RUNNING_INFO)).drop_nulls()
    begun = begins.group_by(*MEMBER, "from_ts", "source").agg(pl.col("earliest_ts").min())
    ended = ends.group_by(*MEMBER, "to_ts", "source").agg(pl.col("latest_ts").max())
    met = owners.join(begun, begun.columns[:-1], how="left", maintain_order="left")
    met = met.join(ended, ended.columns[:-1], how="left", maintain_order="left")
    return met.with_columns(
        pl.min_horizontal("from_ts", "earliest_ts").alias("from_ts"),
        pl.max_horizontal("to_ts", "latest_ts").alias("to_ts"),
    ).select(owners.columns)
