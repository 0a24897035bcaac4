"""Holes of the recorder: it was stopped or killed, polled nothing, or could not reach the whole cluster.

Missing records in a hole are not findings: each hole is a row of gold.replay_gap.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import polars as pl

from mqreplay.evidence.frames import columns, filled, typed
from mqreplay.evidence.gap_rows import gap_rows
from mqreplay.evidence.intervals import INSTANT, with_state
from mqreplay.words.keys import BROKER

HOLES: dict[str, pl.DataType] = columns("from_ts", "to_ts", "reason")
RECORDER = "recorder"  # the decision of gaps that affect all decisions
RECORDER_STOPPED = "the recorder did not run"
SKIPPED = "the recorder made no polls"
# The content of the recorder's requests.
ASKED = {
    "GET_ALL_CONSUMER_OFFSET": "consumer offsets",
    "GET_ALL_DELAY_OFFSET": "delay offsets",
    "GET_ALL_MESSAGE_REQUEST_MODE": "modes of groups",
    "GET_ALL_SUBSCRIPTIONGROUP_CONFIG": "subscription groups",
    "GET_ALL_TOPIC_CONFIG": "topic settings",
    "GET_ALL_TOPIC_LIST_FROM_NAMESERVER": "the list of topics",
    "GET_BROKER_CLUSTER_INFO": "the list of brokers",
    "GET_BROKER_CONFIG": "broker settings",
    "GET_BROKER_RUNTIME_INFO": "broker figures",
    "GET_BROKER_HA_STATUS": "states of slaves",
    "GET_CONSUMER_CONNECTION_LIST": "connections of consumers",
    "GET_CONSUMER_LIST_BY_GROUP": "members of groups",
    "GET_CONSUMER_RUNNING_INFO": "queues that clients hold",
    "GET_CONSUME_STATS": "consume statistics",
    "GET_MAX_OFFSET": "last offsets of queues",
    "GET_MIN_OFFSET": "first offsets of queues",
    "GET_NAMESRV_CONFIG": "name server settings",
    "GET_ROUTEINFO_BY_TOPIC": "routes of topics",
    "GET_TOPIC_STATS_INFO": "first and last offsets of queues",
}
ADDRESS = r"\S+:[0-9]+"
OUTAGE_SLACK = dt.timedelta(seconds=30)  # polls around an outage are late by their timeout
CUT_OFF = "no broker and no name server answered the recorder, but the brokers kept running"


def recorder_holes(
    recorder_event: pl.DataFrame, broker_runtime: pl.DataFrame, cluster_info: pl.DataFrame
) -> pl.DataFrame:
    """Return the times without polls, in order. Without recorder events there are none.

    Columns: from_ts, to_ts, reason.
    """
    if recorder_event.is_empty():
        return pl.DataFrame(schema=HOLES)
    parts = [
        _stopped(recorder_event, broker_runtime),
        _skipped(recorder_event),
        _cut_off(broker_runtime, cluster_info),
    ]
    found = pl.concat([typed(part, HOLES) for part in parts])
    return found.filter(pl.col("to_ts") > pl.col("from_ts")).sort("from_ts", "to_ts")


def _stopped(recorder_event: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the times from the last record before a start to the start, except the first start."""
    polling = recorder_event.filter(~pl.col("kind").is_in(["start", "waiting"]))
    ran = pl.concat([polling.select("ts"), broker_runtime.select("ts")])
    starts = recorder_event.filter(pl.col("kind") == "start").select(pl.col("ts").alias("to_ts")).sort("to_ts")
    last = with_state(starts, ran.rename({"ts": "from_ts"}), (), "to_ts", "from_ts", exact=False)
    return last.drop_nulls("from_ts").with_columns(pl.lit(RECORDER_STOPPED).alias("reason"))


