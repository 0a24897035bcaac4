"""gold.rebalance_round: each time that the queues of a group moved: why, how many, and what it cost.

A round begins with a member that joins or leaves, or with a queue that changes its owner, and goes on while such
changes follow each other. Then each member should hold what its strategy computed: those queues and no others
(RebalanceImpl#updateProcessQueueTableInRebalance). A client rebalances every 20 s, or when a broker notifies it of a
change; the lock of an orderly client that died blocks a queue for 60 s.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import Final

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.decisions.decision import VERDICT_WORDS, Decision, by_name
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.evidence.intervals import INSTANT, with_state
from mqreplay.evidence.members.group_changes import member_changes, moves, rounds_of, unsure_spans
from mqreplay.words.keys import GROUP, GROUP_QUEUE, MEMBER, QUEUE

ROUND: Final = (GROUP, "round")
COMPUTED_BEFORE: Final = dt.timedelta(seconds=5)  # a client takes what it computed a little later
JUST_BEFORE: Final = dt.timedelta(seconds=30)  # a client that dies holds its queues until its last sign of life
FRESH: Final = dt.timedelta(seconds=60)  # three rebalances: an older one is of a client that is gone
SHARES: Final = ("rebalance",)  # sources of owners that are the computed shares themselves
PRECISE: Final = ("assignment", "rebalance", "client_log")  # sources that show a change when it happens
COLUMNS: Final = (
    *("day", GROUP, "from_ts", "to_ts", "settled_ts", "joins", "leaves", "members_before", "members_after", "queues"),
    *("moved", "moved_by_strategy", "of_leavers", "idle_s", "overlap_s", "duplicates", "judgement", "reason"),
)
NO_OWNERS: Final = "the queues that the members held are not known"
NO_SHARES: Final = "the shares that the members computed were not recorded"
ENDED: Final = "the recording ended before the group had settled"


def rebalance_round(
    owners: pl.DataFrame,
    members: pl.DataFrame,
    rebalance: pl.DataFrame,
    repeated: pl.DataFrame | None,
    unshared: pl.DataFrame,
    orderly: pl.DataFrame,
    holes: pl.DataFrame,
    starts: Collection[dt.datetime],
    since: dt.datetime,
    interval_s: int,
    silent_s: int,
) -> pl.DataFrame:
    """Return one row for each round of a group: gold.rebalance_round's columns, and ``cycles``.

    ``cycles``: how often the same host joined within an hour, for each of its processes, or how often queues moved in
    this time though nobody joined or left; the most of the round.
    ``owners`` is gold.queue_owner, not cut at midnight; ``members`` and ``unshared`` are the frames of membership.py;
    ``repeated`` is that of `repeated_deliveries`, None without a log of deliveries. ``orderly`` has the groups that
    lock their queues. Changes that follow each other before a group has settled are one round. Nothing is a change
    within ``silent_s`` seconds of a start of the recording, or of one of ``holes``, the frame of `recorder_holes`.
    """
    shared = members.join(unshared, GROUP, how="anti")
    held = owners.join(unshared, GROUP, how="anti").filter(~pl.col("topic").str.starts_with(RETRY))
    unsure = unsure_spans({since, *starts}, holes, silent_s)
    ends = pl.concat([shared.select("to_ts"), held.select("to_ts")])["to_ts"]
    until = pl.lit(ends.max(), INSTANT)
    changes = pl.concat([member_changes(shared, unsure, until, silent_s), moves(held, unsure)])
    rounds = rounds_of(changes, orderly, interval_s, until)
    counted = (
        rounds.join(_counted_members(rounds, shared), ROUND, how="left", nulls_equal=True)
        .join(_counted_queues(rounds, held, shared, rebalance), ROUND, how="left", nulls_equal=True)
        .join(_costs(rounds, held), ROUND, how="left", nulls_equal=True)
    )
    return _judged(_with_duplicates(counted, repeated)).select(*COLUMNS, "cycles")


def _counted_members(rounds: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return members_before and members_after of each round that has any."""
    sessions = members.select(*MEMBER, pl.col("from_ts").alias("since"), pl.col("to_ts").alias("until"))
    present = rounds.join(sessions, GROUP)
    before = (pl.col("since") < pl.col("from_ts")) & (pl.col("until") >= pl.col("from_ts"))
    after = (pl.col("since") <= pl.col("to_ts")) & (pl.col("until") > pl.col("to_ts"))
    clients = pl.col("client_id")
    return present.group_by(ROUND).agg(
        clients.filter(before).n_unique().cast(pl.Int64).alias("members_before"),
        clients.filter(after).n_unique().cast(pl.Int64).alias("members_after"),
    )


