"""Messages that concurrent consumers sent back, and what came of them: retries, second tries and dead letters.

By requests and by the consumers' own logs. A message that a consumer could not send back it sends to the retry topic
itself, as a producer does (DefaultMQPushConsumerImpl#sendMessageBack): such a try has the message's own id (UNIQ_KEY),
and its retries so far. Dead letters are known by the ends of their queue, polled before and after: a broker creates the
topic with its first dead letter, and until a copy of topics.json has it, its queue is empty.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.core.rebalance_lock_manager import REBALANCE_LOCK_INTERVAL, REBALANCE_LOCK_MAX_LIVE_TIME
from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX as DLQ
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.frames import columns, typed
from mqreplay.evidence.intervals import with_run, with_state
from mqreplay.evidence.messages.deliveries import DONE, once

RETRY_OF: Final = ("consumer_group", "msg_id", "retry")  # the n-th retry of a message
STORED: Final = ("consumer_group", "broker_name", "commitlog_offset")  # a stored message, received by a group
MESSAGE_PLACE: Final = ("broker_name", "queue_topic", "queue_id", "queue_offset")
SENT_BACK: Final = "RECONSUME_LATER"  # ConsumeConcurrentlyStatus
SENT_BACK_MESSAGE: Final = ("consumer_group", "client_id", "msg_id")
SECOND_TRY: Final = ("second_ts", "second_code", "second_times", "second_broker")
# The client waits 5 s for the answer to its request, and then sends at once; a send may be tried again.
WAITS: Final = dt.timedelta(seconds=10)
LIVE: Final = dt.timedelta(milliseconds=REBALANCE_LOCK_MAX_LIVE_TIME)
CLOCKS: Final = dt.timedelta(seconds=1)
RENEWED: Final = dt.timedelta(milliseconds=REBALANCE_LOCK_INTERVAL) + CLOCKS
SECOND: Final[dict[str, pl.DataType]] = {
    **dict.fromkeys(SENT_BACK_MESSAGE, pl.String()),
    **columns("second_ts", "second_code", "second_times"),
    "second_broker": pl.String(),
}
LETTER_QUEUE: Final = ("stored_by", "expected_topic")
ANSWERED: Final = dt.timedelta(seconds=11)  # the client waits 5 s for the answer, and the consume queue follows
TOPICS_FILE: Final = "topics.json"


def retry_deliveries(consume: pl.DataFrame) -> pl.DataFrame:
    """Return the deliveries that failed, and those of retry topics: rows of silver.consume.

    Orderly listeners send nothing back: they try again in their queue. ``consume`` is one shard, with queue_topic.
    """
    is_retry = pl.col("queue_topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX)
    failed = ~pl.col("status").is_in(DONE)
    wanted = ~pl.col("orderly").fill_null(value=False) & (is_retry | failed).fill_null(value=False)
    return once(consume.filter(wanted)).select(
        *("consumer_group", "topic", "client_id", *MESSAGE_PLACE, "commitlog_offset", "msg_id", "ts", "store_ts"),
        *("reconsume_times", "status", "record_id"),
    )


def sent_back_messages(send_back: pl.DataFrame, deliveries: pl.DataFrame, silent: pl.DataFrame) -> pl.DataFrame:
    """Return the messages sent back: by the requests, and by listeners whose request was not recorded.

    Columns: day, consumer_group, topic, broker_name, client_id, msg_id, sent_ts, response_code, delay_level and
    max_reconsume_times (both null without a request), reconsume_times (null without a delivery), commitlog_offset,
    consume_record_id, second_times, stored_by (the broker that stored it again), and record_id of the request, else of
    the delivery. ``send_back`` has the columns
    of `with_second_tries`. ``deliveries`` are rows of `retry_deliveries`. ``silent`` has the consumer_group of groups
    whose listeners cause no request: those of broadcasting and of POP.
    """
    # A client whose request failed sends the message itself, or tries again later (sendMessageBackAsNormalMessage).
    answered = send_back.filter(pl.col("error").is_null())
    read = deliveries.drop_nulls("commitlog_offset").sort("ts", "record_id").unique(STORED, keep="first")
    requested = answered.join(
        read.select(*STORED, "reconsume_times", pl.col("record_id").alias("consume_record_id")), STORED, how="left"
    )
    own_topic = pl.col("queue_topic") == pl.lit(RETRY_GROUP_TOPIC_PREFIX) + pl.col("consumer_group")
    is_pop = pl.col("queue_topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX) & ~own_topic
    without = pl.concat([silent.select("consumer_group"), deliveries.filter(is_pop).select("consumer_group")])
    later = deliveries.filter(pl.col("status") == SENT_BACK).join(without, "consumer_group", how="anti")
    unrequested = later.join(answered, [*STORED, "client_id"], how="anti", nulls_equal=False)
    no_offset = pl.col("commitlog_offset").is_null()
    named = unrequested.filter(no_offset).join(answered, ["consumer_group", "client_id", "msg_id"], how="anti")
    listened = pl.concat([unrequested.filter(~no_offset), named]).with_columns(
        pl.col("record_id").alias("consume_record_id")
    )
    both = pl.concat([requested, listened], how="diagonal").rename({"ts": "sent_ts"})
    return both.select(
        pl.col("sent_ts").dt.date().alias("day"),
        *("consumer_group", "topic", "broker_name", "client_id", "msg_id", "sent_ts", "response_code", "delay_level"),
        *("max_reconsume_times", "reconsume_times", "commitlog_offset", "consume_record_id", "second_times"),
        pl.coalesce("second_broker", "broker_name").alias("stored_by"),
        "record_id",
    )


def complete_retries(deliveries: pl.DataFrame) -> pl.DataFrame:
    """Return the spans of time in which the log has every message that a broker put into a group's retry queue.

    Columns: consumer_group, broker_name, queue_id, read_from_ts (null: from its first message on), read_until_ts; true
    by the clocks of both the broker and the consumer. ``deliveries`` are rows of `retry_deliveries`.
    """
    own_topic = pl.col("queue_topic") == pl.lit(RETRY_GROUP_TOPIC_PREFIX) + pl.col("consumer_group")
    named = deliveries.filter(own_topic).drop_nulls(["queue_offset", "store_ts", "msg_id", "reconsume_times"])
    queue = ["consumer_group", "broker_name", "queue_id"]
    stored = (
        named.sort(*queue, "queue_offset", "ts")
        .unique([*queue, "queue_offset"], keep="first")
        .sort(*queue, "queue_offset")
    )
    follows = (pl.col("queue_offset") == pl.col("queue_offset").shift() + 1) & (
        pl.col("store_ts") >= pl.col("store_ts").shift()
    )
    spans = (
        with_run(stored, ~follows.over(queue), queue)
        .group_by(*queue, "run", maintain_order=True)
        .agg(
            pl.when(pl.col("queue_offset").first() > 0)
            .then(pl.max_horizontal("store_ts", "ts").first())
            .alias("read_from_ts"),
            pl.min_horizontal("store_ts", "ts").last().alias("read_until_ts"),
        )
    )
    return spans.drop("run")


def first_deliveries(deliveries: pl.DataFrame) -> pl.DataFrame:
    """Return the first delivery of each retry: consumer_group, msg_id, retry, stored_ts, delivered_ts."""
    of_retries = deliveries.filter(pl.col("queue_topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX))
    named = of_retries.rename({"reconsume_times": "retry"}).drop_nulls(["msg_id", "retry"])
    return (
        named.group_by(*RETRY_OF, *MESSAGE_PLACE)
        .agg(pl.col("store_ts").min().alias("stored_ts"), pl.col("ts").min().alias("delivered_ts"))
        .drop(MESSAGE_PLACE)
    )


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
    return typed(named, SECOND).drop_nulls()


def with_second_tries(send_back: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Return the requests, with ts, response_code and second_times of the second try where a request failed.

    ``second_times``: the retries that the client counted in it; null: no second try. ``second_broker`` stored it.
    ``send_back`` are rows of silver.send_back, ``second`` those of `second_tries` of all shards.
    """
    failed = pl.col("error").is_not_null() | (pl.col("response_code") != 0)
    tries = second.sort("second_ts").unique([*SENT_BACK_MESSAGE, "second_ts"], keep="first", maintain_order=True)
    requests = send_back.filter(failed.fill_null(value=False)).sort("ts")
    found = with_state(requests, tries, SENT_BACK_MESSAGE, "ts", "second_ts", after=True, within=WAITS)
    known = found.select("record_id", *SECOND_TRY)
    joined = send_back.join(known, "record_id", how="left", maintain_order="left")
    is_second = pl.col("second_times").is_not_null()
    return joined.with_columns(
        pl.when(is_second).then("second_ts").otherwise("ts").alias("ts"),
        pl.when(is_second).then("second_code").otherwise("response_code").alias("response_code"),
        pl.when(~is_second).then("error").alias("error"),
    ).drop("second_ts", "second_code")


