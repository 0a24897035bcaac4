"""gold.retried_message: each message that a consumer sent back, against the retry or dead letter that follows.

The broker stores it again in %RETRY%group after the delay of its level, 3 + reconsumeTimes unless the listener asked
for one, or in %DLQ%group if no retry is left (SendMessageProcessor#consumerSendMsgBack, ScheduleMessageService). What
comes back is seen in the consumers' log: its store_ts is the instant at which the broker put it into the retry topic.
Without this log, the next request for the message shows that it came back. A retry never came if the log has every
message of the retry queue, later ones too, without it. A dead letter raises the end of its queue.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from mqreplay.core.delay_level import (
    DEFAULT_MESSAGE_DELAY_LEVEL,
    DelayLevels,
    compute_deliver_timestamp,
    parse_delay_level,
    stored_delay_level,
)
from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX as DLQ
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.core.send_back import (
    RetryGroup,
    SendBackRequest,
    StoredMessage,
    consumer_send_msg_back,
    is_second_dead_letter,
)
from mqreplay.core.send_back_client import ConsumedMessage, send_message_back
from mqreplay.core.version import BROKER_4, BROKER_5
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.evidence.brokers.broker_descriptions import valid_at
from mqreplay.evidence.frames import columns, with_law
from mqreplay.evidence.intervals import with_nearest_row
from mqreplay.evidence.members.observed_clients import setting
from mqreplay.evidence.messages.counted_retries import with_counted_retries
from mqreplay.evidence.messages.sent_back import (
    RETRY_OF,
    complete_retries,
    first_deliveries,
    sent_back_messages,
    with_dead_letter_growth,
    with_second_tries,
    with_unexpired_locks,
)

COLUMNS: Final = (
    *("day", "consumer_group", "topic", "broker_name", "client_id", "msg_id", "sent_ts", "response_code"),
    *("reconsume_times", "delay_level", "max_reconsume_times", "expected_topic", "expected_delay_level", "due_ts"),
    *("stored_ts", "delivered_ts", "late_s", "waited_s", "judgement", "reason", "consume_record_id", "record_id"),
)
CASE: Final = (
    *("delay_level", "reconsume_times", "max_reconsume_times", "retry_queue_nums", "retry_max_times"),
    *("message_delay_level", "second_times", "version", "has_lock"),
)
EXPECTED: Final[dict[str, pl.DataType]] = {
    "topic_prefix": pl.String(),
    **columns("expected_delay_level", "delay_ms", "why"),
}
# Clocks of hosts differ a little, and the broker stores the message only after the request was sent.
EARLY_MS: Final = 1_000
# ScheduleMessageService tries again after 10 s (DELAY_FOR_A_PERIOD) if it could not store a message.
LATE_MS: Final = 11_000
# Their rules for a message that a client sends to the retry topic differ.
RELEASES: Final = (BROKER_4, "5.0.0", BROKER_5)
NO_QUEUES: Final = "the group has no retry queues: the broker drops the message"


def retried_message(
    send_back: pl.DataFrame,
    deliveries: pl.DataFrame,
    first: pl.DataFrame,
    second: pl.DataFrame,
    subscription_group: pl.DataFrame,
    topic_config: pl.DataFrame,
    broker: pl.DataFrame,
    snapshot: pl.DataFrame,
    lock_requests: pl.DataFrame,
    ends: pl.DataFrame,
    silent: pl.DataFrame,
    until: dt.datetime | None,
) -> pl.DataFrame:
    """Return the rows of gold.retried_message.

    ``send_back``, ``subscription_group``, ``topic_config``, ``broker`` and ``snapshot`` are rows of silver tables. Of
    all shards, ``deliveries`` are those of sent_back.retry_deliveries, ``first`` those of counted_retries.first_places,
    ``second`` and ``lock_requests`` those of sent_back.py, ``ends`` those of queue_ends.py. ``silent`` has
    the consumer_group of groups whose listeners send nothing back. ``until`` is the end of the recording, None if not
    known.
    """
    sent = sent_back_messages(with_second_tries(send_back, second), deliveries, silent)
    described = _with_descriptions(_with_group(sent, subscription_group), broker)
    locked = with_unexpired_locks(described, lock_requests)
    placed = with_counted_retries(locked, first)
    known = with_law(placed, CASE, EXPECTED, lambda *case: expected_of(dict(zip(CASE, case, strict=True))))
    due = known.with_columns(
        (pl.col("topic_prefix") + pl.col("consumer_group")).alias("expected_topic"),
        (pl.col("sent_ts") + pl.duration(milliseconds="delay_ms")).alias("due_ts"),
    )
    followed = _with_reading(_with_delivery(due, deliveries), deliveries)
    is_dead = pl.col("expected_topic").str.starts_with(DLQ) & (pl.col("response_code").fill_null(0) == 0)
    letters = with_dead_letter_growth(followed.filter(is_dead), ends, snapshot, topic_config)
    grown = followed.join(letters.select("record_id", "growth", "letters"), "record_id", how="left")
    return _judged(grown, until).select(COLUMNS)


def expected_of(case: Mapping[str, Any]) -> tuple[str | None, int | None, int | None, str]:
    """Return the values of EXPECTED for a row of the columns CASE; null: not known.

    ``delay_level`` is null if the request was not recorded: 0 is likely then, and only its delivery can prove it.
    """
    level, times, most = case["delay_level"], case["reconsume_times"], case["max_reconsume_times"]
    if times is None and not (level is not None and level < 0) and most != 0:
        return None, None, None, "no consume log shows how often the message was retried before"
    retries = 0 if times is None else times
    config = RetryGroup(
        1 if case["retry_queue_nums"] is None else case["retry_queue_nums"],
        16 if case["retry_max_times"] is None else case["retry_max_times"],
    )
    # The maximum of a client whose request is not known counts only if the message did not come back.
    limit = most if level is not None else retries + 1
    if limit is None and case["retry_max_times"] is None:
        return None, None, None, "neither the request nor a copy of subscriptionGroup.json has a limit of retries"
    levels = parse_delay_level(case["message_delay_level"] or DEFAULT_MESSAGE_DELAY_LEVEL)
    if case["second_times"] is not None:
        return _of_second_try(retries, case["second_times"], limit, levels, case["version"], case["has_lock"])
    request = SendBackRequest("", 0, level or 0, limit)
    stored = consumer_send_msg_back(request, config, StoredMessage("", "", retries, {})).stored
    if stored is None:
        return None, None, None, NO_QUEUES
    if stored.topic.startswith(DLQ):
        shown = config.retry_max_times if limit is None else limit
        asked = f"the consumer asked for a dead letter (delay level {level})"
        return (
            DLQ,
            None,
            None,
            asked if (level or 0) < 0 else f"reconsumeTimes {retries} reached maxReconsumeTimes {shown}",
        )
    return _retry(retries + 1, stored.delay_time_level, levels)


def _retry(retry: int, level: int, levels: DelayLevels) -> tuple[str, int, int, str]:
    stored_level = stored_delay_level(level, levels.max_delay_level)
    delay = compute_deliver_timestamp(stored_level, 0, levels.delay_level_table) if stored_level > 0 else 0
    return RETRY, stored_level, delay, f"retry {retry}, delay level {stored_level}"


def _of_second_try(
    retries: int, counted: int, limit: int | None, levels: DelayLevels, version: str | None, has_lock: bool | None
) -> tuple[str | None, int | None, int | None, str]:
    """Return the values of EXPECTED for a message that the client sent to the retry topic itself."""
    maximum = -1 if limit is None else limit
    message = send_message_back(ConsumedMessage("", "", retries), 0, "", "", "", maximum, False).sent_by_producer
    if message is None:  # only if the broker accepted the request
        return None, None, None, "the client sent the message although its request succeeded"
    times, most = (int(message.properties[name]) for name in ("RECONSUME_TIME", "MAX_RECONSUME_TIMES"))
    if counted != times:
        # A client that could not send it at all has counted that try, and the log names the first delivery.
        return None, None, None, f"the client counted {counted} retries, and the log shows {retries} before"
    locks = (True, False) if has_lock is None else (has_lock,)
    fates = {
        is_second_dead_letter(times, most, not locked, release)
        for release in ((version,) if version else RELEASES)
        for locked in locks
    }
    if len(fates) > 1 and times == most and has_lock is False:
        return None, None, None, f"reconsumeTimes {times} reached {most}: a dead letter for a broker of 4.x, not of 5.x"
    if len(fates) > 1:
        return None, None, None, "not known: a broker of 5.1.1 or later makes it a dead letter if the group has a lock"
    if fates == {True}:
        if times > most:
            return DLQ, None, None, f"reconsumeTimes {times} passed maxReconsumeTimes {most}"
        if times == most and not has_lock:
            return DLQ, None, None, f"reconsumeTimes {times} reached maxReconsumeTimes {most}"
        return DLQ, None, None, "the group had a lock: no retry since 5.1.1"
    prefix, level, delay, why = _retry(times, message.delay_time_level, levels)
    return prefix, level, delay, f"{why}; the client sent it itself"


def _with_group(sent: pl.DataFrame, subscription_group: pl.DataFrame) -> pl.DataFrame:
    """Add retry_queue_nums and retry_max_times: by the master's copy before, else by the first one after."""
    of_master = subscription_group.filter((pl.col("broker_id") == 0) & (pl.col("change") != "removed"))
    copies = of_master.rename({"ts": "copied_ts", "broker_name": "stored_by"})
    by, of_group = ["stored_by", "consumer_group"], ["retry_queue_nums", "retry_max_times"]
    return with_nearest_row(sent, copies, by, "sent_ts", "copied_ts", of_group)


