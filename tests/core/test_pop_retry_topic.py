"""Retry topics of POP: whose they are, where known groups and topics allow one reading, and none where they do not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.retry_topic import (
    RetryTopicOwner,
    build_pop_retry_topic,
    parse_group,
    parse_normal_topic,
    parse_retry_topic,
    retry_topic,
    retry_topic_owners,
)

NAMES = st.text("ab_-%", min_size=1, max_size=6)


@given(NAMES, NAMES, st.booleans(), st.sets(NAMES), st.sets(NAMES))
def test_the_true_owner_is_always_among_the_readings(
    group: str, topic: str, v2: bool, groups: set[str], topics: set[str]
) -> None:
    name = build_pop_retry_topic(topic, group, v2)
    assert RetryTopicOwner(group, topic, 1 + v2) in retry_topic_owners(name, groups | {group}, topics | {topic})
    assert parse_normal_topic(name, group) == topic


@given(NAMES, NAMES, st.booleans(), st.sets(NAMES), st.sets(NAMES))
def test_no_reading_contradicts_the_name(group: str, topic: str, v2: bool, groups: set[str], topics: set[str]) -> None:
    name = build_pop_retry_topic(topic, group, v2)
    for owner in retry_topic_owners(name, groups, topics):
        made = retry_topic(owner.consumer_group)
        if owner.topic is not None:
            made = build_pop_retry_topic(owner.topic, owner.consumer_group, owner.version == 2)
        assert made == name
        assert owner.version == 2 or owner.consumer_group in groups
        assert owner.version != 1 or owner.topic in topics


@given(NAMES, NAMES)
def test_version_2_names_its_group_and_topic_without_knowledge(group: str, topic: str) -> None:
    name = build_pop_retry_topic(topic, group, True)
    assert parse_retry_topic(name, (), ()) == (group, topic, 2)
    assert (parse_group(name), parse_normal_topic(name)) == (group, topic)


def test_a_group_named_like_a_group_and_a_topic_leaves_its_retry_topic_ambiguous() -> None:
    assert parse_retry_topic("%RETRY%pay_orders", {"pay", "pay_orders"}, {"orders"}) is None
    assert parse_retry_topic("%RETRY%pay_orders", {"pay", "pay_orders"}, {"other"}) == ("pay_orders", None, 0)


def test_a_topic_nobody_knows_gives_no_group() -> None:
    assert parse_retry_topic("%RETRY%pay_orders", {"pay"}, set()) is None
    assert parse_retry_topic("orders", {"orders"}, {"orders"}) is None
