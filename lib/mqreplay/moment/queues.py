"""The queues of groups at an instant: owner, committed offset, end, last suggestion, lock."""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.core.pull_check import FLAG_COMMIT_OFFSET
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.core.topic_route import MASTER_ID
from mqreplay.decisions.queue_owner import LOCKED_S, lock_intervals
from mqreplay.evidence.arrays.keys import KEY, QUEUE
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.brokers.broker_descriptions import has_store_plug_in
from mqreplay.evidence.members.membership import MEMBER
from mqreplay.evidence.members.observed_clients import POLLED_S, RUNNING_INFO
from mqreplay.evidence.offsets.queue_events import accepted_commits
from mqreplay.moment.instant import Recorded
from mqreplay.moment.members import goes_on
from mqreplay.quantity import counted

GROUP_QUEUE: Final = ["consumer_group", *QUEUE]
COLUMNS: Final = (
    *("consumer_group", "topic", "broker_name", "queue_id", "owners", "owned_since", "owned_by"),
    *("last_owners", "unknown_since"),
    *("committed", "committed_ts", "committed_by", "end_offset", "end_ts", "lag"),
    *("suggested_broker_id", "suggested_ts", "locked_by"),
)
OF_COMMIT: Final = ("kind", "commit_offset", "ts", "error", "response_code", "remark")
DAY: Final = dt.timedelta(days=1)
LOCKS_REACH: Final = dt.timedelta(seconds=2 * LOCKED_S)


def queues_at(recorded: Recorded, at: dt.datetime, group: str | None = None) -> pl.DataFrame:
    """Return one row for each queue that a group held, committed or pulled: COLUMNS.

    ``owners``: the clients that held it, mostly one; ``owned_by``: the evidence for it (gold.queue_owner.source). Null:
    not known since ``unknown_since``, because the next poll of ``last_owners`` failed.
    ``committed``: the offset in the master, by the last commit, pull with a commit, or copy of its offsets that was
    recorded before ``at``; ``committed_by`` says which. ``end_offset``: the queue's end in the last answer of its
    master. ``lag`` in messages; null where one of them is not known. ``locked_by``: the client whose lock is valid.
    """
    owners = _of(owners_at(recorded, at), group)
    committed = _of(committed_at(recorded, at), group)
    suggested = _of(suggestions_at(recorded, at), group)
    locked = _of(locks_at(recorded, at), group)
    known = pl.concat([frame.select(GROUP_QUEUE) for frame in (owners, committed, suggested)]).unique()
    joined = known
    for frame in (owners, committed, suggested, locked):
        joined = joined.join(frame, GROUP_QUEUE, how="left")
    ended = joined.join(ends_at(recorded, at), QUEUE, how="left")
    unowned = ended.filter(pl.col("owners").is_null()).select(GROUP_QUEUE)
    ended = ended.join(last_owners(recorded, at, unowned), GROUP_QUEUE, how="left")
    lag = (pl.col("end_offset") - pl.col("committed")).clip(0)
    owned = pl.when(pl.col("last_owners").is_null()).then(pl.col("owners").fill_null([])).otherwise("owners")
    return ended.with_columns(lag.alias("lag"), owned.alias("owners")).select(COLUMNS).sort(GROUP_QUEUE)


def _of(rows: pl.LazyFrame, group: str | None) -> pl.DataFrame:
    return (rows if group is None else rows.filter(pl.col("consumer_group") == group)).collect()


def owners_at(recorded: Recorded, at: dt.datetime) -> pl.LazyFrame:
    """Return the owners of each queue: consumer_group, broker_name, topic, queue_id, owners, owned_since, owned_by."""
    begun = recorded.begun("gold.queue_owner", at)
    # A client that goes on after the recording still holds what it held at its last sign of life.
    sessions = recorded.begun("gold.member", at).filter(goes_on(recorded)).select(*MEMBER, "to_ts")
    going_on = begun.filter(pl.col("to_ts") <= at).join(sessions, [*MEMBER, "to_ts"], how="semi")
    held = pl.concat([begun.filter((pl.col("to_ts") > at) | (pl.col("to_ts") >= recorded.last)), going_on])
    return held.group_by(GROUP_QUEUE).agg(
        pl.col("client_id").unique().sort().alias("owners"),
        pl.col("from_ts").min().alias("owned_since"),
        pl.col("source").min().alias("owned_by"),
    )


