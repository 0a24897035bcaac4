"""Resets that a broker of 5.x kept until the next pull of the queue, which it answered with the offset.

ConsumerOffsetManager#assignResetOffset sets the offset, and queryThenEraseResetOffset gives it to one pull. A log of a
client has that answer without its status. The request to the broker shows the reset, and so does a copy of the offsets
between the reset and the answer.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import polars as pl

from mqreplay.core.pull_answer import HeldReset, MovedPull, are_answered_by_resets
from mqreplay.decode.server_requests import INVOKE_BROKER_TO_RESET_OFFSET, RESET_CONSUMER_CLIENT_OFFSET
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.intervals import merge
from mqreplay.words.keys import GROUP_QUEUE, GROUP_TOPIC_BROKER

BROKER_LOG = "broker_log"
LINES_S = 120  # a running broker logs more often: it registers at the name servers every 30 s
# A client pulls again within seconds, or when flow control ends: no reset waits longer for a client that is running.
WAITS_S = 3600


class ResetEvidence(NamedTuple):
    """What shows resets of offsets, and what shows that there were none.

    requests: columns GROUP_QUEUE, ts, offset (messages) of the accepted requests to brokers; queue_id and offset are
        null of those without offsets.
    logged: columns broker_name, from_ts, to_ts; between these instants the broker.log of the master was read.
    clock_skew_s: the largest difference between clocks.
    skewed_clients: the ids of the clients with a wrong clock.
    """

    requests: pl.DataFrame
    logged: pl.DataFrame
    clock_skew_s: int
    skewed_clients: Collection[str] = ()


def reset_evidence(
    server_request: pl.DataFrame, broker_runtime: pl.DataFrame, clock_skew_s: int, skewed_clients: Collection[str] = ()
) -> ResetEvidence:
    """Return the evidence of resets, from the rows of silver.server_request and silver.broker_runtime."""
    requests = _requests(server_request, clock_skew_s)
    return ResetEvidence(requests, _logged(broker_runtime), clock_skew_s, skewed_clients)


def with_reset_evidence(moved: pl.DataFrame, offset_change: pl.DataFrame, known: ResetEvidence) -> pl.DataFrame:
    """Return the answers, in their order, with two columns.

    is_reset: a reset of the queue to just this offset, or to one that is not known, was recorded before the answer
    is_logged: the broker.log that was read has all resets that could be waiting for the pull

    ``moved`` are all answers of a shard that can be those of a reset: columns GROUP_QUEUE, client_id, request_ts,
    response_ts, queue_offset, next_begin_offset. ``offset_change`` are the rows of silver.offset_change.
    """
    skew = pl.duration(seconds=known.clock_skew_s)
    at = pl.coalesce("response_ts", "request_ts")
    ordered = moved.with_row_index("_order").with_columns(at.alias("_at")).sort("_at", "_order")
    asked = ordered.with_columns(
        pl.Series("is_reset", _are_requested(ordered, known), pl.Boolean),
        (pl.col("_at") - skew).alias("_earliest"),
        (pl.col("_at") + skew).alias("_latest"),
        (pl.col("_at") - skew - pl.duration(seconds=WAITS_S)).alias("_waits"),
    )
    asked = _with_logged(_with_copies(asked, offset_change), known)
    return asked.sort("_order").select(*moved.columns, "is_reset", "is_logged")


def _requests(server_request: pl.DataFrame, clock_skew_s: int) -> pl.DataFrame:
    asked = (pl.col("request_code") == INVOKE_BROKER_TO_RESET_OFFSET) & pl.col("error").is_null()
    accepted = server_request.filter(asked)
    is_listed = pl.col("reset_offsets").list.len().fill_null(0) > 0
    reset = pl.col("reset_offsets").struct.field
    listed = accepted.filter(is_listed).select("consumer_group", "broker_name", "ts", "reset_offsets")
    return pl.concat(
        [
            listed.explode("reset_offsets").select(
                "consumer_group",
                pl.coalesce(reset("broker_name"), "broker_name").alias("broker_name"),
                *(reset(name) for name in ("topic", "queue_id", "offset")),
                "ts",
            ),
            _unpushed(accepted.filter(~is_listed), server_request, clock_skew_s).select(
                *("consumer_group", "broker_name", "topic"),
                pl.lit(None, pl.Int32).alias("queue_id"),
                pl.lit(None, pl.Int64).alias("offset"),
                "ts",
            ),
        ]
    )


def _unpushed(requests: pl.DataFrame, server_request: pl.DataFrame, clock_skew_s: int) -> pl.DataFrame:
    """Return the requests after which the broker did not order clients to reset: one that does keeps no reset."""
    skew = pl.duration(seconds=clock_skew_s)
    pushes = server_request.filter(pl.col("request_code") == RESET_CONSUMER_CLIENT_OFFSET)
    asked = requests.with_columns((pl.col("ts") - skew).alias("_earliest"))
    asked = as_of(asked, pushes, GROUP_TOPIC_BROKER, "_earliest", {"_pushed": "ts"}, right_at="ts", after=True)
    return asked.filter(~(pl.col("_pushed") <= pl.col("ts") + skew).fill_null(False))


def _logged(broker_runtime: pl.DataFrame) -> pl.DataFrame:
    lines = broker_runtime.filter(
        (pl.col("source") == BROKER_LOG) & (pl.col("broker_id") == 0) & pl.col("error").is_null()
    )
    return merge(lines, ["broker_name"], at="ts", gap_s=LINES_S)


def _are_requested(ordered: pl.DataFrame, known: ResetEvidence) -> list[bool]:
    """Return for each answer, in order of time, whether a request gave it."""
    resets: dict[tuple[object, ...], list[HeldReset]] = {}
    for *key, ts, offset in _by_epoch(known.requests, "ts").select(*GROUP_QUEUE, "ts", "offset").rows():
        resets.setdefault(tuple(key), []).append(HeldReset(ts, offset))
    pulls: dict[tuple[object, ...], list[tuple[int, MovedPull]]] = {}
    asked = _by_epoch(ordered, "_at").select(*GROUP_QUEUE, "_at", "next_begin_offset").rows()
    for place, (*key, ts, offset) in enumerate(asked):
        pulls.setdefault(tuple(key), []).append((place, MovedPull(ts, offset)))
    found = [False] * len(ordered)
    for queue, of_queue in pulls.items():
        # A request without offsets is of all queues of the topic.
        waiting = [*resets.get(queue, ()), *resets.get((*queue[:-1], None), ())]
        answered = are_answered_by_resets(waiting, [pull for _, pull in of_queue], known.clock_skew_s * 1000)
        for (place, _), is_answered in zip(of_queue, answered, strict=True):
            found[place] = is_answered
    return found


def _by_epoch(rows: pl.DataFrame, instant: str) -> pl.DataFrame:
    return rows.with_columns(pl.col(instant).dt.epoch("ms"))


def _with_copies(asked: pl.DataFrame, offset_change: pl.DataFrame) -> pl.DataFrame:
    """Return the answers; is_reset is true, too, where the last copy before the answer shows just this offset.

    The offset fell, or it is past all that the client asked for: so no client committed it while it consumed. A client
    commits the offset of the answer at once: a later copy, or one before the next answer with this offset, shows that.
    """
    changes = offset_change.filter((pl.col("broker_id") == 0) & pl.col("new_offset").is_not_null())
    changes = changes.with_columns(pl.col("previous_offset").fill_null(-1).alias("previous_offset"))
    asked = as_of(
        asked, changes, GROUP_QUEUE, "_earliest", {"_new": "new_offset", "_old": "previous_offset"}, right_at="to_ts"
    )
    offset = pl.col("next_begin_offset")
    set_there = (pl.col("_new") < pl.col("_old")) | (pl.col("_new") > pl.col("queue_offset"))
    is_first = offset.cum_count().over(*GROUP_QUEUE, "next_begin_offset") == 1
    shown = ((pl.col("_new") == offset) & set_there & is_first).fill_null(False)
    return asked.with_columns((pl.col("is_reset") | shown).alias("is_reset"))


def _with_logged(asked: pl.DataFrame, known: ResetEvidence) -> pl.DataFrame:
    asked = as_of(asked, known.logged, ["broker_name"], "_waits", {"_until": "to_ts"}, right_at="from_ts")
    is_read = (pl.col("_until") >= pl.col("_latest")).fill_null(False)
    # The client asks the broker first where to begin, which is the offset of a reset that may have waited for days.
    is_running = pl.col("queue_offset") != pl.col("next_begin_offset")
    is_right = ~pl.col("client_id").is_in(sorted(known.skewed_clients))
    return asked.with_columns((is_read & is_running & is_right).fill_null(False).alias("is_logged"))
