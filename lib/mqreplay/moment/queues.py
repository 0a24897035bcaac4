"""The members of groups at an instant, and their queues: owner, committed offset, end, lag, last suggestion, lock."""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.decisions.member import SILENT
from mqreplay.decisions.queue_owner import LOCKED_S, lock_intervals
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.members.membership import consumer_groups
from mqreplay.evidence.members.observed_clients import POLLED_S, RUNNING_INFO
from mqreplay.evidence.offsets.queue_ends import lag_of
from mqreplay.moment.instant import Recorded
from mqreplay.moment.offsets import committed_at, ends_at
from mqreplay.words.keys import GROUP_QUEUE, MEMBER, QUEUE
from mqreplay.words.quantity import counted
from mqreplay.words.time_span import ONE_DAY

QUEUE_COLUMNS: Final = (
    *("consumer_group", "topic", "broker_name", "queue_id", "owners", "owned_since", "owned_by"),
    *("last_owners", "unknown_since"),
    *("committed", "committed_ts", "committed_by", "end_offset", "end_ts", "lag"),
    *("suggested_broker_id", "suggested_ts", "locked_by"),
)
LOCKS_REACH: Final = dt.timedelta(seconds=2 * LOCKED_S)
LAST_SIGN: Final = dt.timedelta(seconds=60)  # two heartbeats: the last sign of life of a client that goes on
MEMBER_COLUMNS: Final = (
    *(*MEMBER, "member_since", "shares_queues", "message_model", "consume_from_where", "strategy"),
    *("queues", "computed_ts"),
)


def queues_at(recorded: Recorded, at: dt.datetime, group: str | None = None) -> pl.DataFrame:
    """Return one row for each queue that a group held, committed or pulled: QUEUE_COLUMNS.

    ``owners``: the clients that held it, mostly one; ``owned_by``: the evidence for it (gold.queue_owner.source). Null:
    not known since ``unknown_since``, because the next poll of ``last_owners`` failed.
    ``committed``: the offset in the master, by the last commit, pull with a commit, or copy of its offsets that was
    recorded before ``at``; ``committed_by`` says which. ``end_offset``: the queue's end in the last answer of its
    master. ``lag`` is `lag_of` both, in messages. ``locked_by``: the client whose lock is valid.
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
    owned = pl.when(pl.col("last_owners").is_null()).then(pl.col("owners").fill_null([])).otherwise("owners")
    return (
        ended.with_columns(lag_of("end_offset", "committed"), owned.alias("owners"))
        .select(QUEUE_COLUMNS)
        .sort(GROUP_QUEUE)
    )


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
    ended = recorded.before("gold.queue_owner", "to_ts", at, ONE_DAY).filter(pl.col("source") == RUNNING_INFO).collect()
    last = ended.join(queues, GROUP_QUEUE, how="semi").filter(
        pl.col("to_ts") == pl.col("to_ts").max().over(GROUP_QUEUE)
    )
    held = pl.col("to_ts") >= at
    sessions = recorded.begun("gold.member", at).filter(held | goes_on(recorded)).select(MEMBER).collect()
    asked = last.join(sessions, MEMBER, how="semi").with_columns(_next=pl.col("to_ts") + pl.duration(microseconds=1))
    polls = recorded.before("silver.assignment", "ts", at + dt.timedelta(seconds=2 * POLLED_S), ONE_DAY)
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


def suggestions_at(recorded: Recorded, at: dt.datetime) -> pl.LazyFrame:
    """Return the last broker that an answer suggested for each queue: suggested_broker_id, suggested_ts."""
    answers = recorded.before("silver.pull", "response_ts", at, ONE_DAY)
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
    return held.lazy().group_by(GROUP_QUEUE).agg(pl.col("client_id").last().alias("locked_by"))


def without_retry_topics(queues: pl.DataFrame) -> pl.DataFrame:
    """Return the queues of topics that applications send to."""
    return queues.filter(~pl.col("topic").str.starts_with(RETRY))


def members_at(recorded: Recorded, at: dt.datetime, group: str | None = None) -> pl.DataFrame:
    """Return one row for each client that was a member of a group: MEMBER_COLUMNS.

    ``strategy`` is that of the client's last rebalance, ``queues`` the number of queues that it computed for itself
    then, of all its topics, at ``computed_ts``; null where none was recorded.
    """
    held = pl.col("to_ts") >= at
    sessions = recorded.begun("gold.member", at).filter(held | goes_on(recorded))
    chosen = (sessions if group is None else sessions.filter(pl.col("consumer_group") == group)).collect()
    since = chosen.group_by(MEMBER).agg(pl.col("from_ts").min().alias("member_since"), pl.col("shares_queues").all())
    known = since.join(_stated(recorded, at), MEMBER, how="left").join(_computed(recorded, at), MEMBER, how="left")
    return known.select(MEMBER_COLUMNS).sort(MEMBER)


def goes_on(recorded: Recorded) -> pl.Expr:
    """Return whether a session of gold.member ends only because the recording does."""
    return (pl.col("ended") == SILENT) & (pl.col("to_ts") >= recorded.last - LAST_SIGN)


def _stated(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    """Return what the last heartbeat of each member states: message_model, consume_from_where."""
    beats = recorded.before("silver.heartbeat", "ts", at, dt.timedelta(days=1))
    groups = consumer_groups(beats.filter(pl.col("consumer_data_set").is_not_null()).collect())
    last = groups.sort("ts", "record_id").group_by(MEMBER).last()
    return last.select(*MEMBER, "message_model", "consume_from_where")


def _computed(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    """Return the shares that each member computed last, of all its topics: strategy, queues, computed_ts."""
    computed = recorded.before("silver.rebalance", "ts", at, dt.timedelta(days=1)).filter(
        pl.col("mq_divided").is_not_null()
    )
    last = computed.sort("ts", "record_id").group_by(*MEMBER, "topic").last()
    shares = last.group_by(MEMBER).agg(
        pl.col("strategy").sort_by("ts").last(),
        pl.col("mq_divided").list.len().sum().cast(pl.Int64).alias("queues"),
        pl.col("ts").max().alias("computed_ts"),
    )
    return shares.collect()
