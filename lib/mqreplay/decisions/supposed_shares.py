"""gold.prediction of groups: who would own which queue with another strategy, other members or other queues.

The lists of clients and queues are those that the group's members saw longest, or at an instant; each member's share is
computed for them by its strategy, once as it was and once as supposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from mqreplay.decisions.allocation import JUDGED, verdicts
from mqreplay.decisions.strategies import GroupSettings
from mqreplay.decisions.suppositions import FIRST, LAST, Supposition, supposed_rebalances
from mqreplay.decisions.verdict import UNDETERMINED
from mqreplay.evidence.frames import with_flag
from mqreplay.words.keys import GROUP_QUEUE, MEMBER_TOPIC

LIST_COLUMNS: Final = ("consumer_group", "topic", "cid_all", "mq_all")
OWNERS: Final = ("before", "after_first", "after_last")
COUNTED: Final = ["consumer_group", "topic", "outcome", "reason"]
UNCHANGED, CHANGED = "unchanged", "changed"
KEPT, MOVED, MAY_MOVE, NEW, GONE, UNKNOWN = "kept", "moved", "may move", "new", "gone", "unknown"


def decided_again(
    rebalance: pl.DataFrame, suppositions: Sequence[Supposition], groups: Mapping[str, GroupSettings], nodes: int
) -> pl.DataFrame:
    """Return how many rebalances give the same share as before: consumer_group, topic, outcome, reason, rebalances.

    ``rebalance`` has the columns that `verdicts` takes. A share that a rule cannot tell is undetermined, for the
    reason of gold.allocation. New members sort last.
    """
    before = verdicts(rebalance, groups, nodes)
    after = verdicts(supposed_rebalances(rebalance, suppositions), groups, nodes)
    both = rebalance.select("consumer_group", "topic").with_columns(
        before["expected"].alias("before"), after["expected"].alias("after"), after["reason"].alias("reason")
    )
    same = pl.col("before").list.sort() == pl.col("after").list.sort()
    known = pl.col("before").is_not_null() & pl.col("after").is_not_null()
    outcome = pl.when(~known).then(pl.lit(UNDETERMINED)).when(same).then(pl.lit(UNCHANGED)).otherwise(pl.lit(CHANGED))
    reason = pl.when(~known).then(pl.coalesce("reason", pl.lit("the share of the night is not known")))
    counted = both.select("consumer_group", "topic", outcome.alias("outcome"), reason.alias("reason"))
    return counted.group_by(COUNTED).agg(pl.len().cast(pl.Int64).alias("rebalances"))


def lists_seen(rebalance: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of lists that members of a group saw: LIST_COLUMNS, from_ts, to_ts, rebalances, members.

    ``members``: client_id, strategy and source of those that are in the list and saw it. Rebalances without lists, or
    of a poll that cannot be judged (``lacking``), do not count.
    """
    known = rebalance.filter(pl.col("cid_all").is_not_null() & pl.col("mq_all").is_not_null())
    known = known.filter(pl.col("lacking").is_null()) if "lacking" in known.columns else known
    each = known.with_columns(pl.col("cid_all").list.sort(), pl.col("mq_all").list.sort())
    member = pl.struct("client_id", "strategy", "source")
    each = each.sort("ts", "client_id")  # the last strategy of a member counts
    return each.group_by(LIST_COLUMNS, maintain_order=True).agg(
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        pl.len().cast(pl.Int64).alias("rebalances"),
        member.unique(maintain_order=True).alias("members"),
    )


def supposed_owners(
    lists: pl.DataFrame, suppositions: Sequence[Supposition], groups: Mapping[str, GroupSettings], nodes: int
) -> pl.DataFrame:
    """Return each queue of ``lists`` with its owners: QUEUE, before, after_first, after_last, change.

    ``lists`` are one row of `lists_seen` for each group and topic. Owners are lists of client ids; null where a
    share is not known, or the queue does not exist. ``after_first`` and ``after_last``: with members that come or leave
    at the start, and the end, of the list. ``change``: KEPT, MOVED, MAY_MOVE if it depends on the members' ids, NEW,
    GONE, or UNKNOWN.
    """
    rows = _rebalances_of(lists)
    owners = _owners(rows, groups, nodes).rename({"owners": "before", "exists": "existed"})
    for sorts, name in ((FIRST, "after_first"), (LAST, "after_last")):
        supposed = supposed_rebalances(rows, suppositions, sorts)
        after = _owners(supposed, groups, nodes).rename({"owners": name, "exists": f"exists_{name}"})
        owners = owners.join(after, GROUP_QUEUE, how="full", coalesce=True)
    return owners.with_columns(_change().alias("change")).select(*GROUP_QUEUE, *OWNERS, "change").sort(GROUP_QUEUE)


