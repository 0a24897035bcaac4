"""The tasks: read a shard's rows, call the kernels, write rows of gold tables, return frames to merge."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from mqreplay.decisions import status_windows
from mqreplay.decisions.allocation import allocation
from mqreplay.decisions.delivery_audit import message_counts_of_shard
from mqreplay.decisions.failover_exposure import lacked_of_shard
from mqreplay.decisions.group_status import status_of_shard
from mqreplay.decisions.judgement import judgements_of_shard
from mqreplay.decisions.offset_continuity import offset_continuity, skips, suspects
from mqreplay.decisions.pop_assignments import pop_assignments
from mqreplay.decisions.pop_receipts import pop_receipts
from mqreplay.decisions.pull_route import pull_route
from mqreplay.decisions.queue_owner import pull_intervals_of_shard
from mqreplay.decisions.queue_progress import queue_progress
from mqreplay.decisions.replay_gap import undetermined_of_shard
from mqreplay.decisions.slave_suggestion import slave_suggestion
from mqreplay.evidence import slave_copies, standstills
from mqreplay.evidence.agreed_lists import member_lists, queue_lists
from mqreplay.evidence.audit_scope import AuditScope, ScopeOfShard, scope_of_shard
from mqreplay.evidence.broker_outages import answers_of_shard, errors_of_shard, failovers_of_shard
from mqreplay.evidence.client_clocks import client_clocks, client_words
from mqreplay.evidence.deliveries import came_back, most_tries_of_shard, repeated_deliveries, with_queue_topic
from mqreplay.evidence.growing_lag import advances_of_shard
from mqreplay.evidence.held_standstills import refused_pulls_of_shard
from mqreplay.evidence.lowered_commits import lowered_commits, with_senders
from mqreplay.evidence.membership import (
    MEMBER,
    commit_signs_of_shard,
    pull_signs_of_shard,
    pulling_groups_of_shard,
)
from mqreplay.evidence.night_facts import CHANGE, COMMIT, PULL, NightFacts, Survey, survey
from mqreplay.evidence.observed_clients import RUNNING_INFO, polled
from mqreplay.evidence.observed_rebalances import observed_rebalances
from mqreplay.evidence.odd_offsets import odd_offsets_of_shard
from mqreplay.evidence.offset_causes import moved_resets_of_shard, offset_resets
from mqreplay.evidence.ownership import pulled_queues_of_shard
from mqreplay.evidence.queue_ends import queue_ends
from mqreplay.evidence.queue_events import QueueEvents, last_copies, queue_events, stored_commits
from mqreplay.evidence.reset_effects import applied_resets_of_shard
from mqreplay.evidence.revive_lags import revive_lags_of_shard
from mqreplay.evidence.slave_reads import slave_reads
from mqreplay.findings.brokers import refusals_of_shard
from mqreplay.findings.clocks import activity_of_shard
from mqreplay.findings.messages import returned_ends_of_shard
from mqreplay.findings.pulls import exceptional_pulls_of_shard
from mqreplay.findings.shares import uneven_shares_of_shard
from mqreplay.findings.topics import orphans_of_shard
from mqreplay.lake.table_writer import TableWriter, WrittenFile
from mqreplay.replay.day import BY_QUEUE, JUDGED, LOWERED, NO_TIME, Day, Skew
from mqreplay.replay.shards import Counts, Shard, name_bucket, total
from mqreplay.settings import Settings

Files = dict[str, list[WrittenFile]]  # by table
Frames = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Night:
    """The shared context of a day's tasks: files, settings, and small tables by the recorder's clock.

    ``raw`` are the small tables with the clients' times; ``small`` is the same if no clock was wrong.
    """

    day: Day
    settings: Settings
    landings: Mapping[str, TableWriter]
    starts: Mapping[dt.datetime, dt.datetime]
    raw: Frames
    small: Frames
    skew: Skew | None

    def with_tables(self, *names: str) -> Night:
        """Return the night with only these small tables: a pass gives each task only the tables that it reads."""
        raw, small = ({name: rows[name] for name in names} for rows in (self.raw, self.small))
        return replace(self, raw=raw, small=small)


@dataclass
class Part:
    """The result of a task: files of gold tables, and frames by name to merge with those of other tasks."""

    files: Files = field(default_factory=dict)
    frames: dict[str, pl.DataFrame] = field(default_factory=dict)

    def land(self, night: Night, table: str, rows: pl.DataFrame) -> None:
        """Write the day's rows of a gold table, if it has a landing, and count their judgements and gaps."""
        if table in night.landings:
            self.files.setdefault(table, []).extend(night.landings[table].write_rows(rows))
        if table in JUDGED:
            self.frames["judgements"] = pl.concat([*self._so_far("judgements"), judgements_of_shard(table, rows)])
            gaps = undetermined_of_shard(table, rows, JUDGED[table])
            self.frames["gaps"] = pl.concat([*self._so_far("gaps"), gaps])

    def _so_far(self, name: str) -> list[pl.DataFrame]:
        return [self.frames[name]] if name in self.frames else []


