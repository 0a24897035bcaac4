"""Client ids that several processes of one group use at once.

A broker keeps a member for each connection, so its list of members (ConsumerGroupInfo#getAllClientId) names such an id
once for each process. Each of them takes the share of the first place (AllocateMessageQueueStrategy: indexOf), and
nobody takes that of the others.

A broker drops a connection that died without notice only after 120 s without a heartbeat: until then a client that
connected again, such as after a pause of the broker, is listed twice, too (ClientHousekeepingService,
ConsumerManager#scanNotActiveChannel). Each try to connect during the pause leaves such a connection.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import polars as pl

from mqreplay.evidence.arrays.distinct import distinct_values
from mqreplay.evidence.frames import columns, host_of, typed
from mqreplay.evidence.intervals import merge, with_session
from mqreplay.evidence.members.listed_members import polled_lists
from mqreplay.evidence.members.observed_clients import (
    ASKED_S,
    CLIENT_LOG,
    REPEATED_S,
    RUNNING_INFO,
    answers,
    polled,
    setting,
)
from mqreplay.words.keys import BROKER, MEMBER

# A broker drops a silent channel after 120 s, or channelExpiredTimeout since 5.1, at its next scan or idle event.
EXPIRED_S, SCAN_S = 120, 15
REBALANCE_S = 20
CLOSED_S = 60  # until the close of a connection has arrived, where only a few packets were lost
BEFORE_S = 2 * ASKED_S  # the last poll of the first process may be so much earlier
STARTED = "PROP_CONSUMER_START_TIMESTAMP"
LISTS, CONNECTIONS, REBALANCES = "silver.consumer_list", "silver.consumer_connection", "silver.rebalance"
ASSIGNMENTS = "silver.assignment"
LOGGED_S = 600  # between two rows of a log that goes on; it repeats the queues each minute if it shows commits
DUPLICATES: dict[str, pl.DataType] = {
    **columns("consumer_group", "client_id", "from_ts", "to_ts"),
    "processes": pl.Int64(),  # the most at once
    "certain": pl.Boolean(),  # not a connection that died
    "unconfirmed": pl.Boolean(),  # at several hosts, and no later list shows whether it lasts
    "addresses": pl.List(pl.String()),  # of the clients, as one broker knows them; empty: not recorded
    "tables": pl.List(pl.String()),  # that show it
}
_SIGHT = [*MEMBER, "from_ts", "to_ts", "processes", "addresses", "table_name", *BROKER]


def duplicate_clients(
    small: Mapping[str, pl.DataFrame],
    consumer_list: pl.DataFrame,
    holes: pl.DataFrame,
    watched_until: dt.datetime | None,
) -> pl.DataFrame:
    """Return the times in which a group had a client id more than once.

    Columns: those of DUPLICATES.

    ``small`` are the night's small tables by name, ``consumer_list`` the lists that the recorder polled. It is certain
    if it lasts longer than a dead connection (`_dead_s`), if two logs of clients show it, if clients with this id name
    two start times, or if a process with this id answered without a break, see `_unbroken`. Repeats after an outage of
    the broker are stale, see `_after_outage`.
    """
    sights = [
        _by_lists(polled_lists(consumer_list, small["broker_runtime"], holes, watched_until)),
        _by_connections(small["consumer_connection"]),
        _by_rebalances(small["rebalance"]),
        _by_logs(small["assignment"]),
    ]
    together = with_session(pl.concat(sights), MEMBER, "from_ts", "to_ts", REPEATED_S)
    spans = together.group_by(*MEMBER, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.col("processes").max(),
        pl.col("addresses").sort_by(pl.col("addresses").list.len(), "from_ts").last(),
        pl.col("table_name").unique().sort().alias("tables"),
        pl.struct(BROKER).unique().alias("brokers"),
    )
    spans = spans.with_row_index("span")
    dead_s = _dead_s(small["broker"])
    long = pl.col("to_ts") - pl.col("from_ts") > pl.duration(seconds=dead_s)
    named = spans
    shown = (
        _with_two_starts(spans, small["assignment"]),
        _unbroken(spans, small),
        _after_outage(spans, small["broker_runtime"], dead_s),
    )
    for flags in shown:
        named = named.join(flags, [*MEMBER, "session"], how="left")
    two_starts, unbroken, stale = (pl.col(name).fill_null(False) for name in ("two_starts", "unbroken", "stale"))
    logged = pl.col("tables").list.contains(ASSIGNMENTS)
    certain = (two_starts | logged | ((long | unbroken) & ~stale)).alias("certain")
    flagged = named.with_columns(certain).join(
        _asked_again(spans, small["consumer_connection"], dead_s), "span", "left"
    )
    hosts = pl.col("addresses").list.eval(host_of(pl.element())).list.n_unique()
    unconfirmed = ~pl.col("certain") & ~stale & (hosts > 1) & pl.col("asked_again").is_null()
    return typed(flagged.with_columns(unconfirmed.alias("unconfirmed")), DUPLICATES)


def _dead_s(broker: pl.DataFrame) -> int:
    """Return for how many seconds a broker lists a dead connection at most, by the settings of all brokers."""
    expired_ms = broker.select(setting("channelExpiredTimeout").cast(pl.Int64, strict=False)).to_series()
    longest: int = expired_ms.fill_null(EXPIRED_S * 1000).max() or EXPIRED_S * 1000  # type: ignore[assignment]
    return longest // 1000 + SCAN_S


def _asked_again(spans: pl.DataFrame, consumer_connection: pl.DataFrame, dead_s: int) -> pl.DataFrame:
    """Return span and asked_again of the spans that a later list of the group, within ``dead_s`` seconds, ended."""
    known = consumer_connection.filter(pl.col("connections").list.len() > 0).select("consumer_group", "ts")
    after = pl.col("ts") - pl.col("to_ts")
    met = spans.select("span", "consumer_group", "to_ts").join(known, "consumer_group")
    later = met.filter((after > pl.duration(seconds=0)) & (after <= pl.duration(seconds=dead_s)))
    return later.select("span", pl.lit(True).alias("asked_again")).unique()


def _by_lists(lists: pl.DataFrame) -> pl.DataFrame:
    return _repeated(lists.select("consumer_group", "ts", "until", "cid_all", *BROKER), LISTS)


def _by_rebalances(rebalance: pl.DataFrame) -> pl.DataFrame:
    until = (pl.col("ts") + pl.duration(seconds=REBALANCE_S)).alias("until")
    unnamed = [pl.lit(None, pl.String).alias("broker_name"), pl.lit(None, pl.Int64).alias("broker_id")]
    return _repeated(rebalance.select("consumer_group", "ts", until, "cid_all", *unnamed), REBALANCES)


def _by_logs(assignment: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which two processes with a client id held queues, by their own logs.

    Columns: consumer_group, client_id, from_ts, to_ts, processes, addresses, table_name, broker_name, broker_id.

    Logs that show the same at the same instants, half of the time or more, are copies of one.
    """
    held = polled(assignment, CLIENT_LOG).filter(pl.col("process").is_not_null() & (pl.col("queues").list.len() > 0))
    rows = held.select(*MEMBER, "process", "ts").unique()
    several = rows.group_by(MEMBER).agg(pl.col("process").n_unique().alias("logs")).filter(pl.col("logs") > 1)
    shared = rows.join(several, MEMBER, how="semi")
    count = shared.group_by(*MEMBER, "process").len()
    pair = [*MEMBER, "process", "process_other"]
    is_pair = pl.col("process") < pl.col("process_other")
    same = shared.join(shared, [*MEMBER, "ts"], suffix="_other").filter(is_pair).group_by(pair).agg(both=pl.len())
    pairs = count.join(count, MEMBER, suffix="_other").filter(is_pair).join(same, pair, how="left")
    copies = pairs.filter(2 * pl.col("both") >= pl.min_horizontal("len", "len_other"))
    by = [*MEMBER, "process"]
    spans = merge(shared, by, at="ts", gap_s=LOGGED_S).select(*by, "from_ts", "to_ts")
    met = spans.join(spans, MEMBER, suffix="_other").filter(is_pair).join(copies, pair, how="anti")
    overlaps = met.select(
        *MEMBER,
        pl.max_horizontal("from_ts", "from_ts_other").alias("from_ts"),
        pl.min_horizontal("to_ts", "to_ts_other").alias("to_ts"),
        pl.lit(2, pl.Int64).alias("processes"),
        pl.lit([], pl.List(pl.String)).alias("addresses"),
        pl.lit(ASSIGNMENTS).alias("table_name"),
        pl.lit(None, pl.String).alias("broker_name"),
        pl.lit(None, pl.Int64).alias("broker_id"),
    )
    return overlaps.filter(pl.col("to_ts") > pl.col("from_ts")).select(_SIGHT)