def lock_requests_of_shard(lock: pl.DataFrame) -> pl.DataFrame:
    """Return the requests for locks, without their queues. ``lock`` are rows of silver.lock.

    Columns: consumer_group, broker_name, ts, response_ts, granted (at least one lock), released.
    """
    is_lock = pl.col("kind") == "LOCK_BATCH_MQ"
    return lock.select(
        *("consumer_group", "broker_name", "ts", "response_ts"),
        (is_lock & (pl.col("lock_ok_mq_set").list.len() > 0)).alias("granted"),
        (~is_lock).alias("released"),
    )


def with_unexpired_locks(rows: pl.DataFrame, lock_requests: pl.DataFrame) -> pl.DataFrame:
    """Add has_lock: the group had an unexpired lock on broker ``stored_by`` at ``sent_ts``; null: not known.

    ``lock_requests`` are those of `lock_requests_of_shard` of all shards. A request without a grant, and any
    release, leave it unknown (RebalanceLockManager). How long a lock lives is a property of the broker's process that
    nothing records: one that is due for renewal may live, and an old one too.
    """
    near = rows.select("record_id", "consumer_group", pl.col("stored_by").alias("broker_name"), "sent_ts").join(
        lock_requests,
        ["consumer_group", "broker_name"],
    )
    age = pl.col("sent_ts") - pl.col("ts")
    answered = pl.coalesce("response_ts", "ts") < pl.col("sent_ts") - CLOCKS
    released = pl.col("released") & (age <= LIVE + CLOCKS)
    is_sure = (pl.col("granted") & answered & (age < RENEWED)).any() & ~released.any()
    held = near.filter(age >= -CLOCKS).group_by("record_id").agg(is_sure.alias("is_sure"))
    joined = rows.join(held, "record_id", how="left", maintain_order="left")
    has_lock = pl.when(pl.col("is_sure").is_null()).then(pl.lit(value=False)).when("is_sure").then(pl.lit(value=True))
    return joined.with_columns(has_lock.alias("has_lock")).drop("is_sure")


