"""Queues that members saw and nobody ever held: gold.queue_owner has no row of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

import polars as pl

from mqreplay.report.data import Row
from mqreplay.report.pictures.night import PictureData
from mqreplay.report.pictures.spans import Span, merged

PERM_READ = 4  # PermName
ORPHANS = ("orphan_queue",)
Pair = tuple[str, str]
Queue = tuple[str, int]


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
