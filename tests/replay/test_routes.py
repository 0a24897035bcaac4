"""What is read of routes is the same by what a pass keeps of topics, dealt to tasks in any way, as by all rows."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from each_case import for_each
from mqreplay.decisions.failover_row import StepRows
from mqreplay.decisions.failover_step import Seen, failover_steps
from mqreplay.decisions.judgement import judgement
from mqreplay.decisions.listed_route import LISTED_ROUTE, listed_route, stored_rows, with_begin
from mqreplay.engines.passes import Pass
from mqreplay.engines.rows import FrameRows
from mqreplay.engines.shards import Shard
from mqreplay.evidence.brokers.address_changes import listed_answers, routed_answers
from mqreplay.evidence.brokers.failovers import Failover, FailoverSettings
from mqreplay.evidence.brokers.listed_brokers import listed_brokers
from mqreplay.evidence.brokers.routes import publish_routes, route_changes
from mqreplay.evidence.client_clocks import CLOCK_SCHEMA
from mqreplay.evidence.members.agreed_lists import queue_lists
from mqreplay.evidence.messages.deliveries import repeated_deliveries
from mqreplay.lake.buckets import buckets
from mqreplay.lake.contract import arrow_schema, load_contracts
from mqreplay.replay import route_pass
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import Day, DayRows, Skew
from mqreplay.replay.route_pass import Routes
from mqreplay.replay.send_pass import TOPIC_BUCKET
from mqreplay.replay.task_results import counted_rows
from mqreplay.settings import Settings
from silver_moments import BEGAN, at
from silver_rows import rows

ROUTE = "silver.route"
Row = dict[str, Any]
SECONDS = 1_500
TOPICS = [f"t{number}" for number in range(6)]
SERVERS = ["n:1", "n:2"]
SENT = frozenset(TOPICS[:4])
STARTS = [at(0), at(700)]


@dataclass
class Topics:
    """Runs a pass on the rows of whole topics, as an engine does."""

    route: pl.DataFrame
    runs: int = 0

    @property
    def source(self) -> FrameRows:
        return self.of(self.route)

    @staticmethod
    def of(part: pl.DataFrame) -> FrameRows:
        columns = load_contracts()[ROUTE].columns
        schema = arrow_schema((column.name, column.type) for column in columns if column.name != "cluster")
        return FrameRows({ROUTE: schema}, {ROUTE: part})

    def run(self, step: Pass[Any, Any], shards: Sequence[Shard], inputs: Any) -> Iterator[Any]:
        assert [table.key for table in step.tables] == [TOPIC_BUCKET]
        bucket = buckets(self.route, TOPIC_BUCKET)
        self.runs += 1
        for shard in shards:
            part = self.route.filter(bucket.is_between(shard.low, shard.high))
            yield step.run(self.of(part), shard, inputs, None)  # type: ignore[arg-type]

    def commit(self, replaced: object) -> None:
        """Write nothing."""


@dataclass
class Night:
    """Routes of clients, what name servers and brokers had meanwhile, and the failovers of it."""

    route: pl.DataFrame
    topic_config: pl.DataFrame
    lists: pl.DataFrame
    broker: pl.DataFrame
    failovers: list[Failover]
    skew: Skew | None


def addresses(broker: str, is_up: bool) -> dict[int, str]:
    return {**({0: f"{broker}:1"} if is_up else {}), 1: f"{broker}:2"}


def night(seed: int) -> Night:
    """Two brokers that stop and come back, each name server learns it later, and a topic grows."""
    draw = random.Random(seed)
    downs: dict[str, tuple[float, float]] = {"a": (draw.uniform(200, 700), 0), "b": (draw.uniform(600, 1_000), 0)}
    downs = {name: (down, down + draw.choice((60, 300, SECONDS))) for name, (down, _) in downs.items()}
    late = {server: draw.uniform(0, 60) for server in SERVERS}
    grows_at = draw.uniform(100, SECONDS)

    def is_up(broker: str, second: float) -> bool:
        return not downs[broker][0] <= second < downs[broker][1]

    def answer(server: str, topic: str, second: float) -> Row:
        known = second - late[server]
        number = 8 if topic == "t1" and known > grows_at else 4
        names = ["a", "b"] if topic != "t2" else ["b"]
        draw.shuffle(names)
        datas = [(name, number, number, draw.choice((6, 6, 6, 6, 4)) if topic == "t3" else 6, 0) for name in names]
        brokers = [{"broker_name": name, "broker_addrs": addresses(name, is_up(name, known))} for name in names]
        if topic == "t5" and is_up("a", known):
            return {"response_code": 17}
        if draw.random() < 0.02:
            return {"response_ts": None, "response_code": None, "error": "timeout"}
        static = {"queue_mappings": [("x", "__global__", number)]} if topic == "t4" else {}
        return {"response_code": 0, "queue_datas": datas, "broker_datas": brokers} | static

    found = list[Row]()
    for number in range(5):
        client, began = f"c{number}" if number else None, 30 * draw.randrange(4) + draw.randrange(3)
        ended = draw.choice((SECONDS, SECONDS, draw.uniform(300, SECONDS)))
        server = draw.choice([*SERVERS, None]) if client else None
        second = float(began)
        while second < ended:
            for topic in TOPICS[: 6 if number % 2 else 3]:
                # Some at the same instant.
                sent = round(second + draw.choice((0, 0, 0.002, 1)), 3)
                asked = {"client_id": client, "topic": topic, "ts": at(sent), "response_ts": at(sent + 0.003)}
                for each in [server] if client else SERVERS:
                    given = answer(each or draw.choice(SERVERS), topic, sent)
                    found.append(asked | {"namesrv_addr": each} | given)
            second += draw.choice((30, 30, 30, 30, 6, 200))
    if seed % 3 == 0:  # as a recording of changes
        for row in found:
            row["previous_ts"] = draw.choice((None, row["ts"], row["ts"] - dt.timedelta(seconds=20)))
    draw.shuffle(found)
    listed = [
        {"ts": at(second), "namesrv_addr": server, "record_id": f"{server} {second}"}
        | {
            "brokers": [
                {"broker_name": name, "cluster": "c", "broker_addrs": [*addresses(name, is_up(name, second)).items()]}
                for name in downs
            ]
        }
        for server in SERVERS[: seed % 3]
        for second in sorted({0, *range(0, SECONDS, 200), *(s + late[server] for each in downs.values() for s in each)})
    ]
    base: Row = {"broker_id": 0, "read_queue_nums": 4, "write_queue_nums": 4, "perm": 6, "change": "first"}
    configs = [{"source_name": f"{b}-0", "broker_name": b, "topic": t, "ts": at(0)} for b in downs for t in TOPICS]
    configs += [{"source_name": "b-0", "broker_name": "b", "topic": "unasked", "ts": at(0)}]
    brokers = [{"broker_name": name, "broker_id": 0, "broker_addr": f"{name}:1", "ts": at(0)} for name in downs]
    failovers = [
        Failover(
            *(at(down), name, 0, f"{name}:1", at(down), at(down - 5), at(up) if up < SECONDS else None, True),
            *(at(SECONDS - draw.choice((0, 400))), FailoverSettings()),
        )
        for name, (down, up) in downs.items()
    ]
    span = ("c1", None, None, None, draw.choice((20_000, -45_000)), 9)
    return Night(
        rows(ROUTE, {}, found),
        rows("silver.topic_config", base, configs),
        listed_brokers(rows("silver.cluster_info", {}, listed), at(SECONDS)),
        rows("silver.broker", {}, brokers),
        failovers,
        Skew(pl.DataFrame([span], CLOCK_SCHEMA, orient="row")) if seed % 4 == 1 else None,
    )


def replayed(of: Night) -> tuple[Routes, Routes, pl.DataFrame, Topics]:
    """Return the routes by the clients' clocks, those by the recorder's clock, and what failovers get."""
    runner, small = Topics(of.route), {"topic_config": of.topic_config, "broker": of.broker}
    context = ReplayContext(DAY, Settings(), {start: start for start in STARTS}, small, small, of.skew)
    shared = route_pass.route_input(context, SENT, of.lists)
    shards = route_pass.route_shards(DayRows(DAY, runner.source))
    raw = route_pass.by_clients_clocks(runner, shards, shared)
    right = route_pass.by_recorders_clock(runner, shards, shared, raw)
    return raw, right, route_pass.failover_answers(runner, shards, shared, right, of.failovers, of.lists), runner


DAY = Day("c", BEGAN.date(), dt.datetime.combine(BEGAN.date(), dt.time(), dt.UTC), is_first=True)


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert_frame_equal(one, other, check_row_order=False)


@for_each(range(8))
def test_the_rules_of_a_night_give_the_same(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(route_pass, "ROUTES_PER_TASK", 150 + 50 * seed)
        of = night(seed)
        raw, right, answers, runner = replayed(of)
        assert runner.runs > 1
        check(of, raw, right, answers)


def check(of: Night, raw: Routes, right: Routes, answers: pl.DataFrame) -> None:
    route = DayRows(DAY, Topics.of(of.route)).silver("route", None, of.skew)
    whole = route_changes(of.route.filter(pl.col("client_id").is_not_null()), STARTS)
    assert len(whole) > 0
    same(whole, route_changes(raw.changed, STARTS))
    for known, kept in zip(
        publish_routes(route, SENT), (right.publish_changes, right.publish_queues.unique()), strict=True
    ):
        assert len(known) > 0
        same(known, kept)
    lists = queue_lists(of.route, of.topic_config)
    same(lists, route_pass.all_queue_lists(raw, of.topic_config))
    assert "unasked" in lists["topic"]
    same(queue_lists(of.route, of.topic_config.clear()), raw.queue_lists)
    judged = listed_route(route, of.topic_config, of.lists, of.broker)
    same(stored_rows(judged), right.listed)
    counted = counted_rows(LISTED_ROUTE, with_begin(judged))
    same(judgement(counted.judgements), judgement(right.judged.judgements))
    same(counted.gaps, right.judged.gaps)
    assert len(right.changed) < len(route) / 2
    check_failovers(of, routed_answers(route), answers)


def check_failovers(of: Night, routed: pl.DataFrame, kept: pl.DataFrame) -> None:
    steps = []
    for answers in (routed, kept):
        pulls = rows("gold.pull_route", {}, []).select("broker_name", "client_id", pl.col("request_ts").alias("ts"))
        pulls = pulls.with_columns(pl.lit("r").alias("record_id"))
        seen = Seen(of.lists, NO_CHANGES, answers, pulls, pulls, NONE_AGAIN, EXPOSURE, starts=STARTS)
        steps.append(failover_steps(of.failovers, seen, 60, 120))
    assert steps[0]["client_id"].n_unique() > 1
    same(*steps)
    for each in of.failovers:
        backs = StepRows(each).changes(listed_answers(of.lists), each.until)["back_ts"].drop_nulls()
        for until in {each.until, each.up_ts or each.until, *backs}:
            same(*(StepRows(each).changes(answers, until) for answers in (routed, kept)))


NO_CHANGES = pl.DataFrame(
    schema=dict.fromkeys(("broker_name", "old_addr"), pl.String) | {"to_ts": pl.Datetime("us", "UTC")}
)
NONE_AGAIN = repeated_deliveries(rows("silver.consume", {}, []), pl.DataFrame(schema={"consumer_group": pl.String}))
EXPOSURE = rows("gold.failover_exposure", {}, [])


def test_few_rows_need_no_pass() -> None:
    of = night(0)
    raw, right, answers, runner = replayed(of)
    assert (runner.runs, raw is right) == (0, True)
    check(of, raw, right, answers)


def test_most_answers_of_a_quiet_night_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_pass, "ROUTES_PER_TASK", 100)
    brokers = [{"broker_name": "a", "broker_addrs": addresses("a", True)}]
    given: Row = {"response_code": 0, "queue_datas": [("a", 4, 4, 6, 0)], "broker_datas": brokers}
    asked = [
        given | {"ts": at(second), "client_id": f"c{client}", "topic": topic}
        for second in range(0, SECONDS, 30)
        for client in range(3)
        for topic in TOPICS
    ]
    of = night(0)
    of.route, of.failovers = rows(ROUTE, {}, asked), []
    _, right, answers, runner = replayed(of)
    assert (runner.runs, len(right.changed), len(right.publish_changes)) == (1, 36, 4)
    assert len(answers) == 2 * 18, "the first and the last"
