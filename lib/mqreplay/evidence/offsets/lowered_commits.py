"""Commits that lowered the stored offset of a queue, where no copies of the broker's offsets show it.

Two kinds of evidence say so: a broker logs each commit below its stored offset (ConsumerOffsetManager#commitOffset),
and the commits of clients, in packets or in their logs, show when one is lower than the commit before it. The result
has rows like silver.offset_change, so that offset_continuity judges them by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.frames import filled
from mqreplay.evidence.intervals import merge
from mqreplay.evidence.offsets.offset_causes import OFFSET_MOVED
from mqreplay.evidence.offsets.queue_events import COMMITS, COPIES, LOGGED_COMMITS, REFUSED_COMMIT, is_offset_file
from mqreplay.words.keys import CLIENT_QUEUE, GROUP_QUEUE

COPIES_S = 600  # copies at most so far apart show each change of an offset that lasts
EDGE_S = 60  # a copy shows what happened shortly before it, and later copies what happened after it
SAVED_S = 15  # a master saves its offsets every 5 s, and a client commits within 5 s; clocks
NEAR_S = 60  # between evidence of one commit in two files, or commits of two owners during a handover
NEAR = pl.duration(seconds=NEAR_S)
LOWERED_COLUMNS = ("day", *GROUP_QUEUE, "previous_offset", "new_offset", "from_ts", "to_ts", "client_addr", "source")


def lowered_commits(
    offset_commit: pl.DataFrame,
    lowered_offset: pl.DataFrame,
    offset_change: pl.DataFrame,
    pull: pl.DataFrame,
    snapshot: pl.DataFrame,
) -> pl.DataFrame:
    """Return one row for each fall of an offset: offset_change's columns, source, client_addr and answered_max.

    The frames are a shard's rows of silver tables; ``snapshot`` is the whole table. Where copies of a master's offsets
    show a queue, they are the only source.
    """
    logged = _logged(lowered_offset)
    committed = _committed(offset_commit)
    # The broker's log has each fall, with the offset that was stored: a client's log has the offset of a moment later.
    met = _within(committed, logged.rename({"to_ts": "at"}), GROUP_QUEUE, NEAR)
    fell = pl.concat([logged, committed.filter(~met)])
    fell = fell.filter(~_in_copies(fell, offset_change, copied_spans(snapshot)))
    # Lines of one second of one queue: the largest step stands for them.
    steps = fell.sort(pl.col("new_offset") - pl.col("previous_offset"), "new_offset", "source", "source_digest")
    kept = steps.unique([*GROUP_QUEUE, "to_ts"], keep="first", maintain_order=True)
    named = _with_answered_max(kept, pull).with_columns(
        pl.col("source").alias("source_name"), broker_id=pl.lit(0, pl.Int64)
    )
    kinds = dict(offset_change.schema) | {"source": pl.String(), "client_addr": pl.String(), "answered_max": pl.Int64()}
    return filled(named, kinds)


def _logged(lowered_offset: pl.DataFrame) -> pl.DataFrame:
    """Return the falls that masters logged."""
    of_masters = lowered_offset.filter((pl.col("broker_id") == 0) & (pl.col("commit_offset") < pl.col("stored_offset")))
    own = {
        "previous_offset": pl.col("stored_offset"),
        "new_offset": pl.col("commit_offset"),
        "from_ts": pl.col("ts"),
        "to_ts": pl.col("ts"),
        "source": pl.lit(LOGGED_COMMITS),
    }
    return of_masters.select(*((own.get(name, pl.col(name))).alias(name) for name in LOWERED_COLUMNS), "source_digest")


def _committed(offset_commit: pl.DataFrame) -> pl.DataFrame:
    """Return the falls between commits that clients sent to masters.

    Commits of one client are in order. The clocks of two hosts differ: a lower commit of another client counts unless
    both commit in turn and an earlier commit was as low, so that the commits may have come in another order.
    """
    own = pl.col("error").is_null() & (pl.col("broker_id").fill_null(0) == 0) & (pl.col("commit_offset") >= 0)
    commits = offset_commit.filter((pl.col("kind") == "UPDATE") & ~REFUSED_COMMIT & own)
    ordered = _of_packets(commits).sort("ts", "commit_offset", "client_id", "record_id")
    before = {"previous_offset": "commit_offset", "from_ts": "ts", "_client": "client_id"}
    known = ordered.with_columns(
        pl.col(column).shift(1).over(GROUP_QUEUE).alias(name) for name, column in before.items()
    )
    fell = known.filter(pl.col("commit_offset") < pl.col("previous_offset"))
    taken = fell.filter(pl.col("_client") != pl.col("client_id"))
    if len(taken):
        fell = fell.join(_out_of_order(taken, ordered), "record_id", how="anti", maintain_order="left")
    named = {
        "new_offset": pl.col("commit_offset"),
        "to_ts": pl.col("ts"),
        "client_addr": pl.lit(None, pl.String),
        "source": pl.lit(COMMITS),
    }
    return fell.select(*((named.get(name, pl.col(name))).alias(name) for name in LOWERED_COLUMNS), "source_digest")


def _of_packets(commits: pl.DataFrame) -> pl.DataFrame:
    """Return the commits without those of clients' logs near which packets show commits of the same client.

    A log's line has the offset of a moment after the commit, by the client's clock. Only packets have a ``mode``.
    """
    packets, logs = (commits.filter(of) for of in (pl.col("mode").is_not_null(), pl.col("mode").is_null()))
    if packets.is_empty() or logs.is_empty():
        return commits
    near = _within(logs.with_columns(to_ts="ts"), packets.with_columns(at="ts"), CLIENT_QUEUE, NEAR)
    return pl.concat([packets, logs.filter(~near)])


def _within(rows: pl.DataFrame, others: pl.DataFrame, by: Sequence[str], reach: pl.Expr) -> pl.Series:
    """Return for each row whether another row of the same ``by`` has ``at`` within ``reach`` of its to_ts."""
    asked = as_of(rows, others, by, "to_ts", {"_before": "at"}, right_at="at")
    asked = as_of(asked, others, by, "to_ts", {"_after": "at"}, right_at="at", after=True)
    near = (pl.col("_before") >= pl.col("to_ts") - reach).fill_null(False)
    return asked.select(near | (pl.col("_after") <= pl.col("to_ts") + reach).fill_null(False)).to_series()


def _out_of_order(taken: pl.DataFrame, ordered: pl.DataFrame) -> pl.DataFrame:
    """Return record_id of the falls to another client's commit that another order of the commits explains."""
    by = [*GROUP_QUEUE, "_client"]
    earlier_owner = ordered.select(*GROUP_QUEUE, pl.col("client_id").alias("_client"), pl.col("ts").alias("at"))
    goes_on = as_of(taken, earlier_owner, by, "ts", {"_next": "at"}, right_at="at", after=True)
    in_turn = goes_on.filter(pl.col("_next") <= pl.col("ts") + NEAR)
    queues = ordered.join(in_turn.select(GROUP_QUEUE).unique(), GROUP_QUEUE, how="semi")
    lowest = pl.col("commit_offset").rolling_min_by("ts", window_size=f"{NEAR_S}s", closed="left")
    known = queues.with_columns(lowest.over(GROUP_QUEUE).alias("_lowest")).join(in_turn, "record_id", how="semi")
    return known.filter(pl.col("_lowest") <= pl.col("commit_offset")).select("record_id")