def survey_files(part: Day, night: Night) -> tuple[Survey, Counts]:
    """Survey the rows of some files: ``part`` is the day with only these files. Counts are rows by bucket."""
    pull, commits = (
        part.silver(name, None, night.skew, columns) for name, columns in (("pull", PULL), ("offset_commit", COMMIT))
    )
    # Offsets from before the lookback are carried over with the instant of a first copy, which is not the last.
    changes = part.around("offset_change", NO_TIME, None, CHANGE)
    counts = total([part.counts(name) for name in ("pull", "offset_commit", "offset_change")])
    return survey(pull, commits, changes, night.starts), counts


def judge_queues(shard: Shard, given: tuple[Night, NightFacts, dt.timedelta | None, Frames]) -> Part:
    """Judge everything that concerns single queues.

    ``given``: the night, its facts, the margin for clients' clocks (None: the clocks are known), and the frames
    route_changes and unregistrations.
    """
    night, facts, clocks_reach, made = given
    day, limits, part = night.day, night.settings.findings, Part()
    raw = {name: day.silver(name, shard) for name in BY_QUEUE}
    rows = raw
    if night.skew is not None:
        rows = {name: day.silver(name, shard, night.skew) for name in BY_QUEUE}
    _judge_pulls(part, night, facts, raw, made["route_changes"], shard)
    events = queue_events(
        rows["offset_change"],
        rows["offset_commit"],
        rows["pull"],
        night.small["topic_stats"],
        facts.groups_with_accepted_commits,
    )
    if clocks_reach is not None:
        part.frames["client_words"] = _clocks(night, shard, events, facts, clocks_reach)
    _judge_events(part, night, facts, rows, events, day.silver(LOWERED, shard))
    pull, commits, gone = rows["pull"], rows["offset_commit"], made["unregistrations"]
    part.frames |= {
        "pull_signs": pull_signs_of_shard(pull, gone, limits.silent_s),
        "commit_signs": commit_signs_of_shard(commits, gone, limits.silent_s),
        "pulling_groups": pulling_groups_of_shard(pull),
        "pull_intervals": pull_intervals_of_shard(pull, limits.pull_gap_s),
        "pulled_queues": pulled_queues_of_shard(pull),
        "answers": answers_of_shard(pull),
        "errors": errors_of_shard(pull),
        "refused_pulls": refused_pulls_of_shard(pull),
        "advances": advances_of_shard(rows["offset_change"], commits),
        "refusals": refusals_of_shard(pull, limits.same_cause_gap_s),
        "returned_ends": returned_ends_of_shard(pull),
        "moved_resets": moved_resets_of_shard(pull),
        "applied_resets": applied_resets_of_shard(
            night.small["server_request"], commits, pull, night.settings.replay.reset_reach_s
        ),
        "orphan_offsets": orphans_of_shard(rows["offset_change"], night.small["topic_config"]),
        # Clients' logs have only a few answers to pulls, without requests.
        "pulls": pl.DataFrame({"answers": [len(pull)], "requests": [pull["opaque"].count()]}),
        "logged": pl.DataFrame({"rows": [len(rows["consume"]) + len(rows["produce"])]}),
    }
    skewed = client_clocks([], limits.clock_skew_s) if night.skew is None else night.skew.rows
    part.frames["activity"] = activity_of_shard(skewed, pull, commits)
    return part


