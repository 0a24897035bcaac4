"""Heartbeats without repeats: a client states the same to each broker every 30 s, so nearly all rows repeat others.

Each part of the rows is reduced alone, and the kept rows of all parts have what the rules of a night need: the first
rows of each statement, and the first ones again after each change of what a broker knows of the group. That is all
that `group_states` reads, and every statement is there with its first instant. Clients of a group whose members state
different things keep all their rows: conflicts of subscriptions have bounds and evidence. When a client lived, and when
a broker answered, are frames of their own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.evidence.arrays.distinct import distinct_values
from mqreplay.evidence.intervals import with_state
from mqreplay.evidence.members.member_gaps import BROKER_LOG
from mqreplay.evidence.members.membership import consumer_groups, named_groups
from mqreplay.words.keys import BROKER, GROUP

# Rows kept of each statement: two repeats show which of two statements at the same time won. One more, because rows at
# the instant of a change may be before or after it.
KEPT: Final = 3
CLIENT_BROKER: Final = ("client_id", *BROKER)
BROKER_GROUP: Final = (*BROKER, GROUP)


@dataclass(frozen=True)
class Changes:
    """What makes a repeated heartbeat matter again: rows of the whole night.

    ``boots``: BROKER, ts of starts of brokers. ``leaves``: columns of rows of silver.heartbeat that are no heartbeats.
    ``news``: BROKER_GROUP, ts of new statements. ``disputed``: the clients whose rows all count.
    """

    boots: pl.DataFrame
    leaves: pl.DataFrame
    news: pl.DataFrame
    disputed: Collection[str] = ()


def without_repeats(heartbeat: pl.DataFrame, changes: Changes) -> pl.DataFrame:
    """Return the rows of any part of silver.heartbeat that matter, as they are."""
    may_repeat = (
        (pl.col("kind") == "HEART_BEAT")
        & pl.col("error").is_null()
        & pl.col("source").ne_missing(BROKER_LOG)
        & ~pl.col("client_id").is_in(list(changes.disputed))
    )
    names = pl.col("consumer_data_set").list.eval(pl.element().struct.field("group_name"))
    groups = pl.when(names.list.len() > 0).then(names).alias(GROUP)  # a producer has a row, too
    # Few columns at first: those of a row have lists in lists.
    light = heartbeat.select(
        pl.int_range(pl.len()).alias("_row"),
        may_repeat.alias("_may_repeat"),
        *CLIENT_BROKER,
        "ts",
        groups,
        _statement(),
    )
    each = light.filter("_may_repeat").explode(GROUP)
    since = [
        (changes.boots, BROKER, "_boot"),
        (changes.leaves, CLIENT_BROKER, "_left"),
        (changes.news, BROKER_GROUP, "_news"),
    ]
    for instants, by, name in since:
        each = with_state(each, instants.select(*by, pl.col("ts").alias(name)), by, "ts", name)
    repeats = pl.col("ts").rank("dense").over(*CLIENT_BROKER, GROUP, "_stated", *(name for _, _, name in since))
    matter = pl.concat([each.filter(repeats <= KEPT)["_row"], light.filter(~pl.col("_may_repeat"))["_row"]])
    return heartbeat[matter.unique().sort()]


def _statement() -> pl.Expr:
    """Return a hash of what a heartbeat states: lists are no keys."""
    return pl.struct("consumer_data_set", "producer_groups", "language", "source").hash().alias("_stated")


def new_statements(heartbeat: pl.DataFrame) -> pl.DataFrame:
    """Return the instants of these rows for each group that they name: columns BROKER_GROUP, ts."""
    return named_groups(heartbeat, *BROKER, "ts").unique()


def disputed_clients(heartbeat: pl.DataFrame) -> list[str]:
    """Return the clients of groups of which not all heartbeats state the same, in order."""
    each = consumer_groups(heartbeat)
    lists, list_of = distinct_values(each, ["subscriptions"])
    field = pl.element().struct.field
    text = pl.concat_str(field("topic", "expression_type", "sub_string"), separator=" ", ignore_nulls=True)
    texts = lists.select(pl.col("subscriptions").list.eval(text.sort()).list.join("; ").alias("_topics"))
    settings = pl.struct("message_model", "consume_type", "consume_from_where").n_unique()
    differ = (settings > 1) | (pl.col("_topics").drop_nulls().n_unique() > 1)
    groups = pl.concat([each, texts[list_of]], how="horizontal").group_by(GROUP).agg(differ.alias("_differ"))
    return sorted(each.join(groups.filter("_differ"), GROUP, how="semi")["client_id"].unique())