def _skipped(recorder_event: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which no poll of any kind was made to any broker."""
    all_polls = (pl.col("kind") == "skipped") & pl.col("broker_name").is_null() & pl.col("request").is_null()
    return recorder_event.filter(all_polls).select(
        "from_ts", "to_ts", pl.format("{}: {}", pl.lit(SKIPPED), pl.col("detail").fill_null("")).alias("reason")
    )


def _cut_off(broker_runtime: pl.DataFrame, cluster_info: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which no server answered although all brokers kept running and received messages.

    A cluster that received nothing, or whose brokers were restarted, was really down.
    """
    targets = pl.concat(
        [
            broker_runtime.select(
                pl.concat_str(*BROKER, separator="-").alias("target"), "ts", pl.col("error").is_null().alias("ok")
            ),
            cluster_info.select(pl.col("namesrv_addr").alias("target"), "ts", pl.col("error").is_null().alias("ok")),
        ]
    ).drop_nulls("target")
    count = targets["target"].n_unique()
    if count < 2 or not cluster_info["namesrv_addr"].drop_nulls().len():
        return pl.DataFrame(schema=HOLES)
    changed = pl.col("ok").ne_missing(pl.col("ok").shift(1).over("target").fill_null(True))
    steps = targets.sort("ts").filter(changed).sort("ts")
    down = steps.with_columns(pl.when("ok").then(-1).otherwise(1).cum_sum().alias("down"))
    spans = down.select("down", pl.col("ts").alias("from_ts"), pl.col("ts").shift(-1).alias("to_ts")).filter(
        (pl.col("down") == count) & pl.col("to_ts").is_not_null()
    )
    went_on = [row for row in spans.iter_rows(named=True) if _went_on(broker_runtime, row["from_ts"], row["to_ts"])]
    return pl.DataFrame(went_on, schema={"down": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT}).with_columns(
        pl.lit(CUT_OFF).alias("reason")
    )


def _went_on(broker_runtime: pl.DataFrame, from_ts: dt.datetime, to_ts: dt.datetime) -> bool:
    """Return whether no broker was restarted meanwhile, and at least one commit log grew."""
    answered = broker_runtime.filter(pl.col("error").is_null()).sort("ts")
    before = answered.filter(pl.col("ts") < from_ts).group_by(BROKER).last()
    after = answered.filter(pl.col("ts") >= to_ts).group_by(BROKER).first()
    met = before.join(after, BROKER, suffix="_after")
    same = (met["boot_ts"] == met["boot_ts_after"]).fill_null(True).all()
    grew = (met["commit_log_max_offset_after"] > met["commit_log_max_offset"]).fill_null(False).any()
    return bool(len(met) and same and grew)


def watched(broker_runtime: pl.DataFrame, holes: pl.DataFrame) -> pl.DataFrame:
    """Return the polls of brokers without errors in holes; each broker counts as answering at both ends of a hole.

    So a silence of a broker ends at the start of a hole, and another one begins after it.
    """
    if holes.is_empty():
        return broker_runtime
    spans = holes.select("from_ts", "to_ts").sort("from_ts")
    met = with_state(broker_runtime, spans, (), "ts", "from_ts")
    inside = (pl.col("ts") <= pl.col("to_ts")) & pl.col("error").is_not_null()
    seen = met.filter(~inside.fill_null(False)).drop("from_ts", "to_ts")
    edges = pl.concat([spans.select(pl.col(name).alias("ts")) for name in ("from_ts", "to_ts")])
    brokers = broker_runtime.select(BROKER).unique()
    marks = filled(brokers.join(edges, how="cross"), broker_runtime.schema)
    return pl.concat([seen.select(broker_runtime.columns), marks])


def watched_until(frames: Sequence[pl.DataFrame]) -> dt.datetime | None:
    """Return the last instant of the recorder's polls; None without polls."""
    last = [frame["ts"].max() for frame in frames if len(frame)]
    return max(last, default=None)  # type: ignore[type-var, return-value]


def hole_gaps(holes: pl.DataFrame, recorder_event: pl.DataFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """Return the gaps of the recorder: holes, steps of its clock, missing polls, unreachable servers.

    A broker that did not answer in one of ``outages`` (BROKER, from_ts, to_ts) is a finding, not a gap.
    """
    whole = holes.select("from_ts", "to_ts", "reason", pl.lit(None, pl.String).alias("broker_name"))
    stepped = recorder_event.filter(pl.col("kind") == "clock_step").select(
        pl.col("ts").alias("from_ts"),
        pl.col("ts").alias("to_ts"),
        pl.format(
            "the clock of the recorder's host was set {} s {}; times of the recording follow the old clock",
            (pl.col("count").abs() // 1000).fill_null(0),
            pl.when(pl.col("count") < 0).then(pl.lit("back")).otherwise(pl.lit("ahead")),
        ).alias("reason"),
        "broker_name",
    )
    partly = (pl.col("kind") == "skipped") & (pl.col("broker_name").is_not_null() | pl.col("request").is_not_null())
    lost = _unreachable(recorder_event)
    skipped = recorder_event.filter(partly).select(
        "from_ts",
        "to_ts",
        pl.format(
            "not polled: {} ({})",
            pl.col("request").replace(ASKED).fill_null("all"),
            pl.col("detail")
            .str.replace_all(f" to {ADDRESS}", "")
            .str.replace_all(f"{ADDRESS}: ", "")
            .fill_null("the reason is unknown"),
        )
        .str.replace_all("[0-9]+", "N")
        .alias("reason"),
        *BROKER,
    )
    rows = pl.concat([part.select("from_ts", "to_ts", "reason", "broker_name") for part in (whole, stepped)])
    of_brokers = pl.concat([part.select("from_ts", "to_ts", "reason", *BROKER) for part in (skipped, lost)])
    unexplained = _without_outages(of_brokers, outages).drop("broker_id")
    named = (
        pl.concat([rows, unexplained])
        .drop_nulls("from_ts")
        .with_columns(
            pl.col("from_ts").dt.date().alias("day"),
            pl.lit(RECORDER).alias("decision"),
            pl.lit("recorder_events").alias("evidence"),
            pl.lit(1, pl.Int64).alias("decisions"),
        )
    )
    return gap_rows(named)


def _unreachable(recorder_event: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which the recorder did not reach a broker or name server."""
    by = ["broker_name", "broker_id", "server"]
    reached = recorder_event.filter(pl.col("kind").is_in(["unreachable", "reachable"])).with_columns(
        pl.when(pl.col("broker_name").is_null()).then("detail").alias("server")
    )
    ended = (
        reached.sort("ts")
        .with_columns(pl.col("ts").shift(-1).over(by).alias("to_ts_"))
        .filter(pl.col("kind") == "unreachable")
    )
    what = (
        pl.when(pl.col("broker_name").is_null() & pl.col("detail").str.starts_with("proxy "))
        .then(pl.lit("a proxy"))
        .when(pl.col("broker_name").is_null())
        .then(pl.lit("a name server"))
        .otherwise(pl.format("broker id {}", pl.col("broker_id").fill_null(0)))
    )
    return ended.select(
        pl.col("ts").alias("from_ts"),
        pl.coalesce("to_ts_", "ts").alias("to_ts"),
        pl.format("the recorder did not reach {}", what).alias("reason"),
        *BROKER,
    )


def _without_outages(gaps: pl.DataFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """Return the gaps that do not start in an outage of their broker."""
    down = outages.select(*BROKER, pl.col("from_ts").alias("down_from"), pl.col("to_ts").alias("down_to"))
    numbered = gaps.with_row_index("gap")
    began = pl.col("from_ts").is_between(pl.col("down_from") - OUTAGE_SLACK, pl.col("down_to") + OUTAGE_SLACK)
    explained = numbered.join(down, BROKER).filter(began).select("gap")
    return numbered.join(explained, "gap", how="anti").drop("gap")
