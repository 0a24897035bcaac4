"""The commit logs of masters and slaves at the polls of their runtime tables, and how far slaves are behind.

A log only grows while its broker runs, so the end at the last poll of the master bounds what a slave lacks from below.
The settings of the brokers' stores say when they flush, and how a master waits for its slaves.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final, NamedTuple

import polars as pl

from mqreplay.core.flush import FlushPolicy, commit_log_policy, due_after
from mqreplay.core.replication import ReplicaSettings, byte_count_range, replica_settings
from mqreplay.core.store_settings import is_set
from mqreplay.evidence.brokers.broker_descriptions import PROPERTIES, descriptions, major_version
from mqreplay.evidence.frames import columns
from mqreplay.evidence.intervals import with_state
from mqreplay.words.keys import BROKER
from mqreplay.words.time_span import EPOCH

RUN = (*BROKER, "boot_ts")  # a broker from one start to the next
TO_FLUSH, TO_COMMIT = "remainHowManyDataToFlush", "remainHowManyDataToCommit"
PUTS = "msgPutTotalTodayNow"
TEXTS = (TO_FLUSH, TO_COMMIT, PUTS)
SLICE = 200_000  # tables that are looked at at once: each has up to a hundred figures
BEHIND_COLUMNS = ("master_end", "behind_bytes", "behind_messages", "behind_ms", "behind_since")
DLEDGER: Final = ("enableDLegerCommitLog", "enableDLedgerCommitLog")
LOG_SETTINGS: Final[dict[str, pl.DataType]] = {
    **columns("ts", "broker_name", "broker_id", "broker_role"),
    "fall_behind_max": pl.Int64(),
    **columns("turns_ms", "thorough_ms", "is_dledger"),
    "by_controller": pl.Boolean(),
    "store": pl.Int64(),  # the place of the description among those of described_stores
}


def log_polls(broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the answered polls that state the end of the commit log, in order of time.

    Columns: day, broker_name, broker_id, member (the broker's address, else its id), ts, boot_ts, since_5, log_end,
    puts (messages stored since the broker's midnight), flush_min and flush_max, commit_max (bytes that are not flushed,
    and not committed to the file), record_id. A figure that was not recorded is null.
    """
    answered = broker_runtime.filter(pl.col("error").is_null() & pl.col("commit_log_max_offset").is_not_null())
    ordered = answered.sort("ts")
    known = ordered.select(
        "day",
        *BROKER,
        pl.coalesce("broker_addr", pl.col("broker_id").cast(pl.String)).alias("member"),
        "ts",
        pl.col("boot_ts").fill_null(EPOCH),
        (major_version("broker_version_desc") >= 5).alias("since_5"),
        pl.col("commit_log_max_offset").alias("log_end"),
        "record_id",
    )
    tables = ordered.select(pl.col("runtime").cast(PROPERTIES))
    parts = [_figures(part) for part in tables.iter_slices(SLICE)]
    polls = pl.concat(
        [known, pl.concat([pl.DataFrame(schema=dict.fromkeys(TEXTS, pl.String)), *parts])], how="horizontal"
    )
    texts = pl.concat([polls[TO_FLUSH], polls[TO_COMMIT].alias(TO_FLUSH)]).drop_nulls().unique()
    ranges = {text: byte_count_range(text) for text in texts}
    least = {text: found[0] for text, found in ranges.items() if found is not None}
    largest = {text: found[1] for text, found in ranges.items() if found is not None}
    return polls.select(
        *[name for name in known.columns if name != "record_id"],
        pl.col(PUTS).cast(pl.Int64, strict=False).alias("puts"),
        _read(TO_FLUSH, least).alias("flush_min"),
        _read(TO_FLUSH, largest).alias("flush_max"),
        _read(TO_COMMIT, largest).alias("commit_max"),
        "record_id",
    )


def _figures(tables: pl.DataFrame) -> pl.DataFrame:
    """Return the texts of TEXTS in each runtime table, in their order."""
    numbered = tables.with_row_index("number")
    pairs = numbered.explode("runtime").unnest("runtime").filter(pl.col("key").is_in(TEXTS))
    named = pairs.group_by("number").agg(
        pl.col("value").filter(pl.col("key") == name).first().alias(name) for name in TEXTS
    )
    return numbered.select("number").join(named, "number", how="left", maintain_order="left").drop("number")


def _read(name: str, values: dict[str, int]) -> pl.Expr:
    return pl.col(name).replace_strict(values, default=None, return_dtype=pl.Int64)


def slaves_of(polls: pl.DataFrame) -> pl.DataFrame:
    """Return the polls of slaves: not those of a replica that a controller made the master, at the same address."""
    masters = polls.filter(pl.col("broker_id") == 0).select("broker_name", "ts", pl.col("member").alias("master"))
    others = polls.filter(pl.col("broker_id") != 0)
    known = with_state(others, masters, "broker_name", "ts")
    return known.filter(pl.col("master").is_null() | (pl.col("master") != pl.col("member"))).drop("master")


