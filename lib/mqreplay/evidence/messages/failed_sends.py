"""Sends that failed or were not stored safely, of any source, and brokers that a producer avoided meanwhile.

A producer's log (produce_log) and the log of its application (client_errors) have one row for a message after all its
tries, packets and rocketmq_client.log one for each try. A producer avoids a broker for as long as MQFaultStrategy
isolates it (sendLatencyFaultEnable), or while its route of the topic lacks the broker. A span counts only with such a
cause: an application may choose its queues.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import polars as pl

from mqreplay.core.fault_strategy import default_settings
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.core.send_retry import SEND_STATUS, Step
from mqreplay.core.version import CLIENT_4
from mqreplay.decode.client_errors import SEND_BACK_REQUEST, SEND_REQUEST
from mqreplay.evidence.frames import columns, filled, first_of, typed
from mqreplay.evidence.intervals import with_state
from mqreplay.evidence.messages.sends import FAILED, TURN, failed

BUSY, STORE, BROKER_CONFIG, TOPIC_CONFIG, MESSAGE_SIZE, ROUTE, DOWN, SILENT, ADDRESS, ACCESS, LOG, UNKNOWN_REASON = (
    *("busy", "store", "broker", "topic", "message", "route", "down", "silent", "address", "access", "log"),
    "unknown",
)
TURNS: Final = 2  # whole turns past the broker, at least
ISOLATED, NOT_IN_ROUTE = "isolated", "not_in_route"
# The longest isolation by default, of 4.x.
LONGEST_S: Final = default_settings(CLIENT_4).not_available_duration[-1] // 1000
AVOIDED: Final[dict[str, pl.DataType]] = {
    **columns("client_id", "topic", "broker_name", "from_ts", "to_ts", "cause"),
    "passed": pl.Int64(),  # sends to other brokers meanwhile
    "record_id": pl.String(),  # of the send to the broker that ended the span
}


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
    "the broker[": Refusal(BROKER_CONFIG, "the broker may not be written (brokerPermission)"),
    "the topic[": Refusal(TOPIC_CONFIG, "the topic may not be written (perm)"),
    "topic[": Refusal(TOPIC_CONFIG, "the broker lacks the topic"),
    "request queueId[": Refusal(TOPIC_CONFIG, "the topic has fewer queues (writeQueueNums)"),
    "org.apache.rocketmq.acl.": Refusal(ACCESS, "the client has no right to write (ACL)"),
    "the message is illegal": Refusal(MESSAGE_SIZE, "the message is too large, or its properties are"),
    "the message body": Refusal(MESSAGE_SIZE, "the message is too large or has no body"),
}
OTHER_REFUSAL: Final = Refusal(UNKNOWN_REASON, "another reason")
# Where no broker answered.
NO_ROUTE: Final = Refusal(ROUTE, "no broker of the topic was known")
MASTERS_DOWN: Final = Refusal(DOWN, "no broker of the topic was known, as its masters were down")
NO_ANSWER: Final = Refusal(SILENT, "no answer within the time of the send")
LOGGED: Final = Refusal(LOG, "rocketmq_client.log of the producer has the exceptions")
THROWN: Final = Refusal(LOG, "the client of the producer threw an exception")
UNREACHABLE: Final = Refusal(ADDRESS, "the producer could not connect to the broker's address")
NOT_CONNECTED: Final = r"RemotingConnectException|Connect\sbroker\sfailed"
NO_BROKER: Final = (
    r"No route info of this topic|The broker\[[^\]]*\] not exist|No name server address|Topic does not exist, Topic="
)
# Not a failure of a broker: the application ended or interrupted the thread.
INTERRUPTED: Final = r"^(?:java\.lang\.)?InterruptedException"
MENDS: Final = {
    each.words: each.mend
    for each in (*REFUSALS.values(), OTHER_REFUSAL, NO_ROUTE, MASTERS_DOWN, NO_ANSWER, UNREACHABLE, THROWN, LOGGED)
}
# A try that waited for so long, and the next one took a tenth of it or less.
LONG_MS, LESS = 1_000, 10
LONGEST_TRY: Final = "5s"  # a try fails after sendMsgTimeout, 3 s, at the latest; the log has the time of its failure
SAFE: Final = "SEND_OK"
UNSAFE: Final = tuple(status for status in SEND_STATUS.values() if status != SAFE)
SENDS: Final[dict[str, pl.DataType]] = {
    **columns("topic", "broker_name", "broker_id", "client_id", "request_ts", "response_code"),
    "failure": pl.String(),  # words of a Refusal; null: stored, but not safely
    "send_status": pl.String(),  # of UNSAFE; null: not stored
    "is_last": pl.Boolean(),  # no other try of the message follows; null: not known
    "record_id": pl.String(),
    "disk_percent": pl.Int64(),  # of the broker's disk when it refused the message, by the remark
    "unreachable_addr": pl.String(),  # the address of UNREACHABLE
    "other_remark": pl.String(),  # the begin of the remark of OTHER_REFUSAL, or of the error of THROWN
}
# Of what a log shows: the exception, by a pattern of its text.
_EXCEPTIONS: Final = {
    NOT_CONNECTED: UNREACHABLE,
    NO_BROKER: NO_ROUTE,
    r"Remoting(?:Timeout|TooMuchRequest|SendRequest)Exception|Send\smessage\sto\sbroker\stimeout": NO_ANSWER,
    r"^\w+(?:Exception|Error): \S": THROWN,
}
# SendMessageProcessor#diskUtil: the used share of the disk of the commit log.
MOST_REMARK: Final = 120  # characters
_DISK: Final = r"\[CL: *(\d\.\d+)"


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
    has_answer = pl.col("response_code").is_not_null()
    failure = first_of((has_answer, _refusal("remark")), (is_logged, _by_exception()), otherwise=NO_ANSWER.words)
    values = _by_safety(is_unsafe, failure) | _measured()
    return filled(found, SENDS, is_last=_is_last(), **values)


def failed_requests(client_error: pl.DataFrame) -> pl.DataFrame:
    """Return the sends that applications saw fail, of silver.client_error; columns SENDS.

    A message that could not be sent back is a send to the retry topic: the client tries it as such, too.
    """
    sent = client_error.filter(pl.col("request").is_in([SEND_REQUEST, SEND_BACK_REQUEST]))
    topic = pl.when(pl.col("request") == SEND_BACK_REQUEST).then(RETRY + pl.col("consumer_group")).otherwise("topic")
    failure = pl.when(pl.col("response_code").is_not_null()).then(_refusal("remark")).otherwise(_by_exception())
    values = {"failure": failure, "topic": topic, "request_ts": pl.col("ts"), "is_last": pl.lit(value=True)}
    return filled(sent, SENDS, **values, **_measured())


def _by_exception() -> pl.Expr:
    """Return why a send without an answer failed, by its error."""
    error = pl.col("error").fill_null("")
    return first_of(
        *((error.str.contains(text), each.words) for text, each in _EXCEPTIONS.items()), otherwise=LOGGED.words
    )


def _measured() -> dict[str, pl.Expr]:
    """Return disk_percent, unreachable_addr and other_remark."""
    is_unreachable = pl.col("response_code").is_null() & pl.col("error").str.contains(NOT_CONNECTED)
    return {
        "disk_percent": _disk_percent(pl.col("remark")),
        "unreachable_addr": pl.when(is_unreachable).then("broker_addr"),
        "other_remark": pl.when(pl.col("response_code").is_null() & (_by_exception() == THROWN.words))
        .then(pl.col("error").str.head(MOST_REMARK).str.strip_chars_end("."))
        .when(_refusal("remark") == OTHER_REFUSAL.words)
        .then(pl.col("remark").str.head(MOST_REMARK)),
    }


def _disk_percent(remark: pl.Expr) -> pl.Expr:
    share = remark.str.extract(_DISK).cast(pl.Float64, strict=False)
    return (share * 100).round().cast(pl.Int64)


def _once(found: pl.DataFrame) -> pl.DataFrame:
    """Leave out the logged tries whose broker failed a captured try of the topic, or answered none, at that time."""
    by = ["topic", "broker_name"]
    captured = found.filter(~pl.col("is_logged")).select(*by, "request_ts", pl.lit(value=True).alias("is_seen"))
    logged = found.filter("is_logged").sort("request_ts")
    seen = with_state(logged, captured, by, "request_ts", within=LONGEST_TRY)
    unseen = seen.filter(pl.col("is_seen").is_null()).drop("is_seen")
    return pl.concat([found.filter(~pl.col("is_logged")), unseen])


def _is_last() -> pl.Expr:
    """Return whether no other try of the message follows; null where it may have been to a broker without a capture.

    A producer's log lacks tries that succeed.
    """
    is_known = (pl.col("expected_step") == Step.THROW.value) | (pl.col("seen_brokers") >= pl.col("brokers"))
    return first_of(("was_retried", False), (is_known & ~pl.col("is_logged"), True))


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
    values = _by_safety(is_unsafe, failure) | {"request_ts": pl.col("ts"), "is_last": pl.lit(value=True)}
    return filled(named, SENDS, **values, disk_percent=_disk_percent(pl.col("remark")))


def _by_safety(is_unsafe: pl.Expr, failure: pl.Expr) -> dict[str, pl.Expr]:
    """Return the columns failure and send_status: a message is stored, or not; one that is stored is not safe."""
    return {"failure": pl.when(~is_unsafe).then(failure), "send_status": pl.when(is_unsafe).then("send_status")}


def _refusal(remark: str) -> pl.Expr:
    text = pl.col(remark).fill_null("")
    words = ((text.str.starts_with(begins), refusal.words) for begins, refusal in REFUSALS.items())
    return first_of(*words, otherwise=OTHER_REFUSAL.words)


def avoided_brokers(tries: pl.DataFrame, changes: pl.DataFrame, queues: pl.DataFrame, least_s: int) -> pl.DataFrame:
    """Return the spans of at least ``least_s`` seconds; columns AVOIDED.

    ``tries`` are those of `send_tries`, ``changes`` and ``queues`` those of `publish_routes`. A span ends with the next
    send to the broker.
    """
    known = tries.filter(pl.col("client_id").is_not_null() & ~pl.col("is_logged") & pl.col("queues").is_not_null())
    placed = known.sort("began_ts", "ts", "msg_id", "record_id").with_columns(
        pl.int_range(pl.len()).over(TURN).alias("place")
    )
    by = [*TURN, "broker_name"]
    before = placed.with_columns(
        pl.col("place").shift(1).over(by).alias("last_place"),
        pl.coalesce("response_ts", "ts").shift(1).over(by).alias("from_ts"),
        failed().shift(1).over(by).alias("last_failed"),
    ).with_columns((pl.col("place") - pl.col("last_place") - 1).cast(pl.Int64).alias("passed"))
    long = (pl.col("ts") - pl.col("from_ts")) >= pl.duration(seconds=least_s)
    spans = before.filter(long & (pl.col("passed") >= TURNS * pl.col("queues")))
    short = (pl.col("ts") - pl.col("from_ts")) <= pl.duration(seconds=LONGEST_S)
    lacking = _lacking(spans, changes, queues)
    is_lacking = pl.col("record_id").is_in(lacking.implode())
    cause = first_of((is_lacking, NOT_IN_ROUTE), (pl.col("last_failed") & short, ISOLATED))
    found = spans.with_columns(cause.alias("cause"), pl.col("ts").alias("to_ts")).filter(pl.col("cause").is_not_null())
    return typed(found, AVOIDED)


def _lacking(spans: pl.DataFrame, changes: pl.DataFrame, queues: pl.DataFrame) -> pl.Series:
    """Return record_id of the spans during which a route of the topic lacked the broker."""
    routes = spans.select("topic", "broker_name", "from_ts", "ts", "record_id").join(changes, "topic")
    during = routes.filter(pl.col("known_ts").is_between("from_ts", "ts"))
    has = queues.select("route_id", "broker_name").unique()
    return during.join(has, ["route_id", "broker_name"], how="anti")["record_id"].unique()