def with_dead_letter_growth(
    rows: pl.DataFrame, ends: pl.DataFrame, snapshot: pl.DataFrame, topic_config: pl.DataFrame
) -> pl.DataFrame:
    """Add growth and letters: messages that the queue got in that time, and messages that should have gone there.

    ``rows`` are dead letters with stored_by, expected_topic and sent_ts, ``ends`` has the columns of `queue_ends`.
    growth is null if it is not known. A topic that was created in that time has grown.
    """
    of_place = {"broker_name": "stored_by", "topic": "expected_topic"}
    polled = ends.filter(pl.col("topic").str.starts_with(DLQ) & (pl.col("queue_id") == 0)).rename(of_place)
    absent = _absent(rows.select(LETTER_QUEUE).unique(), snapshot, topic_config.rename(of_place))
    known = pl.concat(
        [
            polled.select(*LETTER_QUEUE, "at", pl.col("queue_max_offset").alias("end")),
            absent.select(*LETTER_QUEUE, "at", pl.lit(0, pl.Int64).alias("end")),
        ]
    )
    around = rows.with_columns(began=pl.col("sent_ts") - CLOCKS, ended=pl.col("sent_ts") + ANSWERED)
    before, after = ({f"{side}_at": "at", f"{side}_end": "end"} for side in ("before", "after"))
    around = as_of(around, known, LETTER_QUEUE, "began", before, right_at="at")
    around = as_of(around, known, LETTER_QUEUE, "ended", after, right_at="at", after=True)
    last = absent.group_by(LETTER_QUEUE).agg(pl.col("at").max().alias("absent_to"), pl.col("first_ts").first())
    whole = around.join(last, LETTER_QUEUE, how="left")
    created = (pl.col("absent_to") < pl.col("ended")) & (pl.col("began") <= pl.col("first_ts"))
    letters = pl.len().over(*LETTER_QUEUE, "before_at", "after_at").cast(pl.Int64)
    growth = pl.coalesce(pl.col("after_end") - pl.col("before_end"), pl.when(created).then(letters))
    return whole.select(*rows.columns, growth.alias("growth"), letters.alias("letters"))


def _absent(places: pl.DataFrame, snapshot: pl.DataFrame, topic_config: pl.DataFrame) -> pl.DataFrame:
    """Return the copies of topics.json from before the first one with the topic: LETTER_QUEUE, at, first_ts."""
    of_master = pl.col("broker_id") == 0
    first = topic_config.filter(of_master).group_by(LETTER_QUEUE).agg(pl.col("ts").min().alias("first_ts"))
    copies = snapshot.filter(of_master & (pl.col("file_name") == TOPICS_FILE)).select(
        pl.col("broker_name").alias("stored_by"), pl.col("ts").alias("at")
    )
    both = places.join(copies, "stored_by").join(first, LETTER_QUEUE, how="left")
    return both.filter((pl.col("at") < pl.col("first_ts")).fill_null(value=True))
