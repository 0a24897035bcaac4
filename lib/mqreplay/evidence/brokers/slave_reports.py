"""What masters of 5.x report of their slaves: each connection, and how much of the commit log it confirmed.

A slave reports its own end of the log to its master with each answer (DefaultHAClient#reportSlaveMaxOffset), so the
master's figures are newer than any poll of the slave. A connection that is silent for haHousekeepingInterval (20 s) is
closed (DefaultHAConnection).
"""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.frames import host_of
from mqreplay.evidence.intervals import with_state

CONNECTION = ("addr", "confirmed_offset", "behind_bytes", "in_sync")


def slave_connections(ha_status: pl.DataFrame) -> pl.DataFrame:
    """Return the connections of slaves in the answers of masters, one row each.

    Columns: day, broker_name, broker_id, ts, connection (its place, from 1), slave_addr (of the connection),
    master_end, confirmed_offset, behind_bytes (by the master), in_sync, record_id. ``ha_status`` is silver.ha_status.
    """
    masters = _of_masters(ha_status).with_columns(
        pl.int_ranges(1, pl.col("slaves").list.len().cast(pl.Int64) + 1).alias("connection")
    )
    each = masters.explode("slaves", "connection").filter(pl.col("slaves").is_not_null())
    fields = [pl.col("slaves").struct.field(name) for name in CONNECTION]
    named = each.with_columns(fields).rename({"addr": "slave_addr"})
    return named.select(
        *("day", "broker_name", "broker_id", "ts", "connection", "slave_addr", "master_end", "confirmed_offset"),
        *("behind_bytes", "in_sync", "record_id"),
    )


def slaves_fallen_behind(ha_status: pl.DataFrame, lag_s: int) -> pl.DataFrame:
    """Return the times of more than ``lag_s`` seconds in which masters reported a slave as not in sync.

    Columns: broker_name, slave_host, from_ts, to_ts, least_bytes, behind_bytes (the least and most that it lacked),
    confirmed_offset (the last), stands (it confirmed nothing meanwhile), record_ids. A slave is known by its host: each
    connection has another port.
    """
    host = host_of("slave_addr").alias("slave_host")
    by = ["broker_name", "slave_host"]
    reports = slave_connections(ha_status).with_columns(host).drop_nulls(by).sort("ts")
    runs = reports.with_columns((~pl.col("in_sync")).rle_id().over(by).alias("run"))
    spans = (
        runs.filter(~pl.col("in_sync"))
        .group_by(*by, "run")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            pl.col("behind_bytes").min().alias("least_bytes"),
            pl.col("behind_bytes").max(),
            (pl.col("confirmed_offset").n_unique() == 1).alias("stands"),
            pl.col("confirmed_offset").last(),
            pl.col("record_id").unique().sort().alias("record_ids"),
        )
    )
    return spans.filter(pl.col("to_ts") - pl.col("from_ts") > pl.duration(seconds=lag_s)).drop("run")


def slave_reports(ha_status: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each answer of a master, in order of time.

    Columns: broker_name, ts, connections, in_sync (how many of them are), least_confirmed (offset, of all of them),
    behind_bytes (the most of any of them), record_id. ``ha_status`` is silver.ha_status.
    """
    of = pl.col("slaves").list.eval
    element = pl.element().struct.field
    return (
        _of_masters(ha_status)
        .select(
            "broker_name",
            "ts",
            pl.col("slaves").list.len().cast(pl.Int64).alias("connections"),
            of(element("in_sync")).list.sum().cast(pl.Int64).alias("in_sync"),
            of(element("confirmed_offset")).list.min().alias("least_confirmed"),
            of(element("behind_bytes")).list.max().alias("behind_bytes"),
            "record_id",
        )
        .sort("ts", "record_id")
    )


def _of_masters(ha_status: pl.DataFrame) -> pl.DataFrame:
    return ha_status.filter(pl.col("is_master").fill_null(value=False) & pl.col("slaves").is_not_null())


def with_reports(masters: pl.DataFrame, reports: pl.DataFrame, within_s: int) -> pl.DataFrame:
    """Return polls of masters with ``slaves`` and ``near_slaves`` by their reports, where there are any.

    ``slaves``: the most slaves that were connected in the last ``within_s`` seconds. ``near_slaves``: those that
    were in sync at the last report. Both stay as they are if the reports do not cover this time.
    """
    if reports.is_empty():
        return masters
    window = f"{within_s}s"
    most = reports.rolling("ts", period=window, closed="both", group_by="broker_name").agg(
        pl.col("connections").max().alias("reported"), pl.col("in_sync").last().alias("reported_near")
    )
    first = reports.group_by("broker_name").agg(pl.col("ts").min().alias("first_report"))
    known = most.join(first, "broker_name").filter(
        pl.col("ts") - pl.col("first_report") >= pl.duration(seconds=within_s)
    )
    joined = with_state(masters, known, "broker_name", "ts", within=window)
    return joined.with_columns(
        pl.coalesce("reported", "slaves").alias("slaves"),
        pl.coalesce("reported_near", "near_slaves").alias("near_slaves"),
    ).drop("reported", "reported_near", "first_report")


def with_confirmed(silent: pl.DataFrame, copies: pl.DataFrame, reports: pl.DataFrame, within_s: int) -> pl.DataFrame:
    """Return silent slaves with the end of their logs, ``log_end``, as their master knows it.

    A slave that does not answer the recorder may still copy. Connections do not state the slave's address, so the
    least confirmed offset counts if as many are connected as the broker name has slaves (``copies``).
    """
    if reports.is_empty() or silent.is_empty():
        return silent
    known = with_state(
        silent,
        reports.select("broker_name", "ts", "connections", "least_confirmed"),
        "broker_name",
        "ts",
        within=f"{within_s}s",
    )
    is_copied = (pl.col("connections") >= pl.col("copies")).fill_null(value=False)
    confirmed = pl.when(is_copied).then(pl.max_horizontal("log_end", "least_confirmed")).otherwise("log_end")
    joined = known.join(copies, "broker_name", how="left").with_columns(confirmed.alias("log_end"))
    return joined.select(silent.columns)