def _with_descriptions(sent: pl.DataFrame, broker: pl.DataFrame) -> pl.DataFrame:
    """Add message_delay_level (null: the default) and version of the master that stored the message again."""
    masters = broker.filter(pl.col("broker_id") == 0).rename({"broker_name": "stored_by"})
    is_version = pl.col("rocketmq_version").str.contains(r"^[Vv]?\d+[._]\d+")
    values = {
        "message_delay_level": setting("messageDelayLevel"),
        "version": pl.when(is_version).then("rocketmq_version"),
    }
    for name, value in values.items():
        described = masters.select("stored_by", "ts", value.alias(name)).drop_nulls(name)
        sent = valid_at(sent, described, "sent_ts", ["stored_by"])
    return sent.with_columns(pl.when(pl.col("second_times").is_not_null()).then("version"))


def _with_delivery(due: pl.DataFrame, deliveries: pl.DataFrame) -> pl.DataFrame:
    """Add stored_ts and delivered_ts of the retry that each message became; unclear: several may be meant.

    A message that several clients sent back comes back several times: in the order in which it was sent.
    """
    by = [*RETRY_OF, "nth"]
    nth = pl.int_range(pl.len()).over(RETRY_OF).alias("nth")
    sent = due.with_columns((pl.col("reconsume_times") + 1).alias("retry")).sort("sent_ts", "record_id")
    sent = sent.with_columns(nth, pl.len().over(RETRY_OF).alias("times_sent"))
    back = first_deliveries(deliveries).sort("stored_ts", "delivered_ts").with_columns(nth)
    counts = back.group_by(RETRY_OF).agg(pl.len().alias("times_back"))
    joined = sent.join(back, by, how="left").join(counts, RETRY_OF, how="left")
    several = (pl.col("times_sent") > 1) | (pl.col("times_back") > 1)
    unclear = (pl.col("times_sent") != pl.col("times_back")) & several
    return joined.with_columns(unclear.fill_null(value=False).alias("unclear"))


