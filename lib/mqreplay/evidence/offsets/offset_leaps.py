"""Saved offsets that rose past waiting messages, although no member can have consumed these: somebody set them ahead.

skipAccumulatedMessage, resetOffsetByTime and cloneGroupOffset set offsets ahead, and no copy of a file says who set
one. A large rise alone proves nothing: a slow message holds an offset back (ProcessQueue#removeMessage), and a group
that works again catches up within seconds. There are two proofs:
  idle  no broker listed a member of the group between the two copies
  leap  a group that was a minute behind, and advanced slowly, passes in one step more than it did in minutes, in
        several queues, up to offsets of one instant, and goes on slowly
"""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.intervals import with_session
from mqreplay.evidence.members.membership import is_of_application
from mqreplay.evidence.offsets.queue_events import COPIES
from mqreplay.words.keys import GROUP_QUEUE, GROUP_TOPIC, QUEUE

CHANGE = ["broker_name", "broker_id", *GROUP_TOPIC, "queue_id", "to_ts"]
IDLE_S = 20  # a member that leaves commits at once, and its last commit shows within seconds
PACE_S = 60  # what a group did before and after
LEAST = 10  # messages: less may be one batch
PACE_TIMES = 5  # as much as in 5 minutes
AFTER_S = 30  # later, a group that keeps up has committed most of what arrived
TOGETHER_S = 15  # copies of masters that show one reset: commits and polls are 5 s apart
CLOCK_SLACK_S = 10  # a message is stored before a poll shows it
LEAST_QUEUES = 2
LEAPS = ("idle", "leap", "reached_ts", "passed_ts")


