"""When name servers' lists and clients' routes lost the address of a broker, and when they had it again."""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.evidence.arrays.distinct import distinct_cases
from mqreplay.evidence.brokers.routes import ROUTE_BROKERS
from mqreplay.evidence.frames import columns, typed
from mqreplay.evidence.intervals import INSTANT, with_state

# An ordered stop takes a broker out of the lists before it answers no more (BrokerController#shutdown).
UNREGISTERED_BEFORE = dt.timedelta(seconds=30)
TOPIC_NOT_EXIST = 17  # ResponseCode: a topic without any broker
# Answers of name servers; ``who`` is the name server that was asked, or the client that asked.
ANSWERS: dict[str, pl.DataType] = {
    **columns("who", "topic", "ts"),
    "confirmed_ts": INSTANT,  # the last instant at which the answer is known to be the same
    **columns("next_ts", "record_id"),
}
CLIENT_INSTANTS: dict[str, pl.DataType] = {name: ANSWERS[name] for name in ("who", "ts")}
ADDRESS_CHANGES: dict[str, pl.DataType] = {
    "who": pl.String(),
    "had_ts": INSTANT,  # the last instant known to have the address before it was lost, or of all
    "had_id": pl.String(),
    "lost_ts": INSTANT,  # null: not lost
    "lost_id": pl.String(),
    "lacked_ts": INSTANT,  # the last instant known to lack it before it came back, or of all
    "back_ts": INSTANT,
    "back_id": pl.String(),
    "last_ts": INSTANT,  # the last answer
}


def listed_answers(lists: pl.DataFrame) -> pl.DataFrame:
    """Return the answers of name servers with their brokers, each as _place (columns of ANSWERS, and ``brokers``).

    ``lists`` is the frame of `listed_brokers`.
    """
    answers = lists.group_by("namesrv_addr", "from_ts", "record_id").agg(
        pl.col("before_ts").first().alias("before_ts"), _place().drop_nulls().alias("brokers")
    )
    named = answers.rename({"namesrv_addr": "who", "from_ts": "ts"}).with_columns(pl.lit("").alias("topic"))
    return _ordered(named.with_columns(pl.col("who").fill_null("")))


def routed_answers(route: pl.DataFrame) -> pl.DataFrame:
    """Return the routes that clients got, with their brokers, each as _place (columns of ANSWERS, and ``brokers``).

    ``route`` is silver.route. The recorder's own requests are no client's.
    """
    answered = route.filter(
        pl.col("client_id").is_not_null()
        & pl.col("error").is_null()
        & (pl.col("broker_datas").is_not_null() | (pl.col("response_code") == TOPIC_NOT_EXIST))
    )
    cases, case = distinct_cases(answered.select(pl.col("broker_datas").cast(ROUTE_BROKERS)))
    each = cases.with_row_index("case").explode("broker_datas").unnest("broker_datas").explode("broker_addrs")
    addr = pl.col("broker_addrs").struct.field("value").alias("broker_addr")
    brokers = each.with_columns(addr).group_by("case").agg(_place().drop_nulls().sort().alias("brokers"))
    return _ordered(
        answered.select(
            pl.col("client_id").alias("who"),
            "topic",
            pl.coalesce("response_ts", "ts").alias("ts"),
            "record_id",
            pl.col("previous_ts").alias("before_ts"),
            brokers.sort("case")["brokers"].gather(case),
        )
    )


def _place() -> pl.Expr:
    return pl.concat_str("broker_name", "broker_addr", separator=" at ")


def _ordered(answers: pl.DataFrame) -> pl.DataFrame:
    by = ("who", "topic")
    following = pl.col("ts").shift(-1).over(by)
    # A recording of changes has the last instant at which the answer before was still the same.
    confirmed = pl.max_horizontal("ts", pl.col("before_ts").shift(-1).over(by))
    ordered = answers.sort(*by, "ts", "record_id").with_columns(
        following.alias("next_ts"),
        pl.min_horizontal(confirmed, following).fill_null(pl.col("ts")).alias("confirmed_ts"),
    )
    return typed(ordered, ANSWERS).with_columns(ordered["brokers"])


