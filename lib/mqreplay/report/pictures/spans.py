"""Queues that nobody ever held, and when; moment.night_queues has those that somebody held.

gold.queue_owner has no row of queues that members saw and nobody ever held.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

import polars as pl

from mqreplay.report.data import Row
from mqreplay.report.pictures.night import PictureData

Span = tuple[dt.datetime, dt.datetime]
PERM_READ = 4  # PermName
ORPHANS = ("orphan_queue",)
Pair = tuple[str, str]
Queue = tuple[str, int]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans joined where they touch or overlap, in order.

    >>> day = [dt.datetime(2026, 11, n) for n in range(1, 9)]
    >>> [(a.day, b.day) for a, b in merged([(day[2], day[4]), (day[0], day[1]), (day[3], day[5])])]
    [(1, 2), (3, 6)]
    """
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def seconds(spans: Iterable[Span]) -> float:
    """Return the length of all spans together."""
    return sum((end - begin).total_seconds() for begin, end in spans)


def orphaned_pairs(view: PictureData) -> list[Pair]:
    """Return the groups and topics with findings of queues that nobody held."""
    pairs = [(finding["consumer_group"], finding["topic"]) for finding in view.findings_of(ORPHANS)]
    return [(group, topic) for group, topic in pairs if group and topic and not topic.startswith("%")]


def unowned_spans(view: PictureData, pair: Pair, held: Iterable[Queue]) -> dict[Queue, list[Span]]:
    """Return when nobody held a queue of a group and topic, of queues that are not in ``held``.

    A finding says when; lists of members, else routes, say which queues there were.
    """
    group, topic = pair
    findings = [f for f in view.findings_of(ORPHANS, consumer_group=group, topic=topic) if f["consumer_group"]]
    if not findings:
        return {}
    seen = _seen_by_members(view, pair) or _routed(view, topic)
    made: dict[Queue, list[Span]] = {}
    for queue in sorted(seen.keys() - set(held)):
        spans = [_span(view, finding, seen[queue]) for finding in findings if _is_about(finding, queue)]
        if free := merged(span for span in spans if span[0] < span[1]):
            made[queue] = free
    return made


def _is_about(finding: Row, queue: Queue) -> bool:
    return finding["broker_name"] in (None, queue[0]) and finding["queue_id"] in (None, queue[1])


def _span(view: PictureData, finding: Row, since: dt.datetime) -> Span:
    begin, end = finding["from_ts"] or view.night.first, finding["to_ts"] or view.night.last
    return max(begin, since, view.night.first), min(end, view.night.last)


def _seen_by_members(view: PictureData, pair: Pair) -> dict[Queue, dt.datetime]:
    """Return the first time at which a member of the group saw each queue in a rebalance."""
    rows = view.rows("silver.rebalance", "ts").filter(consumer_group=pair[0], topic=pair[1])
    # Members see the same list again and again.
    lists = rows.filter(pl.col("mq_all").list.len() > 0).group_by("mq_all").agg(pl.col("ts").min())
    return _first_seen(lists.explode("mq_all").unnest("mq_all"))


def _routed(view: PictureData, topic: str) -> dict[Queue, dt.datetime]:
    """Return the first time at which a route had each readable queue of a topic; a static topic has others."""
    routes = view.rows("silver.route", "ts").filter(topic=topic).filter(pl.col("queue_mappings").is_null())
    datas = routes.filter(pl.col("queue_datas").list.len() > 0).select("ts", "queue_datas").explode("queue_datas")
    readable = datas.unnest("queue_datas").filter((pl.col("perm") & PERM_READ) != 0, pl.col("read_queue_nums") > 0)
    queues = pl.int_ranges(0, "read_queue_nums", dtype=pl.Int32).alias("queue_id")
    return _first_seen(readable.select("ts", "broker_name", queues).explode("queue_id"))


def _first_seen(each: pl.LazyFrame) -> dict[Queue, dt.datetime]:
    first = each.group_by("broker_name", "queue_id").agg(pl.col("ts").min()).collect()
    return {(broker, queue): since for broker, queue, since in first.iter_rows()}
