"""Brokers as name servers list them: a broker that answers and is not listed, and a broker name with another master.

A client learns of a broker from the routes of name servers alone, so it loses one that is not listed, however well it
answers. A broker registers every 30 s at each name server that it knows (BrokerController#registerBrokerAll).
"""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.evidence.brokers.broker_outages import BROKER
from mqreplay.evidence.time_spans import INSTANT, with_session

ADDRESSES = pl.List(pl.Struct({"key": pl.Int64, "value": pl.String}))
BROKERS = pl.List(pl.Struct({"broker_name": pl.String, "cluster": pl.String, "broker_addrs": ADDRESSES}))
ANSWERED_EACH_S = 60  # seconds between two polls of a broker, at most, that belong together
LISTS: dict[str, pl.DataType] = {
    "namesrv_addr": pl.String(),
    "from_ts": INSTANT,
    "to_ts": INSTANT,
    "broker_name": pl.String(),
    "broker_id": pl.Int64(),
    "broker_addr": pl.String(),
    "before_ts": INSTANT,  # the last instant at which the answer before was valid
    "record_id": pl.String(),
}
UNLISTED: dict[str, pl.DataType] = {
    "broker_name": pl.String(),
    "broker_id": pl.Int64(),
    "broker_addr": pl.String(),
    "from_ts": INSTANT,
    "answered_ts": INSTANT,  # its first answer meanwhile
    "to_ts": INSTANT,
    "is_listed_again": pl.Boolean(),
}
CHANGES: dict[str, pl.DataType] = {
    "broker_name": pl.String(),
    "from_ts": INSTANT,  # the last instant at which the old master was listed
    "to_ts": INSTANT,  # the first one at which the new master was
    "old_addr": pl.String(),
    "new_addr": pl.String(),
    "lacked": pl.Int64(),  # bytes of the old master's log that the new one had not copied; null: not known
    "record_id": pl.String(),  # of the answer that lists the new master
}


def listed_brokers(cluster_info: pl.DataFrame, until: dt.datetime | None) -> pl.DataFrame:
    """Return each broker that a name server's answer lists, while the answer is its latest.

    Columns: namesrv_addr, from_ts, to_ts, broker_name, broker_id, broker_addr, before_ts, record_id.

    ``cluster_info`` is silver.cluster_info; ``until`` is the recording's last instant. An answer without brokers has a
    row whose broker is null.
    """
    answered = cluster_info.filter(pl.col("error").is_null() & pl.col("brokers").is_not_null()).sort("ts", "record_id")
    following = pl.col("ts").shift(-1).over("namesrv_addr")
    spans = answered.select(
        "namesrv_addr",
        pl.col("ts").alias("from_ts"),
        pl.coalesce(following, pl.max_horizontal("ts", pl.lit(until, INSTANT))).alias("to_ts"),
        "brokers",
        pl.col("previous_ts").alias("before_ts"),
        "record_id",
    )
    brokers = spans.with_columns(pl.col("brokers").cast(BROKERS)).explode("brokers", empty_as_null=True)
    each = brokers.unnest("brokers").explode("broker_addrs", empty_as_null=True)
    named = each.with_columns(
        pl.col("broker_addrs").struct.field("key").alias("broker_id"),
        pl.col("broker_addrs").struct.field("value").alias("broker_addr"),
    )
    return named.select([pl.col(name).cast(kind) for name, kind in LISTS.items()])


