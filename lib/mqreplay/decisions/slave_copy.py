"""gold.slave_copy: each copy of a slave's topics, subscription groups and delay offsets against its master's.

A slave replaces these files by its master's, every 10 s in 4.9 and about every minute in 5.x, or every 12 s. So each
of its entries is one that the master had that long before, at most, while both run. Copies that agree are only counted,
in gold.judgement. Consumer offsets are judged by the finding stale_slave_offsets.

What only the slave has is not compared: it makes topics and groups for clients, and loses them with the next turn.
Follows org.apache.rocketmq.broker.slave.SlaveSynchronize.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from mqreplay.core.slave_synchronize import schedule, staleness_max, sync_delay_offset, synchronized_parts
from mqreplay.core.version import BROKER_4, BROKER_5
from mqreplay.decisions.decision import VERDICT_WORDS, Decision, by_name
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.brokers.broker_descriptions import elects_master, major_version
from mqreplay.evidence.brokers.slave_configs import (
    GROUP_VALUES,
    TOPIC_VALUES,
    compared_groups,
    compared_topics,
    config_states,
    signs_of_life,
)
from mqreplay.evidence.frames import instant_of, ms, with_flag
from mqreplay.evidence.intervals import INSTANT, with_state
from mqreplay.words.keys import BROKER

COPY_KEY: Final = ("source_name", "ts")
COLUMNS: Final = (
    *("day", "broker_name", "broker_id", "part", "ts", "source_name", "master_ts", "allowed_ms"),
    *("differing", "names", "judgement", "reason", "source_digest"),
)
PARTS: Final = {part: part for part in synchronized_parts()}
TOPIC_PART, DELAY_PART, GROUP_PART = PARTS["topicConfig"], PARTS["delayOffset"], PARTS["subscriptionGroupConfig"]
FILE_NAMES: Final = {TOPIC_PART: "topics.json", DELAY_PART: "delayOffset.json", GROUP_PART: "subscriptionGroup.json"}
DELAY_VALUES: Final = {"offset": "offset"}
SLACK: Final = 5_000  # ms: requests of a turn may take 3 s each, and the two copies have different clocks
SIGNS_EACH: Final = 30  # seconds: recorders poll more often, and most restarts take longer
NAMES_KEPT: Final = 5
BUCKET: Final = 120_000  # ms
NEVER, EVER = 0, 2**62  # epoch ms
HAD: Final = "the master had all entries of the copy"
LACKS: Final = "the slave lacks entries, or has values, that the master had long before"
NO_MASTER: Final = "the recording has no copy of the master's file up to this time"
BETWEEN: Final = "the master's or the slave's file changed shortly before, between two recorded copies"
AT_START: Final = "a slave of 4.9 answers polls by the delay offsets that it read when it started"
COPY_INTERRUPTED: Final = "the slave or its master did not answer all the time before, or had just started"


def slave_copy(
    topic_config: pl.DataFrame,
    subscription_group: pl.DataFrame,
    delay_offset: pl.DataFrame,
    snapshot: pl.DataFrame,
    broker_runtime: pl.DataFrame,
    broker: pl.DataFrame,
) -> pl.DataFrame:
    """Return one row for each copy of a slave's file, with gold.slave_copy's columns. All arguments are silver tables.

    An entry differs only if the slave and its master had their values for longer than a turn takes, and both were
    alive. See `stored_rows` for the rows that are kept.
    """
    allowed = _allowed(snapshot, broker)
    of_part = {
        TOPIC_PART: (compared_topics(topic_config), topic_config, ("topic", TOPIC_VALUES)),
        DELAY_PART: (delay_offset, delay_offset, ("delay_level", DELAY_VALUES)),
        GROUP_PART: (compared_groups(subscription_group), subscription_group, ("consumer_group", GROUP_VALUES)),
    }
    judged = []
    for part, (compared, every, of) in of_part.items():
        is_file = (pl.col("file_name") == FILE_NAMES[part]) & pl.col("broker_id").is_not_null()
        files = (
            snapshot.filter(is_file)
            .select("day", *BROKER, *COPY_KEY, "source_digest")
            .unique([*COPY_KEY], keep="first")
        )
        # A file without entries has no row in its table.
        seen = pl.concat([each.select("source_name", *BROKER, "ts") for each in (every, files)])
        copies = files.filter(pl.col("broker_id") > 0).join(allowed, BROKER)
        of_master = files.filter(pl.col("broker_id") == 0).select("broker_name", ms("ts").alias("copied"))
        found = _with_entries(copies, _entries(config_states(compared, seen, of), copies, of_master, of))
        judged.append(_with_master(found, of_master).with_columns(pl.lit(part).alias("part")))
    rows = _with_life(pl.concat(judged), signs_of_life(broker_runtime, snapshot, SIGNS_EACH), broker_runtime)
    return _judged(rows).select(COLUMNS).sort("part", "broker_name", "broker_id", "ts")


def stored_rows(judged: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that gold.slave_copy keeps: all but copies that agree."""
    return judged.filter(pl.col("judgement") != "agree")


