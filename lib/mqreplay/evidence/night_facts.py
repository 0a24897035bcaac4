"""Facts of the whole night that the judgement of each queue needs, from all pulls, commits and changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from mqreplay.evidence.members.client_memory import first_subscriptions_of_shard, new_clients
from mqreplay.evidence.offsets.queue_events import (
    accepted_commits,
    groups_with_accepted_commits_of_shard,
    groups_with_commits_of_shard,
    last_instant,
)

PULL_COLUMNS = ["client_id", "request_ts", "response_ts", "sub_version", "broker_id", "max_offset"]
COMMIT_COLUMNS = ["client_id", "consumer_group", "ts", "kind", "commit_offset", "error", "response_code", "remark"]
CHANGE = ["client_id", "consumer_group", "to_ts", "broker_id", "new_offset"]


@dataclass(frozen=True)
class Survey:
    """The contribution of a part of a night's pulls, commits and changes; instants are epoch ms."""

    subscriptions: pl.DataFrame
    groups_with_accepted_commits: frozenset[str] = frozenset()
    groups_with_commits: frozenset[str] = frozenset()
    last_ms: int | None = None
    last_change_ms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class NightFacts:
    """Facts of the whole night. ``new_clients``: clients that subscribed in the recording.

    ``last_ms``: the last commit or end of a queue (epoch ms). ``groups_with_commits``: groups with recorded commits;
    ``groups_with_accepted_commits``: those of which a broker accepted one. ``groups_with_copies``: those with an offset
    in copies of masters' files.
    """

    new_clients: pl.DataFrame
    groups_with_accepted_commits: frozenset[str]
    groups_with_commits: frozenset[str]
    last_ms: int | None
    groups_with_copies: frozenset[str] = frozenset()


def survey(
    pull: pl.DataFrame,
    offset_commit: pl.DataFrame,
    offset_change: pl.DataFrame,
    starts: Mapping[dt.datetime, dt.datetime],
) -> Survey:
    """Return the contribution of these rows, any part of the tables, by PULL_COLUMNS, COMMIT_COLUMNS and CHANGE."""
    ended = pull.filter((pl.col("broker_id") == 0) & pl.col("max_offset").is_not_null())
    ends = ended.select(pl.coalesce("response_ts", "request_ts").max().dt.epoch("ms")).item()
    commits = accepted_commits(offset_commit).select(pl.col("ts").max().dt.epoch("ms")).item()
    saved = offset_change.filter((pl.col("broker_id") == 0) & pl.col("new_offset").is_not_null())
    changes = saved.group_by("consumer_group").agg(pl.col("to_ts").max().dt.epoch("ms"))
    return Survey(
        first_subscriptions_of_shard(pull, starts),
        frozenset(groups_with_accepted_commits_of_shard(offset_commit)),
        frozenset(groups_with_commits_of_shard(offset_commit)),
        max((ms for ms in (ends, commits) if ms is not None), default=None),
        dict(changes.rows()),
    )


def night_facts(
    parts: Sequence[Survey], topic_stats: pl.DataFrame, starts: Mapping[dt.datetime, dt.datetime]
) -> NightFacts:
    """Return the facts of the night of which ``parts`` are all surveys."""
    accepted = frozenset[str]().union(*[part.groups_with_accepted_commits for part in parts])
    # If no commits of a group were recorded, the master's snapshots replace them.
    changes = [ms for part in parts for group, ms in part.last_change_ms.items() if group not in accepted]
    return NightFacts(
        new_clients([part.subscriptions for part in parts], starts),
        accepted,
        frozenset[str]().union(*[part.groups_with_commits for part in parts]),
        last_instant([*(part.last_ms for part in parts), *changes], topic_stats),
        frozenset(group for part in parts for group in part.last_change_ms),
    )
