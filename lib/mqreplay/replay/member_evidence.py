"""Members of groups, and owners of queues, from all tables of a day."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mqreplay.decisions.queue_owner import queue_owner
from mqreplay.evidence.members.dropped_clients import dropped_clients, dropped_signs
from mqreplay.evidence.members.membership import membership, signs, unshared_groups
from mqreplay.evidence.members.polled_night import PolledNight, hook_tables, polled_night
from mqreplay.evidence.members.possible_owners import possible_owners
from mqreplay.evidence.night_facts import NightFacts
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.queue_pass import QueueResult


@dataclass(frozen=True)
class MemberEvidence:
    """Frames of members and owners.

    ``polled``: clients without hooks, by what polls show; ``consumer_lists``: those that the recorder requested.
    """

    polled: PolledNight
    consumer_lists: pl.DataFrame
    dropped: pl.DataFrame  # dropped_clients
    members: pl.DataFrame  # membership
    unshared_groups: pl.DataFrame
    owners: pl.DataFrame  # gold.queue_owner, not cut at midnight
    possible_owners: pl.DataFrame


def recorder_ran(context: ReplayContext) -> bool:
    """Return whether mqreplay's recorder polled the cluster."""
    return len(context.small["recorder_event"]) > 0


def member_evidence(
    day: DayRows, context: ReplayContext, facts: NightFacts, queues: QueueResult, cluster_info: pl.DataFrame
) -> MemberEvidence:
    """Return the members of groups and the owners of queues."""
    small, limits = context.small, context.settings.findings
    dropped = dropped_clients(small["heartbeat"], small["broker_runtime"], limits.lost_s)
    by_hooks = [signs(*hook_tables(small)), queues.pull_signs, queues.commit_signs, dropped_signs(dropped)]
    lists = day.of_recorder("consumer_list")
    # Name servers count where the recorder ran.
    servers = cluster_info if recorder_ran(context) else cluster_info.clear()
    polled = polled_night(small, lists, servers, pl.concat(by_hooks), limits.lost_s, limits.silent_s)
    members = membership(pl.concat([*by_hooks, polled.signs]), limits.silent_s)
    unshared = unshared_groups(
        polled.heartbeat, small["rebalance"], small["assignment"], queues.pulling_groups, facts.groups_with_commits
    )
    owners = queue_owner(
        small["assignment"], small["rebalance"], small["lock"], queues.pull_intervals, members, unshared
    )
    possible = possible_owners(owners, small["assignment"], members)
    return MemberEvidence(polled, lists, dropped, members, unshared, owners, possible)
