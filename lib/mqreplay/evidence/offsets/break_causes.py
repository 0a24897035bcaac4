"""Causes of offset breaks that no commit shows: requests to reset, restarts of brokers, handovers, unrecorded resets.

A broker logs the address that asked for a reset (AdminBrokerProcessor#resetOffset) and the clients that it sent it to
(Broker2Client#resetOffset), but not the offsets.

A reset that nothing recorded is concluded from the offsets that brokers hold: RocketMQ's Java clients never lower an
offset by themselves (OffsetStore#updateOffset, increaseOnly), except when a queue changes hands. A broker in memory
holds what was committed last. So if several offsets of a group and topic fall between the same two polls of a broker
that was not restarted, or one falls while no member holds its queue, somebody reset them.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqreplay.decode.server_requests import INVOKE_BROKER_TO_RESET_OFFSET, RESET_CONSUMER_CLIENT_OFFSET
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.frames import columns, typed, with_flag
from mqreplay.evidence.intervals import with_session, with_state
from mqreplay.words.keys import BROKER, CLIENT_QUEUE, GROUP_QUEUE, GROUP_TOPIC, GROUP_TOPIC_BROKER

HANDOVER, RESTART, OVERTAKEN, UNKNOWN_CAUSE = "handover", "restart", "overtaken", "unknown"
UNEXPLAINED = [UNKNOWN_CAUSE, OVERTAKEN]  # other evidence explains them better
BREAK = [*BROKER, *GROUP_TOPIC, "queue_id", "kind", "to_ts"]
HANDOVER_S = 20  # a new owner reads the offset before the old one commits: its commits are lower for seconds
AT_ONCE_S = 30  # the copies of the masters that show one change of a group's offsets
LEAST_QUEUES = 2  # a single offset may fall for other reasons, such as a client in another language
# ``is_sent``: the broker sent it to a client, or set the offsets itself. ``to_ms``: the time to go back to (epoch ms).
ASKED: dict[str, pl.DataType] = columns(
    "consumer_group", "topic", "broker_name", "ts", "record_id", "client_addr", "is_sent", "error", "to_ms"
)


def with_explained_rewinds(
    breaks: pl.DataFrame, owners: pl.DataFrame, outages: pl.DataFrame, handover_s: int
) -> pl.DataFrame:
    """Return the breaks; the cause of a rewind is RESTART or HANDOVER where it was unknown and one of these happened.

    ``breaks`` are rows of gold.offset_continuity. A broker that is killed comes back with the offsets that it saved
    last: ``outages`` has broker_name, broker_id and from_ts of each. While a queue goes from one client to another, for
    up to ``handover_s`` seconds, both commit; ``owners`` is the frame of `possible_owners`.
    """
    return _with_overtaken_alone(with_handovers(_with_restarts(breaks, outages), owners, handover_s, UNEXPLAINED))


def with_handovers(breaks: pl.DataFrame, owners: pl.DataFrame, handover_s: int, of: Sequence[str]) -> pl.DataFrame:
    """Return the breaks; the cause is HANDOVER where two clients held the queue just before, or while, it went back.

    ``of``: causes that this explains; ``owners`` is the frame of `possible_owners`. Both clients commit what they have
    consumed (RebalanceImpl#updateProcessQueueTableInRebalance persists on removal), and
    ConsumerOffsetManager takes what comes last. Where no commits were recorded, owners alone show it.
    """
    seconds = _second_holders(owners)
    held = as_of(breaks, seconds, GROUP_QUEUE, "to_ts", {"second_until": "second_until"}, right_at="from_ts")
    went_back = pl.col("cause").is_in(of) & (pl.col("kind") == "rewind")
    by_two = pl.col("second_until") >= pl.col("from_ts") - pl.duration(seconds=handover_s)
    cause = pl.when(went_back & by_two).then(pl.lit(HANDOVER)).otherwise("cause")
    return held.with_columns(cause=cause).drop("second_until")


def _with_restarts(breaks: pl.DataFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """Return the breaks; the cause is RESTART where none is known and the broker was down between the two copies."""
    down = outages.select("broker_name", "broker_id", pl.col("from_ts").alias("down_ts")).sort("down_ts")
    by = ["broker_name", "broker_id"]
    met = with_state(breaks, down, by, "to_ts", "down_ts")
    between = (pl.col("down_ts") >= pl.col("from_ts")) & pl.col("cause").is_in(UNEXPLAINED)
    cause = pl.when(between & (pl.col("kind") == "rewind")).then(pl.lit(RESTART)).otherwise("cause")
    return met.with_columns(cause=cause).drop("down_ts")


def _with_overtaken_alone(breaks: pl.DataFrame) -> pl.DataFrame:
    """Return the breaks; OVERTAKEN becomes UNKNOWN_CAUSE where other queues of the group and topic went back, too.

    A reset moves several queues, of which a fast client may restore some with its next commit. Two commits of one queue
    explain no other queue.
    """
    back = breaks.filter((pl.col("kind") == "rewind") & pl.col("cause").is_in([*UNEXPLAINED, "reset"]))
    flagged = with_flag(breaks, _of_several_queues(back, AT_ONCE_S), BREAK, "with_others")
    is_wrong = (pl.col("cause") == OVERTAKEN) & pl.col("with_others")
    cause = pl.when(is_wrong).then(pl.lit(UNKNOWN_CAUSE)).otherwise("cause")
    return flagged.with_columns(cause=cause).drop("with_others")


def _of_several_queues(breaks: pl.DataFrame, gap_s: int, counts: pl.Expr | None = None) -> pl.DataFrame:
    """Return the breaks of sessions with at least LEAST_QUEUES queues of a group and topic.

    Breaks that are ``gap_s`` seconds apart or less are one session. ``counts``: whether the queue of a break counts.
    """
    sessions = with_session(breaks, GROUP_TOPIC, "from_ts", "to_ts", gap_s)
    queue = pl.struct("broker_name", "queue_id")
    counted = (queue if counts is None else queue.filter(counts)).n_unique().over(*GROUP_TOPIC, "session")
    return sessions.filter(counted >= LEAST_QUEUES).select(breaks.columns)


def _second_holders(owners: pl.DataFrame) -> pl.DataFrame:
    """Return the owners' spans, oldest first, with ``second_until``.

    Of all spans of the queue up to this one, let the leader be the client that held it longest. ``second_until`` is
    until when any other client held it: so at least two clients held the queue at or after an instant if, and only if,
    ``second_until`` is not before it.
    """
    spans = owners.select(*CLIENT_QUEUE, "from_ts", "to_ts").sort("from_ts")
    spans = spans.with_columns(longest=pl.col("to_ts").cum_max().shift(1).over(GROUP_QUEUE))
    leads = pl.col("longest").is_null() | (pl.col("to_ts") > pl.col("longest"))
    leader = pl.when(leads).then("client_id").forward_fill().shift(1).over(GROUP_QUEUE)
    other = pl.when(pl.col("client_id") != leader).then(pl.min_horizontal("to_ts", "longest"))
    return spans.with_columns(second_until=other).with_columns(pl.col("second_until").cum_max().over(GROUP_QUEUE))


def with_concluded_resets(
    breaks: pl.DataFrame,
    broker_runtime: pl.DataFrame,
    owners: pl.DataFrame,
    has_pushes: bool,
    by_pop: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the breaks; the cause is reset where a rewind of unknown cause must be one.

    ``breaks`` are rows of gold.offset_continuity, ``owners`` the frame of `possible_owners`. Only groups whose owners
    are known are judged. At least LEAST_QUEUES queues must have fallen that did not change hands, or one that nobody
    held.
    ``has_pushes``: whether the resets that brokers push were recorded; then only queues that nobody held are judged.
    ``by_pop``: consumer_group of groups that consume by POP. No member holds a queue of these, and brokers push them no
    resets: several of their queues must have fallen.
    """
    rewinds = (pl.col("kind") == "rewind") & pl.col("cause").is_in(UNEXPLAINED) & (pl.col("broker_id") == 0)
    group = ["consumer_group"]
    shared = owners.select(group).clear() if by_pop is None else by_pop.select(group).unique()
    known = pl.concat([owners.select(group), shared]).unique()
    fell = breaks.filter(rewinds).join(known, group, how="semi")
    if fell.is_empty():
        return breaks
    running = _of_running_brokers(fell, broker_runtime)
    holders = _holders(running, owners)
    of_pop = running.join(shared, group, how="semi")
    alone = running.join(holders.select(BREAK), BREAK, how="anti").join(shared, group, how="anti")
    together = of_pop if has_pushes else running
    reset = pl.concat([alone, _together(together, holders)])
    concluded = reset.select(*BREAK, pl.lit("reset").alias("concluded")).unique()
    named = breaks.join(concluded, BREAK, how="left", maintain_order="left")
    return named.with_columns(pl.coalesce("concluded", "cause").alias("cause")).drop("concluded")


def _together(running: pl.DataFrame, holders: pl.DataFrame) -> pl.DataFrame:
    """Return the breaks that happened with those of LEAST_QUEUES queues that did not change hands."""
    handed_over = holders.filter(pl.col("clients") > 1)
    kept = running.join(handed_over, BREAK, how="anti").with_columns(pl.lit(True).alias("kept"))
    marked = running.join(kept.select(*BREAK, "kept"), BREAK, how="left")
    return _of_several_queues(marked, 0, pl.col("kept")).select(running.columns)


def _of_running_brokers(fell: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the breaks of brokers that had booted at the same instant before and after it."""
    polls = broker_runtime.drop_nulls("boot_ts").select(*BROKER, "ts", "boot_ts").sort("ts")
    met = fell
    for at, after in (("from_ts", False), ("to_ts", True)):
        right = polls.rename({"ts": f"poll_{at}", "boot_ts": f"boot_{at}"})
        met = with_state(met, right, BROKER, at, f"poll_{at}", after=after)
    return met.filter(pl.col("boot_from_ts") == pl.col("boot_to_ts")).select(fell.columns)


def _holders(fell: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """Return how many clients held the queue during a break or just before it, where any did.

    Columns: those of BREAK, which identify a break, and clients.
    """
    spans = owners.select(*CLIENT_QUEUE, pl.col("from_ts").alias("held_ts"), pl.col("to_ts").alias("held_until"))
    began = pl.col("from_ts") - pl.duration(seconds=HANDOVER_S)
    met = fell.join(spans, GROUP_QUEUE).filter((pl.col("held_ts") <= pl.col("to_ts")) & (pl.col("held_until") >= began))
    return met.group_by(BREAK).agg(pl.col("client_id").n_unique().alias("clients"))


def asked_resets(server_request: pl.DataFrame) -> pl.DataFrame:
    """Return the requests to reset offsets that brokers received, and those that they sent without offsets.

    Columns: consumer_group, topic, broker_name, ts, record_id, client_addr, is_sent, error, to_ms.
    """
    offsets = pl.col("reset_offsets").list.len().fill_null(0) > 0
    code = pl.col("request_code")
    is_asked = code == INVOKE_BROKER_TO_RESET_OFFSET
    found = server_request.filter(is_asked | ((code == RESET_CONSUMER_CLIENT_OFFSET) & ~offsets))
    timestamp = pl.col("ext").map.get("timestamp")
    named = found.with_columns(is_sent=~is_asked | offsets, to_ms=timestamp.cast(pl.Int64, strict=False))
    return typed(named, ASKED)


def with_asked_resets(breaks: pl.DataFrame, asked: pl.DataFrame, resets: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Return the breaks; the cause is reset where an offset went back up to ``reach_s`` seconds after a request.

    ``breaks`` are rows of gold.offset_continuity, ``asked`` is the frame of `asked_resets`, ``resets`` that of
    offset_causes.offset_resets. Only requests count of which no offsets are known: the group, topic and broker decide.
    A reset to the end of the queues lowers no offset.
    """
    back = asked.filter(pl.col("error").is_null() & (pl.col("to_ms").fill_null(0) >= 0))
    near = as_of(back, resets, GROUP_TOPIC_BROKER, "ts", {"_offsets": "ts"}, right_at="ts", after=True)
    known = (pl.col("_offsets") <= pl.col("ts") + pl.duration(seconds=reach_s)).fill_null(False)
    accepted = near.filter(~known)
    met = as_of(breaks, accepted, GROUP_TOPIC_BROKER, "to_ts", {"_asked": "ts"}, right_at="ts")
    open_causes = pl.col("cause").is_in([*UNEXPLAINED, "set_from_outside", "client_commit"])
    went_back = (pl.col("kind") == "rewind") & open_causes & (pl.col("broker_id") == 0)
    in_reach = pl.col("_asked") >= pl.col("from_ts") - pl.duration(seconds=reach_s)
    cause = pl.when(went_back & in_reach).then(pl.lit("reset")).otherwise("cause")
    return met.with_columns(cause=cause).drop("_asked")


def wide_resets(asked: pl.DataFrame) -> pl.DataFrame:
    """Return accepted requests with the columns of offset_causes.offset_resets; queue and offsets are null."""
    none = {"queue_id": pl.Int32, "asked": pl.Int64, "delivered_to": pl.Int64, "offset": pl.Int64}
    accepted = asked.filter(pl.col("error").is_null()).sort("ts", "record_id")
    return accepted.select(
        *GROUP_TOPIC,
        pl.lit(None, pl.String).alias("broker_name"),
        *(pl.lit(None, kind).alias(name) for name, kind in none.items()),
        pl.col("ts").alias("since"),
        "ts",
        pl.lit("silver.server_request").alias("table_name"),
        "record_id",
    )
