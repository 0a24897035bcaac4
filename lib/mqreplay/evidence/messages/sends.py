"""Tries of sends: how each ended, and which thread of a producer sent it.

Each thread of a producer takes the queues of a topic in turn, by a counter of its own. The rule is
core.select_queue.continues_a_turn, here for all producers at once. With enough threads it fits any sends, so it counts
only where it is hardly chance: where sends to queues chosen at random would fit it with a probability below CHANCE.
"""

from __future__ import annotations

import math
from typing import Final

import polars as pl

from mqreplay.core.send_retry import SEND_STATUS
from mqreplay.decode.sends import CLIENT_LOG
from mqreplay.evidence.frames import first_of

STORED: Final = "stored"
REFUSED: Final = "refused"
UNANSWERED: Final = "unanswered"
ONEWAY: Final = "oneway"
FAILED: Final = "failed"  # in a producer's log: with an exception that the line does not name
INTERRUPTED: Final = "interrupted"
TURN: Final = ("client_id", "producer_group", "topic")  # a producer's sends to a topic
CHANCE: Final = 1e-9
SEND: Final = "send"


def outcome() -> pl.Expr:
    """Return how each row of silver.send ended."""
    return first_of(
        (pl.col("response_code").is_in(list(SEND_STATUS)), STORED),
        (pl.col("response_code").is_not_null(), REFUSED),
        (pl.col("mode") == "oneway", ONEWAY),
        (pl.col("error").str.starts_with("InterruptedException"), INTERRUPTED),
        (pl.col("source") == CLIENT_LOG, FAILED),
        otherwise=UNANSWERED,
    )


def failed() -> pl.Expr:
    """Return whether each try failed: one without an answer only if the producer tried again.

    Needs the columns outcome and was_retried. A capture may lack an answer.
    """
    is_silent = (pl.col("outcome") == UNANSWERED) & pl.col("was_retried")
    return pl.col("outcome").is_in([REFUSED, FAILED]) | is_silent


def thread_turns(sends: pl.DataFrame) -> pl.DataFrame:
    """Return, for each send by a rule that is hardly chance, whether it continues the turn of a thread.

    Columns: send, continues_turn. ``sends`` have send, their number in the order of time; producer, a number for each
    producer, topic and route; position, the place of the queue among the ``queues`` of the route; is_first, false for
    a retry; and from_position, the place at which the thread waited. That of a first try is its position; the thread
    of a retry waited for the place after the try that failed (TopicPublishInfo#selectOneMessageQueue).
    """
    events = _events(sends)
    level = pl.col("change").cum_sum().over("producer", "place")
    # A send for which no thread waits begins one: as if this thread had waited before.
    lacking = pl.min_horizontal(level.cum_min().over("producer", "place"), 0)
    known = events.with_columns((level - lacking).alias("after")).with_columns(
        pl.col("after").shift(1).over("producer", "place").fill_null(0).alias("before")
    )
    has_more = (pl.col("after") > 0).cast(pl.Int64) - (pl.col("before") > 0).cast(pl.Int64)
    # In order of time again: at how many places threads wait before each send.
    counted = known.with_columns(has_more.alias("more")).sort("producer", "order")
    counted = counted.with_columns((pl.col("more").cum_sum().over("producer") - pl.col("more")).alias("waited_at"))
    taken = counted.filter(pl.col("change") < 0).with_columns((pl.col("before") > 0).alias("continues_turn"))
    is_evidence = pl.col("continues_turn") & pl.col("is_first")
    # Of each send that continues a turn: how likely one to a random queue would have, too.
    chance = (pl.col("waited_at") / pl.col("queues")).log().filter(is_evidence).sum()
    threads = (~pl.col("continues_turn")).sum()
    # Which sends begin a thread is chosen to fit: of at most as many ways as there are sends, for each thread.
    of_producer = taken.group_by("producer").agg((chance + threads * pl.len().log()).alias("log_chance"))
    fitting = of_producer.filter(pl.col("log_chance") < math.log(CHANCE)).select("producer")
    return taken.join(fitting, "producer", how="semi").select(SEND, "continues_turn")


def _events(sends: pl.DataFrame) -> pl.DataFrame:
    """Return two rows for each send: the place at which its thread waited, and the one at which it waits afterwards."""
    after = (pl.col("position") + 1) % pl.col("queues")
    common = ("producer", SEND, "queues", "is_first")
    left = sends.select(
        *common, pl.col("from_position").alias("place"), pl.lit(-1).alias("change"), (2 * pl.col(SEND)).alias("order")
    )
    came = sends.select(*common, after.alias("place"), pl.lit(1).alias("change"), (2 * pl.col(SEND) + 1).alias("order"))
    return pl.concat([left, came]).sort("producer", "place", "order")
