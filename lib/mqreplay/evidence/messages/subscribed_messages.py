"""Whether messages match the subscriptions of a group: by tags, or by properties with SQL92.

The rules are evaluated once for each expression and tag, or values of the properties that the expression reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final

import polars as pl

from mqreplay.core.sql92 import compile_sql92, is_matched
from mqreplay.core.sql92_expression import Condition, property_names
from mqreplay.core.tags_filter import (
    SQL92,
    build,
    is_matched_by_client,
    is_matched_by_consume_queue,
    is_tag_type,
    tags_code,
)
from mqreplay.core.version import BROKER_4, version_key
from mqreplay.evidence.frames import with_law
from mqreplay.words.errors import MqreplayError, RocketMQError
from mqreplay.words.keys import GROUP_TOPIC

SUBSCRIPTION: Final = ("sub_string", "expression_type")
SENT_MESSAGE: Final = ("topic", "broker_name", "queue_id", "queue_offset", "msg_id")
BROKER_5: Final = "5.3.3"
# Columns of the producers' log that have a property, also where it lacks the others (MessageConst).
COLUMN_OF: Final[Mapping[str, str]] = {"TAGS": "tags", "KEYS": "key"}
# Properties that a broker adds: the producers' log does not have them.
BROKER_PROPERTIES: Final = frozenset({"BORN_HOST", "BORN_TIMESTAMP", "CLUSTER", "MSG_REGION", "STORE_HOST", "TRACE_ON"})


def known_versions(broker: pl.DataFrame) -> tuple[str, ...]:
    """Return the versions of the brokers of silver.broker; one of each language of filters if none is known."""
    named = broker["rocketmq_version"].drop_nulls().unique().sort()
    return tuple(filter(_is_version, named)) or (BROKER_4, BROKER_5)


def with_match(
    messages: pl.DataFrame, produce: pl.DataFrame, subscriptions: pl.DataFrame, versions: Sequence[str]
) -> pl.DataFrame:
    """Add ``matches`` and ``by_sql`` to messages.

    ``matches``: a subscription of the group matches the message; null: not known, or no subscription is known.
    ``by_sql``: it is not known because of a SQL92 filter. ``messages`` have consumer_group, SENT_MESSAGE and tags,
    ``produce`` are rows of silver.produce. ``subscriptions`` have consumer_group, topic, sub_string and
    expression_type. A group whose subscription changed receives what any of them matches.
    """
    is_sql = (pl.col("expression_type") == SQL92).fill_null(value=False)
    by_tags, by_sql = subscriptions.filter(~is_sql), subscriptions.filter(is_sql)
    numbered = messages.with_row_index("_row")
    found = [_by_tags(numbered, by_tags)]
    if len(by_sql):
        found += _by_sql(numbered, produce, by_sql, versions)
    verdicts = pl.concat(found).group_by("_row").agg(pl.col("matches").any(ignore_nulls=False))
    unknown = verdicts.with_columns(pl.col("matches").is_null().alias("by_sql"))
    known = numbered.join(unknown, "_row", how="left", maintain_order="left").drop("_row")
    return known.with_columns(pl.col("by_sql").fill_null(value=False))


def _by_tags(messages: pl.DataFrame, subscriptions: pl.DataFrame) -> pl.DataFrame:
    """Return _row and matches of each message and subscription by tags."""
    pairs = messages.select("_row", *GROUP_TOPIC, "tags").join(
        subscriptions.select(*GROUP_TOPIC, *SUBSCRIPTION), on=GROUP_TOPIC
    )
    return with_law(pairs, [*SUBSCRIPTION, "tags"], {"matches": pl.Boolean()}, _matches_tags).select("_row", "matches")


@lru_cache(maxsize=10_000)
def _matches_tags(expression: str | None, expression_type: str | None, tags: str | None) -> bool | None:
    """Return whether a group receives a message: the broker compares hashes, then the client the tags.

    None: the client cannot have subscribed so, or with a filter that RocketMQ does not have.
    """
    if not is_tag_type(expression_type):
        return None
    try:
        subscription = build(None, expression, expression_type)
    except RocketMQError:
        return None
    sent = is_matched_by_consume_queue(subscription, tags_code(tags))
    return sent and is_matched_by_client(subscription.tags_set, tags)


def _by_sql(
    messages: pl.DataFrame, produce: pl.DataFrame, subscriptions: pl.DataFrame, versions: Sequence[str]
) -> list[pl.DataFrame]:
    """Return _row and matches of each message and subscription by SQL92."""
    of_groups = messages.join(subscriptions.select(GROUP_TOPIC).unique(), on=GROUP_TOPIC, how="semi")
    sent = produce.select(*SENT_MESSAGE, "key", "properties").unique(SENT_MESSAGE, keep="first", maintain_order=True)
    described = of_groups.join(sent, on=SENT_MESSAGE, how="left", nulls_equal=True)
    expressions = subscriptions["sub_string"].drop_nulls().unique().sort()
    return [
        _of_expression(
            described.join(subscriptions.filter(pl.col("sub_string") == each), on=GROUP_TOPIC, how="semi"),
            [_compiled(each, version) for version in versions],
        )
        for each in expressions
    ]


def _of_expression(rows: pl.DataFrame, conditions: Sequence[Condition | None]) -> pl.DataFrame:
    unknown = rows.select("_row", pl.lit(None, pl.Boolean).alias("matches"))
    compiled = [condition for condition in conditions if condition is not None]
    if len(compiled) < len(conditions):
        return unknown
    names = sorted(frozenset[str]().union(*map(property_names, compiled)))
    if BROKER_PROPERTIES.intersection(names):
        return unknown
    columns = [f"_{place}" for place in range(len(names))]
    is_known = pl.lit(value=True) if COLUMN_OF.keys() >= set(names) else pl.col("properties").is_not_null()
    valued = rows.with_columns(_value(name).alias(column) for name, column in zip(names, columns, strict=True))

    def law(known: bool, *values: str | None) -> bool | None:
        return _matches_sql(compiled, dict(zip(names, values, strict=True))) if known else None

    placed = valued.with_columns(is_known.alias("_known"))
    return with_law(placed, ["_known", *columns], {"matches": pl.Boolean()}, law).select("_row", "matches")


def _value(name: str) -> pl.Expr:
    """Return a property of each message; null: it has none (MessageDecoder#string2messageProperties)."""
    escaped = name.replace("$", r"\$")
    value = pl.col("properties").str.extract(rf"(?:^|\x02){escaped}\x01([^\x02]+)")
    if name not in COLUMN_OF:
        return value
    return pl.when(pl.col("properties").is_null()).then(COLUMN_OF[name]).otherwise(value)


def _compiled(expression: str, version: str) -> Condition | None:
    try:
        return compile_sql92(expression, version)
    except MqreplayError:  # a broker refuses it, too
        return None


def _matches_sql(conditions: Collection[Condition], values: Mapping[str, str | None]) -> bool | None:
    """Return whether the broker sends a message; null: versions of brokers disagree."""
    properties = {name: value for name, value in values.items() if value is not None}
    answers = {is_matched(condition, properties) for condition in conditions}
    return answers.pop() if len(answers) == 1 else None


def _is_version(text: str) -> bool:
    try:
        version_key(text)
    except MqreplayError:
        return False
    return True
