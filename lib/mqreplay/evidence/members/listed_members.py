"""Members by the lists that the recorder polled (GET_CONSUMER_LIST_BY_GROUP), for clients without hooks.

A client is a member while the list of any broker names it; a broker that does not answer proves nothing. A broker drops
a client that unregisters, or whose channel closes, at once, and a silent one after 120 s (ConsumerManager). A broker
that has just started knows no member until the next heartbeats, so its first lists prove no absence.
"""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.core.pull_check import SYSTEM_ERROR
from mqreplay.evidence.frames import columns, ms, typed
from mqreplay.evidence.intervals import merge, with_state
from mqreplay.evidence.members.membership import LISTED, SIGNS, UNLISTED
from mqreplay.evidence.members.observed_clients import REPEATED_S, RUNNING_INFO, answers, polled
from mqreplay.words.keys import MEMBER

LIST = ["consumer_group", "broker_name", "broker_id"]
STARTED_S = 40  # clients send heartbeats every 30 s: until then a broker that started does not know them
EMPTY_S = 60  # the recorder polls the lists of groups without members less often
NO_ANSWER = "did not answer|(?i)time(d )?-?out"  # of errors: those that a silent client causes
VANISHED: dict[str, pl.DataType] = {
    **columns("consumer_group", "client_id"),
    "gone_ts": SIGNS["to_ts"],
    "silent": pl.Boolean(),
}


def listed_spans(
    consumer_list: pl.DataFrame, broker_runtime: pl.DataFrame, holes: pl.DataFrame, watched_until: dt.datetime | None
) -> pl.DataFrame:
    """Return the times in which lists of brokers named a client.

    Columns: consumer_group, client_id, from_ts, to_ts, gone (no longer in a broker's list), brokers.

    ``holes`` are the times without polls, ``watched_until`` is the recorder's last instant: the last list of a broker
    is valid until then, or until its next line was due.
    """
    lists = polled_lists(consumer_list, broker_runtime, holes, watched_until)
    # Skip lists that prove no absence in the search for one that does.
    proof = pl.when(pl.col("proves")).then("number").fill_null(strategy="backward").shift(-1).over(LIST)
    proof_ts = pl.when(pl.col("proves")).then("ts").fill_null(strategy="backward").shift(-1).over(LIST)
    each = (
        lists.with_columns(
            proof.alias("proof"), proof_ts.alias("proof_ts"), pl.col("ts").shift(-1).over(LIST).alias("next_ts")
        )
        .filter(pl.col("cid_all").list.len() > 0)
        .select(*LIST, "ts", "until", "number", "next_ts", "proof", "proof_ts", pl.col("cid_all").alias("client_id"))
        .explode("client_id")
        .sort("ts")
    )
    by = [*LIST, "client_id"]
    named = pl.col("number").shift(-1).over(by)
    goes_on = named == pl.col("number") + 1
    spans = each.select(
        *MEMBER,
        "broker_name",
        pl.col("ts").alias("from_ts"),
        pl.when(goes_on).then("next_ts").otherwise("until").alias("to_ts"),
        (pl.col("proof").is_not_null() & (named.is_null() | (named > pl.col("proof")))).alias("gone"),
        "proof_ts",
    )
    last = pl.col("gone", "proof_ts").sort_by("to_ts").last()
    merged = merge(spans, MEMBER, last, pl.col("broker_name").unique().alias("brokers")).sort("from_ts")
    # By the time that a list lacked the member, another broker named it.
    elsewhere = (pl.col("from_ts").shift(-1).over(MEMBER) <= pl.col("proof_ts")).fill_null(False)
    return merged.with_columns(pl.col("gone") & ~elsewhere).drop("proof_ts")


def answered_lists(consumer_list: pl.DataFrame) -> pl.DataFrame:
    """Return the lists that the recorder polled; the answer for a group without members is an empty list."""
    empty = pl.col("error").is_null() & (pl.col("response_code") == SYSTEM_ERROR)
    return consumer_list.filter(pl.col("client_id").is_null()).with_columns(
        pl.when(empty.fill_null(False)).then(pl.lit([], pl.List(pl.String))).otherwise("cid_all").alias("cid_all")
    )