def last_owners(recorded: Recorded, at: dt.datetime, queues: pl.DataFrame) -> pl.DataFrame:
    """Return the members that held queues without an owner, if they gave no answer since: GROUP_QUEUE, last_owners,
    unknown_since.

    Another answer without the queue would show that nobody holds it. ``unknown_since``: when the last answer with the
    queue was certainly valid.
    """
    ended = recorded.before("gold.queue_owner", "to_ts", at, DAY).filter(pl.col("source") == RUNNING_INFO).collect()
    last = ended.join(queues, GROUP_QUEUE, how="semi").filter(
        pl.col("to_ts") == pl.col("to_ts").max().over(GROUP_QUEUE)
    )
    held = pl.col("to_ts") >= at
    sessions = recorded.begun("gold.member", at).filter(held | goes_on(recorded)).select(MEMBER).collect()
    asked = last.join(sessions, MEMBER, how="semi").with_columns(_next=pl.col("to_ts") + pl.duration(microseconds=1))
    polls = recorded.before("silver.assignment", "ts", at + dt.timedelta(seconds=2 * POLLED_S), DAY)
    answered = pl.when(pl.col("error").is_null()).then("ts").alias("answered_ts")
    of_clients = polls.filter(pl.col("source") == RUNNING_INFO).select(*MEMBER, "ts", answered).collect()
    names = {"polled_ts": "ts", "answered_ts": "answered_ts"}
    met = as_of(asked, of_clients, MEMBER, "_next", names, right_at="ts", after=True)
    answer = pl.col("answered_ts")
    silent = met.filter(
        pl.col("polled_ts").is_not_null() & ((answer > pl.col("polled_ts")) & (answer > at)).fill_null(True)
    )
    return silent.group_by(GROUP_QUEUE).agg(
        pl.col("client_id").unique().sort().alias("last_owners"), pl.col("to_ts").max().alias("unknown_since")
    )


def unknown_owners(queues: pl.DataFrame) -> list[str]:
    """Return a sentence for each client whose queues have no known owner; ``queues`` are rows of `queues_at`."""
    lost = queues.filter(pl.col("owners").is_null()).explode("last_owners")
    of_client = (
        lost.group_by("consumer_group", "last_owners").agg(pl.len(), pl.col("unknown_since").max()).sort(pl.all())
    )
    return [
        f"the owner of {counted(number, 'queue')} of {group} since {since:%H:%M:%S} UTC: {client} held it until then,"
        " and its next poll failed"
        for group, client, number, since in of_client.rows()
    ]


def committed_at(recorded: Recorded, at: dt.datetime) -> pl.LazyFrame:
    """Return the offset of each group and queue in its master: committed, committed_ts and committed_by.

    A commit sets the offset, also a lower one (ConsumerOffsetManager#commitOffset); a pull that carries one does, too
    (PullMessageProcessor#processRequest). ``committed`` is null if a copy shows that the offset was removed.
    """
    last = commits_before(recorded, at).sort("committed_ts", "committed_by", "committed")
    return last.group_by(GROUP_QUEUE).last()


def commits_before(recorded: Recorded, at: dt.datetime, group: str | None = None) -> pl.LazyFrame:
    """Return what set the offsets of a group, or of all, in their masters: GROUP_QUEUE and the columns of
    `committed_at`."""
    of_group = pl.lit(value=True) if group is None else pl.col("consumer_group") == group
    changes = recorded.before("silver.offset_change", "to_ts", at).filter(of_group)
    kept = recorded.before("silver.offset_checkpoint", "to_ts", at).filter(of_group)
    of_copies = [
        frame.select(*GROUP_QUEUE, "broker_id", "client_id", "new_offset", "to_ts") for frame in (kept, changes)
    ]
    copied = pl.concat(of_copies).filter((pl.col("broker_id") == MASTER_ID) & pl.col("client_id").is_null())
    reach = dt.timedelta(days=1)
    of_master = pl.col("broker_id").fill_null(MASTER_ID) == MASTER_ID
    sent = recorded.before("silver.offset_commit", "ts", at, reach).filter(of_master & of_group)
    commits = accepted_commits(sent.select(*GROUP_QUEUE, *OF_COMMIT).collect()).lazy()
    carries = (pl.col("sys_flag") & FLAG_COMMIT_OFFSET) == FLAG_COMMIT_OFFSET
    pulls = recorded.before("silver.pull", "request_ts", at, reach).filter(
        carries & of_master & of_group & (pl.col("commit_offset") > 0)
    )
    events = [
        _event(copied, "new_offset", "to_ts", "copy"),
        _event(commits, "commit_offset", "ts", "commit"),
        _event(pulls, "commit_offset", "request_ts", "pull"),
    ]
    return pl.concat(events)


