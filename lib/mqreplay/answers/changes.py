"""What changed between two instants, in order, each with its cause."""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.answers.state import with_summaries
from mqreplay.decisions.member import SILENT
from mqreplay.evidence.intervals import INSTANT, with_state
from mqreplay.language.language import Language, in_english
from mqreplay.moment.brokers import settings_of
from mqreplay.moment.instant import Recorded
from mqreplay.moment.queues import goes_on
from mqreplay.report.failover_words import grouped_steps, step_text, why_text
from mqreplay.words.keys import BROKER, MEMBER

CHANGE_COLUMNS: Final[dict[str, pl.DataType]] = {
    "ts": INSTANT,
    "change": pl.String(),  # CHANGES
    "consumer_group": pl.String(),
    "topic": pl.String(),
    "broker_name": pl.String(),
    "client_id": pl.String(),
    "what": pl.String(),
    "cause": pl.String(),
}
CHANGES: Final = ("broker", "member", "owner", "offset", "setting", "finding")
SOON: Final = dt.timedelta(seconds=60)  # three rebalances: a queue that moves later does so for another cause
NO_CAUSE: Final = pl.lit(None, pl.String).alias("cause")
NOT_CUT: Final = pl.col("ts").dt.time() != dt.time()  # rows of spans are cut at midnight
NOT_SEEN: Final = "no member of the group joined or left in the minute before"
HOW: Final = {
    "unregistered": "it unregistered",
    "closed": "a broker closed its connection",
    "expired": "a broker heard nothing of it for two minutes",
    SILENT: "its last sign of life",
}


def changes_between(
    recorded: Recorded,
    since: dt.datetime,
    until: dt.datetime,
    group: str | None = None,
    broker: str | None = None,
    words: Language | None = None,
) -> pl.DataFrame:
    """Return the changes after ``since``, up to ``until``: CHANGE_COLUMNS, in order of time.

    Steps of outages (gold.failover_step), members that join or leave, queues that are taken or released, offsets that
    break (gold.offset_continuity), settings of brokers, and findings that begin or end. Of one group or broker, if they
    are named; a change without a group or broker concerns all of them. Outages and summaries of findings are in the
    language ``words``; None: English.
    """
    members = _member_changes(recorded, since - SOON, until)
    frames = [
        _outage_steps(recorded, since, until, words or in_english()),
        members.filter(pl.col("ts") > since),
        _owner_changes(recorded, since, until, members),
        _offset_breaks(recorded, since, until),
        _setting_changes(recorded, since, until),
        _finding_changes(recorded, since, until, words),
    ]
    found = pl.concat([_shaped(frame) for frame in frames])
    for name, wanted in (("consumer_group", group), ("broker_name", broker)):
        found = found if wanted is None else found.filter(pl.col(name).is_null() | (pl.col(name) == wanted))
    return found.sort("ts", "change", *list(CHANGE_COLUMNS)[2:], maintain_order=True)


def _shaped(frame: pl.DataFrame) -> pl.DataFrame:
    there = set(frame.columns)
    return frame.select(
        (pl.col(name) if name in there else pl.lit(None)).cast(kind).alias(name)
        for name, kind in CHANGE_COLUMNS.items()
    )


def _outage_steps(recorded: Recorded, since: dt.datetime, until: dt.datetime, words: Language) -> pl.DataFrame:
    """Return the steps of outages: a broker that stops answering or is removed from routes, readers that go elsewhere.

    Clients that do the same for one reason are one row.
    """
    steps = recorded.between("gold.failover_step", "ts", since, until).collect()
    rows = []
    by_broker = steps.partition_by("broker_name", "broker_id", maintain_order=True)
    for each in (group for one in by_broker for group in grouped_steps(one.to_dicts())):
        first, last = each[0], each[-1]
        begin, end = (f"{row['ts']:%H:%M:%S}" for row in (first, last))
        text = step_text(each, words)
        if begin != end:
            text = words.filled("{text}, {more}", text=text, more=words.filled("until {time}", time=end))
        what = words.filled("{text}: {more}", text=f"{first['broker_name']}/{first['broker_id']}", more=text)
        rows.append((first["ts"], "broker", first["broker_name"], what, why_text(each, words)))
    names = ("ts", "change", "broker_name", "what", "cause")
    return pl.DataFrame(rows, {name: CHANGE_COLUMNS[name] for name in names}, orient="row")


def _member_changes(recorded: Recorded, since: dt.datetime, until: dt.datetime) -> pl.DataFrame:
    """Return the members that joined and left; sessions are cut at midnight and at the end of the recording."""
    joined = recorded.between("gold.member", "from_ts", since, until).select(
        *MEMBER, pl.col("from_ts").alias("ts"), pl.lit("joined the group").alias("what"), NO_CAUSE
    )
    left = recorded.between("gold.member", "to_ts", since, until).filter(~goes_on(recorded))
    how = pl.col("ended").replace_strict(HOW, default=None, return_dtype=pl.String).alias("cause")
    gone = left.select(*MEMBER, pl.col("to_ts").alias("ts"), pl.lit("left the group").alias("what"), how)
    rows = pl.concat([joined, gone]).filter(NOT_CUT)
    return rows.with_columns(pl.lit("member").alias("change")).collect()