def _repeated(lists: pl.DataFrame, table: str) -> pl.DataFrame:
    """Return the client ids that a list has more than once.

    Columns: consumer_group, client_id, from_ts, to_ts, processes, addresses, table_name, broker_name, broker_id.
    """
    distinct, list_of = distinct_values(lists, ["cid_all"])  # members see the same lists again and again
    repeats = distinct.select(pl.col("cid_all").list.n_unique() < pl.col("cid_all").list.len()).to_series()
    several = lists.filter(repeats.gather(list_of)).with_row_index("list")
    each = several.explode("cid_all").rename({"cid_all": "client_id", "ts": "from_ts", "until": "to_ts"})
    counted = each.group_by("list", *MEMBER, "from_ts", "to_ts", *BROKER).agg(
        pl.len().cast(pl.Int64).alias("processes")
    )
    none = pl.lit([], pl.List(pl.String)).alias("addresses")
    return counted.filter(pl.col("processes") > 1).with_columns(none, pl.lit(table).alias("table_name")).select(_SIGHT)


def _by_connections(consumer_connection: pl.DataFrame) -> pl.DataFrame:
    """Return the client ids that a broker knows at several addresses.

    Columns: consumer_group, client_id, from_ts, to_ts, processes, addresses, table_name, broker_name, broker_id.

    Two of its addresses with their ports that a later list has, too, are the same two connections: they lasted until
    then, whichever broker gave the lists.
    """
    by = ["broker_name", "broker_id", "consumer_group"]
    confirmed = pl.max_horizontal("ts", pl.col("previous_ts").shift(-1).over(by))
    known = consumer_connection.sort("ts", "record_id").with_columns(confirmed.alias("to_ts"))
    each = known.filter(pl.col("connections").list.len() > 1).explode("connections")
    named = each.with_columns(pl.col("connections").struct.field(name) for name in ("client_id", "client_addr"))
    address = pl.col("client_addr").drop_nulls().unique().sort()
    counted = named.group_by(*by, "client_id", pl.col("ts").alias("from_ts"), "to_ts").agg(
        address.alias("addresses"), address.len().cast(pl.Int64).alias("processes")
    )
    several = counted.filter(pl.col("processes") > 1).sort("from_ts")
    later = (pl.col(name).shift(-1).over(*by, "client_id") for name in ("addresses", "from_ts"))
    same = several.with_columns(each.name.suffix("_later") for each in later)
    stays = pl.col("addresses").list.set_intersection("addresses_later").list.len() > 1
    lasted = pl.when(stays).then(pl.max_horizontal("to_ts", "from_ts_later")).otherwise("to_ts").alias("to_ts")
    return same.with_columns(lasted, pl.lit(CONNECTIONS).alias("table_name")).select(_SIGHT)


