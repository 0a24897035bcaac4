"""Resets of consumer offsets, each with the change that it made: when, from which offset to which."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.arrays.frame_arrays import less
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.frames import columns, typed, valued, with_flag
from mqreplay.evidence.intervals import INSTANT, with_session
from mqreplay.evidence.offsets.offset_causes import ANSWERED, PUSHED, delivered_offsets, pushed_resets
from mqreplay.words.keys import GROUP_QUEUE, GROUP_TOPIC

# A queue's row of a reset. ``moved`` is negative if the offset went back, null if nothing shows that it moved.
RESET: dict[str, pl.DataType] = {
    **columns("consumer_group", "topic", "broker_name", "queue_id"),
    "set_ts": INSTANT,  # when the offset was set, as far as is known
    "seen_ts": INSTANT,  # when it was last seen
    "old": pl.Int64(),
    "new": pl.Int64(),
    "moved": pl.Int64(),
    "again": pl.Int64(),  # messages delivered again: the most if ``bounded``, else the least
    "pulled_back": pl.Boolean(),  # the offset was set ahead, but the client that pulled was further ahead
    "answered": pl.Boolean(),
    "recorded": pl.Boolean(),  # a request or an answer of a broker says so; else concluded from the offset alone
    "from_outside": pl.Boolean(),  # concluded, since no recorded commit brought the offset there
    "table_name": pl.String(),
    "record_id": pl.String(),  # of a request or an answer
    "break_kind": pl.String(),  # of the row of gold.offset_continuity, as the next
    "break_ts": INSTANT,
    "bounded": pl.Boolean(),  # evidence of clients bounds how many messages are delivered again
    "asked": pl.Boolean(),  # a request of which the offsets are not known, as the rest
    "is_sent": pl.Boolean(),
    "client_addr": pl.String(),  # who asked for the reset
    **columns("error", "to_ms"),
}
EFFECT = ("from_ts", "to_ts", "previous_offset", "new_offset", "kind", "redelivered_max", "cause")


def applied_resets_of_shard(
    server_request: pl.DataFrame, offset_commit: pl.DataFrame, pull: pl.DataFrame, reach_s: int
) -> pl.DataFrame:
    """Return the pushed resets of a shard that a client carried out.

    Columns: consumer_group, topic, broker_name, queue_id, ts, record_id, asked, delivered_to.

    A broker pushes the offsets of all its queues to each client; a client acts on those that it holds: it commits
    just the offset that it was sent, or pulls from it, within ``reach_s`` seconds. ``asked`` is the offset that the
    group had committed before, or else ``delivered_to``, up to where it had received messages.
    """
    pushed = pushed_resets(server_request).filter(pl.col("offset").is_not_null())
    offset_commit, pull = (
        rows.join(pushed.select(GROUP_QUEUE).unique(), GROUP_QUEUE, how="semi") for rows in (offset_commit, pull)
    )
    commits = offset_commit.filter((pl.col("kind") == "UPDATE") & pl.col("commit_offset").is_not_null())
    commits = commits.select(*GROUP_QUEUE, "ts", offset=pl.col("commit_offset"))
    pulls = pull.select(*GROUP_QUEUE, ts=pl.col("request_ts"), offset=pl.col("queue_offset"))
    acts = pl.concat([commits, pulls.filter(pl.col("offset").is_not_null())]).with_columns(acted_ts=pl.col("ts"))
    asked = as_of(pushed, acts, [*GROUP_QUEUE, "offset"], "ts", {"acted_ts": "acted_ts"}, right_at="ts", after=True)
    carried_out = asked.filter(pl.col("acted_ts") <= pl.col("ts") + pl.duration(seconds=reach_s))
    known = as_of(carried_out, commits, GROUP_QUEUE, "ts", {"committed": "offset"}, right_at="ts")
    known = as_of(
        known, delivered_offsets(pull), GROUP_QUEUE, "acted_ts", {"delivered_to": "delivered_to"}, right_at="at"
    )
    return known.select(
        *GROUP_QUEUE, "ts", "record_id", pl.coalesce("committed", "delivered_to").alias("asked"), "delivered_to"
    )


def with_applied(resets: pl.DataFrame, applied: pl.DataFrame) -> pl.DataFrame:
    """Return the resets with ``asked`` and ``delivered_to`` of the pushed ones that clients carried out.

    ``applied`` are the rows of `applied_resets_of_shard` of all shards.
    """
    by = [*GROUP_QUEUE, "ts", "record_id"]
    first = applied.unique(by, keep="first", maintain_order=True).rename(
        {"asked": "_asked", "delivered_to": "_delivered_to"}
    )
    known = resets.join(first, by, how="left", maintain_order="left", nulls_equal=True)
    names = ("asked", "delivered_to")
    return known.with_columns(pl.coalesce(f"_{name}", name).alias(name) for name in names).select(resets.columns)


def reset_rows(
    resets: pl.DataFrame, continuity: pl.DataFrame, reach_s: int, asked: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return one row per queue of a reset that a broker sent, or that an offset shows without one (schema RESET).

    ``resets`` is the frame of `with_applied`, ``continuity`` gold.offset_continuity, ``asked`` that of asked_resets: a
    row of it names no queue. A broker of 4.9 pushes a
    reset to the clients, which commit it within ``reach_s`` seconds. One of 5.x sets the offset at once and answers the
    next pull with it, however late. For a group that is down, mqadmin commits the offsets itself.
    """
    shown = continuity.filter(
        (pl.col("broker_id") == 0)
        & pl.col("kind").is_in(["rewind", "jump"])
        & pl.col("cause").is_in(["reset", "set_from_outside"])
    ).select(*GROUP_QUEUE, *EFFECT)
    numbered = resets.with_row_index("_row")
    by_reset = shown.filter(pl.col("cause") == "reset")
    sent = numbered.join(_effects(numbered, by_reset, reach_s), "_row", how="left", maintain_order="left")
    answered = pl.col("table_name") == ANSWERED
    # Without copies, the group's position at the answer shows how far the offset moved.
    recorded = _rows(
        sent.with_columns(old=pl.coalesce("previous_offset", "asked"), new="offset"),
        set_ts=pl.when(answered).then(pl.min_horizontal("ts", "to_ts")).otherwise("ts"),
        seen_ts=pl.col("ts"),
        answered=answered,
        recorded=pl.lit(True),
        from_outside=pl.lit(False),
    )
    outside = pl.col("cause") == "set_from_outside"
    known = resets.select(GROUP_TOPIC).unique()
    alone = pl.concat([shown.filter(outside), by_reset.join(known, GROUP_TOPIC, how="anti")])
    concluded = _rows(
        alone.with_columns(pl.lit(None, pl.String).alias("record_id"), old="previous_offset", new="new_offset"),
        set_ts=pl.col("from_ts"),
        seen_ts=pl.col("to_ts"),
        answered=pl.lit(False),
        recorded=pl.lit(False),
        from_outside=outside,
        table_name=pl.lit("gold.offset_continuity"),
    )
    requests = [] if asked is None else [_requests(asked)]
    return pl.concat([recorded, concluded, *requests])