def _owner_changes(recorded: Recorded, since: dt.datetime, until: dt.datetime, members: pl.DataFrame) -> pl.DataFrame:
    """Return the queues that each client took, or released, within a second: one row for each topic and broker."""
    queue = (*MEMBER, "topic", "broker_name", "queue_id")
    taken = recorded.between("gold.queue_owner", "from_ts", since, until).select(
        *queue, pl.col("from_ts").alias("ts"), pl.lit("took").alias("did")
    )
    # What a client holds at the end of the recording it does not release.
    lasting = recorded.between("gold.member", "to_ts", since, until).filter(goes_on(recorded)).select(*MEMBER, "to_ts")
    ended = recorded.between("gold.queue_owner", "to_ts", since, until).join(lasting, [*MEMBER, "to_ts"], how="anti")
    released = ended.select(*queue, pl.col("to_ts").alias("ts"), pl.lit("released").alias("did"))
    moved = pl.concat([taken, released]).filter(NOT_CUT).collect()
    grouped = (
        moved.with_columns(pl.col("ts").dt.truncate("1s").alias("second"))
        .group_by(*MEMBER, "topic", "broker_name", "did", "second")
        .agg(pl.col("ts").min(), pl.col("queue_id").unique().sort())
    )
    ids = pl.col("queue_id").cast(pl.List(pl.String)).list.join(", ")
    word = pl.when(pl.col("queue_id").list.len() == 1).then(pl.lit("queue")).otherwise(pl.lit("queues"))
    what = pl.format("{} {} {} of {} on {}", "did", word, ids, "topic", "broker_name")
    causes = members.select("consumer_group", "ts", pl.format("{} {}", "client_id", "what").alias("cause")).sort("ts")
    named = grouped.with_columns(what.alias("what"), pl.lit("owner").alias("change")).sort("ts")
    joined = with_state(named, causes, "consumer_group", "ts", within=SOON)
    return joined.with_columns(pl.col("cause").fill_null(NOT_SEEN))


def _offset_breaks(recorded: Recorded, since: dt.datetime, until: dt.datetime) -> pl.DataFrame:
    breaks = recorded.between("gold.offset_continuity", "to_ts", since, until).filter(pl.col("broker_id") == 0)
    what = pl.format(
        "{} of queue {} from {} to {}",
        "kind",
        "queue_id",
        pl.col("previous_offset").cast(pl.String).fill_null("none"),
        pl.col("new_offset").cast(pl.String).fill_null("none"),
    )
    named = (what.alias("what"), pl.col("to_ts").alias("ts"), pl.lit("offset").alias("change"))
    return breaks.select("consumer_group", "topic", "broker_name", *named, "cause").collect()


def _setting_changes(recorded: Recorded, since: dt.datetime, until: dt.datetime) -> pl.DataFrame:
    """Return the settings of brokers whose descriptions differ from those before."""
    each = settings_of(recorded.before("silver.broker", "ts", until)).sort("ts")
    key = (*BROKER, "name")
    before = pl.col("value").shift(1).over(key)
    changed = each.with_columns(before.alias("before")).filter(
        (pl.col("ts") > since) & pl.col("before").is_not_null() & (pl.col("before") != pl.col("value"))
    )
    what = pl.format("{} of broker {} is {} (was {})", "name", "broker_id", "value", "before")
    return changed.select("ts", "broker_name", what.alias("what"), pl.lit("setting").alias("change"))


def _finding_changes(
    recorded: Recorded, since: dt.datetime, until: dt.datetime, words: Language | None
) -> pl.DataFrame:
    known = recorded.before("gold.finding", "from_ts", until).sort("day").unique("finding_id", keep="last")
    near = pl.any_horizontal(pl.col("from_ts", "to_ts").is_between(since, until))
    found = with_summaries(known.filter(near).collect(), words)
    of = ("consumer_group", "topic", "broker_name")
    head = pl.format("{} {} ({})", "severity", "kind", pl.col("finding_id").str.head(8))
    begins = found.select(*of, pl.col("from_ts").alias("ts"), pl.format("begins: {}", head).alias("what"), "summary")
    ends = found.select(
        *of,
        pl.col("to_ts").alias("ts"),
        pl.format("ends: {}", head).alias("what"),
        pl.lit(None, pl.String).alias("summary"),
    )
    rows = pl.concat([begins, ends]).filter((pl.col("ts") > since) & (pl.col("ts") <= until))
    return rows.with_columns(pl.lit("finding").alias("change")).rename({"summary": "cause"})