def needed_answers(answers: pl.DataFrame, instants: pl.DataFrame) -> pl.DataFrame:
    """Return the answers that `address_changes` needs if its instants, and those of changes, are in ``instants``.

    ``answers`` is the frame of `listed_answers` or `routed_answers`, ``instants`` has columns CLIENT_INSTANTS. An
    answer like the one before and the one after is not needed, unless it is the last one before an instant.
    """
    by = ("who", "topic")
    text = pl.col("brokers").list.join("\n")
    begins = text.ne_missing(text.shift(1).over(by))
    ends = begins.shift(-1).over(by).fill_null(value=True)
    at_once = pl.col("confirmed_ts") == pl.col("next_ts")  # of such two, the record id decides which is the last
    asked = instants.select("who", pl.col("ts").alias("asked_ts"))
    marked = answers.with_columns((begins | ends | at_once).alias("is_needed"))
    near = with_state(marked, asked, ["who"], "ts", "asked_ts", after=True)
    is_last = (pl.col("asked_ts") <= pl.col("next_ts")).fill_null(value=False)
    return near.filter(pl.col("is_needed") | is_last).sort(*by, "ts", "record_id").select(answers.columns)


def address_changes(
    answers: pl.DataFrame, broker_name: str, broker_addr: str, stopped: dt.datetime, until: dt.datetime
) -> pl.DataFrame:
    """Return for each name server or client that had the address when the broker stopped, when it lost it.

    Columns: ADDRESS_CHANGES. ``answers`` is the frame of `listed_answers` or `routed_answers`. Answers after ``until``
    do not count.
    """
    begin = stopped - UNREGISTERED_BEFORE
    near = answers.filter((pl.col("next_ts").fill_null(until) >= begin) & (pl.col("ts") <= until))
    is_there = pl.col("brokers").list.contains(f"{broker_name} at {broker_addr}").fill_null(value=False)
    rows = near.with_columns(pl.min_horizontal("confirmed_ts", pl.lit(until, INSTANT)), is_there.alias("has"))
    by, has = ("who", "topic"), pl.col("has")
    rows = rows.with_columns(has.shift(1).over(by).fill_null(value=False).alias("had"))
    # Topics that the broker does not serve say nothing of it.
    had = rows.filter(has & (pl.col("ts") <= stopped)).select("who").unique()
    lost = rows.filter(pl.col("had") & ~has & (pl.col("ts") >= begin))
    first = (
        lost.sort("ts", "record_id")
        .group_by("who", maintain_order=True)
        .agg(pl.col("ts").first().alias("lost_ts"), pl.col("record_id").first().alias("lost_id"))
    )
    placed = rows.join(had, "who", how="semi").join(first, "who", how="left")
    is_lost = pl.col("lost_ts").is_not_null()
    back = placed.filter(~pl.col("had") & has & (pl.col("ts") > pl.col("lost_ts")))
    again = (
        back.sort("ts", "record_id")
        .group_by("who", maintain_order=True)
        .agg(pl.col("ts").first().alias("back_ts"), pl.col("record_id").first().alias("back_id"))
    )
    placed = placed.join(again, "who", how="left")
    before_loss = has & (~is_lost | (pl.col("ts") < pl.col("lost_ts")))
    # Topics that never had the broker lack nothing.
    serves = has.any().over(by)
    lacks = serves & ~has & (pl.col("ts") >= pl.col("lost_ts"))
    lacking = lacks & (pl.col("back_ts").is_null() | (pl.col("ts") < pl.col("back_ts")))
    ends = (
        placed.sort("confirmed_ts", "record_id")
        .group_by("who", maintain_order=True)
        .agg(
            pl.col("confirmed_ts").filter(before_loss).last().alias("had_ts"),
            pl.col("record_id").filter(before_loss).last().alias("had_id"),
            pl.col("confirmed_ts").filter(lacking).last().alias("lacked_ts"),
            pl.col("confirmed_ts").max().alias("last_ts"),
            *[pl.col(name).first() for name in ("lost_ts", "lost_id", "back_ts", "back_id")],
        )
    )
    capped = ends.with_columns(
        pl.min_horizontal("had_ts", pl.coalesce("lost_ts", "had_ts")),
        pl.min_horizontal("lacked_ts", pl.coalesce("back_ts", "lacked_ts")),
    )
    # A client that asked no more had stopped before.
    alive = capped.filter(pl.col("last_ts") >= begin)
    return typed(alive, ADDRESS_CHANGES).sort("who")