def unlisted_brokers(broker_runtime: pl.DataFrame, lists: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which a broker answered the recorder, and no name server listed its address.

    Columns: broker_name, broker_id, broker_addr, from_ts, answered_ts, to_ts, is_listed_again.

    ``lists`` is the frame of `listed_brokers`. It begins when the address was no longer listed, and ends when it was
    listed again, or with the broker's last answer. A broker that was never listed is of another cluster, or new.
    """
    answers = broker_runtime.filter(pl.col("error").is_null() & pl.col("broker_addr").is_not_null())
    polled = answers.select(*BROKER, "broker_addr", "ts").unique()
    listed = _merged(lists.filter(pl.col("broker_addr").is_not_null())).sort("since")
    last = polled.sort("ts").join_asof(listed, left_on="ts", right_on="since", by="broker_addr", check_sortedness=False)
    nearest = last.sort("ts").join_asof(
        listed.select("broker_addr", pl.col("since").alias("again_ts")),
        left_on="ts",
        right_on="again_ts",
        by="broker_addr",
        strategy="forward",
        check_sortedness=False,
    )
    # An answer is valid until the next one: a broker that vanished was last listed until the new answer.
    missing = nearest.filter(pl.col("until").is_not_null() & (pl.col("ts") >= pl.col("until")))
    sessions = with_session(missing, [*BROKER, "broker_addr", "until"], "ts", "ts", ANSWERED_EACH_S)
    found = sessions.group_by(*BROKER, "broker_addr", "until", "session").agg(
        pl.col("ts").min().alias("answered_ts"), pl.col("ts").max().alias("last_ts"), pl.col("again_ts").last()
    )
    placed = found.select(
        *BROKER,
        "broker_addr",
        pl.col("until").alias("from_ts"),
        "answered_ts",
        pl.coalesce("again_ts", "last_ts").alias("to_ts"),
        pl.col("again_ts").is_not_null().alias("is_listed_again"),
    )
    merged = placed.group_by(*BROKER, "broker_addr", "from_ts").agg(
        pl.col("answered_ts").min(), pl.col("to_ts").max(), pl.col("is_listed_again").last()
    )
    return merged.select([pl.col(name).cast(kind) for name, kind in UNLISTED.items()])


def until_listed(outages: pl.DataFrame, unlisted: pl.DataFrame) -> pl.DataFrame:
    """Return the outages of broker_outages; one whose broker then answers unlisted ends when it is listed again."""
    began = unlisted.select(*BROKER, pl.col("from_ts").alias("since"), pl.col("to_ts").alias("listed_ts"))
    met = outages.with_row_index("outage").join(began, BROKER)
    late = met.filter((pl.col("since") <= pl.col("to_ts")) & (pl.col("listed_ts") > pl.col("to_ts")))
    last = late.group_by("outage").agg(pl.col("listed_ts").max())
    joined = outages.with_row_index("outage").join(last, "outage", how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce("listed_ts", "to_ts").alias("to_ts")).select(outages.columns)


def _merged(lists: pl.DataFrame) -> pl.DataFrame:
    """Return broker_addr, since, until: while any name server listed an address."""
    spans = lists.select("broker_addr", pl.col("from_ts").alias("since"), pl.col("to_ts").alias("until"))
    together = with_session(spans, ["broker_addr"], "since", "until", 0)
    merged = together.group_by("broker_addr", "session").agg(pl.col("since").min(), pl.col("until").max())
    return merged.drop("session")


def master_changes(lists: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the changes of a broker name's master to another address, by the name servers' lists.

    Columns: broker_name, from_ts, to_ts, old_addr, new_addr, lacked, record_id.

    ``lacked``: the end of the old master's commit log, as last answered, less the last end that the new master gave
    while it was a replica; null if one of them is not known.
    """
    masters = lists.filter((pl.col("broker_id") == 0) & pl.col("broker_addr").is_not_null())
    by = ["broker_name"]
    first = masters.sort("from_ts", "record_id").unique(["broker_name", "from_ts", "broker_addr"], keep="first")
    steps = first.sort("from_ts").with_columns(
        pl.col("broker_addr").shift(1).over(by).alias("old_addr"),
        pl.col("from_ts").shift(1).over(by).alias("listed_ts"),
    )
    changed = steps.filter(pl.col("broker_addr") != pl.col("old_addr")).select(
        "broker_name",
        pl.coalesce(pl.when(pl.col("before_ts") < pl.col("from_ts")).then("before_ts"), "listed_ts").alias("from_ts"),
        pl.col("from_ts").alias("to_ts"),
        "old_addr",
        pl.col("broker_addr").alias("new_addr"),
        "record_id",
    )
    # Name servers answer at different times: the same change is seen several times.
    once = changed.sort("to_ts").unique(["broker_name", "old_addr", "new_addr"], keep="first", maintain_order=True)
    ends = broker_runtime.filter(pl.col("commit_log_max_offset").is_not_null()).select(
        "broker_name",
        pl.col("broker_addr").alias("addr"),
        "ts",
        pl.col("commit_log_max_offset").alias("end"),
        "broker_id",
    )
    old = _last_end(once, ends, "old_addr", "to_ts", "old_end")
    is_master = pl.col("broker_id") == 0
    led = ends.filter(is_master).group_by("broker_name", "addr").agg(pl.col("ts").min().alias("led_ts"))
    replicas = ends.filter(~is_master).join(led, ["broker_name", "addr"], how="left")
    copied = replicas.filter((pl.col("ts") < pl.col("led_ts")).fill_null(True))
    new = _last_end(old, copied, "new_addr", "to_ts", "new_end")
    lacked = (pl.col("old_end") - pl.col("new_end")).clip(lower_bound=0).alias("lacked")
    return new.with_columns(lacked).select([pl.col(name).cast(kind) for name, kind in CHANGES.items()])


def _last_end(changes: pl.DataFrame, ends: pl.DataFrame, addr: str, ts: str, name: str) -> pl.DataFrame:
    """Add the last end of the log at an address until an instant."""
    known = ends.select("broker_name", pl.col("addr").alias(addr), pl.col("ts").alias("_ts"), pl.col("end").alias(name))
    return (
        changes.sort(ts)
        .join_asof(known.sort("_ts"), left_on=ts, right_on="_ts", by=["broker_name", addr], check_sortedness=False)
        .drop("_ts")
    )