def _judge_pulls(
    part: Part, night: Night, facts: NightFacts, raw: Frames, route_changes: pl.DataFrame, shard: Shard
) -> None:
    day, replay = night.day, night.settings.replay
    of_day = day.judged
    routes = pull_route(raw["pull"], route_changes, facts.born, night.starts, replay.route_slack_ms).filter(of_day)
    part.land(night, "gold.pull_route", routes)
    known = day.with_before("gold.pull_route", "request_ts", routes, shard)
    suggestions = slave_suggestion(
        raw["pull"],
        raw["consume"],
        raw["produce"],
        night.raw["broker"],
        night.raw["subscription_group"],
        night.raw["broker_runtime"],
        replay.poll_slack_ms,
        night.skew.clients if night.skew else [],
    )
    part.land(night, "gold.slave_suggestion", suggestions.filter(of_day))
    reads = slave_reads(known, suggestions, raw["pull"], night.raw["broker"])
    part.frames["exceptional_pulls"] = exceptional_pulls_of_shard(reads, night.settings.findings.same_cause_gap_s)
    part.frames["failovers"] = failovers_of_shard(known)


def _judge_events(
    part: Part, night: Night, facts: NightFacts, rows: Frames, events: QueueEvents, lowered_offset: pl.DataFrame
) -> None:
    day, replay, limits, small = night.day, night.settings.replay, night.settings.findings, night.small
    of_day = day.judged
    part.land(night, "gold.queue_progress", queue_progress(events).filter(of_day))
    # An answer may have a time years later; the windows end with the day.
    until_ms = min(facts.last_ms or 0, int(day.end.timestamp() * 1000))
    part.frames["status"] = status_of_shard(status_windows.windows(events, replay.status_window_s, until_ms))
    copied = last_copies(small["snapshot"])
    still = standstills.standing(events, limits.stuck_s, copied.of_masters)
    part.frames["standstills"] = pl.DataFrame(pl.from_arrow(still))
    part.frames["revive_lags"] = revive_lags_of_shard(
        rows["offset_change"], small["topic_stats"], copied.of_masters, limits.revive_lag_s
    )
    copies = slave_copies.both_files(events, copied.of_slaves)
    part.frames["lacked"] = lacked_of_shard(copies)
    part.frames["stale_spans"] = slave_copies.stale_spans_of_shard(copies, limits.stale_slave_s * 1000)
    ends = queue_ends(rows["pull"], small["topic_stats"])
    part.frames["odd_offsets"] = odd_offsets_of_shard(rows["offset_change"].filter(of_day), ends)
    breaks = offset_continuity(
        rows["offset_change"],
        ends,
        pl.DataFrame(pl.from_arrow(suspects(events))),
        offset_resets(small["server_request"], rows["pull"]),
        pl.DataFrame(pl.from_arrow(skips(events))),
        rows["offset_commit"],
        rows["pull"],
        facts.groups_with_commits,
        replay.reset_reach_s,
        lowered_commits(rows["offset_commit"], lowered_offset, rows["offset_change"], rows["pull"], small["snapshot"]),
    )
    part.frames["breaks"] = with_senders(breaks, lowered_offset).filter(of_day)


def _clocks(night: Night, shard: Shard, events: QueueEvents, facts: NightFacts, reach: dt.timedelta) -> pl.DataFrame:
    """Return the client_words of all rows in the day's recordings: a client's clock may be off by days."""
    if reach > NO_TIME:
        day = night.day
        names = ("offset_change", "offset_commit", "pull")
        rows = {name: day.around(name, reach, shard) for name in names}
        stats = day.around("topic_stats", reach)
        events = queue_events(
            rows["offset_change"], rows["offset_commit"], rows["pull"], stats, facts.groups_with_accepted_commits
        )
    return pl.DataFrame(pl.from_arrow(client_words(events)))


