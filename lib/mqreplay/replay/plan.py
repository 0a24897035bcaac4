"""The replay of one day: the values that its steps begin with, and what it takes from them.

Frames are computed when something needs them (frames.py), by the steps of the passes and of evidence_steps.py, and by
those in the records of decisions. Passes over large tables:

heartbeats  without repeats
routes      their changes; listed routes
survey      facts of the whole day: groups with commits, new clients, last instant
queues      pull routes, suggestions, progress, breaks; input of all later passes
clocks      if a client's clock was wrong, both passes again by the recorder's clock
commits     the offsets that clients commit
groups      allocations, locks, POP
messages    deliveries and the audit
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from mqreplay.decisions.decision import by_name
from mqreplay.decisions.judgement import judgement
from mqreplay.decisions.registry import DECISIONS
from mqreplay.decisions.replay_gap import replay_gap
from mqreplay.engines.passes import PassRunner
from mqreplay.evidence.client_clocks import client_clocks
from mqreplay.evidence.members.polled_night import ends_of_groups
from mqreplay.evidence.recorded_versions import recorded_versions
from mqreplay.replay import (
    commit_pass,
    evidence_steps,
    group_pass,
    heartbeat_pass,
    message_pass,
    queue_pass,
    route_pass,
    send_pass,
    survey_pass,
)
from mqreplay.replay.context import Recorded, ReplayContext
from mqreplay.replay.day import BY_QUEUE, BY_TOPIC, DESCRIPTIONS, INSTANTS, LOWERED, READ_BY_GROUP, Day, DayRows, Skew
from mqreplay.replay.day_findings import DayFindings, day_findings
from mqreplay.replay.evidence_steps import FINDING_EVIDENCE
from mqreplay.replay.frames import Frames, joined
from mqreplay.replay.heartbeat_pass import Heartbeats
from mqreplay.replay.task_results import counted_rows, judged_in, merged
from mqreplay.settings import Settings

BY_RECORDER: Final = ("consumer_list", "cluster_info")  # clients request these often: only the recorder's are read
LARGE: Final = (*BY_QUEUE, LOWERED, *READ_BY_GROUP, *BY_TOPIC, "heartbeat", "route")
SMALL: Final = [name for name in INSTANTS if name not in (*LARGE, *BY_RECORDER)]
NOT_OFF: Final = dt.timedelta()
PASSES: Final = (
    heartbeat_pass.HEARTBEAT_PASS,
    route_pass.ROUTE_PASS,
    survey_pass.SURVEY_PASS,
    queue_pass.QUEUE_PASS,
    group_pass.GROUP_PASS,
    group_pass.POP_PASS,
    commit_pass.COMMIT_PASS,
    send_pass.SEND_PASS,
    message_pass.DELIVERY_PASS,
    message_pass.AUDIT_PASS,
    message_pass.PACKET_PASS,
)
JUDGED_BY_PASSES: Final = ("queues", "groups", "pops", "commits", "sends", "deliveries", "judged_routes")
STEPS: Final = joined(
    *(
        each.STEPS
        for each in (
            *(heartbeat_pass, route_pass, survey_pass, queue_pass, commit_pass, group_pass, send_pass, message_pass),
            evidence_steps,
        )
    ),
    *(decision.steps for decision in DECISIONS.values()),
    {decision.table: decision.rows for decision in DECISIONS.values() if decision.rows is not None},
    {"versions": by_name(recorded_versions, raw="context.raw")},
)


@dataclass
class Replay:
    """The replay of one day, or of a window.

    ``stopped``: groups and topics that advanced before the window, and have not advanced since.
    """

    day: Day
    settings: Settings
    recorded: Recorded
    runner: PassRunner
    progress: Callable[[str], None] = field(default=lambda what: None)
    stopped: Collection[tuple[str, str]] = ()

    def run(self) -> dict[str, pl.DataFrame]:
        """Judge the day; return the day's rows of the gold tables that no pass writes, without the cluster."""
        frames = self.judge_queues()
        frames.require("queues")
        self.progress("queues judged")
        tables = {table: frames[table] for table in DECISIONS if table in STEPS} | self._counted(frames)
        self.progress("groups and messages judged")
        before = None if self.day.is_first else self._rows.gold_day_before("gold.finding")
        of_day = self._findings(frames, before)
        tables |= {"gold.finding": of_day.findings, "gold.known_issue": of_day.known_issues}
        return {name: rows.filter(self.day.judged) for name, rows in tables.items()}

    def findings(self) -> DayFindings:
        """Return the findings of the day or window alone."""
        return self._findings(self.judge_queues(), None)

    def judge_queues(self) -> Frames:
        """Judge the queues; again by the recorder's clock if a client's clock was wrong. Return the day's frames."""
        context = self.context()
        frames = self.frames(context, self.recorded.clocks_reach)
        clocks = client_clocks([frames["queues"].clock_samples], self.settings.findings.clock_skew_s)
        if clocks.is_empty():
            return frames
        self.progress("some clients had a wrong clock; judging again by the recorder's clock")
        return self.frames(self._by_recorders_clock(context, Skew(clocks)), None, frames["raw_heartbeats"])

    @property
    def _rows(self) -> DayRows:
        return DayRows(self.day, self.runner.source)

    def context(self) -> ReplayContext:
        """Return the small tables of the day, with the clients' times."""
        rows = self._rows
        raw = {name: rows.silver(name) for name in SMALL} | {name: rows.described(name) for name in DESCRIPTIONS}
        raw["topic_stats"] = pl.concat([raw["topic_stats"], ends_of_groups(raw["consume_stats"], raw["topic_stats"])])
        return ReplayContext(self.day, self.settings, self.recorded.starts(NOT_OFF), raw, raw, None)

    def _by_recorders_clock(self, context: ReplayContext, skew: Skew) -> ReplayContext:
        right = {name: self._rows.silver(name, None, skew) for name in SMALL if name != "topic_stats"}
        starts = self.recorded.starts(skew.behind)
        return dataclasses.replace(context, skew=skew, small={**context.raw, **right}, starts=starts)

    def frames(
        self, context: ReplayContext, clocks_reach: dt.timedelta | None, raw_heartbeats: Heartbeats | None = None
    ) -> Frames:
        """Return the frames of the day: tables and settings by their names, and what the steps compute of them."""
        day, until, skew = self.day, self.recorded.recorded_until, context.skew
        values: dict[str, Any] = {**vars(self.settings.findings), **vars(self.settings.replay)}
        values |= {f"raw_{name}": rows for name, rows in context.raw.items()} | dict(context.small)
        values |= {
            "context": context,
            "small": context.small,
            "rows": self._rows,
            "runner": self.runner,
            "cluster": day.cluster,
            "day": day.day,
            "since": day.since,
            "begin": day.begin,
            "end": day.end,
            "judged": day.judged,
            "starts": context.starts,
            "missing": self.recorded.missing,
            "recorded_until": until,
            "recorded_end": day.end if until is None else min(until, day.end),
            "clocks_reach": clocks_reach,
            "clocks": client_clocks([], self.settings.findings.clock_skew_s) if skew is None else skew.rows,
            "skewed": () if skew is None else skew.clients,
            "stopped": self.stopped,
        }
        if raw_heartbeats is not None:
            values["raw_heartbeats"] = raw_heartbeats
        del values["groups"]  # limits of single groups are no frame
        return Frames(values, STEPS)

    def _counted(self, frames: Frames) -> dict[str, pl.DataFrame]:
        """Return the rows of gold.judgement and gold.replay_gap."""
        judged = [
            counted_rows(decision, frames[decision.counted or table].filter(self.day.judged))
            for table, decision in DECISIONS.items()
            if decision.rows is not None and decision.count is None
        ]
        counted = merged([*judged, *(each for name in JUDGED_BY_PASSES for each in judged_in(frames[name]))])
        gaps = pl.concat([counted.gaps, frames["recording_gaps"]])
        return {
            "gold.judgement": judgement(counted.judgements),
            "gold.replay_gap": replay_gap(gaps, self.day.cluster),
        }

    def _findings(self, frames: Frames, before: pl.DataFrame | None) -> DayFindings:
        return day_findings(frames.call(FINDING_EVIDENCE), frames["versions"], self.day, self.settings, before)
