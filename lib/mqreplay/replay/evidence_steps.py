"""How the evidence of a day is computed from its tables and the results of its passes: steps for `Frames`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import Final

import polars as pl

from mqreplay.decisions.decision import by_name
from mqreplay.decisions.queue_owner import source_gaps
from mqreplay.decisions.queue_start import consumers
from mqreplay.decisions.registry import DECISIONS
from mqreplay.decisions.replay_gap import lacking, missing_kinds
from mqreplay.evidence.brokers.broker_outages import broker_outages, restarts
from mqreplay.evidence.brokers.elections import elections
from mqreplay.evidence.brokers.failovers import failovers, name_server_scans, poll_intervals
from mqreplay.evidence.brokers.full_disks import full_disks
from mqreplay.evidence.brokers.listed_brokers import (
    listed_brokers,
    lost_brokers,
    master_changes,
    masterless_names,
    name_server_outages,
    unlisted_brokers,
    until_listed,
)
from mqreplay.evidence.brokers.slave_configs import slave_config_drift
from mqreplay.evidence.lags.growing_lag import falling_behind, lag_gaps, with_stopped
from mqreplay.evidence.lags.never_consumed import never_consumed, with_refusals
from mqreplay.evidence.lags.queue_caches import long_unfinished
from mqreplay.evidence.members.client_languages import other_clients
from mqreplay.evidence.members.dropped_clients import dropped_clients, dropped_gaps, dropped_signs
from mqreplay.evidence.members.listed_members import absences, outside
from mqreplay.evidence.members.member_gaps import lock_gaps, unlisted_member_gaps, unwatched_gaps
from mqreplay.evidence.members.membership import membership, signs, unshared_groups
from mqreplay.evidence.members.observed_clients import answers, hooked
from mqreplay.evidence.members.ownership import possible_owners
from mqreplay.evidence.members.polled_night import PolledNight, polled_night
from mqreplay.evidence.messages.pop_orders import blocked_orders
from mqreplay.evidence.offsets.break_causes import (
    asked_resets,
    with_asked_resets,
    with_concluded_resets,
    with_explained_rewinds,
)
from mqreplay.evidence.offsets.lowered_commits import with_sent_causes
from mqreplay.evidence.offsets.odd_offsets import odd_offsets_of_answers
from mqreplay.evidence.offsets.offset_causes import pushed_resets, with_causes_of_masters
from mqreplay.evidence.offsets.offset_leaps import offset_leaps
from mqreplay.evidence.offsets.queue_events import last_copies
from mqreplay.evidence.offsets.reset_effects import with_applied
from mqreplay.evidence.offsets.slave_copies import stale_copies
from mqreplay.evidence.offsets.standstills import held_standstills
from mqreplay.evidence.recorder_holes import hole_gaps
from mqreplay.findings.broker_lists import long_unlisted
from mqreplay.findings.every import KINDS
from mqreplay.findings.finding_evidence import FindingEvidence, Polled
from mqreplay.findings.snapshots import refused_snapshots
from mqreplay.replay.day import DayRows
from mqreplay.replay.frames import Steps, joined
from mqreplay.words.keys import BROKER


# Rows that are read when a step first needs them.
def cluster_info(rows: DayRows) -> pl.DataFrame:
    """Return the lists of brokers by name servers."""
    return rows.silver("cluster_info")


def consumer_list(rows: DayRows) -> pl.DataFrame:
    """Return the lists of members that the recorder requested."""
    return rows.of_recorder("consumer_list")


# Members of groups, and owners of queues.
def recorder_ran(recorder_event: pl.DataFrame) -> bool:
    """Return whether mqreplay's recorder polled the cluster."""
    return len(recorder_event) > 0


def recorded_signs(heartbeat: pl.DataFrame, rebalance: pl.DataFrame, assignment: pl.DataFrame) -> pl.DataFrame:
    """Return the signs of clients in hooks and logs."""
    return signs(heartbeat, rebalance, hooked(assignment))