def _with_reading(rows: pl.DataFrame, deliveries: pl.DataFrame) -> pl.DataFrame:
    """Add read_until_ts: the log has all that the group's retry queue got from the request until then; null: not known.

    A retry without its request in the recording may be any message: then nothing is known.
    """
    sent = rows.select("consumer_group", "msg_id", "retry")
    strange = first_deliveries(deliveries).join(sent, RETRY_OF, how="anti").select("consumer_group").unique()
    queue = ["consumer_group", "broker_name"]
    alone = complete_retries(deliveries).filter((pl.col("queue_id") == 0).all().over(queue))
    is_kept = pl.col("second_times").is_null()  # a second try may go to another broker
    asked = rows.filter((pl.col("retry_queue_nums") == 1) & (pl.col("response_code") == 0) & is_kept)
    met = asked.join(strange, "consumer_group", how="anti").select("record_id", "sent_ts", *queue).join(alone, queue)
    within = met.filter((pl.col("read_from_ts") < pl.col("sent_ts")).fill_null(value=True))
    known = within.group_by("record_id").agg(pl.col("read_until_ts").max())
    return rows.join(known, "record_id", how="left", maintain_order="left")


def _judged(rows: pl.DataFrame, until: dt.datetime | None) -> pl.DataFrame:
    """Add late_s, waited_s, judgement and reason.

    ``sent_ts`` is by a client's clock, ``stored_ts`` by the broker's: a retry is late or early if it is by both clocks.
    """
    late_ms, stored_late_ms = (
        (pl.col(name) - pl.col("due_ts")).dt.total_milliseconds() for name in ("delivered_ts", "stored_ts")
    )
    least = pl.min_horizontal(late_ms, stored_late_ms)
    timed = rows.with_columns(
        pl.when(~pl.col("unclear")).then(pl.col("stored_ts", "delivered_ts")).name.keep()
    ).with_columns(
        (least / 1000).round(3).alias("late_s"),
        ((pl.col("delivered_ts") - pl.col("stored_ts")).dt.total_milliseconds() / 1000).round(3).alias("waited_s"),
        pl.max_horizontal(late_ms, stored_late_ms).alias("most_ms"),
        (least > LATE_MS).alias("is_late"),
    )
    is_dead = pl.col("topic_prefix") == DLQ
    again_ms = (pl.col("again_ts") - pl.col("due_ts")).dt.total_milliseconds()
    is_back = pl.col("delivered_ts").is_not_null()
    why = pl.col("why")
    by_listener = pl.col("delay_level").is_null()
    refused = pl.col("response_code").fill_null(0) != 0
    missed_ms = (pl.col("read_until_ts") - pl.col("due_ts")).dt.total_milliseconds()
    is_missed = ~is_back & ~is_dead & (missed_ms > LATE_MS) & ~by_listener
    after_end = pl.lit(value=False) if until is None else pl.col("due_ts") > until
    is_unstored = is_dead & (pl.col("growth") == 0) & ~by_listener & (pl.col("response_code") == 0)
    fewer = pl.format("{}; the dead letter queue grew by {}, and {} dead letters were due", why, "growth", "letters")
    early = is_back & (pl.col("most_ms") < -EARLY_MS)
    seconds = pl.col("late_s").abs().round(1)
    missed = pl.format("{}; it did not come, and other retries came up to {} s later", why, (missed_ms / 1000).round(1))
    verdict = decided(
        (refused, UNDETERMINED, pl.format("the broker refused the message (code {})", "response_code")),
        (pl.col("topic_prefix").is_null(), UNDETERMINED, why),
        (pl.col("unclear"), UNDETERMINED, "not every request that sent this message back was recorded"),
        (is_dead & is_back, DIFFER, pl.format("{}: a dead letter; but the message came back", why)),
        (is_dead & (pl.col("growth") >= pl.col("letters")), AGREE, why),
        (is_unstored, DIFFER, pl.format("{}: a dead letter; but the end of the dead letter queue did not rise", why)),
        (is_dead & (pl.col("growth") > 0), UNDETERMINED, fewer),
        (is_dead, UNDETERMINED, pl.format("{}; whether the dead letter queue grew then is not known", why)),
        (by_listener & ~is_back, UNDETERMINED, "neither the request nor a retry of the message was recorded"),
        (~is_back & (again_ms <= LATE_MS), AGREE, pl.format("{}; then it was sent back again", why)),
        (is_missed, DIFFER, missed),
        (~is_back & after_end, UNDETERMINED, pl.format("{}: due after the end of the recording", why)),
        (~is_back, UNDETERMINED, pl.format("{}: no consume log shows it", why)),
        (by_listener & (early | pl.col("is_late")), UNDETERMINED, "the requested delay level is not known"),
        (early, DIFFER, pl.format("{}; it came {} s before its time", why, seconds)),
        (pl.col("is_late"), DIFFER, pl.format("{}; the broker stored it {} s late", why, seconds)),
        otherwise=(AGREE, why),
    )
    judged = timed.with_columns(**verdict)
    overdue_s = (missed_ms / 1000).round(3)
    return judged.with_columns(
        pl.when((pl.col("judgement") == "differ") & ~is_back).then(overdue_s).otherwise("late_s").alias("late_s")
    )
