"""When a broker did not answer: a silence between two of its answers in which somebody asked and got an error."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

import polars as pl

from mqreplay.decode.broker_runtime import NAME_SERVER_LOST
from mqreplay.evidence.frames import ms
from mqreplay.evidence.intervals import with_session, with_state
from mqreplay.words.keys import BROKER

ERRORS_KEPT = 30  # errors kept as evidence, the first
# A pull waits 15-30 s at the broker: one that fails may have been sent before the broker's last answer to another.
LONG_POLL = dt.timedelta(seconds=35)
POLLED_EACH = dt.timedelta(seconds=1)
SEEN_LATE = dt.timedelta(seconds=30)
RUNTIME, PULL = "silver.broker_runtime", "silver.pull"
HEARTBEAT, ROUTE = "silver.heartbeat", "gold.pull_route"


def answers_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return each second in which a broker answered a pull. ``pull`` are any part of the pulls.

    Columns: broker_name, broker_id, ts.
    """
    answered = pull.filter(pl.col("response_code").is_not_null())
    ts = pl.coalesce("response_ts", "request_ts").dt.truncate("1s")
    return answered.select(*BROKER, ts.alias("ts")).unique()


def heartbeat_answers_of_shard(heartbeat: pl.DataFrame, down_s: int) -> pl.DataFrame:
    """Return the first and the last answer of each broker in every ``down_s`` seconds, of any part of the heartbeats.

    Columns: broker_name, broker_id, ts. They show each silence of ``down_s`` seconds with its ends, and no other one.
    """
    ts = pl.coalesce("response_ts", "ts").alias("ts")
    answered = heartbeat.select(*BROKER, ts, "response_code").drop_nulls("response_code")
    spans = answered.group_by(*BROKER, (ms("ts") // max(1, down_s * 1000)).alias("_span"))
    ends = spans.agg(pl.concat_list(pl.col("ts").min(), pl.col("ts").max()).alias("ts"))
    return ends.explode("ts").select(*BROKER, "ts").unique()


def merged_answers(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of `answers_of_shard` of several shards, each second of a broker once."""
    return pl.concat([*parts]).unique()


def errors_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return each pull that ended in an error. ``pull`` are any part of the pulls.

    Columns: broker_name, broker_id, ts, record_id.
    """
    failed = pull.filter(pl.col("error").is_not_null())
    return failed.select(*BROKER, pl.col("request_ts").alias("ts"), "record_id")


def failovers_of_shard(pull_route: pl.DataFrame) -> pl.DataFrame:
    """Return the pulls that went to a slave as the master was gone: one row a pull.

    Columns: broker_name, ts, consumer_group, topic, queue_id, client_id, slave_id, record_id. ``pull_route`` are any
    part of gold.pull_route.
    """
    gone = pull_route.filter(pl.col("cause") == "master_gone")
    return gone.select(
        "broker_name",
        pl.col("request_ts").alias("ts"),
        *("consumer_group", "topic", "queue_id", "client_id"),
        pl.col("actual_broker_id").alias("slave_id"),
        "record_id",
    )


def with_outage(failovers: pl.DataFrame, outages: pl.DataFrame, after_s: int, gap_s: int) -> pl.DataFrame:
    """Add ``outage_ts``: when the outage of the master began that sent the pull to a slave; null where none is known.

    Pulls belong to the last outage of their master that had begun, until ``after_s`` seconds after its end, and as long
    as they go on without a pause of more than ``gap_s`` seconds. ``outages`` is the frame of `broker_outages`.
    """
    masters = outages.filter(pl.col("broker_id") == 0)
    began = masters.select("broker_name", pl.col("from_ts").alias("outage_ts"), pl.col("to_ts").alias("outage_to"))
    # The first error that marks the begin of an outage may come a little after the first pull that it sent away.
    early = (pl.col("ts") + SEEN_LATE).alias("_ts")
    near = with_state(failovers.with_columns(early), began, "broker_name", "_ts", "outage_ts")
    inside = pl.col("ts") <= pl.col("outage_to") + dt.timedelta(seconds=after_s)
    sessions = with_session(near, ("broker_name", "outage_ts"), "ts", "ts", gap_s)
    belongs = inside.any().over("broker_name", "outage_ts", "session")
    known = sessions.with_columns(pl.when(belongs).then("outage_ts").alias("outage_ts"))
    return known.select(*failovers.columns, "outage_ts")


def broker_outages(
    broker_runtime: pl.DataFrame,
    heartbeat: pl.DataFrame,
    pull_answers: pl.DataFrame,
    pull_errors: pl.DataFrame,
    failovers: pl.DataFrame,
    down_s: int,
    unseen_down_s: int,
    from_error: bool = False,
) -> pl.DataFrame:
    """Return one row per outage of a broker.

    Columns: broker_name, broker_id, from_ts, to_ts, errors, polled, keys.

    ``pull_answers``, ``pull_errors`` and ``failovers`` are the rows of all shards. ``polled`` says whether the runtime
    table was polled meanwhile. A silence must last ``down_s`` seconds if it was, and else ``unseen_down_s``: clients
    may have had nothing to ask. ``from_error``: polls are seconds apart, as the recorder's are, so that a silence
    counts from its first error on: one poll that fails is no outage. ``errors`` counts them without failovers, and
    ``keys`` are table_name and record_id of the first of these. Without a later answer the outage ends with its last
    error.
    """
    silences = _silences(_answers(broker_runtime, heartbeat, pull_answers), down_s)
    met = _within(silences, _errors(broker_runtime, heartbeat, pull_errors, failovers))
    is_direct = pl.col("table_name") != ROUTE
    outages = met.group_by(*BROKER, "since_ts", "until_ts").agg(
        is_direct.sum().cast(pl.Int64).alias("errors"),
        (pl.col("table_name") == RUNTIME).any().alias("polled"),
        pl.col("ts").filter(pl.col("ts") > pl.col("since_ts")).min().alias("first_ts"),
        pl.col("ts").max().alias("last_ts"),
        pl.struct("ts", "table_name", "record_id").filter(is_direct).unique().sort().head(ERRORS_KEPT).alias("keys"),
    )
    ended = outages.with_columns(pl.coalesce("until_ts", "last_ts").alias("to_ts"))
    enough_ms = pl.when("polled").then(down_s * 1000).otherwise(unseen_down_s * 1000)
    # Polls come each second, so the first error marks the start; clients ask seldom, so the last answer does. So it is
    # with one error and nothing after it.
    is_span = pl.col("polled") & (pl.col("first_ts") < pl.col("to_ts"))
    began = pl.when(is_span).then("first_ts").otherwise("since_ts")
    # A route without the master proves nothing by itself: a name server may have lost a broker that answers.
    first_error = pl.max_horizontal("since_ts", pl.col("first_ts") - POLLED_EACH)
    silent_since = pl.when(pl.col("polled") & from_error).then(first_error).otherwise("since_ts")
    measured = ended.with_columns(silent_since.alias("silent_ts"))
    found = measured.filter((_milliseconds("silent_ts", "to_ts") >= enough_ms) & (pl.col("errors") > 0))
    key = pl.struct(pl.element().struct.field("table_name"), pl.element().struct.field("record_id"))
    return found.select(
        *BROKER, began.alias("from_ts"), "to_ts", "errors", "polled", pl.col("keys").list.eval(key).alias("keys")
    )


def restarts(broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the last answer before a broker started again, by its boot time.

    Columns: broker_name, broker_id, from_ts.
    """
    polled = broker_runtime.filter(pl.col("boot_ts").is_not_null()).sort("ts")
    by = (*BROKER, "broker_addr")
    before = pl.col("ts", "boot_ts").shift(1).over(by).name.suffix("_before")
    again = polled.with_columns(before).filter(pl.col("boot_ts") > pl.col("boot_ts_before"))
    return again.select(*BROKER, pl.col("ts_before").alias("from_ts"))


def _answers(broker_runtime: pl.DataFrame, heartbeat: pl.DataFrame, pull_answers: pl.DataFrame) -> pl.DataFrame:
    """Return each instant at which a broker answered.

    Columns: broker_name, broker_id, ts.
    """
    polled = broker_runtime.filter(pl.col("error").is_null()).select(*BROKER, "ts")
    beats = heartbeat.filter(pl.col("response_code").is_not_null())
    heard = beats.select(*BROKER, pl.coalesce("response_ts", "ts").alias("ts"))
    return pl.concat([polled, heard, pull_answers.select(*BROKER, "ts")]).drop_nulls("broker_id").unique()


def _errors(
    broker_runtime: pl.DataFrame, heartbeat: pl.DataFrame, pull_errors: pl.DataFrame, failovers: pl.DataFrame
) -> pl.DataFrame:
    """Return each row that shows that a broker did not answer.

    Columns: broker_name, broker_id, ts, table_name, record_id.
    """
    # The master is gone where a pull failed over.
    masters = failovers.with_columns(pl.lit(0, pl.Int64).alias("broker_id"))
    failed = [
        # A name server also loses a broker that lives: its log alone is no outage (lost_brokers).
        (RUNTIME, broker_runtime.filter(~pl.col("error").str.starts_with(NAME_SERVER_LOST))),
        (HEARTBEAT, heartbeat.filter(pl.col("error").is_not_null())),
        (PULL, pull_errors),
        (ROUTE, masters),
    ]
    named = [rows.select(*BROKER, "ts", pl.lit(table).alias("table_name"), "record_id") for table, rows in failed]
    return pl.concat(named).drop_nulls([*BROKER, "ts"])


def _silences(answers: pl.DataFrame, down_s: int) -> pl.DataFrame:
    """Return the times without an answer of a broker; until_ts is null after the last answer.

    Columns: broker_name, broker_id, since_ts, until_ts, in this order.

    Rows are in the order of BROKER and since_ts.
    """
    between = answers.sort(*BROKER, "ts").select(
        *BROKER, pl.col("ts").alias("since_ts"), pl.col("ts").shift(-1).over(BROKER).alias("until_ts")
    )
    return between.filter(pl.col("until_ts").is_null() | (_milliseconds("since_ts", "until_ts") >= down_s * 1000))


def _within(silences: pl.DataFrame, errors: pl.DataFrame) -> pl.DataFrame:
    """Return the errors of each silence, with its since_ts and until_ts.

    An error may lie in several silences: a pull that failed may have been sent up to a long poll before a silence.
    Silences of one broker follow each other, so those of one error are neighbours: from the first that ends after it
    to the last that has begun by then.
    """
    never = dt.datetime.max.replace(tzinfo=dt.UTC)
    placed = silences.with_row_index("place").with_columns(pl.col("until_ts").fill_null(never).alias("end_ts"))
    began, ends = placed.select(*BROKER, "since_ts", "place"), placed.select(*BROKER, "end_ts", "place")
    asked = errors.with_columns(
        (pl.col("ts") + pl.when(pl.col("table_name") == PULL).then(LONG_POLL).otherwise(dt.timedelta())).alias("_until")
    )
    last = with_state(asked, began, BROKER, "_until", "since_ts", exact=False)
    both = with_state(last, ends, BROKER, "ts", "end_ts", after=True, exact=False, suffix="_first")
    places = pl.int_ranges(pl.col("place_first").cast(pl.Int64), pl.col("place").cast(pl.Int64) + 1)
    met = both.filter(pl.col("place_first") <= pl.col("place")).select(
        *BROKER, "ts", "table_name", "record_id", places.alias("place")
    )
    numbered = placed.select(pl.col("place").cast(pl.Int64), "since_ts", "until_ts")
    return met.explode("place").join(numbered, on="place")


def _milliseconds(from_ts: str, to_ts: str) -> pl.Expr:
    """Return the whole milliseconds between two instants, each cut to its own."""
    return ms(to_ts) - ms(from_ts)
