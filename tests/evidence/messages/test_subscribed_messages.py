"""Whether a group receives a message, by its tags or properties; the properties are those of a captured send."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.messages.subscribed_messages import known_versions, with_match
from silver_rows import rows

# Of a message of the orders sample: `i` of SendMessageRequestHeaderV2, with a property more.
SENT = "KEYS\x01order-topic-49\x02UNIQ_KEY\x017F0000011C714E0E2F2A67922539010A\x02WAIT\x01true\x02TAGS\x01TagB"
MESSAGE = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 1, "queue_offset": 12, "tags": "TagB"}
MESSAGE |= {"msg_id": "7F0000011C714E0E2F2A67922539010A"}
SUBSCRIPTION = dict.fromkeys(("consumer_group", "topic", "sub_string", "expression_type"), pl.String)
BOTH = ("4.9.7", "5.3.3")


def verdict(
    *subscribed: tuple[str | None, str | None],
    properties: str | None = SENT + "\x02region\x01eu\x02price$\x0130\x02empty\x01",
    versions: tuple[str, ...] = BOTH,
    **differs: Any,
) -> tuple[bool | None, bool]:
    """(matches, by_sql) of a message for subscriptions: expression and type."""
    message = MESSAGE | differs
    named = {name: value for name, value in message.items() if name != "consumer_group"}
    produce = rows("silver.produce", named, [{"properties": properties, "key": "order-topic-49"}] * 2)
    messages = pl.DataFrame([message], schema_overrides={"queue_id": pl.Int32, "tags": pl.String})
    listed = pl.DataFrame([("g", "t", *each) for each in subscribed], SUBSCRIPTION, orient="row")
    (row,) = with_match(messages, produce, listed, versions).rows(named=True)
    return row["matches"], row["by_sql"]


@pytest.mark.parametrize(
    ("expression", "tags", "matches"),
    [
        ("*", "TagB", True),
        ("", None, True),
        (None, "TagB", True),
        ("TagA || TagB", "TagB", True),
        ("TagA || TagB", "TagC", False),
        ("TagA", None, False),
        # The broker sends it, as the hashes are equal; the client drops it.
        ("Aa", "BB", False),
        ("||", "TagB", None),
    ],
)
def test_tags(expression: str | None, tags: str | None, matches: bool | None) -> None:
    assert verdict((expression, "TAG"), tags=tags)[0] is matches


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ("region = 'eu'", True),
        ("region IN ('us')", False),
        ("price$ BETWEEN 10 AND 40 AND TAGS = 'TagB'", True),
        ("price$ > 'x'", None),  # no broker compiles it
        ("absent > 3", False),
        ("empty IS NULL", True),
        ("UNIQ_KEY IS NOT NULL AND WAIT = 'true'", True),
        ("CLUSTER = 'c'", None),  # the broker adds it
        ("TRUE", True),
    ],
)
def test_sql92(expression: str, matches: bool | None) -> None:
    assert verdict((expression, "SQL92")) == (matches, matches is None)


def test_properties_that_were_not_recorded() -> None:
    assert verdict(("region = 'eu'", "SQL92"), properties=None) == (None, True)
    assert verdict(("TAGS IN ('TagB')", "SQL92"), properties=None) == (True, False)
    assert verdict(("KEYS = 'x'", "SQL92"), properties=None) == (False, False)
    assert verdict(("region = 'eu'", "SQL92"), properties="") == (False, False)


def test_any_subscription_that_matches_is_enough() -> None:
    by_region = ("region = 'eu'", "SQL92")
    assert verdict(("TagB", "TAG"), by_region, properties=None) == (True, False)
    assert verdict(("TagA", "TAG"), by_region, properties=None) == (None, True)
    assert verdict(("TagA", "TAG"), by_region) == (True, False)
    assert verdict(("TagA", None)) == (False, False)
    assert verdict() == (None, False)


def test_the_language_is_that_of_the_brokers() -> None:
    contains = ("region CONTAINS 'e'", "SQL92")
    assert verdict(contains, versions=("5.3.3",)) == (True, False)
    assert verdict(contains) == (None, True), "4.9.7 does not have this word"


def test_versions_of_brokers() -> None:
    named = rows("silver.broker", {}, [{"rocketmq_version": v} for v in ("5.3.3", "V5_3_3", None, "unknown")])
    assert known_versions(named) == ("5.3.3", "V5_3_3")
    assert known_versions(named.clear()) == BOTH


@pytest.mark.parametrize(("kind", "matches"), [(None, True), ("TAG", True), ("", False), ("REGEX", None)])
def test_a_filter_that_rocketmq_does_not_have_is_not_known(kind: str | None, matches: bool | None) -> None:
    # FilterAPI#build keeps the tags of the type TAG only: the broker then finds none for the type "".
    assert verdict(("TagA || TagB", kind))[0] is matches
