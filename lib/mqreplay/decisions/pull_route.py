"""gold.pull_route: each pull against the rules of PullAPIWrapper and MQClientInstance.

A client asks the broker id last suggested for the queue (the master before any suggestion), at the address that its
route gives for this id. A client older than the recording may remember a suggestion that was not recorded; its first
pull of a queue is undetermined.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import polars as pl
import pyarrow as pa

from mqreplay.core import pull_node
from mqreplay.core.pull_node import MASTER_ID, find_broker_address_in_subscribe
from mqreplay.core.version import CLIENT_4
from mqreplay.decisions.decision import QUEUE_WORDS, VERDICT_WORDS, Decision
from mqreplay.decisions.verdict import doubted
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.distinct import distinct_cases
from mqreplay.evidence.frames import ms
from mqreplay.evidence.members.client_memory import UNKNOWN_SUGGESTION, with_memory

NEEDED = (
    *("day", "client_id", "consumer_group", "topic", "broker_name", "queue_id", "broker_id", "record_id"),
    *("request_ts", "response_ts", "opaque", "suggest_which_broker_id", "error", "broker_addr"),
)
ROUTE_CASE: Final = pa.schema(
    {
        "actual_broker_id": pa.int64(),
        "suggestion": pa.int64(),  # see with_memory
        "route_id": pa.int64(),
        "is_fresh": pa.bool_(),
        "broker_addr": pa.string(),
    }
)
ROUTE_ANSWER: Final = pa.schema(
    {
        "pull_from_which_node": pa.int64(),
        "route_broker_ids": pa.list_(pa.field("element", pa.int64())),
        "expected_broker_id": pa.int64(),
        "cause": pa.string(),
        "judgement": pa.string(),
        "reason": pa.string(),
    }
)
FIXED_PULLS = 2  # pulls of one client and queue that ask one id against the rule
COLUMNS = (
    *("day", "consumer_group", "topic", "broker_name", "queue_id", "client_id", "request_ts", "pull_from_which_node"),
    *("route_broker_ids", "expected_broker_id", "actual_broker_id", "from_slave", "cause", "judgement", "reason"),
    "record_id",
)


class Route(NamedTuple):
    """A broker name's addresses by broker id as a client had them, and the addresses that it had before."""

    addresses: Mapping[int, str | None] | None
    before: Mapping[int, str | None] | None


class Judged(NamedTuple):
    """The verdict on one case; its fields are columns of ROUTE_ANSWER."""

    route_broker_ids: Sequence[int] | None
    expected_broker_id: int | None
    cause: str | None
    judgement: str
    reason: str


def pull_route(
    pull: pl.DataFrame,
    changes: pl.DataFrame,
    new_clients: pl.DataFrame,
    starts: Mapping[dt.datetime, dt.datetime],
    route_slack_ms: int,
) -> pl.DataFrame:
    """Return one row of gold.pull_route for each row of a shard of silver.pull.

    ``changes``, ``new_clients`` and ``starts`` are those of with_memory; ``route_slack_ms`` is how long after a name
    server's answer the client may still use the route that it had before.
    """
    asked, cases = route_cases(pull, changes, new_clients, starts, route_slack_ms)
    return judged_routes(asked, recalculate_pull_from_which_node(cases, routes_by_id(changes)))


