"""Lists on which all brokers or all name servers agree: the members of a group, the queues of a topic.

Each server has its own view, and a client asks any of them: while views differ, clients may have seen any of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from mqreplay.core.message_queue import sort_client_ids
from mqreplay.core.topic_route import (
    PERM_READ,
    QueueData,
    TopicQueueMappingInfo,
    TopicRouteData,
    logical_queue_nums,
    topic_subscribe_info,
)
from mqreplay.evidence.frames import QUEUES, columns
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.members.listed_members import answered_lists
from mqreplay.evidence.members.observed_clients import REPEATED_S

MEMBERS: dict[str, pl.DataType] = {**columns("consumer_group", "from_ts", "to_ts"), "cid_all": pl.List(pl.String)}
ROUTES: dict[str, pl.DataType] = {**columns("topic", "from_ts", "to_ts"), "mq_all": QUEUES}
View = tuple[Any, ...] | None


def member_lists(consumer_list: pl.DataFrame) -> pl.DataFrame:
    """Return the time spans in which all answering brokers listed the same members, sorted as clients sort.

    Columns: consumer_group, from_ts, to_ts, cid_all.

    ``consumer_list`` are any rows of silver.consumer_list; those that the recorder did not ask for have no effect.
    A broker with an empty list does not count: clients send heartbeats only to the brokers of their topics.
    """
    server = pl.concat_str("broker_name", pl.col("broker_id").cast(pl.String), separator="-")
    views = answered_lists(consumer_list).select(
        "consumer_group", server.alias("server"), "ts", "previous_ts", pl.col("cid_all").list.sort().alias("view")
    )
    states = _agreed(_view_changes(views, "consumer_group"))
    rows = [(group, *span, sort_client_ids(view)) for group, *span, view in states]
    return pl.DataFrame(rows, schema=MEMBERS, orient="row")


def queue_lists(route: pl.DataFrame, topic_config: pl.DataFrame) -> pl.DataFrame:
    """Return the time spans in which all name servers gave the same readable queues, sorted as clients sort.

    Columns: topic, from_ts, to_ts, mq_all.

    Topics without a route polled by the recorder have the read queues of the masters' topics.json. Of a static topic it
    is the logical queues, by the broker name that clients give them.
    """
    asked = route.filter(pl.col("client_id").is_null())
    answered = pl.col("queue_datas").list.eval(
        pl.element().filter((pl.element().struct.field("perm") & PERM_READ) != 0)
    )
    pairs = answered.list.eval(
        pl.concat_str(
            pl.element().struct.field("read_queue_nums").cast(pl.String),
            pl.element().struct.field("broker_name"),
            separator=" ",
        )
    )
    server = pl.col("namesrv_addr").fill_null("")
    views = asked.select("topic", server.alias("server"), "ts", "previous_ts", _with_logical(asked, pairs.list.sort()))
    configs = topic_config.filter(pl.col("broker_id") == 0).join(asked, "topic", how="anti")
    readable = ((pl.col("perm") & PERM_READ) != 0).fill_null(True) & (pl.col("change") != "removed")
    pair = pl.concat_str(pl.col("read_queue_nums").cast(pl.String), "broker_name", separator=" ")
    held = configs.select(
        "topic",
        pl.col("broker_name").alias("server"),
        "ts",
        pl.lit(None, INSTANT).alias("previous_ts"),
        pl.when(readable).then(pl.concat_list(pair)).otherwise(pl.lit([], pl.List(pl.String))).alias("view"),
    )
    by_route = [
        (topic, *span, _queues(view))
        for topic, *span, view in _agreed(_view_changes(views, "topic", valid_until_next=True))
    ]
    by_config = [
        (topic, *span, _queues(view)) for topic, *span, view in _union(_view_changes(held, "topic", polled=False))
    ]
    listed = [(topic, since, until, _structs(topic, view)) for topic, since, until, view in [*by_route, *by_config]]
    return pl.DataFrame(listed, schema=ROUTES, orient="row")


def _with_logical(route: pl.DataFrame, physical: pl.Expr) -> pl.Expr:
    """Return ``view``: numbers of queues with their broker name; those of logical queues if the topic is static."""
    known = route["queue_mappings"].to_list()
    logical = pl.Series(
        "logical", [None if each is None else _logical_pairs(each) for each in known], pl.List(pl.String)
    )
    return pl.coalesce(pl.lit(logical), physical).alias("view")


def _logical_pairs(mappings: Iterable[dict[str, Any]]) -> list[str]:
    nums = logical_queue_nums([TopicQueueMappingInfo(each["scope"], each["total_queues"]) for each in mappings])
    return sorted(f"{number} {name}" for name, number in nums.items())


def _queues(view: Iterable[str]) -> list[tuple[str, int]]:
    """Return broker name and number of queues from text."""
    pairs = (text.split(" ", 1) for text in view)
    return [(name, int(number)) for number, name in pairs]


def _structs(topic: str, counts: Iterable[tuple[str, int]]) -> list[dict[str, object]]:
    route = TopicRouteData([QueueData(name, number, 0, PERM_READ) for name, number in counts], [])
    return [{"broker_name": q.broker_name, "queue_id": q.queue_id} for q in topic_subscribe_info(topic, route)]


def _view_changes(
    views: pl.DataFrame, subject: str, *, polled: bool = True, valid_until_next: bool = False
) -> list[tuple[Any, ...]]:
    """Return subject, server, ts, previous_ts, view: one row per change of a server's view, in order of time.

    ``polled``: a view that was not confirmed for REPEATED_S was no longer polled. ``valid_until_next``: it counts until
    then, else until it was last confirmed. Routes hold, because clients use them for 30 s without asking; but not if
    the next view differs, which may have been so since the last confirmation.
    """
    by = [subject, "server"]
    following = pl.col("ts").shift(-1).over(by)
    confirmed = pl.max_horizontal("ts", pl.col("previous_ts").shift(-1).over(by))
    due = confirmed + pl.duration(seconds=REPEATED_S)
    text = pl.col("view").list.join("\n")
    differs = (text.shift(-1).over(by) != text).fill_null(False)
    held_until = pl.when("_differs").then("_confirmed").otherwise("_due") if valid_until_next else pl.col("_confirmed")
    over = (
        views.sort("ts")
        .with_columns(differs.alias("_differs"))
        .with_columns(following.alias("_following"), confirmed.alias("_confirmed"), due.alias("_due"))
        .filter(pl.col("_following").is_null() | (pl.col("_following") > pl.col("_due")))
        .with_columns(
            pl.col("_due").alias("ts"),
            held_until.alias("previous_ts"),
            pl.lit(None, views.schema["view"]).alias("view"),
        )
        .select(views.columns)
    )
    ended = pl.concat([views, over]) if polled else views
    ordered = ended.sort("ts", "server").with_columns(pl.col("view").list.join("\n").alias("text"))
    first = pl.int_range(pl.len()).over(by) == 0
    changed = ordered.filter(first | pl.col("text").ne_missing(pl.col("text").shift(1).over(by)))
    rows = changed.select(subject, "server", "ts", "previous_ts", "view").rows()
    return [(*row[:4], None if row[4] is None else tuple(row[4])) for row in rows]


def _agreed(changes: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return subject, from_ts, to_ts, view: while all servers with a non-empty view had the same one."""
    known: dict[Any, dict[str, View]] = {}
    open_: dict[Any, tuple[Any, View]] = {}
    found: list[tuple[Any, ...]] = []
    for subject, server, ts, previous_ts, view in changes:
        views = known.setdefault(subject, {})
        views[server] = view
        distinct = {each for each in views.values() if each}
        agreed = distinct.pop() if len(distinct) == 1 else None
        since, before = open_.get(subject, (None, None))
        if agreed == before:
            continue
        if before is not None and ts > since:
            found.append((subject, since, max(since, previous_ts or ts), before))
        open_[subject] = (ts, agreed)
    return found + [(subject, since, None, view) for subject, (since, view) in open_.items() if view is not None]


def _union(changes: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return subject, from_ts, to_ts, view: the union of all servers' views."""
    known: dict[Any, dict[str, View]] = {}
    open_: dict[Any, tuple[Any, View]] = {}
    found: list[tuple[Any, ...]] = []
    for subject, server, ts, _, view in changes:
        views = known.setdefault(subject, {})
        views[server] = view
        together = tuple(item for name in sorted(views) for item in views[name] or ())
        since, before = open_.get(subject, (None, None))
        if together == before:
            continue
        if before and ts > since:
            found.append((subject, since, ts, before))
        open_[subject] = (ts, together)
    return found + [(subject, since, None, view) for subject, (since, view) in open_.items() if view]
