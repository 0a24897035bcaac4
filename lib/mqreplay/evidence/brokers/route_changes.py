"""The addresses of brokers that each client got from name servers, with times."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

import polars as pl

from mqreplay.evidence.arrays.distinct import distinct_rows
from mqreplay.evidence.time_spans import INSTANT, with_epoch

NAME = ("epoch", "client_id", "broker_name")
ADDRESSES = pl.List(pl.Struct({"key": pl.Int64, "value": pl.String}))  # broker id, address
BROKERS = pl.List(pl.Struct({"broker_name": pl.String, "broker_addrs": ADDRESSES}))
SCHEMA: dict[str, pl.DataType] = {
    "epoch": INSTANT,
    "client_id": pl.String(),
    "broker_name": pl.String(),
    "known_ts": INSTANT,
    "route_id": pl.Int64(),
    "broker_addrs": ADDRESSES,
    "before": ADDRESSES,
}


def route_changes(route: pl.DataFrame, starts: Collection[dt.datetime]) -> pl.DataFrame:
    """Return one row per broker name in each changed route of a client.

    Columns: epoch, client_id, broker_name, known_ts, route_id, broker_addrs, before.

    ``known_ts`` is when the client got ``broker_addrs``, ``before`` are its addresses until then (null: none).
    ``route_id`` is equal if broker name, addresses and previous addresses are. Rows are in order of NAME and
    ``known_ts``. ``starts`` are the instants before which the recording has a gap.
    A client takes over a topic's brokers only if that topic's route changed
    (MQClientInstance#updateTopicRouteInfoFromNameServer).
    """
    answered = with_epoch(route, "ts", starts).filter(pl.col("broker_datas").is_not_null())
    answered = answered.with_columns(
        pl.coalesce("response_ts", "ts").alias("known_ts"), pl.col("broker_datas").cast(BROKERS)
    ).with_columns(_content(answered))
    answered = answered.sort("epoch", "client_id", "topic", "known_ts", "ts", "record_id")
    last = pl.col("content").shift().over("epoch", "client_id", "topic")
    changed = (
        answered.filter(pl.col("content").ne_missing(last))
        .select("epoch", "client_id", "known_ts", "record_id", "broker_datas")
        .explode("broker_datas")
        .unnest("broker_datas")
        .filter(pl.col("broker_name").is_not_null())  # no pull names such a broker
        .sort(*NAME, "known_ts", "record_id", maintain_order=True)
    )
    # Of several changes at one instant the one with the greatest route id counts as the last.
    known = _with_route_id(changed.with_columns(pl.col("broker_addrs").shift().over(NAME).alias("before")))
    return known.sort(*NAME, "known_ts", "route_id").select([pl.col(name).cast(of) for name, of in SCHEMA.items()])


def _content(answered: pl.DataFrame) -> pl.Series:
    """Return a number for each answer, equal if both lists have the same items in any order."""
    lists = answered.select("queue_datas", pl.col("broker_datas").cast(BROKERS))
    place, row_of = distinct_rows([column.to_arrow() for column in lists])
    numbers: dict[str, int] = {}
    found = [
        numbers.setdefault(repr((_sorted(queues), _sorted(brokers))), len(numbers))
        for queues, brokers in lists.gather(row_of).rows()
    ]
    return pl.Series("content", found, pl.Int64).gather(place)


def _sorted(value: object) -> object:
    """Return the value with the items of every list in one order."""
    if isinstance(value, list):
        return sorted((_sorted(item) for item in value), key=repr)
    return {name: _sorted(item) for name, item in value.items()} if isinstance(value, dict) else value


def _with_route_id(known: pl.DataFrame) -> pl.DataFrame:
    texts = known.with_columns(_text("broker_addrs"), _text("before"))
    of_route = ["broker_name", "broker_addrs_text", "before_text"]
    ids = texts.select(of_route).unique().sort(of_route).with_row_index("route_id", offset=1)
    return texts.join(ids, on=of_route, how="left", nulls_equal=True)


def _text(addresses: str) -> pl.Expr:
    """Return the addresses as JSON text, ordered by broker id; null if there are none."""
    of_entry = pl.element().struct
    value = pl.format(',"value":"{}"', of_entry.field("value")).fill_null("")
    entry = pl.format('{{"key":{}{}}}', of_entry.field("key"), value)
    in_order = pl.col(addresses).list.eval(pl.element().sort_by(of_entry.field("key")))
    return pl.format("[{}]", in_order.list.eval(entry).list.join(",")).alias(f"{addresses}_text")