def polled_lists(
    consumer_list: pl.DataFrame, broker_runtime: pl.DataFrame, holes: pl.DataFrame, watched_until: dt.datetime | None
) -> pl.DataFrame:
    """Return the recorder's lists of each broker in order of time.

    Columns: consumer_group, broker_name, broker_id, ts, until, number, cid_all, proves.

    See `listed_spans`. A list is valid from ``ts`` to ``until``.
    """
    known = answered_lists(consumer_list)
    boots = (
        broker_runtime.filter(pl.col("boot_ts").is_not_null())
        .select("broker_name", "broker_id", "ts", "boot_ts")
        .sort("ts")
    )
    at = with_state(known.sort("ts", "record_id"), boots, ["broker_name", "broker_id"], "ts")
    grown = (pl.col("ts") >= pl.col("boot_ts") + pl.duration(seconds=STARTED_S)).fill_null(True)
    end = pl.lit(watched_until, SIGNS["to_ts"])
    begun = holes.select(pl.col("from_ts").alias("hole_ts")).sort("hole_ts")
    ends = with_state(at, begun, (), "ts", "hole_ts", after=True)
    following = pl.col("ts").shift(-1).over(LIST)
    until = (
        pl.when(following.is_not_null())
        .then(pl.coalesce(pl.col("previous_ts").shift(-1).over(LIST), pl.col("hole_ts"), "ts"))
        .otherwise(pl.min_horizontal("hole_ts", end, pl.col("ts") + pl.duration(seconds=REPEATED_S)))
    )
    return ends.select(
        *LIST,
        "ts",
        pl.max_horizontal("ts", pl.min_horizontal(until, following)).alias("until"),
        pl.int_range(pl.len()).over(LIST).alias("number"),
        "cid_all",
        (pl.col("cid_all").is_not_null() & grown).alias("proves"),
    )


def absences(
    consumer_list: pl.DataFrame, broker_runtime: pl.DataFrame, holes: pl.DataFrame, watched_until: dt.datetime | None
) -> pl.DataFrame:
    """Return the times in which a broker answered that a group has no member: LIST, from_ts, to_ts.

    See `listed_spans`.
    """
    lists = polled_lists(consumer_list, broker_runtime, holes, watched_until)
    known = lists.with_columns(empty=pl.col("proves") & (pl.col("cid_all").list.len() == 0))
    following = pl.col("ts").shift(-1).over(LIST)
    goes_on = pl.col("empty").shift(-1).over(LIST) & (following <= pl.col("until") + pl.duration(seconds=EMPTY_S))
    until = pl.when(goes_on).then(following).otherwise("until")
    spans = known.select(*LIST, "empty", from_ts="ts", to_ts=until).filter("empty")
    return merge(spans, LIST)


def silences(assignment: pl.DataFrame, watched_until: dt.datetime | None, least_s: int) -> pl.DataFrame:
    """Return the times in which a client did not answer for ``least_s`` seconds.

    Columns: consumer_group, client_id, from_ts (last answer), to_ts (next answer, or null).

    A broker that does not know the client answers at once: that is not a silence. A client that never answered may not
    support the request.
    """
    answered = pl.col("error").is_null()
    by_client = pl.col("error").str.contains(NO_ANSWER) | (pl.col("response_code") > SYSTEM_ERROR)
    asked = polled(assignment, RUNNING_INFO).filter(answered | by_client.fill_null(False))
    ordered = asked.sort("ts", "record_id").with_columns(
        pl.when(answered).then("ts").forward_fill().over(MEMBER).alias("row_ts"),
        pl.when(~answered).then("previous_ts").alias("held_ts"),
        (answered != answered.shift(1)).over(MEMBER).fill_null(True).cum_sum().over(MEMBER).alias("run"),
    )
    failed = ordered.filter(~answered & pl.col("row_ts").is_not_null())
    runs = failed.group_by(*MEMBER, "run").agg(
        pl.max_horizontal("row_ts", "held_ts").first().alias("from_ts"), pl.col("ts").max().alias("last_ts")
    )
    following = answers(assignment).select(*MEMBER, pl.col("ts").alias("to_ts")).sort("to_ts")
    ended = with_state(runs, following, MEMBER, "last_ts", "to_ts", after=True)
    until = pl.coalesce("to_ts", pl.lit(watched_until, SIGNS["to_ts"]), "last_ts")
    long = (until.dt.epoch("ms") - ms("from_ts")) > least_s * 1000
    return ended.filter(long).select(*MEMBER, "from_ts", "to_ts")


