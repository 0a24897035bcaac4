"""Brokers as name servers list them: a broker that answers and is not listed, and a broker name with another master.

A client learns of a broker from the routes of name servers alone, so it loses one that is not listed, however well it
answers. A broker registers every 30 s at each name server that it knows (BrokerController#registerBrokerAll).
An answer of a name server counts until its next poll fails: what it lists then is not known.
"""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.decode.broker_runtime import EXPIRED, NAME_SERVER_LOST
from mqreplay.evidence.frames import columns, host_of, typed
from mqreplay.evidence.intervals import INSTANT, merge, with_state
from mqreplay.words.keys import BROKER

ADDRESSES = pl.List(pl.Struct({"key": pl.Int64, "value": pl.String}))
LISTED_BROKERS = pl.List(pl.Struct({"broker_name": pl.String, "cluster": pl.String, "broker_addrs": ADDRESSES}))
ANSWERED_EACH_S = 60  # seconds between two polls of a broker, at most, that belong together
LIST_SCHEMA: dict[str, pl.DataType] = {
    **columns("namesrv_addr", "from_ts", "to_ts", "broker_name", "broker_id", "broker_addr"),
    "before_ts": INSTANT,  # the last instant at which the answer before was valid
    "record_id": pl.String(),
}
UNLISTED: dict[str, pl.DataType] = {
    **columns("broker_name", "broker_id", "broker_addr", "from_ts"),
    "answered_ts": INSTANT,  # its first answer meanwhile
    **columns("to_ts", "is_listed_again"),
}
LOST: dict[str, pl.DataType] = {
    **columns("broker_name", "broker_id", "broker_addr", "from_ts", "to_ts"),
    "is_listed_again": pl.Boolean(),
    "is_expired": pl.Boolean(),  # no registration came; else its connection closed
    "record_id": pl.String(),
}
SILENT: dict[str, pl.DataType] = {
    **columns("namesrv_addr", "from_ts"),
    "failed_ts": INSTANT,  # the last poll that is known to have failed
    "to_ts": INSTANT,
    "ends": pl.Boolean(),  # it answered again
    "others": pl.Int64(),  # other name servers that answered meanwhile
    "record_ids": pl.List(pl.String()),
}
LISTED_CHANGES: dict[str, pl.DataType] = {
    "broker_name": pl.String(),
    "from_ts": INSTANT,  # the last instant at which the old master was listed
    "to_ts": INSTANT,  # the first one at which the new master was
    **columns("old_addr", "new_addr"),
    "lacked": pl.Int64(),  # bytes of the old master's log that the new one had not copied; null: not known
    "moved": pl.Boolean(),  # the same broker at another address
    "record_id": pl.String(),  # of the answer that lists the new master
}


def listed_brokers(cluster_info: pl.DataFrame, until: dt.datetime | None) -> pl.DataFrame:
    """Return each broker that a name server's answer lists, until its next answer, or its next poll that fails.

    Columns: namesrv_addr, from_ts, to_ts, broker_name, broker_id, broker_addr, before_ts, record_id.

    ``cluster_info`` is silver.cluster_info; ``until`` is the recording's last instant. An answer without brokers has a
    row whose broker is null.
    """
    by = "namesrv_addr"
    following = pl.coalesce(pl.col("ts").shift(-1).over(by), pl.max_horizontal("ts", pl.lit(until, INSTANT)))
    asked = cluster_info.sort("ts", "record_id").with_columns(
        following.alias("to_ts"), pl.col("previous_ts").shift(-1).over(by).alias("valid_ts")
    )
    answered = asked.filter(pl.col("error").is_null() & pl.col("brokers").is_not_null())
    is_first = pl.int_range(pl.len()).over(by) == 0
    before = pl.when(is_first).then("previous_ts").otherwise(pl.col("valid_ts").shift(1).over(by))
    spans = answered.select(
        by, pl.col("ts").alias("from_ts"), "to_ts", "brokers", before.alias("before_ts"), "record_id"
    )
    brokers = spans.with_columns(pl.col("brokers").cast(LISTED_BROKERS)).explode("brokers", empty_as_null=True)
    each = brokers.unnest("brokers").explode("broker_addrs", empty_as_null=True)
    named = each.with_columns(
        pl.col("broker_addrs").struct.field("key").alias("broker_id"),
        pl.col("broker_addrs").struct.field("value").alias("broker_addr"),
    )
    return typed(named, LIST_SCHEMA)


