"""The versions of brokers and clients that the recording states, for faults that only some versions have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from mqreplay.core.version import version_of_ordinal
from mqreplay.evidence.brokers.broker_descriptions import PROPERTIES
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.members.client_languages import JAVA, is_grpc_client
from mqreplay.words.keys import BROKER


@dataclass(frozen=True)
class RecordedVersions:
    """The versions of a day.

    ``brokers``: columns BROKER, version, settings (PROPERTIES), since, until; each row is valid from ``since`` to
    ``until`` (null: for ever). ``clients``: consumer_group, client_id, version, message_model. ``pop_groups``: the
    groups that consume by POP.
    """

    brokers: pl.DataFrame
    clients: pl.DataFrame
    pop_groups: frozenset[str]


def recorded_versions(
    raw: Mapping[str, pl.DataFrame], popped: pl.DataFrame, assigned: pl.DataFrame
) -> RecordedVersions:
    """Return the versions of a day. ``raw`` has silver tables by name; the others are as pop_groups() takes them."""
    return RecordedVersions(
        broker_versions(raw["broker"], raw["broker_runtime"]),
        client_versions(raw["consumer_connection"]),
        pop_groups(popped, assigned),
    )


def broker_versions(broker: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the brokers with their versions, as RecordedVersions has them.

    ``broker`` is silver.broker; its first description is also valid before its instant. Where it lacks the version,
    the last answer of the broker in ``broker_runtime`` (silver.broker_runtime) has it, as MQVersion names it: V5_3_3.
    """
    polled = broker_runtime.filter(pl.col("broker_version_desc").fill_null("") != "")
    last = polled.sort("ts").group_by(BROKER).agg(pl.col("broker_version_desc").last().alias("polled_version"))
    described = broker.sort("ts").select(
        *BROKER,
        pl.col("rocketmq_version").alias("version"),
        pl.col("properties").cast(PROPERTIES).alias("settings"),
        pl.when(pl.col("ts") > pl.col("ts").min().over(BROKER)).then("ts").cast(INSTANT).alias("since"),
        pl.col("ts").shift(-1).over(BROKER).cast(INSTANT).alias("until"),
    )
    others = last.join(described, BROKER, how="anti").select(BROKER)
    every = pl.concat([described, others], how="diagonal").join(last, BROKER, how="left")
    named = pl.coalesce("version", "polled_version").str.strip_prefix("V").str.replace_all("_", ".", literal=True)
    return every.with_columns(named.alias("version")).drop("polled_version").filter(pl.col("version").is_not_null())


def pop_groups(popped: pl.DataFrame, assigned: pl.DataFrame) -> frozenset[str]:
    """Return the groups that consume by POP: those of silver.pop, and those to which silver.pop_assignment says so."""
    by_mode = assigned.filter(pl.col("mode") == "POP")
    return frozenset(pl.concat([popped["consumer_group"], by_mode["consumer_group"]]).drop_nulls())


def client_versions(consumer_connection: pl.DataFrame) -> pl.DataFrame:
    """Return the consumers with their versions, as RecordedVersions has them.

    ``consumer_connection`` is silver.consumer_connection. Only Java clients of the remoting protocol: others have
    versions of their own.
    """
    connected = consumer_connection.select("consumer_group", "message_model", "connections").explode("connections")
    each = connected.filter(pl.col("connections").is_not_null()).unnest("connections")
    java = each.filter((pl.col("language") == JAVA) & ~is_grpc_client())
    rows = java.select("consumer_group", "client_id", pl.col("version").alias("ordinal"), "message_model").unique()
    ordinals = rows["ordinal"].drop_nulls().unique().to_list()
    names = {ordinal: version for ordinal in ordinals if (version := version_of_ordinal(ordinal)) is not None}
    named = pl.col("ordinal").replace_strict(names, default=None, return_dtype=pl.String)
    return rows.with_columns(named.alias("version")).drop("ordinal").filter(pl.col("version").is_not_null())