def idle_members(lists: pl.DataFrame, owners: pl.DataFrame, suppositions: Sequence[Supposition]) -> pl.DataFrame:
    """Return the members of each group and topic, and how many hold no queue: members and idle, before and after.

    ``owners`` are those of `supposed_owners`; idle is null if a share is not known.
    """
    rows = lists.select(LIST_COLUMNS).with_columns(pl.lit(None, pl.String).alias("strategy"))
    by = ["consumer_group", "topic"]
    found = rows.select(by)
    for name, column, frame in (
        ("before", "before", rows),
        ("after", "after_last", supposed_rebalances(rows, suppositions)),
    ):
        members = frame.select(*by, pl.col("cid_all").list.n_unique().cast(pl.Int64).alias(f"members_{name}"))
        exists = owners.filter(pl.col("change") != (NEW if name == "before" else GONE))
        holders = exists.group_by(by).agg(
            pl.col(column).is_null().any().alias("unsure"),
            pl.col(column).explode().drop_nulls().n_unique().cast(pl.Int64).alias("holders"),
        )
        joined = members.join(holders, by, how="left")
        idle = pl.when(~pl.col("unsure")).then(pl.col(f"members_{name}") - pl.col("holders")).alias(f"idle_{name}")
        found = found.join(joined.select(*by, f"members_{name}", idle), by, how="left")
    return found.sort(by)


def moved_bounds(owners: pl.DataFrame) -> tuple[int, int]:
    """Return how many queues move at least and at most, over where the ids of members sort that come or leave."""
    moves = owners.filter(pl.col("change").is_in([MOVED, MAY_MOVE]))
    first, last = (int((moves["before"] != moves[name]).sum()) for name in ("after_first", "after_last"))
    return min(first, last), max(first, last)


def _change() -> pl.Expr:
    moved = [pl.col("before") != pl.col(name) for name in OWNERS[1:]]
    return (
        pl.when(pl.col("existed").is_null())
        .then(pl.lit(NEW))
        .when(pl.col("exists_after_last").is_null())
        .then(pl.lit(GONE))
        .when(pl.any_horizontal(pl.col(OWNERS).is_null()))
        .then(pl.lit(UNKNOWN))
        .when(pl.all_horizontal(moved))
        .then(pl.lit(MOVED))
        .when(pl.any_horizontal(moved))
        .then(pl.lit(MAY_MOVE))
        .otherwise(pl.lit(KEPT))
    )


def _rebalances_of(lists: pl.DataFrame) -> pl.DataFrame:
    """Return one rebalance for each client of a list; one that was not recorded has the strategy of the others."""
    known = lists.explode("members").unnest("members").select(*MEMBER_TOPIC, "strategy", "source")
    by_client = known.group_by(MEMBER_TOPIC, maintain_order=True).agg(
        pl.col("strategy").drop_nulls().last(), pl.col("source").last()
    )
    usual = known.group_by("consumer_group", "topic", maintain_order=True).agg(
        pl.col("strategy").drop_nulls().unique().alias("strategies"), pl.col("source").last().alias("usual_source")
    )
    alike = pl.when(pl.col("strategies").list.len() == 1).then(pl.col("strategies").list.first())
    each = _exploded(lists.select(*LIST_COLUMNS, "to_ts"))
    joined = each.join(by_client, MEMBER_TOPIC, how="left").join(usual, ["consumer_group", "topic"], how="left")
    return joined.with_columns(
        pl.coalesce("strategy", alike).alias("strategy"),
        pl.coalesce("source", "usual_source").alias("source"),
        pl.col("mq_all").list.head(0).alias("mq_divided"),
        pl.lit(None, pl.String).alias("error"),
        pl.col("to_ts").alias("ts"),
    ).select(JUDGED)


def _each_client(rebalance: pl.DataFrame) -> pl.DataFrame:
    """Return a rebalance for each client of each list: new ones do as another member does, others are gone."""
    first = rebalance.group_by("consumer_group", "topic", maintain_order=True).first()
    every = _exploded(first)
    own = rebalance.select(*MEMBER_TOPIC, pl.col("strategy").alias("own"), pl.lit(value=True).alias("known"))
    joined = every.join(own, MEMBER_TOPIC, how="left")
    strategy = pl.when(pl.col("known")).then("own").otherwise("strategy").alias("strategy")
    return joined.with_columns(strategy).select(rebalance.columns)


def _exploded(lists: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each client of a list. A broker lists a client twice that has two channels to it."""
    each = lists.with_columns(pl.col("cid_all").list.unique().list.sort().alias("client_id"))
    return each.explode("client_id").drop_nulls("client_id")


def _owners(rows: pl.DataFrame, groups: Mapping[str, GroupSettings], nodes: int) -> pl.DataFrame:
    """Return the owners of each queue: QUEUE, exists, owners (null if the share of a client is not known)."""
    queues = rows.select("consumer_group", "topic", "mq_all").unique(["consumer_group", "topic"])
    every = queues.explode("mq_all").unnest("mq_all").select(*GROUP_QUEUE, pl.lit(value=True).alias("exists"))
    rebalance = _each_client(rows)
    found = rebalance.select(MEMBER_TOPIC).with_columns(verdicts(rebalance, groups, nodes)["expected"].alias("share"))
    unsure = found.filter(pl.col("share").is_null())
    held = found.filter(pl.col("share").list.len() > 0).explode("share").unnest("share")
    by_queue = held.group_by(GROUP_QUEUE).agg(pl.col("client_id").sort().alias("owners"))
    joined = every.join(by_queue, GROUP_QUEUE, how="full", coalesce=True)
    # CONFIG names queues that are not in the list.
    known = joined.with_columns(pl.col("owners").fill_null([]), pl.lit(value=True).alias("exists"))
    marked = with_flag(known, unsure, ["consumer_group", "topic"], "unsure")
    return marked.with_columns(pl.when(~pl.col("unsure")).then("owners").alias("owners")).drop("unsure")
