"""The state of a client at a pull: its suggestion for the queue, and its route to the broker.

Both come from earlier answers to this client: to its pulls of the queue, and of name servers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from mqreplay.evidence.arrays.distinct import key_codes
from mqreplay.evidence.arrays.frame_arrays import column_numbers, gathered, int64_series, ranks
from mqreplay.evidence.arrays.nearest import nearest
from mqreplay.evidence.brokers.routes import CLIENT_RUN_BROKER
from mqreplay.evidence.frames import columns
from mqreplay.evidence.intervals import INSTANT, utc, with_epoch
from mqreplay.words.time_span import EPOCH

UNKNOWN_SUGGESTION = -1  # the suggestion of an answer that came, or may have come, unrecorded; no broker id is negative
CLIENT_RUN_QUEUE = ("epoch", "client_id", "consumer_group", "topic", "broker_name", "queue_id")
CLIENT_RUN = ("epoch", "client_id")
SUBSCRIPTION: dict[str, pl.DataType] = columns("epoch", "client_id", "sub_version")


def first_subscriptions_of_shard(pull: pl.DataFrame, starts: Mapping[dt.datetime, dt.datetime]) -> pl.DataFrame:
    """Return the least sub_version of each client of a shard in each epoch.

    Columns: epoch, client_id, sub_version.

    ``starts`` are those of with_memory. Clients whose pulls have no sub_version have no row.
    """
    known = pull.select("request_ts", "client_id", "sub_version").drop_nulls("sub_version")
    return _first(with_epoch(known, "request_ts", starts).select(list(SUBSCRIPTION)))


def new_clients(parts: Iterable[pl.DataFrame], starts: Mapping[dt.datetime, dt.datetime]) -> pl.DataFrame:
    """Return the epoch and client_id of each client that began its epoch with an empty table of suggestions.

    ``parts`` are the results of first_subscriptions_of_shard for all shards. A sub_version is the millisecond in which
    the client subscribed; a client that subscribed since the recording surely covers all clients remembers nothing
    older.
    """
    first = _first(pl.concat([pl.DataFrame(schema=SUBSCRIPTION), *parts]))
    sure_ms = {utc(start): (utc(sure) - EPOCH) // dt.timedelta(milliseconds=1) for start, sure in starts.items()}
    sure = pl.DataFrame(list(sure_ms.items()), schema={"epoch": INSTANT, "sure_ms": pl.Int64}, orient="row")
    since_start = first.join(sure, on="epoch").filter(pl.col("sub_version") >= pl.col("sure_ms"))
    return since_start.select(CLIENT_RUN).sort(CLIENT_RUN)


def _first(subscriptions: pl.DataFrame) -> pl.DataFrame:
    return subscriptions.group_by(CLIENT_RUN).agg(pl.col("sub_version").min()).sort(CLIENT_RUN)


def with_memory(
    pull: pl.DataFrame, changes: pl.DataFrame, new: pl.DataFrame, starts: Mapping[dt.datetime, dt.datetime]
) -> pl.DataFrame:
    """Return the pulls of a shard in order, with the state of their clients:

    suggestion             the one kept for the queue, null if there was none, UNKNOWN_SUGGESTION if it is not known
    route_id, since        the client's route to the broker name (null: none was recorded), and since when it had it

    ``pull`` needs client_id, consumer_group, topic, broker_name, queue_id, its times, opaque, suggest_which_broker_id
    and error. ``changes`` is route_changes' frame, ``new`` is that of `new_clients`. ``starts`` maps each instant
    before which the recording has a gap to the instant from which it certainly covers all clients.
    """
    asked = with_epoch(pull, "request_ts", starts)
    key, of_route = key_codes(CLIENT_RUN_BROKER, asked, changes)
    request, _ = column_numbers(asked, "request_ts")
    route = nearest(key, request, of_route, column_numbers(changes, "known_ts")[0])
    return asked.with_columns(
        _kept_suggestion(asked, new).alias("suggestion"),
        gathered(changes["route_id"], route),
        gathered(changes["known_ts"], route).alias("since"),
    ).drop("epoch")


def _kept_suggestion(asked: pl.DataFrame, new: pl.DataFrame) -> pl.Series:
    client, of_new = key_codes(CLIENT_RUN, asked, new)
    last = _last_suggestion(asked)
    value, is_known = column_numbers(last.to_frame("last"), "last")
    is_first_of_new = ~is_known & np.isin(client, of_new)
    return int64_series(np.where(is_known, value, UNKNOWN_SUGGESTION), ~is_first_of_new)


def _last_suggestion(asked: pl.DataFrame) -> pl.Series:
    """Return what the client's last answer for the queue before the pull suggested, or UNKNOWN_SUGGESTION."""
    (key,) = key_codes(CLIENT_RUN_QUEUE, asked)
    request, _ = column_numbers(asked, "request_ts")
    response, is_answered = column_numbers(asked, "response_ts")
    suggested, suggests = column_numbers(asked, "suggest_which_broker_id")
    unseen = ~is_answered & asked["error"].is_null().to_numpy()
    answer = np.where(unseen, UNKNOWN_SUGGESTION, suggested)
    answers = np.flatnonzero(unseen | suggests)
    # Request ids rise within a client, so they order events in the same millisecond. Of several answers with the same
    # order an unrecorded one counts, else the greatest suggestion.
    answers = answers[np.lexsort((suggested[answers], unseen[answers]))]
    request_id, _ = column_numbers(asked, "opaque")
    came = np.where(is_answered, response, request)
    order = ranks(np.concatenate([request, came[answers]]), np.concatenate([request_id, request_id[answers]]))
    last = nearest(key, order[: len(key)], key[answers], order[len(key) :], side="strictly_before")
    return gathered(pl.Series(answer[answers]), last)
