"""How often messages were retried before they were sent back, by the requests themselves: for nights without a log.

The answer to the first send names the message's place in the commit log (msgId of SendMessageResponseHeader): what is
sent back from there was never retried. Each retry is stored at another place of the same broker, and is not there
before its delay has passed (SendMessageProcessor#consumerSendMsgBack, ScheduleMessageService).
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.delay_level import (
    DEFAULT_MESSAGE_DELAY_LEVEL,
    compute_deliver_timestamp,
    parse_delay_level,
    stored_delay_level,
)
from mqreplay.core.send_back import retry_delay_level
from mqreplay.evidence.frames import columns, typed, with_law

RETRIED_MESSAGE: Final = ("consumer_group", "msg_id")
STORED_MESSAGE: Final = ("broker_name", "msg_id", "commitlog_offset")
OFFSET_MSG_ID: Final = "^([0-9A-Fa-f]{32}|[0-9A-Fa-f]{56})$"
CLOCKS_MS: Final = 1_000  # by which the clocks of a message's consumers may differ
LONGEST_MS: Final = 10**15  # messageDelayLevel may have any number
FIRST_RETRY: Final[dict[str, pl.DataType]] = {
    "broker_name": pl.String(),
    "msg_id": pl.String(),
    **columns("commitlog_offset", "sent_times"),
}


def first_places(send: pl.DataFrame, send_back: pl.DataFrame) -> pl.DataFrame:
    """Return the first places of the messages that were sent back: FIRST_RETRY; sent_times: reconsumeTimes of the send.

    Both are rows of silver tables; ``send`` is a shard.
    """
    sent = send.filter(pl.col("offset_msg_id").str.contains(OFFSET_MSG_ID)).join(send_back, "msg_id", how="semi")
    place = pl.col("offset_msg_id").str.tail(16).str.to_integer(base=16, dtype=pl.Int64, strict=False)
    times = pl.col("reconsume_times").fill_null(0).alias("sent_times")
    named = sent.with_columns(place.alias("commitlog_offset"), times)
    return typed(named, FIRST_RETRY).drop_nulls().unique()


def with_counted_retries(sent: pl.DataFrame, first: pl.DataFrame) -> pl.DataFrame:
    """Fill reconsume_times where the requests prove it, and add again_ts: when the retry was sent back in its turn.

    ``sent`` are sent_back_messages with message_delay_level, ``first`` has the rows of `first_places` of all shards.
    The requests of a message count one by one from its first place, as long as the broker stored each, and no request
    can be missing: between two of them there was time for one delay, and not for two.
    """
    known = first.unique(STORED_MESSAGE, keep="first")
    requests = sent.filter(pl.all_horizontal(pl.col(*STORED_MESSAGE, "delay_level").is_not_null()))
    rows = requests.join(known, STORED_MESSAGE, how="left").sort(*RETRIED_MESSAGE, "sent_ts", "record_id")
    nth = pl.int_range(pl.len()).over(RETRIED_MESSAGE).cast(pl.Int32)
    begun = rows.with_columns(nth.alias("nth"), pl.col("sent_times").first().over(RETRIED_MESSAGE)).drop_nulls(
        "sent_times"
    )
    # A place that is sent back twice makes two retries, and all of a message are counted as one chain.
    timed = _with_delays(begun.with_columns((pl.col("nth") + pl.col("sent_times")).alias("times")))
    before = pl.col(
        *("sent_ts", "delay_ms", "response_code", "delay_level", "broker_name", "commitlog_offset", "times"),
        "max_reconsume_times",
    )
    shifted = timed.with_columns(before.shift().over(RETRIED_MESSAGE).name.suffix("_before"))
    gap_ms = (pl.col("sent_ts") - pl.col("sent_ts_before")).dt.total_milliseconds()
    is_dead = pl.col("times_before") >= pl.col("max_reconsume_times_before")
    follows = (
        (pl.col("response_code_before") == 0)
        & (pl.col("delay_level_before") == 0)
        & (pl.col("delay_level") == 0)
        & (pl.col("broker_name") == pl.col("broker_name_before"))
        & (pl.col("commitlog_offset") > pl.col("commitlog_offset_before"))
        & (gap_ms >= pl.col("delay_ms_before") - CLOCKS_MS)
        & (gap_ms < pl.col("delay_ms_before") + pl.col("delay_ms") - CLOCKS_MS)
        & ~is_dead.fill_null(value=False)
    )
    broken = ((pl.col("nth") > 0) & ~follows.fill_null(value=False)).cum_sum().over(RETRIED_MESSAGE) > 0
    chained = shifted.with_columns(broken.alias("broken"))
    following = pl.col("sent_ts").shift(-1).over(RETRIED_MESSAGE)
    counted = chained.with_columns(
        pl.when(~pl.col("broken").shift(-1).over(RETRIED_MESSAGE)).then(following).alias("again_ts")
    ).filter(~pl.col("broken"))
    found = counted.select("record_id", "times", "again_ts").unique("record_id", keep="first")
    return (
        sent.join(found, "record_id", how="left", maintain_order="left")
        .with_columns(pl.coalesce("reconsume_times", pl.col("times").cast(sent.schema["reconsume_times"])))
        .drop("times")
    )


def _with_delays(counted: pl.DataFrame) -> pl.DataFrame:
    """Add delay_ms: of the retry that each request makes, if the listener requests no level."""
    case = ("message_delay_level", "times")
    return with_law(counted, case, {"delay_ms": pl.Int64()}, _delay)


def _delay(message_delay_level: str | None, times: int) -> int:
    levels = parse_delay_level(message_delay_level or DEFAULT_MESSAGE_DELAY_LEVEL)
    level = stored_delay_level(retry_delay_level(0, times), levels.max_delay_level)
    return min(compute_deliver_timestamp(level, 0, levels.delay_level_table), LONGEST_MS)
