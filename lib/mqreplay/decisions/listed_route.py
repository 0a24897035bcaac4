"""gold.listed_route: each route that a name server answered against what its tables must have had.

The tables are those of RouteInfoManager, filled with the brokers that the name server listed and the topics that their
masters had (name_server_tables.py). A broker registers each change at once, and all topics every
registerNameServerPeriod, so a route may be as old as that. Answers that are equal and judged alike are one row.

A client's recorded request does not say which name server it asked: its answer agrees if it is that of any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import polars as pl

from mqreplay.core.route_info_manager import RouteInfoManager, TopicConfigs
from mqreplay.core.topic_route import MASTER_ID, BrokerData, QueueData, TopicRouteData, topic_publish_info
from mqreplay.decisions.decision import VERDICT_WORDS, Decision
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.distinct import distinct_cases, distinct_values
from mqreplay.evidence.brokers.address_changes import TOPIC_NOT_EXIST
from mqreplay.evidence.brokers.name_server_tables import (
    NameServerTables,
    State,
    config_changes,
    described_brokers,
    list_changes,
    registration_lag,
)
from mqreplay.evidence.brokers.routes import ROUTE_BROKERS
from mqreplay.evidence.frames import columns, typed
from mqreplay.evidence.intervals import INSTANT, with_run

ANSWER: Final = ("namesrv_addr", "topic", "day")
ROUTE_VERDICT: Final = ("broker_name", "expected", "expected_writable", "judgement", "reason")
SCHEMA: Final[dict[str, pl.DataType]] = {
    **columns("day", "namesrv_addr", "topic", "broker_name", "from_ts", "to_ts"),
    "answers": pl.Int64(),
    "listed": pl.List(pl.String()),
    "expected": pl.List(pl.String()),
    "writable": pl.Boolean(),
    "expected_writable": pl.Boolean(),
    **columns("judgement", "reason", "record_id", "source_digest"),
}
SAME_LIST: Final = "the name server listed what the brokers had registered"
OTHER_QUEUES: Final = "the broker has had other queues or permissions for longer than a registration takes"
WIPED: Final = "the route lacks the write permission that the broker has, as after `mqadmin wipeWritePerm`"
ADDED: Final = "the route allows what the broker does not, as after `mqadmin addWritePerm`"
LACKS: Final = "the route lacks a broker that is registered at the name server and has the topic"
OTHER_ADDRESSES: Final = "the route has other addresses of the broker than the name server's own list of brokers"
NO_LISTS: Final = "no name server's list of brokers was recorded long enough before"
NO_COPY: Final = "no copy of the broker's topics was recorded long enough before"
TOPIC_MISSING: Final = "the broker has no such topic, and may have had it before: no registration removes a topic"
ACTING: Final = "a slave is listed as the acting master"
RANK: Final = {"agree": 0, "undetermined": 1, "differ": 2}


Queues = tuple[int, int, int]  # read queues, write queues, permission


class Part(NamedTuple):
    """What a route has of one broker name: its queues (None: none), and its addresses."""

    queues: Queues | None
    addresses: Mapping[int, str]


class Verdict(NamedTuple):
    """A judgement, its reason, the broker name that decides, and what the tables had at last.

    ``expected_writable``: producers find a queue in it.
    """

    judgement: str
    reason: str
    broker_name: str | None
    expected: list[str] | None
    expected_writable: bool | None


class Known(NamedTuple):
    """Whether copies of a broker's topics, and the list of brokers, were recorded long enough before; what it had."""

    topics: bool
    brokers: bool
    earlier: frozenset[Queues | None]


Route = Mapping[str, Part]
Items = list[Mapping[str, Any]] | None


def listed_route(
    route: pl.DataFrame, topic_config: pl.DataFrame, lists: pl.DataFrame, broker: pl.DataFrame
) -> pl.DataFrame:
    """Return one row for each answer and instant at which it was confirmed, with gold.listed_route's columns.

    ``lists`` is the frame of listed_brokers.py, the others are silver tables. See `stored_rows` for the rows that are
    kept.
    """
    seen, routes = _seen(route)
    topics = frozenset(seen["topic"])
    configs, by_server, lag = config_changes(topic_config, broker), list_changes(lists), registration_lag(broker)
    tables = {server: NameServerTables([*configs, *changes], topics, lag) for server, changes in by_server.items()}
    if not tables:
        tables = {"": NameServerTables([*configs, *described_brokers(broker)], topics, lag, has_lists=False)}
    at = seen["ts"].dt.epoch("ms").to_numpy()
    best: list[Verdict | None] = [None] * len(seen)
    for server, each in tables.items():
        surely, maybe = each.windows(at)
        cases = seen.select("topic", "route", "namesrv_addr").with_columns(
            pl.Series("surely", surely, pl.Int64), pl.Series("maybe", maybe, pl.Int64)
        )
        distinct, case_of = distinct_values(cases, cases.columns)
        found = [
            None if asked in tables and asked != server else _judged(routes[number], each, topic, first, last)
            for topic, number, asked, first, last in distinct.iter_rows()
        ]
        best = [_better(one, found[case]) for one, case in zip(best, case_of.tolist(), strict=True)]
    return _with_verdicts(seen, best, routes)


