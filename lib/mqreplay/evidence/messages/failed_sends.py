"""Sends that failed, and messages that a broker stored without the safety that it is set up for, of any source.

A producer's log (produce_log) has one row for a message after all its tries, packets and rocketmq_client.log one for
each try.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import polars as pl

from mqreplay.core.send_retry import SEND_STATUS, Step
from mqreplay.evidence.messages.send_outcomes import FAILED, failed
from mqreplay.evidence.time_spans import INSTANT

BUSY, STORE, BROKER, TOPIC, MESSAGE, ROUTE, DOWN, SILENT, UNKNOWN = (
    *("busy", "store", "broker", "topic", "message", "route", "down", "silent", "unknown"),
)


class Refusal(NamedTuple):
    """Why a broker did not take a message: what has to be mended, and the reason in words."""

    mend: str
    words: str


# By the beginning of the broker's remark, or of the client's own error. Sources: SendMessageProcessor,
# AbstractSendMessageProcessor#msgCheck, NettyRemotingAbstract, BrokerFastFailure, Validators#checkMessage.
REFUSALS: Final[Mapping[str, Refusal]] = {
    "[REJECTREQUEST]": Refusal(BUSY, "its page cache or its pool of buffers was busy"),
    "[OVERLOAD]": Refusal(BUSY, "its queue of sends was full"),
    "[TIMEOUT_CLEAN_QUEUE]": Refusal(BUSY, "sends waited too long in its queue (waitTimeMillsInSendQueue)"),
    "[PCBUSY_CLEAN_QUEUE]": Refusal(BUSY, "its page cache was busy"),
    "[PC_SYNCHRONIZED]": Refusal(BUSY, "its page cache was busy"),
    "service not available now": Refusal(STORE, "its store took no messages"),
    "create mapped file failed": Refusal(STORE, "it could not make a file of the commit log"),
    "broker unable to service": Refusal(STORE, "it takes no sends yet (startAcceptSendRequestTimeStamp)"),
    "the broker[": Refusal(BROKER, "the broker may not be written (brokerPermission)"),
    "the topic[": Refusal(TOPIC, "the topic may not be written (perm)"),
    "topic[": Refusal(TOPIC, "the broker lacks the topic"),
    "request queueId[": Refusal(TOPIC, "the topic has fewer queues (writeQueueNums)"),
    "the message is illegal": Refusal(MESSAGE, "the message is too large, or its properties are"),
    "the message body": Refusal(MESSAGE, "the message is too large or has no body"),
}
OTHER: Final = Refusal(UNKNOWN, "another reason")
# Where no broker answered.
NO_ROUTE: Final = Refusal(ROUTE, "no broker of the topic was known")
MASTERS_DOWN: Final = Refusal(DOWN, "no broker of the topic was known, as its masters were down")
NO_ANSWER: Final = Refusal(SILENT, "no answer within the time of the send")
LOGGED: Final = Refusal(SILENT, "rocketmq_client.log of the producer has the exceptions")
NO_BROKER: Final = r"No route info of this topic|The broker\[[^\]]*\] not exist|No name server address"
# Not a failure of a broker: the application ended or interrupted the thread.
INTERRUPTED: Final = r"^(?:java\.lang\.)?InterruptedException"
MENDS: Final = {
    each.words: each.mend for each in (*REFUSALS.values(), OTHER, NO_ROUTE, MASTERS_DOWN, NO_ANSWER, LOGGED)
}
# A try that waited for so long, and the next one took a tenth of it or less.
LONG_MS, LESS = 1_000, 10
AT_ONCE: Final = "5s"  # a try fails after sendMsgTimeout, 3 s, at the latest; the log has the time of its failure
SAFE: Final = "SEND_OK"
UNSAFE: Final = tuple(status for status in SEND_STATUS.values() if status != SAFE)
SENDS: Final[dict[str, pl.DataType]] = {
    "topic": pl.String(),
    "broker_name": pl.String(),
    "broker_id": pl.Int64(),
    "client_id": pl.String(),
    "request_ts": INSTANT,
    "response_code": pl.Int32(),
    "failure": pl.String(),  # words of a Refusal; null: stored, but not safely
    "send_status": pl.String(),  # of UNSAFE; null: not stored
    "is_last": pl.Boolean(),  # no other try of the message follows; null: not known
    "record_id": pl.String(),
}


def failed_tries(tries: pl.DataFrame) -> pl.DataFrame:
    """Return the tries of `send_tries` that failed or are not safe; columns SENDS.

    A retry that failed at once, because the try before had used up the time of the send, is no failure of its broker. A
    try that a capture shows is left out of the producer's log.
    """
    is_unsafe = pl.col("send_status").is_in(UNSAFE).fill_null(value=False)
    waited_ms = (pl.col("began_ts") - pl.col("previous_began_ts")).dt.total_milliseconds()
    has_no_time = pl.col("is_logged") & (waited_ms >= LONG_MS) & (pl.col("cost_ms") * LESS < waited_ms)
    seen = pl.when(~pl.col("is_logged")).then("broker_name").drop_nulls().n_unique().over("topic").alias("seen_brokers")
    found = _once(tries.with_columns(seen).filter((failed() & ~has_no_time.fill_null(value=False)) | is_unsafe))
    is_logged = pl.col("outcome") == FAILED
    failure = (
        pl.when(pl.col("response_code").is_not_null())
        .then(_refusal("remark"))
        .when(is_logged)
        .then(pl.lit(LOGGED.words))
        .otherwise(pl.lit(NO_ANSWER.words))
    )
    return _sends(
        found.with_columns(
            pl.when(~is_unsafe).then(failure).alias("failure"),
            pl.when(is_unsafe).then("send_status").alias("send_status"),
            _is_last().alias("is_last"),
        )
    )


def _once(found: pl.DataFrame) -> pl.DataFrame:
    """Leave out the logged tries whose broker failed a captured try of the topic, or answered none, at that time."""
    by = ["topic", "broker_name"]
    captured = found.filter(~pl.col("is_logged")).select(*by, "request_ts", pl.lit(value=True).alias("is_seen"))
    logged = found.filter("is_logged").sort("request_ts")
    seen = logged.join_asof(
        captured.sort("request_ts"), on="request_ts", by=by, tolerance=AT_ONCE, check_sortedness=False
    )
    unseen = seen.filter(pl.col("is_seen").is_null()).drop("is_seen")
    return pl.concat([found.filter(~pl.col("is_logged")), unseen])


def _is_last() -> pl.Expr:
    """Return whether no other try of the message follows; null where it may have been to a broker without a capture.

    A producer's log lacks tries that succeed.
    """
    is_known = (pl.col("expected_step") == Step.THROW.value) | (pl.col("seen_brokers") >= pl.col("brokers"))
    return (
        pl.when("was_retried").then(pl.lit(value=False)).when(is_known & ~pl.col("is_logged")).then(pl.lit(value=True))
    )


def failed_messages(produce: pl.DataFrame) -> pl.DataFrame:
    """Return the messages of silver.produce whose send failed or is not safe; columns SENDS.

    Which broker failed is not known: a try after one that waited for its answer may have no time left.
    """
    is_error = pl.col("error").is_not_null() & ~pl.col("error").str.contains(INTERRUPTED)
    is_unsafe = pl.col("send_status").is_in(UNSAFE).fill_null(value=False)
    found = produce.filter(is_error.fill_null(value=False) | is_unsafe)
    error = pl.col("error")
    code = error.str.extract(r"CODE: (\d{1,9})\b").cast(pl.Int32)
    remark = error.str.extract(r"DESC: ([^\n]*)").alias("remark")
    named = found.with_columns(code.alias("response_code"), remark)
    silent = pl.when(error.str.contains(NO_BROKER)).then(pl.lit(NO_ROUTE.words)).otherwise(pl.lit(NO_ANSWER.words))
    failure = pl.when(pl.col("response_code").is_not_null()).then(_refusal("remark")).otherwise(silent)
    return _sends(
        named.with_columns(
            pl.col("ts").alias("request_ts"),
            pl.when(~is_unsafe).then(failure).alias("failure"),
            pl.when(is_unsafe).then("send_status").alias("send_status"),
            pl.lit(value=True).alias("is_last"),
        )
    )


def _refusal(remark: str) -> pl.Expr:
    text = pl.col(remark).fill_null("")
    words: pl.Expr = pl.lit(OTHER.words)
    for begins, refusal in reversed(list(REFUSALS.items())):
        words = pl.when(text.str.starts_with(begins)).then(pl.lit(refusal.words)).otherwise(words)
    return words


def _sends(rows: pl.DataFrame) -> pl.DataFrame:
    known = [
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(kind).alias(name) for name, kind in SENDS.items()
    ]
    return rows.select(known)
