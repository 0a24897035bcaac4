"""gold.send_attempt: each try of a send, against TopicPublishInfo#selectOneMessageQueue and sendDefaultImpl.

A producer takes the queues of a topic in turn, and a retry goes to another broker than the one that just failed. Tries
of one message share its UNIQ_KEY, those of a producer's log an InvokeID. A producer with several threads has a counter
for each (`thread_turns`). An application may choose queues itself or send a message again, and a producer with
sendLatencyFaultEnable may avoid brokers that only answered slowly: what only this explains is undetermined.
Plain tries that agree are only counted, in gold.judgement.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.send_retry import SEND_STATUS, Step, TryKind, TryOutcome, send_status, step_after, times_total
from mqreplay.core.topic_route import LOGICAL_QUEUE_MOCK_BROKER_PREFIX
from mqreplay.core.version import BROKER_5, CLIENT_4
from mqreplay.decisions.decision import VERDICT_WORDS, Decision
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.decode.recording.advice import Need
from mqreplay.decode.sends import CLIENT_LOG
from mqreplay.evidence.frames import with_law
from mqreplay.evidence.intervals import with_state
from mqreplay.evidence.messages.sends import (
    FAILED,
    INTERRUPTED,
    ONEWAY,
    STORED,
    TURN,
    UNANSWERED,
    outcome,
    thread_turns,
)
from mqreplay.words.keys import TOPIC_QUEUE

COLUMNS: Final = (
    *("day", "topic", "producer_group", "client_id", "msg_id", "invoke_id", "attempt", "request_ts", "broker_name"),
    *("broker_id", "queue_id", "previous_broker_name", "expected_broker_name", "expected_queue_id", "response_code"),
    *("send_status", "remark", "error", "expected_step", "was_retried", "judgement", "reason", "record_id"),
)
OF_ROUTE: Final = ("position", "queues", "brokers")
TRIED: Final = ("topic", "message", "reconsume_times")  # all tries of one send
VERSIONS: Final = (CLIENT_4, BROKER_5)
STEP_COLUMNS: Final[dict[str, pl.DataType]] = {"expected_step": pl.String(), "may_retry": pl.Boolean()}
ROUTE_S: Final = 60  # a client uses a route for up to 30 s after it changed, and asks in turn for all topics
IN_TURN: Final = "the next queue in turn"
THREAD_IN_TURN: Final = "the next queue in turn of one of the producer's threads"
AVOIDED: Final = "a retry on another broker than the one that failed"
ONLY_BROKER: Final = "a retry on the only broker of the topic"
OTHER_QUEUE: Final = "the broker stored the message in another queue than the producer asked for"
# Reasons for which a try is undetermined.
MORE_TRIES: Final = "more tries than retryTimesWhenSendFailed has by default: a setting, or the application sent again"
SENT_AGAIN: Final = "the answer before ends a send: the application sent the message again"
CHOSEN: Final = "the same broker again: a send to a queue of the application's choice, or the application sent again"
# With sendLatencyFaultEnable, select_with_faults returns to the broker that failed if it ranks before the slow ones.
ISOLATED: Final = "the same broker again: with sendLatencyFaultEnable the others may have been too slow to be available"
ONLY_FAILED: Final = "a producer's log has only tries that failed: the queue that was due is not known"
NO_CLIENT: Final = "no heartbeat names the client of the connection"
NO_QUEUE: Final = "the producer left the choice of the queue to the broker"
NO_ROUTE: Final = "no recorded route of the topic has this queue"
FIRST_SEND: Final = "the first recorded send of the producer to the topic: its turn begins at random"
OTHER_THREAD: Final = "the first recorded send of another thread, or a send was not recorded: its turn begins at random"
OUT_OF_TURN: Final = (
    "not the next queue in turn: another thread, a queue of the application's choice, or a send was not recorded"
)


def send_tries(send: pl.DataFrame, changes: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Return the tries of a shard with their verdicts: COLUMNS, and those of the steps between.

    ``send`` are rows of silver.send, all those of some topics; ``changes`` and ``queues`` are those of
    `publish_routes`. A try without an answer failed only if another one follows: the capture may lack the answer.
    """
    rows = _with_thread_turns(_with_routes(_with_steps(_numbered(send)), changes, queues))
    return rows.with_columns(
        pl.col("ts").alias("request_ts"),
        pl.col("response_code").replace_strict(SEND_STATUS, default=None, return_dtype=pl.String).alias("send_status"),
        **_verdict(),
    )