def _allowed(snapshot: pl.DataFrame, broker: pl.DataFrame) -> pl.DataFrame:
    """Return what follows from a slave's version and settings: allowed_ms, first_ms and reads_delays.

    allowed_ms: the largest age of its copy. first_ms: when its first turn is. reads_delays: it reads the
    delay offsets that it copied. A slave of unknown version has the longer times of 5.x.
    """
    slaves = snapshot.filter(pl.col("broker_id") > 0).select(BROKER).unique()
    described = broker.sort("ts").with_columns(elects_master().alias("elected"))
    last = described.group_by(BROKER).agg(pl.col("rocketmq_version").drop_nulls().last(), pl.col("elected").last())
    is_4, is_5 = (major_version() == 4).fill_null(value=False), (major_version() == 5).fill_null(value=False)
    kinds = ((BROKER_4, False), (BROKER_5, True), (BROKER_5, False))
    times = {
        "allowed_ms": [staleness_max(*kind) + SLACK for kind in kinds],
        "first_ms": [schedule(*kind).initial_delay for kind in kinds],
    }
    by_version = [
        pl.when(is_4).then(of_4).when(is_5 & pl.col("elected")).then(elected).otherwise(of_5).cast(pl.Int64).alias(name)
        for name, (of_4, elected, of_5) in times.items()
    ]
    reads = {version: sync_delay_offset(None, "", version)[1] for version in (BROKER_4, BROKER_5)}
    reads_delays = pl.when(is_5).then(reads[BROKER_5]).otherwise(reads[BROKER_4]).alias("reads_delays")
    return slaves.join(last, BROKER, how="left").select(*BROKER, *by_version, reads_delays)