def _counted_queues(
    rounds: pl.DataFrame, owners: pl.DataFrame, members: pl.DataFrame, rebalance: pl.DataFrame
) -> pl.DataFrame:
    """Return for each round the number of queues, of those that moved, and of those that should have."""
    queues = rounds.join(owners.select(GROUP_QUEUE).unique(), GROUP)
    before = _owner_at(queues.with_columns(pl.col("from_ts").alias("at")), owners, JUST_BEFORE).rename(
        {"client_id": "before", "source": "source_before"}
    )
    both = _owner_at(before.with_columns(pl.col("at_ts").alias("at")), owners, dt.timedelta()).rename(
        {"client_id": "after"}
    )
    for name, at in (("share_before", pl.col("from_ts") - COMPUTED_BEFORE), ("share_after", pl.col("at_ts"))):
        shares = _shares_at(rounds.with_columns(at.alias("at")), rebalance, members).rename({"client_id": name})
        both = both.join(shares, [*ROUND, *QUEUE], how="left")
    last = members.group_by(MEMBER).agg(pl.col("to_ts").max().alias("last_ts"))
    gone = both.join(last, left_on=[GROUP, "before"], right_on=MEMBER, how="left", maintain_order="left")
    known = pl.col("before").is_not_null() | pl.col("after").is_not_null()
    wrong = pl.col("share_after").is_not_null() & (pl.col("share_after") != pl.col("after").fill_null(""))

    def count(rows: pl.Expr) -> pl.Expr:
        return rows.sum().cast(pl.Int64)

    return gone.group_by(ROUND).agg(
        count(known).alias("queues"),
        count(pl.col("after").is_not_null()).alias("held_after"),
        count((pl.col("before") != pl.col("after")) & known).alias("moved"),
        count(pl.col("share_before") != pl.col("share_after")).alias("moved_by_strategy"),
        count(pl.col("before").is_not_null() & (pl.col("last_ts") <= pl.col("to_ts"))).alias("of_leavers"),
        count(pl.col("share_after").is_not_null() & known).alias("shares"),
        count(wrong & known).alias("wrong"),
        pl.col("source").is_in(SHARES).any().alias("by_shares"),
        pl.col("source").is_in(PRECISE).all().alias("is_precise"),
    )


def _owner_at(queues: pl.DataFrame, owners: pl.DataFrame, slack: dt.timedelta) -> pl.DataFrame:
    """Add client_id and source of the owner of each queue at ``at``, or at most ``slack`` before; null: none."""
    intervals = _resumed(owners).sort("held_from")
    found = with_state(queues, intervals, GROUP_QUEUE, "at", "held_from", exact=slack == dt.timedelta())
    held = pl.col("held_to") >= pl.col("at") - slack
    return found.with_columns(pl.when(held).then(name).alias(name) for name in ("client_id", "source")).drop(
        "held_from", "held_to"
    )


