"""Tags: what a subscription keeps, and what passes at the broker and at the client."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.tags_filter import (
    build,
    build_subscription_data,
    is_matched_by_client,
    is_matched_by_consume_queue,
    tags_code,
)
from mqreplay.words.errors import IllegalArgument, JavaException

tags = st.text(alphabet="abAB*| \u00a0中😀", min_size=1, max_size=6)


@pytest.mark.parametrize("expression", [None, "", "*"])
def test_no_expression_is_every_message(expression: str | None) -> None:
    subscription = build_subscription_data("T", expression)
    assert (subscription.sub_string, subscription.tags_set) == ("*", ())
    assert is_matched_by_consume_queue(subscription, tags_code(None))
    assert is_matched_by_client(subscription.tags_set, None)


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        ("TagA", ("TagA",)),
        (" TagA || TagB ||", ("TagA", "TagB")),
        ("|||", ("|",)),
        ("\u00a0a", ("\u00a0a",)),
        ("   ", ()),
        ("a||a", ("a",)),
    ],
)
def test_tags_are_parted_and_trimmed_as_java_does(expression: str, kept: tuple[str, ...]) -> None:
    subscription = build_subscription_data("T", expression)
    assert (subscription.sub_string, subscription.tags_set) == (expression, kept)


@pytest.mark.parametrize("expression", ["||", "||||"])
def test_separators_alone_are_refused(expression: str) -> None:
    with pytest.raises(JavaException, match="subString split error"):
        build_subscription_data("T", expression)


def test_another_type_needs_an_expression() -> None:
    with pytest.raises(IllegalArgument, match="Expression can't be null! SQL92"):
        build("T", "", "SQL92")
    assert build("T", "a||b", "tag").tags_set == ()


def test_the_broker_compares_hashes_and_the_client_tags() -> None:
    subscription = build_subscription_data("T", "Aa")
    assert is_matched_by_consume_queue(subscription, tags_code("BB"))
    assert not is_matched_by_client(subscription.tags_set, "BB")
    assert not is_matched_by_client(subscription.tags_set, None)


@given(st.lists(tags, max_size=8), tags)
def test_the_broker_drops_nothing_that_the_client_would_keep(wanted: list[str], tag: str) -> None:
    try:
        subscription = build_subscription_data("T", "||".join(wanted))
    except JavaException:
        return
    if is_matched_by_client(subscription.tags_set, tag) and subscription.tags_set:
        assert is_matched_by_consume_queue(subscription, tags_code(tag))


def test_what_the_consume_queue_cannot_tell_is_sent() -> None:
    some = build_subscription_data("T", "a")
    assert is_matched_by_consume_queue(some, None)
    assert is_matched_by_consume_queue(build_subscription_data("T", "*"), 7)
    assert is_matched_by_consume_queue(replace(some, class_filter_mode=True), 7)
    assert not is_matched_by_consume_queue(some, 7)


def test_a_client_drops_what_has_no_tag() -> None:
    assert [is_matched_by_client({"a"}, tags) for tags in (None, "a", "b")] == [False, True, False]
