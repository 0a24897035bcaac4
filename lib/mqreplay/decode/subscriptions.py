"""Subscriptions of consumers in heartbeats, connection lists and running info."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mqreplay.core.java import LONG_MAX, LONG_MIN
from mqreplay.decode.columns import missing
from mqreplay.decode.fastjson_text import Value
from mqreplay.decode.fields import int_field, object_of, text_field

SUBSCRIPTIONS: Final = "array<struct<topic:string,sub_string:string,expression_type:string,sub_version:bigint>>"
Subscription = tuple[str, str | None, str | None, int]


def subscriptions_of(values: Iterable[Value], name: str) -> list[Subscription]:
    """Return (topic, expression, its type, version) of SubscriptionData objects; ``name`` is the field, for errors.

    Raises:
        DecodeError: missing_field, wrong_type, bad_number.

    >>> subscriptions_of([{"topic": "t", "subString": "A || B", "subVersion": 5}], "subscriptionSet")
    [('t', 'A || B', 'TAG', 5)]
    """
    return [_subscription(value, name) for value in values]


def _subscription(value: Value, name: str) -> Subscription:
    data = object_of(value, name)
    topic = text_field(data, "topic", None)
    if topic is None:
        raise missing(f"topic of a subscription in {name}")
    return (
        topic,
        text_field(data, "subString", None),
        text_field(data, "expressionType", "TAG"),
        int_field(data, "subVersion", 0, LONG_MIN, LONG_MAX),
    )