def unlisted_brokers(broker_runtime: pl.DataFrame, lists: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which a broker answered the recorder, and no name server listed its address.

    Columns: broker_name, broker_id, broker_addr, from_ts, answered_ts, to_ts, is_listed_again.

    ``lists`` is the frame of `listed_brokers`. It begins when the address was no longer listed, and ends when it was
    listed again, or with the broker's last answer. A broker that was never listed is of another cluster, or new.
    """
    answers = broker_runtime.filter(pl.col("error").is_null() & pl.col("broker_addr").is_not_null())
    polled = answers.select(*BROKER, "broker_addr", "ts").unique()
    listed = _merged(lists.filter(pl.col("broker_addr").is_not_null())).sort("since")
    answering = _merged(lists.with_columns(pl.lit("").alias("broker_addr"))).select(
        pl.col("since").alias("known_ts"), pl.col("until").alias("known_until")
    )
    last = with_state(polled, listed, "broker_addr", "ts", "since")
    nearest = with_state(
        last,
        listed.select("broker_addr", pl.col("since").alias("again_ts")),
        "broker_addr",
        "ts",
        "again_ts",
        after=True,
    )
    # An answer is valid until the next one: a broker that vanished was last listed until the new answer.
    known = with_state(nearest, answering, (), "ts", "known_ts")
    missing = known.filter((pl.col("ts") >= pl.col("until")) & (pl.col("ts") < pl.col("known_until"))).with_columns(
        pl.max_horizontal("until", "known_ts")
    )
    key = (*BROKER, "broker_addr", "until")
    sessions = merge(missing, key, pl.col("again_ts").last(), at="ts", gap_s=ANSWERED_EACH_S)
    placed = sessions.select(
        *BROKER,
        "broker_addr",
        pl.col("until").alias("from_ts"),
        pl.col("from_ts").alias("answered_ts"),
        pl.coalesce("again_ts", "to_ts").alias("to_ts"),
        pl.col("again_ts").is_not_null().alias("is_listed_again"),
    )
    merged = placed.group_by(*BROKER, "broker_addr", "from_ts").agg(
        pl.col("answered_ts").min(), pl.col("to_ts").max(), pl.col("is_listed_again").last()
    )
    return typed(merged, UNLISTED)


def lost_brokers(broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which a name server had lost a broker, by its log, until it registered again.

    Columns: those of LOST. Without a later row of the broker it ends as it began.

    A name server removes a broker whose connection closes, or that it has not heard for two minutes
    (RouteInfoManager#onChannelDestroy, #scanNotActiveBroker). The broker may live.
    """
    by = (*BROKER, "broker_addr")
    known = broker_runtime.drop_nulls("broker_addr").sort("ts", "record_id")
    following = (pl.col(name).shift(-1).over(by).name.suffix("_next") for name in ("ts", "error"))
    lost = known.with_columns(following).filter(pl.col("error").str.starts_with(NAME_SERVER_LOST))
    again = pl.col("ts_next").is_not_null() & pl.col("error_next").is_null()
    return typed(
        lost,
        LOST,
        from_ts=pl.col("ts"),
        to_ts=pl.when(again).then("ts_next").otherwise("ts"),
        is_listed_again=again,
        is_expired=pl.col("error").str.ends_with(EXPIRED),
    )


def until_listed(outages: pl.DataFrame, unlisted: pl.DataFrame) -> pl.DataFrame:
    """Return the outages of broker_outages; one whose broker then answers unlisted ends when it is listed again."""
    began = unlisted.select(*BROKER, pl.col("from_ts").alias("since"), pl.col("to_ts").alias("listed_ts"))
    met = outages.with_row_index("outage").join(began, BROKER)
    late = met.filter((pl.col("since") <= pl.col("to_ts")) & (pl.col("listed_ts") > pl.col("to_ts")))
    last = late.group_by("outage").agg(pl.col("listed_ts").max())
    joined = outages.with_row_index("outage").join(last, "outage", how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce("listed_ts", "to_ts").alias("to_ts")).select(outages.columns)


def name_server_outages(cluster_info: pl.DataFrame, holes: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which a name server did not answer: from its first poll that failed to its next answer.

    Columns: those of SILENT. Polls in ``holes`` of the recorder count for nothing. Without a later answer an outage
    ends with the last poll that failed.
    """
    by = "namesrv_addr"
    spans = holes.select("from_ts", "to_ts").sort("from_ts")
    polls = cluster_info.drop_nulls(by).sort("ts", "record_id")
    met = with_state(polls, spans, (), "ts", "from_ts")
    seen = met.filter((pl.col("ts") > pl.col("to_ts")).fill_null(value=True)).drop("from_ts", "to_ts")
    failed = pl.col("error").is_not_null()
    runs = seen.with_columns(
        failed.alias("failed"),
        failed.rle_id().over(by).alias("run"),
        # A poll that fails as the one before has no row of its own.
        pl.max_horizontal("ts", pl.col("previous_ts").shift(-1).over(by)).alias("last_ts"),
        pl.col("ts").shift(-1).over(by).alias("next_ts"),
    )
    silent = (
        runs.filter("failed")
        .group_by(by, "run")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("last_ts").max().alias("failed_ts"),
            pl.coalesce(pl.col("next_ts").sort_by("ts").last(), pl.col("last_ts").max()).alias("to_ts"),
            pl.col("next_ts").sort_by("ts").last().is_not_null().alias("ends"),
            pl.col("record_id").sort_by("ts").implode().alias("record_ids"),
        )
    )
    answers = runs.filter(~pl.col("failed")).select("ts", pl.col(by).alias("other"), pl.col("last_ts").alias("until"))
    overlaps = (
        (pl.col("other") != pl.col(by)) & (pl.col("ts") <= pl.col("to_ts")) & (pl.col("until") >= pl.col("from_ts"))
    )
    others = silent.join(answers, how="cross").filter(overlaps)
    count = others.group_by(by, "run").agg(pl.col("other").n_unique().cast(pl.Int64).alias("others"))
    placed = silent.join(count, [by, "run"], how="left").with_columns(pl.col("others").fill_null(0))
    return typed(placed, SILENT).sort("from_ts", by)


def _merged(lists: pl.DataFrame) -> pl.DataFrame:
    """Return broker_addr, since, until: while any name server listed an address."""
    return merge(lists, ["broker_addr"]).rename({"from_ts": "since", "to_ts": "until"})


def master_changes(lists: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the changes of a broker name's master to another address, by the name servers' lists.

    Columns: those of LISTED_CHANGES.

    ``lacked``: the end of the old master's commit log, as last answered, less the last end that the new master gave
    while it was a replica; null if one of them is not known. ``moved``: nothing listed or polled the new address
    before, the old one answers no more, and the log goes on (or, if its end is not known, the host is the same).
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
    return typed(_with_moves(new.with_columns(lacked), lists, broker_runtime), LISTED_CHANGES)


def _with_moves(changes: pl.DataFrame, lists: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Add moved: whether the new master is the old one at another address."""
    columns = ("broker_name", pl.col("broker_addr").alias("addr"), "ts")
    answered = broker_runtime.filter(pl.col("error").is_null()).select(*columns, "commit_log_max_offset")
    known = pl.concat([lists.rename({"from_ts": "ts"}).select(columns), answered.select("broker_name", "addr", "ts")])
    by = ["broker_name", "old_addr", "new_addr", "to_ts"]
    old = changes.join(answered.rename({"addr": "old_addr"}), ["broker_name", "old_addr"])
    new = changes.join(known.rename({"addr": "new_addr"}), ["broker_name", "new_addr"])
    polled = changes.join(answered.rename({"addr": "new_addr"}), ["broker_name", "new_addr"])
    ends = polled.group_by(by).agg(
        (pl.col("commit_log_max_offset").max() >= pl.col("old_end").first()).alias("goes_on")
    )
    others = [old.filter(pl.col("ts") > pl.col("to_ts")), new.filter(pl.col("ts") < pl.col("from_ts"))]
    replaced = pl.concat([each.select(by) for each in others]).unique().with_columns(is_other=True)
    host = [host_of(name) for name in ("old_addr", "new_addr")]
    same = pl.col("goes_on").fill_null(host[0] == host[1]) & pl.col("is_other").is_null()
    return changes.join(ends, by, how="left").join(replaced, by, how="left").with_columns(same.alias("moved"))


def masterless_names(lists: pl.DataFrame) -> pl.DataFrame:
    """Return the broker names of which name servers listed slaves, and no master at any time.

    Columns: broker_name, broker_id, broker_addr (of the first slave), from_ts, to_ts, record_ids.

    A slave registers by its own brokerName and brokerId, and asks for the master of this name
    (BrokerController#registerBrokerAll): with another name than its master's it copies nothing.
    """
    known = lists.drop_nulls("broker_name")
    led = known.filter(pl.col("broker_id") == 0).select("broker_name").unique()
    slaves = known.filter(pl.col("broker_id") > 0).join(led, "broker_name", how="anti")
    first = (pl.col(name).sort_by("broker_id", "from_ts").first() for name in ("broker_id", "broker_addr"))
    return slaves.group_by("broker_name").agg(
        *first, pl.col("from_ts").min(), pl.col("to_ts").max(), pl.col("record_id").unique().sort().alias("record_ids")
    )


def _last_end(changes: pl.DataFrame, ends: pl.DataFrame, addr: str, ts: str, name: str) -> pl.DataFrame:
    """Add the last end of the log at an address until an instant."""
    known = ends.select("broker_name", pl.col("addr").alias(addr), pl.col("ts").alias("_ts"), pl.col("end").alias(name))
    return with_state(changes, known, ["broker_name", addr], ts, "_ts").drop("_ts")
