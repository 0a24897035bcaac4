"""Resets of consumer offsets that nothing recorded, concluded from the offsets that brokers hold.

RocketMQ's Java clients never lower an offset by themselves (OffsetStore#updateOffset, increaseOnly), except when a
queue changes hands. A broker in memory holds what was committed last. So if several offsets of a group and topic fall
between the same two polls of a broker that was not restarted, or one falls while no member holds its queue, somebody
reset them.
"""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.time_spans import with_session

GROUP_TOPIC = ["consumer_group", "topic"]
BROKER = ["broker_name", "broker_id"]
BREAK = [*BROKER, *GROUP_TOPIC, "queue_id", "kind", "to_ts"]
HANDOVER_S = 20  # a new owner reads the offset before the old one commits: its commits are lower for seconds
LEAST_QUEUES = 2  # a single offset may fall for other reasons, such as a client in another language


def with_concluded_resets(
    breaks: pl.DataFrame,
    broker_runtime: pl.DataFrame,
    owners: pl.DataFrame,
    has_pushes: bool,
    by_pop: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the breaks; the cause is reset where a rewind of unknown cause must be one.

    ``breaks`` are rows of gold.offset_continuity, ``owners`` the frame of possible_owners.py. Only groups whose owners
    are known are judged. At least LEAST_QUEUES queues must have fallen that did not change hands, or one that nobody
    held.
    ``has_pushes``: whether the resets that brokers push were recorded; then only queues that nobody held are judged.
    ``by_pop``: consumer_group of groups that consume by POP. No member holds a queue of these, and brokers push them no
    resets: several of their queues must have fallen.
    """
    rewinds = (pl.col("kind") == "rewind") & (pl.col("cause") == "unknown") & (pl.col("broker_id") == 0)
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
    together = with_session(marked, GROUP_TOPIC, "from_ts", "to_ts", 0)
    queue = pl.struct("broker_name", "queue_id").filter(pl.col("kept"))
    return together.filter(queue.n_unique().over(*GROUP_TOPIC, "session") >= LEAST_QUEUES).select(running.columns)


def _of_running_brokers(fell: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the breaks of brokers that had booted at the same instant before and after it."""
    polls = broker_runtime.drop_nulls("boot_ts").select(*BROKER, "ts", "boot_ts").sort("ts")
    met = fell
    for at, strategy in (("from_ts", "backward"), ("to_ts", "forward")):
        right = polls.rename({"ts": f"poll_{at}", "boot_ts": f"boot_{at}"})
        met = met.sort(at).join_asof(
            right,
            left_on=at,
            right_on=f"poll_{at}",
            by=BROKER,
            strategy=strategy,  # type: ignore[arg-type]
            check_sortedness=False,
        )
    return met.filter(pl.col("boot_from_ts") == pl.col("boot_to_ts")).select(fell.columns)


def _holders(fell: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """Return how many clients held the queue during a break or just before it, where any did.

    Columns: those of BREAK, which identify a break, and clients.
    """
    spans = owners.select(*KEY, "client_id", pl.col("from_ts").alias("held_ts"), pl.col("to_ts").alias("held_until"))
    began = pl.col("from_ts") - pl.duration(seconds=HANDOVER_S)
    met = fell.join(spans, KEY).filter((pl.col("held_ts") <= pl.col("to_ts")) & (pl.col("held_until") >= began))
    return met.group_by(BREAK).agg(pl.col("client_id").n_unique().alias("clients"))