def _requests(asked: pl.DataFrame) -> pl.DataFrame:
    """Return the requests without offsets, in the schema RESET."""
    known = {
        "set_ts": pl.col("ts"),
        "seen_ts": pl.col("ts"),
        "answered": pl.lit(False),
        "recorded": pl.lit(True),
        "from_outside": pl.lit(False),
        "bounded": pl.lit(False),
        "pulled_back": pl.lit(False),
        "asked": pl.lit(True),
        "table_name": pl.lit(PUSHED),
        "broker_name": pl.lit(None),  # the queue is not known
    }
    own = {name: pl.col(name) for name in asked.columns} | known
    return valued(asked, RESET, **own)


def _rows(rows: pl.DataFrame, **columns: pl.Expr) -> pl.DataFrame:
    went_back = pl.col("new") < pl.col("old")
    delivered = pl.max_horizontal("delivered_to", "old") if "delivered_to" in rows.columns else pl.col("old")
    delivered_again = less(delivered, "new")
    # A 5.x broker sets the stored offset at once; the client goes on until its next pull is answered with it.
    position = pl.max_horizontal("asked", delivered) if "asked" in rows.columns else delivered
    pulled_back = columns["answered"] & ~went_back & (position > pl.col("new"))
    named = {
        "moved": pl.when(pl.col("new") != pl.col("old")).then(less("new", "old")),
        "again": pl.coalesce(
            pl.when(pl.col("kind") == "rewind").then("redelivered_max"),
            pl.when(went_back).then(delivered_again).when(pulled_back).then(less(position, "new")),
        ),
        "pulled_back": pulled_back.fill_null(False),
        "break_kind": pl.col("kind"),
        "break_ts": pl.col("to_ts"),
        "bounded": columns["recorded"] | columns["from_outside"],
        "asked": pl.lit(False),
    } | columns
    named |= {name: pl.lit(None) for name in ("is_sent", "client_addr", "error", "to_ms")}
    return typed(rows, RESET, **named)


