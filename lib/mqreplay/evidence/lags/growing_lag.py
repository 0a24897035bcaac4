"""Lag that grows: the group's offset of a queue does not advance, or more slowly than messages arrive.

Standstills of queues that a member held are findings of their own (standstills.py). The others are of groups whose
queues nobody is known to hold: clients of POP and gRPC, pull consumers that report no queues, groups whose last member
left.

A group that was stopped, restarted or got a burst catches up: its lag rises in one step, or falls again. So a span in
which it advances counts only if the lag rose in most of its steps, and if the group had not worked half of it off.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

import polars as pl

from mqreplay.core.system_names import PROXY_GROUP
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.frames import ms, with_flag
from mqreplay.evidence.gap_rows import gap_rows
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.members.membership import BROADCASTING, consumer_groups, is_of_application, is_own_group
from mqreplay.evidence.offsets.queue_ends import lag_of
from mqreplay.evidence.offsets.queue_events import accepted_commits
from mqreplay.words.keys import GROUP_QUEUE, GROUP_TOPIC, QUEUE

LOCAL_OFFSETS = "the offsets of a broadcasting group are with its clients, and no broker knows them"
NO_OFFSETS = "no offset of the group was recorded"
STEP_S = 30  # ends of queues are polled every 30 s
NOISE = 0.9  # a lag that falls by less goes on growing
MOST_STEPS = 2 / 3  # of the steps of a span: the lag rose, the offset advanced
LARGEST_STEP = 0.5  # of the growth: a burst comes in one step
KEPT_UP = 0.1  # of the largest lag: what polls and commits alone make, before the group fell behind
BEHIND_S = 60  # of what arrives: commits and polls alone make a lag of some seconds


def advances_of_shard(offset_change: pl.DataFrame, offset_commit: pl.DataFrame) -> pl.DataFrame:
    """Return the last instant at which a group is known to have advanced on a topic.

    Columns: consumer_group, topic, advanced_ts.

    By copies of masters' offsets, and by accepted commits of one queue that differ.
    """
    of_master = (pl.col("broker_id") == 0) & pl.col("client_id").is_null()
    copied = offset_change.filter(of_master & (pl.col("new_offset") > pl.col("previous_offset")))
    committed = (
        accepted_commits(offset_commit)
        .group_by(GROUP_QUEUE)
        .agg(pl.col("commit_offset").n_unique().alias("offsets"), pl.col("ts").max().alias("advanced_ts"))
    )
    moved = committed.filter(pl.col("offsets") > 1)
    by_copies = copied.select(*GROUP_TOPIC, pl.col("to_ts").alias("advanced_ts"))
    return (
        pl.concat([by_copies, moved.select(*GROUP_TOPIC, "advanced_ts")])
        .group_by(GROUP_TOPIC)
        .agg(pl.col("advanced_ts").max().cast(INSTANT))
    )


def with_stopped(advances: pl.DataFrame, stopped: Collection[tuple[str, str]]) -> pl.DataFrame:
    """Return the rows of `advances_of_shard`, and those groups and topics that advanced before the window."""
    before = pl.DataFrame([*stopped], advances.select(GROUP_TOPIC).schema, orient="row")
    new = before.join(advances, GROUP_TOPIC, how="anti")
    return pl.concat([advances, new], how="diagonal")


def growing_lag(
    still: pl.DataFrame,
    held: pl.DataFrame,
    advances: pl.DataFrame,
    members: pl.DataFrame,
    heartbeat: pl.DataFrame,
    outages: pl.DataFrame,
    stuck_s: int,
) -> pl.DataFrame:
    """Return the spans of ``stuck_s`` seconds and longer in which a lag grew.

    Columns: consumer_group, topic, broker_name, queue_id, from_ts, to_ts, offset, waiting, arrived (messages).

    ``still`` is the frame of `standstill_spans`, ``held`` that of held_standstills, whose spans are left out,
    ``advances`` the rows of `advances_of_shard` of all shards, ``members`` that of membership, ``outages`` that of
    broker_outages: while a broker is down, nobody can read from it. A group counts if it advanced on the topic in the
    recording, or has a member meanwhile: offsets of a group that nobody uses any more stay for ever. Offsets of
    broadcasting groups are with the clients.
    """
    spans = still.explode("spans").unnest("spans").filter(pl.col("arrived") > 0)
    broadcasting = consumer_groups(heartbeat).filter(pl.col("message_model") == BROADCASTING)
    own = spans.filter(is_of_application()).join(broadcasting, "consumer_group", how="anti")
    unheld = own.join(held.select(*GROUP_QUEUE, "from_ts"), [*GROUP_QUEUE, "from_ts"], how="anti")
    used = with_flag(unheld.with_columns(_has_member(unheld, members)), advances, GROUP_TOPIC, "advanced")
    alive = used.filter(pl.col("advanced") | pl.col("has_member"))
    down_ms = _down_ms(alive, outages)
    length_ms = ms("to_ts") - ms("from_ts")
    grown = alive.with_columns(down_ms).filter(length_ms - pl.col("down_ms") >= stuck_s * 1000)
    return grown.select(*GROUP_QUEUE, "from_ts", "to_ts", "offset", "waiting", "arrived")


def lag_gaps(
    members: pl.DataFrame, heartbeat: pl.DataFrame, known: Collection[str], day: dt.date, stuck_s: int
) -> pl.DataFrame:
    """Return the gaps of groups that had members on ``day``, and whose lag is unknown.

    ``known``: the groups of which any offset was recorded; ``members`` and ``heartbeat`` as in `growing_lag`. Members
    of less than ``stuck_s`` seconds hide no finding.
    """
    begin = dt.datetime.combine(day, dt.time(), dt.UTC)
    of_day = (pl.col("to_ts") >= begin) & (pl.col("from_ts") < begin + dt.timedelta(days=1))
    long = pl.col("to_ts") - pl.col("from_ts") >= pl.duration(seconds=stuck_s)
    own = is_own_group() & (pl.col("consumer_group") != PROXY_GROUP)
    sessions = members.filter(of_day & long & own)
    broadcasting = consumer_groups(heartbeat).filter(pl.col("message_model") == BROADCASTING)["consumer_group"]
    local = pl.col("consumer_group").is_in(broadcasting.unique().to_list())
    unknown = sessions.filter(local | ~pl.col("consumer_group").is_in([*known])).with_columns(
        pl.when(local).then(pl.lit(LOCAL_OFFSETS)).otherwise(pl.lit(NO_OFFSETS)).alias("reason")
    )
    clients = pl.col("client_id").n_unique().cast(pl.Int64)
    gaps = unknown.group_by("consumer_group", "reason").agg(
        pl.col("from_ts").min(), pl.col("to_ts").max(), clients.alias("decisions")
    )
    named = gaps.with_columns(
        pl.lit(day).alias("day"),
        pl.lit("finding lag_grows").alias("decision"),
        pl.lit("undetermined").alias("evidence"),
    )
    return gap_rows(named)


def _has_member(spans: pl.DataFrame, members: pl.DataFrame) -> pl.Series:
    """Return for each span whether the group had a member meanwhile."""
    numbered = spans.select("consumer_group", "from_ts", "to_ts").with_row_index("span")
    met = numbered.join(members.select("consumer_group", "from_ts", "to_ts"), "consumer_group", suffix="_member")
    meanwhile = met.filter((pl.col("from_ts_member") < pl.col("to_ts")) & (pl.col("to_ts_member") > pl.col("from_ts")))
    return numbered["span"].is_in(meanwhile["span"].implode()).alias("has_member")


def _down_ms(spans: pl.DataFrame, outages: pl.DataFrame) -> pl.Series:
    """Return for each span how long the queue's master did not answer meanwhile, in milliseconds."""
    down = outages.filter(pl.col("broker_id") == 0).select("broker_name", "from_ts", "to_ts")
    numbered = spans.select("broker_name", "from_ts", "to_ts").with_row_index("span")
    met = numbered.join(down, "broker_name", suffix="_down")
    began, ended = pl.max_horizontal("from_ts", "from_ts_down"), pl.min_horizontal("to_ts", "to_ts_down")
    shared = (ended.dt.epoch("ms") - began.dt.epoch("ms")).clip(lower_bound=0)
    sums = met.group_by("span").agg(shared.sum().alias("down_ms"))
    return numbered.join(sums, "span", how="left", maintain_order="left")["down_ms"].fill_null(0)


