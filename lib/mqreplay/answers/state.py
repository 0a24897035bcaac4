"""All that is known of a cluster at an instant, and what is not known."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from mqreplay.answers.open_findings import seconds_until_closed
from mqreplay.findings.texts import summary_of
from mqreplay.lake.row_filter import plain_rows
from mqreplay.language.language import Language
from mqreplay.moment.brokers import brokers_at, settings_at, silent_name_servers
from mqreplay.moment.instant import Recorded
from mqreplay.moment.names import require_names
from mqreplay.moment.offsets import known_sum
from mqreplay.moment.queues import members_at, queues_at, unknown_owners, without_retry_topics
from mqreplay.settings import Settings
from mqreplay.words.errors import InputError
from mqreplay.words.quantity import counted
from mqreplay.words.severity import WORST_FIRST

FINDING_COLUMNS: Final = (
    "finding_id",
    "kind",
    "severity",
    "consumer_group",
    "topic",
    "broker_name",
    "from_ts",
    "to_ts",
    "summary",
)
OF_OWNERS: Final = ("without_owner", "shared")
GROUP_COLUMNS: Final = ("consumer_group", "members", "topics", "queues", "without_owner", "shared", "lag")
STATE_TABLES: Final = {"gold.queue_owner": "owners of queues", "gold.group_status": "status of groups"}
RANKS: Final = {severity: rank for rank, severity in enumerate(WORST_FIRST)}
# The most severe findings first.
BY_SEVERITY: Final = pl.col("severity").replace_strict(RANKS, default=len(RANKS), return_dtype=pl.Int64)


@dataclass(frozen=True)
class State:
    """Frames of brokers, members and queues (see their modules), settings and open findings.

    ``unknown``: for each thing that is not known, the reason, and what would show it.
    """

    cluster: str
    at: dt.datetime
    brokers: pl.DataFrame
    settings: pl.DataFrame
    groups: pl.DataFrame
    members: pl.DataFrame
    queues: pl.DataFrame
    findings: pl.DataFrame
    unknown: list[str]

    def as_plain(self) -> dict[str, Any]:
        """Return the state as plain values, for JSON."""
        frames = {
            name: getattr(self, name) for name in ("brokers", "settings", "groups", "members", "queues", "findings")
        }
        rows = {name: plain_rows(frame) for name, frame in frames.items()}
        return {"cluster": self.cluster, "at": self.at.replace(tzinfo=None), **rows, "unknown": self.unknown}


def state_at(
    recorded: Recorded,
    at: dt.datetime,
    group: str | None = None,
    broker: str | None = None,
    words: Language | None = None,
) -> State:
    """Return the state at an instant: of one group, and of one broker's queues, if they are named.

    Summaries of findings are in the language ``words``; None: English. Raises InputError for a group or broker of which
    nothing is known at the instant; it names similar ones.
    """
    queues = queues_at(recorded, at, group)
    members = members_at(recorded, at, group)
    findings = findings_at(recorded, at, words)
    if broker is not None:
        queues = queues.filter(pl.col("broker_name") == broker)
        findings = findings.filter(pl.col("broker_name").is_null() | (pl.col("broker_name") == broker))
    if group is not None:
        findings = findings.filter(pl.col("consumer_group").is_null() | (pl.col("consumer_group") == group))
    brokers = brokers_at(recorded, at, broker)
    silent = [f"what name server {addr} lists: its last poll failed" for addr in silent_name_servers(recorded, at)]
    unknown = silent + _unknown(brokers, members, queues) + _gaps(recorded, at, group)
    settings = settings_at(recorded, at, broker)
    groups = groups_of(members, queues)
    for what, name, is_known in (
        ("group", group, groups.height),
        ("broker", broker, brokers.height or queues.height),
    ):
        if name is not None and not is_known:
            require_names(recorded, **{f"{what}s": [name]})
            raise InputError(f"nothing is known of the {what} {name} at {at:%Y-%m-%d %H:%M:%S} UTC")
    return State(recorded.cluster, at, brokers, settings, groups, members, queues, findings, unknown)


def groups_of(members: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each group: consumer_group, members, topics, queues, without_owner, shared, lag.

    Retry topics do not count. ``without_owner``: queues that nobody held (not those whose owner is not known),
    ``shared``: that several clients held; null of a group whose members do not share queues, as when it broadcasts.
    ``lag``: null if it is not known of a queue.
    """
    own = without_retry_topics(queues)
    held = pl.col("owners").list.len()
    by_queue = own.group_by("consumer_group").agg(
        pl.col("topic").n_unique().cast(pl.Int64).alias("topics"),
        pl.len().cast(pl.Int64).alias("queues"),
        (held == 0).sum().cast(pl.Int64).alias("without_owner"),
        (held > 1).sum().cast(pl.Int64).alias("shared"),
        known_sum("lag"),
    )
    counted = members.group_by("consumer_group").agg(
        pl.len().cast(pl.Int64).alias("members"), pl.col("shares_queues").all()
    )
    both = counted.join(by_queue, "consumer_group", how="full", coalesce=True)
    owned = [pl.when(pl.col("shares_queues").fill_null(value=True)).then(name).alias(name) for name in OF_OWNERS]
    return both.with_columns(pl.col("members").fill_null(0), *owned).select(GROUP_COLUMNS).sort("consumer_group")


