"""What could not be judged in a day: rows of gold.replay_gap from the coverage of its recordings."""

from __future__ import annotations

import polars as pl

from mqreplay.decisions.replay_gap import lacking, missing_kinds
from mqreplay.decisions.source_disputes import source_gaps
from mqreplay.evidence.lags.growing_lag import lag_gaps
from mqreplay.evidence.members.dropped_clients import dropped_gaps
from mqreplay.evidence.members.listed_members import outside
from mqreplay.evidence.members.locked_queues import lock_gaps
from mqreplay.evidence.members.unlisted_members import unlisted_member_gaps
from mqreplay.evidence.members.unread_logs import unwatched_gaps
from mqreplay.evidence.recorder_holes import hole_gaps
from mqreplay.findings.every import KINDS
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.member_evidence import MemberEvidence, recorder_ran
from mqreplay.replay.recorded import Recorded


def recording_gaps(
    context: ReplayContext,
    recorded: Recorded,
    clients: MemberEvidence,
    unwatched: pl.DataFrame,
    outages: pl.DataFrame,
    group_status: pl.DataFrame,
    pull_counts: pl.DataFrame,
) -> pl.DataFrame:
    """Return the gaps of the whole day; ``unwatched``: while the queues of a member are unknown."""
    small, limits, polled = context.small, context.settings.findings, clients.polled
    assignment, day = small["assignment"], context.day.day
    needs = {kind.name: kind.needs for kind in KINDS.values()}
    return pl.concat(
        [
            missing_kinds(day, lacking(recorded.missing, pull_counts), needs, recorder_ran(context)),
            hole_gaps(polled.holes, small["recorder_event"], outages),
            source_gaps(assignment, small["rebalance"], clients.members),
            unwatched_gaps(outside(unwatched, "from_ts", polled.holes), limits.dispute_s),
            lag_gaps(clients.members, polled.heartbeat, set(group_status["consumer_group"]), day, limits.stuck_s),
            dropped_gaps(clients.dropped, clients.members),
            lock_gaps(assignment, small["lock"]),
            unlisted_member_gaps(
                group_status, clients.consumer_lists, small["proxy_connection"], [clients.members, assignment]
            ),
        ]
    )
