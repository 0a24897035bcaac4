"""Name servers that answer with a route that the brokers no longer have."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.decisions.listed_route import WIPED
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, one_or_none, whole_seconds


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the name servers with an old route."""
    return stale_routes(evidence.stale_routes, evidence.cluster, limits.same_cause_gap_s)


STALE_ROUTE = FindingKind(
    name="stale_route",
    find=find,
    meaning="A name server answered with a route that differs from the topics of a broker that is registered there."
    " Clients that ask this name server read too few queues, write to queues or brokers that refuse it, or leave a"
    " broker out.",
    rule="gold.listed_route differs: for longer than a registration takes (registerNameServerPeriod and its timeout)"
    " a route had other queues, permissions or addresses than the broker, or lacked it.",
    follows="RouteInfoManager#registerBroker, RouteInfoManager#pickupTopicRouteData",
    advice="Compare the route of each name server: `mqadmin topicRoute -t TOPIC -n NAMESRV_ADDR`. Read the broker's"
    " logs for `registerBroker Exception` with the address of the name server. To register the topic at once, write"
    " the values that the broker has: `mqadmin updateTopic -b BROKER_ADDR -t TOPIC -r READ_QUEUES -w WRITE_QUEUES -p"
    " PERM -n NAMESRV`.",
    confidence=0.9,
    needs=(Need("routes"), Need("topics")),
    thresholds=("findings.same_cause_gap_s",),
    example="Name server 10.0.0.9:9876 answered with an old route of orders for 95 s. It listed broker-a: 4 read and 4"
    " write queues, perm 6; 0 at 10.0.0.1:10911. By the broker's topics and the list of brokers it has broker-a: 8 read"
    " and 8 write queues, perm 6; 0 at 10.0.0.1:10911.",
)
WIPED_ADVICE = (
    "Somebody took the broker out of use for producers (`mqadmin wipeWritePerm`). `mqadmin addWritePerm -b BROKER_NAME"
    " -n NAMESRV` ends that; so does the next change of a topic of the broker."
)
BY = ("namesrv_addr", "broker_name", "reason")


def stale_routes(differing: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return STALE_ROUTE, of the rows of gold.listed_route that differ: one a name server, broker name and reason."""
    each = differing.with_columns(_of_broker("listed"), _of_broker("expected"))
    rows = (
        with_session(each, BY, "from_ts", "to_ts", gap_s)
        .group_by(*BY, "session")
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col("topic").n_unique().alias("topics"),
            (pl.col("expected_writable") & ~pl.col("writable")).any().alias("closed"),
            pl.col("topic").min().alias("first_topic"),
            one_or_none("topic"),
            pl.col("listed", "expected").sort_by("topic", "from_ts").last(),
            evidence("silver.route", "record_id"),
        )
    )
    server = (
        pl.when(pl.col("namesrv_addr").is_null())
        .then(pl.lit("A name server"))
        .otherwise(pl.format("Name server {}", "namesrv_addr"))
    )
    of_topics = (
        pl.when(pl.col("topics") == 1)
        .then("first_topic")
        .otherwise(pl.format("{}, among them {}", counted("topics", "topic"), "first_topic"))
    )
    lists = (
        pl.when(pl.col("listed").is_null())
        .then(pl.format("It did not list {}.", "broker_name"))
        .otherwise(pl.format("It listed {}.", "listed"))
    )
    has = (
        pl.when(pl.col("expected").is_null())
        .then(pl.lit(""))
        .otherwise(pl.format(" By the broker's topics and the list of brokers it has {}.", "expected"))
    )
    summary = pl.concat_str(
        server,
        pl.format(" answered with an old route of {} for ", of_topics),
        whole_seconds("from_ts", "to_ts"),
        pl.lit(". "),
        lists,
        has,
        pl.when("closed")
        .then(pl.lit(" Producers found no queue in the route: their sends failed."))
        .otherwise(pl.lit("")),
    )
    is_wiped = pl.col("reason") == WIPED
    return finding(
        rows,
        STALE_ROUTE,
        cluster,
        severity=pl.when("closed")
        .then(pl.lit("critical"))
        .when(is_wiped)
        .then(pl.lit("info"))
        .otherwise(pl.lit("warning")),
        summary=summary,
        advice=pl.when(is_wiped).then(pl.lit(WIPED_ADVICE)).otherwise(pl.lit(STALE_ROUTE.advice)),
    )


def _of_broker(name: str) -> pl.Expr:
    """Return the broker's own text of a list of texts by broker name; null if it has none."""
    texts = pl.struct(pl.col(name).alias("texts"), "broker_name")
    return texts.map_elements(_own_text, pl.String).alias(name)


def _own_text(row: dict[str, Any]) -> str | None:
    return next((text for text in row["texts"] or () if text.startswith(f"{row['broker_name']}: ")), None)