def falling_behind_of_shard(offset_change: pl.DataFrame, ends: pl.DataFrame, behind_s: int) -> pl.DataFrame:
    """Return the spans of ``behind_s`` seconds and longer in which a queue's lag grew although its offset advanced.

    Columns: GROUP_QUEUE, from_ts, to_ts, lag_before, waiting (at the end), arrived, consumed (messages), halved_ts:
    when the group had worked off half of it; null if it did not. ``ends`` is queue_ends' frame.
    """
    of_master = (pl.col("broker_id") == 0) & pl.col("client_id").is_null() & pl.col("new_offset").is_not_null()
    changes = offset_change.filter(of_master).select(*GROUP_QUEUE, "to_ts", "new_offset")
    keys = changes.select(GROUP_QUEUE).unique().filter(is_of_application()).with_row_index("key")
    points = _with_runs(_points(changes.join(keys, GROUP_QUEUE), keys, ends))
    grew = points.group_by("run").agg(
        (pl.col("ts").last() - pl.col("ts").first() >= pl.duration(seconds=behind_s)).alias("long"),
        (pl.col("lag").max() > pl.col("lag").first()).alias("more"),
    )
    rising = points.join(grew.filter("long", "more"), "run", how="semi", maintain_order="left")
    peaks = rising.filter(pl.col("ts") <= pl.col("ts").sort_by("lag", "ts").last().over("run"))
    kept_up = pl.col("lag") <= pl.col("lag").max() * KEPT_UP
    peaks = peaks.filter((pl.col("ts") >= pl.col("ts").filter(kept_up).max().over("run")).fill_null(True))
    rose, advanced = pl.col("rise") > 0, pl.col("did") > 0
    inner = pl.col("rise").is_not_null()
    steps, growth = inner.sum(), pl.col("lag").last() - pl.col("lag").first()
    spans = (
        peaks.with_columns(pl.when(pl.int_range(pl.len()).over("run") > 0).then(pl.col("rise", "did")))
        .group_by("key", "run", maintain_order=True)
        .agg(
            pl.col("ts").first().alias("from_ts"),
            pl.col("ts").last().alias("to_ts"),
            pl.col("lag").first().alias("lag_before"),
            pl.col("lag").last().alias("waiting"),
            (pl.col("end").last() - pl.col("end").first()).alias("arrived"),
            (pl.col("offset").last() - pl.col("offset").first()).alias("consumed"),
            (((rose & inner).sum() >= steps * MOST_STEPS) & ((advanced & inner).sum() >= steps * MOST_STEPS)).alias(
                "steady"
            ),
            (pl.col("rise").max() <= growth * LARGEST_STEP).alias("no_burst"),
        )
    )
    length_s = (pl.col("to_ts") - pl.col("from_ts")).dt.total_milliseconds() / 1000
    is_long = (length_s >= behind_s) & (pl.col("waiting") * length_s >= pl.col("arrived") * BEHIND_S)
    found = spans.filter(is_long & pl.col("steady") & pl.col("no_burst") & (pl.col("waiting") > pl.col("lag_before")))
    later = found.select("key", "to_ts", "waiting").join(points.select("key", "ts", "lag"), "key")
    halved = later.filter((pl.col("ts") > pl.col("to_ts")) & (pl.col("lag") <= pl.col("waiting") / 2))
    first = halved.group_by("key", "to_ts").agg(pl.col("ts").min().alias("halved_ts"))
    columns = ("from_ts", "to_ts", "lag_before", "waiting", "arrived", "consumed", "halved_ts")
    return (
        found.join(first, ["key", "to_ts"], how="left")
        .join(keys, "key")
        .select(*GROUP_QUEUE, *columns)
        .sort(*GROUP_QUEUE, "from_ts")
    )


