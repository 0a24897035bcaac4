"""Messages that a consumer could not send back, and so sent to the retry topic itself, as a producer does.

Follows DefaultMQPushConsumerImpl#sendMessageBack. A try has the message's own id (UNIQ_KEY), and its retries so far.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.core.rebalance_lock_manager import REBALANCE_LOCK_INTERVAL, REBALANCE_LOCK_MAX_LIVE_TIME
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX
from mqreplay.evidence.time_spans import INSTANT

MESSAGE: Final = ("consumer_group", "client_id", "msg_id")
SECOND_TRY: Final = ("second_ts", "second_code", "second_times", "second_broker")
# The client waits 5 s for the answer to its request, and then sends at once; a send may be tried again.
WAITS: Final = dt.timedelta(seconds=10)
LIVE: Final = dt.timedelta(milliseconds=REBALANCE_LOCK_MAX_LIVE_TIME)
CLOCKS: Final = dt.timedelta(seconds=1)
RENEWED: Final = dt.timedelta(milliseconds=REBALANCE_LOCK_INTERVAL) + CLOCKS
SECOND: Final[dict[str, pl.DataType]] = {
    **dict.fromkeys(MESSAGE, pl.String()),
    "second_ts": INSTANT,
    "second_code": pl.Int32(),
    "second_times": pl.Int32(),
    "second_broker": pl.String(),
}


def second_tries(send: pl.DataFrame, send_back: pl.DataFrame) -> pl.DataFrame:
    """Return the sends to retry topics that a broker answered, of messages in ``send_back``: columns of SECOND.

    ``send`` are rows of silver.send; ``send_back`` has the msg_id of what was sent back.
    """
    to_retry = pl.col("topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX) & pl.col("response_code").is_not_null()
    sent = send.filter(to_retry & pl.col("reconsume_times").is_not_null()).join(send_back, "msg_id", how="semi")
    named = sent.with_columns(
        pl.col("topic").str.strip_prefix(RETRY_GROUP_TOPIC_PREFIX).alias("consumer_group"),
        pl.col("ts").alias("second_ts"),
        pl.col("response_code").alias("second_code"),
        pl.col("reconsume_times").alias("second_times"),
        pl.col("broker_name").alias("second_broker"),
    )
    return named.select(pl.col(name).cast(kind) for name, kind in SECOND.items()).drop_nulls()


def with_second_tries(send_back: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Return the requests, with ts, response_code and second_times of the second try where a request failed.

    ``second_times``: the retries that the client counted in it; null: no second try. ``second_broker`` stored it.
    ``send_back`` are rows of silver.send_back, ``second`` those of `second_tries` of all shards.
    """
    failed = pl.col("error").is_not_null() | (pl.col("response_code") != 0)
    tries = second.sort("second_ts").unique([*MESSAGE, "second_ts"], keep="first", maintain_order=True)
    requests = send_back.filter(failed.fill_null(value=False)).sort("ts")
    found = requests.join_asof(
        tries,
        left_on="ts",
        right_on="second_ts",
        by=MESSAGE,
        strategy="forward",
        tolerance=WAITS,
        coalesce=False,
        check_sortedness=False,
    )
    known = found.select("record_id", *SECOND_TRY)
    joined = send_back.join(known, "record_id", how="left", maintain_order="left")
    is_second = pl.col("second_times").is_not_null()
    return joined.with_columns(
        pl.when(is_second).then("second_ts").otherwise("ts").alias("ts"),
        pl.when(is_second).then("second_code").otherwise("response_code").alias("response_code"),
        pl.when(~is_second).then("error").alias("error"),
    ).drop("second_ts", "second_code")


def with_unexpired_locks(rows: pl.DataFrame, lock: pl.DataFrame) -> pl.DataFrame:
    """Add has_lock: the group had an unexpired lock on broker ``stored_by`` at ``sent_ts``; null: not known.

    A request without a grant, and any release, leave it unknown (RebalanceLockManager). How long a lock lives is a
    property of the broker's process that nothing records: one that is due for renewal may live, and an old one too.
    """
    near = rows.select("record_id", "consumer_group", pl.col("stored_by").alias("broker_name"), "sent_ts").join(
        lock.select(*("consumer_group", "broker_name", "ts", "response_ts", "kind", "lock_ok_mq_set")),
        ["consumer_group", "broker_name"],
    )
    age = pl.col("sent_ts") - pl.col("ts")
    granted = (pl.col("kind") == "LOCK_BATCH_MQ") & (pl.col("lock_ok_mq_set").list.len() > 0)
    answered = pl.coalesce("response_ts", "ts") < pl.col("sent_ts") - CLOCKS
    released = (pl.col("kind") != "LOCK_BATCH_MQ") & (age <= LIVE + CLOCKS)
    is_sure = (granted & answered & (age < RENEWED)).any() & ~released.any()
    held = near.filter(age >= -CLOCKS).group_by("record_id").agg(is_sure.alias("is_sure"))
    joined = rows.join(held, "record_id", how="left", maintain_order="left")
    has_lock = pl.when(pl.col("is_sure").is_null()).then(pl.lit(value=False)).when("is_sure").then(pl.lit(value=True))
    return joined.with_columns(has_lock.alias("has_lock")).drop("is_sure")
