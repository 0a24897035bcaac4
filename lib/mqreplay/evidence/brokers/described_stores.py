"""The settings of the brokers' stores: when they flush, and how a master waits for its slaves."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final, NamedTuple

import polars as pl

from mqreplay.core.flush import FlushPolicy, commit_log_policy, due_after
from mqreplay.core.replication import ReplicaSettings, replica_settings
from mqreplay.core.store_settings import is_set
from mqreplay.evidence.brokers.broker_descriptions import PROPERTIES, properties_of
from mqreplay.evidence.time_spans import INSTANT

DLEDGER: Final = ("enableDLegerCommitLog", "enableDLedgerCommitLog")
SETTINGS: Final[dict[str, pl.DataType]] = {
    "ts": INSTANT,
    "broker_name": pl.String(),
    "broker_id": pl.Int64(),
    "broker_role": pl.String(),
    "fall_behind_max": pl.Int64(),
    "turns_ms": pl.Int64(),
    "thorough_ms": pl.Int64(),
    "is_dledger": pl.Boolean(),
    "by_controller": pl.Boolean(),
    "store": pl.Int64(),  # the place of the description among those of described_stores
}


class Described(NamedTuple):
    """What a brokers.json says of a broker's store, from ``ts`` on."""

    key: tuple[str, int]
    ts: dt.datetime
    policy: FlushPolicy
    replicas: ReplicaSettings
    is_dledger: bool


def described_stores(broker: pl.DataFrame) -> list[Described]:
    """Return the settings of each description of a broker, by their times. ``broker`` is silver.broker."""
    found = []
    for row in broker.sort("ts").with_columns(pl.col("properties").cast(PROPERTIES)).iter_rows(named=True):
        named = properties_of(row)
        role = row["broker_role"] or ("ASYNC_MASTER" if row["broker_id"] == 0 else "SLAVE")
        is_dledger = any(is_set(named, name) for name in DLEDGER)
        key, policy = (row["broker_name"], row["broker_id"]), commit_log_policy(named)
        found.append(Described(key, row["ts"], policy, replica_settings(role, named), is_dledger))
    return found


def settings_of(stores: Sequence[Described]) -> pl.DataFrame:
    """Return the settings as rows of SETTINGS."""
    rows = [
        (
            *(of.ts, *of.key, of.replicas.role, of.replicas.fall_behind_max, *due_after(of.policy)),
            *(of.is_dledger, of.replicas.enable_controller_mode, place),
        )
        for place, of in enumerate(stores)
    ]
    return pl.DataFrame(rows, SETTINGS, orient="row")