def stored_rows(judged: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that gold.listed_route keeps: equal answers that are judged alike are one, with their number."""
    same = pl.all_horizontal(
        pl.col(name).eq_missing(pl.col(name).shift(1).over(ANSWER)) for name in ("listed", *ROUTE_VERDICT)
    )
    begins = ~same | pl.col("ts").shift(1).over(ANSWER).is_null()
    merged = (
        with_run(judged.sort(*ANSWER, "ts", "record_id"), begins, ANSWER)
        .group_by(*ANSWER, "run")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            pl.len().alias("answers"),
            *(pl.col(name).first() for name in ("listed", "writable", *ROUTE_VERDICT, "record_id", "source_digest")),
        )
    )
    return typed(merged, SCHEMA).sort("topic", "namesrv_addr", "from_ts")


def listed_words(route: Route) -> list[str]:
    """Return a route in words, one text a broker name."""
    return [_words(name, part) for name, part in sorted(route.items())]


def is_writable(route: Route) -> bool:
    """Return whether producers find a queue in a route (MQClientInstance#topicRouteData2TopicPublishInfo)."""
    # One queue of a broker is enough; a route may name any number of them.
    known = ((name, part.queues) for name, part in route.items() if part.queues is not None)
    queues = [QueueData(name, read, min(write, 1), perm) for name, (read, write, perm) in known]
    brokers = [BrokerData("", name, part.addresses) for name, part in route.items()]
    return topic_publish_info("", TopicRouteData(queues, brokers)).ok


def route_of(data: TopicRouteData | None) -> dict[str, Part]:
    """Return the parts of a route by broker name."""
    if data is None:
        return {}
    addresses = {each.broker_name: each.broker_addrs for each in data.broker_datas}
    return {each.broker_name: Part(_queues(each), addresses.get(each.broker_name, {})) for each in data.queue_datas}


def _seen(route: pl.DataFrame) -> tuple[pl.DataFrame, list[dict[str, Part]]]:
    """Return each answer at its instants, with the number of its route, and the distinct routes."""
    answered = route.filter(
        pl.col("error").is_null() & (pl.col("queue_datas").is_not_null() | (pl.col("response_code") == TOPIC_NOT_EXIST))
    ).sort("ts", "record_id")
    contents = answered.select("queue_datas", pl.col("broker_datas").cast(ROUTE_BROKERS))
    cases, place = distinct_cases(contents)
    routes = [_listed(*row) for row in cases.iter_rows()]
    kept = answered.select(
        pl.coalesce("response_ts", "ts").alias("ts"),
        *("namesrv_addr", "topic", "record_id", "source_digest"),
        pl.col("previous_ts").shift(-1).over("namesrv_addr", "client_id", "topic").alias("confirmed_ts"),
        pl.Series("route", place, pl.Int64),
    )
    again = kept.filter(pl.col("confirmed_ts") > pl.col("ts")).with_columns(pl.col("confirmed_ts").alias("ts"))
    both = pl.concat([kept, again]).drop("confirmed_ts")
    return both.with_columns(pl.col("ts").cast(INSTANT), pl.col("ts").dt.date().alias("day")), routes


def _listed(queue_datas: Items, broker_datas: Items) -> dict[str, Part]:
    addresses = {
        each["broker_name"]: {entry["key"]: entry["value"] for entry in each["broker_addrs"] or ()}
        for each in broker_datas or ()
    }
    return {
        each["broker_name"]: Part(
            (each["read_queue_nums"], each["write_queue_nums"], each["perm"]), addresses.get(each["broker_name"], {})
        )
        for each in queue_datas or ()
    }


def _judged(listed: Route, tables: NameServerTables, topic: str, surely: int, maybe: int) -> Verdict:
    """Judge one answer by the states that the tables may have had."""
    states = tables.states(topic, surely, maybe)
    possible = [route_of(state.route) for state in states]
    lists_known = tables.has_lists and surely > tables.first_list
    names = sorted(set(listed).union(*possible))
    before = [] if listed in possible else [route_of(state.route) for state in tables.states(topic, 0, surely)]
    found = []
    for name in names:
        earlier = frozenset(each[name].queues for each in before if name in each)
        known = Known(surely > tables.first_copy.get(name, maybe), lists_known, earlier)
        found.append((*_of_broker(name, listed, possible, states, known), name))
    judgement, reason, name = max(found, key=lambda each: RANK[each[0]], default=("agree", SAME_LIST, ""))
    if judgement == "agree" and not lists_known and (not listed or listed not in possible):
        judgement, reason = "undetermined", NO_LISTS
    decides = None if judgement == "agree" else name or None
    return Verdict(judgement, reason, decides, listed_words(possible[-1]), is_writable(possible[-1]))


def _of_broker(
    name: str, listed: Route, possible: Sequence[Route], states: Sequence[State], known: Known
) -> tuple[str, str]:
    """Return judgement and reason of what the route has of one broker name."""
    queues = listed[name].queues if name in listed else None
    had = {each[name].queues if name in each else None for each in possible}
    if queues is None and any(name in state.deletable_brokers for state in states):
        return "agree", SAME_LIST
    if queues not in had:
        if not known.topics:
            return "undetermined", NO_COPY
        if queues is None or had == {None}:
            missing = ("differ", LACKS) if queues is None else ("undetermined", TOPIC_MISSING)
            return missing if known.brokers else ("undetermined", NO_LISTS)
        by_operator = _after_commands(max(each for each in had if each is not None))
        return "differ", OTHER_QUEUES if queues in known.earlier else by_operator.get(queues, OTHER_QUEUES)
    if queues is None or _addresses_agree(name, listed, possible):
        return "agree", SAME_LIST
    if not known.brokers:
        return "undetermined", NO_LISTS
    others = {address for each in possible if name in each for address in each[name].addresses.values()}
    if listed[name].addresses.get(MASTER_ID) in others:
        return "undetermined", ACTING
    return "differ", OTHER_ADDRESSES


def _addresses_agree(name: str, listed: Route, possible: Sequence[Route]) -> bool:
    """Return whether each broker id has an address that it may have had."""
    now, before = listed[name].addresses, [each[name].addresses for each in possible if name in each]
    ids = set(now).union(*before)
    return all(now.get(broker_id) in {each.get(broker_id) for each in before} for broker_id in ids)


@cache
def _after_commands(queues: Queues) -> dict[Queues, str]:
    """Return what a topic with these queues is listed with after wipeWritePerm and addWritePerm, with the reason.

    RouteInfoManager#wipeWritePermOfBrokerByLock, #addWritePermOfBrokerByLock.
    """
    found = {}
    for reason, command in (
        (WIPED, RouteInfoManager.wipe_write_perm_of_broker),
        (ADDED, RouteInfoManager.add_write_perm_of_broker),
    ):
        manager = RouteInfoManager()
        topics = TopicConfigs(0, {"": QueueData("", *queues)})
        manager.register_broker("", "", "", MASTER_ID, None, topics, None, 0)
        command(manager, "")
        found[_queues(manager.topic_queue_table[""][""])] = reason
    return found


def _queues(data: QueueData) -> Queues:
    return data.read_queue_nums, data.write_queue_nums, data.perm


def _better(one: Verdict | None, other: Verdict | None) -> Verdict | None:
    """Return the verdict by the name server that the answer agrees with best."""
    if one is None or other is None:
        return other or one
    return min(one, other, key=lambda each: RANK[each.judgement])


def _words(name: str, part: Part) -> str:
    read, write, perm = part.queues or (0, 0, 0)
    addresses = ", ".join(f"{broker_id} at {address}" for broker_id, address in sorted(part.addresses.items()))
    return f"{name}: {read} read and {write} write queues, perm {perm}; {addresses or 'no address'}"


def _with_verdicts(seen: pl.DataFrame, verdicts: Sequence[Verdict | None], routes: Sequence[Route]) -> pl.DataFrame:
    unknown = Verdict("undetermined", NO_LISTS, None, None, None)
    distinct = {id(each): each for each in (unknown, *verdicts) if each is not None}  # of few cases
    place = {key: number for number, key in enumerate(distinct)}
    judged = pl.DataFrame(
        {name: [getattr(each, name) for each in distinct.values()] for name in ROUTE_VERDICT},
        {name: SCHEMA[name] for name in ROUTE_VERDICT},
    )
    answered = pl.DataFrame(
        {"listed": [listed_words(each) for each in routes], "writable": [is_writable(each) for each in routes]},
        {name: SCHEMA[name] for name in ("listed", "writable")},
    )
    of_answer = judged[[place[id(each or unknown)] for each in verdicts]]
    return seen.drop("route").hstack(answered[seen["route"]]).hstack(of_answer)


def with_begin(judged: pl.DataFrame) -> pl.DataFrame:
    """Return the judged rows with the instant of the table's rows."""
    return judged.with_columns(pl.col("ts").alias("from_ts"))


LISTED_ROUTE: Final = Decision(
    table="gold.listed_route",
    instant="from_ts",
    one="route of a name server",
    many="routes of name servers",
    importance=19,
    phrases=(
        ("route of {topic} at {namesrv_addr}", "route of {topic}"),
        "listed {listed}",
        "expected {expected}",
        VERDICT_WORDS,
    ),
    until="to_ts",
    needs=(Need("routes"), Need("topics")),
)