def findings_at(
    recorded: Recorded, at: dt.datetime, words: Language | None = None, *, until_closed_by: Settings | None = None
) -> pl.DataFrame:
    """Return the findings that were open, the most severe first: FINDING_COLUMNS.

    ``until_closed_by``: also those that messages and watch, with these settings, have not closed by the end of the
    recording.
    """
    is_open = pl.col("to_ts").is_null() | (pl.col("to_ts") >= at)
    if until_closed_by is not None:
        limits = seconds_until_closed(until_closed_by)
        limit = pl.duration(seconds=pl.col("kind").replace_strict(limits, default=0, return_dtype=pl.Int64))
        is_open |= pl.col("to_ts") + limit >= recorded.last
    found = recorded.before("gold.finding", "from_ts", at).filter(is_open)
    last = found.sort("day").unique("finding_id", keep="last")
    return with_summaries(last.sort(BY_SEVERITY, "from_ts", "finding_id").collect(), words).select(FINDING_COLUMNS)


def with_summaries(findings: pl.DataFrame, words: Language | None) -> pl.DataFrame:
    """Return rows of gold.finding with summaries in a language; None: as they are, in English."""
    if words is None:
        return findings
    texts = [summary_of(row, words) for row in findings.iter_rows(named=True)]
    return findings.with_columns(pl.Series("summary", texts, pl.String))


def _unknown(brokers: pl.DataFrame, members: pl.DataFrame, queues: pl.DataFrame) -> list[str]:
    """Return what the frames leave open."""
    found = []
    if unasked := brokers.filter(pl.col("up").is_null()).height:
        found.append(f"whether {counted(unasked, 'broker')} answered: nobody asked (mqreplay record does)")
    if members.is_empty():
        found.append("members of groups: no heartbeat, consumer list or running info up to then")
    if no_end := queues.filter(pl.col("end_offset").is_null()).height:
        found.append(f"the end of {counted(no_end, 'queue')}: no poll of topics and no answer to a pull up to then")
    if no_offset := queues.filter(pl.col("committed_ts").is_null()).height:
        found.append(f"the committed offset of {counted(no_offset, 'queue')}: no commit or copy of offsets up to then")
    return found + unknown_owners(queues)


def _gaps(recorded: Recorded, at: dt.datetime, group: str | None) -> list[str]:
    """Return the reasons of gold.replay_gap that hold at the instant, each once."""
    gaps = recorded.before("gold.replay_gap", "from_ts", at).filter(
        (pl.col("to_ts") >= at) & pl.col("decision").is_in(list(STATE_TABLES))
    )
    of_group = pl.col("consumer_group")
    mine = gaps if group is None else gaps.filter(of_group.is_null() | (of_group == group))
    columns = ("decision", "consumer_group", "reason")
    rows = mine.select(columns).unique().sort(columns).collect().rows()
    return [": ".join(filter(None, (STATE_TABLES[decision], name, reason))) for decision, name, reason in rows]