def _event(rows: pl.LazyFrame, offset: str, ts: str, by: str) -> pl.LazyFrame:
    return rows.select(
        *GROUP_QUEUE,
        pl.col(offset).alias("committed"),
        pl.col(ts).alias("committed_ts"),
        pl.lit(by).alias("committed_by"),
    )


def ends_at(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    """Return the last known end of each queue: broker_name, topic, queue_id, end_offset, end_ts.

    An answer that comes after a later request may be the older one: of these the highest end counts.
    """
    reach = dt.timedelta(days=1)
    stats = recorded.before("silver.topic_stats", "ts", at, reach)
    pull = recorded.before("silver.pull", "response_ts", at, reach)
    stated = stated_ends(recorded, stats, pull).rename({"ts": "end_ts"})
    newest = stated.filter(pl.col("end_ts") >= pl.col("asked_ts").max().over(QUEUE))
    return newest.sort("end_offset", "end_ts").group_by(QUEUE).last().drop("asked_ts").collect()


def stated_ends(recorded: Recorded, topic_stats: pl.LazyFrame, pull: pl.LazyFrame) -> pl.LazyFrame:
    """Return the ends of queues that masters stated, in polls and answers.

    Columns: broker_name, topic, queue_id, asked_ts, ts, end_offset; see evidence.offsets.queue_ends.

    The frames are rows of silver.topic_stats and silver.pull. A plug-in of the store may state another end of its own.
    """
    of_master = pl.col("broker_id") == MASTER_ID
    polled = topic_stats.filter(of_master & pl.col("offsets").is_not_null())
    each = polled.select("ts", "offsets").explode("offsets").unnest("offsets")
    answered = pull.filter(of_master & pl.col("max_offset").is_not_null())
    described = recorded.before("silver.broker", "ts", recorded.last)
    plug_ins = described.filter(has_store_plug_in()).select("broker_name", "broker_id").unique()
    read = (pl.col("queue_offset") < pl.col("max_offset")).fill_null(value=True)
    by_store = answered.filter(read).join(plug_ins, ["broker_name", "broker_id"], how="anti")
    answered = pl.concat([answered.filter(~read), by_store])
    end = pl.col("max_offset").alias("end_offset")
    answered_ts = pl.col("response_ts").alias("ts")
    return pl.concat(
        [
            each.select(*QUEUE, pl.col("ts").alias("asked_ts"), "ts", end),
            answered.select(*QUEUE, pl.col("request_ts").alias("asked_ts"), answered_ts, end),
        ]
    )


def suggestions_at(recorded: Recorded, at: dt.datetime) -> pl.LazyFrame:
    """Return the last broker that an answer suggested for each queue: suggested_broker_id, suggested_ts."""
    answers = recorded.before("silver.pull", "response_ts", at, dt.timedelta(days=1))
    suggested = answers.filter(pl.col("suggest_which_broker_id").is_not_null()).select(
        *GROUP_QUEUE,
        pl.col("suggest_which_broker_id").alias("suggested_broker_id"),
        pl.col("response_ts").alias("suggested_ts"),
    )
    return suggested.sort("suggested_ts", "suggested_broker_id").group_by(GROUP_QUEUE).last()


def locks_at(recorded: Recorded, at: dt.datetime) -> pl.LazyFrame:
    """Return the client whose lock of a queue is valid: locked_by (RebalanceLockManager, 60 s)."""
    lock = recorded.before("silver.lock", "ts", at, LOCKS_REACH).collect()
    day = recorded.begun("gold.member", at).filter(pl.col("to_ts") >= at).select(*MEMBER, "from_ts", "to_ts").collect()
    held = lock_intervals(lock, day).filter((pl.col("from_ts") <= at) & (pl.col("to_ts") > at))
    return held.lazy().group_by(KEY).agg(pl.col("client_id").last().alias("locked_by"))


def without_retry_topics(queues: pl.DataFrame) -> pl.DataFrame:
    """Return the queues of topics that applications send to."""
    return queues.filter(~pl.col("topic").str.starts_with(RETRY))