def copied_spans(snapshot: pl.DataFrame) -> pl.DataFrame:
    """Return broker_name, span_from, span_to: when a master's offsets were copied or polled again and again."""
    copies = snapshot.filter((pl.col("broker_id") == 0) & is_offset_file())
    instants = copies.select("broker_name", "ts").unique()
    spans = merge(instants, ["broker_name"], pl.len().alias("copies"), at="ts", gap_s=COPIES_S)
    edge = pl.duration(seconds=EDGE_S)
    return spans.filter(pl.col("copies") > 1).select(
        "broker_name", (pl.col("from_ts") - edge).alias("span_from"), (pl.col("to_ts") + edge).alias("span_to")
    )


def _in_copies(fell: pl.DataFrame, offset_change: pl.DataFrame, spans: pl.DataFrame) -> pl.Series:
    """Return for each fall whether copies of the master's offsets show its queue at that time, or the fall itself."""
    of_masters = offset_change.filter((pl.col("broker_id") == 0) & pl.col("client_id").is_null())
    asked = as_of(fell, spans, ["broker_name"], "to_ts", {"_until": "span_to"}, right_at="span_from")
    has_key = of_masters.select(*GROUP_QUEUE).unique().with_columns(_has_key=pl.lit(True))
    asked = asked.join(has_key, GROUP_QUEUE, how="left", maintain_order="left", nulls_equal=True)
    covered = (pl.col("_until") >= pl.col("to_ts")) & pl.col("_has_key")
    falls = of_masters.filter(pl.col("new_offset") < pl.col("previous_offset")).select(
        *GROUP_QUEUE, pl.coalesce("from_ts", "to_ts").alias("fell_from"), pl.col("to_ts").alias("fell_to")
    )
    saved = pl.duration(seconds=SAVED_S)
    asked = asked.with_columns(_latest=pl.col("to_ts") + saved)
    asked = as_of(asked, falls, GROUP_QUEUE, "_latest", {"_fell_to": "fell_to"}, right_at="fell_from")
    shown = pl.col("_fell_to") >= pl.col("to_ts") - saved
    return asked.select(covered.fill_null(False) | shown.fill_null(False)).to_series()