def _points(changes: pl.DataFrame, keys: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return the lag at one statement of the end in STEP_S seconds: key, ts, end, offset, lag, in order of key and ts.

    ``keys`` has a number, key, of each GROUP_QUEUE, and ``changes`` have it too.
    """
    bucket = pl.col("at").dt.truncate(f"{STEP_S}s").alias("bucket")
    highs = ends.filter(pl.col("queue_max_offset").is_not_null()).join(keys, QUEUE, how="semi")
    each = highs.group_by(*QUEUE, bucket).agg(
        pl.col("at").max().alias("ts"), pl.col("queue_max_offset").max().alias("end")
    )
    asked = keys.join(each, QUEUE).select("key", "ts", "end").sort("key", "ts")
    met = as_of(asked, changes, ["key"], "ts", {"offset": "new_offset"}, right_at="to_ts")
    return met.with_columns(lag_of("end", "offset")).drop_nulls("lag")


def _with_runs(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points with rise and did (since the point before), and run: while the lag does not fall."""
    same = pl.col("key") == pl.col("key").shift(1)
    before = {name: pl.when(same).then(pl.col(name).shift(1)) for name in ("lag", "offset", "ts")}
    falls = (pl.col("lag") < before["lag"] * NOISE) | (pl.col("ts") - before["ts"] > pl.duration(seconds=4 * STEP_S))
    return points.with_columns(
        rise=pl.col("lag") - before["lag"],
        did=pl.col("offset") - before["offset"],
        run=falls.fill_null(True).cum_sum(),
    )


def falling_behind(spans: pl.DataFrame, jumps: pl.DataFrame) -> pl.DataFrame:
    """Return the spans of `falling_behind_of_shard`, without those of groups that worked their lag off.

    ``jumps`` are rows of gold.offset_continuity: an offset that was set ahead works nothing off.
    """
    set_ahead = jumps.filter((pl.col("kind") == "jump") & (pl.col("broker_id") == 0))
    met = spans.join(set_ahead.select(*GROUP_QUEUE, jump_ts="to_ts"), GROUP_QUEUE)
    between = (pl.col("jump_ts") > pl.col("to_ts")) & (pl.col("jump_ts") <= pl.col("halved_ts"))
    jumped = met.filter(between).select(*GROUP_QUEUE, "from_ts").unique()
    kept = spans.filter(pl.col("halved_ts").is_null())
    return pl.concat(
        [kept, spans.filter(pl.col("halved_ts").is_not_null()).join(jumped, [*GROUP_QUEUE, "from_ts"], how="semi")]
    )