def polled_servers(cluster_info: pl.DataFrame, recorder_ran: bool) -> pl.DataFrame:
    """Return the lists of brokers by name servers; they count where the recorder ran."""
    return cluster_info if recorder_ran else cluster_info.clear()


def pop_groups(assignment: pl.DataFrame) -> pl.DataFrame:
    """Return the answers of brokers that receive a group's messages by POP."""
    return answers(assignment).filter("by_pop")


# Breaks of offsets.
def judged_breaks(all_breaks: pl.DataFrame, judged: pl.Expr) -> pl.DataFrame:
    """Return the breaks of the day."""
    return all_breaks.filter(judged)


def has_pushes(missing: Collection[str]) -> bool:
    """Return whether requests of brokers to clients were recorded."""
    return "server_requests" not in missing


def downtimes(outages: pl.DataFrame) -> pl.DataFrame:
    """Return the begin of each outage of a broker."""
    return outages.select(*BROKER, "from_ts")


def offset_continuity(rows: DayRows, breaks: pl.DataFrame) -> pl.DataFrame:
    """Return the breaks of the day, and those of the day before that are in the lookback."""
    return rows.with_before("gold.offset_continuity", "to_ts", breaks)


# What could not be judged.
def missing_gaps(day: dt.date, missing: Collection[str], pull_counts: pl.DataFrame, recorder_ran: bool) -> pl.DataFrame:
    """Return the gaps of decisions and findings whose kinds of files are missing."""
    needs = {name: decision.needs for name, decision in DECISIONS.items()}
    needs |= {f"finding {name}": kind.needs for name, kind in KINDS.items()}
    return missing_kinds(day, lacking(missing, pull_counts), needs, recorder_ran)


def groups_of(group_status: pl.DataFrame) -> frozenset[str]:
    """Return the groups that have a status."""
    return frozenset(group_status["consumer_group"])


def unwatched_holes(unwatched: pl.DataFrame, holes: pl.DataFrame, dispute_s: int) -> pl.DataFrame:
    """Return the gaps of members whose queues are unknown while the recorder ran."""
    return unwatched_gaps(outside(unwatched, "from_ts", holes), dispute_s)