def judge_groups(shard: Shard, night: Night) -> Part:
    """Judge the rebalances of some groups."""
    part, strategies = Part(), night.settings.strategies
    mine = shard.has(name_bucket("consumer_group"))
    rebalances = night.day.silver("rebalance", mine)
    told = allocation(rebalances, strategies.groups, strategies.virtual_node_cnt)
    by_polls = _polled_rebalances(night, mine, rebalances)
    judged = pl.concat([told, allocation(by_polls, strategies.groups, strategies.virtual_node_cnt)])
    of_day = judged.filter(night.day.judged)
    part.land(night, "gold.allocation", of_day)
    known = night.day.with_before("gold.allocation", "rebalance_ts", of_day, mine)
    part.frames["uneven_shares"] = uneven_shares_of_shard(known, night.settings.findings.uneven_queues)
    return part


def judge_pops(shard: Shard, night: Night) -> Part:
    """Judge the messages handed out by POP, and the assignments by brokers, of some groups."""
    part, day = Part(), night.day
    mine = shard.has(name_bucket("consumer_group"))
    pops = day.silver("pop", mine)
    # The groups of an acknowledgement are in its receipts.
    acks = day.silver("pop_ack") if len(pops) else day.silver("pop_ack", pl.lit(False))
    part.land(night, "gold.pop_receipt", pop_receipts(pops, acks).filter(day.judged))
    asked = day.silver("pop_assignment", mine)
    # Most nights have none, and read nothing for them.
    by_recorder = pl.col("client_id").is_null() if len(asked) else pl.lit(False)
    members = member_lists(day.silver("consumer_list", mine & by_recorder))
    queues = queue_lists(day.silver("route", by_recorder), night.raw["topic_config"])
    part.land(night, "gold.pop_assignment", pop_assignments(asked, members, queues).filter(day.judged))
    return part


def _polled_rebalances(night: Night, mine: pl.Expr, rebalances: pl.DataFrame) -> pl.DataFrame:
    """Return the rebalances, by polls, of clients that did not record their own."""
    day, interval_s = night.day, night.settings.findings.rebalance_interval_s
    assignments = polled(day.silver("assignment", mine), RUNNING_INFO)
    of_clients = assignments.select(MEMBER).unique().join(rebalances, MEMBER, how="anti")
    asked = pl.col("client_id").is_null()
    members = member_lists(day.silver("consumer_list", mine & asked))
    queues = queue_lists(day.silver("route", asked), night.raw["topic_config"])
    return observed_rebalances(assignments, members, queues, of_clients, interval_s, rebalances)


def judge_deliveries(shard: Shard, given: tuple[Night, pl.DataFrame]) -> tuple[Part, ScopeOfShard]:
    """Find messages that some queues delivered twice or took back, and the scope of the audit.

    ``given``: the night and its broadcasting groups.
    """
    night, unshared = given
    names = [name for name in BY_QUEUE if name != "pull"]
    rows = {name: night.day.silver(name, shard, night.skew) for name in names}
    rows["consume"] = with_queue_topic(rows["consume"])
    part = Part()
    part.frames["repeated_deliveries"] = repeated_deliveries(rows["consume"], unshared)
    part.frames["came_back"] = came_back(rows["consume"])
    part.frames["most_tries"] = most_tries_of_shard(rows["consume"])
    scope = scope_of_shard(
        rows["produce"], rows["consume"], stored_commits(rows["offset_commit"]), rows["offset_change"], unshared
    )
    return part, scope


def audit_messages(shard: Shard, given: tuple[Night, AuditScope, pl.DataFrame, pl.DataFrame]) -> pl.DataFrame:
    """Count the outcomes of some messages. ``given``: the night, the audit's scope, subscriptions and breaks."""
    night, scope, subscriptions, continuity = given
    mine = shard.has(name_bucket("msg_id"))
    produce, consume = (night.day.silver(name, mine, night.skew) for name in ("produce", "consume"))
    return message_counts_of_shard(produce, with_queue_topic(consume), scope, subscriptions, continuity)