def stored_rows(tries: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that gold.send_attempt keeps: failed tries, retries, unsafe answers, and what breaks a rule."""
    is_plain = pl.col("outcome").is_in([STORED, ONEWAY, UNANSWERED]) & (pl.col("response_code").fill_null(0) == 0)
    is_first = (pl.col("attempt") == 1) & ~pl.col("was_retried")
    return tries.filter(~(is_plain & is_first) | (pl.col("judgement") == "differ")).select(COLUMNS)


def _numbered(send: pl.DataFrame) -> pl.DataFrame:
    """Return the tries in order, with message, attempt, was_retried, and what is known of the try before."""
    is_logged = pl.col("source").eq_missing(CLIENT_LOG)
    # A log has the instant at which a try had failed.
    began = pl.col("ts") - pl.duration(milliseconds=pl.col("cost_ms").fill_null(0))
    ordered = send.with_columns(
        began.alias("began_ts"),
        is_logged.alias("is_logged"),
        pl.coalesce("invoke_id", "msg_id", "record_id").alias("message"),
        pl.col("reconsume_times").fill_null(0),
    ).sort("began_ts", "ts", "msg_id", "record_id")
    before = (*TOPIC_QUEUE, "ts", "began_ts")
    return ordered.with_columns(
        pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(TRIED).alias("attempt"),
        pl.col("record_id").shift(-1).over(TRIED).is_not_null().alias("was_retried"),
        *(pl.col(name).shift(1).over(TRIED).alias(f"previous_{name}") for name in before),
    )


def _with_steps(tries: pl.DataFrame) -> pl.DataFrame:
    """Add outcome, expected_step, and whether a producer may have retried after the try before."""
    known = tries.with_columns(outcome().alias("outcome"))
    joined = with_law(known, ("outcome", "response_code"), STEP_COLUMNS, _next_steps)
    return joined.with_columns(pl.col("may_retry").shift(1).over(TRIED).alias("previous_may_retry"))


def _next_steps(ended_in: str, code: int | None) -> tuple[str | None, bool]:
    """Return the values of STEP_COLUMNS: the only step that may follow, None for several, and whether a retry may."""
    steps = _steps(ended_in, code)
    return next(iter(steps)).value if len(steps) == 1 else None, Step.RETRY in steps


def _steps(ended_in: str, code: int | None) -> set[Step]:
    """Return what a producer may do next, by all versions and settings."""
    if ended_in == ONEWAY:
        return {Step.RETURN}
    if ended_in == FAILED:  # the log says "resend at once" also before it throws
        return {Step.RETRY, Step.THROW}
    if ended_in == UNANSWERED:
        ended = TryOutcome(TryKind.REMOTING)
    elif ended_in == INTERRUPTED:
        ended = TryOutcome(TryKind.INTERRUPTED)
    elif (status := send_status(code or 0)) is not None:
        ended = TryOutcome(TryKind.STORED, status)
    else:
        ended = TryOutcome(TryKind.BROKER, response_code=code or 0)
    return {step_after(ended, again, version) for again in (False, True) for version in VERSIONS}


def _with_routes(tries: pl.DataFrame, changes: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Add the expected queue, is_in_turn, position, queues and brokers, by the route of the topic at that time.

    queues and brokers: their number in the route. A first try follows the producer's try before to the topic, a retry
    the one that failed. A producer may still have the route before it.
    """
    is_named = pl.col("client_id").is_not_null() & ~pl.col("is_logged")
    rows = tries.with_columns(
        pl.when(pl.col("attempt") > 1)
        .then(f"previous_{name}")
        .when(is_named)
        .then(pl.col(name).shift(1).over(*TURN, "is_logged"))
        .alias(f"turn_{name}")
        for name in TOPIC_QUEUE
    )
    for suffix, late in (("", 0), ("_late", ROUTE_S)):
        rows = _with_positions(_with_route(rows, changes, late, f"route_id{suffix}"), queues, suffix)
    fits = [
        pl.all_horizontal(pl.col(name) == pl.col(f"expected_{name}{suffix}") for name in TOPIC_QUEUE)
        for suffix in ("", "_late")
    ]
    return rows.with_columns(pl.any_horizontal(each.fill_null(value=False) for each in fits).alias("is_in_turn"))


def _with_route(rows: pl.DataFrame, changes: pl.DataFrame, late_s: int, name: str) -> pl.DataFrame:
    """Add the route of the topic ``late_s`` seconds before each try; the first recorded one if there is none."""
    right = changes.select("topic", "known_ts", pl.col("route_id").alias(name)).sort("known_ts")
    first = right.unique("topic", keep="first", maintain_order=True).select("topic", pl.col(name).alias("first_id"))
    asked = rows.with_columns((pl.col("began_ts") - pl.duration(seconds=late_s)).alias("asked_ts"))
    found = with_state(asked.with_row_index("place"), right, "topic", "asked_ts", "known_ts")
    whole = found.join(first, "topic", how="left").sort("place")
    return whole.with_columns(pl.coalesce(name, "first_id").alias(name)).drop(
        "place", "asked_ts", "known_ts", "first_id", strict=False
    )


def _with_positions(rows: pl.DataFrame, queues: pl.DataFrame, suffix: str) -> pl.DataFrame:
    """Add position, queues, brokers and the expected queue by a route; their names end with the suffix."""
    route = f"route_id{suffix}"
    known = queues.rename({"route_id": route})
    of_try = known.select(route, *TOPIC_QUEUE, *(pl.col(name).alias(f"{name}{suffix}") for name in OF_ROUTE))
    after = [f"{which}_{name}" for which in ("next", "retry") for name in TOPIC_QUEUE]
    at_turn = pl.col("position").alias(f"turn_position{suffix}")
    of_turn = known.select(route, *(pl.col(name).alias(f"turn_{name}") for name in TOPIC_QUEUE), at_turn, *after)
    placed = rows.join(of_try, [route, *TOPIC_QUEUE], how="left", maintain_order="left")
    turned = placed.join(of_turn, [route, *(f"turn_{name}" for name in TOPIC_QUEUE)], how="left", maintain_order="left")
    is_retry = pl.col("attempt") > 1
    return turned.with_columns(
        pl.when(is_retry).then(f"retry_{name}").otherwise(f"next_{name}").alias(f"expected_{name}{suffix}")
        for name in TOPIC_QUEUE
    ).drop(after)


def _with_thread_turns(rows: pl.DataFrame) -> pl.DataFrame:
    """Add continues_turn: whether a send continues the turn of one of the producer's threads; null: not known.

    Sends shortly after a change of the route do not count: some threads may have the route before it.
    """
    numbered = rows.with_row_index("send").with_columns(pl.col("send").cast(pl.Int64))
    is_placed = (
        pl.col("client_id").is_not_null()
        & ~pl.col("is_logged")
        & pl.col("position").is_not_null()
        & (pl.col("route_id") == pl.col("route_id_late"))
    )
    is_first = pl.col("attempt") == 1
    # The thread of a retry waited for the queue after the one that failed.
    waited = pl.when(~is_first).then((pl.col("turn_position") + 1) % pl.col("queues"))
    # One thread explains all sends of most producers.
    is_odd = (pl.col("attempt") == 1) & pl.col("turn_broker_name").is_not_null() & ~pl.col("is_in_turn")
    placed = numbered.filter(is_placed)
    odd = placed.filter(is_odd).select(*TURN, "route_id").unique().with_row_index("producer")
    sends = placed.join(odd, [*TURN, "route_id"], nulls_equal=True).select(
        "send",
        "producer",
        "position",
        "queues",
        pl.coalesce(waited, "position").alias("from_position"),
        is_first.alias("is_first"),
    )
    return numbered.join(thread_turns(sends), "send", how="left", maintain_order="left").drop("send")


def _verdict() -> dict[str, pl.Expr]:
    """Return judgement and reason of each try."""
    is_other_queue = (
        (pl.col("outcome") == STORED)
        & (pl.col("answer_queue_id") != pl.col("queue_id"))
        & ~pl.col("broker_name").str.starts_with(LOGICAL_QUEUE_MOCK_BROKER_PREFIX)
    )
    same = pl.col("broker_name") == pl.col("previous_broker_name")
    return decided(
        (is_other_queue, DIFFER, OTHER_QUEUE),
        (pl.col("attempt") > times_total(), UNDETERMINED, MORE_TRIES),
        ((pl.col("attempt") > 1) & ~pl.col("previous_may_retry"), UNDETERMINED, SENT_AGAIN),
        ((pl.col("attempt") > 1) & ~same, AGREE, AVOIDED),
        ((pl.col("attempt") > 1) & (pl.col("brokers") == 1), AGREE, ONLY_BROKER),
        ((pl.col("attempt") > 1) & pl.col("is_logged"), UNDETERMINED, ISOLATED),
        (pl.col("attempt") > 1, UNDETERMINED, CHOSEN),
        (pl.col("is_logged"), UNDETERMINED, ONLY_FAILED),
        (pl.col("client_id").is_null(), UNDETERMINED, NO_CLIENT),
        (pl.col("queue_id").is_null(), UNDETERMINED, NO_QUEUE),
        (pl.col("is_in_turn"), AGREE, IN_TURN),
        (pl.col("continues_turn"), AGREE, THREAD_IN_TURN),
        (pl.col("position").is_null(), UNDETERMINED, NO_ROUTE),
        (pl.col("turn_broker_name").is_null(), UNDETERMINED, FIRST_SEND),
        (~pl.col("continues_turn"), UNDETERMINED, OTHER_THREAD),
        otherwise=(UNDETERMINED, OUT_OF_TURN),
    )


SEND_ATTEMPT: Final = Decision(
    table="gold.send_attempt",
    instant="request_ts",
    one="try of a send",
    many="tries of sends",
    importance=10,
    phrases=(
        "try {attempt} of a send to {topic}",
        ("queue {broker_name}/{queue_id}", "{broker_name}"),
        ("answer {response_code}: {remark}", "answer {response_code}"),
        "error: {error}",
        VERDICT_WORDS,
    ),
    needs=(Need("sends"), Need("routes")),
)
