"""gold.retried_message: messages that an orderly listener failed on, which its client retries in their queue.

Each retry counts one more, after the queue was suspended for 10 ms at least. Past the maximum of the consumer, which
is unlimited by default, the client sends the message to the retry topic and goes on
(ConsumeMessageOrderlyService#checkReconsumeTimes, #submitConsumeRequestLater).
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.core.retry_topic import retry_topic
from mqreplay.core.send_back_client import (
    LEAST_SUSPEND_MS,
    MOST_SUSPEND_MS,
    ConsumedMessage,
    check_reconsume_times,
    suspend_time_millis,
)
from mqreplay.decisions.decision import VERDICT_WORDS, Decision, by_name
from mqreplay.decisions.retried_message import COLUMNS, retried_message
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.frames import columns, with_law
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.members.observed_clients import setting
from mqreplay.evidence.messages.deliveries import DELIVERY_PLACE, SUSPENDED
from mqreplay.evidence.offsets.queue_ends import polled_ends
from mqreplay.words.keys import MEMBER

CASE: Final = ("consumer_group", "topic", "reconsume_times", "max_reconsume_times")
EXPECTED: Final[dict[str, pl.DataType]] = columns("expected_topic", "expected_delay_level", "next_times")
# The end of the next try is known, not its start: how long it waited is not.
UNKNOWN_WAIT: Final[dict[str, pl.DataType]] = {
    **dict.fromkeys(("response_code", "delay_level"), pl.Int32()),
    **dict.fromkeys(("late_s", "waited_s"), pl.Float64()),
    "stored_ts": INSTANT,
}
ROUNDED_MS: Final = 1  # a log has whole milliseconds


def suspended_messages(deliveries: pl.DataFrame, assignment: pl.DataFrame, until: dt.datetime | None) -> pl.DataFrame:
    """Return rows of gold.retried_message: one for each delivery after which a listener suspended the queue.

    ``deliveries`` are those of `suspended_deliveries` of all shards, ``assignment`` rows of silver.assignment;
    ``until`` is the end of the recording, None if not known.
    """
    following = {"delivered_ts": "ts", "again_client": "client_id", "again_times": "reconsume_times"}
    in_order = deliveries.sort(*DELIVERY_PLACE, "ts", "record_id").with_columns(
        pl.col(name).shift(-1).over(DELIVERY_PLACE).alias(named) for named, name in following.items()
    )
    failed = in_order.filter(pl.col("status") == SUSPENDED).join(_settings(assignment), MEMBER, how="left")
    known = with_law(failed, CASE, EXPECTED, _expected)
    suspend_ms = pl.col("suspend_ms").map_elements(lambda ms: suspend_time_millis(-1, ms), pl.Int64)
    is_retry = pl.col("expected_topic") == pl.col("topic")
    timed = known.with_columns(
        pl.col("ts").alias("sent_ts"),
        pl.col("ts").dt.date().alias("day"),
        pl.when(is_retry).then(pl.col("ts") + pl.duration(milliseconds=suspend_ms)).alias("due_ts"),
        pl.col("record_id").alias("consume_record_id"),
        *(pl.lit(None, kind).alias(name) for name, kind in UNKNOWN_WAIT.items()),
    )
    return _judged(timed, until).select(COLUMNS)


def _settings(assignment: pl.DataFrame) -> pl.DataFrame:
    """Return the last known max_reconsume_times and suspend_ms of each client."""
    named = {"max_reconsume_times": "maxReconsumeTimes", "suspend_ms": "suspendCurrentQueueTimeMillis"}
    values = [setting(name).cast(pl.Int64, strict=False).alias(column) for column, name in named.items()]
    shown = assignment.sort("ts").select(*MEMBER, *values)
    last = shown.group_by(MEMBER).agg(pl.col(name).drop_nulls().last() for name in named)
    return last.with_columns(pl.col("max_reconsume_times").cast(pl.Int32, strict=False))


def _expected(group: str, topic: str, times: int | None, most: int | None) -> tuple[str | None, int | None, int | None]:
    """Return the values of EXPECTED; a consumer whose maximum is not known has the default."""
    if times is None:
        return None, None, None
    check = check_reconsume_times([ConsumedMessage(topic, "", times)], group, -1 if most is None else most)
    if check.suspend:
        return topic, None, check.reconsume_times[0]
    (sent,) = check.sent_by_producer
    return retry_topic(group), sent.delay_time_level, None


def _judged(rows: pl.DataFrame, until: dt.datetime | None) -> pl.DataFrame:
    """Add judgement and reason."""
    again = pl.col("delivered_ts")
    gap_ms = (again - pl.col("sent_ts")).dt.total_milliseconds()
    times, next_times = pl.col("again_times"), pl.col("next_times")
    other = pl.col("again_client") != pl.col("client_id")
    last_ts = pl.col("sent_ts") + pl.duration(milliseconds=MOST_SUSPEND_MS)
    after_end = pl.lit(value=False) if until is None else last_ts > until
    retried = pl.format("retry {} in its queue", times)
    sent = pl.format("reconsumeTimes {} reached maxReconsumeTimes {}", "reconsume_times", "max_reconsume_times")
    verdict = decided(
        (pl.col("expected_topic").is_null(), UNDETERMINED, "the log does not show how often it was retried"),
        (again.is_null() & next_times.is_null(), UNDETERMINED, pl.format("{}: no record of the send", sent)),
        (again.is_null() & after_end, UNDETERMINED, "the recording ended while the queue was suspended"),
        (again.is_null(), UNDETERMINED, "the log does not show the message again"),
        (other, UNDETERMINED, "another client got the message: the client lost the queue"),
        (next_times.is_null(), UNDETERMINED, pl.format("{}, but its send may have failed", sent)),
        ((times < next_times).fill_null(value=True), UNDETERMINED, "the client pulled the message again"),
        (times > next_times, UNDETERMINED, "a delivery in between is not in the log"),
        (gap_ms < LEAST_SUSPEND_MS - ROUNDED_MS, DIFFER, pl.format("{}, after {} ms", retried, gap_ms)),
        otherwise=(AGREE, retried),
    )
    return rows.with_columns(**verdict)


def silent_groups(unshared_groups: pl.DataFrame, pop_groups: pl.DataFrame) -> pl.DataFrame:
    """Return the groups whose retries no log shows: they broadcast, or receive messages by POP."""
    return pl.concat([unshared_groups.select("consumer_group"), pop_groups.select("consumer_group")])


RETRIED_MESSAGE: Final = Decision(
    table="gold.retried_message",
    instant="sent_ts",
    one="message sent back",
    many="messages sent back",
    importance=11,
    phrases=(
        "sent back message {msg_id} of {topic}",
        "due {due_ts} in {expected_topic}",
        "stored again {stored_ts}",
        "received again {delivered_ts}",
        VERDICT_WORDS,
    ),
    needs=(Need("consume_log"),),
    rows=("sent_back", "suspended"),
    steps={
        "silent_groups": by_name(silent_groups),
        "polled_ends": by_name(polled_ends),
        "queue_ends": ("returned_ends", "polled_ends"),
        "sent_back": by_name(
            retried_message,
            deliveries="retry_deliveries",
            first="first_places",
            second="second_tries",
            snapshot="raw_snapshot",
            ends="queue_ends",
            silent="silent_groups",
            until="recorded_until",
        ),
        "suspended": by_name(suspended_messages, deliveries="suspended_deliveries", until="recorded_until"),
    },
)
