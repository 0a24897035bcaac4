from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.delivery_audit import Delivery, DeliveryAudit, audit_delivery, order_violations

MESSAGES = st.lists(st.sampled_from("abcde"), max_size=10)


def text(found: Counter[str] | None) -> str | None:
    return None if found is None else "".join(sorted(found.elements()))


@pytest.mark.parametrize(
    ("sent", "acknowledged", "delivered", "lost", "duplicated", "unexpected", "recovered"),
    [
        ("", "", "", "", "", "", ""),
        ("abc", "abc", "cab", "", "", "", ""),
        ("abc", "abc", "c", "ab", "", "", ""),
        ("abc", "a", "ab", "", "", "", "b"),  # b timed out, and was stored all the same
        ("abc", "a", "a", "", "", "", ""),  # nobody promised b and c
        ("aa", "aa", "aa", "", "", "", ""),  # sent twice, delivered twice
        ("aa", "aa", "a", "a", "", "", ""),
        ("aa", "a", "aaa", "", "a", "", "a"),
        ("", "a", "aa", "", "a", "", ""),  # an acknowledgement is proof of its sending
        ("a", "a", "axx", "", "", "xx", ""),  # what was never sent is not delivered again
    ],
)
def test_sums(
    sent: str, acknowledged: str, delivered: str, lost: str, duplicated: str, unexpected: str, recovered: str
) -> None:
    found = audit_delivery(sent, acknowledged, delivered)
    assert [text(each) for each in found] == [lost, duplicated, unexpected, recovered, ""]


@given(MESSAGES, MESSAGES, MESSAGES, MESSAGES)
def test_every_delivery_and_every_acknowledged_message_is_accounted_for(
    sent: list[str], acknowledged: list[str], delivered: list[str], waiting: list[str]
) -> None:
    lost, duplicated, unexpected, recovered, still = audit_delivery(sent, acknowledged, delivered, waiting)
    got, confirmed = Counter(delivered), Counter(acknowledged)
    expected = got - duplicated - unexpected  # each delivery is a first one, or one again, or a stranger
    assert expected + duplicated + unexpected == got
    assert expected <= Counter(sent) | confirmed
    assert expected - recovered + lost + still == confirmed
    assert not set(lost) & set(recovered)
    assert not set(unexpected) & (set(sent) | set(acknowledged))
    assert still <= Counter(waiting)


@given(MESSAGES, MESSAGES, MESSAGES, st.randoms())
def test_order_does_not_matter(sent: list[str], acknowledged: list[str], delivered: list[str], random) -> None:
    before = audit_delivery(sent, acknowledged, delivered)
    for each in (sent, acknowledged, delivered):
        random.shuffle(each)
    assert audit_delivery(sent, acknowledged, delivered) == before


@given(MESSAGES | st.none(), MESSAGES | st.none(), MESSAGES | st.none(), MESSAGES | st.none())
def test_what_is_not_recorded_makes_unknown_never_zero(
    sent: list[str] | None, acknowledged: list[str] | None, delivered: list[str] | None, waiting: list[str] | None
) -> None:
    found = audit_delivery(sent, acknowledged, delivered, waiting)
    if delivered is None:
        assert found == DeliveryAudit(None, None, None, None, None)
        return
    all_there = acknowledged is not None and not Counter(acknowledged) - Counter(delivered)
    assert (found.lost is None) == (acknowledged is None or (waiting is None and not all_there))
    assert (found.waiting is None) == (found.lost is None)
    assert (found.unexpected is None) == (sent is None)
    assert (found.recovered is None) == (sent is None or acknowledged is None)
    assert found.duplicated is not None


def test_without_the_sends_each_message_counts_as_sent_once() -> None:
    found = audit_delivery(None, None, "aabx")
    assert (text(found.duplicated), found.unexpected, found.lost, found.recovered) == ("a", None, None, None)
    assert text(audit_delivery(None, "aab", "aab").duplicated) == ""


def test_what_still_waits_is_not_lost() -> None:
    found = audit_delivery("abc", "abc", "a", waiting="cx")
    assert (text(found.lost), text(found.waiting)) == ("b", "c")
    assert text(audit_delivery("abc", "abc", "abc", waiting=None).lost) == ""
    assert audit_delivery("abc", "abc", "ab", waiting=None).lost is None


def offsets(*delivered_offsets: int, client: str = "c", queue: str = "q") -> list[Delivery]:
    return [Delivery(queue, client, offset) for offset in delivered_offsets]


def violations(deliveries: list[Delivery]) -> list[tuple[int, int]]:
    return [(found.delivery.queue_offset, found.after_offset) for found in order_violations(deliveries) or []]


def test_a_first_delivery_after_a_later_one_breaks_the_order() -> None:
    assert violations(offsets(1, 4, 2, 3, 5)) == [(2, 4), (3, 4)]


@pytest.mark.parametrize(
    "deliveries",
    [
        offsets(1, 2, 3, 1, 2, 3, 4),  # a reset back
        [*offsets(1, 2), Delivery("q", "c", 2, reconsume_times=1), *offsets(3)],
        [*offsets(5), Delivery("q", "c", 2, reconsume_times=1)],  # its first try was on a night before
        [*offsets(4, client="a"), *offsets(1, client="b")],  # each client for itself
        [*offsets(1, 2, client="a"), *offsets(3, 4, client="b"), *offsets(1, 2, client="b")],
        [*offsets(9, queue="p"), *offsets(1, queue="q")],
        [],
    ],
)
def test_what_does_not_break_it(deliveries: list[Delivery]) -> None:
    assert violations(deliveries) == []


def test_an_unrecorded_consumer_kept_no_order_that_we_know_of() -> None:
    assert order_violations(None) is None


DELIVERIES = st.lists(
    st.builds(Delivery, st.sampled_from("pq"), st.sampled_from("ab"), st.integers(0, 6), st.sampled_from([0, 0, 0, 1]))
)


@given(DELIVERIES)
def test_the_law_by_comparing_every_pair(deliveries: list[Delivery]) -> None:
    expected = []
    for place, late in enumerate(deliveries):
        before = [each for each in deliveries[:place] if each.queue == late.queue]
        higher = [each.queue_offset for each in before if each.client_id == late.client_id]
        first = all(each.queue_offset != late.queue_offset for each in before)
        if first and not late.reconsume_times and max(higher, default=-1) > late.queue_offset:
            expected.append((late, max(higher)))
    assert order_violations(deliveries) == expected
