"""gold.pop_receipt: what became of each message that POP handed out, and whether it came back when it should.

A message is due again when its invisible time ends. If nobody acknowledged it before, the broker stores it in a retry
topic (PopReviveService), or hands it out again if the group consumes in order. A revived message has the same id, one
more delivery, and the time at which it was stored. The revive service waits a little, as its timer is not exact.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.pop_receipt import NORMAL_TOPIC, ORDER_REVIVE_QUEUE, real_topic
from mqreplay.core.pop_revive import TIMER_PRECISION_MS, is_kv_revive_due, is_revive_due, revive_deadline
from mqreplay.core.pull_answer import SUCCESS
from mqreplay.decisions.decision import QUEUE_WORDS, VERDICT_WORDS, Decision
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.evidence.frames import first_of, instant_of, with_flag
from mqreplay.evidence.intervals import with_state
from mqreplay.evidence.members.observed_clients import SETTINGS, setting

POPPED_MESSAGE: Final = ("consumer_group", "topic", "broker_name", "queue_id", "queue_offset")
COLUMNS: Final = (
    *("day", "consumer_group", "topic", "broker_name", "queue_id", "queue_offset", "client_id", "pop_ts", "is_order"),
    *("msg_id", "reconsume_times", "changes", "visible_ts", "acked_ts", "again_ts", "deadline_ts", "outcome"),
    *("judgement", "reason", "record_id"),
)
_MOMENTS_MS: Final = range(10_000)
# How long after its time a message is revived at the earliest, with revive topics and with records by key.
REVIVED_MS: Final = next(ms for ms in _MOMENTS_MS if is_revive_due(0, ms))
KV_REVIVED_MS: Final = next(ms for ms in _MOMENTS_MS if is_kv_revive_due(0, ms))
# What revive_deadline depends on, in the order of its arguments, with the defaults of BrokerConfig.
REVIVE_SETTINGS: Final = {
    "reviveInterval": 1000,
    "reviveMaxSlow": 3,
    "reviveScanTime": 10_000,
    "timerPrecisionMs": TIMER_PRECISION_MS,
}


def pop_receipts(pop: pl.DataFrame, pop_ack: pl.DataFrame, broker: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of gold.pop_receipt: one per message handed out.

    ``pop`` holds all rows of some groups, ``broker`` the descriptions of brokers: both are rows of silver tables.
    """
    handed = handed_out(pop)
    events = _acknowledgements(handed, pop_ack)
    followed = _with_acknowledgements(handed, events)
    return _judged(_with_delays(_with_next_delivery(followed), broker)).select(COLUMNS)


def handed_out(pop: pl.DataFrame) -> pl.DataFrame:
    """Return one row a message in an answer, with the topic that holds it: the one asked for, or its retry topic."""
    answered = pop.filter(pl.col("pop_ts").is_not_null() & (pl.col("receipts").list.len() > 0))
    rows = answered.explode("receipts").unnest("receipts")
    held = rows.select("topic_type", "topic", "consumer_group").unique()
    names = [real_topic(*row) for row in held.rows()]
    named = rows.join(held.with_columns(pl.Series("held", names, pl.String)), on=held.columns)
    due = pl.col("pop_ts") + pl.duration(milliseconds="answer_invisible_time_ms")
    return named.with_columns(
        pl.col("held").alias("topic"),
        (pl.col("revive_queue_id") == ORDER_REVIVE_QUEUE).fill_null(False).alias("is_order"),
        due.alias("due_ts"),
        instant_of("store_ts").alias("store_ts"),
    ).sort("pop_ts", "request_ts", *POPPED_MESSAGE)


