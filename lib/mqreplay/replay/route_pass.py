"""The pass over routes, by topic: each client asks for those of its topics every 30 s, and the driver gets changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from mqreplay.decisions.decision import by_name
from mqreplay.decisions.failover_row import StepRows
from mqreplay.decisions.listed_route import LISTED_ROUTE, listed_route, stored_rows, with_begin
from mqreplay.engines.passes import GoldRows, Pass, PassRunner, PassTable
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard, deal_evenly
from mqreplay.evidence.brokers.address_changes import CLIENT_INSTANTS, listed_answers, needed_answers, routed_answers
from mqreplay.evidence.brokers.failovers import Failover
from mqreplay.evidence.brokers.routes import changed_answers, publish_routes
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.members.agreed_lists import queue_lists
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import NO_TIME, DayRows
from mqreplay.replay.frames import Steps
from mqreplay.replay.send_pass import TOPIC_BUCKET
from mqreplay.replay.task_results import JudgedRows, compacted, counted_rows, merged

ROUTES_PER_TASK: Final = 100_000  # a route may name many brokers; no more are judged by the driver itself


@dataclass(frozen=True)
class RouteInput:
    """The context, the topics whose sends were recorded, and the frame of listed_brokers.py.

    ``instants``: those of `needed_answers`; None: all answers to clients are needed.
    """

    context: ReplayContext
    sent_topics: frozenset[str]
    server_lists: pl.DataFrame
    instants: pl.DataFrame | None = None


@dataclass(frozen=True)
class Routes:
    """What the routes of some topics show.

    ``changed``: rows of silver.route that `route_changes` needs. ``answers``: of `routed_answers`. ``asked``: the
    topics for which the recorder asked. ``listed`` are rows of gold.listed_route.
    """

    changed: pl.DataFrame
    answers: pl.DataFrame
    publish_changes: pl.DataFrame
    publish_queues: pl.DataFrame
    asked: pl.DataFrame
    queue_lists: pl.DataFrame
    listed: pl.DataFrame
    judged: JudgedRows


def judge_routes(source: RowSource, shard: Shard, shared: RouteInput, gold: GoldRows) -> Routes:
    """Judge the routes of some topics."""
    return _judged(DayRows(shared.context.day, source).silver("route", shard, shared.context.skew), shared)


def _judged(route: pl.DataFrame, shared: RouteInput) -> Routes:
    context, small = shared.context, shared.context.small
    of_client = pl.col("client_id").is_not_null()
    answers, asked = routed_answers(route), route.filter(~of_client)
    publish_changes, publish_queues = publish_routes(route, shared.sent_topics)
    judged = listed_route(route, small["topic_config"], shared.server_lists, small["broker"])
    return Routes(
        compacted(changed_answers(route.filter(of_client), context.starts).select(route.columns)),
        answers if shared.instants is None else compacted(needed_answers(answers, shared.instants)),
        publish_changes,
        publish_queues,
        asked.select("topic").unique(),
        queue_lists(asked, small["topic_config"].clear()),
        compacted(stored_rows(judged)),
        counted_rows(LISTED_ROUTE, with_begin(judged).filter(context.day.judged)),
    )


ROUTE_PASS: Final = Pass(judge_routes, (PassTable("silver.route", TOPIC_BUCKET),))


def route_shards(rows: DayRows) -> Sequence[Shard]:
    """Return the shards of the topics; few routes are one shard."""
    return deal_evenly(len(rows.around("route", NO_TIME, None, ["ts"])), ROUTES_PER_TASK)


def route_input(context: ReplayContext, sent_topics: frozenset[str], lists: pl.DataFrame) -> RouteInput:
    """Return the input of the pass."""
    return RouteInput(context.with_tables("topic_config", "broker"), sent_topics, lists)


def by_clients_clocks(runner: PassRunner, route_shards: Sequence[Shard], route_input: RouteInput) -> Routes:
    """Return the routes with the clients' times."""
    return _run(runner, route_shards, replace(route_input, context=replace(route_input.context, skew=None)))


def by_recorders_clock(
    runner: PassRunner, route_shards: Sequence[Shard], route_input: RouteInput, raw_routes: Routes
) -> Routes:
    """Return the routes by the recorder's clock."""
    return raw_routes if route_input.context.skew is None else _run(runner, route_shards, route_input)


def _run(
    runner: PassRunner, shards: Sequence[Shard], shared: RouteInput, instants: Sequence[pl.DataFrame] = ()
) -> Routes:
    if len(shards) == 1:
        few = DayRows(shared.context.day, runner.source).silver("route", None, shared.context.skew)
        return _judged(few, shared)
    of_clients = pl.concat([pl.DataFrame(schema=CLIENT_INSTANTS), *instants])
    return merged(list(runner.run(ROUTE_PASS, shards, replace(shared, instants=of_clients))))


def failover_answers(
    runner: PassRunner,
    route_shards: Sequence[Shard],
    route_input: RouteInput,
    routes: Routes,
    outage_failovers: list[Failover],
    lists: pl.DataFrame,
) -> pl.DataFrame:
    """Return the answers to clients that steps of failovers need: of many routes by the pass again."""
    if len(route_shards) == 1 or not outage_failovers:
        return routes.answers
    instants = pl.DataFrame({"ts": list(_instants(outage_failovers, lists))}, {"ts": INSTANT})
    of_all = routes.answers.select("who").unique().join(instants.unique(), how="cross")
    changes = routes.answers.select("who", "ts")  # of one topic, they bound what the client's other topics show
    return _run(runner, route_shards, route_input, [of_all, changes]).answers


def _instants(failovers: Collection[Failover], lists: pl.DataFrame) -> Iterator[dt.datetime]:
    """Yield the instants with which `address_changes` is called for clients."""
    listed = listed_answers(lists)
    for each in failovers:
        steps = StepRows(each)
        yield from (steps.begin, each.until, each.up_ts or each.until)
        yield from steps.changes(listed, each.until)["back_ts"].drop_nulls()


def all_queue_lists(raw_routes: Routes, raw_topic_config: pl.DataFrame) -> pl.DataFrame:
    """Return the frame of `queue_lists`, of the routes that the recorder requested, and of brokers for other topics."""
    others = raw_topic_config.join(raw_routes.asked, "topic", how="anti")
    return pl.concat([raw_routes.queue_lists, queue_lists(raw_routes.changed.clear(), others)])


STEPS: Final[Steps] = {
    "route_shards": by_name(route_shards),
    "route_input": by_name(route_input),
    "raw_routes": by_name(by_clients_clocks),
    "judged_routes": by_name(by_recorders_clock),
    "routed_lists": "raw_routes.queue_lists",
    "queue_lists": by_name(all_queue_lists),
    "publish_changes": "judged_routes.publish_changes",
    "publish_queues": "judged_routes.publish_queues",
    "routed": by_name(failover_answers, routes="judged_routes"),
    "gold.listed_route": "judged_routes.listed",
}
