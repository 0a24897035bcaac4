"""Members of consumer groups over time, by every sign of life of clients.

ConsumerManager keeps a client in a group from its first heartbeat until it unregisters, its channel closes, or 120 s
pass without a heartbeat. A session here ends with UNREGISTER_CLIENT, or with the last sign before a silence. That a
broker closed a client's connection (dropped_clients.py) is no sign of life: it shows how a session ended.

Signs are rows of SIGNS: a client acted as a member from ``from_ts`` to ``to_ts``, never silent for longer than a
session allows. Pulls and commits are many: each shard reduces its own to such spans. A span never contains the instant
at which a client that unregistered counts as back, so it is always within one session.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import polars as pl

from mqreplay.core.pull_check import FLAG_COMMIT_OFFSET
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.core.system_names import is_made_by_brokers, is_system_group
from mqreplay.evidence.arrays.distinct import distinct_values, value_numbers
from mqreplay.evidence.frames import columns, ms, typed
from mqreplay.evidence.intervals import INSTANT, with_run, with_state
from mqreplay.words.keys import MEMBER

BROADCASTING = "BROADCASTING"
PUSH = "CONSUME_PASSIVELY"  # ConsumeType of a push consumer
SIGNS: dict[str, pl.DataType] = columns("consumer_group", "client_id", "from_ts", "to_ts", "sign")
LISTED, UNLISTED = "listed", "unlisted"  # signs: a broker named the member; it vanished (listed_members.py)
# Signs: a broker's log shows that the connection closed, or expired, from the last heartbeat until the broker noticed.
CLOSED, EXPIRED = "closed", "expired"
_LATE_MS = 5_000  # an answer on its way, a last commit: no new session after UNREGISTER_CLIENT


def is_own_group() -> pl.Expr:
    """Return whether a group is not one of RocketMQ's own."""
    return ~pl.col("consumer_group").map_elements(is_system_group, pl.Boolean)


def is_of_application() -> pl.Expr:
    """Return whether an application's own topic and group are meant; retry topics have findings of their own."""
    return is_own_group() & ~pl.col("topic").map_elements(is_made_by_brokers, pl.Boolean)


def subscriptions(heartbeat: pl.DataFrame) -> pl.DataFrame:
    """Return the subscriptions in heartbeats: one row for each heartbeat and group.

    Columns: consumer_group, client_id, ts, message_model, topics (list of subscribed topics), subscribed (as text),
    record_id. ``subscribed`` is without the retry topic, which each client adds automatically. Topics and subscribed
    are null of a heartbeat that does not list subscriptions.
    """
    each = consumer_groups(heartbeat)
    # Clients repeat their heartbeats: the text is made once for each distinct list.
    lists, list_of = distinct_values(each, ["subscriptions"])
    topics = pl.col("subscriptions").list.eval(_field("topic")).alias("topics")
    texts = lists.select(topics, subscribed())
    return pl.concat([each, texts[list_of]], how="horizontal").select(
        *MEMBER, "ts", "message_model", "topics", "subscribed", "record_id"
    )


def subscribed() -> pl.Expr:
    """Return the text of ``subscriptions``, ``subscribed``, without the retry topic."""
    topic, expression_type, sub_string = (_field(name) for name in ("topic", "expression_type", "sub_string"))
    text = pl.concat_str([topic, expression_type, sub_string], separator=" ", ignore_nulls=True)
    own = text.filter(~topic.str.starts_with(RETRY)).sort()
    return pl.col("subscriptions").list.eval(own).list.join("; ").alias("subscribed")


def _field(name: str) -> pl.Expr:
    return pl.element().struct.field(name)