def route_cases(
    pull: pl.DataFrame,
    changes: pl.DataFrame,
    new_clients: pl.DataFrame,
    starts: Mapping[dt.datetime, dt.datetime],
    route_slack_ms: int,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the pulls for `judged_routes`, and the distinct cases of ROUTE_CASE that they are. As `pull_route`."""
    known = with_memory(pull.select(NEEDED), changes, new_clients, starts).rename({"broker_id": "actual_broker_id"})
    age_ms = ms("request_ts") - ms("since")
    asked = known.with_columns(
        (age_ms < route_slack_ms).fill_null(value=False).alias("is_fresh"),
        (pl.col("actual_broker_id") != MASTER_ID).alias("from_slave"),
    )
    cases, case_of = distinct_cases(asked.select(ROUTE_CASE.names))
    answered = set(ROUTE_ANSWER.names)
    return asked.select(*[name for name in COLUMNS if name not in answered], pl.Series("case", case_of)), cases


def judged_routes(asked: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Return gold.pull_route of the pulls of `route_cases`; ``answers`` are the rule's to its cases, in order."""
    return _without_fixed(asked.hstack(answers[asked["case"]])).select(COLUMNS)


def recalculate_pull_from_which_node(cases: pl.DataFrame, routes: Mapping[int, Route]) -> pl.DataFrame:
    """Return the broker that PullAPIWrapper and MQClientInstance ask in each case, and the verdict, as ROUTE_ANSWER."""
    answers = []
    for actual, suggestion, route_id, is_fresh, address in cases.select(ROUTE_CASE.names).iter_rows():
        is_known = suggestion != UNKNOWN_SUGGESTION
        node = pull_node.recalculate_pull_from_which_node(suggestion) if is_known else None
        answers.append((node, *judge(actual, node, routes.get(route_id), is_fresh, address)))
    return pl.DataFrame(answers, schema=pl.Schema(ROUTE_ANSWER), orient="row")


def _without_fixed(judged: pl.DataFrame) -> pl.DataFrame:
    """Return the pulls; those of a client that may have fixed its broker are undetermined where they differ.

    With connectBrokerByUser a client asks defaultBrokerId, whatever brokers suggest (PullAPIWrapper). No answer and no
    log has the setting, so where all pulls of a client and queue ask one id, that one may be set.
    """
    of_queue = ("client_id", "consumer_group", "topic", "broker_name", "queue_id")
    differs = pl.col("judgement") == "differ"
    if judged.filter(differs).is_empty():
        return judged
    one_id = pl.col("actual_broker_id").n_unique().over(of_queue) == 1
    fixed = differs & one_id & (differs.sum().over(of_queue) >= FIXED_PULLS)
    reason = pl.format(
        "{}; all its pulls of this queue ask {}, as with connectBrokerByUser, which no evidence shows",
        "reason",
        "actual_broker_id",
    )
    return judged.with_columns(pl.when(~fixed).then("expected_broker_id"), **doubted(fixed, reason))


def routes_by_id(changes: pl.DataFrame) -> dict[int, Route]:
    """Return the distinct routes of ``changes``."""
    first = changes.unique("route_id", keep="first", maintain_order=True)
    return {
        route_id: Route(_by_broker_id(addresses), _by_broker_id(before))
        for route_id, addresses, before in first.select("route_id", "broker_addrs", "before").rows()
    }


def _by_broker_id(entries: Sequence[Mapping[str, Any]] | None) -> dict[int, str | None] | None:
    return None if entries is None else {entry["key"]: entry["value"] for entry in entries}


def found_broker_id(addresses: Mapping[int, str | None] | None, node: int | None) -> int | None:
    """Return the broker id whose address a pull meant for ``node`` goes to; None if there is none, or no ``node``."""
    if addresses is None or node is None:
        return None
    # Ids in place of addresses, so that the law's answer names the id. A null address counts as missing.
    table = {"": {broker_id: None if address is None else str(broker_id) for broker_id, address in addresses.items()}}
    found = find_broker_address_in_subscribe(table, "", node, False, version=CLIENT_4)  # type: ignore[arg-type]
    return None if found is None else int(found.broker_addr)


def judge(
    actual: int | None, node: int | None, route: Route | None, is_fresh: bool, address: str | None = None
) -> Judged:
    """Return the verdict on a client with this route and last suggestion ``node`` that asked broker id ``actual``.

    None: the recording lacks it. ``is_fresh``: the client got the route so shortly before that it may still
    have used the one before. ``address`` is the one that it asked: a route may list it under another id than the
    broker's own, such as that of a slave that acts as master (RouteInfoManager#pickupTopicRouteData), or of a replica
    that the controller has made the master since.
    """
    now_id, before_id, ids = None, None, None
    if route is not None:
        now_id, before_id = found_broker_id(route.addresses, node), found_broker_id(route.before, node)
        ids = None if route.addresses is None else sorted(route.addresses)
    cause = _cause(actual, node, ids)

    def undetermined(reason: str) -> Judged:
        return Judged(ids, None, cause, "undetermined", reason)

    if actual is None:
        return undetermined("the recording does not say which broker was asked")
    if node is None:
        return undetermined("the client is older than the recording: its last suggestion for this queue is not known")
    if route is None:
        if node == actual:
            return Judged(ids, node, cause, "agree", _suggested(node, "; the client's route was not recorded"))
        return undetermined("the client's route was not recorded, and it asked another broker than last suggested")
    if now_id == actual:
        reason = _suggested(node, "") if now_id == node else _fell_back(node, ids or [], now_id)
        return Judged(ids, now_id, cause, "agree", reason)
    if is_fresh and before_id == actual:
        return Judged(ids, actual, cause, "agree", "by the route that the client had shortly before")
    if now_id is None:
        return undetermined("the route that the client had names no address")
    if _is_at(route.addresses, now_id, address):
        return Judged(ids, actual, cause, "agree", _listed_as(now_id, actual, address))
    if is_fresh and before_id is not None and _is_at(route.before, before_id, address):
        return Judged(ids, actual, cause, "agree", _listed_as(before_id, actual, address))
    reason = f"RocketMQ's rule says broker id {now_id}, the client asked {actual}"
    return Judged(ids, now_id, cause, "differ", reason)


def _is_at(addresses: Mapping[int, str | None] | None, broker_id: int, address: str | None) -> bool:
    """Return whether a route lists the address that was asked under this id."""
    return address is not None and addresses is not None and addresses.get(broker_id) == address


def _listed_as(listed: int, actual: int, address: str | None) -> str:
    return f"the route lists {address}, which is broker id {actual}, under id {listed}"


def _cause(actual: int | None, node: int | None, ids: Sequence[int] | None) -> str | None:
    """Return why the client asked a slave; None if it asked the master, or if that is not known."""
    if actual == MASTER_ID:
        return None
    if node is not None and node == actual:
        return "suggested"
    if ids is None:
        return None
    if MASTER_ID not in ids:
        return "master_gone"
    # Brokers suggest 1 whatever id their slave has (whichBrokerWhenConsumeSlowly); clients then take the next one.
    return "suggested" if node is not None and node > MASTER_ID else None


def _suggested(node: int, more: str) -> str:
    if node == MASTER_ID:
        return "the master, by default or as last suggested" + more
    return f"the broker id last suggested, {node}{more}"


def _fell_back(node: int, ids: Sequence[int], to: int) -> str:
    in_route = ", ".join(map(str, ids))
    return f"broker id {node} was not in the client's route (ids {in_route}): fell back to broker id {to}"


PULL_ROUTE: Final = Decision(
    table="gold.pull_route",
    instant="request_ts",
    one="pull",
    many="pulls",
    importance=2,
    phrases=(QUEUE_WORDS, "asked broker id {actual_broker_id}", "expected {expected_broker_id}", VERDICT_WORDS),
    needs=(Need("pull_log"), Need("routes")),
)
