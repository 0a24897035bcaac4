"""gold.send_attempt: each try of a send, against TopicPublishInfo#selectOneMessageQueue and sendDefaultImpl.

A producer takes the queues of a topic in turn, and a retry goes to another broker than the one that just failed. Tries
of one message share its UNIQ_KEY, those of a producer's log an InvokeID. A producer with several threads has a counter
for each, which thread_turns.py follows. An application may choose queues itself or send a message again, and a producer
with sendLatencyFaultEnable may avoid brokers that only answered slowly: what only this explains is undetermined.
Plain tries that agree are only counted, in gold.judgement.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.send_retry import SEND_STATUS, Step, TryKind, TryOutcome, send_status, step_after, times_total
from mqreplay.core.topic_route import LOGICAL_QUEUE_MOCK_BROKER_PREFIX
from mqreplay.core.version import BROKER_5, CLIENT_4
from mqreplay.decode.sends import CLIENT_LOG
from mqreplay.evidence.messages.send_outcomes import (
    FAILED,
    INTERRUPTED,
    ONEWAY,
    STORED,
    TURN,
    UNANSWERED,
    outcome,
)
from mqreplay.evidence.messages.thread_turns import thread_turns

COLUMNS: Final = (
    *("day", "topic", "producer_group", "client_id", "msg_id", "invoke_id", "attempt", "request_ts", "broker_name"),
    *("broker_id", "queue_id", "previous_broker_name", "expected_broker_name", "expected_queue_id", "response_code"),
    *("send_status", "remark", "error", "expected_step", "was_retried", "judgement", "reason", "record_id"),
)
PLACE: Final = ("broker_name", "queue_id")
OF_ROUTE: Final = ("position", "queues", "brokers")
TRIED: Final = ("topic", "message", "reconsume_times")  # all tries of one send
VERSIONS: Final = (CLIENT_4, BROKER_5)
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
FIRST: Final = "the first recorded send of the producer to the topic: its turn begins at random"
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
    verdict = _verdict()
    return rows.with_columns(
        verdict.struct.field("judgement"),
        verdict.struct.field("reason"),
        pl.col("ts").alias("request_ts"),
        pl.col("response_code").replace_strict(SEND_STATUS, default=None, return_dtype=pl.String).alias("send_status"),
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
    before = (*PLACE, "ts", "began_ts")
    return ordered.with_columns(
        pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(TRIED).alias("attempt"),
        pl.col("record_id").shift(-1).over(TRIED).is_not_null().alias("was_retried"),
        *(pl.col(name).shift(1).over(TRIED).alias(f"previous_{name}") for name in before),
    )


def _with_steps(tries: pl.DataFrame) -> pl.DataFrame:
    """Add outcome, expected_step, and whether a producer may have retried after the try before."""
    known = tries.with_columns(outcome().alias("outcome"))
    cases = known.select("outcome", "response_code").unique()
    steps = [_steps(*case) for case in cases.rows()]
    names = [next(iter(found)).value if len(found) == 1 else None for found in steps]
    law = cases.with_columns(
        pl.Series("expected_step", names, pl.String),
        pl.Series("may_retry", [Step.RETRY in found for found in steps], pl.Boolean),
    )
    joined = known.join(law, ["outcome", "response_code"], how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(pl.col("may_retry").shift(1).over(TRIED).alias("previous_may_retry"))


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
        for name in PLACE
    )
    for suffix, late in (("", 0), ("_late", ROUTE_S)):
        rows = _with_positions(_with_route(rows, changes, late, f"route_id{suffix}"), queues, suffix)
    fits = [
        pl.all_horizontal(pl.col(name) == pl.col(f"expected_{name}{suffix}") for name in PLACE)
        for suffix in ("", "_late")
    ]
    return rows.with_columns(pl.any_horizontal(each.fill_null(value=False) for each in fits).alias("is_in_turn"))


def _with_route(rows: pl.DataFrame, changes: pl.DataFrame, late_s: int, name: str) -> pl.DataFrame:
    """Add the route of the topic ``late_s`` seconds before each try; the first recorded one if there is none."""
    right = changes.select("topic", "known_ts", pl.col("route_id").alias(name)).sort("known_ts")
    first = right.unique("topic", keep="first", maintain_order=True).select("topic", pl.col(name).alias("first_id"))
    asked = rows.with_columns((pl.col("began_ts") - pl.duration(seconds=late_s)).alias("asked_ts"))
    found = (
        asked.with_row_index("place")
        .sort("asked_ts")
        .join_asof(
            right, left_on="asked_ts", right_on="known_ts", by="topic", strategy="backward", check_sortedness=False
        )
    )
    whole = found.join(first, "topic", how="left").sort("place")
    return whole.with_columns(pl.coalesce(name, "first_id").alias(name)).drop(
        "place", "asked_ts", "known_ts", "first_id", strict=False
    )


def _with_positions(rows: pl.DataFrame, queues: pl.DataFrame, suffix: str) -> pl.DataFrame:
    """Add position, queues, brokers and the expected queue by a route; their names end with the suffix."""
    route = f"route_id{suffix}"
    known = queues.rename({"route_id": route})
    of_try = known.select(route, *PLACE, *(pl.col(name).alias(f"{name}{suffix}") for name in OF_ROUTE))
    after = [f"{which}_{name}" for which in ("next", "retry") for name in PLACE]
    at_turn = pl.col("position").alias(f"turn_position{suffix}")
    of_turn = known.select(route, *(pl.col(name).alias(f"turn_{name}") for name in PLACE), at_turn, *after)
    placed = rows.join(of_try, [route, *PLACE], how="left", maintain_order="left")
    turned = placed.join(of_turn, [route, *(f"turn_{name}" for name in PLACE)], how="left", maintain_order="left")
    is_retry = pl.col("attempt") > 1
    return turned.with_columns(
        pl.when(is_retry).then(f"retry_{name}").otherwise(f"next_{name}").alias(f"expected_{name}{suffix}")
        for name in PLACE
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


def _verdict() -> pl.Expr:
    """Return judgement and reason of each try, as a struct."""
    is_other_queue = (
        (pl.col("outcome") == STORED)
        & (pl.col("answer_queue_id") != pl.col("queue_id"))
        & ~pl.col("broker_name").str.starts_with(LOGICAL_QUEUE_MOCK_BROKER_PREFIX)
    )
    same = pl.col("broker_name") == pl.col("previous_broker_name")
    rules: tuple[tuple[pl.Expr, str, str], ...] = (
        (is_other_queue, "differ", OTHER_QUEUE),
        (pl.col("attempt") > times_total(), "undetermined", MORE_TRIES),
        ((pl.col("attempt") > 1) & ~pl.col("previous_may_retry"), "undetermined", SENT_AGAIN),
        ((pl.col("attempt") > 1) & ~same, "agree", AVOIDED),
        ((pl.col("attempt") > 1) & (pl.col("brokers") == 1), "agree", ONLY_BROKER),
        ((pl.col("attempt") > 1) & pl.col("is_logged"), "undetermined", ISOLATED),
        (pl.col("attempt") > 1, "undetermined", CHOSEN),
        (pl.col("is_logged"), "undetermined", ONLY_FAILED),
        (pl.col("client_id").is_null(), "undetermined", NO_CLIENT),
        (pl.col("queue_id").is_null(), "undetermined", NO_QUEUE),
        (pl.col("is_in_turn"), "agree", IN_TURN),
        (pl.col("continues_turn"), "agree", THREAD_IN_TURN),
        (pl.col("position").is_null(), "undetermined", NO_ROUTE),
        (pl.col("turn_broker_name").is_null(), "undetermined", FIRST),
        (~pl.col("continues_turn"), "undetermined", OTHER_THREAD),
    )
    chain: pl.Expr = _pair("undetermined", OUT_OF_TURN)
    for holds, judgement, reason in reversed(rules):
        chain = pl.when(holds.fill_null(value=False)).then(_pair(judgement, reason)).otherwise(chain)
    return chain


def _pair(judgement: str, reason: str) -> pl.Expr:
    return pl.struct(pl.lit(judgement).alias("judgement"), pl.lit(reason).alias("reason"))