def vanished(
    spans: pl.DataFrame, silent: pl.DataFrame, holes: pl.DataFrame, silent_s: int, assignment: pl.DataFrame
) -> pl.DataFrame:
    """Return the members that became silent, or that no broker named any more, with the time.

    Columns: consumer_group, client_id, gone_ts, silent.

    ``spans`` is the frame of `listed_spans`, ``silent`` that of `silences`. A member that answers again within
    ``silent_s`` seconds did not vanish, nor did one that connected to another broker, see `_connected_again`. An end
    at a hole of the recorder proves nothing.
    """
    lasting = pl.col("to_ts").is_null() | (ms("to_ts") - ms("from_ts") > silent_s * 1000)
    fell_silent = silent.filter(lasting).select(*MEMBER, pl.col("from_ts").alias("gone_ts"), "to_ts")
    back = _connected_again(spans, assignment, silent_s)
    gone = spans.join(back, [*MEMBER, "to_ts"], how="anti").filter("gone").select(*MEMBER, gone_ts="to_ts")
    met = with_state(
        gone, fell_silent.select(*MEMBER, pl.col("gone_ts").alias("silent_ts"), "to_ts"), MEMBER, "gone_ts", "silent_ts"
    )
    # A broker drops a client after its silence: both are one end.
    again = pl.col("silent_ts").is_not_null() & (pl.col("to_ts").is_null() | (pl.col("to_ts") > pl.col("gone_ts")))
    found = pl.concat(
        [
            fell_silent.select(*MEMBER, "gone_ts", pl.lit(True).alias("silent")),
            met.filter(~again).select(*MEMBER, "gone_ts", pl.lit(False).alias("silent")),
        ]
    )
    return typed(outside(found, "gone_ts", holes), VANISHED)


def _connected_again(spans: pl.DataFrame, assignment: pl.DataFrame, silent_s: int) -> pl.DataFrame:
    """Return the spans after which the same process connected again within ``silent_s`` seconds.

    Columns: consumer_group, client_id, to_ts.

    The proxy in a broker (local mode) keeps its clients to itself: a gRPC client that moves to another broker is listed
    by that one alone. It never answers polls, and its id is new in each process. Other clients may keep their id when
    they are started again, and connect to the same brokers.
    """
    answered = answers(assignment).select(MEMBER).unique()
    mute = polled(assignment, RUNNING_INFO).select(MEMBER).unique().join(answered, MEMBER, how="anti")
    following = [pl.col(name).shift(-1).over(MEMBER).alias(f"next_{name}") for name in ("from_ts", "brokers")]
    later = spans.sort("from_ts").with_columns(following).join(mute.with_columns(mute=True), MEMBER, how="left")
    soon = ms("next_from_ts") - ms("to_ts") <= silent_s * 1000
    elsewhere = pl.col("next_brokers").list.set_intersection("brokers").list.len() == 0
    return later.filter(soon & (elsewhere | pl.col("mute"))).select(*MEMBER, "to_ts")


def listed_signs(spans: pl.DataFrame, gone: pl.DataFrame, silent: pl.DataFrame) -> pl.DataFrame:
    """Return the signs of the listed spans without the silences, and of the instants at which members vanished.

    Columns: consumer_group, client_id, from_ts, to_ts, sign.
    """
    cut = _less(spans.select(*MEMBER, "from_ts", "to_ts"), silent)
    ends = gone.select(*MEMBER, pl.col("gone_ts").alias("from_ts"), pl.col("gone_ts").alias("to_ts"))
    parts = [cut.with_columns(pl.lit(LISTED).alias("sign")), ends.with_columns(pl.lit(UNLISTED).alias("sign"))]
    return pl.concat([typed(part, SIGNS) for part in parts])


def outside(rows: pl.DataFrame, ts: str, holes: pl.DataFrame) -> pl.DataFrame:
    """Return the rows whose instant is neither in a hole nor at its start."""
    begun = holes.select(pl.col("from_ts").alias("hole_from"), pl.col("to_ts").alias("hole_to")).sort("hole_from")
    met = with_state(rows, begun, (), ts, "hole_from")
    return met.filter((pl.col("hole_to") < pl.col(ts)).fill_null(True)).select(rows.columns)


def _less(spans: pl.DataFrame, silent: pl.DataFrame) -> pl.DataFrame:
    """Return the spans without the silences of their member."""
    cuts = silent.select(*MEMBER, pl.col("from_ts").alias("cut_from"), pl.col("to_ts").alias("cut_to"))
    met = spans.join(cuts, MEMBER, how="left").sort("cut_from")
    ends_after = pl.col("cut_to").is_null() | (pl.col("cut_to") > pl.col("from_ts"))
    inside = ((pl.col("cut_from") < pl.col("to_ts")) & ends_after).fill_null(False)
    of_span = met.group_by(*MEMBER, "from_ts", "to_ts").agg(pl.col("cut_from", "cut_to").filter(inside))
    begins = pl.concat_list(pl.col("from_ts"), pl.col("cut_to"))
    ends = pl.concat_list(pl.col("cut_from"), pl.col("to_ts"))
    each = of_span.select(*MEMBER, begins.alias("from_ts"), ends.alias("to_ts")).explode("from_ts", "to_ts")
    return each.filter(pl.col("to_ts") >= pl.col("from_ts"))