def offset_leaps_of_shard(offset_change: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return the rises of masters' offsets that may be leaps: columns of gold.offset_continuity, and LEAPS.

    ``ends`` is queue_ends' frame. idle: nobody had committed for IDLE_S seconds, while messages waited; leap: see
    above, for one queue. The queue ended at the new offset between ``reached_ts`` and ``passed_ts``.
    """
    of_master = (pl.col("broker_id") == 0) & pl.col("client_id").is_null() & pl.col("new_offset").is_not_null()
    names = ["day", *CHANGE, "from_ts", "previous_offset", "new_offset", "source_digest"]
    changes = offset_change.filter(of_master).select(names).unique().sort(*GROUP_QUEUE, "to_ts", "new_offset")
    before = pl.col("to_ts").shift(1).over(GROUP_QUEUE)
    began = {f"_{seconds}": pl.col("from_ts") - pl.duration(seconds=seconds) for seconds in (IDLE_S, PACE_S)}
    rises = changes.with_columns(
        *(instant.alias(name) for name, instant in began.items()),
        idle=(before + pl.duration(seconds=IDLE_S) <= pl.col("from_ts")).fill_null(True),
        _next=pl.col("previous_offset") + 1,
        _above=pl.col("new_offset") + 1,
        _later=pl.col("to_ts") + pl.duration(seconds=PACE_S),
    ).filter(pl.col("new_offset") > pl.col("previous_offset"), pl.col("from_ts").is_not_null())
    highs = ends.filter(pl.col("queue_max_offset").is_not_null())
    waiting = as_of(rises, highs, QUEUE, "_next", {"_since": "at"}, right_at="queue_max_offset", after=True)
    size, did = pl.col("new_offset") - pl.col("previous_offset"), pl.col("previous_offset") - pl.col("_before")
    waited = (pl.col("_since") <= pl.col(f"_{PACE_S}")) & (size >= LEAST)
    waiting = waiting.filter(pl.col("_since") <= pl.col(f"_{IDLE_S}"), pl.col("idle") | waited)
    waiting = waiting.filter(is_of_application())
    known = as_of(waiting, changes, GROUP_QUEUE, f"_{PACE_S}", {"_before": "new_offset"}, right_at="to_ts")
    was_slow = waited & (did > 0) & (size >= PACE_TIMES * did)
    known = known.filter(pl.col("idle") | was_slow)
    # Few rows are left: their queues are all that is looked up.
    highs, changes = highs.join(known, QUEUE, how="semi"), changes.join(known, GROUP_QUEUE, how="semi")
    known = as_of(known, highs, QUEUE, "_later", {"_end": "queue_max_offset", "_end_ts": "at"}, right_at="at")
    known = as_of(known, changes, GROUP_QUEUE, "_end_ts", {"_after": "new_offset"}, right_at="to_ts")
    known = as_of(known, highs, QUEUE, "new_offset", {"reached_ts": "asked_at"}, right_at="queue_max_offset")
    known = as_of(known, highs, QUEUE, "_above", {"passed_ts": "at"}, right_at="queue_max_offset", after=True)
    known = as_of(
        known, highs, QUEUE, "to_ts", {"queue_max_offset": "queue_max_offset"}, right_at="asked_at", after=True
    )
    arrived, done = pl.col("_end") - pl.col("new_offset"), pl.col("_after") - pl.col("new_offset")
    stays_slow = (pl.col("_end_ts") >= pl.col("to_ts") + pl.duration(seconds=AFTER_S)) & (arrived >= 2 * done)
    leap = was_slow & stays_slow & (arrived > 0) & (pl.col("new_offset") <= pl.col("queue_max_offset"))
    judged = known.with_columns(leap=leap.fill_null(False)).filter(pl.col("idle") | pl.col("leap"))
    return judged.select(
        *("day", "broker_name", "broker_id", "topic", "consumer_group", "queue_id"),
        pl.lit("jump").alias("kind"),
        *("previous_offset", "new_offset"),
        size.alias("size"),
        *("from_ts", "to_ts"),
        pl.lit("reset").alias("cause"),
        pl.lit(0, pl.Int64).alias("redelivered_max"),
        pl.lit(None, pl.Int64).alias("queue_min_offset"),
        "queue_max_offset",
        pl.lit(COPIES).alias("source"),
        pl.lit(None, pl.String).alias("client_addr"),
        "source_digest",
        *LEAPS,
    )


def offset_leaps(
    candidates: pl.DataFrame, absences: pl.DataFrame, members: pl.DataFrame, breaks: pl.DataFrame
) -> pl.DataFrame:
    """Return the rows of gold.offset_continuity that are leaps of groups, and not among ``breaks``.

    ``candidates``: the rows of `offset_leaps_of_shard` of all shards; ``absences``: the frame of
    listed_members.absences; ``members``: that of membership.
    """
    new = candidates.join(breaks, CHANGE, how="anti")
    return pl.concat([_of_nobody(new, absences, members), _at_once(new)]).select(breaks.columns).unique(CHANGE)


def _of_nobody(candidates: pl.DataFrame, absences: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the rises while the master of the queue listed nobody of a group that has members at other times.

    A group whose offsets rise again and again has members that no broker lists, such as clients of a proxy.
    """
    idle = candidates.filter("idle").join(members.select("consumer_group").unique(), "consumer_group", how="semi")
    empty = absences.select("consumer_group", "broker_name", "broker_id", empty_ts="from_ts", empty_until="to_ts")
    met = idle.join(empty, ["consumer_group", "broker_name", "broker_id"])
    within = met.filter(pl.col("empty_ts") <= pl.col("from_ts"), pl.col("empty_until") >= pl.col("to_ts"))
    sessions = members.select("consumer_group", here_ts="from_ts", here_until="to_ts")
    present = within.select(*CHANGE, "from_ts").join(sessions, "consumer_group")
    present = present.filter(pl.col("here_ts") < pl.col("to_ts"), pl.col("here_until") > pl.col("from_ts"))
    alone = within.join(present, CHANGE, how="anti").unique(CHANGE)
    once = pl.len().over(*GROUP_QUEUE, "empty_ts") == 1
    return alone.filter(once).select(candidates.columns)


def _at_once(candidates: pl.DataFrame) -> pl.DataFrame:
    """Return the rises of several queues of a group, within seconds, to where these queues ended at one instant."""
    sessions = with_session(candidates.filter("leap"), GROUP_TOPIC, "from_ts", "to_ts", TOGETHER_S)
    by = [*GROUP_TOPIC, "session"]
    reached, passed = pl.col("reached_ts").max().over(by), pl.col("passed_ts").min().over(by)
    at_one_instant = (reached <= passed + pl.duration(seconds=CLOCK_SLACK_S)).fill_null(True)
    several = pl.struct("broker_name", "queue_id").n_unique().over(by) >= LEAST_QUEUES
    return sessions.filter(at_one_instant & several).select(candidates.columns)