def consumer_groups(heartbeat: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each heartbeat and consumer group.

    Columns: consumer_group, client_id, ts, message_model, consume_from_where, consume_type, subscriptions, record_id.
    """
    beats = heartbeat.filter((pl.col("kind") == "HEART_BEAT") & (pl.col("consumer_data_set").list.len() > 0))
    each = beats.select("client_id", "ts", "record_id", pl.col("consumer_data_set").alias("group")).explode("group")
    group = pl.col("group").struct
    return each.select(
        group.field("group_name").alias("consumer_group"),
        "client_id",
        "ts",
        group.field("message_model"),
        group.field("consume_from_where"),
        group.field("consume_type"),
        group.field("subscriptions"),
        "record_id",
    )


def named_groups(heartbeat: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Return consumer_group and the columns ``names`` for each heartbeat and group: less than `consumer_groups`."""
    groups = pl.col("consumer_data_set").list.eval(_field("group_name")).alias("consumer_group")
    beats = heartbeat.select(pl.when(pl.col("kind") == "HEART_BEAT").then(groups), *names)
    return beats.explode("consumer_group").drop_nulls("consumer_group")


def push_consumers(consumers: pl.DataFrame) -> pl.DataFrame:
    """Return MEMBER of the push consumers: they commit what their listener has finished.

    ``consumers`` has the columns of `consumer_groups`.
    """
    return consumers.filter(pl.col("consume_type") == PUSH).select(MEMBER).unique()


def unregistrations(heartbeat: pl.DataFrame) -> pl.DataFrame:
    """Return each UNREGISTER_CLIENT request for a consumer group.

    Columns: consumer_group, client_id, ts.
    """
    left = heartbeat.filter(pl.col("unregistered_consumer_group").is_not_null())
    return left.select(pl.col("unregistered_consumer_group").alias("consumer_group"), "client_id", "ts")


def signs(heartbeat: pl.DataFrame, rebalance: pl.DataFrame, assignment: pl.DataFrame) -> pl.DataFrame:
    """Return the signs of life of clients in all tables but pulls and commits.

    Columns: consumer_group, client_id, from_ts, to_ts, sign. Rebalances and assignments have one sign a second at most.

    The frames have the rows that hooks recorded.
    """
    holding = assignment.filter(pl.col("queues").list.len() > 0)
    by_log = (pl.col("source") == "broker_log").fill_null(False)
    return pl.concat(
        [
            _moments(unregistrations(heartbeat), "unregister"),
            _moments(consumer_groups(heartbeat.filter(~by_log)), "heartbeat"),
            # A broker's log has only the first heartbeat, so it proves no silence.
            _moments(consumer_groups(heartbeat.filter(by_log)), LISTED),
            _moments(_seconds(rebalance, "ts"), "rebalance"),
            _moments(_seconds(holding, "ts"), "assignment"),
        ]
    )


def pull_signs_of_shard(pull: pl.DataFrame, unregistered: pl.DataFrame, silent_s: int) -> pl.DataFrame:
    """Return the signs of life in a shard's pulls; ``unregistered`` is the night's frame of `unregistrations`.

    Columns: consumer_group, client_id, from_ts, to_ts, sign.
    """
    return _act_spans(_seconds(pull, "request_ts"), "pull", unregistered, silent_s)


def commit_signs_of_shard(offset_commit: pl.DataFrame, unregistered: pl.DataFrame, silent_s: int) -> pl.DataFrame:
    """Return the signs of life in a shard's commits; ``unregistered`` is the night's frame of `unregistrations`.

    Columns: consumer_group, client_id, from_ts, to_ts, sign.
    """
    return _act_spans(_seconds(offset_commit, "ts"), "commit", unregistered, silent_s)


def heartbeat_signs_of_shard(heartbeat: pl.DataFrame, unregistered: pl.DataFrame, silent_s: int) -> pl.DataFrame:
    """Return the signs of life in any part of the heartbeats, but those of brokers' logs.

    Columns: consumer_group, client_id, from_ts, to_ts, sign. ``unregistered`` is the night's frame of
    `unregistrations`.
    """
    by_log = pl.col("source").eq_missing("broker_log")
    sent = named_groups(heartbeat, "client_id", "ts", "source").filter(~by_log)
    return _act_spans(sent.drop("source").unique(), "heartbeat", unregistered, silent_s)


def _seconds(rows: pl.DataFrame, ts: str) -> pl.DataFrame:
    return rows.select(*MEMBER, pl.col(ts).dt.truncate("1s").alias("ts")).unique()


def _moments(rows: pl.DataFrame, sign: str) -> pl.DataFrame:
    span = [pl.col("ts").alias("from_ts"), pl.col("ts").alias("to_ts")]
    signs = rows.select(*MEMBER, *span, pl.lit(sign).alias("sign"))
    return typed(signs, SIGNS)


def _act_spans(acts: pl.DataFrame, sign: str, unregistered: pl.DataFrame, silent_s: int) -> pl.DataFrame:
    """Return the spans of a member's acts at most ``silent_s`` seconds apart, split where a client counts as back.

    Columns: consumer_group, client_id, from_ts, to_ts, sign.

    Only the first act of a span can begin a session: no other one follows a silence, and no other one is the first
    that is later than _LATE_MS after an UNREGISTER_CLIENT. So all acts of a span are of one session, and its ends
    are enough for `membership`.
    """
    late = (pl.col("ts").dt.truncate("1ms") + pl.duration(milliseconds=_LATE_MS)).cast(INSTANT)
    cuts = unregistered.select(*MEMBER, late.alias("ts"), late.alias("_cut")).sort("ts")
    cut = with_state(acts, cuts, MEMBER, "ts", exact=False)
    by_member = cut.with_columns(value_numbers(cut, MEMBER, "_member"))
    before = pl.col("ts", "_cut").shift(1).over("_member").name.suffix("_before")
    gap_ms = ms("ts") - ms("ts_before")
    begins = gap_ms.is_null() | (gap_ms > silent_s * 1000) | pl.col("_cut").ne_missing(pl.col("_cut_before"))
    runs = with_run(by_member.with_columns(before), begins, ["_member"]).group_by("_member", "run")
    extent = (pl.col("ts").min().alias("from_ts"), pl.col("ts").max().alias("to_ts"))
    return typed(runs.agg(pl.col(MEMBER).first(), *extent, pl.lit(sign).alias("sign")), SIGNS)


def membership(signs: pl.DataFrame, silent_s: int) -> pl.DataFrame:
    """Return the sessions of the members of consumer groups.

    Columns: consumer_group, client_id, session, from_ts, to_ts, left (it unregistered), watched (by more than
    heartbeats), beat (by heartbeats), dropped.

    ``signs`` are the signs of all tables and shards. A silence of more than ``silent_s``
    seconds ends a session, and so does UNLISTED. ``dropped`` is CLOSED or EXPIRED if a broker dropped the client and no
    later sign shows it, and else null.
    """
    sign = pl.col("sign")
    gone, drop = sign.is_in(["unregister", UNLISTED]), sign.is_in([CLOSED, EXPIRED])
    alive_to = pl.when(drop).then("from_ts").otherwise("to_ts")
    before = alive_to.cum_max().shift(1).over("_member").dt.epoch("ms")
    left_at = pl.when(gone).then("from_ts").cum_max().forward_fill().shift(1).over("_member").dt.epoch("ms")
    # A client unregisters at each broker: these requests, and those in transit, belong to the session that they end.
    back = ~gone & ~drop & (ms("from_ts") - left_at > _LATE_MS) & (before - left_at <= _LATE_MS)
    begins = before.is_null() | (ms("from_ts") - before > silent_s * 1000) | back.fill_null(False)
    left_ts = pl.when(gone).then("from_ts").max()
    last_ms = ms("to_ts").filter(~drop).max()
    is_last = last_ms.is_null() | (ms("to_ts").filter(drop).max() + _LATE_MS >= last_ms)
    ordered = signs.with_columns(value_numbers(signs, MEMBER, "_member"), gone.alias("_gone")).sort("from_ts", "_gone")
    sessions = (
        with_run(ordered, begins, ["_member"], "session")
        .group_by("_member", "session")
        .agg(
            pl.col(MEMBER).first(),
            pl.col("from_ts").min().alias("from_ts"),
            pl.coalesce(left_ts, alive_to.max()).alias("to_ts"),
            (sign == "unregister").any().alias("left"),
            (~sign.is_in(["heartbeat", "unregister", LISTED, UNLISTED, CLOSED, EXPIRED])).any().alias("watched"),
            (sign == "heartbeat").any().alias("beat"),
            pl.when(is_last).then(sign.filter(drop).min()).alias("dropped"),
        )
    )
    columns = ("from_ts", "to_ts", "left", "watched", "beat", "dropped")
    return sessions.select(*MEMBER, pl.col("session").cast(pl.Int64), *columns)


def within_session(rows: pl.DataFrame, members: pl.DataFrame, until: pl.Expr) -> pl.DataFrame:
    """Return the rows with ``until``, at the latest the end of the session that ``ts`` is in.

    Rows of a member after or before its sessions are left out; those of a client without any session are kept.
    Rows stay in their order.
    """
    sessions = members.select(*MEMBER, pl.col("from_ts").alias("_from"), pl.col("to_ts").alias("_to"))
    joined = rows.join(sessions, MEMBER, how="left", maintain_order="left")
    # Signs of life are known to the second, so a session may begin within the second after its first row.
    inside = (pl.col("_from") <= pl.col("ts") + pl.duration(seconds=1)) & (pl.col("ts") <= pl.col("_to"))
    asked = joined.filter(pl.col("_from").is_null() | inside)
    end = pl.min_horizontal(until, pl.coalesce("_to", until, "ts"))
    return asked.with_columns(end.alias("until")).drop("_from", "_to")


def pulling_groups_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return the groups that pull in a shard.

    Columns: consumer_group, commits (whether its pulls carry commits).
    """
    commits = (pl.col("sys_flag") & FLAG_COMMIT_OFFSET) == FLAG_COMMIT_OFFSET
    return pull.group_by("consumer_group").agg(commits.any().alias("commits"))


def unshared_groups(
    heartbeat: pl.DataFrame,
    rebalance: pl.DataFrame,
    assignment: pl.DataFrame,
    pulling: pl.DataFrame,
    groups_with_commits: AbstractSet[str],
) -> pl.DataFrame:
    """Return the broadcasting groups, and those without evidence that their members share queues.

    Columns: consumer_group.

    ``pulling`` is the frame of `pulling_groups_of_shard`, of all shards; ``groups_with_commits`` are those of the
    night. A heartbeat tells which. Without one, members share queues if they share rebalance
    (RebalanceImpl#rebalanceByTopic), or commit to brokers: by UPDATE_CONSUMER_OFFSET (RemoteBrokerOffsetStore) or with
    a pull (DefaultMQPushConsumerImpl#pullMessage).
    """
    group = "consumer_group"
    broadcasts = (pl.col("message_model") == BROADCASTING).any()
    stated = consumer_groups(heartbeat).group_by(group).agg(broadcasts.alias("broadcasts"))
    by_pull = pulling.filter("commits")
    commits = pl.DataFrame({group: sorted(groups_with_commits)}, {group: pl.String})
    shared = pl.concat([frame.select(group) for frame in (rebalance, commits, by_pull)]).unique()
    active = pl.concat([frame.select(group) for frame in (pulling, assignment)]).unique()
    unknown = active.join(stated, group, how="anti").join(shared, group, how="anti")
    return pl.concat([stated.filter("broadcasts").select(group), unknown])


def subscribed_expressions(heartbeat: pl.DataFrame) -> pl.DataFrame:
    """Return all that each group subscribed to, by topic.

    Columns: consumer_group, topic, sub_string, expression_type.
    """
    groups = consumer_groups(heartbeat).select("consumer_group", "subscriptions").unique()
    listed = groups.filter(pl.col("subscriptions").list.len() > 0)
    each = listed.explode("subscriptions").unnest("subscriptions")
    return each.select("consumer_group", "topic", "sub_string", "expression_type").unique()
