"""Findings of resets: what is one reset, when it was, and how far it moved the group."""

from __future__ import annotations

import pytest

from evidence_keys import evidence_of
from findings.offset_breaks import PUSHES, Row, broke, of_resets, pushed
from silver_moments import at


def test_a_reset_that_names_no_queue_or_topic_is_reported():
    (bare,) = of_resets([row | {"topic": None, "queue_id": None} for row in pushed("g", 100)[:1]], [])
    assert (bare["summary"], bare["topic"]) == ("Group g on : 0 queues reset.", None)


def answer(group: str, seconds: float, asked: int, offset: int = 100, queue: int = 0) -> Row:
    """A pull that a 5.x broker answered with where a reset leads."""
    place = {"consumer_group": group, "topic": "T", "broker_name": "b", "queue_id": queue, "asked": asked}
    answered = {
        "since": at(seconds - 1),
        "ts": at(seconds),
        "table_name": "silver.pull",
        "record_id": f"p{seconds}{queue}",
    }
    return place | answered | {"offset": offset}


def test_a_reset_is_dated_when_the_offset_was_set_and_not_when_the_group_comes_back():
    lost = [broke("g", 50, 30, 30, previous_offset=130, cause="reset", queue_id=queue) for queue in (0, 1)]
    # One member was up, and the queues of the other were pulled two minutes later. One queue was there already.
    answers = [answer("g", 48, 130), answer("g", 170, 100, queue=1), answer("g", 171, 100, queue=2)]
    (found,) = of_resets(answers, lost)
    assert (found["severity"], found["from_ts"], found["to_ts"]) == ("warning", at(48), at(171))
    assert found["summary"] == (
        "Group g on T: 3 queues reset, back by up to 30 messages (b/1: from 130 to 100); at most 60 messages delivered"
        " again."
    )
    # A second reset of these queues is another one, though it moves nothing.
    later = [answer("g", 300, 100, queue=queue) for queue in (1, 2)]
    assert [(f["from_ts"], f["severity"]) for f in of_resets([*answers, *later], lost)] == [
        (at(48), "warning"),
        (at(300), "info"),
    ]


def test_an_answer_alone_says_how_far_the_client_was_sent():
    (ahead,) = of_resets([answer("g", 48, 70)], [])
    assert ahead["summary"] == (
        "Group g on T: 1 queue reset, ahead by up to 30 messages (b/0: from 70 to 100); at most 30 messages skipped."
    )
    assert (ahead["severity"], ahead["broker_name"], ahead["queue_id"]) == ("warning", "b", 0)


def test_a_reset_ahead_of_what_is_stored_that_moves_a_client_back_is_two_statements():
    # The broker sets the stored offset at once; a minute later it answers the client, which was further ahead.
    stored = broke("g", 50, 3, 0, kind="jump", cause="reset", previous_offset=97, new_offset=100)
    (found,) = of_resets([answer("g", 110, 191)], [stored])
    assert found["summary"] == (
        "Group g on T: 1 queue reset, ahead by up to 3 messages (b/0: from 97 to 100). Pulls that came later, until"
        " 02:01:50 UTC, were answered with these offsets: clients that were further ahead went back, at most 91"
        " messages delivered again."
    )
    assert found["severity"] == "warning"


def test_a_push_that_a_client_carried_out_counts_from_what_it_had_committed():
    # The group had consumed all of it again before the next copy, which shows a fall of three messages.
    again = broke("g", 115, 3, 8, cause="reset", previous_offset=140, new_offset=137)
    carried_out = {"asked": 140, "delivered_to": 145}
    (found,) = of_resets([row | carried_out for row in pushed("g", 100)[:1]], [again])
    assert "back by up to 40 messages (b/0: from 140 to 100); at most 8 messages" in found["summary"]
    assert found["from_ts"] == at(100)
    (found,) = of_resets([row | carried_out for row in pushed("g", 100)[:1]], [])
    assert "(b/0: from 140 to 100); at most 45 messages delivered again" in found["summary"]


def test_an_offset_that_nobody_committed_was_set_by_somebody():
    by_hand = broke("g", 50, 45, 45, cause="set_from_outside", previous_offset=48, new_offset=3)
    online = [row | {"asked": 130} for row in pushed("g", 400)]
    (found, pushed_later) = of_resets(online, [by_hand])
    assert found["summary"] == (
        "Group g on T: 1 queue reset, back by up to 45 messages (b/0: from 48 to 3); at most 45 messages delivered"
        " again; no client of the group committed that."
    )
    assert (found["severity"], found["confidence"], found["from_ts"]) == ("warning", 0.8, at(45))
    assert (pushed_later["from_ts"], pushed_later["confidence"]) == (at(400), 1.0)
    assert found["evidence"] == [
        evidence_of(
            "gold.offset_continuity",
            consumer_group="g",
            topic="T",
            broker_name="b",
            broker_id=0,
            queue_id=0,
            kind="rewind",
            to_ts=at(50),
        )
    ]


@pytest.mark.parametrize("differs", [{"broker_id": 1}, {"kind": "beyond_max"}, {"cause": "client_commit"}])
def test_what_is_no_reset(differs):
    assert of_resets([], [broke("g", 50, 45, 45, **{"cause": "set_from_outside"} | differs)]) == []


def test_a_reset_is_concluded_from_offsets_where_none_was_recorded():
    reset = [
        broke("g", 50, size, size, queue_id=queue, cause="reset", previous_offset=100 + size)
        for queue, size in enumerate((7, 29))
    ]
    others = [broke("recorded", 50, 7, cause="reset"), broke("other", 50, 7)]
    sent = PUSHES[0] | {"consumer_group": "recorded", "topic": "T", "ts": at(300), "since": at(300)}
    (found, _) = of_resets([sent], [*reset, *others])
    assert found["summary"] == (
        "Group g on T: at least 2 queues reset, back by up to 29 messages (b/1: from 129 to 100); at least 36 messages"
        " delivered again, concluded from the offsets that its brokers hold."
    )
    assert (found["severity"], found["confidence"], found["broker_name"]) == ("warning", 0.8, "b")
    assert found["evidence"][0]["table_name"] == "gold.offset_continuity"