def _with_answered_max(fell: pl.DataFrame, pull: pl.DataFrame) -> pl.DataFrame:
    """Add ``answered_max``: the end of the queue by the last answer to a pull of the group past the end, just before.

    A client commits the end at once (DefaultMQPushConsumerImpl, OFFSET_ILLEGAL). The end may be as old as the request.
    Answers without a broker are those of clients' logs: masters send them (PULL_OFFSET_MOVED), slaves do not by default
    (PullMessageProcessor).
    """
    past_end = (pl.col("response_code") == OFFSET_MOVED) & (pl.col("queue_offset") > pl.col("max_offset"))
    answers = pull.filter(past_end & (pl.col("broker_id").fill_null(0) == 0)).select(
        *GROUP_QUEUE, pl.coalesce("response_ts", "request_ts").alias("at"), "request_ts", "max_offset"
    )
    # A broker's log has whole seconds, and the clock of a client its own time.
    asked = fell.with_columns(_latest=pl.col("to_ts") + pl.duration(seconds=2))
    names = {"answered_max": "max_offset", "_asked": "request_ts"}
    asked = as_of(asked, answers, GROUP_QUEUE, "_latest", names, right_at="at")
    since = pl.col("from_ts") - pl.duration(seconds=SAVED_S)
    known = pl.when(pl.col("_asked") >= since).then("answered_max")
    return asked.with_columns(answered_max=known).drop("_latest", "_asked")


def with_senders(breaks: pl.DataFrame, lowered_offset: pl.DataFrame) -> pl.DataFrame:
    """Return the breaks with ``client_addr`` of the rewinds in copies for which the broker logged a lower commit.

    ``breaks`` are rows of gold.offset_continuity. A master saves its offsets, and is copied, after the commit.
    """
    logged = lowered_offset.filter(pl.col("broker_id") == 0)
    met = as_of(breaks, logged, GROUP_QUEUE, "to_ts", {"_addr": "client_addr", "_at": "ts"}, right_at="ts")
    rewinds = (pl.col("kind") == "rewind") & (pl.col("source") == COPIES)
    in_time = pl.col("_at") >= pl.col("from_ts") - pl.duration(seconds=SAVED_S)
    addr = pl.coalesce("client_addr", pl.when(rewinds & in_time).then("_addr"))
    return met.with_columns(client_addr=addr).drop("_addr", "_at")


def with_sent_causes(breaks: pl.DataFrame) -> pl.DataFrame:
    """Return the breaks; the cause is client_commit where none is known and the broker logged who sent the offset."""
    is_sent = (pl.col("cause") == "unknown") & pl.col("client_addr").is_not_null()
    return breaks.with_columns(cause=pl.when(is_sent).then(pl.lit("client_commit")).otherwise("cause"))