def _effects(sent: pl.DataFrame, shown: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Return for each request or answer the change of its queue that it made.

    Columns: _row, from_ts, to_ts, previous_offset, new_offset, kind, redelivered_max, cause.
    """
    changes = shown.sort("to_ts").unique([*GROUP_QUEUE, "to_ts"], keep="last", maintain_order=True)
    asked = as_of(sent, changes, GROUP_QUEUE, "ts", {"_before": "to_ts"}, right_at="from_ts")
    asked = as_of(asked, changes, GROUP_QUEUE, "ts", {"_after": "to_ts"}, right_at="to_ts", after=True)
    pairs = [
        asked.join(changes.with_columns(pl.col("to_ts").alias(name)), [*GROUP_QUEUE, name], how="inner")
        for name in ("_before", "_after")
    ]
    before, after = (pair.select("_row", *GROUP_QUEUE, "table_name", "offset", "ts", *EFFECT) for pair in pairs)
    # An answer comes after the change, or between the two copies that show it; a push before what clients commit.
    to_this = (pl.col("new_offset") == pl.col("offset")) | (pl.col("to_ts") >= pl.col("ts"))
    before = before.filter((pl.col("table_name") == ANSWERED) & to_this)
    # The first answer after a change is that of the reset that made it.
    before = before.sort("ts", "_row").unique([*GROUP_QUEUE, "to_ts"], keep="first", maintain_order=True)
    after = after.filter(pl.col("to_ts") <= pl.col("ts") + pl.duration(seconds=reach_s))
    return pl.concat([before, after]).unique("_row", keep="first", maintain_order=True).select("_row", *EFFECT)


def with_reset_session(rows: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return the rows of `reset_rows` with ``session``: those of a group and topic that one reset explains.

    Queues of one reset are set at most ``gap_s`` seconds apart. An answer that moved nothing comes when its queue is
    pulled next: it belongs to the last reset before it that its queue has no answer of, for a broker answers a reset
    once (ConsumerOffsetManager#queryThenEraseResetOffset).
    """
    set_until = pl.when("recorded").then("set_ts").otherwise("seen_ts").alias("set_until")
    late = pl.col("answered") & pl.col("moved").is_null()
    first = _sessions(rows.filter(~late).with_columns(set_until), gap_s)
    begun = first.group_by(*GROUP_TOPIC, "session").agg(pl.col("set_ts").min().alias("began"))
    asked = rows.filter(late).with_columns(latest=pl.col("set_ts") + pl.duration(seconds=gap_s))
    asked = as_of(asked, begun, GROUP_TOPIC, "latest", {"began": "began"}, right_at="began").drop("latest")
    asked = asked.join(begun, [*GROUP_TOPIC, "began"], how="left", maintain_order="left")
    asked = with_flag(asked, first.filter("answered"), [*GROUP_QUEUE, "session"], "is_answered")
    belongs = pl.col("session").is_not_null() & ~pl.col("is_answered")
    joined = asked.filter(belongs).with_columns(pl.min_horizontal("set_ts", "began").alias("set_ts"))
    others = _sessions(asked.filter(~belongs).drop("session").with_columns(set_until), gap_s)
    last = pl.lit(first["session"].max() or 0, pl.UInt32)
    numbered = others.with_columns(pl.col("session") + last)
    columns = [*RESET, pl.col("session").cast(pl.Int64)]
    return pl.concat([frame.select(columns) for frame in (first, joined, numbered)])


def _sessions(rows: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    return with_session(rows, GROUP_TOPIC, "set_ts", "set_until", gap_s)