def _resumed(owners: pl.DataFrame) -> pl.DataFrame:
    """Return the intervals as held_from and held_to; one that goes on after a shorter one in it is there twice."""
    reached = pl.col("to_ts").cum_max().over(GROUP_QUEUE)
    in_order = owners.sort("from_ts", "to_ts").with_columns(reached.alias("reached"))
    holder = pl.when(pl.col("to_ts") >= pl.col("reached")).then("client_id").forward_fill().over(GROUP_QUEUE)
    inner = in_order.with_columns(holder.alias("holder")).filter(pl.col("to_ts") < pl.col("reached"))
    columns = (
        *GROUP_QUEUE,
        "client_id",
        "source",
        pl.col("from_ts").alias("held_from"),
        pl.col("to_ts").alias("held_to"),
    )
    resumed = inner.select(
        *GROUP_QUEUE,
        pl.col("holder").alias("client_id"),
        "source",
        pl.col("to_ts").alias("held_from"),
        pl.col("reached").alias("held_to"),
    )
    return pl.concat([owners.select(columns), resumed])


def _shares_at(rounds: pl.DataFrame, rebalance: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the client that computed each queue for itself last before ``at``: ROUND, QUEUE, client_id."""
    of_groups = rebalance.join(rounds.select(GROUP).unique(), GROUP, how="semi")
    taken = of_groups.filter(pl.col("mq_divided").is_not_null() & ~pl.col("topic").str.starts_with(RETRY)).select(
        *MEMBER, "topic", pl.col("ts").alias("share_ts"), "mq_divided"
    )
    sessions = members.select(*MEMBER, pl.col("from_ts").alias("since"), pl.col("to_ts").alias("until"))
    present = rounds.select(*ROUND, "at").join(sessions, GROUP)
    there = present.filter((pl.col("since") <= pl.col("at")) & (pl.col("until") >= pl.col("at")))
    asked = there.select(*ROUND, "client_id", "at").unique().join(taken.select(*MEMBER, "topic").unique(), MEMBER)
    last = with_state(asked, taken, [*MEMBER, "topic"], "at", "share_ts")
    fresh = last.filter((pl.col("at") - pl.col("share_ts") <= FRESH) & (pl.col("mq_divided").list.len() > 0))
    each = (
        fresh.select(*ROUND, "topic", "client_id", "share_ts", "mq_divided").explode("mq_divided").unnest("mq_divided")
    )
    # Two clients may both count on a queue for a moment: the later one knows more.
    return each.sort("share_ts").unique([*ROUND, *QUEUE], keep="last").select(*ROUND, *QUEUE, "client_id")


def _costs(rounds: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """Return idle_s, overlap_s and settled_ts of each round: seconds in which queues had no owner, or several."""
    in_order = owners.sort("from_ts", "to_ts")
    reached = pl.col("to_ts").cum_max().shift(1).over(GROUP_QUEUE)
    same = pl.col("client_id") == pl.col("client_id").shift(1).over(GROUP_QUEUE)
    spans = in_order.with_columns(reached.alias("reached"), same.alias("same")).filter(pl.col("reached").is_not_null())
    # An owner's interval may end a little before the sign of life with which a round begins.
    at = (pl.min_horizontal("reached", "from_ts") + JUST_BEFORE).alias("at")
    begun = rounds.select(*ROUND, pl.col("from_ts").alias("round_from"), "at_ts").sort("round_from")
    of_round = with_state(spans.with_columns(at), begun, GROUP, "at", "round_from")
    inside = of_round.filter(pl.col("from_ts").is_between("round_from", "at_ts"))
    gap = (pl.col("from_ts") - pl.col("reached")).dt.total_milliseconds() / 1000
    shared = (pl.min_horizontal("reached", "to_ts") - pl.col("from_ts")).dt.total_milliseconds() / 1000
    return inside.group_by(ROUND).agg(
        gap.clip(lower_bound=0).sum().alias("idle_s"),
        shared.filter(~pl.col("same")).clip(lower_bound=0).sum().alias("overlap_s"),
        pl.col("from_ts").max().alias("settled_ts"),
    )


def _with_duplicates(rounds: pl.DataFrame, repeated: pl.DataFrame | None) -> pl.DataFrame:
    """Add the number of messages that another client received again during the round; null if not recorded."""
    if repeated is None:
        return rounds.with_columns(pl.lit(None, pl.Int64).alias("duplicates"))
    moved = repeated.filter(pl.col("client_id") != pl.col("previous_client_id")).select(GROUP, "ts").sort("ts")
    begun = rounds.select(*ROUND, pl.col("from_ts").alias("round_from"), "at_ts").sort("round_from")
    of_round = with_state(moved, begun, GROUP, "ts", "round_from")
    counts = (
        of_round.filter(pl.col("ts") <= pl.col("at_ts"))
        .group_by(ROUND)
        .agg(pl.len().cast(pl.Int64).alias("duplicates"))
    )
    return rounds.join(counts, ROUND, how="left").with_columns(pl.col("duplicates").fill_null(0))


def _judged(rounds: pl.DataFrame) -> pl.DataFrame:
    """Add judgement and reason, and take away numbers that the evidence does not show."""
    no_owners, by_shares = pl.col("queues").fill_null(0) == 0, pl.col("by_shares").fill_null(value=True)
    no_shares, wrong = pl.col("shares").fill_null(0) == 0, pl.col("wrong").fill_null(0)
    nobody = (pl.col("members_after").fill_null(0) == 0) & (pl.col("held_after").fill_null(0) == 0)
    count = pl.when(wrong == 1).then(pl.lit("1 queue is")).otherwise(pl.format("{} queues are", wrong))
    owner = pl.when(wrong == 1).then(pl.lit("it for itself")).otherwise(pl.lit("them for itself"))
    verdict = decided(
        ("is_cut", UNDETERMINED, ENDED),
        (nobody, AGREE, "no member was left, and no queue was held"),
        (no_owners | by_shares, UNDETERMINED, NO_OWNERS),
        (no_shares, UNDETERMINED, NO_SHARES),
        (wrong == 0, AGREE, "each member holds the queues that it computed"),
        otherwise=(DIFFER, pl.format("{} not held by the member that computed {}", count, owner)),
    )
    precise = pl.col("is_precise").fill_null(value=False)
    known: dict[str, pl.Expr] = {"queues": ~no_owners, "moved": ~no_owners, "of_leavers": ~no_owners}
    known |= {"moved_by_strategy": ~no_shares, "idle_s": precise, "overlap_s": precise}
    zero = {"idle_s": 0.0, "overlap_s": 0.0}
    return rounds.with_columns(
        pl.when(is_known).then(pl.col(name).fill_null(zero.get(name, 0))).alias(name)
        for name, is_known in known.items()
    ).with_columns(
        pl.col("members_before", "members_after").fill_null(0),
        pl.coalesce("settled_ts", "to_ts").alias("settled_ts"),
        **verdict,
    )


def logged_repeats(repeated_deliveries: pl.DataFrame, missing: Collection[str]) -> pl.DataFrame | None:
    """Return the deliveries that were repeated; None without a log of deliveries."""
    return None if "consume_log" in missing else repeated_deliveries


def orderly_groups(lock: pl.DataFrame) -> pl.DataFrame:
    """Return the groups that lock their queues."""
    return lock.select(GROUP).unique()


def stored_rows(rounds: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of gold.rebalance_round."""
    return rounds.select(COLUMNS)


REBALANCE_ROUND: Final = Decision(
    table="gold.rebalance_round",
    instant="from_ts",
    one="round of rebalances",
    many="rounds of rebalances",
    importance=12,
    phrases=(
        "{joins} joined, {leaves} left: {members_before} members before, {members_after} after",
        "{moved} of {queues} queues moved",
        "no owner for {idle_s:,.0f} s",
        VERDICT_WORDS,
    ),
    until="to_ts",
    rows=by_name(stored_rows),
    steps={
        "logged_repeats": by_name(logged_repeats),
        "orderly_groups": by_name(orderly_groups, lock="asked_locks"),
        "rounds": by_name(
            rebalance_round,
            repeated="logged_repeats",
            unshared="unshared_groups",
            orderly="orderly_groups",
            interval_s="rebalance_interval_s",
        ),
    },
)
