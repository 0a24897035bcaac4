"""What concerns each pull alone, in the two halves of the pass over queues: cases of rules, and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.core.topic_route import MASTER_ID
from mqreplay.decisions.judgement import undetermined_of_shard
from mqreplay.decisions.pull_batch import PULL_BATCH, Batches, pull_batches
from mqreplay.decisions.pull_route import (
    PULL_ROUTE,
    ROUTE_ANSWER,
    ROUTE_CASE,
    Route,
    judged_routes,
    recalculate_pull_from_which_node,
    route_cases,
    routes_by_id,
)
from mqreplay.decisions.slave_suggestion import (
    SLAVE_SUGGESTION,
    SUGGESTION_ANSWER,
    SUGGESTION_CASE,
    judged_suggestions,
    slave_suggestion,
    suggestion_cases,
)
from mqreplay.engines.passes import CaseRule, GoldRows, no_settings
from mqreplay.engines.shards import Shard
from mqreplay.evidence.brokers.broker_outages import failovers_of_shard
from mqreplay.evidence.brokers.failovers import returns_of_shard
from mqreplay.evidence.brokers.slave_reads import slave_reads
from mqreplay.evidence.members.client_languages import without_other_languages
from mqreplay.findings.pulls import exceptional_pulls_of_shard
from mqreplay.replay.context import Frames
from mqreplay.replay.day import DayRows
from mqreplay.replay.queue_results import QueueInput, RouteResult
from mqreplay.replay.task_results import JudgedRows, add_judged, compacted, merged


@dataclass(frozen=True)
class AskedPulls:
    """Frames of the first half for the second one.

    ``routes`` and ``suggestions``: those of route_cases and suggestion_cases; ``routes_before``: rows of
    gold.pull_route of the lookback; ``ends``: the ends of queues in answers that suggested a slave; ``batches``: with
    no row that was added to gold.
    """

    routes: pl.DataFrame
    routes_before: pl.DataFrame
    suggestions: pl.DataFrame
    ends: pl.DataFrame
    batches: Batches


def ask_pulls(
    day: DayRows, shard: Shard, shared: QueueInput, raw: Frames, gold: GoldRows
) -> tuple[AskedPulls, tuple[pl.DataFrame, pl.DataFrame]]:
    """Return the pulls of a shard, and the cases of PULL_RULES."""
    context, pull, tables = shared.context, raw["pull"], shared.context.raw
    replay, changes, new = context.settings.replay, shared.route_changes, shared.facts.new_clients
    routes, cases = route_cases(pull, changes, new, context.starts, replay.route_slack_ms)
    suggestions, cases_of_suggestions = suggestion_cases(
        pull,
        raw["consume"],
        raw["produce"],
        tables["broker"],
        tables["subscription_group"],
        tables["broker_runtime"],
        replay.poll_slack_ms,
    )
    batches = pull_batches(
        pull,
        suggestions.filter(~pl.col("client_id").is_in(context.skewed_clients)),
        tables["broker"],
        context.day.judged,
        context.settings.findings.same_cause_gap_s,
    )
    gold.add(PULL_BATCH.table, batches.differing)
    to_slave = pull.filter(pl.col("suggest_which_broker_id") > MASTER_ID)
    asked = AskedPulls(
        routes=routes,
        routes_before=day.gold_before(PULL_ROUTE.table, "request_ts", shard),
        suggestions=suggestions,
        ends=to_slave.select("record_id", "max_offset", "next_begin_offset"),
        batches=batches,
    )
    return asked, (cases, cases_of_suggestions)


def judged_pulls(asked: AskedPulls, answers: Sequence[pl.DataFrame], shared: QueueInput, gold: GoldRows) -> RouteResult:
    """Judge the routes and the suggestions by the answers of PULL_RULES to their cases."""
    context, of_day, before = shared.context, shared.context.day.judged, asked.routes_before
    routes = judged_routes(asked.routes, answers[0]).filter(of_day)
    routes = without_other_languages(routes, shared.other_clients)
    known = pl.concat([before.select(routes.columns), routes]) if len(before) else routes
    suggestions = judged_suggestions(asked.suggestions, answers[1], context.skewed_clients)
    reads = slave_reads(known, suggestions, asked.ends, context.raw["broker"])
    judged = [
        add_judged(gold, PULL_ROUTE, routes),
        add_judged(gold, SLAVE_SUGGESTION, suggestions.filter(of_day)),
        JudgedRows(asked.batches.counts, undetermined_of_shard(PULL_BATCH, asked.batches.differing)),
    ]
    return RouteResult(
        judged=merged(judged),
        disk_runs=asked.batches.disk_runs,
        exceptional_pulls=compacted(exceptional_pulls_of_shard(reads, context.settings.findings.same_cause_gap_s)),
        failovers=failovers_of_shard(known),
        returns=returns_of_shard(known),
    )


def routes_of_pulls(shared: QueueInput) -> dict[int, Route]:
    """Return the routes that the cases of pulls name."""
    return routes_by_id(shared.route_changes)


PULL_RULES: Final = (
    CaseRule(recalculate_pull_from_which_node, routes_of_pulls, ROUTE_CASE, ROUTE_ANSWER),
    CaseRule(slave_suggestion, no_settings, SUGGESTION_CASE, SUGGESTION_ANSWER),
)