def with_behind(slaves: pl.DataFrame, polls: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of slaves (broker_name, ts, log_end) with what they lack of their master's log: BEHIND_COLUMNS.

    behind_bytes, behind_ms: at least so much: by the last poll of the master, and since its first poll with more
    behind_messages: at most so many: those stored since the master's last poll whose log the slave has
    behind_since: the poll that behind_ms counts from
    """
    masters = polls.filter(pl.col("broker_id") == 0)
    last = masters.select(
        "broker_name",
        "ts",
        pl.col("log_end").alias("master_end"),
        pl.col("boot_ts").alias("master_boot"),
        pl.col("puts").alias("master_puts"),
    )
    rows = with_state(slaves, last, "broker_name", "ts")
    by_end = (
        masters.group_by("broker_name", pl.col("boot_ts").alias("master_boot"), "log_end")
        .agg(pl.col("ts").min().alias("behind_since"), pl.col("puts").max().alias("puts_before"))
        .sort("log_end")
    )
    of_run = ["broker_name", "master_boot"]
    ordered = rows.sort("log_end")
    more = with_state(ordered, by_end.drop("puts_before"), of_run, "log_end", after=True, exact=False)
    has = with_state(more, by_end.drop("behind_since"), of_run, "log_end")
    lacks = (pl.col("master_end") - pl.col("log_end")).clip(lower_bound=0)
    is_behind, since = pl.col("behind_bytes") > 0, pl.col("behind_since")
    messages = pl.col("master_puts") - pl.col("puts_before")
    return (
        has.with_columns(lacks.alias("behind_bytes"))
        .with_columns(
            pl.when(is_behind).then(since).alias("behind_since"),
            pl.when(is_behind)
            .then((pl.col("ts") - since).dt.total_milliseconds())
            .when(~is_behind)
            .then(0)
            .alias("behind_ms"),
            # The count begins anew at the broker's midnight.
            pl.when(is_behind)
            .then(pl.when(messages >= 0).then(messages))
            .when(~is_behind)
            .then(0)
            .alias("behind_messages"),
        )
        .sort("ts")
        .select(*slaves.columns, *BEHIND_COLUMNS)
    )


def silent_slaves(polls: pl.DataFrame, silent_s: int) -> pl.DataFrame:
    """Return the polls of masters at which a slave had answered nothing for ``silent_s`` seconds, one row a slave.

    Columns: broker_name, broker_id, ts, log_end (of the slave, at its last answer), answered_ts, record_id (of the
    master's poll). A slave that answers as the master, or under another id, is not silent.
    """
    masters = polls.filter(pl.col("broker_id") == 0).select("broker_name", "ts", "record_id")
    members = slaves_of(polls).select("broker_name", "member").unique()
    answers = polls.select("broker_name", "member", "broker_id", "ts", "log_end", pl.col("ts").alias("answered_ts"))
    last = with_state(masters.join(members, "broker_name"), answers, ["broker_name", "member"], "ts")
    is_silent = pl.col("ts") - pl.col("answered_ts") > pl.duration(seconds=silent_s)
    found = last.filter(is_silent & (pl.col("broker_id") != 0))
    return found.select(*BROKER, "ts", "log_end", "answered_ts", "record_id")


def with_slaves(masters: pl.DataFrame, polls: pl.DataFrame, within_s: int) -> pl.DataFrame:
    """Return polls of masters with ``slaves``: how many slaves answered in the last ``within_s`` seconds.

    ``near_slaves`` counts those that lack less than ``fall_behind_max`` bytes, a column of ``masters``. Both are null
    in the first ``within_s`` seconds of the polls of a broker name.
    """
    first = polls.group_by("broker_name").agg(pl.col("ts").min().alias("first_ts"))
    slaves = slaves_of(polls)
    members = slaves.select("broker_name", "member").unique().rename({"member": "slave"})
    answers = slaves.select(
        "broker_name",
        pl.col("member").alias("slave"),
        "ts",
        pl.col("log_end").alias("slave_end"),
        pl.col("ts").alias("answered_ts"),
    )
    each = with_state(
        masters.select("record_id", "broker_name", "ts", "log_end", "fall_behind_max").join(members, "broker_name"),
        answers,
        ["broker_name", "slave"],
        "ts",
    ).filter(pl.col("ts") - pl.col("answered_ts") <= pl.duration(seconds=within_s))
    # HAService#isSlaveOK, with the end of the slave's log for what it has confirmed.
    near = pl.col("log_end") - pl.col("slave_end") < pl.col("fall_behind_max")
    counted = each.group_by("record_id").agg(
        pl.len().cast(pl.Int64).alias("slaves"), near.sum().cast(pl.Int64).alias("near_slaves")
    )
    joined = masters.join(counted, "record_id", how="left").join(first, "broker_name", how="left")
    is_known = pl.col("ts") - pl.col("first_ts") > pl.duration(seconds=within_s)
    counts = [pl.when(is_known).then(pl.col(name).fill_null(0)).alias(name) for name in ("slaves", "near_slaves")]
    return joined.with_columns(counts).drop("first_ts")


class Described(NamedTuple):
    """What a brokers.json says of a broker's store, from ``ts`` on."""

    key: tuple[str, int]
    ts: dt.datetime
    policy: FlushPolicy
    replicas: ReplicaSettings
    is_dledger: bool


def described_stores(broker: pl.DataFrame) -> list[Described]:
    """Return the settings of each description of a broker, by their times. ``broker`` is silver.broker."""
    found = []
    for row, named in descriptions(broker.sort("ts")):
        role = row["broker_role"] or ("ASYNC_MASTER" if row["broker_id"] == 0 else "SLAVE")
        is_dledger = any(is_set(named, name) for name in DLEDGER)
        key, policy = (row["broker_name"], row["broker_id"]), commit_log_policy(named)
        found.append(Described(key, row["ts"], policy, replica_settings(role, named), is_dledger))
    return found


def settings_of(stores: Sequence[Described]) -> pl.DataFrame:
    """Return the settings as rows of LOG_SETTINGS."""
    rows = [
        (
            *(of.ts, *of.key, of.replicas.role, of.replicas.fall_behind_max, *due_after(of.policy)),
            *(of.is_dledger, of.replicas.enable_controller_mode, place),
        )
        for place, of in enumerate(stores)
    ]
    return pl.DataFrame(rows, LOG_SETTINGS, orient="row")