def _with_two_starts(spans: pl.DataFrame, assignment: pl.DataFrame) -> pl.DataFrame:
    """Return whether answers of clients with an id name two start times.

    Columns: consumer_group, client_id, session, two_starts.
    """
    started = answers(assignment).select(*MEMBER, "ts", "seen_until", setting(STARTED).alias("started"))
    met = spans.join(started.filter(pl.col("started").is_not_null()), MEMBER)
    near = (pl.col("seen_until") >= pl.col("from_ts") - pl.duration(seconds=BEFORE_S)) & (
        pl.col("ts") <= pl.col("to_ts")
    )
    return met.filter(near).group_by(*MEMBER, "session").agg((pl.col("started").n_unique() > 1).alias("two_starts"))


def _after_outage(spans: pl.DataFrame, broker_runtime: pl.DataFrame, dead_s: int) -> pl.DataFrame:
    """Return whether an id was repeated by one broker alone, after that broker did not answer.

    Columns: consumer_group, client_id, session, stale.

    Such repeats begin within ``dead_s`` seconds of the last failed poll, and end once the broker drops the old
    connections. Other processes connect to each broker of the topic, and stay.
    """
    failed = broker_runtime.filter(pl.col("error").is_not_null()).select(*BROKER, pl.col("ts").alias("failed_ts"))
    alone = (
        spans.filter(pl.col("brokers").list.len() == 1).with_columns(pl.col("brokers").list.first()).unnest("brokers")
    )
    since = pl.col("from_ts") - pl.col("failed_ts")
    until = pl.col("to_ts") - pl.col("failed_ts")
    near = since.is_between(pl.duration(seconds=0), pl.duration(seconds=dead_s)) & (
        until <= pl.duration(seconds=2 * dead_s)
    )
    met = alone.join(failed, BROKER).filter(near)
    return met.select(*MEMBER, "session").unique().with_columns(pl.lit(True).alias("stale"))


