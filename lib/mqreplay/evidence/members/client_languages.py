"""Clients that are not RocketMQ's Java client of the remoting protocol: its rules are not theirs.

Each request and each connection of a client states its language (LanguageCode). Clients of Go, C++, Rust and others
have code of their own for what they pull, where they begin and what they commit.
"""

from __future__ import annotations

from typing import Final

import polars as pl

JAVA: Final = "JAVA"
GRPC: Final = "gRPC"


def is_grpc_client() -> pl.Expr:
    """Return whether a client id, which a broker lists too, is that of a gRPC client: it has several @."""
    return pl.col("client_id").str.count_matches("@") > 1


def other_clients(consumer_connection: pl.DataFrame, heartbeat: pl.DataFrame) -> pl.DataFrame:
    """Return client_id and language of the clients that only state other languages, by rows of these silver tables."""
    listed = consumer_connection.select("connections").explode("connections").drop_nulls().unnest("connections")
    stated = pl.concat([each.select("client_id", "language") for each in (listed, heartbeat)]).drop_nulls().unique()
    named = stated.with_columns(pl.when(is_grpc_client()).then(pl.lit(GRPC)).otherwise("language").alias("language"))
    known = named.group_by("client_id").agg(pl.col("language").min(), (pl.col("language") == JAVA).any().alias("java"))
    return known.filter(~pl.col("java")).select("client_id", "language")


def without_other_languages(judged: pl.DataFrame, clients: pl.DataFrame) -> pl.DataFrame:
    """Return the verdicts; a difference of one of these clients is undetermined: the rule is the Java client's."""
    known = judged.join(clients, "client_id", how="left", maintain_order="left")
    is_other = (pl.col("judgement") == "differ") & pl.col("language").is_not_null()
    reason = pl.format("the client's language is {}, and the rule is that of the Java client", "language")
    return known.with_columns(
        pl.when(is_other).then(pl.lit("undetermined")).otherwise("judgement").alias("judgement"),
        pl.when(is_other).then(reason).otherwise("reason").alias("reason"),
    ).drop("language")
