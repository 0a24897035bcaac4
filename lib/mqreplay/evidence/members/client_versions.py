"""The versions of consumers, as brokers list them."""

from __future__ import annotations

import polars as pl

from mqreplay.core.version import version_of_ordinal
from mqreplay.evidence.members.client_languages import JAVA, is_grpc_client


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