def _unbroken(spans: pl.DataFrame, small: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return whether a process answered from before its id was listed twice until after.

    Columns: consumer_group, client_id, session, unbroken.

    Such a process did not lose its connections, so a second one that stays for longer than CLOSED_S seconds is another
    process: the close of a connection is sent again until it arrives. Each poll must have an answer, and each broker of
    the member must know two addresses: one broker may have lost a client that others still reach.
    """
    lasting = spans.filter(pl.col("to_ts") - pl.col("from_ts") > pl.duration(seconds=CLOSED_S))
    asked = polled(small["assignment"], RUNNING_INFO)
    answered = answers(small["assignment"]).select(*MEMBER, "ts", "seen_until")
    failed = asked.filter(pl.col("error").is_not_null()).select(*MEMBER, "ts", pl.col("ts").alias("seen_until"))
    rows = [answered.with_columns(pl.lit(False).alias("failed")), failed.with_columns(pl.lit(True).alias("failed"))]
    since, until = pl.col("from_ts") - pl.duration(seconds=BEFORE_S), pl.col("to_ts")
    met = lasting.join(pl.concat(rows), MEMBER).filter((pl.col("seen_until") >= since) & (pl.col("ts") <= until))
    key = [*MEMBER, "session"]
    ordered = met.sort("ts")
    silence = (pl.col("ts") - pl.col("seen_until").shift(1).over(key)).fill_null(pl.duration(seconds=0))
    whole = (
        (pl.col("ts").min() < pl.col("from_ts").first())
        & (pl.col("seen_until").max() >= pl.col("to_ts").first() - pl.duration(seconds=BEFORE_S))
        & (pl.col("silence").max() <= pl.duration(seconds=BEFORE_S - 1))
        & ~pl.col("failed").any()
    )
    steady = ordered.with_columns(silence.alias("silence")).group_by(key).agg(whole.alias("unbroken"))
    single = lasting.join(_known_once(small["consumer_connection"]), MEMBER).filter(
        (pl.col("ts") > pl.col("from_ts") + pl.duration(seconds=REPEATED_S)) & (pl.col("ts") <= pl.col("to_ts"))
    )
    several = lasting.join(_by_connections(small["consumer_connection"]).select(MEMBER).unique(), MEMBER, how="semi")
    return steady.join(several, key, how="semi").join(single, key, how="anti")


def _known_once(consumer_connection: pl.DataFrame) -> pl.DataFrame:
    """Return when a broker knew a client id at one address only.

    Columns: consumer_group, client_id, ts.
    """
    each = consumer_connection.filter(pl.col("connections").list.len() > 0).explode("connections")
    client = pl.col("connections").struct.field("client_id").alias("client_id")
    by = ["broker_name", "broker_id", "consumer_group", "ts", "client_id"]
    return each.with_columns(client).group_by(by).len().filter(pl.col("len") == 1).select(*MEMBER, "ts")