def _acknowledgements(handed: pl.DataFrame, pop_ack: pl.DataFrame) -> pl.DataFrame:
    """Return the requests of each message, with the delivery to which they belong (``delivered_ts``).

    A receipt has the time of its POP, or of the last change of its invisible time: which is before the next delivery.
    """
    fields = {"ts": "asked_ts", "pop_ts": "changed_ts", "invisible_time_ms": "asked_invisible_ms"}
    rows = pop_ack.rename(fields).drop("broker_addr", "broker_id", "day", "revive_queue_id").explode("receipts")
    rows = rows.filter(pl.col("receipts").is_not_null()).unnest("receipts")
    receipt_ts = instant_of("pop_ts")
    requests = rows.with_columns(receipt_ts.alias("receipt_ts")).drop("pop_ts").sort("receipt_ts")
    deliveries = (
        handed.select(*POPPED_MESSAGE, "pop_ts", pl.col("pop_ts").alias("delivered_ts")).unique().sort("pop_ts")
    )
    return with_state(requests, deliveries, list(POPPED_MESSAGE), "receipt_ts", "pop_ts").filter(
        pl.col("delivered_ts").is_not_null()
    )


def _with_acknowledgements(handed: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Return the deliveries with their changes, the end of the last invisible time, and the acknowledgement."""
    key = [*POPPED_MESSAGE, "delivered_ts"]
    succeeded = pl.col("response_code") == SUCCESS
    is_change = pl.col("kind") == "CHANGE_INVISIBLE_TIME"
    until = pl.col("changed_ts") + pl.duration(milliseconds="answer_invisible_time_ms")
    changes = (
        events.filter(is_change & succeeded & pl.col("changed_ts").is_not_null())
        .sort("asked_ts")
        .group_by(key, maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("changes"),
            pl.col("changed_ts").last().alias("current_ts"),
            until.last().alias("changed_due_ts"),
        )
    )
    # Requests with an earlier receipt have no effect on the message.
    current = events.join(changes, on=key, how="left").filter(
        pl.col("receipt_ts") == pl.coalesce("current_ts", "delivered_ts")
    )
    acks = current.filter(~is_change & succeeded)
    unanswered = current.filter(pl.col("response_code").is_null())
    acked = acks.group_by(key).agg(pl.coalesce("response_ts", "asked_ts").min().alias("acked_ts"))
    rows = handed.with_columns(pl.col("pop_ts").alias("delivered_ts"))
    rows = rows.join(changes, on=key, how="left").join(acked, on=key, how="left")
    visible_ts = pl.coalesce("changed_due_ts", "due_ts").alias("visible_ts")
    return with_flag(rows, unanswered, key, "is_unanswered").with_columns(pl.col("changes").fill_null(0), visible_ts)


def _with_next_delivery(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the deliveries with the instant at which the message came back: stored in a retry topic, or in order."""
    revived = (
        rows.filter((pl.col("topic_type") != NORMAL_TOPIC) & pl.col("msg_id").is_not_null())
        .group_by("consumer_group", "msg_id", pl.col("reconsume_times").alias("next_times"))
        .agg(pl.col("store_ts").min().alias("revived_ts"))
    )
    rows = rows.with_columns((pl.col("reconsume_times") + 1).alias("next_times"))
    rows = rows.join(revived, on=["consumer_group", "msg_id", "next_times"], how="left")
    following = (
        rows.select(*POPPED_MESSAGE, "pop_ts", "attempt_id").unique(subset=[*POPPED_MESSAGE, "pop_ts"]).sort("pop_ts")
    )
    following = following.with_columns(
        pl.col("pop_ts").shift(-1).over(POPPED_MESSAGE).alias("ordered_again_ts"),
        pl.col("attempt_id").shift(-1).over(POPPED_MESSAGE).alias("next_attempt_id"),
    ).drop("attempt_id")
    rows = rows.join(following, on=[*POPPED_MESSAGE, "pop_ts"], how="left")
    again = pl.when("is_order").then(pl.col("ordered_again_ts")).otherwise(pl.col("revived_ts"))
    return rows.with_columns(again.alias("again_ts"))


def _with_delays(rows: pl.DataFrame, broker: pl.DataFrame) -> pl.DataFrame:
    """Add least_ms: how long after its time a message comes back at the earliest; deadline_ts, and is_described.

    The service believes the times of its messages, which the timer may deliver earlier by its precision
    (HookUtils#transformTimerMessage). A broker that was not described may have either service.
    """
    of_timer = {
        name: pl.coalesce(setting(name).cast(pl.Int64, strict=False), default).alias(name)
        for name, default in REVIVE_SETTINGS.items()
    }
    precision = of_timer["timerPrecisionMs"]
    by_timer = (REVIVED_MS - precision).clip(lower_bound=KV_REVIVED_MS)
    by_kv = setting("popConsumerKVServiceEnable").str.to_lowercase() == "true"
    described = broker.filter(pl.col("properties").cast(SETTINGS).list.len() > 0)
    least = pl.when(by_kv.fill_null(value=False)).then(KV_REVIVED_MS).otherwise(by_timer).alias("least_ms")
    most = [revive_deadline(0, *waits) for waits in described.select(*of_timer.values()).rows()]
    delays = described.select("broker_name", least, pl.Series("most_ms", most, pl.Int64))
    by_name = delays.group_by("broker_name").agg(pl.col("least_ms").min(), pl.col("most_ms").max())
    joined = rows.join(by_name, on="broker_name", how="left")
    latest = pl.duration(milliseconds=pl.col("most_ms").fill_null(revive_deadline(0)))
    return joined.with_columns(
        pl.when("is_order").then(0).otherwise(pl.col("least_ms").fill_null(KV_REVIVED_MS)).alias("least_ms"),
        pl.when(~pl.col("is_order")).then(pl.col("visible_ts") + latest).alias("deadline_ts"),
        pl.col("most_ms").is_not_null().alias("is_described"),
    )


def _judged(rows: pl.DataFrame) -> pl.DataFrame:
    acked, visible, again = pl.col("acked_ts"), pl.col("visible_ts"), pl.col("again_ts")
    in_time = acked.is_not_null() & (acked <= visible)
    is_back = again.is_not_null()
    repeated = pl.col("is_order") & (pl.col("attempt_id") == pl.col("next_attempt_id")).fill_null(False)
    outcome = first_of(
        (in_time, "acknowledged"),
        (acked.is_not_null(), "acknowledged_late"),
        (is_back & pl.col("is_order"), "delivered_again"),
        (is_back, "revived"),
        otherwise="open",
    )
    back_ms = (again - visible).dt.total_milliseconds()
    # A group in order gets the queue again from the first message without acknowledgement (OrderInfo#getNextOffset).
    is_open = (acked.is_null() | (acked > again)).fill_null(value=False)
    first_open = (
        pl.when(is_open).then("queue_offset").min().over("consumer_group", "topic", "broker_name", "queue_id", "pop_ts")
    )
    with_earlier = pl.col("is_order") & (first_open < pl.col("queue_offset")).fill_null(value=False)
    is_late = is_back & (again > pl.col("deadline_ts"))
    late = pl.format("it was revived {} ms after its time", back_ms)
    least = pl.format("it was revived {} ms after its time, and {} ms are the least", back_ms, "least_ms")
    no_settings = pl.concat_str(late, pl.lit(", and the settings of the broker are not recorded"))
    verdict = decided(
        (in_time & is_back & with_earlier, AGREE, "it came back with an earlier one without acknowledgement"),
        (in_time & is_back & (again > acked), DIFFER, "it came back although it was acknowledged in time"),
        (in_time, AGREE, "it was acknowledged before its invisible time ended"),
        (is_back & repeated, AGREE, "the same attempt was repeated and got the same messages"),
        (is_back & (again < visible), DIFFER, pl.format("it came back {} ms before its time", -back_ms)),
        (is_back & (back_ms < pl.col("least_ms")), DIFFER, least),
        (is_late & ~pl.col("is_described"), UNDETERMINED, no_settings),
        (is_late, DIFFER, late),
        (is_back, AGREE, pl.format("it came back {} ms after its time", back_ms)),
        (acked.is_not_null(), UNDETERMINED, "it was acknowledged after its time, and no later POP returned it"),
        ("is_unanswered", UNDETERMINED, "the answer to its acknowledgement is not recorded"),
        otherwise=(UNDETERMINED, "no acknowledgement is recorded, and no later POP returned it"),
    )
    return rows.with_columns(outcome.alias("outcome"), **verdict)


POP_RECEIPT: Final = Decision(
    table="gold.pop_receipt",
    instant="pop_ts",
    one="message of POP",
    many="messages of POP",
    importance=20,
    phrases=(QUEUE_WORDS, "offset {queue_offset}", VERDICT_WORDS),
)