def _entries(
    states: pl.DataFrame, copies: pl.DataFrame, of_master: pl.DataFrame, of: tuple[str, Mapping[str, str]]
) -> pl.DataFrame:
    """Return the entries of copies that the master may not have had: source_name, ts, name, steady.

    ``steady``: both had their values for so long that a turn in between is certain. A new value of the slave is not
    steady: 5.x removes and writes the entries of a turn one after the other, and a copy may have a part of them.
    """
    name, values = of
    now = ms("ts")
    known = states.filter(pl.col("broker_id") == 0)
    if values is DELAY_VALUES:
        following = pl.col("offset").shift(-1).over("source_name", name, order_by="since")
        known = known.with_columns(following.alias("next_offset"))
    master = _states_of_master(known, of_master, name)
    timed = states.filter(pl.col("broker_id") > 0).join(copies.select(*BROKER, "allowed_ms").unique(), BROKER)
    slave = timed.with_columns(
        ms("since").alias("own_from"), ms("until").fill_null(EVER).alias("own_to")
    ).with_row_index("state")
    if values is DELAY_VALUES:
        width, longest = BUCKET, staleness_max(BROKER_5) + SLACK
    else:
        width, longest = EVER, 0  # settings change rarely: one bucket
    span = copies.select(now.min().fill_null(0).alias("first"), now.max().fill_null(0).alias("last")).row(0)
    slave = _with_buckets(slave, pl.col("own_from"), pl.col("own_to"), span, width)
    master = _with_buckets(master, pl.col("may_from"), pl.col("held_to") + longest, span, width)
    pairs = slave.join(master, ["broker_name", name, "bucket"], suffix="_of_master")
    equal = pl.all_horizontal((pl.col(each) == pl.col(f"{each}_of_master")).fill_null(value=True) for each in values)
    lasts = pl.col("surely_to") >= now
    if values is DELAY_VALUES:
        # It only grows: between two copies the master had each offset in between, and none of them afterwards.
        lasts = (pl.col("offset") < pl.col("offset_of_master")).fill_null(value=True)
        equal |= pl.col("offset").is_between("offset_of_master", "next_offset").fill_null(value=False)
    same = ~pl.col("is_there_of_master") | (pl.col("is_there") & equal)
    until = pl.when(pl.col("held_to") < EVER).then(pl.col("held_to") + pl.col("allowed_ms")).otherwise(EVER)
    pairs = pairs.with_columns(same.alias("same"), until.alias("fresh_to"))
    covers = pl.col("same") & (pl.col("may_from") < pl.col("own_from")) & (pl.col("fresh_to") >= pl.col("own_to"))
    unclear = pairs.filter(~covers.any().over("state"))
    times = copies.select("source_name", "ts", (now // width).alias("bucket"))
    at = unclear.drop("ts", strict=False).join(times, ["source_name", "bucket"])
    at = at.filter((pl.col("own_from") <= now) & (now < pl.col("own_to")))
    long_before = now - pl.col("allowed_ms")
    fresh = pl.col("same") & (pl.col("may_from") < now) & (pl.col("fresh_to") >= now)
    steady = ~pl.col("same") & (pl.col("held_from") <= long_before) & lasts & (pl.col("own_from") <= long_before)
    each = at.group_by(*COPY_KEY, pl.col(name).cast(pl.String).alias("name")).agg(
        fresh.any().alias("fresh"), steady.any().alias("steady")
    )
    return each.filter(~pl.col("fresh")).drop("fresh")


def _with_buckets(
    rows: pl.DataFrame, from_ms: pl.Expr, to_ms: pl.Expr, span: tuple[int, int], width: int
) -> pl.DataFrame:
    """Repeat each row for the buckets, of ``width`` ms, of its time within ``span``: pairs are made within a bucket."""
    first, last = (bound.clip(*span) // width for bound in (from_ms, to_ms))
    overlaps = (from_ms <= span[1]) & (to_ms >= span[0])
    listed = rows.filter(overlaps).with_columns(pl.int_ranges(first, last + 1).alias("bucket"))
    return listed.explode("bucket")


def _states_of_master(states: pl.DataFrame, of_master: pl.DataFrame, name: str) -> pl.DataFrame:
    """Add the times in epoch ms at which the master had each state, and a state without the entry before its first.

    It may have had it after ``may_from``, the copy before; it had it from ``held_from`` to ``surely_to``, its last
    copy with it, and maybe to ``held_to``, the next one.
    """
    before = states.group_by("broker_name", name).agg(pl.col("since").min().alias("until"))
    absent = before.with_columns(pl.lit(value=False).alias("is_there"), pl.lit(None, INSTANT).alias("since"))
    every = pl.concat([states, absent], how="diagonal_relaxed").with_columns(
        ms("since").fill_null(NEVER).alias("held_from"), ms("until").fill_null(EVER).alias("held_to")
    )
    for bound, column in (("held_from", "may_from"), ("held_to", "surely_to")):
        known = of_master.select("broker_name", "copied", pl.col("copied").alias(column)).sort("copied")
        every = with_state(every, known, "broker_name", bound, "copied", exact=False)
    open_end = pl.when(pl.col("held_to") == EVER).then(EVER).otherwise(pl.col("surely_to").fill_null(NEVER))
    kept = every.with_columns(pl.col("may_from").fill_null(NEVER - 1), open_end.alias("surely_to"))
    return kept.drop("source_name", "broker_id", "since", "until", "copied", strict=False)


def _with_entries(copies: pl.DataFrame, entries: pl.DataFrame) -> pl.DataFrame:
    """Add differing, the number of entries that differ for certain, names, the first of them, and unclear."""
    steady = pl.col("name").filter("steady")
    counted = entries.group_by(COPY_KEY).agg(
        steady.len().cast(pl.Int64).alias("differing"),
        steady.sort().head(NAMES_KEPT).alias("names"),
        (pl.len() - steady.len()).cast(pl.Int64).alias("unclear"),
    )
    joined = copies.join(counted, COPY_KEY, how="left")
    return joined.with_columns(pl.col("differing", "unclear").fill_null(0))


def _with_master(copies: pl.DataFrame, of_master: pl.DataFrame) -> pl.DataFrame:
    """Add master_ts, the last copy of the master's file up to each copy."""
    known = of_master.with_columns(instant_of("copied")).sort("copied")
    joined = with_state(copies, known, "broker_name", "ts", "copied")
    return joined.rename({"copied": "master_ts"})


def _with_life(copies: pl.DataFrame, lives: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Add alive: slave and master gave signs of life for so long before that a turn of the slave is certain."""
    booted = broker_runtime.filter(pl.col("boot_ts").is_not_null()).select(*BROKER, "boot_ts").unique()
    needed = pl.duration(milliseconds=pl.col("allowed_ms") + pl.col("first_ms"))
    found = copies
    for alias, broker_id in (("slave_alive", pl.col("broker_id")), ("master_alive", pl.lit(0, pl.Int64))):
        one = copies.select(
            *COPY_KEY, "part", "broker_name", broker_id.alias("broker_id"), (pl.col("ts") - needed).alias("from")
        )
        lived = one.join(lives, BROKER).filter((pl.col("since") <= pl.col("from")) & (pl.col("until") >= pl.col("ts")))
        began = one.join(booted, BROKER)
        began = began.filter((pl.col("boot_ts") > pl.col("from")) & (pl.col("boot_ts") <= pl.col("ts")))
        key = [*COPY_KEY, "part"]
        alive = lived.select(key).unique().join(began.select(key).unique(), key, how="anti")
        found = with_flag(found, alive, key, alias)
    return found.with_columns((pl.col("slave_alive") & pl.col("master_alive")).alias("alive"))


def _judged(copies: pl.DataFrame) -> pl.DataFrame:
    has_master, differs = pl.col("master_ts").is_not_null(), pl.col("differing") > 0
    verdict = decided(
        (~has_master, UNDETERMINED, NO_MASTER),
        (differs & (pl.col("part") == DELAY_PART) & ~pl.col("reads_delays"), UNDETERMINED, AT_START),
        (differs & pl.col("alive"), DIFFER, LACKS),
        (differs, UNDETERMINED, COPY_INTERRUPTED),
        (pl.col("unclear") > 0, UNDETERMINED, BETWEEN),
        otherwise=(AGREE, HAD),
    )
    return copies.with_columns(**verdict)


SLAVE_COPY: Final = Decision(
    table="gold.slave_copy",
    instant="ts",
    one="copy of a slave",
    many="copies of slaves",
    importance=16,
    phrases=("{part} of slave {broker_id} of {broker_name}", "{differing} entries differ", VERDICT_WORDS),
    needs=(Need("topics"), Need("subscription_groups"), Need("broker_runtime")),
    rows=by_name(stored_rows, judged="judged_copies"),
    steps={"judged_copies": by_name(slave_copy, snapshot="raw_snapshot")},
    counted="judged_copies",
)