def member_tables(members: pl.DataFrame, assignment: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the tables that name members of groups."""
    return [members, assignment]


# What findings need beside the judged rows.
def lags_without_consumer(
    status: pl.DataFrame,
    advances: pl.DataFrame,
    recorder_event: pl.DataFrame,
    snapshot: pl.DataFrame,
    heartbeat: pl.DataFrame,
    members: pl.DataFrame,
    topic_stats: pl.DataFrame,
    broker: pl.DataFrame,
    assignment: pl.DataFrame,
    stuck_s: int,
) -> pl.DataFrame:
    """Return what groups never consumed, and the brokers that refuse their POP."""
    # A file of a broker that keeps its offsets in RocksDB is old: only polls, or offsets that advance, prove absence.
    shown = len(recorder_event) + len(advances) > 0
    copies = last_copies(snapshot).of_masters if shown else {}
    known = status.select("consumer_group", "topic").unique()
    rows = never_consumed(known, heartbeat, members, topic_stats, copies, stuck_s)
    return with_refusals(rows, broker, answers(assignment))


def odd_offsets_of_day(
    consume_stats: pl.DataFrame, topic_stats: pl.DataFrame, begin: dt.datetime, end: dt.datetime
) -> pl.DataFrame:
    """Return the offsets outside of their queue in brokers' answers of the day."""
    rows = odd_offsets_of_answers(consume_stats, topic_stats)
    return rows.filter((pl.col("from_ts") >= begin) & (pl.col("from_ts") < end))


def refused_files(rows: DayRows, since: dt.datetime, end: dt.datetime) -> pl.DataFrame:
    """Return the refused snapshots of the day and its lookback."""
    return refused_snapshots(rows.quarantine()).filter((pl.col("ts") >= since) & (pl.col("ts") < end))


def known_groups(
    subscription_group: pl.DataFrame,
    members: pl.DataFrame,
    advances: pl.DataFrame,
    groups_with_commits: Collection[str],
) -> frozenset[str]:
    """Return all known consumer groups."""
    rows = (subscription_group, members, advances)
    return frozenset[str](groups_with_commits).union(*(each["consumer_group"] for each in rows))


def polled(polled_night: PolledNight, unwatched: pl.DataFrame) -> Polled:
    """Return the frames of clients that no hook records."""
    night = polled_night
    of_groups = (night.shown, night.duplicates, night.alternations)
    return Polled(night.strategies, unwatched, night.vanished, night.queues, *of_groups)


def stalled_flow(flow: pl.DataFrame) -> pl.DataFrame:
    """Return the caches that are part of a stall."""
    return flow.filter(pl.col("stalled_by").is_not_null())


def listener_frames(assignment: pl.DataFrame) -> pl.DataFrame:
    """Return the frames of the application in the last thread dump of each client."""
    dumps = assignment.filter(pl.col("listener_frames").list.len() > 0).sort("ts")
    return dumps.group_by("consumer_group", "client_id").agg(pl.col("listener_frames").last().alias("frames"))


def stale_routes(routes: pl.DataFrame) -> pl.DataFrame:
    """Return the routes that differ."""
    return routes.filter(pl.col("judgement") == "differ")


MEMBER_STEPS: Final[Steps] = {
    "cluster_info": by_name(cluster_info),
    "consumer_list": by_name(consumer_list),
    "recorder_ran": by_name(recorder_ran),
    "dropped": by_name(dropped_clients),
    "dropped_signs": by_name(dropped_signs),
    "recorded_signs": by_name(recorded_signs),
    "hook_signs": ("recorded_signs", "heartbeat_signs", "pull_signs", "commit_signs", "dropped_signs"),
    "polled_servers": by_name(polled_servers),
    "polled_night": by_name(polled_night, cluster_info="polled_servers"),
    "holes": "polled_night.holes",
    "signs": ("hook_signs", "polled_night.signs"),
    "members": by_name(membership),
    "unshared_groups": by_name(unshared_groups, heartbeat="polled_night.heartbeat", pulling="pulling_groups"),
    "possible_owners": by_name(possible_owners),
    "unwatched": by_name(PolledNight.unwatched, self="polled_night", unshared="unshared_groups"),
    "consumers": by_name(consumers, heartbeat="polled_night.heartbeat"),
    "other_clients": by_name(other_clients, consumer_connection="raw_consumer_connection", heartbeat="raw_heartbeat"),
    "pop_groups": by_name(pop_groups),
}
BROKER_STEPS: Final[Steps] = {
    "outages": by_name(until_listed, outages="observed_outages"),
    "observed_outages": by_name(
        broker_outages,
        broker_runtime="polled_night.broker_runtime",
        pull_answers="all_answers",
        pull_errors="errors",
        from_error="recorder_ran",
    ),
    "all_answers": ("answers", "heartbeat_answers"),
    "restarts": by_name(restarts),
    "lists": by_name(listed_brokers, until="recorded_until"),
    "unlisted_brokers": by_name(unlisted_brokers),
    "unlisted": by_name(long_unlisted, unlisted="unlisted_brokers"),
    "master_changes": by_name(master_changes),
    "masterless": by_name(masterless_names),
    "lost": by_name(lost_brokers),
    "elections": by_name(elections),
    "name_server_outages": by_name(name_server_outages),
    "outage_failovers": by_name(failovers, outages="observed_outages", end="recorded_end"),
    "poll_intervals": by_name(poll_intervals),
    "name_servers": by_name(name_server_scans),
    "long_unfinished": by_name(long_unfinished, unfinished="unfinished_pulls", slow_s="stuck_s"),
}
# Each step adds causes to the breaks of the one before it.
BREAK_STEPS: Final[Steps] = {
    "stale_copies": by_name(stale_copies, spans="stale_spans"),
    "all_breaks": ("breaks", "stale_copies"),
    "judged_breaks": by_name(judged_breaks),
    "has_pushes": by_name(has_pushes),
    "concluded_breaks": by_name(
        with_concluded_resets, breaks="judged_breaks", owners="possible_owners", by_pop="pop_groups"
    ),
    "absences": by_name(absences, watched_until="polled_night.until"),
    "certain_leaps": by_name(offset_leaps, candidates="leaps", breaks="concluded_breaks"),
    "breaks_and_leaps": ("concluded_breaks", "certain_leaps"),
    "asked_resets": by_name(asked_resets),
    "pushed_resets": by_name(pushed_resets),
    "queue_resets": ("pushed_resets", "moved_resets"),
    "resets": by_name(with_applied, resets="queue_resets", applied="applied_resets"),
    "asked_breaks": by_name(
        with_asked_resets,
        breaks="breaks_and_leaps",
        asked="asked_resets",
        resets="queue_resets",
        reach_s="reset_reach_s",
    ),
    "sent_breaks": by_name(with_sent_causes, breaks="asked_breaks"),
    "broker_downtimes": by_name(downtimes),
    "downtimes": ("broker_downtimes", "restarts"),
    "rewinds": by_name(
        with_explained_rewinds,
        breaks="sent_breaks",
        owners="possible_owners",
        outages="downtimes",
        handover_s="dispute_s",
    ),
    "explained_breaks": by_name(with_causes_of_masters, breaks="rewinds", reach_s="reset_reach_s"),
    "gold.offset_continuity": by_name(offset_continuity, breaks="explained_breaks"),
}
GAP_STEPS: Final[Steps] = {
    "missing_gaps": by_name(missing_gaps),
    "hole_gaps": by_name(hole_gaps),
    "source_gaps": by_name(source_gaps),
    "unwatched_gaps": by_name(unwatched_holes),
    "groups_with_status": by_name(groups_of, group_status="gold.group_status"),
    "lag_gaps": by_name(lag_gaps, heartbeat="polled_night.heartbeat", known="groups_with_status"),
    "dropped_gaps": by_name(dropped_gaps),
    "lock_gaps": by_name(lock_gaps, lock="asked_locks"),
    "member_tables": by_name(member_tables),
    "unlisted_member_gaps": by_name(
        unlisted_member_gaps, group_status="gold.group_status", with_members="member_tables"
    ),
    "recording_gaps": (
        *("missing_gaps", "hole_gaps", "source_gaps", "unwatched_gaps", "lag_gaps", "dropped_gaps", "lock_gaps"),
        *("unlisted_member_gaps", "audit_gaps"),
    ),
}
FINDING_STEPS: Final[Steps] = {
    "held_standstills": by_name(held_standstills, still="standstills"),
    "behind_spans": by_name(falling_behind, spans="falling_behind", jumps="gold.offset_continuity"),
    "never_consumed": by_name(lags_without_consumer, heartbeat="polled_night.heartbeat"),
    "stalled_flow": by_name(stalled_flow, flow="judged_caches"),
    "listener_frames": by_name(listener_frames),
    "stale_routes": by_name(stale_routes, routes="gold.listed_route"),
    "full_disks": by_name(full_disks),
    "config_drift": by_name(slave_config_drift, snapshot="raw_snapshot", drift_s="config_drift_s"),
    "blocked_orders": by_name(blocked_orders, snapshot="raw_snapshot"),
    "refused_snapshots": by_name(refused_files),
    "all_advances": by_name(with_stopped),
    "odd_answers": by_name(odd_offsets_of_day),
    "all_odd_offsets": ("odd_offsets", "odd_answers"),
    "known_groups": by_name(known_groups),
    "polled": by_name(polled),
}
STEPS: Final = joined(MEMBER_STEPS, BROKER_STEPS, BREAK_STEPS, GAP_STEPS, FINDING_STEPS)
FINDING_EVIDENCE: Final = by_name(
    FindingEvidence,
    heartbeat="polled_night.heartbeat",
    offset_continuity="gold.offset_continuity",
    queue_owner="owners",
    retried_messages="gold.retried_message",
    passed_commits="gold.committed_offset",
    failover_steps="gold.failover_step",
    rebalance_rounds="rounds",
    delays="judged_delays",
    falling_behind="behind_spans",
    odd_offsets="all_odd_offsets",
    advances="all_advances",
    groups="known_groups",
)
