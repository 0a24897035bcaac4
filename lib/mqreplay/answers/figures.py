"""The figures of a cluster for Prometheus: names, labels and values, after its conventions. Unknown is no sample."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import polars as pl

from mqreplay.answers.alert import of_watch
from mqreplay.answers.mutes import Mute
from mqreplay.answers.outcome import Outcome
from mqreplay.answers.state import groups_of
from mqreplay.findings.opened import OpenFinding
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.brokers import exposure_at
from mqreplay.moment.instant import Recorded
from mqreplay.moment.queues import members_at, queues_at

LAST_DAY: Final = dt.timedelta(days=1)


class Metric(NamedTuple):
    """A gauge: its help text, and the names of its labels after ``cluster``."""

    text: str
    labels: tuple[str, ...] = ()


METRICS: Final[Mapping[str, Metric]] = {
    "mqreplay_findings": Metric(
        "Findings of the night that the last nightly run is about. muted: true or false.", ("kind", "severity", "muted")
    ),
    "mqreplay_open_findings": Metric(
        "Findings that watch has open. muted: true or false.", ("kind", "severity", "muted")
    ),
    "mqreplay_consumer_lag_messages": Metric(
        "Messages of a consumer group between its committed offsets and the ends of its queues, at the end of the "
        "recording, without retry topics; no sample if one of them is not known.",
        ("consumer_group",),
    ),
    "mqreplay_failover_loss_bytes": Metric(
        "Bytes of the commit log that no slave had at the end of the recording: what its loss would cost.",
        ("broker_name",),
    ),
    "mqreplay_failover_redelivered_messages": Metric(
        "Messages that would be delivered again if the master failed at the end of the recording.", ("broker_name",)
    ),
    "mqreplay_decisions": Metric(
        "Replayed decisions of the days of the night, by judgement: agree, differ or undetermined.",
        ("decision", "judgement"),
    ),
    "mqreplay_failed_expectations": Metric("Expectations about the tables that failed in the last nightly run."),
    "mqreplay_recording_end_timestamp_seconds": Metric("Last recorded instant, as Unix time."),
    "mqreplay_nightly_timestamp_seconds": Metric("When the last complete nightly run ended, as Unix time."),
}

# Those that a round of watch makes anew.
WATCHED: Final = (
    "mqreplay_open_findings",
    "mqreplay_consumer_lag_messages",
    "mqreplay_recording_end_timestamp_seconds",
)


class Sample(NamedTuple):
    """A value of a metric; ``labels`` are the values of its cluster and its labels."""

    metric: str
    labels: tuple[str, ...]
    value: float


def night_figures(
    warehouse: Warehouse, outcome: Outcome, recorded_until: dt.datetime, ended: dt.datetime
) -> list[Sample]:
    """Return the figures of a nightly run. ``recorded_until`` is the last instant by the recorder's clock."""
    name = outcome.cluster
    rows = outcome.findings
    labels = ((str(row["kind"]), str(row["severity"]), _word(row["muted_until_ts"] is not None)) for row in rows)
    found = _counted("mqreplay_findings", name, labels)
    found += [
        Sample("mqreplay_decisions", (name, decision, judgement), count)
        for decision, counts in sorted(outcome.judgements.items())
        for judgement, count in sorted(counts.items())
    ]
    found += [
        Sample("mqreplay_failed_expectations", (name,), len(outcome.failed_expectations)),
        Sample("mqreplay_nightly_timestamp_seconds", (name,), ended.timestamp()),
        Sample("mqreplay_recording_end_timestamp_seconds", (name,), recorded_until.timestamp()),
    ]
    night = Recorded(warehouse, name, recorded_until, recorded_until)
    return found + lag_figures(night) + _exposure(night)


def watch_figures(
    cluster: str, findings: Iterable[OpenFinding], recorded_until: dt.datetime, mutes: Sequence[Mute] = ()
) -> list[Sample]:
    """Return what watch knows of a cluster after a round. ``mutes`` are those that hold."""
    alerts = of_watch(one for one in findings if one.is_open)
    labels = ((one.kind, one.severity, _word(any(mute.covers(one) for mute in mutes))) for one in alerts)
    found = _counted("mqreplay_open_findings", cluster, labels)
    end = Sample("mqreplay_recording_end_timestamp_seconds", (cluster,), recorded_until.timestamp())
    return [*found, end]


def lag_figures(night: Recorded) -> list[Sample]:
    """Return the lag of each group at the end of the recording."""
    groups = groups_of(members_at(night, night.last), queues_at(night, night.last))
    known = groups.filter(pl.col("lag").is_not_null()).select("consumer_group", "lag").rows()
    return [Sample("mqreplay_consumer_lag_messages", (night.cluster, group), lag) for group, lag in known]


def _exposure(night: Recorded) -> list[Sample]:
    brokers = night.before("gold.failover_exposure", "minute_ts", night.last, LAST_DAY).select("broker_name").unique()
    columns = {"mqreplay_failover_loss_bytes": "bytes_behind", "mqreplay_failover_redelivered_messages": "redelivered"}
    found: list[Sample] = []
    for name in sorted(brokers.collect()["broker_name"]):
        row: Mapping[str, Any] = exposure_at(night, name, night.last)
        found += [
            Sample(metric, (night.cluster, name), row[column])
            for metric, column in columns.items()
            if row.get(column) is not None
        ]
    return found


def _word(is_true: bool) -> str:
    return str(is_true).lower()


def _counted(metric: str, cluster: str, labels: Iterable[Sequence[str]]) -> list[Sample]:
    counts = Counter((cluster, *each) for each in labels)
    return [Sample(metric, each, count) for each, count in sorted(counts.items())]
